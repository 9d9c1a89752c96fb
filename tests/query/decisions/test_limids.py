"""Decisions against influence diagrams (LIMIDs) of pyAgrum, which knows nothing of this library."""

import numpy as np
import pyagrum
from hypothesis import assume, given

import tacit
from tests.helpers import close, impossible, tries
from tests.pyagrum_peer import to_diagram
from tests.query.decisions.cases import decisions, width


def most(net, decision, row, known_before=()):
    """What the best action is expected to be worth, given the likelihoods of a row."""
    peer, names = to_diagram(net, decision, known_before)
    engine = pyagrum.ShaferShenoyLIMIDInference(peer)
    for name, likelihood in row.items():
        engine.addEvidence(names[name], [float(x) for x in likelihood])
    engine.makeInference()
    return engine.MEU()["mean"]


@impossible
@given(case=decisions(rows=1, max_nodes=4, testing=False))
@tries(45)
def test_expected_values_and_worth_are_those_of_pyagrum(case):
    net, decision, columns = case
    tac = tacit.compile(net, decide=decision, evidence=list(columns))
    found, unit = tac.decide(columns), width(net)
    assume(not np.isnan(found.expected).any())
    assume(all(own.parents for own in net.value_nodes.values()))  # it knows no value node without parents
    row = tac.read(columns).likelihoods(0)
    theirs = [most(net, decision, {**row, decision: action}) for action in np.eye(found.expected.shape[1])]
    close(found.expected[0] / unit, np.array(theirs) / unit)
    told = tac.worth(columns)
    for name in [name for name in columns if not np.isnan(told[name][0])]:
        informed = most(net, decision, row, [name])
        close(told[name][0] / unit, (informed - max(theirs)) / unit)
