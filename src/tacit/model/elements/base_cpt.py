"""What all kinds of CPT share: they never change, and print with the names of variables and states.

A CPT does not know these names; a network gives them to those that are put into it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Cells, Grid, ends
from tacit.model.elements.variable import Variable

MAX_LINES = 24  # parent states that are shown; of more, the first and last ones
MAX_STATES = 12  # of the node itself
MAX_ENTRIES = 2**20  # of a rule's table, up to which it is written out to be shown
UNSET = "?"


class Family(NamedTuple):
    """A node's variable and those of its parents."""

    own: Variable
    parents: tuple[Variable, ...]

    @property
    def title(self) -> str:
        """What the table holds: P(B | A)."""
        given = ", ".join(parent.name for parent in self.parents)
        return f"P({self.own.name}{' | ' if given else ''}{given})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each parent."""
        return tuple(parent.card for parent in self.parents)

    def names(self, state: tuple[int, ...] | None) -> Cells:
        """The labels of a joint state of the parents."""
        if state is None:
            return [GAP] * len(self.parents)
        return [str(parent.states[i]) for parent, i in zip(self.parents, state, strict=True)]

    def lines(self) -> list[tuple[int, ...] | None]:
        """The joint states of the parents that are shown; None for those left out."""
        places = ends(math.prod(self.shape), MAX_LINES)
        return [None if i is None else tuple(map(int, np.unravel_index(i, self.shape))) for i in places]

    def states(self) -> list[int | None]:
        """The node's own states that are shown; None for those left out."""
        return ends(self.own.card, MAX_STATES)

    def labels(self) -> Cells:
        """The labels of the node's own states that are shown."""
        return [GAP if i is None else str(self.own.states[i]) for i in self.states()]

    def cells(self, table: Floats, state: tuple[int, ...] | None) -> Cells:
        """The numbers of a row of a table."""
        return [GAP if state is None or i is None else number(table[state][i]) for i in self.states()]


class BaseCPT:
    """A CPT whose attributes are set once: queries that were compiled from it could not follow a change."""

    testing = False
    learn: bool = False
    tie: str | None = None
    _family: Family | None = None

    def _set(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def __setattr__(self, name: str, value: object = None) -> None:
        remedy = "make a new one, and put it into a copy of the network with net.with_cpts({node: cpt})"
        raise NetworkError(f"{name!r} of a {type(self).__name__} cannot be changed: a CPT is immutable; {remedy}")

    __delattr__ = __setattr__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make arrays read-only again, which copies and pickles do not keep."""
        for part in state.values():
            for array in part if isinstance(part, tuple) else (part,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        self._set(**state)

    def _with(self, **parts: Any) -> Self:
        """A copy with some attributes replaced, unchecked."""
        copy = object.__new__(type(self))
        copy._set(**vars(self) | parts)
        return copy

    def named(self, own: Variable, parents: Sequence[Variable]) -> Self:
        """A copy that prints with these names."""
        return self._with(_family=Family(own, tuple(parents)))

    def implied_parents(self) -> tuple[str, ...] | None:
        """The parents that a CPT names, if it does."""
        return None

    def parts(self) -> dict[str, Floats]:
        """The numbers, by name."""
        return {}

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        """The whole table."""
        raise NotImplementedError

    def grid(self, family: Family) -> Grid | None:
        """The numbers as a table; None if it would be too large."""
        if math.prod(family.shape) * family.own.card > MAX_ENTRIES:
            return None
        table = self.dense(family.own, family.parents)
        body = [(*family.names(state), *family.cells(table, state)) for state in family.lines()]
        head = [(*(parent.name for parent in family.parents), *family.labels())]
        return Grid(head, body, len(family.parents), family.title, unset_note(table))

    def _readable(self) -> Grid | None:
        return None if self._family is None else self.grid(self._family)

    def __str__(self) -> str:
        return repr(self) if (grid := self._readable()) is None else str(grid)

    def _repr_html_(self) -> str | None:
        return None if (grid := self._readable()) is None else grid.html()


def number(value: float) -> str:
    """A number of a table, as short as it was written; a sign for one that is to be learned."""
    return UNSET if np.isnan(value) else f"{value:.6g}"


def check_tie(tie: str | None) -> str | None:
    """A tie is a name, or None."""
    if tie is not None and (not isinstance(tie, str) or not tie):
        raise NetworkError(f"tie is {tie!r}, expected None or a non-empty string")
    return tie


def settings(cpt: BaseCPT) -> str:
    """How a CPT is learned, as the end of the arguments that it prints with."""
    return ", learn=True" * cpt.learn + (f", tie={cpt.tie!r}" if cpt.tie is not None else "")


def unset_note(*tables: Floats) -> str:
    """What the sign for numbers to be learned means, where there is one."""
    return f"{UNSET}: to be learned" if any(np.isnan(table).any() for table in tables) else ""
