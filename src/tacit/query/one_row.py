"""One row of evidence as the bytes that generated code reads: a lookup for each label, and little else.

Whatever is not plain (labels in another spelling, likelihoods that may be wrong, other columns, anything wrong) is left
to `evidence.read`, which looks closer and takes a hundred times as long.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.engine import RowLayout, SingleRow
from tacit.evidence.codes import MISSING
from tacit.evidence.column import Evidence
from tacit.evidence.intervals import NUMBER, code_of_number
from tacit.model.elements.variable import Variable
from tacit.query.answers.answer import Answer

MIN_EXACT, MAX_EXACT = 2.0**-1022, 2.0**1022  # sums and likelihoods that floats hold with all digits
COMPLEX = (complex, np.complex64, np.complex128)  # equal to a label, perhaps, but none
MAX_INT = 2048  # whole numbers up to here are told apart by floats of any size


class OneRow:
    """Answers single rows of a query: mappings of labels, one row of a frame, or evidence that was read before.

    `required` are variables that must have a state, `known` are states that all rows have, `without` are variables that
    are always left to a closer look.
    """

    def __init__(
        self,
        engine: SingleRow,
        variables: Iterable[Variable],
        required: Iterable[str],
        known: Mapping[str, int],
        without: Iterable[str],
    ) -> None:
        self._engine, layout = engine, engine.layout
        self._places: dict[str, int] = {name: i for i, name in enumerate((*layout.inputs, *layout.codes))}
        self._parts: list[bytes | None] = [b""] * len(self._places)  # of a row without evidence
        self._labels: dict[str, dict[Any, bytes]] = {}
        self._states: dict[str, tuple[Variable, list[bytes]]] = {}  # the last one, at -1, is that of no evidence
        self._required = set(required)
        for variable in variables:
            name, texts = variable.name, self._texts(variable, layout)
            if self._places.setdefault(name, len(self._parts)) == len(self._parts):  # not read, but checked
                self._parts.append(b"")
            if name in known:
                self._parts[self._places[name]] = texts[known[name]]
                continue
            self._parts[self._places[name]] = None if name in self._required else texts[MISSING]
            self._states[name] = variable, texts
            # labels that are found by equality alone, whatever kind of number is given
            plain = all(isinstance(s, str) or (isinstance(s, int) and abs(s) <= MAX_INT) for s in variable.states)
            if name not in without and plain:
                self._labels[name] = dict(zip(variable.states, texts, strict=False))
                if name not in self._required:
                    self._labels[name][None] = texts[MISSING]

    @staticmethod
    def _texts(variable: Variable, layout: RowLayout) -> list[bytes]:
        """What is written for each state, and for no evidence; of numbers, only for none of them."""
        if variable.continuous:
            return [np.ones(variable.card).tobytes() if variable.name in layout.inputs else b""]
        if variable.name in layout.codes:
            return [np.int32(code).tobytes() for code in range(variable.card)]
        if variable.name in layout.inputs:
            return [row.tobytes() for row in (*np.eye(variable.card), np.ones(variable.card))]
        return [b""] * (variable.card + 1)

    def posterior(self, evidence: Any) -> NDArray[Any] | None:
        """P*(q) of one row: (1, states); None, if the evidence is something else or needs a closer look."""
        row = self._encoded(evidence)
        if row is None:
            return None
        posterior = self._engine.posterior(row)
        # impossible evidence has a warning, which the long way gives
        return posterior if posterior is not None and posterior[0, 0] == posterior[0, 0] else None

    def answer(self, evidence: Any) -> Answer | None:
        """The joint of one row; None, if the evidence is something else or needs a closer look."""
        row = self._encoded(evidence)
        joint = None if row is None else self._engine.joint(row)
        return None if joint is None else Answer(*joint, {})

    def _encoded(self, evidence: Any) -> bytes | None:
        if type(evidence) is dict:
            return self._of_labels(evidence)
        if type(evidence) is Evidence:
            return self._of_evidence(evidence) if evidence.rows == 1 else None
        read = ROW_READERS.get(type(evidence).__module__.partition(".")[0])
        if read is None or len(getattr(evidence, "shape", ())) != 2 or len(evidence) != 1:
            return None
        row = read(evidence)
        if len(row) < len(self._states) or len(row) != evidence.shape[1]:
            return None
        return self._of_labels(row, likelihoods=False)  # numbers of frames may be codes

    def _of_labels(self, row: Mapping[str, Any], likelihoods: bool = True) -> bytes | None:
        """A row of labels, or also of `likelihoods` (1, states). None, if it needs a closer look."""
        parts = self._parts.copy()
        for name, value in row.items():
            try:
                text = self._labels[name][value]
                if type(value) in COMPLEX:
                    return None
            except (KeyError, TypeError, ValueError):  # no label, or not of this variable
                if (number := self._of_number(name, value)) is not None:
                    text = number
                elif not likelihoods or (text := self._of_likelihoods(name, value)) is None:  # type: ignore[assignment]
                    return None
            parts[self._places[name]] = text
        return None if None in parts else b"".join(parts)  # type: ignore[arg-type]

    def _of_number(self, name: str, value: Any) -> bytes | None:
        """A number inside one of the intervals of a variable. None, if it needs a closer look."""
        variable, texts = self._states.get(name, (None, []))
        if variable is None or variable.bins is None or name not in self._labels or not isinstance(value, NUMBER):
            return None
        code = code_of_number(variable.bins, value)
        return texts[code] if code >= 0 else None

    def _of_likelihoods(self, name: str, value: Any) -> bytes | None:
        """Likelihoods (1, states), divided by their sum as `likelihoods.normalised` does it, if they are plain."""
        variable, texts = self._states.get(name, (None, []))
        if variable is None or name in self._required or name not in self._labels:
            return None
        if type(value) is float and variable.card == 2 and not variable.numeric and 0 <= value <= 1:
            return struct.pack("2d", value, 1.0 - value) if texts[0] else b""
        if type(value) is not np.ndarray or value.shape != (1, variable.card) or value.dtype.char not in "df":
            return None
        likelihoods = value[0].tolist()
        total = reduce(operator.add, likelihoods)  # `sum` would add in another way from Python 3.12 on
        if not (min(likelihoods) >= 0 and MIN_EXACT <= total <= MAX_EXACT):  # also where some are not numbers
            return None
        shares = [x / total for x in likelihoods]
        if any(x > 0 and share < MIN_EXACT for x, share in zip(likelihoods, shares, strict=True)):
            return None
        return struct.pack(f"{len(shares)}d", *shares) if texts[0] else b""

    def _of_evidence(self, evidence: Evidence) -> bytes | None:
        """A row that was read before. None, if it needs a closer look."""
        parts = self._parts.copy()
        try:
            for name, column in evidence.columns.items():
                variable, texts = self._states[name]
                if variable.continuous or (column.variable is not variable and column.variable != variable):
                    return None
                if column.codes is not None:
                    if (code := column.codes[0]) < 0 and name in self._required:
                        return None
                    text = texts[code]
                elif name in self._required or column.given is not None:
                    return None
                else:
                    text = column.likelihoods()[:, 0].tobytes() if texts[0] else b""
                parts[self._places[name]] = text
            return b"".join(parts)  # type: ignore[arg-type]
        except (KeyError, IndexError, TypeError):
            return None


def _of_pandas(frame: Any) -> dict[Any, Any]:
    cells = frame.iat  # far faster than to make a row, or a column, of its own
    return {name: cells[0, i] for i, name in enumerate(frame.columns.tolist())}


ROW_READERS: dict[str, Callable[[Any], dict[Any, Any]]] = {  # the one row of a frame by its columns, by its library
    "pandas": _of_pandas,
    "polars": lambda frame: dict(zip(frame.columns, frame.row(0), strict=True)),
    "pyarrow": lambda table: dict(table.to_pylist()[0]),
}
