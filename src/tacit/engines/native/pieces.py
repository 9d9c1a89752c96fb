"""A tape cut into pieces of bounded size, each to become one function: so the time to compile grows with the tape only.

Values that one piece makes and another reads are kept in memory in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.engines.native.forward import Terms
from tacit.engines.tape import instructions as k
from tacit.engines.tape.slots import allocate
from tacit.engines.tape.tape import READS, Tape, extremes_head

PIECE_TERMS = 200  # of a piece: code that a processor keeps decoded, and that LLVM orders well
WHOLE_TERMS = 250  # up to which a tape stays whole


@dataclass(frozen=True)
class TapeStep:
    """One instruction: its kind, what it writes, and its terms."""

    kind: int
    dst: int
    terms: Terms

    @property
    def reads(self) -> set[int]:
        pattern, terms = READS[self.kind], self.terms
        slots = set()
        if self.kind == k.EXTREMES:
            head = extremes_head(terms)
            slots, terms = {old for _, old in terms[1:head] if old >= 0}, terms[head:]
        for i, term in enumerate(terms):
            is_slot = pattern[min(i, len(pattern) - 1)]
            slots |= {number for number, slot in zip(term, is_slot, strict=True) if slot and number >= 0}
        return slots

    @property
    def writes(self) -> set[int]:
        if self.kind == k.SCALE:
            return {self.dst, self.terms[0][0]}
        if self.kind == k.EXTREMES:
            return {new for new, _ in self.terms[1 : extremes_head(self.terms)]}
        return set() if self.kind == k.OUTPUT else {self.dst}


@dataclass(frozen=True)
class CodePiece:
    """Some instructions one after the other, and the slots that are read after them, as they left them."""

    steps: list[TapeStep]
    kept: frozenset[int]


def steps_of(tape: Tape) -> Iterator[TapeStep]:
    """The instructions of a tape one by one."""
    terms = tape.terms.tolist()
    for kind, dst, first, end in tape.instructions.tolist():
        yield TapeStep(kind, dst, terms[first:end])


def pieces_of(tape: Tape) -> list[CodePiece]:
    """The pieces of a tape, on which every value has its own slot, each with about so many terms at most."""
    steps = list(steps_of(tape))
    groups: list[list[TapeStep]] = [[]]
    size = 0
    most = WHOLE_TERMS if len(tape.terms) <= WHOLE_TERMS else PIECE_TERMS
    for step in deep(steps):
        if size and size + len(step.terms) > most:
            groups.append([])
            size = 0
        groups[-1].append(step)
        size += len(step.terms)
    pieces: list[CodePiece] = []
    live: set[int] = set()
    for group in reversed(groups):
        written = {slot for step in group for slot in step.writes}
        pieces.append(CodePiece(group, frozenset(written & live)))
        for step in reversed(group):
            live = (live - step.writes) | step.reads
    return pieces[::-1]


def deep(steps: list[TapeStep]) -> list[TapeStep]:
    """Instructions in an order that keeps few values alive: the most demanding operand first (Sethi and Ullman)."""
    maker = {slot: i for i, step in enumerate(steps) for slot in step.writes}
    sources = [[maker[slot] for slot in sorted(step.reads) if slot in maker] for step in steps]
    need: list[int] = []
    for own in sources:
        needs = sorted((need[i] for i in own), reverse=True)
        need.append(max((n + i for i, n in enumerate(needs)), default=0) or 1)

    def waiting(i: int) -> Iterator[int]:
        """What step i reads, the most demanding first; looked up once, since some read ten thousand values."""
        return iter(sorted(sources[i], key=need.__getitem__, reverse=True))

    order: list[int] = []
    done = [False] * len(steps)
    for last, step in enumerate(steps):
        stack = [(last, waiting(last))] if step.kind == k.OUTPUT else []
        while stack:
            i, left = stack[-1]
            first = next((j for j in left if not done[j]), None)
            if first is not None:
                stack.append((first, waiting(first)))
                continue
            stack.pop()
            if not done[i]:
                done[i] = True
                order.append(i)
    return [steps[i] for i in order]


def memory_of(pieces: list[CodePiece]) -> tuple[dict[int, int], int]:
    """Where the values that outlive their piece are kept, and how many places that takes: free ones are used again."""
    last = {slot: i for i, piece in enumerate(pieces) for step in piece.steps for slot in step.reads}
    kept = [(i, slot) for i, piece in enumerate(pieces) for slot in sorted(piece.kept)]
    places, count = allocate([i for i, _ in kept], [last[slot] for _, slot in kept], len(pieces), [], 0)
    return dict(zip((slot for _, slot in kept), places, strict=True)), count
