"""Which variable to observe next: what each is expected to tell about a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tacit.answer import warn_impossible
from tacit.engines.engine import Sweep
from tacit.engines.results import Array
from tacit.errors import TooLargeError
from tacit.evidence import EvidenceLike
from tacit.floats import Floats, divide
from tacit.marginals import weighted
from tacit.query import Query
from tacit.words import large

MAX_SWEEPS = 1024  # joint states of several query variables up to which each has a sweep down of its own


def go_on() -> None:
    """No pause."""


def information(
    query: Query, evidence: EvidenceLike | None = None, pause: Callable[[], None] = go_on
) -> dict[str, Floats]:
    """By how much the entropy of a query is expected to drop if a variable's state is observed: see `TAC.information`.

    That is the mutual information of the two given the evidence. Their joint distribution comes from derivatives of the
    query's joint by the likelihoods of all variables, one sweep down for each state of the query. `pause` is called
    between sweeps, and may raise to end the work.
    """
    require_few_sweeps(query, "information")
    names = query.network.variables
    asked = query.companion(replace(query.question, evidence=names, index=False))
    found: dict[str, list[Floats]] = {name: [] for name in names}
    impossible = []
    rows = query.read(evidence)
    engine = asked.engine().runner(rows.rows, Sweep.FORWARD, Sweep.HELD)
    at_once = max(1, engine.gradient_chunk // engine.program.outputs)  # pairs of states take as much room as values
    if not rows.rows:
        return {name: np.empty(0) for name in names}
    for block in rows.blocks(at_once):
        pause()
        results = engine.run(block.columns, block.rows)
        joint = results.joint
        total = joint.sum(axis=0)
        impossible.append(total <= 0)
        pairs: dict[str, list[Array]] = {name: [] for name in names}
        for state in range(len(joint)):
            pause()
            seeds = np.zeros_like(joint)
            seeds[state] = divide(np.ones_like(total), total, otherwise=0.0)
            swept = engine.gradients(block.columns, block.rows, seeds, results.exponent, through_selection=False)
            for name, by_state in swept.likelihoods.items():
                column = block.columns.get(name)
                pairs[name].append(weighted(np.ones((1, 1)) if column is None else column.likelihoods(), by_state))
        for name, of_states in pairs.items():
            # without likelihoods, its state is known to the program
            drop = mutual_information(np.stack(of_states)) if of_states else np.zeros(block.rows)
            known = (total <= 0) | (name in block.columns and block.columns[name].observed)
            found[name].append(np.where(known, np.nan, drop))
    warn_impossible(np.concatenate(impossible), "their information is NaN")
    return {name: np.concatenate(blocks) for name, blocks in found.items()}


def require_few_sweeps(query: Query, what: str) -> None:
    """An error where several query variables have so many joint states that a sweep for each would take hours."""
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
