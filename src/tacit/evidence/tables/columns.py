"""From the columns of a table to evidence.

A column named like a variable holds states, or likelihoods of the first of two states; columns `A.lo`, `A.mid`, `A.hi`
hold one likelihood for each state of `A`. Of a continuous variable, columns hold numbers. An empty cell is no evidence.
A text means what it would mean after `-e A=`; but a column of nothing but 0 and 1 may hold codes, and is refused where
they could mean the opposite of likelihoods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, FormatError
from tacit.base.floats import Floats
from tacit.evidence.column import Evidence
from tacit.evidence.column_names import columns_of_states, listed_columns, misspelt, refuse_two_readings
from tacit.evidence.density_column import with_densities
from tacit.evidence.frames import decoded, objects
from tacit.evidence.numbers import as_number
from tacit.evidence.read import is_ambiguous, read
from tacit.evidence.states import MISSING_WORDS, label_of, numbers_spelled
from tacit.evidence.tables.csv_parquet import FileTable, TableBatch
from tacit.evidence.tables.messages import in_file
from tacit.evidence.wrong_rows import WrongRows
from tacit.model.elements.variable import Variable, similar, state_column
from tacit.model.model import Model


class AmbiguousColumnError(EvidenceError):
    """A column of a file holds only 0, 1 and gaps, which may be codes or likelihoods."""


@dataclass(frozen=True)
class Source:
    """The columns of a table that speak about a variable: one, or one for each state, or those of its numbers."""

    variable: Variable
    columns: tuple[str, ...]
    per_state: bool

    def values(self, rows: Any) -> Any:
        """The labels, numbers or likelihoods (rows, states) of rows of pyarrow; several columns of numbers by name."""
        if self.variable.continuous:
            return self.numbers({name: floats_of(name, rows.column(name)) for name in self.columns})
        if self.per_state:
            return np.column_stack([floats_of(name, rows.column(name)) for name in self.columns])
        values = spelled(self.variable, rows.column(self.columns[0]))
        numbers = _numbers_of(values)
        if numbers is not None and is_ambiguous(self.variable, numbers):
            name, (first, second) = self.columns[0], self.variable.states
            raise AmbiguousColumnError(
                f" holds only 0, 1 and gaps, which may be codes or likelihoods of the first state, "
                f"{first!r}; write labels ({first!r}, {second!r}), or likelihoods of both states in columns "
                f"{state_column(name, first)!r} and {state_column(name, second)!r}",
                variable=self.variable.name,
                subject=f"column {name!r}",
                rows=len(numbers),
            )
        return values

    def numbers(self, by_name: dict[str, Any]) -> Any:
        """Columns of numbers as evidence on the variable takes them: one by itself, several by name."""
        return by_name if len(self.variable.columns) > 1 else by_name[self.variable.name]

    def has_likelihoods(self, rows: Any) -> bool:
        """Whether some number among these rows can only be a likelihood."""
        numbers = _numbers_of(spelled(self.variable, rows.column(self.columns[0])))
        return numbers is not None and bool(((numbers > 0) & (numbers < 1)).any())


class TableReader:
    """A reader of the evidence on some variables in the batches of a table.

    A batch whose column holds only 0 and 1 may mean codes or likelihoods; then the rest of the table decides. An error
    tells what is wrong in all of the table, from the batch on. With a network, numbers are checked against densities.
    """

    def __init__(self, table: FileTable, sources: Mapping[str, Source], net: Model | None = None) -> None:
        self.table, self.sources, self.net = table, sources, net
        self._soft: dict[str, bool] = {}  # whether a column that was in doubt holds likelihoods, by its variable

    def evidence(self, batch: TableBatch) -> Evidence:
        """The checked evidence of a batch."""
        try:
            return self._read(batch)
        except EvidenceError as error:
            raise self._error(batch, error) from None

    def _read(self, batch: TableBatch) -> Evidence:
        """The evidence of a batch; an error names all columns that are wrong, and counts rows from 0."""
        values, errors = {}, list[EvidenceError]()
        for name in self.sources:
            try:
                values[name] = self._values(name, batch.rows)
            except EvidenceError as error:
                errors.append(error)
        try:
            known = read(values, [source.variable for source in self.sources.values()])
            known = known if self.net is None else with_densities(known, self.net)
        except EvidenceError as error:
            errors += [error.changed(others=()), *error.others]
        if errors:
            raise errors[0].changed(others=errors[1:]).moved(batch.first)
        return known

    def _error(self, batch: TableBatch, error: EvidenceError) -> EvidenceError:
        """The error about a batch and all later ones, which are read only to count what is wrong in them."""
        wrong, stop = WrongRows(), batch.stop
        wrong.add(error)
        try:
            for later in self.table.batches(columns_of(self.sources.values())):
                if later.first < stop:
                    continue
                if wrong.is_full:
                    return in_file(wrong.error(), f"{self.table.name}, up to row {stop:,}")
                try:
                    self._read(later)
                except EvidenceError as another:
                    wrong.add(another)
                stop = later.stop
        except FormatError:  # which is to be met when the rows above are right
            return in_file(wrong.error(), f"{self.table.name}, up to row {stop:,}")
        return in_file(wrong.error(), self.table.name)

    def _values(self, name: str, rows: Any) -> Any:
        source = self.sources[name]
        if not self._soft.get(name):
            try:
                return source.values(rows)
            except AmbiguousColumnError:
                if name not in self._soft:
                    others = self.table.batches(source.columns)
                    self._soft[name] = any(source.has_likelihoods(other.rows) for other in others)
                if not self._soft[name]:
                    raise
        return floats_of(source.columns[0], rows.column(source.columns[0]))


def find(variable: Variable, names: Set[str], called: str | None = None) -> Source | None:
    """The columns among `names` that speak about a variable, which the table may call otherwise."""
    if variable.continuous:
        own = tuple(name for name in variable.columns if name in names)
        return Source(variable, own, per_state=False) if own else None
    called = called or variable.name
    per_state = columns_of_states(variable, names, called)
    if called in names:
        return Source(variable, (called,), per_state=False)
    return Source(variable, per_state, per_state=True) if per_state else None


def choose(net: Model, names: Sequence[str], wanted: Sequence[str], but: Sequence[str]) -> dict[str, Source]:
    """The columns that are evidence: those of the variables `wanted`, or if none is named, of all `but` some.

    >>> from tacit.examples import abc
    >>> sources = choose(abc(), ["id", "A", "B", "C.lo", "C.hi"], wanted=[], but=["B"])
    >>> {name: source.columns for name, source in sources.items()}
    {'A': ('A',), 'C': ('C.lo', 'C.hi')}
    """
    sources, present, left_out = {}, set(names), set(but)
    for name in wanted or [name for name in net if name not in left_out]:
        variable = net.variable(net.named(name))
        columns = _numbers_among(variable, wanted, left_out)
        source = find(variable, present if columns is None else present & columns)
        if source is not None:
            sources[variable.name] = source
        elif wanted:
            raise EvidenceError(f"the table has no column {name!r}; it has {listed_columns(names, 20)}")
    for source in sources.values():
        if source.per_state:
            refuse_two_readings(source.variable, source.columns, sources)
    if not sources:  # to compare spellings is slow: only those of columns that the message shows
        lower = {name.lower() for name in net}
        suspects = [name for name in names if name.strip().lower() in lower] or names[:20]
        hint = next((text for name in suspects if (text := similar(name, net))), "")
        raise EvidenceError(
            f"no column of the table is a variable to observe; it has {listed_columns(names, 20)}{hint}"
        )
    return sources


def _numbers_among(variable: Variable, wanted: Sequence[str], left_out: Set[str]) -> set[str] | None:
    """The columns of a continuous variable that are wanted, by their names or by its own; None of other variables."""
    if not variable.continuous:
        return None
    named = set(variable.columns).intersection(wanted)
    return named or set(variable.columns) - (left_out if not wanted else set())


def unused(net: Model, names: Sequence[str], used: Iterable[str]) -> list[str]:
    """The columns of a table that are not used; an error where one seems to be a misspelt variable."""
    used = set(used)
    left = [name for name in names if name not in used]
    refuse_misspelt(column_names(map(net.variable, net)), names, left)
    return left


def column_names(variables: Iterable[Variable]) -> list[str]:
    """What the columns of a table are called that have one value of each variable, or of each of its numbers."""
    return [name for variable in variables for name in variable.columns or (variable.name,)]


def refuse_misspelt(variables: Sequence[str], names: Iterable[str], left: Iterable[str]) -> None:
    """An error where a column that is `left` seems to be a variable that is not among the `names` of a table."""
    present = set(names)
    if wrong := misspelt((name for name in variables if name not in present), left):
        remedy = f"did you mean {wrong[1]!r}? Rename the column, or leave it out"
        raise EvidenceError(f"column {wrong[0]!r} is not a variable; {remedy}")


def written(variable: Variable, labels: Any) -> Any:
    """Labels as a column of a file: as they are where all states are of one type, or else as text. Numbers as floats.

    >>> written(Variable("A", ("no", 1)), ["no", None, 1]).to_pylist()
    ['no', None, '1']
    """
    import pyarrow as pa

    if variable.continuous:
        return pa.array(labels, mask=np.isnan(labels))
    if len(set(map(type, variable.states))) > 1:
        labels = [None if label is None else str(label) for label in labels]
    return pa.array(labels, written_type(variable))


def written_type(variable: Variable) -> Any:
    """The pyarrow type of labels in a file."""
    import pyarrow as pa

    if variable.continuous:
        return pa.float64()
    mixed = len(set(map(type, variable.states))) > 1
    return pa.array(list(map(str, variable.states)) if mixed else variable.states).type


def columns_of(sources: Iterable[Source]) -> list[str]:
    """All columns that some variables have."""
    return [name for source in sources for name in source.columns]


def spelled(variable: Variable, column: Any) -> Any:
    """A column of text as the labels, or else the numbers, that it spells; a column of numbers as it is.

    Numbers of a column are labels by their text where such labels may be meant.

    >>> import pyarrow as pa
    >>> spelled(Variable("A", ("0", "1")), pa.array([1, None, 0])).to_pylist()
    ['1', None, '0']
    >>> spelled(Variable("A"), pa.array(["0.25", "NA"])).to_pylist()
    [0.25, None]
    """
    import pyarrow as pa

    column, labelled = _decoded(column), bool(numbers_spelled(variable))
    whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    if (whole and not variable.numeric) or (labelled and pa.types.is_floating(column.type)):
        column = column.cast(pa.string()).dictionary_encode()
    if not isinstance(column, pa.DictionaryArray):
        return column
    words = _words(column, MISSING_WORDS - {label.lower() for label in variable.states if isinstance(label, str)})
    labels_are_numbers = variable.numeric and variable.bins is None
    numbers = None if labelled or not any(words) else _numbers(words, truth=labels_are_numbers)
    if numbers is not None and labels_are_numbers and pa.types.is_floating(numbers.type):
        # Python's own numbers: some may be whole and too large for a float
        exact = [None if word is None else as_number(word) for word in words]
        return objects([None if place is None else exact[place] for place in column.indices.to_pylist()])
    if numbers is not None:
        return numbers.take(column.indices)
    labels = [None if word is None else label_of(variable, word) or word for word in words]
    return pa.DictionaryArray.from_arrays(column.indices, pa.array(labels, pa.string()))


def _decoded(column: Any) -> Any:
    """A column in one piece: text as a DictionaryArray without nulls in its dictionary, all else plain."""
    import pyarrow as pa

    column = decoded(column)
    if isinstance(column, pa.DictionaryArray) and column.dictionary.null_count:
        return column.dictionary_decode().dictionary_encode()
    return column


def _words(text: Any, missing: Set[str]) -> list[str | None]:
    """The distinct words of a DictionaryArray, without spaces around them; None for what stands for no value."""
    words = [word.strip() for word in text.dictionary.to_pylist()]
    return [None if word.lower() in missing else word for word in words]


def _numbers(words: Sequence[str | None], truth: bool = False) -> Any | None:
    """The numbers, or else the truth values, that all words spell; None if some word spells none."""
    import pyarrow as pa

    for kind in (pa.int64(), pa.float64(), *([pa.bool_()] * truth)):
        try:
            return pa.array(words, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _numbers_of(values: Any) -> Floats | None:
    """The numbers of a column, NaN where there is none; None for a column of labels."""
    import pyarrow as pa

    if not isinstance(values, pa.Array) or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    return np.asarray(values.cast(pa.float64(), safe=False), dtype=np.float64)


def floats_of(name: str, column: Any) -> Floats:
    """A column of likelihoods, or of other numbers; NaN where there is none."""
    import pyarrow as pa

    column = _decoded(column)
    if isinstance(column, pa.DictionaryArray):
        words = _words(column, MISSING_WORDS)
        numbers = _numbers(words)
        if numbers is None:
            by_row = [None if place is None else words[place] for place in column.indices.to_pylist()]
            row = next(i for i, word in enumerate(by_row) if _numbers([word]) is None)
            raise EvidenceError(f"{by_row[row]!r} is not a number", subject=f"column {name!r}", row=row)
        column = numbers.take(column.indices)
    try:
        return np.asarray(column.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowException:
        raise EvidenceError(f"column {name!r} has type {column.type}; expected numbers") from None
