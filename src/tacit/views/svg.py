"""Pictures as SVG, which needs nothing to be installed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tacit.views.picture import FONT_SIZE, Area, Arrow, Box, Item, Oval, Picture, Text

FONTS = "Helvetica, Arial, sans-serif"


def svg(picture: Picture) -> str:
    """A picture as an SVG document.

    >>> svg(Picture(20, 10, [Text(10, 8, "<A>")]))  # doctest: +ELLIPSIS
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" ...>&lt;A&gt;</text></svg>'
    """
    width, height, scale = picture.width, picture.height, picture.scale
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:.0f}" height="{height * scale:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" font-family="{FONTS}" font-size="{FONT_SIZE:g}">'
    )
    return "".join([start, *map(_element, picture.items), "</svg>"])


def _element(item: Item) -> str:
    match item:
        case Arrow():
            return _arrow(item)
        case Text():
            return _text(item)
        case Area():
            corners = " ".join(f"{x:.1f} {y:.1f}" for x, y in item.points)
            return f'<path d="M{corners}z" fill="{item.fill}"/>'
        case Oval():
            radii = f'rx="{item.width / 2:.1f}" ry="{item.height / 2:.1f}"'
            middle = f'cx="{item.left + item.width / 2:.1f}" cy="{item.top + item.height / 2:.1f}"'
            return f"<ellipse {middle} {radii}{_paint(item)}/>"
        case Box():
            corner = f'x="{item.left:.1f}" y="{item.top:.1f}" rx="{item.radius:g}"'
            return f'<rect {corner} width="{item.width:.1f}" height="{item.height:.1f}"{_paint(item)}/>'


def _paint(item: Oval | Box) -> str:
    outline = item.outline
    if not outline:
        return f' fill="{item.fill}"'
    dashes = f' stroke-dasharray="{_numbers(outline.dashes)}"' * bool(outline.dashes)
    return f' fill="{item.fill}" stroke="{outline.color}" stroke-width="{outline.width:g}"{dashes}'


def _arrow(arrow: Arrow) -> str:
    """The line, and its tip as a shape of its own: markers need names, and all drawings of a notebook share those."""
    x, y = arrow.points[0]
    curves = "".join(
        f"C{ax:.1f} {ay:.1f} {bx:.1f} {by:.1f} {x:.1f} {y:.1f}" for (ax, ay), (bx, by), (x, y) in arrow.curves
    )
    color, width, dashes = arrow.stroke
    look = f' stroke-width="{width:g}"' * (width != 1) + f' stroke-dasharray="{_numbers(dashes)}"' * bool(dashes)
    line = f'<path d="M{x:.1f} {y:.1f}{curves}" fill="none" stroke="{color}"{look}/>'
    tip = " ".join(f"{x:.1f} {y:.1f}" for x, y in arrow.tip)
    return line + f'<path d="M{tip}z" fill="{color}" class="tip"/>' * arrow.tipped


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def _text(text: Text) -> str:
    size = f' font-size="{text.size:g}"' * (text.size != FONT_SIZE)
    weight = ' font-weight="bold"' * text.bold
    anchor = f' text-anchor="{text.anchor}"' * (text.anchor != "start")
    place = f'x="{text.x:.1f}" y="{text.baseline:.1f}"'
    return f'<text {place}{anchor}{size}{weight} fill="{text.color}">{escape(text.text)}</text>'
