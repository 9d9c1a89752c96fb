"""The queries that a server has compiled."""

from __future__ import annotations

import threading

from tacit.errors import TooLargeError
from tacit.evidence import Evidence
from tacit.network import Network
from tacit.recent import Recent
from tacit.tac import TAC, compile

CHEAP = 10_000_000  # multiply-adds per row, up to which one query takes evidence on all variables
Asked = str | tuple[str, ...] | None
Key = tuple[Asked, tuple[str, ...], tuple[str, ...]]


class Queries:
    """Compiled queries, those that were used last. Any number of threads may ask for them.

    A query takes any evidence, so that new evidence need not be compiled. Where that would cost too much for every row,
    it is compiled for the kinds of evidence that a request has.
    """

    def __init__(self, net: Network, most: int) -> None:
        self.net = net
        self._recent: Recent[TAC] = Recent(most)
        self._locks: Recent[threading.Lock] = Recent(most)
        self._cheap: bool | None = None

    def of(self, query: Asked, known: Evidence) -> TAC:
        """A query that takes this evidence."""
        if self._is_cheap():
            return self.of_any(query)
        hard = tuple(sorted(known.certain))
        return self._compiled((query, tuple(sorted(set(known.columns).difference(hard))), hard))

    def of_any(self, query: Asked) -> TAC:
        """A query that takes any evidence."""
        return self._compiled((query, self.net.variables, ()))

    def _is_cheap(self) -> bool:
        if self._cheap is None:
            try:
                self._cheap = self.of_any(None).program.cost.multiply_adds <= CHEAP
            except TooLargeError:
                self._cheap = False
        return self._cheap

    def _compiled(self, key: Key) -> TAC:
        """One thread compiles, and others that want the same wait for it. Each query uses one thread only."""
        query, evidence, hard = key
        with self._locks.get(key, threading.Lock):
            return self._recent.get(key, lambda: compile(self.net, query, evidence, hard, threads=1))
