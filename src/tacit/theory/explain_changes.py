"""Which single changes of findings would turn an answer: to another most probable state, or across a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.base.floats import Floats
from tacit.base.grid import Grid, probability
from tacit.evidence.column import Column
from tacit.model.elements.variable import Label
from tacit.query.answers.answer import quietly
from tacit.query.query import Query
from tacit.theory.findings import Finding, ask_varied, no_finding

MAX_WORK = 1e10  # multiply-adds of all changes, some seconds, up to which findings are set to other states
MAX_LINES = 5  # changes that are printed
CLEARLY = 1e-12  # by which another state must be more probable


@dataclass(frozen=True)
class Turn:
    """What turns an answer: a state, by its place, that crosses a threshold; or another most probable state."""

    state: int
    threshold: float | None = None

    def turned(self, now: Floats, after: Floats) -> bool:
        """Whether the answer has turned; never where the evidence has become impossible."""
        if self.threshold is None:
            return bool(after.max() > after[now.argmax()] + CLEARLY)
        return bool(not np.isnan(after[self.state]) and self.above(after) != self.above(now))

    def above(self, posterior: Floats) -> bool:
        """Whether the state reaches the threshold."""
        return bool(posterior[self.state] >= (self.threshold or 0.0))


MOST_PROBABLE = Turn(0)


@dataclass(frozen=True, eq=False)
class Change:
    """One change of a finding that turns the answer, as a rule by making another state the most probable one.

    Attributes
    ----------
    name, value
        The variable, and what is known of it, in words.
    to
        The state that it is set to; None if the finding is removed.
    state
        The state of the query that is the most probable one then.
    posterior
        P*(q) for every state of the query after the change.
    """

    name: str
    value: str
    to: Label | None
    state: Label
    posterior: Floats

    @property
    def text(self) -> str:
        """The change in words."""
        return f"without {self.name}: {self.value}" if self.to is None else f"{self.name}: {self.value} -> {self.to}"


def changes(
    tac: Query, columns: Mapping[str, Column], found: Sequence[Finding], turn: Turn = MOST_PROBABLE
) -> tuple[tuple[Change, ...], bool]:
    """The changes of findings of one row that turn the answer, the smallest first.

    To remove a finding is less than to set it to another state; of two such changes, the smaller is the one that leaves
    the more probable findings. Where it would be too much work to set each finding to all of its other states, they
    are only removed, and so are numbers: the second answer is whether all findings were set to all other states.
    """
    others = list(_settings(columns, found))
    complete = tac.multiply_adds * len(others) <= MAX_WORK
    tried = [*_removals(columns, found), *(others if complete else [])]
    with quietly():
        answer = ask_varied(tac, columns, [{one.name: new} for one, _, new in tried])
        posterior, logs = answer.posterior, answer.log_evidence[1:]
    states = tac.variable.states
    flipped = [
        (to is not None, -float(log), Change(one.name, one.value, to, states[int(after.argmax())], after))
        for (one, to, _), after, log in zip(tried, posterior[1:], logs, strict=True)
        if turn.turned(posterior[0], after)
    ]
    all_states = complete and not any(columns[one.name].variable.continuous for one in found)
    return tuple(change for *_, change in sorted(flipped, key=lambda one: one[:2])), all_states


def _removals(columns: Mapping[str, Column], found: Sequence[Finding]) -> Iterator[tuple[Finding, None, Floats]]:
    for one in found:
        yield one, None, no_finding(columns[one.name])


def _settings(columns: Mapping[str, Column], found: Sequence[Finding]) -> Iterator[tuple[Finding, Label, Floats]]:
    for one in found:
        column = columns[one.name]
        if column.variable.continuous:
            continue  # there is no end of numbers that it could be changed to
        now = column.likelihoods()[:, 0]
        for place, sure in enumerate(np.eye(column.variable.card)):
            if not np.array_equal(now, sure):
                yield one, column.variable.states[place], sure


def changes_grid(found: Sequence[Change], states: Sequence[Label]) -> Grid:
    """The smallest changes that make another state the most probable one, as a table."""
    lines = [(str(one.state), probability(float(one.posterior[states.index(one.state)]))) for one in found]
    return _grid(found, lines, "One change that makes another state the most probable", ("to", "its probability"))


def crossings_grid(found: Sequence[Change], turn: Turn, named: str) -> Grid:
    """The smallest changes that make a state cross a threshold, as a table."""
    lines = [(probability(float(one.posterior[turn.state])),) for one in found]
    return _grid(found, lines, f"One change that takes {named}", ("its probability",))


def _grid(found: Sequence[Change], lines: Sequence[tuple[str, ...]], title: str, head: tuple[str, ...]) -> Grid:
    body = [(one.text, *line) for one, line in zip(found[:MAX_LINES], lines, strict=False)]
    rest = len(found) - MAX_LINES
    note = f"... and {rest} more, with larger changes" if rest > 0 else ""
    return Grid([("change", *head)], body, len(head), title, note)
