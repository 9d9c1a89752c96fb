"""How sure a posterior is: intervals from the answers under many networks, or from the derivatives of one answer.

The delta method: a small change of the tables moves the log-odds of a state in proportion to it, so their variance
follows from that of the tables. Intervals are symmetric in log-odds, and stay between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, divide, flat
from tacit.base.text import shown
from tacit.engines.arrays.by_row import ByRow
from tacit.engines.results import Array
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.distinct import distinct
from tacit.evidence.read import EvidenceLike
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.credible import PARTS, Credible
from tacit.query.answers.probabilities import index_of
from tacit.query.ensembles.base_ensemble import AnyEnsemble
from tacit.query.ensembles.dirichlet import Key
from tacit.query.marginals import no_pause, require_few_sweeps
from tacit.query.query import Query
from tacit.query.sensitivity import COVARIANCES, by_densities
from tacit.query.under_draws import UnderDraws

SURE = "their intervals are NaN, since their posterior is under some of the networks"
Parts = dict[str, Floats]


def credible(
    query: Query, evidence: EvidenceLike | None, ensemble: AnyEnsemble, level: float, method: str
) -> Credible[Floats]:
    """Intervals of the posterior; see `TAC.credible`."""
    if not isinstance(level, float | np.floating) or not 0 < level < 1:
        raise TacitError(f"level is {shown(level)}, expected a probability between 0 and 1, such as 0.9")
    methods = {"draws": by_draws, "delta": by_delta}
    if method not in methods:
        raise TacitError(f"method is {shown(method)}, expected one of {', '.join(methods)}")
    query.require_query("credible interval")
    query.require_posterior()
    under = query.under(ensemble)
    rows = distinct(known := under.query.read(evidence))
    parts = {part: rows.for_all(own) for part, own in methods[method](under, rows.known, float(level)).items()}
    warn_impossible(np.isnan(flat(parts["mean"])[:, 0]), SURE)
    variables = [query.network.variable(name) for name in query.question.query]
    parts = {part: own.reshape(-1, *query.states_asked) for part, own in parts.items()}
    return Credible(parts, float(level), method, variables, index_of(evidence, known.rows))


def by_draws(under: UnderDraws[Query], known: Evidence, level: float) -> Parts:
    """Means and quantiles over the answers under each network, of some rows at a time."""
    parts = {part: np.empty((known.rows, under.states)) for part in PARTS}
    for rows, answers in under.posteriors(known):
        parts["mean"][rows] = answers.mean(axis=0, dtype=np.float64)
        ordered = np.ascontiguousarray(np.moveaxis(answers, 0, -1))  # (rows, states, draws)
        ordered.sort(axis=-1)  # with the vectors of NumPy, in a fourth of the time of np.quantile
        parts["low"][rows], parts["high"][rows] = (
            _quantile(ordered, (1 - level) / 2),
            _quantile(ordered, (1 + level) / 2),
        )
    return parts


def _quantile(ordered: Array, share: float) -> Array:
    """A quantile over the last axis of ordered numbers, on a line between two; NaN where one is, which is the last."""
    place = share * (ordered.shape[-1] - 1)
    first = min(int(place), ordered.shape[-1] - 1)
    below, above = ordered[..., first], ordered[..., min(first + 1, ordered.shape[-1] - 1)]
    found = below + (place - first) * (above - below)
    return np.where(np.isnan(ordered[..., -1]), np.nan, found)


def by_delta(under: UnderDraws[Query], known: Evidence, level: float) -> Parts:
    """The answers under the mean of the networks, and intervals from their derivatives, of some rows at a time."""
    query = under.query
    require_few_sweeps(query, "an interval by method='delta'")
    if under.ensemble.slopes:
        node = next(iter(under.ensemble.slopes))
        raise TacitError(f"node {node!r}: slopes differ, which have no derivatives here; use method='draws'")
    asked = query.companion(replace(query.question, every_state=True, index=False, by_row=True))
    engine, quantile = ByRow(asked.program, *asked.numbers()), NormalDist().inv_cdf((1 + level) / 2)
    parts = {part: np.empty((known.rows, under.states)) for part in PARTS}
    for rows, block in blocks(known.columns, known.rows, engine.gradient_chunk):
        found = engine.derivatives(block.columns, block.rows, no_pause)
        slopes = {**found.by_table, **by_densities(block.columns, found.by_log)}
        posterior = np.where(found.posterior.sum(axis=0) > 0, found.posterior, np.nan).T
        of_odds = {key: _of_log_odds(own, posterior) for key, own in slopes.items()}
        half = quantile * np.sqrt(_variances(under.ensemble, of_odds, posterior.shape))
        parts["mean"][rows] = posterior
        parts["low"][rows], parts["high"][rows] = _shifted(posterior, -half), _shifted(posterior, half)
    return parts


def _of_log_odds(slopes: Array, posterior: Floats) -> Floats:
    """The derivatives of log-odds (rows, states, entries...), from those of the joint divided by its sum."""
    own = np.moveaxis(slopes, -1, 0)  # (rows, states, entries...)
    shape = (*posterior.shape, *[1] * (own.ndim - 2))
    chance, rest = posterior.reshape(shape), _of_others(posterior).reshape(shape)
    return np.asarray(divide(own, chance, otherwise=0.0) - divide(_of_others(own), rest, otherwise=0.0))


def _of_others(own: Array) -> Array:
    """Sums over all other states, (rows, states, ...): without subtraction, which leaves nothing beside almost 1."""
    none = np.zeros_like(own[:, :1])
    before = np.cumsum(np.concatenate([none, own[:, :-1]], axis=1), axis=1)
    after = np.cumsum(np.concatenate([none, own[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    return np.asarray(before + after)


def _variances(ensemble: AnyEnsemble, slopes: Mapping[Key, Floats], shape: tuple[int, ...]) -> Floats:
    """The variances (rows, states) of what has these slopes (rows, states, entries...).

    Exact ones of tables whose distribution is known; all others vary as they do in the networks.
    """
    total, known = np.zeros(shape), set[Key]()
    for own in ensemble.dirichlets:
        known.update(own.keys)
        if several := [slopes[key] for key in own.keys if key in slopes]:
            total += own.variances(sum(several, np.zeros(several[0].shape)))
    shifts: Floats | None = None
    for key, tables in ensemble.draws(node for node, _ in slopes).tables.items():
        if key in known or key not in slopes:
            continue
        if len(ensemble) < 2:
            raise TacitError(f"node {key[0]!r} has no known variances, and one network tells none; draw more")
        weight = _once(key[1], slopes[key]).reshape(*shape, -1)
        shift = np.tensordot(flat(tables - tables.mean(axis=0)), weight, axes=(1, 2))  # (draws, rows, states)
        shifts = shift if shifts is None else shifts + shift
    return total if shifts is None else total + shifts.var(axis=0, ddof=1)


def _once(part: str, slopes: Floats) -> Floats:
    """Slopes that count each entry by itself: that of a covariance is one together with its mirror image."""
    return slopes * (0.5 + 0.5 * np.eye(slopes.shape[-1])) if part == COVARIANCES else slopes


def _shifted(posterior: Floats, by: Floats) -> Floats:
    """Probabilities whose log-odds have moved; 0 and 1 stay, and so does what is below the range of float64."""
    rest = _of_others(posterior)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(1 / (1 + np.exp(np.log(rest) - np.log(posterior) - by)))
