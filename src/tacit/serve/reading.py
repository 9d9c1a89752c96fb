"""Bodies of requests, read no further and for no longer than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from tacit.serve.limits import Limits
from tacit.serve.refusal import BusyError, RefusedError


class Reading:
    """Reads bodies, and knows how many bytes of them are held."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request, held while this lasts."""
        self._require_json(request)
        taken = 0
        chunks = []
        try:
            try:
                async with asyncio.timeout(self.limits.reading):
                    async for chunk in request.stream():
                        taken += len(chunk)
                        self.held += len(chunk)
                        self._require_room(taken)
                        chunks.append(chunk)
            except TimeoutError:
                raise RefusedError(408, f"the request did not arrive within {self.limits.reading:g} seconds") from None
            yield b"".join(chunks)
        finally:
            self.held -= taken

    def _require_json(self, request: Request) -> None:
        """Nothing else is taken: browsers let any page send forms and text here, but not JSON."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedError(415, "the Content-Type must be application/json")
        length = request.headers.get("content-length", "")
        if length.isdigit():
            self._require_small(int(length))

    def _require_small(self, length: int) -> None:
        if length > self.limits.body:
            raise RefusedError(413, f"the request is larger than {self.limits.body:,} bytes; send several")

    def _require_room(self, taken: int) -> None:
        self._require_small(taken)
        if self.held > self.limits.bodies:
            raise BusyError("the server is busy: many large requests are waiting already")
