"""The search for the thresholds of hard tests, against trying everything."""

import itertools

import numpy as np
import pytest

import tacit
from tacit import Network, TestingCPT, semantics
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.labelled import LabelledRows
from tacit.learn.fitting.optimizers import LBFGS, State
from tacit.learn.fitting.run import Stage
from tacit.learn.fitting.thresholds import Following, ThresholdSearch, _learned_rows, learned_tests, split, sweep
from tacit.learn.fitting.training import Training
from tacit.learn.options import FitOptions
from tacit.learn.partitions import Local

ROWS = 10
NAN = np.nan


def network(states=2, known=False, tie=None, tables=2):
    """A -> B -> C -> D, E, with C and D testing, C with operators of all kinds; with more tables, they begin apart."""
    net = Network()
    net.add("A")
    net.add("B", ["A"], states)
    row = [0.3, 0.7] if known else [NAN, NAN]
    operators = [">=", "<", ">", "<="][:states]
    for name, parent, cards in (("C", "B", states), ("D", "C", 2)):
        every = [[[NAN, NAN]] * cards, *[[row] * cards] * (tables - 1)]
        net.add(name, [parent], cpt=TestingCPT(tables=every, thresholds=NAN, test=operators[:cards], tie=tie))
    net.add("E", ["D"])
    return net


def training(net, loss="mse", prior=0.0, seed=0):
    """Rows with weights, some of which say the same; labels are random."""
    rng = np.random.default_rng(seed)
    tac = tacit.compile(net, "E", ["A"])
    evidence, y = np.repeat(rng.random(ROWS // 2), 2), rng.random(ROWS)
    rows = LabelledRows(Local(read_data(tac, {"A": evidence}, y, rng.random(ROWS))))
    return Training(tac, rows, FitOptions(loss=loss, prior=prior)), evidence, y


def started(train, seed=1):
    objective = train.objectives(Stage("hard", 1, 1, LBFGS()))[0]
    weights = train.parameters.start(np.random.default_rng(seed))
    return objective, State(weights, objective.total(weights)), list(learned_tests(train.parameters))


def by_definition(train, weights, evidence, y):
    net = train.parameters.fill(weights).with_gamma(None)
    p = semantics.posterior(net, "E", {"A": evidence})[:, 0]
    return float(train.rows.data.weights @ (p - y) ** 2)


def all_splits(parameters, weights, test, values):
    """Every threshold between two values, and its neighbours, with each of the two rows on each side."""
    (node, state), numbers = test.places[0], parameters.fill(weights)
    row = [0.0, *numbers.cpt(node).limits[state], 1.0]
    low, high = row[test.rank], row[test.rank + 2]
    known = np.unique(np.concatenate([[low], np.clip(values.round(9), low, high), [high]]))
    sides = [weights[s] for s in (test.below, test.above) if s is not None]
    for middle in (known[1:] + known[:-1]) / 2:
        for below, above in itertools.product(sides, sides) if sides else [(None, None)]:
            tried = parameters.moved(weights, {test.entry: middle})
            if sides:
                tried[test.below], tried[test.above] = below, above
            yield tried


@pytest.mark.parametrize(
    ("states", "known", "tables"), [(2, False, 2), (2, True, 2), (3, False, 2), (3, False, 3), (2, True, 3)]
)
def test_a_split_is_the_best_of_all(states, known, tables):
    train, evidence, y = training(network(states, known, tables=tables))
    objective, state, tests = started(train)
    assert len(tests) == (states + 2) * (tables - 1)
    for test in tests:
        (node, place), weights = test.places[0], state.weights
        assert (test.below is None) == known
        values = objective.parent_posteriors(weights, [node])[node][place]
        net = train.parameters.fill(weights).with_gamma(None)
        parent = net.parents(node)[0]
        np.testing.assert_allclose(values, semantics.posterior(net, parent, {"A": evidence})[:, place], rtol=1e-9)
        split(objective, state, test, values, 0, np.random.default_rng(0))
        best = min(objective.value(w) for w in [weights, *all_splits(train.parameters, weights, test, values)])
        assert state.loss == pytest.approx(best, rel=1e-9)
        assert by_definition(train, state.weights, evidence, y) == pytest.approx(state.loss, rel=1e-9)


def absolute(p, y):
    return np.abs(p - y).sum(axis=1), np.sign(p - y)


@pytest.mark.parametrize(("loss", "prior"), [("mse", 0.0), ("cross_entropy", 0.5), (absolute, 0.0), (absolute, 2.0)])
@pytest.mark.parametrize(("tie", "tables"), [(None, 2), ("same", 2), (None, 4)])
def test_what_a_sweep_says_it_found_is_true_and_no_worse(loss, prior, tie, tables):
    train, *_ = training(network(tie=tie, tables=tables), loss, prior)
    objective, state, tests = started(train)
    assert {len(test.places) for test in tests} == {1 if tie is None else 2}
    for _ in range(3):
        before = state.loss
        sweep(objective, state, tests, 6, np.random.default_rng(1))
        assert state.loss <= before
        assert objective.total(state.weights) == pytest.approx(state.loss, rel=1e-9)


def test_an_observed_parent_is_no_obstacle():
    net = Network()
    net.add("A", states=3)
    net.add("B")
    net.add("T", ["A", "B"], testing=True)
    net.add("Q", ["T"])
    tac, rng = tacit.compile(net, "Q", ["A", "B"]), np.random.default_rng(0)
    evidence = {"A": rng.integers(3, size=30), "B": rng.random(30)}
    y = np.where(evidence["B"] > 0.2 + 0.3 * evidence["A"], 0.9, 0.2)
    found = tacit.fit(tac, evidence, y, harden=True, restarts=2, steps=40, progress=False)
    assert found.hard_loss < 1e-6


def test_rows_of_other_forms_are_not_exchanged():
    net = network(states=3)
    plus = np.array([[NAN, NAN], [0.0, 1.0], [0.25, 0.75]])
    net = net.with_cpts({"C": TestingCPT(plus, np.full((3, 2), NAN), [NAN] * 3)})
    train, *_ = training(net)
    tests = {test.places[0]: test for test in learned_tests(train.parameters)}
    assert [tests["C", state].below is None for state in range(3)] == [False, True, True]
    rows = dict(_learned_rows(train.parameters))
    assert ("C", "plus", 0) in rows
    assert ("C", "plus", 1) not in rows


@pytest.mark.parametrize("tables", [2, 3])
def test_thresholds_follow_what_is_tested(tables):
    train, *_ = training(network(tables=tables))
    objective, state, tests = started(train, seed=1)
    following = Following(objective, state.weights, tests)
    assert objective.value(following.followed(state.weights)) == pytest.approx(state.loss, rel=1e-12)
    others = state.weights + np.random.default_rng(2).normal(size=len(state.weights))

    def below(weights):
        found = objective.parent_posteriors(weights, ["C", "D"])
        limits = train.parameters.numbers(weights)
        return [int((found[node][place] < limits[t.entry]).sum()) for t in tests for node, place in t.places]

    assert below(following.followed(others)) == below(state.weights) != below(others)
    loss, gradient = following.value_and_gradient(others)
    assert loss == pytest.approx(objective.value(following.followed(others)), rel=1e-12)
    for test in tests:
        np.testing.assert_array_equal(gradient[train.parameters.weights_of(test.entry)], 0.0)


def test_later_rounds_start_elsewhere_and_are_kept_if_better():
    train, *_ = training(network())
    objective, state, _ = started(train)
    search, losses = ThresholdSearch(LBFGS(), seed=1), [state.loss]
    for _ in range(4):
        steps = state.steps
        search.advance(objective, state, 8)
        losses.append(state.loss)
        assert state.steps > steps
        assert objective.total(state.weights) == pytest.approx(state.loss, rel=1e-9)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[1]
    again = started(train)[1]
    for _ in range(4):
        search.advance(objective, again, 8)
    np.testing.assert_array_equal(again.weights, state.weights)
