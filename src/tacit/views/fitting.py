"""Graphs that are drawn, and how they fill a page: as wide as is asked for, with letters that can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.base.warnings import warn
from tacit.views.curves import Curves
from tacit.views.edges import EdgeLook, Sample, legend_items
from tacit.views.images import PIXELS_PER_INCH
from tacit.views.layout import GAP, MARGIN, BoxLayout, Edge, Point, arrange, stretched, with_ports
from tacit.views.lengths import CM_PER_INCH
from tacit.views.nodes import Bars, Labelled
from tacit.views.picture import Arrow, Item, Picture

ROW_GAP, SHORT_ROW_GAP = 42.0, 32.0  # pixels between rows, and where letters would be smaller with those
LETTERS = 9.0  # points
READABLE, LEAST = 7 / LETTERS, 6 / LETTERS  # letters that are easy to read, and the smallest that fill several pages
LARGE, MANY = 100, 12  # nodes of a large network; halvings for a smaller one
STEP = 0.5  # centimetres, of widths that are tried
PAGE_SHAPE = 1.4  # height / width of a page
PAGE_HEIGHT = (
    9.2 * PIXELS_PER_INCH
)  # of a page's text: what a narrow picture may be high, too, before its letters shrink
MAX_STRETCH = 1.6  # of a layout that is narrower than its picture
ROUNDING = 1e-9
Nodes = Sequence[Labelled | Bars | Curves]


class SmallLettersWarning(UserWarning):
    """A drawing of a stated width has letters that are too small to read."""


@dataclass(frozen=True)
class Graph:
    """What is drawn, before it has places."""

    nodes: Nodes
    edges: Sequence[Edge]
    looks: Sequence[EdgeLook]  # of the edges
    legend: Sequence[tuple[Sample, str]] = ()
    upwards: bool = False


def fitted(graph: Graph, width: float | None) -> Picture:
    """The picture, of a width in pixels if one is given.

    It is arranged as it would be anyway if its letters can be read then, or else in narrower rows. What does not fit a
    page even so is not rearranged, which takes long, but made smaller.
    """
    layout = _arranged(graph)
    if width is None:
        return _picture(graph, layout)
    if scale := _scale(graph, layout, width, READABLE):
        return _filling(graph, layout, width, scale)
    for least in (READABLE, LEAST):
        if found := _narrowed(graph, width, least):
            return _filling(graph, found[0], width, found[1])
    scale = _largest(graph, layout, width, LEAST)
    _warn_of_small_letters(graph, width, scale, layout)
    return _filling(graph, layout, width, scale)


def _arranged(graph: Graph, max_width: float = math.inf, row_gap: float = ROW_GAP) -> BoxLayout:
    return arrange([node.size for node in graph.nodes], graph.edges, row_gap, max_width)


def _narrowed(graph: Graph, width: float, least: float) -> tuple[BoxLayout, float] | None:
    """A layout whose letters can have a size, and how large it is drawn."""
    room = _longest(width, least) * width
    if _area(graph) * least**2 > room or any(node.size[0] * least > width for node in graph.nodes):
        return None  # the boxes alone are too large
    layout = _arranged(graph, width / least, ROW_GAP if least > LEAST else SHORT_ROW_GAP)
    scale = _scale(graph, layout, width, least)
    return (layout, scale) if scale else None


def _scale(graph: Graph, layout: BoxLayout, width: float, least: float) -> float | None:
    """How large a layout is drawn to be no wider than that, and not too long; None where that is too small."""
    scale = _largest(graph, layout, width, least)
    return scale if scale >= least - ROUNDING else None


def _largest(graph: Graph, layout: BoxLayout, width: float, least: float) -> float:
    """How large a layout with its legend may be drawn."""
    height = layout.height + legend_items(graph.legend, 0.0, 0.0, width / least)[2] + MARGIN * bool(graph.legend)
    return min(1.0, width / max(layout.width, 1.0), _longest(width, least) / max(height, 1.0))


def _longest(width: float, least: float) -> float:
    """How high a picture may be before its letters become smaller than that."""
    return PAGE_SHAPE * width if least > LEAST else max(PAGE_SHAPE * width, PAGE_HEIGHT)


def _filling(graph: Graph, layout: BoxLayout, width: float, scale: float) -> Picture:
    """The layout in a picture of a width, over which it is spread as far as that looks well."""
    room = width / scale
    picture = _picture(graph, stretched(layout, min(room, MAX_STRETCH * layout.width)), room)
    shift = (room - picture.width) / 2
    return Picture(room, picture.height, [item.moved(shift) for item in picture.items], scale)


def _warn_of_small_letters(graph: Graph, width: float, scale: float, natural: BoxLayout) -> None:
    least, letters = _least_width(graph, width, natural), LETTERS * LEAST
    part = "" if graph.upwards else "; or draw a part of the network, with nodes="
    warn(
        f"at a width of {_centimetres(width):.3g} cm, letters have {LETTERS * scale:.1f} points, which is too small to "
        f"read: they have {letters:g} points from a width of {least:g} cm on{part}",
        SmallLettersWarning,
    )


def _least_width(graph: Graph, width: float, natural: BoxLayout) -> float:
    """The least width in centimetres that has letters of 6 points, as far as halving finds it: of a large network, one
    that is not much larger, since each attempt takes seconds.
    """
    area = _area(graph) * LEAST**2  # of a page that all boxes fill, in pixels
    low = math.floor(_centimetres(max(width, min(math.sqrt(area / PAGE_SHAPE), area / PAGE_HEIGHT))) / STEP)
    as_it_is = max(natural.width, natural.height / PAGE_SHAPE) * LEAST  # without being rearranged
    high = max(low + 1, math.ceil(_centimetres(as_it_is) / STEP))
    for _ in range(MANY if len(graph.nodes) <= LARGE else 1):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        fits = _narrowed(graph, middle * STEP * PIXELS_PER_INCH / CM_PER_INCH, LEAST) is not None
        low, high = (low, middle) if fits else (middle, high)
    return high * STEP


def _centimetres(pixels: float) -> float:
    return pixels * CM_PER_INCH / PIXELS_PER_INCH


def _area(graph: Graph) -> float:
    """Of all boxes, with the gaps beside and below them."""
    return sum((w + GAP) * (h + SHORT_ROW_GAP) for w, h in (node.size for node in graph.nodes))


def _picture(graph: Graph, layout: BoxLayout, room: float | None = None) -> Picture:
    """The picture of a layout, with a legend that is no wider than the room, or than the layout."""
    points, routes = [(x + w / 2, y + h / 2) for x, y, w, h in layout.boxes], _routes(graph, layout)
    if graph.upwards:
        points = [(x, layout.height - y) for x, y in points]
        routes = [[(x, layout.height - y) for x, y in route] for route in routes]
    items: list[Item] = [*_arrows(routes, graph.looks)]
    for node, (x, y) in zip(graph.nodes, points, strict=True):
        items += node.items(x, y)
    legend, width, height = legend_items(graph.legend, MARGIN, layout.height, (room or layout.width) - 2 * MARGIN)
    if not legend:
        return Picture(layout.width, layout.height, items)
    whole = max(layout.width, width + 2 * MARGIN)
    shift = (whole - layout.width) / 2
    return Picture(whole, layout.height + height + MARGIN, [*(item.moved(shift) for item in items), *legend])


def _routes(graph: Graph, layout: BoxLayout) -> list[list[Point]]:
    """The points that edges pass, from outline to outline: that of an oval lies below the top of the box around it."""
    routes = []
    for (tail, head), route in zip(graph.edges, with_ports(layout, graph.edges).routes, strict=True):
        (start, below), *between, (end, above) = route
        up, down = _depth(graph, layout, tail, start), _depth(graph, layout, head, end)
        routes.append([(start, below - up), *between, (end, above + down)])
    return routes


def _depth(graph: Graph, layout: BoxLayout, node: int, x: float) -> float:
    """How far the outline of a node is from the side of the box around it, at a place."""
    left, _, width, _ = layout.boxes[node]
    return graph.nodes[node].depth(x - left - width / 2)


def _arrows(routes: Sequence[Sequence[Point]], looks: Sequence[EdgeLook]) -> list[Arrow]:
    """The edges, the surest last, so that its tip covers others."""
    order = sorted(range(len(routes)), key=lambda k: -looks[k].rank)
    return [Arrow(routes[k], looks[k].stroke, looks[k].tipped) for k in order]
