"""Which rows boxes are in, and where the parts of a network go that do not hang together."""

from itertools import pairwise

import numpy as np
import pytest
from bench.networks import network

from tacit.views.layout import arrange, with_ports

BOX = (200.0, 80.0)


def test_leaves_are_near_their_parents():
    """In alarm on a narrow column, HISTORY was four rows below its only parent."""
    net = network("alarm")
    number = {name: i for i, name in enumerate(net.variables)}
    edges = [(number[parent], number[name]) for parent, name in net.edges]
    layout = arrange([(9.0 * len(name) + 20, 28.0) for name in net.variables], edges, 42.0, 480.0)
    rows = {y: k for k, y in enumerate(sorted({y for _, y, _, _ in layout.boxes}))}
    passed = [rows[layout.boxes[head][1]] - rows[layout.boxes[tail][1]] - 1 for tail, head in edges]
    assert passed[edges.index((number["LVFAILURE"], number["HISTORY"]))] <= 1
    assert sum(passed) <= 40  # of 46 edges; it was twice as much
    assert layout.width <= 480


def test_boxes_without_edges_stand_below_or_beside_the_others():
    chain = [(1, 3), (3, 5), (1, 6), (6, 7)]
    for width in (2000.0, 700.0):
        boxes = arrange([BOX] * 8, chain, max_width=width).boxes
        tied = [boxes[i] for i in (1, 3, 5, 6, 7)]
        right, bottom = max(x + w for x, _, w, _ in tied), max(y + h for _, y, _, h in tied)
        assert all(boxes[i][0] >= right or boxes[i][1] >= bottom for i in (0, 2, 4))


def test_parts_of_one_size_fill_a_page():
    edges = [(2 * i, 2 * i + 1) for i in range(12)]
    layout = arrange([BOX] * 24, edges)
    assert 0.6 < layout.width / layout.height < 2
    for (tail, head), route in zip(edges, layout.routes, strict=True):
        (x, y, w, h), (u, v, k, _) = layout.boxes[tail], layout.boxes[head]
        assert (route[0], route[-1]) == ((x + w / 2, y + h), (u + k / 2, v))
        assert all(below[1] >= above[1] for above, below in pairwise(route))


def test_edges_of_a_box_start_and_end_side_by_side_and_lean_to_their_other_end():
    edges = [(0, 3), (1, 3), (2, 3), (3, 4)]
    layout = arrange([BOX] * 5, edges)
    routes = with_ports(layout, edges).routes
    middles = [x + w / 2 for x, _, w, _ in layout.boxes]
    ends = sorted((middles[tail], route[-1][0]) for (tail, head), route in zip(edges, routes, strict=True) if head == 3)
    places = [x for _, x in ends]
    assert min(after - before for before, after in pairwise(places)) >= 13
    assert places[1] == middles[3]  # from straight above
    assert all(abs(x - middles[3]) <= 60 for x in places)
    assert [routes[3][0][0], routes[3][-1][0]] == [middles[3], middles[4]]  # a single one is in the middle
    crowd = [(i, 30) for i in range(30)]
    narrow = arrange([(40.0, 20.0)] * 31, crowd)
    found = [route[-1][0] for route in with_ports(narrow, crowd).routes]
    left, _, width, _ = narrow.boxes[30]
    assert left + 7.9 <= min(found) < max(found) <= left + width - 7.9
    assert len(set(found)) == 30


def test_long_edges_of_one_parent_run_side_by_side_and_do_not_cross():
    """On one line, they seemed to be one edge that forks."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (0, 3), (0, 4)]
    layout = arrange([BOX] * 5, edges, max_width=320.0)
    long = with_ports(layout, edges).routes[4:]
    assert [len(route) for route in long] == [4, 6, 8]
    lanes = [route[1][0] for route in long]
    away = [abs(x - 112) for x in lanes]
    assert np.diff(away) == pytest.approx([5, 5]) or np.diff(away) == pytest.approx([-5, -5])
    ends = [route[-1][0] for route in long]
    side = np.sign(lanes[0] - ends[0])
    assert list(np.argsort(lanes)) == ([0, 1, 2] if side > 0 else [2, 1, 0])  # the first to turn off is the inner one
    for route in long:
        assert len({x for x, _ in route[1:-1]}) == 1
