"""Conditional probability tables given as arrays: `CPT` and `TestingCPT`.

A table has shape (parents' cardinalities..., own cardinality): parent states in C order, the last parent
fastest. NaN marks a number to be learned; exact 0s and 1s are structural and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import NetworkError, TableError
from tacit.factored import FunctionCPT, Mux, NoisyOr
from tacit.family import Family, Readable, number, unset_note
from tacit.floats import Floats
from tacit.grid import GAP, Grid
from tacit.shapes import check_shape
from tacit.tables import as_floats, distributions, outside
from tacit.variable import Variable
from tacit.words import short

Table = ArrayLike

TESTS = (">=", ">", "<=", "<")


class CPT(Readable):
    """A regular table: one distribution per parent state.

    What is given is known and never changes, but for rows whose sum misses 1 by up to 2e-6: they are scaled to
    sum to 1, so that all ways to answer a question agree. `learn=True` makes the table a starting point for learning
    (its exact 0s and 1s stay); a NaN entry is learned while the rest of its row stays known. Nodes whose CPTs
    carry the same `tie` share their numbers: they are equal, and learned as one. The CPT of a network,
    `net.cpt(name)`, prints with the names of variables and states.

    >>> CPT([[0.9, 0.1], [0.2, 0.8]]).table.shape
    (2, 2)
    >>> CPT([[0.9, 0.2], [0.2, 0.8]])
    Traceback (most recent call last):
        ...
    tacit.errors.TableError: table, parent state (0,): sums to 1.1, expected 1
    """

    testing = False
    table: Floats
    learn: bool
    tie: str | None

    def __init__(self, table: Table, learn: bool = False, tie: str | None = None) -> None:
        self._set(table=_distributions(table, "table"), learn=bool(learn), tie=_tie(tie))

    @staticmethod
    def from_function(f: Callable[..., Any]) -> FunctionCPT:
        """A table given by a rule: `f(parent labels...)` returns a state's label, or a distribution.

        >>> either = CPT.from_function(lambda a, b: "true" if "true" in (a, b) else "false")
        """
        return FunctionCPT(f)

    def bind(self, own: Variable, parents: Sequence[Variable]) -> CPT:
        """The table of this node, after a check of its shape."""
        check_shape("table", self.table, own, parents)
        return self

    def implied_parents(self) -> None:
        """An array does not name its parents."""
        return None

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        """The whole table."""
        return self.table

    def parts(self) -> dict[str, Floats]:
        """The numbers, by name."""
        return {"table": self.table}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CPT) and difference(self, other) is None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"CPT({_brief(self.table)}{_settings(self)})"


class TestingCPT(Readable):
    """Two tables and a threshold per parent state; evidence chooses between them, row by row.

    The row of parent state u is `plus[u]` if `P*(u) test thresholds[u]` holds, else `minus[u]`, where P*(u)
    is the posterior of the parents given the evidence on the node's proper ancestors. With a slope `gamma`
    the two rows are mixed instead, with weight `sigmoid(gamma * (P*(u) - threshold))` for `plus` (mirrored
    for `<=` and `<`). `test` is one operator, or an array of them, one per parent state. `learn` and `tie` are
    those of `CPT`.

    >>> plus, minus = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> TestingCPT(plus, minus, thresholds=[0.3, 0.7], test=[">=", ">"])
    TestingCPT(parents (2,), 2 states, test=['>=', '>'])
    """

    __test__ = False  # the name starts with "Test": keep pytest from collecting it
    testing = True
    plus: Floats
    minus: Floats
    thresholds: Floats
    test: NDArray[np.str_]
    gamma: float | None
    learn: bool
    tie: str | None

    def __init__(
        self,
        plus: Table,
        minus: Table,
        thresholds: Table,
        test: str | Sequence[Any] | NDArray[np.str_] = ">=",
        gamma: float | None = None,
        learn: bool = False,
        tie: str | None = None,
    ) -> None:
        high, low = _distributions(plus, "plus"), _distributions(minus, "minus")
        if high.shape != low.shape:
            raise NetworkError(f"plus has shape {high.shape} but minus {low.shape}; they must be the same")
        parents = high.shape[:-1]
        self._set(plus=high, minus=low, thresholds=_thresholds(thresholds, parents), test=_tests(test, parents))
        self._set(gamma=check_gamma(gamma), learn=bool(learn), tie=_tie(tie))

    def with_gamma(self, gamma: float | None) -> TestingCPT:
        """The same tables, selected with another slope (`None`: by hard tests)."""
        return TestingCPT(self.plus, self.minus, self.thresholds, self.test, gamma, self.learn, self.tie)

    def bind(self, own: Variable, parents: Sequence[Variable]) -> TestingCPT:
        """The tables of this node, after a check of their shape."""
        if not parents:
            raise NetworkError("a testing node needs parents to test; roots are always regular")
        check_shape("plus and minus", self.plus, own, parents)
        return self

    def implied_parents(self) -> None:
        """Arrays do not name their parents."""
        return None

    def grid(self, family: Family) -> Grid:
        """Both tables side by side, with the tests that choose between them."""
        tested = ", ".join(parent.name for parent in family.parents)
        labels, gaps = family.labels(), [""] * (len(family.labels()) - 1)
        head = [
            (*[""] * len(family.parents), "", "plus", *gaps, "minus", *gaps),
            (*(parent.name for parent in family.parents), "test", *labels, *labels),
        ]
        body = [
            (*family.names(state), self._test(state), *family.cells(self.plus, state), *family.cells(self.minus, state))
            for state in family.lines()
        ]
        title = f"{family.title}: plus if the test of P*({tested}) holds, else minus"
        if self.gamma is not None:
            title = f"{family.title}: plus and minus mixed by a sigmoid of P*({tested}) with slope {self.gamma:g}"
        note = unset_note(self.plus, self.minus, self.thresholds)
        return Grid(head, body, len(family.parents) + 1, title, note)

    def _test(self, state: tuple[int, ...] | None) -> str:
        return GAP if state is None else f"{self.test[state]} {number(self.thresholds[state])}"

    def parts(self) -> dict[str, Floats]:
        """The numbers, by name."""
        return {"plus": self.plus, "minus": self.minus, "thresholds": self.thresholds}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TestingCPT) and difference(self, other) is None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parents, k = self.plus.shape[:-1], self.plus.shape[-1]
        tests = sorted(set(self.test.ravel().tolist()))
        shown = repr(tests[0]) if len(tests) == 1 else self.test.ravel().tolist()
        shown = shown if len(str(shown)) < 60 else "[...]"
        gamma = "" if self.gamma is None else f", gamma={self.gamma:g}"
        return f"TestingCPT(parents {parents}, {k} states, test={shown}{gamma}{_settings(self)})"


AnyCPT = CPT | TestingCPT | FunctionCPT | NoisyOr | Mux


def check_gamma(gamma: float | None) -> float | None:
    """A slope is None (hard tests) or a finite number >= 0."""
    if gamma is None:
        return None
    try:
        slope = float(gamma)
    except (TypeError, ValueError, OverflowError):
        slope = float("nan")
    if not (np.isfinite(slope) and slope >= 0):
        raise NetworkError(f"gamma is {gamma!r}, expected None (hard tests) or a finite slope >= 0")
    return slope


def _tie(tie: str | None) -> str | None:
    if tie is not None and (not isinstance(tie, str) or not tie):
        raise NetworkError(f"tie is {tie!r}, expected None or a non-empty string")
    return tie


def difference(one: CPT | TestingCPT, other: CPT | TestingCPT) -> str | None:
    """The first thing in which two CPTs differ, with both values; None if they are equal.

    >>> difference(CPT([0.25, 0.75]), CPT([0.5, 0.5]))
    'table[0]: 0.25 and 0.5'
    """
    if one is other:
        return None
    if type(one) is not type(other):
        return f"kind: {type(one).__name__} and {type(other).__name__}"
    for part, a in vars(one).items():
        if part == "_family":  # names that it prints with
            continue
        b = getattr(other, part)
        if not isinstance(a, np.ndarray):
            if a != b:
                return f"{part}: {a!r} and {b!r}"
        elif a.shape != b.shape:
            return f"shape of {part}: {a.shape} and {b.shape}"
        else:
            unequal = (a != b) & ((a == a) | (b == b))  # NaN, to be learned, equals NaN
            for index in np.argwhere(unequal)[:1].tolist():
                return f"{part}{index}: {a.item(*index)!r} and {b.item(*index)!r}"
    return None


def _distributions(values: Table, part: str) -> Floats:
    table = as_floats(values, part)
    if table.ndim == 0 or table.size == 0:
        raise NetworkError(f"{part} has shape {table.shape}; expected (parents' cardinalities..., own states)")
    return distributions(table, part)


def _thresholds(values: Table, parents: tuple[int, ...]) -> Floats:
    thresholds = as_floats(values, "thresholds")
    if thresholds.shape != parents:
        raise NetworkError(
            f"thresholds have shape {thresholds.shape}, expected {parents}: one per parent state of plus and minus"
        )
    for index in outside(thresholds):
        raise TableError("thresholds", index, f"{thresholds[index]:g} is not a threshold in [0, 1]")
    return thresholds


def _tests(test: Any, parents: tuple[int, ...]) -> NDArray[np.str_]:
    # as objects: an array of strings would give every entry the room of the longest
    tests = np.array(test, dtype=object)
    for operator in tests.ravel().tolist():
        if not isinstance(operator, str):
            raise NetworkError(f"test {short(repr(test), 60)} is not one operator, or one per parent state")
        if operator not in TESTS:
            raise NetworkError(f"unknown test {short(repr(operator), 60)}, expected one of {', '.join(TESTS)}")
    if tests.shape not in ((), parents):
        raise NetworkError(
            f"test has shape {tests.shape}, expected one operator or shape {parents}: one per parent state"
        )
    tests = np.broadcast_to(tests.astype("<U2"), parents).copy()
    tests.flags.writeable = False
    return tests


def _settings(cpt: CPT | TestingCPT) -> str:
    return ", learn=True" * cpt.learn + (f", tie={cpt.tie!r}" if cpt.tie is not None else "")


def _brief(table: Floats) -> str:
    if table.size <= 8:
        return repr(table.tolist())
    return f"<{' x '.join(map(str, table.shape))}>"
