"""Networks made from edges and a table, the graph that a network shows, and predictions."""

from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit
from tacit import NetworkError
from tests.helpers import close

EDGES = [("wet", "slip"), ("rain", "wet"), ("sprinkler", "wet")]
ROWS = {
    "slip": ["yes", "no", "no", "yes"],
    "wet": [2, 1, 1, 2],
    "rain": [True, False, False, True],
    "sprinkler": ["on", "off", "on", "off"],
}


@pytest.mark.parametrize("rows", [ROWS, pd.DataFrame(ROWS), pl.DataFrame(ROWS), pd.DataFrame(ROWS).to_dict("records")])
def test_edges_and_a_table_are_enough(rows):
    net = tacit.Network.from_edges(EDGES, rows)
    assert [net.states(name) for name in ("slip", "wet", "rain")] == [("no", "yes"), (1, 2), (True, False)]
    assert net.parents("wet") == ("rain", "sprinkler")
    learned = tacit.estimate(net, ROWS, prior=1.0).network
    assert learned.posterior("slip", {"wet": 2})[0, 1] > 0.5


def test_states_may_be_given():
    net = tacit.Network.from_edges([("H", "wet")], ROWS | {"id": [1, 2, 3, 4]}, states={"H": 3, "wet": [2, 1, 0]})
    assert (net.states("H"), net.states("wet")) == ((0, 1, 2), (2, 1, 0))
    assert tacit.Network.from_edges([("H", "wet")]).states("H") == ("true", "false")


def test_densities_keep_numbers_as_they_are():
    rows = {"wet": ROWS["wet"], "weight": [2.5, 3.0, 3.5, 4.5]}
    net = tacit.Network.from_edges([("wet", "weight")], rows, densities={"weight": tacit.Gaussian()})
    close(tacit.estimate(net, rows).network.density("weight").mean, [3.25, 3.5])
    with pytest.raises(NetworkError, match="densities= names 'wieght', which no edge does; did you mean 'weight'"):
        tacit.Network.from_edges([("wet", "weight")], rows, densities={"wieght": tacit.Gaussian()})


@pytest.mark.parametrize(
    ("edges", "given", "message"),
    [
        ([("A", "B"), ("B", "C"), ("C", "A")], {}, "the edges lead in a circle, A -> B -> C -> A; a network has none"),
        ([("A", "A")], {}, "in a circle, A -> A"),
        ([("A", "B"), ("A", "B")], {}, "the edge from 'A' to 'B' is listed twice"),
        (["AB"], {}, r"'AB' is not an edge; expected two names, \(parent, child\)"),
        ([("A", 3)], {}, "is not an edge"),
        (
            [("rain", "whet")],
            {"rows": ROWS},
            r"'whet', of which the rows have no column; did you mean 'wet'\?",
        ),
        ([("rain", "wet")], {"states": {"whet": 2}}, r"names 'whet', which no edge does; did you mean 'wet'\?"),
        ([("rain", "wet")], {"rows": 7}, "rows of type int are not understood"),
    ],
)
def test_what_is_no_network_is_refused(edges, given, message):
    with pytest.raises(NetworkError, match=message):
        tacit.Network.from_edges(edges, **given)


def test_the_graph_is_that_of_networkx():
    net = tacit.Network.from_edges([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"), ("E", "F")])
    graph = net.to_networkx()
    assert set(graph.edges) == set(net.edges)
    assert graph.nodes["A"]["states"] == ("true", "false")
    assert set(net.roots) == {n for n in graph if not graph.in_degree(n)} == {"A", "E"}
    assert set(net.leaves) == {n for n in graph if not graph.out_degree(n)} == {"D", "F"}
    for name in net:
        assert set(net.children(name)) == set(graph.successors(name))
    assert networkx.is_directed_acyclic_graph(graph)
    with pytest.raises(NetworkError, match="'X' is not a variable"):
        net.children("X")


def test_a_prediction_is_the_most_probable_state():
    tac = tacit.compile(tacit.examples.abc(), "C", ["A", "B"])
    rows = {"A": ["true", "false", None], "B": [0.2, 0.9, 0.4]}
    predicted, posterior = tac.predict(rows), tac.posterior(rows)
    assert predicted.labels.tolist() == [["lo", "hi"][i] for i in posterior.argmax(axis=1)]
    close(predicted.probability, posterior.max(axis=1), 1e-15)
    assert len(predicted) == 3
    assert predicted[0] == predicted.labels[0]
    assert (predicted == np.array(["lo"] * 3)).tolist() == [label == "lo" for label in predicted.labels]
    assert np.asarray(predicted).tolist() == predicted.labels.tolist()
    assert predicted.to_pandas().columns.tolist() == ["C", "probability"]
    assert tac.predict(pd.DataFrame(rows, index=[7, 8, 9])).to_pandas().index.tolist() == [7, 8, 9]
    assert "C" in predicted._repr_html_()
    expected = ["    C  probability", "0  hi     0.750000", "1  lo     0.500000", "2  hi     0.585714"]
    assert str(predicted).splitlines() == expected
    assert predicted.to_polars().columns == predicted.to_arrow().column_names == ["C", "probability"]


def test_booleans_are_predicted_as_booleans():
    frame = pd.DataFrame({"a": [True, False, None] * 20, "b": ["x", "y", "y"] * 20})
    net = tacit.estimate(tacit.Network.from_edges([("a", "b")], frame), frame).network
    predicted = tacit.compile(net, "a", ["b"]).predict(frame[["b"]])
    assert (predicted == [True, False, False] * 20).all()
    assert predicted.labels.dtype == bool


def test_a_prediction_of_several_variables_is_their_joint_state():
    tac = tacit.compile(tacit.examples.abc(), ["C", "A"], ["B"])
    predicted = tac.predict({"B": [0.2, 0.9, 0.5]})
    best = tac.map({"B": [0.2, 0.9, 0.5]})
    assert predicted.labels.tolist() == [list(row) for row in zip(best.states["C"], best.states["A"], strict=True)]
    assert predicted.to_pandas().shape == (3, 3)


def test_an_impossible_row_has_no_prediction():
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5]])
    with pytest.warns(tacit.ImpossibleEvidenceWarning):
        predicted = tacit.compile(net, "A", ["B"]).predict({"B": ["true", "false"]})
    assert predicted.labels.tolist() == ["true", None]
    assert np.isnan(predicted.probability).tolist() == [False, True]
    with pytest.raises(tacit.TacitError, match="there is no prediction"):
        tacit.compile(net, None, ["B"]).predict({"B": "true"})


def test_tab_completion_shows_what_the_pages_do():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    page = (Path(__file__).parents[2] / "docs/api/tac.md").read_text(encoding="utf-8")
    documented = {line.strip(" -") for line in page.splitlines() if line.strip().startswith("- ")}
    assert {name for name in dir(tac) if not name.startswith("_")} == documented | {"network", "query"}
    shown = set(dir(tac.network))
    assert {"add", "children", "edges", "posterior", "to_networkx"} < shown
    assert not shown & {"cut", "empty_copy", "node", "require_numbers"}


def test_groups_without_names_are_refused_with_a_remedy():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"age": pandas.cut([20, 50, 70], [0, 40, 99]), "old": ["no", "yes", "yes"]})
    with pytest.raises(
        tacit.EvidenceError, match=r"column 'age', row 0: Interval.* of type Interval, .* \(pandas.cut names its groups"
    ):
        tacit.Network.from_edges([("age", "old")], rows)
    rows["age"] = pandas.cut([20, 50, 70], [0, 40, 99], labels=["young", "old"])
    assert tacit.Network.from_edges([("age", "old")], rows).states("age") == ("young", "old")


def people():
    """Rows with whole-number ages, and few children."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 95, 500), "children": rng.integers(0, 5, 500)})


def test_measurements_become_the_intervals_of_discover():
    rows = people()
    with pytest.warns(tacit.DefaultBinsWarning, match="as many rows each: age; choose with the option bins") as told:
        net = tacit.Network.from_edges([("age", "children")], rows)
    with pytest.warns(tacit.DefaultBinsWarning) as discovered:
        found = tacit.discover(rows, progress=False).network
    assert net.bins("age") == found.bins("age")
    assert len(net.states("age")) == 8
    assert net.states("children") == found.states("children") == (0, 1, 2, 3, 4)
    assert [str(one.message) for one in told] == [str(one.message) for one in discovered]


@pytest.mark.parametrize(
    ("chosen", "states"),
    [({"states": {"age": 100}}, 100), ({"bins": {"age": [18, 60, 95]}}, 2), ({"bins": 3}, 3)],
)
def test_what_is_chosen_is_no_measurement(chosen, states):
    assert len(tacit.Network.from_edges([("age", "children")], people(), **chosen).states("age")) == states


def test_a_category_of_numbers_is_no_measurement():
    rows = people().astype({"age": "category"})
    assert len(tacit.Network.from_edges([("age", "children")], rows).states("age")) == 77


def test_a_list_of_edges_is_no_name():
    with pytest.raises(
        NetworkError, match=r"must be a string or None, got .*; Network.from_edges\(edges, rows\) makes"
    ):
        tacit.Network([("A", "B")])
