"""Join graphs: clusters of bounded size, along an elimination order whose buckets are split where they are too large.

The clusters that hold a variable form a tree with the arcs whose messages are about it, so no message comes back to its
sender in the name of one variable. Where no bucket has been split the graph is a tree, and messages give exact answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.bounds.propagation.message_kernels import GraphArrays, Homes
from tacit.bounds.propagation.relations import Match, Relation, States, project

MAX_ENDS = 8  # of arcs at a cluster: so many numbers in messages are multiplied without underflow


class TooManyEntriesError(Exception):
    """The clusters take more memory than they may."""


class Home(NamedTuple):
    """The smallest cluster of a variable, and the state of the variable in each of its entries."""

    cluster: int
    states: States


class JoinGraph:
    """A join graph of the product of some relations, and of evidence.

    Clusters are numbered as they are made. Arc a has the ends 2a, at the earlier of its clusters, and 2a + 1.

    Parameters
    ----------
    relations
        The factors, each over one variable or more.
    cards
        The number of states of every variable.
    evidence
        The variables that have likelihoods.
    order
        The order of elimination.
    budget
        The most entries that a cluster may have, where the relations allow it.
    most
        The most entries of all clusters together.

    Attributes
    ----------
    homes
        Of every variable its smallest cluster.
    evidence
        Of each variable that has likelihoods, the arc where these come in.
    splits
        How often a bucket was too large for one cluster.
    log_scale
        The logarithm of the number by which the clusters have been divided.
    """

    def __init__(
        self,
        relations: Iterable[Relation],
        cards: Sequence[int],
        evidence: Iterable[int],
        order: Sequence[int],
        budget: int,
        most: float = np.inf,
    ) -> None:
        self._cards, self._budget, self._most = cards, budget, most
        self._clusters: list[Relation] = []
        self._slots: list[int] = []
        self._entries = 0
        self.homes: dict[int, Home] = {}
        self.evidence: dict[int, int] = {}
        self.splits, self.log_scale = 0, 0.0
        self._rank = {v: i for i, v in enumerate(order)}
        self._buckets: list[list[Relation]] = [[] for _ in order]
        for relation in relations:
            self._file(relation)
        for v in evidence:
            states = np.arange(cards[v])
            self.evidence[v] = self._arc(cards[v])
            places = {2 * self.evidence[v] + 1: states.astype(np.int32)}
            self._file(Relation({v: states.astype(np.uint16)}, np.ones(cards[v]), places))
        for v, bucket in zip(order, self._buckets, strict=True):
            self._eliminate(v, bucket)
            bucket.clear()

    def _arc(self, slots: int) -> int:
        self._slots.append(slots)
        return len(self._slots) - 1

    def _file(self, relation: Relation) -> None:
        """Put a relation into the bucket of the first of its variables."""
        self._buckets[min(self._rank[v] for v in relation.columns)].append(relation)

    def _eliminate(self, v: int, bucket: list[Relation]) -> None:
        """Make the clusters of a bucket, linked by what they say of v, and send on what they say of the others."""
        previous: Relation | None = None
        parts = self._parts(bucket)
        for cluster in parts:
            if previous is not None:
                self.splits += 1
                self._link(previous, previous.columns[v], cluster, cluster.columns[v], self._cards[v])
            rest = [u for u in cluster.columns if u != v]
            if rest:
                message, places = project(cluster, rest, self._cards)
                self._link(cluster, places, message, np.arange(len(message)), len(message))
                self._file(message)
            previous = cluster
        for cluster in parts:
            self._close(cluster)

    def _link(
        self, one: Relation, places: NDArray[np.integer], other: Relation, there: NDArray[np.integer], slots: int
    ) -> None:
        """A new arc: the slots of the entries at both ends."""
        arc = self._arc(slots)
        one.places[2 * arc], other.places[2 * arc + 1] = places.astype(np.int32), there.astype(np.int32)

    def _close(self, cluster: Relation) -> None:
        """A cluster that has all of its arcs: its states are no longer needed, except where it is a home."""
        self._entries += len(cluster)
        if self._entries > self._most:
            raise TooManyEntriesError
        for v, states in cluster.columns.items():
            if v not in self.homes or len(cluster) < len(self.homes[v].states):
                self.homes[v] = Home(len(self._clusters), states)
        scale = cluster.values.max(initial=0.0) or 1.0
        self.log_scale += float(np.log(scale))
        self._clusters.append(Relation({}, cluster.values / scale, cluster.places))

    def _parts(self, bucket: list[Relation]) -> list[Relation]:
        """Join the relations of a bucket into few, as far as the budget allows."""
        parts: list[Relation] = []
        for relation in sorted(bucket, key=len, reverse=True):
            best: tuple[Match, int] | None = None
            for i, part in enumerate(parts):
                match = Match(part, relation, self._cards)
                small = match.size <= max(self._budget, len(part), len(relation))
                if small and (best is None or match.size < best[0].size):
                    best = match, i
            if best is None:
                parts.append(Relation(dict(relation.columns), relation.values, dict(relation.places)))
            else:
                parts[best[1]] = self._narrow(best[0].join())
        return parts

    def _narrow(self, cluster: Relation) -> Relation:
        """The same; one that has too many arcs is closed, and all it says is sent on."""
        if len(cluster.places) <= MAX_ENDS - 3:  # up to three more are to come: two in its bucket, one to a later one
            return cluster
        copy = Relation(dict(cluster.columns), np.ones(len(cluster)))
        self._link(cluster, np.arange(len(cluster)), copy, np.arange(len(cluster)), len(cluster))
        self._close(cluster)
        return copy

    def arrays(self) -> tuple[GraphArrays, dict[int, int]]:
        """The graph as the kernels want it, and of each variable with likelihoods, the slot where these begin."""
        outside = {2 * arc + 1 for arc in self.evidence.values()}
        ends = [sorted(cluster.places, key=lambda end: end % 2 + (end in outside)) for cluster in self._clusters]
        flat = [end for local in ends for end in local]
        number = {end: i for i, end in enumerate(flat)}
        base = _sums([self._slots[end // 2] for end in flat])
        later = [sum(end % 2 == 0 for end in local) for local in ends]
        inside = [sum(end not in outside for end in local) for local in ends]
        counts = [len(cluster) for cluster in self._clusters]
        at = _sums([len(cluster) * len(cluster.places) for cluster in self._clusters])
        places = np.empty(at[-1], np.int32)
        for c, (cluster, local) in enumerate(zip(self._clusters, ends, strict=True)):
            block = places[at[c] : at[c + 1]].reshape(len(cluster), len(local))
            for j, end in enumerate(local):
                np.add(cluster.places[end], base[number[end]], out=block[:, j])
        partner = np.array([number.get(end ^ 1, -1) for end in flat], np.int64)
        values = np.concatenate([np.zeros(0), *(cluster.values for cluster in self._clusters)])
        begin = _sums([len(local) for local in ends])
        graph = GraphArrays(
            _sums(counts),
            values,
            begin,
            np.array(later, np.int64),
            np.array(inside, np.int64),
            places,
            at,
            base,
            partner,
        )
        return graph, {v: int(base[number[2 * arc + 1]]) for v, arc in self.evidence.items()}

    def home_arrays(self, variables: Sequence[int]) -> Homes:
        """The homes of some variables, as the kernels want them."""
        homes = [self.homes[v] for v in variables]
        states = np.concatenate([np.zeros(0, np.uint16), *(home.states for home in homes)])
        clusters = np.array([home.cluster for home in homes], np.int64)
        begin, offset = _sums([len(home.states) for home in homes]), _sums([self._cards[v] for v in variables])
        return Homes(clusters, begin, states, offset)


def _sums(counts: Sequence[int]) -> NDArray[np.int64]:
    """Where blocks of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
