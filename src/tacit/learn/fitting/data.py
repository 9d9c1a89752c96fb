"""Labelled rows: evidence, labels and weights, checked once before training starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural, shown_number
from tacit.evidence.column import Column, take
from tacit.evidence.frames import TextColumn, column_index, frame_index, is_framed, unpack
from tacit.evidence.read import is_ambiguous, named_columns, read_column
from tacit.model.elements.variable import Variable
from tacit.query.tac import TAC

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Data:
    """Rows to learn from: evidence columns, targets and the weight of every row."""

    columns: Mapping[str, Column]
    targets: Floats  # (groups, rows): a group for every state of the query, or for the first, and for all others
    weights: Floats

    @property
    def rows(self) -> int:
        return len(self.weights)

    def arrays(self) -> list[NDArray[Any]]:
        """Everything as arrays, in a fixed order."""
        return [self.targets, self.weights, *(column.likelihoods() for _, column in sorted(self.columns.items()))]

    def take(self, rows: NDArray[np.int64]) -> Data:
        """Some of the rows, with weights that sum to 1."""
        weights = self.weights[rows]
        return Data(take(self.columns, rows), np.ascontiguousarray(self.targets[:, rows]), weights / weights.sum())


def read_data(tac: TAC, X: Any, y: Any, weights: ArrayLike | None, label: Any = None) -> Data:
    """Evidence, labels (`y`, or the column `label` of `X`) and weights of the same rows; an error names a bad row."""
    if (y is None) == (label is None):
        problem = "there are no labels" if y is None else "labels are given twice, as y and by label="
        raise EvidenceError(f"{problem}; expected y, or label= with the name of a column of X")
    _check_densities(tac)
    if label is None:
        _check_no_label(tac, X, y)
    else:
        X, y = _without_label(X, label)
    evidence = tac.read(X)
    if not evidence.rows:
        raise EvidenceError("the evidence has no rows; expected at least one")
    try:
        targets = read_labels(tac.variable, y)
    except EvidenceError as error:
        raise error.indexed(frame_index(y) if hasattr(y, "columns") else column_index(y)) from None
    rows = targets.shape[1]
    if evidence.rows != rows and any(column.rows > 1 for column in evidence.columns.values()):
        raise EvidenceError(f"there are {plural(evidence.rows, 'row')} of evidence but {rows:,} labels")
    return Data(evidence.columns, targets, read_weights(weights, rows))


def _check_densities(tac: TAC) -> None:
    """An error where densities would have to be learned: here they only make likelihoods of numbers."""
    if tac.asks_for_numbers:
        problem = f"the query, {tac.query!r}, is continuous, and labels are states or their probabilities"
        raise TacitError(f"{problem}; tacit.estimate learns densities")
    for name in tac.network.continuous:
        if name in tac.program.likelihoods and ((density := tac.network.density(name)).learn or density.unset):
            how = "tacit.estimate learns it from rows, and a tacit.torch.TACModule by gradients"
            raise TacitError(f"node {name!r} has a density to learn, and tacit.fit learns tables; {how}")


def _without_label(X: Any, label: Any) -> tuple[dict[Any, Any], Any]:
    """The columns of a frame that are evidence, and the one that holds the labels."""
    columns = named_columns(X)
    if columns is None:
        raise EvidenceError(f"label is {label!r}, but X, a {type(X).__name__}, has no named columns; pass labels as y")
    if label not in list(columns):
        raise EvidenceError(f"label is {label!r}, expected one of the columns of X: {list(columns)}")
    return {name: values for name, values in columns.items() if name != label}, columns[label]


def _check_no_label(tac: TAC, X: Any, y: Any) -> None:
    for name in named_columns(X) or ():
        if name in (tac.query, getattr(y, "name", None)) and name not in tac.evidence:
            problem = f"X has a column {name!r}, which holds labels and is no evidence"
            raise EvidenceError(f"{problem}; take it out of X, or leave out y and pass label={name!r}")


def read_labels(variable: Variable, y: Any) -> Floats:
    """Targets (groups, rows) from probabilities of the first state, from distributions, or from labels."""
    y = _one_column(variable, y) if hasattr(y, "columns") else y
    if isinstance(y, np.ma.MaskedArray) and y.dtype.kind == "f":
        y = y.filled(np.nan)
    try:
        array = _held(y) if is_framed(y) else np.asarray(y)
    except ValueError:
        raise EvidenceError(f"labels of {variable.name!r} are rows of different lengths; expected one shape") from None
    if array.size == 0 or array.ndim == 0:
        raise EvidenceError(f"labels have shape {array.shape}; expected one per row")
    if array.ndim == 2:
        return _distributions(variable, array)
    if array.ndim == 1 and array.dtype.kind == "f" and not variable.numeric:
        return _probabilities(variable, array.astype(np.float64), is_framed(y))
    try:
        column, _ = read_column(variable, y)
    except EvidenceError as error:
        raise error.changed(subject=f"labels of {variable.name!r}") from None
    assert column is not None
    targets = column.likelihoods()
    for row in np.flatnonzero(targets.sum(axis=0) > 1.5)[:1].tolist():
        raise _error(variable, row, "there is no label")
    return np.ascontiguousarray(np.broadcast_to(targets, (len(targets), len(array))))


def _held(y: Any) -> NDArray[Any]:
    """The floats of a frame's column, NaN in gaps; of another kind of column, an array of the same length."""
    column = unpack(y)
    if isinstance(column, TextColumn):
        return column.places
    if column.missing is None or column.values.dtype.kind != "f":
        return column.values
    return np.where(column.missing, np.nan, column.values)


def _one_column(variable: Variable, frame: Any) -> Any:
    """The labels in a frame: its only column, or a column of probabilities for every state, in any order."""
    names = list(getattr(frame, "column_names", frame.columns))
    if len(names) == 1:
        return frame[names[0]]
    place = {str(name): name for name in names}
    if len(names) != variable.card or set(place) != {str(state) for state in variable.states}:
        expected = f"one column, or one per state: {list(variable.states)}"
        raise EvidenceError(f"labels of {variable.name!r} are a frame with columns {names}; expected {expected}")
    return np.stack([np.asarray(frame[place[str(state)]]) for state in variable.states], axis=1)


def _probabilities(variable: Variable, values: Floats, framed: bool) -> Floats:
    for row in np.flatnonzero(~((values >= 0) & (values <= 1)))[:1].tolist():
        number = shown_number(values[row])
        raise _error(variable, row, f"{number} is not a probability in [0, 1] of state {variable.states[0]!r}")
    if framed and is_ambiguous(variable, values):
        meanings = f"a code or the probability of the first state, {variable.states[0]!r}"
        problem = f"{shown_number(values[0])} may be {meanings}, since the column holds only 0 and 1"
        raise _error(variable, 0, f"{problem}; pass labels, or probabilities of shape (rows, 2)")
    return np.stack([values, 1 - values])


def _distributions(variable: Variable, array: NDArray[Any]) -> Floats:
    if array.shape[1] != variable.card:
        expected = f"(rows, {variable.card}): one probability per state"
        raise EvidenceError(f"labels of {variable.name!r} have shape {array.shape}, expected {expected}")
    try:
        table = np.array(array.T, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise EvidenceError(f"labels of {variable.name!r}: distributions must be numbers") from None
    wrong = ~((table >= 0) & (table <= 1)).all(axis=0) | ~(np.abs(table.sum(axis=0) - 1) <= SUM_TOLERANCE)
    for row in np.flatnonzero(wrong)[:1].tolist():
        raise _error(variable, row, f"{table[:, row].tolist()} is not a distribution: numbers in [0, 1] that sum to 1")
    return table


def read_weights(weights: ArrayLike | None, rows: int) -> Floats:
    """The weights of rows, scaled to sum to 1; equal ones if left out."""
    if weights is None:
        return np.full(rows, 1 / rows)
    shares = checked_weights(weights, rows)
    if not shares.any():
        raise EvidenceError("all weights are 0; at least one row must count")
    shares = shares / shares.max()  # the sum of large ones may be more than a float holds
    return np.asarray(shares / shares.sum())


def checked_weights(weights: ArrayLike, rows: int | None = None) -> Floats:
    """The weights of rows: finite numbers >= 0, as many as there are rows, where that is known."""
    try:
        array: Any = np.ma.asarray(weights)
        if array.dtype.kind not in "biufO":
            raise TypeError
        numbers = np.asarray(array.astype(np.float64).filled(np.nan))
    except (TypeError, ValueError, OverflowError):
        raise EvidenceError("weights are not numbers; expected one number >= 0 per row") from None
    if numbers.ndim != 1 or rows not in (None, len(numbers)):
        expected = "(rows,)" if rows is None else f"({rows},)"
        raise EvidenceError(f"weights have shape {numbers.shape}, expected {expected}: one per row")
    for row in np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))[:1].tolist():
        raise EvidenceError(f"{numbers[row]:g} is not a finite number >= 0", subject="weights", row=row)
    return numbers


def _error(variable: Variable, row: int, problem: str) -> EvidenceError:
    return EvidenceError(problem, variable=variable.name, subject=f"labels of {variable.name!r}", row=row)
