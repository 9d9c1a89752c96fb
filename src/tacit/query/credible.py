"""How sure a posterior is: intervals from the answers under many networks."""

from __future__ import annotations

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import shown
from tacit.evidence.read import EvidenceLike
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.credible import PARTS, Credible
from tacit.query.answers.probabilities import index_of
from tacit.query.ensembles.base_ensemble import AnyEnsemble
from tacit.query.query import Query

METHODS = ("draws",)
SURE = "their intervals are NaN, since their posterior is under some of the networks"


def credible(
    query: Query, evidence: EvidenceLike | None, ensemble: AnyEnsemble, level: float, method: str
) -> Credible[Floats]:
    """Intervals of the posterior; see `TAC.credible`."""
    if not isinstance(level, float | np.floating) or not 0 < level < 1:
        raise TacitError(f"level is {shown(level)}, expected a probability between 0 and 1, such as 0.9")
    if method not in METHODS:
        raise TacitError(f"method is {shown(method)}, expected one of {', '.join(METHODS)}")
    query.require_query("credible interval")
    query.require_posterior()
    parts = by_draws(query, evidence, ensemble, float(level))
    warn_impossible(np.isnan(parts["mean"].reshape(len(parts["mean"]), -1)[:, 0]), SURE)
    variables = [query.network.variable(name) for name in query.question.query]
    return Credible(parts, float(level), method, variables, index_of(evidence, len(parts["mean"])))


def by_draws(query: Query, evidence: EvidenceLike | None, ensemble: AnyEnsemble, level: float) -> dict[str, Floats]:
    """Means and quantiles over the answers under each network, of some rows at a time."""
    under = query.under(ensemble)
    known = under.query.read(evidence)
    parts = {part: np.empty((known.rows, *query.states_asked)) for part in PARTS}
    for rows, answers in under.posteriors(known):
        low, high = np.quantile(answers, [(1 - level) / 2, (1 + level) / 2], axis=0)
        for part, own in zip(PARTS, (answers.mean(axis=0, dtype=np.float64), low, high), strict=True):
            parts[part][rows] = own.reshape(-1, *query.states_asked)
    return parts
