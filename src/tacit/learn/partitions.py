"""Rows that lie in several places, and sums over them: all that learning asks of a cluster.

Counts, likelihoods, losses and their derivatives are sums over rows. So learning is a loop of `sum`s, each of which
sends out some numbers and gets back a few kilobytes from every part. One machine has a single part, which is `Local`;
`tacit.clusters` has the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")


class Broadcast(Protocol[T_co]):
    """A read-only value that is sent to every process once."""

    def get(self) -> T_co:
        """The copy of this process."""
        ...


class Distributed(ABC, Generic[T]):
    """A value in every part, such as some rows.

    Work is a function of that value and the number of the part, which is None where there is only one.
    """

    @abstractmethod
    def broadcast(self, thing: S) -> Broadcast[S]:
        """A value for work to use, unpacked once by each process, however many parts that works on."""

    @abstractmethod
    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """The results of work on every part, each kept where its part is."""

    @abstractmethod
    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum of the results of work on every part, always taken in the same order."""


class Local(Distributed[T]):
    """The only part, in this process."""

    def __init__(self, thing: T) -> None:
        self.thing = thing

    def get(self) -> T:
        return self.thing

    def broadcast(self, thing: S) -> Broadcast[S]:
        return Local(thing)

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        return Local(work(self.thing, None))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        return work(self.thing, None)
