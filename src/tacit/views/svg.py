"""Networks and circuits as SVG. Nodes go where the explorer page would put them, and nothing needs to be installed.

`to_dot` gives the same networks and circuits as text for Graphviz, which finds places of its own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tacit.base.atomic import write_atomically
from tacit.base.errors import TacitError
from tacit.base.text import visible
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.circuit_text import drawn_nodes
from tacit.query.network import Network
from tacit.views.layout import Edge, Point, Size, arrange, text_width

NODE_HEIGHT, MIN_WIDTH, LABEL_PADDING, RING_GAP = 28.0, 34.0, 22.0, 3.0
CELL_STYLE = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
INK, EDGE, SHADE, LIGHT = "#1b2a41", "#5a667a", "#d9dee7", "#ffffff"


@dataclass(frozen=True)
class Shape:
    """A node of a drawing: its label and how it is drawn."""

    label: str
    form: str = "ellipse"  # or "box", "text"
    shaded: bool = False
    ringed: bool = False

    @property
    def size(self) -> Size:
        ring = 2 * RING_GAP * self.ringed
        return max(MIN_WIDTH, text_width(self.label) + LABEL_PADDING) + ring, NODE_HEIGHT + ring


class Drawing:
    """A picture as SVG; shows itself in notebooks."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file."""
        write_atomically(path, lambda file: file.write(self.svg))

    def _repr_svg_(self) -> str:
        return self.svg.replace("<svg ", f'<svg style="{CELL_STYLE}" ', 1)


def draw(what: Network | Circuit) -> Drawing:
    """A network, testing nodes shaded, or a circuit, its inputs at the bottom.

    >>> import tacit
    >>> draw(tacit.examples.abc()).svg.startswith("<svg")
    True
    """
    if isinstance(what, Network):
        return Drawing("".join(_svg(*_of_network(what))))
    if isinstance(what, Circuit):
        return Drawing("".join(_svg(*_of_circuit(what), upwards=True)))
    raise TacitError(f"cannot draw a {type(what).__name__}; expected a Network or a Circuit")


def _of_network(net: Network) -> tuple[list[Shape], list[Edge]]:
    place = {name: i for i, name in enumerate(net.variables)}
    shapes = [Shape(visible(name), shaded=net.cpt(name).testing) for name in net.variables]
    return shapes, [(place[parent], place[name]) for name in net.variables for parent in net.parents(name)]


def _of_circuit(circuit: Circuit) -> tuple[list[Shape], list[Edge]]:
    nodes = list(drawn_nodes(circuit))
    shapes = [Shape(visible(node.label), node.form, node.form == "box", node.output) for node in nodes]
    return shapes, [(child, i) for i, node in enumerate(nodes) for child in node.children]


def _svg(shapes: Sequence[Shape], edges: Sequence[Edge], upwards: bool = False) -> Iterator[str]:
    layout = arrange([shape.size for shape in shapes], edges)
    points, routes = [(x + w / 2, y + h / 2) for x, y, w, h in layout.boxes], layout.routes
    if upwards:
        points = [(x, layout.height - y) for x, y in points]
        routes = [[(x, layout.height - y) for x, y in route] for route in routes]
    width, height = layout.width, layout.height
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="12"><defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{EDGE}"/></marker></defs>'
    )
    yield from map(_arrow, routes)
    yield from map(_node, points, shapes)
    yield "</svg>"


def _arrow(route: Sequence[Point]) -> str:
    path = f"M{route[0][0]:.1f} {route[0][1]:.1f}"
    for (ax, ay), (bx, by) in itertools.pairwise(route):
        middle = (ay + by) / 2
        path += f"C{ax:.1f} {middle:.1f} {bx:.1f} {middle:.1f} {bx:.1f} {by:.1f}"
    return f'<path d="{path}" fill="none" stroke="{EDGE}" marker-end="url(#tip)"/>'


def _node(point: Point, shape: Shape) -> str:
    (x, y), outline = point, ""
    style = f'fill="{SHADE if shape.shaded else LIGHT}" stroke="{INK}" stroke-width="1.2"'
    for inside in (0, RING_GAP) if shape.ringed else (0,):
        w, h = (length - 2 * inside for length in shape.size)
        if shape.form == "ellipse":
            outline += f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{w / 2:.1f}" ry="{h / 2:.1f}" {style}/>'
        elif shape.form == "box":
            corner = f'x="{x - w / 2:.1f}" y="{y - h / 2:.1f}"'
            outline += f'<rect {corner} width="{w:.1f}" height="{h:.1f}" rx="3" {style}/>'
    return f'{outline}<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{INK}">{escape(shape.label)}</text>'
