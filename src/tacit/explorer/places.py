"""Where the boxes of the explorer page go: parents above children, wide rows wrapped, long edges between the boxes.

The page draws what this file decides; the measures of a box travel with the layout, so that they are written once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from tacit.cpt import TestingCPT
from tacit.floats import Floats
from tacit.layout import Edge, spread
from tacit.model import Model

MEASURES = {
    "title": 22,  # the height of the line with the name
    "row": 16,  # of a line with a state
    "gauge": 13,  # of a line with a test
    "pad": 6,  # below the last line, and at both sides
    "bar": 58,  # the length of a full bar
    "number": 46,  # the width of a percentage
    "label": 110,  # the longest label that is shown in full
    "tests": 4,  # so many tests are shown in a box; of more, only how many hold
}
NARROWEST, WIDEST = 132, 280
GAP, CHANNEL = 18, 9  # between boxes of a row, between an edge and its neighbours
BETWEEN = 38  # between two rows
ASPECT, NO_TOWER = 1.25, 0.9  # width / height: about that of a window beside the panels, and the least that is sought
SWEEPS, MOVES = 24, 12
RIGID = 6.0  # how much more a long edge minds a bend than a box minds its place
SMALL = 0.85  # the letters of tests beside those of states
NARROW = frozenset("iljtfrI.,:;'|!()[]{} -")
WIDE = frozenset("mwMW@%—")


def places(net: Model, titles: Sequence[str], states: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Boxes and edges of a network in pixels, for the titles and states that are shown.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> net.add("wet", parents=["rain"], cpt=[[0.9, 0.1], [0.05, 0.95]])
    >>> found = places(net, ["rain", "wet"], [["yes", "no"]] * 2)
    >>> found["width"], found["height"], found["boxes"]
    (167.0, 182.0, [[12.0, 12.0, 143.0, 60.0], [12.0, 110.0, 143.0, 60.0]])
    >>> found["edges"]
    [{'from': 0, 'to': 1, 'points': [[83.5, 72.0], [83.5, 110.0]]}]
    """
    number = {name: i for i, name in enumerate(net.variables)}
    edges = [(number[parent], number[name]) for name in net.variables for parent in net.parents(name)]
    tests = [tests_of(net, name, titles, states) for name in net.variables]
    sizes = [size(*one) for one in zip(titles, states, tests, strict=True)]
    if not sizes:
        return {"width": 0.0, "height": 0.0, "boxes": [], "edges": [], "measures": MEASURES}
    wires = Wires.of(wrapped(sizes, edges), sizes, edges)
    return _placed(wires, columns(wires, crossings_reduced(wires)), sizes, edges)


def tests_of(net: Model, name: str, titles: Sequence[str], states: Sequence[Sequence[str]]) -> list[str]:
    """The labels of the tests in a node's box, one for each state of its parents, or one in all if they are many."""
    if not net.cpt(name).testing:
        return []
    parents = [net.variables.index(parent) for parent in net.parents(name)]
    each = tests_per_state(net, name)
    if each * math.prod(len(states[p]) for p in parents) > MEASURES["tests"]:
        return [""]
    found = [", ".join(row) for row in product(*([f"{titles[p]}={state}" for state in states[p]] for p in parents))]
    return [f"{row} ({j + 1})" if each > 1 else row for row in found for j in range(each)]


def tests_per_state(net: Model, name: str) -> int:
    """How many tests a node has for each state of its parents: one less than it has tables."""
    cpt = net.cpt(name)
    return len(cpt.tables) - 1 if isinstance(cpt, TestingCPT) else 0


# sizes ----------------------------------------------------------------------------------------------------


def size(title: str, states: Sequence[str], tests: Sequence[str]) -> tuple[float, float]:
    """The width and height of a box."""
    m = MEASURES
    longest = max(*map(text_width, states), *(text_width(test, SMALL) for test in tests), 0.0)
    row = min(longest, m["label"]) + m["bar"] + m["number"] + 2 * m["pad"] + 6
    width = max(NARROWEST, row, text_width(title, 1.22) + 2 * m["pad"] + 22)
    height = m["title"] + m["row"] * len(states) + (4 + m["gauge"] * len(tests) if tests else 0) + m["pad"]
    return float(math.ceil(min(width, WIDEST))), float(height)


def text_width(text: str, scale: float = 1.0) -> float:
    """About how wide a text is in a sans-serif of 12 pixels; generous, since fonts differ."""
    return scale * sum(4.2 if c in NARROW else 10.4 if c in WIDE else 7.6 if c.isupper() else 6.9 for c in text)


# rows -----------------------------------------------------------------------------------------------------


def wrapped(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> list[int]:
    """The row of every box, in rows of such a width that the whole has a shape like a window's."""
    widest = max(width for width, _ in sizes)
    total = sum(width + GAP for width, _ in sizes)
    limits = np.geomspace(max(total, widest), widest, 32)
    tried = [rows_within(float(limit), sizes, edges) for limit in limits]
    return min(tried, key=lambda rows: _unwieldy(rows, sizes))


def _unwieldy(rows: Sequence[int], sizes: Sequence[tuple[float, float]]) -> float:
    """How far one must zoom out to see everything; of those that are alike, the smaller one, but no tower."""
    widths, heights = np.zeros(max(rows) + 1), np.zeros(max(rows) + 1)
    for row, (width, height) in zip(rows, sizes, strict=True):
        widths[row] += width + GAP
        heights[row] = max(heights[row], height + BETWEEN)
    height = heights.sum()
    width = max(widths.max(), NO_TOWER * height) / ASPECT
    return float(max(width, height) + 0.1 * (width + height))


def rows_within(limit: float, sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> list[int]:
    """Rows no wider than `limit`, parents above children: filled from the top, then boxes move nearer to each other."""
    parents, children = neighbours(len(sizes), edges)
    depth = [0] * len(sizes)  # the longest way down
    for i in reversed(range(len(sizes))):
        depth[i] = max((depth[c] + 1 for c in children[i]), default=0)
    order = sorted(range(len(sizes)), key=lambda i: (-depth[i], i))
    rows, used = _filled(limit, sizes, order, parents, children)
    _drawn_together(rows, used, limit, sizes, parents, children)
    number = {row: k for k, row in enumerate(sorted(set(rows)))}
    return [number[row] for row in rows]


def _filled(
    limit: float,
    sizes: Sequence[tuple[float, float]],
    order: Sequence[int],
    parents: Sequence[Sequence[int]],
    children: Sequence[Sequence[int]],
) -> tuple[list[int], list[float]]:
    """Row by row, the boxes that fit of those whose parents lie above, in their order; and how full the rows are."""
    rank = {i: k for k, i in enumerate(order)}
    open_parents = [len(above) for above in parents]
    narrowest = min(width for width, _ in sizes)
    rows, used = [-1] * len(sizes), list[float]()
    ready = [i for i in order if not open_parents[i]]
    while ready:
        room, left, here = limit, list[int](), list[int]()
        for k, i in enumerate(ready):
            if room != limit and room < narrowest:
                left += ready[k:]
                break
            if sizes[i][0] <= room or room == limit:
                rows[i] = len(used)
                room -= sizes[i][0] + GAP
                here.append(i)
            else:
                left.append(i)
        used.append(limit - room)
        for child in (child for i in here for child in children[i]):
            open_parents[child] -= 1
            if not open_parents[child]:
                left.append(child)
        ready = sorted(left, key=rank.__getitem__)
    return rows, used


def _drawn_together(
    rows: list[int],
    used: list[float],
    limit: float,
    sizes: Sequence[tuple[float, float]],
    parents: Sequence[Sequence[int]],
    children: Sequence[Sequence[int]],
) -> None:
    """Move boxes to rows with room where their edges are shorter, until nothing moves."""
    for _ in range(MOVES):
        moved = False
        for i in range(len(rows)):
            low = max((rows[p] + 1 for p in parents[i]), default=0)
            high = min((rows[c] - 1 for c in children[i]), default=len(used) - 1)
            near = sorted(rows[j] for j in (*parents[i], *children[i]))
            ideal = min(max(near[len(near) // 2], low), high) if near else rows[i]  # the median, as near as it may be
            if _lengths(rows[i], near) <= _lengths(ideal, near):
                continue
            width = sizes[i][0] + GAP
            free = [r for r in range(low, high + 1) if r == rows[i] or used[r] + width <= limit]
            best = min(free, key=lambda r: (_lengths(r, near), r != rows[i]))
            if best != rows[i]:
                used[rows[i]] -= width
                used[best] += width
                rows[i], moved = best, True
        if not moved:
            return


def _lengths(row: int, near: Sequence[int]) -> int:
    """Of all edges of a box in this row together."""
    return sum(abs(row - other) for other in near)


def neighbours(count: int, edges: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    """What lies above and below every node."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        above[head].append(tail)
        below[tail].append(head)
    return above, below


# order within rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wires:
    """Boxes, and the points where long edges pass a row: those of one parent share theirs, as cables share a duct."""

    layers: list[list[int]]  # nodes by row
    row: list[int]
    width: Floats
    above: list[list[int]]
    below: list[list[int]]
    ducts: dict[int, list[int]]  # by parent: its points in the rows below it, as far as they are needed
    boxes: int

    @classmethod
    def of(cls, rows: Sequence[int], sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Wires:
        """Add the points that long edges pass."""
        row, links = list(rows), set[Edge]()
        ducts: dict[int, list[int]] = {tail: [] for tail, _ in edges}
        for tail, head in edges:
            length = rows[head] - rows[tail] - 1
            while len(ducts[tail]) < length:
                ducts[tail].append(len(row))
                row.append(rows[tail] + len(ducts[tail]))
            links.update(pairwise([tail, *ducts[tail][:length], head]))
        layers: list[list[int]] = [[] for _ in range(max(row) + 1)]
        for i, r in enumerate(row):
            layers[r].append(i)
        width = np.array([w for w, _ in sizes] + [2.0] * (len(row) - len(sizes)))
        return cls(layers, row, width, *neighbours(len(row), sorted(links)), ducts, len(sizes))


def crossings_reduced(net: Wires) -> list[list[int]]:
    """An order of every row with few crossings: rows follow the middle of their neighbours, downwards and upwards."""
    layers = [list(layer) for layer in net.layers]
    best, fewest = net.layers, _crossings(layers, net)
    position = {i: k for layer in layers for i, k in _positions(layer)}
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        fixed = net.above if downwards else net.below
        for layer in layers if downwards else reversed(layers):
            middle = {i: _middle([position[j] for j in fixed[i]], position[i]) for i in layer}
            layer.sort(key=middle.__getitem__)
            position.update(_positions(layer))
        found = _crossings(layers, net)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    return best


def _positions(layer: Sequence[int]) -> Iterator[tuple[int, float]]:
    return ((i, (k + 0.5) / len(layer)) for k, i in enumerate(layer))


def _middle(found: Sequence[float], otherwise: float) -> float:
    return sum(found) / len(found) if found else otherwise


def _crossings(layers: Sequence[Sequence[int]], net: Wires) -> int:
    position = {i: k for layer in layers for k, i in enumerate(layer)}
    total = 0
    for layer in layers[:-1]:
        ends = np.array([position[j] for i in layer for j in sorted(net.below[i], key=position.__getitem__)])
        total += int(np.sum(np.triu(ends[:, None] > ends[None, :], 1)))
    return total


# places ---------------------------------------------------------------------------------------------------


def columns(net: Wires, layers: Sequence[Sequence[int]]) -> Floats:
    """The middle of every node, from left to right: near its neighbours, and apart from those beside it."""
    x = np.zeros(len(net.row))
    gaps = [np.array([GAP if i < net.boxes else CHANNEL for i in layer]) for layer in layers]
    widths = [net.width[layer] + gap for layer, gap in zip(layers, gaps, strict=True)]
    half = max(float(wide.sum()) for wide in widths) / 2
    along = {point: duct for duct in net.ducts.values() for point in duct}
    for layer, wide in zip(layers, widths, strict=True):
        x[layer] = np.cumsum(wide) - wide / 2 - wide.sum() / 2
    before = [x.copy(), x.copy()]
    for sweep in range(SWEEPS):
        order = range(len(layers)) if sweep % 2 == 0 else reversed(range(len(layers)))
        for r in order:
            layer = layers[r]
            wanted = np.array([_wanted(i, x, net, along.get(i, [])) for i in layer])
            weights = np.array([1.0 if i < net.boxes else RIGID for i in layer])
            x[layer] = _within(half, spread(wanted, widths[r], 0.0, weights), widths[r])
        if sweep and all(np.array_equal(x, earlier) for earlier in before):  # neither way moves anything
            break
        before = [before[1], x.copy()]
    _straighten(x, net, layers, half)
    return x


def _straighten(x: Floats, net: Wires, layers: Sequence[Sequence[int]], half: float) -> None:
    """Let each long edge go straight down as far as the nodes beside it allow, then turn, then straight down again."""
    place = {i: k for layer in layers for k, i in enumerate(layer)}
    for duct in net.ducts.values():
        straight: list[int] = []
        low, high = -half, half
        for point in duct:
            layer, k = layers[net.row[point]], place[point]
            left = x[layer[k - 1]] + _distance(net, layer[k - 1], point) if k else -half
            right = x[layer[k + 1]] - _distance(net, point, layer[k + 1]) if k + 1 < len(layer) else half
            if max(low, left) > min(high, right):
                x[straight] = np.clip(np.median(x[straight]), low, high)
                straight, low, high = [], -half, half
            straight.append(point)
            low, high = max(low, left), min(high, right)
        if straight:
            x[straight] = np.clip(np.median(x[straight]), low, high)


def _distance(net: Wires, i: int, j: int) -> float:
    """Between the middles of neighbours, at least."""
    gaps = [GAP if k < net.boxes else CHANNEL for k in (i, j)]
    return float(net.width[i] + net.width[j] + sum(gaps)) / 2


def _within(half: float, x: Floats, wide: Floats) -> Floats:
    """Push nodes back that stick out at the left or right of the widest row, those beside them as far as needed."""
    before = np.cumsum(wide) - wide / 2
    return np.clip(x, before - half, before - wide.sum() + half)


def _wanted(i: int, x: Floats, net: Wires, along: list[int]) -> float:
    """In the middle of its neighbours; a long edge would go straight down."""
    near = along + net.above[i] + net.below[i]
    return float(np.mean(x[near])) if near else float(x[i])


def _placed(net: Wires, x: Floats, sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> dict[str, Any]:
    margin = 12.0
    heights = np.zeros(len(net.layers))
    for i, (_, height) in enumerate(sizes):
        heights[net.row[i]] = max(heights[net.row[i]], height)
    tops = margin + np.concatenate([[0.0], np.cumsum(heights[:-1] + BETWEEN)])
    x = np.round(x - float((x - net.width / 2).min()) + margin, 1)
    boxes = [[x[i] - w / 2, tops[net.row[i]], w, h] for i, (w, h) in enumerate(sizes)]
    routes = []
    for tail, head in edges:
        points = [[x[tail], boxes[tail][1] + boxes[tail][3]]]
        for r in range(net.row[tail] + 1, net.row[head]):
            at = x[net.ducts[tail][r - net.row[tail] - 1]]
            points += [[at, tops[r]], [at, tops[r] + heights[r]]]
        points.append([x[head], boxes[head][1]])
        routes.append({"from": tail, "to": head, "points": _numbers(points)})
    return {
        "width": float(np.round((x + net.width / 2).max() + margin, 1)),
        "height": float(tops[-1] + heights[-1] + margin),
        "boxes": _numbers(boxes),
        "edges": routes,
        "measures": MEASURES,
    }


def _numbers(points: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(float(number), 1) for number in point] for point in points]
