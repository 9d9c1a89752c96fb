"""Drawings of networks and circuits. Nodes go where the explorer page would put them.

`to_dot` gives the same networks and circuits as text for Graphviz, which finds places of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np

from tacit.base.atomic import write_atomically
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import visible
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.circuit_text import drawn_nodes
from tacit.evidence.column import Evidence
from tacit.evidence.density_column import DensityColumn, with_densities
from tacit.evidence.read import EvidenceLike, read
from tacit.model.elements.variable import Variable
from tacit.model.model import Model
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.query.asking.options import CompileOptions
from tacit.query.marginals import marginals
from tacit.query.query import Query, compiled
from tacit.theory.findings import said
from tacit.views.curves import Column, Curves
from tacit.views.edges import CUT_LOOK, EdgeLook, EdgeLooks, Sample, Swatch
from tacit.views.fitting import Graph, Nodes, fitted
from tacit.views.images import FORMATS, PIXELS_PER_INCH, write_image
from tacit.views.lengths import inches
from tacit.views.nodes import KNOWN, NORMAL, TESTING, Bars, Known, Labelled
from tacit.views.picture import Picture
from tacit.views.svg import svg
from tacit.views.words import Captioned, Words

CELL_STYLE = "max-width:100%;height:auto;background:#fff"  # as wide as a notebook's cell at most, and not dark on dark
SUFFIXES = (".svg", *(f".{kind}" for kind in FORMATS))
KNOWN_TEXTS: Mapping[Known, str] = {"seen": "observed", "soft": "soft evidence", "set": "set from outside (do)"}
CUT_TEXT, QUERY_TEXT, TESTING_TEXT = "edge cut by that", "query", "testing node"
MAX_ASIDE = 6  # findings outside a picture that its legend names
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
    query: str | Iterable[str] = (),
    captions: Mapping[str, str] | Captioned | None = None,
    nodes: Iterable[str] | None = None,
    width: float | str | None = None,
    strength: Mapping[tuple[str, str], float] | None = None,
    undirected: Iterable[tuple[str, str]] = (),
) -> Drawing:
    """A network, testing nodes shaded, continuous ones in boxes and value nodes as diamonds, or a circuit from below.

    Parameters
    ----------
    what
        The network or the circuit.
    evidence
        One row of evidence: the nodes of a network show their posteriors as bars, continuous ones as curves of their
        densities, and what is observed is orange with a thick outline, which is dotted for soft evidence; see
        `Network.plot`. A legend explains all such marks.
    do
        States that variables are set to from outside, as `Network.do` sets them. They are violet with a dashed outline,
        and the edges into them, which are cut, are dotted.
    query
        Variables that are asked for, which have a double outline.
    captions
        The name to show in place of a variable's own; long ones are wrapped. `Network.plot` also takes a file.
    nodes
        Draw only these variables of a network, and the edges between them. The legend tells the evidence on others.
    width
        How wide the picture is, in centimetres, or a text such as "3.3in". Letters have 9 points, or down to 7 where
        more nodes side by side are easier to read, and to 6 where the picture would not fit a page otherwise, which is
        1.4 times as high as wide, or 23 cm. Where that is not enough, they are smaller, and a warning says what helps.
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
        question = _Question.checked(what, evidence, do or {}, query)
        return Drawing(fitted(_of_network(what, names, question, looks, words), target))
    if not isinstance(what, Circuit):
        raise TacitError(f"cannot draw a {type(what).__name__}; expected a Network or a Circuit")
    if evidence is not None:
        raise TacitError("a circuit has no posteriors to draw; evidence is for networks")
    if nodes is not None or do or query or captions or strength or undirected:
        options = "nodes=, do=, query=, captions=, strength= and undirected="
        raise TacitError(f"{options} are for networks; a circuit is drawn as it is")
    return Drawing(fitted(_of_circuit(what), target))


def _chosen(net: Model, nodes: Iterable[str] | None) -> list[str]:
    """The variables to draw, in the order of the network; an error names one that is not there."""
    if nodes is None:
        return list(net.variables)
    names = _names(net, nodes)
    if not names:
        raise TacitError("nodes= names no variable; name those to draw, or leave it out to draw all")
    return [name for name in net.variables if name in names]


def _names(net: Model, names: Iterable[str]) -> frozenset[str]:
    return frozenset(net.named(name) for name in ([names] if isinstance(names, str) else names))


@dataclass(frozen=True)
class _Question:
    """What is known of variables, and which are asked for."""

    observed: Evidence | None
    do: Mapping[str, Any]
    query: frozenset[str]

    @classmethod
    def checked(
        cls, net: Model, evidence: EvidenceLike | None, do: Mapping[str, Any], query: Iterable[str]
    ) -> _Question:
        """What `draw` is given."""
        observed = None
        if evidence is not None:
            observed = with_densities(read(evidence, [net.variable(name) for name in net], empty=True), net)
        for name in observed.columns if observed else ():
            if name in do:
                raise EvidenceError(f"{name!r} is set by do= and cannot be observed, too", variable=name)
        return cls(observed, do, _names(net, query))

    def known(self, name: str) -> Known:
        """Whether a variable is set, or observed, for certain or not."""
        if name in self.do:
            return "set"
        column = self.observed.columns.get(name) if self.observed else None
        if column is None or column.empty:
            return ""
        return "seen" if column.known_in_all_rows else "soft"

    def aside(self, words: Words, names: Sequence[str]) -> list[tuple[Sample, str]]:
        """What is known of variables that are not drawn, on which the posteriors depend all the same."""
        columns = self.observed.columns if self.observed else {}
        outside = [name for name, column in columns.items() if name not in names and not column.empty]
        entries: list[tuple[Sample, str]] = [
            (Swatch(KNOWN[self.known(name)]), f"{words.variable(name)} = {said(columns[name])}, not drawn")
            for name in outside[:MAX_ASIDE]
        ]
        if (more := len(outside) - MAX_ASIDE) > 0:
            entries.append((Swatch(KNOWN["seen"]), f"{more} more, not drawn"))
        return entries

    def legend(self, net: Model, names: Sequence[str], cut: bool) -> list[tuple[Sample, str]]:
        """The marks of the nodes that are drawn; where there are none, testing nodes need no explanation."""
        known, entries = {self.known(name) for name in names}, list[tuple[Sample, str]]()
        if not self.query.isdisjoint(names):
            entries.append((Swatch(NORMAL, ringed=True), QUERY_TEXT))
        entries += [(Swatch(KNOWN[one]), text) for one, text in KNOWN_TEXTS.items() if one in known]
        if cut:
            entries.append((CUT_LOOK, CUT_TEXT))
        if entries and any(net.cpt(name).testing and not self.known(name) for name in names):
            entries.append((Swatch(TESTING), TESTING_TEXT))
        return entries


def _of_network(net: Model, names: Sequence[str], question: _Question, looks: EdgeLooks, words: Words) -> Graph:
    values = [own for own in net.value_nodes.values() if own.parents and set(own.parents) <= set(names)]
    number, do = {name: i for i, name in enumerate((*names, *(own.name for own in values)))}, question.do
    pairs = [(parent, name) for name in names for parent in net.parents(name) if parent in number]
    pairs += [(parent, own.name) for own in values for parent in own.parents]
    edges = [(number[parent], number[name]) for parent, name in pairs]
    done = _with_set(net, do)
    drawn = [CUT_LOOK if head in do else looks.of((tail, head)) for tail, head in pairs]
    marks = question.legend(net, names, cut=CUT_LOOK in drawn)
    sure = looks.legend([pair for pair in pairs if pair[1] not in do])
    legend: list[tuple[Sample, str]] = [*sure, *marks, *question.aside(words, names)]
    nodes: Nodes
    if question.observed is None:
        nodes = [_labelled(done, name, words, question) for name in names]
    else:
        posteriors = _posteriors(done, question.observed)
        nodes = [_answered(done, name, words, question, posteriors) for name in names]
    nodes = [*nodes, *(Labelled(visible(own.name), "diamond") for own in values)]
    return Graph(nodes, edges, drawn, legend)


def _with_set(net: Model, do: Mapping[str, Any]) -> Model:
    """The network in which variables are set."""
    if not do:
        return net
    if not hasattr(net, "do"):  # a method of Network, which itself leads here
        raise TacitError(f"do= is for a Network, not for a {type(net).__name__}")
    done: Model = net.do(do)
    return done


def _labelled(net: Model, name: str, words: Words, question: _Question) -> Labelled:
    """A node that shows its name; what is set, also its state. The outline of a continuous one is a box."""
    label, known, ringed = words.variable(name), question.known(name), name in question.query
    if net.variable(name).continuous:
        return Labelled(label, "round", ringed=ringed)
    if known == "set":
        label = f"{label} = {words.states(name, net.states(name))[int(np.argmax(net.table(name)))]}"
    return Labelled(label, shaded=net.cpt(name).testing, ringed=ringed, known=known)


def _answered(net: Model, name: str, words: Words, question: _Question, posteriors: Mapping[str, Any]) -> Bars | Curves:
    """A node that shows the probabilities of its states, or the distribution of its numbers."""
    label, own, marks = words.variable(name), net.variable(name), (question.known(name), name in question.query)
    if own.continuous:
        return Curves(label, [_column(own, column, question, posteriors) for column in own.columns], *marks)
    labels, shaded = words.states(name, net.states(name)), net.cpt(name).testing
    return Bars.of(label, labels, posteriors[name].tolist(), shaded, *marks)


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


def _column(variable: Variable, name: str, question: _Question, posteriors: Mapping[str, Any]) -> Column:
    """A column of numbers: the one that was observed, or else their distribution."""
    label = name if len(variable.columns) > 1 else ""
    if name in posteriors:
        return Column.of(label, posteriors[name])
    assert question.observed
    seen = question.observed.columns[variable.name]
    assert isinstance(seen, DensityColumn), "what has no distribution is known"
    return Column.seen(label, float(seen.values[0, variable.columns.index(name)]))


def _of_circuit(circuit: Circuit) -> Graph:
    nodes = list(drawn_nodes(circuit))
    shapes = [Labelled(visible(node.label), node.form, node.form == "box", node.output) for node in nodes]
    edges = [(child, i) for i, node in enumerate(nodes) for child in node.children]
    return Graph(shapes, edges, [EdgeLook()] * len(edges), upwards=True)
