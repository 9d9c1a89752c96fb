"""Networks that classify: naive Bayes, with components or with a tree of the columns, from the counts of a table.

Their tables do not depend on the class at first: given any class, a column is distributed as in all rows. Training
moves away from that prior as far as the classes of the rows demand, and as the strength of the prior allows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from tacit.base.floats import Floats, divide
from tacit.model.cpt import CPT
from tacit.model.elements.variable import Label
from tacit.query.network import Network

JITTER = 4.0  # concentration of the gamma draws that tell components apart at the start


class ColumnCounts:
    """Joint counts of the states of two columns, over the rows in which both are known."""

    def __init__(self, columns: Sequence[Floats], weights: Floats) -> None:
        self.sizes = [column.shape[1] for column in columns]
        self._first = np.cumsum([0, *self.sizes])
        ones = np.concatenate([np.zeros((len(weights), 0)), *map(_indicators, columns)], axis=1)  # (rows, all states)
        self._pairs: Floats = (ones * weights[:, None]).T @ ones

    def single(self, i: int) -> Floats:
        """The counts of the states of a column."""
        return np.asarray(self.pair(i, i).diagonal())

    def pair(self, i: int, j: int) -> Floats:
        """The counts of the states of two columns: (states of i, states of j)."""
        return self._pairs[self._first[i] : self._first[i + 1], self._first[j] : self._first[j + 1]]

    def information(self) -> Floats:
        """The mutual information of pairs of columns, times the rows, less what chance gives it: (columns, columns)."""
        column = np.repeat(np.eye(len(self.sizes)), self.sizes, axis=0)  # (all states, columns)
        rows = column.T @ self._pairs @ column  # in which both columns are known
        left = self._pairs @ column @ column.T  # those of them with a state of the first column
        odds = divide(self._pairs * (column @ rows @ column.T), left * left.T, otherwise=1.0)
        logs = np.log(odds, out=np.zeros_like(odds), where=odds > 0)
        by_chance = np.outer(np.array(self.sizes) - 1, np.array(self.sizes) - 1) * np.log(np.maximum(rows, 1)) / 2
        return np.asarray(column.T @ (self._pairs * logs) @ column - by_chance)


def _indicators(likelihoods: Floats) -> Floats:
    """1 for the most likely state of every row, 0 everywhere where there is no evidence."""
    known = np.flatnonzero(~np.isnan(likelihoods[:, 0]))
    ones = np.zeros(likelihoods.shape)
    ones[known, likelihoods[known].argmax(axis=1)] = 1.0
    return ones


def forest(information: Floats) -> dict[int, int | None]:
    """The trees of columns with the most information (Chow and Liu); column -> its parent, parents first."""
    count = len(information)
    gains = np.where(np.eye(count, dtype=bool), 0.0, np.maximum(information, 0.0))
    edges = minimum_spanning_tree(csr_array(-gains))
    parents: dict[int, int | None] = {}
    for root in range(count):
        if root not in parents:
            order, before = breadth_first_order(edges, root, directed=False)
            parents |= {int(i): int(before[i]) if i != root else None for i in order}
    return parents


def network(
    names: Sequence[str],
    states: Sequence[Sequence[Label]],
    classes: Sequence[Label],
    prior: CPT,
    counts: ColumnCounts,
    parents: dict[int, int | None],
    components: int,
    query: str = "Q",
) -> Network:
    """The network whose tables, which are to be learned, do not depend on the class.

    - The table of the query is `prior`. With several components, `C` has so many states for each state of the query,
      which it determines.
    - Each column depends on `C`, or on the query itself, and on its parent in a tree.
    """
    net = Network("classifier")
    top, size = query, len(classes) * components
    if components == 1:
        net.add(query, (), classes, prior)
    else:
        top = "C"
        net.add("C", (), size, CPT(np.repeat(prior.table / components, components), learn=prior.learn))
        net.add(query, ["C"], classes, np.repeat(np.eye(len(classes)), components, axis=0))
    for i, parent in parents.items():
        alone = counts.single(i) + 1.0
        table = alone / alone.sum()
        if parent is None:
            table = np.tile(table, (size, 1))
            net.add(names[i], [top], states[i], CPT(table, learn=True))
        else:
            pairs = counts.pair(parent, i) + counts.sizes[i] * table
            table = np.repeat((pairs / pairs.sum(axis=1, keepdims=True))[:, None], size, axis=1)
            net.add(names[i], [names[parent], top], states[i], CPT(table, learn=True))
    return net


def jittered(net: Network, rng: np.random.Generator) -> Network:
    """The network with tables that differ a little from each other, so that components part."""
    cpts = {}
    for name in net.variables:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT) and cpt.learn and name != "C":
            table = cpt.table * rng.gamma(JITTER, size=cpt.table.shape)
            cpts[name] = CPT(table / table.sum(axis=-1, keepdims=True), learn=True)
    return net.with_cpts(cpts)
