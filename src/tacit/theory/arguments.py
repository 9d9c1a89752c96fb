"""Checks of what users say: the evidence given, the inputs to vary, and the state of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tacit.base.errors import EvidenceError, TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import with_densities
from tacit.evidence.read import EvidenceLike, read
from tacit.model.elements.variable import Label, similar
from tacit.query.factor_query import FactorQuery
from tacit.query.query import Query

MAX_INPUTS = 10  # a box has 2^inputs vertices


def read_given(tac: Query, given: EvidenceLike | None) -> Evidence:
    """Evidence as a TAC reads it; what it was compiled to have in every row must be there."""
    if isinstance(tac, FactorQuery):
        raise TacitError("this is a query of a FactorGraph, which has no CPTs; expected a query of a Network")
    tac.require_no_tables("what is said of a function")
    _require_states(tac)
    evidence = read(given, [tac.network.variable(n) for n in tac.network], tac.evidence, queries=tac.question.query)
    for name in tac.hard:
        if name not in evidence.columns:
            raise EvidenceError(f"there is no evidence on {name!r}, which the query needs in every row; give its state")
        evidence.columns[name].states()  # an error where it is not certain
    return with_densities(Evidence(evidence.rows, {**evidence.columns, **tac.given_columns}), tac.network)


def _require_states(tac: Query) -> None:
    """Refuse a continuous query: what is asked here is about the states of a query."""
    if tac.asks_for_numbers:
        remedy = "ask about one of the variables that have states"
        raise TacitError(f"the query, {tac.query!r}, is continuous and has no state that this could be about; {remedy}")


def first_state(evidence: Evidence, name: str) -> Floats:
    """The likelihood of a binary variable's first state in every row, NaN where there is no evidence: (rows,)."""
    likelihoods = evidence.columns[name].likelihoods() if name in evidence.columns else np.ones((2, 1))
    return np.broadcast_to(np.where(likelihoods.sum(axis=0) > 1.5, np.nan, likelihoods[0]), evidence.rows)


def checked_inputs(tac: Query, inputs: Iterable[str] | None, fixed: Mapping[str, Column]) -> tuple[str, ...]:
    """The names of binary evidence variables that nothing fixes; if None, all of them."""
    if isinstance(inputs, str):
        raise EvidenceError(f"inputs must be a sequence of names, e.g. [{inputs!r}]")
    if inputs is None:
        free = [n for n in tac.evidence if n not in fixed and n not in tac.hard]
        inputs = [n for n in free if len(tac.network.states(n)) == 2]
    names = tuple(dict.fromkeys(inputs))
    for name in names:
        if name not in tac.evidence:
            expected = f"some of {list(tac.evidence)}{similar(name, tac.evidence)}"
            raise EvidenceError(f"{name!r} is not an evidence variable of the query; expected {expected}")
        if name in tac.hard:
            raise EvidenceError(f"{name!r} takes hard evidence only (hard=); name it in evidence= to make it an input")
        if name in fixed:
            raise EvidenceError(f"{name!r} is an input, but its evidence is given as well; leave one of them out")
        if tac.network.variable(name).continuous:
            problem = "is continuous, but an input is the likelihood of a binary variable's first state"
            raise EvidenceError(f"{name!r} {problem}; give its number instead (given=)")
        card = tac.network.variable(name).card
        if card != 2:
            problem = f"{name!r} has {card} states, but an input is the likelihood of a binary variable's first state"
            raise EvidenceError(f"{problem}; give its evidence instead (given=)")
    if len(names) > MAX_INPUTS:
        problem = f"{len(names)} inputs make boxes of {2 ** len(names):,} vertices (limit {MAX_INPUTS} inputs)"
        raise TooLargeError(f"{problem}; fix the evidence on some of them")
    return names


def state_of(tac: Query, state: Label | None) -> int:
    """The position of a state of the query; the first, if left out."""
    _require_states(tac)
    if state is None:
        return 0
    variable = tac.variable
    if state not in variable.codes:
        hint = similar(state, [str(s) for s in variable.states])
        raise TacitError(f"{state!r} is not a state of {tac.query!r}; expected one of {list(variable.states)}{hint}")
    return variable.codes[state]
