"""The posterior of every variable at once: derivatives by likelihoods, from one sweep up and one down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.answer import warn_impossible
from tacit.engines.engine import Sweep
from tacit.engines.results import Array
from tacit.evidence import EvidenceLike
from tacit.floats import Floats, divide
from tacit.probabilities import Labelling, Marginals
from tacit.query import Query


def marginals(query: Query, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
    """The posterior of every variable, each (rows, states): see `TAC.marginals`."""
    asked = query.companion(replace(query.question, query=(), evidence=query.network.variables, index=False))
    found: dict[str, list[Floats]] = {name: [] for name in query.network.variables}
    possible: list[NDArray[np.bool_]] = []
    known = query.read(evidence)
    engine = asked.engine().runner(known.rows, Sweep.FORWARD, Sweep.HELD)
    for block in known.blocks(engine.gradient_chunk):
        results = engine.run(block.columns, block.rows)
        total = results.joint[0]
        seeds = divide(np.ones_like(total), total, otherwise=0.0)
        swept = engine.gradients(block.columns, block.rows, seeds, results.exponent, through_selection=False)
        possible.append(total > 0)
        for name, column in found.items():
            card = query.network.variable(name).card
            likelihood = block.columns[name].likelihoods() if name in block.columns else np.ones((card, 1))
            product = weighted(likelihood, swept.likelihoods[name]) if name in swept.likelihoods else likelihood
            column.append(np.where(total > 0, product, np.nan).T)
    if not known.rows:
        return {name: np.empty((0, query.network.variable(name).card), query.dtype) for name in found}
    warn_impossible(~np.concatenate(possible), "their posteriors are NaN")
    return {name: np.concatenate(blocks) for name, blocks in found.items()}


def labelled(query: Query, found: dict[str, Floats], evidence: EvidenceLike | None) -> Marginals:
    """The same with the names of states and rows."""
    label = Labelling.of(evidence)
    return Marginals({name: label(array, [query.network.variable(name)]) for name, array in found.items()})


def weighted(likelihood: Floats, derivative: Array) -> Array:
    """Likelihoods times derivatives by them: those of states that are ruled out may leave the range of floats."""
    return np.multiply(likelihood, derivative, out=np.zeros_like(derivative), where=likelihood > 0)
