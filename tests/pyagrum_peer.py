"""The same network in pyAgrum, from our own tables: a peer to compare answers and speed with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyagrum

from tacit import Network
from tacit.evidence.read import read


def to_peer(net: Network) -> Any:
    """A `pyagrum.BayesNet` with the variables, states (labelled by position) and tables of `net`."""
    peer = pyagrum.BayesNet()
    for name in net:
        peer.add(pyagrum.LabelizedVariable(name, name, [f"s{i}" for i in range(len(net.states(name)))]))
    for name in net:
        for parent in net.parents(name):
            peer.addArc(parent, name)
    for name in net:
        ours, cpt = (*net.parents(name), name), peer.cpt(name)
        theirs = cpt.names  # the first varies fastest in what fillWith takes
        cpt.fillWith(net.table(name).transpose([ours.index(n) for n in reversed(theirs)]).ravel().tolist())
    return peer


def to_diagram(net: Network, decision: str, known_before: Sequence[str] = ()) -> tuple[Any, dict[str, str]]:
    """A `pyagrum.InfluenceDiagram` of a network with value nodes, and what it calls variables; states are positions.

    The variables `known_before` the decision have an arrow to it: what is best then depends on them.
    """
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


def posteriors(peer: Any, query: str, rows: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[np.ndarray]:
    """The posterior of `query` for every row, given as one likelihood per state of each variable."""
    engine = pyagrum.LazyPropagation(peer)
    engine.addTarget(query)
    for row in rows:
        engine.setEvidence({name: [float(x) for x in likelihoods] for name, likelihoods in row.items()})
        engine.makeInference()
        yield engine.posterior(query).toarray()


def likelihood_rows(net: Network, evidence: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
    """Columns of evidence as one mapping of likelihoods per row."""
    known = read(evidence, [net.variable(n) for n in net])
    return [known.likelihoods(i) for i in range(known.rows)]
