"""Clients that keep their connections and ask one simple question after the other, as cheaply as Python can.

They share the machine with the server. So requests are written beforehand, all sockets are read by one loop, and an
answer that was checked is known again by its bytes.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import tacit

QUESTIONS, FINDINGS = 50, 3
HEAD_END, LENGTH = b"\r\n\r\n", b"content-length: "


class Question:
    """The posterior of a variable given a few findings, as bytes to send, and what is right."""

    def __init__(self, net: tacit.Network, query: str, row: dict[str, object]) -> None:
        body = json.dumps({"query": query, "rows": [row]}).encode()
        head = b"POST /api/posterior HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        self.request = head + str(len(body)).encode() + HEAD_END + body
        self.expected = net.posterior(query, row)
        self._right: set[bytes] = set()

    def is_right(self, body: bytes) -> bool:
        """Whether this is the answer."""
        if body not in self._right:
            if not np.allclose(json.loads(body)["posterior"], self.expected, rtol=0, atol=1e-12):
                return False
            self._right.add(body)
        return True


def questions(net: tacit.Network, query: str, seed: int = 0) -> list[Question]:
    """Questions about one variable, with findings of which each is possible."""
    rng, drawn = np.random.default_rng(seed), net.sample(QUESTIONS, seed=seed)
    others = [name for name in net.variables if name != query]
    rows = [{name: drawn[name][i] for name in rng.choice(others, FINDINGS, replace=False).tolist()}
            for i in range(QUESTIONS)]  # fmt: skip
    return [Question(net, query, row) for row in rows]


@dataclass
class Asked:
    """What so many clients got in so many seconds."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, percent: float) -> float:
        """The latency, in milliseconds, that so many percent of the answers keep to."""
        return 1000 * float(np.percentile(self.latencies, percent))


class _Client:
    """A connection, the question that was sent last, and what has come of the answer."""

    def __init__(self, port: int, asked: Sequence[Question], first: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked, self._next = asked, first
        self.ask()

    def ask(self) -> None:
        """Send the next question."""
        self.question = self._asked[self._next % len(self._asked)]
        self._next += 1
        self._come = b""
        self.sent = time.perf_counter()
        self.socket.sendall(self.question.request)

    def answer(self) -> tuple[bytes, bytes] | None:
        """The head and the body, once all of it has come."""
        self._come += self.socket.recv(65536)
        head, end, body = self._come.partition(HEAD_END)
        length = head.lower().partition(LENGTH)[2].partition(b"\r\n")[0]
        return (head, body) if end and len(body) == int(length) else None


def ask(port: int, asked: Sequence[Question], clients: int, seconds: float) -> Asked:
    """Let so many clients ask for so long, each with one connection and one question at a time."""
    found, selector = Asked(seconds), selectors.DefaultSelector()
    some = [_Client(port, asked, 7 * k) for k in range(clients)]
    for client in some:
        selector.register(client.socket, selectors.EVENT_READ, client)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for key, _ in selector.select(seconds):
            client = key.data
            answer = client.answer()
            if answer is None:
                continue
            found.latencies.append(time.perf_counter() - client.sent)
            head, body = answer
            if not head.startswith(b"HTTP/1.1 200 ") or not client.question.is_right(body):
                found.wrong.append(head + HEAD_END + body)
            client.ask()
    selector.close()
    for client in some:
        client.socket.close()
    return found
