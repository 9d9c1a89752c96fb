"""Networks as HTML and Graphviz."""

from __future__ import annotations

from tacit.base.html import table
from tacit.base.text import plural, quote, short
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import AnyDensity
from tacit.model.graph import Node
from tacit.model.model import Model

MAX_HTML_ROWS = 60


def network_html(net: Model) -> str:
    """A table with a row per variable; testing nodes are shaded."""
    shown = net.variables[:MAX_HTML_ROWS]
    rows = []
    for name in shown:
        node = net.node(name)
        states = ", ".join(map(str, net.states(name))) or "numbers"
        cells = (name, states, ", ".join(node.parents), cpt_kind(node))
        rows.append(tuple(map(short, cells)))
    notes = [f"... and {len(net) - len(shown)} more"] if len(net) > len(shown) else []
    notes += [f"value node {name} of {', '.join(own.parents)}" for name, own in net.value_nodes.items()]
    shaded = [i for i, name in enumerate(shown) if net.cpt(name).testing]
    return table(("variable", "states", "parents", "CPT"), rows, repr(net), notes, shaded)


def cpt_kind(node: Node) -> str:
    """One line on what kind of CPT a node has."""
    cpt = node.cpt
    if isinstance(cpt, TestingCPT):
        how = "tests" if cpt.gamma is None else f"sigmoid, gamma={cpt.gamma:g}"
        tables = f", {len(cpt.tables)} tables" if len(cpt.tables) > 2 else ""
        return f"testing ({how}){tables}, {plural(cpt.thresholds.size, 'threshold')}{', learned' * cpt.learn}"
    if isinstance(cpt, CPT):
        return f"{plural(cpt.table.size, 'parameter')}{', learned' * cpt.learn}"
    if isinstance(cpt, AnyDensity):
        size = sum(part.size for part in cpt.parts().values())
        numbers = f", {plural(size, 'parameter')}" if size else ""
        return f"{cpt.kind}{numbers}{', learned' * cpt.learn}"
    return repr(cpt)


def network_dot(net: Model) -> str:
    """A Graphviz drawing; testing nodes are shaded, continuous ones are boxes, and value nodes are diamonds."""
    lines = [f"digraph {quote(net.name or 'network')} {{", '  node [shape=ellipse, fontname="Helvetica"];']
    for name in net.variables:
        shade = " [style=filled, fillcolor=lightgrey]" if net.cpt(name).testing else ""
        shape = " [shape=box, style=rounded]" if net.variable(name).continuous else ""
        lines.append(f"  {quote(name)}{shade}{shape};")
    for name in net.variables:
        lines.extend(f"  {quote(parent)} -> {quote(name)};" for parent in net.parents(name))
    for name, node in net.value_nodes.items():
        lines.append(f"  {quote(name)} [shape=diamond];")
        lines.extend(f"  {quote(parent)} -> {quote(name)};" for parent in node.parents)
    return "\n".join([*lines, "}"]) + "\n"
