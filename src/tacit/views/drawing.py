"""Drawings of networks and circuits. Nodes go where the explorer page would put them.

`to_dot` gives the same networks and circuits as text for Graphviz, which finds places of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np

from tacit.base.atomic import write_atomically
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import visible
from tacit.base.warnings import warn
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.circuit_text import drawn_nodes
from tacit.evidence.column import Evidence
from tacit.evidence.density_column import DensityColumn, with_densities
from tacit.evidence.read import EvidenceLike, read
from tacit.model.elements.variable import Variable
from tacit.model.model import Model
from tacit.query.answer import ImpossibleEvidenceWarning
from tacit.query.marginals import marginals
from tacit.query.options import CompileOptions
from tacit.query.query import Query, compiled
from tacit.views.curves import Column, Curves
from tacit.views.edges import CUT_LOOK, EdgeLook, EdgeLooks, Sample, Swatch, legend_items
from tacit.views.images import FORMATS, PIXELS_PER_INCH, write_image
from tacit.views.layout import GAP, MARGIN, Edge, Point, arrange
from tacit.views.nodes import SEEN, SEEN_LINE, SET, SET_LINE, Bars, Known, Labelled
from tacit.views.picture import Arrow, Item, Picture
from tacit.views.svg import svg
from tacit.views.words import Captioned, Words

CELL_STYLE = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
SUFFIXES = (".svg", *(f".{kind}" for kind in FORMATS))
ROW_GAP = 42.0
CM_PER_INCH = 2.54
SCALES = (1.0, 0.9, 0.8, 2 / 3)  # letters of 9 points, and down to 6, to fit a page
LETTERS = 9.0  # points
LARGE, MANY = 100, 12  # nodes of a large network; halvings for a smaller one
STEP = 0.5  # centimetres, of widths that are tried
PAGE_SHAPE = 1.4  # height / width of a page
MAX_PAGES = 2.2  # that a picture of a stated width may fill before its letters become smaller still
ASIDE = 9.0  # pixels between a tip and the end of an edge without one
SET_TEXT, CUT_TEXT, SEEN_TEXT = "set from outside (do)", "edge cut by that", "observed"
DPI = 192  # two pixels of a PNG for each of the drawing
Nodes = Sequence[Labelled | Bars | Curves]


class SmallLettersWarning(UserWarning):
    """A drawing of a stated width has letters that are too small to read."""


class Drawing:
    """A picture of a network or a circuit, which notebooks show. Made by `draw` and `Network.plot`."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    @cached_property
    def svg(self) -> str:
        """The picture as SVG."""
        return svg(self.picture)

    def save(self, path: str | os.PathLike[str], dpi: float = DPI) -> None:
        """Write the picture to a file: .svg, .png or .pdf. The last two need matplotlib.

        Parameters
        ----------
        path
            The file, whose suffix says what it is to be.
        dpi
            How fine a PNG is, in dots per inch: at 96, it has as many pixels as the drawing.
        """
        if not (isinstance(dpi, int | float) and 0 < dpi < math.inf):
            raise TacitError(f"dpi is {dpi!r}, expected a number above 0")
        kind = Path(path).suffix.lower().removeprefix(".")
        if kind == "svg":
            write_atomically(path, lambda file: file.write(self.svg))
        elif kind in FORMATS:
            write_atomically(path, lambda file: write_image(self.picture, file, kind, dpi), binary=True)
        else:
            raise TacitError(f"{os.fspath(path)}: a drawing is saved as {', '.join(SUFFIXES)}")

    def _repr_svg_(self) -> str:
        return self.svg.replace("<svg ", f'<svg style="{CELL_STYLE}" ', 1)

    def __repr__(self) -> str:
        width, height = (self.picture.scale * length for length in (self.picture.width, self.picture.height))
        return f"Drawing({width:.0f} x {height:.0f} pixels; .save('drawing.png') writes it)"


def draw(
    what: Model | Circuit,
    evidence: EvidenceLike | None = None,
    *,
    do: Mapping[str, Any] | None = None,
    captions: Mapping[str, str] | Captioned | None = None,
    nodes: Iterable[str] | None = None,
    width: float | None = None,
    strength: Mapping[tuple[str, str], float] | None = None,
    undirected: Iterable[tuple[str, str]] = (),
) -> Drawing:
    """A network, testing nodes shaded and continuous ones in boxes, or a circuit, its inputs at the bottom.

    Parameters
    ----------
    what
        The network or the circuit.
    evidence
        One row of evidence: the nodes of a network show their posteriors as bars, continuous ones as curves of their
        densities; see `Network.plot`.
    do
        States that variables are set to from outside, as `Network.do` sets them. They are violet, and the edges into
        them, which are cut, are dotted.
    captions
        The name to show in place of a variable's own; long ones are wrapped. `Network.plot` also takes a file.
    nodes
        Draw only these variables of a network, and the edges between them.
    width
        How wide the picture is, in centimetres. Names have letters of 9 points, or down to 6 where the picture would be
        longer than a page otherwise. Where that is not enough, they are smaller, and a warning says what helps.
    strength
        The share of bootstrap samples that have an edge (parent, child), from 0 to 1. Edges below 1 are dashed, the
        weaker the lighter, and a legend says so. An edge that is not named has strength 1.
    undirected
        Edges whose direction is not known, drawn without a tip.

    >>> import tacit
    >>> net = tacit.examples.etq()  # E -> T -> Q
    >>> draw(net)
    Drawing(58 x 192 pixels; .save('drawing.png') writes it)
    >>> draw(net, width=8.5, nodes=["E", "T"], strength={("E", "T"): 0.6})
    Drawing(321 x 154 pixels; .save('drawing.png') writes it)
    """
    target = None if width is None else _pixels(width)
    if isinstance(what, Model):
        looks = EdgeLooks.checked(what.edges, strength or {}, undirected)
        names, words = _chosen(what, nodes), Words.of(what, captions)
        return Drawing(_fitted(_of_network(what, names, evidence, do or {}, looks, words), target))
    if not isinstance(what, Circuit):
        raise TacitError(f"cannot draw a {type(what).__name__}; expected a Network or a Circuit")
    if evidence is not None:
        raise TacitError("a circuit has no posteriors to draw; evidence is for networks")
    if nodes is not None or do or captions or strength or undirected:
        options = "nodes=, do=, captions=, strength= and undirected="
        raise TacitError(f"{options} are for networks; a circuit is drawn as it is")
    return Drawing(_fitted(_of_circuit(what), target))


def _pixels(width: float) -> float:
    if isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < math.inf:
        raise TacitError(f"width is {width!r}, expected a number of centimetres above 0")
    return width * PIXELS_PER_INCH / CM_PER_INCH


def _chosen(net: Model, nodes: Iterable[str] | None) -> list[str]:
    """The variables to draw, in the order of the network; an error names one that is not there."""
    if nodes is None:
        return list(net.variables)
    names = {net.named(name) for name in ([nodes] if isinstance(nodes, str) else nodes)}
    if not names:
        raise TacitError("nodes= names no variable; name those to draw, or leave it out to draw all")
    return [name for name in net.variables if name in names]


@dataclass(frozen=True)
class _Graph:
    """What is drawn, before it has places."""

    nodes: Nodes
    edges: Sequence[Edge]
    looks: Sequence[EdgeLook]  # of the edges
    legend: Sequence[tuple[Sample, str]] = ()
    upwards: bool = False


def _of_network(
    net: Model,
    names: Sequence[str],
    evidence: EvidenceLike | None,
    do: Mapping[str, Any],
    looks: EdgeLooks,
    words: Words,
) -> _Graph:
    number = {name: i for i, name in enumerate(names)}
    pairs = [(parent, name) for name in names for parent in net.parents(name) if parent in number]
    edges = [(number[parent], number[name]) for parent, name in pairs]
    done = _with_set(net, do)
    known = None if evidence is None else read(evidence, [net.variable(name) for name in net], empty=True)
    nodes: Nodes
    if known is None:
        nodes = [_labelled(done, name, words, name in do) for name in names]
    else:
        known = with_densities(known, net)
        for name in known.columns:
            if name in do:
                raise EvidenceError(f"{name!r} is set by do= and cannot be observed, too", variable=name)
        nodes = list(_bars(done, names, known, _posteriors(done, known), words, do))
    drawn = [CUT_LOOK if head in do else looks.of((tail, head)) for tail, head in pairs]
    legend: list[tuple[Sample, str]] = [*looks.legend([pair for pair in pairs if pair[1] not in do])]
    if not number.keys().isdisjoint(do):
        legend.append((Swatch(SET, SET_LINE), SET_TEXT))
    if CUT_LOOK in drawn:
        legend.append((CUT_LOOK, CUT_TEXT))
    if do and known is not None and not number.keys().isdisjoint(known.columns):
        legend.append((Swatch(SEEN, SEEN_LINE), SEEN_TEXT))
    return _Graph(nodes, edges, drawn, legend)


def _with_set(net: Model, do: Mapping[str, Any]) -> Model:
    """The network in which variables are set."""
    if not do:
        return net
    if not hasattr(net, "do"):  # a method of Network, which itself leads here
        raise TacitError(f"do= is for a Network, not for a {type(net).__name__}")
    done: Model = net.do(do)
    return done


def _labelled(net: Model, name: str, words: Words, is_set: bool) -> Labelled:
    """A node that shows its name; what is set, also its state. The outline of a continuous one is a box."""
    label = words.variable(name)
    if net.variable(name).continuous:
        return Labelled(label, "round")
    if is_set:
        label = f"{label} = {words.states(name, net.states(name))[int(np.argmax(net.table(name)))]}"
    return Labelled(label, shaded=net.cpt(name).testing, set=is_set)


def _posteriors(net: Model, known: Evidence) -> dict[str, Any]:
    if known.rows != 1:
        raise EvidenceError(f"a drawing shows the posteriors of one row of evidence, got {known.rows} rows")
    hard = sorted(known.fully_observed)
    soft = [name for name in known.columns if name not in hard]
    query = compiled(Query, net, None, soft, hard, CompileOptions())
    with catch_warnings(action="error", category=ImpossibleEvidenceWarning):
        try:
            return {name: posterior[0] for name, posterior in marginals(query, known).items()}
        except ImpossibleEvidenceWarning:
            raise EvidenceError("the evidence has probability 0, so there are no posteriors to draw") from None


def _bars(
    net: Model,
    names: Sequence[str],
    known: Evidence,
    posteriors: dict[str, Any],
    words: Words,
    do: Mapping[str, Any],
) -> Iterator[Bars | Curves]:
    for name in names:
        if columns := net.variable(name).columns:
            own = [_column(net.variable(name), column, known, posteriors) for column in columns]
            yield Curves(words.variable(name), own, "seen" if name in known.columns else "")
            continue
        labels, shaded = words.states(name, net.states(name)), net.cpt(name).testing
        how: Known = "set" if name in do else "seen" if name in known.columns else ""
        yield Bars.of(words.variable(name), labels, posteriors[name].tolist(), shaded, how)


def _column(variable: Variable, name: str, known: Evidence, posteriors: Mapping[str, Any]) -> Column:
    """A column of numbers: the one that was observed, or else their distribution."""
    label = name if len(variable.columns) > 1 else ""
    if name in posteriors:
        return Column.of(label, posteriors[name])
    seen = known.columns[variable.name]
    assert isinstance(seen, DensityColumn), "what has no distribution is known"
    return Column.seen(label, float(seen.values[0, variable.columns.index(name)]))


def _of_circuit(circuit: Circuit) -> _Graph:
    nodes = list(drawn_nodes(circuit))
    shapes = [Labelled(visible(node.label), node.form, node.form == "box", node.output) for node in nodes]
    edges = [(child, i) for i, node in enumerate(nodes) for child in node.children]
    return _Graph(shapes, edges, [EdgeLook()] * len(edges), upwards=True)


def _fitted(graph: _Graph, width: float | None) -> Picture:
    """The picture, of a width in pixels if one is given: with the largest letters that fit a page, or the smallest.

    What would fill several pages even so is not rearranged, which takes long, but made smaller.
    """
    if width is None:
        return _picture(graph)
    for scale in SCALES:
        if picture := _at_scale(graph, width, scale):
            return _centred(picture, width / scale, scale)
    picture = _picture(graph)
    scale = min(1.0, width / max(picture.width, 1.0))
    if scale < SCALES[-1] - 1e-9:
        _warn_of_small_letters(graph, width, scale, picture.width)
    return _centred(picture, width / scale, scale)


def _warn_of_small_letters(graph: _Graph, width: float, scale: float, natural: float) -> None:
    least, letters = _least_width(graph, width, natural), LETTERS * SCALES[-1]
    part = "" if graph.upwards else "; or draw a part of the network, with nodes="
    warn(
        f"at a width of {_centimetres(width):.3g} cm, letters have {LETTERS * scale:.1f} points, which is too small to "
        f"read: they have {letters:g} points from a width of {least:g} cm on{part}",
        SmallLettersWarning,
    )


def _least_width(graph: _Graph, width: float, natural: float) -> float:
    """The least width in centimetres that has letters of 6 points, as far as halving finds it: of a large network, one
    that is not much larger, since each attempt takes seconds.
    """
    area = math.sqrt(_area(graph) / (MAX_PAGES * PAGE_SHAPE))
    low = math.floor(_centimetres(max(width, area * SCALES[-1])) / STEP)
    high = math.ceil(_centimetres(natural * SCALES[-1]) / STEP)  # as it is, without being rearranged
    for _ in range(MANY if len(graph.nodes) <= LARGE else 1):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        fits = _at_scale(graph, _pixels(middle * STEP), SCALES[-1]) is not None
        low, high = (low, middle) if fits else (middle, high)
    return high * STEP


def _centimetres(pixels: float) -> float:
    return pixels * CM_PER_INCH / PIXELS_PER_INCH


def _at_scale(graph: _Graph, width: float, scale: float) -> Picture | None:
    """The picture with letters of a size, if it is as narrow as that and not too long."""
    page = PAGE_SHAPE * width  # its height
    most = page if scale > SCALES[-1] else MAX_PAGES * page
    if _area(graph) * scale**2 > most * width or any(node.size[0] * scale > width for node in graph.nodes):
        return None  # the boxes alone are too large
    picture = _picture(graph, width / scale)
    return picture if picture.width * scale <= width + 1e-6 and picture.height * scale <= most else None


def _area(graph: _Graph) -> float:
    """Of all boxes, with the gaps beside and below them."""
    return sum((w + GAP) * (h + ROW_GAP) for w, h in (node.size for node in graph.nodes))


def _centred(picture: Picture, width: float, scale: float) -> Picture:
    shift = (width - picture.width) / 2
    return Picture(width, picture.height, [item.moved(shift) for item in picture.items], scale)


def _picture(graph: _Graph, max_width: float = math.inf) -> Picture:
    layout = arrange([node.size for node in graph.nodes], graph.edges, ROW_GAP, max_width)
    points, routes = [(x + w / 2, y + h / 2) for x, y, w, h in layout.boxes], layout.routes
    if graph.upwards:
        points = [(x, layout.height - y) for x, y in points]
        routes = [[(x, layout.height - y) for x, y in route] for route in routes]
    routes = _apart(graph, routes)
    items: list[Item] = list(_arrows(routes, graph.looks))
    for node, (x, y) in zip(graph.nodes, points, strict=True):
        items += node.items(x, y)
    room = layout.width if max_width == math.inf else max_width
    legend, width, height = legend_items(graph.legend, MARGIN, layout.height, room - 2 * MARGIN)
    if not legend:
        return Picture(layout.width, layout.height, items)
    return Picture(max(layout.width, width + 2 * MARGIN), layout.height + height + MARGIN, [*items, *legend])


def _apart(graph: _Graph, routes: Sequence[list[Point]]) -> list[list[Point]]:
    """Let an edge without a tip end beside the tips of others: in the same point, it would seem to have theirs."""
    tipped = {head for (_, head), look in zip(graph.edges, graph.looks, strict=True) if look.tipped}
    moved = []
    for (_, head), look, route in zip(graph.edges, graph.looks, routes, strict=True):
        if not look.tipped and head in tipped:
            (before, _), (x, y) = route[-2:]
            aside = math.copysign(ASIDE, before - x)
            route = [*route[:-1], (x + aside, y + graph.nodes[head].depth(aside))]
        moved.append(route)
    return moved


def _arrows(routes: Sequence[Sequence[Point]], looks: Sequence[EdgeLook]) -> Iterable[Arrow]:
    """The edges, the surest last, so that its tip covers others; what several share is drawn once, by the surest.

    Drawn twice, it would look bolder.
    """
    drawn, arrows = set[tuple[Point, Point]](), list[Arrow]()
    for k in sorted(range(len(routes)), key=lambda k: looks[k].rank):
        steps = list(pairwise(routes[k]))
        shared = next(n for n, step in enumerate(steps) if n + 1 == len(steps) or step not in drawn)
        drawn.update(steps)
        arrows.append(Arrow(routes[k][shared:], looks[k].stroke, looks[k].tipped))
    return reversed(arrows)
