"""Evidence: what a user says about variables, turned once into checked arrays.

A column is hard (a state per row) or soft (a likelihood per state and row). Axes: likelihoods are
(states, rows), batch last; a column that says the same of every row has one row, which broadcasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.cpt import Floats
from tacit.display import plural
from tacit.errors import EvidenceError
from tacit.variable import DEFAULT_STATES, Variable, similar

# A mapping of columns, a pandas / polars / pyarrow table, or a 2-D float array over binary variables.
EvidenceLike = Mapping[str, Any] | Any

MISSING = -1
UNKNOWN = -2
FEW_STATES = 32
_NUMBER = int | float | np.number | np.bool_


@dataclass(frozen=True)
class Column:
    """The evidence on one variable; one of the two arrays is given.

    `codes` (rows,) holds the position of each observed state, -1 for none; `soft` (states, rows) holds
    likelihoods that sum to 1, or ones where there is no evidence.
    """

    variable: Variable
    codes: NDArray[np.int64] | None = None
    soft: Floats | None = None

    @property
    def rows(self) -> int:
        return int((self.codes if self.codes is not None else self.soft).shape[-1])  # type: ignore[union-attr]

    @property
    def certain(self) -> bool:
        """Whether every row observes a state."""
        return self.codes is not None and not bool(np.any(self.codes == MISSING))

    def block(self, start: int, stop: int) -> Column:
        """Some rows of the column; a single row that speaks for all stays as it is."""
        if self.rows == 1:
            return self
        codes = None if self.codes is None else self.codes[start:stop]
        return Column(self.variable, codes, None if self.soft is None else self.soft[:, start:stop])

    def take(self, rows: NDArray[np.int64]) -> Column:
        """The rows of these numbers; a single row that speaks for all stays as it is."""
        if self.rows == 1:
            return self
        codes = None if self.codes is None else self.codes[rows]
        return Column(self.variable, codes, None if self.soft is None else self.soft[:, rows])

    def likelihoods(self) -> Floats:
        """Likelihoods (states, rows), whatever form the evidence was given in."""
        if self.soft is not None:
            return self.soft
        assert self.codes is not None
        states = np.arange(self.variable.card)[:, None]
        return np.asarray((states == self.codes) | (self.codes == MISSING), dtype=np.float64)

    def states(self) -> NDArray[np.int64]:
        """The observed state of every row; an error where there is none, or where it is soft."""
        codes = self.codes
        if codes is None:
            assert self.soft is not None
            codes = np.where((self.soft > 0).sum(axis=0) == 1, self.soft.argmax(axis=0), MISSING)
        missing = np.flatnonzero(codes == MISSING)
        if len(missing):
            raise _error(
                self.variable, int(missing[0]), "a state is needed in every row, since the query was compiled "
                "with this variable in hard=; name it in evidence= to allow soft or missing values"
            )  # fmt: skip
        return codes


@dataclass(frozen=True)
class Evidence:
    """Checked evidence: one column per variable that has any, all with `rows` rows or one."""

    rows: int
    columns: Mapping[str, Column]

    def blocks(self, size: int) -> Iterator[Evidence]:
        """Some rows at a time, so that what is made of them need not fit into memory at once."""
        for start in range(0, self.rows, size):
            stop = min(start + size, self.rows)
            yield Evidence(stop - start, {name: column.block(start, stop) for name, column in self.columns.items()})

    def likelihoods(self, row: int = 0) -> dict[str, Floats]:
        """The likelihoods (states,) of one row, for the variables that have evidence."""
        found = {}
        for name, column in self.columns.items():
            values = column.likelihoods()
            found[name] = values[:, row if values.shape[1] > 1 else 0]
        return found


@np.errstate(over="ignore")  # sums of huge likelihoods that overflow are repaired
def read(
    evidence: EvidenceLike | None, variables: Sequence[Variable], declared: Iterable[str] | None = None
) -> Evidence:
    """Check `evidence` against the variables it may speak about.

    `declared` are the names a compiled query takes, in the order that a 2-D array's columns follow; all
    variables if left out.
    """
    by_name = {v.name: v for v in variables}
    names = list(by_name if declared is None else declared)
    allowed = set(names)
    given, rows = _split(evidence, [by_name[n] for n in names])
    columns: dict[str, Column] = {}
    for name, values in given.items():
        if name not in by_name:
            raise EvidenceError(
                f"evidence names {name!r}, which is not a variable of the network{similar(name, by_name)}"
            )
        if name not in allowed:
            raise EvidenceError(
                f"evidence on {name!r}, but the query was compiled for evidence on {names}; "
                "name it in evidence= or hard="
            )
        column, broadcasts = read_column(by_name[name], values)
        if column is None:
            continue
        if not broadcasts:
            if rows is not None and column.rows != rows:
                raise EvidenceError(
                    f"evidence on {name!r} has {plural(column.rows, 'row')}, other columns have {rows:,}"
                )
            rows = column.rows
        columns[name] = column
    if rows == 0:
        raise EvidenceError("the evidence has no rows; expected at least one")
    return Evidence(1 if rows is None else rows, columns)


def _split(evidence: EvidenceLike | None, variables: Sequence[Variable]) -> tuple[dict[str, Any], int | None]:
    """Evidence of any accepted kind as named columns, and its number of rows where a table fixes it."""
    if evidence is None:
        return {}, None
    if isinstance(evidence, Mapping):
        return dict(evidence), None
    if type(evidence).__name__ == "LazyFrame":
        raise EvidenceError("the evidence is a polars LazyFrame, which holds no rows yet; call .collect() on it first")
    for attribute in ("column_names", "columns"):  # pyarrow; pandas and polars
        if hasattr(evidence, attribute):
            names = list(getattr(evidence, attribute))
            if len(set(names)) < len(names):
                repeated = next(name for i, name in enumerate(names) if name in names[:i])
                raise EvidenceError(f"the evidence has two columns {repeated!r}; expected one per variable")
            return {name: evidence[name] for name in names}, len(evidence)
    table = evidence if isinstance(evidence, np.ma.MaskedArray) else _as_array(evidence)  # columns keep their masks
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise EvidenceError(
            f"evidence of type {type(evidence).__name__} is not understood; expected a mapping from variables to "
            "columns, a data frame, or a 2-D array of floats"
        )
    if table.shape[1] != len(variables):
        raise EvidenceError(
            f"the evidence array has {plural(table.shape[1], 'column')}, expected {len(variables)}: "
            + ", ".join(v.name for v in variables)
        )
    for v in variables:
        if v.card != 2:
            raise EvidenceError(
                f"a 2-D evidence array needs binary variables, but {v.name!r} has {v.card} states; pass a mapping"
            )
    return {v.name: table[:, i] for i, v in enumerate(variables)}, len(table)


def read_column(variable: Variable, values: Any) -> tuple[Column | None, bool]:
    """One column, and whether it is a single value that speaks for all rows. None: no evidence."""
    text = _as_text(values)
    if text is not None:
        return _from_text(variable, text), False
    array = _as_array(values)
    broadcasts = array.ndim == 0
    if broadcasts:
        array = array.reshape(1)
        if _is_missing(array[0]):
            return None, True
    if array.ndim == 2:
        return _likelihoods(variable, array), False
    if array.ndim != 1:
        raise EvidenceError(
            f"evidence on {variable.name!r} has {array.ndim} dimensions; expected (rows,) or (rows, {variable.card})"
        )
    if len(array) == 0:
        return Column(variable, codes=np.empty(0, dtype=np.int64)), False
    if array.dtype.kind in "OT":
        return _from_objects(variable, array.astype(object)), broadcasts
    return _from_typed(variable, array), broadcasts


@dataclass(frozen=True)
class _Text:
    """A column of text: the distinct labels, and for every row the place of its label, -1 for none."""

    labels: Sequence[str | None]
    places: NDArray[np.integer[Any]]


def _as_text(values: Any) -> _Text | None:
    """A text or categorical column of pyarrow or pandas, without a Python object per row: ten times faster."""
    library = type(values).__module__.partition(".")[0]
    if library == "pyarrow":
        found = _arrow_text(values)
    elif library == "pandas":
        found = _pandas_text(values)
    else:
        return None
    return found if found is not None and all(label is None or type(label) is str for label in found.labels) else None


def _arrow_text(values: Any) -> _Text | None:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    if isinstance(values, pa.StringArray | pa.LargeStringArray | pa.StringViewArray):
        values = values.dictionary_encode()
    if not isinstance(values, pa.DictionaryArray):
        return None
    return _Text(values.dictionary.to_pylist(), values.indices.cast(pa.int64()).fill_null(-1).to_numpy())


def _pandas_text(values: Any) -> _Text | None:
    import pandas as pd

    if not isinstance(getattr(values, "dtype", None), pd.CategoricalDtype | pd.StringDtype):
        return None
    places, labels = pd.factorize(values)
    return _Text(list(labels), places)


def _as_array(values: Any) -> NDArray[Any]:
    if isinstance(values, str):
        return np.array(values, dtype=object)  # NumPy's own strings lose a final "\0"
    if isinstance(values, list | tuple):
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different kinds or lengths
            array = np.empty(0, dtype=object)
        # a list that mixes labels with None or numbers must not become an array of strings
        if array.dtype.kind in "OUS" or (array.size == 0 and len(values)):
            array = np.empty(len(values), dtype=object)
            for i, value in enumerate(values):
                array[i] = value
        return array
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values)
    array = np.asarray(values)
    # pyarrow and polars turn whole numbers with gaps into floats, which would be likelihoods
    if array.dtype.kind == "f" and "int" in str(getattr(values, "type", getattr(values, "dtype", ""))).lower():
        array = np.array([None if np.isnan(value) else int(value) for value in array], dtype=object)
    return array


def _unmasked(values: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """What is masked is missing: NaN among floats, else None."""
    if values.dtype.kind == "f":
        return np.asarray(values.filled(np.nan))
    if not np.ma.is_masked(values):
        return np.asarray(values)
    array = np.asarray(values).astype(object)
    array[np.ma.getmaskarray(values)] = None
    return array


def _from_text(variable: Variable, text: _Text) -> Column:
    lookup = {**variable.codes, None: MISSING}
    code_of_place = np.array([*(lookup.get(label, UNKNOWN) for label in text.labels), MISSING], dtype=np.int64)
    codes = code_of_place[text.places]  # place -1, no label, is the last
    for row in np.flatnonzero(codes == UNKNOWN)[:1].tolist():
        raise _not_a_state(variable, text.labels[text.places[row]], row)
    return Column(variable, codes=codes)


def _from_typed(variable: Variable, array: NDArray[Any]) -> Column:
    """A 1-D array of one machine type: labels, or likelihoods of a binary variable's first state."""
    kind = array.dtype.kind
    if kind == "f" and np.isnan(array).all():  # what frames make of a column with nothing in it
        return Column(variable, codes=np.full(len(array), MISSING))
    if kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if kind in "US" or (variable.numeric and kind in "fiub"):
        return _labels(variable, array)
    if kind == "f" or (kind in "iub" and variable.states == DEFAULT_STATES):
        return _first_state(variable, array.astype(np.float64))
    if kind in "iub":
        raise _error(
            variable, 0, f"{array[0].item()!r} is not a state (expected {_states(variable)}); "
            f"a likelihood must be a float, and speaks of the first state, {variable.states[0]!r}"
        )  # fmt: skip
    raise EvidenceError(f"evidence on {variable.name!r} has type {array.dtype}, expected labels or floats")


def _from_objects(variable: Variable, array: NDArray[Any]) -> Column:
    """A 1-D array of Python objects: labels, floats or sequences of likelihoods, with missing values."""
    lookup = {**variable.codes, None: MISSING}
    try:
        found = [lookup.get(value, UNKNOWN) for value in array.tolist()]
    except TypeError:  # a sequence of likelihoods cannot be looked up
        found = [UNKNOWN]
    if UNKNOWN not in found:
        return Column(variable, codes=np.array(found, dtype=np.int64))
    missing = np.fromiter((_is_missing(v) for v in array), dtype=bool, count=len(array))
    present = array[~missing]
    if len(present) and isinstance(present[0], list | tuple | np.ndarray):
        return _likelihoods(variable, _stacked(variable, array, missing))
    numbers = all(isinstance(v, _NUMBER) for v in present)
    floats = any(isinstance(v, float | np.floating) for v in present)
    if numbers and not variable.numeric and (floats or variable.states == DEFAULT_STATES):
        values = np.full(len(array), np.nan)
        values[~missing] = present.astype(np.float64)
        return _first_state(variable, values)
    codes = np.full(len(array), MISSING, dtype=np.int64)
    for i in np.flatnonzero(~missing):
        codes[i] = _code(variable, array[i], int(i))
    return Column(variable, codes=codes)


def _labels(variable: Variable, array: NDArray[Any]) -> Column:
    codes = np.full(len(array), UNKNOWN, dtype=np.int64)
    if array.dtype.kind == "f":
        codes[np.isnan(array)] = MISSING
    if variable.card <= FEW_STATES:  # a comparison per state: faster than sorting the column
        for code, label in enumerate(variable.states):
            if isinstance(label, str) == (array.dtype.kind == "U"):
                codes[array == label] = code
    else:
        distinct, inverse = np.unique(array, return_inverse=True)
        codes = np.maximum(codes, np.array([variable.codes.get(v, UNKNOWN) for v in distinct.tolist()])[inverse])
    for row in np.flatnonzero(codes == UNKNOWN)[:1].tolist():
        raise _not_a_state(variable, array[row].item(), row)
    return Column(variable, codes=codes)


def _code(variable: Variable, value: Any, row: int) -> int:
    value = value.item() if isinstance(value, np.generic) else value
    try:
        return variable.codes[value]
    except (KeyError, TypeError):
        raise _not_a_state(variable, value, row) from None


def _not_a_state(variable: Variable, value: Any, row: int) -> EvidenceError:
    problem = f"{value!r} is not a state; expected one of {_states(variable)}"
    if isinstance(value, int | float) and variable.numeric:
        problem += f" (its labels are numbers; pass likelihoods as an array of shape (rows, {variable.card}))"
    elif isinstance(value, int | float) or (isinstance(value, str) and _spells_a_number(value)):
        problem += ", or a float in every row"
    return _error(variable, row, problem)


def _spells_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_state(variable: Variable, values: Floats) -> Column:
    if variable.card != 2:
        raise EvidenceError(
            f"evidence on {variable.name!r}, which has {variable.card} states, is a column of floats; "
            f"expected labels, or likelihoods of shape (rows, {variable.card})"
        )
    soft = np.stack([values, 1.0 - values])
    if soft.size and not soft.min() >= 0:  # out of range, or missing
        missing = np.isnan(values)
        for row in np.flatnonzero(~missing & ~((values >= 0) & (values <= 1)))[:1].tolist():
            raise _error(
                variable, row, f"{values[row]:g} is not a likelihood in [0, 1] of state {variable.states[0]!r}"
            )
        soft[:, missing] = 1.0
    return Column(variable, soft=soft)


def _likelihoods(variable: Variable, array: NDArray[Any]) -> Column:
    if array.shape[1] != variable.card:
        raise EvidenceError(
            f"evidence on {variable.name!r} has shape {array.shape}, expected (rows, {variable.card}): "
            f"one likelihood per state ({_states(variable)})"
        )
    try:
        table = np.array(array.T, dtype=np.float64, order="C")  # (states, rows)
    except (TypeError, ValueError):
        raise EvidenceError(f"evidence on {variable.name!r}: likelihoods must be numbers") from None
    total = table.sum(axis=0)
    usual = table.size > 0 and table.min() >= 0 and total.min() > 0 and np.isfinite(total.max())  # NaN fails here
    if not usual:
        total = _repaired(variable, table, total)
    return Column(variable, soft=table / total)


def _repaired(variable: Variable, table: Floats, total: Floats) -> Floats:
    """Set missing rows to 1, scale sums that overflowed, refuse what is wrong; returns the sums to divide by."""
    missing = np.isnan(table).all(axis=0)
    table[:, missing] = 1.0
    problems = {
        "likelihoods must be finite": ~np.isfinite(table).all(axis=0),
        "likelihoods must not be negative": (table < 0).any(axis=0),
        "all likelihoods are zero; at least one must be positive": (table == 0).all(axis=0),
    }
    for row in np.flatnonzero(np.any(list(problems.values()), axis=0))[:1].tolist():
        problem = next(text for text, bad in problems.items() if bad[row])
        raise _error(variable, row, f"{table[:, row].tolist()}: {problem}")
    huge = ~np.isfinite(total) & ~missing
    table[:, huge] /= table[:, huge].max(axis=0, initial=0.0)
    total[huge] = table[:, huge].sum(axis=0)
    total[missing] = 1.0
    return total


def _stacked(variable: Variable, array: NDArray[Any], missing: NDArray[np.bool_]) -> Floats:
    table = np.full((len(array), variable.card), np.nan)
    for i in np.flatnonzero(~missing):
        try:
            values = np.asarray(array[i], dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (variable.card,):
            raise _error(variable, int(i), f"{array[i]!r} is not one likelihood per state ({_states(variable)})")
        table[i] = values
    return table


def _is_missing(value: Any) -> bool:
    """None, NaN, or a frame library's own missing value (recognised by name: neither is a dependency)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float | np.floating) and bool(np.isnan(value))
    )  # fmt: skip


def _states(variable: Variable) -> str:
    shown = ", ".join(map(repr, variable.states[:6]))
    return shown + (", ..." if variable.card > 6 else "")


def _error(variable: Variable, row: int, problem: str) -> EvidenceError:
    return EvidenceError(f"evidence on {variable.name!r}, row {row}: {problem}")
