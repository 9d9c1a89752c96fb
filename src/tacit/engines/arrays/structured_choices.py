"""One structured operation in a traceback: how much each product counts in its sum, and which one is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.base.floats import Floats, representable
from tacit.compiler.operations import Structured
from tacit.compiler.operations.axes import Ids, Mask, Setting
from tacit.compiler.operations.structured import terms_of
from tacit.engines.arrays.wide import Wide

Array = Any  # of NumPy, or Wide


class Level(NamedTuple):
    """Instructions that need only those of lower levels, with their terms, one instruction after the other."""

    results: Ids  # references
    terms: Ids
    left: Ids  # the factors of the terms
    right: Ids
    firsts: Ids  # where the terms of each instruction begin
    counts: Ids


class ChoiceInstructions:
    """The instructions of a structured operation, in levels.

    References below `inputs` are those of entries of the inputs, from `first` on those of instructions. `leads` says of
    every reference whether something that is looked for is below it, given of which entries of each input it is.
    """

    def __init__(self, operation: Structured, setting: Setting, inputs: Sequence[Mask]) -> None:
        self._operation, self.terms = operation, operation.terms
        self.inputs, self.first = operation.first_literal(setting), operation.first_result(setting)
        self.starts, self.counts = operation.bounds[:-1], np.diff(operation.bounds)
        self._levels = [self._level(numbers) for numbers in operation.levels(setting)]
        self.leads = np.zeros(self.first + len(self), dtype=np.bool_)
        self.leads[: self.inputs] = np.concatenate(inputs) if inputs else False
        for level in self._levels:
            leads = self.leads[level.left] | self.leads[level.right]
            self.leads[level.results] = np.logical_or.reduceat(leads, level.firsts)
        self._literals = Wide.of(operation.mantissas, operation.exponents)[:, None]
        self._wide = not representable(operation.mantissas, operation.exponents, np.dtype(np.float64)).all()

    def __len__(self) -> int:
        return len(self.starts)

    def _level(self, numbers: Ids) -> Level:
        counts, terms = self.counts[numbers], terms_of(self._operation.bounds, numbers)
        left, right = self.terms[terms].T
        return Level(self.first + numbers, terms, left, right, np.cumsum(counts) - counts, counts)

    def weights(self, inputs: Sequence[Array], rows: int) -> Floats:
        """How much each term counts in its instruction, (terms, rows); values of inputs are (entries, rows or 1)."""
        if not self._wide and not any(isinstance(value, Wide) for value in inputs):
            with np.errstate(over="ignore", invalid="ignore"):
                weights = self._weights(np.empty((len(self.leads), rows)), (*inputs, self._literals.floats()))
            if np.isfinite(weights).all():
                return weights
        room = np.empty((len(self.leads), rows))
        return self._weights(Wide(room, np.empty(room.shape, dtype=np.int64)), (*inputs, self._literals))

    def _weights(self, values: Array, given: Sequence[Array]) -> Floats:
        """All values of the instructions, in an array whose first ones are given."""
        first = 0
        for value in given:
            values[first : first + len(value)] = value
            first += len(value)
        weights = np.empty((len(self.terms), values.shape[1]))
        for level in self._levels:
            products = values[level.left] * values[level.right]
            values[level.results], weights[level.terms] = self._reduced(products, level)
        return weights

    def _reduced(self, products: Array, level: Level) -> tuple[Array, Floats]:
        """The results of a level, and its products, scaled for each instruction to the range of floats."""
        reduce = np.maximum.reduceat if self._operation.largest else np.add.reduceat
        if not isinstance(products, Wide):
            return reduce(products, level.firsts, axis=0), products
        top = np.maximum.reduceat(products.exponent, level.firsts, axis=0)
        scaled = products.floats(-np.repeat(top, level.counts, axis=0))
        return Wide.of(reduce(scaled, level.firsts, axis=0), top), scaled

    def best(self, weights: Floats) -> Ids:
        """For every instruction and row, the first of its largest terms: (instructions, rows)."""
        best = np.repeat(self.starts[:, None], weights.shape[1], axis=1)
        row = np.arange(weights.shape[1])
        for place, some in self._longer():
            challenger = self.starts[some] + place
            better = weights[challenger] > weights[best[some], row]
            best[some] = np.where(better, challenger[:, None], best[some])
        return best

    def heap_up(self, weights: Floats) -> None:
        """Add to every term those before it in its instruction."""
        for place, some in self._longer():
            term = self.starts[some] + place
            weights[term] += weights[term - 1]

    def _longer(self) -> Iterator[tuple[int, Ids]]:
        """For every place in an instruction but the first, the instructions that have such a term."""
        order = np.argsort(-self.counts, kind="stable")
        having = np.searchsorted(-self.counts[order], -np.arange(self.counts.max(initial=0)), side="left")
        for place in range(1, len(having)):
            yield place, order[: having[place]]

    def drawn(self, heaps: Floats, numbers: Ids, rows: Ids, draws: Floats) -> Ids:
        """A term of each of some instructions, drawn by its weight: one of weight 0 only where all of them are 0."""
        low, last = self.starts[numbers], self.starts[numbers] + self.counts[numbers] - 1
        total, high = heaps[last, rows], last
        limit = np.minimum(draws * total, np.nextafter(total, 0))  # a product may be rounded up to all there is
        for _ in range(int(self.counts[numbers].max(initial=1) - 1).bit_length()):
            middle = (low + high) // 2
            beyond = heaps[middle, rows] > limit
            low, high = np.where(beyond, low, np.minimum(middle + 1, last)), np.where(beyond, middle, high)
        return low
