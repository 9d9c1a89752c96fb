"""The extremes of conditional probabilities are the same from every engine, and those of a loop over single states."""

import itertools

import numpy as np
import pytest

from tacit import TacitError, engines
from tacit.bounds.factor_list import Factor, FactorList
from tacit.bounds.window_program import window_program
from tacit.bounds.windows import Surroundings, Window
from tacit.evidence.column import Column
from tacit.model.elements.variable import variable
from tests.engines import emulated_gpu

CARDS = {"x": 3, "a": 2, "b": 4, "c": 3}
ENGINES = ["numpy", "tape", "native", "torch", "cuda"]
ROWS = 9
WINDOW = Window("x", ("x",), ("a", "b", "c"), (0, 1, 2, 3))


def factors(sided=False, small=1.0):
    """Factors with zeros; a state of the boundary may have small numbers only."""
    rng, made = np.random.default_rng(0), []
    for scope in ("xa", "xbc", "ab", "c"):
        high = rng.random([CARDS[name] for name in scope]) * (rng.random([CARDS[name] for name in scope]) < 0.9)
        if "a" in scope:
            high[tuple(0 if name == "a" else slice(None) for name in scope)] *= small
        low = high * rng.random(high.shape) if sided and scope != "ab" else high
        made.append(Factor(tuple(scope), low, high))
    return FactorList(CARDS, {name: tuple(range(card)) for name, card in CARDS.items()}, tuple(made), tuple(CARDS))


def evidence(impossible=True):
    rng, columns = np.random.default_rng(1), {}
    for name, card in CARDS.items():
        likelihoods = rng.random((card, ROWS)) * (rng.random((card, ROWS)) < 0.8)
        likelihoods[1] += 1e-3
        likelihoods[:, 3] = np.arange(card) == 0
        if impossible and name == "b":
            likelihoods[:, 5] = 0
        columns[name] = Column(variable(name, card), soft=likelihoods / np.maximum(likelihoods.sum(axis=0), 1e-9))
    return columns


def expected(given, columns):
    """The definition, state by state of the boundary: (parts, states of x, rows)."""
    found = np.zeros((3, CARDS["x"], ROWS))
    for row in range(ROWS):
        shares, weights = [], np.zeros(CARDS["x"])
        for a, b, c in itertools.product(*(range(CARDS[name]) for name in "abc")):
            sides = []
            for tables in ([f.low for f in given.factors], [f.high for f in given.factors]):
                own = np.ones(CARDS["x"])
                for factor, table in zip(given.factors, tables, strict=True):
                    at = {"x": slice(None), "a": a, "b": b, "c": c}
                    own = own * table[tuple(at[name] for name in factor.scope)]
                for name, state in (("a", a), ("b", b), ("c", c), ("x", slice(None))):
                    own = own * columns[name].likelihoods()[state, row]
                sides.append(own)
            low, high = sides
            weights += high
            for x in range(CARDS["x"]):
                least, most = low[x] + np.delete(high, x).sum(), high[x] + np.delete(low, x).sum()
                shares.append((x, low[x] / least if least else np.nan, high[x] / most if most else np.nan))
        for x in range(CARDS["x"]):
            found[0, x, row] = np.nanmin([1.0, *(low for own, low, _ in shares if own == x)])
            found[1, x, row] = np.nanmax([0.0, *(high for own, _, high in shares if own == x)])
            found[2, x, row] = weights[x] / weights.sum() if weights.sum() else 0.0
    return found


def run(name, given, columns, dtype="float64"):
    window = window_program(Surroundings(given), WINDOW, (), dtype)
    engine = engines.build(name, window.program, window.tables, {}, dtype, 1)
    results = engine.run(columns, ROWS)
    return engine, np.ldexp(results.joint, results.exponent).reshape(3, CARDS["x"], ROWS)


@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_those_of_a_loop(name, sided, monkeypatch):
    if name == "cuda":
        emulated_gpu.emulate(monkeypatch)
    given, columns = factors(sided), evidence()
    engine, found = run(name, given, columns)
    np.testing.assert_allclose(found, expected(given, columns), rtol=0, atol=1e-14)
    assert found[:, :, 5].tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]  # nothing is possible
    wide = engine.make_fallback().run(columns, ROWS)
    np.testing.assert_allclose(np.ldexp(wide.joint, wide.exponent), found.reshape(9, ROWS), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ENGINES[:-1])
def test_what_underflows_is_not_impossible(name):
    plain, small, columns = factors(), factors(small=1e-170), evidence(impossible=False)
    for row in (3, slice(None)):  # in this row, no other state of a is possible
        _, found = run(name, small, columns)
        np.testing.assert_allclose(found[:2, :, row], expected(plain, columns)[:2, :, row], rtol=0, atol=1e-14)


def test_without_evidence_it_is_computed_once():
    given = factors()
    none = FactorList(given.cards, given.states, given.factors, ())
    columns = {name: Column(variable(name, card), soft=np.ones((card, ROWS))) for name, card in CARDS.items()}
    for name in ("numpy", "native"):
        np.testing.assert_allclose(run(name, none, {})[1], expected(given, columns), rtol=0, atol=1e-14)


def test_derivatives_are_refused():
    given = factors()
    for name in [*ENGINES[:-1], "auto"]:
        engine, _ = run(name, given, evidence())
        with pytest.raises(TacitError, match="an interval has no derivatives"):
            engine.gradients(evidence(), ROWS, np.ones((9, ROWS)), 0)
