"""The array rules at work: a program planned for one array library, and evaluated on some numbers and evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tacit.compiler.program import Program
from tacit.operations import Axes, Parameter, Select, Share
from tacit.operations.base import Array, Arrays, Step, Value


class Steps:
    """How to run the operations of a program, whatever its numbers: each worked out on first use.

    `once` are the arrays of what depends on parameters alone, `rows` those of what depends on evidence.
    """

    def __init__(self, program: Program, once: Arrays, rows: Arrays) -> None:
        self.program, self._once, self._rows = program, once, rows
        self._steps: dict[int, Step] = {}

    def step(self, i: int) -> Step:
        """How to run operation i."""
        step = self._steps.get(i)
        if step is None:
            xp = self._rows if self.program.batched[i] else self._once
            step = self.program.operations[i].step(self.program.setting(i), xp)
            step.place = i
            self._steps[i] = step
        return step


class Fixed:
    """What depends on parameters alone: values and, on first use, tables as their readers want them, and bounds."""

    def __init__(self, values: Mapping[int, Value] | None = None) -> None:
        self.values = dict(values or {})
        self.ready: dict[int, Array] = {}
        self.floors: dict[int, Any] = {}

    def without(self, stale: Iterable[int], readers: Iterable[int]) -> Fixed:
        """A copy that forgets some values, and how their readers want them."""
        kept = Fixed(self.values)
        kept.ready, kept.floors = dict(self.ready), dict(self.floors)
        for i in stale:
            kept.floors.pop(i, None)
            kept.ready.pop(i, None)
        for i in readers:
            kept.ready.pop(i, None)
        return kept


class Evaluation:
    """One evaluation of a program: a frame of the operations' rules."""

    def __init__(
        self,
        steps: Steps,
        tables: Fixed,
        parameters: Callable[[str, str], Array],
        gammas: Mapping[str, Any],
        likelihood: Callable[[str], Array | None] = lambda variable: None,
        states: Callable[[str], Array] | None = None,
        table_floor: Callable[[Evaluation, int], Any] | None = None,
        through: bool = True,
    ) -> None:
        self.steps, self.tables, self.values, self.through = steps, tables, dict(tables.values), through
        self.table, self.likelihood = parameters, likelihood
        self._gammas, self._states, self._table_floor = gammas, states, table_floor
        self._places: dict[Axes, Array] = {}

    def gamma(self, node: str) -> Any:
        return self._gammas[node]

    def place(self, variables: Axes, cards: Sequence[int]) -> Array:
        place = self._places.get(variables)
        if place is None:
            assert self._states is not None, "no evidence"
            place = self._states(variables[0])
            for name, card in zip(variables[1:], cards[1:], strict=True):
                place = place * card + self._states(name)
            self._places[variables] = place
        return place

    def ready(self, step: Step) -> Array:
        found = self.tables.ready.get(step.place)
        if found is None:
            assert step.table is not None, "a step without a table"
            found = self.tables.ready[step.place] = step.arranged(self.values[step.table].array)
        return found

    def floor(self, i: int) -> Any:
        floor = self.values[i].floor
        if floor is not None or self._table_floor is None:
            return floor
        floors, waiting = self.tables.floors, [i]
        while waiting:  # no recursion: the tables of a long chain are made of each other, thousands deep
            j = waiting[-1]
            below = [] if j in floors else [k for k in self.steps.program.operations[j].inputs if self._unbounded(k)]
            if not below and j not in floors:
                floors[j] = self._table_floor(self, j)
            if not below:
                waiting.pop()
            waiting += below
        return floors[i]

    def _unbounded(self, i: int) -> bool:
        return self.values[i].floor is None and i not in self.tables.floors

    def follow(self, operations: Iterable[int], ends: Sequence[Sequence[int]] | None = None) -> None:
        """Run some operations; values that no later one needs are dropped, where `ends` names them."""
        values, batched, step = self.values, self.steps.program.batched, self.steps.step
        for i in operations:
            values[i] = step(i).forward(self)
            if ends is not None:
                for j in ends[i]:
                    if batched[j]:
                        del values[j]


def changed(program: Program, keys: frozenset[Any]) -> list[int]:
    """The values without rows that depend on some tables (node, part) and slopes (node), in order."""
    found: dict[int, None] = {}
    for i, operation in enumerate(program):
        own = isinstance(operation, Parameter) and (operation.node, operation.part) in keys
        own = own or (isinstance(operation, Select | Share) and operation.node in keys)
        if not program.batched[i] and (own or any(j in found for j in operation.inputs)):
            found[i] = None
    return list(found)
