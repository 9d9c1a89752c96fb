"""Scoring on Ray: the answers to all rows of a Dataset, lazily, by tasks or by a pool of actors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import ray.data

from tacit import machine
from tacit.clusters.remote import Remote
from tacit.clusters.scoring import Request, Scorer, posteriors
from tacit.errors import TacitError
from tacit.ray.tasks import current_task
from tacit.tac import TAC
from tacit.wanted import LogEvidence, MostProbable, Samples

TASK = "tacit: the number of the task"  # a column that only messages need
BLOCKS = {"batch_format": "pyarrow", "batch_size": None}  # as they are: the types of their columns may differ


def posterior(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """The posterior of the query for every row of a Ray Dataset, computed where the rows are.

    Nothing is computed yet: the answer is another Dataset. Each worker process holds the query once.

    Parameters
    ----------
    tac
        The compiled query.
    rows
        A Dataset. Columns named like variables in `tac.evidence` are read as `tac.posterior` reads a pyarrow table;
        columns `A.lo` and `A.hi` hold one likelihood for each state of `A`. All other columns are left alone.
    keep
        Columns of the Dataset that the answer begins with.
    names
        Other names for columns of the result, which are named `QUERY.STATE`, or `A.true,B.lo` for a joint posterior.
    likelihoods
        Variables of two states whose column holds likelihoods of the first state. Needed where a block may happen to
        hold only 0s and 1s, which could be codes.
    num_cpus, num_gpus
        What Ray reserves for each task or actor. It uses as many threads as CPUs are reserved for it, one by default.
    concurrency
        How many actors there are, or the fewest and the most of them. Without it, and without GPUs, rows are answered
        by tasks, which start at once in processes that are there already. Actors keep their CPUs: leave some for other
        steps, such as reading and writing, or Ray waits for them forever.

    A row whose evidence has probability 0 gets nulls. An error in the rows names the task of Ray ("partition 3": there
    is one for each block or file that is read), and the row in it; both are counted from 0. Mistakes in the names of
    columns show at once if Ray knows the columns beforehand, as for Parquet; else when rows are read.

    >>> import ray, tacit  # doctest: +SKIP
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])  # doctest: +SKIP
    >>> posterior(tac, ray.data.read_parquet("rows.parquet"), keep=["id"]).take(1)  # doctest: +SKIP
    [{'id': 7, 'B.true': 0.9, 'B.false': 0.1}]
    """
    request = Request(tac, posteriors(tac), keep, names, likelihoods)
    return _scored(request, rows, num_cpus, num_gpus, concurrency)


def log_evidence(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """The logarithm of the probability of the evidence for every row of a Ray Dataset: a column `log_evidence`.

    Parameters are those of `posterior`. Where the evidence is impossible, it is minus infinity.
    """
    request = Request(tac, LogEvidence(), keep, names, likelihoods)
    return _scored(request, rows, num_cpus, num_gpus, concurrency)


def mpe(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """The states of all variables that are jointly most probable, for every row of a Ray Dataset.

    The result has a column for each variable, named like it, and `log_probability`. Parameters are as in `posterior`.
    Of a column that is kept, the result of the same name needs another one. Where the evidence is impossible, states
    are null.
    """
    request = Request(tac, MostProbable(), keep, names, likelihoods)
    return _scored(request, rows, num_cpus, num_gpus, concurrency)


def sample(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """One draw of all variables given the evidence, for every row of a Ray Dataset.

    The result has a column for each variable, named like it. Parameters are as in `posterior`. There is no seed: Ray
    divides rows as it sees fit, and the draws are others each time that they are computed. Materialize or write them
    before you use them twice.
    """
    request = Request(tac, Samples(), keep, names, likelihoods)
    return _scored(request, rows, num_cpus, num_gpus, concurrency)


def _scored(
    request: Request,
    rows: Any,
    num_cpus: float | None,
    num_gpus: float | None,
    concurrency: int | tuple[int, int] | None,
) -> Any:
    """The answers to all rows of a Dataset."""
    if not isinstance(rows, ray.data.Dataset):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Ray Dataset; rows that are in memory can be given "
            "to the method of the compiled query"
        )
    columns = rows.columns(fetch_if_missing=False)
    if columns:
        rows = rows.select_columns(request.announced(columns).columns)
    threads = max(1, int(num_cpus or 1))
    if num_gpus is None and concurrency is None:
        return rows.map_batches(Worker(request, threads), **BLOCKS, num_cpus=num_cpus)
    return rows.map_batches(_with_task, **BLOCKS).map_batches(
        Worker,
        **BLOCKS,
        fn_constructor_kwargs={"request": request, "threads": threads},
        compute=_pool(concurrency),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )


def _pool(concurrency: int | tuple[int, int] | None) -> Any:
    if concurrency is None:
        return ray.data.ActorPoolStrategy()
    if isinstance(concurrency, int):
        return ray.data.ActorPoolStrategy(size=concurrency)
    fewest, most = concurrency
    return ray.data.ActorPoolStrategy(min_size=fewest, max_size=most)


class Worker:
    """Answers one batch of rows after the other: in tasks, or in an actor.

    Tasks run in processes that Ray keeps for the next ones, and all of a process share one copy of the query.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self._request, self._share = Remote(request), machine.Share(threads=threads)
        self._scorer: Scorer | None = None
        self._task: int | None = None
        self._first = 0  # row of the next batch, in its task

    def __call__(self, batch: Any) -> Any:
        """The answers to a pyarrow table."""
        task = current_task()
        if TASK in batch.column_names:
            task = batch[TASK][0].as_py() if len(batch) else None
            batch = batch.drop_columns([TASK])
        if self._scorer is None:
            self._scorer = self._request.get().scorer(batch.column_names)
        first = self._first if task is not None and task == self._task else 0
        self._task, self._first = task, first + len(batch)
        with machine.within(self._share):
            return self._scorer.with_kept(batch, task, first)


def _with_task(batch: Any) -> Any:
    """A batch, and the number of its task in a column: actors call what they are given in a thread that has no task.

    Ray does this in the actor, too, on the way to it.
    """
    task = current_task()
    return batch if task is None else batch.append_column(TASK, pa.repeat(pa.scalar(task, pa.int32()), len(batch)))
