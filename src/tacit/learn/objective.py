"""What is minimised: the loss of labelled rows as a function of the weights, with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from tacit.engines import LearningEngine
from tacit.engines.results import Array, Gradients
from tacit.engines.tape import THREADED_WORK, TapeEngine
from tacit.evidence import Column
from tacit.floats import Floats
from tacit.learn.batches import Batch
from tacit.learn.data import Data
from tacit.learn.losses import KINDS, Loss, evaluate
from tacit.learn.parameters import SOFTMAX, Key, Parameters


class Objective:
    """The loss of a network's numbers on labelled rows, plus a penalty for improbable numbers.

    `prior` is a number of pseudo-counts per learned entry (of all rows together), as of a Dirichlet distribution.
    """

    def __init__(
        self, parameters: Parameters, engine: LearningEngine, data: Data, loss: Loss, prior: float = 0.0
    ) -> None:
        self.parameters, self.engine, self.data, self.loss, self.prior = parameters, engine, data, loss, prior
        self._tape = engine if isinstance(engine, TapeEngine) and not callable(loss) else None
        self._packed = None if self._tape is None else self._tape.pack(data.columns, data.rows)

    @property
    def small(self) -> bool:
        """Whether one evaluation is too little work for several threads."""
        return self._tape is not None and self.data.rows * self._tape.tape.work <= THREADED_WORK

    def twin(self) -> Objective:
        """The same objective for another thread."""
        twin = copy(self)
        twin.engine = self.engine.twin()
        twin._tape = twin.engine if isinstance(twin.engine, TapeEngine) and self._tape is not None else None
        return twin

    def within_limits(self, weights: Floats) -> Floats:
        """Weights brought back to where all learned numbers lie strictly between 0 and 1."""
        limits = self.parameters.limits
        return np.clip(weights, -limits, limits)

    def value(self, weights: Floats) -> float:
        """The loss of all rows alone, without the penalty."""
        self._update(weights)
        return self.loss_of_rows()

    def loss_of_rows(self) -> float:
        """The loss with the numbers that the engine has."""
        total, size = 0.0, self.engine.chunk
        for start in range(0, self.data.rows, size):
            part = slice(start, min(start + size, self.data.rows))
            columns = {name: column.block(part.start, part.stop) for name, column in self.data.columns.items()}
            joint = self.engine.run(columns, part.stop - part.start).joint
            total += evaluate(self.loss, joint, self.data.targets[:, part], self.data.weights[part])[0]
        return total

    def value_and_gradient(self, weights: Floats, batch: Batch | None = None) -> tuple[float, Floats]:
        """The loss of all rows, or what a batch makes of it, and its derivatives by the weights."""
        numbers = self._update(weights)
        loss, found = self._run(batch)
        by_number = self.parameters.by_number(found.tables, found.slopes)
        if self.prior:
            loss += self._penalty(numbers, by_number)
        return loss, self.parameters.by_weight(numbers, by_number)

    def residuals(self, weights: Floats) -> tuple[Floats, Floats]:
        """Numbers whose squares sum to the mean squared error, and their derivatives: (weights, numbers)."""
        assert self._tape is not None
        assert self._packed is not None
        numbers = self._update(weights)
        data = self.data
        groups = len(data.targets)
        residuals, slopes = [], []
        # two groups have opposite errors: one of them says it all
        for g in range(1 if groups == 2 else groups):
            p, tables = self._tape.jacobian(self._packed, g, g + 1)
            scale = np.sqrt(data.weights * (1.0 if groups == 2 else 1 / groups))
            by_number = self.parameters.by_number(tables, {}, data.rows)
            residuals.append(scale * (p - data.targets[g]))
            slopes.append(self.parameters.by_weight(numbers, by_number) * scale)
        return np.concatenate(residuals), np.concatenate(slopes, axis=1)

    def _update(self, weights: Floats) -> Floats:
        numbers = self.parameters.numbers(weights)
        self.engine.update(self.parameters.tables(numbers), self.parameters.slopes(numbers))
        return numbers

    def _run(self, batch: Batch | None) -> tuple[float, Gradients]:
        targets, shares = self.data.targets, self.data.weights
        if batch is not None:
            targets, shares = np.ascontiguousarray(targets[:, batch.rows]), batch.shares
        if self._tape is not None and self._packed is not None:
            packed = self._packed if batch is None else self._packed.take(batch.rows)
            return self._tape.learn(
                packed,
                KINDS[str(self.loss)],
                targets,
                shares,
                lambda joint, some: evaluate(self.loss, joint, targets[:, some], shares[some]),
            )
        columns = self.data.columns
        if batch is not None:
            columns = {name: column.take(batch.rows) for name, column in columns.items()}
        return self._in_blocks(columns, targets, shares)

    def _in_blocks(self, columns: Mapping[str, Column], targets: Floats, shares: Floats) -> tuple[float, Gradients]:
        loss, tables, slopes = 0.0, dict[Key, Floats](), dict[str, float]()
        for start in range(0, len(shares), self.engine.gradient_chunk):
            part = slice(start, min(start + self.engine.gradient_chunk, len(shares)))

            def seed_of(joint: Array, part: slice = part) -> tuple[float, Array]:
                return evaluate(self.loss, joint, targets[:, part], shares[part])

            block = {name: column.block(part.start, part.stop) for name, column in columns.items()}
            value, found = self.engine.value_and_gradients(block, part.stop - part.start, seed_of)
            loss += value
            for key, table in found.tables.items():
                tables[key] = tables[key] + table if key in tables else table
            for node, slope in found.slopes.items():
                slopes[node] = slopes.get(node, 0.0) + slope
        return loss, Gradients(tables, slopes, {})

    def _penalty(self, numbers: Floats, by_number: Floats) -> float:
        share = self.prior / self.data.rows
        entries = self.parameters.kinds == SOFTMAX
        by_number[entries] -= share / numbers[entries]
        return -share * float(np.log(numbers[entries]).sum())
