"""Decisions against influence diagrams (LIMIDs) of pyAgrum, which knows nothing of this library."""

import numpy as np
import pyagrum
from hypothesis import assume, given

import tacit
from tests.helpers import close, impossible, tries
from tests.query.decisions.cases import decisions, width


def diagram(net, decision, known_before=()):
    """The influence diagram of a network; variables are called by their places, and so are states."""
    peer, names = pyagrum.InfluenceDiagram(), {name: f"n{i}" for i, name in enumerate(net)}
    for name in net:
        variable = pyagrum.LabelizedVariable(names[name], "", len(net.states(name)))
        (peer.addDecisionNode if name == decision else peer.addChanceNode)(variable)
    for name in net.value_nodes:
        peer.addUtilityNode(pyagrum.LabelizedVariable(name, "", 1))
    for name in (n for n in net if n != decision):
        for parent in net.parents(name):
            peer.addArc(names[parent], names[name])
        ours, cpt = [names[n] for n in (*net.parents(name), name)], peer.cpt(names[name])
        cpt.fillWith(net.table(name).transpose([ours.index(n) for n in reversed(cpt.names)]).ravel().tolist())
    for name, own in net.value_nodes.items():
        for parent in own.parents:
            peer.addArc(names[parent], name)
        ours, table = [names[n] for n in own.parents], peer.utility(name)
        order = [ours.index(n) for n in reversed(table.names) if n != name]
        table.fillWith(own.table.transpose(order).ravel().tolist())
    for name in known_before:
        peer.addArc(names[name], names[decision])
    return peer, names


def most(net, decision, row, known_before=()):
    """What the best action is expected to be worth, given the likelihoods of a row."""
    peer, names = diagram(net, decision, known_before)
    engine = pyagrum.ShaferShenoyLIMIDInference(peer)
    for name, likelihood in row.items():
        engine.addEvidence(names[name], [float(x) for x in likelihood])
    engine.makeInference()
    return engine.MEU()["mean"]


@impossible
@given(case=decisions(rows=1, max_nodes=4, testing=False))
@tries(60)
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
