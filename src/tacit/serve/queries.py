"""The queries that a server has compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import NoReturn
from weakref import WeakValueDictionary

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.lru import LRUCache
from tacit.evidence.column import Evidence
from tacit.model.elements.variable import Label
from tacit.query.answers.answer import quietly
from tacit.query.network import Network
from tacit.query.tac import TAC, compile

CHEAP_WORK = 10_000_000  # multiply-adds per row, up to which one query takes evidence on all variables
CODE_WORK = 5_000  # up to which machine code takes less than a second to compile, and a row less than a millisecond
CODE = "native"
MAX_INTERVENTIONS = 4  # whose networks are kept, each with queries of its own
QueryNames = str | tuple[str, ...] | None


class Queries:
    """An LRU cache of compiled queries, which any number of threads may use.

    A query takes any evidence, so that new evidence need not be compiled. Where that would cost too much for every row,
    it is compiled for the kinds of evidence that a request has.
    """

    def __init__(self, net: Network, limit: int) -> None:
        self.net = net
        self._cache: LRUCache[TAC] = LRUCache(limit)
        self._locks: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()  # those that are in use
        self._guard = threading.Lock()
        self._cheap: bool | None = None
        self._after: LRUCache[Queries] = LRUCache(MAX_INTERVENTIONS)

    def after(self, do: Mapping[str, Label]) -> Queries:
        """The queries of the network after an intervention; these, if there is none."""
        if not do:
            return self
        key = tuple(sorted((name, repr(state)) for name, state in do.items()))
        return self._after.get(key, lambda: Queries(self.net.do(do), self._cache.limit))

    def of(self, query: QueryNames, evidence: Evidence) -> TAC:
        """A query that takes this evidence."""
        if self._is_cheap():
            return self._of_any(query)
        hard = tuple(sorted(evidence.fully_observed))
        soft = tuple(sorted(set(evidence.columns).difference(hard)))
        return self._once((query, soft, hard), lambda: self._compiled(query, soft, hard))

    def at_hand(self, query: QueryNames) -> TAC | None:
        """A query that takes any evidence, if it is cached already and answers a row in next to no time."""
        try:
            tac = self._cache.get(self._key(query), _absent)
        except LookupError:
            return None
        return tac if tac.options.engine == CODE else None

    def of_all(self) -> TAC:
        """A query that takes any evidence and is ready for the marginals of all variables."""
        return self._once("marginals", lambda: _with_marginals(self._of_any(None)))

    def _of_any(self, query: QueryNames) -> TAC:
        return self._once(self._key(query), lambda: _ready(self._compiled(query, self.net.variables)))

    def _key(self, query: QueryNames) -> Hashable:
        return query, self.net.variables, ()

    def _is_cheap(self) -> bool:
        if self._cheap is None:
            try:
                self._cheap = _is_cheap(self._of_any(None))
            except TooLargeError:
                self._cheap = False
        return self._cheap

    def _once(self, key: Hashable, make: Callable[[], TAC]) -> TAC:
        """A query from the cache, or made now, while other threads that need the same one wait."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            return self._cache.get(key, make)

    def _compiled(self, query: QueryNames, evidence: tuple[str, ...], hard: tuple[str, ...] = ()) -> TAC:
        """A compiled query; a small one takes one thread, since others are answered at the same time."""
        others = tuple(name for name in evidence if name != query or not self.net.variable(name).continuous)
        tac = compile(self.net, query, others, hard)
        tac.options = replace(tac.options, threads=1 if _is_cheap(tac) else None)
        return tac


def _is_cheap(tac: TAC) -> bool:
    return tac.program.cost.multiply_adds <= CHEAP_WORK


def _absent() -> NoReturn:
    raise LookupError


def _ready(tac: TAC) -> TAC:
    """A query as machine code, if it is small, asks for a variable, and code can run: it may be asked often."""
    if not tac.query or tac.program.cost.multiply_adds > CODE_WORK:
        return tac
    coded = tac.with_network(tac.network, engine=CODE)
    try:
        with quietly():
            coded.log_evidence()
    except TacitError:
        return tac
    return coded


def _with_marginals(tac: TAC) -> TAC:
    """Ask once, so that what marginals need is compiled, by one thread only."""
    with quietly():
        tac.marginals()
    return tac
