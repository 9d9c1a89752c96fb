"""What engines give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, divide, flat
from tacit.evidence.column import Column
from tacit.evidence.density_column import density_columns

Array = NDArray[np.floating]
States = dict[str, NDArray[np.integer]]  # of axes, or of the variables of a traced program: (rows, samples)
N = TypeVar("N", bound=np.generic)
F = TypeVar("F", bound=np.floating)
K = TypeVar("K")
V = TypeVar("V", float, Floats)


class Decided(NamedTuple):
    """How a testing node was decided: p*(u) up to a factor per row, and how far its test holds: the weight of `plus`.

    Both are (axes of the marginal..., rows); where there are several tests, since there are more than two tables,
    the latter is (axes of the marginal..., tests, rows).
    """

    marginal: Array
    weight: Array

    @staticmethod
    def of(marginal: Array, weights: Sequence[Array]) -> Decided:
        """From the weights of one test after the other, in the order in which they come to hold."""
        return Decided(marginal, weights[0] if len(weights) == 1 else np.stack(weights, axis=-2))


@dataclass(frozen=True)
class Results:
    """What a run gives back.

    The joint is `joint` (states, rows) times 2**`exponent` (rows,). `selections` says how the testing nodes were
    decided, if that was asked for, and `imprecise` (rows,) where digits may be lost, since numbers left the range of
    floats; None where no row is imprecise.
    """

    joint: Array
    exponent: NDArray[np.int64]
    imprecise: NDArray[np.bool_] | None = None
    selections: Mapping[str, Decided] = field(default_factory=dict)

    def posterior(self, numbers: Sequence[int] | NDArray[np.intp] | None = None) -> Array:
        """The joint divided by its sum: (rows, states). `numbers` are those of the rows in a message."""
        return normalised(self.joint.T, numbers)

    @staticmethod
    def joined(parts: Sequence[Results]) -> Results:
        """Several blocks of rows as one, without what is known of selections."""
        doubts = [np.zeros(len(p.exponent), dtype=np.bool_) if p.imprecise is None else p.imprecise for p in parts]
        imprecise = np.concatenate(doubts)
        return Results(
            np.concatenate([part.joint for part in parts], axis=1),
            np.concatenate([part.exponent for part in parts]),
            imprecise if imprecise.any() else None,
        )

    def with_rows_replaced(self, rows: NDArray[np.intp], others: Results) -> Results:
        """With some rows as another run found them, whose numbers may have a wider range: they are scaled first."""
        joint, more = _scaled(others.joint)
        decided = {}
        for node, old in self.selections.items():
            new = others.selections[node]
            marginal = _put(old.marginal, rows, _scaled(new.marginal)[0])
            decided[node] = Decided(marginal, _put(old.weight, rows, new.weight))
        return Results(_put(self.joint, rows, joint), _put(self.exponent, rows, others.exponent + more), None, decided)


class Reverse(NamedTuple):
    """Derivatives by the joint times 2**-`exponent` (rows,), and whether digits of some rows may be lost."""

    gradients: Gradients
    exponent: NDArray[np.int64]
    imprecise: bool


@dataclass(frozen=True)
class Descent:
    """States for all axes, or for variables, and the run that they were chosen after."""

    states: States
    results: Results

    @staticmethod
    def joined(parts: Sequence[Descent]) -> Descent:
        """Several blocks of rows as one."""
        if len(parts) == 1:
            return parts[0]
        states = {name: np.concatenate([part.states[name] for part in parts]) for name in parts[0].states}
        return Descent(states, Results.joined([part.results for part in parts]))

    def with_rows_replaced(self, rows: NDArray[np.intp], others: Descent) -> Descent:
        """With some rows as another run found them."""
        states = {axis: old.copy() for axis, old in self.states.items()}
        for axis, codes in states.items():
            codes[rows] = others.states[axis]
        return Descent(states, self.results.with_rows_replaced(rows, others.results))


@dataclass(frozen=True)
class Gradients:
    """Derivatives of a function of the joint, summed over rows, and those by the likelihoods, row by row.

    `tables` by (node, part), `slopes` by testing node (a missing one is 0), `likelihoods` by variable: (states, rows).
    Those of continuous variables are by the logarithms of their densities, once `by_logs` has made them so.
    """

    tables: dict[tuple[str, str], Floats]
    slopes: dict[str, float]
    likelihoods: dict[str, Array]
    by_log: frozenset[str] = frozenset()  # continuous variables whose derivatives are by the logarithms already

    @property
    def finite(self) -> bool:
        arrays = [*self.tables.values(), *self.likelihoods.values(), *map(np.asarray, self.slopes.values())]
        return all(bool(np.isfinite(array).all()) for array in arrays)

    def by_logs(self, columns: Mapping[str, Column]) -> Gradients:
        """With derivatives by log-densities in place of those by densities, which may leave the range of floats."""
        waiting = self.likelihoods.keys() - self.by_log
        numbers = [column for column in density_columns(columns) if column.variable.name in waiting]
        if not numbers:
            return self
        likelihoods = dict(self.likelihoods)
        for column in numbers:
            own, factor = likelihoods[column.variable.name], column.likelihoods()
            by_log = np.multiply(own, factor, out=np.zeros_like(own), where=factor > 0)
            likelihoods[column.variable.name] = by_log
        return Gradients(self.tables, self.slopes, likelihoods)

    def overflowing(self, rows: int) -> NDArray[np.bool_]:
        """The rows whose derivatives by likelihoods are not all numbers: (rows,)."""
        overflowing = np.zeros(rows, dtype=np.bool_)
        for array in self.likelihoods.values():
            overflowing |= ~np.isfinite(array).all(axis=0)
        return overflowing

    def with_rows_replaced(self, rows: NDArray[np.intp], others: Gradients) -> Gradients:
        """With the derivatives that some rows, which had none, got from another run."""
        likelihoods = {}
        for name, old in self.likelihoods.items():
            new = others.likelihoods[name]
            likelihoods[name] = _put(old.astype(new.dtype), rows, new)  # the range of the new ones may be wider
        return Gradients(added(self.tables, others.tables), added(self.slopes, others.slopes), likelihoods)


def added(a: Mapping[K, V], b: Mapping[K, V]) -> dict[K, V]:
    """Two mappings of numbers, or arrays, whose sums are taken where both have an entry."""
    return {**a, **{key: a[key] + value if key in a else value for key, value in b.items()}}


def normalised(joint: NDArray[F], numbers: Sequence[int] | NDArray[np.intp] | None = None) -> NDArray[F]:
    """A joint (rows, states...) divided by the sum of each row; NaN where that is 0. `numbers` are those of rows."""
    total = flat(joint).sum(axis=1)
    if not np.isfinite(total).all():
        row = int(np.argmin(np.isfinite(total)))
        number = row if numbers is None else int(numbers[row])
        raise TacitError(f"row {number}: the numbers leave the range of {joint.dtype}; compile with dtype='float64'")
    return divide(joint, total.reshape(-1, *[1] * (joint.ndim - 1)))


def _scaled(array: Array) -> tuple[Array, NDArray[np.int64]]:
    """Rows whose largest entry is between 1/2 and 1, and the powers of two that they were divided by."""
    top = np.frexp(array.reshape(-1, array.shape[-1]).max(axis=0))[1]
    return np.ldexp(array, -top), top.astype(np.int64)


def _put(old: NDArray[N], rows: NDArray[np.intp], new: NDArray[N]) -> NDArray[N]:
    """A copy with other numbers in some rows."""
    copy = old.copy()
    copy[..., rows] = new
    return copy
