"""Ends of the derivatives of a query over boxes, for tests that are sigmoids.

A weight is then a smooth function of the inputs, by way of the posterior that it tests. With both ends of every
derivative known, a query is bounded over a box by its value at one point and the distances from there, which is
accurate to the square of the box's size. Intervals are pairs of arrays; boxes are (inputs, boxes).
"""

from __future__ import annotations

import numpy as np

from tacit.base.floats import Floats
from tacit.theory.multilinear import vertices
from tacit.theory.scope import Sides
from tacit.theory.selectable import Derivatives, Ranges, SelectableQuery, normalised

Ends = tuple[Floats, Floats]


def derivative_ends(query: SelectableQuery, ranges: Ranges, objective: Floats) -> Ends:
    """Ends of the derivatives of sum_q objective[q] P*(q) by the inputs, (inputs, boxes); hard tests stay the same."""
    count, boxes = ranges.low.shape
    weights = np.zeros((len(query.tests), count, boxes)), np.zeros((len(query.tests), count, boxes))
    soft = query.tests.soft
    for group in query.groups:
        if not soft[group.tests].any():
            continue
        states = np.eye(group.tests.shape[1])
        of_parents = _total(count, _quotients(query.derivatives(ranges, group), states), weights)
        for tests in group.tests:
            steep = _steepness(query, tests, ranges.least[tests], ranges.most[tests])
            sign = query.tests.sign[tests, None, None]
            signed = tuple(np.where(sign > 0, a, -b) for a, b in (of_parents, of_parents[::-1]))
            slopes = _times((steep[0][:, None], steep[1][:, None]), (signed[0], signed[1]))
            for end, new in zip(weights, slopes, strict=True):
                end[tests] = np.where(soft[tests, None, None], new, 0.0)
    total = _total(count, _quotients(query.derivatives(ranges), objective[None]), weights)
    return total[0][0], total[1][0]


def upper_model(query: SelectableQuery, ranges: Ranges, sides: Sides, objective: Floats) -> Floats:
    """Values at the vertices, (boxes, vertices), whose multilinear interpolation is nowhere below the objective.

    Each box is looked at from a point at the end of the inputs with which the objective only rises, or only falls, and
    in the middle of the others; `sides` (tests, boxes) are those of the hard tests, 0 for sigmoids.
    """
    least, most = derivative_ends(query, ranges, objective)
    low, high = ranges.low, ranges.high
    origin = np.where(least >= 0, high, np.where(most <= 0, low, (low + high) / 2))
    weights, _ = query.select(origin, sides)
    value = objective @ normalised(query.joint(origin, weights)[0])
    step = vertices(low, high) - origin[..., None]  # (inputs, boxes, vertices)
    with np.errstate(invalid="ignore"):
        rise = np.where(step > 0, most[..., None] * step, least[..., None] * step)
    rise = np.where(step == 0, 0.0, rise)
    return np.asarray(np.nan_to_num(value[:, None] + rise.sum(axis=0), nan=np.inf, posinf=np.inf))


def _quotients(joint: Derivatives, objectives: Floats) -> Ends:
    """Ends of the derivatives of quotients sum_s c_s J_s / sum_s J_s, (inputs + tests, objectives, boxes)."""
    totals = joint.lower.sum(axis=0), joint.upper.sum(axis=0)
    bottom, top = totals[0].min(axis=-1), totals[1].max(axis=-1)
    base, roof = objectives.min(axis=1)[:, None], objectives.max(axis=1)[:, None]
    weigh = [np.einsum("os,sbv->obv", objectives - base, end) for end in (joint.lower, joint.upper)]
    with np.errstate(divide="ignore", invalid="ignore"):  # a vertex with no mass says nothing
        least = base + np.fmin.reduce(weigh[0] / totals[1], axis=-1)
        most = base + np.fmax.reduce(weigh[1] / totals[0], axis=-1)
    least, most = np.fmax(least, base), np.fmin(most, roof)  # of the quotients themselves, (objectives, boxes)
    excess = [objectives[..., None] - end[:, None] for end in (most, least)]  # (objectives, states, boxes)
    slope = joint.least.min(axis=-1), joint.most.max(axis=-1)  # (inputs + tests, states, boxes)
    rise = _times((excess[0][None], excess[1][None]), (slope[0][:, None], slope[1][:, None]))
    low, high = rise[0].sum(axis=2), rise[1].sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(low < 0, low / bottom, low / top)
        high = np.where(high > 0, high / bottom, high / top)
    return np.nan_to_num(low, nan=-np.inf, neginf=-np.inf), np.nan_to_num(high, nan=np.inf, posinf=np.inf)


def _total(count: int, partial: Ends, weights: Ends) -> Ends:
    """Total derivatives by the inputs, (functions, inputs, boxes), from partial ones by inputs and weights."""
    by_input = [end[:count].swapaxes(0, 1) for end in partial]
    by_weight = [end[count:, :, None] for end in partial]  # (tests, functions, 1, boxes)
    through = _times((by_weight[0], by_weight[1]), (weights[0][:, None], weights[1][:, None]))
    return by_input[0] + through[0].sum(axis=0), by_input[1] + through[1].sum(axis=0)


def _steepness(query: SelectableQuery, tests: Floats, least: Floats, most: Floats) -> Ends:
    """Ends of the derivative of a sigmoid by its posterior, gamma * weight * (1 - weight): (tests, boxes)."""
    gamma = np.nan_to_num(query.tests.gamma[tests, None])
    ends = least * (1 - least), most * (1 - most)
    across = (least < 0.5) & (most > 0.5)
    return gamma * np.minimum(*ends), gamma * np.where(across, 0.25, np.maximum(*ends))


def _times(a: Ends, b: Ends) -> Ends:
    """The product of intervals; 0 times anything is 0."""
    with np.errstate(invalid="ignore"):
        products = [np.nan_to_num(x * y, nan=0.0, posinf=np.inf, neginf=-np.inf) for x in a for y in b]
    return np.minimum.reduce(products), np.maximum.reduce(products)
