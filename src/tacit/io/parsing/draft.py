"""A network as a file states it: nodes in any order, numbers not yet checked. `build` makes a `Network` of it.

The readers of BIF, XMLBIF, UAI and NET all end here, so that order, sums, sizes and names are checked in one place.
"""

from __future__ import annotations

import graphlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import FormatError, TableError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import large, plural
from tacit.base.warnings import warn
from tacit.io.parsing.content import check_nodes, is_packed
from tacit.io.parsing.extension import decode, visible_table
from tacit.io.parsing.scanner import Position, fault, show
from tacit.model.as_dict import cpt_from_dict
from tacit.model.cpt import CPT
from tacit.model.elements.distributions import SUM_TOLERANCE, distributions
from tacit.model.elements.variable import Label, describe
from tacit.query.network import Network

MAX_MISS = 1e-4 + 1e-9  # by how much a row may miss 1: numbers of four digits do, 0.3333 three times exactly
MAX_CHANGE = 1e-6 + SUM_TOLERANCE  # of a table: by another program that writes six digits, and by scaling its rows
MAX_PARENTS = 63  # NumPy's arrays have at most 64 axes


class RoundingWarning(UserWarning):
    """Rows of a file sum to 1 only roughly, and were scaled."""


@dataclass
class Declared:
    """A variable: its states as written, and the properties that tacit understands, still encoded or `decoded`."""

    place: Position
    states: Sequence[Label]
    properties: dict[str, str] = field(default_factory=dict)
    decoded: dict[str, Any] = field(default_factory=dict)
    bins: tuple[float, ...] | None = None

    def property(self, key: str, default: Any) -> Any:
        return self.decoded[key] if key in self.decoded else _property(self.properties, key, default)


@dataclass
class Defined:
    """A CPT: the numbers of all rows, the last parent's states varying faster, the node's own fastest."""

    place: Position
    parents: Sequence[str]
    numbers: Floats
    rows: Sequence[Position] | Callable[[int], Position] = ()  # the places of rows, or a function that finds them


@dataclass
class Draft:
    """What a file says, by the names it uses; `variables` are in the order of its declarations."""

    source: str
    name: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Declared] = field(default_factory=dict)
    definitions: dict[str, Defined] = field(default_factory=dict)

    def error(self, place: Position, problem: str) -> FormatError:
        return fault(self.source, place, problem)

    def declare(self, name: str, declared: Declared) -> None:
        if name in self.variables:
            raise self.error(declared.place, f"variable {show(name)} is declared twice")
        if not declared.states:
            raise self.error(declared.place, f"variable {show(name)} has no states")
        if len(set(declared.states)) < len(declared.states):
            raise self.error(declared.place, f"variable {show(name)} has a state twice")
        self.variables[name] = declared
        self.check_nodes(declared.place, len(self.variables))

    def check_nodes(self, place: Position, count: int) -> None:
        """Refuse a file with too many variables or CPTs."""
        check_nodes(count, lambda problem: self.error(place, problem))

    def define(self, name: str, defined: Defined) -> None:
        if name in self.definitions:
            raise self.error(defined.place, f"node {show(name)} has two CPTs")
        self.definitions[name] = defined
        self.check_nodes(defined.place, len(self.definitions))

    def shape(self, place: Position, name: str, parents: Sequence[str]) -> tuple[int, ...]:
        """The cardinalities of the parents and of the node, which must all be declared."""
        for used in (name, *parents):
            if used not in self.variables:
                raise self.error(place, f"node {show(name)}: there is no variable {show(used)}")
        if len(parents) > MAX_PARENTS:
            raise self.error(place, f"node {show(name)} has {len(parents):,} parents; at most {MAX_PARENTS} are read")
        return tuple(len(self.variables[used].states) for used in (*parents, name))


def build(draft: Draft) -> Network:
    """The network of a draft. Rows that miss the sum 1 by up to 1e-4 are scaled, with a warning."""
    for name, declared in draft.variables.items():
        if name not in draft.definitions:
            raise draft.error(declared.place, f"node {show(name)} has no CPT")
    shapes = {name: draft.shape(defined.place, name, defined.parents) for name, defined in draft.definitions.items()}
    order = _parents_first(draft)
    builder = _Builder(draft, shapes)
    builder.scale(order)
    for name in order:
        builder.add(name)
    if builder.scaled:
        first = next(name for name in order if name in builder.sums)
        row, total = builder.sums[first]
        others = f" (and {plural(builder.scaled - 1, 'other row')})" if builder.scaled > 1 else ""
        problem = builder.error(first, row, f"sums to {total:.6g}")
        warn(f"{problem}; scaled to sum to 1{others}", RoundingWarning)
    return builder.net


class _Builder:
    def __init__(self, draft: Draft, shapes: dict[str, tuple[int, ...]]) -> None:
        self.draft, self.shapes = draft, shapes
        with _located(draft, Position(1, 1)):
            self.net = Network(
                _property(draft.properties, "tacit_name", draft.name or stem(draft.source)),
                _property(draft.properties, "tacit_selection", "ancestral"),
            )
        self.names: dict[str, str] = {}  # of the nodes: in the file -> in the network
        self.scaled = 0  # rows
        self.sums: dict[str, tuple[int, float]] = {}  # by node: a scaled row, the first of those with as many states

    def scale(self, order: Sequence[str]) -> None:
        """Scale the rows that must and may be: of all tables together, since a file may have many small ones."""
        alike: dict[int, list[str]] = {}  # by the number of states
        for name in order:
            shape = self.shapes[name]
            fits = self.draft.definitions[name].numbers.size == math.prod(shape)  # `add` reports what does not
            if fits and "tacit_cpt" not in self.draft.variables[name].properties:
                alike.setdefault(shape[-1], []).append(name)
        for states, names in alike.items():
            tables = [self.draft.definitions[name].numbers for name in names]
            numbers = np.concatenate(tables)
            rough, sums = _scale(numbers.reshape(-1, states))
            self.scaled += len(rough)
            first, start = int(rough[0]) * states if len(rough) else -1, 0
            for name, table in zip(names, tables, strict=True):
                stop = start + table.size
                self.draft.definitions[name].numbers = numbers[start:stop]
                if start <= first < stop:
                    self.sums[name] = (first - start) // states, float(sums[0])
                start = stop

    def add(self, name: str) -> None:
        declared, defined, shape = self.draft.variables[name], self.draft.definitions[name], self.shapes[name]
        if defined.numbers.size != math.prod(shape):
            count, expected = plural(defined.numbers.size, "number"), large(math.prod(shape))
            raise self.draft.error(defined.place, f"node {show(name)}: the table has {count}, expected {expected}")
        table = defined.numbers.reshape(shape)
        with _located(self.draft, declared.place):
            self.names[name] = declared.property("tacit_name", name)
            states = declared.property("tacit_states", list(declared.states))
            if not isinstance(states, list) or len(states) != shape[-1]:
                raise FormatError(f"tacit_states must be a list of {plural(shape[-1], 'label')}")
            kept = declared.property("tacit_cpt", None)
            cpt = None if kept is None else cpt_from_dict(kept, "tacit_cpt", len(defined.parents))
        added = self._plain(name, table) if cpt is None else cpt
        with _located(self.draft, defined.place):
            parents = [self.names[parent] for parent in defined.parents]
            self.net.add(self.names[name], parents, states, added, bins=declared.bins)
            if cpt is not None and abs(visible_table(self.net, self.names[name]) - table).max() > MAX_CHANGE:
                problem = f"node {show(name)}: the table is not that of its property tacit_cpt"
                raise FormatError(f"{problem}; if another program changed the table, remove the property")

    def _plain(self, name: str, table: Floats) -> CPT:
        """A table as a CPT; an error if it holds what cannot be scaled."""
        try:
            return CPT(table)
        except TableError:
            pass
        rows = table.reshape(-1, table.shape[-1])
        for row, own in np.argwhere(~((rows >= 0) & (rows <= 1 + MAX_MISS)))[:1].tolist():
            raise self.error(name, row, f"holds {rows[row, own]:g}, which is not a probability")
        total = rows.sum(axis=-1)
        row = int(np.argmax(abs(total - 1) > MAX_MISS))
        raise self.error(name, row, f"sums to {total[row]:.6g}, expected 1")

    def error(self, name: str, row: int, problem: str) -> FormatError:
        """An error in a row, by its number, at the place of the row if it has one."""
        defined, shape = self.draft.definitions[name], self.shapes[name][:-1]
        place = defined.place
        if callable(defined.rows):
            place = defined.rows(row)
        elif len(defined.rows) == math.prod(shape):
            place = defined.rows[row]
        parents = [self.net.variable(self.names[parent]) for parent in defined.parents]
        state = [int(code) for code in np.unravel_index(row, shape)]
        where = f"row {describe(parents, state)}" if parents else "the table"
        return self.draft.error(place, f"node {show(name)}: {where} {problem}")


def _scale(rows: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Scale the rows, in place, that miss the sum 1 by little; the numbers and sums of those beyond `SUM_TOLERANCE`."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is no probability is left alone
        total = rows.sum(axis=-1)
        miss = abs(total - 1)
        sound = ((rows >= 0) & (rows <= 1 + MAX_MISS)).all(axis=-1) & (miss <= MAX_MISS)
    rough = sound & ((miss > SUM_TOLERANCE) | (rows > 1).any(axis=-1))
    rows[rough] /= total[rough, None]
    if sound.any():
        rows[sound] = distributions(rows[sound], "table")
    return np.flatnonzero(rough), total[rough]


def _property(properties: dict[str, str], key: str, default: Any) -> Any:
    return decode(properties[key]) if key in properties else default


@contextmanager
def _located(draft: Draft, place: Position) -> Iterator[None]:
    """Errors that know nothing of the file get a place in it."""
    try:
        yield
    except TacitError as error:
        raise draft.error(place, str(error)) from None


def _parents_first(draft: Draft) -> list[str]:
    """The names in the order of their declarations, save that parents come before their children."""
    parents = {name: draft.definitions[name].parents for name in draft.variables}
    try:
        graphlib.TopologicalSorter(parents).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1]
        problem = f"the parents form a cycle: {' -> '.join(map(show, cycle))}"
        raise draft.error(draft.definitions[cycle[0]].place, problem) from None
    order: dict[str, None] = {}
    for name in parents:
        stack = [name]
        while stack:
            waiting = [parent for parent in parents[stack[-1]] if parent not in order]
            if waiting:
                stack.extend(waiting)
            else:
                order.setdefault(stack.pop())
    return list(order)


def stem(source: str) -> str:
    """A name for a network whose file gives none: that of the file, without folders and suffixes.

    >>> stem("models/alarm.bif.gz")
    'alarm'
    """
    name = Path(source).name
    unpacked = name[: -len(".gz")] if is_packed(name) else name
    return unpacked.rpartition(".")[0] or name
