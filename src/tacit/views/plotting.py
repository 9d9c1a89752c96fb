"""Pictures of queries: functions of one and two inputs with their pieces, and staircases that approximate.

Needs matplotlib (the extra `plot`). Every function draws on the axes it is given, or on new ones,
and returns them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.read import EvidenceLike
from tacit.model.cpt import TestingCPT
from tacit.model.elements.variable import Label
from tacit.query.tac import TAC
from tacit.theory.arguments import checked_inputs, read_given, state_of
from tacit.theory.piecewise import pieces
from tacit.theory.universal.approximation import Approximation
from tacit.views.axes import ACCENT, INK, PALE, Axes, in_lines, literal, plain, wide_axes, with_legend
from tacit.views.words import spelled, true_minus

CURVE_POINTS = 400  # samples of a curve
SQUARE = 0.9  # height / width of a new figure with two inputs
ZOOM = 0.85  # of a surface, beside which its labels need room
SURFACE_POINTS = 80  # samples along each side of a surface
JUMP = 0.02  # from which on a surface has a gap between two samples that select different networks
NUMBERED_DEPTH = 0.025  # from its border to its middle, in shares of the map, for which a region has a number


def curve(
    tac: TAC,
    input: str | None = None,
    given: EvidenceLike | None = None,
    state: Label | None = None,
    ax: Any = None,
    width: float | str | None = None,
) -> Axes:
    """P*(q) as a function of the soft evidence on one binary variable, with its pieces and their borders.

    `given` is evidence that stays fixed, `state` the state of the query (the first, if left out). `width` is that of a
    new figure, in centimetres or as a text such as "3.3in".

    >>> import tacit
    >>> ax = curve(tacit.compile(tacit.examples.etq(), "Q", ["E"]))
    >>> ax.get_xlabel()
    'λ(E = true)'
    """
    explained = ax is None
    ax = wide_axes(ax, width)
    (name,) = _inputs(tac, None if input is None else [input], given, 1)
    which = state_of(tac, spelled(tac.variable, state))
    borders = [] if _soft(tac) else pieces(tac, [name], given).borders
    for low, high in itertools.pairwise([0.0, *borders, 1.0]):
        inside = np.linspace(low, high, max(2, int(CURVE_POINTS * (high - low))) + 2)[1:-1]
        x = np.concatenate([[low + 1e-9 * (high - low)], inside, [high - 1e-9 * (high - low)]])
        y = tac.posterior({**_fixed(given), name: x})[:, which]
        ax.plot(x, y, color=ACCENT, linewidth=2, solid_capstyle="round")
    for border in borders:
        ax.axvline(border, color=PALE, linewidth=1, linestyle=(0, (3, 3)))
    ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel=literal(_likelihood(tac, name)))
    _label_upwards(ax, _probability(tac, which, given))
    if not borders or not explained:
        return plain(ax)
    ax.lines[-1].set_label("from here on, tests select other tables")
    return with_legend(plain(ax), 1)


def _label_upwards(ax: Axes, text: str) -> None:
    """What an axis upwards shows, in lines that are no longer than it is."""
    height = ax.get_window_extent().height / ax.figure.dpi
    ax.set_ylabel(in_lines(text, height, ax.yaxis.label.get_size()))


def surface(
    tac: TAC,
    inputs: Sequence[str] | None = None,
    given: EvidenceLike | None = None,
    state: Label | None = None,
    ax: Any = None,
    width: float | str | None = None,
) -> Axes:
    """P*(q) as a surface over the soft evidence on two binary variables; where it jumps, it has a gap.

    `width` is that of a new figure, in centimetres or as a text such as "3.3in".
    """
    given_axes, ax = ax, wide_axes(ax, width, SQUARE, projection="3d")
    import matplotlib.pyplot as plt
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    names, which = _inputs(tac, inputs, given, 2), state_of(tac, spelled(tac.variable, state))
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
    x_label, y_label = (literal(_likelihood(tac, name)) for name in names)
    ax.set(xlabel=x_label, ylabel=y_label)
    ax.set_zlabel(literal(_probability(tac, which, given)))
    if given_axes is None:
        ax.set_box_aspect(None, zoom=ZOOM)
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
    tac: TAC,
    inputs: Sequence[str] | None = None,
    given: EvidenceLike | None = None,
    ax: Any = None,
    points: int = 300,
    width: float | str | None = None,
) -> Axes:
    """A map of the regions of two inputs: all evidence of one colour selects the same network.

    Regions are found on a grid of points x points; `tacit.theory.pieces` finds them all. They are numbered from left
    to right, where there is room. `width` is that of a new figure, in centimetres or as a text such as "3.3in".
    """
    ax = wide_axes(ax, width, SQUARE)
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
    x_label, y_label = (literal(_likelihood(tac, name)) for name in names)
    ax.set(xlabel=x_label, ylabel=y_label)
    ax.set_title(plural(count, "region"), size=ax.xaxis.label.get_size())
    return ax


def _colors(count: int) -> Floats:
    """Pale colours (count, 3) that differ: hues by the golden ratio, so that neighbours are far apart."""
    from matplotlib.colors import hsv_to_rgb

    place = np.arange(count)
    hues = (0.58 + place * (5**0.5 - 1) / 2) % 1
    return np.asarray(hsv_to_rgb(np.stack([hues, 0.14 + 0.07 * (place % 3), 0.98 - 0.06 * (place % 2)], axis=-1)))


def staircase(
    f: Callable[..., Any], approximation: Approximation, ax: Any = None, width: float | str | None = None
) -> Axes:
    """A function of one input and the staircase that a network approximates it with.

    `width` is that of a new figure, in centimetres or as a text such as "3.3in".
    """
    ax = wide_axes(ax, width)
    if len(approximation.evidence) != 1:
        raise TacitError(f"a staircase has one input, but the approximation has {len(approximation.evidence)}")
    x = np.linspace(0, 1, 4 * CURVE_POINTS)
    steps = approximation.staircase.value(x[:, None])
    exact = np.array([float(f(float(v))) for v in x])
    error = approximation.error
    ax.fill_between(x, exact - error, exact + error, color=PALE, alpha=0.25, linewidth=0, label=f"f ± {error:.3g}")
    ax.plot(x, exact, color=INK, linewidth=1.2, label="f")
    ax.plot(x, steps, color=ACCENT, linewidth=1.8, label=f"P*(y), {approximation.levels} levels")
    ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="x", ylabel="f(x)")
    return with_legend(plain(ax), 3)


def _inputs(tac: TAC, inputs: Sequence[str] | None, given: EvidenceLike | None, count: int) -> tuple[str, ...]:
    if not isinstance(tac, TAC):
        remedy = 'tac = tacit.compile(net, query="...", evidence=[...])'
        raise TacitError(f"tac is a {type(tac).__name__}, expected a compiled query: {remedy}")
    if isinstance(inputs, str) or (given is not None and not isinstance(given, Mapping)):
        what = "inputs is" if isinstance(inputs, str) else "given is"
        expected = "a list of names" if isinstance(inputs, str) else "a dictionary from variables to what is known"
        raise TacitError(f"{what} {(inputs if isinstance(inputs, str) else given)!r}, expected {expected}")
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
        if isinstance(column, DensityColumn):
            known = zip(column.variable.columns, column.values[0].tolist(), strict=True)
            fixed += [true_minus(f"{own} = {number:.4g}") for own, number in known if not np.isnan(number)]
        elif column.codes is not None and column.fully_observed:
            fixed.append(f"{name} = {column.variable.states[column.codes[0]]}")
        elif column.variable.card == 2:
            fixed.append(f"{_likelihood(tac, name)} = {column.likelihoods()[0, 0]:.3g}")
        else:
            fixed.append(name)
    condition = f" | {', '.join(fixed)}" if fixed else ""
    star = "*" * bool(tac.program.selections)
    return f"P{star}({tac.query} = {tac.variable.states[which]}{condition})"
