"""Larger networks from trained smaller ones: more tests, nearly the same function, and numbers left to learn."""

from __future__ import annotations

import numpy as np

from tacit.base.errors import TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.learn import options
from tacit.learn.fitting.links import axis_of, copy_of
from tacit.model.cpt import CPT, THRESHOLDS, AnyCPT, TestingCPT
from tacit.query.network import Network

LINK_ERROR = 0.1  # of 0.05, 0.1 and 0.15, this led furthest (docs/learning.md)


def grow(small: Network, large: Network, error: float = LINK_ERROR) -> Network:
    """`large` as a start for training, with the numbers of `small`, a trained network of the same kind.

    Tests of `small` are found in `large` by their parents, all other nodes by their names. New tests between them (a
    longer chain) copy their parent, and to new parents (a wider layer) a node pays no attention. So the function is
    that of `small`, but for the share of cases in which new links err: exact copies (`error=0`) do not learn. Numbers
    that have no effect yet are left out, so that every restart of `tacit.fit` draws them anew; all others are given
    with `learn=True`.

    >>> import numpy as np
    >>> import tacit
    >>> x = np.linspace(0, 1, 20)
    >>> small = tacit.compile(tacit.examples.chain(2), "Q", ["E1", "E2"])
    >>> trained = tacit.fit(small, {"E1": x, "E2": x}, x**2, steps=20, progress=False)
    >>> start = tacit.learn.grow(trained.network, tacit.examples.chain(3))
    >>> start.cpt("T3").plus.tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    >>> large = tacit.compile(start, "Q", ["E1", "E2"])
    >>> tacit.fit(large, {"E1": x, "E2": x}, x**2, steps=20, progress=False).loss < 1e-4
    True
    """
    for name, net in (("small", small), ("large", large)):
        if not isinstance(net, Network):
            raise TacitError(f"{name} is a {type(net).__name__}, expected a Network")
    error = options.not_negative("error", error, "the share of cases in which new links err: a number")
    if error >= 1:
        raise TacitError(f"error is {error:g}, expected a share of cases below 1")
    growth = _Growth(small, large)
    cpts = {place: growth.stretched(name) for name, place in growth.places.items()}
    cpts |= {link: _link(large, link, error) for link in growth.links}
    return large.with_cpts(cpts)


class _Growth:
    """The places of a network's nodes in a larger one, and the new nodes that are links between them."""

    def __init__(self, small: Network, large: Network) -> None:
        self.small, self.large = small, large
        self.places: dict[str, str] = {}
        self.links: set[str] = set()
        for name in small.variables:
            self.places[name] = self._place(name)
            self.links.update(*map(self._links_above, large.parents(self.places[name])))

    def _place(self, name: str) -> str:
        """The node of that name, or of tests the first that is free and has the same parents."""
        small, large, testing = self.small, self.large, self.small.cpt(name).testing
        parents = tuple(self.places[parent] for parent in small.parents(name))
        same = [n for n in large if large.states(n) == small.states(name) and large.cpt(n).testing == testing]
        alike = [node for node in same if node not in self.places.values()]
        if testing:
            for node in sorted(alike, key=lambda node: node != name):
                if large.parents(node) == parents:
                    return node
        if name not in alike:
            kind = "testing node" if testing else "regular node"
            problem = f"node {name!r} of the small network has no place in the large one"
            raise TacitError(f"{problem}; expected a {kind} of that name with states {list(small.states(name))}")
        missing = [parent for parent in parents if parent not in map(self._origin, large.parents(name))]
        if missing:
            problem = f"node {name!r} of the large network hangs below {list(large.parents(name))}"
            expected = f"{missing[0]!r}, or links below it that are testing nodes with the same number of states"
            raise TacitError(f"{problem}, expected also {expected}")
        return name

    def _links_above(self, node: str) -> list[str]:
        """The new links between a node, itself included, and the place of a node above; empty if there is no place."""
        links: list[str] = []
        while node not in self.places.values():
            if axis_of(self.large, node) is None or len(self.large.parents(node)) > 1:
                return []
            (parent,) = self.large.parents(node)
            if len(self.large.states(parent)) != len(self.large.states(node)):
                return []
            links.append(node)
            node = parent
        return links

    def _origin(self, node: str) -> str:
        """The node that a node copies: the parent of the first of its links, or itself."""
        links = self._links_above(node)
        return self.large.parents(links[-1])[0] if links else node

    def stretched(self, name: str) -> AnyCPT:
        """The numbers of a node, the same whatever the state of new parents, and free to change."""
        cpt, place = self.small.cpt(name), self.places[name]
        if not isinstance(cpt, CPT | TestingCPT):
            return cpt
        if any(np.isnan(part).any() for part in cpt.parts().values()):
            raise UnsetError(f"node {name!r} of the small network has unset numbers (NaN); train it first")
        if not isinstance(cpt, TestingCPT):
            return CPT(self._repeated(name, cpt.table), learn=True, tie=self.large.cpt(place).tie)
        if len(self.large.parents(place)) > len(self.small.parents(name)):
            parents = f"{self.large.parents(place)}, than in the small one, {self.small.parents(name)}"
            problem = f"node {name!r} is a testing node with more parents in the large network, {parents}"
            raise TacitError(f"{problem}: its tests would be others")
        parts = {part: self._repeated(name, table) for part, table in cpt.parts().items()}
        return cpt.with_parts(parts, learn=True, tie=self.large.cpt(place).tie)

    def _repeated(self, name: str, table: Floats) -> Floats:
        origins = [self._origin(parent) for parent in self.large.parents(self.places[name])]
        kept = [origins.index(self.places[parent]) for parent in self.small.parents(name)]
        order = np.argsort(kept, kind="stable").tolist()
        table = table.transpose([*order, *range(len(kept), table.ndim)])  # own states, or thresholds, come last
        new = [i for i in range(len(origins)) if i not in kept]
        cards = [len(self.large.states(parent)) for parent in self.large.parents(self.places[name])]
        shape = (*cards, *table.shape[len(kept) :])
        return np.array(np.broadcast_to(np.expand_dims(table, new), shape))


def _link(net: Network, node: str, error: float) -> TestingCPT:
    """A copy that errs in a share of the cases, whatever its thresholds, which are left out."""
    cpt = net.cpt(node)
    assert isinstance(cpt, TestingCPT)
    copy, states = copy_of(cpt.tables[0].shape, 0), cpt.tables[0].shape[-1]
    table = (1 - error) * copy + error * (1 - copy) / max(1, states - 1)
    unset = np.full(cpt.thresholds.shape, np.nan)
    return cpt.with_parts({**dict.fromkeys(cpt.table_parts, table), THRESHOLDS: unset}, learn=True)
