"""Queries that are too wide: their intervals hold the exact answer."""

import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, TooLargeError, semantics
from tacit.base.errors import TacitError
from tacit.bounds.querying.bounded_query import bounded
from tacit.bounds.querying.sharpening import Sharpening
from tacit.query.asking.options import CompileOptions, Limits
from tests.helpers import close
from tests.strategies import evidence, networks, queries

ROWS = 3
REFUSAL = TooLargeError("the query is too wide")
QUIET = pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning", "ignore::tacit.WideIntervalWarning")
budgets = st.sampled_from([1, 4, 16, 64])


def lowered(net, query, names, hard=(), given=None, multiply_adds=16, seconds=10.0):
    """A query that is taken to be too wide, whose windows are small."""
    options = CompileOptions(given=given, engine="numpy", effort="low")
    return bounded(net, query, list(names), hard, options, Limits(1e-9, seconds, multiply_adds), REFUSAL)


def holds(sure, truth):
    """Whether an interval has the truth, and its own estimate, inside."""
    known = ~np.isnan(truth[:, 0])
    low, high, estimate = (part[known] for part in (sure.low, sure.high, sure.estimate))
    inside = (low <= truth[known]) & (truth[known] <= high) & (low <= estimate) & (estimate <= high)
    close(estimate.sum(axis=1), 1)
    return inside.all()


@given(queries(rows=ROWS, certain=True), budgets)
def test_intervals_hold_the_truth(case, multiply_adds):
    net, query, rows = case
    tac = lowered(net, query, rows, multiply_adds=multiply_adds)
    assert not tac.exact
    truth = semantics.posterior(net, query, rows)
    sure, refined = tac.interval(rows), tac.refine(rows, seconds=5)
    assert holds(sure, truth)
    assert holds(refined, truth)
    known = ~np.isnan(refined.low)
    assert (refined.low >= sure.low)[known].all()
    assert (refined.high <= sure.high)[known].all()


@QUIET
@given(st.data(), budgets)
def test_intervals_of_all_variables(data, multiply_adds):
    net = data.draw(networks())
    rows = data.draw(evidence(net, rows=ROWS, certain=True))
    tac = lowered(net, None, rows, multiply_adds=multiply_adds)
    sure = tac.marginal_intervals(rows)
    assert set(sure) == set(net.variables)
    estimates = tac.marginals(rows)
    for name, own in sure.items():
        assert holds(own, semantics.posterior(net, name, rows))
        np.testing.assert_array_equal(estimates[name], own.estimate)


@given(st.data(), budgets, st.booleans())
def test_all_evidence_given(data, multiply_adds, of_all):
    net = data.draw(networks())
    row = data.draw(evidence(net, rows=1))
    hard = {name: column[0] for name, column in row.items() if isinstance(column, list) and column[0] is not None}
    query = None if of_all else data.draw(st.sampled_from(net.variables))
    tac = lowered(net, query, (), given={n: s for n, s in hard.items() if n != query}, multiply_adds=multiply_adds)
    known = {n: [s] for n, s in hard.items() if n != query}
    answers = tac.marginal_intervals() if of_all else {query: tac.interval()}
    for name, own in answers.items():
        assert holds(own, semantics.posterior(net, name, known))


@given(st.data(), budgets)
def test_hard_evidence_indexes_tables(data, multiply_adds):
    net, query, rows = data.draw(queries(rows=ROWS, certain=True))
    hard = [n for n, column in rows.items() if isinstance(column, list) and None not in column]
    tac = lowered(net, query, rows, hard, multiply_adds=multiply_adds)
    assert holds(tac.interval(rows), semantics.posterior(net, query, rows))


def wide(side=40, alike=1):
    """A grid whose exact answers are out of reach; the rows of its tables may be more or less alike."""
    net, random = Network("grid"), np.random.default_rng(0)
    for i, j in itertools.product(range(side), repeat=2):
        above = [f"{i - 1},{j}"] * (i > 0) + [f"{i},{j - 1}"] * (j > 0)
        net.add(f"{i},{j}", above, cpt=random.dirichlet(np.full(2, alike), [2] * len(above)))
    return net


def test_compile_of_what_is_too_wide():
    net = wide()
    with pytest.raises(TooLargeError, match=r"or give within=0\.01"):
        tacit.compile(net, "20,20", evidence=["39,39"])
    tac = tacit.compile(net, "20,20", evidence=["39,39"], within=0.9, seconds=4)
    sure = tac.interval({"39,39": ["true", None]})
    assert (sure.width < 0.9).all()
    close(tac.posterior({"39,39": ["true", None]}), sure.estimate)
    assert "too wide to compile: width" in str(tac.cost())
    assert tac.cost().windows["20,20"].inside > 1
    again = pickle.loads(pickle.dumps(tac))
    close(again.interval({"39,39": ["true", None]}).low, sure.low)


def test_rows_with_wide_intervals_are_counted():
    tac = lowered(tacit.examples.asia(), "dysp", ["smoke"], multiply_adds=4)
    with pytest.warns(tacit.WideIntervalWarning, match="of 2 of 2 rows are wider than within=1e-09"):
        tac.posterior({"smoke": ["yes", "no"]})


@pytest.mark.parametrize("name", ["mpe", "sample", "sensitivity", "circuit", "decide", "program"])
def test_what_needs_an_exact_answer(name):
    tac = lowered(tacit.examples.abc(), "B", ["A"])
    with pytest.raises(TacitError, match=f"{name} needs an exact answer, and this query is too wide"):
        getattr(tac, name)
    assert not hasattr(tac, name)


@pytest.mark.parametrize("within", [0, -0.1, 1.5, "0.1", float("nan"), True])
def test_within_is_a_width(within):
    with pytest.raises(TacitError, match="expected a number above 0 and at most 1"):
        tacit.compile(tacit.examples.abc(), "B", within=within)


@pytest.mark.parametrize("seconds", [0, -1, None, float("nan")])
def test_seconds_are_positive(seconds):
    with pytest.raises(TacitError, match="expected a positive number"):
        tacit.compile(tacit.examples.abc(), "B", within=0.1, seconds=seconds)


def test_questions_without_intervals():
    net = tacit.examples.asia()
    with pytest.raises(TooLargeError, match="too wide; within= does not help here: intervals are of one variable"):
        lowered(net, ["dysp", "xray"], ["smoke"])


@QUIET
@given(queries(rows=ROWS, testing=False))  # the tests of the two may tell apart what rounding makes a tie
def test_exact_intervals_hold_the_truth(case):
    net, query, rows = case
    tac = tacit.compile(net, query, evidence=list(rows), within=0.1)
    assert tac.exact
    sure = tac.interval(rows)
    truth = semantics.posterior(net, query, rows)
    assert holds(sure, truth)
    assert (sure.width[~np.isnan(truth[:, 0])] < 1e-12).all()


@given(st.data(), st.sampled_from([">=", "<"]), st.sampled_from([None, 20.0]))
def test_a_certain_test_selects_a_table(data, test, gamma):
    """Where the parents of a testing node are known well, its interval is that of one table, not of both."""
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("S", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.3, 0.6], test, gamma))
    net.add("E", ["T"], cpt=[[0.7, 0.3], [0.4, 0.6]])
    likelihoods = data.draw(st.lists(st.sampled_from([0.05, 0.25, 0.75, 0.95]), min_size=ROWS, max_size=ROWS))
    rows = {"A": likelihoods, "E": ["true", "false", None]}
    tac = lowered(net, "T", rows, multiply_adds=1000)
    sure, truth = tac.interval(rows), semantics.posterior(net, "T", rows)
    assert holds(sure, truth)
    assert (sure.width < 1e-9).all()


def test_given_states_that_are_impossible():
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[1, 0], [1, 0]])
    net.add("C", cpt=[0.5, 0.5])
    for sure in lowered(net, None, (), given={"B": "false"}).marginal_intervals().values():
        assert np.isnan(sure.low).all()


def test_exact_answers_that_take_long_for_each_row_give_way_to_intervals(monkeypatch):
    net = tacit.examples.asia()
    exact = tacit.compile(net, "dysp", ["xray", "smoke"], within=0.5)
    assert exact.exact
    monkeypatch.setattr("tacit.query.tac.MAX_EXACT", exact.program.cost.multiply_adds - 1)
    bounded = tacit.compile(net, "dysp", ["xray", "smoke"], within=0.5, seconds=1)
    assert not bounded.exact
    assert "multiply-adds for each row" in str(bounded.cost())
    assert tacit.compile(net, ["dysp", "lung"], ["xray"], within=0.5).exact  # there are no intervals of two variables


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [("STATIC_SPEED", 1.0, "which may take .* seconds"), ("STATIC_BYTES", 1e18, "all tables at one time")],
)
def test_exact_answers_that_take_long_once_give_way_to_intervals(monkeypatch, name, value, problem):
    net, known = tacit.examples.asia(), {"xray": "yes"}
    exact = tacit.compile(net, None, given=known, within=0.5, seconds=1)
    assert exact.exact
    monkeypatch.setattr(f"tacit.query.tac.{name}", value)
    bounded = tacit.compile(net, None, given=known, within=0.5, seconds=1)
    assert re.search(problem, str(bounded.cost()))
    for variable, truth in exact.marginals().items():
        assert holds(bounded.marginal_intervals()[variable], truth)


@given(st.lists(st.sampled_from([0.02, 0.2, 1.0]), min_size=2, max_size=4))
def test_refining_again_is_never_wider(times):
    net = wide(6)
    rows = {"0,0": ["true", None], "5,5": [0.3, 0.9]}
    tac = lowered(net, "3,3", rows, multiply_adds=8)
    sure = tac.interval(rows)
    for seconds in times:
        refined = tac.refine(rows, seconds=seconds / 20)
        assert (refined.low >= sure.low).all()
        assert (refined.high <= sure.high).all()
        sure = refined


def test_interrupting_keeps_the_best_so_far(monkeypatch):
    tac = lowered(wide(6), "3,3", ["0,0"], multiply_adds=8)
    rows = {"0,0": ["true", "false", None]}
    sure, grown = tac.interval(rows), Sharpening._grown
    calls = itertools.count()

    def interrupted(*arguments):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return grown(*arguments)

    monkeypatch.setattr(Sharpening, "_grown", interrupted)
    refined = tac.refine(rows, seconds=60)
    assert next(calls) == 2
    assert (refined.width <= sure.width).all()
    assert (refined.width < sure.width).any()


def test_no_time_does_not_make_a_row_impossible():
    tac = lowered(wide(6), "3,3", ["0,0"], multiply_adds=8)
    rows = {"0,0": ["true", "false"]}
    sure, refined = tac.interval(rows), tac.refine(rows, seconds=1e-9)
    assert (refined.low >= sure.low).all()  # and so none is NaN
    assert (refined.high <= sure.high).all()
