"""Small tables and curves as HTML, for notebooks: legible on light and on dark ground."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape

SHADE = " style='background:rgba(128,128,128,.25)'"
LEFT = " style='text-align:left'"  # notebooks align all cells on the right, as numbers should be
WIDTH, HEIGHT, POINTS = 180, 36, 200  # of a curve


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    notes: Iterable[str] = (),
    shaded: Collection[int] = (),
) -> str:
    """A table with a title above and notes below; the rows in `shaded` stand out. Everything is escaped.

    >>> table(["name", "size"], [["<A>", 1200]])  # doctest: +ELLIPSIS
    "<table><thead>...<tr><td style='text-align:left'>&lt;A&gt;</td><td>1,200</td></tr></tbody></table>"
    """
    lines = list(rows)
    first = lines[0] if lines else head
    top = "".join(_cell("th", name, isinstance(below, str)) for name, below in zip(head, first, strict=False))
    body = (
        f"<tr{SHADE * (i in shaded)}>{''.join(_cell('td', cell, isinstance(cell, str)) for cell in row)}</tr>"
        for i, row in enumerate(lines)
    )
    return _framed(title, f"<tr>{top}</tr>" * bool(head), "".join(body), notes)


def grid(
    head: Iterable[Sequence[str]], body: Iterable[Sequence[str]], left: int, title: str = "", notes: Iterable[str] = ()
) -> str:
    """Lines of headings and lines of cells, all of them text; the first `left` of each line go to the left."""

    def rows(tag: str, lines: Iterable[Sequence[str]]) -> str:
        return "".join(f"<tr>{''.join(_cell(tag, cell, c < left) for c, cell in enumerate(row))}</tr>" for row in lines)

    return _framed(title, rows("th", head), rows("td", body), notes)


def _framed(title: str, head: str, body: str, notes: Iterable[str]) -> str:
    return (
        f"{f'<b>{escape(title)}</b>' * bool(title)}<table>{f'<thead>{head}</thead>' * bool(head)}"
        f"<tbody>{body}</tbody></table>{lines(notes)}"
    )


def facts(title: str, values: Mapping[str, object]) -> str:
    """Names and values, one below the other; what is None or empty is left out."""
    return table((), [(name, _text(value)) for name, value in values.items() if value not in (None, "")], title)


def lines(texts: Iterable[str]) -> str:
    """Texts, one below the other."""
    return "".join(f"<div>{escape(text)}</div>" for text in texts)


def curve(values: Sequence[float]) -> str:
    """Numbers as a small curve, from left to right; nothing where fewer than two are finite."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    shown = finite[:: math.ceil(len(finite) / POINTS)]
    low, high = min(shown), max(shown)
    across, up = WIDTH / max(1, len(shown) - 1), HEIGHT / (high - low or 1.0)
    points = " ".join(f"{i * across:.1f},{2 + (high - value) * up:.1f}" for i, value in enumerate(shown))
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT + 4}' role='img' aria-label='{len(finite):,} values, from "
        f"{finite[0]:.6g} to {finite[-1]:.6g}'><polyline points='{points}' fill='none' stroke='currentColor' "
        "stroke-width='1.5'/></svg>"
    )


def _cell(tag: str, value: object, left: bool) -> str:
    return f"<{tag}{LEFT * left}>{escape(_text(value)).replace(chr(10), '<br>')}</{tag}>"


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
