"""The flattening of a testing CPT: what a test is, what a sigmoid is, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.arrangement import aligned, order_of, spread, views
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Setting
from tacit.compiler.operations.operation import Operation, Target
from tacit.model.cpt import MIRRORED, TESTS


@dataclass(frozen=True, slots=True, eq=False)
class Select(Operation):
    """Flatten a testing CPT.

    From the marginal p*(u) of the parents, the tables plus and minus, and the thresholds: the table that the evidence
    selects, by tests or, where the node has a slope, by sigmoids. `tests` are the operators, as positions in `TESTS`,
    over the axes of the marginal and, where they depend on them, of parents that are observed.
    """

    node: str
    inputs: tuple[int, int, int, int]  # marginal, plus, minus, thresholds
    tests: NDArray[np.int64]
    observed: Axes
    axes: Axes

    @property
    def detail(self) -> str:
        return f"{self.node}: {' '.join(f'v{i}' for i in self.inputs)}"

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        marginal, plus, minus, thresholds = map(set, setting.axes)
        assert plus == minus == set(self.axes), "the tables of a selection"
        assert thresholds == marginal <= plus, "the marginal of a selection"
        assert hard.issuperset(self.observed), "the operators of a selection depend on what is not observed"
        assert list(self.tests.shape) == setting.shape((*setting.axes[0], *self.observed)), "the tests of a selection"

    def multiply_adds(self, setting: Setting) -> int:
        return setting.size(self.axes)

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _SelectStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.choices(self, setting)

    def operators(self, setting: Setting, axes: Axes) -> NDArray[np.int64]:
        """The operators over some axes, ready to broadcast."""
        return spread(self.tests, (*setting.axes[0], *self.observed), axes)


def codes(tests: NDArray[Any]) -> NDArray[np.int64]:
    """Operators as positions in `TESTS`."""
    return np.asarray(np.vectorize(TESTS.index, otypes=[np.int64])(tests))


class Operators:
    """The operators of a selection, and where each applies: in all parent states, in some, or depending on the row."""

    def __init__(self, xp: ArrayLibrary, tests: Ids, observed: Axes = (), cards: Sequence[int] = ()) -> None:
        self._xp, self._observed, self._cards = xp, observed, cards
        used = [code for code in range(len(TESTS)) if (tests == code).any()]
        self._used = [TESTS[code] for code in used]
        masks = [tests == code for code in used]
        if observed:  # (entries, states of the observed variables), to be indexed by the rows
            self._shape = [*tests.shape[: tests.ndim - len(observed)], -1]
            masks = [mask.reshape(-1, math.prod(cards)) for mask in masks]
        self._masks = [xp.truth(mask) for mask in masks] if len(used) > 1 else []

    def holds(self, frame: Frame | None, n_u: Array, limit: Array) -> Array:
        """Where a parent state passes its test; n_u is compared with n * threshold, so that nothing is divided."""
        if not self._masks:
            return self._xp.compare(self._used[0], n_u, limit)
        tests = zip(self._used, self._applying(frame), strict=True)
        passed = (self._xp.both(applies, self._xp.compare(test, n_u, limit)) for test, applies in tests)
        return reduce(self._xp.either, passed)

    def argument(self, frame: Frame | None, n_u: Array, n: Array, threshold: Array, gamma: Any) -> Array:
        """What the sigmoid that weighs `plus` is taken of, mirrored for "<=" and "<"; 0 where n is 0."""
        return self.mirrored(frame, gamma * (self._xp.ratio(n_u, n, threshold) - threshold))

    def mirrored(self, frame: Frame | None, x: Array) -> Array:
        """-x where the operator is "<=" or "<"."""
        turned = [test in MIRRORED for test in self._used]
        if all(turned) or not any(turned):
            return -x if all(turned) else x
        where = reduce(self._xp.either, compress(self._applying(frame), turned))
        return self._xp.where(where, -x, x)

    def _applying(self, frame: Frame | None) -> list[Array]:
        if not self._observed:
            return self._masks
        assert frame is not None
        place = frame.place(self._observed, self._cards)
        return [self._xp.reshape(self._xp.take(mask, place, 1), self._shape) for mask in self._masks]


def weigh(
    xp: ArrayLibrary, tests: NDArray[np.int64], n_u: Array, n: Array, threshold: Array, gamma: float | None
) -> tuple[Array, Array]:
    """The weights of `plus` and `minus`: n_u/n against the threshold, by tests or by sigmoids."""
    operators = Operators(xp, tests)
    if gamma is None:
        holds = operators.holds(None, n_u, n * threshold)
        return holds, ~holds
    return xp.sigmoids(operators.argument(None, n_u, n, threshold, gamma), n_u)


class _SelectStep(ArrayStep):
    def __init__(self, operation: Select, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, self._node, self._inputs = xp, operation.node, operation.inputs
        out, parents, batched = operation.axes, setting.axes[0], any(setting.batched)
        self._views = views(xp, setting, out)
        self._parents = tuple(k for k, a in enumerate(out) if a in parents)
        self._own = tuple(k for k, a in enumerate(out) if a not in parents)
        kept = [a for a in out if a in parents]
        self._weight = [*setting.shape(kept), *[-1] * batched], order_of(kept, parents, batched)
        tests = operation.operators(setting, (*out, *operation.observed))
        if batched and not operation.observed:
            tests = tests[..., None]
        self._operators = Operators(xp, tests, operation.observed, setting.shape(operation.observed))
        self._batched = batched

    def forward(self, frame: Frame) -> Value:
        n_u, plus, minus, threshold = aligned(self._views, frame, self._inputs)
        n, gamma = self._total(n_u), frame.gamma(self._node)
        if gamma is None:
            tau = self._operators.holds(frame, n_u, n * threshold)
            table = self._xp.where(tau, plus, minus)
        else:
            tau, rest = self._weights(frame, n_u, n, threshold, gamma)
            table = tau * plus + rest * minus
        floor = self._floor(frame, table, (plus, minus)) if self._batched else None
        return Value(table, floor=floor, weight=tau)

    def weight(self, value: Value) -> Array:
        """The weights of `plus` that selected a table: (axes of the marginal..., rows)."""
        shape, order = self._weight
        return self._xp.permute(self._xp.reshape(value.weight, shape), order)

    def floor(self, frame: Frame, value: Value) -> Any:
        _, plus, minus, _ = aligned(self._views, frame, self._inputs)
        return self._floor(frame, value.array, (plus, minus))

    def _floor(self, frame: Frame, table: Array, sides: tuple[Array, Array]) -> Any:
        tests = frame.gamma(self._node) is None
        return self._xp.selected_floor(frame, self._inputs, tests, table, sides, self._batched)

    def _weights(self, frame: Frame, n_u: Array, n: Array, threshold: Array, gamma: Any) -> tuple[Array, Array]:
        x = self._operators.argument(frame, n_u, n, threshold, gamma)
        return self._xp.sigmoids(x if frame.through else self._xp.fixed(x), n_u)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        """Derivatives of the tables and, through a sigmoid, of what is weighed; a test has none."""
        frame, (marginal, high, low, limits) = backward.frame, self._inputs
        n_u, plus, minus, threshold = aligned(self._views, frame, self._inputs)
        n, gamma = self._total(n_u), frame.gamma(self._node)
        if gamma is None:
            tau = self._operators.holds(frame, n_u, n * threshold).astype(n_u.dtype)
            rest = 1 - tau
        else:
            tau, rest = self._weights(frame, n_u, n, threshold, gamma)
        backward.add(high, self._views[1].back(adjoint * tau))
        backward.add(low, self._views[2].back(adjoint * rest))
        if gamma is None or not frame.through:
            return
        # tau = sigmoid(+-gamma (n_u / n - threshold)); where n is 0, so is the joint, and with it the adjoint
        divisor = np.where(n > 0, n, 1.0)
        posterior = n_u / divisor
        by_tau = (adjoint * (plus - minus)).sum(axis=self._own, keepdims=True)
        by_x = self._operators.mirrored(frame, by_tau * tau * rest)  # x = gamma (posterior - threshold)
        by_posterior = gamma * by_x
        backward.add(marginal, self._views[0].back((by_posterior - self._total(by_posterior * posterior)) / divisor))
        backward.add(limits, self._views[3].back(-by_posterior))
        backward.add_slope(self._node, (by_x * (posterior - threshold)).sum())

    def _total(self, array: Array) -> Array:
        return self._xp.sum(array, self._parents, keepdims=True)
