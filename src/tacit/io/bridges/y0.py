"""The bridge to y0, which identifies effects where some variables are not measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tacit.base.errors import NetworkError
from tacit.base.version import package
from tacit.io.bridges.peers import require
from tacit.query.network import Network

HIDDEN = "hidden"


def to_y0(net: Network, latent: Iterable[str] = ()) -> Any:
    """The edges of a network as a `y0.graph.NxMixedGraph`, without the variables that are `latent`.

    y0 knows how an effect can be expressed by what is measured, also where `net.adjustment` finds no set: the front
    door, instruments, and everything that follows from do-calculus.

    >>> import tacit
    >>> from y0.algorithm.identify import identify_outcomes
    >>> from y0.dsl import Variable
    >>> edges = [("Cause", "X"), ("Cause", "Y"), ("X", "M"), ("M", "Y")]
    >>> net = tacit.Network.from_edges(edges)
    >>> graph = tacit.to_y0(net, latent=["Cause"])
    >>> identify_outcomes(graph, treatments=Variable("X"), outcomes=Variable("Y"))
    Sum[M](P(M | X) * Sum[X](P(X) * P(Y | M, X)))
    """
    hidden = {latent} if isinstance(latent, str) else {*latent}
    if not isinstance(net, Network):
        raise NetworkError(f"to_y0 takes a Network, got a {type(net).__name__}")
    for name in hidden:
        net.variable(name)  # an error where there is none
    mixed = require("y0.graph").NxMixedGraph
    graph = package("networkx", "y0").DiGraph()
    graph.add_nodes_from((name, {HIDDEN: name in hidden}) for name in net)
    graph.add_edges_from(net.edges)
    return mixed.from_latent_variable_dag(graph, tag=HIDDEN)
