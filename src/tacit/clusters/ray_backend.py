"""Ray: Datasets that are scored lazily, by tasks or by a pool of actors, and their blocks as parts to learn from."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import ray
import ray.data

from tacit.base import machine
from tacit.clusters.front import ClusterBackend
from tacit.clusters.learning import Tables
from tacit.clusters.plan import Columns
from tacit.clusters.remote import Remote
from tacit.clusters.scoring import Request, Scorer
from tacit.clusters.work import ClusterParts, apply_work, groups, identity, plain_errors, summed
from tacit.learn.partitions import Distributed

T = TypeVar("T")
S = TypeVar("S")

TASK = "tacit: the number of the task"  # a column that only messages need
BLOCKS = {"batch_format": "pyarrow", "batch_size": None}  # as they are: the types of their columns may differ


@dataclass(frozen=True)
class RayBackend(ClusterBackend):
    """Ray Datasets, and what is reserved for the tasks or actors that score them."""

    kind, table_type = "Ray Dataset", ray.data.Dataset

    num_cpus: float | None = None
    num_gpus: float | None = None
    concurrency: int | tuple[int, int] | None = None

    def columns(self, rows: Any) -> list[Any]:
        """The names of the columns of a Dataset."""
        schema = rows.schema()
        return [] if schema is None else list(schema.names)

    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        """The blocks of a Dataset."""
        return Blocks(rows.select_columns([*evidence.names, *others]))

    def score(self, request: Request, rows: Any) -> Any:
        """Another Dataset."""
        columns = rows.columns(fetch_if_missing=False)
        if columns:
            rows = rows.select_columns(request.announced(columns).columns)
        threads = max(1, int(self.num_cpus or 1))
        if self.num_gpus is None and self.concurrency is None:
            return rows.map_batches(Worker(request, threads), **BLOCKS, num_cpus=self.num_cpus)
        return rows.map_batches(_with_task, **BLOCKS).map_batches(
            Worker,
            **BLOCKS,
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
        fewest, most = self.concurrency
        return ray.data.ActorPoolStrategy(min_size=fewest, max_size=most)


class Worker:
    """Answers one batch of rows after the other: in tasks, or in an actor.

    Tasks run in processes that Ray keeps for the next ones, and all of a process share one copy of the query.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self._request, self._share = Remote(request), machine.Quota(threads=threads)
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


def current_task() -> int | None:
    """The number of the task that is running, where Ray tells: there is no public way to ask."""
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
        """What work makes of every block, in Ray's object store."""
        with plain_errors():
            made = self.rows.map_batches(_Packing(work), batch_size=None, batch_format="pyarrow", zero_copy_batch=True)
            unpacked = [_unpacked.remote(block) for block in made.to_arrow_refs()]
            numbers = ray.get([number for number, _ in unpacked])
        order = sorted((i for i, number in enumerate(numbers) if number is not None), key=lambda i: numbers[i])
        return RayParts([unpacked[i][1] for i in order])

    def sum(self, work: Callable[[Tables, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum over all blocks."""
        return self.map(work).sum(identity, add)


class _Packing:
    """Makes one row of a block: its number, and what work makes of it as a pickle."""

    def __init__(self, work: Callable[[Tables, int | None], Any]) -> None:
        self.work = work

    def __call__(self, rows: Any) -> Any:
        number = current_task()
        made = apply_work(self.work, [rows], 0 if number is None else number)
        return pa.table({"number": [number], "made": pa.array([pickle.dumps(made, protocol=5)], pa.large_binary())})


class RayParts(ClusterParts[T]):
    """Objects in Ray's store, each a list of things that belong together."""

    def __init__(self, refs: Sequence[Any]) -> None:
        self.refs = refs

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """What work makes of every part, in Ray's object store."""
        carried = ray.put(work)
        return RayParts([_each.remote(carried, ref, number) for number, ref in enumerate(self.refs)])

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours."""
        carried = ray.put((work, add))
        partial = [_sum.remote(carried, ref, number) for number, ref in enumerate(self.refs)]
        while len(partial) > 1:
            partial = [_summed.remote(carried, *group) for group in groups(partial)]
        with plain_errors():
            return ray.get(partial[0])  # type: ignore[no-any-return]


@ray.remote(num_returns=2)
def _unpacked(block: Any) -> tuple[int | None, list[Any]]:
    """The number of a block, and the things in it; none, where a block was empty."""
    numbers, made = (block.column(name).to_pylist() for name in ("number", "made"))
    return (numbers[0] if numbers else None), [pickle.loads(one) for one in made]


@ray.remote
def _each(work: Any, things: list[Any], number: int) -> list[Any]:
    return [apply_work(work, thing, number) for thing in things]


@ray.remote
def _sum(carried: Any, things: list[Any], number: int) -> Any:
    work, add = carried
    return summed(add, [apply_work(work, thing, number) for thing in things])


@ray.remote
def _summed(carried: Any, *several: Any) -> Any:
    return summed(carried[1], several)
