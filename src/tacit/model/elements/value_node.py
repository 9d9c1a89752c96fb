"""Value nodes: what joint states of some variables are worth to who decides. They are no random variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid
from tacit.model.elements.base_cpt import Family, number
from tacit.model.elements.distributions import as_floats
from tacit.model.elements.variable import Variable, describe

OWN = ("worth",)


@dataclass(frozen=True, eq=False)
class ValueNode:
    """What each joint state of some variables is worth: `table` has an axis for each of `variables`.

    Made by `Network.value`; it prints as a table.
    """

    name: str
    variables: tuple[Variable, ...]
    table: Floats

    @staticmethod
    def checked(name: str, variables: Sequence[Variable], table: Any) -> ValueNode:
        """A value node whose table fits its parents; an error that says where it does not."""
        what = f"value node {name!r}"
        own = ValueNode(name, tuple(variables), as_floats(table, f"{what}: table"))
        shape = tuple(parent.card for parent in variables)
        if own.table.shape != shape:
            per = ", ".join(own.parents) or "no parents"
            raise NetworkError(
                f"{what}: table has shape {own.table.shape}, expected {shape}: an axis for each of {per}"
            )
        for place in map(tuple, np.argwhere(~np.isfinite(own.table))[:1].tolist()):
            at = f" at {describe(variables, place)}" if place else ""
            raise NetworkError(f"{what}: table{at} is {own.table[place]:g}, expected a finite number")
        with np.errstate(over="ignore"):
            if not np.isfinite(4 * np.ptp(own.table)):
                raise NetworkError(f"{what}: the numbers of table are too far apart for floats")
        return own

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of the variables, in the order of the table's axes."""
        return tuple(variable.name for variable in self.variables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueNode):
            return NotImplemented
        return (self.name, self.variables) == (other.name, other.variables) and np.array_equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the table read-only again, which copies and pickles do not keep."""
        vars(self).update(state)
        self.table.flags.writeable = False

    def _grid(self) -> Grid:
        family = Family(Variable(self.name, OWN), self.variables)
        cells = [GAP if state is None else number(self.table[state]) for state in family.lines()]
        body = [(*family.names(state), cell) for state, cell in zip(family.lines(), cells, strict=True)]
        return Grid([(*self.parents, self.name)], body, len(self.parents))

    def __str__(self) -> str:
        return str(self._grid())

    def __repr__(self) -> str:
        return f"ValueNode({self.name!r}, parents={self.parents!r})"

    def _repr_html_(self) -> str:
        return self._grid().html()
