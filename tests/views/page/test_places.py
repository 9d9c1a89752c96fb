"""Where the boxes of the page go: nothing overlaps, edges lead down between boxes, the whole has a fair shape."""

from functools import cache
from itertools import combinations, pairwise
from time import process_time

import numpy as np
import pytest
from bench.networks import network
from hypothesis import given
from hypothesis import strategies as st

from tacit import Network, examples
from tacit.views.layout import GAP, ROW_GAP, isotonic, rows_within, spread, wrap_rows
from tacit.views.page.places import MEASURES, places, size

NETWORKS = {
    "abc": examples.abc,
    "chain": examples.chain,
    "layer": lambda: examples.layer(6),
    **{name: lambda name=name: network(name) for name in ("asia", "alarm", "win95pts", "andes")},
}


@cache
def placed(name):
    return placed_network(NETWORKS[name]())


def placed_network(net):
    states = [[str(state) for state in net.states(name)] for name in net.variables]
    return net, places(net, net.variables, states)


def apart(one, other):
    (x, y, w, h), (u, v, k, m) = one, other
    return x + w <= u or u + k <= x or y + h <= v or v + m <= y


@pytest.mark.parametrize("name", NETWORKS)
def test_boxes_do_not_overlap_and_lie_inside(name):
    _, found = placed(name)
    assert all(apart(one, other) for one, other in combinations(found["boxes"], 2))
    assert all(
        x >= 0 and y >= 0 and x + w <= found["width"] and y + h <= found["height"] for x, y, w, h in found["boxes"]
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_parents_are_above_and_every_edge_is_drawn(name):
    net, found = placed(name)
    numbers = {own: i for i, own in enumerate(net.variables)}
    wanted = {(numbers[parent], numbers[own]) for own in net for parent in net.parents(own)}
    assert {(edge["from"], edge["to"]) for edge in found["edges"]} == wanted
    for edge in found["edges"]:
        (x, y, w, h), (u, v, k, _) = found["boxes"][edge["from"]], found["boxes"][edge["to"]]
        (start, top), (end, bottom) = edge["points"][0], edge["points"][-1]
        assert (top, bottom) == pytest.approx((y + h, v), abs=0.11)
        assert abs(start - x - w / 2) <= 0.3 * w + 0.11
        assert abs(end - u - k / 2) <= 0.3 * k + 0.11
        assert all(below[1] >= above[1] for above, below in pairwise(edge["points"]))


@pytest.mark.parametrize("name", ["asia", "alarm", "win95pts", "andes"])
def test_long_edges_pass_between_the_boxes(name):
    _, found = placed(name)
    for edge in found["edges"]:
        for x, y in edge["points"][1:-1]:
            assert not any(bx < x < bx + w and by < y < by + h for bx, by, w, h in found["boxes"])
        straight = [(one, other) for one, other in pairwise(edge["points"]) if one[0] == other[0]]
        assert len(straight) >= (len(edge["points"]) - 2) // 2  # through rows they go straight down


@pytest.mark.parametrize("name", ["alarm", "win95pts", "andes"])
def test_wide_rows_are_wrapped(name):
    _, found = placed(name)
    assert 0.6 < found["width"] / found["height"] < 2


def test_more_tests_make_higher_boxes_up_to_a_limit():
    plain = size("B", ["yes", "no"], [])[1]
    assert size("B", ["yes", "no"], ["A=yes", "A=no"])[1] == plain + 4 + 2 * MEASURES["gauge"]
    net = examples.layer(4)
    _, found = placed_network(net)
    assert found["boxes"][2][3] == plain + 4 + 4 * MEASURES["gauge"]  # T1: two parents, four tests
    wide = Network()
    wide.add("A", states=5)
    wide.add("B", parents=["A"], testing=True)
    assert placed_network(wide)[1]["boxes"][1][3] == plain + 4 + MEASURES["gauge"]


def test_long_names_are_bounded():
    assert size("n" * 500, ["s" * 500, "t"], [])[0] == 280


def test_networks_without_edges_and_without_nodes():
    net = Network()
    assert placed_network(net)[1]["boxes"] == []
    for name in "abcdefgh":
        net.add(name)
    _, found = placed_network(net)
    assert found["edges"] == []
    assert all(apart(one, other) for one, other in combinations(found["boxes"], 2))
    assert len({y for _, y, _, _ in found["boxes"]}) > 1


def test_the_same_network_is_always_placed_alike():
    assert places(*_arguments(network("alarm"))) == placed("alarm")[1]


def _arguments(net):
    return net, net.variables, [[str(state) for state in net.states(name)] for name in net.variables]


numbers = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 10)), min_size=1, max_size=12)


@given(numbers)
def test_increasing_numbers_are_the_nearest(drawn):
    from scipy.optimize import isotonic_regression

    x, weights = np.array(drawn).T
    np.testing.assert_allclose(isotonic(x, weights), isotonic_regression(x, weights=weights).x, atol=1e-9)


@given(numbers)
def test_spread_nodes_keep_their_order_and_distance(drawn):
    x, widths = np.array(drawn).T
    found = spread(x, widths, np.ones(len(x)))
    assert (np.diff(found) >= (widths[:-1] + widths[1:]) / 2 - 1e-9).all()


def test_rows_leave_room_for_arrows():
    _, found = placed("abc")
    (_, y, _, h), below = found["boxes"][0], found["boxes"][1]
    assert below[1] - (y + h) == ROW_GAP


def test_the_rows_of_a_long_chain_take_time_in_proportion():
    """Every one of the 32 widths that are tried once took seconds."""
    count = 2000
    edges = list(pairwise(range(count)))
    started = process_time()
    assert wrap_rows([(140.0, 60.0)] * count, edges) == list(range(count))
    assert process_time() - started < 5


@given(st.data())
def test_rows_keep_to_their_width_and_parents_lie_above(data):
    widths = data.draw(st.lists(st.integers(20, 280), min_size=1, max_size=12))
    pairs = [(i, j) for j in range(len(widths)) for i in range(j)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    limit = data.draw(st.integers(max(widths), 900))
    found = rows_within(float(limit), [(float(width), 60.0) for width in widths], edges)
    assert all(found[tail] < found[head] for tail, head in edges)
    assert sorted(set(found)) == list(range(max(found) + 1))
    for row in set(found):
        here = [width for width, own in zip(widths, found, strict=True) if own == row]
        assert sum(here) + GAP * (len(here) - 1) <= limit
