"""Networks as HTML and Graphviz."""

from __future__ import annotations

from html import escape

from tacit.cpt import CPT, TestingCPT
from tacit.model import Model, Node
from tacit.words import plural, quote, short

MAX_HTML_ROWS = 60


def network_html(net: Model) -> str:
    """A table with a row per variable."""
    rows = [_html_row(name, net.node(name)) for name in net.variables[:MAX_HTML_ROWS]]
    if len(net) > MAX_HTML_ROWS:
        rows.append(f"<tr><td colspan='4'>... and {len(net) - MAX_HTML_ROWS} more</td></tr>")
    return (
        f"<b>{escape(repr(net))}</b>"
        "<table><thead><tr><th>variable</th><th>states</th><th>parents</th><th>CPT</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _html_row(name: str, node: Node) -> str:
    shade = " style='background:#d9d9d9;color:#000'" if node.cpt.testing else ""
    cells = (name, ", ".join(map(str, node.variable.states)), ", ".join(node.parents), cpt_kind(node))
    return f"<tr{shade}>{''.join(f'<td>{escape(short(cell))}</td>' for cell in cells)}</tr>"


def cpt_kind(node: Node) -> str:
    """One line on what kind of CPT a node has."""
    cpt = node.cpt
    if isinstance(cpt, TestingCPT):
        how = "tests" if cpt.gamma is None else f"sigmoid, gamma={cpt.gamma:g}"
        return f"testing ({how}), {plural(cpt.thresholds.size, 'threshold')}{', learned' * cpt.learn}"
    if isinstance(cpt, CPT):
        return f"{plural(cpt.table.size, 'parameter')}{', learned' * cpt.learn}"
    return repr(cpt)


def network_dot(net: Model) -> str:
    """A Graphviz drawing; testing nodes are shaded."""
    lines = [f"digraph {quote(net.name or 'network')} {{", '  node [shape=ellipse, fontname="Helvetica"];']
    for name in net.variables:
        shade = " [style=filled, fillcolor=lightgrey]" if net.cpt(name).testing else ""
        lines.append(f"  {quote(name)}{shade};")
    for name in net.variables:
        lines.extend(f"  {quote(parent)} -> {quote(name)};" for parent in net.parents(name))
    return "\n".join([*lines, "}"]) + "\n"
