"""Text as codes: Spark compares labels itself, and sends a row as a few bits to its Python workers.

Sending text takes longer than all work on it, and sending many columns longer than one. A value that is no label is
sent as text, too, for the message.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions
from pyspark.sql.types import StringType

from tacit.base.errors import EvidenceError
from tacit.clusters.plan import Columns
from tacit.evidence.column import Column
from tacit.evidence.read import read_column
from tacit.model.elements.variable import Variable

MAX_STATES = 32  # which Spark compares one after the other
WORD_BITS = 63  # of a whole number that are used


@dataclass(frozen=True)
class Field:
    """The place of a variable's code: 0 for no value, 1 for the first state, and after the last for other text."""

    column: str
    variable: Variable
    word: int
    shift: int

    @property
    def bits(self) -> int:
        return (self.variable.card + 1).bit_length()

    def expression(self) -> Any:
        """The code in its place, as Spark computes it."""
        column = _column(self.column)
        code = functions.when(column.isNull(), self._literal(0))
        for i, state in enumerate(self.variable.states):
            code = code.when(column == state, self._literal(i + 1))
        plain = functions.lower(functions.trim(column))  # as `evidence.states` has it, but for rare white space
        for text, i in self.variable.plain.items():
            code = code.when(plain == text, self._literal(i + 1))
        return code.otherwise(self.unknown())

    def unknown(self) -> Any:
        """The code in its place of text that is no label."""
        return self._literal(self.variable.card + 1)

    def _literal(self, code: int) -> Any:
        return functions.lit(code << self.shift).cast("long")

    def codes(self, words: NDArray[np.int64]) -> NDArray[np.int8]:
        """The positions of states, -1 for none, from words of rows."""
        codes: NDArray[np.int8] = ((words >> self.shift) & ((1 << self.bits) - 1)).astype(np.int8)
        return codes - np.int8(1)


@dataclass(frozen=True)
class Coding:
    """A plan to send the columns of a DataFrame, some as they are, others as codes. Made by `Coding.of`."""

    plain: tuple[str, ...]
    coded: tuple[Field, ...]

    @staticmethod
    def of(rows: Any, evidence: Columns, others: Sequence[str]) -> Coding:
        """A plan for the columns that are evidence on variables, and others."""
        types = {field.name: field.dataType for field in rows.schema.fields}
        coded: list[Field] = []
        word = shift = 0
        for source in evidence.sources:
            variable, name = source.variable, source.columns[0]
            labels = variable.card <= MAX_STATES and all(isinstance(state, str) for state in variable.states)
            if labels and types[name] == StringType() and not source.per_state and variable.name not in evidence.soft:
                field = Field(name, variable, word, shift)
                if shift + field.bits > WORD_BITS:
                    word, shift = word + 1, 0
                    field = Field(name, variable, word, shift)
                coded.append(field)
                shift += field.bits
        names = {field.column for field in coded}
        plain = dict.fromkeys([*others, *(name for name in evidence.names if name not in names)])
        return Coding(tuple(plain), tuple(coded))

    def sent(self, rows: Any) -> Any:
        """The DataFrame that workers get. Its columns have no names: mapInArrow takes none with dots."""
        sent = [_column(name) for name in self.plain]
        if self.coded:
            codes = [field.expression() for field in self.coded]
            words: dict[int, Any] = {}
            for field, code in zip(self.coded, codes, strict=True):
                words[field.word] = words[field.word].bitwiseOR(code) if field.word in words else code
            unknown = [code == field.unknown() for field, code in zip(self.coded, codes, strict=True)]
            texts = [functions.when(u, _column(f.column)) for u, f in zip(unknown, self.coded, strict=True)]
            some = reduce(operator.or_, unknown)
            sent += [*words.values(), functions.when(some, functions.coalesce(*texts))]
        return rows.select(*[column.alias(f"c{i}") for i, column in enumerate(sent)])

    def received(self, rows: Any, first: int = 0) -> Received:
        """Decode some rows in a worker, which are those of a partition from `first` on."""
        plain: dict[str, Any] = {name: rows.column(i) for i, name in enumerate(self.plain)}
        evidence = dict(plain)
        words = [column.to_numpy() for column in rows.columns[len(self.plain) : -1]] if self.coded else []
        for field in self.coded:
            codes = field.codes(words[field.word])
            if codes.max(initial=0) == field.variable.card:
                row = int(codes.argmax())
                _refuse(field.variable, first + row, rows.column(rows.num_columns - 1)[row].as_py())
            evidence[field.column] = Column(field.variable, codes=codes)
        return Received(rows.num_rows, plain, evidence)


@dataclass(frozen=True)
class Received:
    """Some rows in a worker: the columns that were sent as they are, and all that are evidence."""

    rows: int
    plain: dict[str, Any]
    evidence: dict[str, Any]

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, name: str) -> Any:
        return self.evidence[name]


def _column(name: str) -> Any:
    """A column by its whole name, which Spark would take apart at dots."""
    return functions.col("`" + name.replace("`", "``") + "`")


def _refuse(variable: Variable, row: int, text: str) -> NoReturn:
    """Raise the error about text that is no label, or is one only by rules that Spark does not have."""
    try:
        read_column(variable, pa.array([text]))
    except EvidenceError as error:
        raise error.moved(row) from None
    problem = f"{text!r} differs from a state in white space or in case; write the state as it is"
    raise EvidenceError(problem, variable=variable.name, row=row)
