"""How work is done on the parts of a cluster, and how what it comes to is summed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TypeVar

from tacit.base import machine
from tacit.base.errors import EvidenceError, TacitError
from tacit.clusters.remote import Remote
from tacit.evidence.tables.messages import in_partition
from tacit.learn.partitions import Broadcast, Distributed
from tacit.query.answer import quietly

T = TypeVar("T")
S = TypeVar("S")

FAN_IN = 16  # partial sums that are added at a time: sums form a tree, and no process has to hold them all
ONE_THREAD = machine.Quota(threads=1)  # the engines themselves run a task on each core

# the last line of a traceback, since all that Spark hands over of an error is its text
_OURS = re.compile(r"^\s*(tacit\.[\w.]+)\.(\w*Error): (.*)", re.MULTILINE)


class ClusterParts(Distributed[T]):
    """Parts that lie on other machines."""

    def broadcast(self, thing: S) -> Broadcast[S]:
        """A pickle that each worker unpacks once."""
        return Remote(thing)


def identity(thing: S, number: int | None) -> S:
    """Work that was done before."""
    return thing


def apply_work(work: Callable[[T, int | None], S], thing: T, number: int) -> S:
    """What work makes of a part, on one thread; an error names the part."""
    with machine.within(ONE_THREAD), quietly():
        try:
            return work(thing, number)
        except EvidenceError as error:
            raise in_partition(error, number) from None


def summed(add: Callable[[S, S], S], several: Sequence[S]) -> S:
    """The sum from first to last."""
    return reduce(add, several)


def groups(parts: Sequence[T]) -> list[Sequence[T]]:
    """Neighbours that are added at a time.

    >>> [len(group) for group in groups(range(40))]
    [16, 16, 8]
    """
    return [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]


@contextmanager
def plain_errors() -> Iterator[None]:
    """An error of ours that a cluster wrapped into its own is raised as it was."""
    try:
        yield
    except TacitError:
        raise
    except Exception as error:
        ours = _ours(error)
        if ours is None:
            raise
        raise ours from None


def _ours(error: BaseException | None) -> TacitError | None:
    """The error that a task raised, found among causes or in the text of a traceback."""
    text = "" if error is None else str(error)
    while error is not None:
        for candidate in (error, getattr(error, "cause", None)):
            if isinstance(candidate, TacitError):
                return candidate
        error = error.__cause__
    for module, name, message in _OURS.findall(text)[-1:]:
        kind = getattr(sys.modules.get(module), name, TacitError)
        return EvidenceError(message) if issubclass(kind, EvidenceError) else TacitError(message)
    return None
