"""The paper's experiments: functions, growing, the store, the order of fits, and the report."""

import csv
import doctest
import io
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from paper import demo, experiments, functions, growing, page, report, running, surfaces
from paper.experiments import DAGS, EFFORTS, Store, Task, fit_task, plan
from paper.functions import FUNCTIONS, examples
from paper.growing import same_function

import tacit
from tacit import semantics
from tacit.learn import Parameters, grow

TINY = 0.02  # of the effort: two steps of one restart
E = math.e


def trained(dag, tests, seed=0):
    """A network with numbers, as if it had been trained."""
    net = DAGS[dag](tests)
    parameters = Parameters(net, net.variables)
    return parameters.fill(parameters.start(np.random.default_rng(seed)))


def by_enumeration(net, rows):
    return semantics.posterior(net, "Q", rows)[:, 0]


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return {"E1": rng.random(20), "E2": rng.random(20)}


# functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("f1", {(0, 0): 0, (0, 1): 0, (1, 0): 0, (1, 1): 0, (0.5, 0): 1}),
        ("f2", {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0, (0.5, 0): math.sqrt(0.5)}),
        ("f3", {(0, 0): E**-2.5 / 2, (0, 1): E**-2.5 / 2, (1, 1): E**-2.5 / 2, (0.5, 0.5): 0.5}),
        ("f4", {(0, 0): 1 / (1 + E**16), (1, 0): 1 / (1 + E**16), (0, 1): 1 / (1 + E**-16), (1, 0.5): 0.5}),
        ("f5", {(0, 0): 0, (0, 1): 0, (1, 0): 0, (1, 1): 1, (1, 0.5): 0.375}),
        ("g1", {(0, 0): 0.5, (0, 1): 0.5, (1, 0): 0.5, (1, 1): 0.5, (0.25, 0): 1, (0.75, 1): 0}),
        ("g2", {(0, 0): 1 / E, (0, 1): 1 / E, (1, 1): 1 / E, (0.25, 0.25): 1, (0.75, 0.75): E**-2}),
    ],
)
def test_functions_at_corners_and_beyond(name, points):
    for (x, y), value in points.items():
        assert FUNCTIONS[name](np.array([float(x)]), np.array([float(y)]))[0] == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_grid_has_1024_labelled_rows_with_its_end_points(name):
    evidence, labels = examples(name)
    points = set(zip(evidence["E1"].tolist(), evidence["E2"].tolist(), strict=True))
    assert len(points) == len(labels) == 1024
    assert {(0, 0), (0, 1), (1, 0), (1, 1)} <= points
    assert labels.min() >= 0
    assert labels.max() <= 1


# growing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dag", DAGS)
@pytest.mark.parametrize("gamma", [16.0, None])
def test_growing_does_not_change_the_function(dag, gamma, rows):
    small = trained(dag, 4).with_gamma(gamma)
    grown = same_function(small, DAGS[dag](8).with_gamma(gamma))
    assert len(grown.testing_nodes) == 8
    assert np.abs(by_enumeration(grown, rows) - by_enumeration(small, rows)).max() <= 1e-14


@pytest.mark.parametrize(("dag", "new"), [("layer", "T3"), ("split_layer", "T2")])
def test_every_restart_of_a_grown_layer_starts_from_the_same_function(dag, new, rows):
    small = trained(dag, 2)
    start = grow(small, DAGS[dag](4))
    parameters = Parameters(start, start.variables)
    one, other = (parameters.fill(parameters.start(np.random.default_rng(seed))) for seed in (0, 1))
    assert one.cpt(new) != other.cpt(new)
    for net in (one, other):
        assert np.abs(by_enumeration(net, rows) - by_enumeration(small, rows)).max() <= 1e-12
    assert parameters.count == Parameters(DAGS[dag](4), start.variables).count  # nothing is frozen


def test_a_grown_chain_starts_with_loose_links_that_learn(rows):
    small = trained("chain", 2)
    start = grow(small, DAGS["chain"](4))
    parameters = Parameters(start, start.variables)
    assert parameters.count == Parameters(DAGS["chain"](4), start.variables).count
    one, other = (parameters.fill(parameters.start(np.random.default_rng(seed))) for seed in (0, 1))
    assert one.cpt("T4").thresholds.tolist() != other.cpt("T4").thresholds.tolist()
    assert one.cpt("T4").plus == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert one.cpt("T2").plus == pytest.approx(small.cpt("T2").plus)
    assert np.abs(by_enumeration(one, rows) - by_enumeration(other, rows)).max() <= 1e-12


# fits -----------------------------------------------------------------------------------------------------


def test_every_task_has_an_effort_and_every_start_is_planned():
    tasks = plan()
    assert len(set(tasks)) == len(tasks)
    assert {(t.kind, t.dag, t.tests) for t in tasks} == set(EFFORTS)
    assert all(t.start is None or t.start in tasks for t in tasks)


@pytest.mark.parametrize("dag", DAGS)
def test_without_tests_all_dags_reach_the_best_ac(dag, tmp_path):
    assert fit_task(Task("f1", dag, 4, "ac"), Store(tmp_path)).mse == pytest.approx(0.02256, rel=0.01)


@pytest.mark.parametrize("dag", DAGS)
def test_more_tests_are_never_worse_even_if_training_fails(dag, tmp_path):
    store = Store(tmp_path, TINY)
    errors = [fit_task(Task("g1", dag, tests), store).mse for tests in (4, 8)]
    assert errors[1] <= errors[0] * (1 + 1e-12)


def test_a_result_says_what_its_network_does(tmp_path):
    store, task = Store(tmp_path, TINY), Task("f2", "split_layer")
    result = fit_task(task, store)
    evidence, labels = examples("f2")
    net = store.network(task)
    soft = by_enumeration(net, evidence)
    assert result.surface == pytest.approx(soft, abs=1e-12)
    assert result.mse == pytest.approx(np.mean((soft - labels) ** 2), rel=1e-9)
    hard = by_enumeration(net.with_gamma(None), evidence)
    assert result.hard_mse == pytest.approx(np.mean((hard - labels) ** 2), rel=1e-9)
    assert result.thresholds["T3"] == net.cpt("T3").thresholds.tolist()
    assert result.numbers == 2 + 4 * (4 + 2) + 16
    assert store.read(task) == result


@pytest.mark.parametrize("damage", ["cut", "no network", "other effort"])
def test_what_is_damaged_or_of_other_settings_is_not_reused(damage, tmp_path):
    task = Task("f5", "chain", 4, "ac")
    store = Store(tmp_path, TINY)
    fit_task(task, store)
    assert store.read(task) is not None
    if damage == "cut":
        path = tmp_path / "fits" / f"{task.name}.json"
        path.write_text(path.read_text()[:-20])
    elif damage == "no network":
        store.network_path(task).unlink()
    else:
        store = Store(tmp_path, 10 * TINY)
    assert store.read(task) is None


# many fits ------------------------------------------------------------------------------------------------


def test_side_by_side_tasks_wait_for_what_they_start_from(monkeypatch, tmp_path):
    order = []

    def note(task, store):
        order.append(task)
        return experiments.Result(task, 0.0, 0.0, 0.0, "lm", 1, {}, [])

    monkeypatch.setattr(running, "fit_task", note)
    monkeypatch.setattr(running, "_pool", ThreadPoolExecutor)
    monkeypatch.setattr(running, "warm_up", lambda: None)
    left = []
    results = running.run(plan(), Store(tmp_path), 2, lambda task, rest: left.append(len(rest)))
    assert [result.task for result in results] == plan()
    assert sorted(left, reverse=True) == left == list(range(len(plan())))[::-1]
    assert all(t.start is None or order.index(t.start) < order.index(t) for t in order)
    assert order[0].dag == "layer"  # the longest row of tasks begins first
    assert order[0].function.startswith("g")


def test_progress_says_how_much_is_done_and_left(tmp_path):
    stream = io.StringIO()
    tell = running.Progress(3, Store(tmp_path), 2, stream)
    tell(Task("f1", "split_layer"), [Task("f2", "chain")])
    assert stream.getvalue().startswith("  2/3 fitted   f1, split layer of 4, tac")
    assert stream.getvalue().endswith("left\n")


# the report -----------------------------------------------------------------------------------------------

FEW = [t for t in plan(["f1", "g1"], tests=(4, 8)) if t.tests == 4 or t.kind == "tac"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    results = running.run(FEW, Store(folder, TINY), workers=1)
    assert report.write(results, folder) == folder / "index.html"
    return folder


def test_the_report_is_complete_and_needs_nothing_else(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert text.count("<img ") == text.count('src="data:image/png;base64,')
    assert text.count("<img ") == (1 + 3 + 1) + (2 + 6 + 1) + 2  # the tables' rows of f1 and g1; hard tests
    assert "http" not in text
    assert "<script" not in text
    assert text.count("<figure") == text.count("</figure>")
    assert text.count("<div") == text.count("</div>")
    for name in ("table1.png", "table2.png", "learning.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert not list(folder.rglob("*.tmp"))


def test_the_lists_hold_all_numbers(folder):
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["function"], line["dag"], int(line["tests"]), line["kind"]) for line in lines] == [
        (t.function, t.dag, t.tests, t.kind) for t in FEW
    ]
    stored = Store(folder, TINY).read(FEW[0])
    assert float(lines[0]["mse"]) == pytest.approx(stored.mse, rel=1e-6)
    with open(folder / "thresholds.csv", encoding="utf-8", newline="") as file:
        thresholds = list(csv.DictReader(file))
    assert len(thresholds) == sum(len(v) for t in FEW for v in Store(folder, TINY).read(t).thresholds.values())


def test_networks_are_stored(folder):
    for task in FEW:
        net = tacit.load(folder / "networks" / f"{task.name}.json")
        assert len(net.testing_nodes) == (0 if task.kind == "ac" else task.tests)


def test_a_second_run_fits_nothing(folder, monkeypatch):
    def refuse(task, store):
        raise AssertionError(f"{task} was fitted again")

    monkeypatch.setattr(running, "fit_task", refuse)
    results = running.run(FEW, Store(folder, TINY), workers=1)
    assert [result.task for result in results] == FEW


def test_a_run_that_was_cut_off_goes_on(folder, tmp_path, monkeypatch):
    fitted = []
    store = Store(tmp_path, TINY)
    tasks = [Task("f5", dag, 4, "ac") for dag in DAGS]
    fit_task(tasks[0], store)
    monkeypatch.setattr(running, "fit_task", lambda task, store: fitted.append(task) or fit_task(task, store))
    running.run(tasks, store, workers=1)
    assert fitted == tasks[1:]


def test_the_worked_examples_come_first(capsys):
    demo.worked_examples()
    shown = capsys.readouterr().out
    assert "noisy-or classifier" in shown
    assert "evidence on A: 0.9   tables selected: plus for A=true, minus for A=false" in shown


@pytest.mark.parametrize("module", [demo, experiments, functions, growing, page, report, running, surfaces])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0
