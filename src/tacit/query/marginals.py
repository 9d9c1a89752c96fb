"""The posterior of every variable at once: derivatives by likelihoods, from one forward and one backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tacit.base.floats import Floats, divide
from tacit.base.progress import Progress
from tacit.compiler.question import Question
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import Array
from tacit.evidence.column import Column, Evidence, blocks
from tacit.evidence.distinct import distinct
from tacit.evidence.read import EvidenceLike
from tacit.query.answer import warn_impossible
from tacit.query.probabilities import Labelling, Marginals
from tacit.query.query import Query

WORTH_COMPILING = 2e8  # multiply-adds of all rows from which a program for their kind of evidence is tried
CHEAPER = 2  # times, for it to be taken


def go_on() -> None:
    """No pause."""


def marginals(query: Query, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
    """The posterior of every variable, each (rows, states): see `TAC.marginals`."""
    rows = distinct(query.read(evidence))
    posteriors = _of_rows(query, rows.known)
    if posteriors:
        first = next(iter(posteriors.values()))
        warn_impossible(rows.for_all(np.isnan(first[:, 0])), "their posteriors are NaN")
    return {name: rows.for_all(array) for name, array in posteriors.items()}


def labelled(query: Query, posteriors: Mapping[str, Floats], evidence: EvidenceLike | None) -> Marginals:
    """Posteriors with the names of states and rows."""
    label = Labelling.of(evidence)
    return Marginals({name: label(array, [query.network.variable(name)]) for name, array in posteriors.items()})


def _of_rows(query: Query, known: Evidence) -> dict[str, Floats]:
    """The posteriors of some rows; NaN where they are impossible."""
    net = query.network
    asked = companion_for(query, replace(query.question, query=()), known)
    engine = asked.engine().runner(known.rows, Sweep.HELD)
    posteriors = {name: np.empty((known.rows, net.variable(name).card), query.dtype) for name in net.variables}
    with Progress("marginals", known.rows) as progress:
        for rows, block in blocks(known.columns, known.rows, engine.gradient_chunk):
            swept = sweeps(engine, block)
            total = np.where(swept.total > 0, swept.total, np.nan)
            for name, whole in posteriors.items():
                (joint,) = swept.joints(block.columns, name)
                np.divide(joint, total, out=whole[rows].T)
            progress.advance(block.rows)
    return posteriors


def companion_for(query: Query, question: Question, known: Evidence) -> Query:
    """A query with likelihoods of all variables, by which derivatives are taken.

    Of many rows, those that every row observes have none, if that is much less work: their states index tables. Not
    where tests are decided, which could come out otherwise at a tie.
    """
    general = query.companion(replace(question, evidence=query.network.variables, index=False))
    work = general.program.cost.multiply_adds
    given = dict(question.given)
    certain = tuple(sorted({*question.hard, *known.certain}.difference(given, question.do)))
    if not certain or query.network.testing_nodes or work * known.rows < WORTH_COMPILING:
        return general
    special = query.companion(replace(question, evidence=query.network.variables, hard=certain))
    return special if CHEAPER * special.program.cost.multiply_adds <= work else general


class Swept(NamedTuple):
    """Derivatives of p*(q, evidence) by likelihoods, (states, rows) by variable, for each state q of the query.

    `total` (rows,) is p*(evidence). The numbers of a row are all multiplied by the same power of two.
    """

    total: Array
    derivatives: Sequence[Mapping[str, Array]]

    def joints(self, columns: Mapping[str, Column], name: str) -> list[Array]:
        """The probability of each state of a variable with q and the evidence: (states, rows) for each q."""
        column = columns.get(name)
        if name not in self.derivatives[0]:  # its state is known to the program
            return [(np.ones((1, 1)) if column is None else column.likelihoods()) * self.total]
        by_state = [derivatives[name] for derivatives in self.derivatives]
        if column is None:
            return by_state
        likelihoods = column.likelihoods()
        return [weighted(likelihoods, own) for own in by_state]


def sweeps(engine: Engine, known: Evidence, pause: Callable[[], None] = go_on) -> Swept:
    """One sweep for each state of the query. `pause` is called before each, and may raise to end the work."""
    plain = _in_plain_floats(engine, known, pause)
    if plain is not None:
        return plain
    results, derivatives = engine.run(known.columns, known.rows), []
    total = results.joint.sum(axis=0)
    inverse = divide(np.ones_like(total), total, otherwise=0.0)
    for seeds in _units(engine, known.rows):
        pause()
        made = engine.gradients(known.columns, known.rows, seeds * inverse, results.exponent, through_selection=False)
        derivatives.append(made.likelihoods)
    return Swept(np.asarray(total > 0, dtype=total.dtype), derivatives)


def _in_plain_floats(engine: Engine, known: Evidence, pause: Callable[[], None]) -> Swept | None:
    """Sweeps without a run before: likelihoods times derivatives by them sum to p*. None where rows are in doubt."""
    derivatives = []
    for seeds in _units(engine, known.rows):
        pause()
        made = engine.attempt_gradients(known.columns, known.rows, seeds, through_selection=False)
        if made.imprecise or not made.gradients.likelihoods or not made.gradients.finite:
            return None
        derivatives.append(made.gradients.likelihoods)
    joints = Swept(np.empty(0), derivatives).joints(known.columns, next(iter(derivatives[0])))
    return Swept(np.sum([joint.sum(axis=0) for joint in joints], axis=0), derivatives)


def _units(engine: Engine, rows: int) -> Iterator[Floats]:
    """Derivatives of the joint of each state of the query by the joint: (states, rows)."""
    for unit in np.eye(engine.program.outputs):
        yield np.broadcast_to(unit[:, None], (len(unit), rows))


def weighted(likelihood: Floats, derivative: Array) -> Array:
    """Likelihoods times derivatives by them: those of states that are ruled out may leave the range of floats."""
    return np.multiply(likelihood, derivative, out=np.zeros_like(derivative), where=likelihood > 0)
