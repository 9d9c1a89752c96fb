"""Sums of products of single entries: what structured elimination leaves of a part of a network.

Where a contraction runs over whole tables, this operation is a list of instructions on numbers. It stands for as many
contractions as the elimination had steps, without the entries that are 0 or that come out equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.arrangement import gathered
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep
from tacit.compiler.operations.axes import ONE, Array, Axes, Axis, Ids, Key, Mask, Setting
from tacit.compiler.operations.by_level import ByLevel, LevelledInstructions, terms_of
from tacit.compiler.operations.operation import Operation, Support, Target

SHOWN = 8  # inputs that are named where an operation is shown


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
        shown = " ".join(f"v{i}" for i in self.inputs[:SHOWN])
        more = f" ... ({len(self.inputs)} inputs)" if len(self.inputs) > SHOWN else ""
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
        found, ready = [], np.flatnonzero(uses == 0)
        while len(ready):
            found.append(ready)
            taken = np.sort(read[terms_of(bounds, ready)], axis=None)
            taken = taken[np.searchsorted(taken, 0) :]
            ends = np.flatnonzero(np.append(taken[1:] != taken[:-1], True)) if len(taken) else taken
            which = taken[ends]
            uses[which] -= np.diff(ends, prepend=-1)
            ready = which[uses[which] == 0]
        return found[::-1]

    def shortened(self, setting: Setting, most: int) -> Structured:
        """The same with at most so many terms for each instruction: sums of parts, then the sum of these.

        For operations with rows.
        """
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
        changing = self._changing(setting)
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

    def _changing(self, setting: Setting) -> Mask:
        """Which references depend on rows."""
        inputs = [np.full(setting.size(axes), rows) for axes, rows in zip(setting.axes, setting.batched, strict=True)]
        literals = np.zeros(len(self.mantissas), dtype=np.bool_)
        return np.concatenate([*inputs, literals, np.full(len(self.linear), any(setting.batched))])

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
        first, levels = self.first_result(setting), self.levels(setting)
        instructions = LevelledInstructions(self.bounds, self.terms, levels, first, self.index, self.largest)
        return ByLevel(self.inputs, (self.mantissas, self.exponents), instructions, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        target.same_scale(i, self.inputs)
        return target.structured(self, setting)
