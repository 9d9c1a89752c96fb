"""Dask DataFrames and Arrays, scored lazily, and the partitions of a DataFrame as parts to learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from dask.delayed import delayed

from tacit.base import machine
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.clusters.front import ClusterBackend
from tacit.clusters.learning import Tables
from tacit.clusters.plan import Columns
from tacit.clusters.scoring import Request, Scorer
from tacit.clusters.work import ONE_THREAD, ClusterParts, Remote, apply_work, plain_errors, tree_sum
from tacit.evidence.tables.messages import in_partition
from tacit.learn.partitions import Distributed
from tacit.query.answer_columns import LogEvidence, PosteriorColumns
from tacit.query.answers.answer import quietly
from tacit.query.tac import TAC

T = TypeVar("T")
S = TypeVar("S")

NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}  # others have a missing value of their own


class DaskBackend(ClusterBackend):
    """Dask DataFrames; for posteriors and log-evidence, also Arrays."""

    kind, table_type = "Dask DataFrame", dd.DataFrame
    also_scored = " (for posterior and log_evidence, also an Array)"

    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        return DaskParts([_alone(part) for part in rows[[*evidence.names, *others]].to_delayed()])

    def score(self, request: Request, rows: Any) -> Any:
        """A DataFrame with the same partitions and index."""
        scorer = request.announced(self.columns(rows))
        needed = rows[scorer.columns]
        return needed.map_partitions(_answers, scorer, meta=_answers(needed._meta, scorer), align_dataframes=False)

    def scored(self, request: Request, rows: Any) -> Any:
        """The answers to a DataFrame, or to an Array where the answer is one, too."""
        if isinstance(rows, da.Array) and isinstance(request.wanted, PosteriorColumns | LogEvidence):
            return _scored_array(request, rows)
        return super().scored(request, rows)


def _answers(frame: Any, scorer: Scorer, partition_info: Mapping[str, Any] | None = None) -> Any:
    """The answers to the rows of a partition, with their index."""
    partition = None if partition_info is None else partition_info["number"]
    with machine.within(ONE_THREAD):
        result = scorer.score(frame, partition).to_pandas(types_mapper=NULLABLE.get)
    result.index = frame.index
    return pd.concat([frame[list(scorer.keep)], result], axis=1) if scorer.keep else result


def _scored_array(request: Request, rows: Any) -> Any:
    """The posteriors (rows, states...) of an Array, or the logarithms (rows,) of the probabilities of its evidence."""
    if request.keep or request.names or request.likelihoods:
        raise TacitError("keep=, names= and likelihoods= name columns, and an Array has no names; pass a DataFrame")
    tac = request.tac
    expected = len(tac.evidence)
    if rows.ndim != 2 or rows.shape[1] != expected:
        raise EvidenceError(
            f"the array has shape {rows.shape}, expected (rows, {expected}): a column for each variable in tac.evidence"
        )
    for name in tac.evidence:
        if (card := tac.network.variable(name).card) != 2:
            raise EvidenceError(
                f"an array needs variables of two states, but {name!r} has {card}; pass a DataFrame with labels, "
                "or with a column for each state"
            )
    tac.numbers()  # an error, now rather than in a worker, where some are not set
    whole = rows.rechunk({1: -1})
    log = isinstance(request.wanted, LogEvidence)
    states = [] if log else [tac.network.variable(name).card for name in tac.question.query]
    return da.map_blocks(
        _answer_array,
        whole,
        Remote(tac),
        log,
        chunks=(whole.chunks[0], *((count,) for count in states)),
        drop_axis=[1] if log else [],
        new_axis=list(range(2, len(states) + 1)),
        meta=np.empty((0,) * (len(states) + 1), dtype=np.float64 if log else np.dtype(tac.dtype)),
    )


def _answer_array(block: Floats, query: Remote[TAC], log: bool, block_id: Sequence[int] | None = None) -> Floats:
    """The posteriors of a block of rows; with `log`, the logarithms of the probabilities of their evidence."""
    tac = query.get()
    try:
        with machine.within(ONE_THREAD), quietly():
            return tac.log_evidence(block) if log else tac.posterior(block)
    except EvidenceError as error:
        raise in_partition(error, None if block_id is None else block_id[0]) from None


class DaskParts(ClusterParts[T]):
    """Delayed values, one for each part. Results of `map` stay in the memory of workers, or spill to their disks."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """The results of the work, started at once; those of a worker that dies are computed again."""
        return DaskParts(dask.persist(*self._applied(work), optimize_graph=False))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours."""
        total = tree_sum(self._applied(work), lambda group: _summed(add, group))
        with plain_errors():
            (total,) = dask.compute(total, optimize_graph=False)
        return total  # type: ignore[no-any-return]

    def _applied(self, work: Callable[[T, int | None], S]) -> list[Any]:
        carried = delayed(work, pure=False, traverse=False)  # sent once, not with each task
        return [_applied(carried, part, number) for number, part in enumerate(self.parts)]


_applied = delayed(apply_work, pure=False, traverse=False)
_summed = delayed(reduce, pure=False)
_alone = delayed(lambda frame: [frame], pure=False, traverse=False)
