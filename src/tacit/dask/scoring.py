"""Scoring on Dask: the answers to all rows of a DataFrame, or the posteriors of an Array, lazily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa

from tacit import machine
from tacit.answer import quietly
from tacit.assignments import checked_seed
from tacit.clusters.remote import Remote
from tacit.clusters.scoring import Request, Scorer, posteriors
from tacit.clusters.work import ONE_THREAD
from tacit.errors import EvidenceError, TacitError
from tacit.floats import Floats
from tacit.rows.places import in_partition
from tacit.tac import TAC
from tacit.wanted import LogEvidence, MostProbable, Samples

NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}  # others have a missing value of their own


def posterior(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The posterior of the query for every row of a Dask DataFrame or Array, computed where the rows are.

    Nothing is computed yet: the answer is another DataFrame, with the same partitions and index, or another Array.

    Parameters
    ----------
    tac
        The compiled query.
    rows
        A DataFrame. Columns named like variables in `tac.evidence` are read as `tac.posterior` reads a frame; columns
        `A.lo` and `A.hi` hold one likelihood for each state of `A`. All other columns are left alone. Or an Array
        (rows, variables) of floats, as `tac.posterior` takes it; the answer is an Array (rows, states).
    keep
        Columns of the DataFrame that the answer begins with.
    names
        Other names for columns of the result, which are named `QUERY.STATE`, or `A.true,B.lo` for a joint posterior.
    likelihoods
        Variables of two states whose column holds likelihoods of the first state. Needed where a partition may happen
        to hold only 0s and 1s, which could be codes.

    A row whose evidence has probability 0 gets NaN. An error in the rows names the partition, and the row in it; both
    are counted from 0.

    >>> import dask.dataframe, pandas, tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> frame = pandas.DataFrame({"id": [7, 8], "A": ["true", None], "C": ["lo", "hi"]})
    >>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
    >>> scored = posterior(tac, rows, keep=["id"])
    >>> print(scored.compute(scheduler="sync").round(4))
       id  B.true  B.false
    0   7  0.9000   0.1000
    1   8  0.5043   0.4957
    """
    if isinstance(rows, da.Array):
        tac.require_query("posterior")
        tac.require_posterior()
        _refuse_names(keep, names, likelihoods)
        return _scored_array(tac, rows, tuple(tac.network.variable(name).card for name in tac.question.query))
    return _scored(Request(tac, posteriors(tac), keep, names, likelihoods), rows)


def log_evidence(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The logarithm of the probability of the evidence for every row: a column `log_evidence`, or an Array (rows,).

    Parameters are those of `posterior`. Where the evidence is impossible, it is minus infinity.

    >>> import dask.dataframe, pandas, tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> frame = pandas.DataFrame({"A": ["true", None], "C": ["lo", "hi"]})
    >>> scored = log_evidence(tac, dask.dataframe.from_pandas(frame, npartitions=2))
    >>> scored.compute(scheduler="sync")["log_evidence"].round(4).tolist()
    [-2.5903, -0.5534]
    """
    if isinstance(rows, da.Array):
        _refuse_names(keep, names, likelihoods)
        return _scored_array(tac, rows, None)
    return _scored(Request(tac, LogEvidence(), keep, names, likelihoods), rows)


def mpe(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The states of all variables that are jointly most probable, for every row of a Dask DataFrame.

    The result has a column for each variable, named like it, and `log_probability`. Parameters are as in `posterior`.
    Of a column that is kept, the result of the same name needs another one. Where the evidence is impossible, states
    are missing. Labels that are whole numbers are of type Int64, which has a missing value.

    >>> import dask.dataframe, pandas, tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query=None, evidence=["A", "C"])
    >>> frame = pandas.DataFrame({"A": ["true", None], "C": ["lo", "hi"]})
    >>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
    >>> scored = mpe(tac, rows, keep=["C"], names={"C": "C.best"})
    >>> print(scored.compute(scheduler="sync").round(4))
        C      A     B C.best  log_probability
    0  lo   true  true     lo          -2.6956
    1  hi  false  true     hi          -1.4065
    """
    return _scored(Request(tac, MostProbable(), keep, names, likelihoods), rows)


def sample(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    seed: int | None = 0,
) -> Any:
    """One draw of all variables given the evidence, for every row of a Dask DataFrame.

    The result has a column for each variable, named like it. Parameters are those of `posterior`. The same seed gives
    the same draws if the rows are divided into the same partitions; None gives others at each call.

    >>> import dask.dataframe, pandas, tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query=None, evidence=["A", "C"])
    >>> frame = pandas.DataFrame({"A": ["true", None], "C": ["lo", "hi"]})
    >>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
    >>> sample(tac, rows).compute(scheduler="sync")["C"].tolist()
    ['lo', 'hi']
    """
    return _scored(Request(tac, Samples((checked_seed(seed),)), keep, names, likelihoods), rows)


def _scored(request: Request, rows: Any) -> Any:
    """The answers to all rows of a DataFrame."""
    if not isinstance(rows, dd.DataFrame):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Dask DataFrame (for posterior and log_evidence, "
            "also an Array); rows that are in memory can be given to the method of the compiled query"
        )
    scorer = request.announced(list(rows.columns))
    needed = rows[scorer.columns]
    return needed.map_partitions(_answers, scorer, meta=_answers(needed._meta, scorer), align_dataframes=False)


def _answers(frame: Any, scorer: Scorer, partition_info: Mapping[str, Any] | None = None) -> Any:
    """The answers to the rows of a partition, with their index."""
    partition = None if partition_info is None else partition_info["number"]
    with machine.within(ONE_THREAD):
        result = scorer.score(frame, partition).to_pandas(types_mapper=NULLABLE.get)
    result.index = frame.index
    return pd.concat([frame[list(scorer.keep)], result], axis=1) if scorer.keep else result


def _scored_array(tac: TAC, rows: Any, states: tuple[int, ...] | None) -> Any:
    """The posteriors (rows, states...) of an Array; without states, the logarithms (rows,)."""
    _check_array(tac, rows)
    tac.numbers()  # an error, now rather than in a worker, where some are not set
    whole = rows.rechunk({1: -1})
    dtype = np.float64 if states is None else np.dtype(tac.dtype)
    sizes = states or ()
    return da.map_blocks(
        _answer_array,
        whole,
        Remote(tac),
        sizes=states,
        dtype=dtype,
        chunks=(whole.chunks[0], *((size,) for size in sizes)),
        drop_axis=[1] if states is None else [],
        new_axis=list(range(2, len(sizes) + 1)),
        meta=np.empty((0,) * (len(sizes) + 1), dtype=dtype),
    )


def _answer_array(
    block: Floats, query: Remote[TAC], sizes: tuple[int, ...] | None, block_id: Sequence[int] | None = None
) -> Floats:
    """The posteriors of a block of rows, or the logarithms of the probabilities of their evidence."""
    tac = query.get()
    if not len(block):
        return np.empty((0, *(sizes or ())), dtype=np.float64 if sizes is None else tac.dtype)
    try:
        with machine.within(ONE_THREAD), quietly():
            return tac.log_evidence(block) if sizes is None else tac.posterior(block)
    except EvidenceError as error:
        raise in_partition(error, None if block_id is None else block_id[0]) from None


def _check_array(tac: TAC, rows: Any) -> None:
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


def _refuse_names(*given: Any) -> None:
    """An error where something is said about the columns of an array."""
    if any(given):
        raise TacitError("keep=, names= and likelihoods= name columns, and an Array has no names; pass a DataFrame")
