"""The states that the values of a column name. Values that name none, or may name several, are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.text import shown
from tacit.evidence.codes import MISSING, UNKNOWN
from tacit.evidence.frames import EXACT_FLOATS, MAX_INT8, SAMPLED_ROWS, Coded, TextColumn, smallest
from tacit.evidence.intervals import code_of_number, codes_of_numbers, tells_truths
from tacit.evidence.states import code_in_any_case
from tacit.evidence.wrong_values import not_states
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import Variable

Codes = NDArray[np.signedinteger[Any]]  # (rows,): the place of a state of its variable, MISSING, UNKNOWN or SEVERAL
SEVERAL = -3
MAX_COMPARED_STATES = 32  # whose labels an array is compared with, one after the other
MAX_COMPARED_LABELS = 4  # that are found faster by a comparison each than by a lookup
BLOCK_ROWS = 2**17
GAPS = ("NoneType", "NAType", "NaTType")  # the types of missing values, by name: no frame library is a dependency
FLOAT = float | np.floating
PLAIN_FLOATS = frozenset((float, type(None)))
SHORT_FLOATS = frozenset((np.float16, np.float32))
Mask = NDArray[np.bool_]


def of_distinct(variable: Variable, column: TextColumn | Coded) -> Codes:
    """The states that a column of text or of whole numbers names, by its distinct values."""
    if isinstance(column, TextColumn):
        values, lookup = column.labels, {**variable.codes, None: MISSING}
        meant = [lookup[label] if label in lookup else code_in_any_case(variable, label) for label in values]
    elif variable.bins is not None:
        values = column.numbers.tolist()
        meant = codes_of_numbers(variable.bins, column.numbers).tolist()
    else:
        values = column.numbers.tolist()
        meant = [variable.codes.get(number, UNKNOWN) for number in values]
    codes = _looked_up(np.array([*meant, MISSING], dtype=smallest(variable.card)), column.places)
    if UNKNOWN in meant and len(wrong := np.flatnonzero(codes == UNKNOWN)):
        present = int(np.count_nonzero(codes != MISSING))
        raise not_states(variable, [values[place] for place in column.places[wrong].tolist()], wrong, present)
    return codes


def _looked_up(code_of_place: Codes, places: NDArray[np.integer[Any]]) -> Codes:
    """The codes of places; -1, no label, is the last. Places that are the codes stay as they are."""
    labels = len(code_of_place) - 1
    same = places.dtype == code_of_place.dtype and np.array_equal(code_of_place[:-1], range(labels))
    if same and places.min(initial=0) >= MISSING and places.max(initial=MISSING) < labels:
        return places  # type: ignore[return-value]  # engines rely on it that none is outside
    if places.dtype != np.int8 or code_of_place.dtype != np.int8:
        return np.asarray(code_of_place[places])
    if len(code_of_place) <= MAX_COMPARED_LABELS + 1:
        return _compared(places, dict(enumerate(code_of_place[:-1].tolist())), MISSING)
    table = np.full(256, MISSING, dtype=np.int8)
    table[: len(code_of_place)] = code_of_place
    return np.frombuffer(places.tobytes().translate(table.tobytes()), dtype=np.int8)


def _compared(array: NDArray[Any], code_of: Mapping[Any, int], otherwise: int) -> Codes:
    """The codes, up to `MAX_INT8`, of the values of an array, by comparing all of it with each of them."""
    codes = np.full(len(array), otherwise, dtype=np.int8)
    for start in range(0, len(array), BLOCK_ROWS):  # what is made on the way stays in the cache
        some = array[start : start + BLOCK_ROWS]
        own = codes[start : start + BLOCK_ROWS].view(np.uint8)  # sums modulo 256
        for value, code in code_of.items():
            own += (some == value).view(np.uint8) * np.uint8((code - otherwise) % 256)
    return codes


class _Lookup(dict[Any, int]):
    """The codes of labels, of text in any case, and of missing values."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(variable.codes)
        self.variable = variable
        self[None] = self[np.nan] = MISSING  # other NaNs are other keys

    def __missing__(self, value: Any) -> int:
        code = MISSING if is_missing(value) else code_of_object(self.variable, value)
        if code == UNKNOWN:
            raise KeyError(value)
        if isinstance(value, str):  # not True and False, which are the same keys as 1 and 0
            self[value] = code
        return code


def code_of_object(variable: Variable, value: Any) -> int:
    """The code of what is not a label as it stands: text in any case, or a number in an interval."""
    if variable.bins is None or isinstance(value, str):
        return code_in_any_case(variable, value)
    return code_of_number(variable.bins, value)


def of_plain_objects(variable: Variable, array: NDArray[Any]) -> Codes | None:
    """The states that Python objects name, if each is a label as it stands, a number inside, or missing; else None."""
    if variable.bins is not None and set(map(type, array.tolist())) <= PLAIN_FLOATS:
        codes = codes_of_numbers(variable.bins, array.astype(np.float64))  # None becomes NaN
        return None if UNKNOWN in codes else codes
    if variable.numeric and any(isinstance(label, int) and abs(label) > EXACT_FLOATS for label in variable.states):
        return None  # a float may stand for several whole numbers, of which some are labels
    if variable.numeric and _alike_in_short_floats(variable) and not SHORT_FLOATS.isdisjoint(map(type, array.tolist())):
        return None
    lookup, dtype = _Lookup(variable), np.dtype(smallest(variable.card))
    left: NDArray[np.intp] | slice = slice(None)
    try:
        often = {id(value): lookup[value] for value in array[:: len(array) // SAMPLED_ROWS + 1].tolist()}
        if len(often) <= MAX_COMPARED_STATES and dtype == np.int8:
            # most columns hold one object for each label: to look objects up would take ten times as long
            codes = _compared(np.frombuffer(np.ascontiguousarray(array), dtype=np.intp), often, UNKNOWN)
            left = np.flatnonzero(codes == UNKNOWN)
        else:
            codes = np.empty(len(array), dtype)
        codes[left] = np.fromiter(map(lookup.__getitem__, array[left].tolist()), dtype)
    except (KeyError, TypeError):  # a sequence of likelihoods cannot be looked up
        return None
    return codes


def _alike_in_short_floats(variable: Variable) -> bool:
    """Whether labels become one in a type of floats that is shorter than Python's."""
    numbers = np.array([label for label in variable.states if isinstance(label, int | float)], dtype=np.float64)
    with np.errstate(over="ignore"):
        return any(len(np.unique(numbers.astype(kind))) < len(numbers) for kind in SHORT_FLOATS)


def of_objects(variable: Variable, array: NDArray[Any], missing: Mask) -> Codes:
    """The states that Python objects name, each for itself."""
    meanings = {dtype: _meanings(variable, dtype) for dtype in set(map(_float_type, array[~missing]))}
    codes = np.full(len(array), MISSING, dtype=smallest(variable.card))
    for i in np.flatnonzero(~missing).tolist():
        try:
            codes[i] = meanings[_float_type(array[i])].get(array[i], UNKNOWN)
        except TypeError:  # what has no hash is no label
            codes[i] = UNKNOWN
    return _checked(variable, codes, array)


def of_array(variable: Variable, array: NDArray[Any], missing: Mask | None) -> Codes:
    """The states that an array of one machine type names."""
    if variable.bins is not None and (
        array.dtype.kind in "fiu" or (array.dtype.kind == "b" and tells_truths(variable.bins))
    ):
        return _in_intervals(variable, variable.bins, array, missing)
    if (codes := _as_codes(variable, array)) is not None and (missing is None or not missing.any()):
        return codes
    if (codes := _as_codes_beside_gaps(variable, array, missing)) is not None:
        return codes
    stored = ((_stored(label, array.dtype), code) for label, code in _meanings(variable, array.dtype).items())
    code_of = {value: code for value, code in stored if value is not None}
    if array.dtype.kind == "b":
        code_of = {True: code_in_any_case(variable, True), False: code_in_any_case(variable, False), **code_of}
    few = variable.card <= MAX_COMPARED_STATES
    codes = _compared(array, code_of, UNKNOWN) if few else _searched(variable, array, code_of)
    if missing is not None:
        codes |= -missing.view(np.int8)  # all bits, which is -1; many times faster than codes[missing] = -1
    return _checked(variable, codes, array)


def _in_intervals(variable: Variable, bins: Edges, array: NDArray[Any], missing: Mask | None) -> Codes:
    """The states of an interval variable that an array of numbers falls into."""
    codes = codes_of_numbers(bins, array)
    if missing is not None:
        codes |= -missing.view(np.int8)
    return _checked(variable, codes, array)


def _searched(variable: Variable, array: NDArray[Any], code_of: Mapping[Any, int]) -> Codes:
    """The codes of the values of an array, by binary search among many."""
    if array.dtype.kind in "iu":
        least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        code_of = {value: code for value, code in code_of.items() if least <= value <= most}
    if not code_of:
        return np.full(len(array), UNKNOWN, dtype=smallest(variable.card))
    values = np.array(list(code_of), dtype=None if array.dtype.kind in "US" else array.dtype)
    order = values.argsort()
    values, codes = values[order], np.array(list(code_of.values()), dtype=smallest(variable.card))[order]
    places = values.searchsorted(array)
    places[places == len(values)] = 0
    return np.where(values[places] == array, codes[places], codes.dtype.type(UNKNOWN))


def _as_codes(variable: Variable, array: NDArray[Any]) -> Codes | None:
    """Whole numbers that are the places of states already, in the smallest type; None where they are not."""
    if array.dtype.kind not in "iu" or variable.states != tuple(range(variable.card)):
        return None
    small = smallest(variable.card)
    # one look at large numbers: none is negative, or too large for the type
    if not len(array) or not 0 <= np.bitwise_or.reduce(array) <= np.iinfo(small).max:
        return None
    codes = array.astype(small, copy=False)
    return codes if codes.max() < variable.card else None


def _as_codes_beside_gaps(variable: Variable, array: NDArray[Any], missing: Mask | None) -> Codes | None:
    """Places of states that became floats because some are missing, as codes; None where they are something else."""
    if array.dtype.kind != "f" or variable.card > MAX_INT8 or variable.states != tuple(range(variable.card)):
        return None
    places = array if missing is None else np.where(missing, MISSING, array)
    if not len(array) or not MISSING <= places.min() <= places.max() < variable.card:
        return None
    codes = places.astype(np.int8)
    gaps = 0 if missing is None else np.count_nonzero(missing)
    return codes if np.array_equal(codes, places) and np.count_nonzero(codes < 0) == gaps else None


def _checked(variable: Variable, codes: Codes, array: NDArray[Any]) -> Codes:
    """The codes of an array, if all are of states or missing; values that only resemble labels are looked up again."""
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown) and array.dtype.kind in "OUSb":
        values = array[unknown].tolist()
        values = list(map(_as_text, values)) if array.dtype.kind == "S" else values
        texts = {text: code_in_any_case(variable, text) for text in {v for v in values if isinstance(v, str)}}
        codes[unknown] = [texts[v] if isinstance(v, str) else code_of_object(variable, v) for v in values]
    wrong = np.flatnonzero(codes < MISSING)
    if len(wrong) and codes[wrong[0]] == SEVERAL:
        raise _several_states(variable, array[wrong[0]], int(wrong[0]))
    if len(wrong):
        wrong = wrong[codes[wrong] == UNKNOWN]
        present = int(np.count_nonzero(codes != MISSING))
        raise not_states(variable, list(map(_as_text, array[wrong].tolist())), wrong, present)
    return codes


def _stored(label: Any, dtype: np.dtype[Any]) -> Any:
    """The value by which an array of this type holds exactly this label; None if it cannot.

    NumPy's comparisons with other values are not exact: they round whole numbers to floats, and pass over a final
    "\\0" of text.
    """
    if isinstance(label, str):
        if label.endswith("\0") or dtype.kind not in "US":
            return None
        try:
            return label if dtype.kind == "U" else label.encode()
        except UnicodeEncodeError:  # a half of a character
            return None
    if dtype.kind == "f":
        return label
    if dtype.kind in "US" or label != int(label) or (dtype.kind == "b" and label not in (0, 1)):
        return None
    return int(label)


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _meanings(variable: Variable, dtype: np.dtype[Any]) -> dict[Any, int]:
    """The code of every value of this type that means a state; `SEVERAL` where labels become one in this type.

    Among floats, a label that is a fraction is rounded as the column was: 0.1 is found among float32. A whole number
    that is no float of this type is never meant.
    """
    if dtype.kind != "f":
        return variable.codes
    meanings: dict[Any, int] = {}
    for label, code in variable.codes.items():
        value = _as_float_of(dtype, label)
        if value in meanings:
            meanings[value] = SEVERAL
        elif value is not None:
            meanings[value] = code if isinstance(label, float) or value == label else UNKNOWN
    return meanings


def _float_type(value: Any) -> np.dtype[Any]:
    """The type of floats that a float has; that of objects for all else."""
    if not isinstance(value, FLOAT):
        return np.dtype(object)
    return value.dtype if isinstance(value, np.generic) else np.dtype(np.float64)


def _as_float_of(dtype: np.dtype[Any], label: Any) -> Any:
    """A label rounded to a type of floats; None if it is text, or too large."""
    if isinstance(label, str):
        return None
    try:
        with np.errstate(over="ignore"):
            value = dtype.type(label)
    except OverflowError:
        return None
    return value.item() if np.isfinite(value) else None


def _several_states(variable: Variable, value: Any, row: int) -> EvidenceError:
    dtype = _float_type(value)
    alike = [shown(label) for label in variable.states if _as_float_of(dtype, label) == value]
    problem = f"{shown(float(value))} may be {' or '.join(alike)}, which {dtype} cannot tell apart"
    return error_in_row(variable, row, f"{problem}; pass labels of a type that can")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or a frame library's own missing value."""
    return type(value).__name__ in GAPS or (isinstance(value, FLOAT) and bool(np.isnan(value)))


def error_in_row(variable: Variable, row: int, problem: str) -> EvidenceError:
    """An error about one row of the evidence on a variable."""
    return EvidenceError(problem, variable=variable.name, row=row)
