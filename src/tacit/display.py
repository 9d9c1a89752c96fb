"""Networks as text, HTML and Graphviz."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tacit.cpt import CPT, TestingCPT

if TYPE_CHECKING:
    from tacit.network import Network, Node

MAX_HTML_ROWS = 60


def network_text(net: Network) -> str:
    counts = net.counts()
    parts = [plural(counts.nodes, "node"), plural(counts.edges, "edge")]
    if counts.testing_nodes:
        parts.append(f"{counts.testing_nodes} testing")
    parts.append(plural(counts.parameters, "parameter"))
    if counts.thresholds:
        parts.append(plural(counts.thresholds, "threshold"))
    name = f"{net.name!r}: " if net.name is not None else ""
    return f"Network({name}{', '.join(parts)})"


def network_html(net: Network) -> str:
    rows = [_html_row(name, net.node(name)) for name in net.variables[:MAX_HTML_ROWS]]
    if len(net) > MAX_HTML_ROWS:
        rows.append(f"<tr><td colspan='4'>... and {len(net) - MAX_HTML_ROWS} more</td></tr>")
    return (
        f"<b>{escape(network_text(net))}</b>"
        "<table><thead><tr><th>variable</th><th>states</th><th>parents</th><th>CPT</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _html_row(name: str, node: Node) -> str:
    shade = " style='background:#d9d9d9;color:#000'" if node.cpt.testing else ""
    cells = (name, ", ".join(map(str, node.variable.states)), ", ".join(node.parents), cpt_kind(node))
    return f"<tr{shade}>{''.join(f'<td>{escape(_short(cell))}</td>' for cell in cells)}</tr>"


def cpt_kind(node: Node) -> str:
    """One line on what kind of CPT a node has."""
    cpt = node.cpt
    if isinstance(cpt, TestingCPT):
        how = "tests" if cpt.gamma is None else f"sigmoid, gamma={cpt.gamma:g}"
        return f"testing ({how}), {plural(cpt.thresholds.size, 'threshold')}{', learned' * cpt.learn}"
    if isinstance(cpt, CPT):
        return f"{plural(cpt.table.size, 'parameter')}{', learned' * cpt.learn}"
    return repr(cpt)


def network_dot(net: Network) -> str:
    lines = [f"digraph {quote(net.name or 'network')} {{", '  node [shape=ellipse, fontname="Helvetica"];']
    for name in net.variables:
        shade = " [style=filled, fillcolor=lightgrey]" if net.cpt(name).testing else ""
        lines.append(f"  {quote(name)}{shade};")
    for name in net.variables:
        lines.extend(f"  {quote(parent)} -> {quote(name)};" for parent in net.parents(name))
    return "\n".join([*lines, "}"]) + "\n"


def quote(name: str) -> str:
    """A name as a quoted Graphviz identifier."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def large(number: int) -> str:
    """A count that may be astronomically large."""
    return f"{number:,}" if number < 10**15 else f"about 10^{math.log10(number):.0f}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def bars(labels: Sequence[object], values: Sequence[float], width: int = 30) -> str:
    """Probabilities as bars of text, one line per state."""
    pad = max(len(str(label)) for label in labels)
    return "\n".join(
        f"{label!s:>{pad}}  {value:8.6f}  {'█' * round(width * value)}"
        for label, value in zip(labels, values, strict=True)
    )
