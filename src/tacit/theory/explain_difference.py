"""Why two rows of evidence get different answers: the findings that differ, and what each adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends, probability
from tacit.base.version import package
from tacit.evidence.codes import MISSING
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.query.answer import quietly
from tacit.query.query import Query
from tacit.theory.arguments import read_given, state_of
from tacit.theory.explain import one_row
from tacit.theory.findings import ask_varied, content, log_odds, raised, said

MAX_SHOWN = 20
NOTHING = "-"


@dataclass(frozen=True, eq=False)
class Difference:
    """One finding that differs between two rows, set in its turn to what the second row says.

    Attributes
    ----------
    name, first, second
        The variable, and what each of the rows says of it, in words: "-" for nothing.
    posterior
        P*(q) for every state of the query once this finding, and all before it, are those of the second row.
    weight
        By how much that step raised the log-odds of every state of the query, in nats.
    """

    name: str
    first: str
    second: str
    posterior: Floats
    weight: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Why two rows of evidence get different answers. Made by `TAC.compare`; prints as text and shows as HTML.

    Attributes
    ----------
    query, states
        The query variable, and its states.
    posterior
        P*(q) of the first row and of the second: (2, states).
    differences
        The findings that differ. They are set in turn from the first row's to the second's, so that the weights sum to
        the whole difference of the log-odds: first those that move the answer most by themselves.
    state
        The place of the state that weights are shown for.
    """

    query: str
    states: tuple[Label, ...]
    posterior: Floats
    differences: tuple[Difference, ...]
    state: int

    def to_pandas(self) -> Any:
        """A pandas frame with a line for each finding that differs: finding, first, second, posterior, weight."""
        return package("pandas", "frames").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """A polars frame with a line for each finding that differs: finding, first, second, posterior, weight."""
        return package("polars", "frames").DataFrame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "finding": [one.name for one in self.differences],
            "first": [one.first for one in self.differences],
            "second": [one.second for one in self.differences],
            "posterior": [float(one.posterior[self.state]) for one in self.differences],
            "weight": [float(one.weight[self.state]) for one in self.differences],
        }

    def _grids(self) -> list[Grid]:
        body = [
            (GAP,) * 4 if place is None else (str(self.states[place]), *self._line(place))
            for place in ends(len(self.states), MAX_SHOWN)
        ]
        grids = [Grid([(self.query, "first", "second", "difference")], body, title=f"P*({self.query}) of two rows")]
        if self.differences:
            grids.append(self._steps())
        return grids

    def _line(self, place: int) -> tuple[str, str, str]:
        first, second = self.posterior[:, place].tolist()
        return probability(first), probability(second), f"{second - first:+.6f}"

    def _steps(self) -> Grid:
        lines = [
            (*cells, probability(posterior), f"{round(weight, 9) + 0.0:+.3g}")
            for *cells, posterior, weight in zip(*self._columns().values(), strict=True)
        ]
        places = ends(len(lines), MAX_SHOWN)
        state = self.states[self.state]
        title = f"What each finding adds to the log-odds of {self.query}={state}, set in turn"
        head = ("finding", "first", "second", str(state), "weight")
        return Grid([head], [(GAP,) * 5 if place is None else lines[place] for place in places], 3, title)

    def __str__(self) -> str:
        grids = list(map(str, self._grids()))
        return "\n\n".join(grids if self.differences else [*grids, "No findings differ."])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(grid.html() for grid in self._grids())


def compare(tac: Query, first: EvidenceLike, second: EvidenceLike, state: Label | None = None) -> Comparison:
    """Why two rows of evidence get different answers; see `TAC.compare`."""
    tac.require_no_do()
    asked = None if state is None else state_of(tac, state)
    rows = [one_row(read_given(tac, row), "compare") for row in (first, second)]
    names = [name for name in tac.network if any(name in row.columns for row in rows)]
    columns, others = ({name: _column(tac, row, name) for name in names} for row in rows)
    new = {name: content(others[name]) for name in names}
    names = [name for name in names if not np.array_equal(content(columns[name]), new[name], equal_nan=True)]
    with quietly():
        alone = ask_varied(tac, columns, [*({name: new[name]} for name in names), new]).posterior
        for row, which in ((0, "first"), (-1, "second")):
            if np.isnan(alone[row]).any():
                raise EvidenceError(f"the evidence of the {which} row has probability 0, so there is no answer")
        place = int(alone[0].argmax()) if asked is None else asked
        odds = log_odds(alone)[:, place]
        with np.errstate(invalid="ignore"):
            moved = dict(zip(names, np.abs(odds[1:-1] - odds[0]).tolist(), strict=True))
        turn = sorted(names, key=lambda name: -np.nan_to_num(moved[name], nan=-1.0))
        path = [{name: new[name] for name in turn[: i + 1]} for i in range(len(turn))]
        posterior = ask_varied(tac, columns, path).posterior
    odds = log_odds(posterior)
    weights = raised(odds[:-1], odds[1:])
    differences = (
        Difference(name, _said(columns[name]), _said(others[name]), after, weight)
        for name, after, weight in zip(turn, posterior[1:], weights, strict=True)
    )
    return Comparison(tac.variable.name, tac.variable.states, alone[[0, -1]], tuple(differences), place)


def _column(tac: Query, row: Evidence, name: str) -> Column:
    """What a row says of a variable, which may be nothing."""
    variable = tac.network.variable(name)
    if variable.continuous and name not in row.columns:
        return DensityColumn(variable, np.full((1, len(variable.columns)), np.nan), tac.network.density(name))
    return row.columns.get(name) or Column(variable, codes=np.array([MISSING]))


def _said(column: Column) -> str:
    return NOTHING if column.empty else said(column)
