"""CPTs given by a rule instead of a dense table: functions, noisy-ors and multiplexers.

They stay small whatever the number of parents; the compiler turns them into small factors. `dense()` writes
the table out, for those who need it (the definition in `semantics.py`, other people's formats).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import NetworkError, TableError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import large
from tacit.model.elements.base_cpt import BaseCPT
from tacit.model.elements.distributions import as_floats, distributions
from tacit.model.elements.variable import Variable

MAX_AXES = 64  # of NumPy's arrays
MAX_DENSE = 2**24
MAX_CALLS = 2**20
OTHER_RULES = "use Mux or NoisyOr, or put nodes between"


class FunctionCPT(BaseCPT):
    """A rule from parent states to a state or a distribution; made by `CPT.from_function`.

    Bound to a node, it holds `codes` (parents' cardinalities...), the row that rules in each parent state, and
    the distinct `rows` (rows, own cardinality). The rule itself is called once per parent state, then dropped.
    """

    codes: NDArray[np.int64]
    rows: Floats
    _f: Callable[..., Any] | None

    def __init__(self, f: Callable[..., Any] | None = None) -> None:
        if f is not None and not callable(f):
            raise NetworkError(f"from_function needs a function of the parents' labels, got {f!r}")
        self._set(_f=f)

    @classmethod
    def from_rows(cls, codes: ArrayLike, rows: ArrayLike) -> FunctionCPT:
        """A rule given by its numbers: the row `rows[codes[u]]` for parent state u."""
        table, places = as_floats(rows, "rows"), np.array(codes, dtype=np.int64)
        places.flags.writeable = False
        if table.ndim != 2:
            raise NetworkError(f"rows have shape {table.shape}, expected (distinct rows, own states)")
        if places.size and not 0 <= places.min() <= places.max() < len(table):
            raise NetworkError(f"codes must lie in 0..{len(table) - 1}, the rows given")
        if np.isnan(table).any():
            raise NetworkError("a rule cannot hold NaN; give an array with NaN entries to learn them")
        cpt = cls()
        cpt._set(codes=places, rows=distributions(table, "rows"))
        return cpt

    def bind(self, own: Variable, parents: Sequence[Variable]) -> FunctionCPT:
        shape = tuple(p.card for p in parents)
        if self._f is None:
            if (self.codes.shape, self.rows.shape[1]) != (shape, own.card):
                rule = f"the rule is for parents {self.codes.shape} and {self.rows.shape[1]} states"
                raise NetworkError(f"{rule}, expected {shape} and {own.card}")
            return self
        if math.prod(shape) > MAX_CALLS:
            calls = f"{large(math.prod(shape))} parent states (limit {MAX_CALLS:,})"
            raise TooLargeError(f"the function would be called for {calls}; {OTHER_RULES}")
        check_axes(parents)
        rows: dict[tuple[float, ...], int] = {}
        codes = np.empty(shape, dtype=np.int64)
        for state in itertools.product(*map(range, shape)):
            labels = [p.states[i] for p, i in zip(parents, state, strict=True)]
            codes[state] = rows.setdefault(_row(self._f(*labels), own, state), len(rows))
        return FunctionCPT.from_rows(codes, list(rows))

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        check_dense(own, parents)
        return np.asarray(self.rows[self.codes], dtype=np.float64)

    def parts(self) -> dict[str, Floats]:
        return {"rows": self.rows}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionCPT) or (self._f, other._f) != (None, None):
            return self is other
        return np.array_equal(self.codes, other.codes) and np.array_equal(self.rows, other.rows)

    def __repr__(self) -> str:
        if self._f is not None:
            return f"CPT.from_function({getattr(self._f, '__name__', self._f)})"
        kind = "deterministic" if np.isin(self.rows, (0.0, 1.0)).all() else "function"
        return f"FunctionCPT({kind}, {self.codes.size} parent states, {len(self.rows)} distinct rows)"


class NoisyOr(BaseCPT):
    """Independent causes, any of which may bring the effect about (the first state of a binary node).

    `causes` gives, for each parent, the probability that it brings about the effect alone: a number (for the
    parent's first state; 0 for the others), or one number per parent state. `leak` is the probability of the
    effect when no cause is present. A mapping names the parents, a sequence follows the node's `parents`. With
    `learn=True`, `tacit.estimate` starts from these numbers; exact 0s and 1s stay.

    >>> NoisyOr({"flu": 0.6, "cold": 0.3}, leak=0.01)
    NoisyOr({'flu': 0.6, 'cold': 0.3}, leak=0.01)
    """

    names: tuple[str, ...] | None
    causes: tuple[Floats, ...]
    leak: float

    def __init__(
        self, causes: Mapping[str, ArrayLike] | Sequence[ArrayLike], leak: float = 0.0, learn: bool = False
    ) -> None:
        names = tuple(causes) if isinstance(causes, Mapping) else None
        values = causes.values() if isinstance(causes, Mapping) else causes
        per_parent = tuple(as_floats(c, "NoisyOr, causes") for c in values)
        for place, cause in zip(names or itertools.count(), per_parent, strict=False):
            if cause.ndim > 1 or not ((cause >= 0) & (cause <= 1)).all():
                problem = f"{cause.tolist()} is not a probability, or one per parent state"
                raise NetworkError(f"NoisyOr, cause {place!r}: {problem}")
        level = as_floats(leak, "NoisyOr, leak")
        if level.ndim or not 0 <= level <= 1:
            raise NetworkError(f"NoisyOr: leak {leak!r} is not a probability in [0, 1]")
        self._set(names=names, causes=per_parent, leak=float(level), learn=bool(learn))

    def implied_parents(self) -> tuple[str, ...] | None:
        return self.names

    def bind(self, own: Variable, parents: Sequence[Variable]) -> NoisyOr:
        if own.card != 2:
            raise NetworkError(f"NoisyOr needs a binary node, this one has {own.card} states")
        names = [p.name for p in parents]
        if self.names is not None and set(self.names) != set(names):
            raise NetworkError(f"NoisyOr names the causes {list(self.names)}, but the parents are {names}")
        if len(self.causes) != len(parents):
            raise NetworkError(f"NoisyOr has {len(self.causes)} causes for {len(parents)} parents")
        by_name = dict(zip(self.names or names, self.causes, strict=True))
        causes: dict[str, ArrayLike] = {}
        for p in parents:
            cause = by_name[p.name]
            if cause.ndim and cause.shape != (p.card,):
                raise NetworkError(f"NoisyOr, cause {p.name!r}: {cause.size} probabilities for {p.card} states")
            causes[p.name] = cause if cause.ndim else [float(cause)] + [0.0] * (p.card - 1)
        return NoisyOr(causes, self.leak, self.learn)

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        check_dense(own, parents)
        present, absent = np.array(self.leak), np.array(1.0 - self.leak)
        for cause in self.causes:  # sums, since 1 - absent would lose what is small
            present = present[..., None] + absent[..., None] * cause
            absent = absent[..., None] * (1.0 - cause)
        return np.stack([present, absent], axis=-1)

    def parts(self) -> dict[str, Floats]:
        """The numbers as tables (parent, effect so far, effect after) of each cause; the first starts from the leak."""
        start = np.array([self.leak, 1.0 - self.leak])
        steps = [np.array([[[1.0, 0.0], [p, 1.0 - p]] for p in cause]) for cause in self.causes]
        if not steps:
            return {"cause 0": start}
        steps[0] = np.einsum("b,uba->ua", start, steps[0])
        return {f"cause {i}": step for i, step in enumerate(steps)}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NoisyOr)
            and (self.names, self.leak, self.learn) == (other.names, other.leak, other.learn)
            and len(self.causes) == len(other.causes)
            and all(map(np.array_equal, self.causes, other.causes))
        )

    def __repr__(self) -> str:
        values = [c.tolist() for c in self.causes]
        if len(values) > 8:
            return f"NoisyOr({len(values)} causes, leak={self.leak:g}{', learn=True' * self.learn})"
        shown = dict(zip(self.names, values, strict=True)) if self.names is not None else values
        return f"NoisyOr({shown}, leak={self.leak:g}{', learn=True' * self.learn})"


class Mux(BaseCPT):
    """The node copies the input that the selector's state points to: state i of `selector` means `inputs[i]`.

    >>> Mux("I", ["Y1", "Y2", "Y3"])
    Mux(selector='I', inputs=['Y1', 'Y2', 'Y3'])
    """

    selector: str
    inputs: tuple[str, ...]

    def __init__(self, selector: str, inputs: Sequence[str]) -> None:
        self._set(selector=selector, inputs=tuple(inputs))
        if isinstance(inputs, str) or not self.inputs:
            raise NetworkError(f"Mux needs a sequence of input names, got {inputs!r}")
        for name in self.implied_parents():
            if not isinstance(name, str):
                raise NetworkError(f"Mux: {name!r} is not the name of a variable")
        if len(set(self.implied_parents())) != 1 + len(self.inputs):
            raise NetworkError("Mux: the selector and the inputs must all be different variables")

    def implied_parents(self) -> tuple[str, ...]:
        return (self.selector, *self.inputs)

    def bind(self, own: Variable, parents: Sequence[Variable]) -> Mux:
        by_name = {p.name: p for p in parents}
        if odd := sorted(set(by_name) ^ set(self.implied_parents())):
            expected = "the parents must be exactly the selector and the inputs"
            raise NetworkError(f"Mux: {expected}; {odd[0]!r} is only one of them")
        if (card := by_name[self.selector].card) != len(self.inputs):
            raise NetworkError(f"Mux: selector {self.selector!r} has {card} states for {len(self.inputs)} inputs")
        for name in self.inputs:
            if (card := by_name[name].card) != own.card:
                raise NetworkError(f"Mux: input {name!r} has {card} states, expected {own.card} as the node itself")
        return self

    def dense(self, own: Variable, parents: Sequence[Variable]) -> Floats:
        check_dense(own, parents)
        states = np.indices([p.card for p in parents], sparse=True)
        state = {parent.name: own_state for parent, own_state in zip(parents, states, strict=True)}
        selected = [state[self.selector] == i for i in range(len(self.inputs))]
        chosen = np.select(selected, [state[name] for name in self.inputs])
        return np.asarray(chosen[..., None] == np.arange(own.card), dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mux) and (self.selector, self.inputs) == (other.selector, other.inputs)

    def __repr__(self) -> str:
        inputs = list(self.inputs) if len(self.inputs) <= 8 else f"<{len(self.inputs)} variables>"
        return f"Mux(selector={self.selector!r}, inputs={inputs})"


def check_axes(parents: Sequence[Variable], instead: str = OTHER_RULES) -> None:
    """Refuse a table with more axes than an array can have, however few its entries are."""
    if len(parents) >= MAX_AXES:
        raise TooLargeError(f"a table of {len(parents):,} parents cannot be made (limit {MAX_AXES - 1}); {instead}")


def check_dense(own: Variable, parents: Sequence[Variable]) -> None:
    """Refuse to write out a table that is too large."""
    instead = "compile the query instead, which keeps it factored"
    entries = math.prod(p.card for p in parents) * own.card
    try:
        if entries > MAX_DENSE:
            raise TooLargeError(f"its table would have {large(entries)} entries (limit {MAX_DENSE:,}); {instead}")
        check_axes(parents, instead)
    except TooLargeError as error:
        raise TooLargeError(f"node {own.name!r}: {error}") from None


def _row(value: Any, own: Variable, state: tuple[int, ...]) -> tuple[float, ...]:
    """What a rule returned, as a distribution over the node's states."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int | float):
        if value not in own.codes:
            some = ", ".join(map(repr, own.states[:6])) + ", ..." * (own.card > 6)
            problem = f"{value!r} is not a state; expected one of {some}, or a distribution"
            raise TableError("from_function", state, problem)
        return tuple(float(i == own.codes[value]) for i in range(own.card))
    if isinstance(value, Mapping):
        if unknown := [label for label in value if label not in own.codes]:
            raise TableError("from_function", state, f"{unknown[0]!r} is not a state of the node")
        value = [value.get(label, 0.0) for label in own.states]
    try:
        row = as_floats(value, "from_function")
    except NetworkError:
        row = np.empty(0)
    if row.shape != (own.card,) or np.isnan(row).any():
        raise TableError("from_function", state, f"{value!r} is not a distribution over {own.card} states")
    try:
        row = distributions(row, "from_function")
    except TableError as error:
        raise TableError("from_function", state, error.problem) from None
    return tuple(row.tolist())
