"""Single rows, whose states a query is compiled for where one for all states is refused, or dear."""

import numpy as np
import pytest

import tacit
from tacit import Network, TooLargeError, semantics
from tacit.compiler import contraction, strategy
from tacit.query import query as queries
from tacit.query.asking import options
from tests.helpers import close

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from tests.cli.helpers import as_json, tacit_

PARENTS = [f"X{i}" for i in range(6)]


@pytest.fixture
def net():
    """Six variables with two children; if `all` is true, so are they."""
    rng = np.random.default_rng(0)
    net = Network()
    for name in PARENTS:
        net.add(name, cpt=rng.dirichlet([1, 1]))
    net.add("all", PARENTS, cpt=tacit.CPT.from_function(lambda *x: "true" if set(x) == {"true"} else "false"))
    net.add("some", PARENTS, cpt=rng.dirichlet([1, 1], (2,) * 6))
    return net


@pytest.fixture
def compiles(monkeypatch):
    """What was compiled: the variables in hard= and the states in given=."""
    found = []
    original = options.compile_program

    def compile_program(net, question, *how, **kinds):
        found.append((question.hard, dict(question.given)))
        return original(net, question, *how, **kinds)

    monkeypatch.setattr(options, "compile_program", compile_program)
    return found


@pytest.fixture
def tight(monkeypatch):
    """So little memory that the table of a family is refused; diagrams would be smaller."""
    monkeypatch.setattr(contraction, "memory_limit", lambda: 300)
    monkeypatch.setattr(strategy.Diagrams, "possible", False)


def test_a_row_that_all_states_are_refused_for(net, tight, compiles):
    with pytest.raises(TooLargeError, match="too wide"):
        tacit.compile(net, "some", hard=["all"])
    compiles.clear()
    row = {"all": ["true"]}
    for _ in range(2):
        close(net.posterior("some", row), semantics.posterior(net, "some", row))
        close(np.exp(net.log_likelihood(row)), semantics.joint(net, (), row))
    assert [given for _, given in compiles if given] == [{"all": 0}] * 2  # with the query and without, once each


def test_both_ways_may_be_refused(net, tight, compiles):
    for evidence in ({"all": ["false"]}, {"all": ["true", "true"]}, {"all": [0.5]}):
        for _ in range(2):
            with pytest.raises(TooLargeError, match="too wide"):
                net.posterior("some", evidence)
    assert compiles == [(("all",), {}), ((), {"all": 1}), ((), {})]  # once each, since refusals are kept


def test_rows_of_ordinary_networks_share_a_query(net, compiles):
    for state in ("true", "false"):
        row = {"all": [state]}
        close(net.posterior("some", row), semantics.posterior(net, "some", row))
    assert compiles == [(("all",), {})]


def test_a_row_that_is_slow(net, monkeypatch, compiles):
    monkeypatch.setattr(queries, "SLOW_ROW", 10)
    row = {"all": ["true"]}
    close(net.posterior("some", row), semantics.posterior(net, "some", row))
    assert compiles == [(("all",), {}), ((), {"all": 0})]
    assert net.posterior("some", {"all": ["true", "false"]}).shape == (2, 2)
    assert len(compiles) == 2


def test_the_command_line_asks_about_one_row(net, tight, tmp_path):
    path = tmp_path / "net.json"
    tacit.save(net, path)
    found = as_json("query", path, "-q", "some", "-e", "all=true")
    close(list(found["posterior"].values()), semantics.posterior(net, "some", {"all": "true"})[0])
    for command in ("explain", "sensitivity"):
        assert "too wide" in tacit_(command, path, "-q", "some", "-e", "all=false", code=1)


def test_the_command_line_minds_the_work(net, monkeypatch, tmp_path):
    monkeypatch.setattr(queries, "SLOW_ROW", 10)
    path = tmp_path / "net.json"
    tacit.save(net, path)
    row = {"all": "true", "X0": [0.3]}
    found = as_json("query", path, "-q", "some", "-e", "all=true", "-e", "X0=0.3", "--next")
    close(list(found["posterior"].values()), semantics.posterior(net, "some", {**row, "all": ["true"]})[0])
    assert set(found["next"].values()) == {0.0}
