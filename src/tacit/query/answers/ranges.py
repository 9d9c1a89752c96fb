"""Probabilities with a lower and an upper end each: what credible intervals and certain ones have in common."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np

from tacit.base.floats import Floats, flat
from tacit.base.grid import GAP, Grid, ends, row_name
from tacit.base.version import package
from tacit.model.elements.variable import Variable
from tacit.query.answers.probabilities import MAX_ROWS, Probabilities

P_co = TypeVar("P_co", bound=Floats | Probabilities, covariant=True)
MAX_COLUMNS = 5  # that are printed, each with its interval


class Ranges(ABC, Generic[P_co]):
    """Probabilities and their ends, (rows, states), or (rows, states of the first variable, ...).

    It prints as a table and converts to frames. `middle` is what the numbers between the ends are called there.
    """

    middle: ClassVar[str]
    kind: ClassVar[str]  # what the columns of a frame are called, for each state

    def __init__(self, parts: Mapping[str, Floats], variables: Sequence[Variable], index: Any = None) -> None:
        """Of the three `parts`, those in the middle, low and high."""
        self.index = index
        self.parts = (self.middle, "low", "high")
        self._labelled = {part: Probabilities(parts[part], variables, index) for part in self.parts}
        self._arrays: Mapping[str, Any] = {part: parts[part] for part in self.parts}

    @property
    def _middle(self) -> Probabilities:
        return self._labelled[self.middle]

    @abstractmethod
    def _title(self) -> str: ...

    def labelled(self) -> Self:
        """The same, whose numbers have the names of states and rows."""
        labelled = copy(self)
        labelled._arrays = self._labelled
        return labelled

    @property
    def low(self) -> P_co:
        """The lower ends."""
        return cast(P_co, self._arrays["low"])

    @property
    def high(self) -> P_co:
        """The upper ends."""
        return cast(P_co, self._arrays["high"])

    def __len__(self) -> int:
        return len(self._middle)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, and columns for each state: the middle, `low` and `high`.

        The columns have a level for each query variable, and one for these.
        """
        pandas = package("pandas", "frames")
        middle = self._middle
        labels = itertools.product(*middle.states, self.parts)
        columns = pandas.MultiIndex.from_tuples(labels, names=[*middle.variables, self.kind])
        values = np.stack([flat(own.array) for own in self._labelled.values()], axis=-1)
        return pandas.DataFrame(flat(values), index=self.index, columns=columns)

    def to_polars(self) -> Any:
        """A polars frame with the columns of `columns`."""
        return package("polars", "frames").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """A pyarrow table with the columns of `columns`."""
        return package("pyarrow", "cli").table(self.columns())

    def columns(self) -> dict[str, Floats]:
        """Columns (rows,) by name, three for each state: `B.true`, `B.true.low` and `B.true.high`."""
        by_part = {part: own.columns() for part, own in self._labelled.items()}
        return {
            name if part == self.middle else f"{name}.{part}": by_part[part][name]
            for name in by_part[self.middle]
            for part in self.parts
        }

    def _grid(self) -> Grid:
        middle = self._middle
        shape = middle.shape[1:]
        rows, columns = ends(len(middle), MAX_ROWS), ends(math.prod(shape), MAX_COLUMNS)
        places = [None if column is None else np.unravel_index(column, shape) for column in columns]
        head = [
            (name, *(GAP if place is None else str(states[int(place[i])]) for place in places))
            for i, (name, states) in enumerate(zip(middle.variables, middle.states, strict=True))
        ]
        body = [(row_name(self.index, row), *(self._cell(row, column) for column in columns)) for row in rows]
        hidden = None in rows or None in columns
        note = f"[{len(middle):,} rows x {math.prod(shape):,} columns]" if hidden else ""
        return Grid(head, body, title=self._title(), note=note)

    def _cell(self, row: int | None, column: int | None) -> str:
        if row is None or column is None:
            return GAP
        middle, low, high = (_short(float(flat(own.array)[row, column])) for own in self._labelled.values())
        return f"{middle} [{low}, {high}]"

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {', '.join(self._middle.variables)}"

    def _repr_html_(self) -> str:
        return self._grid().html()


def _short(number: float) -> str:
    return f"{number:.1e}" if 0 < number < 1e-3 else f"{number:.3f}"
