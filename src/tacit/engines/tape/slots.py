"""Slots of a tape: which values are in them, and when they are free for others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit.compiler.operations.operation import Ids, Mask

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
        """Some slots that are free."""
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

    def in_turn(self, last: Ids, made: Mask) -> Ids:
        """Slots for the results of instructions, each free again after the last one that reads it."""
        slots = np.full(len(last), NOTHING, dtype=np.int64)
        if not self._reuse:
            slots[made] = self.new(int(made.sum()))
            return slots
        which = np.flatnonzero(made)
        by_end = which[np.argsort(last[which], kind="stable")]
        ending, ends = by_end.tolist(), [*last[by_end].tolist(), len(last)]
        slot_of, free, fresh, ended = slots.tolist(), self._free, self.count, 0
        for i in which.tolist():
            while ends[ended] < i:
                free.append(slot_of[ending[ended]])
                ended += 1
            if free:
                slot_of[i] = free.pop()
            else:
                slot_of[i] = fresh
                fresh += 1
        self.count = fresh
        free += [slot_of[i] for i, end in zip(ending[ended:], ends[ended:], strict=False) if end < len(last)]
        return np.array(slot_of, dtype=np.int64)
