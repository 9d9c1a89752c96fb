"""A network as a file states it: nodes in any order, numbers not yet checked. `build` makes a `Network` of it.

The readers of BIF, XMLBIF, UAI and NET all end here, so that order, sums, sizes and names are checked in one place.
"""

from __future__ import annotations

import graphlib
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import FormatError, TacitError
from tacit.floats import Floats
from tacit.io.content import check_nodes, is_packed
from tacit.io.extension import decode, visible_table
from tacit.io.scanner import Place, fault, show
from tacit.network import Network
from tacit.plain import cpt_from_dict
from tacit.tables import SUM_TOLERANCE
from tacit.variable import Label, describe
from tacit.words import large, plural

MAX_MISS = 1e-4 + 1e-9  # by how much a row may miss 1: numbers of four digits do, 0.3333 three times exactly
MAX_CHANGE = 1e-6 + SUM_TOLERANCE  # of a table: by another program that writes six digits, and by scaling its rows
MAX_PARENTS = 63  # NumPy's arrays have at most 64 axes


class RoundingWarning(UserWarning):
    """Rows of a file sum to 1 only roughly, and were scaled."""


@dataclass
class Declared:
    """A variable: its states as written, and the properties that tacit understands, still encoded."""

    place: Place
    states: Sequence[Label]
    properties: dict[str, str] = field(default_factory=dict)


@dataclass
class Defined:
    """A CPT: the numbers of all rows, the last parent's states varying faster, the node's own fastest.

    `rows` holds the place of each row, where they have places of their own.
    """

    place: Place
    parents: Sequence[str]
    numbers: Floats
    rows: Sequence[Place] = ()


@dataclass
class Draft:
    """What a file says, by the names it uses; `variables` are in the order of its declarations."""

    source: str
    name: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Declared] = field(default_factory=dict)
    definitions: dict[str, Defined] = field(default_factory=dict)

    def error(self, place: Place, problem: str) -> FormatError:
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

    def check_nodes(self, place: Place, count: int) -> None:
        """Refuse so many variables, if the file is packed."""
        if is_packed(self.source):
            with _located(self, place):
                check_nodes(count)

    def define(self, name: str, defined: Defined) -> None:
        if name in self.definitions:
            raise self.error(defined.place, f"node {show(name)} has two CPTs")
        self.definitions[name] = defined

    def shape(self, place: Place, name: str, parents: Sequence[str]) -> tuple[int, ...]:
        """The cardinalities of the parents and of the node, which must all be declared."""
        for used in (name, *parents):
            if used not in self.variables:
                raise self.error(place, f"node {show(name)}: there is no variable {show(used)}")
        if len(parents) > MAX_PARENTS:
            raise self.error(place, f"node {show(name)} has {len(parents):,} parents; at most {MAX_PARENTS} are read")
        return tuple(len(self.variables[used].states) for used in (*parents, name))


def build(draft: Draft) -> Network:
    """The network of a draft. Rows that miss the sum 1 by up to 1e-4 are scaled, with a warning."""
    builder = _Builder(draft)
    for name in _parents_first(draft):
        builder.add(name)
    if builder.scaled:
        others = f" (and {plural(builder.scaled - 1, 'other row')})" if builder.scaled > 1 else ""
        warnings.warn(f"{builder.first_scaled}; scaled to sum to 1{others}", RoundingWarning, stacklevel=4)
    return builder.net


class _Builder:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        with _located(draft, Place(1, 1)):
            self.net = Network(_property(draft.properties, "tacit_name", draft.name or stem(draft.source)))
        self.names: dict[str, str] = {}  # of the nodes: in the file -> in the network
        self.scaled = 0
        self.first_scaled = ""

    def add(self, name: str) -> None:
        declared, defined = self.draft.variables[name], self.draft.definitions[name]
        table = self._numbers(name)
        with _located(self.draft, declared.place):
            self.names[name] = _property(declared.properties, "tacit_name", name)
            states = _states(declared)
            cpt = _property(declared.properties, "tacit_cpt", None)
            cpt = None if cpt is None else cpt_from_dict(cpt, "tacit_cpt", len(defined.parents))
        if cpt is None:
            table = self._distributions(name, table)
        with _located(self.draft, defined.place):
            parents = [self.names[parent] for parent in defined.parents]
            self.net.add(self.names[name], parents, states, table if cpt is None else cpt)
            if cpt is not None and abs(visible_table(self.net, self.names[name]) - table).max() > MAX_CHANGE:
                raise FormatError(
                    f"node {show(name)}: the table is not that of its property tacit_cpt; if another program changed "
                    "the table, remove the property"
                )

    def _numbers(self, name: str) -> Floats:
        """The numbers of a node in their shape: (parents..., own)."""
        defined = self.draft.definitions[name]
        shape = self.draft.shape(defined.place, name, defined.parents)
        if defined.numbers.size != math.prod(shape):
            given, expected = plural(defined.numbers.size, "number"), large(math.prod(shape))
            raise self.draft.error(defined.place, f"node {show(name)}: the table has {given}, expected {expected}")
        return defined.numbers.reshape(shape)

    def _distributions(self, name: str, table: Floats) -> Floats:
        """The numbers as probabilities: rows are scaled if they must and may be."""
        if table.min() >= 0 and table.max() <= 1 and abs(table.sum(axis=-1) - 1).max() <= SUM_TOLERANCE:
            return table  # the usual case, quickly
        for index in _places(~((table >= 0) & (table <= 1 + MAX_MISS)))[:1]:
            raise self._error(name, index[:-1], f"holds {table[index]:g}, which is not a probability")
        total = table.sum(axis=-1)
        for row in _places(abs(total - 1) > MAX_MISS)[:1]:
            raise self._error(name, row, f"sums to {total[row]:.6g}, expected 1")
        rough = _places((abs(total - 1) > SUM_TOLERANCE) | (table > 1).any(axis=-1))
        if not rough:
            return table
        if not self.scaled:
            self.first_scaled = str(self._error(name, rough[0], f"sums to {total[rough[0]]:.6g}"))
        self.scaled += len(rough)
        table = table.copy()
        for row in rough:
            table[row] /= total[row]
        return table

    def _error(self, name: str, row: tuple[int, ...], problem: str) -> FormatError:
        """An error in a row, by the place of the row if it has one."""
        defined = self.draft.definitions[name]
        above = [self.net.variable(self.names[parent]) for parent in defined.parents]
        shape = [v.card for v in above]
        number = int(np.ravel_multi_index(row, shape)) if row else 0
        place = defined.rows[number] if len(defined.rows) == math.prod(shape) else defined.place
        where = f"row {describe(above, row)}" if row else "the table"
        return self.draft.error(place, f"node {show(name)}: {where} {problem}")


def _states(declared: Declared) -> list[Label]:
    states = _property(declared.properties, "tacit_states", list(declared.states))
    if not isinstance(states, list) or len(states) != len(declared.states):
        raise FormatError(f"tacit_states must be a list of {plural(len(declared.states), 'label')}")
    return states


def _property(properties: dict[str, str], key: str, default: Any) -> Any:
    return decode(properties[key]) if key in properties else default


@contextmanager
def _located(draft: Draft, place: Place) -> Iterator[None]:
    """Errors that know nothing of the file get a place in it."""
    try:
        yield
    except TacitError as error:
        raise draft.error(place, str(error)) from None


def _places(mask: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    return [tuple(index) for index in np.argwhere(mask).tolist()]


def _parents_first(draft: Draft) -> list[str]:
    """The names in the order of their declarations, save that parents come before their children."""
    for name, declared in draft.variables.items():
        if name not in draft.definitions:
            raise draft.error(declared.place, f"node {show(name)} has no CPT")
    for name, defined in draft.definitions.items():
        draft.shape(defined.place, name, defined.parents)
    parents = {name: draft.definitions[name].parents for name in draft.variables}
    try:
        graphlib.TopologicalSorter(parents).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1]
        raise draft.error(
            draft.definitions[cycle[0]].place, f"the parents form a cycle: {' -> '.join(map(show, cycle))}"
        ) from None
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
