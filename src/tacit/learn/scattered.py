"""Labelled rows that lie in many places: the loss and its derivatives are sums over them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import EvidenceError, TacitError
from tacit.evidence import blocks
from tacit.floats import Floats
from tacit.learn.batches import Batch
from tacit.learn.checkpoint import fingerprint
from tacit.learn.data import Data
from tacit.learn.labelled import MAX_JACOBIAN, Labelled, first_impossible, impossible
from tacit.learn.losses import Loss
from tacit.learn.objective import Objective, Squares
from tacit.learn.parameters import Parameters
from tacit.learn.parts import Carried, Parts
from tacit.rows.places import in_partition
from tacit.tac import TAC

Part = Data | None  # the rows of a part, with weights as they were given; None where there are none
SIDE_BY_SIDE = 16  # restarts that ask at the same time


@dataclass(frozen=True)
class Census:
    """How many rows there are, what they weigh, and how many numbers their targets have."""

    rows: int = 0
    weight: float = 0.0
    groups: frozenset[int] = frozenset()

    def __add__(self, other: Census) -> Census:
        return Census(self.rows + other.rows, self.weight + other.weight, self.groups | other.groups)


def census(data: Part, number: int | None) -> Census:
    """That of one part."""
    return Census() if data is None else Census(data.rows, float(data.weights.sum()), frozenset({len(data.targets)}))


class Scattered(Labelled):
    """Rows that lie in many places."""

    optimizers = ("lm", "lbfgs")
    jacobian = float("inf")  # it is never stored as a whole
    here = 0

    def __init__(self, parts: Parts[Part]) -> None:
        self.parts = parts
        found: Census = parts.sum(census, operator.add)
        if not found.weight:
            raise EvidenceError("there are no rows that weigh anything; at least one must count")
        if not np.isfinite(found.weight):
            raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
        if len(found.groups) > 1:
            raise EvidenceError("some partitions have labels, or probabilities of all states, and others "
                                "probabilities of the first state; expected one kind in all of them")  # fmt: skip
        self.rows, self.weight, (self.groups,) = found.rows, found.weight, found.groups

    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Objective:
        """What is minimised."""
        return SharedObjective(self, parameters, tac, loss, prior)

    def require_possible(self, tac: TAC, what: str) -> None:
        """An error that names the first row that has probability 0."""
        error = self.parts.sum(Possible(self.parts.carried(tac), what), _first)
        if error is not None:
            raise error

    def split(self, share: float, seed: int) -> tuple[Labelled, Labelled]:
        """Rows drawn at random in every part; another partition of the same rows draws others."""
        try:
            kept, held_out = (Scattered(self.parts.map(Drawn(share, seed, held))) for held in (False, True))
        except EvidenceError:
            raise TacitError(f"validation={share} leaves no row of {self.rows} to learn from, or to hold out") from None
        return kept, held_out

    def digest(self) -> str:
        """What tells the rows from others, and their parts from other parts."""
        return fingerprint(self.parts.sum(_digests, operator.add), [])


@dataclass(frozen=True)
class Possible:
    """An error about the first row of a part that has probability 0."""

    tac: Carried[TAC]
    what: str

    def __call__(self, data: Part, number: int | None) -> EvidenceError | None:
        row = None if data is None else first_impossible(data, self.tac.get())
        return None if row is None else in_partition(impossible(self.what, row), number)


def _first(one: EvidenceError | None, other: EvidenceError | None) -> EvidenceError | None:
    return one or other


@dataclass(frozen=True)
class Drawn:
    """The rows of a part that are held out, or all others."""

    share: float
    seed: int
    held_out: bool

    def __call__(self, data: Part, number: int | None) -> Part:
        if data is None:
            return None
        chosen = np.random.default_rng((self.seed, number or 0)).random(data.rows) < self.share
        return some_rows(data, np.flatnonzero(chosen == self.held_out))


def some_rows(data: Data, rows: NDArray[np.int64]) -> Part:
    """Some rows, whose weights stay as they are."""
    columns = {name: column.take(rows) for name, column in data.columns.items()}
    return Data(columns, np.ascontiguousarray(data.targets[:, rows]), data.weights[rows]) if len(rows) else None


def _digests(data: Part, number: int | None) -> tuple[str, ...]:
    return ("",) if data is None else (fingerprint(sorted(data.columns), data.arrays()),)


# the objective --------------------------------------------------------------------------------------------


class SharedObjective(Objective):
    """The loss of all rows: each part is asked for what its own rows add, and its derivatives by the weights."""

    def __init__(
        self, labelled: Scattered, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None
    ) -> None:
        self.parameters, self.loss = parameters, loss
        self.believe(prior, labelled.rows)
        self._labelled = labelled
        self._what = labelled.parts.carried((parameters, tac))

    @property
    def small(self) -> bool:
        """An evaluation is no work here: restarts wait for the cluster side by side."""
        return True

    @property
    def at_once(self) -> int:
        """How many of them wait at the same time."""
        return SIDE_BY_SIDE

    def twin(self) -> Objective:
        """The same: it holds nothing that changes."""
        return self

    def loss_of_rows(self) -> float:
        """The loss with the numbers that the query has."""
        (loss,) = self._sum("loss")
        return float(loss)

    def value(self, weights: Floats) -> float:
        """The loss of all rows alone, without the penalty."""
        (loss,) = self._sum("value", weights)
        return float(loss)

    def value_and_gradient(self, weights: Floats, batch: Batch | None = None) -> tuple[float, Floats]:
        """The loss of all rows with the penalty, and its derivatives by the weights."""
        assert batch is None, "rows that are scattered come all at once"
        loss, gradient = self._sum("gradient", weights)
        penalty, slope = self.penalty_and_gradient(weights)
        return float(loss) + penalty, gradient + slope

    def squares(self, weights: Floats) -> Squares:
        """The model of a squared error around some weights."""
        loss, gradient, normal = self._sum("squares", weights)
        return Squares(float(loss), gradient, normal)

    def _sum(self, asked: str, weights: Floats | None = None) -> list[Any]:
        work = Evaluation(self._what, self.loss, self._labelled.weight, asked, weights)
        found = self._labelled.parts.sum(work, _added)
        assert found is not None, "some part has rows"
        return found


@dataclass(frozen=True)
class Evaluation:
    """What the rows of a part add to the loss and to its derivatives; None if there are no rows."""

    what: Carried[tuple[Parameters, TAC]]
    loss: Loss
    total: float  # the weight of all rows of all parts
    asked: str
    weights: Floats | None

    def __call__(self, data: Part, number: int | None) -> list[Any] | None:
        if data is None:
            return None
        parameters, tac = self.what.get()
        found: list[Any] | None = None
        for block in self._blocks(replace(data, weights=data.weights / self.total), tac):
            objective = Objective(parameters, tac.engine().twin(), block, self.loss)
            found = _added(found, self._of(objective))
        return found

    def _of(self, objective: Objective) -> list[Any]:
        if self.weights is None:
            return [objective.loss_of_rows()]
        if self.asked == "value":
            return [objective.value(self.weights)]
        if self.asked == "gradient":
            return list(objective.value_and_gradient(self.weights))
        squares = objective.squares(self.weights)
        return [squares.loss, squares.gradient, squares.normal]

    def _blocks(self, data: Data, tac: TAC) -> Iterator[Data]:
        """All rows at once; where each has many derivatives, some at a time."""
        size = data.rows
        if self.asked == "squares":
            size = max(1, MAX_JACOBIAN // max(1, tac.engine().jacobian_size))
        if size >= data.rows:
            yield data
            return
        for rows, block in blocks(data.columns, data.rows, size):
            yield Data(block.columns, np.ascontiguousarray(data.targets[:, rows]), data.weights[rows])


def _added(one: Sequence[Any] | None, other: Sequence[Any] | None) -> list[Any] | None:
    if one is None or other is None:
        found = other if one is None else one
        return None if found is None else list(found)
    return [a + b for a, b in zip(one, other, strict=True)]
