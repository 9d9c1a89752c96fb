"""The columns of a table on a cluster that are evidence, planned from their names before any row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.text import listed
from tacit.evidence.column_names import warn_missing
from tacit.evidence.read import AmbiguousEvidenceError, first_state
from tacit.evidence.tables.columns import Source, column_names, columns_of, find, floats_of, refuse_misspelt
from tacit.evidence.tables.csv_parquet import repeated
from tacit.model.elements.variable import Variable, similar, state_column

MAX_NAMES = 20  # of columns in a message


@dataclass(frozen=True)
class Columns:
    """The columns that are evidence. Made by `planned`."""

    sources: tuple[Source, ...]
    soft: frozenset[str]  # variables whose one column holds likelihoods, even where a part has only 0s and 1s

    @property
    def names(self) -> list[str]:
        """The columns that are needed."""
        return columns_of(self.sources)

    @property
    def variables(self) -> set[str]:
        """The variables that have evidence."""
        return {source.variable.name for source in self.sources}

    def warn_missing(self, names: Sequence[str]) -> None:
        """Warn that there is nothing on some of these variables."""
        warn_missing([name for name in names if name not in self.variables])

    def of(self, rows: Any) -> dict[str, Any]:
        """The evidence on each variable, from rows of a pandas frame or a pyarrow table."""
        return {source.variable.name: self._values(source, rows) for source in self.sources}

    def _values(self, source: Source, rows: Any) -> Any:
        if source.variable.continuous:
            return source.numbers({name: floats(name, rows[name]) for name in source.columns})
        if source.per_state:
            return np.column_stack([floats(name, rows[name]) for name in source.columns])
        (column,) = source.columns
        if source.variable.name in self.soft:
            return first_state(source.variable, floats(column, rows[column]))
        return rows[column]


def planned(
    variables: Sequence[Variable], names: Sequence[Any], likelihoods: Sequence[str] = (), kept: Sequence[Any] = ()
) -> Columns:
    """The columns of a table that are evidence on some variables; `kept` ones may be named like a misspelt variable."""
    texts = [name for name in names if isinstance(name, str)]
    present = set(texts)
    sources = [source for variable in variables if (source := find(variable, present)) is not None]
    used = {*columns_of(sources), *kept}
    expected = column_names(variables)
    refuse_misspelt(expected, texts, [name for name in texts if name not in used])
    if not sources:
        raise EvidenceError(f"no column of the table is evidence ({listed(expected, MAX_NAMES)}); {has(names)}")
    for name in repeated(list(names)):
        if name in columns_of(sources):
            raise EvidenceError(f"the table has two columns {name!r}; expected one")
    return Columns(tuple(sources), _soft(sources, likelihoods))


def _soft(sources: Sequence[Source], likelihoods: Sequence[str]) -> frozenset[str]:
    """The variables whose one column is known to hold likelihoods."""
    names = (likelihoods,) if isinstance(likelihoods, str) else tuple(likelihoods)
    by_name = {source.variable.name: source for source in sources}
    for name in names:
        if name not in by_name:
            hint = similar(name, by_name)
            raise EvidenceError(f"likelihoods= names {name!r}, on which the table has no evidence{hint}")
        variable = by_name[name].variable
        if variable.continuous:
            raise EvidenceError(f"likelihoods= names {name!r}, which is continuous: a number is a value of it")
        if variable.bins is not None:
            raise EvidenceError(f"likelihoods= names {name!r}, whose states are intervals: a number is a value of it")
        if variable.card != 2:
            expected = [state_column(name, state) for state in variable.states]
            raise EvidenceError(
                f"likelihoods= names {name!r}, which has {variable.card} states; a single column of likelihoods is "
                f"enough for two states only, expected columns {listed(expected, MAX_NAMES)}"
            )
    return frozenset(name for name in names if not by_name[name].per_state)


@contextmanager
def hinting() -> Iterator[None]:
    """Add what helps to an error about a column of 0s and 1s that may differ in other partitions."""
    try:
        yield
    except AmbiguousEvidenceError as error:
        hint = "if it holds likelihoods in other partitions, name the variable in likelihoods="
        raise error.changed(problem=f"{error.problem}; {hint}") from None


def floats(name: str, column: Any) -> Floats:
    """A column of numbers, of pandas or pyarrow."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return floats_of(name, column)
    try:
        return floats_of(name, pa.array(column, from_pandas=True))
    except pa.ArrowException as error:
        raise EvidenceError(f"column {name!r}: expected numbers ({error})") from None


def has(names: Sequence[Any]) -> str:
    """The columns of a table, for a message."""
    return f"it has {listed(names, MAX_NAMES) or 'none'}"
