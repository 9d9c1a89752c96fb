"""HTTP by uvicorn, for clients that take their time: a limit for what uvicorn waits for without end.

That is the head of a request, the rest of one that was refused, and a client that does not take its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.serve.limits import Limits
from tacit.serve.refusal import RETRY_AFTER

FULL = (
    f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
).encode("ascii")


class Timer:
    """A time that can run, once at a time."""

    def __init__(self, seconds: float, then: Callable[[], None]) -> None:
        self._seconds, self._then = seconds, then
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Run, unless it runs already."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._seconds, self._then)

    def stop(self) -> None:
        """Do not run."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class TimedProtocol(H11Protocol):
    """A connection that is closed where its client is too slow."""

    limits: Limits  # of the class: uvicorn makes the instances

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has come; one too many is sent away."""
        super().connection_made(transport)
        self._awaited = Timer(self.limits.reading, transport.abort)  # while no request is being answered
        self._untaken = Timer(self.limits.reading, self._abort_unless_taken)  # while the client takes no more
        self._awaited.start()
        if len(self.connections) > self.limits.connections:
            transport.write(FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Something was sent."""
        super().data_received(data)
        self._mind()

    def on_response_complete(self) -> None:
        """A request was answered; there may be another one already."""
        super().on_response_complete()
        self._mind()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        super().connection_lost(exc)
        self._awaited.stop()
        self._untaken.stop()

    def pause_writing(self) -> None:
        """The client takes no more for now."""
        super().pause_writing()
        self._left = self.transport.get_write_buffer_size()
        self._untaken.start()

    def resume_writing(self) -> None:
        """The client takes more."""
        super().resume_writing()
        self._untaken.stop()

    def _abort_unless_taken(self) -> None:
        """Wait on for a client that has taken some of what was left."""
        left = self.transport.get_write_buffer_size()
        if left >= self._left:
            self.transport.abort()
            return
        self._left = left
        self._untaken.stop()
        self._untaken.start()

    def _mind(self) -> None:
        """Let the time run while a request is awaited."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._awaited.stop()
        else:
            self._awaited.start()


def protocol(limits: Limits) -> type[TimedProtocol]:
    """The protocol with its limits."""
    return type("Protocol", (TimedProtocol,), {"limits": limits})
