"""The OpenAPI document describes what the server does: answers have the form that it says."""

import json
import re
import shlex
from html import unescape

import pytest

import tacit
from tacit.serve.endpoints import ENDPOINTS
from tests.serve.clients import client_of

jsonschema = pytest.importorskip("jsonschema")
CLIENT = client_of(tacit.examples.abc())
DOCUMENT = CLIENT.get("/openapi.json").json()
QUESTIONS = [
    ("/api/posterior", {"query": "B", "rows": [{"A": 0.8, "C": "lo"}], "tests": True}),
    ("/api/posterior", {"query": ["A", "B"], "columns": {"C": [{"lo": 0.1, "hi": 0.9}, None]}}),
    ("/api/marginals", {"columns": {"A": [[0.2, 0.8]]}, "variables": ["B"], "tests": True}),
    ("/api/mpe", {"rows": [{}, {"A": "true"}]}),
    ("/api/mpe", {"rows": [{"C": "lo"}], "do": {"A": "true"}}),
    ("/api/sample", {"rows": [{}, {"A": "true"}], "n": 3, "seed": 1}),
    ("/api/explain", {"query": "B", "rows": [{"A": 0.8}, {"C": "lo"}]}),
    ("/api/compare", {"query": "B", "rows": [{"A": 0.8}, {"C": "lo"}], "state": "true"}),
    ("/api/predict", {"query": "B", "rows": [{"A": 0.8}, {"C": "lo"}]}),
    ("/api/predict", {"query": ["A", "B"]}),
    ("/api/information", {"query": "B", "rows": [{"A": "true"}]}),
    ("/api/sensitivity", {"query": "B", "state": "true", "top": 3}),
]


def validator(schema):
    """What checks data against a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator.check_schema(whole)
    return jsonschema.Draft202012Validator(whole)


def operation(path):
    (found,) = DOCUMENT["paths"][path].values()
    return found


def schema(part):
    return part["content"]["application/json"]["schema"]


def test_the_document_is_complete():
    assert DOCUMENT["openapi"] == "3.1.0"
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    assert set(DOCUMENT["paths"]) == {*(one.path for one in ENDPOINTS), "/api/model", "/health"}
    identities = [operation(path)["operationId"] for path in DOCUMENT["paths"]]
    assert len(set(identities)) == len(identities)
    for path in DOCUMENT["paths"]:
        assert operation(path)["summary"]
        for response in operation(path)["responses"].values():
            assert response["description"]
            validator(schema(response))


def test_every_reference_leads_somewhere():
    named = set(re.findall(r"'#/components/schemas/(\w+)'", str(DOCUMENT)))
    assert named == DOCUMENT["components"]["schemas"].keys()


@pytest.mark.parametrize(("path", "question"), QUESTIONS)
def test_questions_and_answers_have_the_form(path, question):
    validator(schema(operation(path)["requestBody"])).validate(question)
    answer = CLIENT.post(path, json=question)
    assert answer.status_code == 200
    validator(schema(operation(path)["responses"]["200"])).validate(answer.json())


def test_every_endpoint_is_tried():
    assert {path for path, _ in QUESTIONS} == {endpoint.path for endpoint in ENDPOINTS}


@pytest.mark.parametrize("question", [{}, {"query": 1}, {"query": "B", "rows": [], "columns": {}}, {"query": []}])
def test_the_form_excludes_what_the_server_refuses(question):
    assert not validator(schema(operation("/api/posterior")["requestBody"])).is_valid(question)
    answer = CLIENT.post("/api/posterior", json=question)
    assert answer.status_code == 400
    validator(schema(operation("/api/posterior")["responses"]["400"])).validate(answer.json())


def test_the_model_and_health():
    model = CLIENT.get("/api/model").json()
    validator(schema(operation("/api/model")["responses"]["200"])).validate(model)
    assert [own["name"] for own in model["variables"]] == ["A", "B", "C"]
    assert [own["testing"] for own in model["variables"]] == [False, True, False]
    assert CLIENT.get("/health").json() == {"status": "ok"}


def test_the_page_of_the_api_has_examples_that_work():
    net = tacit.Network("<b>'quoted'</b>")
    net.add("it's", states=["<yes>", "no"], cpt=[0.5, 0.5])
    net.add("B", ["it's"], cpt=[[0.5, 0.5], [0.5, 0.5]])
    client = client_of(net)
    page = client.get("/docs")
    assert page.status_code == 200
    assert "<b>" not in page.text
    assert "script-src ;" in page.headers["Content-Security-Policy"]
    examples = [shlex.split(unescape(text)) for text in re.findall("<pre>(.*?)</pre>", page.text, flags=re.DOTALL)]
    assert [words[1] for words in examples] == [f"http://localhost{one.path}" for one in ENDPOINTS]
    for words in examples:
        question = json.loads(words[-1])
        assert question["rows"][0] == {"it's": "<yes>"}
        assert client.post(words[1], json=question).status_code == 200
