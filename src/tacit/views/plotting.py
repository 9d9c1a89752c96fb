"""Pictures of queries: functions of one and two inputs with their pieces, staircases that approximate, tornados.

Needs matplotlib (the extra `plot`). Every function draws on the axes it is given, or on new ones,
and returns them.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.base.version import how_to_install
from tacit.evidence.read import EvidenceLike
from tacit.model.cpt import THRESHOLDS, TestingCPT
from tacit.model.elements.variable import Label, Variable
from tacit.model.model import Model
from tacit.query.sensitivity import Entry, Sensitivity
from tacit.query.tac import TAC
from tacit.theory.arguments import checked_inputs, read_given, state_of
from tacit.theory.piecewise import pieces
from tacit.theory.universal.approximation import Approximation

Axes = Any  # of matplotlib, which carries no types
INK, ACCENT, PALE = "#1b2a41", "#c8553d", "#8d99ae"
LOWERED, RAISED = "#b0306f", "#4b82be"  # as on the explorer page
CURVE_POINTS = 400  # samples of a curve
SURFACE_POINTS = 80  # samples along each side of a surface
JUMP = 0.02  # from which on a surface has a gap between two samples that select different networks
NUMBERED_DEPTH = 0.025  # from its border to its middle, in shares of the map, for which a region has a number
LABEL_WIDTH = 44  # characters in a line of a tornado's labels
GLUE = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
MIN_TRIED_ENTRIES = 40  # entries whose bars are worked out by asking again


def curve(
    tac: TAC, input: str | None = None, given: EvidenceLike | None = None, state: Label | None = None, ax: Any = None
) -> Axes:
    """P*(q) as a function of the soft evidence on one binary variable, with its pieces and their borders.

    `given` is evidence that stays fixed, `state` the state of the query (the first, if left out).

    >>> import tacit
    >>> ax = curve(tacit.compile(tacit.examples.etq(), "Q", ["E"]))
    >>> ax.get_xlabel()
    'λ(E = true)'
    """
    ax = _axes(ax)
    (name,) = _inputs(tac, None if input is None else [input], given, 1)
    which = state_of(tac, _spelled(tac.variable, state))
    borders = [] if _soft(tac) else pieces(tac, [name], given).borders
    for low, high in itertools.pairwise([0.0, *borders, 1.0]):
        inside = np.linspace(low, high, max(2, int(CURVE_POINTS * (high - low))) + 2)[1:-1]
        x = np.concatenate([[low + 1e-9 * (high - low)], inside, [high - 1e-9 * (high - low)]])
        y = tac.posterior({**_fixed(given), name: x})[:, which]
        ax.plot(x, y, color=ACCENT, linewidth=2, solid_capstyle="round")
    for border in borders:
        ax.axvline(border, color=PALE, linewidth=1, linestyle=(0, (3, 3)))
    ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel=_likelihood(tac, name), ylabel=_probability(tac, which, given))
    return _plain(ax)


def surface(
    tac: TAC,
    inputs: Sequence[str] | None = None,
    given: EvidenceLike | None = None,
    state: Label | None = None,
    ax: Any = None,
) -> Axes:
    """P*(q) as a surface over the soft evidence on two binary variables; where it jumps, it has a gap."""
    ax = _axes(ax, projection="3d")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    names, which = _inputs(tac, inputs, given, 2), state_of(tac, _spelled(tac.variable, state))
    side = np.linspace(0, 1, SURFACE_POINTS)
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    row = {**_fixed(given), names[0]: x, names[1]: y}
    faces = _faces(np.stack([x, y, tac.posterior(row)[:, which]], axis=-1))  # (faces, corners, 3)
    if not _soft(tac):
        piece = _faces(_selections(tac, row)[:, None])[..., 0]
        jumps = (np.ptp(piece, axis=1) > 0) & (np.ptp(faces[..., 2], axis=1) > JUMP)
        faces = faces[~jumps]
    colors = plt.get_cmap("viridis")(faces[..., 2].mean(axis=1))
    ax.add_collection3d(Poly3DCollection(faces, facecolors=colors, edgecolors=colors, linewidths=0.2))
    ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
    ax.set(xlabel=_likelihood(tac, names[0]), ylabel=_likelihood(tac, names[1]))
    ax.set_zlabel(_probability(tac, which, given))
    return ax


def _faces(points: NDArray[Any]) -> NDArray[Any]:
    """What the corners of all faces of a surface have, from what its points have (points, any): (faces, 4, any)."""
    grid = points.reshape(SURFACE_POINTS, SURFACE_POINTS, -1)
    corners = [grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]]
    return np.stack(corners, axis=2).reshape(-1, 4, grid.shape[-1])


def _selections(tac: TAC, rows: Mapping[str, Any]) -> NDArray[np.int64]:
    """A number for each row, the same where all tests are decided in the same way; zeros, if there are none."""
    decided = [chosen.weight.reshape(len(chosen.weight), -1) > 0.5 for chosen in tac.selected(rows).values()]
    if not decided:
        return np.zeros(max(map(np.size, rows.values())), dtype=np.int64)
    return np.asarray(np.unique(np.concatenate(decided, axis=1), axis=0, return_inverse=True)[1]).ravel()


def regions(
    tac: TAC, inputs: Sequence[str] | None = None, given: EvidenceLike | None = None, ax: Any = None, points: int = 300
) -> Axes:
    """A map of the regions of two inputs: all evidence of one colour selects the same network.

    Regions are found on a grid of points x points; `tacit.theory.pieces` finds them all. They are numbered from left
    to right, where there is room.
    """
    ax = _axes(ax)
    if _soft(tac):
        raise TacitError("a query with sigmoids has no regions; make its tests hard with net.with_gamma(None)")
    if not tac.program.selections:
        raise TacitError("no testing node takes part in this query, so all evidence is in one region; see plot.surface")
    names = _inputs(tac, inputs, given, 2)
    side = (np.arange(points) + 0.5) / points
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    found = _selections(tac, {**_fixed(given), names[0]: x, names[1]: y})
    _, first = np.unique(found, return_index=True)
    place = np.argsort(np.argsort(first))  # of a region, from left to right
    image, count = place[found].reshape(points, points).T, len(first)
    ax.imshow(_colors(count)[image], origin="lower", extent=(0, 1, 0, 1))
    for region in range(count):
        i, j, depth = _middle(image == region)
        if depth > NUMBERED_DEPTH * points:
            ax.text((j + 0.5) / points, (i + 0.5) / points, str(region + 1), ha="center", va="center", color=INK)
    ax.set(xlabel=_likelihood(tac, names[0]), ylabel=_likelihood(tac, names[1]), title=plural(count, "region"))
    return ax


def _colors(count: int) -> Floats:
    """Pale colours (count, 3) that differ: hues by the golden ratio, so that neighbours are far apart."""
    from matplotlib.colors import hsv_to_rgb

    place = np.arange(count)
    hues = (0.58 + place * (5**0.5 - 1) / 2) % 1
    return np.asarray(hsv_to_rgb(np.stack([hues, 0.14 + 0.07 * (place % 3), 0.98 - 0.06 * (place % 2)], axis=-1)))


def staircase(f: Callable[..., Any], approximation: Approximation, ax: Any = None) -> Axes:
    """A function of one input and the staircase that a network approximates it with."""
    ax = _axes(ax)
    if len(approximation.evidence) != 1:
        raise TacitError(f"a staircase has one input, but the approximation has {len(approximation.evidence)}")
    x = np.linspace(0, 1, 4 * CURVE_POINTS)
    steps = approximation.staircase.value(x[:, None])
    exact = np.array([float(f(float(v))) for v in x])
    error = approximation.error
    ax.fill_between(x, exact - error, exact + error, color=PALE, alpha=0.25, linewidth=0, label=f"f ± {error:.3g}")
    ax.plot(x, exact, color=INK, linewidth=1.2, label="f")
    ax.plot(x, steps, color=ACCENT, linewidth=1.8, label=f"P*(y), {approximation.levels} levels")
    ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="x")
    return _with_legend(_plain(ax), 3)


def tornado(
    found: Sensitivity,
    row: int = 0,
    state: Label | tuple[Label, ...] | None = None,
    n: int = 10,
    change: float = 0.1,
    ax: Any = None,
) -> Axes:
    """What happens to a posterior if single entries of tables are lowered and raised: a bar for each, widest on top.

    It shows the n widest bars, fewer if the posterior depends on fewer entries. Each entry is lowered and raised by
    `change`, cut at 0 and at 1: 0.97 is raised to 1, by 0.03 only. The rest of its row changes in proportion. `change`
    is absolute, so that the two entries of a binary row make the same bar, of which one is drawn. Testing nodes select
    their tables again.

    `row` and `state` are those of `Sensitivity.entries`: the first row, and its most probable state, if left out. A
    state may be written in capitals or small letters, where that leaves no doubt.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.kidney_stones(), "recovery", ["treatment"])
    >>> ax = tornado(tac.sensitivity({"treatment": "A"}), n=3)
    >>> print(ax.get_yticklabels()[-1].get_text())
    P(recovery = yes | size = large,
    treatment = A) = 0.73
    """
    if not isinstance(found, Sensitivity):
        raise TacitError(f"found is a {type(found).__name__}, expected what tac.sensitivity(evidence) returns")
    state = _state_of(found, state)
    which = found.state(row, state)
    now = float(found.posterior[row][which])
    if np.isnan(now):
        raise TacitError(f"row {row}: the evidence has probability 0, so there is no posterior to vary")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise TacitError(f"n is {n!r}, expected the number of bars, a whole number >= 1")
    if not 0 < change <= 1:
        raise TacitError(f"change is {change!r}, expected a number above 0, at most 1")
    most = max(MIN_TRIED_ENTRIES, 2 * int(n)) if found.selects else None  # to select anew takes a while
    bars = [_bar(found, row, which, entry, change) for entry in _entries(found, row, state)[:most]]
    bars = sorted(bars, key=lambda bar: abs(bar.raised - bar.lowered))[-int(n) :]
    labels = [_wrapped(bar.label) for bar in bars]
    height = 0.22 + 0.16 * max((label.count("\n") + 1 for label in labels), default=1)  # inches for a bar
    ax = _axes(ax, size=(7, height * max(len(bars), 1) + 1))
    for word, other, color in (("lowered", "raised", LOWERED), ("raised", "lowered", RAISED)):
        widths = np.array([getattr(bar, word) - now for bar in bars])
        others = np.array([getattr(bar, other) - now for bar in bars])
        drawn = ax.barh(range(len(bars)), widths, 0.66, now, color=color, label=f"{word} by {change:g}")
        for patch, behind in zip(drawn, np.abs(widths) > np.abs(others), strict=True):
            patch.set_zorder(1 if behind else 1.5)  # of two bars on one side, the shorter one stays in sight
    ax.axvline(now, color=INK, linewidth=1)
    ax.set_yticks(range(len(bars)), labels, fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.set(xlabel=f"{_posterior(found, which)} = {now:.3g}", ylim=(-0.5, max(len(bars), 1) - 0.5))
    return _with_legend(_plain(ax), 2, "one number of the network, cut at 0 and 1")


def _wrapped(label: str) -> str:
    """A label in lines that do not end between a variable and its state."""
    kept = label.replace(" = ", GLUE)
    lines = textwrap.fill(kept, LABEL_WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace(GLUE, " = ")


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
    return _Bar(f"{name} = {entry.value:.3g}", *np.clip(posteriors, 0, 1).tolist())


def _state_of(found: Sensitivity, state: Label | tuple[Label, ...] | None) -> Label | tuple[Label, ...] | None:
    """The states of the query that are meant, by their own names."""
    variables = [found.network.variable(name) for name in found.query]
    if isinstance(state, tuple):
        return (
            tuple(_spelled(*pair) for pair in zip(variables, state, strict=True))
            if len(state) == len(variables)
            else state
        )
    return _spelled(variables[0], state) if len(variables) == 1 else state


def _spelled(variable: Variable, state: Label | None) -> Label | None:
    """A state by its own name, if it is written in other capitals; what is none stays, for an error to name it."""
    if not isinstance(state, str) or state in variable.codes:
        return state
    place = variable.plain.get(state.strip().lower())
    return state if place is None else variable.states[place]


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


def _axes(ax: Any, size: tuple[float, float] = (5, 4), **how: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise TacitError(f"pictures need matplotlib, which is not installed: {how_to_install('plot')}") from None
    if ax is None:
        ax = plt.figure(figsize=size, layout="constrained").add_subplot(**how)
        ax._ipython_display_ = _say_nothing
    return ax


def _say_nothing() -> None:
    """What a notebook prints of new axes that end a cell: it shows their figure anyway. Named, so that it pickles."""


def _plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _with_legend(ax: Any, columns: int, title: str | None = None) -> Any:
    """Axes with their legend above them, where it hides nothing."""
    ax.legend(frameon=False, ncols=columns, title=title, loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def _inputs(tac: TAC, inputs: Sequence[str] | None, given: EvidenceLike | None, count: int) -> tuple[str, ...]:
    names = checked_inputs(tac, inputs, read_given(tac, given).columns)
    if len(names) != count:
        raise TacitError(
            f"this picture has {count} input{'s' * (count > 1)}, but there are {len(names)}: {', '.join(names)}; "
            "name them, and give the others with given="
        )
    return names


def _soft(tac: TAC) -> bool:
    cpts = [tac.network.cpt(node) for node in tac.program.selections]
    return any(isinstance(cpt, TestingCPT) and cpt.gamma is not None for cpt in cpts)


def _fixed(given: EvidenceLike | None) -> dict[str, Any]:
    return {} if given is None else dict(given)


def _middle(mask: NDArray[np.bool_]) -> tuple[int, int, float]:
    """A point of a region where a number is easy to read, and how far it is from the border.

    Of the points that are about as far from it as any, that is the one nearest to the centre of the region.
    """
    from scipy.ndimage import distance_transform_edt

    depth = distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1]
    deep = np.argwhere(depth >= 0.95 * depth.max())
    away = np.linalg.norm(deep - np.argwhere(mask).mean(axis=0), axis=1)
    i, j = deep[int(away.argmin())].tolist()
    return i, j, float(depth[i, j])


def _likelihood(tac: TAC, name: str) -> str:
    return f"λ({name} = {tac.network.states(name)[0]})"


def _probability(tac: TAC, which: int, given: EvidenceLike | None) -> str:
    """The probability that is drawn, with the evidence that stays fixed."""
    fixed = []
    for name, column in read_given(tac, given).columns.items():
        if column.codes is not None and column.fully_observed:
            fixed.append(f"{name} = {column.variable.states[column.codes[0]]}")
        elif column.variable.card == 2:
            fixed.append(f"{_likelihood(tac, name)} = {column.likelihoods()[0, 0]:.3g}")
        else:
            fixed.append(name)
    condition = f" | {', '.join(fixed)}" if fixed else ""
    star = "*" * bool(tac.program.selections)
    return f"P{star}({tac.query} = {tac.variable.states[which]}{condition})"
