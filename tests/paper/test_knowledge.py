"""The study of background knowledge: its problems, its samples, its scores and its report."""

from itertools import pairwise

import numpy as np
import pytest
from paper import knowledge
from paper.knowledge import Cell, Learner, Panel, Result, Rows, Score, problem_of

import tacit
from tacit import semantics
from tacit.examples import noisy_or_classifier


@pytest.fixture(params=list(knowledge.PROBLEMS))
def problem(request):
    return problem_of(request.param)


# problems -------------------------------------------------------------------------------------------------


def test_a_variant_differs_only_where_it_should():
    truth = problem_of("missing-edge").truth
    net = knowledge.variant(truth, left_out=["HR"], learn=["CO"], without=("TPR", "BP"), testing=["BP"])
    assert net.parents("BP") == ("CO",)
    assert net.testing_nodes == ("BP",)
    assert net.cpt("BP").gamma == knowledge.GAMMA
    assert np.isnan(net.cpt("HR").table).all()
    assert net.cpt("CO") == tacit.CPT(truth.table("CO"), learn=True)
    untouched = set(truth) - {"HR", "CO", "BP"}
    assert all(net.node(name) == truth.node(name) for name in untouched)


def test_the_network_without_the_edge_is_the_best_one_without_it():
    """Its table is the truth with the forgotten parent summed out, by the law of total probability."""
    problem = problem_of("missing-edge")
    wrong = problem.given["edge missing, nothing learned"]
    resistance = problem.truth.posterior("TPR", {"CO": list(problem.truth.states("CO"))})  # (CO, TPR)
    expected = np.einsum("ctb,ct->cb", problem.truth.table("BP"), resistance)
    np.testing.assert_allclose(wrong.table("BP"), expected, atol=1e-12)


def test_knowing_all_numbers_leaves_nothing_to_learn_and_knowing_fewer_leaves_more():
    learned = problem_of("diagnosis").learned
    unset = {name: sum(np.isnan(net.table(n)).sum() for n in net) for name, net in learned.items()}
    assert unset == {"266 of 344 numbers known": 344 - 266, "structure known": 344}


def test_tests_see_the_other_end_of_the_missing_edge_only_where_it_is_an_observed_ancestor():
    seen = problem_of("missing-edge")
    wrong = seen.learned["edge missing, testing node"]
    assert "TPR" in wrong.ancestors("BP")
    assert "TPR" in seen.findings
    unseen = problem_of("unseen-edge")
    above = unseen.learned["edge missing, testing node"].ancestors("ChestXray")
    assert set(above) & set(unseen.findings) == {"BirthAsphyxia"}
    general = unseen.learned["edge missing, general selection"]
    assert set(unseen.findings) - set(general.seen_by("ChestXray", unseen.findings)) == {"XrayReport"}


def test_no_finding_is_the_query_and_every_method_can_be_made(problem):
    assert problem.query not in problem.findings
    assert set(problem.learned) <= set(problem.methods)
    for net in (*problem.given.values(), *problem.learned.values()):
        assert net.states(problem.query) == problem.truth.states(problem.query)


def test_only_the_table_at_the_missing_edge_is_learned_where_all_else_is_known():
    problem = problem_of("unseen-edge-alone")
    for net in problem.learned.values():
        assert [name for name in net if net.cpt(name).testing or np.isnan(net.table(name)).any()] == ["ChestXray"]
        assert not any(net.cpt(name).learn for name in net if name != "ChestXray")


# data -----------------------------------------------------------------------------------------------------


def test_samples_follow_the_joint_distribution():
    net = noisy_or_classifier(threshold=0.5).select({})
    drawn = knowledge.sample(net, 40_000, np.random.default_rng(0))
    for given in ("true", "false"):
        code = net.states("X1").index(given)
        found = np.bincount(drawn["H"][drawn["X1"] == code], minlength=2) / (drawn["X1"] == code).sum()
        np.testing.assert_allclose(found, semantics.posterior(net, "H", {"X1": given})[0], atol=0.02)


def test_a_state_of_probability_zero_is_never_drawn():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], 3, cpt=[[0, 1, 0], [0.5, 0, 0.5]])
    drawn = knowledge.sample(net, 10_000, np.random.default_rng(0))
    assert set(zip(drawn["A"].tolist(), drawn["B"].tolist(), strict=True)) == {(0, 1), (1, 0), (1, 2)}


def test_rows_are_repeatable_and_miss_a_fifth_of_their_findings(problem):
    rows, again = (knowledge.sample_rows(problem, 4000, (1, 7)) for _ in range(2))
    np.testing.assert_array_equal(rows.findings, again.findings)
    np.testing.assert_array_equal(rows.labels, again.labels)
    assert (rows.findings == -1).mean() == pytest.approx(knowledge.MISSING, abs=0.01)
    assert rows.findings.shape == (4000, len(problem.findings))
    other = knowledge.sample_rows(problem, 4000, (1, 8))
    assert (rows.findings != other.findings).any()


def test_evidence_says_what_the_codes_say(problem):
    rows = knowledge.sample_rows(problem, 50, (1, 0))
    columns = knowledge.evidence(problem, rows.findings)
    assert list(columns) == list(problem.findings)
    for name, codes in zip(problem.findings, rows.findings.T, strict=True):
        states = problem.truth.states(name)
        assert columns[name].tolist() == [None if code == -1 else states[code] for code in codes]


# scores ---------------------------------------------------------------------------------------------------


def test_score():
    p = np.array([[0.5, 0.5], [0.1, 0.9], [0.8, 0.2]])
    found = knowledge.score(p, np.array([0, 1, 1]))
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.log_loss == pytest.approx(-np.log([0.5, 0.9, 0.2]).mean())


def test_the_setting_with_the_lowest_loss_on_rows_held_out_is_chosen():
    labels = np.array([0] * 30 + [1] * 10)
    rows = Rows(np.zeros((40, 1), dtype=np.int64), np.random.default_rng(0).permutation(labels))
    seen = []

    def fit(inside, setting, seed):
        seen.append(len(inside))
        return lambda findings: np.tile([setting, 1 - setting], (len(findings), 1))

    assert knowledge.choose(Learner((0.1, 0.75, 0.999), fit), rows, seed=0) == 0.75
    assert sorted(set(seen)) == [26, 27]  # two thirds of the rows


def test_no_other_network_beats_the_true_one(problem):
    scores = knowledge.given_scores(problem)
    best = scores.pop(knowledge.CEILING)
    assert all(s.log_loss > best.log_loss and s.accuracy < best.accuracy for s in scores.values())


def test_a_cell_of_a_network_lies_between_chance_and_the_best():
    problem, cell = problem_of("unseen-edge"), Cell("unseen-edge", "edge missing, testing node", 10, 1)
    found = knowledge.compute(cell)
    assert knowledge.given_scores(problem)[knowledge.CEILING].log_loss < found.log_loss < np.log(6)
    assert found.setting in knowledge.learner_of(problem, cell.method).settings


def test_learning_is_repeatable():
    problem = problem_of("diagnosis")
    rows = knowledge.sample_rows(problem, 20, (1, 0))
    first, second = (
        knowledge.learner_of(problem, "structure known").fit(rows, 1.0, seed=3)(rows.findings) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_no_selection_repairs_the_unseen_edge_where_all_else_is_known():
    limit, problem = knowledge.unseen_limit(), problem_of("unseen-edge-alone")
    assert limit.cost > 0.07
    assert limit.repairable < 0.03
    left = knowledge.unlimited(problem, "edge missing, general selection", restarts=1, steps=20)
    assert limit.floor - limit.truth < left < limit.cost


@pytest.mark.parametrize("method", problem_of("diagnosis").others)
def test_states_that_no_row_shows_count_as_one_row_each(method):
    pytest.importorskip("sklearn")
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    problem = problem_of("diagnosis")
    rows = knowledge.sample_rows(problem, 60, (1, 0))
    learner = knowledge.learner_of(problem, method)
    for shown in ((0, 1, 3), (2,)):
        part = rows.take(np.isin(rows.labels, shown))
        with threadpool_limits(1):  # threads of boosted trees wait for each other on a busy machine
            p = learner.fit(part, learner.settings[0], 0)(rows.findings)
        hidden = [state for state in range(6) if state not in shown]
        np.testing.assert_allclose(p[:, hidden], 1 / (len(part) + len(hidden)))
        np.testing.assert_allclose(p.sum(axis=1), 1)


# results and report ---------------------------------------------------------------------------------------


def made_up(cells):
    """Results that are known to be right: a cell's loss is 10 over its rows, plus its repetition."""
    return {cell: Result(0.5, 2 + 10 / cell.rows + cell.repetition, 1.0, 0.0) for cell in cells}


def test_cells_have_files_of_their_own():
    cells = knowledge.cells_of(knowledge.PROBLEMS, knowledge.REPETITIONS)
    assert len({cell.file for cell in cells}) == len(set(cells)) == len(cells)
    assert max(cell.rows for cell in cells) == knowledge.MOST_ROWS


def test_a_panel_sums_up_repetitions():
    problem = problem_of("unseen-edge")
    results = made_up(knowledge.cells_of(["unseen-edge", "diagnosis"], {10: 3, 100: 1}))
    panel = Panel(problem, {knowledge.CEILING: Score(0.6, 1.5)}, results)
    assert panel.line("edge known", "log_loss") == [(10, 4.0, 1.0), (100, 2.1, 0.0)]
    assert panel.table("log_loss")[:3] == [
        ["labelled rows", "10", "100"],
        ["true network", "1.500", "1.500"],
        ["edge known", "4.000 ± 1.000", "2.100 ± 0.000"],
    ]


def test_labels_are_moved_apart_and_no_further_than_needed():
    assert knowledge.apart([0.0, 0.1, 0.9], gap=0.3, top=1.0) == [-0.1, 0.2, 0.9]
    assert knowledge.apart([0.0, 0.8, 0.9], gap=0.3, top=1.0) == [0.0, 0.7, 1.0]
    places = sorted(np.random.default_rng(0).random(12).tolist())
    moved = knowledge.apart(places, gap=0.05, top=2.0)
    assert all(b - a >= 0.05 - 1e-8 for a, b in pairwise(moved))
    assert knowledge.apart(moved, gap=0.049, top=2.0) == pytest.approx(moved)
    assert np.mean(moved) == pytest.approx(np.mean(places))


def test_the_page_holds_the_picture_and_all_numbers(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    cells = knowledge.cells_of(["missing-edge"], {10: 2, 100: 2})
    monkeypatch.setattr(knowledge.cells, "run", lambda cells, *_: made_up(cells))
    knowledge.study(tmp_path, ["missing-edge"], {10: 2, 100: 2}, 1)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "alarm without TPR → BP" in text
    assert "<td>3.500 ± 0.707</td>" in text
    assert "data:image/png;base64," in text
    assert "http" not in text  # nothing is fetched
    assert (tmp_path / "knowledge.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "knowledge.csv").read_text().splitlines()) == 1 + len(cells)
