"""What is wrong with a request is said with the right status, in the words of Python, and never as a 500."""

import asyncio
import json
import queue
import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.testclient import TestClient

import tacit
from tacit.serve import Limits, answers, application
from tacit.serve.answers import QueryTask
from tacit.serve.asgi import Service
from tacit.serve.endpoints import ENDPOINTS
from tacit.serve.given import read_given
from tacit.serve.queries import Queries
from tacit.serve.replies import BusyError, RefusedError
from tacit.serve.request import Fields
from tacit.serve.workers import Deadline
from tests.serve.clients import JSON, client_of

NET = tacit.examples.abc()


@pytest.fixture(scope="module")
def client():
    return client_of(NET, body=2_000, rows=5, numbers=20)


def refused(client, status, path="/api/posterior", method="POST", content=None, headers=JSON, **fields):
    body = json.dumps(fields) if content is None else content
    answer = client.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    found = answer.json()
    assert list(found) == ["error"]
    return found["error"]


@pytest.mark.parametrize(
    "evidence", [{"A": "x"}, {"A": 1.5}, {"C": [0.1, 0.2, 0.7]}, {"C": [-1, 2]}, {"D": "lo"}, {"A": [0, 0]}]
)
def test_evidence_is_refused_in_the_words_of_python(client, evidence):
    rows = {name: [value] if isinstance(value, list) else value for name, value in evidence.items()}
    with pytest.raises(tacit.TacitError) as error:
        NET.posterior("B", rows)
    assert refused(client, 422, query="B", rows=[evidence]) == str(error.value)


def test_messages_name_the_row(client):
    found = refused(client, 422, query="B", rows=[{"C": "lo"}, {"C": "mid"}])
    assert found == "evidence on 'C', row 1: 'mid' is not a state; expected one of 'lo', 'hi'"
    found = refused(client, 422, query="B", columns={"C": [None, {"lo": 1}]})
    assert found == "evidence on 'C', row 1: {'lo': 1} is not one likelihood per state ('lo', 'hi'); it lacks 'hi'"
    found = refused(client, 422, query="B", columns={"A": ["true"] * 2, "C": ["lo"] * 3})
    assert found == "evidence on 'C' has 3 rows, other columns have 2"


def test_names_that_do_not_exist(client):
    assert refused(client, 422, query="X").startswith("'X' is not a variable of the network")
    assert "twice" in refused(client, 422, query=["B", "B"])
    assert "'X'" in refused(client, 422, "/api/marginals", variables=["X"])
    assert "is not a state" in refused(client, 422, "/api/sensitivity", query="B", state="maybe", top=1)
    assert "query of one variable" in refused(client, 422, "/api/explain", query=["A", "B"])


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"1", b'{"query": NaN}', b'{"query": "B", "query": "A"}', b"\xff\xfe", b"\xef\xbb\xbf{}",
        b"[" * 1500, b'{"query": ' + b"9" * 1900 + b"}", b'{"query": 1}', b'{"query": []}', b'{"query": [1]}', b"{}",
        b'{"query": "B", "rows": {}}', b'{"query": "B", "rows": [1]}', b'{"query": "B", "columns": []}',
        b'{"query": "B", "rows": [], "columns": {}}', b'{"query": "B", "tests": 1}', b'{"query": "B", "other": 1}',
        b'{"query": "' + b"x" * 1100 + b'"}', b'{"query": "B", "columns": {"' + b"x" * 1100 + b'": 1}}',
    ],
)  # fmt: skip
def test_what_is_no_question_is_400(client, content):
    refused(client, 400, content=content)


@pytest.mark.parametrize("fields", [{"top": 0}, {"top": 10**6}, {"top": True}, {"top": 2.5}, {"state": [["true"]]}])
def test_fields_of_the_wrong_type(client, fields):
    refused(client, 400, "/api/sensitivity", query="B", **fields)


@pytest.mark.parametrize("fields", [{"n": 0}, {"n": True}, {"n": 2.5}, {"seed": -1}, {"seed": 2**53}, {"seed": "1"}])
def test_samples_are_counted(client, fields):
    refused(client, 400, "/api/sample", **fields)


def test_too_many_samples(client):
    assert "numbers" in refused(client, 422, "/api/sample", n=10**6)


@pytest.mark.parametrize("do", [[], "A", {"A": None}, {"A": [0.5, 0.5]}, {"A": {"true": 1}}, {"x" * 1100: "true"}])
def test_what_is_no_intervention_is_400(client, do):
    refused(client, 400, query="B", do=do)


def test_interventions_that_cannot_be(client):
    assert "cannot set 'A' to 'maybe'" in refused(client, 422, query="B", do={"A": "maybe"})
    assert "'X'" in refused(client, 422, query="B", do={"X": "true"})
    both = refused(client, 422, query="B", do={"A": "true"}, rows=[{"A": "true"}])
    assert both == "'A' is observed, and set by do; expected one or the other"


def test_paths_and_methods(client):
    assert "does not exist" in refused(client, 404, "/api/nothing")
    assert "does not exist" in refused(client, 404, "/api/posterior/")
    assert "does not exist" in refused(client, 404, "/../../etc/passwd", "GET")
    answer = client.get("/api/posterior")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert answer.json()["error"] == "GET is not a method of /api/posterior; use POST"
    refused(client, 405, "/health")
    refused(client, 405, method="OPTIONS")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_is_taken(client, kind):
    refused(client, 415, headers={"Content-Type": kind}, query="B")


def test_too_much(client):
    assert "2,000 bytes" in refused(client, 413, content=b" " * 2001)
    chunks = client.post("/api/posterior", content=iter([b" " * 1000] * 3), headers=JSON)
    assert chunks.status_code == 413
    assert "6 rows" in refused(client, 422, query="B", rows=[{}] * 6)
    assert "6 rows" in refused(client, 422, query="B", columns={"A": [None] * 6})
    assert "no rows" in refused(client, 422, query="B", rows=[])
    assert "no rows" in refused(client, 422, query="B", columns={"A": []})
    assert "24 numbers (limit 20)" in refused(client, 422, "/api/marginals", rows=[{}] * 4)


@pytest.mark.parametrize(
    "value", [["0.2", "0.8"], [True, False], [None, None], [[1], [2]], {"lo": "0.2", "hi": 1}, {"lo": True, "hi": 1}]
)
def test_likelihoods_are_numbers(client, value):
    expected = f"evidence on 'C', row 1: {value!r} is not one likelihood per state ('lo', 'hi')"
    assert refused(client, 422, query="B", columns={"C": ["lo", value]}) == expected


def test_true_is_no_likelihood(client):
    for values in ([True], [0.5, True], [True, 1]):
        assert "True is not a state" in refused(client, 422, query="B", columns={"C": values})
    assert client.post("/api/posterior", json={"query": "B", "rows": [{"A": True}, {"A": 0.5}]}).status_code == 200


def test_evidence_that_would_be_a_large_table_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("tacit.serve.given.read_column", lambda *_: pytest.fail("too late"))
    client = client_of(NET, numbers=8)
    found = refused(client, 422, query="B", rows=[{"A": "true", "B": "true", "C": "lo"}, {}, {}])
    assert found.startswith("the evidence is a table of 9 numbers, with those that are left out (limit 8)")
    found = refused(client, 422, query="B", columns={"A": [None] * 4 + [[0.5, 0.5]], "C": "lo"})
    assert found.startswith("the evidence is a table of 11 numbers")


def test_the_clock_is_looked_at_for_every_column():
    fields, deadline, looks = Fields(b'{"rows": [{"A": 1, "B": 1}, {"C": 1}]}', ["rows"]), Deadline(60), []
    deadline.check = lambda: looks.append(None)
    read_given(NET, fields, Limits(), deadline)
    assert len(looks) == 3


def test_tests_count_together_and_before_the_work(monkeypatch):
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    for name in ("B", "C"):
        cpt = tacit.TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], thresholds=[0.5, 0.4])
        net.add(name, parents=["A"], cpt=cpt)
    for work in ("ask", "explain", "marginals"):
        monkeypatch.setattr(tacit.TAC, work, lambda *_, **__: pytest.fail("too late"))
    monkeypatch.setattr("tacit.serve.queries._with_marginals", lambda tac: tac)
    client = client_of(net, numbers=9)
    assert "10 numbers (limit 9)" in refused(client, 422, query="A", rows=[{"B": "true", "C": "true"}], tests=True)
    assert "10 numbers" in refused(client, 422, "/api/marginals", variables=["A"], tests=True)
    assert "40 numbers" in refused(client, 422, "/api/explain", query="A", rows=[{"B": "true", "C": "true"}])
    assert "20 numbers" in refused(client, 422, "/api/explain", query="B")


@pytest.mark.parametrize("path", ["/api/information", "/api/sensitivity"])
def test_many_joint_states_are_refused_before_the_query_is_compiled(path, monkeypatch):
    net = tacit.Network()
    for i in range(20):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    monkeypatch.setattr("tacit.serve.queries.compile", lambda *_: pytest.fail("too late"))
    found = refused(client_of(net), 422, path, query=[f"X{i}" for i in range(16)])
    assert found == (
        "this takes a number for each of 20 variables and each of 65,536 joint states of the query, for every row "
        "(limit 1,000,000 numbers); ask about fewer variables at once"
    )
    names = [f"X{i}" for i in range(20)] * 10_000  # whose states, multiplied, would have 60,000 digits
    assert "limit 1,000,000 numbers" in refused(client_of(net), 422, path, query=names)


def test_a_joint_posterior_too_long_is_refused_before_the_query_is_compiled(monkeypatch):
    monkeypatch.setattr("tacit.serve.queries.compile", lambda *_: pytest.fail("too late"))
    assert "8 numbers (limit 7)" in refused(client_of(NET, numbers=7), 422, query=["A", "B", "C"])


@pytest.mark.parametrize("respond", [answers.information, answers.sensitivity])
def test_the_clock_is_looked_at_for_every_joint_state(respond):
    fields, deadline, looks = Fields(b'{"query": ["A", "B", "C"]}', ["query"]), Deadline(60), []
    task = QueryTask(Queries(NET, 16), fields, Limits(), deadline)

    def check():
        looks.append(None)
        if len(looks) == 7:
            raise deadline.error()

    deadline.check = check
    with pytest.raises(BusyError, match="took longer than 60 seconds"):
        respond(task)
    assert len(looks) == 7
    respond(task)
    assert len(looks) > 7 + 8


def test_a_timeout_of_the_work_is_no_slow_request(monkeypatch):
    def late(*_):
        raise TimeoutError

    monkeypatch.setattr("tacit.serve.asgi._result", late)
    assert "was logged" in refused(client_of(NET), 500, query="B")


def test_a_page_that_takes_long_is_made_once():
    made, go = [], threading.Event()

    def page():
        made.append(None)
        go.wait(60)
        return "<html></html>"

    service = Service(NET, Limits(workers=1, seconds=0.05), page)

    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        return await service.page(Request(scope, receive=asyncio.Event().wait))

    for _ in range(2):
        with pytest.raises(RefusedError, match="took longer"):
            asyncio.run(ask())
    go.set()
    service.workers.submit(str).result(60)  # by now the page is made
    assert asyncio.run(ask()).body == b"<html></html>"
    assert len(made) == 1


def test_a_page_that_failed_is_made_again():
    pages = iter([tacit.TacitError("not now"), "<html></html>"])

    def page():
        found = next(pages)
        if isinstance(found, Exception):
            raise found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.serve.asgi.page_html", lambda *_, **__: page())
        client = client_of(NET)
    assert [client.get("/").status_code for _ in range(3)] == [422, 200, 200]


def test_hosts():
    client = client_of(NET)
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
        assert client.get("/health", headers={"Host": host}).status_code == 200
    others = ("evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "192.168.0.1", "", "[::2]", "[]", "[::1]evil.com")
    for host in (*others, "127.0.0.1:80@evil.com", "localhost:evil.com", "localhost:80:80", "user@localhost"):
        answer = client.get("/health", headers={"Host": host})
        assert answer.status_code == 400
        assert "is not a host of this server" in answer.json()["error"]


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_hosts_of_a_server_that_others_can_reach(host):
    client = TestClient(application(NET, host=host))
    hosts = {
        "192.168.0.7:80": 200,
        "localhost": 200,
        socket.gethostname(): 200,
        "evil.com": 400,
        "0.0.0.0.evil.com": 400,
        "192.168.0.7:80@evil.com": 400,
        "": 400,
    }
    assert {host: client.get("/health", headers={"Host": host}).status_code for host in hosts} == hosts


def test_headers(client):
    for answer in (client.get("/"), client.get("/nothing"), client.post("/api/mpe", json={})):
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_full_queue_is_busy():
    client = client_of(NET, workers=1, waiting=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.serve.workers.queue.Queue.put_nowait", _full)
        answer = client.post("/api/mpe", json={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert client.post("/api/mpe", json={}).status_code == 200


def _full(*_):
    raise queue.Full


def test_what_takes_too_long_is_given_up():
    answer = client_of(NET, seconds=1e-9).post("/api/mpe", json={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "took longer than 1e-09 seconds" in answer.json()["error"]


def test_many_large_bodies_at_once_are_busy():
    client = client_of(NET, bodies=10)
    assert client.post("/api/mpe", json={"rows": [{}]}).status_code == 503
    assert client.post("/api/mpe", json={}).status_code == 200  # what was held is let go


def test_limits_are_checked():
    with pytest.raises(tacit.TacitError, match="rows is 0, expected a number > 0"):
        Limits(rows=0)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.sampled_from(["A", "B", "C", "true", "lo"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ABCD") | st.text(max_size=3), inner),
    max_leaves=12,
)  # fmt: skip
FIELDS = st.fixed_dictionaries(
    {"query": st.sampled_from(["A", "B", ["A", "C"]]) | ANY},
    optional={
        "rows": st.lists(st.dictionaries(st.sampled_from("ABC"), ANY), max_size=3) | ANY,
        "columns": st.dictionaries(st.sampled_from("ABC"), ANY) | ANY,
        "tests": ANY, "top": ANY, "state": ANY, "variables": ANY,
    },
)  # fmt: skip
SERVICE = Service(NET, Limits(workers=1), str)


@given(st.sampled_from(ENDPOINTS), FIELDS)
def test_no_request_is_an_error_of_the_server(endpoint, fields):
    used = {name: value for name, value in fields.items() if name in endpoint.question["properties"]}
    with suppress(tacit.TacitError, RefusedError):
        found = SERVICE.answered(endpoint, json.dumps(used).encode(), Deadline(60))
        json.loads(found, parse_constant=pytest.fail)
