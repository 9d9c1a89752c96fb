"""How the edges of a drawing look: the less sure they are, the lighter; and a legend that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tacit.base.errors import TacitError
from tacit.views.layout import text_width
from tacit.views.nodes import RING_GAP, Look
from tacit.views.picture import EDGE, INK, PLAIN, Arrow, Box, Item, Stroke, Text

Pair = tuple[str, str]
SAMPLE, TEXT_GAP, ENTRY_GAP, LINE, SWATCH = 30.0, 8.0, 16.0, 20.0, (24.0, 13.0)  # of the legend, in pixels
WIDENING = 1.06  # of its texts, since nothing has room around them


class Level(NamedTuple):
    """The edges from a strength on, up to the next level: how they look, and what the legend says."""

    least: float
    stroke: Stroke
    text: str


LEVELS = (
    Level(1.0, Stroke(INK, 1.4), "in all samples"),
    Level(0.75, Stroke(EDGE, 1.2, (7.0, 3.0)), "in 75% of the samples or more"),
    Level(0.5, Stroke(EDGE, 1.0, (3.0, 3.0)), "in 50% to 75% of the samples"),
    Level(0.0, Stroke("#9aa5b5", 1.0, (1.5, 3.0)), "in fewer than half of the samples"),
)
CUT = Stroke("#9a5cc0", 1.2, (2.0, 4.0))
NO_DIRECTION = "direction unknown"


@dataclass(frozen=True)
class EdgeLook:
    """The stroke of an edge, and whether it has a tip."""

    stroke: Stroke = PLAIN
    tipped: bool = True

    @property
    def rank(self) -> int:
        """The place of its level, the strongest first; what is cut comes last."""
        if self.stroke == CUT:
            return len(LEVELS)
        return next((k for k, level in enumerate(LEVELS) if level.stroke == self.stroke), 0)


CUT_LOOK = EdgeLook(CUT, tipped=False)


class Swatch(NamedTuple):
    """The look of a node that a legend explains."""

    look: Look
    ringed: bool = False


Sample = EdgeLook | Swatch


@dataclass(frozen=True)
class EdgeLooks:
    """What is known about edges, by the names of their ends."""

    strength: Mapping[Pair, float]
    undirected: frozenset[Pair]

    @classmethod
    def checked(cls, edges: Iterable[Pair], strength: Mapping[Pair, float], undirected: Iterable[Pair]) -> EdgeLooks:
        """What `draw` is given; the ends of an edge without a direction may be in any order."""
        known = set(edges)
        both = known | {(head, tail) for tail, head in known}
        pairs = [_pair(tuple(pair), "undirected", both) for pair in undirected]
        for pair, number in strength.items():
            _pair(pair, "strength", known)
            if not (isinstance(number, int | float) and 0 <= number <= 1):
                raise TacitError(f"strength of {pair!r} is {number!r}, expected a number from 0 to 1")
        return cls(strength, frozenset([*pairs, *((head, tail) for tail, head in pairs)]))

    def of(self, edge: Pair) -> EdgeLook:
        """How one edge looks."""
        stroke = _level(self.strength.get(edge, 1.0)).stroke if self.strength else PLAIN
        return EdgeLook(stroke, edge not in self.undirected)

    def legend(self, edges: Iterable[Pair]) -> list[tuple[EdgeLook, str]]:
        """What has to be explained of these edges: the levels that occur, strongest first, and a missing tip."""
        edges = list(edges)
        levels = {_level(self.strength.get(edge, 1.0)) for edge in edges} if self.strength else set[Level]()
        if levels == {LEVELS[0]}:  # nothing to tell apart
            levels = set()
        entries = [(EdgeLook(level.stroke), level.text) for level in LEVELS if level in levels]
        if self.undirected.intersection(edges):
            entries.append((EdgeLook(LEVELS[0].stroke if self.strength else PLAIN, tipped=False), NO_DIRECTION))
        return entries


def legend_items(
    entries: Iterable[tuple[Sample, str]], left: float, top: float, width: float
) -> tuple[list[Item], float, float]:
    """The legend in lines of a width from a point on, and how wide and high it is."""
    items, x, y, widest = list[Item](), left, top, 0.0
    for look, text in entries:
        length = SAMPLE + TEXT_GAP + text_width(text, WIDENING)
        if x > left and x + length > left + width:
            x, y = left, y + LINE
        items += _entry(look, text, x, y + LINE / 2)
        widest = max(widest, x + length - left)
        x += length + ENTRY_GAP
    return items, widest, y + LINE - top


def _entry(look: Sample, text: str, x: float, middle: float) -> Iterator[Item]:
    if isinstance(look, Swatch):
        for inside in (0.0, RING_GAP) if look.ringed else (0.0,):
            width, height = (length - 2 * inside for length in SWATCH)
            place = (x + (SAMPLE - width) / 2, middle - height / 2, width, height)
            yield Box(*place, look.look.fill, look.look.outline)
    else:
        yield Arrow([(x, middle), (x + SAMPLE, middle)], look.stroke, look.tipped)
    yield Text(x + SAMPLE + TEXT_GAP, middle + 4, text, "start")


def _level(strength: float) -> Level:
    return next(level for level in LEVELS if strength >= level.least)


def _pair(pair: tuple[str, ...], where: str, known: set[Pair]) -> Pair:
    if pair not in known:
        raise TacitError(f"{where} names {pair!r}, which is not an edge of the network; expected pairs (parent, child)")
    tail, head = pair
    return tail, head
