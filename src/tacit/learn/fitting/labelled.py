"""Labelled rows as training sees them: in memory, or in the parts of a cluster."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.engines.engine import Sweep
from tacit.evidence.column import blocks, take
from tacit.evidence.tables.messages import in_partition
from tacit.learn.checkpoint import fingerprint
from tacit.learn.fitting.data import Data
from tacit.learn.fitting.losses import Loss
from tacit.learn.fitting.objective import Objective, Penalty, Squares, Trainable
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.partitions import Broadcast, Distributed, Local
from tacit.query.tac import TAC

MAX_JACOBIAN = 50_000_000  # derivatives of some rows by all numbers, known ones included: 400 MB
MAX_CONCURRENT_RESTARTS = 16  # that wait for a cluster

Part = Data | None  # the rows of a part, with weights as they were given; None where there are none
Learned = tuple[Parameters, TAC]
Ask = Callable[[Objective], Any]  # what it is asked for: a number, or a tuple of numbers and arrays


class LabelledRows:
    """Rows to learn from. `data` is all of them, if they are in this process; `groups` is how many a target has."""

    def __init__(self, parts: Distributed[Part]) -> None:
        self.parts = parts
        self.data: Part = parts.thing if isinstance(parts, Local) else None
        self.rows, self.weight, groups = parts.sum(_totals, _added) or [0, 0.0, ()]
        if not self.weight:
            raise EvidenceError("there are no rows that weigh anything; at least one must count")
        if not np.isfinite(self.weight):
            raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
        if len(set(groups)) > 1:
            kinds = "labels, or probabilities of all states, and others probabilities of the first state"
            raise EvidenceError(f"some partitions have {kinds}; expected one kind in all of them")
        self.groups: int = groups[0]

    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Trainable:
        """The loss of the rows, to be minimised."""
        if self.data is None:
            return SharedObjective(self, parameters, tac, loss, prior)
        return Objective(parameters, tac.engine().clone(), self.data, loss, prior)

    def require_possible(self, tac: TAC, what: str = "row") -> None:
        """Raise an error that names the first row of probability 0, if there is one."""
        work = partial(_impossible, tac=self.parts.broadcast(tac), what=what)
        for error in self.parts.sum(work, operator.add)[:1]:
            raise error

    def split(self, share: float, seed: int) -> tuple[LabelledRows, LabelledRows]:
        """Most rows, and the share of them that is held out, drawn at random; on a cluster, in every part."""
        if self.data is None:
            try:
                draw = partial(_drawn, share=share, seed=seed)
                kept, held_out = (LabelledRows(self.parts.map(partial(draw, held_out=held))) for held in (False, True))
            except EvidenceError:
                problem = f"validation={share} leaves no row of {self.rows} to learn from, or to hold out"
                raise TacitError(problem) from None
            return kept, held_out
        count = max(1, round(share * self.rows))
        if count >= self.rows:
            raise TacitError(f"validation={share} leaves no row of {self.rows} to learn from")
        order = np.random.default_rng((seed, self.rows)).permutation(self.rows)
        some, others = (LabelledRows(Local(self.data.take(np.sort(rows)))) for rows in (order[count:], order[:count]))
        return some, others

    def digest(self) -> str:
        """A text that tells the rows from others, and on a cluster their parts from other parts."""
        digests = self.parts.sum(_digests, operator.add)
        return fingerprint(digests, []) if self.data is None else digests[0]


def _totals(data: Part, number: int | None) -> list[Any]:
    """The number of rows of a part, their weight, and the number of groups of their targets; empty without rows."""
    return [] if data is None else [data.rows, float(data.weights.sum()), (len(data.targets),)]


def _impossible(data: Part, number: int | None, *, tac: Broadcast[TAC], what: str) -> list[EvidenceError]:
    """An error about the first row of a part that has probability 0; it may be called a "validation row"."""
    if data is None:
        return []
    engine = tac.get().engine().runner(data.rows, Sweep.FORWARD)
    for rows, block in blocks(data.columns, data.rows, engine.chunk):
        total = engine.run(block.columns, block.rows).joint.sum(axis=0)
        for place in np.flatnonzero(total <= 0)[:1].tolist():
            problem, row = "the evidence has probability 0; known 0s rule it out", int(rows.start + place)
            subject = None if what == "row" else f"{what} {row}"
            error = EvidenceError(problem, subject=subject, row=row if subject is None else None)
            return [error if number is None else in_partition(error, number)]
    return []


def _drawn(data: Part, number: int | None, *, share: float, seed: int, held_out: bool) -> Part:
    if data is None:
        return None
    chosen = np.random.default_rng((seed, number or 0)).random(data.rows) < share
    return some_rows(data, np.flatnonzero(chosen == held_out))


def some_rows(data: Data, rows: NDArray[np.int64]) -> Part:
    """Some rows, whose weights stay as they are."""
    if not len(rows):
        return None
    return Data(take(data.columns, rows), np.ascontiguousarray(data.targets[:, rows]), data.weights[rows])


def _digests(data: Part, number: int | None) -> tuple[str, ...]:
    return ("",) if data is None else (fingerprint(sorted(data.columns), data.arrays()),)


class SharedObjective:
    """The loss of rows on a cluster: the sum of what the rows of each part add, and its derivatives by the weights."""

    small = True  # an evaluation is no work here: restarts wait for the cluster side by side
    at_once = MAX_CONCURRENT_RESTARTS

    def __init__(self, rows: LabelledRows, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None) -> None:
        self.parameters, self.loss, self._rows = parameters, loss, rows
        self._penalty = Penalty(parameters, prior, rows.rows)
        self._broadcast = rows.parts.broadcast((parameters, tac))

    def clone(self) -> SharedObjective:
        return self  # which holds nothing that changes

    def loss_of_rows(self) -> float:
        return float(self._sum(operator.methodcaller("loss_of_rows"))[0])

    def value(self, weights: Floats) -> float:
        return float(self._sum(operator.methodcaller("value", weights))[0])

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        loss, gradient = self._sum(operator.methodcaller("value_and_gradient", weights))
        penalty, slope = self._penalty.value_and_gradient(weights)
        return float(loss) + penalty, gradient + slope

    def squares(self, weights: Floats) -> Squares:
        loss, gradient, normal = self._sum(operator.methodcaller("squares", weights), jacobian=True)
        return Squares(float(loss), gradient, normal)

    def _sum(self, ask: Ask, jacobian: bool = False) -> list[Any]:
        same = partial(_evaluated, learned=self._broadcast, loss=self.loss, weight=self._rows.weight)
        return self._rows.parts.sum(partial(same, ask=ask, jacobian=jacobian), _added)


def _evaluated(
    data: Part, number: int | None, *, learned: Broadcast[Learned], loss: Loss, weight: float, ask: Ask, jacobian: bool
) -> list[Any]:
    """The share of a part's rows in the loss and its derivatives; empty if there are no rows.

    `weight` is that of all parts. With `jacobian`, every row has derivatives of its own: then some rows at a time.
    """
    if data is None:
        return []
    parameters, tac = learned.get()
    size = max(1, MAX_JACOBIAN // max(1, tac.engine().jacobian_size)) if jacobian else data.rows
    weights = data.weights / weight
    total: list[Any] = []
    for rows, block in blocks(data.columns, data.rows, size):
        some = Data(block.columns, np.ascontiguousarray(data.targets[:, rows]), weights[rows])
        answer = ask(Objective(parameters, tac.engine().clone(), some, loss))
        total = _added(total, list(answer) if isinstance(answer, tuple) else [answer])
    return total


def _added(one: list[Any], other: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(one, other, strict=True)] if one and other else one or other
