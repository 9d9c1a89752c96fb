"""Charts of answers, with matplotlib: the posteriors of some rows, and what the findings of a row add to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, flat
from tacit.base.grid import row_name
from tacit.views.axes import ACCENT, INK, PALE, POINTS_PER_INCH, Axes, BarLook, axes_of, in_lines, plain, with_legend
from tacit.views.lengths import inches

MAX_ROWS = 40
MAX_FINDINGS = 20
WIDTH = 5.5  # inches, of a new figure
BAR, OUTSIDE = 0.3, 1.0  # inches: of a bar with the gap to the next one, and of all that is not bars
LOWERS, RAISES = "#8e2157", "#86b3e2"  # as in a tornado: dark and light, so that grey print tells them apart
LETTERS = 9
BESIDE = BarLook(above=False, letters=LETTERS, axis_letters=LETTERS, bar=0.22, gap=0.08)
ABOVE = BarLook(above=True, letters=8, axis_letters=8, bar=0.15, gap=0.09)
LEAST_BESIDE, MARGIN = 4.5, 0.3  # inches: what is needed to have names beside bars; around all that is drawn
NAME_SHARE, SHORT_SHARE = (
    0.4,
    0.2,
)  # of the width that names beside bars may take, where it is large, and where it is not
BAR_SHARE = 0.4  # of the axis, at least, for bars between their numbers
BEHIND = 3  # points from the end of a bar to its number
BEYOND = 1.3  # an infinite weight is drawn so many times as long as the longest finite one


@runtime_checkable
class Labelled(Protocol):
    """Probabilities (rows, states of the first variable, ...) and their names, as `posterior(labels=True)` returns."""

    @property
    def array(self) -> Floats: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    @property
    def states(self) -> tuple[tuple[Any, ...], ...]: ...
    @property
    def index(self) -> Any: ...


@runtime_checkable
class Sure(Protocol):
    """Means of probabilities and the ends of their intervals, as `credible` returns."""

    @property
    def level(self) -> float: ...
    def labelled(self) -> Any: ...  # the same, of which each part is `Labelled`


@runtime_checkable
class Weighed(Protocol):
    """Findings in words, and what each adds to the log-odds of a state of the query."""

    @property
    def query(self) -> str: ...
    @property
    def states(self) -> tuple[Any, ...]: ...
    @property
    def state(self) -> int: ...
    @property
    def weights(self) -> list[tuple[str, float]]: ...


def posterior(answer: Labelled | Sure, ax: Any = None, width: float | str | None = None) -> Axes:
    """The posterior of each row as bars: of one row, a bar for each state; of several, a bar that its states share.

    `answer` is what `tac.posterior(rows, labels=True)` returns, or `tac.credible`: then lines are the intervals, and of
    several rows, dots are the means; of two states, those of the first one. `width` is that of a new figure, in
    centimetres or as a text such as "3.3in".

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.asia(), query="lung", evidence=["smoke", "xray"])
    >>> ax = posterior(tac.posterior({"smoke": ["yes", "no"], "xray": "yes"}, labels=True))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['yes', 'no']
    """
    if isinstance(answer, Sure):
        sure = answer.labelled()
        return _credible(sure.mean, flat(sure.low.array), flat(sure.high.array), answer.level, ax, width)
    if not isinstance(answer, Labelled):
        expected = "expected what tac.posterior(rows, labels=True) or tac.credible returns"
        raise TacitError(f"answer is a {type(answer).__name__}, {expected}")
    _check_rows(answer)
    table, names = flat(answer.array), _names(answer)
    if len(answer.array) == 1:
        bars = _bars(ax, width, names, table[0], [f"{100 * p:.3g}%" for p in table[0]], ACCENT)
        bars.ax.set(xlim=(0, 1.12), xticks=np.linspace(0, 1, 5))
        return bars.labelled(_title(answer))
    ax = _new(ax, width, len(answer.array))
    places, left = _places(answer), np.zeros(len(answer.array))
    for name, share, color in zip(names, np.nan_to_num(table).T, _colors(len(names)), strict=True):
        ax.barh(places, share, 0.72, left, color=color, edgecolor="white", linewidth=0.6, label=name)
        left = left + share
    ax.set_yticks(places, _rows(answer))
    ax.set(xlim=(0, 1), xlabel=_title(answer), ylabel="row")
    return with_legend(_lettered(ax), min(4, len(names)), title=", ".join(answer.variables), fontsize=LETTERS)


def _credible(mean: Labelled, low: Floats, high: Floats, level: float, ax: Any, width: float | str | None) -> Axes:
    """Means with the intervals around them: bars of one row, dots of several."""
    _check_rows(mean)
    table, names = flat(mean.array), _names(mean)
    about = f"{100 * level:.4g}% intervals"
    if len(table) == 1:
        ends = zip(table[0], low[0], high[0], strict=True)
        said = [f"{100 * p:.1f}%  [{100 * a:.1f}, {100 * b:.1f}]" for p, a, b in ends]
        bars = _bars(ax, width, names, table[0], said, PALE, said_behind=high[0])
        bars.ax.hlines(bars.middles, low[0], high[0], color=INK, linewidth=1.6)
        bars.ax.set(xlim=(0, 1.4), xticks=np.linspace(0, 1, 5))
        return bars.labelled(f"{_title(mean)}, {about}")
    shown = names[:1] if len(names) == 2 else names
    ax = _new(ax, width, len(table) * (1 + len(shown)) // 2)
    apart = np.linspace(0.28, -0.28, len(shown)) if len(shown) > 1 else [0.0]
    colors = [ACCENT] if len(shown) == 1 else _colors(len(shown), lightest=0.8)
    for column, (shift, color) in enumerate(zip(apart, colors, strict=True)):
        y = _places(mean) + shift
        ax.hlines(y, low[:, column], high[:, column], color=color, linewidth=1.6)
        ax.plot(table[:, column], y, "o", color=color, markersize=5, label=shown[column])
    ax.set_yticks(_places(mean), _rows(mean))
    what = _title(mean) if len(shown) > 1 else f"P({', '.join(mean.variables)} = {shown[0]} | evidence)"
    ax.set(xlim=(0, 1), ylim=(-0.5, len(table) - 0.5), xlabel=f"{what}, {about}", ylabel="row")
    if len(shown) == 1:
        return _lettered(ax)
    return with_legend(_lettered(ax), min(4, len(shown)), title=", ".join(mean.variables), fontsize=LETTERS)


def _check_rows(answer: Labelled) -> None:
    if not 0 < len(answer.array) <= MAX_ROWS:
        raise TacitError(f"a chart has 1 to {MAX_ROWS} rows, got {len(answer.array):,}; choose some before you ask")


def _names(answer: Labelled) -> list[str]:
    """What the columns of an answer are called."""
    return [", ".join(map(str, states)) for states in _joint(answer.states)]


def _rows(answer: Labelled) -> list[str]:
    return [row_name(answer.index, row) for row in range(len(answer.array))]


def _places(answer: Labelled) -> Floats:
    """Where each row is drawn: the first one at the top."""
    return np.arange(len(answer.array))[::-1].astype(np.float64)


def weights(why: Weighed, ax: Any = None, width: float | str | None = None) -> Axes:
    """What each finding adds to the log-odds of the answer: bars to the right raise it, bars to the left lower it.

    `why` is what `tac.explain` or `tac.compare` returns. Of a comparison, the bars are the findings that differ.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.asia(), query="lung", evidence=["smoke", "xray"])
    >>> ax = weights(tac.explain({"smoke": "yes", "xray": "yes"}))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['xray: yes', 'smoke: yes']
    """
    if not isinstance(why, Weighed):
        problem = f"why is a {type(why).__name__}, expected what tac.explain or tac.compare returns"
        raise TacitError(problem)
    found = sorted(why.weights, key=lambda one: -abs(np.nan_to_num(one[1])))[:MAX_FINDINGS]
    if not found:
        raise TacitError("there are no weights to draw: no finding has one of its own; print the explanation")
    numbers = np.array([weight for _, weight in found])
    lengths, new = _drawn(numbers), ax is None
    bars = _bars(
        ax, width, [name for name, _ in found], lengths, [f"{weight:+.3g}" for weight in numbers], _signs(numbers)
    )
    ax = bars.labelled(f"weight for {why.query} = {why.states[why.state]}, in nats")
    bars.draw_zero()
    if new:
        ax.figure.draw_without_rendering()  # places the axes, of whose width the numbers take a part
    ax.set_xlim(*_limits(lengths, bars.numbers, ax.get_window_extent().width))
    return ax


def _limits(lengths: Floats, numbers: Sequence[Any], pixels: float) -> tuple[float, float]:
    """The ends of an axis of so many pixels that leave room for the number behind each bar."""
    if not lengths.any():
        return 0.0, 1.0
    gap = 2 * BEHIND / POINTS_PER_INCH * numbers[0].figure.dpi
    room = np.array([text.get_window_extent().width + gap for text in numbers])
    left, right = lengths < 0, lengths >= 0
    low, high = (np.append(np.abs(lengths[side]), 0.0) for side in (left, right))
    before, after = (np.append(room[side], 0.0) for side in (left, right))
    free = np.maximum(pixels - np.add.outer(before, after), BAR_SHARE * pixels)
    units = np.add.outer(low, high)
    scale = np.min(free[units > 0] / units[units > 0])  # pixels per unit, that of the two bars for which it is least
    return -float(np.max(low + before / scale)), float(np.max(high + after / scale))


def _joint(states: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """All combinations of states, the last variable's fastest."""
    combined: list[tuple[Any, ...]] = [()]
    for own in states:
        combined = [(*before, state) for before in combined for state in own]
    return combined


def _title(answer: Labelled) -> str:
    return f"P({', '.join(answer.variables)} | evidence)"


def _new(ax: Any, width: float | str | None, bars: int) -> Axes:
    """The axes that are given, or those of a figure with room for some bars."""
    return axes_of(ax, (_width(ax, width), OUTSIDE + BAR * bars))


def _width(ax: Any, width: float | str | None) -> float:
    """How wide a new figure is, in inches."""
    if ax is not None and width is not None:
        raise TacitError("width= is for a new figure, but ax= has axes of a figure that is already there")
    return WIDTH if width is None else inches(width)


class _Bars(NamedTuple):
    """Axes with bars, from top to bottom, and their numbers."""

    ax: Axes
    look: BarLook
    middles: Floats
    numbers: list[Any]
    label_width: float

    def labelled(self, text: str) -> Axes:
        """The axes, with a text below them."""
        self.ax.set_xlabel(in_lines(text, self.label_width, self.look.axis_letters))
        return self.ax

    def draw_zero(self) -> None:
        """A line where bars begin, which crosses no names."""
        half = self.look.bar / 2
        if self.look.above:
            self.ax.vlines(
                np.zeros(len(self.middles)), self.middles - half, self.middles + half, color=INK, linewidth=1
            )
        else:
            self.ax.axvline(0, color=INK, linewidth=1)


def _bars(
    ax: Any,
    width: float | str | None,
    names: Sequence[str],
    lengths: Floats,
    said: Sequence[str],
    color: Any,
    said_behind: Floats | None = None,
) -> _Bars:
    """Bars from top to bottom, each with its number behind its end, or behind another one."""
    wide = _width(ax, width)
    room = wide - MARGIN if ax is None else ax.get_window_extent().width / ax.figure.dpi
    share = NAME_SHARE if room >= LEAST_BESIDE else SHORT_SHARE
    look, names = _placed(names, room, share)
    below = room * (1 - share) if ax is None and not look.above else room
    ax = axes_of(ax, (wide, OUTSIDE + sum(map(look.height, names))))
    middles = look.middles(names[::-1])[::-1]
    ax.barh(middles, lengths, look.bar, color=color)
    numbers = []
    for place, length, text in zip(middles, lengths if said_behind is None else said_behind, said, strict=True):
        side, shift = ("left", BEHIND) if not length < 0 else ("right", -BEHIND)
        end, how = (float(np.nan_to_num(length)), place), {"va": "center", "fontsize": look.letters}
        numbers.append(ax.annotate(text, end, (shift, 0), textcoords="offset points", ha=side, **how))
    look.draw_names(ax, middles, names)
    ax.tick_params(axis="x", labelsize=look.axis_letters)
    ax.xaxis.label.set_size(look.axis_letters)
    return _Bars(plain(ax), look, middles, numbers, below)


def _placed(names: Sequence[str], room: float, share: float) -> tuple[BarLook, list[str]]:
    """Names in lines, beside bars where a share of the room is enough for all, else above them."""
    beside = [in_lines(name, share * room, BESIDE.letters) for name in names]
    uncut = [name.replace("\n", " ") for name in beside] if room >= LEAST_BESIDE else beside
    if uncut == list(names):
        return BESIDE, beside
    return ABOVE, [in_lines(name, room, ABOVE.letters) for name in names]


def _lettered(ax: Axes) -> Axes:
    ax.tick_params(labelsize=LETTERS)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.label.set_size(LETTERS)
    return plain(ax)


def _drawn(numbers: Floats) -> Floats:
    """The lengths of bars, with an end to those that are infinite."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    longest = BEYOND * finite.max(initial=1.0)
    return np.asarray(np.nan_to_num(np.clip(numbers, -longest, longest)))


def _signs(numbers: Floats) -> list[str]:
    return [LOWERS if number < 0 else RAISES for number in numbers]


def _colors(count: int, lightest: float = 0.95) -> list[Any]:
    """A colour for each state: two that differ, or a scale from dark to light."""
    import matplotlib.pyplot as plt

    return [ACCENT, PALE] if count == 2 else list(plt.get_cmap("viridis")(np.linspace(0.1, lightest, count)))
