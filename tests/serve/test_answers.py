"""Answers over HTTP are those of Python."""

import json
import warnings
import weakref

import numpy as np
import pytest
from bench.networks import network

import tacit
from tacit.serve import Limits, answers
from tacit.serve.answers import QueryTask
from tacit.serve.given import read_given
from tacit.serve.queries import Queries
from tacit.serve.request import Fields
from tacit.serve.workers import Deadline
from tests.helpers import close
from tests.serve.clients import client_of

NETWORKS = {"abc": tacit.examples.abc, "asia": lambda: network("asia")}
pytestmark = pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")


@pytest.fixture(scope="module", params=NETWORKS)
def asked(request):
    """A network, a client, rows of evidence as JSON, and the same for Python."""
    net = NETWORKS[request.param]()
    rng, names = np.random.default_rng(1), net.variables
    columns, drawn = {}, net.sample(5)  # so that the evidence is possible
    for k, name in enumerate(rng.permutation(names)[: len(names) // 2 + 1].tolist()):
        if k % 2:
            columns[name] = rng.dirichlet(np.ones(net.variable(name).card), size=5).tolist()
        else:
            columns[name] = drawn[name].tolist()
    rows = [{name: values[i] for name, values in columns.items()} for i in range(5)]
    tac = tacit.compile(net, names[-1], evidence=names)
    return net, client_of(net), rows, columns, tac


def post(client, path, status=200, **fields):
    answer = client.post(f"/api/{path}", json=fields)
    assert answer.status_code == status, answer.text
    return json.loads(answer.text, parse_constant=pytest.fail)


def same(found, expected):
    np.testing.assert_allclose(np.array(found, dtype=float), expected, rtol=0, atol=1e-12)


def test_posterior(asked):
    net, client, rows, columns, tac = asked
    for given in ({"rows": rows}, {"columns": columns}):
        found = post(client, "posterior", query=tac.query, **given)
        same(found["posterior"], tac.posterior(columns))
        same(found["log_evidence"], tac.log_evidence(columns))
        assert found["states"] == {tac.query: list(net.states(tac.query))}
    same(post(client, "posterior", query=tac.query)["posterior"], tac.posterior())


def test_joint_posterior(asked):
    net, client, rows, columns, _ = asked
    names = list(net.variables[:2])
    found = post(client, "posterior", query=names, rows=rows)
    same(found["posterior"], tacit.compile(net, names, evidence=net.variables).posterior(columns))
    assert list(found["states"]) == names


def test_marginals(asked):
    net, client, rows, columns, tac = asked
    found, expected = post(client, "marginals", rows=rows), tac.marginals(columns)
    assert list(found["posteriors"]) == list(net.variables)
    for name, posterior in found["posteriors"].items():
        same(posterior, expected[name])
    some = post(client, "marginals", rows=rows, variables=[tac.query])["posteriors"]
    assert list(some) == [tac.query]
    same(some[tac.query], expected[tac.query])


def test_mpe(asked):
    _, client, rows, columns, tac = asked
    found, expected = post(client, "mpe", rows=rows), tac.mpe(columns)
    assert found["states"] == {name: labels.tolist() for name, labels in expected.states.items()}
    same(found["log_probability"], expected.log_probability)


def test_sample(asked):
    net, client, rows, columns, _ = asked
    tac = tacit.compile(net, None, evidence=net.variables)
    found = post(client, "sample", rows=rows, n=20, seed=3)
    assert found["states"] == {name: states.tolist() for name, states in tac.sample(columns, 20, seed=3).items()}
    assert np.shape(post(client, "sample")["states"][net.variables[0]]) == (1, 1)


def test_samples_of_several_blocks_differ(monkeypatch):
    monkeypatch.setattr(answers, "BLOCK_ROWS", 50)
    client = client_of(tacit.examples.abc())
    found = post(client, "sample", rows=[{}, {}, {}], n=50, seed=0)["states"]
    draws = [tuple(found[name][row]) for name in "ABC" for row in range(3)]
    assert len(set(draws)) == 9
    assert found == post(client, "sample", rows=[{}, {}, {}], n=50, seed=0)["states"]
    assert found != post(client, "sample", rows=[{}, {}, {}], n=50)["states"]


def test_what_is_set_is_not_observed():
    net = tacit.examples.kidney_stones()
    client = client_of(net)
    for treatment in ("A", "B", "A"):
        done, do = net.do({"treatment": treatment}), {"treatment": treatment}
        same(post(client, "posterior", query="recovery", do=do)["posterior"], done.posterior("recovery"))
        same(post(client, "posterior", query="size", do=do)["posterior"], net.posterior("size"))
        given = {"rows": [{"recovery": "yes"}, {"recovery": "no"}], "do": do}
        tac = tacit.compile(done, "size", ["recovery"])
        marginals = tac.marginals({"recovery": ["yes", "no"]})
        for name, found in post(client, "marginals", **given)["posteriors"].items():
            same(found, marginals[name])
        assert post(client, "mpe", **given)["states"]["treatment"] == [treatment] * 2
        assert post(client, "sample", n=5, **given)["states"]["treatment"] == [[treatment] * 5] * 2
        drops = post(client, "information", query="size", **given)["information"]
        same(drops["treatment"], [0, 0])
        entries = post(client, "sensitivity", query="size", **given)["entries"]
        assert {entry["node"] for row in entries for entry in row} == {"size", "recovery"}
        assert post(client, "explain", query="size", **given)["explanations"][0]["findings"][0]["name"] == "recovery"
    seen = post(client, "posterior", query="size", rows=[{"treatment": "A"}])["posterior"]
    same(seen, net.posterior("size", {"treatment": "A"}))


def test_few_interventions_are_kept():
    net = tacit.Network()
    net.add("X", states=10, cpt=[0.1] * 10)
    queries = Queries(net, 5)
    first = queries.after({"X": 0})
    assert queries.after({"X": 0}) is first
    assert queries.after({}) is queries
    for state in range(1, 10):
        queries.after({"X": state})
    assert queries.after({"X": 0}) is not first


def test_predict(asked):
    net, client, rows, columns, tac = asked
    found = post(client, "predict", query=tac.query, rows=rows)
    expected = tac.predict(columns)
    assert found["states"] == expected.labels.tolist()
    same(found["probability"], expected.probability)
    both = post(client, "predict", query=[net.variables[0], tac.query], rows=rows)
    expected = tacit.compile(net, [net.variables[0], tac.query], net.variables).predict(columns)
    assert both["states"] == expected.labels.tolist()


def test_compare(asked):
    _, client, rows, _, tac = asked
    first, second = ({name: [value] for name, value in row.items()} for row in rows[:2])
    state = tac.variable.states[-1]
    found = post(client, "compare", query=tac.query, rows=rows[:2], state=state)
    expected = tac.compare(first, second, state)
    assert (found["text"], found["conclusion"]) == (str(expected), expected.conclusion)
    for one, posterior in zip(found["posterior"], expected.posterior, strict=True):
        same(list(one.values()), posterior)
    for one, other in zip(found["differences"], expected.differences, strict=True):
        assert (one["name"], one["first"], one["second"]) == (other.name, other.first, other.second)
        same(list(one["posterior"].values()), other.posterior)
        same(list(one["weight"].values()), np.where(np.isfinite(other.weight), other.weight, np.nan))
    assert "two rows of evidence, got 3" in post(client, "compare", 422, query=tac.query, rows=rows[:3])["error"]


def test_explain(asked):
    _, client, rows, _, tac = asked
    for row, found in zip(rows, post(client, "explain", query=tac.query, rows=rows)["explanations"], strict=True):
        expected = tac.explain({name: [value] for name, value in row.items()})
        assert found["text"] == str(expected)
        same(list(found["posterior"].values()), expected.posterior)
        assert [test["node"] for test in found["tests"]] == [test.node for test in expected.tests]
        for one, other in zip(found["findings"], expected.findings, strict=True):
            assert (one["name"], one["value"]) == (other.name, other.value)
            same(list(one["without"].values()), other.without)
            same(list(one["weight"].values()), np.where(np.isfinite(other.weight), other.weight, np.nan))
        same([test["margin"] for test in found["tests"]], [test.margin for test in expected.tests])


def test_information(asked):
    _, client, rows, columns, tac = asked
    found = post(client, "information", query=tac.query, rows=rows)["information"]
    for name, drop in tac.information(columns).items():
        same(found[name], drop)


def test_sensitivity(asked):
    _, client, rows, columns, tac = asked
    expected = tac.sensitivity(columns)
    state = tac.variable.states[0]
    found = post(client, "sensitivity", query=tac.query, rows=rows, state=state, top=5)
    assert found["states"] == [[state]] * len(rows)
    same(found["posterior"], expected.posterior[:, 0])
    for i, entries in enumerate(found["entries"]):
        best = expected.entries(i, state)[:5]
        same([entry["derivative"] for entry in entries], [entry.derivative for entry in best])
        place = {(entry["node"], entry["part"], tuple(entry["place"])): entry for entry in entries}
        for key, entry in place.items():
            derivatives = expected.derivatives[key[0], key[1]]
            assert derivatives[(i, 0, *key[2])] == pytest.approx(entry["derivative"], abs=1e-12)


def test_how_testing_nodes_were_decided():
    net = tacit.examples.abc()
    rows = {"A": [0.8, 0.1], "C": ["lo", None]}
    expected = tacit.compile(net, "B", evidence=["A", "C"]).selected(rows)["B"]
    for path, fields in (("posterior", {"query": "B"}), ("marginals", {})):
        (how,) = post(client_of(net), path, columns=rows, tests=True, **fields)["tests"].values()
        same(how["posterior"], expected.posterior)
        same(how["weight"], expected.weight)
        assert (how["parents"], how["thresholds"], how["operators"]) == (["A"], [0.5, 0.4], [">=", ">="])


def test_a_row_may_be_of_another_kind_than_the_next():
    net = tacit.Network()
    net.add("history", states=["yes", "no"], cpt=[0.2, 0.8])
    net.add("CVP", parents=["history"], states=["LOW", "NORMAL", "HIGH"], cpt=[[0.2, 0.5, 0.3], [0.1, 0.8, 0.1]])
    client, values = client_of(net), ["LOW", [0.2, 0.5, 0.3], {"HIGH": 3, "LOW": 1, "NORMAL": 0}, None]
    found = post(client, "posterior", query="history", columns={"CVP": values, "history": 0.25})
    found_rows = post(client, "posterior", query="history", rows=[{"CVP": v, "history": 0.25} for v in values])
    soft = [[1, 0, 0], [0.2, 0.5, 0.3], [0.25, 0, 0.75], [1, 1, 1]]
    same(found["posterior"], net.posterior("history", {"CVP": soft, "history": 0.25}))
    assert found == found_rows
    mixed = post(client, "posterior", query="CVP", columns={"history": ["yes", 0.25]})
    same(mixed["posterior"], net.posterior("CVP", {"history": [1.0, 0.25]}))


@pytest.mark.parametrize("values", [[1], [0.5, 1], ["lo", 1], [None, 0], [1, 0, 0.25, 1.0, 0.0], [[0.2, 0.8], 1]])
def test_a_number_is_the_likelihood_of_the_first_state_in_every_row(values):
    net = tacit.examples.abc()
    soft = [_soft(value) for value in values]
    expected = tacit.compile(net, "B", evidence=["C"]).ask({"C": soft})
    for given in ({"columns": {"C": values}}, {"rows": [{"C": value} for value in values]}):
        found = post(client_of(net), "posterior", query="B", **given)
        same(found["posterior"], expected.posterior)


def _soft(value):
    if value is None:
        return [1, 1]
    return {"lo": [1, 0]}[value] if isinstance(value, str) else value if isinstance(value, list) else [value, 1 - value]


@pytest.mark.parametrize("states", [["0", "1"], [0, 1], ["0", "1.0"], ["0", "1", "2"], [0.0, 1.0]])
@pytest.mark.parametrize("one", [1, 1.0])
def test_a_number_is_the_state_that_it_is_or_spells(states, one):
    net = tacit.Network()
    net.add("X", states=states, cpt=np.full(len(states), 1 / len(states)))
    client = client_of(net)
    for rows in ([{"X": one}], [{"X": 0}, {"X": one}], [{"X": [1] * len(states)}, {"X": one}]):
        assert post(client, "mpe", rows=rows)["states"]["X"][-1] == states[1]
    for rows in ([{"X": 0.5}], [{"X": one}, {"X": 0.5}]):
        assert "row" in post(client, "mpe", 422, rows=rows)["error"]


def test_labels_that_spell_the_same_number_are_not_meant_by_it():
    net = tacit.Network()
    net.add("X", states=["1", "1.0"], cpt=[0.5, 0.5])
    error = "evidence on 'X', row 0: 1 is not a state; expected one of '1', '1.0' (its labels are numbers; give a "
    assert post(client_of(net), "mpe", 422, rows=[{"X": 1}])["error"] == error + "likelihood for each state)"


def test_a_likelihood_of_labels_that_are_numbers_is_asked_for_as_json_has_it():
    net = tacit.Network()
    net.add("X", states=[True, False], cpt=[0.5, 0.5])
    client = client_of(net)
    error = post(client, "marginals", 422, rows=[{}, {"X": 0.7}])["error"]
    assert error.endswith("row 1: 0.7 is not a state; expected one of True, False; for a likelihood, give one for each "
                          "state: [0.7, 0.3]")  # fmt: skip
    close(post(client, "marginals", rows=[{"X": [0.7, 0.3]}])["posteriors"]["X"], [[0.7, 0.3]])


def test_states_of_several_kinds_stay_certain():
    net = tacit.Network()
    net.add("X", states=[0, 1], cpt=[0.5, 0.5])
    fields = Fields(b'{"columns": {"X": [0, 1.0, true]}}', ["columns"])
    known = read_given(net, fields, Limits(), Deadline(60))
    assert (known.fully_observed, known.columns["X"].codes.tolist()) == (["X"], [0, 1, 1])


def test_likelihoods_whose_sum_is_beyond_all_floats():
    net = tacit.examples.abc()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fields = Fields(b'{"columns": {"C": [[1e308, 1e308]]}}', ["columns"])
        known = read_given(net, fields, Limits(), Deadline(60))
    assert known.columns["C"].soft.tolist() == [[0.5], [0.5]]


def test_only_the_wanted_marginals_are_kept(monkeypatch):
    net, kept = tacit.examples.abc(), []

    class Kept(dict):
        def __init__(self, found):
            super().__init__(found)
            kept.append(weakref.ref(self))

    plain, queries = tacit.TAC.marginals, Queries(net, 2)
    monkeypatch.setattr(tacit.TAC, "marginals", lambda tac, *block: Kept(plain(tac, *block)))
    monkeypatch.setattr(QueryTask.blocks, "__defaults__", (1,))  # rows at a time
    alive, deadline = [], Deadline(600)
    monkeypatch.setattr(deadline, "check", lambda: alive.append(sum(one() is not None for one in kept)))
    fields = Fields(b'{"rows": [{}, {}, {}], "variables": ["B"]}', ["rows", "variables"])
    found = answers.marginals(QueryTask(queries, fields, Limits(), deadline))
    assert list(found["posteriors"]) == ["B"]
    assert max(alive) <= 1  # the block before, at most


def test_states_that_are_no_text():
    net = tacit.Network()
    net.add("X", states=[0, 1, 2], cpt=[0.2, 0.3, 0.5])
    net.add("Y", parents=["X"], states=[True, False], cpt=[[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    client = client_of(net)
    same(post(client, "posterior", query="Y", rows=[{"X": 2}])["posterior"], [[0.9, 0.1]])
    found = post(client, "posterior", query="X", rows=[{"Y": {"true": 1, "false": 0}}, {"Y": True}])
    same(found["posterior"][0], found["posterior"][1])
    assert post(client, "mpe", rows=[{"Y": False}])["states"] == {"X": [1], "Y": [False]}


def test_what_is_impossible_is_null():
    net = tacit.Network()
    net.add("X", cpt=[1.0, 0.0])
    net.add("Y", parents=["X"], cpt=[[0.5, 0.5], [0.2, 0.8]])
    client, rows = client_of(net), [{"X": "false"}, {"X": "true"}]
    found = post(client, "posterior", query="Y", rows=rows)
    assert (found["posterior"], found["log_evidence"]) == ([[None, None], [0.5, 0.5]], [None, 0.0])
    assert post(client, "marginals", rows=rows)["posteriors"]["Y"] == [[None, None], [0.5, 0.5]]
    found = post(client, "mpe", rows=rows)
    assert (found["states"]["Y"][0], found["log_probability"][0]) == (None, None)
    assert post(client, "information", query="Y", rows=rows)["information"]["Y"][0] is None
    assert post(client, "sensitivity", query="Y", rows=rows)["entries"][0][0]["derivative"] is None
    found = post(client, "explain", 422, query="Y", rows=rows[::-1])
    assert found == {"error": "row 1: the evidence has probability 0, so there is no answer to explain"}


def test_a_query_too_large_for_any_evidence_is_compiled_for_the_evidence_there_is(monkeypatch):
    net = tacit.examples.abc()
    monkeypatch.setattr("tacit.serve.queries.CHEAP_WORK", 0)
    found = post(client_of(net), "posterior", query="B", columns={"A": 0.8, "C": ["lo", "hi"]})
    same(found["posterior"], net.posterior("B", {"A": 0.8, "C": ["lo", "hi"]}))
