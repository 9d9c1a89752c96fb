"""A search for the structure of a table, by its name and with its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.base.errors import TacitError
from tacit.learn.discovering.coded_table import CodedTable
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.query_cost import CostLimit
from tacit.learn.discovering.scoring.family_scores import LOG_LIKELIHOOD, FamilyScores, score_by_name
from tacit.learn.discovering.searches.exact import best_graph
from tacit.learn.discovering.searches.orders import OrderSearch, topological_order
from tacit.learn.discovering.searches.pc import PCSearch
from tacit.learn.discovering.searches.tabu import TabuSearch
from tacit.learn.discovering.searches.tree import best_forest
from tacit.learn.options import DiscoverOptions
from tacit.learn.progress_line import Line

SEARCHES = ("tabu", "orders", "exact", "tree", "pc")
PATIENCE = 100  # steps of tabu search without a better graph
SAMPLED_ORDERS = 12  # in which each round of a search over orders looks for good sets of parents
MAX_SAMPLED_ROWS = 50_000  # distinct rows, beyond which "tabu" makes do with those that it has met itself
PATIENT_ROUNDS, MAX_ROUNDS = 3, 50  # rounds without a better graph, and in all
PATIENT_LIMITED_ROUNDS = 2  # the same below max_cost


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
        scores = FamilyScores(table, score_by_name(self.score, table.rows), self.options.max_parents)
        cost = CostLimit(table.network, table.names, self.options.max_cost)
        if self.search in ("exact", "tree", "pc"):
            return self._of_one_kind(scores, cost)
        found = self._climbed(table, scores, cost)
        while not cost.holds(found.edges) and not found.interrupted:
            if (found.edges == self.limits.required).all():
                least = f"{cost.cost(found.edges):,.0f} multiply-adds per row without any edge that is not required"
                raise TacitError(f"max_cost is {self.options.max_cost:,.0f}, but a query takes {least}")
            found = self._climbed(table, scores, cost)
        return found

    def _of_one_kind(self, scores: FamilyScores, cost: CostLimit) -> FoundGraph:
        """The one graph that a search which does not climb ends with."""
        if self.search == "pc":
            gains = FamilyScores(scores.table, LOG_LIKELIHOOD)
            edges = PCSearch(gains, self.limits, scores.max_parents, self._say_level).run()
        else:
            edges = (best_graph if self.search == "exact" else best_forest)(scores, self.limits)
        if not cost.holds(edges):
            problem = f"takes {cost.cost(edges):,.0f} multiply-adds per row, more than max_cost"
            raise TacitError(f"the graph of search={self.search!r} {problem}; search='tabu' keeps below it")
        return FoundGraph(edges, _score(scores, edges), [_score(scores, edges)])

    def _climbed(self, table: CodedTable, scores: FamilyScores, cost: CostLimit) -> FoundGraph:
        """Tabu search, and on from better orders of its graphs while that finds better graphs."""
        tabu = TabuSearch(scores, self.limits, cost, self._say)
        interrupted = False
        try:
            self._polished(tabu, table, scores)
        except KeyboardInterrupt:
            if not np.isfinite(tabu.best_score):
                raise
            interrupted = True
        return FoundGraph(tabu.best, _score(scores, tabu.best), tabu.history, interrupted)

    def _polished(self, tabu: TabuSearch, table: CodedTable, scores: FamilyScores) -> None:
        tabu.run(self.start, PATIENCE)
        orders = OrderSearch(scores, self.limits, self.options.seed)
        many = self.search == "tabu" and table.codes.shape[1] > MAX_SAMPLED_ROWS
        patience = 1 if many else PATIENT_ROUNDS if self.options.max_cost is None else PATIENT_LIMITED_ROUNDS
        waited = rounds = 0
        while waited < patience and rounds < MAX_ROUNDS:
            before, rounds = tabu.best_score, rounds + 1
            edges = orders.run(topological_order(tabu.best), 0 if many else SAMPLED_ORDERS, self._say)
            tabu.run(edges, PATIENCE)
            waited = 0 if tabu.best_score > before else waited + 1

    def _say_level(self, given: int, edges: float) -> None:
        self.line.say(f"tests given {given} columns  {edges:.0f} edges left")

    def _say(self, step: int, score: float) -> None:
        self.line.say(f"step {step}  score {score:.8g}")


def _score(scores: FamilyScores, edges: Mask) -> float:
    return scores.graph([np.flatnonzero(edges[:, child]).tolist() for child in range(len(edges))])
