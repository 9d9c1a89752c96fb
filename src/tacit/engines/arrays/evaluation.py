"""The array rules at work: a program planned for one array library, and evaluated on some numbers and evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tacit.compiler.operations import Axes, Parameter, Select, Share
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, Value
from tacit.compiler.operations.axes import Array
from tacit.compiler.program import Program


class Steps(dict[int, ArrayStep]):
    """How to run each operation, on first use worked out for arrays of parameters (`once`), or of evidence (`rows`)."""

    def __init__(self, program: Program, once: ArrayLibrary, rows: ArrayLibrary) -> None:
        super().__init__()
        self.program, self._once, self._rows = program, once, rows

    def __missing__(self, i: int) -> ArrayStep:
        xp = self._rows if self.program.batched[i] else self._once
        step = self.program.operations[i].step(self.program.setting(i), xp)
        step.place = i
        self[i] = step  # complete: other threads may be reading
        return step


@dataclass
class Fixed:
    """What depends on parameters alone: values and, on first use, tables as their readers want them, and bounds."""

    values: Mapping[int, Value] = field(default_factory=dict)
    ready: dict[int, Array] = field(default_factory=dict)
    floors: dict[int, Any] = field(default_factory=dict)

    def without(self, gone: Collection[int]) -> Fixed:
        """A copy without the bounds of some values, and the tables of some readers."""
        ready, floors = ({i: x for i, x in entries.items() if i not in gone} for entries in (self.ready, self.floors))
        return Fixed(self.values, ready, floors)


class Sources(NamedTuple):
    """Where an evaluation gets numbers and bounds of tables, and whether derivatives pass `through` selections."""

    table: Callable[[str, str], Array]
    gammas: Mapping[str, Any]
    likelihood: Callable[[str], Array | None] = lambda variable: None
    states: Callable[[str], Array] | None = None
    table_floor: Callable[[ArrayEvaluation, int], Any] | None = None
    through: bool = True
    known_floor: Callable[[str], Any] = lambda variable: None  # of likelihoods, before they are looked at


class ArrayEvaluation:
    """One evaluation of a program: a frame of the operations' rules."""

    def __init__(self, steps: Steps, tables: Fixed, sources: Sources) -> None:
        self.steps, self.tables, self.values = steps, tables, dict(tables.values)
        self.table, gammas, self.likelihood, self._states, self._table_floor, self.through, known_floor = sources
        self.gamma, self.likelihood_floor = gammas.__getitem__, known_floor
        self._places: dict[Axes, Array] = {}

    def place(self, variables: Axes, cards: Sequence[int]) -> Array:
        place = self._places.get(variables)
        if place is None:
            assert self._states is not None, "no evidence"
            place = self._states(variables[0])
            for name, card in zip(variables[1:], cards[1:], strict=True):
                place = place * card + self._states(name)
            self._places[variables] = place
        return place

    def ready(self, step: ArrayStep) -> Array:
        ready = self.tables.ready.get(step.place)
        if ready is None:
            assert step.table is not None, "a step without a table"
            ready = self.tables.ready[step.place] = step.arranged(self.values[step.table].array)
        return ready

    def floor(self, i: int) -> Any:
        floor = self.values[i].floor
        if floor is not None or self._table_floor is None:
            return floor
        floors = self.tables.floors
        waiting = [] if i in floors else [i]
        while waiting:  # no recursion: the tables of a long chain are made of each other, thousands deep
            j = waiting.pop()
            inputs = self.steps.program.operations[j].inputs
            below = [k for k in inputs if self.values[k].floor is None and k not in floors]
            if below:
                waiting += [j, *below]
            elif j not in floors:
                floors[j] = self._table_floor(self, j)
        return floors[i]

    def follow(self, operations: Iterable[int], ends: Sequence[Sequence[int]] | None = None) -> None:
        """Run some operations; after each, drop the values that `ends` names."""
        values, steps = self.values, self.steps
        for i in operations:
            values[i] = steps[i].forward(self)
            for j in ends[i] if ends else ():
                del values[j]


def changed(program: Program, keys: frozenset[Any]) -> list[int]:
    """The values without rows that depend on some tables (node, part) and slopes (node), in order."""
    stale: dict[int, None] = {}
    for i, operation in enumerate(program):
        reads = isinstance(operation, Parameter) and (operation.node, operation.part) in keys
        reads = reads or (isinstance(operation, Select | Share) and operation.node in keys)
        if not program.batched[i] and (reads or any(j in stale for j in operation.inputs)):
            stale[i] = None
    return list(stale)
