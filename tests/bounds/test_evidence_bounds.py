"""The interval of the probability of evidence holds it, also where the query is too wide for anything exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import tacit
from tacit import semantics
from tacit.bounds.querying.bounded_query import bounded
from tacit.bounds.querying.chain import _expected
from tacit.query.asking.options import CompileOptions, Limits
from tests.bounds.test_bounded_query import lowered, wide
from tests.helpers import close, tries
from tests.strategies import evidence, networks, queries, rngs

ROWS = 3


def log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def holds(sure, truth, tolerance=1e-14):
    """Whether ends have the truth between them, and the estimate."""
    slack = tolerance * np.maximum(1, np.abs(np.where(np.isinf(truth), 0, truth)))  # the truth is rounded, too
    assert (sure.low <= truth + slack).all()
    assert (truth - slack <= sure.high).all()
    assert (sure.low <= sure.estimate).all()
    assert (sure.estimate <= sure.high).all()


@given(queries(rows=ROWS, certain=True), st.sampled_from([4, 2**9]))
@tries(60)
def test_interval_holds_the_truth(case, multiply_adds):
    net, query, rows = case
    hard = [n for n, column in rows.items() if isinstance(column, list) and None not in column]
    truth = log(semantics.joint(net, query, rows).sum(axis=1))
    for names in ((), hard):
        tac = lowered(net, None, rows, names, multiply_adds=multiply_adds)
        holds(tac.log_evidence_interval(rows), truth)
    close(tac.log_evidence(rows), tac.log_evidence_interval(rows).estimate)


@given(st.data())
@tries(30)
def test_given_states_count(data):
    net = data.draw(networks(testing=False))
    rows = data.draw(evidence(net, rows=ROWS))
    name = data.draw(st.sampled_from(net.variables))
    rows.pop(name, None)
    label = data.draw(st.sampled_from(net.states(name)))
    truth = log(semantics.joint(net, name, rows | {name: [label] * ROWS}).sum(axis=1))
    sure = lowered(net, None, rows, given={name: label}, multiply_adds=2**12).log_evidence_interval(rows)
    holds(sure, truth[: len(sure.low)])
    possible = np.isfinite(truth[: len(sure.low)])
    close(sure.width[possible], 0)


def test_partition_function():
    graph, random = tacit.FactorGraph(), np.random.default_rng(3)
    for i in range(7):
        graph.add(f"{i}", states=3)
        for j in range(i):
            graph.add_factor([f"{j}", f"{i}"], np.exp(random.normal(size=(3, 3)) + 200 * (-1) ** j))
    rows = {"4": [0, 1, None]}
    exact = tacit.compile(graph, None, evidence=["4"]).log_evidence(rows)
    for multiply_adds in (2**6, 2**18):
        sure = lowered(graph, None, ["4"], multiply_adds=multiply_adds, seconds=0.5).log_evidence_interval(rows)
        holds(sure, exact)
    close(sure.estimate, exact, 1e-10)


def test_interventions_are_no_evidence():
    net = tacit.examples.asia()
    exact = tacit.compile(net, "dysp", evidence=["xray"], do=["smoke"])
    rows = {"xray": ["yes", "no"], "smoke": "yes"}
    limits = Limits(0.01, 5.0, 2**12)
    tac = bounded(net, "dysp", ["xray"], [], CompileOptions(do=["smoke"]), limits, tacit.TooLargeError("too wide"))
    close(tac.log_evidence(rows), exact.log_evidence(rows))


@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_impossible_evidence():
    tac = lowered(tacit.examples.asia(), "dysp", ["either", "tub"])
    sure = tac.log_evidence_interval({"either": "no", "tub": "yes"})
    assert sure.low == sure.high == sure.estimate == -np.inf


def test_windows_predict_findings():
    tac = lowered(wide(7, alike=5), "6,6", ["4,5", "6,6"], multiply_adds=2**9, seconds=1)
    assert not tac._evidence_bounds.bounds.plan.exact
    assert (tac.log_evidence_interval({"4,5": "false"}).width < 1e-9).all()


@given(rngs)
@tries(30)
def test_expected_likelihoods_between_bounds(rng):
    card = rng.integers(2, 5)
    some = rng.dirichlet(np.ones(card))
    low, high = some * rng.random(card), np.minimum(some * (1 + rng.exponential(size=card)), 1)
    likelihoods = rng.random(card) * (rng.random(card) < 0.7)
    ends = _expected(likelihoods[:, None], low[:, None], high[:, None])
    for sign, end in zip((1, -1), ends, strict=True):
        best = linprog(sign * likelihoods, A_eq=np.ones((1, card)), b_eq=[1], bounds=list(zip(low, high, strict=True)))
        close(end[0], sign * best.fun)
        assert sign * end[0] <= best.fun + 1e-15
