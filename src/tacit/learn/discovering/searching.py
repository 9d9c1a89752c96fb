"""A search for the structure of a table, by its name and with its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.base.errors import TacitError
from tacit.learn.discovering.coded_table import CodedTable
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.exact import best_graph
from tacit.learn.discovering.family_scores import FamilyScores
from tacit.learn.discovering.orders import OrderSearch, topological_order
from tacit.learn.discovering.query_cost import CostLimit
from tacit.learn.discovering.tabu import TabuSearch
from tacit.learn.discovering.tree import best_forest
from tacit.learn.options import DiscoverOptions
from tacit.learn.progress_line import Line

SEARCHES = ("tabu", "orders", "exact", "tree")
PATIENCE = 100  # steps of tabu search without a better graph
MAX_POLISHED_ROWS = 50_000  # distinct rows up to which "tabu" has a search over orders look for better starts
MAX_ROUNDS = 10


class FoundGraph(NamedTuple):
    edges: Mask
    score: float
    history: list[float]
    interrupted: bool = False


@dataclass(frozen=True)
class Searcher:
    """A search with its options, ready for a table."""

    options: DiscoverOptions
    search: str
    score: str
    limits: Constraints
    start: Mask
    line: Line

    def run(self, table: CodedTable) -> FoundGraph:
        scores = FamilyScores(table, self.score, self.options.max_parents)
        cost = CostLimit(table.network, table.names, self.options.max_cost)
        if self.search in ("exact", "tree"):
            edges = (best_graph if self.search == "exact" else best_forest)(scores, self.limits)
            if not cost.allows(edges):
                problem = f"takes {cost.cost(edges):,.0f} multiply-adds per row, more than max_cost"
                raise TacitError(f"the graph of search={self.search!r} {problem}; search='tabu' keeps below it")
            return FoundGraph(edges, _score(scores, edges), [_score(scores, edges)])
        return self._climbed(table, scores, cost)

    def _climbed(self, table: CodedTable, scores: FamilyScores, cost: CostLimit) -> FoundGraph:
        """Tabu search, and on from the orders of its graphs while that finds better ones."""
        tabu = TabuSearch(scores, self.limits, cost, self._say)
        interrupted = False
        try:
            self._polished(tabu, table, scores, cost)
        except KeyboardInterrupt:
            if not np.isfinite(tabu.best_score):
                raise
            interrupted = True
        return FoundGraph(tabu.best, _score(scores, tabu.best), tabu.history, interrupted)

    def _polished(self, tabu: TabuSearch, table: CodedTable, scores: FamilyScores, cost: CostLimit) -> None:
        tabu.run(self.start, PATIENCE)
        if self.search == "orders" or table.codes.shape[1] <= MAX_POLISHED_ROWS:
            orders = OrderSearch(scores, self.limits, self._say)
            for _ in range(MAX_ROUNDS):
                before = tabu.best_score
                edges = orders.run(topological_order(tabu.best))
                if cost.allows(edges):
                    tabu.run(edges, PATIENCE)
                if tabu.best_score <= before:
                    break

    def _say(self, step: int, score: float) -> None:
        self.line.say(f"step {step}  score {score:.8g}")


def _score(scores: FamilyScores, edges: Mask) -> float:
    return scores.graph([np.flatnonzero(edges[:, child]).tolist() for child in range(len(edges))])
