"""Optimizers. Each advances a `State`, which holds everything that it needs, so that training can be resumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from scipy.optimize import minimize

from tacit.base.floats import Floats
from tacit.base.machine import limited
from tacit.learn.fitting.batches import MiniBatches
from tacit.learn.fitting.objective import Objective, Smooth, Trainable

MEMORY_SIZES = {"damping": 3, "first": None, "second": None}  # names in a memory: so many numbers, or one per weight
MAX_TRIALS = 40  # dampings tried before a point counts as the lowest around


@dataclass
class State:
    """The state of one restart; `memory` belongs to its optimizer, between rounds."""

    weights: Floats
    loss: float = math.inf
    steps: int = 0
    done: bool = False
    memory: dict[str, Floats] = field(default_factory=dict)


class Optimizer(Protocol):
    """An optimizer as `fit` uses it."""

    def advance(self, objective: Trainable, state: State, steps: int) -> None:
        """Take some steps, fewer if there is nothing left to gain."""


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss-Newton for the mean squared error of few weights: far fewer steps than any gradient method.

    The damping is Levenberg's (the same for all weights) with Nielsen's update. Marquardt's, relative to the
    curvature, runs along flat directions until tables saturate; `largest_step` is for the same reason.
    """

    largest_step: float = 2.0
    smallest_gain: float = 1e-6  # a step that gains less, relatively, is one of `patience` before the end
    patience: int = 10

    def advance(self, objective: Trainable, state: State, steps: int) -> None:
        here = _Point(objective, state.weights)
        first = 1e-3 * (here.normal.diagonal().max() or 1.0)
        damping, growth, idle = state.memory.get("damping", np.array([first, 2.0, 0.0]))
        for _ in range(steps):
            state.steps += 1
            for _ in range(MAX_TRIALS):
                there = _Point(objective, here.proposal(damping, self.largest_step))
                if there.loss < here.loss:
                    break
                damping, growth = damping * growth, growth * 2
            else:
                state.done = True
                break
            # the better the model predicted the gain, the less damping it needs
            quality = 2 * here.gain_ratio(there) - 1
            damping, growth = max(damping * max(1 / 3, 1 - quality**3), 1e-300), 2.0
            idle = idle + 1 if here.loss - there.loss < self.smallest_gain * here.loss else 0
            here = there
            if idle >= self.patience:
                state.done = True
                break
        state.weights, state.loss = here.weights, here.loss
        state.memory = {"damping": np.array([damping, growth, idle])}


class _Point:
    """The quadratic model of a squared error around some weights."""

    def __init__(self, objective: Trainable, weights: Floats) -> None:
        self.limits = objective.parameters.limits
        self.weights = weights
        self.loss, self.gradient, self.normal = objective.squares(weights)

    def proposal(self, damping: float, largest_step: float) -> Floats:
        """The weights where the damped model is lowest, or as far towards them as a step may go."""
        damped = self.normal.copy()
        damped.flat[:: len(self.weights) + 1] += damping
        try:
            change = np.linalg.solve(damped, -self.gradient)
        except np.linalg.LinAlgError:  # too little damping for digits that cancel: stay, so that more is tried
            return self.weights.copy()
        change *= min(1.0, largest_step / max(np.abs(change).max(), 1e-300))
        return np.clip(self.weights + change, -self.limits, self.limits)

    def gain_ratio(self, there: _Point) -> float:
        """The real gain relative to the gain that the model predicted, at most 1."""
        change = there.weights - self.weights
        predicted = -float(change @ (2 * self.gradient + self.normal @ change))
        return min((self.loss - there.loss) / predicted, 1.0) if predicted > 0 else 0.5


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory quasi-Newton on all rows; a round starts with an empty memory."""

    corrections: int = 20

    def advance(self, objective: Smooth, state: State, steps: int) -> None:
        # SciPy sees the loss relative to that at the start of the round: its first step is the gradient itself, which
        # is next to nothing where a large table comes near its best
        start, _ = objective.value_and_gradient(state.weights)
        scale = abs(start) or 1.0

        def relative(weights: Floats) -> tuple[float, Floats]:
            loss, gradient = objective.value_and_gradient(weights)
            return loss / scale, gradient / scale

        with limited(1 if objective.small else None):  # threads of BLAS would wait for each other longer than they work
            best = minimize(
                relative,
                state.weights,
                jac=True,
                method="L-BFGS-B",
                bounds=[(-limit, limit) for limit in objective.parameters.limits],
                options={"maxiter": steps, "maxcor": self.corrections, "maxfun": 4 * steps, "ftol": 1e-12, "gtol": 0.0},
            )
        # where its line search fails, SciPy gives a loss that is not that of the weights
        state.weights, state.loss = best.x, objective.value_and_gradient(best.x)[0]
        state.steps += int(best.nit)
        state.done = bool(best.nit < steps)


@dataclass(frozen=True)
class Adam:
    """Adaptive steps on mini-batches, along a rate that rises shortly and then falls to nothing (one cycle)."""

    rate: float = 0.05
    batch: int = 1024
    total: int = 2000  # steps of the whole training, which the schedule needs to know
    clip: float | None = 1.0  # the largest norm of a gradient
    seed: int = 0
    decay: tuple[float, float] = (0.9, 0.999)

    def advance(self, objective: Trainable, state: State, steps: int) -> None:
        """Take some steps; which rows a step sees depends on the seed and the number of the step only."""
        objective = cast(Objective, objective)  # batches are only drawn where all rows are in this process
        nothing = np.zeros_like(state.weights)
        first, second = (state.memory.get(name, nothing) for name in ("first", "second"))
        a, b = self.decay
        losses = []
        batches = MiniBatches(objective.data.weights, self.batch, self.seed)
        for _ in range(min(steps, self.total - state.steps)):
            loss, gradient = objective.value_and_gradient(state.weights, batches.of_step(state.steps))
            losses.append(loss)
            if self.clip is not None and (norm := float(np.linalg.norm(gradient))) > self.clip:
                gradient = gradient * (self.clip / norm)
            state.steps += 1
            first = a * first + (1 - a) * gradient
            second = b * second + (1 - b) * (gradient * gradient)
            step = first / (1 - a**state.steps) / (np.sqrt(second / (1 - b**state.steps)) + 1e-8)
            state.weights = objective.within_limits(state.weights - self._rate(state.steps) * step)
        state.loss = sum(losses) / len(losses) if losses else state.loss
        state.memory = {"first": first, "second": second}
        state.done = state.steps >= self.total

    def _rate(self, step: int) -> float:
        warm = max(1, self.total // 20)
        if step <= warm:
            return self.rate * step / warm
        return self.rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, self.total - warm)))
