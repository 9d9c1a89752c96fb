"""The jointree view of a plan (paper, appendix C)."""

from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, examples
from tacit.compiler.jointree import jointree
from tacit.compiler.order.tree import Problem
from tacit.compiler.prune import prune
from tacit.compiler.question import Question
from tests.helpers import always_hard, tries
from tests.strategies import evidence, networks


def is_a_tree(tree):
    reached, stack = {0}, [0]
    while stack:
        for neighbour in tree.neighbours(stack.pop()):
            if neighbour not in reached:
                reached.add(neighbour)
                stack.append(neighbour)
    return len(reached) == len(tree.clusters) == len(tree.edges) + 1


def has_running_intersection(tree):
    """The clusters of every variable are connected: as many edges between them as clusters, less one."""
    for name in frozenset().union(*tree.clusters):
        clusters = sum(name in c for c in tree.clusters)
        edges = sum(name in tree.separator(e) for e in tree.edges)
        if edges != clusters - 1:
            return False
    return True


@tries(120)
@given(net=networks(max_nodes=8, factored=False), data=st.data())
def test_plans_are_binary_jointrees_that_cover_every_family(net, data):
    columns = data.draw(evidence(net))
    query = data.draw(st.sampled_from(net.variables))
    hard = [n for n in always_hard(net, columns) if n != query] if data.draw(st.booleans()) else []
    soft = [n for n in columns if n not in hard]
    order = data.draw(st.none() | st.permutations(net.variables))
    tac = tacit.compile(net, query, soft, hard, order=order)
    tree = tac.jointree()
    assert is_a_tree(tree)
    assert has_running_intersection(tree)
    assert all(len(tree.neighbours(i)) <= 3 for i in range(len(tree.clusters)))
    if order is None and tac.program.selections:
        return  # marginals of the selection phase may stand for the families they cover
    states = prune(net, Question((query,), (*soft, *hard), tuple(hard))).states
    clusters = [{name.rstrip("'") for name in c} for c in tree.clusters]
    for name in states:
        family = {n for n in (*net.parents(name), name) if len(states[n]) > 1 and n not in hard}
        assert any({n.rstrip("'") for n in family} <= c for c in clusters)


def test_the_width_of_a_chain_is_one():
    net = Network()
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, 30):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    tac = tacit.compile(net, "X29", list(net))
    assert tac.jointree().width == tac.cost().width == 1


def test_disconnected_parts_are_joined_by_empty_separators():
    net = Network()
    for name in "AB":
        net.add(name, cpt=[0.5, 0.5])
    tree = tacit.compile(net, "A", ["B"], order=["B", "A"]).jointree()
    assert is_a_tree(tree)
    assert frozenset() in {tree.separator(e) for e in tree.edges}


def test_drawing_names_clusters_and_separators():
    net = examples.abc(testing=False)
    dot = tacit.compile(net, "B", ["A", "C"]).jointree().to_dot()
    assert dot.startswith("graph jointree {")
    assert 'label="A B"' in dot
    assert " -- " in dot
    assert dot.count("{") == dot.count("}")


def test_the_jointree_of_a_plan_by_hand():
    p = Problem([0b011, 0b110, 0b100], [False] * 3, ["A", "B", "C"], [2, 2, 2], keep=0b001)
    tree = jointree(p, [(1, 2), (0, 3)])
    assert tree.clusters == tuple(map(frozenset, ("AB", "BC", "C", "BC", "AB")))
    assert tree.edges == ((1, 3), (2, 3), (0, 4), (3, 4))
    assert tree.width == 1
    assert tree.separator((3, 4)) == {"B"}
    assert [tree.neighbours(i) for i in range(5)] == [[4], [3], [3], [1, 2, 4], [0, 3]]


def test_observed_axes_are_in_no_cluster():
    p = Problem([0b011, 0b110], [False, False], ["A", "B", "H"], [2, 2, 2], keep=0b001, hard=0b100)
    assert jointree(p, [(0, 1)]).clusters == tuple(map(frozenset, ("AB", "B", "AB")))


def test_an_empty_cluster_is_drawn_as_one():
    p = Problem([0b1, 0b0], [False, False], ["A"], [2], keep=0b1)
    assert jointree(p, [(0, 1)]).to_dot().splitlines()[2:-1] == [
        '  0 [label="A"];',
        '  1 [label="1"];',
        '  2 [label="A"];',
        '  0 -- 2 [label="A"];',
        '  1 -- 2 [label=""];',
    ]
