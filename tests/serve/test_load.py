"""A thousand mixed requests, 64 at a time: nothing is answered wrongly, and memory does not grow."""

import signal

import pytest
from bench.networks import network

import tacit

pytest.importorskip("psutil")

from bench import keep_alive
from bench.serve import Server, killed, loaded

pytestmark = pytest.mark.slow


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "asia.json"
    tacit.save(network("asia"), path)
    return path


def test_load(model):
    with Server(model) as server:
        report, memory = loaded(server, network("asia"), 1000)
        assert report.wrong == []
        assert {status for status in report.counts if status >= 500} <= {503}
        assert memory[-1] < memory[0] + 100  # the interpreter may have been loaded meanwhile
        assert server.stop() == 0


def test_connections_that_are_kept(model):
    net = network("asia")
    with Server(model) as server:
        found = keep_alive.ask(server.port, keep_alive.questions(net, "lung"), 64, 2.0)
    assert found.wrong == []
    assert len(found.latencies) > 64


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_in_the_middle(model, how):
    found = killed(model, network("asia"), how)
    assert f"exit code {0 if how == signal.SIGTERM else -how}" in found
    assert found.endswith("ends with 0; wrong: []")
