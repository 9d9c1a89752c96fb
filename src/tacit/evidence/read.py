"""Reading evidence: from containers of any kind to checked columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.text import plural, shown, shown_number
from tacit.base.warnings import warn
from tacit.evidence import labels
from tacit.evidence.codes import MISSING
from tacit.evidence.column import CACHED_ROWS, Column, Evidence
from tacit.evidence.column_names import ForAllRows, by_variable
from tacit.evidence.frames import (
    Coded,
    ConversionError,
    Plain,
    as_array,
    column_index,
    frame_index,
    is_framed,
    is_masked,
    opened,
    smallest,
)
from tacit.evidence.intervals import is_number
from tacit.evidence.labels import FLOAT, GAPS, Mask, error_in_row, is_missing
from tacit.evidence.likelihoods import as_given, row_blocks
from tacit.evidence.number_columns import columns_together, read_numbers
from tacit.evidence.numbers import as_float
from tacit.evidence.records import columns_of_records, is_one_row, is_records
from tacit.evidence.states import AS_TEXT, numbers_spelled, wrong_states
from tacit.model.elements.distributions import SUM_TOLERANCE
from tacit.model.elements.variable import DEFAULT_STATES, Variable, listed_states

# Columns by name, a pandas / polars / pyarrow table, rows that name their fields, or a 2-D array of labels or floats.
EvidenceLike = Mapping[str, Any] | Any

NUMBER = int | FLOAT | np.integer | np.bool_
MIN_THREADED_ROWS = 100_000  # of a frame, from which on its columns are read in several threads


class AmbiguousRowsWarning(UserWarning):
    """Two floats that sum to 1 were read as two rows; they may be meant as the likelihoods of two states in one row."""


class AmbiguousEvidenceError(EvidenceError):
    """A column of a frame holds only 0, 1 and gaps, which may be codes or likelihoods."""


def read(
    evidence: EvidenceLike | None,
    variables: Sequence[Variable],
    declared: Iterable[str] | None = None,
    empty: bool = False,
    lazily: bool = False,
    queries: Collection[str] = (),
) -> Evidence:
    """Check `evidence` against the variables it may speak about; what was checked before stays as it is.

    `declared` are the names a compiled query takes, in the order that a 2-D array's columns follow; all
    variables if left out. Evidence without any row is an error, unless it may be `empty`.

    What is read holds copies, so that it stays the same whatever becomes of the user's arrays. If it is read `lazily`,
    it refers to these arrays where it can: it is for the moment only, and whoever reads likelihoods checks them,
    block by block. States are checked in any case.

    A mapping names variables. A frame may have other columns, which are not used: a warning names them. The column of
    a variable that is asked for, one of the `queries`, is one of those unless it is `declared`. In both, a variable may
    also have a column for each of its states, of likelihoods: `C.lo`, `C.hi`.
    """
    by_name = {v.name: v for v in variables}
    names = list(by_name if declared is None else declared)
    allowed = set(names)
    unread, rows, framed = _split(evidence, [by_name[n] for n in names])
    answers = [name for name in queries if declared is None or name not in allowed]
    unread = by_variable(columns_together(unread, variables), by_name, framed, answers, evidence)
    for name in unread:
        if name not in allowed:
            raise undeclared(name, names, queries)

    index = frame_index(evidence)

    def read_one(name: str) -> tuple[Column | None, bool] | EvidenceError:
        try:
            return read_column(by_name[name], unread[name], framed, lazily, index)
        except EvidenceError as error:
            return error

    if framed and (rows or 0) >= MIN_THREADED_ROWS:
        with ThreadPoolExecutor(machine.threads()) as pool:
            tried = list(pool.map(read_one, unread))
    else:
        tried = list(map(read_one, unread))
    columns: dict[str, Column] = {}
    for name, (column, broadcasts) in zip(unread, _all_good(tried), strict=True):
        if column is None:
            continue
        if not broadcasts:
            if rows is not None and column.rows != rows:
                raise EvidenceError(f" has {plural(column.rows, 'row')}, other columns have {rows:,}", variable=name)
            rows = column.rows
        columns[name] = column
    if rows == 0 and not empty:
        raise EvidenceError("the evidence has no rows; expected at least one")
    if rows == 2 and isinstance(evidence, Mapping):
        _warn_of_two_rows(unread, columns)
    return Evidence(1 if rows is None else rows, columns)


def _all_good(tried: Sequence[tuple[Column | None, bool] | EvidenceError]) -> list[tuple[Column | None, bool]]:
    """The columns that were read; one error about all that are wrong, if any is."""
    errors = [one for one in tried if isinstance(one, EvidenceError)]
    if errors:
        raise errors[0].changed(others=errors[1:]) if errors[1:] else errors[0]
    return [one for one in tried if not isinstance(one, EvidenceError)]


def _warn_of_two_rows(unread: Mapping[str, Any], columns: Mapping[str, Column]) -> None:
    """Warn where nothing but pairs of floats that sum to 1 says that there are two rows."""
    pairs = {name: unread[name] for name, column in columns.items() if column.rows == 2}
    if not all(columns[name].codes is None and _may_be_likelihoods(pair) for name, pair in pairs.items()):
        return
    name, (first, second) = next((name, [float(number) for number in pair]) for name, pair in pairs.items())
    state = shown(columns[name].variable.states[0])
    understood = f"[{first}, {second}] was read as two rows, with these likelihoods of the first state, {state}"
    two_rows = f"[[{first}, {1 - first:g}], [{second}, {1 - second:g}]]"
    remedy = f"for one row with a likelihood of each state write [[{first}, {second}]], for two rows {two_rows}"
    warn(f"evidence on {name!r}: {understood}; {remedy}", AmbiguousRowsWarning)


def _may_be_likelihoods(pair: Any) -> bool:
    if not isinstance(pair, list | tuple):  # arrays come from programs, which know what they mean
        return False
    return all(isinstance(number, FLOAT) for number in pair) and abs(sum(pair) - 1) < SUM_TOLERANCE


def undeclared(name: str, declared: Sequence[str], queries: Collection[str]) -> EvidenceError:
    """The error about evidence that a query was not compiled for, which never advises to observe the query itself."""
    remedy = "leave it out" if name in queries else "name it in evidence= or hard=, or leave it out"
    problem = f", but the query was compiled for evidence on {list(declared)}; {remedy}"
    return EvidenceError(problem, variable=name)


def _split(evidence: EvidenceLike | None, variables: Sequence[Variable]) -> tuple[Mapping[str, Any], int | None, bool]:
    """Evidence as named columns, the number of rows where a table fixes it, and whether that table is a frame."""
    if evidence is None:
        return {}, None, False
    if isinstance(evidence, Evidence):
        return evidence.columns, evidence.rows, False
    if isinstance(evidence, list | tuple) and not evidence:
        return {}, 0, True
    columns = named_columns(evidence)
    if columns is not None:
        fixed = None if isinstance(evidence, Mapping) or is_one_row(evidence) else len(evidence)
        return columns, fixed, not isinstance(evidence, Mapping)
    try:
        table: Any = evidence if is_masked(evidence) else as_array(evidence)
    except ConversionError:
        table = np.empty(0)
    if table.ndim != 2 or table.dtype.kind not in "fiubOUS":
        expected = "columns or rows by name (a mapping, a data frame, a list of dictionaries), or a 2-D array"
        raise EvidenceError(f"evidence of type {type(evidence).__name__} is not understood; expected {expected}")
    names = [name for v in variables for name in (v.columns or (v.name,))]
    if table.shape[1] != len(names):
        expected = f"{len(names)}: {', '.join(names)}"
        raise EvidenceError(f"the evidence array has {plural(table.shape[1], 'column')}, expected {expected}")
    for v in variables if table.dtype.kind == "f" else ():
        if v.card != 2 and not (v.numeric or v.continuous):
            problem = f"but {v.name!r} has {v.card} states; pass labels, or a mapping"
            raise EvidenceError(f"a 2-D evidence array of floats needs binary variables, {problem}")
    return {name: table[:, i] for i, name in enumerate(names)}, len(table), False


def named_columns(evidence: Any) -> Mapping[Any, Any] | None:
    """The columns of a mapping or a frame by their names; None for what has no names."""
    if isinstance(evidence, Mapping):
        return evidence
    if isinstance(evidence, Evidence):
        return evidence.columns
    if type(evidence).__name__ == "LazyFrame":
        raise EvidenceError("the evidence is a polars LazyFrame, which holds no rows yet; call .collect() on it first")
    for attribute in ("column_names", "columns"):  # pyarrow; pandas and polars
        if hasattr(evidence, attribute):
            names = list(getattr(evidence, attribute))
            if len(set(names)) < len(names):
                repeated = next(name for i, name in enumerate(names) if name in names[:i])
                raise EvidenceError(f"the evidence has two columns {repeated!r}; expected one per variable")
            return {name: evidence[name] for name in names}
    return columns_of_records(evidence)


def is_frame(evidence: Any) -> bool:
    """Whether evidence is a table of a frame library, or of pyarrow, or rows that name their own fields."""
    if isinstance(evidence, Mapping | Evidence):
        return False
    return hasattr(evidence, "columns") or hasattr(evidence, "column_names") or is_records(evidence)


def without_columns(evidence: Any, names: Collection[Any]) -> Any:
    """A mapping or a frame without some of its columns, of which it may lack some; a frame stays one."""
    if type(evidence).__module__.partition(".")[0] == "pandas":
        return evidence.drop(columns=list(names), errors="ignore")
    if hasattr(evidence, "column_names"):  # a table or a batch of pyarrow
        return evidence.select([other for other in evidence.column_names if other not in names])
    if hasattr(evidence, "drop"):  # polars
        return evidence.drop(list(names), strict=False)
    return {other: values for other, values in (named_columns(evidence) or {}).items() if other not in names}


def read_column(
    variable: Variable, values: Any, framed: bool = False, lazily: bool = False, index: Any = None
) -> tuple[Column | None, bool]:
    """One column, None without evidence, and whether it is a single value that holds for all rows.

    A column is `framed` if it comes from a frame; those of frame libraries are, wherever they come from. It is a copy,
    and checked, unless it is read `lazily`; see `read`. Errors name rows by the `index` of the frame, too, or else by
    that of the column itself.
    """
    if isinstance(values, Column):
        if values.variable != variable:
            states = f"{listed_states(values.variable)}; the variable has {listed_states(variable)}"
            problem = f" was read for the states {states}, so that it must be read again"
            raise EvidenceError(problem, variable=variable.name)
        return values if lazily or values.given is None else values.kept(), values.rows == 1
    if variable.continuous:
        numbers, broadcasts = read_numbers(variable, values, index)
        return numbers if numbers is None or (lazily and not broadcasts) else numbers.kept(), broadcasts
    index = column_index(values) if index is None else index
    try:
        column, broadcasts = _referring(variable, values, framed)
    except EvidenceError as error:
        raise error.indexed(index) from None
    if column is None:
        return None, broadcasts
    column.index = index
    if variable.bins is not None and column.rows == 1:
        column.number = _single_number(values)
    return column if lazily and column.rows != 1 else column.kept(), broadcasts


def _single_number(values: Any) -> float | None:
    """The number that a single row has, if that is what it has."""
    value = np.asarray(values).ravel().tolist()
    return float(value[0]) if len(value) == 1 and is_number(value[0]) else None


def _referring(variable: Variable, values: Any, framed: bool) -> tuple[Column | None, bool]:
    """One column whose likelihoods are unchecked, in arrays that may be the user's, and whether it broadcasts."""
    if isinstance(values, ForAllRows):
        return _likelihoods(variable, values.likelihoods), True
    if isinstance(values, Mapping):  # of one row
        return _likelihoods(variable, _by_state(variable, values)[None]), True
    try:
        column = opened(values)
    except ConversionError as error:
        raise EvidenceError(str(error), variable=variable.name) from None
    if isinstance(column, Coded) and variable.states == DEFAULT_STATES:
        column = column.plain()  # 1 and 0 are likelihoods of the first state
    if not isinstance(column, Plain):
        return Column(variable, codes=labels.of_distinct(variable, column)), False
    array, missing = column.values, column.missing
    if array.ndim == 0:
        if is_missing(array[()]) or (missing is not None and missing):
            return None, True
        return _from_array(variable, array.reshape(1), None, framed=False), True
    if array.ndim == 2:
        return _likelihoods(variable, array, missing), False
    if array.ndim != 1:
        problem = f" has {array.ndim} dimensions; expected (rows,) or (rows, {variable.card})"
        raise EvidenceError(problem, variable=variable.name)
    return _from_array(variable, array, missing, framed or is_framed(values)), False


def _from_array(variable: Variable, array: NDArray[Any], missing: Mask | None, framed: bool) -> Column:
    """A 1-D array of any type: labels, numbers in intervals, or likelihoods of a binary variable's first state."""
    kind = array.dtype.kind
    if kind in "OT":
        array = array.astype(object)
        if missing is not None:
            array[missing] = None
        return _from_objects(variable, array, framed)
    if (kind == "f" and not variable.numeric) or (kind in "iub" and variable.states == DEFAULT_STATES):
        values = as_given(array, missing)
        assert values is not None
        return _nothing(variable, len(array)) if _all_missing(values) else first_state(variable, values, framed)
    if kind == "f" and variable.bins is None:
        missing = np.isnan(array) if missing is None else missing | np.isnan(array)
    if missing is not None and missing.all():  # also what frames make of a column with nothing in it
        return _nothing(variable, len(array))
    if kind in "USfiub":
        return Column(variable, codes=labels.of_array(variable, array, missing))
    problem = f" has type {array.dtype}, expected labels or floats"
    raise EvidenceError(problem, variable=variable.name, rows=len(array))


def _nothing(variable: Variable, rows: int) -> Column:
    return Column(variable, codes=np.full(rows, MISSING, dtype=smallest(variable.card)))


def _all_missing(values: NDArray[Any]) -> bool:
    return all(np.isnan(values[rows]).all() for rows in row_blocks(values))


def _from_objects(variable: Variable, array: NDArray[Any], framed: bool) -> Column:
    """A 1-D array of Python objects: labels, floats or sequences of likelihoods, with missing values."""
    if (codes := labels.of_plain_objects(variable, array)) is not None:
        return Column(variable, codes=codes)
    first = next((value for value in array if not is_missing(value)), None)
    if isinstance(first, list | tuple | np.ndarray | Mapping):
        return _likelihoods(variable, _stacked(variable, array, _missing(array)))
    if not variable.numeric and (values := _numbers(array, codes=variable.states == DEFAULT_STATES)) is not None:
        return first_state(variable, values, framed)
    return Column(variable, codes=labels.of_objects(variable, array, _missing(array)))


def _numbers(array: NDArray[Any], codes: bool) -> Floats | None:
    """Objects as floats, NaN where one is missing. None if one is no number, or none is a float, unless by `codes`."""
    pieces: list[Floats] = []
    for start in range(0, len(array), CACHED_ROWS):  # types and values are two looks at objects that lie scattered
        some = array[start : start + CACHED_ROWS]
        if not all(issubclass(kind, NUMBER) or kind.__name__ in GAPS for kind in set(map(type, some.tolist()))):
            return None
        try:
            pieces.append(some.astype(np.float64))  # None becomes NaN
        except (TypeError, OverflowError):  # a frame's own missing value, or a number beyond all floats
            pieces.append(np.array([np.nan if is_missing(value) else as_float(value) for value in some]))
    if not codes and not any(isinstance(value, FLOAT) and not is_missing(value) for value in array):
        return None
    return np.concatenate(pieces)


def _missing(array: NDArray[Any]) -> Mask:
    return np.fromiter(map(is_missing, array), dtype=bool, count=len(array))


def first_state(variable: Variable, values: NDArray[Any], framed: bool = False) -> Column:
    """Likelihoods of the first of two states, NaN for no evidence; codes must not be mistaken for them in a frame."""
    if variable.card != 2:
        expected = f"labels, or likelihoods of shape (rows, {variable.card})"
        problem = f", which has {variable.card} states, is a column of floats; expected {expected}"
        if numbers_spelled(variable).keys() >= set(values[~np.isnan(values)][:CACHED_ROWS].tolist()):
            problem += f"; its states are text: {AS_TEXT}"
        raise EvidenceError(problem, variable=variable.name, rows=len(values))
    if framed and is_ambiguous(variable, values):
        row, first = int(np.isnan(values).argmin()), shown(variable.states[0])
        readings = f"{shown_number(values[row])} may be a code or the likelihood of the first state, {first}"
        remedy = f"pass labels ({listed_states(variable)}), or likelihoods of shape (rows, 2)"
        problem = f"{readings}, since the column holds only 0, 1 and gaps; {remedy}"
        raise AmbiguousEvidenceError(problem, variable=variable.name, row=row, rows=len(values))
    return Column(variable, given=values)


def is_ambiguous(variable: Variable, values: NDArray[Any]) -> bool:
    """Whether floats of a frame or a file may be codes as well as likelihoods of the first state.

    Frames write codes 0 and 1 as floats where there is a gap. For "true" and "false" both readings are the same.
    """
    if variable.card != 2 or variable.numeric or variable.states == DEFAULT_STATES:
        return False
    some = (values[rows] for rows in row_blocks(values))  # the first ones of likelihoods tell
    return all(((own == 0) | (own == 1) | np.isnan(own)).all() for own in some) and not _all_missing(values)


def _likelihoods(variable: Variable, array: NDArray[Any], missing: Mask | None = None) -> Column:
    if array.shape[1] != variable.card:
        expected = f"(rows, {variable.card}): one likelihood per state ({listed_states(variable)})"
        problem = f" has shape {array.shape}, expected {expected}"
        raise EvidenceError(problem, variable=variable.name, rows=len(array))
    given = as_given(array, missing)
    if given is None:
        raise EvidenceError("likelihoods must be numbers", variable=variable.name, rows=len(array))
    return Column(variable, given=given)


def _by_state(variable: Variable, likelihoods: Mapping[Any, Any], row: int | None = None) -> Floats:
    """The likelihoods (states,) of one row that are given by the names of the states."""
    by_name = {str(state): value for state, value in likelihoods.items()}
    names = list(map(str, variable.states))
    if by_name.keys() != set(names) or not all(isinstance(value, NUMBER) for value in by_name.values()):
        problem = f"{shown(likelihoods)} is not one likelihood per state ({listed_states(variable)})"
        raise EvidenceError(f"{problem}{wrong_states(names, by_name)}", variable=variable.name, row=row)
    return np.array([by_name[name] for name in names], dtype=np.float64)


def _stacked(variable: Variable, array: NDArray[Any], missing: Mask) -> Floats:
    table = np.full((len(array), variable.card), np.nan)
    for i in np.flatnonzero(~missing):
        row = array[i]
        values = _by_state(variable, row, int(i)) if isinstance(row, Mapping) else as_given(row)
        if values is None or values.shape != (variable.card,):
            expected = f"one likelihood per state ({listed_states(variable)})"
            raise error_in_row(variable, int(i), f"{shown(array[i])} is not {expected}")
        table[i] = values
    return table
