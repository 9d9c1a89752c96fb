"""The numbers to be learned as free weights: any weights are a legal network, and known numbers never move.

A learned row of a table is a softmax of its weights, scaled to the mass that its known entries leave; with two
learned entries it has one weight, through the logistic (the paper's meta-parameter). A threshold is the logistic of
a weight, a slope its exponential. Several thresholds of a parent state stay in order: the gaps between them are a
softmax, scaled to the room that known ones leave. Rows of tied tables share their weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.fitting.forms import EXPONENTIAL, LIMIT, LOGISTIC, SOFTMAX, SORTED, Sigmoids, Units, runs, transforms
from tacit.learn.fitting.links import axis_of, copy_of
from tacit.learn.prior import Prior
from tacit.model.cpt import CPT, THRESHOLDS, TestingCPT
from tacit.model.elements.distributions import structural
from tacit.query.network import Network

Key = tuple[str, str]
Ints = NDArray[np.int64]
Array = NDArray[np.floating]


class Parameters:
    """The learned numbers of some nodes of a network, as a function of one vector of weights.

    `slopes` says whether the slopes of sigmoids are learned, too.

    >>> import tacit
    >>> parameters = Parameters(tacit.examples.layer(4), ["T1", "Q"])
    >>> parameters.count
    28
    """

    def __init__(self, net: Network, nodes: Iterable[str], slopes: bool = False) -> None:
        self.network = net
        self.count = self.entries = 0
        self._units: list[tuple[float, ...]] = []
        self.places: list[LearnedEntries] = []
        self.slope_entries: dict[str, int] = {}  # testing node -> its entry
        leaders: dict[str, str] = {}
        for node in nodes:
            cpt = net.cpt(node)
            if not isinstance(cpt, CPT | TestingCPT):
                continue
            leader = node if cpt.tie is None else leaders.setdefault(cpt.tie, node)
            if leader == node:
                self._add(node, cpt, slopes)
                continue
            self.places += [replace(p, key=(node, p.key[1])) for p in self.places if p.key[0] == leader]
            if leader in self.slope_entries:
                self.slope_entries[node] = self.slope_entries[leader]
        columns = np.array(self._units).reshape(-1, 7).T.copy()
        self.units = Units(*columns[:4].astype(np.int64), *columns[4:])
        self._weights = np.diff(self.units.weight, append=self.count)  # how many each unit has
        halves = np.repeat(self._weights > 1, self._weights)  # two weights of a softmax may differ by both limits
        self.limits = np.where(halves, LIMIT / 2, LIMIT)
        self.kinds = np.repeat(self.units.kind, self.units.size)  # what every number is
        self._transforms = list(transforms(self.units, self.entries))

    def _add(self, node: str, cpt: CPT | TestingCPT, slopes: bool) -> None:
        for part, table in cpt.parts().items():
            first = self.entries
            if isinstance(cpt, TestingCPT) and part == THRESHOLDS:
                free = self._add_thresholds(cpt)
            else:
                free = self._add_rows(table, cpt.learn)
            if free.any():
                self.places.append(LearnedEntries((node, part), table, np.flatnonzero(free), first))
        if slopes and isinstance(cpt, TestingCPT) and cpt.gamma:
            self.slope_entries[node] = self.entries
            self._unit(EXPONENTIAL, 1, 1)

    def _add_rows(self, table: Floats, learn: bool) -> NDArray[np.bool_]:
        rows = table.reshape(-1, table.shape[-1])
        free = ~structural(rows) if learn else np.isnan(rows)
        left = 1 - np.where(free, 0.0, rows).sum(axis=1)
        for count, mass in zip(free.sum(axis=1).tolist(), left.tolist(), strict=True):
            if count:
                self._unit(SOFTMAX, count, {1: 0, 2: 1}.get(count, count), mass)
        return free

    def _add_thresholds(self, cpt: TestingCPT) -> NDArray[np.bool_]:
        values = cpt.limits.reshape(-1, len(cpt.tables) - 1)
        free = (values != 0) & (values != 1) if cpt.learn else np.isnan(values)
        for row, mask in zip(values, free, strict=True):
            for start, stop, low, high in runs(row, mask, 0.0, 1.0):
                count = stop - start
                kind, weights = (LOGISTIC, 1) if count == 1 else (SORTED, count + 1)
                self._unit(kind, count, weights, high - low, low, high)
        return free

    def _unit(self, kind: int, size: int, weights: int, mass: float = 1.0, low: float = 0.0, high: float = 1.0) -> None:
        self._units.append((kind, self.count, self.entries, size, mass, low, high))
        self.count, self.entries = self.count + weights, self.entries + size

    def numbers(self, weights: Floats) -> Floats:
        """The numbers that weights make, in the order of the units."""
        numbers = np.empty(self.entries)
        for transform in self._transforms:
            transform.make(weights, numbers)
        return numbers

    def tables(self, numbers: Floats, nodes: Collection[str] | None = None) -> dict[Key, Floats]:
        """The tables that hold learned numbers, complete; those of some nodes, or all."""
        if nodes is None and self._in_order:
            return {place.key: numbers[place.span].reshape(place.table.shape) for place in self.places}
        return {place.key: place.filled(numbers) for place in self.places if nodes is None or place.key[0] in nodes}

    def slopes(self, numbers: Floats) -> dict[str, float]:
        return {node: float(numbers[entry]) for node, entry in self.slope_entries.items()}

    def by_number(self, tables: Mapping[Key, Array], slopes: Mapping[str, float], *rows: int) -> Floats:
        """Derivatives by all learned numbers, from those by the tables and the slopes.

        With `rows`, those by the tables are (entries, rows), and the result is (numbers, rows).
        """
        if self._in_order and all(place.key in tables for place in self.places):
            return np.concatenate([tables[place.key] for place in self.places], axis=0 if rows else None)
        derivatives = np.zeros((self.entries, *rows))
        for place in self.places:
            if place.key in tables:
                table = tables[place.key].reshape(place.table.size, *rows)
                derivatives[place.span] += table if place.complete else table[place.index]
        for node, entry in self.slope_entries.items():
            derivatives[entry] += slopes.get(node, 0.0)
        return derivatives

    @cached_property
    def _in_order(self) -> bool:
        """Whether the learned numbers are whole tables one after the other."""
        firsts = np.cumsum([0, *(place.table.size for place in self.places)]).tolist()
        whole = bool(self.places) and all(place.complete for place in self.places)
        return whole and [*(place.first for place in self.places), self.entries] == firsts

    def by_weight(self, numbers: Floats, by_number: Floats) -> Floats:
        """Derivatives by the weights, from those by the numbers that they make; row by row if these are."""
        only = self._transforms[0] if len(self._transforms) == 1 else None
        if isinstance(only, Sigmoids):
            return only.by_weight(numbers, by_number)
        derivatives = np.empty((self.count, *by_number.shape[1:]))
        rows = math.prod(by_number.shape[1:])
        columns, results = by_number.reshape(self.entries, rows), derivatives.reshape(self.count, rows)
        for transform in self._transforms:
            transform.derive(numbers, columns, results)
        return derivatives

    def weights_of(self, entry: int) -> slice:
        """The weights that make a number: those of its whole row, if it is in a table."""
        unit = int(np.searchsorted(self.units.entry, entry, side="right")) - 1
        first = int(self.units.weight[unit])
        return slice(first, first + int(self._weights[unit]))

    @property
    def learned_slopes(self) -> frozenset[str]:
        """The testing nodes whose slope is learned."""
        return frozenset(self.slope_entries)

    @property
    def random(self) -> bool:
        """Whether some number has no start of its own."""
        return any(np.isnan(place.table.ravel()[place.index]).any() for place in self.places)

    @property
    def largest(self) -> int:
        """How many numbers of one table are learned, at most."""
        return max((len(place.index) for place in self.places), default=0)

    def without_slopes(self) -> Parameters:
        """Parameters with equal weights that leave the slopes of the network as they are."""
        clone = copy(self)
        clone.slope_entries = {}
        return clone

    def fill(self, weights: Floats, net: Network | None = None) -> Network:
        """The network, or a copy of it with other slopes, with these numbers; all others are the same bits."""
        net = net or self.network
        numbers = self.numbers(weights)
        tables, slopes = self.tables(numbers), self.slopes(numbers)
        cpts: dict[str, CPT | TestingCPT] = {}
        for node in dict.fromkeys([key[0] for key in tables] + list(slopes)):
            cpt = net.cpt(node)
            if isinstance(cpt, CPT):
                cpts[node] = CPT(tables[node, "table"], cpt.learn, cpt.tie)
            elif isinstance(cpt, TestingCPT):
                learned_parts = {part: tables[node, part] for part in cpt.parts() if (node, part) in tables}
                cpts[node] = cpt.with_parts(learned_parts, gamma=slopes.get(node, cpt.gamma))
        for names in net.ties.values():  # also those that the query does not need
            learned = next((cpts[name] for name in names if name in cpts), None)
            if learned is not None:
                cpts.update(dict.fromkeys(names, learned))
        return net.with_cpts(cpts)

    def pseudo_counts(self, strength: float, centre: Network | None = None) -> Floats:
        """The pseudo-counts of a prior for every learned number: those of tables have some."""
        prior, counts = Prior(strength, centre), np.zeros(self.entries)
        for place in self.places:
            if place.key[1] != THRESHOLDS:
                counts[place.span] = prior.counts(self.network, *place.key).ravel()[place.index]
        return counts

    def start(self, rng: np.random.Generator, copies: float = 0.0) -> Floats:
        """Weights to start from: the numbers given with `learn=True`, random ones for those left out.

        `copies` is the share of a link's rows that goes to the state of its parent; the rest is random.
        """
        numbers = np.full(self.entries, np.nan)
        for place in self.places:
            numbers[place.span] = place.table.ravel()[place.index]
        for node, entry in self.slope_entries.items():
            cpt = self.network.cpt(node)
            assert isinstance(cpt, TestingCPT)
            numbers[entry] = cpt.gamma
        limits = (self.kinds == LOGISTIC) | (self.kinds == SORTED)
        # by gamma draws, all rows of a table are equally likely
        draws = np.where(limits, rng.random(self.entries), rng.gamma(1.0, size=self.entries))
        if copies:
            self._mix_with_copies(draws, copies)
        for transform in self._transforms:
            transform.complete(numbers, draws)
        return self.weights(numbers)

    def _mix_with_copies(self, draws: Floats, copies: float) -> None:
        """Move the rows of links towards copies of their parent."""
        for place in self.places:
            axis = axis_of(self.network, place.key[0])
            if axis is None or place.key[1] == THRESHOLDS:
                continue
            rows = np.zeros(place.table.shape)
            rows.reshape(-1)[place.index] = draws[place.span]
            total = rows.sum(axis=-1, keepdims=True)
            rows = (1 - copies) * rows + copies * total * copy_of(rows.shape, axis)
            draws[place.span] = rows.reshape(-1)[place.index]

    def taking(self, other: Parameters, numbers: Floats, start: Floats) -> Floats:
        """The weights of a start, but with the numbers of other parameters where these have the same tables."""
        merged, spans = self.numbers(start), {place.key: place.span for place in self.places}
        for place in other.places:
            merged[spans[place.key]] = numbers[place.span]
        for node, entry in other.slope_entries.items():
            merged[self.slope_entries[node]] = numbers[entry]
        return self.weights(merged)

    def moved(self, weights: Floats, changes: Mapping[int, float]) -> Floats:
        """Weights that change some numbers; others of the same rows stay as near as they can be."""
        numbers, moved = self.numbers(weights), weights.copy()
        numbers[list(changes)] = list(changes.values())
        changed = self.weights(numbers)
        for entry in changes:
            row = self.weights_of(entry)
            moved[row] = changed[row]
        return moved

    def weights(self, numbers: Floats) -> Floats:
        """The weights that make these numbers, within the limits of weights."""
        weights, positive = np.empty(self.count), np.maximum(numbers, math.exp(-LIMIT))
        for transform in self._transforms:
            transform.invert(positive, weights)
        return np.clip(weights, -self.limits, self.limits)


@dataclass(frozen=True)
class LearnedEntries:
    """The learned numbers of a table: they fill its flat entries `index`, and are numbers from `first` on."""

    key: Key
    table: Floats
    index: Ints
    first: int

    @cached_property
    def span(self) -> slice:
        return slice(self.first, self.first + len(self.index))

    @cached_property
    def complete(self) -> bool:
        """Whether all entries of the table are learned."""
        return len(self.index) == self.table.size

    def filled(self, numbers: Floats) -> Floats:
        if self.complete:
            return numbers[self.span].reshape(self.table.shape)
        table = self.table.copy()
        table.reshape(-1)[self.index] = numbers[self.span]
        return table
