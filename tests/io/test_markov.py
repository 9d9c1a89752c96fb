"""Markov networks in UAI files, and with the command line."""

import math

import pytest

import tacit
from tacit import FactorGraph, FormatError
from tacit.io.formats.uai import write_evidence
from tests.cli.helpers import as_json, tacit_
from tests.helpers import close
from tests.model.test_factor_graph import random_graph

# the example of the competition's description of its format
UAI = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


@pytest.fixture
def read_uai(read_as):
    return lambda text: read_as("net.uai", text)


def test_the_last_variable_varies_fastest(read_uai):
    graph = read_uai(UAI)
    assert isinstance(graph, FactorGraph)
    assert (graph.name, graph.variables, graph.states("x2")) == ("net", ("x0", "x1", "x2"), (0, 1, 2))
    assert [factor.variables for factor in graph.factors] == [("x0",), ("x0", "x1"), ("x1", "x2")]
    close(graph.factors[2].table, [[0.21, 0.333, 0.457], [0.811, 0, 0.189]])
    assert read_uai(" ".join(UAI.split())) == graph


def test_factors_may_have_no_variables_and_variables_no_factor(read_uai):
    graph = read_uai("MARKOV 2 2 3 1 0 1 7.5")
    close(tacit.compile(graph, None, engine="numpy").log_evidence(), [math.log(6 * 7.5)])
    assert read_uai("MARKOV 1 2 0").factors == ()
    assert read_uai("MARKOV 0 0 # nothing at all").variables == ()


@pytest.mark.parametrize("suffix", ["uai", "uai.gz"])
def test_what_is_written_comes_back(tmp_path, suffix):
    for seed in range(5):
        graph = random_graph(seed)
        tacit.write(graph, tmp_path / f"graph.{suffix}")
        assert tacit.read(tmp_path / f"graph.{suffix}") == graph
    tacit.save(graph, tmp_path / "saved.uai")
    assert tacit.load(tmp_path / "saved.uai") == graph


def test_plain_names_are_their_numbers(tmp_path):
    graph = FactorGraph()
    for name in ("x1", "x0"):
        graph.add(name, 2)
    graph.add_factor(["x0"], [1, 2])
    tacit.write(graph, tmp_path / "graph.uai")
    assert "\n1 0\n" in (tmp_path / "graph.uai").read_text()
    assert tacit.read(tmp_path / "graph.uai") == graph


def test_evidence_files_go_by_the_numbers(tmp_path, read_uai):
    graph = read_uai(UAI)
    (tmp_path / "net.uai.evid").write_text("2 0 1 2 2")
    seen = tacit.read_evidence(tmp_path / "net.uai.evid", graph)
    assert seen == {"x0": 1, "x2": 2}
    close(tacit.compile(graph, "x1", given=seen).joint(), [[0.564 * 0.92 * 0.457, 0.564 * 0.08 * 0.189]])
    write_evidence(graph, seen, tmp_path / "again.evid")
    assert tacit.read_evidence(tmp_path / "again.evid", graph) == seen


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV\n3", "MARKOV\n-3", "line 2, column 1: '-3' is not the number of variables in the file"),
        ("MARKOV\n3", "MARKOV\n999", "line 2, column 1: '999' is not the number of variables in the file"),
        ("2 2 3\n3", "2 0 3\n3", "line 3, column 3: '0' is not the number of a variable's states"),
        ("2 2 3\n3", "2 2 3\n99", "line 4, column 1: '99' is not the number of factors in the file"),
        ("2 0 1", "2 0 3", "line 6, column 5: '3' is not a variable; expected a number below 3"),
        ("2 0 1", "2 1 1", "line 6, column 5: a factor names a variable twice"),
        ("2 0 1", "4 0 1 2 0", "line 6, column 1: '4' is not the number of variables of a factor"),
        ("\n4\n", "\n5\n", "line 12, column 1: '5' is not the size of the table of factor 1, 4"),
        ("0.872", "-0.872", "line 13, column 8: factor 1 holds -0.872, expected a finite number >= 0"),
        ("0.872", "1e999", "line 13, column 8: factor 1 holds inf, expected a finite number >= 0"),
        ("0.872", "nan", "line 13, column 8: 'nan' is not a number"),
        (" 0.189\n", "", "line 18, column 13: the file ends too early"),
        (" 0.189\n", " 0.189 1\n", "line 18, column 20: unexpected '1' after the last table"),
        (" 0.189\n", ' 0.189\n# tacit {"name": 3, "variables": []}\n', "line 19, column 1: the comment '# tacit'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_line_and_column(refuses, old, new, message):
    assert UAI.count(old) == 1
    refuses("net.uai", UAI.replace(old, new), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"number": 0', '"number": 7'), "names other variables or states than the file has"),
        (lambda text: text.replace('"s0"', '"s0", "more"'), "names other variables or states than the file has"),
        (lambda text: text.replace('"v1"', '"v0"'), "variable 'v0' is in the graph already"),
    ],
)
def test_a_comment_that_does_not_fit_is_refused(tmp_path, read_uai, change, message):
    tacit.write(random_graph(0), tmp_path / "graph.uai")
    with pytest.raises(FormatError, match=message):
        read_uai(change((tmp_path / "graph.uai").read_text()))


@pytest.mark.parametrize("suffix", ["bif", "net", "xmlbif", "json", "dne"])
def test_other_formats_do_not_hold_it(tmp_path, suffix):
    with pytest.raises(FormatError, match=r"a FactorGraph can only be written as \.uai"):
        tacit.write(random_graph(0), tmp_path / f"graph.{suffix}")
    assert not list(tmp_path.iterdir())


def test_the_command_line_asks_it(tmp_path):
    model, seen = tmp_path / "net.uai", tmp_path / "net.uai.evid"
    model.write_text(UAI)
    seen.write_text("1 0 1")
    answer = as_json("query", model, "-q", "x1", "-e", seen)
    graph = tacit.read(model)
    tac = tacit.compile(graph, "x1", given={"x0": 1}, engine="numpy")
    close(answer["log_evidence"], tac.log_evidence()[0])
    close(list(answer["posterior"].values()), tac.posterior()[0])
    assert "log of the partition function: " in tacit_("query", model, "-q", "x1", "--next")
    assert "log of the product of all factors: " in tacit_("mpe", model)
    assert len(tacit_("sample", model, "-n", 3).splitlines()) == 4
    assert "do= needs a Bayesian network" in tacit_("query", model, "-q", "x1", "--do", "x0=1", code=1)
    for command in ("explain", "sensitivity"):
        assert "this needs CPTs, and the file holds a Markov network" in tacit_(command, model, "-q", "x1", code=1)
    assert "this command needs a Bayesian network" in tacit_("info", model, code=1)
