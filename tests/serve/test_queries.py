"""The queries that a server has compiled: each is compiled once, few are kept, and small ones need no thread."""

import threading

import numpy as np
import pytest

import tacit
from tacit import engines
from tacit.engines.native.llvm import NoCodeError
from tacit.serve.queries import Queries
from tacit.serve.workers import Workers
from tests.serve.clients import client_of

NET = tacit.examples.abc()


def post(client, **fields):
    answer = client.post("/api/posterior", json={"query": "B", **fields})
    return answer.json().get("error") or np.array(answer.json()["posterior"])


@pytest.fixture
def handed_over(monkeypatch):
    """What was handed over to threads."""
    tasks, submit = [], Workers.submit

    def noting(self, task, kept=False):
        tasks.append(task)
        return submit(self, task, kept)

    monkeypatch.setattr(Workers, "submit", noting)
    return tasks


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"rows": [{"A": "true", "C": "lo"}]}, {"A": "true", "C": "lo"}),
        ({"rows": [{"A": 0.8, "C": [0.3, 0.7]}]}, {"A": 0.8, "C": [[0.3, 0.7]]}),
        ({"columns": {"A": "TRUE", "C": None}}, {"A": "true"}),
    ],
)
def test_a_row_of_a_small_query_is_handed_over_once(handed_over, given, expected):
    client = client_of(NET)
    for _ in range(3):
        np.testing.assert_allclose(post(client, **given), NET.posterior("B", expected), rtol=0, atol=1e-12)
    assert len(handed_over) == 1  # to be compiled


@pytest.mark.parametrize(
    "fields",
    [{"rows": [{}] * 2}, {"columns": {"A": [None]}}, {"tests": True}, {"rows": [{"A": " " * 2000}]}, {"query": "A"}],
    ids=["rows", "columns", "tests", "large", "another"],
)
def test_what_may_take_long_is_handed_over(handed_over, fields):
    client = client_of(NET)
    post(client)
    post(client, **fields)
    assert len(handed_over) == 2


def test_a_row_of_a_large_query_is_handed_over(handed_over, monkeypatch):
    monkeypatch.setattr("tacit.serve.queries.CODE_WORK", 1)
    client = client_of(NET)
    for _ in range(2):
        np.testing.assert_allclose(post(client), NET.posterior("B"), rtol=0, atol=1e-12)
    assert len(handed_over) == 2


def test_where_no_code_can_run_all_is_handed_over(handed_over, monkeypatch):
    def build(engine, *rest, build=engines.build):
        if engine == "native":
            raise NoCodeError("not here")
        return build(engine, *rest)

    monkeypatch.setattr("tacit.query.compiled_query.engines.build", build)
    client = client_of(NET)
    for _ in range(2):
        np.testing.assert_allclose(post(client), NET.posterior("B"), rtol=0, atol=1e-12)
    assert len(handed_over) == 2


def test_errors_are_those_of_python_in_a_thread_or_not(handed_over):
    client = client_of(NET)
    wrong = {"rows": [{"C": "mid"}]}
    first = post(client, **wrong)
    post(client)
    assert post(client, **wrong) == first == "evidence on 'C', row 0: 'mid' is not a state; expected one of 'lo', 'hi'"
    assert len(handed_over) == 2


def test_what_is_being_compiled_is_not_compiled_again_while_others_come_and_go():
    queries, begun, go, made = Queries(NET, 1), threading.Event(), threading.Event(), []

    def make(name, wait=False):
        made.append(name)
        if wait:
            begun.set()
            go.wait(60)
        return name

    first = threading.Thread(target=lambda: queries._once("slow", lambda: make("first", wait=True)))
    first.start()
    begun.wait(60)
    for name in ("b", "c", "d"):
        queries._once(name, lambda name=name: make(name))
    second = threading.Thread(target=lambda: queries._once("slow", lambda: make("second")))
    second.start()
    second.join(0.1)  # where nothing holds it back, it is done by now
    go.set()
    first.join()
    second.join()
    assert made == ["first", "b", "c", "d"]
    assert not queries._locks
