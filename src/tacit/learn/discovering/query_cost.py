"""What the queries on a graph cost: multiply-adds per row for all marginals, as the compiler counts them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.base.errors import TooLargeError
from tacit.learn.discovering.constraints import Mask
from tacit.model.graph import in_topological_order
from tacit.query.asking.options import CompileOptions
from tacit.query.network import Network
from tacit.query.query import Query, compiled

CHEAP = CompileOptions(effort="low")
MARGIN = 1.5  # multiply-adds of the compiler for an entry of a table; measured on 13 networks: at most 1.4


class CostLimit:
    """Whether a graph can be queried within a number of multiply-adds; without a number, every graph can.

    To compile a graph takes a tenth of a second, so a search is kept below a bound that takes microseconds: the entries
    of all tables that elimination makes (`Clusters`), and a margin. The graph that it ends with is compiled.
    """

    def __init__(self, variables: Network, names: Sequence[str], limit: float | None) -> None:
        self._variables, self._names, self._limit = variables, names, limit
        self._margin = MARGIN

    @property
    def entries(self) -> float:
        """How many entries the tables of a graph may have for it to be certainly cheap enough."""
        return np.inf if self._limit is None else self._limit / self._margin

    def holds(self, edges: Mask) -> bool:
        """Whether a graph is cheap enough when it is compiled; if not, `entries` will be fewer."""
        if self._limit is None:
            return True
        excess = self.cost(edges) / self._limit
        self._margin *= max(1.0, excess)
        return excess <= 1

    def cost(self, edges: Mask) -> float:
        """The multiply-adds of a row, for evidence on all variables and no query; infinite if they are too many."""
        net = graph_network(self._variables, self._names, edges)
        try:
            return float(compiled(Query, net, None, list(self._names), (), CHEAP).cost().multiply_adds)
        except TooLargeError:
            return np.inf


def graph_network(variables: Network, names: Sequence[str], edges: Mask) -> Network:
    """A network of these edges, whose tables are to be estimated."""
    parents = {child: sorted(names[p] for p in np.flatnonzero(edges[:, i]).tolist()) for i, child in enumerate(names)}
    net = Network()
    for name in in_topological_order({name: parents[name] for name in sorted(names)}):
        bins = variables.bins(name)
        net.add(name, parents[name], variables.states(name) if bins is None else None, bins=bins)
    return net
