"""Tapes: instructions as flat arrays, what they refer to, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, scaled
from tacit.compiler.operations import Axis
from tacit.compiler.operations.axes import Ids
from tacit.engines.tape import instructions as k
from tacit.engines.tape.traceback_plan import TracebackPlan

ONE_CONSTANT, ZERO_CONSTANT = 0, 1

# the slots that instructions read: the first and the second numbers of their terms
ALL, FIRST, SECOND, NONE = (True, True), (True, False), (False, True), (False, False)
READS = {
    k.INPUT: (NONE,),
    k.INDEX: (NONE,),
    k.TABLE: (SECOND,),
    k.LINEAR: (SECOND,),
    k.PRODUCT: (ALL,),
    k.TEST: (ALL,),
    k.WEIGHT: (ALL, ALL, NONE),
    k.MIX: (FIRST, ALL),
    k.SCALE: (SECOND, FIRST),
    k.OUTPUT: (FIRST,),
    k.LARGEST_LINEAR: (SECOND,),
    k.LARGEST_PRODUCT: (ALL,),
    k.EXTREMES: (ALL,),  # but for its head: see `extremes_head`
}


def extremes_head(terms: Sequence[Sequence[int]]) -> int:
    """How many of the terms of EXTREMES come before the entries of the table: see `opcodes`."""
    return 1 + 3 * terms[0][0]


class Literals(NamedTuple):
    """Constants that the structure gives: the first of them is where, and they are mantissas * 2**exponents."""

    first: int
    mantissas: Floats
    exponents: Ids


@dataclass(frozen=True, eq=False)
class Tape:
    """Instructions and what they refer to.

    `constants` lists (value, first constant) for the program's values that the tape reads, `computed` those of them
    that are not tables as they were given, `literals` those that the structure gives, `slopes` the testing nodes whose
    gamma is a constant, and `pinned` (count, 2) the slots that hold constants throughout, with their constant.
    `inputs` and `codes` name the variables with evidence, in the order of their rows.
    """

    instructions: NDArray[np.int32]
    terms: NDArray[np.int32]
    slots: int
    constant_count: int
    constants: tuple[tuple[int, int], ...]
    computed: tuple[int, ...]
    literals: tuple[Literals, ...]
    slopes: tuple[tuple[str, int], ...]
    pinned: NDArray[np.int64]
    inputs: tuple[str, ...]
    codes: tuple[str, ...]
    states: int  # the first rows of the output are the joint, the next one, if it was rescaled, its exponent
    scaled: bool
    outputs: int
    decided: tuple[tuple[str, int, tuple[int, ...]], ...]  # testing node, first row of the output, parent states
    traceback: TracebackPlan | None
    axes: tuple[Axis, ...]  # that get states on it

    @property
    def work(self) -> int:
        """Multiply-adds per row, about."""
        return len(self.terms)

    def structural_constants(self, dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
        """Room for all constants, with those filled in that do not depend on parameters."""
        constants = np.ones(self.constant_count, dtype=dtype)
        constants[ZERO_CONSTANT] = 0.0
        for first, mantissas, exponents in self.literals:
            constants[first : first + len(mantissas)] = scaled(mantissas, exponents, constants.dtype)
        return constants


class TapeWriter:
    """Instructions one after the other, with their terms, and the places of constants."""

    def __init__(self) -> None:
        self._instructions: list[Ids] = [np.empty((0, 4), dtype=np.int64)]
        self._terms: list[Ids] = [np.empty((0, 2), dtype=np.int64)]
        self.term_count = 0
        self.constant_count = 2  # the first two are 1 and 0
        self.literals: list[Literals] = []

    def emit(self, kind: int, dst: Ids, *columns: tuple[Ids | int, Ids | int]) -> None:
        """Instructions of one kind, each with a term of every column: its two numbers, or all that it has."""
        terms = np.empty((len(dst), len(columns), 2), dtype=np.int64)
        for t, (first, second) in enumerate(columns):
            terms[:, t, 0], terms[:, t, 1] = first, second
        self.emit_sums(kind, dst, terms.reshape(-1, 2), len(columns))

    def emit_sums(self, kind: int | Ids, dst: Ids, terms: Ids, count: int | Ids) -> None:
        """Instructions, of one kind or each of its own: `terms` (all, 2), `count` of them for each."""
        kinds, counts = np.full(len(dst), kind), np.full(len(dst), count)
        end = self.term_count + np.cumsum(counts)
        self._instructions.append(np.stack([kinds, dst, end - counts, end], axis=1))
        self._terms.append(terms)
        self.term_count += len(terms)

    def reserve(self, count: int) -> int:
        """The first of some new constants."""
        first, self.constant_count = self.constant_count, self.constant_count + count
        return first

    def literal(self, mantissas: Floats, exponents: Ids) -> Ids:
        """Constants that the structure gives."""
        first = self.reserve(len(mantissas))
        self.literals.append(Literals(first, mantissas, exponents))
        return first + np.arange(len(mantissas))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All instructions, (count, 4), and all terms, (count, 2)."""
        instructions, terms = np.concatenate(self._instructions), np.concatenate(self._terms)
        return instructions.astype(np.int32), terms.astype(np.int32)
