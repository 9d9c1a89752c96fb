"""Where structured elimination may pay, how far it may go, and where it gave up.

Its code, which loads numba, is in `diagrams`: most networks need none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.base.errors import TooLargeError
from tacit.compiler.builder import Builder
from tacit.compiler.operations import Axis
from tacit.compiler.order import search as ordering
from tacit.compiler.order.tree import Problem
from tacit.model.model import Model


@dataclass(frozen=True)
class StructureBudget:
    """How far structured elimination goes: without budgets, there are only tables.

    `budgets` of nodes are tried in turn, and `most_factors` that depend on evidence are multiplied without rescaling. A
    part that takes fewer multiply-adds than `worth` with tables is left to them. So is one where diagrams end in more
    than so many `numbers` for each node: where there is structure, few are different. Min-fill `orders` that were found
    once are kept for the next run.
    """

    budgets: tuple[int, ...] = ()
    most_factors: int = 0
    worth: float = 0.0
    numbers: float = math.inf
    orders: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """How far the last attempt came, and how many numbers there were for each node."""

    axis: Axis | None
    nodes: int
    numbers: float

    def __str__(self) -> str:
        at = "" if self.axis is None else f" at {self.axis!r}"
        return f"structured elimination gave up{at} after {self.nodes:,} nodes"


@dataclass
class Structuring:
    """Structured elimination of the values of one program under construction."""

    net: Model
    builder: Builder
    budget: StructureBudget
    fixed: dict[str, None] = field(default_factory=dict)  # nodes whose numbers are built in
    failure: Failure | None = None
    saved: float = 0.0  # about how many multiply-adds tables would take in place of what was made
    work: float = 0.0  # about how many multiply-adds tables would take for the largest part, and its width
    width: int = 0

    def eliminate(
        self, values: Sequence[int], problem: Problem, keep: Sequence[Axis], best: frozenset[Axis]
    ) -> int | None:
        """Some values as one over the axes in `keep`, a maximum over those in `best`; None where tables do as well."""
        last = {i for i, axis in enumerate(problem.names) if axis in best}  # a maximum comes after all sums
        orders, key = self.budget.orders, (*problem.masks, problem.keep)
        if key not in orders:
            orders[key] = ordering.elimination_order(problem, ordering.min_fill)
        fill = sorted(orders[key], key=last.__contains__)
        work, width = ordering.work(problem, fill)
        self.work, self.width = max(self.work, work), max(self.width, width)
        if work < self.budget.worth:
            return None
        from tacit.compiler.diagrams.structured_elimination import StructuredElimination  # loads numba

        first, *more = self.budget.budgets
        kept = [problem.names.index(axis) for axis in keep if axis in problem.names]
        limits = self.budget.most_factors, self.budget.numbers
        elimination = StructuredElimination(self.net, self.builder, problem, kept, last, *limits)
        value = elimination.run(values, fill, [first, *(budget for budget in more if budget < work)])
        if elimination.gave_up is not None:
            self.failure = Failure(*elimination.gave_up)
        if value is None:
            raise TooLargeError(f"the query is too wide to compile: {self.failure}")
        self.fixed |= elimination.fixed
        self.saved += work
        return value
