"""Probabilities with the names of their rows and columns: what queries answer with `labels=True`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, flat
from tacit.base.grid import GAP, Grid, ends, probability, row_name
from tacit.base.text import shown
from tacit.base.version import package
from tacit.evidence.column import Evidence
from tacit.evidence.frames import column_index, frame_index
from tacit.model.elements.variable import Label, Variable, similar, state_column
from tacit.query.numbers.mixture import IN_FILES, SUMMARY, Mixture

MAX_ROWS = 20  # that are printed; of more, the first and last ones
MAX_COLUMNS = 10
MAX_LINES = 60  # of a table with a line for each state of each variable


class Probabilities(NDArrayOperatorsMixin):
    """Probabilities (rows, states of the first variable, states of the second, ...), and what these are called.

    It prints as a table, converts to frames, and can be used as an array: what NumPy makes of it, indexing and
    arithmetic give plain arrays. The name of a state selects its column, `posterior["true"]`; of several variables,
    one name for each does.

    Attributes
    ----------
    array
        The probabilities themselves.
    variables
        The names of the variables, one for each axis after the first.
    states
        For each of them, the labels of its states.
    index
        The index of the pandas frame that the rows came from, if they did.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> posterior = tac.posterior({"A": 0.8, "C": ["lo", "hi"]}, labels=True)
    >>> posterior
    B      true     false
    0  0.469231  0.530769
    1  0.676000  0.324000
    >>> posterior["true"].round(4), posterior[:, 0].round(4), posterior.shape
    (array([0.4692, 0.676 ]), array([0.4692, 0.676 ]), (2, 2))
    >>> posterior.to_pandas().round(4).to_dict("list")
    {'true': [0.4692, 0.676], 'false': [0.5308, 0.324]}
    """

    def __init__(self, array: Floats, variables: Sequence[Variable], index: Any = None) -> None:
        self.array = array
        self.variables = tuple(v.name for v in variables)
        self.states: tuple[tuple[Label, ...], ...] = tuple(v.states for v in variables)
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and the number of states of each variable."""
        return self.array.shape

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: Any) -> Any:
        return self.array[self._place(place)]

    def _place(self, place: Any) -> Any:
        """A place in the array: names of states are those of the first variable, the second, and so on."""
        parts = place if isinstance(place, tuple) else (place,)
        if not any(isinstance(part, str) for part in parts):
            return place
        if all(isinstance(part, str) for part in parts):
            if len(parts) != len(self.variables):
                raise TacitError(f"{place!r} names {len(parts)} states; expected one for each of {self.variables}")
            parts = (slice(None), *parts)
        return tuple(self._code(axis - 1, part) if isinstance(part, str) else part for axis, part in enumerate(parts))

    def _code(self, axis: int, name: str) -> int:
        """The place of a state among those of a variable, by its name."""
        if not 0 <= axis < len(self.variables):
            raise TacitError(f"{name!r} is at the place of a row; states come after it")
        names = list(map(str, self.states[axis]))
        if name not in names:
            problem = f"{name!r} is not a state of {self.variables[axis]!r}; expected one of {names}"
            raise TacitError(f"{problem}{similar(name, names)}")
        return names.index(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        out = settings.get("out", ())
        if out:
            settings["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **settings)
        if not out:
            return result
        several = result if isinstance(result, tuple) else (result,)
        filled = tuple(new if own is None else own for new, own in zip(several, out, strict=True))
        return filled if isinstance(result, tuple) else filled[0]

    def plot(self, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw the posterior of each row as bars: see `tacit.plot.posterior`. It needs matplotlib."""
        from tacit.views.charts import posterior

        return posterior(self, ax, width)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, with its index, and a column for each state.

        Of several variables, the columns have a level for each.
        """
        pandas = package("pandas", "frames")
        if len(self.variables) == 1:
            columns = pandas.Index(list(self.states[0]), name=self.variables[0])
        else:
            columns = pandas.MultiIndex.from_product(list(map(list, self.states)), names=list(self.variables))
        return pandas.DataFrame(flat(self.array), index=self.index, columns=columns)

    def to_polars(self) -> Any:
        """A polars frame, with columns named as `tacit batch` names them: `B.true`; of several, `A.true,B.lo`."""
        return package("polars", "frames").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """A pyarrow table, with columns named as `tacit batch` names them: `B.true`; of several, `A.true,B.lo`."""
        return package("pyarrow", "cli").table(self.columns())

    def columns(self) -> dict[str, Floats]:
        """A column (rows,) for each combination of states, by its name: `B.true`; of several, `A.true,B.lo`."""
        columns = joint_columns(zip(self.variables, self.states, strict=True))
        return _by_name(zip(columns, np.ascontiguousarray(flat(self.array).T), strict=True))

    def _grid(self) -> Grid:
        count = math.prod(self.shape[1:])
        rows, columns = ends(len(self), MAX_ROWS), ends(count, MAX_COLUMNS)
        places = [None if column is None else np.unravel_index(column, self.shape[1:]) for column in columns]
        head = [
            (name, *(GAP if place is None else str(states[int(place[i])]) for place in places))
            for i, (name, states) in enumerate(zip(self.variables, self.states, strict=True))
        ]
        body = [(row_name(self.index, row), *_cells(flat(self.array), row, columns)) for row in rows]
        hidden = None in rows or None in columns
        return Grid(head, body, note=f"[{len(self):,} rows x {count:,} columns]" if hidden else "")

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {', '.join(self.variables)}"

    def _repr_html_(self) -> str:
        return self._grid().html()


class Marginals(dict[str, Probabilities | Mixture]):
    """The posteriors of all variables, each with its labels; a dictionary that prints and converts as one table.

    Of a column of numbers, the table has the mean, the standard deviation and quantiles.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> tac.marginals({"A": 0.8, "C": ["lo", "hi"]}, labels=True)
    variable  state         0         1
    A         true   0.461538  0.720000
              false  0.538462  0.280000
    B         true   0.469231  0.676000
              false  0.530769  0.324000
    C         lo     1.000000  0.000000
              hi     0.000000  1.000000
    """

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, with its index, and a column for each state of each variable.

        The columns have two levels, `variable` and `state`.
        """
        pandas = package("pandas", "frames")
        if not self:
            return pandas.DataFrame()
        keys = [(name, head) for name, posterior in self.items() for head in _heads(posterior)]
        columns = pandas.MultiIndex.from_tuples(keys, names=["variable", "state"])
        values = np.concatenate([_table(posterior) for posterior in self.values()], axis=1)
        return pandas.DataFrame(values, index=next(iter(self.values())).index, columns=columns)

    def to_polars(self) -> Any:
        """A polars frame with a column for each state of each variable, such as `B.true`."""
        return package("polars", "frames").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """A pyarrow table with a column for each state of each variable, such as `B.true`."""
        return package("pyarrow", "cli").table(self.columns())

    def columns(self) -> dict[str, Floats]:
        """A column (rows,) for each state of each variable, by its name: `B.true`; of numbers, such as `heat.mean`."""
        return _by_name(column for name, posterior in self.items() for column in _named(name, posterior))

    def _grid(self) -> Grid:
        """A line for each state of each variable: there are more of them than rows that are looked at together."""
        first = next(iter(self.values()))
        rows = ends(len(first), MAX_COLUMNS)
        lines = [(name, place) for name, posterior in self.items() for place in range(len(_heads(posterior)))]
        shown = ends(len(lines), MAX_LINES)
        body = [self._line(rows, None if place is None else lines[place]) for place in shown]
        hidden = None in rows or None in shown
        note = f"[{len(lines):,} states of {len(self):,} variables x {len(first):,} rows]" if hidden else ""
        return Grid([("variable", "state", *(row_name(first.index, row) for row in rows))], body, stubs=2, note=note)

    def _line(self, rows: Sequence[int | None], what: tuple[str, int] | None) -> tuple[str, ...]:
        """The cells of a line: variable, state, and its probability in each row; or a part of what numbers tell."""
        if what is None:
            return (GAP,) * (2 + len(rows))
        name, place = what
        posterior, known = self[name], [row for row in rows if row is not None]
        some = posterior[known].summary(name) if isinstance(posterior, Mixture) else posterior.array[known]
        written = iter(
            [f"{x:.6g}" if isinstance(posterior, Mixture) else probability(float(x)) for x in some[:, place]]
        )
        cells = [GAP if row is None else next(written) for row in rows]
        return name if place == 0 else "", str(_heads(posterior)[place]), *cells

    def __repr__(self) -> str:
        return str(self._grid()) if self else "{}"

    def _repr_html_(self) -> str | None:
        return self._grid().html() if self else None


def _heads(posterior: Probabilities | Mixture) -> tuple[Label, ...]:
    """What the columns of a posterior are about: states, or parts of what numbers tell; a Density tells none."""
    if isinstance(posterior, Mixture):
        return SUMMARY if posterior.components.summarised else ()
    return posterior.states[0]


def _table(posterior: Probabilities | Mixture) -> Floats:
    """The columns of a posterior: (rows, heads)."""
    if not isinstance(posterior, Mixture):
        return posterior.array
    return posterior.summary(posterior.columns[0]) if _heads(posterior) else np.empty((len(posterior), 0))


def _named(name: str, posterior: Probabilities | Mixture) -> Iterable[tuple[str, Floats]]:
    """The columns of a posterior by their names in files."""
    if not isinstance(posterior, Mixture):
        return posterior.columns().items()
    return zip((f"{name}.{part}" for part in IN_FILES), np.ascontiguousarray(_table(posterior).T), strict=False)


def wants_labels(labels: Any, remedy: str) -> bool:
    """Whether an answer is to have labels; variables in their place were meant for something else."""
    if not isinstance(labels, bool | np.bool_):
        raise TacitError(f"labels is {shown(labels)}, expected True or False; {remedy}")
    return bool(labels)


def with_labels(array: Floats, variables: Sequence[Variable], evidence: Any) -> Probabilities:
    """Probabilities with the index of the rows of evidence."""
    return Probabilities(array, variables, index_of(evidence, len(array)))


def index_of(evidence: Any, rows: int) -> Any:
    """The index of a pandas frame of evidence, or of the first column of pandas in a mapping; None without any.

    Evidence that was read keeps that of its columns.
    """
    if isinstance(evidence, Evidence):
        index = next((column.index for column in evidence.columns.values() if column.index is not None), None)
    elif isinstance(evidence, Mapping):
        index = next((index for column in evidence.values() if (index := column_index(column)) is not None), None)
    else:
        index = frame_index(evidence)
    return None if index is None or len(index) != rows else index


def joint_columns(states: Iterable[tuple[str, Iterable[Label]]]) -> Iterator[str]:
    """The names of columns for all combinations of states of some variables: `A.true,B.lo`."""
    columns = [[state_column(name, label) for label in labels] for name, labels in states]
    return map(",".join, itertools.product(*columns))


def _plain(thing: Any) -> Any:
    return thing.array if isinstance(thing, Probabilities) else thing


def _by_name(columns: Iterable[tuple[str, Floats]]) -> dict[str, Floats]:
    """Columns by their names, which must differ: labels 1 and "1" do not when they are written."""
    by_name: dict[str, Floats] = {}
    for name, column in columns:
        if name in by_name:
            remedy = "rename a state, or use to_pandas(), which keeps labels"
            raise TacitError(f"two columns would be called {name!r}; {remedy}")
        by_name[name] = column
    return by_name


def _cells(values: Floats, row: int | None, columns: Sequence[int | None]) -> list[str]:
    return [GAP if row is None or c is None else probability(float(values[row, c])) for c in columns]
