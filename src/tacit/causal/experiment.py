"""The bounds of Tian and Pearl: what observations and an experiment together say of the probabilities of causation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.base.text import shown
from tacit.causal.causal_bounds import KINDS, CausalBounds, Interval
from tacit.causal.events import Causation
from tacit.causal.linear_program import least
from tacit.evidence.column import Evidence
from tacit.query.network import Network
from tacit.query.tac import compile


def with_experiment(net: Network, question: Causation, known: Evidence, experiment: Sequence[Any]) -> CausalBounds:
    """The bounds of Tian and Pearl: from how X and Y were seen together, and how Y answers when X is set.

    A row is described by its X (x, x', or another state), and by what Y would be with x and with x'.
    """
    done = _probabilities(experiment, known.rows)
    tac = compile(net, [question.x, question.y], [*known.columns])
    seen = tac.posterior(known)
    x, other, y = question.present.state, question.instead.state, question.effect.state
    happened = seen[..., y]
    not_happened = np.delete(seen, y, axis=-1).sum(axis=-1)
    ends = {kind: np.full((2, known.rows), np.nan) for kind in KINDS}
    for row in np.flatnonzero(~np.isnan(seen[:, 0, 0])):
        together = (happened[row, x], not_happened[row, x], happened[row, other], not_happened[row, other])
        for kind, (low, high) in _of_one_row(together, (done[0][row], done[1][row])).items():
            ends[kind][:, row] = low, high
    return CausalBounds.of((Interval(*ends[kind]) for kind in KINDS), exact=True)


def _of_one_row(together: tuple[float, ...], done: tuple[float, float]) -> dict[str, tuple[float, float]]:
    """The bounds from P(x, y), P(x, not y), P(x', y), P(x', not y), and P(y | do(x)), P(y | do(x'))."""
    q = np.arange(12).reshape(3, 2, 2)  # X is x, x' or another; Y with x is y or not; Y with x' is y or not
    sums = [q[0, 0], q[0, 1], q[1, :, 0], q[1, :, 1], q[2], q[:, 0], q[:, :, 0]]
    totals = np.array([*together, max(0.0, 1.0 - sum(together)), *done])
    matrix = np.array([np.isin(q, own).ravel() for own in sums], dtype=float)
    events = {
        "necessity": (q[0, 0, 1], together[0]),
        "sufficiency": (q[1, 0, 1], together[3]),
        "both": (q[:, 0, 1], 1.0),
    }
    answers = {}
    for kind, (places, weight) in events.items():
        aim = np.isin(q, places).ravel().astype(float)
        ends = [least(sign * aim, matrix, totals) for sign in (1.0, -1.0)]
        if ends[0] is None or ends[1] is None:
            raise NetworkError("experiment: these probabilities cannot go with what the network says of the cause and "
                               "the effect; P(Y = y | do(X = x)) is at least P(X = x, Y = y), for example")  # fmt: skip
        low, high = (float(np.clip(aim @ end / weight, 0.0, 1.0)) if weight > 0 else np.nan for end in ends)
        answers[kind] = low, high
    return answers


def _probabilities(experiment: Any, rows: int) -> list[Floats]:
    """P(y | do(x)) and P(y | do(x')), (rows,) each."""
    expected = "expected two probabilities, P(Y = y | do(X = x)) and P(Y = y | do(X = x')), numbers or one for each row"
    try:
        done = [np.broadcast_to(np.asarray(p, dtype=float), (rows,)) for p in experiment]
    except (TypeError, ValueError):
        done = []
    if len(done) != 2 or not all(((p >= 0) & (p <= 1)).all() for p in done):
        raise NetworkError(f"experiment is {shown(experiment)}; {expected}")
    return done
