"""What each finding adds to an answer: the posterior without it, and its weight given all the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.base.floats import Floats
from tacit.evidence.codes import MISSING
from tacit.evidence.column import Column, Evidence
from tacit.query.answer import quietly
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
        that say the same have small ones each. Infinite where the finding decides; NaN where q is decided without it.
    """

    name: str
    value: str
    without: Floats
    weight: Floats


def findings(tac: Query, columns: Mapping[str, Column], said: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings that are `said` in words, of one row with these columns; the query has one variable."""
    names = tuple(said)
    if not names:
        return ()
    posterior = without_each(tac, columns, names)
    weights = weights_of_evidence(posterior)
    return tuple(Finding(name, said[name], posterior[i + 1], weights[i]) for i, name in enumerate(names))


def without_each(tac: Query, columns: Mapping[str, Column], names: Sequence[str]) -> Floats:
    """The posterior of one row (1 + names, states): with all of it, and without the evidence on each name."""
    soft = tac.companion(replace(tac.question, hard=())) if set(names) & set(tac.hard) else tac
    rows = 1 + len(names)
    repeated = {name: _left_out(column, rows, names) for name, column in columns.items()}
    with quietly():
        return soft.ask(Evidence(rows, repeated)).posterior


def _left_out(column: Column, rows: int, names: Sequence[str]) -> Column:
    """A column of one row many times, without evidence in the row of its name."""
    if column.variable.name not in names:
        return column
    place = 1 + names.index(column.variable.name)
    if column.codes is not None:
        codes = np.full(rows, column.codes[0])
        codes[place] = MISSING
        return Column(column.variable, codes=codes)
    likelihoods = np.repeat(column.likelihoods(), rows, axis=1)
    likelihoods[:, place] = 1.0
    return Column(column.variable, soft=likelihoods)


def weights_of_evidence(posterior: Floats) -> Floats:
    """By how much the log-odds of every state are higher in the first row than in each other: (rows - 1, states)."""
    others = posterior @ (1.0 - np.eye(posterior.shape[-1]))  # 1 - P(q), with all digits where P(q) is near 1
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(posterior) - np.log(others)
        return np.asarray(odds[0] - odds[1:])
