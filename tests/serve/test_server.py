"""A real server: slow clients, clients that go away, many at once, and how it ends."""

import json
import signal
import socket
import sys
import threading
import time
from contextlib import suppress

import pytest

import tacit
from tacit.base.version import how_to_install
from tests.cli.helpers import tacit_
from tests.serve.clients import running

KIND = "Content-Type: application/json"
# What `mpe` waits for is over half a second, as long as nobody has given up.
IMPATIENT = """
import dataclasses, time, tacit
import tacit.serve.asgi as module
from tacit.serve import Limits, serve

def slow(respond):
    def answer(task):
        for _ in range(30):
            task.deadline.check()
            time.sleep(0.02)
        return respond(task)
    return answer

module.ENDPOINTS = tuple(
    dataclasses.replace(one, respond=slow(one.respond)) if one.path == "/api/mpe" else one for one in module.ENDPOINTS
)
limits = Limits(reading=0.4, workers=2, waiting=3, connections=20, seconds=600)
serve(tacit.examples.abc(), port=0, limits=limits, started=lambda address: print(address, flush=True))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "abc.json"
    tacit.save(tacit.examples.abc(), path)
    return path


@pytest.fixture(scope="module")
def server(model):
    """A server of the command line."""
    with running("-m", "tacit.cli", "serve", str(model), "--port", "0", "--seconds", "600") as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A server with small limits."""
    path = tmp_path_factory.mktemp("serve") / "impatient.py"
    path.write_text(IMPATIENT)
    with running(str(path)) as found:
        assert found.ask("/api/mpe", {})[0] == 200  # kernels are loaded now
        yield found


def received(connection):
    """All that comes until the connection is closed."""
    found = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            found += chunk
    return found


def test_the_command_answers(server):
    status, headers, text = server.ask("/api/posterior", {"query": "B", "rows": [{"A": 0.8, "C": "lo"}]})
    expected = tacit.examples.abc().posterior("B", {"A": 0.8, "C": "lo"})
    assert status == 200
    assert json.loads(text)["posterior"] == [pytest.approx(expected[0].tolist(), abs=1e-12)]
    assert "server" not in headers
    assert server.ask("/")[0] == 200


def test_a_body_too_large_is_refused_before_it_is_read(server):
    head = "POST /api/mpe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n"
    with server.connect() as connection:
        connection.sendall(f"{head}\r\n".encode())
        assert b" 413 " in connection.recv(1000)
    with server.connect() as connection:
        connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")  # nor is it asked for
    status, _, text = server.ask("/api/mpe", iter([b" " * 1_000_000] * 9))
    assert (status, json.loads(text)["error"]) == (413, "the request is larger than 8,000,000 bytes; send several")


def test_a_port_in_use(server, model):
    found = tacit_("serve", model, "--port", server.port, code=1)
    assert found == f"tacit: port {server.port} is in use; choose another, or 0 for any that is free (--port)\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "no.such.host.invalid", "--public"], "is not an address to listen"),
        (["--port", 99999], "not exist"),
    ],
)
def test_addresses_that_do_not_exist(model, options, message):
    assert message in tacit_("serve", model, *options, code=1)


def test_other_machines_need_a_word(model, monkeypatch):
    assert "give --public as well" in tacit_("serve", model, "--host", "0.0.0.0", code=2)
    monkeypatch.setattr("tacit.serve.serve", lambda *_: (_ for _ in ()).throw(tacit.TacitError("not now")))
    found = tacit_("serve", model, "--host", "0.0.0.0", "--public", code=1)
    assert "anybody who can reach 0.0.0.0 can query this network: there is no password" in found


def test_without_the_packages(model, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tacit.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = f"tacit: tacit.serve needs starlette and uvicorn: {how_to_install('serve')}\n"
    assert tacit_("serve", model, code=1) == message


def test_slow_clients_are_sent_away(impatient):
    started = time.monotonic()
    silent, slow_head, slow_body = (impatient.connect() for _ in range(3))
    slow_head.sendall(b"POST /api/mpe HTTP/1.1\r\nHost: lo")
    slow_body.sendall(b"POST /api/mpe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Content-Length: 100\r\n\r\n{")  # fmt: skip
    assert received(silent) == received(slow_head) == b""
    assert received(slow_body).startswith(b"HTTP/1.1 408 ")
    assert 0.3 < time.monotonic() - started < 5
    for connection in (silent, slow_head, slow_body):
        connection.close()
    assert impatient.ask("/health")[0] == 200


def test_a_client_that_drips_is_sent_away(impatient):
    with impatient.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            drip(connection)


def drip(connection):
    for _ in range(40):
        connection.sendall(b"X: y\r\n")
        time.sleep(0.05)


@pytest.mark.slow
def test_a_client_that_does_not_take_its_answers_is_sent_away(impatient):
    process = pytest.importorskip("psutil").Process(impatient.process.pid)
    body = json.dumps({"query": ["A", "B", "C"], "columns": {"A": [None] * 10_000}}).encode()
    head = f"POST /api/posterior HTTP/1.1\r\nHost: localhost\r\n{KIND}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", impatient.port))
        connection.sendall((head.encode() + body) * 12)  # whose answers, 20 MB, are more than the system holds
        ours = connection.getsockname()[1]
        assert impatient.ask("/health")[0] == 200  # by now the server has accepted the connection
        end = time.monotonic() + 30
        while ours in [one.raddr.port for one in process.net_connections() if one.raddr]:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert received(connection).count(b"HTTP/1.1 200") < 12


def test_too_many_at_once_are_told_to_come_back(impatient):
    found = []

    def ask():
        status, headers, _ = impatient.ask("/api/mpe", {})
        found.append((status, headers["Retry-After"]))

    threads = [threading.Thread(target=ask) for _ in range(9)]
    for thread in threads:
        thread.start()
    assert impatient.ask("/health")[0] == 200  # meanwhile
    for thread in threads:
        thread.join()
    assert set(found) == {(200, None), (503, "1")}
    assert sum(status == 200 for status, _ in found) >= 4  # 1 or 2 at work, 3 waiting


def test_connections_beyond_the_limit_are_told_to_come_back(impatient):
    time.sleep(0.5)
    some = [impatient.connect() for _ in range(20)]
    with impatient.connect() as one_more:
        assert received(one_more).startswith(b"HTTP/1.1 503 ")
    for connection in some:
        connection.close()


def test_work_for_a_client_that_has_gone_is_given_up(impatient):
    time.sleep(0.5)
    body = b"POST /api/mpe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    for _ in range(5):
        connection = impatient.connect()
        connection.sendall(body)
        time.sleep(0.02)
        connection.close()
    started = time.monotonic()
    assert impatient.ask("/api/mpe", {})[0] == 200
    assert time.monotonic() - started < 1.7  # 0.6 seconds of its own, not of five others


def test_requests_that_are_being_answered_are_finished(impatient):
    found = []
    thread = threading.Thread(target=lambda: found.append(impatient.ask("/api/mpe", {})[0]))
    thread.start()
    time.sleep(0.3)
    impatient.process.send_signal(signal.SIGTERM)
    thread.join()
    assert found == [200]
    assert impatient.process.wait(timeout=10) == 0
    with pytest.raises(ConnectionRefusedError):
        impatient.connect()


def test_the_command_ends_quietly(server):
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=60) == 0
    assert "Traceback" not in server.process.stderr.read()
