"""Which rows boxes are in, and where the parts of a network go that do not hang together."""

from itertools import pairwise

from bench.networks import network

from tacit.views.layout import arrange

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
