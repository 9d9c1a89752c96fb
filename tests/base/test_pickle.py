"""Pickles, copies, processes and threads: structure and numbers travel, engines do not."""

import copy
import multiprocessing
import pickle
import pickletools
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import tacit
from tacit import examples
from tacit.base import pickling
from tacit.base.lru import LRUCache
from tacit.query import network

EVIDENCE = {"A": [0.8, 0.1], "C": ["lo", "hi"]}
WAYS = [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))]


def used(engine):
    """A query that has run, and so has its engines."""
    if engine == "torch":
        pytest.importorskip("torch")
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine=engine, threads=1)
    tac.posterior(EVIDENCE)
    tac.marginals(EVIDENCE)
    return tac


def globals_of(data):
    """The classes and functions that a pickle names."""
    found, strings = [], []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "STACK_GLOBAL":
            found.append(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


@pytest.fixture(params=["numpy", "tape", "torch", "auto"])
def tac(request):
    return used(request.param)


@pytest.mark.parametrize("again", WAYS, ids=["copy", "deepcopy", "pickle"])
def test_a_query_that_has_run_can_be_copied(tac, again):
    other = again(tac)
    assert (other._engine, other._companions) == (None, {})
    assert (other.evidence, other.hard, other.dtype, other.options.engine, other.options.threads) == (
        *(tac.evidence, tac.hard, tac.dtype, tac.options.engine),
        1,
    )
    np.testing.assert_array_equal(other.posterior(EVIDENCE), tac.posterior(EVIDENCE))
    for name, found in other.marginals(EVIDENCE).items():
        np.testing.assert_array_equal(found, tac.marginals(EVIDENCE)[name])


def test_a_pickled_query_holds_no_engine(tac):
    data = pickle.dumps(tac)
    assert len(data) <= len(pickle.dumps(tacit.compile(examples.abc(), "B", ["A", "C"], threads=1))) + 500
    assert not [name for name in globals_of(data) if name.startswith(("tacit.engines", "numba", "torch"))]


@pytest.mark.parametrize("make", [examples.abc, lambda: tacit.compile(examples.abc(), "B")], ids=["network", "query"])
def test_a_pickle_of_another_form_is_refused_before_it_is_read(make, monkeypatch):
    thing = make()
    monkeypatch.setattr(pickling, "FORM", pickling.FORM + 1)
    monkeypatch.setattr(pickling, "VERSION", "7.0")
    thing.unreadable = Unreadable()
    data = pickle.dumps(thing)
    monkeypatch.undo()
    with pytest.raises(tacit.FormatError, match=r"tacit 7\.0 pickled it in form 4, .* reads form 3; .* tacit\.save"):
        pickle.loads(data)


@pytest.mark.parametrize("module", ["network", "learn.estimation"])
def test_a_pickle_that_names_a_former_module_is_refused(module):
    data = f"ctacit.{module}\nNetwork\n.".encode()
    with pytest.raises(
        ModuleNotFoundError, match=rf"tacit\.{module}': .* now; if a pickle names it.* tacit\.save keeps"
    ):
        pickle.loads(data)


@pytest.mark.parametrize("module", pickling.MOVED)
def test_a_module_that_has_moved_is_said_to_be_where_it_is(module):
    with pytest.raises(ModuleNotFoundError) as error:
        import_module(f"tacit.{module}")
    assert import_module(str(error.value).split("it is ")[1].split(" now")[0])


def test_other_modules_may_be_looked_for():
    assert find_spec("tacit.nowhere") is None


def test_a_pickle_without_a_form_is_refused():
    for thing in (examples.abc(), used("numpy")):
        with pytest.raises(tacit.FormatError, match="before tacit marked the form"):
            thing.__setstate__(dict(vars(thing)))


class Unreadable:
    """Fails when it is read, as does what a later release has renamed."""

    def __reduce__(self):
        return int, ("not a number",)


def test_a_network_leaves_its_compiled_queries_behind():
    net = examples.abc()
    before = len(pickle.dumps(net))
    net.posterior("B", EVIDENCE)
    net.posterior("A", {"C": "lo"})
    assert len(net._compiled) == 2
    assert len(pickle.dumps(net)) <= before + 100  # an index of labels, made on first use
    for again in WAYS:
        other = again(net)
        assert other == net
        assert len(other._compiled) == 0
        np.testing.assert_array_equal(other.posterior("B", EVIDENCE), net.posterior("B", EVIDENCE))


def test_what_fit_returns_can_be_pickled():
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("Q", ["E"])
    x = np.linspace(0, 1, 20)
    fit = tacit.fit(tacit.compile(net, "Q", ["E"]), {"E": x}, 0.2 + 0.5 * x, steps=5, restarts=2, progress=False)
    fit.tac.posterior({"E": x})
    for again in WAYS:
        other = again(fit)
        assert (other.loss, other.history, other.network) == (fit.loss, fit.history, fit.network)
        np.testing.assert_allclose(other.tac.posterior({"E": x}), fit.tac.posterior({"E": x}), rtol=1e-14)


def posterior(tac):
    return tac.posterior(EVIDENCE)


def learned(model):
    X = np.random.default_rng(0).random((40, 2))
    return model.fit(X, X[:, 0] > 0.5)


def test_everything_works_in_a_process_that_is_spawned():
    pytest.importorskip("sklearn")
    from tacit.sklearn import TACClassifier

    tacs, model = (
        [used("numpy"), used("tape")],
        TACClassifier(tests=1, components=1, steps=3, restarts=1, random_state=0),
    )
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for tac, found in zip(tacs, pool.map(posterior, tacs), strict=True):
            np.testing.assert_array_equal(found, tac.posterior(EVIDENCE))
        X = np.random.default_rng(1).random((5, 2))
        there = pool.submit(learned, learned(model)).result()  # there and back, after it was fitted
        np.testing.assert_array_equal(there.predict_proba(X), learned(model).predict_proba(X))


# the queries that a network keeps -----------------------------------------------------------------------------


def test_a_network_keeps_so_many_queries_and_no_more(monkeypatch):
    net, compiled = tacit.Network(), []
    for i in range(network.MAX_COMPILED + 3):
        net.add(f"X{i}", cpt=[0.25, 0.75])
    original = network.compiled
    monkeypatch.setattr(
        network, "compiled", lambda kind, net, query, *more: compiled.append(query) or original(kind, net, query, *more)
    )
    for name in net:
        net.posterior(name)
    assert len(net._compiled) == network.MAX_COMPILED
    assert len(compiled) == len(net)
    net.posterior("X3")  # the oldest that is still there
    assert len(compiled) == len(net)
    net.posterior("X0")  # dropped before: it comes back, and X4 goes, which is now the oldest
    net.posterior("X3")
    assert compiled[len(net) :] == ["X0"]
    net.posterior("X4")
    assert compiled[len(net) :] == ["X0", "X4"]


def test_many_threads_may_use_one_memory():
    kept = LRUCache(2)

    def ask(i):
        return kept.get(i % 5, lambda: i % 5)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(4_000))) == [i % 5 for i in range(4_000)]
    assert len(kept) == 2


def test_the_first_of_two_threads_that_make_the_same_wins():
    kept, second = LRUCache(2), object()

    def make_meanwhile():
        kept.get("key", lambda: second)
        return object()

    assert kept.get("key", make_meanwhile) is second
    kept.clear()
    assert len(kept) == 0


class Slow(str):
    """A name that lets other threads go first whenever a dictionary looks it up."""

    __slots__ = ()

    def __hash__(self):
        time.sleep(0)
        return super().__hash__()


def test_threads_share_a_network(monkeypatch):
    class Query:  # in place of a compiled one: what is asked for here is the cache
        def __init__(self, kind, net, query, *_):
            self.query = query

        def posterior(self, _):
            return self.query

    monkeypatch.setattr(network, "compiled", Query)
    net = tacit.Network()
    net.add("A", cpt=[0.25, 0.75])
    for i in range(network.MAX_COMPILED + 2):
        net.add(f"Q{i}")
    asked = [Slow(f"Q{i % (network.MAX_COMPILED + 2)}") for i in range(1_000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(net.posterior, asked)) == asked
    assert len(net._compiled) == network.MAX_COMPILED


def test_waiting_for_one_query_does_not_hold_up_others():
    kept = LRUCache(2)
    assert kept.get("slow", lambda: kept.get("quick", lambda: 1) + 1) == 2
