"""A cause, its effect, and the evidence of rows about them, as columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError, TacitError
from tacit.base.text import shown
from tacit.evidence.column import Column, Evidence
from tacit.evidence.read import EvidenceLike, read
from tacit.model.elements.variable import Variable, listed_states
from tacit.model.model import Model


@dataclass(frozen=True)
class Event:
    """A state of a variable."""

    variable: Variable
    state: int

    def column(self, called: str | None = None) -> Column:
        """The state as evidence, of the variable or of a counterpart."""
        return Column(self._called(called), np.array([self.state]))

    def absent(self, called: str | None = None) -> Column:
        """The evidence that it is any other state. Likelihoods are scaled: they sum to 1."""
        if self.variable.card == 2:
            return Column(self._called(called), np.array([1 - self.state]))
        others = np.ones(self.variable.card)
        others[self.state] = 0.0
        return Column(self._called(called), soft=others[:, None] / others.sum())

    @property
    def scale(self) -> float:
        """By how much the likelihoods of `absent` were scaled down."""
        return float(max(self.variable.card - 1, 1))

    def _called(self, name: str | None) -> Variable:
        own = self.variable
        return own if name is None else Variable(name, own.states, own.bins)


@dataclass(frozen=True)
class Causation:
    """A cause, what it is compared with, and an effect: did, or would, X = x rather than x' bring about Y = y?"""

    present: Event
    instead: Event
    effect: Event

    @property
    def x(self) -> str:
        """The name of the cause."""
        return self.present.variable.name

    @property
    def y(self) -> str:
        """The name of the effect."""
        return self.effect.variable.name

    @staticmethod
    def of(net: Any, cause: Any, effect: Any) -> Causation:
        """The cause `(variable, state, state instead)` and the effect `(variable, state)`, checked."""
        if not isinstance(net, Model):
            raise TacitError(f"net is a {type(net).__name__}, expected a Network")
        x, *states = _parts(cause, 3, "cause", '("X", "x", "instead")')
        y, state = _parts(effect, 2, "effect", '("Y", "y")')
        present, instead = (_event(net, x, one, "cause") for one in states)
        if present == instead:
            raise NetworkError(f"cause compares {x!r} in the state {states[0]!r} with the same state")
        if x == y:
            raise NetworkError(f"{x!r} is both the cause and the effect")
        happening = _event(net, y, state, "effect")
        if happening.variable.card < 2:
            raise NetworkError(f"effect: {y!r} has one state only, so nothing brings it about")
        return Causation(present, instead, happening)

    def others(self, net: Model, rows: EvidenceLike | None, allowed: bool = False) -> Evidence:
        """The evidence of rows on other variables; on the cause and the effect, too, if that is allowed."""
        known = read(rows, [net.variable(name) for name in net], empty=True)
        for name in (self.x, self.y):
            if name in known.columns and not allowed:
                problem = "the question itself says what it was; leave it out of the rows"
                raise TacitError(f"the rows have evidence on {name!r}, and {problem}")
        return known


def with_columns(known: Evidence, columns: dict[str, Column]) -> Evidence:
    """Rows that also have the same evidence on some variables."""
    return Evidence(known.rows, {**known.columns, **columns})


def _parts(given: Any, count: int, what: str, example: str) -> list[Any]:
    parts = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if len(parts) != count:
        raise NetworkError(f"{what} is {shown(given)}, expected {count} names: {example}")
    return parts


def _event(net: Model, name: str, label: Any, what: str) -> Event:
    variable = net.variable(name)
    if variable.continuous:
        raise NetworkError(f"{what}: {name!r} is continuous, and has no states to compare")
    if not isinstance(label, Hashable) or label not in variable.codes:
        raise NetworkError(f"{what}: {label!r} is not a state of {name!r}; expected one of {listed_states(variable)}")
    return Event(variable, variable.codes[label])
