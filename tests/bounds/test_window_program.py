"""Intervals of a window's program hold the posterior, whatever the window, the regions around it, and the evidence."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import engines
from tacit.bounds.factor_list import factor_list
from tacit.bounds.querying.bounded_query import bounded
from tacit.bounds.regions import regions_around, shortened
from tacit.bounds.window_program import window_program
from tacit.bounds.window_rows import WindowRows
from tacit.bounds.windows import Surroundings
from tacit.compiler.program import check
from tacit.query.asking.options import CompileOptions, Limits
from tests.engines import emulated_gpu
from tests.helpers import always_hard, close, posterior, tries
from tests.strategies import queries, rngs

ROWS = 5


def some_window(surroundings, query, rng):
    """A window that has taken in a few variables of its boundary."""
    window = surroundings.start(query)
    for _ in range(int(rng.integers(0, 3))):
        if window.boundary:
            window = surroundings.grown(window, window.boundary[rng.integers(len(window.boundary))])
    return window


@given(
    queries(rows=ROWS, max_nodes=9),
    rngs,
    st.sampled_from(["numpy", "torch", "tape"]),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([1, 8, 64]),
    st.sampled_from([4, 2**16]),
    st.booleans(),
)
@tries(90)
def test_no_posterior_is_outside(asked, rng, engine, dtype, entries, smallest, settle):
    net, query, evidence = asked
    settled = [name for name in always_hard(net, evidence) if settle and name != query]
    tac = tacit.compile(net, query, [name for name in evidence if name not in settled], settled, effort="low")
    factors = factor_list(net, tac.question)
    if query not in factors.cards:
        return
    surroundings = Surroundings(factors, frozenset(settled)).small_enough(query, smallest)
    window = some_window(surroundings, query, rng)
    regions = regions_around(surroundings, window, entries)
    program = window_program(surroundings, window, regions, dtype, "low")
    check(program.program)
    known = tac.read(evidence)
    low, high, estimate = WindowRows(factors, program, engine, dtype).bounds(known.columns, known.rows)
    truth = posterior(tac, evidence).T[list(factors.states[query])]
    possible = ~np.isnan(truth[0])
    assert not np.isnan(low[:, possible]).any()
    assert (low <= truth + 1e-12)[:, possible].all()
    assert (high >= truth - 1e-12)[:, possible].all()
    assert ((low <= estimate) & (estimate <= high))[:, possible].all()
    if (
        not window.boundary
        and not window.relaxed
        and not any(factor.low is not factor.high for factor in factors.factors)
    ):
        close(np.where(possible, high - low, 0), np.zeros(truth.shape), 1e-12 if dtype == "float64" else 1e-4)


def grid(rng, size, strength):
    """Binary variables side by side; each has those above and to the left of it as parents."""
    net = tacit.Network()
    for i in range(size):
        for j in range(size):
            parents = [f"x{a}_{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            table = rng.dirichlet([1, 1], (2,) * len(parents))
            net.add(f"x{i}_{j}", parents, cpt=0.5 + strength * (table - 0.5))
    return net


def asked_of_a_grid(strength, entries, rows=1000):
    rng = np.random.default_rng(0)
    net = grid(rng, 6, strength)
    tac = tacit.compile(net, "x2_2", list(net.variables))
    surroundings = Surroundings(factor_list(net, tac.question))
    window = surroundings.start("x2_2")
    for name in ("x2_1", "x1_2", "x3_2", "x2_3"):
        window = surroundings.grown(window, name)
    evidence = {}
    for name in net.variables:
        seen = rng.random(rows).round(int(rng.integers(2)))
        evidence[name] = np.where(rng.random(rows) < 0.2, seen, np.nan)
    program = window_program(surroundings, window, regions_around(surroundings, window, entries))
    return surroundings.factors, program, tac.read(evidence), tac.posterior(evidence).T


@pytest.mark.parametrize("engine", ["numpy", "native", "tape"])
def test_regions_make_intervals_narrower(engine):
    widths = []
    for entries in (1, 256):
        factors, program, known, truth = asked_of_a_grid(0.7, entries)
        low, high, estimate = WindowRows(factors, program, engine).bounds(known.columns, known.rows)
        assert (low <= truth).all()
        assert (truth <= high).all()
        if engine != "numpy":
            exact = WindowRows(factors, program, "numpy").bounds(known.columns, known.rows)
            for own, other in zip((low, high, estimate), exact, strict=True):
                close(own, other)
        widths.append((high - low).mean())
    assert widths[1] < 0.5 * widths[0]
    assert np.abs(estimate - truth).mean() < 0.01


def test_numbers_with_an_exponent_each_say_the_same():
    _, program, known, _ = asked_of_a_grid(0.7, 256, rows=20)
    plain = engines.build("numpy", program.program, program.tables, {}, "float64")
    columns = {name: known.columns[name] for name in program.program.likelihoods}
    results, wide = plain.run(columns, 20), plain.fallback.run(columns, 20)
    close(np.ldexp(wide.joint, wide.exponent), results.joint)


def test_programs_for_a_gpu_are_small(monkeypatch):
    emulated_gpu.emulate(monkeypatch)
    rng = np.random.default_rng(0)
    net, rows = grid(rng, 6, 1.0), {"x1_1": rng.random(50), "x4_3": rng.random(50)}
    limits, options = Limits(multiply_adds=2**14), CompileOptions(engine="cuda")
    tac = bounded(net, "x2_2", list(rows), (), options, limits, tacit.TooLargeError(""))
    sure, truth = tac.interval(rows), tacit.compile(net, "x2_2", list(rows)).posterior(rows)
    assert ((sure.low <= truth) & (truth <= sure.high)).all()
    assert sure.width.max() < 0.9


def test_a_window_is_cut_short_and_a_region_stays_small():
    rng = np.random.default_rng(0)
    net = grid(rng, 7, 1.0)
    surroundings = Surroundings(factor_list(net, tacit.compile(net, "x3_3", list(net.variables)).question))
    window = surroundings.start("x3_3")
    for name in ("x3_2", "x2_3", "x4_3", "x3_4", "x4_2"):
        window = surroundings.grown(window, name)
    part = shortened(surroundings, window, 2**9)
    assert part.interior == window.interior[: len(part.interior)]
    assert surroundings.size(part.boundary) <= 2**9 < surroundings.size(window.boundary)
    regions = regions_around(surroundings, part, 2**6)
    own = [place for region in regions for place in region.factors]
    assert len(own) == len(set(own)) == len({*own} - {*part.factors})
    for region in regions:
        assert surroundings.size((*region.speaks_of, *region.given, *region.beyond)) <= 2**6
        assert {*region.speaks_of, *region.given} <= {*part.boundary}


def test_impossible_rows_are_no_numbers():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[1, 0], [0, 1]])
    net.add("C", ["B"], cpt=[[0.3, 0.7], [0.6, 0.4]])
    tac = tacit.compile(net, "A", ["A", "B", "C"])
    surroundings = Surroundings(factor_list(net, tac.question))
    program = window_program(surroundings, surroundings.start("A"))
    known = tac.read({"A": ["true", "true"], "B": ["true", "false"]})
    with warnings.catch_warnings():
        bounds = WindowRows(surroundings.factors, program, "numpy").bounds(known.columns, 2)
    close(bounds.low, [[1, np.nan], [0, np.nan]])
    close(bounds.high, [[1, np.nan], [0, np.nan]])
