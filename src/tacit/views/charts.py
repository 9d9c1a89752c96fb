"""Charts of answers, with matplotlib: the posteriors of some rows, and what the findings of a row add to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, flat
from tacit.base.grid import row_name
from tacit.views.axes import (
    INK,
    LETTERS,
    POINTS_PER_INCH,
    SMALL_LETTERS,
    Axes,
    BarLook,
    axes_of,
    figure_width,
    in_lines,
    literal,
    plain,
    row_title,
    width_of,
    with_height,
    with_legend,
)
from tacit.views.words import true_minus

MAX_ROWS = 40
MAX_FINDINGS = 20
WIDTH, HEIGHT = 5.5, 4.0  # inches, of a new figure, before it has the height that its bars need
PAGE_HEIGHT, LEAST_SHARE = 8.5, 0.3  # inches of a page that bars may fill; of a bar that is left at least to fit there
FILLED, REST = "#4b82be", "#ccd8e6"  # as in a drawing; far apart in grey print
LOWERS, RAISES = "#8e2157", "#86b3e2"  # as in a tornado: dark and light, so that grey print tells them apart
BESIDE = BarLook(above=False, letters=LETTERS, axis_letters=LETTERS, bar=0.22, gap=0.08)
SMALL_BESIDE = replace(BESIDE, letters=SMALL_LETTERS, axis_letters=SMALL_LETTERS)
ABOVE = BarLook(above=True, letters=SMALL_LETTERS, axis_letters=SMALL_LETTERS, bar=0.15, gap=0.09)
INTERVAL, BETWEEN = 0.13, 0.16  # inches: of a line that is an interval, and between those of two rows
LEAST_BESIDE, MARGIN = 4.5, 0.3  # inches: what is needed to have names beside bars; around all that is drawn
# of the width that names beside bars may take, where it is large, and where it is not
NAME_SHARE, SHORT_SHARE = 0.4, 0.2
BAR_SHARE = 0.4  # of the axis, at least, for bars between their numbers
BEHIND = 3  # points from the end of a bar to its number
BEYOND = 1.3  # an infinite weight is drawn so many times as long as the longest finite one
LEGEND_COLUMNS = 6
IMPOSSIBLE = "impossible evidence"  # in place of a bar
TICKS, FEW_TICKS = np.linspace(0, 1, 6), (0, 0.5, 1)  # of an axis from 0% to 100%, and where that is short
TICK_ROOM = 0.45  # inches that a tick needs with its number
LEAST_PLAIN = 0.0005  # below, percentages have two digits that count
MARKERS = "os^Dv"  # of means: states are told apart in grey print, too


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


@runtime_checkable
class Chosen(Protocol):
    """The best action of each row, and what each action is expected to be worth: (rows, actions)."""

    @property
    def variable(self) -> Any: ...
    @property
    def actions(self) -> tuple[Any, ...]: ...
    @property
    def action(self) -> Any: ...
    @property
    def expected(self) -> Floats: ...


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
    if len(table) == 1:
        lines = lines_for(ax, width, names)
        numbers = lines.bars(table[0], table[0], [_percent(p) for p in table[0]], FILLED)
        return _to_one(lines, _title(answer), ends=table[0], numbers=numbers)
    lines, left = lines_for(ax, width, _rows(answer)), np.zeros(len(table))
    for name, share, color in zip(names, np.nan_to_num(table).T, _colors(len(names)), strict=True):
        how = {"color": color, "edgecolor": "white", "linewidth": 0.6, "label": name}
        lines.ax.barh(lines.middles, share, lines.look.bar, left, **how)
        left = left + share
    for row in np.flatnonzero(np.isnan(table).any(axis=1)):
        how = {"va": "center", "fontsize": lines.look.letters, "color": INK}
        lines.ax.text(0.01, lines.middles[row], IMPOSSIBLE, **how)
    return _of_rows(lines, answer, len(names), _title(answer))


def _credible(mean: Labelled, low: Floats, high: Floats, level: float, ax: Any, width: float | str | None) -> Axes:
    """Means with the intervals around them: bars of one row, dots of several."""
    _check_rows(mean)
    table, names = flat(mean.array), _names(mean)
    about = f"means and {100 * level:.4g}% intervals"
    if len(table) == 1:
        ends = zip(table[0], low[0], high[0], strict=True)
        said = [f"{100 * p:.1f}%  [{100 * a:.1f}, {100 * b:.1f}]" for p, a, b in ends]
        lines = lines_for(ax, width, [f"{name}:  {text}" for name, text in zip(names, said, strict=True)], above=True)
        lines.ax.barh(lines.middles, table[0], lines.look.bar, color=REST)
        lines.ax.hlines(lines.middles, low[0], high[0], color=INK, linewidth=1.6, clip_on=False)
        return _to_one(lines, f"{_title(mean)}, {about}")
    shown = names[:1] if len(names) == 2 else names
    lines = lines_for(ax, width, _rows(mean), INTERVAL * len(shown))
    colors = [FILLED] if len(shown) == 1 else _colors(len(shown), lightest=0.8)
    for column, color in enumerate(colors):
        y = lines.middles + lines.look.bar * ((len(shown) - 1) / 2 - column) / len(shown)
        how = {"color": color, "clip_on": False}  # at 0 and 1, half of a dot would be cut
        lines.ax.hlines(y, low[:, column], high[:, column], linewidth=1.6, **how)
        marker = MARKERS[column % len(MARKERS)]
        lines.ax.plot(table[:, column], y, marker, markersize=4.5, label=shown[column], **how)
    if len(shown) == 1:
        what = f"P({', '.join(mean.variables)} = {shown[0]} | evidence), {about}"
        return _to_one(lines, what, row_title(mean.index))
    return _of_rows(lines, mean, len(shown), f"{_title(mean)}, {about}")


def _of_rows(lines: Lines, answer: Labelled, states: int, text: str) -> Axes:
    """The axes of several rows, with a text below and a legend of the states above."""
    ax = _to_one(lines, text, row_title(answer.index))
    return with_legend(ax, min(LEGEND_COLUMNS, states), literal(", ".join(answer.variables)))


def _to_one(lines: Lines, text: str, side: str = "", ends: Floats | None = None, numbers: Sequence[Any] = ()) -> Axes:
    """Axes from 0% to 100% with a text below, and beyond as far as the numbers behind the ends of bars need."""
    ax, wide = lines.ax, width_of(lines.ax)
    high = 1.0 if ends is None else max(1.0, _limits(np.nan_to_num(ends), numbers, wide)[1])
    ticks = TICKS if wide / high >= TICK_ROOM * len(TICKS) else FEW_TICKS
    ax.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    ax.spines["bottom"].set_bounds(0, 1)
    ax.set_xlim(0, high)
    return lines.done(text, side, share=1 / high)


def _percent(p: float) -> str:
    """A probability: 72.1%, 2.6%, 0.031%."""
    return f"{100 * p:.1f}%" if not 0 < p < LEAST_PLAIN else f"{100 * p:.2g}%"


def _check_rows(answer: Labelled) -> None:
    if not 0 < len(answer.array) <= MAX_ROWS:
        raise TacitError(f"a chart has 1 to {MAX_ROWS} rows, got {len(answer.array):,}; choose some before you ask")


def _names(answer: Labelled) -> list[str]:
    """What the columns of an answer are called."""
    return [", ".join(map(str, states)) for states in _joint(answer.states)]


def _rows(answer: Labelled) -> list[str]:
    return [row_name(answer.index, row) for row in range(len(answer.array))]


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
    lengths, lines = _drawn(numbers), lines_for(ax, width, [name for name, _ in found])
    said = [_signed(weight) for weight in numbers]
    texts = lines.bars(lengths, lengths, said, _signs(numbers))
    lines.draw_zero()
    ax = lines.done(f"weight for {why.query} = {why.states[why.state]} (added log-odds, in nats)")
    ax.set_xlim(*_limits(lengths, texts, width_of(ax)))
    return ax


def decision(choice: Chosen, row: int = 0, ax: Any = None, width: float | str | None = None) -> Axes:
    """What each action is expected to be worth in a row, as bars; that of the best one is dark.

    `choice` is what `tac.decide` returns. `width` is that of a new figure, in centimetres or as a text such as "3.3in".

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("Ill", states=["yes", "no"], cpt=[0.2, 0.8])
    >>> net.add("Treat", states=["yes", "no"])
    >>> net.value("Harm", ["Ill", "Treat"], [[-10, -90], [-5, 0]])
    >>> ax = decision(tacit.compile(net, decide="Treat").decide())
    >>> [text.get_text() for text in ax.texts]
    ['−6', '−18']
    """
    if not isinstance(choice, Chosen):
        raise TacitError(f"choice is a {type(choice).__name__}, expected what tac.decide returns")
    if not 0 <= row < len(choice.expected):
        raise TacitError(f"row is {row!r}, expected one of the {len(choice.expected)} rows of the decision")
    worth = np.asarray(choice.expected[row])
    if np.isnan(worth).any():
        raise TacitError(f"row {row}: the evidence has probability 0, so there is nothing to draw")
    lines = lines_for(ax, width, [str(action) for action in choice.actions])
    colors = [FILLED if action == choice.action[row] else REST for action in choice.actions]
    said = [true_minus(f"{number + 0.0:.4g}") for number in worth.tolist()]
    texts = lines.bars(worth, worth, said, colors)
    lines.draw_zero()
    ax = lines.done(f"expected value of {choice.variable.name} (dark: the best action)")
    ax.set_xlim(*_limits(worth, texts, width_of(ax)))
    return ax


def _signed(weight: float) -> str:
    """A weight with its sign: +4.43, −0.0137, +∞; 0 has none."""
    if weight == 0:
        return "0"
    return true_minus(f"{weight:+#.3g}").rstrip(".").replace("inf", "∞")


def _limits(lengths: Floats, numbers: Sequence[Any], width: float) -> tuple[float, float]:
    """The ends of an axis of so many inches that leave room for the number behind each bar."""
    if not lengths.any():
        return 0.0, 1.0
    gap = 2 * BEHIND / POINTS_PER_INCH
    room = np.array([text.get_window_extent().width / text.figure.dpi + gap for text in numbers])
    left, right = lengths < 0, lengths >= 0
    low, high = (np.append(np.abs(lengths[side]), 0.0) for side in (left, right))
    before, after = (np.append(room[side], 0.0) for side in (left, right))
    free = np.maximum(width - np.add.outer(before, after), BAR_SHARE * width)
    units = np.add.outer(low, high)
    scale = np.min(free[units > 0] / units[units > 0])  # inches per unit, of the two bars for which it is least
    return -float(np.max(low + before / scale)), float(np.max(high + after / scale))


def _joint(states: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """All combinations of states, the last variable's fastest."""
    combined: list[tuple[Any, ...]] = [()]
    for own in states:
        combined = [(*before, state) for before in combined for state in own]
    return combined


def _title(answer: Labelled) -> str:
    return f"P({', '.join(answer.variables)} | evidence)"


class Lines(NamedTuple):
    """Axes with a line for each name, from top to bottom, in which bars are drawn."""

    ax: Axes
    look: BarLook
    middles: Floats
    height: float

    def bars(self, lengths: Floats, ends: Floats, said: Sequence[str], color: Any) -> list[Any]:
        """Draw a bar in each line, with its number behind its end, or behind another one; these numbers."""
        self.ax.barh(self.middles, lengths, self.look.bar, color=color)
        numbers, how = [], {"va": "center", "fontsize": self.look.letters, "textcoords": "offset points"}
        how["annotation_clip"] = False  # so that they have a size where the axes have no limits yet
        for place, end, text in zip(self.middles, np.nan_to_num(ends).tolist(), said, strict=True):
            side, shift = ("left", BEHIND) if end >= 0 else ("right", -BEHIND)
            numbers.append(self.ax.annotate(text, (end, place), (shift, 0), ha=side, **how))
        return numbers

    def done(self, text: str, side: str = "", share: float = 1.0) -> Axes:
        """The axes, as high as their lines need, with a text to their left, and one below the first share of them."""
        if not self.look.above:
            self.ax.set_ylabel(literal(side), size=self.look.axis_letters)
        wide = width_of(self.ax)
        self.ax.set_xlabel(in_lines(text, share * wide, self.look.axis_letters))
        self.ax.xaxis.label.set_x(share / 2)
        return with_height(self.ax, self.height)

    def draw_zero(self) -> None:
        """A line where bars begin, which crosses no names."""
        self.ax.spines["left"].set_visible(False)
        half = self.look.bar / 2
        if self.look.above:
            self.ax.vlines(
                np.zeros(len(self.middles)), self.middles - half, self.middles + half, color=INK, linewidth=1
            )
        else:
            self.ax.axvline(0, color=INK, linewidth=1)


def lines_for(
    ax: Any,
    width: float | str | None,
    names: Sequence[str],
    bar: float | None = None,
    gap: float = BETWEEN,
    above: bool = False,
) -> Lines:
    """Axes with lines of such a height, if one is given; many lines are as much lower as lets them fit a page.

    Names that have to be `above` the lines are there in wide figures, too.
    """
    wide = figure_width(ax, width, WIDTH)
    room = wide - MARGIN if ax is None else width_of(ax)
    ax = axes_of(ax, (wide, HEIGHT))
    look, names = _above(names, room) if above else _placed(names, room)
    if bar is not None:
        look = replace(look, bar=bar, gap=gap)
    look = _on_a_page(look, names)
    middles = look.middles(names[::-1])[::-1]
    look.draw_names(ax, middles, names)
    ax.tick_params(axis="x", labelsize=look.axis_letters)
    ax.xaxis.label.set_size(look.axis_letters)
    return Lines(plain(ax), look, middles, sum(map(look.height, names)))


def _on_a_page(look: BarLook, names: Sequence[str]) -> BarLook:
    """Lower bars and narrower gaps where the lines would be higher than a page; names keep their size."""
    height, texts = (sum(map(own.height, names)) for own in (look, replace(look, bar=0.0, gap=0.0)))
    if height <= PAGE_HEIGHT:
        return look
    share = max(LEAST_SHARE, (PAGE_HEIGHT - texts) / (height - texts))
    return replace(look, bar=share * look.bar, gap=share * look.gap)


def _placed(names: Sequence[str], room: float) -> tuple[BarLook, list[str]]:
    """Names in lines: beside bars where a share of the room is enough for all, in one line if possible, else above."""
    wide = room >= LEAST_BESIDE
    for look in (BESIDE, SMALL_BESIDE) if wide else (SMALL_BESIDE,):
        beside = [in_lines(name, (NAME_SHARE if wide else SHORT_SHARE) * room, look.letters) for name in names]
        if not any("\n" in name for name in beside):
            return look, beside
    if wide and all(name.replace("\n", " ") == literal(own) for name, own in zip(beside, names, strict=True)):
        return SMALL_BESIDE, beside
    return _above(names, room)


def _above(names: Sequence[str], room: float) -> tuple[BarLook, list[str]]:
    return ABOVE, [in_lines(name, room, ABOVE.letters) for name in names]


def _drawn(numbers: Floats) -> Floats:
    """The lengths of bars, with an end to those that are infinite."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    longest = BEYOND * finite.max(initial=1.0)
    return np.asarray(np.nan_to_num(np.clip(numbers, -longest, longest)))


def _signs(numbers: Floats) -> list[str]:
    return [LOWERS if number < 0 else RAISES for number in numbers]


def _colors(count: int, lightest: float = 0.92) -> list[Any]:
    """A colour for each state: two that differ, or a scale from dark to light."""
    import matplotlib.pyplot as plt

    return [FILLED, REST] if count == 2 else list(plt.get_cmap("viridis")(np.linspace(0.05, lightest, count)))
