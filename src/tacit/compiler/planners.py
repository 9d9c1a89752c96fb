"""Planners: what says in which order the factors of a problem are multiplied and summed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tacit.compiler import factors as initial
from tacit.compiler.operations import Axis
from tacit.compiler.order import search as ordering
from tacit.compiler.order.tree import Path, Planner, Problem, Tree, mask_of
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.model.model import Model


def searching(effort: str, patience: float = math.inf) -> Planner:
    """A planner that searches, with some effort, and makes no long search unless there are seconds for it."""
    return lambda problem: ordering.search(problem, effort, patient=patience >= ordering.LONG_SEARCH)


quick = searching("low")  # good enough to compare sets of factors by


def following(order: Sequence[str]) -> Planner:
    """A planner that eliminates variables in a given order, then the rest (auxiliary axes, left out) by min-fill."""
    place = {name: i for i, name in enumerate(order)}

    def plan(problem: Problem) -> Path:
        free = ordering.elimination_order(problem, ordering.min_fill)
        owners = {axis: problem.owners.get(problem.names[axis], problem.names[axis]) for axis in free}
        return ordering.by_elimination(problem, sorted(free, key=lambda axis: place.get(owners[axis], len(place))))

    return plan


def or_in_order(planner: Planner, step: Mapping[Axis, int]) -> Planner:
    """A planner that also tries an order of the axes."""

    def plan(problem: Problem) -> Path:
        named = [i for i, axis in enumerate(problem.names) if axis in step]
        order = sorted(named, key=lambda i: step[problem.names[i]])
        paths = [planner(problem), ordering.by_elimination(problem, order)]
        return min(paths, key=lambda path: Tree(problem, path).total)

    return plan


def global_order(net: Model, pruned: Pruned, question: Question, only_min_fill: bool = False) -> list[str]:
    """One elimination order for the whole network, from the axes of its factors."""
    axis_names = initial.AxisNames(net)
    readings = initial.readings(net, pruned, question, axis_names)
    factors: list[dict[str, int]] = []  # axes, with their lengths
    for name in pruned.nodes:
        if net.cpt(name).testing:
            factors.append({n: net.variable(n).card for n in (*net.parents(name), name)})
        else:
            small = initial.node_factors(net, name, readings, axis_names)
            factors += [dict(zip(factor.axes, factor.index.shape, strict=True)) for factor in small]
    names = list(dict.fromkeys([*pruned.nodes, *(name for factor in factors for name in factor)]))
    sizes = {name: size for factor in factors for name, size in factor.items()}
    place = {name: i for i, name in enumerate(names)}
    problem = Problem(
        masks=[mask_of(place[name] for name in factor) for factor in factors],
        soft=[True] * len(factors),
        names=names,
        sizes=[sizes.get(name, 1) for name in names],
        keep=0,
    )
    weighs = [ordering.min_fill, ordering.weighted_min_fill, ordering.min_size]
    orders = [ordering.elimination_order(problem, weigh) for weigh in weighs[: 1 if only_min_fill else 3]]
    best = min(orders, key=lambda o: Tree(problem, ordering.by_elimination(problem, o)).total)
    return [names[i] for i in best]
