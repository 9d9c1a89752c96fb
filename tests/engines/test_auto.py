"""What engine="auto" chooses, and that its choice changes no answer; and everything that a query with code can do."""

import copy
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import tacit
from tacit import Network, TacitError, engines, examples
from tacit.base import machine
from tacit.base.errors import TooLargeError
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.engine import Sweep
from tacit.engines.native import auto
from tacit.engines.native import llvm as target
from tacit.engines.native.auto import Auto
from tacit.engines.native.native_engine import NativeEngine
from tacit.evidence.likelihoods import normalised
from tacit.learn.fitting.parameters import Parameters
from tacit.model.elements.variable import Variable
from tacit.torch import TACModule
from tests.helpers import close
from tests.switching import forced

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("natural_choice")

EVIDENCE = {"E1": [0.1, 0.6, 0.9], "E2": [0.7, 0.2, 0.3]}


def net_with_numbers(seed=0):
    net = examples.chain(tests=2, gamma=8.0)
    parameters = Parameters(net, net.variables)
    return parameters.fill(parameters.start(np.random.default_rng(seed)))


NET = net_with_numbers()


def compile_(engine="auto", net=NET, **how):
    return tacit.compile(net, "Q", ["E1", "E2"], engine=engine, **how)


@pytest.fixture(scope="module")
def expected():
    return compile_("numpy").posterior(EVIDENCE)


@pytest.fixture(autouse=True)
def compilations(monkeypatch, tmp_path):
    """All texts that LLVM compiled: the folder of code is empty at first."""
    texts = []
    compiled = target.compiled

    def counted(text):
        texts.append(text)
        return compiled(text)

    monkeypatch.setenv("TACIT_CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(target, "compiled", counted)
    target._codes.clear()
    return texts


@pytest.fixture(params=[False, True], ids=["alone", "numba loaded"])
def loaded(request, monkeypatch):
    monkeypatch.setattr(auto, "INTERPRETER", "sys" if request.param else "no such module")
    return request.param


def never(monkeypatch):
    """Code does not pay, however many rows there are."""
    monkeypatch.setattr(auto, "COMPILE_TERM", dict.fromkeys((False, True), float("inf")))


# processes ------------------------------------------------------------------------------------------------

FIRST = """
import sys, tacit
net = tacit.examples.abc()
tac = tacit.compile(net, "B", ["A", "C"])
print(tac.posterior({"A": 0.8, "C": ["lo", "hi"]}).round(6).tolist())
print(sorted({"numba", "scipy", "pandas", "torch", "tacit.theory", "tacit.views.page", "numpy.ma"} & set(sys.modules)))
print(type(tac.engine()).__name__, len(tac.engine().native._generated))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_first_answer_loads_little_and_a_second_process_compiles_nothing():
    answer = ["[[0.469231, 0.530769], [0.676, 0.324]]", "[]", "Auto 1"]
    assert run(FIRST) == (0, answer, "")
    nothing = "from tacit.engines.native import llvm\ndef none(text): raise SystemExit(9)\nllvm.compiled = none\n"
    assert run(nothing + FIRST) == (0, answer, "")


def test_processes_that_compile_the_same_at_once():
    command = [sys.executable, "-c", FIRST]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    outputs = [process.communicate(timeout=60) for process in running]
    assert {process.returncode for process in running} == {0}
    assert len({out for out, _ in outputs}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_where_memory_cannot_be_made_executable():
    forbid = "import ctypes\nif ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): raise SystemExit(77)\n"  # PR_SET_MDWE
    code, out, errors = run(forbid + FIRST.replace(".native._generated", ".program.nodes"))
    if code == 77:
        pytest.skip("this kernel cannot forbid it")
    assert code == 0, errors
    assert out[0] == "[[0.469231, 0.530769], [0.676, 0.324]]"
    assert out[2].startswith("NumpyEngine")
    assert errors.count("does not let compiled code run") == 1


def test_engines_that_need_code_say_so(monkeypatch):
    assert machine.can_run_code()
    monkeypatch.setattr(machine, "can_run_code", lambda: False)
    for name in ("native", "tape"):
        with pytest.raises(TacitError, match=f"engine='{name}' compiles code"):
            compile_(name).posterior(EVIDENCE)
    engines.choice.warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="NumPy"):
        assert isinstance(compile_().engine(), NumpyEngine)
    assert isinstance(compile_().engine(), NumpyEngine)  # warned of once


# what runs -------------------------------------------------------------------------------------------------


def test_few_rows_run_on_numpy_which_needs_no_preparation(monkeypatch, compilations, expected):
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    tac = compile_()
    close(tac.posterior(EVIDENCE), expected)
    engine = tac.engine()
    assert (engine._tape, compilations) == (None, [])
    assert engine.runner(3, Sweep.FORWARD) is engine.runner(3, Sweep.DESCENT) is engine.numpy


def test_many_rows_run_as_code(loaded, compilations):
    tac = compile_()
    rng = np.random.default_rng(0)
    columns = {name: rng.random(2_000_000) for name in EVIDENCE}
    found = tac.posterior(columns)
    engine = tac.engine()
    assert (engine._numpy, engine._tape) == (None, None)
    assert engine.runner(1, Sweep.FORWARD) is engine.native
    assert engine.runner(1, Sweep.FORWARD, Sweep.HELD) is not engine.native  # there is no such code yet
    some = slice(None, None, 9973)
    close(found[some], compile_("numpy").posterior({n: c[some] for n, c in columns.items()}), 1e-13)


def test_code_is_compiled_when_it_would_have_repaid_itself(monkeypatch, compilations, expected):
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    engine = compile_().engine()
    each = engine._numpy_seconds(auto.Work(1, 1), auto.FORWARD) - auto.CODE.call + 2 * auto.READ_VARIABLE
    monkeypatch.setattr(auto, "WRITE_TERM", 0.0)
    monkeypatch.setattr(auto, "COMPILE_START", 9.5 * each)
    monkeypatch.setattr(auto, "COMPILE_TERM", {False: 0.0, True: 0.0})
    ran = [engine.runner(1, Sweep.FORWARD) for _ in range(12)]
    assert ran == [engine.numpy] * 9 + [engine.native] * 3


def test_few_rows_under_many_networks_run_as_code(monkeypatch, loaded, compilations):
    monkeypatch.setattr(auto, "COMPILE_START", 0.01)
    tac = compile_()
    few, many = (tacit.Ensemble.of([tac.network] * count) for count in (2, 5000))
    tac.posterior(EVIDENCE, tables=few)
    assert compilations == []
    tac.posterior(EVIDENCE, tables=many)
    assert compilations != []


def test_what_is_on_disk_is_used_as_soon_as_to_look_for_it_pays(monkeypatch, loaded, compilations, expected):
    compile_("native").posterior(EVIDENCE)
    count = len(compilations)
    never(monkeypatch)
    monkeypatch.setattr(auto, "WRITE_TERM", 0.0)
    tac = compile_()
    close(tac.posterior(EVIDENCE), expected)
    assert tac.engine().runner(1, Sweep.FORWARD) is tac.engine().native
    assert len(compilations) == count


def test_the_disk_is_asked_once(monkeypatch, loaded, expected):
    never(monkeypatch)
    monkeypatch.setattr(auto, "WRITE_TERM", 0.0)
    asked = []
    monkeypatch.setattr(target.code_cache, "load", lambda key: asked.append(key))
    tac = compile_()
    for _ in range(3):
        close(tac.posterior(EVIDENCE), expected)
    assert len(asked) == 1


def test_numpy_does_not_run_for_ever(monkeypatch, expected):
    never(monkeypatch)
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    tac = compile_()
    engine, ran = tac.engine(), []
    monkeypatch.setattr(auto, "NUMPY", auto.RunnerCost(0.1 / sum(engine.program.batched), 0.0, auto.NUMPY.term))
    for _ in range(8):
        ran.append(engine.runner(3, Sweep.FORWARD))
        close(tac.posterior(EVIDENCE), expected)
    assert ran[0] is engine.numpy
    assert ran[-1] is engine.tape


def test_hard_tests_run_on_one_runner_whatever_was_before(monkeypatch, loaded):
    engine = compile_(net=NET.with_gamma(None)).engine()
    sweeps = ([Sweep.FORWARD], [Sweep.SELECTIONS], [Sweep.FORWARD, Sweep.HELD])
    assert {engine.runner(rows, *own) for rows in (1, 10**6) for own in sweeps} == {engine.native}
    tac = compile_(net=NET.with_gamma(None))
    tac.mpe(EVIDENCE)
    (asked,) = tac._companions.values()
    assert {asked.engine().runner(rows, Sweep.DESCENT) for rows in (1, 10**6)} == {asked.engine().native}
    monkeypatch.setattr(auto, "MAX_DECIDING_TERMS", 0)
    large = compile_(net=NET.with_gamma(None)).engine()
    assert {large.runner(rows, *own) for rows in (1, 10**6) for own in sweeps} == {large.tape}


# derivatives and runs of different runners -----------------------------------------------------------------


def test_all_runners_give_the_same_gradients():
    engine = compile_().engine()
    known = compile_().read(EVIDENCE)
    by = {r: r.gradients(known.columns, 3, [[1.0], [0.3]], 0) for r in (engine.numpy, engine.tape, engine.native)}
    for found in by.values():
        for key, table in by[engine.numpy].tables.items():
            close(found.tables[key], table, 1e-13)


def scaled_chain(rng):
    """A network and rows, most of which say nothing: numbers are 1 but for rounding, so that exponents differ."""
    net = Network()
    net.add("T0", states=list("abc"), cpt=rng.dirichlet(np.ones(3)))
    for i in range(1, 45):
        net.add(f"T{i}", [f"T{i - 1}"], list("abc"), rng.dirichlet(np.ones(3), 3))
    columns = {n: np.where(rng.random((10, 1)) < 0.995, np.nan, rng.random((10, 3))) for n in net}
    columns["T44"][:2] = [0.2, 0.5, 0.3]
    return net, columns


def test_seeds_of_any_runner_fit_any_other():
    net, columns = scaled_chain(np.random.default_rng(0))
    tac = tacit.compile(net, "T0", list(net))
    engine, known = tac.engine(), tac.read(columns)
    runners = engine.numpy, engine.tape, engine.native, tacit.compile(net, "T0", list(net), engine="torch").engine()
    runs = [runner.run(known.columns, 10) for runner in runners]
    assert len({tuple(run.exponent) for run in runs}) > 1  # else this tests nothing
    expected = None
    for run, runner in itertools.product(runs, runners):
        seeds = np.zeros_like(run.joint)
        seeds[0] = 1 / run.joint.sum(axis=0)
        found = runner.gradients(known.columns, 10, seeds, run.exponent)
        expected = expected or found
        for key, table in expected.tables.items():
            close(found.tables[key], table, 1e-11)
        for name, by_state in expected.likelihoods.items():
            close(found.likelihoods[name], by_state, 1e-11)


@pytest.mark.parametrize("question", ["marginals", "information"])
def test_a_runner_that_changes_between_calls_changes_no_answer(monkeypatch, question):
    forced(monkeypatch, with_code=1)
    net, columns = scaled_chain(np.random.default_rng(0))
    tac = tacit.compile(net, "T0", list(net))
    expected = getattr(tacit.compile(net, "T0", list(net), engine="numpy"), question)(columns)
    for _ in range(3):
        for name, found in getattr(tac, question)(columns).items():
            close(found, expected[name], 1e-11)


def test_a_module_of_torch_changes_its_runner_between_batches_only(monkeypatch):
    forced(monkeypatch, with_code=1)
    net, _ = scaled_chain(np.random.default_rng(0))
    likelihoods = {n: torch.full((2**14 + 9, 3), 1 / 3, dtype=torch.float64) for n in net}

    def gradient(engine):
        asked = likelihoods["T44"].clone().requires_grad_()
        module = TACModule(tacit.compile(net, "T0", list(net), engine=engine))
        module({**likelihoods, "T44": asked})[:, 0].sum().backward()
        return asked.grad.numpy()

    module_of = gradient("auto")
    close(module_of, gradient("numpy"), 1e-12)
    assert len(np.unique(module_of.round(12), axis=0)) == 1  # all rows are the same


# ties -----------------------------------------------------------------------------------------------------


def at_a_tie(rng):
    """A network with a threshold that is the posterior of one row, to the last bit, and that row."""
    net = Network()
    net.add("E0", cpt=rng.dirichlet(np.ones(2)))
    for i in range(1, 6):
        net.add(f"E{i}", [f"E{i - 1}"], cpt=rng.dirichlet(np.ones(2), 2))
    row = {f"E{i}": rng.random((1, 2)) for i in range(6)}
    plus, minus = [[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2
    net.add("T", ["E5"], cpt=tacit.TestingCPT(plus, minus, [0.5, 1.0]))
    p = tacit.compile(net, "T", list(row)).selected(row)["T"].posterior[0, 0]
    return net.with_cpts({"T": tacit.TestingCPT(plus, minus, [p, 1.0])}), row


@pytest.mark.parametrize("seed", range(4))
def test_a_row_at_a_tie_has_one_answer_alone_and_among_many_before_and_after(seed):
    net, row = at_a_tie(np.random.default_rng(seed))
    tac = tacit.compile(net, "T", list(row))
    many = {name: np.repeat(own, 300_000, axis=0) for name, own in row.items()}
    alone = tac.posterior(row)
    answers = np.concatenate([
        alone, tac.posterior(many), tac.posterior(row), tac.posterior(tac.read(row)),
        tac.posterior({name: np.repeat(own, 9, axis=0) * 3.7 / 3.7 for name, own in row.items()}),
        tacit.compile(net, "T", list(row)).posterior(row),
    ])  # fmt: skip
    assert len(np.unique(answers, axis=0)) == 1


def with_ties(rng):
    """Two causes that are the same, so that their states may be swapped."""
    net = Network()
    prior, table = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (3, 3))
    net.add("A", states=3, cpt=prior)
    net.add("B", states=3, cpt=prior)
    for i in range(4):
        net.add(f"C{i}", ["A", "B"], 3, (table + table.transpose(1, 0, 2)) / 2)
    return net


@pytest.mark.parametrize("seed", range(3))
def test_equally_probable_states_are_the_same_alone_and_among_many(seed):
    net = with_ties(np.random.default_rng(seed))
    tac = tacit.compile(net, ["A", "B"], ["C0", "C1"])
    row = {"C0": [0], "C1": [2]}
    many = {name: own * 3000 for name, own in row.items()}
    for ask in (tac.map, tac.mpe):
        found = [ask(rows).states for rows in (row, many, row, many)]
        assert {tuple(zip(*(states[n].tolist() for n in "AB"), strict=True)) for states in found[::2]} == {
            ((found[0]["A"][0], found[0]["B"][0]),)
        }
        assert all((states[n] == found[0][n][0]).all() for states in found for n in "AB")


def tied_beside_underflow():
    """A row at a tie, and one whose numbers leave the range of floats."""
    net, row = at_a_tie(np.random.default_rng(0))
    rows = {name: np.repeat(own, 20, axis=0) for name, own in row.items()}
    for name in ("E1", "E3"):
        rows[name][7] = [1e-200, 1.0]
    return net, row, rows


@pytest.mark.parametrize("engine", ["auto", "tape", "native"])
def test_a_row_at_a_tie_does_not_depend_on_its_neighbours(engine):
    net, row, rows = tied_beside_underflow()
    tac = tacit.compile(net, "T", list(row), engine=engine)
    others = [i for i in range(20) if i != 7]
    assert len(np.unique(np.concatenate([tac.posterior(row), tac.posterior(rows)[others]]), axis=0)) == 1
    best, alone = tac.mpe(rows), tac.mpe(row)
    assert all((best.states[n][others] == alone.states[n]).all() for n in net)
    assert len(np.unique(np.concatenate([alone.log_probability, best.log_probability[others]]))) == 1


def test_likelihoods_are_normalised_the_same_alone_and_among_others():
    rng = np.random.default_rng(0)
    for states in (2, 3, 8, 9, 17, 40):
        variable = Variable("A", tuple(map(str, range(states))))
        given = rng.random((50, states)) * 10.0 ** rng.integers(-3, 3, (50, states))
        together = normalised(variable, given, range(50))
        for row in range(50):
            np.testing.assert_array_equal(normalised(variable, given[[row]], range(1))[:, 0], together[:, row])


# where there can be no code -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RuntimeError("LLVM IR parsing error\n<string>"), AttributeError("create_pass_builder")]
)
def test_without_code_the_interpreter_runs_with_one_warning(monkeypatch, error, expected):
    def fails(text):
        raise error

    auto.warn_once.cache_clear()
    monkeypatch.setattr(auto, "WRITE_TERM", 0.0)
    monkeypatch.setattr(auto, "COMPILE_START", -1.0)  # it would pay at once
    monkeypatch.setattr(target, "compiled", fails)
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    with warnings.catch_warnings(record=True, action="always") as caught:
        tac = compile_()
        close(tac.posterior(EVIDENCE), expected)
        close(tac.posterior(EVIDENCE), expected)
        close(compile_().posterior(EVIDENCE), expected)
        tac.marginals(EVIDENCE)
    assert [warning.category for warning in caught] == [RuntimeWarning]
    assert "no code can be compiled for this processor" in str(caught[0].message)
    assert str(error).splitlines()[0] in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.raises(TacitError, match="engine='tape' needs none"):
        compile_("native").posterior(EVIDENCE)


def test_without_code_the_interpreter_learns(monkeypatch):
    def fails(text):
        raise RuntimeError("no target")

    monkeypatch.setattr(target, "compiled", fails)
    tac = compile_(net=examples.chain(tests=2, gamma=8.0))
    fit = tacit.fit(tac, EVIDENCE, [0.2, 0.4, 0.3], steps=2, restarts=1, progress=False)
    assert fit.loss < 1
    assert engines.engine_for_many_passes(tac.program, 10**6) == "tape"
    monkeypatch.setattr(machine, "can_run_code", lambda: False)
    assert engines.engine_for_many_passes(tac.program, 10**6) == "numpy"


def test_functions_that_the_system_lacks_are_not_called(monkeypatch):
    monkeypatch.setattr(target, "LIBRARY", ("memcpy", "no_such_function"))
    with pytest.raises(TacitError, match="no_such_function"):
        compile_("native").posterior(EVIDENCE)


def test_an_unknown_processor(monkeypatch, expected):
    def unknown():
        raise RuntimeError("no features")

    monkeypatch.setattr(target.llvm, "get_host_cpu_features", unknown)
    target._features.cache_clear()
    try:
        assert target._features() == ""
        close(compile_("native").posterior(EVIDENCE), expected)
    finally:
        target._features.cache_clear()


# new numbers, copies, threads, processes ------------------------------------------------------------------


def test_new_numbers_need_no_new_code(loaded, compilations):
    tac = compile_("native")
    tac.posterior(EVIDENCE)
    tac.engine().gradients(tac.read(EVIDENCE).columns, 3, [[1.0], [0.0]], 0)
    count = len(compilations)
    for seed in range(1, 4):
        net = net_with_numbers(seed)
        other = compile_("native", net)
        tac.engine().update(*other.numbers())
        known = tac.read(EVIDENCE)
        close(tac.engine().posterior(known.columns, 3), compile_("numpy", net).posterior(EVIDENCE))
        tac.engine().gradients(known.columns, 3, [[1.0], [0.0]], 0)
        close(tac.with_network(net).posterior(EVIDENCE), compile_("numpy", net).posterior(EVIDENCE))
        other.set_parameters(NET)
        close(other.posterior(EVIDENCE), compile_("numpy").posterior(EVIDENCE))
    assert len(compilations) == count


def test_learning_compiles_once(monkeypatch, compilations):
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    rng = np.random.default_rng(0)
    data = {"E1": rng.random(200), "E2": rng.random(200)}
    labels = compile_("numpy").posterior(data)[:, 0]
    tacs = [compile_(engine, examples.chain(tests=2, gamma=8.0)) for engine in ("auto", "numpy")]
    losses = [tacit.fit(tac, data, labels, steps=15, restarts=1, progress=False).loss for tac in tacs]
    assert len(compilations) <= 5  # forward, in reverse, their readers, and a look whether code can be compiled
    assert max(losses) < 1e-20  # both learn what the labels were made with


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda tac: pickle.loads(pickle.dumps(tac))])
@pytest.mark.parametrize("engine", ["auto", "native"])
def test_copies(engine, copied, expected):
    tac = compile_(engine)
    close(tac.posterior(EVIDENCE), expected)
    again = copied(tac)
    close(again.posterior(EVIDENCE), expected)
    del tac
    close(again.posterior(EVIDENCE), expected)


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_threads_may_ask_one_query_at_the_same_time(engine):
    rng = np.random.default_rng(0)
    columns = {name: rng.random(3000) for name in EVIDENCE}
    right = compile_("numpy").posterior(columns)
    tac = compile_(engine)
    start, failures = threading.Barrier(4), []

    def ask(turn):
        start.wait()
        for i in range(5):
            kind = [np.float64, np.float32][(i + turn) % 2]  # readers are made while others run
            found = tac.posterior({name: column.astype(kind) for name, column in columns.items()})
            if np.abs(found - right).max() > 1e-6:
                failures.append((turn, i))

    workers = [threading.Thread(target=ask, args=(turn,)) for turn in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failures


def test_readers_of_two_threads_do_not_replace_each_other(monkeypatch):
    tac = compile_("native")
    engine = tac.engine()
    made = []

    def slow(text, name):
        made.append(target.Code(text, name))
        own = made[-1]
        if len(made) == 1:  # another thread makes the same meanwhile
            engine._reader("codes", "i8", 64, 0)
        return own

    monkeypatch.setattr("tacit.engines.native.native_engine.code", slow)
    address = engine._reader("codes", "i8", 64, 0)
    assert len(made) == 2
    assert address == made[1].address == engine._readers["codes", "i8", 64, 0].address


def _in_child(tac, evidence, connection):
    connection.send((tac.posterior(evidence), compile_("native").posterior(evidence)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_that_are_forked_after_use(expected):
    tac = compile_("native")
    tac.posterior(EVIDENCE)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(tac, EVIDENCE, there))
    child.start()
    assert here.poll(60)
    for found in here.recv():
        close(found, expected)
    child.join(60)
    assert child.exitcode == 0


# all questions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "auto"])
def test_every_question(engine):
    ours, theirs = compile_(engine), compile_("numpy")
    close(ours.log_evidence(EVIDENCE), theirs.log_evidence(EVIDENCE))
    for answer in ("marginals", "information"):
        for (name, found), other in zip(
            getattr(ours, answer)(EVIDENCE).items(), getattr(theirs, answer)(EVIDENCE).values(), strict=True
        ):
            assert name in NET.variables
            close(found, other, 1e-12)
    for name, how in theirs.selected(EVIDENCE).items():
        close(ours.selected(EVIDENCE)[name].weight, how.weight)
    for a, b in itertools.pairwise([tac.sensitivity(EVIDENCE).derivatives for tac in (ours, theirs)]):
        for key in b:
            close(a[key], b[key], 1e-11)
    best, other = ours.mpe(EVIDENCE), theirs.mpe(EVIDENCE)
    close(best.log_probability, other.log_probability)
    assert {n: best.states[n].tolist() for n in NET} == {n: other.states[n].tolist() for n in NET}
    drawn, other = ours.sample(EVIDENCE, 50, seed=1), theirs.sample(EVIDENCE, 50, seed=1)
    assert all((drawn[n] == other[n]).all() for n in NET.variables)
    assert isinstance(ours.engine(), Auto if engine == "auto" else NativeEngine)


# programs that are too large for code -------------------------------------------------------------------------


def test_what_is_too_large_for_code_runs_on_numpy_until_the_interpreter_pays(monkeypatch, expected):
    monkeypatch.setattr("tacit.engines.MAX_GENERATED", 0)
    monkeypatch.setattr(auto, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(auto, "INTERPRETER", "no such module")
    monkeypatch.setattr(auto, "TAPE", auto.CODE)  # as if the program were large
    tac = compile_()
    engine = tac.engine()
    assert engine.runner(3, Sweep.FORWARD) is engine.numpy
    close(tac.posterior(EVIDENCE), expected)
    assert engine.native._generated == {}
    assert engine.runner(10**9, Sweep.FORWARD) is engine.tape
    close(tac.posterior(EVIDENCE), expected)


def test_a_tape_that_is_too_large_after_all_is_none(monkeypatch, expected):
    def refused(*_):
        raise TooLargeError("too many terms")

    monkeypatch.setattr("tacit.engines.MAX_GENERATED", 0)
    monkeypatch.setattr("tacit.engines.tape.tape_based.assemble", refused)
    monkeypatch.setattr(auto, "TAPE", auto.CODE)
    tac = compile_()
    engine = tac.engine()
    assert engine.runner(10**9, Sweep.FORWARD) is engine.numpy
    close(tac.posterior(EVIDENCE), expected)
