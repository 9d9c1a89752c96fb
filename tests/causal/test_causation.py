"""Probabilities of causation: equal to their definition, and to Tian and Pearl's bounds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import NetworkError, TacitError, causal, examples
from tests.causal.worlds import functional_networks, states_of
from tests.helpers import close, impossible, tries
from tests.strategies import rngs


@st.composite
def questions(draw):
    net, rng = draw(functional_networks(most=5))
    x, y = rng.permutation(len(net))[:2]
    x, y = f"N{x}", f"N{y}"
    states = [int(s) for s in rng.permutation(net.variable(x).card)[:2]]
    others = [name for name in net if name not in (x, y)]
    row = {others[0]: int(rng.integers(net.variable(others[0]).card))} if others and rng.random() < 0.5 else {}
    return net, (x, *states), (y, int(rng.integers(net.variable(y).card))), row


def by_definition(net, cause, effect, row):
    (x, present, instead), (y, state) = cause, effect
    sums = np.zeros((3, 2))
    for states in itertools.product(*(range(net.variable(r).card) for r in net.roots)):
        by_root = dict(zip(net.roots, states, strict=True))
        was, with_x, without = (states_of(net, by_root, set_to) for set_to in ({}, {x: present}, {x: instead}))
        weight = np.prod([net.table(r)[s] for r, s in by_root.items()])
        if any(was[name] != code for name, code in row.items()):
            continue
        seen = (was[x] == present and was[y] == state, was[x] == instead and was[y] != state, True)
        event = (without[y] != state, with_x[y] == state, with_x[y] == state and without[y] != state)
        sums += weight * np.array([[s, s and e] for s, e in zip(seen, event, strict=True)], dtype=float)
    return [own / total if total else np.nan for total, own in sums]


@impossible
@tries(40)
@given(case=questions())
def test_probabilities_are_those_of_the_definition(case):
    asks = causal.necessity, causal.sufficiency, causal.both
    net, cause, effect, row = case
    close([ask(net, cause, effect, row or None)[0] for ask in asks], by_definition(*case))
    bounds = causal.bounds(net, cause, effect, row or None)
    close([bounds.necessity.low[0], bounds.sufficiency.high[0], bounds.both.low[0]], by_definition(*case))


def tian_pearl(p, done):
    """Their bounds of PN, PS and PNS, from P(x, y) (2, 2) and P(y | do(x)), P(y | do(x'))."""
    a, b = done
    y = p[:, 0].sum()
    both = (max(0, a - b, y - b, a - y), min(a, 1 - b, p[0, 0] + p[1, 1], a - b + p[0, 1] + p[1, 0]))
    necessity = (max(0, (y - b) / p[0, 0]), min(1, (1 - b - p[1, 1]) / p[0, 0]))
    sufficiency = (max(0, (a - y) / p[1, 1]), min(1, (a - p[0, 0]) / p[1, 1]))
    return necessity, sufficiency, both


def ends(bounds):
    return [(own.low[0], own.high[0]) for own in (bounds.necessity, bounds.sufficiency, bounds.both)]


@tries(30)
@given(rng=rngs)
def test_bounds_of_tian_and_pearl(rng):
    hidden = tacit.Network()  # U -> X, U -> Y, X -> Y, where U is not in the network that is asked
    hidden.add("U", states=3, cpt=rng.dirichlet([1, 1, 1]))
    hidden.add("X", ["U"], cpt=rng.dirichlet([1, 1], 3))
    hidden.add("Y", ["X", "U"], cpt=rng.dirichlet([1, 1], (2, 3)))
    together = hidden.posterior(["X", "Y"])[0]
    done = [float(hidden.do({"X": state}).posterior("Y")[0, 0]) for state in ("true", "false")]
    net = tacit.Network()
    net.add("X", cpt=together.sum(axis=1))
    net.add("Y", ["X"], cpt=together / together.sum(axis=1, keepdims=True))
    cause, effect = ("X", "true", "false"), ("Y", "true")
    found = causal.bounds(net, cause, effect, experiment=done)
    close(ends(found), tian_pearl(together, done), 1e-9)
    seen = net.table("Y")[:, 0]
    close(ends(causal.bounds(net, cause, effect)), tian_pearl(together, seen), 1e-9)


@tries(12)
@given(rng=rngs)
def test_mechanisms_are_within_the_bounds_of_one_random_node(rng):
    net = tacit.Network()
    net.add("Z", cpt=rng.dirichlet([1, 1]))
    net.add("X", ["Z"], states=3, cpt=rng.dirichlet([1, 1, 1], 2))
    net.add("Y", ["X", "Z"], states=3, cpt=rng.dirichlet([1, 1, 1], (3, 2)))
    cause, effect, rows = ("X", 2, 0), ("Y", 1), {"Z": ["true", "false", None]}
    bounds = causal.bounds(net, cause, effect, rows)
    assert bounds.exact
    functional = net.mechanisms()
    for kind, interval in (("necessity", bounds.necessity), ("sufficiency", bounds.sufficiency), ("both", bounds.both)):
        value = getattr(causal, kind)(functional, cause, effect, rows)
        assert ((interval.low <= value + 1e-9) & (value <= interval.high + 1e-9)).all()
    y = net.table("Y")[..., 1]
    highest = np.minimum(y[2], 1 - y[0])  # the two answers within a stratum can be as dependent as they like
    close(bounds.both.high[:2], highest, 1e-9)
    close(bounds.both.high[2], highest @ net.table("Z"), 1e-9)


def test_inner_bounds_of_several_random_nodes():
    """X -> Z -> Y: from X to Y, one coupling of Z and one of Y; the bounds are those of products of both."""
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("Z", ["X"], cpt=[[0.8, 0.2], [0.3, 0.7]])
    net.add("Y", ["Z"], cpt=[[0.9, 0.1], [0.4, 0.6]])
    found = causal.bounds(net, ("X", "true", "false"), ("Y", "true"), restarts=2)
    z_up, z_down = (np.array([0.5, 0.7]), np.array([0.0, 0.2]))  # Z true with X only, and without X only: least, most
    y_up, y_down = (np.array([0.5, 0.6]), np.array([0.0, 0.1]))
    both = [z_up[i] * y_up[j] + z_down[i] * y_down[j] for i, j in itertools.product((0, 1), repeat=2)]
    assert not found.exact
    close([found.both.low[0], found.both.high[0]], [min(both), max(both)], 1e-9)


@pytest.mark.parametrize(
    ("cause", "effect", "rows", "message"),
    [
        (("treatment", "A"), ("recovery", "yes"), None, "expected 3 names"),
        (("treatment", "A", "C"), ("recovery", "yes"), None, "'C' is not a state of 'treatment'; expected one of"),
        (("treatment", "A", "A"), ("recovery", "yes"), None, "with the same state"),
        (("treatment", "A", "B"), ("treatment", "A"), None, "both the cause and the effect"),
        (("treatment", "A", "B"), ("recovery", "yes"), {"recovery": "yes"}, "leave it out of the rows"),
    ],
)
def test_what_cannot_be_asked(cause, effect, rows, message):
    with pytest.raises(TacitError, match=message):
        causal.necessity(examples.kidney_stones().mechanisms(), cause, effect, rows)


@pytest.mark.parametrize(("experiment", "message"), [((0.1, 0.9), "cannot go with"), ((0.5,), "two"), ((2, 0), "two")])
def test_experiments_that_cannot_be(experiment, message):
    with pytest.raises(NetworkError, match=message):
        causal.bounds(examples.kidney_stones(), ("treatment", "A", "B"), ("recovery", "yes"), experiment=experiment)


@pytest.mark.parametrize("p", [1e-3, 1e-8, 1e-14])
def test_bounds_of_rare_effects_keep_their_digits(p):
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("Y", ["X"], cpt=[[2 * p, 1 - 2 * p], [p, 1 - p]])
    question = ("X", "true", "false"), ("Y", "true")
    for found in (causal.bounds(net, *question), causal.bounds(net, *question, experiment=[2 * p, p])):
        close([found.necessity.low[0], found.necessity.high[0]], [0.5, 1.0], 1e-6)
        close([found.both.low[0] / p, found.both.high[0] / p], [1.0, 2.0], 1e-6)


@impossible
def test_bounds_of_improbable_and_impossible_rows():
    net = tacit.Network()
    net.add("W", cpt=[1.0, 0.0])
    net.add("X", cpt=[0.5, 0.5])
    net.add("Y", ["X"], cpt=[[0.3, 0.7], [0.6, 0.4]])
    net.add("G", ["Y"], cpt=tacit.Gaussian([0.0, 1.0], [1.0, 1.0]))
    question = ("X", "true", "false"), ("Y", "true")
    far = causal.bounds(net, *question, {"G": [40.0, 0.5], "W": "true"})
    close([far.necessity.low, far.necessity.high], [[0.0, 0.0], [1.0, 1.0]])
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        found = causal.bounds(net, *question, {"W": ["false", "true"]})
    assert np.isnan(found.both.low).tolist() == [True, False]
    assert len(causal.bounds(net, *question, {"G": np.empty(0)}).both.low) == 0
