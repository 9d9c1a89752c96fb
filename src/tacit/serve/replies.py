"""Responses: JSON that any program reads, and why a request is refused."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

RETRY_AFTER = 1  # seconds
MAX_MESSAGE = 2_000  # characters, since some messages repeat their subject
ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class RefusedError(Exception):
    """A request that is not answered; the message goes to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BusyError(RefusedError):
    """A request that may be answered later."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)


def encoded(data: Any) -> bytes:
    """Data as JSON. NaN is an error, and only ASCII is left unescaped, since half a surrogate pair has no UTF-8."""
    return ENCODER.encode(data).encode("ascii")


def answer(content: bytes) -> Response:
    """A response of JSON."""
    return Response(content, media_type="application/json")


def refused(status: int, message: str, allow: str | None = None) -> Response:
    """A response that tells why there is no answer."""
    headers = {"Allow": allow} if allow else {}
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER)
    return Response(encoded({"error": message[:MAX_MESSAGE]}), status, headers, "application/json")
