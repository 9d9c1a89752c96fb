"""Columns of a CSV file that are copied to a Parquet file: of the type that all of their cells have.

A cell of a CSV file is text. Where all cells of a column are whole numbers, all are numbers, or all are true or false,
the copy is a column of integers, floats or booleans, in which empty cells and words such as NA are gaps. Where one cell
is anything else, all stay text, as they are. So do numbers that would not come back: those with leading zeros, which
are identifiers ("007"), and whole ones with more digits than the type can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tacit.rows.spelling import MISSING

# 12e7 may be an identifier, too: programs write a sign in the exponent
FRACTION = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+][0-9]+)?|[eE][-+][0-9]+)"
KINDS = {  # by the names that pyarrow has for them, the narrowest first
    "int64": "^(?:-?[1-9][0-9]{0,18}|0)$",
    "double": f"^(?:-?[1-9][0-9]{{0,14}}|0|{FRACTION})$",
    "bool": "^(?i:true|false)$",
}
TEXT = "string"


def typed_schema(schema: Any, names: Sequence[str], parts: Iterable[Any]) -> Any:
    """The schema of tables with some columns of text, with the types that all cells of these columns have."""
    import pyarrow as pa

    found = [[kinds(part.column(name)) for name in names] for part in parts]
    chosen = {name: common(own) for name, *own in zip(names, *found, strict=True)}
    return pa.schema([
        field.with_type(pa.type_for_alias(chosen[field.name])) if field.name in chosen else field for field in schema
    ])  # fmt: skip


def typed(part: Any, schema: Any) -> Any:
    """A table whose columns have the types of a schema."""
    import pyarrow as pa

    columns = [
        own if own.type == field.type else _without_gaps(own).cast(field.type)
        for own, field in zip(part.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def kinds(column: Any) -> list[str] | None:
    """The kinds that all cells of a column of text have; None if there are only gaps.

    >>> import pyarrow as pa
    >>> kinds(pa.array(["7", "", "12"])), kinds(pa.array(["007", "12"])), kinds(pa.array(["NA"]))
    (['int64', 'double'], [], None)
    """
    words = _without_gaps(column).drop_null()
    return [kind for kind in KINDS if _are(words, kind)] if len(words) else None


def common(found: Iterable[list[str] | None]) -> str:
    """The narrowest kind that all parts of a column have, or text.

    >>> common([["int64", "double"], None, ["double"]]), common([None]), common([["bool"], ["int64", "double"]])
    ('double', 'string', 'string')
    """
    told = [own for own in found if own is not None]
    return next((kind for kind in KINDS if told and all(kind in own for own in told)), TEXT)


def _without_gaps(column: Any) -> Any:
    """A column of text, without a value where there is none."""
    import pyarrow as pa
    from pyarrow import compute

    gaps = compute.is_in(compute.utf8_lower(column), value_set=pa.array(sorted(MISSING)))
    return compute.if_else(gaps, pa.scalar(None, pa.string()), column)


def _are(words: Any, kind: str) -> bool:
    """Whether all words are of a kind, and within its range."""
    import pyarrow as pa
    from pyarrow import compute

    if not compute.all(compute.match_substring_regex(words, KINDS[kind])).as_py():
        return False
    try:
        values = words.cast(kind)
    except pa.ArrowInvalid:
        return False
    return kind != "double" or bool(compute.all(compute.is_finite(values)).as_py())
