"""Work on the parts of a cluster: what is sent to its processes, its threads, its errors, and sums over the parts."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Generic, TypeVar

from tacit.base import machine
from tacit.base.errors import EvidenceError, TacitError
from tacit.evidence.tables.messages import in_partition
from tacit.learn.partitions import Broadcast, Distributed
from tacit.query.answers.answer import quietly

T = TypeVar("T")
S = TypeVar("S")

FAN_IN = 16  # partial sums that are added at a time: sums form a tree, and no process has to hold them all
ONE_THREAD = machine.Quota(threads=1)  # the engines themselves run a task on each core

MAX_UNPACKED = 8  # things that a process holds: one for every query or training that goes on at the same time
_unpacked = lru_cache(maxsize=MAX_UNPACKED)(pickle.loads)

# the last line of a traceback, since all that Spark hands over of an error is its text
_OURS = re.compile(r"^\s*(tacit\.[\w.]+)\.(\w*Error): (.*)", re.MULTILINE)


class Remote(Generic[T]):
    """A thing and its pickle. Tasks carry the pickle; all those of a process share one copy of the thing.

    So a compiled query builds its engine once per process, on first use, however many partitions there are.

    >>> query = Remote({"any": "thing"})
    >>> query.get() is pickle.loads(pickle.dumps(query)).get()
    True
    """

    def __init__(self, thing: T) -> None:
        try:
            self._packed = pickle.dumps(thing, protocol=5)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            remedy = "the function of a Density must be one of a module, no lambda"
            raise TacitError(f"this cannot be sent to the workers: {error}; {remedy}") from None

    def get(self) -> T:
        """The copy of this process."""
        return _unpacked(self._packed)  # type: ignore[no-any-return]


class ClusterParts(Distributed[T]):
    """Parts that lie on other machines."""

    def broadcast(self, thing: S) -> Broadcast[S]:
        """A pickle that each worker unpacks once."""
        return Remote(thing)

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum over the results of the work, which are kept while they are added."""
        return self.map(work).sum(lambda result, number: result, add)


def apply_work(work: Callable[[T, int | None], S], thing: T, number: int) -> S:
    """Do work on a part, on one thread; an error names the part."""
    with machine.within(ONE_THREAD), quietly():
        try:
            return work(thing, number)
        except EvidenceError as error:
            raise in_partition(error, number) from None


def tree_sum(parts: Sequence[T], add: Callable[[Sequence[T]], T]) -> T:
    """The sum of all parts, by sums of neighbours that `add` takes.

    >>> tree_sum(["a"] * 20, lambda group: f"({''.join(group)})")
    '((aaaaaaaaaaaaaaaa)(aaaa))'
    """
    while len(parts) > 1:
        parts = [add(parts[start : start + FAN_IN]) for start in range(0, len(parts), FAN_IN)]
    return parts[0]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error of ours as it was, where a cluster wrapped it into its own."""
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
