"""A variable: a name and its states."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.text import shown
from tacit.model.elements.intervals import Edges, checked_edges, interval_names

Label = Hashable
DEFAULT_STATES = ("true", "false")
SAME_HASH = 2**61 - 1  # Python hashes integers modulo this
MAX_WIDE = 1000
MIN_BEGINNING = 3  # letters of a name by which it may be completed


@dataclass(frozen=True)
class Variable:
    """A name and an ordered tuple of states; state 0 is the positive one of a binary variable.

    The states of an interval variable are the intervals between the edges `bins`. A continuous variable is that of
    one or more `columns` of numbers, each with a density for every joint state of its parents: these joint states are
    numbered in place of states of its own.
    """

    name: str
    states: tuple[Label, ...] = DEFAULT_STATES
    bins: Edges | None = None
    columns: tuple[str, ...] = ()

    @property
    def continuous(self) -> bool:
        """Whether its values are numbers that have a density."""
        return bool(self.columns)

    @property
    def card(self) -> int:
        return len(self.states)

    @cached_property
    def codes(self) -> dict[Label, int]:
        """The position of each label."""
        return {label: i for i, label in enumerate(self.states)}

    @cached_property
    def plain(self) -> dict[str, int]:
        """The position of each label of text, written in small letters and without spaces around it.

        Labels that are the same when written so are left out: they can only be told apart as they stand.
        """
        texts = {i: label.strip().lower() for i, label in enumerate(self.states) if isinstance(label, str)}
        counts = Counter(texts.values())
        return {text: i for i, text in texts.items() if counts[text] == 1}

    @cached_property
    def numeric(self) -> bool:
        """Whether a number means a state, by being its label or in its interval: it is never read as a likelihood."""
        return self.bins is not None or any(isinstance(label, int | float) for label in self.states)


def variable(name: object, states: int | Iterable[Any] | None, bins: Iterable[float] | None = None) -> Variable:
    """A checked `Variable`; a number k of states labels them with the integers 0..k-1, `bins` with intervals."""
    if not isinstance(name, str) or not name:
        raise NetworkError(f"a node's name must be a non-empty string, got {name!r}")
    if bins is not None:
        return _interval_variable(name, states, bins)
    if states is None:
        return Variable(name)
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        labels: tuple[Any, ...] = tuple(range(int(states)))
    elif isinstance(states, str | Mapping | Set) or not isinstance(states, Iterable):
        raise NetworkError(f"node {name!r}: states must be a sequence of labels or a number, got {states!r}")
    else:
        labels = tuple(s.item() if isinstance(s, np.generic) else s for s in states)
    if not labels:
        raise NetworkError(f"node {name!r} has no states; give at least one label")
    for label in labels:
        if not isinstance(label, str | int | float) or (isinstance(label, float) and not math.isfinite(label)):
            remedy = "use strings, integers, booleans or finite numbers"
            raise NetworkError(f"node {name!r}: state {label!r} is not a label; {remedy}")
    wide = sum(isinstance(label, int) and abs(label) >= SAME_HASH for label in labels)
    if wide > MAX_WIDE:  # if chosen so that all hashes are equal, each would be compared with all others
        raise NetworkError(f"node {name!r}: {wide:,} labels are integers beyond 2^61 (limit {MAX_WIDE:,}); use strings")
    seen: set[Label] = set()
    for label in labels:
        if label in seen:
            raise NetworkError(f"node {name!r}: state {label!r} is listed twice; labels must differ")
        seen.add(label)
    return Variable(name, labels)


def continuous_variable(columns: str | Iterable[str], parents: Sequence[Variable]) -> Variable:
    """A checked `Variable` of numbers, in one column or in several that vary together.

    >>> continuous_variable(("x", "y"), [Variable("A")])
    Variable(name='x, y', states=(0, 1), bins=None, columns=('x', 'y'))
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise NetworkError(f"a node's name must be a non-empty string, or several of its columns, got {columns!r}")
    if len(set(names)) < len(names):
        raise NetworkError(f"the columns of a node must differ, got {names!r}")
    return Variable(", ".join(names), tuple(range(math.prod(parent.card for parent in parents))), columns=names)


def _interval_variable(name: str, states: int | Iterable[Any] | None, bins: Iterable[float]) -> Variable:
    try:
        edges = checked_edges(bins)
    except NetworkError as error:
        raise NetworkError(f"node {name!r}: {error}") from None
    intervals = interval_names(edges)
    if states is not None and (labels := variable(name, states).states) != intervals:
        problem = f"bins makes the states {shown(list(intervals))}, but states is {shown(list(labels))}"
        raise NetworkError(f"node {name!r}: {problem}; leave out one of them")
    return Variable(name, intervals, edges)


def state_column(name: str, state: object) -> str:
    """The name of a column about one state of a variable."""
    return f"{name}.{state}"


def row_table(name: str) -> str:
    """The column of evidence with the tables of a node, one for each row."""
    return f"{name}.table"


def similar(name: object, known: Iterable[str]) -> str:
    """The end of an error message on an unknown name, which may be cut short: "; did you mean 'A'?", or nothing.

    >>> similar("recov", ["recovered by May", "size"]), similar("x", ["xray"])
    ("; did you mean 'recovered by May'?", '')
    """
    others = list(known)
    close = nearest(name, others) or _completed(str(name), others)
    return "" if close is None else f"; did you mean {close!r}?"


def _completed(beginning: str, known: Iterable[str]) -> str | None:
    """The shortest known name that begins so, in any case."""
    text = beginning.strip().lower()
    longer = [other for other in known if len(text) >= MIN_BEGINNING and other.strip().lower().startswith(text)]
    return min(longer, key=len, default=None)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that one is most like, in any case; where several differ in case only, the most like as it stands.

    >>> nearest("Hihg", ["low", "high"]), nearest("norml", ["LOW", "NORMAL"]), nearest("x", ["low"])
    ('high', 'NORMAL', None)
    """
    import difflib

    written: dict[str, list[str]] = {}
    for other in known:
        written.setdefault(other.strip().lower(), []).append(other)
    close = difflib.get_close_matches(str(name).strip().lower(), written, n=1)
    return difflib.get_close_matches(str(name), written[close[0]], n=1, cutoff=0)[0] if close else None


def describe(variables: Sequence[Variable], state: Sequence[int]) -> str:
    """A joint state by its labels: "A='yes', B='lo'"."""
    return ", ".join(f"{v.name}={v.states[i]!r}" for v, i in zip(variables, state, strict=True))


def listed_states(variable: Variable) -> str:
    """The states of a variable in a message; of many, the first ones."""
    return ", ".join(map(shown, variable.states[:6])) + (", ..." if variable.card > 6 else "")
