"""Linear relaxations of multilinear systems over boxes, many at a time.

At a point of a box, a multilinear function is a mean of its values at the vertices, with weights that are products of
coordinates. Any weights in place of these leave a linear program. It allows more, but only by the square of the box's
size, and nothing for one input. Conditions are (conditions, vertices), to be positive. What the solver returns is only
used to compute certificates. Problems are solved as the blocks of one program: a call of the solver costs more than
most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.base.floats import Floats
from tacit.theory.scope import Bools

Arrays = Sequence[Floats]  # one for each problem
Solution = tuple[Floats, Floats]  # x, and the multipliers of the limits

PROBLEMS_PER_CALL = 128  # of the solver


class Quotient(NamedTuple):
    """The greatest value / total, of means of (vertices,), where all conditions are positive."""

    value: Floats
    total: Floats
    conditions: Floats


def interior(systems: Sequence[Floats], strict: Sequence[Bools] | None = None) -> list[tuple[Floats, float]]:
    """For each system, weights of vertices well inside its conditions, and a bound of how far inside a point can be.

    At no point are all conditions above the bound; with `strict`, all of those, the others not being negative. This is
    the greatest mean of the conditions, each divided by its size, at a vertex, for shares that make it small.
    """
    strict = [np.ones(len(c), dtype=bool) for c in systems] if strict is None else strict
    sizes = [np.abs(c).max(axis=1) for c in systems]
    sizes = [np.where(size > 0, size, 1.0) for size in sizes]
    scaled = [c / size[:, None] for c, size in zip(systems, sizes, strict=True)]
    blocks = [np.column_stack([c.T, -np.ones(c.shape[1])]) for c in scaled]
    sums = [np.append(one, 0.0)[None] for one in strict]
    costs = [np.append(np.zeros(len(c)), 1.0) for c in scaled]
    least = [np.append(np.zeros(len(c)), -1.0) for c in scaled]
    solved = _solve(costs, blocks, [np.zeros(c.shape[1]) for c in scaled], least, sums)
    solutions = []
    for system, size, counted, (x, duals) in zip(scaled, sizes, strict, solved, strict=True):
        shares = np.maximum(x[:-1], 0)
        total = shares[counted].sum()
        most = float((shares @ system).max() / total) if total > 0 else np.inf
        solutions.append((_shares(duals), most * float(size[counted].max() if most > 0 else size[counted].min())))
    return solutions


def greatest(quotients: Sequence[Quotient], least: float) -> list[tuple[float, Floats]]:
    """For each quotient an upper bound, and the weights of vertices that come close to it.

    For multipliers m >= 0 the greatest (value + m @ conditions) / total of a vertex is a bound; the linear program
    looks for the m with the smallest one, but not for one below `least`, which is less than the vertices allow. If the
    bound is less than every value that the quotient can have, no point satisfies the conditions.
    """
    plain = [bound(q.value, q.total) for q in quotients]
    # solvers are accurate to 1e-7: scale what they minimise to 0 at `least` and 1 at the bound without conditions
    units = [p - least for p in plain]
    scales = [q.total.max() / np.abs(q.conditions).max(axis=1) for q in quotients]
    blocks = [np.column_stack([q.conditions.T * s, -q.total]) for q, s in zip(quotients, scales, strict=True)]
    limits = [(least * q.total - q.value) / u for q, u in zip(quotients, units, strict=True)]
    costs = [np.append(np.zeros(len(q.conditions)), 1.0) for q in quotients]
    solved = _solve(costs, blocks, limits, [np.zeros(len(c)) for c in costs])
    solutions = []
    for q, p, unit, scale, (x, duals) in zip(quotients, plain, units, scales, solved, strict=True):
        multipliers = unit * scale * np.maximum(x[:-1], 0)
        solutions.append((min(p, bound(q.value + multipliers @ q.conditions, q.total)), _shares(duals)))
    return solutions


def bound(value: Floats, total: Floats) -> float:
    """The greatest quotient of a vertex; a vertex with no mass bounds nothing as long as its value is not positive."""
    empty = total <= 0
    if (value[empty] > 0).any():
        return np.inf
    return float((value[~empty] / total[~empty]).max(initial=-np.inf))


def _solve(costs: Arrays, blocks: Arrays, limits: Arrays, least: Arrays, sums: Arrays = ()) -> list[Solution]:
    """Minimise costs @ x where blocks @ x <= limits, x >= least (and sums @ x = 1)."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag

    if not costs:
        return []
    if len(costs) > PROBLEMS_PER_CALL:
        parts = (slice(PROBLEMS_PER_CALL), slice(PROBLEMS_PER_CALL, None))
        first, rest = (_solve(costs[s], blocks[s], limits[s], least[s], sums[s]) for s in parts)
        return first + rest
    low = np.concatenate(least)
    solution = linprog(
        np.concatenate(costs),
        A_ub=block_diag(blocks, format="csc"),
        b_ub=np.concatenate(limits),
        A_eq=block_diag(sums, format="csc") if len(sums) else None,
        b_eq=np.ones(len(sums)) if len(sums) else None,
        bounds=np.column_stack([low, np.full(len(low), np.inf)]),
        method="highs-ds",
    )
    x = np.zeros(len(low)) if solution.x is None else solution.x
    duals = np.zeros(sum(map(len, limits))) if solution.x is None else -solution.ineqlin.marginals
    ends = np.cumsum([len(c) for c in costs])[:-1], np.cumsum([len(b) for b in limits])[:-1]
    return list(zip(np.split(x, ends[0]), np.split(duals, ends[1]), strict=True))


def _shares(weights: Floats) -> Floats:
    """Weights that sum to 1; equal ones where there are none."""
    weights = np.maximum(weights, 0)
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
