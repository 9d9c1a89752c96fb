"""The bridge to pgmpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.evidence.read import EvidenceLike
from tacit.io.bridges.peers import PeerNode, assemble, check_classical, require
from tacit.model.elements.variable import Label
from tacit.query.network import Network


def from_pgmpy(
    model: Any, rows: EvidenceLike | None = None, states: Mapping[str, int | Sequence[Label]] | None = None
) -> Network:
    """The network of a pgmpy model: a `DiscreteBayesianNetwork`, or a `BayesianNetwork` of earlier releases.

    A `DAG`, or a model without any CPDs, as pgmpy's structure learning returns them, becomes a network whose tables are
    to be learned; `rows` and `states` tell its states, as in `Network.from_edges`.

    Names, the order of parents, the order of states and their labels are pgmpy's (the integers 0..k-1 where a CPD
    has no state names), so evidence by labels serves both. A CPD of virtual evidence is a column of likelihoods
    here: `{cpd.variable: cpd.get_values().T}`.

    >>> import tacit
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> model = DiscreteBayesianNetwork([("rain", "wet")])
    >>> model.add_cpds(TabularCPD("rain", 2, [[0.2], [0.8]]))
    >>> model.add_cpds(TabularCPD("wet", 2, [[0.9, 0.1], [0.1, 0.9]], ["rain"], [2]))
    >>> tacit.from_pgmpy(model).posterior("rain", {"wet": 0}).round(4)
    array([[0.6923, 0.3077]])
    """
    is_model = hasattr(model, "get_cpds") and hasattr(model, "nodes") and hasattr(model, "check_model")
    is_graph = hasattr(model, "edges") and getattr(model, "is_directed", bool)()
    if not (is_model or is_graph):
        raise NetworkError(f"expected a pgmpy DiscreteBayesianNetwork or DAG, got {type(model).__name__}")
    cpds: dict[str, Any] = {node: model.get_cpds(node) if is_model else None for node in model.nodes()}
    if undirected := sorted(getattr(model, "undirected_edges", ())):
        one, other = undirected[0]
        raise NetworkError(f"the edge {one} - {other} has no direction; expected a DAG, which to_dag() makes of a PDAG")
    if is_graph and all(cpd is None for cpd in cpds.values()):
        return Network.from_edges(model.edges(), rows, states, nodes=cpds)
    for node, cpd in cpds.items():
        if not hasattr(cpd, "state_names"):
            kind = "no CPD" if cpd is None else f"a {type(cpd).__name__}"
            raise NetworkError(f"node {node!r} has {kind}; expected a TabularCPD")
    try:
        model.check_model()
    except ValueError as error:
        raise NetworkError(f"pgmpy finds the model inconsistent: {error}") from None
    nodes = {}
    for node, cpd in cpds.items():
        table = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)  # pgmpy's first axis is the node's own
        nodes[node] = PeerNode(tuple(cpd.variables[1:]), cpd.state_names[cpd.variables[0]], table)
    return assemble(model.graph.get("name"), nodes)


def to_pgmpy(net: Network) -> Any:
    """A network as a `pgmpy.models.DiscreteBayesianNetwork`.

    Factored CPTs become dense tables. What is to be learned, and ties, have no counterpart. A testing node is an
    error: select a classical network with `net.select(evidence)` first.

    >>> import tacit
    >>> model = tacit.to_pgmpy(tacit.examples.abc().select({"A": 0.8}))
    >>> model.get_cpds("C").state_names
    {'C': ['lo', 'hi'], 'A': ['true', 'false']}
    """
    tabular = require("pgmpy.factors.discrete").TabularCPD
    model = require("pgmpy.models").DiscreteBayesianNetwork()
    check_classical(net, "pgmpy")
    if net.name is not None:
        model.graph["name"] = net.name
    model.add_nodes_from(net.variables)
    model.add_edges_from([(parent, node) for node in net for parent in net.parents(node)])
    for node in net:
        family = (node, *net.parents(node))
        states = {name: list(net.states(name)) for name in family}
        own, *above = (len(states[name]) for name in family)
        # columns are parent states, the last parent's varying fastest, as in our rows
        model.add_cpds(tabular(node, own, net.table(node).reshape(-1, own).T, list(family[1:]), above, states))
    return model
