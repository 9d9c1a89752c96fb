"""Labelled rows as training sees them: in memory, or scattered over the parts of a cluster."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.engines.engine import Sweep
from tacit.evidence.column import blocks
from tacit.evidence.tables.messages import in_partition
from tacit.learn.checkpoint import fingerprint
from tacit.learn.fitting.data import Data
from tacit.learn.fitting.losses import Loss
from tacit.learn.fitting.objective import Objective, Penalty, Squares, Trainable
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.partitions import Broadcast, Distributed
from tacit.query.tac import TAC

MAX_JACOBIAN = 50_000_000  # derivatives of some rows by all numbers, known ones included: 400 MB
SIDE_BY_SIDE = 16  # restarts that ask at the same time

Part = Data | None  # the rows of a part, with weights as they were given; None where there are none
Ask = Callable[[Objective], Any]  # what it is asked for: a number, or a tuple of numbers and arrays


class LabelledRows(ABC):
    """Rows to learn from.

    `groups` is how many numbers a target has, `here` how many of the rows are in this process, and `optimizers` are
    those that can be used. `jacobian` is how many derivatives there may be.
    """

    rows: int
    groups: int
    here: int
    optimizers: Sequence[str]
    jacobian: float

    @abstractmethod
    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Trainable:
        """What is minimised."""

    @abstractmethod
    def require_possible(self, tac: TAC, what: str) -> None:
        """An error, if some row has probability 0."""

    @abstractmethod
    def split(self, share: float, seed: int) -> tuple[LabelledRows, LabelledRows]:
        """Most rows, and the share of them that is held out."""

    @abstractmethod
    def digest(self) -> str:
        """What tells the rows from others."""


class InMemory(LabelledRows):
    """All rows in this process."""

    optimizers = ("lm", "lbfgs", "adam")
    jacobian = MAX_JACOBIAN

    def __init__(self, data: Data) -> None:
        self.data = data
        self.rows = self.here = data.rows
        self.groups = len(data.targets)

    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Objective:
        """What is minimised."""
        return Objective(parameters, tac.engine().clone(), self.data, loss, prior)

    def require_possible(self, tac: TAC, what: str) -> None:
        """An error that names the first row that has probability 0."""
        row = first_impossible(self.data, tac)
        if row is not None:
            raise impossible(what, row)

    def counted(self) -> InMemory:
        """The rows that weigh something."""
        return InMemory(self.data.take(np.flatnonzero(self.data.weights)))

    def split(self, share: float, seed: int) -> tuple[LabelledRows, LabelledRows]:
        """Most rows, and the share of them that is held out, drawn at random."""
        count = max(1, round(share * self.rows))
        if count >= self.rows:
            raise TacitError(f"validation={share} leaves no row of {self.rows} to learn from")
        order = np.random.default_rng((seed, self.rows)).permutation(self.rows)
        kept, held_out = np.sort(order[count:]), np.sort(order[:count])
        return InMemory(self.data.take(kept)), InMemory(self.data.take(held_out))

    def digest(self) -> str:
        """What tells the rows from others."""
        return fingerprint(sorted(self.data.columns), self.data.arrays())


def first_impossible(data: Data, tac: TAC) -> int | None:
    """The first row that has probability 0."""
    engine = tac.engine().runner(data.rows, Sweep.FORWARD)
    for rows, block in blocks(data.columns, data.rows, engine.chunk):
        total = engine.run(block.columns, block.rows).joint.sum(axis=0)
        for row in np.flatnonzero(total <= 0)[:1].tolist():
            return int(rows.start + row)
    return None


def impossible(what: str, row: int) -> EvidenceError:
    """The error about such a row, which may be called otherwise: "validation row"."""
    problem = "the evidence has probability 0; known 0s rule it out"
    return EvidenceError(problem, row=row) if what == "row" else EvidenceError(problem, subject=f"{what} {row}")


@dataclass(frozen=True)
class RowTotals:
    """How many rows there are, what they weigh, and how many numbers their targets have."""

    rows: int = 0
    weight: float = 0.0
    groups: frozenset[int] = frozenset()

    def __add__(self, other: RowTotals) -> RowTotals:
        return RowTotals(self.rows + other.rows, self.weight + other.weight, self.groups | other.groups)


def row_totals(data: Part, number: int | None) -> RowTotals:
    """How many rows a part has, and what they weigh."""
    if data is None:
        return RowTotals()
    return RowTotals(data.rows, float(data.weights.sum()), frozenset({len(data.targets)}))


class Scattered(LabelledRows):
    """Rows that lie in many places."""

    optimizers = ("lm", "lbfgs")
    jacobian = float("inf")  # it is never stored as a whole
    here = 0

    def __init__(self, parts: Distributed[Part]) -> None:
        self.parts = parts
        totals: RowTotals = parts.sum(row_totals, operator.add)
        if not totals.weight:
            raise EvidenceError("there are no rows that weigh anything; at least one must count")
        if not np.isfinite(totals.weight):
            raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
        if len(totals.groups) > 1:
            raise EvidenceError("some partitions have labels, or probabilities of all states, and others "
                                "probabilities of the first state; expected one kind in all of them")  # fmt: skip
        self.rows, self.weight, (self.groups,) = totals.rows, totals.weight, totals.groups

    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Trainable:
        """What is minimised."""
        return SharedObjective(self, parameters, tac, loss, prior)

    def require_possible(self, tac: TAC, what: str) -> None:
        """An error that names the first row that has probability 0."""
        error = self.parts.sum(partial(_impossible, tac=self.parts.broadcast(tac), what=what), _first)
        if error is not None:
            raise error

    def split(self, share: float, seed: int) -> tuple[LabelledRows, LabelledRows]:
        """Rows drawn at random in every part; another partition of the same rows draws others."""
        try:
            draw = partial(_drawn, share=share, seed=seed)
            kept, held_out = (Scattered(self.parts.map(partial(draw, held_out=held))) for held in (False, True))
        except EvidenceError:
            raise TacitError(f"validation={share} leaves no row of {self.rows} to learn from, or to hold out") from None
        return kept, held_out

    def digest(self) -> str:
        """What tells the rows from others, and their parts from other parts."""
        return fingerprint(self.parts.sum(_digests, operator.add), [])


def _impossible(data: Part, number: int | None, *, tac: Broadcast[TAC], what: str) -> EvidenceError | None:
    """An error about the first row of a part that has probability 0."""
    row = None if data is None else first_impossible(data, tac.get())
    return None if row is None else in_partition(impossible(what, row), number)


def _first(one: EvidenceError | None, other: EvidenceError | None) -> EvidenceError | None:
    return one or other


def _drawn(data: Part, number: int | None, *, share: float, seed: int, held_out: bool) -> Part:
    """The rows of a part that are held out, or all others."""
    if data is None:
        return None
    chosen = np.random.default_rng((seed, number or 0)).random(data.rows) < share
    return some_rows(data, np.flatnonzero(chosen == held_out))


def some_rows(data: Data, rows: NDArray[np.int64]) -> Part:
    """Some rows, whose weights stay as they are."""
    columns = {name: column.take(rows) for name, column in data.columns.items()}
    return Data(columns, np.ascontiguousarray(data.targets[:, rows]), data.weights[rows]) if len(rows) else None


def _digests(data: Part, number: int | None) -> tuple[str, ...]:
    return ("",) if data is None else (fingerprint(sorted(data.columns), data.arrays()),)


class SharedObjective:
    """The loss of all rows: each part is asked for what its own rows add, and its derivatives by the weights."""

    small = True  # an evaluation is no work here: restarts wait for the cluster side by side
    at_once = SIDE_BY_SIDE

    def __init__(
        self, labelled: Scattered, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None
    ) -> None:
        self.parameters, self.loss = parameters, loss
        self._penalty = Penalty(parameters, prior, labelled.rows)
        self._labelled = labelled
        self._what = labelled.parts.broadcast((parameters, tac))

    def clone(self) -> SharedObjective:
        """Itself: it holds nothing that changes."""
        return self

    def loss_of_rows(self) -> float:
        """The loss with the numbers that the query has."""
        (loss,) = self._sum(operator.methodcaller("loss_of_rows"))
        return float(loss)

    def value(self, weights: Floats) -> float:
        """The loss of all rows alone, without the penalty."""
        (loss,) = self._sum(operator.methodcaller("value", weights))
        return float(loss)

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The loss of all rows with the penalty, and its derivatives by the weights."""
        loss, gradient = self._sum(operator.methodcaller("value_and_gradient", weights))
        penalty, slope = self._penalty.value_and_gradient(weights)
        return float(loss) + penalty, gradient + slope

    def squares(self, weights: Floats) -> Squares:
        """The model of a squared error around some weights."""
        loss, gradient, normal = self._sum(operator.methodcaller("squares", weights), jacobian=True)
        return Squares(float(loss), gradient, normal)

    def _sum(self, ask: Ask, jacobian: bool = False) -> list[Any]:
        work = PartEvaluation(self._what, self.loss, self._labelled.weight, ask, jacobian)
        total = self._labelled.parts.sum(work, _added)
        assert total is not None, "some part has rows"
        return total


@dataclass(frozen=True)
class PartEvaluation:
    """What the rows of a part add to the loss and to its derivatives; None if there are no rows."""

    what: Broadcast[tuple[Parameters, TAC]]
    loss: Loss
    total: float  # the weight of all rows of all parts
    ask: Ask
    jacobian: bool  # whether every row has derivatives of its own

    def __call__(self, data: Part, number: int | None) -> list[Any] | None:
        if data is None:
            return None
        parameters, tac = self.what.get()
        total: list[Any] | None = None
        for block in self._blocks(replace(data, weights=data.weights / self.total), tac):
            answer = self.ask(Objective(parameters, tac.engine().clone(), block, self.loss))
            total = _added(total, answer if isinstance(answer, tuple) else (answer,))
        return total

    def _blocks(self, data: Data, tac: TAC) -> Iterator[Data]:
        """All rows at once; where each has many derivatives, some at a time."""
        size = data.rows
        if self.jacobian:
            size = max(1, MAX_JACOBIAN // max(1, tac.engine().jacobian_size))
        if size >= data.rows:
            yield data
            return
        for rows, block in blocks(data.columns, data.rows, size):
            yield Data(block.columns, np.ascontiguousarray(data.targets[:, rows]), data.weights[rows])


def _added(one: Sequence[Any] | None, other: Sequence[Any] | None) -> list[Any] | None:
    if one is None or other is None:
        only = other if one is None else one
        return None if only is None else list(only)
    return [a + b for a, b in zip(one, other, strict=True)]
