"""Drawings of networks and circuits. Nodes go where the explorer page would put them.

`to_dot` gives the same networks and circuits as text for Graphviz, which finds places of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from warnings import catch_warnings

from tacit.base.atomic import write_atomically
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import visible
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.circuit_text import drawn_nodes
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike, read
from tacit.model.model import Model
from tacit.query.answer import ImpossibleEvidenceWarning
from tacit.query.marginals import marginals
from tacit.query.options import CompileOptions
from tacit.query.query import Query, compiled
from tacit.views.images import FORMATS, write_image
from tacit.views.layout import Edge, Point, arrange
from tacit.views.nodes import Bars, Labelled
from tacit.views.picture import Arrow, Item, Picture
from tacit.views.svg import svg

CELL_STYLE = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
SUFFIXES = (".svg", *(f".{kind}" for kind in FORMATS))
ROW_GAP = 42.0
DPI = 192  # two pixels of a PNG for each of the drawing
Nodes = Sequence[Labelled | Bars]


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
        return f"Drawing({self.picture.width:.0f} x {self.picture.height:.0f} pixels; .save('drawing.png') writes it)"


def draw(what: Model | Circuit, evidence: EvidenceLike | None = None) -> Drawing:
    """A network, testing nodes shaded, or a circuit, its inputs at the bottom.

    With `evidence`, one row of it, the nodes of a network show their posteriors as bars; see `Network.plot`.

    >>> import tacit
    >>> draw(tacit.examples.etq())
    Drawing(58 x 192 pixels; .save('drawing.png') writes it)
    """
    if isinstance(what, Model):
        return Drawing(_picture(*_of_network(what, evidence)))
    if not isinstance(what, Circuit):
        raise TacitError(f"cannot draw a {type(what).__name__}; expected a Network or a Circuit")
    if evidence is not None:
        raise TacitError("a circuit has no posteriors to draw; evidence is for networks")
    return Drawing(_picture(*_of_circuit(what), upwards=True))


def _of_network(net: Model, evidence: EvidenceLike | None = None) -> tuple[Nodes, list[Edge]]:
    number = {name: i for i, name in enumerate(net.variables)}
    edges = [(number[parent], number[name]) for name in net.variables for parent in net.parents(name)]
    if evidence is None:
        return [Labelled(visible(name), shaded=net.cpt(name).testing) for name in net.variables], edges
    known = read(evidence, [net.variable(name) for name in net], empty=True)
    return list(_bars(net, known, _posteriors(net, known))), edges


def _posteriors(net: Model, known: Evidence) -> dict[str, Floats]:
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


def _bars(net: Model, known: Evidence, posteriors: dict[str, Floats]) -> Iterator[Bars]:
    for name in net.variables:
        labels = [visible(str(state)) for state in net.states(name)]
        shaded, seen = net.cpt(name).testing, name in known.columns
        yield Bars.of(visible(name), labels, posteriors[name].tolist(), shaded, seen)


def _of_circuit(circuit: Circuit) -> tuple[Nodes, list[Edge]]:
    nodes = list(drawn_nodes(circuit))
    shapes = [Labelled(visible(node.label), node.form, node.form == "box", node.output) for node in nodes]
    return shapes, [(child, i) for i, node in enumerate(nodes) for child in node.children]


def _picture(nodes: Nodes, edges: Sequence[Edge], upwards: bool = False) -> Picture:
    layout = arrange([node.size for node in nodes], edges, ROW_GAP)
    points, routes = [(x + w / 2, y + h / 2) for x, y, w, h in layout.boxes], layout.routes
    if upwards:
        points = [(x, layout.height - y) for x, y in points]
        routes = [[(x, layout.height - y) for x, y in route] for route in routes]
    items: list[Item] = [Arrow(route) for route in _branches(routes)]
    for node, (x, y) in zip(nodes, points, strict=True):
        items += node.items(x, y)
    return Picture(layout.width, layout.height, items)


def _branches(routes: Sequence[Sequence[Point]]) -> Iterator[Sequence[Point]]:
    """The routes, each from where it leaves those before: drawn twice, what they share would look bolder."""
    drawn = set[tuple[Point, Point]]()
    for route in routes:
        steps = list(pairwise(route))
        shared = next(k for k, step in enumerate(steps) if k + 1 == len(steps) or step not in drawn)
        drawn.update(steps)
        yield route[shared:]
