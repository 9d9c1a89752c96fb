"""What textbook variable elimination would cost: the yardstick for plans, counted and never run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.compiler.order.search import elimination_order, min_fill
from tacit.compiler.order.tree import Problem, bits
from tacit.query.network import Network


@dataclass
class Count:
    """Operations for one row: all of them, those that depend on evidence, and all with the last product of a
    bucket and its sum counted as one, as multiply-adds are."""

    total: int = 0
    soft: int = 0
    fused: int = 0


def plain_min_fill(net: Network, query: str, evidence: Sequence[str]) -> Count:
    """Likelihoods are multiplied into CPTs; then, in min-fill order, the factors that hold a variable are
    multiplied one after the other in the order of the list, and the variable is summed out.

    Every product and every sum counts the states of all variables it runs over.
    """
    names = list(net)
    bit = {n: 1 << i for i, n in enumerate(names)}
    cards = [net.variable(n).card for n in names]
    families = [bit[n] | sum(bit[p] for p in net.parents(n)) for n in names]
    problem = Problem(families, [n in evidence for n in names], names, cards, keep=bit[query])
    elimination = _Elimination(problem)
    for axis in elimination_order(problem, min_fill):
        elimination.eliminate(axis)
    elimination.multiply(elimination.factors)
    return elimination.count


class _Elimination:
    """The list of factors, each a set of variables and whether it depends on evidence."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.count = problem, Count()
        self.factors = list(zip(problem.masks, problem.soft, strict=True))
        for mask, soft in self.factors:
            if soft:  # its likelihood is multiplied into the table
                self._step(mask, soft)

    def eliminate(self, axis: int) -> None:
        holders = [f for f in self.factors if f[0] >> axis & 1]
        union, soft = self.multiply(holders)
        self._step(union, soft, fused=len(holders) > 1)
        self.factors = [f for f in self.factors if not f[0] >> axis & 1] + [(union & ~(1 << axis), soft)]

    def multiply(self, factors: list[tuple[int, bool]]) -> tuple[int, bool]:
        union, soft = factors[0]
        for mask, depends in factors[1:]:
            union, soft = union | mask, soft or depends
            self._step(union, soft)
        return union, soft

    def _step(self, union: int, soft: bool, fused: bool = False) -> None:
        size = math.prod(self.problem.sizes[axis] for axis in bits(union))
        self.count.total += size
        self.count.soft += size * soft
        self.count.fused += size * (not fused)
