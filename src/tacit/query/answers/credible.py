"""Intervals of probabilities: how sure an answer is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Generic, TypeVar, cast

import numpy as np

from tacit.base.floats import Floats, flat
from tacit.base.grid import GAP, Grid, ends, row_name
from tacit.base.version import package
from tacit.model.elements.variable import Variable
from tacit.query.answers.probabilities import MAX_ROWS, Probabilities

P_co = TypeVar("P_co", bound=Floats | Probabilities, covariant=True)
MAX_COLUMNS = 5  # that are printed, each with its interval
PARTS = ("mean", "low", "high")


class Credible(Generic[P_co]):
    """Expected posteriors, and the intervals that they are in with a given probability. Made by `TAC.credible`.

    `mean`, and the ends `low` and `high`, are (rows, states), or (rows, states of the first variable, ...). `level` is
    the probability of each interval, and `method` how it was worked out. It prints as a table and converts to frames.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("fault", states=["yes", "no"])
    >>> draws = tacit.estimate(net, {"fault": ["yes"] * 3 + ["no"] * 17}, prior=1.0).draws(1000)
    >>> tacit.compile(draws.network, "fault").credible({}, draws)
    Means and 90% credible intervals
    fault                   yes                    no
    0      0.173 [0.064, 0.311]  0.827 [0.689, 0.936]
    """

    def __init__(
        self, parts: Mapping[str, Floats], level: float, method: str, variables: Sequence[Variable], index: Any = None
    ) -> None:
        """Of the three `parts`, mean, low and high."""
        self.level, self.method, self.index = level, method, index
        self._labelled = {part: Probabilities(parts[part], variables, index) for part in PARTS}
        self._arrays: Mapping[str, Any] = parts

    def labelled(self) -> Credible[Probabilities]:
        """The same, whose numbers have the names of states and rows."""
        labelled = copy(self)
        labelled._arrays = self._labelled
        return cast(Credible[Probabilities], labelled)

    @property
    def mean(self) -> P_co:
        """The expected probabilities."""
        return cast(P_co, self._arrays["mean"])

    @property
    def low(self) -> P_co:
        """The lower ends."""
        return cast(P_co, self._arrays["low"])

    @property
    def high(self) -> P_co:
        """The upper ends."""
        return cast(P_co, self._arrays["high"])

    def __len__(self) -> int:
        return len(self._labelled["mean"])

    def plot(self, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw the means with their intervals: see `tacit.plot.posterior`. It needs matplotlib."""
        from tacit.views.charts import posterior

        return posterior(self, ax, width)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, and columns `mean`, `low` and `high` for each state.

        The columns have a level for each query variable, and one for these.
        """
        pandas = package("pandas", "frames")
        mean = self._labelled["mean"]
        labels = itertools.product(*mean.states, PARTS)
        columns = pandas.MultiIndex.from_tuples(labels, names=[*mean.variables, "credible"])
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
            name if part == "mean" else f"{name}.{part}": by_part[part][name]
            for name in by_part["mean"]
            for part in PARTS
        }

    def _grid(self) -> Grid:
        mean = self._labelled["mean"]
        shape = mean.shape[1:]
        rows, columns = ends(len(mean), MAX_ROWS), ends(math.prod(shape), MAX_COLUMNS)
        places = [None if column is None else np.unravel_index(column, shape) for column in columns]
        head = [
            (name, *(GAP if place is None else str(states[int(place[i])]) for place in places))
            for i, (name, states) in enumerate(zip(mean.variables, mean.states, strict=True))
        ]
        body = [(row_name(self.index, row), *(self._cell(row, column) for column in columns)) for row in rows]
        hidden = None in rows or None in columns
        note = f"[{len(mean):,} rows x {math.prod(shape):,} columns]" if hidden else ""
        return Grid(head, body, title=f"Means and {100 * self.level:.4g}% credible intervals", note=note)

    def _cell(self, row: int | None, column: int | None) -> str:
        if row is None or column is None:
            return GAP
        mean, low, high = (_short(float(flat(own.array)[row, column])) for own in self._labelled.values())
        return f"{mean} [{low}, {high}]"

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {', '.join(self._labelled['mean'].variables)}"

    def _repr_html_(self) -> str:
        return self._grid().html()


def _short(number: float) -> str:
    return f"{number:.1e}" if 0 < number < 1e-3 else f"{number:.3f}"
