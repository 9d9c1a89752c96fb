"""Intervals of a window's program hold the exact posterior, whatever the window and the evidence."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.bounds.factor_list import factor_list
from tacit.bounds.window_program import window_program
from tacit.bounds.window_rows import WindowRows
from tests.helpers import close, posterior, tries
from tests.strategies import queries, rngs

ROWS = 5


def window_around(factors, query, rng):
    """The factors of the query and of some variables beside it, and the boundary that they have."""
    members = {i for i, factor in enumerate(factors.factors) if query in factor.scope}
    for _ in range(int(rng.integers(0, 3))):
        near = sorted({name for i in members for name in factors.factors[i].scope})
        if near:
            name = near[rng.integers(len(near))]
            members |= {i for i, factor in enumerate(factors.factors) if name in factor.scope}
    return members, boundary(factors, query, members)


def boundary(factors, query, members):
    inside, outside = set(), set()
    for i, factor in enumerate(factors.factors):
        (inside if i in members else outside).update(factor.scope)
    return sorted((inside & outside) - {query})


@given(queries(rows=ROWS), rngs, st.sampled_from(["numpy", "torch", "tape"]), st.sampled_from(["float64", "float32"]))
@tries(150)
def test_no_posterior_is_outside(asked, rng, engine, dtype):
    net, query, evidence = asked
    tac = tacit.compile(net, query, list(evidence), effort="low")
    factors = factor_list(net, tac.question)
    if query not in factors.cards:
        return
    members, beside = window_around(factors, query, rng)
    window = window_program(factors, query, members, beside, dtype, "low")
    known = tac.read(evidence)
    low, high, estimate = WindowRows(factors, window, engine, dtype).bounds(known.columns, known.rows)
    truth = posterior(tac, evidence).T[list(factors.states[query])]
    possible = ~np.isnan(truth[0])
    assert not np.isnan(low[:, possible]).any()
    assert (low <= truth + 1e-12)[:, possible].all()
    assert (high >= truth - 1e-12)[:, possible].all()
    assert ((low <= estimate) & (estimate <= high))[:, possible].all()
    if not beside and not any(factor.testing for factor in factors.factors):
        close(np.where(possible, high - low, 0), np.zeros(truth.shape), 1e-12 if dtype == "float64" else 1e-4)


@settings(max_examples=1)
@given(rngs)
def test_narrow_intervals_on_a_grid(rng):
    """Where neighbours say little about each other, a window is almost exact, and on generated code, too."""
    net = grid(rng, 5, weak=True)
    query, rows = "x2_2", 2000
    tac = tacit.compile(net, query, list(net.variables))
    factors = factor_list(net, tac.question)
    members = {i for i, factor in enumerate(factors.factors) if query in factor.scope}
    for name in sorted({name for i in members for name in factors.factors[i].scope}):
        members |= {i for i, factor in enumerate(factors.factors) if name in factor.scope}
    window = window_program(factors, query, members, boundary(factors, query, members))
    evidence = {}
    for name in net.variables:
        evidence[name] = np.where(rng.random(rows) < 0.2, rng.random(rows).round(int(rng.integers(2))), np.nan)
    known = tac.read(evidence)
    truth = tac.posterior(evidence).T
    found = [WindowRows(factors, window, name).bounds(known.columns, rows) for name in ("native", "numpy")]
    for low, high, estimate in found:
        assert (low <= truth).all()
        assert (truth <= high).all()
        assert (high - low).max() < 0.1
        assert np.abs(estimate - truth).max() < 0.02
    close(found[0].low, found[1].low)


def grid(rng, size, weak=False):
    net = tacit.Network()
    for i in range(size):
        for j in range(size):
            parents = [f"x{a}_{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            table = rng.dirichlet([1, 1], (2,) * len(parents))
            net.add(f"x{i}_{j}", parents, cpt=0.5 + 0.1 * (table - 0.5) if weak else table)
    return net
