"""The partitions of a Dask DataFrame as parts that learning sums over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import dask
import dask.dataframe as dd
from dask.delayed import delayed

from tacit.clusters.columns import Columns
from tacit.clusters.learning import Table, Tables
from tacit.clusters.work import ClusterParts, done, groups, plain_errors, summed
from tacit.errors import TacitError
from tacit.learn.parts import Parts

T = TypeVar("T")
S = TypeVar("S")


def table(rows: Any) -> Table:
    """A DataFrame as a table to learn from."""
    if not isinstance(rows, dd.DataFrame):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Dask DataFrame; rows that are in memory can be "
            "given to tacit.estimate and tacit.fit"
        )

    def parts(evidence: Columns, others: Sequence[str]) -> Parts[Tables]:
        return DaskParts([_alone(part) for part in rows[[*evidence.names, *others]].to_delayed()])

    return Table(list(rows.columns), parts)


class DaskParts(ClusterParts[T]):
    """Delayed values, one for each part. What is mapped stays in the memory of workers, or spills to their disks."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def map(self, work: Callable[[T, int | None], S]) -> Parts[S]:
        """Started at once; what a worker that dies had made is made again."""
        return DaskParts(dask.persist(*self._done(work), optimize_graph=False))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours."""
        partial = self._done(work)
        while len(partial) > 1:
            partial = [_summed(add, group) for group in groups(partial)]
        with plain_errors():
            (found,) = dask.compute(partial[0], optimize_graph=False)
        return found  # type: ignore[no-any-return]

    def _done(self, work: Callable[[T, int | None], S]) -> list[Any]:
        carried = delayed(work, pure=False, traverse=False)  # sent once, not with each task
        return [_done(carried, part, number) for number, part in enumerate(self.parts)]


_done = delayed(done, pure=False, traverse=False)
_summed = delayed(summed, pure=False)


@delayed(pure=False, traverse=False)
def _alone(frame: Any) -> list[Any]:
    return [frame]
