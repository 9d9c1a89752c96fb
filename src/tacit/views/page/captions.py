"""What a page shows in place of a network's own names: labels, groups, a title; from a small TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.base.errors import TacitError
from tacit.model.model import Model

KEYS = ("title", "query", "variables")
OF_VARIABLES = ("label", "group", "states")


@dataclass(frozen=True)
class Captions:
    """How a network is shown: a title, the variable of interest, and captions of variables.

    Read from a TOML file, in which everything may be left out:

        title = "Patient monitoring"
        query = "LVFAILURE"

        [variables.CVP]
        label = "central venous pressure"
        group = "measurements"
        states = {LOW = "low", NORMAL = "normal", HIGH = "high"}
    """

    title: str | None = None
    query: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str], net: Model) -> Captions:
        """The captions in a file, checked against the network."""
        with open(path, "rb") as file:
            try:
                data = tomllib.load(file)
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise TacitError(f"{os.fspath(path)}: not a TOML file: {error}") from None
        try:
            return cls.of(data, net)
        except TacitError as error:
            raise TacitError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def of(cls, data: Mapping[str, Any], net: Model) -> Captions:
        """Captions from plain data, checked against the network."""
        _known(data, KEYS, "a file of captions")
        variables = _table(data.get("variables", {}), "variables")
        labels, groups, states = {}, {}, {}
        for name, own in variables.items():
            where = f"variables.{name}"
            variable = net.variable(name)  # an error where there is none
            _known(_table(own, where), OF_VARIABLES, where)
            if "label" in own:
                labels[name] = _text(own["label"], f"{where}.label")
            if "group" in own:
                groups[name] = _text(own["group"], f"{where}.group")
            if "states" in own:
                states[name] = _states(own["states"], [str(state) for state in variable.states], f"{where}.states")
        query = None if "query" not in data else net.variable(_text(data["query"], "query")).name
        return cls(None if "title" not in data else _text(data["title"], "title"), query, labels, groups, states)


def _states(given: Any, own: list[str], where: str) -> dict[str, str]:
    for state in _table(given, where):
        if state not in own:
            raise TacitError(f"{where}: {state!r} is not a state; expected one of {', '.join(map(repr, own))}")
    return {state: _text(text, f"{where}.{state}") for state, text in given.items()}


def _known(given: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in keys:
            raise TacitError(f"{key!r} is not known in {where}; expected {', '.join(keys)}")


def _table(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TacitError(f"{where} is {given!r}, expected a table")
    return given


def _text(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise TacitError(f"{where} is {given!r}, expected some text")
    return given
