"""Structures from rows with gaps: structural EM (Friedman, 1998), with expected counts by Monte Carlo.

In each round the gaps of the table are filled with draws from their posterior under the present network, a search runs
on the completed rows, and the tables of the graph that it finds are estimated by EM from the rows as they are. Exact
expected counts of all families that a search asks for would take a query for each; draws serve all of them at once.
The first network is a forest, from the rows in which both of two columns have values.

Graphs are compared by their score on the rows as they are: the log-likelihood of what is observed, less the penalty.
The scores "bdeu" and "k2" have no such form, and are approximated as Cheeseman and Stutz (1996) do: the score of the
completed rows, times the ratio of the likelihoods of observed and completed rows.

Draws are tied to the order of the table, which its content decides. So the order of rows and columns does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.learn.discovering.coded_table import CodedTable, merged_rows
from tacit.learn.discovering.constraints import Mask, constraints
from tacit.learn.discovering.equivalence import directed_edges
from tacit.learn.discovering.query_cost import graph_network
from tacit.learn.discovering.scoring.family_scores import FamilyScores, Parents, score_by_name
from tacit.learn.discovering.scoring.kinds import LIKELIHOOD
from tacit.learn.discovering.searches.tree import best_forest
from tacit.learn.discovering.searching import Searcher
from tacit.learn.estimating.estimation import Estimate, estimate
from tacit.query.network import Network
from tacit.query.tac import compile

MAX_ROUNDS = 12
PATIENCE = 2  # rounds without a better graph
MAX_DRAWS = 5  # of each row with gaps
MAX_DRAWN_ROWS = 500_000  # in all; of more rows, fewer draws are as good
ROWS_PER_BLOCK = 2**16  # that are completed at a time
PSEUDO_COUNTS = 0.1  # for each entry of a table, so that nothing that was not seen is impossible
TOLERANCE = 1e-6  # of EM


@dataclass(frozen=True, eq=False)
class EMRound:
    """What is known after a round: the present graph with its tables, and the best one so far with its score."""

    edges: Mask
    tables: list[Floats]
    best: Mask
    best_tables: list[Floats]
    history: list[float]
    ended: bool = False

    @property
    def score(self) -> float:
        """The score of the best graph."""
        return max(self.history)


class StructuralEM:
    """Rounds of structural EM on a table with gaps; a search by its options finds a graph in completed rows."""

    def __init__(self, searcher: Searcher, table: CodedTable, seed: Sequence[int]) -> None:
        self.searcher, self.table, self._seed = searcher, table, seed
        self._variables = _coded_variables(table)

    def first(self) -> EMRound:
        """The round before the first: a forest to complete rows with, which is no result."""
        forest = best_forest(AvailablePairs(self.table), constraints(self.table.names))
        tables, _ = self._estimated(forest, None)
        return EMRound(forest, tables, forest, tables, [])

    def next(self, before: EMRound) -> EMRound:
        """One more round."""
        number = len(before.history)
        completed = self._completed(before.edges, before.tables, number)
        start = before.edges if number else self.searcher.start
        found = replace(self.searcher, start=start).run(completed)
        if found.interrupted and number:
            raise KeyboardInterrupt
        tables, likelihood = self._estimated(found.edges, completed)
        score = self._observed_score(found.edges, tables, likelihood, number + 1)
        history = [*before.history, score]
        better = not before.history or score > before.score
        best, best_tables = (found.edges, tables) if better else (before.best, before.best_tables)
        same = bool(number) and _is_same_class(before.edges, found.edges)
        waited = len(history) - 1 - int(np.argmax(history))
        ended = same or waited >= PATIENCE or len(history) >= MAX_ROUNDS or found.interrupted
        return EMRound(found.edges, tables, best, best_tables, history, ended)

    def _estimated(self, edges: Mask, completed: CodedTable | None) -> tuple[list[Floats], float]:
        """The tables of a graph by EM, which begins with those of completed rows; and the greatest log-likelihood."""
        net = graph_network(self._variables, self.table.names, edges)
        if completed is not None:
            net = _finished(estimated(net, completed, PSEUDO_COUNTS)).network.learnable()
        found = _finished(self._em(net, PSEUDO_COUNTS)).network
        likelihood = _finished(self._em(found.learnable(), 0.0)).log_likelihood
        return [found.table(name) for name in self.table.names], likelihood

    def _em(self, net: Network, prior: float) -> Estimate:
        try:
            return estimated(net, self.table, prior, TOLERANCE)
        except TooLargeError as error:
            remedy = "rows with gaps need queries on it; limit it by max_cost= or max_parents="
            raise TooLargeError(f"a graph on the way is too dense: {error}; {remedy}") from None

    def _network(self, edges: Mask, tables: Sequence[Floats]) -> Network:
        net = graph_network(self._variables, self.table.names, edges)
        return net.with_cpts(dict(zip(self.table.names, tables, strict=True)))

    def _observed_score(self, edges: Mask, tables: Sequence[Floats], likelihood: float, number: int) -> float:
        """The score of a graph on the rows as they are."""
        table = self.table
        score = score_by_name(self.searcher.score, table.rows)
        parents = [np.flatnonzero(edges[:, child]).tolist() for child in range(len(edges))]
        if score.kind == LIKELIHOOD:
            numbers = sum(
                (card - 1) * math.prod(table.cards[own].tolist())
                for card, own in zip(table.cards, parents, strict=True)
            )
            return likelihood - score.penalty * float(numbers)
        net, completed = self._network(edges, tables), self._completed(edges, tables, number)
        scores = FamilyScores(completed, score)
        return scores.graph(parents) + _log_likelihood(net, table) - _log_likelihood(net, completed)

    def _completed(self, edges: Mask, tables: Sequence[Floats], number: int) -> CodedTable:
        """The table with its gaps filled: each row with gaps becomes some draws, which share its weight."""
        table = self.table
        gaps = (table.codes == table.gap).any(axis=0)
        incomplete = replace(table, codes=np.ascontiguousarray(table.codes[:, gaps]))
        weights = table.weights if len(table.weights) else np.ones(len(gaps))
        draws = max(1, min(MAX_DRAWS, MAX_DRAWN_ROWS // max(1, int(gaps.sum()))))
        drawn = self._drawn(self._network(edges, tables), incomplete, draws, number)
        codes = np.concatenate([table.codes[:, ~gaps], drawn.astype(table.codes.dtype)], axis=1)
        shared = np.concatenate([weights[~gaps], np.repeat(weights[gaps] / draws, draws)])
        merged, summed = merged_rows(codes, shared)
        return replace(table, codes=merged, weights=summed)

    def _drawn(self, net: Network, rows: CodedTable, draws: int, number: int) -> NDArray[np.integer]:
        """Draws of some rows, as codes (variables, rows * draws): those of a row one after the other."""
        tac = compile(net, None, evidence=list(net))
        count = rows.codes.shape[1]
        whole = np.empty((len(rows.names), count * draws), rows.codes.dtype)
        for start in range(0, count, ROWS_PER_BLOCK):
            stop = min(start + ROWS_PER_BLOCK, count)
            evidence = rows.evidence(net, slice(start, stop))
            entropy = np.random.SeedSequence([*self._seed, number, start]).generate_state(2, np.uint32)
            drawn = tac.sample(evidence, n=draws, seed=int(entropy[0]) << 32 | int(entropy[1]))
            for place, name in enumerate(rows.names):
                whole[place, start * draws : stop * draws] = drawn[name].reshape(-1)
        return whole


def estimated(net: Network, table: CodedTable, prior: float, tolerance: float = 1e-8) -> Estimate:
    """The tables of a network with the variables of a table, from its rows."""
    rows = table.batches(net)
    weights = table.weights if len(table.weights) else None
    return estimate(net, rows, prior=prior, weights=weights, tolerance=tolerance, progress=False)


def _finished(result: Estimate) -> Estimate:
    """An estimate that was not interrupted: an interrupt is meant for all of the work."""
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _log_likelihood(net: Network, table: CodedTable) -> float:
    weights = table.weights if len(table.weights) else np.ones(table.codes.shape[1])
    return float(weights @ net.log_likelihood(table.evidence(net)))


def _coded_variables(table: CodedTable) -> Network:
    """The variables with numbers as states, so that draws are codes."""
    net = Network()
    for name, card in sorted(zip(table.names, table.cards.tolist(), strict=True)):
        net.add(name, states=card)
    return net


def _is_same_class(one: Mask, other: Mask) -> bool:
    """Whether two graphs are Markov equivalent."""
    same_skeleton = np.array_equal(one | one.T, other | other.T)
    return same_skeleton and np.array_equal(directed_edges(one), directed_edges(other))


class AvailablePairs(FamilyScores):
    """How much better (by BIC) a column is with another one as its parent, from the rows in which both have values."""

    def __init__(self, table: CodedTable) -> None:
        self.table = table
        size = len(table.names)
        self._gains = np.zeros((size, size))
        for a in range(size):
            for b in range(a):
                self._gains[a, b] = self._gains[b, a] = self._gain(a, b)

    def family(self, child: int, parents: Sequence[int]) -> float:
        return 0.0 if not parents else float(self._gains[parents[0], child])

    def extended(self, child: int, parents: Parents) -> Floats:
        return self._gains[:, child]

    def _gain(self, a: int, b: int) -> float:
        table = self.table
        known = (table.codes[a] != table.gap) & (table.codes[b] != table.gap)
        card_a, card_b = int(table.cards[a]), int(table.cards[b])
        places = table.codes[a][known].astype(np.intp) * card_b + table.codes[b][known]
        weights = table.weights[known] if len(table.weights) else None
        counts = np.bincount(places, weights, minlength=card_a * card_b).reshape(card_a, card_b).astype(np.float64)
        if not (total := float(counts.sum())):
            return 0.0
        nats = _log_sum(counts) + total * math.log(total) - _log_sum(counts.sum(axis=0)) - _log_sum(counts.sum(axis=1))
        return float(nats * table.rows / total) - math.log(table.rows) / 2 * (card_a - 1) * (card_b - 1)


def _log_sum(counts: Floats) -> float:
    seen = counts[counts > 0]
    return float((seen * np.log(seen)).sum())
