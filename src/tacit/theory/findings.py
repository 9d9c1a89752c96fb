"""What each finding adds to an answer: the posterior without it, and its weight given all the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.base.floats import Floats
from tacit.base.text import DIGITS, in_digits
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import DensityColumn
from tacit.query.answers.answer import Answer, quietly
from tacit.query.query import Query


@dataclass(frozen=True, eq=False)
class Finding:
    """One finding of a row of evidence, and what it adds to the others.

    Attributes
    ----------
    name, value
        The variable, and what is known of it, in words.
    without
        P*(q) for every state of the query if this finding were missing and all others stayed.
    weight
        The weight of evidence of this finding given all others, for every state q of the query: by how much it raises
        the log-odds of q, log(P*(q) / (1 - P*(q))), in nats. That is the logarithm of how much more probable the
        finding is where q holds than where it does not, the other findings given. Weights need not add up: findings
        that say the same have small ones each. Infinite where the finding decides; 0 where q is decided without it.
    """

    name: str
    value: str
    without: Floats
    weight: Floats


def findings(
    tac: Query, columns: Mapping[str, Column], said: Mapping[str, str]
) -> tuple[tuple[Finding, ...], Finding | None]:
    """The findings that are `said` in words, of one row with these columns, and all of them as one if they are several.

    The query has one variable.
    """
    names = tuple(said)
    if not names:
        return (), None
    posterior = without_each(tac, columns, names, together=len(names) > 1)
    weights = weights_of_evidence(posterior)
    each = tuple(Finding(name, said[name], posterior[i + 1], weights[i]) for i, name in enumerate(names))
    return each, Finding("all together", "", posterior[-1], weights[-1]) if len(names) > 1 else None


def without_each(tac: Query, columns: Mapping[str, Column], names: Sequence[str], together: bool = False) -> Floats:
    """The posterior of one row (1 + names, states): with all of it, and without the evidence on each name.

    With `together`, there is a last row without the evidence on any of them.
    """
    nothing = {name: no_finding(columns[name]) for name in names}
    changes = [*({name: nothing[name]} for name in names), *([nothing] if together else [])]
    with quietly():
        return ask_varied(tac, columns, changes).posterior


def ask_varied(tac: Query, columns: Mapping[str, Column], changes: Sequence[Mapping[str, Floats]]) -> Answer:
    """What one row with these columns says, followed by what it says after each change.

    A change has what `content` tells of a column, in place of that of some columns; `no_finding` removes a finding.
    """
    removed = {name for change in changes for name, new in change.items() if (new > 0).sum() > 1}
    asked = tac.companion(replace(tac.question, hard=())) if removed & set(tac.hard) else tac
    varied = {name: _varied(column, [change.get(name) for change in changes]) for name, column in columns.items()}
    return asked.ask(Evidence(1 + len(changes), varied))


def _varied(column: Column, news: Sequence[Floats | None]) -> Column:
    """A column of one row many times, with other likelihoods, or numbers, in the rows that have some."""
    if all(new is None for new in news):
        return column
    if isinstance(column, DensityColumn):
        numbers = np.concatenate([column.values, *(column.values if new is None else new[None] for new in news)])
        return DensityColumn(column.variable, numbers, column.density)
    likelihoods = np.repeat(column.likelihoods(), 1 + len(news), axis=1)
    for row, new in enumerate(news, start=1):
        if new is not None:
            likelihoods[:, row] = new
    return Column(column.variable, soft=likelihoods)


def content(column: Column) -> Floats:
    """What one row says of a variable: likelihoods (states,); of a continuous one, its numbers (columns,)."""
    return np.asarray(column.values[0] if isinstance(column, DensityColumn) else column.likelihoods()[:, 0])


def no_finding(column: Column) -> Floats:
    """What a row says of a variable that nothing is known of, as `content` tells it."""
    variable = column.variable
    return np.full(len(variable.columns), np.nan) if variable.continuous else np.ones(variable.card)


def weights_of_evidence(posterior: Floats) -> Floats:
    """By how much the log-odds of every state are higher in the first row than in each other: (rows - 1, states)."""
    odds = log_odds(posterior)
    return raised(odds[1:], odds[0])


def raised(before: Floats, after: Floats) -> Floats:
    """By how much log-odds rose; not at all where the same state was certain, or impossible, before and after."""
    with np.errstate(invalid="ignore"):
        return np.where(before == after, 0.0, after - before)


def log_odds(posterior: Floats) -> Floats:
    """log(P(q) / (1 - P(q))) for every state: (rows, states)."""
    others = posterior @ (1.0 - np.eye(posterior.shape[-1]))  # 1 - P(q), with all digits where P(q) is near 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(posterior) - np.log(others))


def said(column: Column, digits: int = DIGITS) -> str:
    """The evidence of one row in words: a state, or states with their likelihoods (the first of two); or numbers.

    A number in an interval is told with the interval.
    """
    if isinstance(column, DensityColumn):
        names, numbers = column.variable.columns, column.values[0]
        known = [(f"{name} " if len(names) > 1 else "", x) for name, x in zip(names, numbers, strict=True)]
        return ", ".join(f"{name}{in_digits(x, digits)}" for name, x in known if not np.isnan(x))
    if column.codes is not None:
        state = str(column.variable.states[column.codes[0]])
        return state if column.number is None else f"{in_digits(column.number, digits)} in {state}"
    states, likelihoods = column.variable.states, column.likelihoods()[:, 0].tolist()
    shown = list(zip(states, likelihoods, strict=True))[: 1 if len(states) == 2 else None]
    return " ".join(f"{state} {in_digits(value, digits)}" for state, value in shown)
