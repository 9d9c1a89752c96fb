"""Responses: JSON that any program reads, and why a request is refused."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

RETRY_AFTER = 1  # seconds
MAX_MESSAGE = 2_000  # characters of a message: some repeat what they are about
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


def written(data: Any) -> bytes:
    """Data as JSON. NaN is an error, and all else than ASCII is escaped: half a surrogate pair has no UTF-8."""
    return ENCODER.encode(data).encode("ascii")


def answer(content: bytes) -> Response:
    """What was asked for."""
    return Response(content, media_type="application/json")


def refused(status: int, message: str, allow: str | None = None) -> Response:
    """Why there is no answer."""
    headers = {"Allow": allow} if allow else {}
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER)
    return Response(written({"error": message[:MAX_MESSAGE]}), status, headers, "application/json")
