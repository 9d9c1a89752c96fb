"""What observing variables is worth to who decides: the value of information, from derivatives by likelihoods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, divide
from tacit.base.progress import Progress
from tacit.base.text import listed, shown
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import Array
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.distinct import distinct
from tacit.model.elements.variable import similar
from tacit.query.answers.answer import warn_impossible
from tacit.query.decisions.chance_of_values import GOOD, STATES
from tacit.query.decisions.outlook import Outlook
from tacit.query.marginals import Swept, companion_for, sweeps

NOTHING = 64  # rounding errors of the width of all values that count as 0


def worth(outlooks: Sequence[Outlook], names: Sequence[str], known: Evidence) -> dict[str, Floats]:
    """What knowing the state of each variable is worth: by name, (rows,); NaN where it is observed already.

    max over actions of the expected value, averaged over the states that may be observed, less that of now. Of the
    expected value, only the part counts that differs between actions: the joint probability of what is good.
    """
    rows = distinct(known)
    told, impossible = _gains(outlooks, names, rows.known)
    warn_impossible(rows.for_all(impossible), "what observing more is worth is NaN")
    return {name: rows.for_all(gain) for name, gain in told.items()}


def _gains(
    outlooks: Sequence[Outlook], names: Sequence[str], known: Evidence
) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """The gains in some rows, and which rows are impossible."""
    engines = []
    for own in outlooks:
        asked = companion_for(own.query, own.query.question, known, own.query.evidence)
        engines.append(asked.engine().runner(known.rows * asked.program.outputs, Sweep.HELD))
    gains = {name: np.empty(known.rows) for name in names}
    impossible = np.zeros(known.rows, dtype=np.bool_)
    at_once = max(1, min(engine.gradient_chunk // engine.program.outputs for engine in engines))
    with Progress("worth", known.rows) as progress:
        for rows, block in blocks(known.columns, known.rows, at_once):
            swept = [_swept(own, engine, block) for own, engine in zip(outlooks, engines, strict=True)]
            impossible[rows] = swept[0].total <= 0
            for name, gain in gains.items():
                told = np.zeros(block.rows)
                if name in swept[0].derivatives[0]:  # else its state is known to the program
                    parts = zip(outlooks, swept, strict=True)
                    told = _gain(np.concatenate([_good(*part, block, name) for part in parts]), outlooks[0].width)
                observed = name in block.columns and block.columns[name].observed
                gain[rows] = np.where(impossible[rows] | observed, np.nan, told)
            progress.advance(block.rows)
    return gains, impossible


def _swept(own: Outlook, engine: Engine, block: Evidence) -> Swept:
    """A backward pass for what is good after each action, and one for all the rest."""
    parts = np.eye(engine.program.outputs)[[STATES * action + GOOD for action in own.actions]]
    return sweeps(engine, block, own.query.dtype, parts=np.vstack([parts, 1 - parts.sum(axis=0)]))


def _good(own: Outlook, swept: Swept, block: Evidence, name: str) -> Array:
    """The probability of each state with what is good, given the row and an action: (actions, states, rows)."""
    joints = swept.joints(block.columns, name)[: len(own.actions)]
    return divide(np.stack(joints), swept.total, otherwise=0.0) * len(own.actions)


def _gain(good: Array, width: float) -> Floats:
    """What knowing the state is worth: (rows,), from probabilities (actions, states, rows)."""
    informed, now = good.max(axis=0).sum(axis=0), good.sum(axis=1).max(axis=0)
    gain = np.asarray(informed - now, dtype=np.float64)
    return np.where(gain > NOTHING * np.finfo(good.dtype).eps, gain, 0.0) * width


def checked_costs(
    costs: Mapping[str, float] | None, names: Sequence[str], numbers: Collection[str] = ()
) -> dict[str, float]:
    """What observing each variable costs; an error where something else is named, or a cost is not a number.

    Of `numbers`, which are continuous, it says why they are not among the `names`.
    """
    if costs is not None and not isinstance(costs, Mapping):
        raise TacitError(f"costs is {shown(costs)}, expected a mapping from variables to numbers")
    checked = {}
    for name, cost in (costs or {}).items():
        if name in numbers:
            problem = "is continuous, and what observing a number is worth is not computed"
            raise TacitError(f"costs names {name!r}, which {problem}; leave it out, or make it a variable of "
                             "intervals: net.add(..., bins=[...])")  # fmt: skip
        if name not in names:
            problem = f"costs names {name!r}, which is not a variable that could be observed"
            expected = f"expected some of {listed(names)}" if names else "there is none"
            raise TacitError(f"{problem}; {expected}{similar(name, (*names, *numbers))}")
        checked[name] = _number(name, cost)
    return checked


def _number(name: str, cost: Any) -> float:
    if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not np.isfinite(cost):
        raise TacitError(f"costs[{name!r}] is {shown(cost)}, expected a finite number")
    return float(cost)
