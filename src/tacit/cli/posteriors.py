"""The posterior of some variables together, as text and as data; and which observation would tell most about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.cli.output import aligned, bar, together
from tacit.cli.row import Row
from tacit.floats import Floats
from tacit.tac import TAC
from tacit.variable import Variable
from tacit.words import bars, plural

WIDTH = 100  # of a grid; one that is wider is listed
COMBINATIONS = 20  # that a list shows
OBSERVATIONS = 5  # that are shown as the next
NOTHING = 1e-9  # nats


@dataclass(frozen=True)
class Posterior:
    """The posterior (states of the first, states of the second, ...) of some variables.

    `drops` tells by how much its entropy is expected to drop, in nats, if another variable is observed; None where that
    was not asked for.
    """

    variables: list[Variable]
    values: Floats
    log_evidence: float
    drops: dict[str, float] | None

    @property
    def names(self) -> list[str]:
        """The variables by name."""
        return [variable.name for variable in self.variables]

    def text(self) -> str:
        """For people: bars for one variable, a grid for two, a list of combinations for more."""
        if len(self.variables) == 1:
            return bars(self.variables[0].states, self.values.tolist())
        if len(self.variables) == 2:
            grid = _grid(self.variables[0], self.variables[1], self.values)
            if len(grid.partition("\n")[0]) <= WIDTH:
                return grid
        return _combinations(self.variables, self.values)

    def data(self) -> dict[str, Any]:
        """For scripts: objects within objects, a state of the first variable outermost."""
        return _nested(self.variables, self.values)

    def observations(self) -> str:
        """The observations that would tell most, each with a bar for its share of all that is not known."""
        entropy = float(-(self.values * np.log(np.where(self.values > 0, self.values, 1.0))).sum())
        best = [(name, drop) for name, drop in (self.drops or {}).items() if drop > NOTHING][:OBSERVATIONS]
        if not best:
            return f"no further observation would be informative about {together(self.names)}"
        rows = [(f"  {name}", f"{drop:.6f}", bar(drop / entropy)) for name, drop in best]
        return f"to observe next, by the expected drop of the entropy, now {entropy:.6f} nats:\n{aligned(rows)}"


def posterior(row: Row, names: tuple[str, ...], telling: bool) -> Posterior:
    """The posterior of some variables for a row; with `telling`, also what observing others would tell."""
    tac = row.compile(names if len(names) > 1 else names[0])
    answer = row.ask(tac)
    drops = _drops(tac, row, names) if telling else None
    return Posterior([row.net.variable(n) for n in names], answer.posterior[0], float(answer.log_evidence[0]), drops)


def _drops(tac: TAC, row: Row, names: tuple[str, ...]) -> dict[str, float]:
    """The expected drops of the entropy, the largest first; not of variables that are asked for, observed or set."""
    drops = {name: float(drop[0]) for name, drop in tac.information(row.values(tac)).items()}
    new = [name for name, drop in drops.items() if name not in names and not np.isnan(drop)]
    return {name: drops[name] for name in sorted(new, key=lambda name: -drops[name])}


def _nested(variables: Sequence[Variable], values: Floats) -> dict[str, Any]:
    first, *others = variables
    parts = [_nested(others, part) if others else float(part) for part in values]
    return dict(zip(map(str, first.states), parts, strict=True))


def _grid(first: Variable, second: Variable, values: Floats) -> str:
    head = ("", *(f"{second.name}={state}" for state in second.states))
    body = [
        (f"{first.name}={state}", *(f"{p:.6f}" for p in line))
        for state, line in zip(first.states, values.tolist(), strict=True)
    ]
    return aligned([head, *body], right=range(1, len(head)))


def _combinations(variables: Sequence[Variable], values: Floats) -> str:
    """The most probable combinations of states, and how much is left."""
    flat = values.ravel()
    order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat)]
    rows = [(*(variable.name for variable in variables), "probability", "")]
    for place in order[:COMBINATIONS].tolist():
        states = np.unravel_index(place, values.shape)
        labels = (str(variable.states[i]) for variable, i in zip(variables, states, strict=True))
        rows.append((*labels, f"{flat[place]:.6f}", bar(flat[place])))
    text, rest = aligned(rows, right=[len(variables)]), order[COMBINATIONS:]
    return (
        f"{text}\nand {plural(len(rest), 'more combination')}, together {flat[rest].sum():.6f}" if len(rest) else text
    )
