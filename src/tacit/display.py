"""Networks as text, HTML and Graphviz."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tacit.cpt import CPT, TestingCPT

if TYPE_CHECKING:
    from tacit.compiler.program import Operation, Program
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


def program_table(program: Program, limit: int = 200) -> str:
    """A program as a table of steps: what is made, over which axes, at what cost, for each row or once."""
    body = [
        (
            f"v{i}",
            _operation(operation),
            " ".join(operation.axes) or "-",
            f"{program.size(operation.axes):,}",
            f"{program.multiply_adds(i):,}",
            "row" if program.batched[i] else "query",
        )
        for i, operation in enumerate(program)
    ]
    hidden = len(body) - limit
    if hidden > 0:
        first = limit // 2
        body = [*body[:first], ("...", f"{hidden:,} more", "", "", "", ""), *body[first + hidden :]]
    rows = [("value", "operation", "axes", "entries", "multiply-adds", "per"), *body]
    widths = [max(len(row[c]) for row in rows) for c in range(6)]
    right = (False, False, False, True, True, False)
    lines = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]
    cost = program.cost
    lines.append(
        f"width {cost.width}; per row: {cost.multiply_adds:,} multiply-adds, {cost.bytes:,} bytes written, "
        f"largest value {cost.peak:,}; once: {cost.static_multiply_adds:,} multiply-adds"
    )
    return "\n".join(lines)


def _operation(operation: Operation) -> str:
    from tacit.compiler.program import Likelihood, Parameter, Select, Slice  # it needs networks, which need this file

    inputs = " ".join(f"v{i}" for i in operation.inputs)
    match operation:
        case Parameter():
            detail = f"{operation.node}.{operation.part}"
        case Likelihood():
            detail = operation.variable
        case Slice():
            detail = f"{inputs} at {' '.join(operation.variables)}"
        case Select():
            detail = f"{operation.node}: {inputs}"
        case _:
            detail = inputs
    return f"{type(operation).__name__.lower()} {detail}".rstrip()
