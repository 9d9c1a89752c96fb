"""Tapes cut into pieces: nothing is read before it is made, nothing is lost, and small pieces answer like one."""

import math
from collections import Counter
from dataclasses import replace
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import Network, TestingCPT
from tacit.engines.native import llvm as target
from tacit.engines.native import pieces
from tacit.engines.native.native_engine import NativeEngine
from tacit.engines.tape import instructions as k
from tests.engines.test_reverse import only_learnable
from tests.helpers import always_hard, close, decided, impossible, posterior, selected, tries
from tests.strategies import evidence as evidence_for
from tests.strategies import networks

ROWS = 5


@cache
def plain_processor():
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=target._features(), opt=0, codemodel="jitdefault", jit=True
    )


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly(tmp_path_factory):
    """LLVM need not do its best; and the code of random networks is of no use to anybody else."""
    target.processor()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "processor", plain_processor)
        patch.setenv("TACIT_CACHE_DIR", str(tmp_path_factory.mktemp("code")))
        yield


def cut(monkeypatch, most):
    monkeypatch.setattr(pieces, "WHOLE_TERMS", 0)
    monkeypatch.setattr(pieces, "PIECE_TERMS", most)


@pytest.fixture(params=[1, 9], ids=["one instruction", "few instructions"])
def most(request, monkeypatch):
    cut(monkeypatch, request.param)
    return request.param


def chain(length, gamma, seed=0):
    """Testing nodes below testing nodes, with an operator for each state."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("T0", cpt=rng.dirichlet(np.ones(2)))
    for i in range(1, length):
        plus, minus = rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(2), 2)
        cpt = TestingCPT(plus, minus, rng.random(2), [">=", "<"] if i % 2 else ["<=", ">"], gamma)
        net.add(f"T{i}", [f"T{i - 1}"], cpt=cpt)
    return net, {n: rng.dirichlet(np.ones(2), ROWS) for n in net}


def tapes(net, query, columns, hard):
    """The tapes of a query: as it is, and with selections; values that are made twice have slots of their own."""
    tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine="native")
    engine = tac.engine()
    return [engine._tape(), engine._tape(selections=True)]


# order and memory -----------------------------------------------------------------------------------------


def check_order(tape, ordered):
    """All that outputs need, once, and after what it reads."""
    given_ = {0, *(slot for slot, _ in dict(tape.pinned).items())}
    made = set(given_)
    for step in ordered:
        assert step.reads <= made
        assert not step.writes & made
        made |= step.writes
    steps = list(pieces.steps_of(tape))
    kinds = Counter(step.kind for step in ordered)
    assert kinds[k.OUTPUT] == sum(step.kind == k.OUTPUT for step in steps)
    needed = {slot for step in ordered for slot in step.reads}
    assert all(step.kind == k.OUTPUT or step.writes & needed for step in ordered)


def check_memory(cut_up):
    """What a later piece reads is kept by the piece that made it, and its place is not used for anything else yet."""
    places, count = pieces.memory_of(cut_up)
    held: dict[int, int] = {}  # place -> slot
    for piece in cut_up:
        made: set[int] = set()
        for step in piece.steps:
            for slot in step.reads - made:
                if slot in places:
                    assert held[places[slot]] == slot
            made |= step.writes
        assert piece.kept <= made
        for slot in piece.kept:
            held[places[slot]] = slot
    assert set(places.values()) == set(range(count))
    later = {slot for i, piece in enumerate(cut_up) for step in piece.steps for slot in step.reads if i}
    crossing = set()
    seen: set[int] = set()
    for piece in cut_up:
        own = {slot for step in piece.steps for slot in step.writes}
        crossing |= {slot for step in piece.steps for slot in step.reads} & seen
        seen |= own
    assert set(places) == crossing <= later


@given(st.data(), st.sampled_from([1, 4, 30]), st.booleans())
def test_pieces_of_random_tapes(data, most, compile_hard):
    net = data.draw(networks())
    columns = data.draw(evidence_for(net, rows=1))
    query = data.draw(st.sampled_from(net.variables))
    for tape in tapes(net, query, columns, always_hard(net, columns) if compile_hard else []):
        with pytest.MonkeyPatch.context() as patch:
            cut(patch, most)
            ordered = pieces.deep(list(pieces.steps_of(tape)))
            cut_up = pieces.pieces_of(tape)
        check_order(tape, ordered)
        assert [step for piece in cut_up for step in piece.steps] == ordered
        sizes = [sum(len(step.terms) for step in piece.steps) for piece in cut_up]
        assert all(size <= most or len(p.steps) == 1 for size, p in zip(sizes, cut_up, strict=True))
        check_memory(cut_up)


def test_order_and_memory_of_a_long_tape():
    rng = np.random.default_rng(0)
    net, _ = chain(50, gamma=4.0)
    tac = tacit.compile(net, "T49", net.variables, engine="native")
    tape = tac.engine()._tape()
    check_order(tape, pieces.deep(list(pieces.steps_of(tape))))
    for most in rng.integers(5, 200, 5).tolist():
        with pytest.MonkeyPatch.context() as patch:
            cut(patch, most)
            cut_up = pieces.pieces_of(tape)
        check_memory(cut_up)
        assert len(cut_up) >= len(tape.terms) // most
        _, count = pieces.memory_of(cut_up)
        assert count < 20 < tape.slots / 20  # places are used again


# answers --------------------------------------------------------------------------------------------------


def gradients(engine, columns, rows, seeds, through):
    return engine.gradients(columns, rows, seeds, 0, through)


def agree(found, expected, tolerance=1e-11):
    for part in ("tables", "slopes", "likelihoods"):
        ours, theirs = getattr(found, part), getattr(expected, part)
        if part == "slopes":  # a missing one is 0
            ours, theirs = dict.fromkeys(theirs, 0.0) | ours, dict.fromkeys(ours, 0.0) | theirs
        assert set(ours) == set(theirs)
        for key in ours:
            scale = max(1.0, float(np.abs(theirs[key]).max(initial=0.0)))
            np.testing.assert_allclose(ours[key], theirs[key], rtol=0, atol=tolerance * scale)


def compare(net, query, columns, hard, through=True):
    roles = {"evidence": [n for n in columns if n not in hard], "hard": hard}
    ours, theirs = (tacit.compile(net, query, **roles, engine=e) for e in ("native", "numpy"))
    close(ours.joint(columns), theirs.joint(columns))
    close(posterior(ours, columns), posterior(theirs, columns), 1e-11)
    found, expected = selected(ours, columns), selected(theirs, columns)
    assert set(found) == set(expected)
    for name, decision in expected.items():
        close(found[name].posterior, decision.posterior, 1e-11)
        close(found[name].weight, decision.weight, 1e-11)
    rows = ours.read(columns).rows
    seeds = np.random.default_rng(0).random((math.prod(ours.states_asked), rows))
    by = [gradients(t.engine(), t.read(columns).columns, rows, seeds, through) for t in (ours, theirs)]
    agree(*(only_learnable(found, ours.numbers()[0]) for found in by))
    assert isinstance(ours.engine(), NativeEngine)


@impossible
@tries(24)
@given(st.data(), st.sampled_from([1, 6, 25]), st.booleans(), st.booleans())
def test_small_pieces_answer_like_the_reference(data, most, compile_hard, through):
    net = data.draw(networks(max_nodes=5))
    query, columns = data.draw(st.sampled_from(net.variables)), data.draw(evidence_for(net, rows=3))
    assume(decided(net, columns) == list(range(3 if columns else 1)))
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, most)
        compare(net, query, columns, always_hard(net, columns) if compile_hard else [], through)


@pytest.mark.parametrize("gamma", [None, 5.0])
def test_chains_of_tests(most, gamma):
    net, columns = chain(7, gamma)
    compare(net, "T6", columns, [])


def test_hard_evidence(most):
    net, _ = chain(7, 3.0)
    rng = np.random.default_rng(1)
    names = net.variables[:-1]
    columns = {n: [net.states(n)[i] for i in rng.integers(0, len(net.states(n)), ROWS)] for n in names[::2]}
    compare(net, net.variables[-1], columns, list(columns))


def test_tapes_that_are_rescaled(monkeypatch):
    cut(monkeypatch, 40)
    net, columns = chain(25, 6.0)
    tac = tacit.compile(net, "T24", list(columns), engine="native")
    assert tac.engine()._tape().scaled
    compare(net, "T24", columns, [])


def test_float32(most):
    net, columns = chain(6, 4.0)
    ours, theirs = (
        tacit.compile(net, "T5", list(columns), engine=engine, dtype=dtype)
        for engine, dtype in (("native", "float32"), ("numpy", "float64"))
    )
    close(ours.posterior(columns), theirs.posterior(columns), 2e-6)
    known, seeds = ours.read(columns), np.random.default_rng(0).random((2, ROWS))
    agree(*(gradients(t.engine(), known.columns, ROWS, seeds, True) for t in (ours, theirs)), 2e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_largest_product(most, dtype):
    net, columns = chain(8, None)
    tac = tacit.compile(net, "T7", list(columns), engine="native", dtype=dtype)
    largest = tac.companion(replace(tac.question, query=(), best=tuple(net.variables)))
    assert any(step.kind in (k.LARGEST_LINEAR, k.LARGEST_PRODUCT) for step in pieces.steps_of(largest.engine()._tape()))
    found = largest.engine().run(tac.read(columns).columns, ROWS)
    expected = tacit.compile(net, "T7", list(columns), engine="numpy").mpe(columns).log_probability
    logs = np.log(found.joint[0]) + found.exponent * math.log(2)
    np.testing.assert_allclose(logs, expected, rtol=1e-12 if dtype == "float64" else 1e-5)
