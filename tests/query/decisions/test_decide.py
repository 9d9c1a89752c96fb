"""The best action, and what observing is worth: against their definitions, on every engine, in every way to ask."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import Ensemble, ImpossibleEvidenceWarning, Network, NetworkError, TacitError, UnusedColumnWarning, semantics
from tests.helpers import ENGINES_OF_MANY, close, impossible, one_row, tries
from tests.query.decisions.cases import decisions, width, worth
from tests.strategies import rngs, tie_margin

MARGIN = 1e-9  # a posterior this near to its threshold may fall on either side of it by rounding


def away_from_ties(net, decision, columns, rows=3):
    """Whether no test is decided by rounding, whatever the action."""
    chosen = [net.do({decision: state}) for state in net.states(decision)]
    parts = [one_row(columns, i) for i in range(rows)]
    return all(tie_margin(own, row) > MARGIN for own in chosen for row in parts)


def treatment(table=((-20, -100), (0, 0))):
    net = Network("treatment")
    net.add("Disease", states=["yes", "no"], cpt=[0.1, 0.9])
    net.add("Test", ["Disease"], states=["pos", "neg"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("Treat", ["Test"], states=["yes", "no"], cpt=[[0.8, 0.2], [0.1, 0.9]])
    net.add("Cured", ["Disease", "Treat"], cpt=[[[0.9, 0.1], [0.1, 0.9]], [[1, 0], [1, 0]]])
    net.value("Health", ["Disease", "Treat"], table)
    net.value("Price", ["Treat"], [-10, 0])
    return net


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@given(case=decisions(max_nodes=4))
@tries(60)
def test_expected_values_are_those_of_the_definition(engine, case):
    net, decision, columns = case
    assume(away_from_ties(net, decision, columns))
    tac = tacit.compile(net, decide=decision, evidence=list(columns), engine=engine)
    found, expected = tac.decide(columns), semantics.expected_values(net, decision, columns)
    expected = np.broadcast_to(expected, found.expected.shape)  # without any column, there is one row
    close(found.expected / width(net), expected / width(net))
    for row, values in enumerate(expected):
        if np.isnan(values).any():
            assert found.action[row] is None
            continue
        best = net.states(decision).index(found.action[row])
        first, second = np.sort(values)[::-1][:2]
        close([values[best] / width(net), found.margin[row] / width(net)], [first / width(net), (first - second) / width(net)])


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@given(case=decisions(max_nodes=4))
@tries(40)
def test_worth_is_that_of_the_definition(engine, case):
    net, decision, columns = case
    assume(columns)
    assume(away_from_ties(net, decision, columns))
    tac = tacit.compile(net, decide=decision, evidence=list(columns), engine=engine)
    found, now = tac.worth(columns), tac.decide(columns).expected
    for name in columns:
        for i in range(len(now)):
            row = one_row(columns, i)
            seen = tac.read(row).columns.get(name)
            if np.isnan(now[i, 0]) or (seen is not None and seen.observed.all()):
                assert np.isnan(found[name][i])
            else:
                close(found[name][i] / width(net), worth(net, decision, name, row) / width(net), 1e-11)


@impossible
@given(case=decisions(max_nodes=3, continuous=True, testing=False))
@tries(30)
def test_numbers_may_be_observed_before_a_decision(case):
    net, decision, columns = case
    tac = tacit.compile(net, decide=decision, evidence=list(columns))
    expected = semantics.expected_values(net, decision, columns)
    close(tac.decide(columns).expected / width(net), expected / width(net), 1e-11)
    assert set(tac.worth(columns)) == {name for name in columns if name in net}.difference(net.continuous)


@given(case=decisions(max_nodes=3), rng=rngs)
@impossible
@tries(20)
def test_networks_of_an_ensemble_decide_by_their_mean(case, rng):
    net, decision, columns = case
    assume(not set(columns) & set(net.continuous))
    net = net.with_cpts({decision: rng.dirichlet(np.ones(len(net.states(decision))), net.table(decision).shape[:-1])})
    ...


def test_a_decision_prints_and_converts():
    tac = tacit.compile(treatment(), decide="Treat", evidence=["Test"])
    decision = tac.decide({"Test": ["pos", "neg", None]})
    assert decision.action.tolist() == ["yes", "no", "no"]
