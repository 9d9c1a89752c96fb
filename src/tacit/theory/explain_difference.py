"""Why two rows of evidence get different answers: the findings that differ, and what each adds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends, probability
from tacit.base.html import lines
from tacit.base.text import told_apart
from tacit.base.version import package
from tacit.evidence.codes import MISSING
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.read import EvidenceLike
from tacit.evidence.records import is_one_row
from tacit.model.elements.variable import Label
from tacit.query.answers.answer import quietly
from tacit.query.query import Query
from tacit.theory.arguments import read_given, state_of
from tacit.theory.conclusions import change, in_lines, of_no_weight, told
from tacit.theory.explain import one_row
from tacit.theory.findings import ask_varied, content, log_odds, raised, said

MAX_SHOWN = 20
NOTHING = "-"
Pair = tuple[str, str]  # what the two rows are called, or what they say
UNNAMED: Pair = ("first", "second")


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

    @property
    def text(self) -> str:
        """The step in words."""
        if self.first == NOTHING:
            return f"{self.name}: {self.second} is added"
        if self.second == NOTHING:
            return f"{self.name}: {self.first} is left out"
        return f"{self.name} changes from {self.first} to {self.second}"


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
    names
        What the rows are called where the comparison is printed: by their names in a pandas frame, if they have some.
    """

    query: str
    states: tuple[Label, ...]
    posterior: Floats
    differences: tuple[Difference, ...]
    state: int
    names: Pair = UNNAMED

    @property
    def weights(self) -> list[tuple[str, float]]:
        """Each step in words, and its weight for `state`, 0 where rounding alone makes it differ from that."""
        return [(one.text, told(one.weight[self.state])) for one in self.differences]

    @property
    def conclusion(self) -> str:
        """How the answer changes, and by which finding mainly, in one sentence."""
        before, after = self.posterior[:, self.state].tolist()
        sentence = change(self.query, self.states[self.state], before, after)
        signed = np.sign(after - before) * np.array([one.weight[self.state] for one in self.differences])
        if (signed > 0).any():
            main = self.differences[int(np.nanargmax(signed))]
            sentence += f", {'mainly ' * (len(self.differences) > 1)}because {main.text}"
        best, new = (self.states[place] for place in self.posterior.argmax(axis=1).tolist())
        return f"{sentence}; {new} becomes the most probable state." if new != best else f"{sentence}."

    def plot(self, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw what each finding adds as bars: see `tacit.plot.weights`. It needs matplotlib."""
        from tacit.views.charts import weights

        return weights(self, ax, width)

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
        grids = [Grid([(self.query, *self.names, "difference")], body, title=f"P*({self.query}) of two rows")]
        if self.differences:
            grids.append(self._steps())
        return grids

    def _line(self, place: int) -> tuple[str, str, str]:
        first, second = self.posterior[:, place].tolist()
        return probability(first), probability(second), f"{second - first:+.6f}"

    def _steps(self) -> Grid:
        steps = list(zip(*self._columns().values(), strict=True))
        idle = [name for name, *_, weight in steps if told(weight) == 0]
        if len(idle) == len(steps):
            idle = []  # a table needs some line
        lines = [
            (*cells, probability(posterior), f"{told(weight):+.3g}")
            for *cells, posterior, weight in steps
            if cells[0] not in idle
        ]
        places = ends(len(lines), MAX_SHOWN)
        state = self.states[self.state]
        title = f"What each finding adds to the log-odds of {self.query}={state}, set in turn (nats)"
        head = ("finding", *self.names, "with it", "weight")
        return Grid(
            [head], [(GAP,) * 5 if place is None else lines[place] for place in places], 3, title, of_no_weight(idle)
        )

    def __str__(self) -> str:
        grids = [in_lines(self.conclusion), *map(str, self._grids())]
        return "\n\n".join(grids if self.differences else [*grids, "No findings differ."])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return lines([self.conclusion]) + "".join(grid.html() for grid in self._grids())


def row_names(first: Any, second: Any) -> Pair:
    """What two rows are called: by their names in a pandas frame, if these differ, else "first" and "second"."""
    one, other = (_name(row) if is_one_row(row) else None for row in (first, second))
    return UNNAMED if one is None or other is None or one == other else (one, other)


def _name(series: Any) -> str | None:
    """The name of a pandas Series, which is often the number of a row."""
    name = series.name
    return name if name is None or isinstance(name, str) else f"row {name}"


def read_rows(
    names: Pair, first: EvidenceLike, second: EvidenceLike, read: Callable[[EvidenceLike], Evidence]
) -> list[Evidence]:
    """Two rows of evidence; an error says which one it is about."""
    rows = []
    for name, row in zip(names, (first, second), strict=True):
        try:
            rows.append(one_row(read(row), "compare"))
        except EvidenceError as error:
            raise _at(error, name) from None
    return rows


def _at(error: EvidenceError, name: str) -> EvidenceError:
    """The error about one of two rows, which has no other number."""
    others = [other.changed(row=None) for other in error.others]
    return error.changed(place=f"{name} row" if name in UNNAMED else name, row=None, others=others)


def compare(
    tac: Query, first: EvidenceLike, second: EvidenceLike, state: Label | None = None, called: Pair | None = None
) -> Comparison:
    """Why two rows of evidence get different answers; see `TAC.compare`."""
    tac.require_no_do()
    asked = None if state is None else state_of(tac, state)
    titles = called or row_names(first, second)
    rows = read_rows(titles, first, second, lambda row: read_given(tac, row))
    names = [name for name in tac.network if any(name in row.columns for row in rows)]
    columns, others = ({name: _column(tac, row, name) for name in names} for row in rows)
    new = {name: content(others[name]) for name in names}
    said_of = {
        name: _said_of_both(columns[name], others[name])
        for name in names
        if not np.array_equal(content(columns[name]), new[name], equal_nan=True)
    }

    def ask(changes: Sequence[Collection[str]]) -> Floats:
        return ask_varied(tac, columns, [{name: new[name] for name in changed} for changed in changes]).posterior[1:]

    with quietly():
        return compared(tac.variable.name, tac.variable.states, said_of, ask, asked, titles)


def compared(
    query: str,
    states: tuple[Label, ...],
    said_of: Mapping[str, tuple[str, str]],
    ask: Callable[[Sequence[Collection[str]]], Floats],
    state: int | None = None,
    titles: Pair = UNNAMED,
) -> Comparison:
    """The comparison of two rows that differ in the names that something is `said_of`, by each of the rows.

    `ask` tells the posteriors (changes, states) of the first row with some names changed to what the second row says.
    """
    names = list(said_of)
    alone = ask([(), *([name] for name in names), names])
    for title, posterior in zip(titles, alone[[0, -1]], strict=True):
        if np.isnan(posterior).any():
            raise _at(EvidenceError("the evidence has probability 0, so there is no answer"), title)
    place = int(alone[0].argmax()) if state is None else state
    odds = log_odds(alone)[:, place]
    with np.errstate(invalid="ignore"):
        moved = dict(zip(names, np.abs(odds[1:-1] - odds[0]).tolist(), strict=True))
    turn = sorted(names, key=lambda name: -np.nan_to_num(moved[name], nan=-1.0))
    posterior = ask([turn[:i] for i in range(len(turn) + 1)])
    odds = log_odds(posterior)
    weights = raised(odds[:-1], odds[1:])
    differences = tuple(
        Difference(name, *said_of[name], after, weight)
        for name, after, weight in zip(turn, posterior[1:], weights, strict=True)
    )
    return Comparison(query, states, alone[[0, -1]], differences, place, titles)


def _column(tac: Query, row: Evidence, name: str) -> Column:
    """What a row says of a variable, which may be nothing."""
    variable = tac.network.variable(name)
    if variable.continuous and name not in row.columns:
        return DensityColumn(variable, np.full((1, len(variable.columns)), np.nan), tac.network.density(name))
    return row.columns.get(name) or Column(variable, codes=np.array([MISSING]))


def _said_of_both(first: Column, second: Column) -> Pair:
    return told_apart(lambda digits: (_said(first, digits), _said(second, digits)))


def _said(column: Column, digits: int) -> str:
    return NOTHING if column.empty else said(column, digits)
