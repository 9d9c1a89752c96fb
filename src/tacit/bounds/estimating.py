"""Estimates of marginals where exact answers are out of reach: message passing on several join graphs, and their mean.

A join graph of larger clusters has fewer loops, so it is more often right; but messages can settle on one of several
states of affairs that are equally probable, and which one depends on the order of elimination. The mean over graphs
from several orders undoes that, and its error is well below theirs. Messages that do not settle are not waited for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.factor_list import FactorList
from tacit.bounds.propagation.join_graph import JoinGraph, TooManyEntriesError
from tacit.bounds.propagation.message_kernels import GraphArrays, Homes, run
from tacit.bounds.propagation.relations import Bools, Ints, Relation, arc_consistent, of_table
from tacit.compiler.order.search import elimination_order, weighted_min_fill
from tacit.compiler.order.tree import Problem, mask_of

BUDGETS = (2**4, 2**10, 2**13, 2**16, 2**19, 2**22)  # entries of a cluster, one level after the other
MEMBERS = 8  # graphs of a level
MORE_MEMBERS = 40  # of the last level, where time is left
GROWTH = 8.0  # of the time that a graph takes, from one level to the next
SWEEPS = 12  # over all arcs, there and back, for messages to settle
ENOUGH = 1e-3  # change of a message, whose largest number is 1, that has settled
MAX_ENTRIES = 2.5e7  # of one graph: two gigabytes while it is made


class Answers(NamedTuple):
    """Marginals (rows, states of all variables), and logarithms of the partition function (rows,)."""

    marginals: Floats
    logs: Floats


class Member(NamedTuple):
    """A join graph, ready to run: the evidence goes to the slots `where`."""

    graph: GraphArrays
    homes: Homes
    where: Ints
    log_scale: float
    exact: bool

    @property
    def sweeps(self) -> int:
        """How many are made for a row at most."""
        return 1 if self.exact else SWEEPS

    @property
    def work(self) -> float:
        """About the multiply-adds of a row."""
        return 4.0 * len(self.graph.places) * self.sweeps

    def answers(self, likelihoods: Floats) -> Answers:
        """What the graph says of rows of likelihoods (rows, states of all evidence)."""
        rows = len(likelihoods)
        marginals, logs = np.zeros((rows, self.homes.offset[-1])), np.full(rows, self.log_scale)
        run(self.graph, self.homes, self.where, likelihoods, self.sweeps, ENOUGH, marginals, logs)
        return Answers(marginals, logs)


class Estimator:
    """Estimates of the marginals of the variables of a question, for rows of likelihoods.

    >>> import tacit
    >>> from tacit.bounds.factor_list import factor_list
    >>> from tacit.compiler.question import Question
    >>> factors = factor_list(tacit.examples.asia(), Question(("dysp",), ("xray",)))
    >>> estimator = Estimator(factors)
    >>> estimator.exact
    True
    >>> estimator.marginals({"xray": np.array([[1.0, 0.0], [1.0, 1.0]])})["dysp"].round(4)
    array([[0.6408, 0.3592],
           [0.436 , 0.564 ]])

    Parameters
    ----------
    factors
        The question. Where a test chooses a table, the middle of those that it may choose stands for all.
    seconds
        How long to go on to larger clusters, and to more graphs, in seconds of CPU. The first graph is always made.
    work
        The most multiply-adds that a row may take; None: as many as there is time for.
    entries
        The most entries of all clusters of a graph; the first one has what it needs.
    seed
        Of the orders of elimination.
    """

    def __init__(
        self,
        factors: FactorList,
        *,
        seconds: float = 10.0,
        work: float | None = None,
        entries: float = MAX_ENTRIES,
        seed: int = 0,
    ) -> None:
        self._names = tuple(factors.cards)
        index = {name: i for i, name in enumerate(self._names)}
        self._relations, self._possible, self._log = _reduced(factors, index)
        self._cards = [int(states.sum()) for states in self._possible]
        self._free = [v for v, card in enumerate(self._cards) if card > 1]
        self._evidence = [index[name] for name in factors.evidence]
        self._inside = [v for v in self._evidence if self._cards[v] > 1]
        self._places = dict(zip(self._free, np.cumsum([0, *(self._cards[v] for v in self._free)]), strict=False))
        self._entries = entries
        self._orders, self._seed = list[list[int]](), seed
        self._members: list[Member | Answers] = []  # without evidence, what they answer
        self.exact = not np.isfinite(self._log)
        if not self.exact:
            self._grow(seconds, np.inf if work is None else work)

    @property
    def work(self) -> float:
        """About the multiply-adds of a row."""
        return sum(member.work for member in self._members if isinstance(member, Member))

    def marginals(self, likelihoods: Mapping[str, Floats]) -> dict[str, Floats]:
        """An estimate of the marginals (rows, states) of all variables, given likelihoods (rows, states) of evidence.

        Rows whose evidence is seen to be impossible get zeros. Without any likelihoods, there is one row.
        """
        found = self._found(likelihoods)
        possible = ~np.isneginf(found.logs)[:, None]
        answers = {}
        for v, name in enumerate(self._names):
            inside = self._possible[v]
            answers[name] = np.zeros((len(possible), len(inside)))
            if v in self._places:
                columns = found.marginals[:, self._places[v] : self._places[v] + self._cards[v]]
            else:
                columns = np.ones((1, 1))
            answers[name][:, inside] = np.where(possible, columns, 0.0)
        return answers

    def log_partition(self, likelihoods: Mapping[str, Floats]) -> Floats:
        """An estimate of the logarithm of the sum, over all states, of the product of factors and likelihoods (rows,).

        It is -inf where that sum is seen to be 0.
        """
        return self._found(likelihoods).logs

    def _found(self, likelihoods: Mapping[str, Floats]) -> Answers:
        """The mean of what all graphs say."""
        matrix, logs = self._matrix(likelihoods)
        if not self._members:
            return Answers(np.zeros((len(matrix), sum(self._cards[v] for v in self._free))), logs - np.inf)
        found = [member if isinstance(member, Answers) else member.answers(matrix) for member in self._members]
        marginals = np.mean([one.marginals for one in found], axis=0)
        means = np.mean([one.logs for one in found], axis=0)
        return Answers(np.broadcast_to(marginals, (len(logs), marginals.shape[1])), logs + means + self._log)

    def _matrix(self, likelihoods: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """The likelihoods of possible states, scaled to 1, side by side; and the logarithm of the scale (rows,)."""
        rows = len(next(iter(likelihoods.values()))) if likelihoods else 1
        blocks, logs = [np.zeros((rows, 0))], np.zeros(rows)
        for v in self._evidence:
            if self._names[v] in likelihoods:
                block = np.asarray(likelihoods[self._names[v]], float)[:, self._possible[v]]
            else:
                block = np.ones((rows, self._cards[v]))
            scale = block.max(axis=1, initial=0.0)
            with np.errstate(divide="ignore"):
                logs += np.log(scale)
            if self._cards[v] > 1:
                blocks.append(block / np.where(scale > 0, scale, 1.0)[:, None])
        return np.concatenate(blocks, axis=1), logs

    def _grow(self, seconds: float, work: float) -> None:
        """Make graphs of larger and larger clusters, several of each size."""
        start, took, last = time.thread_time(), 0.0, BUDGETS[0]

        def in_time(times: float) -> bool:
            return not self._members or time.thread_time() - start + times * took < seconds

        for budget in BUDGETS:
            for number in range(MEMBERS):
                begin = time.thread_time()
                if not in_time(1 if number else GROWTH) or not self._add(budget, number, work):
                    break
                took, last = time.thread_time() - begin, budget
                if self.exact:
                    return
            else:
                if budget == BUDGETS[1]:
                    self._members = self._members[-MEMBERS:]  # the smallest clusters were for want of time only
                continue
            break
        number = MEMBERS
        while number < MORE_MEMBERS and in_time(1) and self._add(last, number, work):
            number += 1

    def _add(self, budget: int, number: int, work: float) -> bool:
        """Make a graph, unless it is too large; an exact one replaces all others."""
        try:
            member = self._member(budget, number, self._entries if self._members else MAX_ENTRIES)
        except TooManyEntriesError:
            return False
        one = member if self._inside else member.answers(np.ones((1, 0)))
        if member.exact:
            exact_fits = not self._members or member.work <= work
            if exact_fits:
                self._members, self.exact = [one], True
            return exact_fits
        while len(self._members) >= MEMBERS and self.work + member.work > work:
            self._members = self._members[1:]
        if self._members and self.work + member.work > work:
            return False
        self._members.append(one)
        return True

    def _member(self, budget: int, number: int, most: float) -> Member:
        """A join graph along one of the orders."""
        order = self._order(number)
        graph = JoinGraph(self._relations, self._cards, self._inside, order, budget, most)
        arrays, where = graph.arrays()
        slots = [np.arange(where[v], where[v] + self._cards[v]) for v in self._inside]
        homes = graph.home_arrays(self._free)
        return Member(arrays, homes, np.concatenate([np.zeros(0, np.int64), *slots]), graph.log_scale, not graph.splits)

    def _order(self, number: int) -> list[int]:
        """An order of elimination."""
        while number >= len(self._orders):
            masks = [mask_of(relation.columns) for relation in self._relations]
            problem = Problem(masks, [True] * len(masks), self._names, self._cards, keep=0)
            rng = random.Random(f"{self._seed} {len(self._orders)}")
            self._orders.append(elimination_order(problem, weighted_min_fill, rng))
        return self._orders[number]


def _reduced(factors: FactorList, index: Mapping[str, int]) -> tuple[list[Relation], list[Bools], float]:
    """The factors over the states that are possible, and these; scaled to 1, with the logarithm of the scale."""
    relations = [
        of_table([index[name] for name in factor.scope], (factor.low + factor.high) / 2) for factor in factors.factors
    ]
    uniform = [of_table([i], np.ones(card)) for i, card in enumerate(factors.cards.values())]
    relations, possible = arc_consistent(relations + uniform, list(factors.cards.values()))
    rank = [np.cumsum(states) - 1 for states in possible]
    log, scaled = 0.0, []
    for relation in relations:
        scale = relation.values.max(initial=0.0)
        log += float(np.log(scale)) if scale else -np.inf
        several = [v for v in relation.columns if rank[v][-1] > 0]
        if several and scale:
            columns = {v: rank[v][relation.columns[v]].astype(np.uint16) for v in several}
            scaled.append(Relation(columns, relation.values / scale))
    return scaled, possible, log
