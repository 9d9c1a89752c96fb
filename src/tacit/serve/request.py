"""The body of a request, within limits of size and time, and the form of its fields.

The meaning of the fields is checked by the same code as for Python's users.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request

from tacit.model.elements.variable import Label
from tacit.serve.limits import Limits
from tacit.serve.replies import BusyError, RefusedError

MAX_ENTRIES = 1_000  # of a sensitivity
MAX_NAME = 1_000  # characters of a name
MAX_SEED = 2**53  # beyond which JavaScript has no whole numbers
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


class Bodies:
    """Reads the bodies of requests, and counts the bytes of them that are held."""

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
                        self._require_small(taken)
                        if self.held > self.limits.bodies:
                            raise BusyError("the server is busy: many large requests are waiting already")
                        chunks.append(chunk)
            except TimeoutError:
                raise RefusedError(408, f"the request did not arrive within {self.limits.reading:g} seconds") from None
            yield b"".join(chunks)
        finally:
            self.held -= taken

    def _require_json(self, request: Request) -> None:
        """Refuse all else: browsers let any page send forms and text here, but not JSON."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedError(415, "the Content-Type must be application/json")
        length = request.headers.get("content-length", "")
        if length.isdigit():
            self._require_small(int(length))

    def _require_small(self, length: int) -> None:
        if length > self.limits.body:
            raise RefusedError(413, f"the request is larger than {self.limits.body:,} bytes; send several")


class Fields:
    """The fields of a request. Unknown ones are refused, and those of the wrong type when they are asked for."""

    def __init__(self, body: bytes, allowed: Sequence[str]) -> None:
        self._values = _parsed(body)
        for name in self._values:
            if name not in allowed:
                raise RefusedError(400, f"{_short(name)} is not a field of this request; expected {', '.join(allowed)}")

    @property
    def query(self) -> str | tuple[str, ...]:
        """The variable that is asked for, or several."""
        names = self._values.get("query")
        if isinstance(names, str):
            return checked_name(names, "query")
        if not isinstance(names, list) or not names:
            raise RefusedError(400, "query must be the name of a variable, or a list of names")
        return tuple(checked_name(name, "query") for name in names)

    @property
    def variables(self) -> tuple[str, ...] | None:
        """The variables that are wanted, if not all are."""
        names = self._optional("variables", list)
        return None if names is None else tuple(checked_name(name, "variables") for name in names)

    @property
    def rows(self) -> list[dict[str, Any]] | None:
        """Evidence by rows."""
        rows: list[dict[str, Any]] | None = self._optional("rows", list)
        for i, row in enumerate(rows or ()):
            if not isinstance(row, dict):
                raise RefusedError(400, f"rows[{i}] must be an object: variables with their values")
        return rows

    @property
    def columns(self) -> dict[str, Any] | None:
        """Evidence by columns."""
        columns: dict[str, Any] | None = self._optional("columns", dict)
        if columns is not None and "rows" in self._values:
            raise RefusedError(400, "there are rows and columns; expected one of them")
        return columns

    @property
    def do(self) -> dict[str, Label]:
        """The variables that are set, in every row, and their states."""
        states: dict[str, Label] = self._optional("do", dict) or {}
        for name, state in states.items():
            checked_name(name, "do")
            if state is None or isinstance(state, list | dict):
                raise RefusedError(400, "do must be an object: variables with the states that they are set to")
        return states

    @property
    def single(self) -> bool:
        """Whether the evidence is one row."""
        rows, columns = self.rows, self.columns
        if rows is not None:
            return len(rows) == 1
        return not any(isinstance(values, list) for values in (columns or {}).values())

    @property
    def tests(self) -> bool:
        """Whether to say how testing nodes were decided."""
        return bool(self._optional("tests", bool))

    @property
    def weights(self) -> bool:
        """Whether to say how the numbers of continuous variables are mixed."""
        return bool(self._optional("weights", bool))

    @property
    def state(self) -> Label | tuple[Label, ...] | None:
        """A state of the query; several for several variables."""
        state = self._values.get("state")
        for label in state if isinstance(state, list) else [state]:
            if isinstance(label, list | dict):
                raise RefusedError(400, "state must be a state of the query, or a list with one for each variable")
        return tuple(state) if isinstance(state, list) else state

    @property
    def n(self) -> int:
        """The number of samples to draw for each row."""
        count = self._optional("n", int)
        if count is not None and count < 1:
            raise RefusedError(400, "n must be a whole number, 1 or more")
        return 1 if count is None else int(count)

    @property
    def seed(self) -> int | None:
        """The seed of samples; None for any."""
        seed = self._optional("seed", int)
        if seed is not None and not 0 <= seed < MAX_SEED:
            raise RefusedError(400, f"seed must be a whole number from 0 to {MAX_SEED - 1:,}")
        return None if seed is None else int(seed)

    @property
    def top(self) -> int:
        """The number of entries to return."""
        count = self._optional("top", int)
        if count is not None and not 1 <= count <= MAX_ENTRIES:
            raise RefusedError(400, f"top must be a whole number from 1 to {MAX_ENTRIES:,}")
        return 20 if count is None else int(count)

    def _optional(self, name: str, kind: type) -> Any:
        value = self._values.get(name)
        if value is not None and type(value) is not kind:
            raise RefusedError(400, f"{name} must be {KINDS[kind]}")
        return value


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise RefusedError(400, "the JSON is nested too deeply") from None
    except ValueError as error:  # also of what is no UTF-8, and of whole numbers with thousands of digits
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise RefusedError(400, "the body must be an object")
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"an object has {_short(name)} twice")
        values[name] = value
    return values


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON; null is no evidence")


def checked_name(name: Any, where: str) -> str:
    """Refuse a very long name, which would be looked for, and repeated in a message."""
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise RefusedError(400, f"{where} must be names of variables, of at most {MAX_NAME:,} characters")
    return name


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."
