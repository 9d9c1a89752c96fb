"""Scoring on Ray, where a call also says what Ray reserves for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.clusters.ray_backend import RayBackend
from tacit.clusters.scoring import Request
from tacit.query.answer_columns import SampleColumns
from tacit.query.tac import TAC


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
    return RayBackend(num_cpus, num_gpus, concurrency).posterior(tac, rows, keep, names, likelihoods)


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
    return RayBackend(num_cpus, num_gpus, concurrency).log_evidence(tac, rows, keep, names, likelihoods)


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
    return RayBackend(num_cpus, num_gpus, concurrency).mpe(tac, rows, keep, names, likelihoods)


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
    request = Request(tac, SampleColumns(), keep, names, likelihoods)
    return RayBackend(num_cpus, num_gpus, concurrency).scored(request, rows)
