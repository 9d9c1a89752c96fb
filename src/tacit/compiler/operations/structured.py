"""Sums of products of single entries: what structured elimination leaves of a part of a network.

Where a contraction runs over whole tables, this operation is a list of instructions on numbers. It stands for as many
contractions as the elimination had steps, without the entries that are 0 or that come out equal.

On arrays, all instructions of a level run at a time, those of like size together. Numbers are kept in blocks (entries,
rows): one of what is the same for all rows, one of the inputs that have rows, and one for the results of every level. A
level first takes what it reads out of the blocks, each number once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.arrangement import distinct, gathered
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value, total_exponent
from tacit.compiler.operations.axes import ONE, ZERO, Array, Axes, Axis, Ids, Key, Mask, Setting
from tacit.compiler.operations.elementary import added_up
from tacit.compiler.operations.operation import Operation, Support, Target

MAX_SHOWN_INPUTS = 8  # by name, where an operation is shown
TABLES, ROWS, FIRST_LEVEL = 0, 1, 2  # the blocks
STRIDE = 2**40  # a number's place is its block times this, plus its position there
POWERS = 1 << np.arange(40)

Blocks = dict[int, Array]
Adjoints = dict[int, list[tuple[Ids, Array]]]  # by block: positions, and derivatives by what is there


@dataclass(frozen=True, slots=True, eq=False)
class Structured(Operation):
    """A list of instructions, each the sum (or the largest) of products of two numbers.

    References count the entries of the inputs, one input after the other, then the literals, then the results of the
    instructions. The terms of instruction k are the rows of `terms` from `starts[k]` on: pairs of references. Of a
    *linear* instruction, the first of each pair is the same for all rows (a literal, or an entry of an input without
    rows) and the second is not, or is the first literal; of any other, neither is, or the whole operation is without
    rows. Literals are `mantissas` * 2**`exponents`, since products of many tables may leave the range of floats; the
    first one is 1. `index`, over `axes`, refers to the entries of the result, ZERO and ONE among them.

    If inputs were rescaled, every product that adds to an entry of the result has one factor of each of them, so that
    their exponents add up.
    """

    inputs: tuple[int, ...]
    mantissas: NDArray[np.float64]
    exponents: NDArray[np.int64]
    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    linear: NDArray[np.bool_]
    index: NDArray[np.int64]
    axes: Axes
    largest: bool = False

    @property
    def detail(self) -> str:
        shown = " ".join(f"v{i}" for i in self.inputs[:MAX_SHOWN_INPUTS])
        more = f" ... ({len(self.inputs)} inputs)" if len(self.inputs) > MAX_SHOWN_INPUTS else ""
        return f"{len(self.terms):,} terms of {shown}{more}"

    def first_literal(self, setting: Setting) -> int:
        """The reference to the first literal."""
        return sum(setting.size(axes) for axes in setting.axes)

    def first_result(self, setting: Setting) -> int:
        """The reference to the result of the first instruction."""
        return self.first_literal(setting) + len(self.mantissas)

    @property
    def bounds(self) -> Ids:
        """Where the terms of each instruction begin, and the number of terms."""
        return np.append(self.starts[: len(self.linear)], len(self.terms))

    @property
    def owners(self) -> Ids:
        """The instruction that each term belongs to."""
        return np.repeat(np.arange(len(self.linear)), np.diff(self.bounds))

    def last_uses(self, setting: Setting) -> Ids:
        """For every instruction, the last one that reads its result; their number, if that leaves the operation."""
        count, first = len(self.linear), self.first_result(setting)
        last = np.arange(count)
        read, reader = (self.terms - first).ravel(), np.repeat(self.owners, 2)
        last[read[read >= 0]] = reader[read >= 0]  # the last of several assignments counts, and readers rise
        left = self.index.ravel() - first
        last[left[left >= 0]] = count
        return last

    def levels(self, setting: Setting) -> list[Ids]:
        """The instructions in groups that only read earlier groups, each as late as can be: so few are live."""
        count, bounds = len(self.linear), self.bounds
        read = self.terms - self.first_result(setting)
        uses = np.bincount(read[read >= 0], minlength=count)
        levels, ready = [], np.flatnonzero(uses == 0)
        while len(ready):
            levels.append(ready)
            taken = np.sort(read[terms_of(bounds, ready)], axis=None)
            taken = taken[np.searchsorted(taken, 0) :]
            ends = np.flatnonzero(np.append(taken[1:] != taken[:-1], True)) if len(taken) else taken
            which = taken[ends]
            uses[which] -= np.diff(ends, prepend=-1)
            ready = which[uses[which] == 0]
        return levels[::-1]

    def shortened(self, setting: Setting, most: int) -> Structured:
        """An operation with rows with at most so many terms for each instruction: sums of parts, then of these."""
        counts, first = np.diff(self.bounds), self.first_result(setting)
        parts = -(-counts // most)
        if not (parts > 1).any():
            return self
        extra = np.where(parts > 1, parts, 0)
        number = np.cumsum(extra + 1) - 1  # that each instruction has now
        before = np.cumsum(extra) - extra  # terms and instructions that earlier ones have got
        of = np.repeat(np.arange(len(parts)), extra)  # the instruction that each part is of
        part = np.arange(len(of)) - before[of]
        known = (self.terms, self.index)
        terms, index = (np.where(own < first, own, first + number[np.maximum(own - first, 0)]) for own in known)
        added = np.stack([np.full(len(of), self.first_literal(setting)), first + (number - extra)[of] + part], axis=1)
        starts, linear = np.empty(len(parts) + len(of), dtype=np.int64), np.ones(len(parts) + len(of), dtype=np.bool_)
        starts[number] = np.where(parts > 1, self.bounds[1:], self.bounds[:-1]) + before
        starts[(number - extra)[of] + part] = self.bounds[of] + before[of] + part * most
        linear[number[parts == 1]], linear[(number - extra)[of] + part] = self.linear[parts == 1], self.linear[of]
        terms = np.insert(terms, self.bounds[1:][of], added, axis=0)
        return replace(self, starts=starts, terms=terms, linear=linear, index=index).shortened(setting, most)

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        first, count = self.first_result(setting), len(self.linear)
        assert len(self.mantissas) == len(self.exponents) > 0, "the literals of a structured operation"
        assert np.ldexp(self.mantissas[0], self.exponents[0]) == 1, "the first literal is not 1"
        assert self.terms.shape == (len(self.terms), 2), "the shape of terms"
        assert (np.diff(self.bounds, prepend=-1) > 0)[1:].all(), "an instruction without terms"
        assert self.bounds[0] == 0, "terms before the first instruction"
        assert (self.terms >= 0).all(), "a term reads what is not there"
        assert (self.terms < first + self.owners[:, None]).all(), "an instruction reads a later one"
        inputs = [np.full(setting.size(axes), rows) for axes, rows in zip(setting.axes, setting.batched, strict=True)]
        literals, results = np.zeros(len(self.mantissas), np.bool_), np.full(count, any(setting.batched))
        changing = np.concatenate([*inputs, literals, results])  # which references depend on rows
        linear, reads = self.linear[self.owners], changing[self.terms]
        assert not reads[linear, 0].any(), "the first factor of a linear instruction depends on rows"
        one = self.terms[:, 1] == self.first_literal(setting)
        assert (reads[:, 1] | one)[linear].all(), "the second factor of a linear instruction is the same for all rows"
        assert reads[~linear].all() or not any(setting.batched), "a product with what is the same for all rows"
        assert list(self.index.shape) == setting.shape(self.axes), "the shape of a structured operation"
        assert (self.index >= ONE).all(), "a structured operation reaches outside"
        assert (self.index < first + count).all(), "a structured operation reaches outside"
        gone = {axis for axes in setting.axes for axis in axes} - set(self.axes)
        assert hard.isdisjoint(gone), "a structured operation sums over observed states"

    def multiply_adds(self, setting: Setting) -> int:
        return len(self.terms)

    def elements(self, setting: Setting) -> int:
        return len(self.linear) + setting.size(self.axes)

    def live(self, setting: Setting) -> int:
        count = len(self.linear)
        ended = np.cumsum(np.bincount(self.last_uses(setting), minlength=count + 1))
        # a result is live while its last reader runs
        inside = np.arange(1, count + 1) - np.append(0, ended)[:count]
        return int(max(inside.max(initial=0), setting.size(self.axes)))

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        first, nothing = self.first_result(setting), np.zeros(len(self.linear), dtype=np.bool_)
        nonzero = np.concatenate([*(known.nonzero.ravel() for known in inputs), self.mantissas != 0, nothing])
        literal_ones = (self.mantissas == 1) & (self.exponents == 0)
        ones = np.concatenate([*(known.ones.ravel() for known in inputs), literal_ones, nothing])
        bounds = self.bounds
        for level in self.levels(setting):
            products = nonzero[self.terms[terms_of(bounds, level)]].all(axis=1)
            counts = bounds[level + 1] - bounds[level]
            nonzero[first + level] = np.logical_or.reduceat(products, np.cumsum(counts) - counts)
        return Support(*(gathered(known, self.index, False, True) for known in (nonzero, ones)))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _ByLevel(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        target.same_scale(i, self.inputs)
        return target.structured(self, setting)


def terms_of(bounds: Ids, instructions: Ids) -> Ids:
    """The places of the terms of some instructions, one after the other, given where those of each begin and end."""
    ends = bounds[instructions + 1]
    counts = ends - bounds[instructions]
    return np.asarray(np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum()))


class _BlockReader:
    """Some numbers out of several blocks, each once: places, in order."""

    def __init__(self, xp: ArrayLibrary, places: Ids) -> None:
        self._xp, self.places = xp, distinct(places)
        blocks = np.flatnonzero(np.diff(self.places // STRIDE, prepend=-1))
        parts = np.split(self.places, blocks[1:])
        self.parts = [(int(part[0]) // STRIDE, part % STRIDE) for part in parts if len(part)]
        self._indices = [xp.index(positions) for _, positions in self.parts]

    def positions(self, places: Ids) -> Ids:
        """The positions of some places among those that are read."""
        return np.searchsorted(self.places, places)

    def read(self, blocks: Mapping[int, Array]) -> Array:
        """(numbers, rows)."""
        taken = zip(self.parts, self._indices, strict=True)
        return self._xp.concatenate([self._xp.take(blocks[block], index, 0) for (block, _), index in taken])

    def reverse(self, adjoint: Array, into: Adjoints) -> None:
        """Hand derivatives by the numbers on to their blocks."""
        first = 0
        for block, positions in self.parts:
            _add(into, block, positions, adjoint[first : first + len(positions)])
            first += len(positions)


def _add(into: Adjoints, block: int, positions: Ids, adjoint: Array) -> None:
    """Derivatives by numbers of a block; by what is the same for all rows, summed over them."""
    own = adjoint.sum(axis=-1, keepdims=True) if block == TABLES else adjoint
    into.setdefault(block, []).append((positions, own))


class _TermGroup(NamedTuple):
    """Instructions of a level with the same number of terms: pairs of positions among the numbers that it reads."""

    shape: list[int]
    first: Ids  # (terms, instructions)
    second: Ids
    fixed: bool  # the first of each pair is a position in TABLES
    indices: tuple[Array, Array]

    def factors(self, xp: ArrayLibrary, tables: Array, working: Array) -> tuple[Array, Array]:
        """(terms, instructions, rows), twice."""
        first = xp.take(tables if self.fixed else working, self.indices[0], 0)
        return xp.reshape(first, self.shape), xp.reshape(xp.take(working, self.indices[1], 0), self.shape)


class _LevelPlan(NamedTuple):
    block: int
    reading: _BlockReader
    groups: list[_TermGroup]
    ends: list[int]  # the blocks that nothing reads later


class _ByLevel(ArrayStep):
    def __init__(self, operation: Structured, setting: Setting, xp: ArrayLibrary) -> None:
        self._operation, self._inputs, self._xp = operation, operation.inputs, xp
        self._batched = any(setting.batched)
        self._sizes = [setting.size(axes) for axes in setting.axes]
        self._shapes = [setting.shape(axes) for axes in setting.axes]
        self._with_rows = [rows or not self._batched for rows in setting.batched]
        self._shape = [*operation.index.shape, *[-1] * self._batched]
        numbers, self._in_range = xp.literals(operation.mantissas, operation.exponents)
        self._numbers = [numbers, xp.constant(np.zeros((1, 1)))]
        self._places = self._first_places(len(operation.mantissas), len(operation.linear))
        planned = self._planned(operation.levels(setting), operation.first_result(setting))
        result = operation.index.ravel()
        result = np.where(result == ONE, sum(self._sizes), np.where(result == ZERO, len(self._places) - 1, result))
        self._result = _BlockReader(xp, self._places[result])
        self._result_positions = self._result.positions(self._places[result])
        self._index = xp.index(self._result_positions)
        self._levels = self._ended(planned)
        self.scratch = max((3 * group.first.size for level in self._levels for group in level.groups), default=0)

    def _first_places(self, literals: int, instructions: int) -> Ids:
        """The places of all references, and of a 0; those of results are filled in level by level."""
        counts, places = [0, 0], []
        for size, rows in zip(self._sizes, self._with_rows, strict=True):
            places.append(np.arange(size) + counts[rows] + STRIDE * (ROWS if rows else TABLES))
            counts[rows] += size
        places += [np.arange(literals) + counts[False], np.zeros(instructions, dtype=np.int64)]
        return np.concatenate([*places, [literals + counts[False]]])

    def _planned(self, levels: Sequence[Ids], first: int) -> list[_LevelPlan]:
        bounds, factors = self._operation.bounds, self._operation.terms[:, 0]
        counts = np.diff(bounds)
        same = (self._places[factors] < STRIDE) & (factors < first)  # results have no places yet
        fixed = np.logical_and.reduceat(same, bounds[:-1]) if len(counts) else same
        widths = POWERS[np.searchsorted(POWERS, counts)]
        plans = []
        for number, level in enumerate(levels):
            kinds = widths[level] * 2 + fixed[level]
            members = [level[kinds == kind] for kind in sorted(set(kinds.tolist()))]
            plans.append(self._level(FIRST_LEVEL + number, members, bounds, widths, fixed))
            self._places[first + np.concatenate(members)] = (FIRST_LEVEL + number) * STRIDE + np.arange(len(level))
        return plans

    def _level(self, block: int, members: Sequence[Ids], bounds: Ids, widths: Ids, fixed: Mask) -> _LevelPlan:
        padded = [self._padded(own, bounds, int(widths[own[0]])) for own in members]
        alike = [bool(fixed[own[0]]) for own in members]
        wanted = [pairs[1:] if table else pairs for pairs, table in zip(padded, alike, strict=True)]
        reading = _BlockReader(self._xp, np.concatenate([pairs.ravel() for pairs in wanted]))
        groups = []
        for pairs, table in zip(padded, alike, strict=True):
            first, second = pairs[0] if table else reading.positions(pairs[0]), reading.positions(pairs[1])
            indices = self._xp.index(first.ravel()), self._xp.index(second.ravel())
            groups.append(_TermGroup([*first.shape, -1], first, second, table, indices))
        return _LevelPlan(block, reading, groups, [])

    def _padded(self, instructions: Ids, bounds: Ids, width: int) -> Ids:
        """The places of all factors, (2, terms, instructions); what is missing to the width is 0 times something."""
        terms, places = self._operation.terms, self._places
        at, counts = terms_of(bounds, instructions), bounds[instructions + 1] - bounds[instructions]
        pairs = np.empty((2, width, len(instructions)), dtype=np.int64)
        pairs[0] = places[-1]
        pairs[1] = places[terms[bounds[instructions], 1]]
        column = np.repeat(np.arange(len(instructions)), counts)
        row = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs[:, row, column] = places[terms[at]].T
        return pairs

    def _ended(self, levels: list[_LevelPlan]) -> list[_LevelPlan]:
        """With the blocks that end after each level."""
        last = {block: level.block for level in levels for block, _ in level.reading.parts}
        kept = {TABLES, *(block for block, _ in self._result.parts)}
        ends: dict[int, list[int]] = {}
        for block, reader in last.items():
            if block not in kept:
                ends.setdefault(reader, []).append(block)
        return [level._replace(ends=ends.get(level.block, [])) for level in levels]

    def forward(self, frame: Frame) -> Value:
        exponent = total_exponent(frame, self._inputs)
        assert exponent is None or not (self._operation.index == ONE).any(), "a rescaled value has no constant 1"
        result, lost = self._run(frame)
        floor = self._floor(frame, result, lost) if self._batched else None
        return Value(self._xp.reshape(result, self._shape), exponent, floor)

    def floor(self, frame: Frame, value: Value) -> Any:
        return self._floor(frame, *self._run(frame))

    def _floor(self, frame: Frame, result: Array, lost: list[Array]) -> Any:
        return self._xp.listed_floor(frame, self._inputs, result, lost, self._in_range)

    def _run(self, frame: Frame) -> tuple[Array, list[Array]]:
        """The result (entries, rows), and where digits were lost, row by row."""
        blocks, lost = self._given(frame), list[Array]()
        for level in self._levels:
            self._follow(level, blocks, lost)
            for block in level.ends:
                del blocks[block]
        return self._xp.take(self._result.read(blocks), self._index, 0), lost

    def _given(self, frame: Frame) -> Blocks:
        """The blocks of what is the same for all rows, and of what is not."""
        arrays: dict[bool, list[Array]] = {False: [], True: []}
        for i, size, rows in zip(self._inputs, self._sizes, self._with_rows, strict=True):
            arrays[rows].append(self._xp.reshape(frame.values[i].array, [size, -1]))
        blocks = {TABLES: self._xp.concatenate([*arrays[False], *self._numbers])}
        if arrays[True]:
            blocks[ROWS] = self._xp.concatenate(arrays[True])
        return blocks

    def _follow(self, level: _LevelPlan, blocks: Blocks, lost: list[Array]) -> None:
        xp, working, results = self._xp, level.reading.read(blocks), []
        for group in level.groups:
            product, doubt = xp.times(*group.factors(xp, blocks[TABLES], working))
            lost += [] if doubt is None else [doubt]
            results.append(self._reduced(product, *group.shape))
        blocks[level.block] = xp.concatenate(results)

    def _reduced(self, product: Array, width: int, count: int, _: int) -> Array:
        """The sum over the first axis, or the largest, by halves."""
        xp = self._xp
        if not self._operation.largest and width > 1:
            return xp.sum(product, (0,))
        while width > 1:
            width //= 2
            halves = (xp.take(product, xp.index(np.arange(width) + first), 0) for first in (0, width))
            product = xp.maximum(*halves)
        return xp.reshape(product, [count, -1])

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        """Values on the way are made again: to keep them would take more room than all others."""
        assert not self._operation.largest, "a largest product has no derivative here"
        blocks = self._given(backward.frame)
        for level in self._levels:
            self._follow(level, blocks, [])
        flat = adjoint.reshape(self._operation.index.size, -1)  # (entries, rows)
        into: Adjoints = {}
        self._result.reverse(_collected([(self._result_positions, flat)], len(self._result.places)), into)
        for level in reversed(self._levels):
            if level.block in into:
                by = _collected(into.pop(level.block), sum(group.first.shape[1] for group in level.groups))
                self._down(level, blocks, by, into)
            del blocks[level.block]
        self._hand_on(backward, into, adjoint.shape[self._operation.index.ndim :])

    def _down(self, level: _LevelPlan, blocks: Blocks, adjoint: Array, into: Adjoints) -> None:
        """Derivatives by the results of a level, handed on to what it reads."""
        working, adjoints, first = level.reading.read(blocks), [], 0
        for group in level.groups:
            count = group.first.shape[1]
            by = adjoint[first : first + count].reshape(1, count, -1)
            first += count
            a, b = group.factors(self._xp, blocks[TABLES], working)
            by_first = group.first.ravel(), (by * b).reshape(group.first.size, -1)
            if group.fixed:
                _add(into, TABLES, *by_first)
            else:
                adjoints.append(by_first)
            adjoints.append((group.second.ravel(), (by * a).reshape(group.second.size, -1)))
        level.reading.reverse(_collected(adjoints, len(level.reading.places)), into)

    def _hand_on(self, backward: BackwardPass, into: Adjoints, rows: tuple[int, ...]) -> None:
        """Derivatives by entries of the inputs, over the axes of each."""
        for with_rows, block in ((False, TABLES), (True, ROWS)):
            inputs = [k for k, own in enumerate(self._with_rows) if own is with_rows]
            more = 0 if with_rows else len(self._operation.mantissas) + 1  # a 0 follows the literals
            if inputs and block in into:
                by_entry, first = _collected(into[block], sum(self._sizes[k] for k in inputs) + more), 0
                for k in inputs:
                    own = by_entry[first : first + self._sizes[k]]
                    backward.add(self._inputs[k], own.reshape([*self._shapes[k], *(rows if with_rows else ())]))
                    first += self._sizes[k]


def _collected(adjoints: Sequence[tuple[Ids, Array]], size: int) -> Array:
    """Derivatives added up by position: (size, rows)."""
    rows = max(adjoint.shape[1] for _, adjoint in adjoints)
    adjoint = np.concatenate([np.broadcast_to(own, (len(own), rows)) for _, own in adjoints])
    positions = np.concatenate([own for own, _ in adjoints])
    return added_up(adjoint, positions[:, None] * rows + np.arange(rows), size * rows).reshape(size, rows)
