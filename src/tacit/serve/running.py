"""A server on this machine: from the address to listen at, to the end."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from tacit.errors import TacitError
from tacit.explorer import Captions
from tacit.network import Network
from tacit.serve.asgi import application
from tacit.serve.limits import Limits
from tacit.serve.protocol import protocol

WILD = ("", "0.0.0.0", "::")


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
        started(_address(host, listening.getsockname()[1]))
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
        raise TacitError(f"{host!r} is no address to listen at: {reason}") from None
    # Connections inherit it. Without it, the body of an answer waits 40 ms until the client confirms the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _address(host: str, port: int) -> str:
    name = socket.gethostname() if host in WILD else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


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
