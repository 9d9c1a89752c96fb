"""Where structured elimination may pay. Its code, which loads numba, is in `structured`: most networks need none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.base.errors import TooLargeError
from tacit.compiler.builder import Builder
from tacit.compiler.operations import Axis
from tacit.compiler.order import search as ordering
from tacit.compiler.order.tree import Problem
from tacit.compiler.structure_budget import Failure, Structure
from tacit.model.model import Model


@dataclass
class Structuring:
    """Structured elimination of the values of one program under construction."""

    net: Model
    builder: Builder
    structure: Structure
    fixed: dict[str, None] = field(default_factory=dict)
    failure: Failure | None = None
    saved: float = 0.0  # about how many multiply-adds tables would take in place of what was made
    work: float = 0.0  # the same of the largest part, and its width
    width: int = 0

    def eliminate(
        self, values: Sequence[int], problem: Problem, keep: Sequence[Axis], best: frozenset[Axis] = frozenset()
    ) -> int | None:
        """The product of some values, summed down to the axes in `keep`; the largest over those in `best`.

        None where tables do as well; an error where diagrams are too large.
        """
        last = {i for i, axis in enumerate(problem.names) if axis in best}  # a maximum comes after all sums
        fill = self._fill(problem)
        fill.sort(key=last.__contains__)
        work, width = ordering.work(problem, fill)
        self.work, self.width = max(self.work, work), max(self.width, width)
        if work < self.structure.worth:
            return None
        from tacit.compiler.diagrams.structured_elimination import Search  # loads numba

        first, *more = self.structure.budgets
        search = Search(self.net, self.builder, self.structure)
        value = search.run(values, problem, keep, best, fill, [first, *(budget for budget in more if budget < work)])
        self.failure = search.failure or self.failure
        if value is None:
            raise TooLargeError(f"the query is too wide to compile: {self.failure}")
        self.fixed |= search.fixed
        self.saved += work
        return value

    def _fill(self, problem: Problem) -> list[int]:
        """The min-fill order, found once for all attempts."""
        key = (*problem.masks, problem.keep)
        if key not in self.structure.orders:
            self.structure.orders[key] = ordering.elimination_order(problem, ordering.min_fill)
        return list(self.structure.orders[key])
