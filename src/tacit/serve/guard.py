"""Checks of every request's host, and security headers for every response.

A page of another site cannot read answers, since there are no CORS headers; it cannot send JSON without asking first,
which is refused; and if its own name is made to point here, the name of the host is not one of ours.
"""

from __future__ import annotations

import ipaddress
import re
import socket

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.serve.replies import refused

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(\[(?P<address>[^\]]*)\]|(?P<name>[^:@\[\]]*))(:[0-9]*)?")
HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """An application behind checks, on a server that listens at `host`.

    Where that is not loopback, other machines may use its name, and addresses: only a name can be made to point
    to another machine, so numbers need no check.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app = app
        self.addresses = host not in LOOPBACK
        public = {host.lower(), socket.gethostname().lower()} if self.addresses else set()
        self.names = (LOOPBACK | public) - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                names = {name for name, _ in headers}
                message["headers"] = [*headers, *(header for header in HEADERS if header[0] not in names)]
            await send(message)

        host = Headers(scope=scope).get("host", "")
        name = host_name(host)
        allowed = name in self.names or (self.addresses and _is_address(name))
        app = self.app if allowed else refused(400, f"{host[:80]!r} is not a host of this server")
        await app(scope, receive, send_guarded)


def host_name(host: str) -> str:
    """The name in a Host header, without the port; none where it is something else.

    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("127.0.0.1"), host_name("127.0.0.1:80@evil.com")
    ('localhost', '::1', '127.0.0.1', '')
    """
    parts = HOST.fullmatch(host)
    return (parts["address"] or parts["name"] or "").lower() if parts else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
