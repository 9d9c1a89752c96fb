"""Ray Datasets, scored lazily by tasks or by a pool of actors, and their blocks as parts to learn from."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeVar

import pyarrow as pa
import ray
import ray.data

from tacit.base import machine
from tacit.clusters.front import ClusterBackend
from tacit.clusters.learning import Tables
from tacit.clusters.plan import Columns
from tacit.clusters.scoring import Names, Renamed, Request, Scorer
from tacit.clusters.work import ClusterParts, Remote, apply_work, plain_errors, tree_sum
from tacit.learn.partitions import Distributed
from tacit.query.answer_columns import SampleColumns
from tacit.query.tac import TAC

T = TypeVar("T")
S = TypeVar("S")

TASK_COLUMN = "tacit: the number of the task"  # which only messages need
WHOLE_BLOCKS = {"batch_format": "pyarrow", "batch_size": None}  # the types of their columns may differ


@dataclass(frozen=True)
class RayBackend(ClusterBackend):
    """Ray Datasets, and what is reserved for the tasks or actors that score them."""

    kind, table_type = "Ray Dataset", ray.data.Dataset

    num_cpus: float | None = None
    num_gpus: float | None = None
    concurrency: int | tuple[int, int] | None = None

    def columns(self, rows: Any) -> list[Any]:
        schema = rows.schema()
        return [] if schema is None else list(schema.names)

    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        return Blocks(rows.select_columns([*evidence.names, *others]))

    def score(self, request: Request, rows: Any) -> Any:
        columns = rows.columns(fetch_if_missing=False)
        if columns:
            rows = rows.select_columns(request.announced(columns).columns)
        threads = max(1, int(self.num_cpus or 1))
        if self.num_gpus is None and self.concurrency is None:
            return rows.map_batches(Worker(request, threads), **WHOLE_BLOCKS, num_cpus=self.num_cpus)
        return rows.map_batches(_with_task, **WHOLE_BLOCKS).map_batches(
            Worker,
            **WHOLE_BLOCKS,
            fn_constructor_kwargs={"request": request, "threads": threads},
            compute=self._pool(),
            num_cpus=self.num_cpus,
            num_gpus=self.num_gpus,
        )

    def _pool(self) -> Any:
        if self.concurrency is None:
            return ray.data.ActorPoolStrategy()
        if isinstance(self.concurrency, int):
            return ray.data.ActorPoolStrategy(size=self.concurrency)
        min_size, max_size = self.concurrency
        return ray.data.ActorPoolStrategy(min_size=min_size, max_size=max_size)


def posterior(
    tac: TAC,
    rows: Any,
    keep: Names = (),
    names: Renamed = None,
    likelihoods: Names = (),
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
    return RayBackend(num_cpus, num_gpus, concurrency).posterior(tac, rows, keep, names, likelihoods)


def log_evidence(
    tac: TAC,
    rows: Any,
    keep: Names = (),
    names: Renamed = None,
    likelihoods: Names = (),
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """The logarithm of the probability of the evidence for every row of a Ray Dataset: a column `log_evidence`.

    Parameters are those of `posterior`. Where the evidence is impossible, it is minus infinity.
    """
    return RayBackend(num_cpus, num_gpus, concurrency).log_evidence(tac, rows, keep, names, likelihoods)


def mpe(
    tac: TAC,
    rows: Any,
    keep: Names = (),
    names: Renamed = None,
    likelihoods: Names = (),
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
    return RayBackend(num_cpus, num_gpus, concurrency).mpe(tac, rows, keep, names, likelihoods)


def sample(
    tac: TAC,
    rows: Any,
    keep: Names = (),
    names: Renamed = None,
    likelihoods: Names = (),
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
    request = Request(tac, SampleColumns(), keep, names, likelihoods)
    return RayBackend(num_cpus, num_gpus, concurrency).scored(request, rows)


class Worker:
    """Answers one batch of rows after the other: in tasks, or in an actor.

    Tasks run in processes that Ray keeps for the next ones, and all of a process share one copy of the query.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self._request, self._quota = Remote(request), machine.Quota(threads=threads)
        self._scorer: Scorer | None = None
        self._task: int | None = None
        self._first = 0  # row of the next batch, in its task

    def __call__(self, batch: Any) -> Any:
        """The answers to a pyarrow table."""
        task = current_task()
        if TASK_COLUMN in batch.column_names:
            task = batch[TASK_COLUMN][0].as_py() if len(batch) else None
            batch = batch.drop_columns([TASK_COLUMN])
        if self._scorer is None:
            self._scorer = self._request.get().scorer(batch.column_names)
        first = self._first if task is not None and task == self._task else 0
        self._task, self._first = task, first + len(batch)
        with machine.within(self._quota):
            return self._scorer.with_kept(batch, task, first)


def _with_task(batch: Any) -> Any:
    """Add the number of the task as a column: in an actor, Ray calls the worker from a thread that has no task."""
    task = current_task()
    if task is None:
        return batch
    return batch.append_column(TASK_COLUMN, pa.repeat(pa.scalar(task, pa.int32()), len(batch)))


def current_task() -> int | None:
    """The number of the running task, or None where Ray, which has no public function for it, does not tell."""
    try:
        from ray.data._internal.execution.interfaces import TaskContext

        context = TaskContext.get_current()
        return None if context is None else int(context.task_idx)
    except (ImportError, AttributeError, TypeError):
        return None


class Blocks(ClusterParts[Tables]):
    """The blocks of a Dataset, which stream through the workers, so that they need not all be in memory at once."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def map(self, work: Callable[[Tables, int | None], S]) -> Distributed[S]:
        """The result of the work on every block, in Ray's object store."""
        with plain_errors():
            packed = self.rows.map_batches(partial(_packed, work), **WHOLE_BLOCKS, zero_copy_batch=True)
            unpacked = [_unpacked.remote(block) for block in packed.to_arrow_refs()]
            numbers = ray.get([number for number, _ in unpacked])
        order = sorted((i for i, number in enumerate(numbers) if number is not None), key=lambda i: numbers[i])
        if not order:  # Ray does no work on blocks without rows
            return RayParts([ray.put([apply_work(work, [], 0)])])
        return RayParts([unpacked[i][1] for i in order])


def _packed(work: Callable[[Tables, int | None], Any], rows: Any) -> Any:
    """One row from a block: its number, and a pickle of the result of the work."""
    number = current_task()
    packed = pickle.dumps(apply_work(work, [rows], 0 if number is None else number), protocol=5)
    return pa.table({"number": [number], "pickle": pa.array([packed], pa.large_binary())})


class RayParts(ClusterParts[T]):
    """Objects in Ray's store, each a list of things that belong together."""

    def __init__(self, refs: Sequence[Any]) -> None:
        self.refs = refs

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """The result of the work on every part, in Ray's object store."""
        carried = ray.put(work)
        return RayParts([_each.remote(carried, ref, number) for number, ref in enumerate(self.refs)])

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours."""
        carried = ray.put((work, add))
        sums = [_sum.remote(carried, ref, number) for number, ref in enumerate(self.refs)]
        total = tree_sum(sums, lambda group: _summed.remote(carried, *group))
        with plain_errors():
            return ray.get(total)  # type: ignore[no-any-return]


@ray.remote(num_returns=2)
def _unpacked(block: Any) -> tuple[int | None, list[Any]]:
    """The number of a block, and the things in it; none, where a block was empty."""
    if not len(block):  # then it may have no columns
        return None, []
    numbers, packed = (column.to_pylist() for column in block.columns)
    return numbers[0], [pickle.loads(one) for one in packed]


@ray.remote
def _each(work: Any, things: list[Any], number: int) -> list[Any]:
    return [apply_work(work, thing, number) for thing in things]


@ray.remote
def _sum(carried: Any, things: list[Any], number: int) -> Any:
    work, add = carried
    return reduce(add, [apply_work(work, thing, number) for thing in things])


@ray.remote
def _summed(carried: Any, *several: Any) -> Any:
    return reduce(carried[1], several)
