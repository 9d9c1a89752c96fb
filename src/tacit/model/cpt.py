"""Conditional probability tables given as arrays: `CPT` and `TestingCPT`.

A table has shape (parents' cardinalities..., own cardinality): parent states in C order, the last parent
fastest. NaN marks a number to be learned; exact 0s, and 1s beside nothing but 0s, are structural and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import NetworkError, TableError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid
from tacit.base.text import short
from tacit.model.densities import AnyDensity
from tacit.model.elements.base_cpt import BaseCPT, Family, check_tie, number, settings, unset_note
from tacit.model.elements.distributions import as_floats, check_shape, distributions, outside
from tacit.model.elements.variable import Variable
from tacit.model.rules import FunctionCPT, Mux, NoisyOr

TESTS = (">=", ">", "<=", "<")
MIRRORED = ("<=", "<")  # a test of this kind holds where the parent state is improbable
THRESHOLDS = "thresholds"  # the part that holds no distributions


class CPT(BaseCPT):
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
    tacit.base.errors.TableError: table, parent state (0,): sums to 1.1, expected 1
    """

    table: Floats

    def __init__(self, table: ArrayLike, learn: bool = False, tie: str | None = None) -> None:
        self._set(table=_distributions(table, "table"), learn=bool(learn), tie=check_tie(tie))

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

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        return self.table

    def parts(self) -> dict[str, Floats]:
        return {"table": self.table}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CPT) and difference(self, other) is None

    def __repr__(self) -> str:
        small = self.table.size <= 8
        table = repr(self.table.tolist()) if small else f"<{' x '.join(map(str, self.table.shape))}>"
        return f"CPT({table}{settings(self)})"


class TestingCPT(BaseCPT):
    """Tables and a threshold per parent state; evidence chooses between them, row by row.

    The row of parent state u is `plus[u]` if `P*(u) test thresholds[u]` holds, else `minus[u]`, where P*(u)
    is the posterior of the parents given the evidence on the node's proper ancestors. With a slope `gamma`
    the two rows are mixed instead, with weight `sigmoid(gamma * (P*(u) - threshold))` for `plus` (mirrored
    for `<=` and `<`). `test` is one operator, or an array of them, one per parent state. `learn` and `tie` are
    those of `CPT`.

    >>> plus, minus = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> TestingCPT(plus, minus, thresholds=[0.3, 0.7], test=[">=", ">"])
    TestingCPT(parents (2,), 2 states, test=['>=', '>'])

    With `tables`, there may be more than two. With k of them, `thresholds` has k - 1 for each parent state, along a
    last axis, none less than the one before. The row of u is that of `tables[i]` if i of the tests hold, so that
    `[minus, plus]` is the pair above. With a slope, a table weighs what its own sigmoid is more than the next one.

    >>> low, middle, high = [[0.9, 0.1], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]], [[0.1, 0.9], [0.1, 0.9]]
    >>> TestingCPT(tables=[low, middle, high], thresholds=[[0.2, 0.6], [0.4, 0.8]])
    TestingCPT(parents (2,), 2 states, 3 tables, test='>=')

    Attributes
    ----------
    tables
        All tables, the one of which no test holds first: `(minus, plus)` of two.
    thresholds
        (parents...) of two tables, (parents..., k - 1) of more.
    """

    __test__ = False  # the name starts with "Test": keep pytest from collecting it
    testing = True
    tables: tuple[Floats, ...]
    thresholds: Floats
    test: NDArray[np.str_]
    gamma: float | None

    def __init__(
        self,
        plus: ArrayLike | None = None,
        minus: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        test: str | Sequence[Any] | NDArray[np.str_] = ">=",
        gamma: float | None = None,
        learn: bool = False,
        tie: str | None = None,
        *,
        tables: Sequence[ArrayLike] | None = None,
    ) -> None:
        checked = _tables(plus, minus, tables)
        if thresholds is None:
            raise NetworkError("thresholds are missing; give them, or NaN for those that are to be learned")
        parents = checked[0].shape[:-1]
        limits = _thresholds(thresholds, parents, len(checked), "tables" if plus is None else "plus and minus")
        self._set(tables=checked, thresholds=limits, test=_tests(test, parents))
        self._set(gamma=check_gamma(gamma), learn=bool(learn), tie=check_tie(tie))

    @property
    def plus(self) -> Floats:
        """The table whose test holds, of two."""
        return self._of_two("plus", 1)

    @property
    def minus(self) -> Floats:
        """The table whose test does not hold, of two."""
        return self._of_two("minus", 0)

    def _of_two(self, part: str, place: int) -> Floats:
        if len(self.tables) > 2:
            raise AttributeError(f"a testing CPT of {len(self.tables)} tables has no {part!r}; they are in .tables")
        return self.tables[place]

    @property
    def limits(self) -> Floats:
        """The thresholds (parents..., tables - 1), with that axis also where there is one of them."""
        return self.thresholds if len(self.tables) > 2 else self.thresholds[..., None]

    @property
    def mirrored(self) -> NDArray[np.bool_]:
        """For which parent states, (parents...), tests hold where P*(u) is small: those of `<=` and `<`."""
        return np.isin(self.test, MIRRORED)

    def in_turn(self) -> NDArray[np.int64]:
        """Places in `limits`, (parents..., tables - 1), in the order in which tests come to hold."""
        count = len(self.tables) - 1
        rising = np.arange(count)
        return np.where(self.mirrored[..., None], count - 1 - rising, rising)

    def with_gamma(self, gamma: float | None) -> TestingCPT:
        """A copy that is selected with another slope (`None`: by hard tests)."""
        return self.with_parts({}, gamma=gamma)

    def with_parts(self, parts: Mapping[str, ArrayLike], **settings: Any) -> TestingCPT:
        """A copy with some of the numbers, by the names of `parts()`, or other settings replaced."""
        numbers = {**self.parts(), **parts}
        tables = [numbers[part] for part in self.table_parts]
        kept = {"test": self.test, "gamma": self.gamma, "learn": self.learn, "tie": self.tie}
        return TestingCPT(tables=tables, thresholds=numbers[THRESHOLDS], **{**kept, **settings})

    def bind(self, own: Variable, parents: Sequence[Variable]) -> TestingCPT:
        """The tables of this node, after a check of their shape."""
        if not parents:
            raise NetworkError("a testing node needs parents to test; roots are always regular")
        check_shape("plus and minus" if len(self.tables) == 2 else "every table", self.tables[0], own, parents)
        return self

    def grid(self, family: Family) -> Grid:
        """All tables side by side, with the tests that choose between them."""
        tested = ", ".join(parent.name for parent in family.parents)
        labels, parts = family.labels(), self.parts()
        shown = [part for part in parts if part != THRESHOLDS]
        head = [
            (*[""] * len(family.parents), "", *(cell for part in shown for cell in (part, *[""] * (len(labels) - 1)))),
            (*(parent.name for parent in family.parents), "test", *(label for _ in shown for label in labels)),
        ]
        body = []
        for state in family.lines():
            test = GAP if state is None else f"{self.test[state]} {', '.join(map(number, self.limits[state]))}"
            cells = [cell for part in shown for cell in family.cells(parts[part], state)]
            body.append((*family.names(state), test, *cells))
        title = f"{family.title}: {self._rule(tested)}"
        return Grid(head, body, len(family.parents) + 1, title, unset_note(*parts.values()))

    def _rule(self, tested: str) -> str:
        if len(self.tables) > 2:
            how = "" if self.gamma is None else f", smoothed by sigmoids with slope {self.gamma:g}"
            return f"table i if i of the tests of P*({tested}) hold{how}"
        if self.gamma is None:
            return f"plus if the test of P*({tested}) holds, else minus"
        return f"plus and minus mixed by a sigmoid of P*({tested}) with slope {self.gamma:g}"

    @property
    def table_parts(self) -> tuple[str, ...]:
        """What the tables are called in `parts()`, in the order of `tables`."""
        return ("minus", "plus") if len(self.tables) == 2 else tuple(f"table {i}" for i in range(len(self.tables)))

    def parts(self) -> dict[str, Floats]:
        if len(self.tables) == 2:
            return {"plus": self.tables[1], "minus": self.tables[0], THRESHOLDS: self.thresholds}
        return {**dict(zip(self.table_parts, self.tables, strict=True)), THRESHOLDS: self.thresholds}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TestingCPT) and difference(self, other) is None

    def __repr__(self) -> str:
        parents, k = self.tables[0].shape[:-1], self.tables[0].shape[-1]
        tests = sorted(set(self.test.ravel().tolist()))
        shown = repr(tests[0]) if len(tests) == 1 else self.test.ravel().tolist()
        shown = shown if len(str(shown)) < 60 else "[...]"
        tables = f", {len(self.tables)} tables" if len(self.tables) > 2 else ""
        gamma = "" if self.gamma is None else f", gamma={self.gamma:g}"
        return f"TestingCPT(parents {parents}, {k} states{tables}, test={shown}{gamma}{settings(self)})"


AnyCPT = CPT | TestingCPT | FunctionCPT | NoisyOr | Mux | AnyDensity


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


def difference(one: CPT | TestingCPT | AnyDensity, other: CPT | TestingCPT | AnyDensity) -> str | None:
    """The first thing in which two CPTs differ, with both values; None if they are equal.

    >>> difference(CPT([0.25, 0.75]), CPT([0.5, 0.5]))
    'table[0]: 0.25 and 0.5'
    """
    if one is other:
        return None
    if type(one) is not type(other):
        return f"kind: {type(one).__name__} and {type(other).__name__}"
    counts = [len(cpt.tables) for cpt in (one, other) if isinstance(cpt, TestingCPT)]
    if len(set(counts)) > 1:
        return f"tables: {counts[0]} and {counts[1]} of them"
    now = _compared(other)
    for part, a in _compared(one).items():
        b = now[part]
        if a is b:  # what tied nodes share
            continue
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


def _compared(cpt: CPT | TestingCPT | AnyDensity) -> dict[str, Any]:
    """The parts and settings that equal CPTs share, by name; the names that they print with may differ."""
    own = {"test": cpt.test, "gamma": cpt.gamma} if isinstance(cpt, TestingCPT) else {}
    return {**cpt.parts(), **own, "learn": cpt.learn, "tie": cpt.tie}


def _tables(plus: ArrayLike | None, minus: ArrayLike | None, tables: Sequence[ArrayLike] | None) -> tuple[Floats, ...]:
    """The tables, the one of which no test holds first, all of one shape."""
    if (tables is None) == (plus is None and minus is None):
        raise NetworkError("a testing CPT takes plus and minus, or tables; give either")
    if tables is None:
        if plus is None or minus is None:
            raise NetworkError(f"{'plus' if plus is None else 'minus'} is missing; a testing CPT takes plus and minus")
        by_part = {"plus": _distributions(plus, "plus"), "minus": _distributions(minus, "minus")}
    else:
        if isinstance(tables, str | Mapping) or not hasattr(tables, "__len__") or len(tables) < 2:
            raise NetworkError(f"tables is {short(repr(tables), 60)}, expected a sequence of two tables or more")
        by_part = {f"table {i}": _distributions(table, f"table {i}") for i, table in enumerate(tables)}
    first = next(iter(by_part))
    for part, table in by_part.items():
        if table.shape != by_part[first].shape:
            shapes = f"{first} has shape {by_part[first].shape} but {part} {table.shape}"
            raise NetworkError(f"{shapes}; they must be the same")
    return tuple(by_part.values()) if tables is not None else (by_part["minus"], by_part["plus"])


def _distributions(values: ArrayLike, part: str) -> Floats:
    table = as_floats(values, part)
    if table.ndim == 0 or table.size == 0:
        raise NetworkError(f"{part} has shape {table.shape}; expected (parents' cardinalities..., own states)")
    return distributions(table, part)


def _thresholds(values: ArrayLike, parents: tuple[int, ...], tables: int, of: str) -> Floats:
    """Thresholds (parents...) of two tables, (parents..., tables - 1) of more; one NaN stands for all."""
    thresholds = as_floats(values, THRESHOLDS)
    expected = parents if tables == 2 else (*parents, tables - 1)
    if thresholds.ndim == 0 and np.isnan(thresholds):
        thresholds = as_floats(np.full(expected, np.nan), THRESHOLDS)
    elif tables == 2 and of == "tables" and thresholds.shape == (*parents, 1):
        thresholds = as_floats(thresholds[..., 0], THRESHOLDS)
    if thresholds.shape != expected:
        each = f"{'one' if tables == 2 else tables - 1} per parent state of {of}"
        raise NetworkError(f"thresholds have shape {thresholds.shape}, expected {expected}: {each}")
    for index in outside(thresholds):
        raise TableError(THRESHOLDS, index[: len(parents)], f"{thresholds[index]:g} is not a threshold in [0, 1]")
    if tables > 2:
        before = np.fmax.accumulate(thresholds, axis=-1)
        for place in map(tuple, np.argwhere(thresholds < before)[:1].tolist()):
            problem = f"{thresholds[place]:g} comes after {before[place]:g}; none may be less than others before"
            raise TableError(THRESHOLDS, place[:-1], problem)
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
        expected = f"expected one operator or shape {parents}: one per parent state"
        raise NetworkError(f"test has shape {tests.shape}, {expected}")
    tests = np.broadcast_to(tests.astype("<U2"), parents).copy()
    tests.flags.writeable = False
    return tests
