"""Where the boxes of a picture go: parents above children, wide rows wrapped, long edges between the boxes.

Edges lead from lower to higher numbers: parents first. The explorer page and drawings are both placed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats

Point = tuple[float, float]
Edge = tuple[int, int]
Size = tuple[float, float]
Indices = NDArray[np.intp]
Neighbours = Sequence[Sequence[int]]  # of each node

GAP, CHANNEL = 16, 9  # between boxes of a row, between an edge and its neighbours
LANE, MAX_LANE = 5.0, 40.0  # between the long edges of one parent, which run side by side; all of them, at most
PORT, PORT_SHARE, LEANING = 13.0, 0.6, 0.25  # between edges at a box; their share of its side; how far they lean
ROW_GAP = 30
MARGIN = 12.0
ASPECT, MIN_ASPECT = 1.25, 0.9  # width / height: about that of a window beside the panels, and the least that is sought
MAX_SWEEPS, MAX_MOVES, MAX_HALVINGS = 24, 12, 30
SMALL = 40  # boxes that may be exchanged for each width that is tried
PASSING = 0.5  # what a row that each edge passes costs, as a share of the size
LENGTH_POWER = 1.5  # one edge through four rows is worse than two through two
MAX_EXCHANGES = 100_000  # tried for one layout
LARGE = 3  # times as large as any other
APART = 2 * GAP  # between parts of a network without an edge between them
NARROWING = 0.9  # rows shrink by this much until a layout fits a width
CROSSING_WORTH = 300.0  # pixels that an edge may lead to the side to save a crossing
EDGE_WEIGHT = 6.0  # how much more a long edge minds a bend than a box minds its place
NARROW_LETTERS = frozenset("iljtfrI.,:;'|!()[]{} \N{NO-BREAK SPACE}-")
WIDE_LETTERS = frozenset("mwMW@%—")


@dataclass(frozen=True)
class BoxLayout:
    """Boxes as (left, top, width, height), and the points that every edge passes, from top to bottom."""

    width: float
    height: float
    boxes: list[tuple[float, float, float, float]]
    routes: list[list[Point]]


def arrange(
    sizes: Sequence[Size], edges: Sequence[Edge], row_gap: float = ROW_GAP, max_width: float = math.inf
) -> BoxLayout:
    """Places for boxes of these sizes, in rows with a gap between them.

    Rows are made shorter until the whole is no wider than `max_width`. Where that cannot be, it is as narrow as was
    found.

    >>> layout = arrange([(40.0, 20.0), (60.0, 20.0)], [(0, 1)])
    >>> layout.boxes
    [(22.0, 12.0, 40.0, 20.0), (12.0, 62.0, 60.0, 20.0)]
    >>> layout.routes
    [[(42.0, 32.0), (42.0, 62.0)]]
    """
    if not sizes:
        return BoxLayout(0.0, 0.0, [], [])
    parts = components(len(sizes), edges)
    if len(parts) == 1:
        return _arranged_within(sizes, edges, row_gap, max_width)
    layouts = []
    for nodes in parts:
        place = {node: k for k, node in enumerate(nodes)}
        inner = [(place[tail], place[head]) for tail, head in edges if tail in place]
        layouts.append(_arranged_within([sizes[i] for i in nodes], inner, row_gap, max_width))
    corners = _packed([(one.width - 2 * MARGIN, one.height - 2 * MARGIN) for one in layouts], row_gap, max_width)
    return _assembled(parts, layouts, corners, edges)


def stretched(layout: BoxLayout, width: float) -> BoxLayout:
    """The layout with its boxes as far apart as the width allows; unchanged, if it is no narrower than that.

    >>> layout = arrange([(40.0, 20.0)] * 3, [(0, 1), (0, 2)])
    >>> stretched(layout, 200.0).boxes
    [(80.0, 12.0, 40.0, 20.0), (12.0, 62.0, 40.0, 20.0), (148.0, 62.0, 40.0, 20.0)]
    """
    middles = np.array([x + w / 2 for x, _, w, _ in layout.boxes] + [x for route in layout.routes for x, _ in route])
    halves = np.array([w / 2 for _, _, w, _ in layout.boxes] + [1.0] * (len(middles) - len(layout.boxes)))
    if layout.width >= width or np.ptp(middles) == 0:
        return layout
    room = width - 2 * MARGIN
    low, high = 1.0, room / float(np.ptp(middles))
    for _ in range(MAX_HALVINGS):
        factor = (low + high) / 2
        extent = (factor * middles + halves).max() - (factor * middles - halves).min()
        low, high = (low, factor) if extent > room else (factor, high)
    shift = MARGIN - float((low * middles - halves).min())

    def moved(x: float) -> float:
        return round(low * x + shift, 1)

    boxes = [(moved(x + w / 2) - w / 2, y, w, h) for x, y, w, h in layout.boxes]
    routes = [[(moved(x), y) for x, y in route] for route in layout.routes]
    return BoxLayout(width, layout.height, boxes, routes)


def with_ports(layout: BoxLayout, edges: Sequence[Edge]) -> BoxLayout:
    """The layout with edges that leave and enter boxes side by side, each on the side where its other end lies.

    >>> layout = arrange([(40.0, 20.0)] * 3, [(0, 2), (1, 2)])
    >>> [(tail[0], head[0]) for tail, head in with_ports(layout, [(0, 2), (1, 2)]).routes]
    [(32.0, 53.0), (88.0, 67.0)]
    """
    routes = [list(route) for route in layout.routes]
    leaving, entering = ([list[int]() for _ in layout.boxes] for _ in range(2))
    for k, (tail, head) in enumerate(edges):
        leaving[tail].append(k)
        entering[head].append(k)
    for (left, _, width, _), out, into in zip(layout.boxes, leaving, entering, strict=True):
        turns = [1 + len(routes[k]) % 2 for k in out]  # an odd number of points begins with a way straight down
        nexts = [layout.routes[k][turn][0] for k, turn in zip(out, turns, strict=True)]
        for k, turn, x in zip(out, turns, _ports(left, width, nexts), strict=True):
            routes[k][:turn] = [(x, y) for _, y in routes[k][:turn]]
        for k, x in zip(into, _ports(left, width, [layout.routes[k][-2][0] for k in into]), strict=True):
            routes[k][-1] = (x, routes[k][-1][1])
    return BoxLayout(layout.width, layout.height, layout.boxes, routes)


def _ports(left: float, width: float, others: Sequence[float]) -> list[float]:
    """Where edges meet the side of a box that come from, or go to, some places: a single one in the middle."""
    middle, count = left + width / 2, len(others)
    if count < 2:
        return [middle] * count
    room = PORT_SHARE * width
    apart = min(PORT, room / (count - 1))
    order = sorted(range(count), key=others.__getitem__)
    wanted = np.clip(LEANING * (np.array(others)[order] - middle), -room / 2, room / 2)
    steps = apart * np.arange(count) - room / 2
    places = np.clip(spread(wanted, np.full(count, apart), np.ones(count)), steps, steps + room - apart * (count - 1))
    ports = np.empty(count)
    ports[order] = middle + places
    return [round(x, 1) for x in ports.tolist()]


def _arranged_within(sizes: Sequence[Size], edges: Sequence[Edge], row_gap: float, max_width: float) -> BoxLayout:
    """Places for boxes that all hang together."""
    layout = _arranged(wrap_rows(sizes, edges, row_gap), sizes, edges, row_gap)
    limit, widest = max_width, max(width for width, _ in sizes)
    while layout.width > max_width and limit > widest:
        limit *= NARROWING
        narrower = _arranged(rows_within(limit, sizes, edges, exchange=True), sizes, edges, row_gap)
        if narrower.width >= layout.width:  # more rows, and so many more edges beside them
            break
        layout = narrower
    return layout


def components(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """The parts of a network that hang together, the largest first.

    >>> components(4, [(1, 3)])
    [[1, 3], [0], [2]]
    """
    above, below = neighbours(count, edges)
    seen, parts = set[int](), list[list[int]]()
    for start in range(count):
        if start in seen:
            continue
        part, waiting = list[int](), [start]
        seen.add(start)
        while waiting:
            node = waiting.pop()
            part.append(node)
            new = {*above[node], *below[node]} - seen
            seen |= new
            waiting += sorted(new)
        parts.append(sorted(part))
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _packed(sizes: Sequence[Size], row_gap: float, max_width: float) -> list[Point]:
    """The corners of parts that do not touch: in lines, or all others below or beside one that is much larger."""
    widest, total = max(width for width, _ in sizes), sum(width + APART for width, _ in sizes)
    (width, height), *others = sizes
    tried = []
    for limit in np.geomspace(total, widest, 16).tolist():
        if width * height < LARGE * max(w * h for w, h in others):
            tried.append(_in_lines(sizes, limit, row_gap))
            continue
        lines = _in_lines(others, limit, row_gap)
        tried.append([(0.0, 0.0), *((x, y + height + row_gap) for x, y in lines)])
        tried.append([(0.0, 0.0), *((x + width + APART, y) for x, y in lines)])
    return min(tried, key=lambda corners: _packing_cost(corners, sizes, max_width))


def _in_lines(sizes: Sequence[Size], limit: float, row_gap: float) -> list[Point]:
    """Corners of boxes side by side, in lines of a width."""
    corners, x, y, height = list[Point](), 0.0, 0.0, 0.0
    for width, own in sizes:
        if x and x + width > limit + 1e-6:
            x, y, height = 0.0, y + height + row_gap, 0.0
        corners.append((x, y))
        x, height = x + width + APART, max(height, own)
    return corners


def _packing_cost(corners: Sequence[Point], sizes: Sequence[Size], max_width: float) -> tuple[float, float]:
    """How much too wide it is, and then the cost of its shape."""
    width = max(x + w for (x, _), (w, _) in zip(corners, sizes, strict=True))
    height = max(y + h for (_, y), (_, h) in zip(corners, sizes, strict=True))
    return max(width + 2 * MARGIN - max_width, 0.0), _shape_cost(width, height)


def _assembled(
    parts: Sequence[Sequence[int]], layouts: Sequence[BoxLayout], corners: Sequence[Point], edges: Sequence[Edge]
) -> BoxLayout:
    """One layout of several, each moved to its corner."""
    moved, routes = dict[int, tuple[float, float, float, float]](), dict[int, list[Point]]()
    for nodes, layout, (right, down) in zip(parts, layouts, corners, strict=True):
        own = set(nodes)
        for i, (x, y, w, h) in zip(nodes, layout.boxes, strict=True):
            moved[i] = (x + right, y + down, w, h)
        inner = [k for k, (tail, _) in enumerate(edges) if tail in own]
        routes |= {k: [(x + right, y + down) for x, y in route] for k, route in zip(inner, layout.routes, strict=True)}
    width = max(x + layout.width for layout, (x, _) in zip(layouts, corners, strict=True))
    height = max(y + layout.height for layout, (_, y) in zip(layouts, corners, strict=True))
    return BoxLayout(width, height, [moved[i] for i in range(len(moved))], [routes[k] for k in range(len(routes))])


def _arranged(rows: Sequence[int], sizes: Sequence[Size], edges: Sequence[Edge], row_gap: float) -> BoxLayout:
    """Places for boxes whose rows are known."""
    layered = Layered.of(rows, sizes, edges)
    orders = [reduce_crossings(layered, by_width) for by_width in (False, True)]
    tried = [(order, x_positions(layered, order)) for order in orders[: 2 if orders[0] != orders[1] else 1]]
    _, x = min(tried, key=lambda one: _effort(layered, *one))
    return _placed(layered, x, sizes, edges, row_gap)


def text_width(text: str, scale: float = 1.0) -> float:
    """About how wide a text is in a sans-serif of 12 pixels; generous, since fonts differ."""
    return scale * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in NARROW_LETTERS:
        return 4.2
    if east_asian_width(letter) in "WF":
        return 12.0
    return 10.4 if letter in WIDE_LETTERS else 7.6 if letter.isupper() else 6.9


def wrap_rows(sizes: Sequence[Size], edges: Sequence[Edge], row_gap: float = ROW_GAP) -> list[int]:
    """The row of every box, in rows of such a width that the whole has a shape like a window's."""
    widest = max(width for width, _ in sizes)
    total = sum(width + GAP for width, _ in sizes)
    limits = np.geomspace(max(total, widest), widest, 32)
    if len(sizes) > SMALL:
        best = min(limits.tolist(), key=lambda limit: _layout_cost(rows_within(limit, sizes, edges), sizes, row_gap))
        return rows_within(best, sizes, edges, exchange=True)
    tried = [rows_within(limit, sizes, edges, exchange=True) for limit in limits.tolist()]
    return min(tried, key=lambda rows: _layout_cost(rows, sizes, row_gap) * _bends(rows, edges))


def _bends(rows: Sequence[int], edges: Sequence[Edge]) -> float:
    """A factor for layouts whose edges pass many rows."""
    passed = sum(rows[head] - rows[tail] - 1 for tail, head in edges)
    return 1 + PASSING * passed / max(len(edges), 1)


def _layout_cost(rows: Sequence[int], sizes: Sequence[Size], row_gap: float) -> float:
    """How far one must zoom out to see everything; of those that are alike, the smaller one, but no tower."""
    widths, heights = np.zeros(max(rows) + 1), np.zeros(max(rows) + 1)
    for row, (width, height) in zip(rows, sizes, strict=True):
        widths[row] += width + GAP
        heights[row] = max(heights[row], height + row_gap)
    return _shape_cost(float(widths.max()), float(heights.sum()))


def _shape_cost(width: float, height: float) -> float:
    width = max(width, MIN_ASPECT * height) / ASPECT
    return max(width, height) + 0.1 * (width + height)


def rows_within(limit: float, sizes: Sequence[Size], edges: Sequence[Edge], exchange: bool = False) -> list[int]:
    """Rows no wider than `limit`, parents above children: filled from the top, then boxes move nearer to each other.

    With `exchange`, which takes longer, also where a box of a full row has to make room.
    """
    parents, children = neighbours(len(sizes), edges)
    depth = [0] * len(sizes)  # the longest way down
    for i in reversed(range(len(sizes))):
        depth[i] = max((depth[c] + 1 for c in children[i]), default=0)
    order = sorted(range(len(sizes)), key=lambda i: (-depth[i], i))
    rows, used = _filled(limit, sizes, order, parents, children)
    _shorten_edges(rows, used, limit, sizes, parents, children)
    if exchange:
        _Exchange(rows, used, limit, sizes, parents, children).run()
        _shorten_edges(rows, used, limit, sizes, parents, children)
    number = {row: k for k, row in enumerate(sorted(set(rows)))}
    return [number[row] for row in rows]


def _filled(
    limit: float, sizes: Sequence[Size], order: Sequence[int], parents: Neighbours, children: Neighbours
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


def _shorten_edges(
    rows: list[int], used: list[float], limit: float, sizes: Sequence[Size], parents: Neighbours, children: Neighbours
) -> None:
    """Move boxes to rows with room where their edges are shorter, until nothing moves."""
    for _ in range(MAX_MOVES):
        moved = False
        for i in range(len(rows)):
            low = max((rows[p] + 1 for p in parents[i]), default=0)
            high = min((rows[c] - 1 for c in children[i]), default=len(used) - 1)
            near = sorted(rows[j] for j in (*parents[i], *children[i]))
            width = sizes[i][0] + GAP
            best = _best_row(rows[i], near, range(low, high + 1), used, limit - width) if near else rows[i]
            if best != rows[i]:
                used[rows[i]] -= width
                used[best] += width
                rows[i], moved = best, True
        if not moved:
            return


def _best_row(now: int, near: Sequence[int], allowed: range, used: Sequence[float], room: float) -> int:
    """The row with room where the edges of a box are shortest: between its middle neighbours, or as near as may be."""
    low, high = (min(max(near[k], allowed[0]), allowed[-1]) for k in ((len(near) - 1) // 2, len(near) // 2))
    if low <= now <= high:
        return now
    runs = (range(low, high + 1), range(low - 1, allowed[0] - 1, -1), range(high + 1, allowed[-1] + 1))
    between, *beyond = (next((r for r in run if r == now or used[r] <= room), None) for run in runs)
    if between is not None:
        return between
    return min((r for r in beyond if r is not None), key=lambda r: (sum(abs(r - other) for other in near), r != now))


class _Exchange:
    """Boxes that change places with boxes of other rows, as long as edges become shorter."""

    def __init__(
        self,
        rows: list[int],
        used: list[float],
        limit: float,
        sizes: Sequence[Size],
        parents: Neighbours,
        children: Neighbours,
    ) -> None:
        self.rows, self.used, self.limit = rows, used, limit + GAP  # there is none after the last box
        self.width = [width + GAP for width, _ in sizes]
        self.parents, self.children = parents, children
        self.members: list[set[int]] = [set() for _ in used]
        for i, row in enumerate(rows):
            self.members[row].add(i)
        self.left = MAX_EXCHANGES

    def run(self) -> None:
        """Exchange boxes until nothing is gained, or too much has been tried."""
        gained = True
        while gained and self.left > 0:
            gained = False
            for i in range(len(self.rows)):
                gained |= self._improve(i)

    def _improve(self, i: int) -> bool:
        """Put a box where its edges are shorter, if the one that makes room does not lose as much."""
        here, now = self.rows[i], self._cost(i, self.rows[i])
        best, least = None, -1e-9
        if now == len(self.parents[i]) + len(self.children[i]):  # all of them in the next rows
            return False
        tried = self._allowed(i)
        self.left -= len(tried)
        for there in tried if self.left > 0 else ():
            gain = self._cost(i, there) - now
            if there == here or gain >= least:
                continue
            for j in sorted(self.members[there]):
                room = self.used[there] - self.width[j] + self.width[i] <= self.limit
                if not room or j in self.parents[i] or j in self.children[i]:
                    continue
                rows = self._allowed(j)
                self.left -= len(rows)
                for target in rows:
                    change = gain + self._cost(j, target) - self._cost(j, there)
                    if target != there and change < least and self._fits(i, j, target):
                        best, least = (there, j, target), change
        if best is None:
            return False
        there, j, target = best
        self._move(j, target)
        self._move(i, there)
        return True

    def _fits(self, i: int, j: int, target: int) -> bool:
        """Whether a row has room for `j`, once `i` has left."""
        leaving = self.width[i] if target == self.rows[i] else 0.0
        return self.used[target] - leaving + self.width[j] <= self.limit

    def _allowed(self, i: int) -> range:
        low = max((self.rows[p] + 1 for p in self.parents[i]), default=0)
        return range(low, min((self.rows[c] for c in self.children[i]), default=len(self.used)))

    def _cost(self, i: int, row: int) -> float:
        return sum(math.pow(abs(row - self.rows[j]), LENGTH_POWER) for j in (*self.parents[i], *self.children[i]))

    def _move(self, i: int, row: int) -> None:
        self.members[self.rows[i]].remove(i)
        self.members[row].add(i)
        self.used[self.rows[i]] -= self.width[i]
        self.used[row] += self.width[i]
        self.rows[i] = row


def neighbours(count: int, edges: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    """What lies above and below every node."""
    above, below = ([list[int]() for _ in range(count)] for _ in range(2))
    for tail, head in edges:
        above[head].append(tail)
        below[tail].append(head)
    return above, below


@dataclass(frozen=True)
class Layered:
    """Boxes, and the points where long edges pass a row, side by side with those of the same parent."""

    layers: list[list[int]]  # nodes by row
    row: list[int]
    width: Floats
    room: Floats  # the width, and the gap to the neighbours
    above: list[list[int]]
    below: list[list[int]]
    waypoints: dict[int, list[int]]  # by parent: its points in the rows below it, as far as they are needed
    boxes: int

    @classmethod
    def of(cls, rows: Sequence[int], sizes: Sequence[Size], edges: Sequence[Edge]) -> Layered:
        """Add the points that long edges pass."""
        row, links = list(rows), set[Edge]()
        waypoints: dict[int, list[int]] = {tail: [] for tail, _ in edges}
        for tail, head in edges:
            length = rows[head] - rows[tail] - 1
            while len(waypoints[tail]) < length:
                waypoints[tail].append(len(row))
                row.append(rows[tail] + len(waypoints[tail]))
            links.update(pairwise([tail, *waypoints[tail][:length], head]))
        layers: list[list[int]] = [[] for _ in range(max(row) + 1)]
        for i, r in enumerate(row):
            layers[r].append(i)
        points = len(row) - len(sizes)
        long = Counter(tail for tail, head in edges if rows[head] - rows[tail] > 1)
        lanes = {point: _lane(long[tail]) * (long[tail] - 1) for tail, own in waypoints.items() for point in own}
        width = np.array([w for w, _ in sizes] + [2.0 + lanes[i] for i in range(len(sizes), len(row))])
        room = width + np.repeat([GAP, CHANNEL], [len(sizes), points])
        return cls(layers, row, width, room, *neighbours(len(row), sorted(links)), waypoints, len(sizes))

    @cached_property
    def links(self) -> tuple[Indices, Indices]:
        """The upper and the lower end of everything that is drawn from one row to the next."""
        ends = [(i, j) for i, below in enumerate(self.below) for j in below]
        upper, lower = np.array(ends, dtype=np.intp).reshape(-1, 2).T
        return upper, lower


def reduce_crossings(net: Layered, by_width: bool = False) -> list[list[int]]:
    """An order of every row with few crossings: rows follow the middle of their neighbours, downwards and upwards.

    Where a node is in its row is told by its number; `by_width`, by how wide those before it are, so that edges keep to
    their side. Neither is better for all networks.
    """
    layers, x = [list(layer) for layer in net.layers], np.zeros(len(net.row))
    for layer in layers:
        x[layer] = _side_by_side(net, layer, by_width)
    best, least = net.layers, _effort(net, layers, x) if by_width else _crossings(layers, net)
    for sweep in range(MAX_SWEEPS):
        if not least:
            break
        downwards = sweep % 2 == 0
        fixed = net.above if downwards else net.below
        for layer in layers if downwards else reversed(layers):
            middles = dict(zip(layer, _means(x, [fixed[i] or [i] for i in layer]).tolist(), strict=True))
            layer.sort(key=middles.__getitem__)
            x[layer] = _side_by_side(net, layer, by_width)
        effort = _effort(net, layers, x) if by_width else _crossings(layers, net)
        if effort < least:
            best, least = [list(layer) for layer in layers], effort
    return best


def _side_by_side(net: Layered, layer: Sequence[int], by_width: bool) -> Floats:
    """Places of the nodes of a row that follow each other without a gap."""
    if not by_width:
        return (np.arange(len(layer)) + 0.5) / len(layer)
    room = net.room[layer]
    return np.asarray(np.cumsum(room) - room / 2 - room.sum() / 2)


def _effort(net: Layered, layers: Sequence[Sequence[int]], x: Floats) -> float:
    """How hard it is to follow the edges: crossings, and how far edges lead to the side."""
    tails, heads = net.links
    return _crossings(layers, net) + float(np.abs(x[heads] - x[tails]).sum()) / CROSSING_WORTH


def _crossings(layers: Sequence[Sequence[int]], net: Layered) -> int:
    position = {i: k for layer in layers for k, i in enumerate(layer)}
    total = 0
    for layer in layers[:-1]:
        ends = np.array([position[j] for i in layer for j in sorted(net.below[i], key=position.__getitem__)])
        total += int(np.sum(np.triu(ends[:, None] > ends[None, :], 1)))
    return total


def x_positions(net: Layered, layers: Sequence[Sequence[int]]) -> Floats:
    """The middle of every node, from left to right: near its neighbours, and apart from those beside it."""
    x = np.zeros(len(net.row))
    half = max(float(net.room[layer].sum()) for layer in layers) / 2
    along = {point: points for points in net.waypoints.values() for point in points}
    near = [along.get(i, []) + net.above[i] + net.below[i] or [i] for i in range(len(x))]
    weights = np.repeat([1.0, EDGE_WEIGHT], [net.boxes, len(x) - net.boxes])
    for layer in layers:
        x[layer] = _side_by_side(net, layer, by_width=True)
    before = [x.copy(), x.copy()]
    for sweep in range(MAX_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            middles, room = _means(x, [near[i] for i in layer]), net.room[layer]
            left = np.cumsum(room) - room / 2  # what sticks out of the widest row is pushed back
            x[layer] = np.clip(spread(middles, room, weights[layer]), left - half, left - room.sum() + half)
        if sweep and all(np.array_equal(x, earlier) for earlier in before):  # neither way moves anything
            break
        before = [before[1], x.copy()]
    _straighten(x, net, layers, half)
    return x


def _means(x: Floats, places: Neighbours) -> Floats:
    """The mean of the numbers at each list of places, of which none is empty."""
    counts = np.array([len(some) for some in places])
    starts = np.cumsum(counts) - counts
    return np.asarray(np.add.reduceat(x[[place for some in places for place in some]], starts) / counts)


def _straighten(x: Floats, net: Layered, layers: Sequence[Sequence[int]], half: float) -> None:
    """Let each long edge go straight down as far as the nodes beside it allow, then turn, then straight down again."""
    place = {i: k for layer in layers for k, i in enumerate(layer)}
    for points in net.waypoints.values():
        straight: list[int] = []
        low, high = -half, half
        for point in points:
            layer, k = layers[net.row[point]], place[point]
            left = x[layer[k - 1]] + net.room[layer[k - 1 : k + 1]].sum() / 2 if k else -half
            right = x[layer[k + 1]] - net.room[layer[k : k + 2]].sum() / 2 if k + 1 < len(layer) else half
            if straight and max(low, left) > min(high, right):
                x[straight] = np.clip(np.median(x[straight]), low, high)
                straight, low, high = [], -half, half
            straight.append(point)
            low, high = max(low, left), min(high, right)
        if straight:
            x[straight] = np.clip(np.median(x[straight]), low, high)


def _placed(net: Layered, x: Floats, sizes: Sequence[Size], edges: Sequence[Edge], row_gap: float) -> BoxLayout:
    heights = np.zeros(len(net.layers))
    for i, (_, height) in enumerate(sizes):
        heights[net.row[i]] = max(heights[net.row[i]], height)
    tops, asides = MARGIN + np.concatenate([[0.0], np.cumsum(heights[:-1] + row_gap)]), _asides(net, x, edges)
    x = np.round(x - float((x - net.width / 2).min()) + MARGIN, 1)
    boxes = [(float(x[i]) - w / 2, float(tops[net.row[i]]), w, h) for i, (w, h) in enumerate(sizes)]
    routes = []
    for (tail, head), aside in zip(edges, asides, strict=True):
        points = [(float(x[tail]), boxes[tail][1] + boxes[tail][3])]
        below = float(tops[net.row[tail]] + heights[net.row[tail]])
        if points[0][1] < below:  # straight down between higher boxes
            points.append((float(x[tail]), below))
        for r in range(net.row[tail] + 1, net.row[head]):
            at = round(float(x[net.waypoints[tail][r - net.row[tail] - 1]]) + aside, 1)
            points += [(at, float(tops[r])), (at, float(tops[r] + heights[r]))]
        routes.append([*points, (float(x[head]), boxes[head][1])])
    width = float(np.round((x + net.width / 2).max() + MARGIN, 1))
    return BoxLayout(width, float(tops[-1] + heights[-1] + MARGIN), boxes, routes)


def _asides(net: Layered, x: Floats, edges: Sequence[Edge]) -> list[float]:
    """How far each long edge is from the middle of its parent's: those that turn off first are the outer ones."""
    asides, long = [0.0] * len(edges), dict[int, list[tuple[bool, int, float, int]]]()
    for k, (tail, head) in enumerate(edges):
        if passed := net.row[head] - net.row[tail] - 1:
            right = bool(x[head] > x[net.waypoints[tail][passed - 1]])
            long.setdefault(tail, []).append((right, -passed if right else passed, float(x[head]), k))
    for own in long.values():
        for place, (*_, k) in enumerate(sorted(own)):
            asides[k] = _lane(len(own)) * (place - (len(own) - 1) / 2)
    return asides


def _lane(count: int) -> float:
    """How far so many long edges of one parent are from each other."""
    return min(LANE, MAX_LANE / max(count - 1, 1))


def spread(x: Floats, widths: Floats, weights: Floats) -> Floats:
    """The places nearest to `x` for nodes side by side, from left to right; `weights` say how much each one minds.

    >>> spread(np.array([0.0, 0.0]), np.array([10.0, 20.0]), np.ones(2)).tolist()
    [-7.5, 7.5]
    """
    needed = np.concatenate([[0.0], np.cumsum((widths[:-1] + widths[1:]) / 2)])
    return np.asarray(isotonic(x - needed, weights) + needed)


def isotonic(x: Floats, weights: Floats) -> Floats:
    """Isotonic regression, the non-decreasing numbers nearest to `x`: neighbours that go down are pooled to their mean.

    SciPy has this, too, but takes long to load, and networks are shown where nothing else needs it.

    >>> isotonic(np.array([1.0, 5.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0, 1.0])).tolist()
    [1.0, 4.0, 4.0, 9.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for mean, weight in zip(x.tolist(), weights.tolist(), strict=True):
        count = 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, count = heavy + weight, many + count
        pools.append((mean, weight, count))
    return np.repeat(np.array([mean for mean, _, _ in pools]), [count for _, _, count in pools])
