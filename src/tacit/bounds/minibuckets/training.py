"""Weights and shifts of mini-buckets, chosen such that the bounds are close on a sample of evidence.

All numbers that training may come to are valid: bounds hold for rows of any other evidence, too. The mean of the upper
bounds is a convex function of weights and shifts; that of the lower ones is not, and what is found is a local optimum.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.minibuckets.minibuckets import MiniBuckets, log_likelihoods, log_tables
from tacit.bounds.minibuckets.passes import Derivatives, Parameters, forward, reverse
from tacit.bounds.minibuckets.plan import Plan

LEAST, MOST = 1e-4, 1e4  # weights of parts relative to each other


def trained(
    bounds: MiniBuckets, likelihoods: Mapping[str, Floats], steps: int = 100, seconds: float = np.inf
) -> MiniBuckets:
    """The same bounds with parameters that make them close on some rows of evidence, on average."""
    if bounds.plan.exact:
        return bounds
    logs, end = log_likelihoods(bounds.plan, likelihoods), time.monotonic() + seconds
    upper = _Training(bounds, logs, True).best(steps, time.monotonic() + seconds / 2)
    return replace(bounds, upper=upper, lower=_Training(bounds, logs, False).best(steps, end))


class _Training:
    def __init__(self, bounds: MiniBuckets, logs: tuple[Floats, ...], upper: bool) -> None:
        self.plan, self.logs, self.upper = bounds.plan, logs, upper
        self.tables = log_tables(bounds.factors, bounds.plan, upper)
        self.best_loss, self.best_parameters = np.inf, bounds.upper if upper else bounds.lower

    def best(self, steps: int, end: float) -> Parameters:
        """The best parameters found."""
        from scipy.optimize import minimize  # loaded by those who need it: it takes long

        def stop(intermediate_result: object) -> None:
            if time.monotonic() > end:
                raise StopIteration

        start = as_numbers(self.plan, self.best_parameters, self.upper)
        # scipy looks for the name of that argument
        minimize(self.loss, start, jac=True, method="L-BFGS-B", callback=stop, options={"maxiter": steps})
        return self.best_parameters

    def loss(self, numbers: Floats) -> tuple[float, Floats]:
        """How far off the bounds are, as the mean over the rows whose bound is finite, and its derivatives."""
        parameters = as_parameters(self.plan, numbers, self.upper)
        passed = forward(self.plan, self.tables, self.logs, parameters, keep=True, slopes=True)
        finite = np.isfinite(passed.result)
        if not finite.any():
            return 0.0, np.zeros(numbers.shape)
        sign = 1 if self.upper else -1
        loss = sign * float(passed.result[finite].mean())
        if loss < self.best_loss:
            self.best_loss, self.best_parameters = loss, parameters
        derivatives = reverse(self.plan, parameters, passed)
        return loss, sign * by_numbers(self.plan, parameters, derivatives, finite, self.upper)


def as_numbers(plan: Plan, parameters: Parameters, upper: bool) -> Floats:
    """Parameters as numbers that are free: logarithms of weights, and shifts, bucket by bucket."""
    numbers = []
    for bucket, shift in zip(plan.buckets, parameters.shifts, strict=True):
        if len(bucket.parts) > 1:
            weights = np.abs([parameters.weights[i] for i in bucket.parts])
            numbers += [np.log(weights if upper else weights[1:]), shift.ravel()]
    return np.concatenate(numbers)


def as_parameters(plan: Plan, numbers: Floats, upper: bool) -> Parameters:
    """The parameters of such numbers: weights have the sum 1, and shifts the sum 0."""
    weights, shifts, taken = list[float](), list[Floats](), 0
    for bucket in plan.buckets:
        parts, shape = len(bucket.parts), (*plan.shape(bucket.shared), 1)
        if parts == 1:
            weights.append(1.0)
            shifts.append(np.zeros((1, *shape)))
            continue
        free = parts if upper else parts - 1
        weights += _weights(numbers[taken : taken + free], upper)
        taken += free
        shift = numbers[taken : taken + parts * plan.size(bucket.shared)].reshape(parts, *shape)
        taken += shift.size
        shifts.append(shift - shift.mean(axis=0))
    return Parameters(tuple(weights), tuple(shifts))


def _weights(logs: Floats, upper: bool) -> list[float]:
    if upper:
        relative = np.clip(np.exp(logs - logs.max()), LEAST, None)
        return [float(w) for w in relative / relative.sum()]
    rest = np.exp(np.clip(logs, np.log(LEAST), np.log(MOST)))
    return [float(1 + rest.sum()), *(-float(w) for w in rest)]


def by_numbers(plan: Plan, parameters: Parameters, derivatives: Derivatives, rows: np.ndarray, upper: bool) -> Floats:
    """The mean over some rows of the derivatives by the numbers that are free."""
    found = []
    for bucket, moved in zip(plan.buckets, derivatives.shifts, strict=True):
        if len(bucket.parts) == 1:
            continue
        weights = np.array([parameters.weights[i] for i in bucket.parts])
        slopes = np.array([_mean(derivatives.weights[i], rows) for i in bucket.parts])
        if upper:
            found.append(weights * (slopes - weights @ slopes))
        else:
            found.append(weights[1:] * (slopes[1:] - slopes[0]))
        shift = _mean(moved, rows)
        found.append((shift - shift.mean(axis=0)).ravel())
    return np.concatenate(found)


def _mean(table: Floats, rows: np.ndarray) -> Floats:
    return np.asarray((table[..., rows] if table.shape[-1] > 1 else table).mean(axis=-1))
