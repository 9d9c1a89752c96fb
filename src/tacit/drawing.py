"""Networks and circuits as SVG, without a program of Graphviz: igraph finds the places, we write the picture.

Needs igraph (`pip install 'tacit-circuits[plot]'`). `to_dot` gives the same drawings as text for Graphviz.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from tacit.atomic import write_atomically
from tacit.circuit import Circuit
from tacit.circuit.nodes import KINDS, LEAVES, node_name
from tacit.circuit.text import MAX_DRAWN, SIGNS
from tacit.cpt import TESTS
from tacit.errors import TacitError, TooLargeError
from tacit.installation import how_to_install
from tacit.layout import Point, apart, chains, rows
from tacit.network import Network

CHARACTER, LINE = 7.2, 20  # a letter's width, a node's height
GAP, ROW = 18, 64  # between nodes of a row, between rows
IN_A_CELL = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
INK, SHADE, LIGHT = "#1b2a41", "#d9dee7", "#ffffff"


@dataclass(frozen=True)
class Shape:
    """A node of a drawing: its label and how it is drawn."""

    label: str
    form: str = "ellipse"  # or "box", "text"
    shaded: bool = False
    ringed: bool = False

    @property
    def width(self) -> float:
        """How wide it is."""
        return max(34.0, CHARACTER * len(self.label) + 18)


class Drawing:
    """A picture as SVG; shows itself in notebooks."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file."""
        write_atomically(path, lambda file: file.write(self.svg))

    def _repr_svg_(self) -> str:
        return self.svg.replace("<svg ", f'<svg style="{IN_A_CELL}" ', 1)


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


def _of_network(net: Network) -> tuple[list[Shape], list[tuple[int, int]]]:
    place = {name: i for i, name in enumerate(net.variables)}
    shapes = [Shape(name, shaded=net.cpt(name).testing) for name in net.variables]
    return shapes, [(place[parent], place[name]) for name in net.variables for parent in net.parents(name)]


def _of_circuit(circuit: Circuit) -> tuple[list[Shape], list[tuple[int, int]]]:
    if len(circuit) > MAX_DRAWN:
        raise TooLargeError(f"a drawing of {len(circuit):,} nodes cannot be read (limit {MAX_DRAWN:,}); see to_text")
    outputs = set(circuit.outputs.tolist())
    shapes = []
    for i in range(len(circuit)):
        kind = KINDS[circuit.kind[i]]
        form = "text" if kind in LEAVES else "box" if kind in ("test", "sigmoid") else "ellipse"
        label = f"x {TESTS[circuit.owner[i]]} T ? θ⁺ : θ⁻" if kind == "test" else SIGNS.get(kind, node_name(circuit, i))
        shapes.append(Shape(label, form, shaded=kind in ("test", "sigmoid"), ringed=i in outputs))
    children = [circuit.children[circuit.start[i] : circuit.start[i + 1]].tolist() for i in range(len(circuit))]
    return shapes, [(child, i) for i, below in enumerate(children) for child in below]


# places ---------------------------------------------------------------------------------------------------


def _svg(shapes: Sequence[Shape], edges: Sequence[tuple[int, int]], upwards: bool = False) -> Iterator[str]:
    points, routes = _places(shapes, edges)
    left = min(x - s.width / 2 for (x, _), s in zip(points, shapes, strict=True)) - 12
    right = max(x + s.width / 2 for (x, _), s in zip(points, shapes, strict=True)) + 12
    depth = max(y for _, y in points)
    if upwards:
        points = [(x, depth - y) for x, y in points]
        routes = [[(x, depth - y) for x, y in route] for route in routes]
    width, height = right - left, depth + 2 * LINE + 16
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.1f} {-LINE - 8} {width:.1f} {height:.1f}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="12"><defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>'
    )
    for route, (_, head) in zip(routes, edges, strict=True):
        yield _arrow(route, shapes[head])
    for point, shape in zip(points, shapes, strict=True):
        yield _node(point, shape)
    yield "</svg>"


def _places(shapes: Sequence[Shape], edges: Sequence[tuple[int, int]]) -> tuple[list[Point], list[list[Point]]]:
    """Where nodes go, in rows, and the points that every edge passes: long ones go through rows of their own."""
    try:
        import igraph
    except ImportError:
        raise TacitError(f"drawings need igraph, which is not installed: {how_to_install('plot')}") from None
    layers, links, paths = chains(rows(len(shapes), edges), edges)
    graph = igraph.Graph(n=len(layers), edges=links, directed=True)
    widths = np.array([shape.width for shape in shapes] + [4.0] * (len(layers) - len(shapes)))
    found = np.array(graph.layout_sugiyama(layers=layers, hgap=1.0, vgap=1.0, maxiter=500).coords)[:, 0]
    x = apart(found * (np.median(widths[: len(shapes)]) + GAP), widths, np.array(layers), GAP)
    points = [(float(at), float(row * ROW)) for at, row in zip(x, layers, strict=True)]
    return points[: len(shapes)], [[points[i] for i in path] for path in paths]


# signs ----------------------------------------------------------------------------------------------------


def _arrow(route: Sequence[Point], head: Shape) -> str:
    (x0, y0), (x1, y1) = route[0], route[-1]
    sign = 1 if y1 > y0 else -1
    points = [(x0, y0 + sign * LINE * 0.75), *route[1:-1], (x1, y1 - sign * LINE * (0.75 + 0.15 * head.ringed))]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (ax, ay), (bx, by) in itertools.pairwise(points):
        middle = (ay + by) / 2
        path += f"C{ax:.1f} {middle:.1f} {bx:.1f} {middle:.1f} {bx:.1f} {by:.1f}"
    return f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1" opacity="0.75" marker-end="url(#tip)"/>'


def _node(point: Point, shape: Shape) -> str:
    x, y = point
    fill = SHADE if shape.shaded else LIGHT
    made = []
    for grow in (3, 0) if shape.ringed else (0,):
        if shape.form == "ellipse":
            rx, ry = shape.width / 2 + grow, LINE * 0.75 + grow
            made.append(f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry}"')
        elif shape.form == "box":
            w, h = shape.width + 2 * grow, LINE * 1.4 + 2 * grow
            made.append(f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="3"')
    outline = "".join(f'{start} fill="{fill}" stroke="{INK}" stroke-width="1.2"/>' for start in made)
    return f'{outline}<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{INK}">{escape(shape.label)}</text>'
