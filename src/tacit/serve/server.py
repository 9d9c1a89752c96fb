"""A server on this machine, from the address to listen at to the end.

HTTP is uvicorn's, with a limit for what uvicorn waits for without end: the head of a request, the rest of one that was
refused, and a client that does not take its answer.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.base.errors import TacitError
from tacit.query.network import Network
from tacit.serve.asgi import application
from tacit.serve.limits import Limits
from tacit.serve.replies import RETRY_AFTER
from tacit.views.page import Captions

ALL_HOSTS = ("", "0.0.0.0", "::")
TOO_MANY_CLIENTS = (
    f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
).encode("ascii")


def serve(
    net: Network,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    captions: Captions | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Answer requests about a network until a signal to stop comes; requests that are being answered are finished.

    Parameters
    ----------
    net
        The network.
    host, port
        The address to listen at; port 0 takes any that is free.
    limits
        How much to take on; see `Limits`.
    captions
        What the page shows in place of the network's own names.
    started
        Is told the address of the page as soon as it can be reached.
    """
    bounds = limits or Limits()
    app = application(net, bounds, captions, host)
    listening = _listening(host, port)
    config = uvicorn.Config(
        app,
        http=protocol(bounds),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(bounds.seconds)),
    )
    with listening, _ending_quietly():
        name = socket.gethostname() if host in ALL_HOSTS else host
        started(f"http://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    """A socket, so that what is wrong with the address is known at once."""
    if not 0 <= port < 2**16:
        raise TacitError(f"port {port} does not exist; expected 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise TacitError(f"port {port} is in use; choose another, or 0 for any that is free (--port)") from None
        if error.errno == errno.EACCES:
            raise TacitError(f"port {port} is reserved for the system; choose one from 1024 on (--port)") from None
        reason = error.strerror or str(error)
        raise TacitError(f"{host!r} is not an address to listen at: {reason}") from None
    # Connections inherit it. Without it, the body of an answer waits 40 ms until the client confirms the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@contextmanager
def _ending_quietly() -> Iterator[None]:
    """Ignore the signals to stop that uvicorn raises once more when it has stopped."""
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda *_: None) for each in stopping]
    try:
        yield
    finally:
        for each, handler in zip(stopping, before, strict=True):
            signal.signal(each, handler)


class Timer:
    """Calls a function after some seconds, unless it is stopped."""

    def __init__(self, seconds: float, then: Callable[[], None]) -> None:
        self._seconds, self._then = seconds, then
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start, unless it runs already."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(self._seconds, self._then)

    def stop(self) -> None:
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
            transport.write(TOO_MANY_CLIENTS)
            transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_requests()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._time_requests()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._awaited.stop()
        self._untaken.stop()

    def pause_writing(self) -> None:
        """The client takes no more for now."""
        super().pause_writing()
        self._left = self.transport.get_write_buffer_size()
        self._untaken.start()

    def resume_writing(self) -> None:
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

    def _time_requests(self) -> None:
        """Run the timer while a request is awaited."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._awaited.stop()
        else:
            self._awaited.start()


def protocol(limits: Limits) -> type[TimedProtocol]:
    """The protocol with its limits."""
    return type("Protocol", (TimedProtocol,), {"limits": limits})
