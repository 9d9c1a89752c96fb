"""The blocks of a Ray Dataset as parts that learning sums over."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import ray
from ray.data import Dataset

from tacit.clusters.columns import Columns
from tacit.clusters.learning import Table, Tables
from tacit.clusters.work import ClusterParts, done, groups, itself, plain_errors, summed
from tacit.errors import TacitError
from tacit.learn.parts import Parts
from tacit.ray.tasks import current_task

T = TypeVar("T")
S = TypeVar("S")


def table(rows: Any) -> Table:
    """A Dataset as a table to learn from."""
    if not isinstance(rows, Dataset):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Ray Dataset; rows that are in memory can be given "
            "to tacit.estimate and tacit.fit"
        )
    names = list(schema.names) if (schema := rows.schema()) is not None else []

    def parts(evidence: Columns, others: Sequence[str]) -> Parts[Tables]:
        return Blocks(rows.select_columns([*evidence.names, *others]))

    return Table(names, parts)


class Blocks(ClusterParts[Tables]):
    """The blocks of a Dataset, which stream through the workers, so that they need not all be in memory at once."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def map(self, work: Callable[[Tables, int | None], S]) -> Parts[S]:
        """What work makes of every block, in Ray's object store."""
        with plain_errors():
            made = self.rows.map_batches(_Packing(work), batch_size=None, batch_format="pyarrow", zero_copy_batch=True)
            found = [_unpacked.remote(block) for block in made.to_arrow_refs()]
            numbers = ray.get([number for number, _ in found])
        order = sorted((i for i, number in enumerate(numbers) if number is not None), key=lambda i: numbers[i])
        return RayParts([found[i][1] for i in order])

    def sum(self, work: Callable[[Tables, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum over all blocks."""
        return self.map(work).sum(itself, add)


class _Packing:
    """Makes one row of a block: its number, and what work makes of it as a pickle."""

    def __init__(self, work: Callable[[Tables, int | None], Any]) -> None:
        self.work = work

    def __call__(self, rows: Any) -> Any:
        number = current_task()
        made = done(self.work, [rows], 0 if number is None else number)
        return pa.table({"number": [number], "made": pa.array([pickle.dumps(made, protocol=5)], pa.large_binary())})


class RayParts(ClusterParts[T]):
    """Objects in Ray's store, each a list of things that belong together."""

    def __init__(self, refs: Sequence[Any]) -> None:
        self.refs = refs

    def map(self, work: Callable[[T, int | None], S]) -> Parts[S]:
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
    return [done(work, thing, number) for thing in things]


@ray.remote
def _sum(carried: Any, things: list[Any], number: int) -> Any:
    work, add = carried
    return summed(add, [done(work, thing, number) for thing in things])


@ray.remote
def _summed(carried: Any, *several: Any) -> Any:
    return summed(carried[1], several)
