"""The types of errors: every error a user can cause is a `TacitError`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.base.text import plural, shown

if TYPE_CHECKING:
    from pandas import DataFrame

NO_STATE, OUTSIDE, NO_NUMBER = "names no state", "is outside the range", "is not a number"  # what is wrong with a value
OF_SEVERAL = {NO_STATE: "name no state", OUTSIDE: "are outside the range", NO_NUMBER: "are not numbers"}
MAX_LISTED = 5  # different wrong values that a message lists


class TacitError(ValueError):
    """The root of all errors raised on purpose by tacit."""


class NetworkError(TacitError):
    """A network, a CPT or a name in it is not valid."""


class TableError(NetworkError):
    """A table holds a bad number.

    Raised where the table is built, when only positions are known; `Network.add` raises it again with the
    names of the node and of the parents' states.
    """

    def __init__(self, part: str, row: tuple[int, ...], problem: str) -> None:
        self.part, self.row, self.problem = part, row, problem
        place = f", parent state {row}" if row else ""
        super().__init__(f"{part}{place}: {problem}")

    def __reduce__(self) -> tuple[type[TableError], tuple[str, tuple[int, ...], str]]:
        """Pickle the fields, since the arguments are not the message: errors cross process borders."""
        return type(self), (self.part, self.row, self.problem)


class UnsetError(NetworkError):
    """A number that must be learned first was asked for."""


class WrongValue(NamedTuple):
    """A value that is wrong in a column of evidence: in how many rows, in which one first, and what it may mean.

    `index` is the label of the first row in the index of its frame, if it has one; `problem` is what is wrong.
    """

    value: Any
    rows: int
    first: int
    meant: str | None = None
    index: Any = None
    problem: str = NO_STATE

    def __str__(self) -> str:
        hint = "" if self.meant is None else f", did you mean {self.meant!r}?"
        where = f"{self.first:,}{_also_called(self.first, self.index)}"
        return f"{shown(self.value)} ({self.rows:,}, first in row {where}{hint})"


class EvidenceError(TacitError):
    """Evidence names an unknown variable or state, or holds a bad number.

    The message is made of what is known: the `place` that the rows are from, a file or a partition; the `subject`,
    which is the evidence on the `variable` unless it is named; the `row`, as people count rows at that place, and its
    label in the `index` of a pandas frame; and the `problem`. A problem that begins with a space or a comma goes on
    with the sentence that its subject begins. Of wrong values, `values` are all in the column, the most frequent ones
    first. Where the column is wrong as a whole, `rows` is how many it has. Where other columns are wrong, too, `others`
    are the errors about them. `columns` are those of a table that can make no variable: of several, the problem has
    what `others` say. `remedy` is a last line, what to do with them.

    >>> error = EvidenceError("'x' is not a state", variable="A", row=2)
    >>> error
    EvidenceError("evidence on 'A', row 2: 'x' is not a state")
    >>> error.at("rows.csv", first=101)
    EvidenceError("rows.csv: evidence on 'A', row 103: 'x' is not a state")
    >>> error.changed(subject="labels of 'A'", row=None)
    EvidenceError("labels of 'A': 'x' is not a state")
    >>> error.indexed(["p-14", "p-15", "p-17"])
    EvidenceError("evidence on 'A', row 2 (index 'p-17'): 'x' is not a state")
    >>> EvidenceError(" has 3 dimensions", variable="A")
    EvidenceError("evidence on 'A' has 3 dimensions")
    """

    def __init__(
        self,
        problem: str,
        *,
        variable: str | None = None,
        subject: str | None = None,
        row: int | None = None,
        index: Any = None,
        place: str | None = None,
        values: Sequence[WrongValue] = (),
        others: Sequence[EvidenceError] = (),
        rows: int | None = None,
        columns: Sequence[str] = (),
        remedy: str | None = None,
    ) -> None:
        self.problem, self.variable, self.place, self.values = problem, variable, place, tuple(values)
        self.row, self.index, self.rows, self.columns, self.remedy = row, index, rows, tuple(columns), remedy
        self.subject = f"evidence on {variable!r}" if subject is None and variable is not None else subject
        where = "" if row is None else f"row {row}{_also_called(row, index)}"
        about = ", ".join(filter(None, [self.subject, where]))
        colon = ": " if about and not problem.startswith((" ", ",")) else ""
        self.others = tuple(others)
        shown = f"{about}{colon}{problem}{_listed(self.values)}{'' if self._sums_up else _also(self.others)}"
        shown += "" if remedy is None else f"\n{remedy}"
        # the only argument: with it and the fields, pickle makes the error anew
        super().__init__(shown if place is None else f"{place}: {shown}")

    @property
    def _sums_up(self) -> bool:
        """Whether it is about several columns, each of which has an error of its own among the others."""
        return len(self.columns) > 1 and bool(self.others)

    def changed(self, **fields: Any) -> Self:
        """A copy with some fields changed."""
        names = ("variable", "subject", "row", "index", "place", "values", "others", "rows", "columns", "remedy")
        return type(self)(**{name: getattr(self, name) for name in ("problem", *names)} | fields)

    def moved(self, by: int) -> Self:
        """The error for rows that have others before them."""
        values = [wrong._replace(first=wrong.first + by) for wrong in self.values]
        row = None if self.row is None else self.row + by
        return self.changed(row=row, values=values, others=[other.moved(by) for other in self.others])

    def indexed(self, index: Any) -> Self:
        """The error with the labels that its rows have in the index of their frame; itself, if that adds nothing."""
        if index is None or self.row is None or self.index is not None:
            return self
        values = [wrong._replace(index=_label(index, wrong.first)) for wrong in self.values]
        return self.changed(index=_label(index, self.row), values=values)

    def at(self, place: str, first: int = 0) -> Self:
        """The error for rows of a file or a partition, of which the first is the row `first`."""
        return self.moved(first).changed(place=place)

    def to_pandas(self) -> DataFrame:
        """All that is wrong, as a pandas frame: a row for each wrong value of each column, frequent ones first.

        `rows` says how many rows hold the value, `first` which one does first, `index` its label in the index of the
        frame, `nearest` the state that may be meant, `problem` what is wrong. A column that is wrong as a whole has
        all its rows, and no value. Rows are counted as in the message: from 0 in a frame, from 1 in a file.
        """
        import pandas as pd

        columns = ("variable", "value", "rows", "first", "index", "nearest", "problem")
        table = [line for error in (self, *self.others)[self._sums_up :] for line in error._lines()]
        frame = pd.DataFrame({name: [line[i] for line in table] for i, name in enumerate(columns)})
        return frame.astype({"rows": "Int64", "first": "Int64"})

    def mask(self, rows: Any) -> NDArray[np.bool_]:
        """Which rows of a frame, or of columns by name, are wrong: `frame[~error.mask(frame)]` are the others.

        Of a column that is wrong as a whole, all rows are. Of wrong likelihoods, only the first row is known.

        >>> EvidenceError("...", variable="A", values=[WrongValue("x", rows=2, first=1)]).mask({"A": ["y", "x", "x"]})
        array([False,  True,  True])
        """
        names = getattr(rows, "column_names", rows)  # a table of pyarrow, which says no name is in it
        wrong = [error._in_column(rows[error.variable]) for error in (self, *self.others) if error.variable in names]
        if not wrong:
            raise TacitError("the error is about none of these columns; expected those that it was raised for")
        return np.asarray(np.logical_or.reduce(wrong))

    def _in_column(self, column: Any) -> NDArray[np.bool_]:
        """Which rows of the column are wrong."""
        if self.values:
            values = {_told_apart(wrong.value) for wrong in self.values}
            cells = column.to_pylist() if hasattr(column, "to_pylist") else column  # pyarrow's cells have no equals
            return np.array([_told_apart(cell) in values for cell in cells], dtype=np.bool_)
        everything = self.row is None or self.rows is not None
        return np.array([everything or row == self.row for row in range(len(column))], dtype=np.bool_)

    def _lines(self) -> list[tuple[Any, ...]]:
        """The rows of `to_pandas` about this column."""
        about = self.variable or self.subject
        if not self.values:
            rows = 1 if self.rows is None and self.row is not None else self.rows
            return [(about, None, rows, self.row, self.index, None, self.problem.strip(" ,"))]
        return [
            (about, wrong.value, wrong.rows, wrong.first, wrong.index, wrong.meant, wrong.problem)
            for wrong in self.values
        ]


def _told_apart(cell: Any) -> tuple[bool, Any]:
    """A cell as a key: True and 1 are two of them, which Python takes for equal."""
    return isinstance(cell, bool | np.bool_), cell if isinstance(cell, Hashable) else shown(cell)


def _also_called(row: int, label: Any) -> str:
    """The label of a row, unless that is its number at the place that the message names."""
    if label is None or label == row:
        return ""
    return f" (index {shown(label) if isinstance(label, str | tuple) else label})"


def _label(index: Any, row: int) -> Any:
    """The label of a row in the index of its frame, unless that is its number."""
    label = _plain(index[row])
    return None if label == row else label


def _plain(label: Any) -> Any:
    """A label with Python's numbers in place of NumPy's, which are not written as people write them."""
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    return label.item() if hasattr(label, "item") else label


def _listed(values: Sequence[WrongValue]) -> str:
    """What is wrong in all rows of a column, as the end of a message; of a single row, what may be meant."""
    rows = sum(wrong.rows for wrong in values)
    if rows < 2:
        return "".join(f"; did you mean {wrong.meant!r}?" for wrong in values if wrong.meant is not None)
    more = f", and {plural(len(values) - MAX_LISTED, 'other value')}" if len(values) > MAX_LISTED else ""
    problems = {wrong.problem for wrong in values}
    are = OF_SEVERAL.get(problems.pop(), "are wrong") if len(problems) == 1 else "are wrong"
    return f"; {rows:,} rows {are}: {', '.join(map(str, values[:MAX_LISTED]))}{more}"


def _also(others: Sequence[EvidenceError]) -> str:
    """What is wrong in other columns, a line each, as the end of a message."""
    more = f"\nand {plural(len(others) - MAX_LISTED, 'more column')}" if len(others) > MAX_LISTED else ""
    return "".join(f"\nalso {other}" for other in others[:MAX_LISTED]) + more


class TooLargeError(TacitError):
    """The work asked for would not fit; raised before anything large is allocated.

    Of a query, the message has its width, the largest cluster, and the bytes that tables would need; where decision
    diagrams were tried, too, also the variable at which they gave up and the nodes that there were by then.
    """


class FormatError(TacitError):
    """A file is damaged or of an unknown kind, or a format cannot hold a network."""
