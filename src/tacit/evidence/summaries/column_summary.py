"""What the values of a column are, learned batch by batch: enough to make a variable of it without keeping the rows.

Summaries of the parts of a table add up, and their sum does not depend on the order of the parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import NO_NUMBER, EvidenceError, WrongValue
from tacit.base.floats import Floats
from tacit.base.text import shown
from tacit.evidence.frames import EXACT_FLOATS, Coded, ConversionError, Plain, TextColumn, opened
from tacit.evidence.intervals import NUMBER, spelled_number
from tacit.evidence.labels import is_missing
from tacit.evidence.numbers import as_float, as_number
from tacit.evidence.states import MISSING_WORDS
from tacit.evidence.summaries.discretizing import How, edges_of_counts
from tacit.evidence.summaries.observed_states import DATES, MAX_WHOLE_STATES, is_ordered, no_state, refuse_dates
from tacit.evidence.wrong_rows import added
from tacit.evidence.wrong_values import counted_values, words_among_numbers
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import Label

MAX_STATES = 250  # of a column, so that a state takes one byte
MAX_NUMBERS = 2**20  # different numbers that are told apart
FEW_PLACES = 32
MAX_WORDS = 1000  # different texts among numbers that are counted
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?([./-])\d\d?\2\d{2,4}( .*)?")  # 2020-01-31, 31.1.2020, 1/31/20
GAP_WORDS = MISSING_WORDS - {"none"}  # which is a state more often than a gap


@dataclass(frozen=True, eq=False)
class CountedNumbers:
    """Different numbers, ascending, and how often each occurs. Of very many, the last bits are left out."""

    values: Floats = field(default_factory=lambda: np.empty(0))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    bits: int = 0

    def __add__(self, other: CountedNumbers) -> CountedNumbers:
        """The numbers of both, with as many bits left out as these all together need."""
        if not len(other.values) or not len(self.values):
            return self if len(self.values) else other
        values, counts = (
            np.concatenate([getattr(one, part) for one in (self, other)]) for part in ("values", "counts")
        )
        bits = max(self.bits, other.bits)
        while len((short := _grouped(_shortened(values, bits), counts))[0]) > MAX_NUMBERS:
            bits += 1
        return CountedNumbers(*short, bits)


def counted_numbers(numbers: Floats) -> CountedNumbers:
    """All numbers of an array that are finite."""
    finite = numbers[np.isfinite(numbers)]
    return CountedNumbers(*_grouped(finite, np.ones(len(finite), np.int64))) + CountedNumbers()


def _grouped(values: Floats, counts: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.bincount(places, counts, minlength=len(distinct)).astype(np.int64)


def _shortened(values: Floats, bits: int) -> Floats:
    """Numbers without their last bits, so towards 0; their order stays."""
    return (values.view(np.int64) & np.int64(-(1 << bits))).view(np.float64) if bits else values


class Problem(NamedTuple):
    """Why the values of a column make no variable, and the row that shows it; 0 if they all do."""

    row: int
    text: str


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """The values of a column so far. `texts` and `whole` numbers are complete while there are few of them."""

    rows: int = 0
    gaps: int = 0
    texts: frozenset[str] = frozenset()
    whole: frozenset[int] = frozenset()
    numbers: CountedNumbers = field(default_factory=CountedNumbers)
    fractions: bool = False
    truths: bool = False
    categories: tuple[Label, ...] | None = None  # the order of an ordered category
    coded: bool = False  # whole numbers that are categories
    spelled: bool = True  # the texts are numbers of a file, all of which are counted among the numbers
    words: tuple[WrongValue, ...] = ()  # texts among numbers that are none, the most frequent ones first
    problem: Problem | None = None  # the first one, whatever else there is

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """The values of two parts of a column."""
        return ColumnSummary(
            self.rows + other.rows,
            self.gaps + other.gaps,
            _few_texts(self.texts | other.texts),
            _few(self.whole | other.whole),
            self.numbers + other.numbers,
            self.fractions or other.fractions,
            self.truths or other.truths,
            self._common_order(other),
            self.coded or other.coded,
            self.spelled and other.spelled,
            tuple(added(self.words, other.words)[:MAX_WORDS]),
            min((one for one in (self.problem, other.problem) if one is not None), default=None),
        )

    def _common_order(self, other: ColumnSummary) -> tuple[Label, ...] | None:
        """The order of the states of both parts, if they do not contradict each other."""
        if self.categories == other.categories or not other.rows:
            return self.categories
        if not self.rows:
            return other.categories
        shorter, longer = sorted((self.categories or (), other.categories or ()), key=len)
        return longer if shorter and longer[: len(shorter)] == shorter else None

    def at(self, place: str) -> ColumnSummary:
        """The summary of a column of a partition, which its problem names, if there is one."""
        if self.problem is None:
            return self
        return replace(self, problem=self.problem._replace(text=f"{place}: {self.problem.text}"))

    @property
    def measured(self) -> bool:
        """Whether the values are numbers, and so many or such that they are not states."""
        if self.problem or self.truths or self.coded:
            return False
        if (self.texts and not self.spelled) or not len(self.numbers.values):
            return False
        return self.fractions or len(self.numbers.values) > MAX_WHOLE_STATES

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, which may be sorted into intervals."""
        return bool(len(self.numbers.values)) and self.spelled

    def states(self, name: str) -> tuple[Label, ...]:
        """The states of a variable with these values: sorted, or in the order of an ordered category."""
        self.require_values(name)
        if self.rows == self.gaps:
            raise EvidenceError(f"column {name!r} has no values at all; leave it out")
        if self.truths and (self.texts or self.whole or self.fractions):
            raise EvidenceError(f"column {name!r} holds True or False beside other values; expected one kind of values")
        if self.truths:
            return True, False
        if len(self.texts) + len(self.whole) > MAX_STATES:
            raise self._words_beside(name) if self.words else EvidenceError(f"column {name!r} {self._too_many()}")
        if self.categories is not None and {*self.texts, *self.whole} <= {*self.categories}:
            return tuple(label for label in self.categories if label in self.texts or label in self.whole)
        if self.texts and self.spelled:
            return tuple(sorted(set(map(_whole, self.texts)), key=lambda text: (float(text), text)))
        return (*sorted(self.whole), *sorted(self.texts))

    def _too_many(self) -> str:
        """What is wrong with a column of too many values."""
        some = min(self.texts or self.whole)
        if self.texts and all(DATE.fullmatch(text) for text in self.texts):
            return f"holds text that looks like dates, such as {shown(some)}; {DATES}"
        remedy = "leave it out if it names the rows, or else sort its values into a few groups"
        return f"has more than {MAX_STATES} different values, such as {shown(some)}; {remedy}"

    def edges(self, name: str, how: How) -> Edges:
        """The edges of the intervals that the numbers are sorted into."""
        self.require_numbers(name)
        if not self.numeric:
            raise EvidenceError(f"column {name!r} does not hold numbers; leave it out of bins=")
        return edges_of_counts(name, self.numbers.values, self.numbers.counts, how)

    def require_values(self, name: str) -> None:
        """Raise the problem of the column, if it has one."""
        if self.problem is not None:
            raise EvidenceError(self.problem.text)
        if self.fractions and self.words:
            raise self._words_beside(name)

    def require_numbers(self, name: str) -> None:
        """Raise what is wrong with a column whose values are numbers but for some words."""
        self.require_values(name)
        if self.words:
            raise self._words_beside(name)

    def _words_beside(self, name: str) -> EvidenceError:
        """The error about a column of numbers of which some are words."""
        present, wrong = self.rows - self.gaps, sum(word.rows for word in self.words)
        return words_among_numbers(name, self.words, present - wrong, present)

    @property
    def numbers_rows(self) -> bool:
        """Whether the values are successive whole numbers, each of them once: numbers of rows."""
        values, once = self.numbers.values, self.numbers.counts.max(initial=0) == 1
        if self.fractions or not once or self.numbers.bits or len(values) <= MAX_WHOLE_STATES:
            return False
        return bool(values[-1] - values[0] == len(values) - 1)


def _known(label: str | None) -> str | None:
    """A cell of a file without the spaces around it; None for a gap."""
    return None if label is None or label.strip().lower() in GAP_WORDS else label.strip()


def _whole(text: str) -> str:
    """A whole number that a file holds as a float, as programs write it beside a gap, without its fraction.

    >>> [_whole(text) for text in ("2.0", "2", "007", "1e3", "2.50")]
    ['2', '2', '007', '1000', '2.50']
    """
    number = as_number(text)
    short = isinstance(number, float) and number.is_integer() and abs(number) < EXACT_FLOATS
    return str(int(number)) if short else text


def _few(values: frozenset[Any]) -> frozenset[Any]:
    """Some of the values where there are so many that they only have to be known to be too many."""
    return frozenset(sorted(values)[: MAX_STATES + 1]) if len(values) > MAX_STATES + 1 else values


def _few_texts(texts: frozenset[str]) -> frozenset[str]:
    """Some of the texts where there are so many; those that spell no numbers first, to be named if all others do."""
    if len(texts) <= MAX_STATES + 1:
        return texts
    return frozenset(sorted(texts, key=lambda text: (spelled_number(text) is not None, text))[: MAX_STATES + 1])


def summary_of(name: str, values: Any, in_file: bool = False, first: int = 0) -> ColumnSummary:
    """The values of one column of any library; text of a file may spell numbers, and may stand for no value.

    What cannot be read is a problem of the column, so that one error can name all columns that have one; it counts rows
    from `first`.
    """
    try:
        summary = _summary(name, values, in_file)
        return replace(summary, words=tuple(word._replace(first=word.first + first) for word in summary.words))
    except EvidenceError as error:
        rows = len(values) if hasattr(values, "__len__") else 1
        return ColumnSummary(rows, problem=Problem(first + (error.row or 0), str(error.moved(first))))


def _summary(name: str, values: Any, in_file: bool) -> ColumnSummary:
    try:
        column = opened(values)
    except ConversionError as error:
        raise EvidenceError(f"column {name!r}: {error}") from None
    if isinstance(column, TextColumn):
        return _of_words(column) if in_file else _of_text(column, values)
    if isinstance(column, Coded):
        return _of_codes(column, is_ordered(values))
    return _of_array(name, column)


def _of_codes(column: Coded, ordered: bool) -> ColumnSummary:
    """A category of whole numbers: all that occur are states, however many there are."""
    used, gaps = _used(column.places)
    whole = frozenset(column.numbers[used].tolist())
    order = tuple(column.numbers.tolist()) if ordered else None
    numbers = counted_numbers(column.numbers[column.places[column.places >= 0]].astype(np.float64))
    return ColumnSummary(len(column.places), gaps, whole=whole, numbers=numbers, categories=order, coded=True)


def _used(places: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], int]:
    """The places that occur, and the number of gaps."""
    if places.itemsize == 1 and (top := int(places.max(initial=-1))) < FEW_PLACES:  # in less time than a count takes
        used = [place for place in range(top + 1) if (places == place).any()]
        return np.array(used, dtype=np.intp), int(np.count_nonzero(places < 0))
    counts = np.bincount(places.astype(np.intp) + 1)
    return np.flatnonzero(counts[1:]), int(counts[0]) if len(counts) else 0


def _of_text(column: TextColumn, values: Any) -> ColumnSummary:
    used, gaps = _used(column.places)
    labels = [column.labels[place] for place in used.tolist()]
    if nothing := [place for place, label in zip(used, labels, strict=True) if label is None]:
        gaps += int(np.isin(column.places, nothing).sum())
    texts = _few_texts(frozenset(label for label in labels if label is not None))
    words = _words_of_text(column, used.tolist())
    order = tuple(label for label in column.labels if label is not None) if is_ordered(values) else None
    return ColumnSummary(len(column.places), gaps, texts, categories=order, spelled=not texts, words=words)


def _words_of_text(column: TextColumn, used: Sequence[int]) -> tuple[WrongValue, ...]:
    """The texts of a column that spell no numbers, if they are few among many that do."""
    words = _few_words({label for place in used if (label := column.labels[place]) is not None})
    places = {place: column.labels[place] for place in used if column.labels[place] in words}
    rows = np.flatnonzero(np.isin(column.places, list(places)))
    cells = ((places[place], row) for place, row in zip(column.places[rows].tolist(), rows.tolist(), strict=True))
    return tuple(counted_values(cells, lambda _: NO_NUMBER)) if words else ()


def _few_words(labels: Collection[str]) -> set[str]:
    """The labels that spell no numbers, if they are few among many that do."""
    words = set[str]()
    for label in labels:
        if spelled_number(label) is None:
            words.add(label)
            if len(words) > MAX_WORDS or 2 * len(words) > len(labels):
                return set()
    return words if len(labels) - len(words) > MAX_WHOLE_STATES else set()


def _of_words(column: TextColumn) -> ColumnSummary:
    """Text of a file: what it spells, without the spaces around it."""
    counts = np.bincount(column.places.astype(np.intp) + 1, minlength=len(column.labels) + 1)
    times: Counter[str] = Counter()
    for label, count in zip(column.labels, counts[1:].tolist(), strict=True):
        if count:
            times["" if label is None else label.strip()] += count
    words = {word: count for word, count in times.items() if word.lower() not in GAP_WORDS}
    gaps = len(column.places) - sum(words.values())
    numbers = [as_number(word) for word in words]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        wrong = _words_of_text(
            replace(column, labels=[_known(label) for label in column.labels]), _used(column.places)[0].tolist()
        )
        return ColumnSummary(len(column.places), gaps, _few_texts(frozenset(words)), spelled=False, words=wrong)
    values = np.array(numbers, dtype=np.float64)
    some = counted_numbers(np.repeat(values, list(words.values())))
    fractions = any(isinstance(number, float) and not number.is_integer() for number in numbers)
    return ColumnSummary(len(column.places), gaps, _few_texts(frozenset(words)), numbers=some, fractions=fractions)


def _of_array(name: str, column: Plain) -> ColumnSummary:
    array, missing = np.atleast_1d(column.values), column.missing
    if array.ndim != 1:
        raise EvidenceError(f"column {name!r} has shape {array.shape}; expected a value for each row, (rows,)")
    present = array if missing is None else array[~np.atleast_1d(missing)]
    kind, rows = array.dtype.kind, len(array)
    if kind in "OT":
        return _of_objects(name, array, present)
    if kind == "U":
        return ColumnSummary(rows, rows - len(present), _few_texts(frozenset(present.tolist())), spelled=False)
    if kind == "b":
        return ColumnSummary(rows, rows - len(present), truths=bool(len(present)))
    refuse_dates(name, array.dtype)
    if kind not in "iuf":
        raise EvidenceError(f"column {name!r} has type {array.dtype}; expected text or numbers, so leave it out")
    return _of_numbers(present, rows)


def _of_numbers(present: NDArray[Any], rows: int) -> ColumnSummary:
    known = present[~np.isnan(present)] if present.dtype.kind == "f" else present
    numbers = counted_numbers(known.astype(np.float64))
    fractions = present.dtype.kind == "f" and bool((known != np.rint(known)).any() or np.isinf(known).any())
    whole = [] if fractions or len(numbers.values) > MAX_STATES else [int(value) for value in np.unique(known).tolist()]
    return ColumnSummary(rows, rows - len(known), frozenset(), frozenset(whole), numbers, fractions)


def _of_objects(name: str, array: NDArray[Any], unmasked: NDArray[Any]) -> ColumnSummary:
    """Python's own objects, of which some may be text and others numbers."""
    rows, present = len(array), [value for value in unmasked.tolist() if not is_missing(value)]
    texts = frozenset(value for value in present if isinstance(value, str))
    others = [value for value in present if not isinstance(value, str)]
    truths = [value for value in others if isinstance(value, bool | np.bool_)]
    numbers = [value for value in others if not isinstance(value, bool | np.bool_)] if truths else others
    for value in numbers:
        if not isinstance(value, NUMBER):
            raise no_state(name, value, next(row for row, one in enumerate(array) if one is value))
    floats = np.array([as_float(value) for value in numbers], dtype=np.float64)
    measured = _of_numbers(floats, rows)
    whole = frozenset[int]() if measured.fractions else _few(frozenset(int(value) for value in set(numbers)))
    words = texts if measured.fractions or len(measured.numbers.values) > MAX_WHOLE_STATES else _few_words(texts)
    cells = ((value, row) for row, value in enumerate(array.tolist()) if isinstance(value, str) and value in words)
    return replace(
        measured,
        gaps=rows - len(present),
        texts=_few_texts(texts),
        whole=whole,
        truths=bool(truths),
        spelled=not texts,
        words=tuple(counted_values(cells, lambda _: NO_NUMBER)) if words else (),
    )
