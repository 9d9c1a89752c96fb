"""The traceback through single instructions: of each, one product is chosen, and both of its factors are followed.

Structured elimination forgets the axes that it summed out. A program that is to say states has likelihoods of every
variable whose state is wanted instead. Its joint is a sum of products, none negative, and each of them has exactly one
likelihood of each of these variables: those that it ends at say their states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, representable
from tacit.compiler.operations import Gather, Likelihood, Operation, Rescale, Structured
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.operations.axes import Ids, Mask, Setting
from tacit.compiler.operations.structured import terms_of
from tacit.compiler.program import Program, traced_operations
from tacit.engines.arrays.wide import Wide
from tacit.engines.results import States

Array = Any  # of NumPy, or Wide
Choose = Callable[[Ids, Ids], Ids]  # a term for each of some instructions, and the sample that is there
MAX_WEIGHTS = 2**22  # numbers that terms are chosen by, at one time: 32 megabytes
MAX_VISITS = 2**21  # entries that samples are led to, at one time


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

    def _weights(self, values: Array, firsts: Sequence[Array]) -> Floats:
        """The weights of all terms, by way of all values: `firsts` are those of the inputs and literals, in order."""
        first = 0
        for value in firsts:
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

    def largest(self, weights: Floats) -> Choose:
        """The first of the largest terms of an instruction, for one sample of each row."""
        best = np.repeat(self.starts[:, None], weights.shape[1], axis=1)
        row = np.arange(weights.shape[1])
        for place, some in self._longer():
            challenger = self.starts[some] + place
            better = weights[challenger] > weights[best[some], row]
            best[some] = np.where(better, challenger[:, None], best[some])
        return lambda numbers, rows: best[numbers, rows]

    def drawn(self, weights: Floats, draws: Floats, counted: int) -> Choose:
        """Terms drawn by their weights, which are added up. So many instructions are counted before these."""
        for place, some in self._longer():
            term = self.starts[some] + place
            weights[term] += weights[term - 1]
        starts, samples = splitmix(draws.ravel().view(np.uint64)), draws.shape[2]

        def choose(numbers: Ids, at: Ids) -> Ids:
            terms, several = self.starts[numbers], self.counts[numbers] > 1
            numbers, at = numbers[several], at[several]
            terms[several] = self._bisected(weights, numbers, at // samples, fractions(starts[at], counted + numbers))
            return terms

        return choose

    def _longer(self) -> Iterator[tuple[int, Ids]]:
        """For every place in an instruction but the first, the instructions that have such a term."""
        order = np.argsort(-self.counts, kind="stable")
        having = np.searchsorted(-self.counts[order], -np.arange(self.counts.max(initial=0)), side="left")
        for place in range(1, len(having)):
            yield place, order[: having[place]]

    def _bisected(self, sums: Floats, numbers: Ids, rows: Ids, draws: Floats) -> Ids:
        """A term of each of some instructions, by the sums up to each: of weight 0 only where all of them are."""
        low, last = self.starts[numbers], self.starts[numbers] + self.counts[numbers] - 1
        total, high = sums[last, rows], last
        limit = np.minimum(draws * total, np.nextafter(total, 0))  # a product may be rounded up to all there is
        for _ in range(int(self.counts[numbers].max(initial=1) - 1).bit_length()):
            middle = (low + high) // 2
            beyond = sums[middle, rows] > limit
            low, high = np.where(beyond, low, np.minimum(middle + 1, last)), np.where(beyond, middle, high)
        return low


class Visits(NamedTuple):
    """Entries, and the number of the sample that is at each."""

    entries: Ids
    samples: Ids

    def only(self, some: Mask) -> Visits:
        return Visits(self.entries[some], self.samples[some])


class Tracing:
    """The operations that the traceback of a program follows, and which of their entries lead to a likelihood."""

    def __init__(self, program: Program) -> None:
        assert program.traced, "the program was compiled without likelihoods of all variables"
        self._program = program
        self._path = sorted(traced_operations(program))
        self._variables = [op.variable for i in self._path if isinstance(op := program.operations[i], Likelihood)]
        self._instructions: dict[int, ChoiceInstructions] = {}
        self._leads: dict[int, Mask] = {}
        for i in self._path:
            self._leads[i] = self._leading(i, program.operations[i])

    def _leading(self, i: int, operation: Operation) -> Mask:
        """Which entries of a value lead to a likelihood."""
        nowhere = np.zeros(self._program.size(operation.axes), dtype=np.bool_)
        if not self._program.batched[i]:
            return nowhere
        if isinstance(operation, Likelihood):
            return ~nowhere
        if isinstance(operation, Rescale):
            return self._leads[operation.inputs[0]]
        if isinstance(operation, Gather):
            return _at(self._leads[operation.inputs[0]], operation.index)
        if isinstance(operation, Structured) and operation.largest == self._program.largest:
            below = [self._leads[j] for j in operation.inputs]
            instructions = self._instructions[i] = ChoiceInstructions(operation, self._program.setting(i), below)
            return _at(instructions.leads, operation.index)
        return nowhere

    @property
    def chunk(self) -> int:
        """How many rows to trace at a time."""
        return max(1, MAX_WEIGHTS // max(1, sum(len(own.terms) + len(own) for own in self._instructions.values())))

    def states(self, values: Mapping[int, Value], rows: int, draws: Floats | None) -> States:
        """States of all variables that were asked for: (rows, samples); -1 may stand in rows that are impossible.

        `values` are those of the operations. Without `draws` (1, rows, samples), one sample, the largest; with them,
        each number starts the random numbers of its sample.
        """
        samples = 1 if draws is None else draws.shape[2]
        choices = self._choices(values, rows, draws)
        states = {name: np.full(rows * samples, -1, dtype=np.int32) for name in self._variables}
        at_once = max(1, MAX_VISITS // max(1, len(self._variables)))
        for start in range(0, rows * samples, at_once):
            self._descend(choices, np.arange(start, min(start + at_once, rows * samples)), states)
        return {name: codes.reshape(rows, samples) for name, codes in states.items()}

    def _choices(self, values: Mapping[int, Value], rows: int, draws: Floats | None) -> dict[int, Choose]:
        choices, counted = dict[int, Choose](), 0
        for i, instructions in self._instructions.items():
            inputs = self._program.operations[i].inputs
            weights = instructions.weights([values[j].array.reshape(len(self._leads[j]), -1) for j in inputs], rows)
            choices[i] = instructions.largest(weights) if draws is None else instructions.drawn(weights, draws, counted)
            counted += len(instructions)
        return choices

    def _descend(self, choices: Mapping[int, Choose], samples: Ids, states: Mapping[str, NDArray[np.int32]]) -> None:
        visits = defaultdict(list, {self._program.joint: [Visits(np.zeros_like(samples), samples)]})
        for i in reversed(self._path):
            here = _joined(visits.pop(i, []))
            here = here.only(self._leads[i][here.entries])
            operation = self._program.operations[i]
            if isinstance(operation, Gather | Structured):
                here = here._replace(entries=operation.index.ravel()[here.entries])
            if isinstance(operation, Likelihood):
                states[operation.variable][here.samples] = here.entries
            elif isinstance(operation, Rescale | Gather):
                visits[operation.inputs[0]].append(here)
            elif isinstance(operation, Structured) and i in choices:
                below = _joined(list(_reached(self._instructions[i], choices[i], here)))
                for j, there in zip(operation.inputs, self._apart(operation, below), strict=True):
                    visits[j].append(there)

    def _apart(self, operation: Structured, visits: Visits) -> Iterator[Visits]:
        """The visits to each of the inputs of an operation, which are counted one after the other."""
        order = np.argsort(visits.entries, kind="stable")
        entries, samples = visits.entries[order], visits.samples[order]
        first = 0
        for j in operation.inputs:
            after = first + len(self._leads[j])
            there = slice(*np.searchsorted(entries, [first, after]))
            yield Visits(entries[there] - first, samples[there])
            first = after


def _reached(instructions: ChoiceInstructions, choose: Choose, visits: Visits) -> Iterator[Visits]:
    """The entries of the inputs that samples come to from some references."""
    while len(visits.entries):
        yield visits.only(visits.entries < instructions.inputs)
        inside = visits.only(visits.entries >= instructions.first)
        factors = instructions.terms[choose(inside.entries - instructions.first, inside.samples)]  # (visits, 2)
        visits = Visits(factors.ravel(), np.repeat(inside.samples, 2))
        visits = visits.only(instructions.leads[visits.entries])


def _joined(visits: list[Visits]) -> Visits:
    nothing = Visits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    return Visits(*map(np.concatenate, zip(*visits or [nothing], strict=True)))


def _at(leads: Mask, index: Ids) -> Mask:
    """Which entries of an index lead on: known 0s and 1s do not."""
    return ((index >= 0) & leads[np.maximum(index, 0)]).ravel()


def fractions(starts: NDArray[np.uint64], numbers: Ids) -> Floats:
    """Random numbers between 0 and 1, each by its start and its number in the series.

    A sample visits few of the instructions, and which ones depends on it: drawn one after the other, its numbers would
    depend on the samples beside it. These are those of SplitMix64 (Steele, Lea and Flood 2014).
    """
    step = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
    mixed = splitmix(starts + (numbers + 1).astype(np.uint64) * step)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def splitmix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: one to one, and every bit of the result depends on all bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
