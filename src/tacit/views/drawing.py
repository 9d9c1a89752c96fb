"""Drawings of networks and circuits. Nodes go where the explorer page would put them.

`to_dot` gives the same networks and circuits as text for Graphviz, which finds places of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np

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
from tacit.views.edges import CUT_LOOK, EdgeLook, EdgeLooks, Sample, Swatch
from tacit.views.fitting import Graph, Nodes, fitted
from tacit.views.images import FORMATS, PIXELS_PER_INCH, write_image
from tacit.views.lengths import inches
from tacit.views.nodes import SEEN, SEEN_LINE, SET, SET_LINE, Bars, Known, Labelled
from tacit.views.picture import Picture
from tacit.views.svg import svg
from tacit.views.words import Captioned, Words

CELL_STYLE = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
SUFFIXES = (".svg", *(f".{kind}" for kind in FORMATS))
SET_TEXT, CUT_TEXT, SEEN_TEXT = "set from outside (do)", "edge cut by that", "observed"
DPI = 192  # two pixels of a PNG for each of the drawing


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
    width: float | str | None = None,
    strength: Mapping[tuple[str, str], float] | None = None,
    undirected: Iterable[tuple[str, str]] = (),
) -> Drawing:
    """A network, testing nodes shaded, or a circuit, its inputs at the bottom.

    Parameters
    ----------
    what
        The network or the circuit.
    evidence
        One row of evidence: the nodes of a network show their posteriors as bars; see `Network.plot`.
    do
        States that variables are set to from outside, as `Network.do` sets them. They are violet, and the edges into
        them, which are cut, are dotted.
    captions
        The name to show in place of a variable's own; long ones are wrapped. `Network.plot` also takes a file.
    nodes
        Draw only these variables of a network, and the edges between them.
    width
        How wide the picture is, in centimetres, or a text such as "3.3in". Letters have 9 points, or down to 7 where
        more nodes side by side are easier to read, and to 6 where the picture would be longer than a page otherwise.
        Where that is not enough, they are smaller, and a warning says what helps.
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
    target = None if width is None else PIXELS_PER_INCH * inches(width)
    if isinstance(what, Model):
        looks = EdgeLooks.checked(what.edges, strength or {}, undirected)
        names, words = _chosen(what, nodes), Words.of(what, captions)
        return Drawing(fitted(_of_network(what, names, evidence, do or {}, looks, words), target))
    if not isinstance(what, Circuit):
        raise TacitError(f"cannot draw a {type(what).__name__}; expected a Network or a Circuit")
    if evidence is not None:
        raise TacitError("a circuit has no posteriors to draw; evidence is for networks")
    if nodes is not None or do or captions or strength or undirected:
        options = "nodes=, do=, captions=, strength= and undirected="
        raise TacitError(f"{options} are for networks; a circuit is drawn as it is")
    return Drawing(fitted(_of_circuit(what), target))


def _chosen(net: Model, nodes: Iterable[str] | None) -> list[str]:
    """The variables to draw, in the order of the network; an error names one that is not there."""
    if nodes is None:
        return list(net.variables)
    names = {net.variable(name).name for name in ([nodes] if isinstance(nodes, str) else nodes)}
    if not names:
        raise TacitError("nodes= names no variable; name those to draw, or leave it out to draw all")
    return [name for name in net.variables if name in names]


def _of_network(
    net: Model,
    names: Sequence[str],
    evidence: EvidenceLike | None,
    do: Mapping[str, Any],
    looks: EdgeLooks,
    words: Words,
) -> Graph:
    number = {name: i for i, name in enumerate(names)}
    pairs = [(parent, name) for name in names for parent in net.parents(name) if parent in number]
    edges = [(number[parent], number[name]) for parent, name in pairs]
    done = _with_set(net, do)
    known = None if evidence is None else read(evidence, [net.variable(name) for name in net], empty=True)
    nodes: Nodes
    if known is None:
        nodes = [_labelled(done, name, words, name in do) for name in names]
    else:
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
    return Graph(nodes, edges, drawn, legend)


def _with_set(net: Model, do: Mapping[str, Any]) -> Model:
    """The network in which variables are set."""
    if not do:
        return net
    if not hasattr(net, "do"):  # a method of Network, which itself leads here
        raise TacitError(f"do= is for a Network, not for a {type(net).__name__}")
    done: Model = net.do(do)
    return done


def _labelled(net: Model, name: str, words: Words, is_set: bool) -> Labelled:
    """A node that shows its name; what is set, also its state."""
    label = words.variable(name)
    if is_set:
        label = f"{label} = {words.states(name, net.states(name))[int(np.argmax(net.table(name)))]}"
    return Labelled(label, shaded=net.cpt(name).testing, set=is_set)


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


def _bars(
    net: Model,
    names: Sequence[str],
    known: Evidence,
    posteriors: dict[str, Floats],
    words: Words,
    do: Mapping[str, Any],
) -> Iterator[Bars]:
    for name in names:
        labels, shaded = words.states(name, net.states(name)), net.cpt(name).testing
        how: Known = "set" if name in do else "seen" if name in known.columns else ""
        yield Bars.of(words.variable(name), labels, posteriors[name].tolist(), shaded, how)


def _of_circuit(circuit: Circuit) -> Graph:
    nodes = list(drawn_nodes(circuit))
    shapes = [Labelled(visible(node.label), node.form, node.form == "box", node.output) for node in nodes]
    edges = [(child, i) for i, node in enumerate(nodes) for child in node.children]
    return Graph(shapes, edges, [EdgeLook()] * len(edges), upwards=True)
