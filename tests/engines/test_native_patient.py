"""What engine="auto" does until code pays, and where none can run; and everything that a query with code can do."""

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
from tacit import Network, TacitError, engines, examples, machine
from tacit.engines.native import patient, target
from tacit.engines.native.engine import Kind, NativeEngine
from tacit.engines.native.patient import PatientEngine
from tacit.engines.numpy import NumpyEngine
from tacit.learn.parameters import Parameters
from tests.helpers import close

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
    target._in_memory().clear()
    return texts


@pytest.fixture(params=[False, True], ids=["alone", "numba loaded"])
def loaded(request, monkeypatch):
    monkeypatch.setattr(patient, "INTERPRETER", "sys" if request.param else "no such module")
    return request.param


def never(monkeypatch):
    """Code does not pay, however many rows there are."""
    monkeypatch.setattr(patient, "COMPILED", dict.fromkeys((False, True), float("inf")))


# processes ------------------------------------------------------------------------------------------------

FIRST = """
import sys, tacit
net = tacit.examples.abc()
tac = tacit.compile(net, "B", ["A", "C"])
print(tac.posterior({"A": 0.8, "C": ["lo", "hi"]}).round(6).tolist())
print(sorted({"numba", "scipy", "pandas", "torch", "tacit.theory", "tacit.explorer", "numpy.ma"} & set(sys.modules)))
print(type(tac.engine()).__name__, len(tac.engine()._generated))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_first_answer_loads_little_and_a_second_process_compiles_nothing():
    answer = ["[[0.469231, 0.530769], [0.676, 0.324]]", "[]", "PatientEngine 1"]
    assert run(FIRST) == (0, answer, "")
    nothing = "from tacit.engines.native import target\ndef none(text): raise SystemExit(9)\ntarget.compiled = none\n"
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
    code, out, errors = run(forbid + FIRST.replace("._generated", ".program.nodes"))
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
    engines._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="NumPy"):
        assert isinstance(compile_().engine(), NumpyEngine)
    assert isinstance(compile_().engine(), NumpyEngine)  # warned of once


# when code pays -------------------------------------------------------------------------------------------


def test_code_runs_at_once_where_nothing_else_is_loaded(monkeypatch, compilations, expected):
    monkeypatch.setattr(patient, "INTERPRETER", "no such module")
    tac = compile_()
    close(tac.posterior(EVIDENCE), expected)
    engine = tac.engine()
    assert list(engine._generated) == [Kind(reverse=False, option=False)]
    assert (engine._interpreter, engine._numpy) == (None, None)
    assert sum("@run(" in text for text in compilations) == 1


def test_the_interpreter_runs_until_rows_repay_code(monkeypatch, expected):
    monkeypatch.setattr(patient, "INTERPRETER", "sys")
    tac = compile_()
    engine = tac.engine()
    monkeypatch.setattr(patient, "SAVED", {False: 0.15e-3 / 10, True: 0.7e-3 / 10})  # ten rows repay it
    monkeypatch.setattr(patient, "BEGUN", 0.0)
    for _ in range(3):
        assert not engine._generated
        close(tac.posterior(EVIDENCE), expected)
    assert engine._interpreter is not None
    assert engine._seen[False] == 9
    close(tac.posterior(EVIDENCE), expected)
    assert list(engine._generated) == [Kind(reverse=False, option=False)]
    assert isinstance(engine, PatientEngine)


def test_many_rows_are_compiled_for(monkeypatch, loaded):
    tac = compile_()
    monkeypatch.setattr(patient, "SAVED", {False: 0.15e-3 / 100, True: 0.7e-3 / 100})
    monkeypatch.setattr(patient, "BEGUN", 0.0)
    rng = np.random.default_rng(0)
    columns = {name: rng.random(101) for name in EVIDENCE}
    found = tac.posterior(columns)
    assert tac.engine()._generated
    assert tac.engine()._interpreter is None
    close(found, compile_("numpy").posterior(columns), 1e-13)


def test_what_is_on_disk_is_used_at_once(monkeypatch, loaded, compilations, expected):
    compile_("native").posterior(EVIDENCE)
    count = len(compilations)
    never(monkeypatch)
    monkeypatch.setattr(patient, "WRITTEN", 0.0)
    tac = compile_()
    close(tac.posterior(EVIDENCE), expected)
    assert tac.engine()._generated
    assert len(compilations) == count


def test_the_disk_is_asked_once(monkeypatch, loaded, expected):
    never(monkeypatch)
    monkeypatch.setattr(patient, "WRITTEN", 0.0)
    asked = []
    monkeypatch.setattr(target.store, "load", lambda key: asked.append(key))
    tac = compile_()
    for _ in range(3):
        close(tac.posterior(EVIDENCE), expected)
    assert len(asked) == 1


def test_numpy_runs_few_rows_but_not_for_ever(monkeypatch, expected):
    never(monkeypatch)
    monkeypatch.setattr(patient, "INTERPRETER", "no such module")
    tac = compile_()
    engine = tac.engine()
    close(tac.posterior(EVIDENCE), expected)
    assert engine._numpy is not None
    assert engine._interpreter is None
    engine._spent = patient.LOADED
    close(tac.posterior(EVIDENCE), expected)
    assert engine._interpreter is not None


def test_all_ways_give_the_same_gradients(monkeypatch, loaded):
    engine_of = {}
    for way in ("numpy", "code", "meanwhile"):
        with monkeypatch.context() as patch:
            if way == "meanwhile":
                never(patch)
                patch.setattr(target.store, "load", lambda key: None)
            tac = compile_("numpy" if way == "numpy" else "auto")
            engine = tac.engine()
            known = tac.read(EVIDENCE)
            by = engine.gradients(known.columns, known.rows, [[1.0], [0.3]])
            engine_of[way] = by
            if way != "numpy":
                assert bool(engine._generated) == (way == "code" and not loaded)
    for by in engine_of.values():
        for key, table in engine_of["numpy"].tables.items():
            close(by.tables[key], table, 1e-13)


def test_sweeps_of_different_engines_fit_together(monkeypatch):
    rng = np.random.default_rng(0)
    net = Network()
    net.add("T0", states=list("abc"), cpt=rng.dirichlet(np.ones(3)))
    for i in range(1, 45):
        net.add(f"T{i}", [f"T{i - 1}"], list("abc"), rng.dirichlet(np.ones(3), 3))
    rows = 10  # most of them say nothing: numbers are 1 but for rounding
    columns = {n: np.where(rng.random((rows, 1)) < 0.995, np.nan, rng.random((rows, 3))) for n in net}
    columns["T44"][:2] = [0.2, 0.5, 0.3]
    monkeypatch.setattr(patient, "INTERPRETER", "no such module")

    def seed_of(joint):
        total = joint.sum(axis=0)
        return joint[0] / total, np.stack([1 / total, *(0 * total for _ in joint[1:])])

    def derivatives(engine, ways=None):
        tac = tacit.compile(net, "T0", list(net), engine=engine)
        known = tac.read(columns)
        if ways is not None:
            monkeypatch.setattr(tac.engine(), "_pays", lambda kind, rows: ways[kind[0]])
        _, found = tac.engine().value_and_gradients(known.columns, rows, seed_of)
        return found, tac.engine().run(known.columns, rows).exponent

    expected, theirs = derivatives("numpy")
    _, ours = derivatives("native")
    assert (ours != theirs).any()  # else this tests nothing
    for ways in itertools.product([False, True], repeat=2):
        found, _ = derivatives("auto", ways)
        for key, table in expected.tables.items():
            close(found.tables[key], table, 1e-11)


# where there can be no code -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RuntimeError("LLVM IR parsing error\n<string>"), AttributeError("create_pass_builder")]
)
def test_without_code_the_interpreter_runs_with_one_warning(monkeypatch, error, expected):
    def fails(text):
        raise error

    patient._warn_once.cache_clear()
    monkeypatch.setattr(target, "compiled", fails)
    monkeypatch.setattr(patient, "INTERPRETER", "no such module")
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
    tac.engine().gradients(tac.read(EVIDENCE).columns, 3, [[1.0], [0.0]])
    count = len(compilations)
    for seed in range(1, 4):
        net = net_with_numbers(seed)
        other = compile_("native", net)
        tac.engine().update(*other.numbers())
        known = tac.read(EVIDENCE)
        close(tac.engine().posterior(known.columns, 3), compile_("numpy", net).posterior(EVIDENCE))
        tac.engine().gradients(known.columns, 3, [[1.0], [0.0]])
        close(tac.with_network(net).posterior(EVIDENCE), compile_("numpy", net).posterior(EVIDENCE))
        other.set_parameters(NET)
        close(other.posterior(EVIDENCE), compile_("numpy").posterior(EVIDENCE))
    assert len(compilations) == count


def test_learning_compiles_once(monkeypatch, compilations):
    monkeypatch.setattr(patient, "INTERPRETER", "no such module")
    rng = np.random.default_rng(0)
    data = {"E1": rng.random(200), "E2": rng.random(200)}
    labels = compile_("numpy").posterior(data)[:, 0]
    tacs = [compile_(engine, examples.chain(tests=2, gamma=8.0)) for engine in ("auto", "numpy")]
    losses = [tacit.fit(tac, data, labels, steps=15, restarts=1, progress=False).loss for tac in tacs]
    assert len(compilations) <= 4  # forward, in reverse, and their readers
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

    monkeypatch.setattr("tacit.engines.native.engine.code", slow)
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
    assert isinstance(ours.engine(), NativeEngine)
