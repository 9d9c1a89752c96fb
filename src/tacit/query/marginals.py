"""Posteriors of all variables at once, and what each would tell about a query: both from derivatives by likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats, divide
from tacit.base.progress import Progress
from tacit.base.text import large
from tacit.compiler.question import Question
from tacit.engines.arrays.by_tables import has_posteriors, posteriors
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import Array
from tacit.evidence.column import Column, Evidence, blocks
from tacit.evidence.density_column import DensityColumn, lost_rows
from tacit.evidence.distinct import distinct
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import similar
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.probabilities import index_of
from tacit.query.numbers.continuous import mixture
from tacit.query.query import Query
from tacit.query.under_draws import UnderDraws

WORTH_COMPILING = 2e8  # multiply-adds of all rows from which a program for their kind of evidence is tried
WORTH_DERIVING = 2**18  # multiply-adds done once from which a program without likelihoods is looked at
MIN_SPEEDUP = 2  # for it to be taken
HEADROOM = 64  # powers of two by which sums and derivatives may exceed the seeds of a backward pass
MAX_SWEEPS = 1024  # joint states of several query variables up to which each has a backward pass of its own


def no_pause() -> None:
    """Do nothing between two backward passes."""


def marginals(query: Query, evidence: EvidenceLike | None) -> dict[str, Any]:
    """The posterior of every variable, each (rows, states), a `Mixture` of continuous ones: see `TAC.marginals`."""
    return marginals_and_weights(query, evidence)[0]


def marginals_and_weights(query: Query, evidence: EvidenceLike | None) -> tuple[dict[str, Any], dict[str, Floats]]:
    """The same, and of continuous variables, the posteriors (rows, components) of their parents' joint states."""
    known = query.read(evidence)
    if (of_given := _of_what_is_given(query)) is not None:
        return dict(of_given), {}
    rows = distinct(known)
    companion = companion_for(query, replace(query.question, query=()), rows.known)
    engine = companion.engine().runner(rows.known.rows, Sweep.HELD)
    posteriors = _posteriors(query, engine, rows.known, query.variables)
    if posteriors:
        first = next(iter(posteriors.values()))
        warn_impossible(rows.for_all(np.isnan(first[:, 0])), "their posteriors are NaN")
    answers: dict[str, Any] = {}
    weights: dict[str, Floats] = {}
    for name, array in posteriors.items():
        variable, posterior = query.network.variable(name), rows.for_all(array)
        if not variable.continuous:
            answers[name] = posterior
            continue
        weights[name] = posterior
        column, index = known.columns.get(name), index_of(evidence, known.rows)
        density = query.network.density(name)
        for asked in variable.columns:
            if not (isinstance(column, DensityColumn) and column.knows(asked)):
                answers[asked] = mixture(density, variable, [asked], posterior, column, index)
    return answers, weights


def _of_what_is_given(query: Query) -> dict[str, Floats] | None:
    """The posteriors from a large program without likelihoods; None where it cannot tell, or evidence is taken."""
    program = query.program
    if any(program.batched) or query.network.continuous or program.cost.static_multiply_adds < WORTH_DERIVING:
        return None
    asked = query.companion(replace(query.question, query=())) if query.question.query else query
    cards = {name: query.network.variable(name).card for name in query.variables}
    given = dict(query.question.given)
    sure = {name: given.get(name, 0) for name, card in cards.items() if card == 1 or name in given}
    open_cards = {name: card for name, card in cards.items() if name not in sure}
    if not has_posteriors(asked.program, open_cards):
        return None
    found = posteriors(asked.program, *asked.numbers(), open_cards, no_pause)
    if found is None:
        return None
    found |= {name: np.eye(cards[name])[state] for name, state in sure.items()}
    return {name: found[name][None].astype(query.dtype) for name in query.variables}


def marginals_under(under: UnderDraws[Query], evidence: EvidenceLike | None) -> dict[str, Floats]:
    """The posterior of every variable that has states under each of several networks: (draws, rows, states)."""
    query, rows, count = under.query, distinct(under.query.read(evidence)), len(under.ensemble)
    names = [name for name in query.variables if not query.network.variable(name).continuous]
    asked = companion_for(query, replace(query.question, query=()), rows.known)
    engine = asked.engine().runner(rows.known.rows * count, Sweep.HELD, calls=count)
    shapes = {name: (count, rows.known.rows, query.network.variable(name).card) for name in names}
    answers = {name: np.empty(shape, query.dtype) for name, shape in shapes.items()}
    for i, (own, known) in enumerate(under.each(engine, rows.known, asked.program.nodes)):
        posteriors = _posteriors(query, own, known, names)
        for name, answer in answers.items():
            answer[i] = posteriors[name]
    for name in answers:
        answers[name] = rows.for_all(answers[name].swapaxes(0, 1)).swapaxes(0, 1)
    impossible = np.asarray(np.isnan(next(iter(answers.values()))[..., 0]).any(axis=0))
    warn_impossible(impossible, "their posteriors are NaN under some of the networks")
    return answers


def _posteriors(query: Query, engine: Engine, known: Evidence, names: Iterable[str]) -> dict[str, Floats]:
    """The posteriors of some rows; NaN where they are impossible."""
    net = query.network
    posteriors = {name: np.empty((known.rows, net.variable(name).card), query.dtype) for name in names}
    with Progress("marginals", known.rows) as progress:
        for rows, block in blocks(known.columns, known.rows, engine.gradient_chunk):
            swept = sweeps(engine, block, query.dtype)
            total = np.where(swept.total > 0, swept.total, np.nan)
            for name, whole in posteriors.items():
                (joint,) = swept.joints(block.columns, name)
                np.divide(joint, total, out=whole[rows].T)
            progress.advance(block.rows)
    return posteriors


def information(
    query: Query,
    evidence: EvidenceLike | None,
    pause: Callable[[], None] = no_pause,
    variables: Iterable[str] | None = None,
) -> dict[str, Floats]:
    """By how much the entropy of a query is expected to drop if a variable's state is observed: see `TAC.information`.

    That is the mutual information of the two given the evidence. Their joint distribution comes from derivatives of the
    query's joint by the likelihoods of all variables, one backward pass for each state of the query. `pause` is called
    between these, and may raise to end the work. Only some `variables` are answered for if they are named.
    """
    require_few_sweeps(query, "information")
    discrete = [name for name in query.variables if not query.network.variable(name).continuous]
    names = discrete if variables is None else _named(query, variables)
    if numbers := [name for name in names if name not in discrete]:
        problem = f"{numbers[0]!r} is continuous: what its number would tell is no finite sum"
        raise TacitError(f"{problem}; ask about variables that have states")
    rows = distinct(query.read(evidence))
    drops, impossible = _drops(query, names, rows.known, pause)
    warn_impossible(rows.for_all(impossible), "their information is NaN")
    return {name: rows.for_all(drop) for name, drop in drops.items()}


def _named(query: Query, variables: Iterable[str]) -> tuple[str, ...]:
    """Names of variables, as a user lists them."""
    if isinstance(variables, str):
        raise TacitError(f"variables must be a sequence of names, e.g. [{variables!r}]")
    names = tuple(dict.fromkeys(variables))
    for name in names:
        if name not in query.variables:
            raise TacitError(f"variables names {name!r}, which is not a variable{similar(name, query.variables)}")
    return names


def _drops(
    query: Query, names: Sequence[str], known: Evidence, pause: Callable[[], None]
) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """The expected drops of entropy in some rows, and which rows are impossible."""
    asked = companion_for(query, query.question, known)
    states = asked.program.outputs
    engine = asked.engine().runner(known.rows * states, Sweep.HELD)
    drops = {name: np.empty(known.rows) for name in names}
    impossible = np.zeros(known.rows, dtype=np.bool_)
    at_once = max(1, engine.gradient_chunk // states)  # pairs of states take as much room as values
    with Progress("information", known.rows * states) as progress:
        for rows, block in blocks(known.columns, known.rows, at_once):

            def between_sweeps(done: int = block.rows) -> None:
                pause()
                progress.advance(done)

            swept = sweeps(engine, block, query.dtype, between_sweeps)
            impossible[rows] = swept.total <= 0
            for name, drop in drops.items():
                told = np.zeros(block.rows)
                if name in swept.derivatives[0]:  # else its state is known to the program
                    both = np.stack(swept.joints(block.columns, name))
                    told = mutual_information(divide(both, swept.total, otherwise=0.0))
                observed = name in block.columns and block.columns[name].observed
                drop[rows] = np.where(impossible[rows] | observed, np.nan, told)
    return drops, impossible


def require_few_sweeps(query: Query, what: str) -> None:
    """An error without a query, and where a backward pass for each of its joint states would take hours."""
    query.require_query(what)
    query.require_posterior()
    variables, states = len(query.question.query), math.prod(query.states_asked)
    if variables > 1 and states > MAX_SWEEPS:
        count = f"its {variables} variables have {large(states)} (limit {MAX_SWEEPS:,})"
        remedy = "ask about fewer variables at once"
        raise TooLargeError(f"{what} takes a sweep for every joint state of the query, and {count}; {remedy}")


def mutual_information(both: Array) -> Floats:
    """The mutual information, in nats, of two variables whose joint distribution is (states, states, rows)."""
    apart = both.sum(axis=0, keepdims=True) * both.sum(axis=1, keepdims=True)
    ratio = divide(both, apart, otherwise=1.0)
    logs = np.log(ratio, out=np.zeros_like(ratio), where=both > 0)
    return np.asarray(np.maximum((both * logs).sum(axis=(0, 1)), 0.0))  # rounding may leave a little less than nothing


def companion_for(query: Query, question: Question, known: Evidence, variables: tuple[str, ...] | None = None) -> Query:
    """A query with likelihoods of all variables, or of some, by which derivatives are taken.

    Of many rows, those that every row observes have none, if that is much less work: their states index tables. Not
    where tests are decided, which could come out otherwise at a tie.
    """
    variables = query.network.variables if variables is None else variables
    general = query.companion(replace(question, evidence=variables, index=False))
    work = general.program.cost.multiply_adds
    known_states = (*dict(question.given), *question.do)
    observed = tuple(sorted({*question.hard, *known.fully_observed}.difference(known_states)))
    if not observed or query.per_row or query.network.testing_nodes or work * known.rows < WORTH_COMPILING:
        return general
    special = query.companion(replace(question, evidence=variables, hard=observed))
    return special if MIN_SPEEDUP * special.program.cost.multiply_adds <= work else general


class Swept(NamedTuple):
    """Derivatives of p*(q, evidence) by likelihoods, (states, rows) by variable, for each state q of the query.

    Several states may count as one: see `sweeps`.

    Of observed numbers, those by the logarithms of their densities.

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
        if column is None or isinstance(column, DensityColumn):
            return by_state
        # the derivatives of states that are ruled out may leave the range of floats
        likelihoods = column.likelihoods()
        possible = likelihoods > 0
        return [np.multiply(likelihoods, own, out=np.zeros_like(own), where=possible) for own in by_state]


def sweeps(
    engine: Engine, known: Evidence, dtype: str, pause: Callable[[], None] = no_pause, parts: Floats | None = None
) -> Swept:
    """One backward pass for each state of the query. `pause` is called before each, and may raise to end the work.

    `parts` (passes, states) has 1 for the states that each pass is about, where it is about several: each state belongs
    to one of them.
    """
    parts = np.eye(engine.program.outputs) if parts is None else parts
    plain = _in_plain_floats(engine, known, dtype, pause, parts)
    if plain is not None:
        return plain
    results, derivatives = engine.run(known.columns, known.rows), []
    total = results.joint.sum(axis=0)
    inverse = divide(np.ones_like(total), total, otherwise=0.0)
    for seeds in _seeds(parts, known.rows):
        pause()
        seeds = seeds * inverse
        gradients = engine.gradients(known.columns, known.rows, seeds, results.exponent, through_selection=False)
        derivatives.append(gradients.likelihoods)
    return Swept(np.asarray(total > 0, dtype=total.dtype), derivatives)


def _in_plain_floats(
    engine: Engine, known: Evidence, dtype: str, pause: Callable[[], None], parts: Floats
) -> Swept | None:
    """Backward passes without a run before: likelihoods times derivatives sum to p*. None where rows are imprecise.

    Seeds are as large as floats allow: derivatives may be far smaller than p*, which alone tells whether a row is
    imprecise, and would lose digits where p* does not.
    """
    lost = lost_rows(known.columns, known.rows)
    if lost is not None and lost.any():
        return None
    derivatives, seed = [], 2.0 ** (np.finfo(dtype).maxexp - HEADROOM)
    for unit in _seeds(parts, known.rows):
        pause()
        attempt = engine.attempt_gradients(known.columns, known.rows, seed * unit, through_selection=False)
        if attempt.imprecise or not attempt.gradients.likelihoods or not attempt.gradients.finite:
            return None
        derivatives.append(attempt.gradients.by_logs(known.columns).likelihoods)
    joints = Swept(np.empty(0), derivatives).joints(known.columns, next(iter(derivatives[0])))
    return Swept(np.sum([joint.sum(axis=0) for joint in joints], axis=0), derivatives)


def _seeds(parts: Floats, rows: int) -> Iterator[Floats]:
    """For each pass, the derivatives of the sum over its states by the joint: (states, rows)."""
    for unit in parts:
        yield np.broadcast_to(unit[:, None], (len(unit), rows))
