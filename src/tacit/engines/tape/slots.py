"""Slots of a tape: which values are in them, and when they are free for others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.compiler.operations.axes import Ids, Mask

NOTHING = -1  # an entry that is known to be 0
ONES = 0  # the slot that always holds 1


class Slots:
    """The slots of a tape. With `reuse`, one is used again after the last instruction that needs it."""

    def __init__(self, reuse: bool) -> None:
        self._reuse, self.count = reuse, 1
        self._free: list[int] = []
        self._uses: dict[int, int] = {}  # how many live values refer to a slot
        self.pinned: dict[int, int] = {}  # the slots that hold constants throughout, by constant

    def new(self, count: int) -> Ids:
        taken = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = range(self.count, self.count + count - len(taken))
        self.count += len(fresh)
        return np.array([*taken, *fresh], dtype=np.int64)

    def free(self, slots: Iterable[int]) -> None:
        """Give back slots that no value refers to."""
        if self._reuse:
            self._free.extend(slots)

    def retain(self, slots: Iterable[int]) -> None:
        """A value refers to some slots."""
        for slot in slots:
            self._uses[slot] = self._uses.get(slot, 0) + 1

    def release(self, slots: Iterable[int]) -> None:
        """A value that refers to some slots is not needed any more."""
        for slot in slots:
            self._uses[slot] -= 1
            if not self._uses[slot]:
                self.free([slot])

    def hold(self, constant: int) -> int:
        """The slot that holds a constant throughout."""
        if constant not in self.pinned:
            self.pinned[constant] = self.count
            self.retain([self.count])  # for good
            self.count += 1
        return self.pinned[constant]

    def in_turn(self, last: Ids, computed: Mask) -> Ids:
        """Slots for the results of instructions, each free again after the last one that reads it."""
        slots = np.full(len(last), NOTHING, dtype=np.int64)
        if not self._reuse:
            slots[computed] = self.new(int(computed.sum()))
            return slots
        which = np.flatnonzero(computed)
        lasts = last[which].tolist()
        slots[which], self.count = allocate(which.tolist(), lasts, len(last), self._free, self.count)
        return slots


def allocate(
    starts: Sequence[int], lasts: Sequence[int], end: int, free: list[int], count: int
) -> tuple[list[int], int]:
    """Places for values, each `free` again after the last time that it is read, and how many places there are then.

    Values begin one after the other; those that are not read at the `end` have given their places back by then.
    """
    order = sorted(range(len(lasts)), key=lasts.__getitem__)
    ends, ended, places = [*(lasts[i] for i in order), math.inf], 0, list[int]()
    for start in starts:
        while ends[ended] < start:
            free.append(places[order[ended]])
            ended += 1
        if free:
            places.append(free.pop())
        else:
            places.append(count)
            count += 1
    free += [places[i] for i in order[ended:] if lasts[i] < end]
    return places, count
