"""The queries that a server has compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

from tacit.answer import quietly
from tacit.errors import TooLargeError
from tacit.evidence import Evidence
from tacit.network import Network
from tacit.recent import Recent
from tacit.tac import TAC, compile

CHEAP = 10_000_000  # multiply-adds per row, up to which one query takes evidence on all variables
Asked = str | tuple[str, ...] | None


class Queries:
    """Compiled queries, those that were used last. Any number of threads may ask for them.

    A query takes any evidence, so that new evidence need not be compiled. Where that would cost too much for every row,
    it is compiled for the kinds of evidence that a request has.
    """

    def __init__(self, net: Network, most: int) -> None:
        self.net = net
        self._recent: Recent[TAC] = Recent(most)
        self._locks: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()  # those that are in use
        self._guard = threading.Lock()
        self._cheap: bool | None = None

    def of(self, query: Asked, known: Evidence) -> TAC:
        """A query that takes this evidence."""
        if self._is_cheap():
            return self._of_any(query)
        hard = tuple(sorted(known.certain))
        soft = tuple(sorted(set(known.columns).difference(hard)))
        return self._once((query, soft, hard), lambda: self._compiled(query, soft, hard))

    def of_all(self) -> TAC:
        """A query that takes any evidence and is ready for the marginals of all variables."""
        return self._once("marginals", lambda: _with_marginals(self._of_any(None)))

    def _of_any(self, query: Asked) -> TAC:
        names = self.net.variables
        return self._once((query, names, ()), lambda: self._compiled(query, names))

    def _is_cheap(self) -> bool:
        if self._cheap is None:
            try:
                self._cheap = _is_cheap(self._of_any(None))
            except TooLargeError:
                self._cheap = False
        return self._cheap

    def _once(self, key: Hashable, make: Callable[[], TAC]) -> TAC:
        """What was made before, or is made now: others that want the same wait for it."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            return self._recent.get(key, make)

    def _compiled(self, query: Asked, evidence: tuple[str, ...], hard: tuple[str, ...] = ()) -> TAC:
        """Small queries take one thread each: there are others to answer at the same time."""
        tac = compile(self.net, query, evidence, hard)
        tac.threads = 1 if _is_cheap(tac) else None
        return tac


def _is_cheap(tac: TAC) -> bool:
    return tac.program.cost.multiply_adds <= CHEAP


def _with_marginals(tac: TAC) -> TAC:
    """Ask once: what marginals need is compiled then, which should not be done twice at the same time."""
    with quietly():
        tac.marginals()
    return tac
