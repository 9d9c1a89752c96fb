"""Tornado plots: how far a posterior moves if single numbers of a network are lowered and raised.

Wide ones have the names of the numbers to the left of the bars, those of a column of a paper have them above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import rounded
from tacit.model.cpt import THRESHOLDS
from tacit.model.elements.variable import Label, Variable
from tacit.model.model import Model
from tacit.query.sensitivity import Entry, Sensitivity
from tacit.views.axes import (
    INK,
    Axes,
    BarLook,
    axes_of,
    figure_width,
    in_lines,
    plain,
    width_of,
    with_height,
    with_legend,
)
from tacit.views.words import spelled

LOWERED, RAISED = "#8e2157", "#86b3e2"  # dark and light, so that grey print tells them apart
MIN_TRIED_ENTRIES = 40  # entries whose bars are worked out by asking again
WIDTH, HEIGHT, MARGIN = 7.0, 5.0, 0.3  # inches: of a new figure, if nothing else is said, and around all that is drawn
NAME_WIDTH, LEAST_BESIDE = 2.9, 5.2  # inches: a name beside its bar, and what is needed to have names there
BESIDE = BarLook(above=False, letters=8, axis_letters=9, bar=0.24, gap=0.14)
ABOVE = BarLook(above=True, letters=7, axis_letters=7.5, bar=0.13, gap=0.09)


def tornado(
    found: Sensitivity,
    row: int = 0,
    state: Label | tuple[Label, ...] | None = None,
    n: int = 10,
    change: float = 0.1,
    ax: Any = None,
    width: float | str | None = None,
) -> Axes:
    """What happens to a posterior if single entries of tables are lowered and raised: a bar for each, widest on top.

    It shows the n widest bars, fewer if the posterior depends on fewer entries. Each entry is lowered and raised by
    `change`, cut at 0 and at 1: 0.97 is raised to 1, by 0.03 only. The rest of its row changes in proportion. `change`
    is absolute, so that the two entries of a binary row make the same bar, of which one is drawn. Testing nodes select
    their tables again.

    `row` and `state` are those of `Sensitivity.entries`: the first row, and its most probable state, if left out. A
    state may be written in capitals or small letters, where that leaves no doubt.

    `width` is that of a new figure, in centimetres or as a text such as "3.3in"; 7 inches, if left out. It is as high
    as its bars need. In a narrow figure, or on narrow axes, each name stands above its bar.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.kidney_stones(), "recovery", ["treatment"])
    >>> ax = tornado(tac.sensitivity({"treatment": "A"}), n=3, width="3.3in")
    >>> ax.get_yticklabels()[-1].get_text()
    'P(recovery = yes | size = large, treatment = A) = 0.73'
    """
    if not isinstance(found, Sensitivity):
        raise TacitError(f"found is a {type(found).__name__}, expected what tac.sensitivity(evidence) returns")
    state = _state_of(found, state)
    which = found.state(row, state)
    now = float(found.posterior[row][which])
    if np.isnan(now):
        raise TacitError(f"row {row}: the evidence has probability 0, so there is no posterior to vary")
    bars = _widest(found, row, state, n, change)
    wide = figure_width(ax, width, WIDTH)
    room = wide - MARGIN if ax is None else width_of(ax)
    look = BESIDE if room >= LEAST_BESIDE else ABOVE
    ax = axes_of(ax, (wide, HEIGHT))
    names = [in_lines(bar.label, room if look.above else NAME_WIDTH, look.letters) for bar in bars]
    _draw_bars(ax, bars, look.middles(names), now, change, look)
    look.draw_names(ax, look.middles(names), names)
    what = in_lines(_posterior(found, which), room if look.above else room - NAME_WIDTH, look.axis_letters)
    ax.set_xlabel(f"{what}\nif one number is changed (line: {now:.3g}, as it is)")
    return _lettered(with_height(ax, sum(map(look.height, names))), look)


def _widest(found: Sensitivity, row: int, state: Label | tuple[Label, ...] | None, n: int, change: float) -> list[_Bar]:
    """The widest bars, the narrowest of them first, which is the lowest one of a plot."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise TacitError(f"n is {n!r}, expected the number of bars, a whole number >= 1")
    if not 0 < change <= 1:
        raise TacitError(f"change is {change!r}, expected a number above 0, at most 1")
    most = max(MIN_TRIED_ENTRIES, 2 * int(n)) if found.selects else None  # to select anew takes a while
    which = found.state(row, state)
    bars = [_bar(found, row, which, entry, change) for entry in _entries(found, row, state)[:most]]
    return sorted(bars, key=lambda bar: abs(bar.raised - bar.lowered))[-int(n) :]


def _draw_bars(ax: Axes, bars: Sequence[_Bar], middles: Floats, now: float, change: float, look: BarLook) -> None:
    for word, other, color in (("lowered", "raised", LOWERED), ("raised", "lowered", RAISED)):
        widths = np.array([getattr(bar, word) - now for bar in bars])
        others = np.array([getattr(bar, other) - now for bar in bars])
        drawn = ax.barh(middles, widths, look.bar, now, color=color, label=f"{word} by {change:g}")
        for patch, behind in zip(drawn, np.abs(widths) > np.abs(others), strict=True):
            patch.set_zorder(1 if behind else 1.5)  # of two bars on one side, the shorter one stays in sight
    if look.above:  # where a line from top to bottom would cross the names
        ax.vlines(np.full(len(bars), now), middles - look.bar, middles + look.bar / 2, color=INK, linewidth=1)
    else:
        ax.axvline(now, color=INK, linewidth=1)


def _lettered(ax: Axes, look: BarLook) -> Axes:
    """Axes with letters of the right sizes, and a legend."""
    ax.tick_params(axis="x", labelsize=look.axis_letters)
    ax.xaxis.label.set_size(look.axis_letters)
    ax.locator_params(axis="x", nbins=5)
    title = "one number of the network, cut at 0 and 1"
    return with_legend(plain(ax), 2, title)


def _entries(sensitivity: Sensitivity, row: int, state: Label | tuple[Label, ...] | None) -> list[Entry]:
    """The entries that matter, largest sensitivity values first; of a row of two, which change together, one.

    Numbers of densities are left out: they have units of their own.
    """
    chosen: dict[tuple[str, str, tuple[int, ...]], Entry] = {}
    for entry in sensitivity.entries(row, state):
        if sensitivity.network.variable(entry.node).continuous:
            continue
        binary = sensitivity.network.variable(entry.node).card == 2 and entry.part != THRESHOLDS
        key = (entry.node, entry.part, entry.place[:-1] if binary else entry.place)
        matters = abs(entry.derivative) > 0  # not where it is NaN, either
        if matters and (key not in chosen or entry.place < chosen[key].place):
            chosen[key] = entry
    return list(chosen.values())


class _Bar(NamedTuple):
    """What an entry is, and the posterior with it lowered and raised."""

    label: str
    lowered: float
    raised: float


def _bar(sensitivity: Sensitivity, row: int, which: tuple[int, ...], entry: Entry, change: float) -> _Bar:
    ends = np.clip([entry.value - change, entry.value + change], 0, 1)
    posteriors = sensitivity.changed(row, which, (entry.node, entry.part), entry.place, ends)
    name = _without_quotes(entry.name, sensitivity.network, entry.node)
    return _Bar(f"{name} = {rounded(entry.value)}", *np.clip(posteriors, 0, 1).tolist())


def _state_of(found: Sensitivity, state: Label | tuple[Label, ...] | None) -> Label | tuple[Label, ...] | None:
    """The states of the query that are meant, by their own names."""
    variables = [found.network.variable(name) for name in found.query]
    if isinstance(state, tuple):
        return (
            tuple(spelled(*pair) for pair in zip(variables, state, strict=True))
            if len(state) == len(variables)
            else state
        )
    return spelled(variables[0], state) if len(variables) == 1 else state


def _posterior(found: Sensitivity, which: tuple[int, ...]) -> str:
    """P(B = true | evidence); with a star where tests select the tables."""
    states = _assigned([found.network.variable(name) for name in found.query], which)
    given = " | evidence" * bool(found.known.columns)
    return f"P{'*' * found.selects}({states}{given})"


def _assigned(variables: Sequence[Variable], which: Sequence[int]) -> str:
    return ", ".join(f"{own.name} = {own.states[i]}" for own, i in zip(variables, which, strict=True))


def _without_quotes(text: str, net: Model, node: str) -> str:
    """The name of an entry with "A = yes" for "A='yes'"."""
    for name in (node, *net.parents(node)):
        for state in net.states(name):
            text = text.replace(f"{name}={state!r}", f"{name} = {state}")
    return text
