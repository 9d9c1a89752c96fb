"""Columns of a table that are left out of a search, whatever the table is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tacit.base.errors import EvidenceError, TacitError
from tacit.evidence.read import named_columns, without_columns
from tacit.evidence.tables.csv_parquet import FileTable, with_columns
from tacit.learn.estimating.sources import is_stream
from tacit.model.elements.variable import similar


def checked_exclude(exclude: Iterable[str], weights: Any) -> tuple[str, ...]:
    """Names of columns to leave out, as a user lists them."""
    if isinstance(exclude, str):
        raise TacitError(f"exclude must be a sequence of names, e.g. [{exclude!r}]")
    unwanted = tuple(exclude)
    if isinstance(weights, str) and weights in unwanted:
        raise TacitError(f"the column {weights!r} holds the weights; do not exclude it")
    return unwanted


def require_columns(names: Iterable[str], table: Collection[Any]) -> None:
    """An error where a column to leave out is not there."""
    for name in names:
        if name not in table:
            raise EvidenceError(f"exclude names {name!r}, which is not a column{similar(name, map(str, table))}")


def without(rows: Any, unwanted: Collection[str]) -> Any:
    """The rows without some of their columns."""
    if not unwanted:
        return rows
    if isinstance(rows, FileTable):
        require_columns(unwanted, rows.names)
        return with_columns(rows, [name for name in rows.names if name not in unwanted])
    if isinstance(rows, Iterator):
        return (without_columns(batch, unwanted) for batch in rows)
    if is_stream(rows):
        return _Batches(rows, unwanted)
    require_columns(unwanted, named_columns(rows) or ())
    return without_columns(rows, unwanted)


@dataclass(frozen=True)
class _Batches:
    """Batches without some of their columns, as often as they are gone through."""

    batches: Iterable[Any]
    unwanted: Collection[str]

    def __iter__(self) -> Iterator[Any]:
        return (without_columns(batch, self.unwanted) for batch in self.batches)
