"""Numbers of continuous variables in requests and answers."""

import numpy as np
import pytest

import tacit
from tests.helpers import close
from tests.sensors import READINGS, sensors
from tests.serve.clients import client_of

NET = sensors()
CLIENT = client_of(NET)
ROWS = [{name: values[i] for name, values in READINGS.items()} for i in range(3)]


def ask(path, status=200, **fields):
    answer = CLIENT.post(f"/api/{path}", json=fields)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def tac():
    return tacit.compile(NET, "Fault", ["heat", "x", "trips", "shake"])


@pytest.mark.parametrize("evidence", [{"rows": ROWS}, {"columns": READINGS}])
def test_numbers_are_evidence(tac, evidence):
    found = ask("posterior", query="Fault", **evidence)
    close(found["posterior"], tac.posterior(READINGS))
    close(found["log_evidence"], tac.log_evidence(READINGS))


def test_one_number_may_hold_for_all_rows(tac):
    found = ask("posterior", query="Fault", columns={"x": 0.5, "heat": [80, 61.5]})
    close(found["posterior"], tac.posterior({"x": [0.5, 0.5], "heat": [80.0, 61.5]}))


def test_a_continuous_query_is_answered_by_numbers():
    found = ask("posterior", query="y", rows=ROWS)["numbers"]
    mixture = tacit.compile(NET, "y", ["heat", "x", "trips", "shake"]).posterior(READINGS)
    close(found["y"]["mean"], mixture.mean)
    close(np.transpose([found["y"]["5%"], found["y"]["95%"]]), mixture.quantile([0.05, 0.95]))
    assert list(ask("posterior", query="x, y")["numbers"]) == ["x", "y"]


def test_all_variables_are_answered_with_their_numbers(tac):
    found = ask("marginals", rows=ROWS[:1])
    assert list(found["posteriors"]) == ["Load", "Fault"]
    assert found["numbers"]["heat"]["mean"] == [None]  # it is known
    close(found["numbers"]["y"]["mean"], tac.marginals({n: v[:1] for n, v in READINGS.items()})["y"].mean)
    assert ask("marginals", variables=["Load"]).keys() == {"posteriors", "log_evidence"}


def test_the_weights_of_mixtures_are_posteriors_of_their_parents():
    found = ask("marginals", rows=ROWS, weights=True)["weights"]
    joint = tacit.compile(NET, ("Fault", "Load"), ["heat", "x", "trips", "shake"]).posterior(READINGS)
    close(found["heat"], joint.reshape(len(ROWS), -1))
    close(found["x, y"], joint.sum(axis=2))
    assert list(ask("marginals", variables=["x", "y", "Load"], weights=True)["weights"]) == ["x, y"]


def test_explanations_and_samples_have_numbers(tac):
    assert ask("mpe", rows=ROWS[:1])["states"]["heat"] == [82.5]
    assert ask("sample", rows=ROWS[:1], n=2, seed=1)["states"]["x"] == [[1.0, 1.0]]
    why = ask("explain", query="Fault", rows=ROWS[:1])["explanations"][0]
    assert {one["name"]: one["value"] for one in why["findings"]} == {"heat": "82.5", "trips": "3", "x, y": "x 1"}


@pytest.mark.parametrize(
    ("path", "fields", "problem"),
    [
        (
            "posterior",
            {"query": "Fault", "rows": [{}, {"heat": "hot"}]},
            "evidence on 'heat', row 1: 'hot' is not a number",
        ),
        (
            "posterior",
            {"query": "Fault", "rows": [{"heat": " 0.0"}]},
            "evidence on 'heat', row 0: ' 0.0' is not a number; send it without quotes: 0.0",
        ),
        (
            "posterior",
            {"query": "Fault", "rows": [{"trips": 2.5}]},
            "evidence on 'trips', row 0: 2.5 is not a whole number",
        ),
        ("posterior", {"query": "Fault", "rows": [{"x, y": [1, 2]}]}, "give numbers by their names, x, y"),
        ("posterior", {"query": "heat", "rows": [{"heat": 80}]}, "evidence on 'heat'"),
        ("posterior", {"query": ["heat", "Fault"]}, "query names 'heat', which is continuous"),
        ("posterior", {"query": "Fault", "do": {"heat": 80}}, "do cannot set 'heat': it is continuous"),
        ("information", {"query": "heat"}, "the query, 'heat', is continuous, so there is no information"),
        ("explain", {"query": "heat"}, "the query, 'heat', is continuous"),
    ],
)
def test_refusals_name_the_column_and_the_row(path, fields, problem):
    assert problem in ask(path, 422, **fields)["error"]


def test_numbers_in_quotes_are_refused_where_they_mean_intervals_too():
    net = tacit.Network()
    net.add("Age", bins=[0, 18, 65], cpt=[0.4, 0.6])
    client = client_of(net)
    answer = client.post("/api/marginals", json={"rows": [{"Age": "[0, 18)"}, {"Age": 70}, {"Age": "70"}]})
    assert answer.json()["error"] == "evidence on 'Age', row 2: '70' is not a number; send it without quotes: 70"


def test_the_model_names_the_columns():
    variables = {one["name"]: one for one in CLIENT.get("/api/model").json()["variables"]}
    assert variables["x, y"]["columns"] == ["x", "y"]
    assert CLIENT.get("/docs").status_code == 200


def test_answers_have_the_form_of_the_document():
    jsonschema = pytest.importorskip("jsonschema")
    document = CLIENT.get("/openapi.json").json()
    for path, fields in (("posterior", {"query": "heat"}), ("posterior", {"query": "Fault"}), ("marginals", {})):
        (post,) = document["paths"][f"/api/{path}"].values()
        schema = post["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(ask(path, **fields), {**schema, "components": document["components"]})
