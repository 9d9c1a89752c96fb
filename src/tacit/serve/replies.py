"""Responses: JSON that any program reads, and refusals."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from tacit.serve.refusal import RETRY_AFTER

LONGEST = 2_000  # characters of a message: some repeat what they are about
ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


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
    return Response(written({"error": message[:LONGEST]}), status, headers, "application/json")
