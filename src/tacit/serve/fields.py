"""What a request says: JSON, checked as far as its form goes. What it means is checked where Python users' input is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.serve.refusal import RefusedError
from tacit.variable import Label

MOST_ENTRIES = 1_000  # of a sensitivity
LONGEST = 1_000  # characters of a name
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


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
        found = self._values.get("query")
        if isinstance(found, str):
            return _name(found, "query")
        if not isinstance(found, list) or not found:
            raise RefusedError(400, "query must be the name of a variable, or a list of names")
        return tuple(_name(name, "query") for name in found)

    @property
    def variables(self) -> tuple[str, ...] | None:
        """The variables that are wanted, if not all are."""
        found = self._optional("variables", list)
        return None if found is None else tuple(_name(name, "variables") for name in found)

    @property
    def rows(self) -> list[dict[str, Any]] | None:
        """Evidence by rows."""
        found: list[dict[str, Any]] | None = self._optional("rows", list)
        for i, row in enumerate(found or ()):
            if not isinstance(row, dict):
                raise RefusedError(400, f"rows[{i}] must be an object: variables with their values")
        return found

    @property
    def columns(self) -> dict[str, Any] | None:
        """Evidence by columns."""
        found: dict[str, Any] | None = self._optional("columns", dict)
        if found is not None and "rows" in self._values:
            raise RefusedError(400, "there are rows and columns; expected one of them")
        return found

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
    def state(self) -> Label | tuple[Label, ...] | None:
        """A state of the query; several for several variables."""
        found = self._values.get("state")
        for label in found if isinstance(found, list) else [found]:
            if isinstance(label, list | dict):
                raise RefusedError(400, "state must be a state of the query, or a list with one for each variable")
        return tuple(found) if isinstance(found, list) else found

    @property
    def top(self) -> int:
        """How many entries are wanted."""
        found = self._optional("top", int)
        if found is None:
            return 20
        if not 1 <= found <= MOST_ENTRIES:
            raise RefusedError(400, f"top must be a whole number from 1 to {MOST_ENTRIES:,}")
        return int(found)

    def _optional(self, name: str, kind: type) -> Any:
        found = self._values.get(name)
        if found is not None and type(found) is not kind:
            raise RefusedError(400, f"{name} must be {KINDS[kind]}")
        return found


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise RefusedError(400, "the JSON is nested too deeply") from None
    except ValueError as error:  # also of what is no UTF-8, and of whole numbers with thousands of digits
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RefusedError(400, "the body must be an object")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"an object has {_short(name)} twice")
        found[name] = value
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON; null is no evidence")


def _name(found: Any, where: str) -> str:
    if not isinstance(found, str) or len(found) > LONGEST:
        raise RefusedError(400, f"{where} must be names of variables, of at most {LONGEST:,} characters")
    return found


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."


def named(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Evidence whose names are names: very long ones would be looked for, and repeated in a message."""
    for name in values:
        _name(name, "evidence")
    return values
