"""Where a test helps, and where none does."""

import numpy as np
import pytest
from paper.knowledge import evidence, fresh_rows, problem_of, sample_rows, score

import tacit
from tacit import CPT, Network, TacitError
from tacit.learn import place_tests
from tacit.learn.options import PlaceOptions
from tacit.learn.placing.placement import BLIND, CONSTANT, HELPS, IRRELEVANT, LEARN_TABLE, NOT_CLEAR, NOT_TRIED
from tacit.learn.placing.refitting import Learner, PlacingTask, collapsed, read_rows
from tacit.learn.progress_line import Line
from tests.helpers import close

QUICK = {"steps": 30, "restarts": 2, "validation": 3, "progress": False}


def labels(rng, p):
    return np.where(rng.random(len(p)) < p, "true", "false")


def middling(x):
    """Likely where evidence is neither strong nor weak: no table says so, two that a test chooses from do."""
    return 0.1 + 0.8 * (np.abs(x - 0.5) < 0.2)


def around(seed=0, count=500):
    """A hidden cause with two effects: evidence on one of them, the other to be predicted; and something else."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("cause")
    net.add("seen", ["cause"], cpt=[[0.9, 0.1], [0.1, 0.9]])
    net.add("asked", ["cause"])
    net.add("other", ["seen"], cpt=[[0.6, 0.4], [0.3, 0.7]])
    x = rng.random(count)
    return net, {"seen": x}, labels(rng, middling(x))


def test_what_a_test_sees_decides_whether_it_can_help():
    net, rows, y = around()
    ancestral = place_tests(net, "asked", rows, y, **QUICK)
    assert {place.node: place.verdict for place in ancestral.table} == {"seen": BLIND, "asked": BLIND}
    assert ancestral.best is None
    assert ancestral.network.testing_nodes == ()
    assert "No test helps: no test would see" in str(ancestral)

    general = place_tests(net, "asked", rows, y, selection="general", **QUICK)
    assert general.best == general.table[0]
    assert (general.best.node, general.best.parents, general.best.sees) == ("asked", ("cause",), ("seen",))
    assert general.best.verdict == HELPS
    assert general.best.difference == pytest.approx(general.best.without - general.best.loss)
    assert general.best.difference > 5 * general.best.error
    assert general.network.selection == "general"
    assert general.network.testing_nodes == ("asked",)
    p = general.network.posterior("asked", rows)[:, 0]
    assert -np.log(np.where(y == "true", p, 1 - p)).mean() < general.without - 0.1
    assert net.testing_nodes == ()  # the user's network stays as it is


def random_network(seed):
    """Six variables, of which half the tables are to be learned, and rows sampled from it."""
    rng = np.random.default_rng(seed)
    truth = Network()
    for i in range(6):
        parents = [f"X{j}" for j in sorted(rng.choice(i, min(i, 2), replace=False))]
        cards = [len(truth.states(parent)) for parent in parents]
        truth.add(
            f"X{i}", parents, 2 + i % 2, 0.02 + rng.dirichlet(np.full(2 + i % 2, 0.6), cards) * (0.96 - i % 2 * 0.02)
        )
    unset = {name: CPT(np.full(truth.table(name).shape, np.nan)) for name in rng.permutation(truth.variables)[:3]}
    drawn = truth.sample(500, seed)
    return truth.with_cpts(unset), {name: drawn[name] for name in ("X1", "X3", "X5")}, drawn["X4"]


@pytest.mark.parametrize(
    ("seed", "selection"),
    [
        (1, "general"),
        pytest.param(0, "ancestral", marks=pytest.mark.slow),
        *(pytest.param(s, v, marks=pytest.mark.slow) for s in range(2, 12) for v in ("ancestral", "general")),
    ],
)
def test_no_test_helps_a_right_model(seed, selection):
    net, rows, y = random_network(seed)
    found = place_tests(net, "X4", rows, y, selection=selection, budget=3, seed=seed, **QUICK)
    assert any(place.verdict == NOT_CLEAR for place in found.table)  # some were refitted
    assert not any(place.helps for place in found.table)
    assert found.best is None
    assert found.network.testing_nodes == ()
    assert found.loss == found.without
    found.network.require_numbers()


@pytest.mark.slow
def test_a_missing_edge_of_alarm_calls_for_a_test_on_its_way():
    problem = problem_of("missing-edge")
    net, rows = problem.learned["edge missing"], sample_rows(problem, 1000, (1, 0))
    y = np.array(net.states("BP"), dtype=object)[rows.labels]
    found = place_tests(net, "BP", evidence(problem, rows.findings), y, budget=2, progress=False)
    assert {place.node for place in found.table if place.helps} == {"BP", "CO"}
    p = found.network.posterior("BP", evidence(problem, fresh_rows("missing-edge").findings))
    assert score(p, fresh_rows("missing-edge").labels).log_loss < 0.78  # 0.809 without the test: docs/knowledge.md


def test_a_wrong_table_needs_no_test():
    rng = np.random.default_rng(0)
    truth = Network()
    truth.add("A", cpt=[0.5, 0.5])
    truth.add("B", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    truth.add("Q", ["B"], cpt=[[0.8, 0.2], [0.1, 0.9]])
    wrong = truth.with_cpts({"B": [[0.3, 0.7], [0.5, 0.5]]})
    drawn = truth.sample(800)
    drawn["A"] = np.where(rng.random(800) < 0.2, None, drawn["A"])
    rows = {"A": drawn["A"]}
    found = place_tests(wrong, "Q", rows, drawn["Q"], nodes=["B"], **QUICK)
    assert [place.verdict for place in found.table] == [LEARN_TABLE]
    assert "To learn the table of B (0." in found.summary
    assert found.network == wrong  # nothing was left to learn
    # a test below makes up for the wrong table in part, and is told that to learn the table does, too
    found = place_tests(wrong, "Q", rows, drawn["Q"], **QUICK)
    assert [place.verdict for place in found.table] == [HELPS, LEARN_TABLE]
    assert "To learn the table of B (0." in found.summary


def two_bumps(count=900):
    """Q needs two functions of evidence to be high; each needs a test of its own."""
    rng = np.random.default_rng(0)
    net = Network()
    for name in "AB":
        net.add(f"E{name}", cpt=[0.5, 0.5])
        net.add(name, [f"E{name}"])
    net.add("Q", ["A", "B"], cpt=[[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.1, 0.9]]])
    rows = {"EA": rng.random(count), "EB": rng.random(count)}
    a, b = (rng.random(count) < middling(rows[name]) for name in ("EA", "EB"))
    return net, rows, np.where(a & b, "true", "false")


@pytest.mark.slow
def test_tests_are_placed_one_after_the_other_within_the_budget():
    net, rows, y = two_bumps()
    found = place_tests(net, "Q", rows, y, budget=3, nodes=["A", "B"], max_tests=3, **QUICK)
    assert {place.node for place in found.chosen} == {"A", "B"}
    assert set(found.network.testing_nodes) == {"A", "B"}
    assert [place.round for place in found.table] == [1, 1, 2]
    assert found.loss < found.chosen[1].without - 0.01 < found.without
    assert str(found).splitlines()[1].startswith("round  node")

    once = place_tests(net, "Q", rows, y, budget=1, **QUICK)
    assert [place.verdict == NOT_TRIED for place in once.table] == [False, True, True]


@pytest.mark.slow
def test_tied_nodes_become_testing_together():
    net, rows, y = two_bumps()
    tied = net.with_cpts(dict.fromkeys("AB", CPT(np.full((2, 2), np.nan), tie="same")))
    frame = pytest.importorskip("pandas").DataFrame(rows | {"Q": y})
    found = place_tests(tied, "Q", frame, **QUICK)
    assert found.best.nodes == ("A", "B")
    assert found.network.cpt("A") == found.network.cpt("B")
    assert found.network.testing_nodes == ("A", "B")
    assert "A (and 1 tied)" in str(found)
    assert list(found.to_frame()["node"]) == [place.node for place in found.table]


def test_what_cannot_matter_is_not_refitted():
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"])
    net.add("C", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("D", ["C"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("E", ["A", "D"], cpt=np.full((2, 2, 2), 0.5))
    drawn = net.with_cpts({"B": [[0.6, 0.4], [0.5, 0.5]]}).sample(100)
    soft = np.full(100, 0.3)
    found = place_tests(net, "B", {"A": drawn["A"], "C": soft, "D": soft}, drawn["B"], **QUICK)
    assert {place.node: place.verdict for place in found.table}["C"] == IRRELEVANT
    everywhere = place_tests(net, "B", {"A": soft}, drawn["B"], **QUICK)
    assert [place.verdict for place in everywhere.table] == [CONSTANT]
    assert np.isnan(everywhere.table[0].difference)


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"validation": 0.3}, {"gamma": None}, {"loss": "mse"}, {"prior": "net"}])
def test_other_ways_to_learn_and_to_judge(how):
    net, rows, y = around()
    learned = tacit.fit(tacit.compile(net, "asked", ["seen"]), rows, y, steps=5, progress=False).network
    if "prior" in how:
        how = {"prior": (learned, 2.0)}
    found = place_tests(net, "asked", rows, y, selection="general", nodes=["asked"], **QUICK | how)
    assert found.best.node == "asked"
    assert found.network.cpt("asked").gamma == how.get("gamma", 16.0)


def test_one_row_held_out_proves_nothing():
    rng = np.random.default_rng(0)
    net = tacit.Network()
    net.add("E")
    net.add("T", ["E"])
    net.add("Y", ["T"])
    rows, y = {"E": rng.random(80)}, np.where(rng.random(80) < 0.5, "true", "false")
    for seed in range(3):
        how = {"budget": 1, "steps": 5, "restarts": 1, "validation": 1e-4, "progress": False, "seed": seed}
        found = place_tests(net, "Y", rows, y, **how)
        assert found.best is None
        assert any(np.isinf(place.error) for place in found.table if place.verdict == NOT_CLEAR)


@pytest.mark.slow
def test_weights_count_rows():
    net, rows, y = around(count=300)
    doubled = {"seen": np.repeat(rows["seen"], 2)}
    weights = np.tile([1.0, 0.0], 300)
    settings = {"selection": "general", "nodes": ["asked"], **QUICK}
    once = place_tests(net, "asked", rows, y, **settings)
    again = place_tests(net, "asked", doubled, np.repeat(y, 2), weights=weights, **settings)
    assert again.table == once.table
    assert again.network == once.network


@pytest.mark.slow
def test_one_table_for_what_rows_selected():
    net, rows, y = around()
    found = place_tests(net, "asked", rows, y, selection="general", **QUICK).network
    task = PlacingTask(
        "asked",
        read_rows(found, "asked", rows, y, None),
        PlaceOptions(loss="mse", prior=0.0, steps=1, restarts=1),
        Line(False),
    )
    cpt, how = found.cpt("asked"), tacit.compile(found, "asked", ["seen"]).selected(rows)["asked"]
    weight = np.average(how.weight, axis=0, weights=how.posterior)[:, None]
    made = collapsed(Learner(task, found), found, ["asked"], task.data)
    close(made.table, weight * cpt.plus + (1 - weight) * cpt.minus)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"net": 3}, "net is a int, expected a Network"),
        ({"rows": [[0.5]]}, "rows is a list, expected a mapping or a frame"),
        ({"y": None}, "there are no labels; expected y, or a column of rows that is called 'asked'"),
        ({"rows": {"asked": ["true"]}}, "rows has a column 'asked', which holds labels, beside y"),
        ({"budget": 0}, "budget is 0, expected a whole number >= 1"),
        ({"validation": 1}, "validation is 1, expected a whole number >= 2"),
        ({"validation": 1.5}, "validation is 1.5, expected a number of parts >= 2, or a share of the rows"),
        ({"selection": "all"}, "selection is 'all', expected one of 'ancestral', 'general'"),
        ({"nodes": ["cause"]}, "node 'cause' cannot be made testing here"),
        ({"nodes": "asked"}, "nodes is 'asked', expected a sequence of names"),
        ({"nodes": ["x"]}, "'x' is not a variable of the network"),
        ({"gamma": -1.0}, "gamma is -1.0"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
    ],
)
def test_errors_say_what_is_wrong(change, message):
    net, rows, y = around(count=20)
    given = {"net": net, "query": "asked", "rows": rows, "y": y, **QUICK} | change
    with pytest.raises(TacitError, match=message):
        place_tests(**given)
