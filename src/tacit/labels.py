"""Which state of its variable each value of a column names. What names none, or may name several, is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.containers import EXACT, Text
from tacit.errors import EvidenceError
from tacit.variable import Variable

Codes = NDArray[np.signedinteger[Any]]  # (rows,): the place of a state of its variable, or one of these three
MISSING = -1
UNKNOWN = -2
SEVERAL = -3
FEW_STATES = 32
BYTE = 127  # the largest code of one byte
FEW_LABELS = 8
BLOCK = 2**17
SHOWN = 80  # characters of a value in a message
FLOAT = float | np.floating
Mask = NDArray[np.bool_]


def of_text(variable: Variable, text: Text) -> Codes:
    """The states that a column of text names."""
    lookup = {**variable.codes, None: MISSING}
    meant = (lookup[label] if label in lookup else alike(variable, label) for label in text.labels)
    code_of_place = np.array([*meant, MISSING], dtype=np.int64)
    codes = _looked_up(code_of_place, text.places)
    if UNKNOWN in code_of_place:
        for row in np.flatnonzero(codes == UNKNOWN)[:1].tolist():
            raise _not_a_state(variable, text.labels[text.places[row]], row)
    return codes


def _looked_up(code_of_place: Codes, places: NDArray[np.integer[Any]]) -> Codes:
    """The codes of places; -1, no label, is the last. Bytes are compared with each label, many at once."""
    if places.dtype != np.int8 or code_of_place.max() > BYTE:
        return np.asarray(code_of_place[places])
    if len(code_of_place) > FEW_LABELS:
        table = np.full(256, MISSING, dtype=np.int8)
        table[: len(code_of_place)] = code_of_place
        return np.frombuffer(places.tobytes().translate(table.tobytes()), dtype=np.int8)
    codes = np.full(len(places), MISSING, dtype=np.int8)
    for start in range(0, len(places), BLOCK):  # what is made on the way stays in the cache
        some, own = places[start : start + BLOCK], codes[start : start + BLOCK]
        for place, code in enumerate(code_of_place[:-1].tolist()):
            own += (some == place).view(np.int8) * np.int8(code - MISSING)
    return codes


def of_plain_objects(variable: Variable, array: NDArray[Any]) -> Codes | None:
    """The states that Python objects name, if each is a label as it stands, or None."""
    if variable.numeric and any(isinstance(label, int) and abs(label) > EXACT for label in variable.states):
        return None  # a float may stand for several whole numbers, of which some are labels
    lookup = {**variable.codes, None: MISSING}
    try:
        return np.fromiter(map(lookup.__getitem__, array.tolist()), np.int64, len(array))
    except (KeyError, TypeError):  # a sequence of likelihoods cannot be looked up
        return None


def of_objects(variable: Variable, array: NDArray[Any], missing: Mask) -> Codes:
    """The states that Python objects name, each for itself."""
    meanings = {dtype: _meanings(variable, dtype) for dtype in set(map(_float_type, array[~missing]))}
    codes = np.full(len(array), MISSING, dtype=np.int64)
    for i in np.flatnonzero(~missing).tolist():
        try:
            codes[i] = meanings[_float_type(array[i])].get(array[i], UNKNOWN)
        except TypeError:  # what has no hash is no label
            codes[i] = UNKNOWN
    return _checked(variable, codes, array)


def of_array(variable: Variable, array: NDArray[Any], missing: Mask) -> Codes:
    """The states that an array of one machine type names."""
    if (codes := _as_codes(variable, array)) is not None and not missing.any():
        return codes
    meanings = _meanings(variable, array.dtype)
    if variable.card <= FEW_STATES:  # a comparison per state: faster than sorting the column
        codes = np.full(len(array), UNKNOWN, dtype=np.int64)
        for label, code in meanings.items():
            if (value := _stored(label, array.dtype)) is not None:
                codes[array == value] = code
    else:
        distinct, inverse = np.unique(array, return_inverse=True)
        codes = np.array([meanings.get(v, UNKNOWN) for v in distinct.tolist()], dtype=np.int64)[inverse]
    codes[missing] = MISSING
    return _checked(variable, codes, array)


def _as_codes(variable: Variable, array: NDArray[Any]) -> Codes | None:
    """Whole numbers that are the places of states already, in a byte each; None where they are not, or do not fit."""
    if array.dtype.kind not in "iu" or variable.card > BYTE or variable.states != tuple(range(variable.card)):
        return None
    if not len(array) or not 0 <= np.bitwise_or.reduce(array) <= BYTE:  # one look at large numbers: none is negative
        return None
    codes = array.astype(np.int8)
    return codes if codes.max() < variable.card else None


def _checked(variable: Variable, codes: Codes, array: NDArray[Any]) -> Codes:
    """The codes of an array, if all are of states or missing; values that only resemble labels are looked up again."""
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown) and array.dtype.kind in "OUSb":
        codes[unknown] = [alike(variable, value) for value in array[unknown].tolist()]
    for row in np.flatnonzero(codes < MISSING)[:1].tolist():
        refused = _several_states if codes[row] == SEVERAL else _not_a_state
        raise refused(variable, array[row], row)
    return codes


def alike(variable: Variable, value: Any) -> int:
    """The code of the one label that a text is but for its case and spaces around it; True and False are text, too.

    >>> states = Variable("A", ("TRUE", "FALSE"))
    >>> alike(states, "False"), alike(states, True), alike(states, "maybe") == UNKNOWN
    (1, 0, True)
    """
    text = str(value) if isinstance(value, bool | np.bool_) else value
    return variable.plain.get(text.strip().lower(), UNKNOWN) if isinstance(text, str) else UNKNOWN


def _stored(label: Any, dtype: np.dtype[Any]) -> Any:
    """What an array of this type holds where it holds exactly this label; None if it cannot.

    NumPy's comparisons with other values are not exact: they round whole numbers to floats, and pass over a final
    "\\0" of text.
    """
    if isinstance(label, str):
        return label if dtype.kind == "U" and not label.endswith("\0") else None
    if dtype.kind == "f":
        return label
    if dtype.kind == "U" or label != int(label) or (dtype.kind == "b" and label not in (0, 1)):
        return None
    return int(label)


def _meanings(variable: Variable, dtype: np.dtype[Any]) -> dict[Any, int]:
    """The code of every value of this type that means a state; `SEVERAL` where labels become one in this type.

    Among floats, a label that is a fraction is rounded as the column was: 0.1 is found among float32. A whole number
    that is no float of this type is never meant.
    """
    if dtype.kind != "f":
        return variable.codes
    found: dict[Any, int] = {}
    for label, code in variable.codes.items():
        value = _as_float_of(dtype, label)
        if value in found:
            found[value] = SEVERAL
        elif value is not None:
            found[value] = code if isinstance(label, float) or value == label else UNKNOWN
    return found


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


def _not_a_state(variable: Variable, value: Any, row: int) -> EvidenceError:
    value = value.item() if isinstance(value, np.generic) else value
    problem = f"{shown(value)} is not a state; expected one of {listed_states(variable)}"
    number = _spelled(value)
    if number is not None and variable.numeric:
        problem += f" (its labels are numbers; pass likelihoods as an array of shape (rows, {variable.card}))"
    elif number is not None and variable.card == 2 and 0 < number < 1:
        problem += ", or a float in every row"
    elif number is not None:  # a code, whose meaning as a likelihood may be the opposite
        problem += f", or likelihoods of shape (rows, {variable.card})"
    return error_in_row(variable, row, problem)


def _several_states(variable: Variable, value: Any, row: int) -> EvidenceError:
    dtype = _float_type(value)
    alike = [shown(label) for label in variable.states if _as_float_of(dtype, label) == value]
    return error_in_row(
        variable, row, f"{shown(float(value))} may be {' or '.join(alike)}, which {dtype} cannot tell apart; "
        "pass labels of a type that can"
    )  # fmt: skip


def _spelled(value: Any) -> float | None:
    """The number that a value is, or spells."""
    try:
        return as_float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def as_float(number: Any) -> float:
    """A number of any size as a float."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def listed_states(variable: Variable) -> str:
    """The states of a variable in a message; of many, the first."""
    return ", ".join(map(shown, variable.states[:6])) + (", ..." if variable.card > 6 else "")


def shown(value: Any) -> str:
    """A value in a message, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def shown_number(number: float) -> str:
    """A number in a message: short, but never as one that it is not.

    >>> shown_number(-1.0), shown_number(1.0000000000000002)
    ('-1', '1.0000000000000002')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def error_in_row(variable: Variable, row: int, problem: str) -> EvidenceError:
    """The error for what is wrong with one row of the evidence on a variable."""
    return EvidenceError(f"evidence on {variable.name!r}, row {row}: {problem}")
