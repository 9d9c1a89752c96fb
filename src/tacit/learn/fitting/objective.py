"""The objective of training: the loss of labelled rows as a function of the weights, with exact derivatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.engines.engine import Engine
from tacit.engines.results import Array, Gradients
from tacit.evidence.column import blocks
from tacit.learn.fitting.batches import MiniBatch
from tacit.learn.fitting.data import Data
from tacit.learn.fitting.losses import KINDS, Loss, evaluate, evaluate_rows
from tacit.learn.fitting.parameters import Parameters
from tacit.query.answers.selection import parent_posterior


class Squares(NamedTuple):
    """A squared error around some weights, half of its gradient, and half of its (Gauss-Newton) curvature."""

    loss: float
    gradient: Floats
    normal: Floats


class Smooth(Protocol):
    """A function of the weights of parameters, with exact derivatives: all that L-BFGS needs."""

    parameters: Parameters

    @property
    def small(self) -> bool: ...

    def value_and_gradient(self, weights: Floats, /) -> tuple[float, Floats]: ...


class Trainable(Smooth, Protocol):
    """A loss of rows, wherever they are, as training needs it; see `Objective` for its members."""

    @property
    def at_once(self) -> int | None: ...

    def clone(self) -> Trainable: ...

    def loss_of_rows(self) -> float: ...

    def value(self, weights: Floats) -> float: ...

    def squares(self, weights: Floats) -> Squares: ...


class Penalty:
    """The cost of improbable numbers, by a Dirichlet prior: the pseudo-counts of all rows for every learned number."""

    def __init__(self, parameters: Parameters, prior: Floats | None, rows: int) -> None:
        self.parameters, prior = parameters, np.zeros(0) if prior is None else prior
        self._entries = np.flatnonzero(prior)
        self._shares = prior[self._entries] / rows

    def __bool__(self) -> bool:
        return len(self._entries) > 0

    def value(self, weights: Floats) -> float:
        return self.value_and_gradient(weights)[0]

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The cost of the numbers that weights make, and its derivatives by the weights."""
        if not self:
            return 0.0, np.zeros_like(weights)
        numbers = self.parameters.numbers(weights)
        by_number = np.zeros_like(numbers)
        return self.add(numbers, by_number), self.parameters.by_weight(numbers, by_number)

    def add(self, numbers: Floats, by_number: Floats) -> float:
        """The cost of numbers; its derivatives are added to `by_number`."""
        penalised = numbers[self._entries]
        by_number[self._entries] -= self._shares / penalised
        return -float(self._shares @ np.log(penalised))


class Objective:
    """The loss of a network's numbers on labelled rows, plus a penalty for improbable numbers."""

    def __init__(
        self, parameters: Parameters, engine: Engine, data: Data, loss: Loss, prior: Floats | None = None
    ) -> None:
        self.parameters, self.engine, self.data, self.loss = parameters, engine, data, loss
        self.penalty = Penalty(parameters, prior, data.rows)
        self._packed = engine.pack(data.columns, data.rows)

    @property
    def small(self) -> bool:
        """Whether one evaluation is too little work for several threads; a user's function keeps to one."""
        return not callable(self.loss) and self.engine.small(self.data.rows)

    @property
    def at_once(self) -> int | None:
        """How many restarts may evaluate clones at the same time, where one evaluation is small."""
        return self.engine.threads

    def clone(self) -> Objective:
        """An equal objective for another thread."""
        clone = copy(self)
        clone.engine = self.engine.clone()
        return clone

    def within_limits(self, weights: Floats) -> Floats:
        """Weights brought back to where all learned numbers lie strictly between 0 and 1."""
        limits = self.parameters.limits
        return np.minimum(np.maximum(weights, -limits), limits)

    def value(self, weights: Floats) -> float:
        """The loss of all rows alone, without the penalty."""
        self._update(weights)
        return self.loss_of_rows()

    def total(self, weights: Floats) -> float:
        """The loss of all rows and the penalty."""
        return self.value(weights) + self.penalty.value(weights)

    def loss_of_rows(self) -> float:
        """The loss with the numbers that the engine has."""
        total, data = 0.0, self.data
        for rows, block in blocks(data.columns, data.rows, self.engine.chunk):
            joint = self.engine.run(block.columns, block.rows).joint
            total += evaluate(self.loss, joint, data.targets[:, rows], data.weights[rows])[0]
        return total

    def losses(self, several: Iterable[Floats], node: str) -> Iterator[Floats]:
        """The part of every row in the loss, (rows,), with several weights that differ in the numbers of one node."""
        data, changed = self.data, None
        for weights in several:
            self._update(weights, changed)
            changed = {node}
            losses = np.empty(data.rows)
            for rows, block in blocks(data.columns, data.rows, self.engine.chunk):
                joint = self.engine.run(block.columns, block.rows).joint
                losses[rows] = evaluate_rows(self.loss, joint, data.targets[:, rows], data.weights[rows])
            yield losses

    def parent_posteriors(
        self, weights: Floats, nodes: Collection[str], changed: Collection[str] | None = None
    ) -> dict[str, Floats]:
        """The posteriors that some testing nodes test, P*(u) of all states of their parents: (states, rows).

        `changed` are the nodes whose numbers are others than in the last call of any method, if that is known.
        """
        self._update(weights, changed)
        net, program, data = self.parameters.network, self.engine.program, self.data
        posteriors: dict[str, list[Floats]] = {node: [] for node in nodes}
        for _, block in blocks(data.columns, data.rows, self.engine.chunk):
            selections = self.engine.run(block.columns, block.rows, selections=True).selections
            for node, several in posteriors.items():
                posterior = parent_posterior(net, program, node, selections[node], block.columns)
                several.append(posterior.reshape(-1, posterior.shape[-1]))
        return {node: np.concatenate(several, axis=1) for node, several in posteriors.items()}

    def value_and_gradient(self, weights: Floats, batch: MiniBatch | None = None) -> tuple[float, Floats]:
        """The loss of all rows, or its estimate from a batch, and its derivatives by the weights."""
        numbers = self._update(weights)
        loss, gradients = self._run(batch)
        by_number = self.parameters.by_number(gradients.tables, gradients.slopes)
        if self.penalty:
            loss += self.penalty.add(numbers, by_number)
        return loss, self.parameters.by_weight(numbers, by_number)

    def squares(self, weights: Floats) -> Squares:
        """The model of a squared error around some weights."""
        residuals, slopes = self.residuals(weights)
        return Squares(float(residuals @ residuals), slopes @ residuals, slopes @ slopes.T)

    def residuals(self, weights: Floats) -> tuple[Floats, Floats]:
        """Numbers whose squares sum to the mean squared error, and their derivatives: (weights, numbers)."""
        numbers = self._update(weights)
        groups = len(self.data.targets)
        if groups == 2:  # they have opposite errors: one of them says it all
            return self._residuals_of(0, numbers, 1.0)
        residuals, slopes = zip(*(self._residuals_of(g, numbers, 1 / groups) for g in range(groups)), strict=True)
        return np.concatenate(residuals), np.concatenate(slopes, axis=1)

    def _residuals_of(self, group: int, numbers: Floats, share: float) -> tuple[Floats, Floats]:
        data, scale = self.data, np.sqrt(self.data.weights * share)
        p, tables = self.engine.jacobian(self._packed, group, group + 1)
        slopes = self.parameters.by_weight(numbers, self.parameters.by_number(tables, {}, data.rows))
        slopes *= scale
        return scale * (p - data.targets[group]), slopes

    def _update(self, weights: Floats, nodes: Collection[str] | None = None) -> Floats:
        """Give the engine the numbers of all nodes, or of those that changed."""
        numbers = self.parameters.numbers(weights)
        self.engine.update(self.parameters.tables(numbers, nodes), self.parameters.slopes(numbers))
        return numbers

    def _run(self, batch: MiniBatch | None) -> tuple[float, Gradients]:
        packed, targets, shares = self._packed, self.data.targets, self.data.weights
        if batch is not None:
            packed, shares = packed.take(batch.rows), batch.shares
            targets = np.ascontiguousarray(targets[:, batch.rows])

        def seed_of(joint: Array, rows: slice | NDArray[np.intp]) -> tuple[float, Array]:
            return evaluate(self.loss, joint, targets[:, rows], shares[rows])

        if callable(self.loss):
            return self.engine.fused(packed, seed_of, None, shares)
        return self.engine.fused(packed, seed_of, _learn, shares, KINDS[self.loss], targets)


def _learn(*arguments: Any) -> float:
    from tacit.learn.fitting.loss_kernels import learn  # loads numba

    return float(learn(*arguments))
