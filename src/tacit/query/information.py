"""Which variable to observe next: what each is expected to tell about a query."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats, divide
from tacit.base.progress import Progress
from tacit.base.text import large
from tacit.engines.engine import Sweep
from tacit.engines.results import Array
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.distinct import distinct
from tacit.evidence.read import EvidenceLike
from tacit.query.answer import warn_impossible
from tacit.query.marginals import Swept, companion_for, go_on, sweeps
from tacit.query.query import Query

MAX_SWEEPS = 1024  # joint states of several query variables up to which each has a sweep down of its own


def information(
    query: Query, evidence: EvidenceLike | None = None, pause: Callable[[], None] = go_on
) -> dict[str, Floats]:
    """By how much the entropy of a query is expected to drop if a variable's state is observed: see `TAC.information`.

    That is the mutual information of the two given the evidence. Their joint distribution comes from derivatives of the
    query's joint by the likelihoods of all variables, one sweep down for each state of the query. `pause` is called
    between sweeps, and may raise to end the work.
    """
    require_few_sweeps(query, "information")
    rows = distinct(query.read(evidence))
    drops, impossible = _of_rows(query, rows.known, pause)
    warn_impossible(rows.for_all(impossible), "their information is NaN")
    return {name: rows.for_all(drop) for name, drop in drops.items()}


def _of_rows(query: Query, known: Evidence, pause: Callable[[], None]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """The expected drops of entropy in some rows, and which rows are impossible."""
    asked = companion_for(query, query.question, known)
    states = asked.program.outputs
    engine = asked.engine().runner(known.rows * states, Sweep.HELD)
    drops = {name: np.empty(known.rows) for name in query.network.variables}
    impossible = np.zeros(known.rows, dtype=np.bool_)
    at_once = max(1, engine.gradient_chunk // states)  # pairs of states take as much room as values
    with Progress("information", known.rows * states) as progress:
        for rows, block in blocks(known.columns, known.rows, at_once):

            def between_sweeps(done: int = block.rows) -> None:
                pause()
                progress.advance(done)

            swept = sweeps(engine, block, between_sweeps)
            impossible[rows] = swept.total <= 0
            for name, drop in drops.items():
                observed = name in block.columns and block.columns[name].observed
                drop[rows] = np.where(impossible[rows] | observed, np.nan, _drop(swept, block, name))
    return drops, impossible


def _drop(swept: Swept, known: Evidence, name: str) -> Floats:
    """By how much a variable is expected to tell, (rows,), whether or not it is observed."""
    if name not in swept.derivatives[0]:  # its state is known to the program
        return np.zeros(known.rows)
    both = np.stack(swept.joints(known.columns, name))
    return mutual_information(divide(both, swept.total, otherwise=0.0))


def require_few_sweeps(query: Query, what: str) -> None:
    """An error without a query, and where a sweep for each of its joint states would take hours."""
    query.require_query(what)
    query.require_posterior()
    names = query.question.query
    states = math.prod(query.network.variable(name).card for name in names)
    if len(names) > 1 and states > MAX_SWEEPS:
        raise TooLargeError(
            f"{what} takes a sweep for every joint state of the query, and its {len(names)} variables have "
            f"{large(states)} (limit {MAX_SWEEPS:,}); ask about fewer variables at once"
        )


def mutual_information(both: Array) -> Floats:
    """The mutual information, in nats, of two variables whose joint distribution is (states, states, rows)."""
    apart = both.sum(axis=0, keepdims=True) * both.sum(axis=1, keepdims=True)
    ratio = divide(both, apart, otherwise=1.0)
    logs = np.log(ratio, out=np.zeros_like(ratio), where=both > 0)
    return np.asarray(np.maximum((both * logs).sum(axis=(0, 1)), 0.0))  # rounding may leave a little less than nothing
