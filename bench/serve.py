"""`tacit serve`: how long a simple question takes, how many it answers per second, and what it does under load.

The load is mixed requests, many at a time, some of them malformed, oversized, slow or given up. Every answer is
checked: its status, and posteriors against Python. Then the server is killed, and stopped, in the middle. `python -m
bench serve 1000` sends fewer of these requests, and writes no page.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import tacit
from bench import keep_alive
from bench.networks import leaves, network, widest_root
from bench.tables import Section, at_least, at_most, missed, write

REQUESTS, AT_ONCE = 10_000, 64
P50, P99, PER_SECOND = 2.0, 10.0, 1500  # milliseconds, and answers
ROUNDS, SECONDS = 7, 3.0
PAGE = Path(__file__).parent.parent / "docs" / "bench-serve.md"
INTRO = (
    "Written by `python -m bench serve` on a machine of 2 cores, which the server, its clients and others shared. The "
    "server is `tacit serve`, a process of its own, with `alarm`. All answers are checked."
)
QUERIES = 4
SHARES = {
    "posterior": 30, "marginals": 12, "batch": 8, "mpe": 8, "information": 3, "explain": 3, "sensitivity": 1,
    "model": 6, "malformed": 15, "invalid": 6, "oversized": 3, "slow": 1, "gone": 4,
}  # fmt: skip
ANSWERED = ("posterior", "marginals", "batch", "mpe", "information", "explain", "sensitivity", "model")
MALFORMED: tuple[tuple[str, dict[str, str], bytes, int], ...] = (
    ("POST /api/posterior", {}, b'{"query": ', 400),
    ("POST /api/posterior", {}, b"[" * 100_000, 400),
    ("POST /api/posterior", {}, b'{"query": NaN}', 400),
    ("POST /api/posterior", {}, b"\xff\x00", 400),
    ("POST /api/posterior", {}, b'{"rows": 3, "query": "CVP"}', 400),
    ("POST /api/posterior", {"Content-Type": "text/plain"}, b"{}", 415),
    ("POST /api/nothing", {}, b"{}", 404),
    ("POST /../../etc/passwd", {}, b"{}", 404),
    ("DELETE /api/posterior", {}, b"", 405),
    ("POST /api/mpe", {"Host": "evil.com"}, b"{}", 400),
    ("NONSENSE", {}, b"", 400),
)


@dataclass
class Report:
    """What came back."""

    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, status: int, expected: int, seconds: float, text: bytes) -> None:
        """One response; 503 may always come."""
        self.statuses[kind][status] += 1
        self.seconds[kind if status == 200 else str(status)].append(seconds)
        if status not in (expected, 503):
            self.wrong.append(f"{kind}: {status} {text[:300]!r}")

    @property
    def counts(self) -> Counter[int]:
        """How often each status came; 0 is a connection that was closed without one."""
        return sum(self.statuses.values(), Counter())

    def section(self, count: int, memory: list[float]) -> Section:
        """How long what was asked properly took, and what came back of all."""
        section = Section(
            f"2. {count:,} mixed requests, {AT_ONCE} at a time",
            "every answer is right, or a 503",
            ["kind", "answers", "p50, ms", "p99, ms", "verdict"],
        )
        together = [second for kind in ANSWERED for second in self.seconds[kind]]
        for kind, seconds in [*((kind, self.seconds[kind]) for kind in ANSWERED), ("all answers", together)]:
            if seconds:
                p50, p99 = np.percentile(seconds, [50, 99]) * 1000
                verdict = at_most(len(self.wrong), 0) if kind == "all answers" else ""
                section.add(kind, len(seconds), f"{p50:.1f}", f"{p99:.1f}", verdict)
        statuses = ", ".join(f"{status}: {number:,}" for status, number in sorted(self.counts.items()))
        before, halfway, after = (f"{megabytes:.0f} MB" for megabytes in memory)
        section.notes += [
            f"Each has a connection of its own. Statuses: {statuses}; 0 is a connection that the server closed.",
            f"Memory: {before} before, {halfway} halfway, {after} after.",
            *self.wrong[:10],
        ]
        return section


class Server:
    """`tacit serve` in a process of its own."""

    def __init__(self, model: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "tacit.cli", "serve", str(model), "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def seconds(self) -> float:
        """The processor time that it has used."""
        used = psutil.Process(self.process.pid).cpu_times()
        return used.user + used.system

    def megabytes(self) -> float:
        """The memory that it uses."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(timeout=60)


class Load:
    """Clients that ask a server about a network, and know the answers."""

    def __init__(self, net: tacit.Network, port: int, seed: int = 0, patience: float = 20) -> None:
        self.net, self.port, self.patience = net, port, patience
        self.rng, self.report = np.random.default_rng(seed), Report()
        observed = leaves(net)
        self.queries = [widest_root(net), *net.variables[: QUERIES - 1]]
        drawn = net.sample(200)
        self.rows = [{name: drawn[name][i] for name in self.rng.choice(observed, size=len(observed) // 2).tolist()}
                     for i in range(200)]  # fmt: skip
        tacs = {query: tacit.compile(net, query, evidence=observed) for query in self.queries}
        columns = {name: np.array([row.get(name) for row in self.rows], dtype=object) for name in observed}
        self.posteriors = {query: tac.posterior(columns) for query, tac in tacs.items()}

    async def run(self, count: int, at_once: int = AT_ONCE) -> Report:
        """Send so many requests, so many at a time."""
        kinds = self.rng.choice(list(SHARES), size=count, p=np.array(list(SHARES.values())) / sum(SHARES.values()))
        waiting = iter(kinds.tolist())

        async def client() -> None:
            for kind in waiting:
                await self.one(kind)

        await asyncio.gather(*(client() for _ in range(at_once)))
        return self.report

    async def one(self, kind: str) -> None:
        """One request of a kind."""
        by_kind: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "slow": self.slow, "gone": self.gone, "oversized": self.oversized, "malformed": self.malformed,
            "model": lambda: self.ask("model", "GET /api/model", {}, b"", 200),
        }  # fmt: skip
        await by_kind.get(kind, lambda: self.question(kind))()

    async def question(self, kind: str) -> None:
        """A question as it should be, or (`invalid`) with evidence that is not."""
        number, query = int(self.rng.integers(200)), self.queries[int(self.rng.integers(QUERIES))]
        numbers = [number] if kind != "batch" else self.rng.integers(200, size=100).tolist()
        fields: dict[str, Any] = {"rows": [self.rows[i] for i in numbers]}
        if kind not in ("marginals", "mpe"):
            fields["query"] = query
        if kind == "invalid":
            fields["rows"] = [{query: "nonsense"}]
        path = "posterior" if kind in ("batch", "invalid") else kind
        body = json.dumps(fields).encode()
        text = await self.ask(kind, f"POST /api/{path}", {}, body, 422 if kind == "invalid" else 200)
        if text and path == "posterior" and kind != "invalid":
            self.compare(json.loads(text)["posterior"], self.posteriors[query][numbers])

    def compare(self, found: Any, expected: Any) -> None:
        """An answer that differs from Python's is wrong."""
        if not np.allclose(np.array(found, dtype=float), expected, rtol=0, atol=1e-12, equal_nan=True):
            self.report.wrong.append(f"posterior: {found!r}")

    async def malformed(self) -> None:
        """What is no question."""
        line, headers, body, status = MALFORMED[int(self.rng.integers(len(MALFORMED)))]
        await self.ask("malformed", line, headers, body, status)

    async def oversized(self) -> None:
        """A body that is announced to be too large, and sometimes comes, in chunks."""
        if self.rng.random() < 0.9:
            await self.ask("oversized", "POST /api/mpe", {"Content-Length": "50000000"}, b"{", 413)
        else:
            chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
            await self.ask("oversized", "POST /api/mpe", {"Transfer-Encoding": "chunked"}, chunk * 9, 413)

    async def slow(self) -> None:
        """A client that sends half a head or half a body, or nothing; the server must end it."""
        head = b"POST /api/mpe HTTP/1.1\r\nHost: localhost\r\n"
        begun = [b"", head, head + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"]
        sent = begun[int(self.rng.integers(3))]
        start = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        with suppress(ConnectionError):
            writer.write(sent)
            await asyncio.wait_for(reader.read(), self.patience + 10)
        if time.perf_counter() - start > self.patience:
            self.report.wrong.append("slow: the server waited for long")
        self.report.statuses["slow"][408 if sent.endswith(b"{") else 0] += 1
        await _closed(writer)

    async def gone(self) -> None:
        """A client that asks and goes away."""
        with suppress(ConnectionError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(_request("POST /api/mpe", {}, b"{}"))
            await asyncio.sleep(float(self.rng.random()) * 0.01)
            await _closed(writer)

    async def ask(self, kind: str, line: str, headers: dict[str, str], body: bytes, expected: int) -> bytes | None:
        """Send a request; the text of the answer, if it is one."""
        start = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        status, text = 0, b""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(_request(line, headers, body))
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            status = int(head.split()[1])
            length = re.search(r"content-length: (\d+)", head)
            text = await (reader.readexactly(int(length[1])) if length else reader.read())
        await _closed(writer)
        self.report.add(kind, status, expected, time.perf_counter() - start, text)
        return text if status == 200 else None


def _request(line: str, headers: dict[str, str], body: bytes) -> bytes:
    own = {"Host": "localhost", "Content-Type": "application/json"}
    if "Transfer-Encoding" in headers:
        body += b"0\r\n\r\n"
    else:
        own["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**own, **headers}.items())
    return f"{line} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def loaded(server: Server, net: tacit.Network, count: int) -> tuple[Report, list[float]]:
    """What so many requests got, in two halves, and the memory of the server before, between and after."""
    warm = asyncio.run(Load(net, server.port, seed=1).run(min(count, 1000)))
    assert not warm.wrong, warm
    memory = [server.megabytes()]
    load = Load(net, server.port)
    for _ in range(2):
        asyncio.run(load.run(count // 2))
        memory.append(server.megabytes())
    return load.report, memory


def killed(model: Path, net: tacit.Network, how: signal.Signals) -> str:
    """End a server while it is asked, start another at the same port, and ask that one."""
    with Server(model) as server:
        load = Load(net, server.port)
        code = asyncio.run(_interrupted(server, load, how))
    start = time.perf_counter()
    with Server(model, server.port) as again:
        seconds = time.perf_counter() - start
        after = asyncio.run(Load(net, again.port).run(100))
        ended = again.stop()
    counts = {status: count for status, count in sorted(load.report.counts.items()) if status}
    wrong = [text for text in load.report.wrong if ": 0 " not in text] + after.wrong
    found = f"exit code {code} in the middle of {counts}; starts again in {seconds:.1f} s, and ends with {ended}"
    return f"{how.name}: {found}; wrong: {wrong}"


async def _interrupted(server: Server, load: Load, how: signal.Signals) -> int:
    asking = asyncio.ensure_future(load.run(10**6))
    await asyncio.sleep(3)
    code = await asyncio.to_thread(server.stop, how)
    with suppress(OSError):
        await asyncio.wait_for(asking, 30)
    return code


def simple(server: Server, net: tacit.Network) -> Section:
    """One client, and many, that ask the posterior of a variable given three findings; in turns."""
    section = Section(
        f"1. A variable given {keep_alive.FINDINGS} findings, connections kept",
        f"1 client: p50 at most {P50:g} ms, p99 at most {P99:g} ms; {AT_ONCE} clients: {PER_SECOND:,} answers/s",
        ["clients", "p50, ms", "p99, ms", "answers/s", "best round", "processor time of an answer, ms", "verdict"],
    )
    asked = keep_alive.questions(net, widest_root(net))
    before = os.getloadavg()[0]
    keep_alive.ask(server.port, asked, AT_ONCE, SECONDS)
    rounds: dict[int, list[tuple[keep_alive.Asked, float]]] = {1: [], AT_ONCE: []}
    for _ in range(ROUNDS):
        for clients, found in rounds.items():
            used = server.seconds()
            one = keep_alive.ask(server.port, asked, clients, SECONDS)
            found.append((one, 1000 * (server.seconds() - used) / len(one.latencies)))
    for clients, found in rounds.items():
        rates, used = [one.rate for one, _ in found], min(used for _, used in found)
        p50, p99 = (statistics.median(one.percentile(percent) for one, _ in found) for percent in (50, 99))
        rate, wrong = statistics.median(rates), [text for one, _ in found for text in one.wrong]
        kept = rate >= PER_SECOND if clients > 1 else p50 <= P50 and p99 <= P99
        section.add(clients, f"{p50:.2f}", f"{p99:.1f}", f"{rate:,.0f}", f"{max(rates):,.0f}", f"{used:.2f}",
                    at_least(kept and not wrong, True))  # fmt: skip
        section.notes += [repr(text) for text in wrong[:3]]
    section.notes.append(
        f"Medians of {ROUNDS} rounds of {SECONDS:g} seconds, in turns; the processor time is the server's, in the best "
        f"round. Before the first, the load average was {before:.1f}."
    )
    return section


def survival(model: Path, net: tacit.Network) -> Section:
    """A server that is ended while it is asked."""
    title, bar = "3. Ended in the middle", "all answers are right, also those of a server that is started again"
    section = Section(title, bar, ["signal", "what happened", "verdict"])
    for how in (signal.SIGKILL, signal.SIGTERM):
        found = killed(model, net, how)
        section.add(how.name, found.removeprefix(f"{how.name}: "), at_least(found.endswith("wrong: []"), True))
    return section


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless the number of requests is given."""
    count = int(arguments[0]) if arguments else REQUESTS
    net, sections = network("alarm"), []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "alarm.json"
        tacit.save(net, model)
        with Server(model) as server:
            sections.append(simple(server, net))
        with Server(model) as server:
            report, memory = loaded(server, net, count)
            sections.append(report.section(count, memory))
            print(f"exit code {server.stop()}", flush=True)
        sections.append(survival(model, net))
    print("\n".join(section.text() for section in sections))
    print("\n".join(missed(sections)))
    if not arguments:
        write(PAGE, "Benchmark: tacit serve", INTRO, sections)
