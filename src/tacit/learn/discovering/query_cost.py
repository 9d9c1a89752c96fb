"""What the queries on a graph cost: multiply-adds per row for all marginals, as the compiler counts them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.base.errors import TooLargeError
from tacit.learn.discovering.constraints import Mask
from tacit.model.graph import in_topological_order
from tacit.query.network import Network
from tacit.query.options import CompileOptions
from tacit.query.query import Query, compiled

CHEAP = CompileOptions(effort="low")


class CostLimit:
    """Whether a graph can be queried within a number of multiply-adds; without a number, every graph can."""

    def __init__(self, variables: Network, names: Sequence[str], limit: float | None) -> None:
        self._variables, self._names, self._limit = variables, names, limit
        self._known: dict[bytes, bool] = {}

    def allows(self, edges: Mask) -> bool:
        if self._limit is None:
            return True
        key = np.packbits(edges).tobytes()
        if key not in self._known:
            self._known[key] = self.cost(edges) <= self._limit
        return self._known[key]

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
