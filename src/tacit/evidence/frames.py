"""Columns of any library as NumPy arrays, beside what is missing in them. No number changes on the way.

Frame libraries turn whole numbers with gaps into floats when NumPy asks for an array. That makes likelihoods of codes,
and neighbours of numbers beyond 2^53; so their columns are opened here, each by its own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError

EXACT_FLOATS = 2**53  # up to here, every whole number is a float64
MAX_INT8, MAX_INT16 = 2**7 - 1, 2**15 - 1  # labels whose places fit into one byte each, or into two
SAMPLED_ROWS = 100  # rows that are looked at to find out what a column is made of


@dataclass(frozen=True)
class TextColumn:
    """A column of text: the distinct labels, and for every row the place of its label, -1 for none."""

    labels: Sequence[str | None]
    places: NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Plain:
    """An array whose values mean nothing where they are `missing`, as NaN among floats and None among objects do."""

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Coded:
    """A column by its distinct whole numbers, and for every row the place of its number, -1 for none."""

    numbers: NDArray[np.integer[Any]]
    places: NDArray[np.integer[Any]]

    def plain(self) -> Plain:
        """The number of every row."""
        numbers = self.numbers if len(self.numbers) else np.zeros(1, dtype=self.numbers.dtype)
        return Plain(numbers[self.places], self.places == -1)


class ConversionError(EvidenceError):
    """A container that NumPy cannot convert."""


def is_framed(values: Any) -> bool:
    """Whether a column belongs to a frame library."""
    return _library(values) in ("pandas", "polars", "pyarrow")


def frame_index(rows: Any) -> Any:
    """The index of a pandas frame; None for all else, also for a Series, which may be a row."""
    return rows.index if _library(rows) == "pandas" and hasattr(rows, "columns") else None


def column_index(values: Any) -> Any:
    """The index of a pandas Series; None for all else."""
    return getattr(values, "index", None) if _library(values) == "pandas" else None


def unpack(values: Any) -> TextColumn | Plain:
    """A column, or a single value, from any container."""
    column = opened(values)
    return column.plain() if isinstance(column, Coded) else column


def opened(values: Any) -> TextColumn | Coded | Plain:
    """A column, or a single value, from any container; categories of whole numbers stay encoded."""
    by_library = {"pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_arrow}
    column = by_library.get(_library(values), _from_python)(values)
    return Plain(as_array(values)) if column is None else column


def as_array(values: Any) -> NDArray[Any]:
    """A container of any kind as a NumPy array."""
    try:
        return np.asarray(values)
    except Exception as error:  # whatever the container's own conversion raises
        raise ConversionError(f"{type(values).__name__} cannot be read: {error}") from error


def _library(values: Any) -> str:
    return type(values).__module__.partition(".")[0]


def _from_python(values: Any) -> TextColumn | Plain | None:
    """Python's own containers, and masked arrays."""
    if isinstance(values, str):
        return Plain(np.array(values, dtype=object))  # NumPy's own strings lose a final "\0"
    if isinstance(values, list | tuple):
        return Plain(_from_sequence(values))
    if is_masked(values):
        return Plain(np.asarray(values), np.ma.getmaskarray(values))
    return None


def is_masked(values: Any) -> bool:
    """Whether it is a masked array; `np.ma`, which loads slowly, is loaded only if it may be one."""
    return isinstance(values, np.ndarray) and type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray)


def _from_sequence(values: Sequence[Any]) -> NDArray[Any]:
    if any(value is None or isinstance(value, str) for value in values[:: len(values) // SAMPLED_ROWS + 1]):
        return objects(values)
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):  # rows of different kinds or lengths
        return objects(values)
    if array.dtype.kind in "OUS" or (array.size == 0 and len(values)):
        return objects(values)  # NumPy may have written None and numbers as text
    if array.dtype == np.float64 and array.ndim == 1:
        large = np.flatnonzero(np.abs(array) >= EXACT_FLOATS).tolist()
        if any(isinstance(values[i], int | np.integer) for i in large):
            return objects(values)
    return array


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array (rows,) of Python objects, of which some may be sequences."""
    return np.fromiter(values, dtype=object, count=len(values))


def _from_arrow(values: Any) -> TextColumn | Coded | Plain | None:
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray):
        return None
    try:
        whole = _in_one_piece(values)
        if isinstance(whole, pa.DictionaryArray) and pa.types.is_integer(whole.type.value_type):
            numbers = whole.dictionary
            if not numbers.null_count:
                return Coded(numbers.to_numpy(), _arrow_places(whole.indices, smallest(len(numbers))))
        column = decoded(whole)
    except pa.ArrowNotImplementedError:  # an encoding within another one
        return Plain(objects(values.to_pylist()))
    if isinstance(column, pa.DictionaryArray):
        labels = column.dictionary.to_pylist()
        return TextColumn(labels, _arrow_places(column.indices, smallest(len(labels))))
    if not column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        return Plain(as_array(column))
    filled = column.fill_null(pa.scalar(0).cast(column.type))
    return Plain(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def smallest(labels: int) -> type[np.signedinteger[Any]]:
    """The smallest integer type that holds the places of so many labels, and some negative codes."""
    return np.int8 if labels <= MAX_INT8 else np.int16 if labels <= MAX_INT16 else np.int32


def _arrow_places(indices: Any, kind: type[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """The indices of a dictionary of pyarrow, -1 for nulls; a fifth of the time that its own casts take."""
    if not len(indices):
        return np.empty(0, dtype=kind)
    valid, values = indices.buffers()
    rows = slice(indices.offset, indices.offset + len(indices))
    held = np.frombuffer(values, dtype=indices.type.to_pandas_dtype(), count=rows.stop)[rows]
    if not indices.null_count:
        return held.astype(kind, copy=False)
    places = held.astype(kind)
    bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), count=rows.stop, bitorder="little")[rows]
    places |= (bits - np.uint8(1)).view(np.int8)  # all bits, which is -1, where a bit is 0
    return places


def _in_one_piece(column: Any) -> Any:
    """A column of pyarrow as one array; runs are written out."""
    import pyarrow as pa
    import pyarrow.compute

    if isinstance(column.type, pa.RunEndEncodedType):
        column = pyarrow.compute.run_end_decode(column)
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
    return column


def decoded(column: Any) -> Any:
    """A column of pyarrow in one piece: text as a DictionaryArray, all else without any encoding."""
    import pyarrow as pa
    import pyarrow.compute

    column = _in_one_piece(column)
    kind = column.type.value_type if isinstance(column, pa.DictionaryArray) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if isinstance(column, pa.DictionaryArray):
        return column if text else column.dictionary_decode()
    if not text:
        return column
    # if possible with the labels of a sample: to find all distinct ones is slower
    sampled = pa.array(range(0, len(column), len(column) // SAMPLED_ROWS + 1), pa.int64())
    some = column.take(sampled).unique().drop_null()
    indices = pyarrow.compute.index_in(column, value_set=some)
    if indices.null_count > column.null_count:
        return column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(indices, some, safe=False)


def _from_pandas(values: Any) -> TextColumn | Coded | Plain | None:
    import pandas as pd

    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        values = getattr(values, "array", values)
        places, categories = values.codes, values.categories
        if all(type(category) is str for category in categories):
            return TextColumn(list(categories), places)
        distinct = as_array(categories)
        return Coded(distinct, places) if distinct.dtype.kind in "iu" else Plain(distinct[places], places == -1)
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        import pyarrow as pa

        return _from_arrow(pa.array(values))
    if isinstance(dtype, pd.StringDtype):
        places, labels = pd.factorize(values)
        return TextColumn(list(labels), places)
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype) or dtype.kind not in "iubf":
        return None
    missing = np.asarray(pd.isna(values))
    return Plain(values.to_numpy(dtype=dtype.type, na_value=0), missing) if missing.any() else None


def _from_polars(values: Any) -> TextColumn | Plain | None:
    import polars as pl

    if not isinstance(values, pl.Series):
        return None
    if values.dtype in (pl.String, pl.Categorical, pl.Enum):
        return _from_polars_text(values)
    if not (values.dtype.is_integer() or values.dtype == pl.Boolean):
        return None
    if values.dtype in (pl.Int128, getattr(pl, "UInt128", pl.Int128)):  # NumPy has no such numbers
        return Plain(objects(values.to_list()))
    if not values.null_count():
        return None
    return Plain(values.fill_null(pl.lit(0).cast(values.dtype)).to_numpy(), values.is_null().to_numpy())


def _from_polars_text(values: Any) -> TextColumn:
    """Text of polars, by its categories; plain text becomes an Enum, with its distinct labels as categories."""
    import polars as pl

    if values.dtype == pl.String:
        for some in (values.gather_every(len(values) // SAMPLED_ROWS + 1), values):
            encoded = values.cast(pl.Enum(some.unique().drop_nulls()), strict=False)
            if encoded.null_count() == values.null_count():
                break
        values = encoded
    if values.dtype == pl.Enum:
        labels = values.dtype.categories.to_list()
        return TextColumn(labels, _polars_places(values, smallest(len(labels))))
    largest = values.to_physical().max()
    places = _polars_places(values, smallest(0 if largest is None else largest + 1))
    used = _categories(values.gather_every(len(values) // SAMPLED_ROWS + 1))  # other columns may use others
    if places.dtype != np.int8 or places.tobytes().translate(None, bytes((*used, 255))):  # some are left
        used = _categories(values)
    return TextColumn([used.get(place) for place in range(max(used, default=-1) + 1)], places)


def _polars_places(values: Any, kind: type[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """The places of categories, -1 for nulls, by NumPy: casts of polars take longer."""
    import polars as pl

    places = values.to_physical()
    if places.null_count():
        held = places.head(0).to_numpy().dtype
        if held.itemsize < np.dtype(kind).itemsize:
            places, held = places.cast(pl.UInt32), np.dtype(np.uint32)
        places = places.fill_null(np.iinfo(held).max)  # all bits, which become -1
    array = places.to_numpy()
    return np.asarray(array.view(kind) if array.itemsize == np.dtype(kind).itemsize else array.astype(kind))


def _categories(values: Any) -> dict[int, str]:
    """The categories that some rows have, by their places."""
    distinct = values.unique().drop_nulls()
    return dict(zip(distinct.to_physical().to_list(), distinct.to_list(), strict=True))
