"""What a page shows in place of a network's own names: labels, groups, a title; from a small TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.base.errors import TacitError
from tacit.model.model import Model
from tacit.views.words import Words

KEYS = ("title", "query", "state", "decide", "never_ask", "variables")
VARIABLE_KEYS = ("label", "group", "states")


@dataclass(frozen=True)
class Captions:
    """How a network is shown: a title, the variable of interest, and captions of variables.

    Read from a TOML file, in which everything may be left out:

        title = "Patient monitoring"
        query = "LVFAILURE"
        state = "TRUE"  # of the query: the one that the page explains first
        decide = "TREATMENT"  # of a network with value nodes: the page says which action is best
        never_ask = ["HYPOVOLEMIA"]  # what nobody can observe: "Ask next" leaves it out

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
    state: str | None = None
    never_ask: frozenset[str] = frozenset()
    decide: str | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str], net: Model) -> Captions:
        """The captions in a file, checked against the network."""
        try:
            with open(path, "rb") as file:
                return cls.of(tomllib.load(file), net)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TacitError(f"{os.fspath(path)}: not a TOML file: {error}") from None
        except TacitError as error:
            raise TacitError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def chosen(
        cls,
        net: Model,
        given: str | os.PathLike[str] | Mapping[str, str] | Captions | None,
        query: str | None,
        decide: str | None = None,
    ) -> Captions:
        """Those of a file or a mapping from variables to names, with what was asked for, if anything was."""
        if given is None or isinstance(given, Captions):
            captions = given or cls()
        elif isinstance(given, str | os.PathLike):
            captions = cls.read(given, net)
        else:
            captions = cls(labels=Words.of(net, given).labels)
        captions = captions if query is None else captions._asking(net.variable(query).name)
        return captions if decide is None else replace(captions, decide=net.variable(decide).name)

    def _asking(self, query: str) -> Captions:
        """The same with a query; a state of another one is forgotten."""
        return replace(self, query=query, state=self.state if query == self.query else None)

    @classmethod
    def of(cls, data: Mapping[str, Any], net: Model) -> Captions:
        """Captions from plain data, checked against the network."""
        variables = _table(_table(data, "a file of captions", KEYS).get("variables", {}), "variables")
        labels, groups, states = {}, {}, {}
        for name, table in variables.items():
            where = f"variables.{name}"
            variable = net.variable(name)  # an error where there is none
            captions = _table(table, where, VARIABLE_KEYS)
            if "label" in captions:
                labels[name] = _text(captions["label"], f"{where}.label")
            if "group" in captions:
                groups[name] = _text(captions["group"], f"{where}.group")
            if "states" in captions:
                states[name] = _states(captions["states"], [str(s) for s in variable.states], f"{where}.states")
        query = None if "query" not in data else net.variable(_text(data["query"], "query")).name
        title = None if "title" not in data else _text(data["title"], "title")
        never_ask = frozenset(_names(data.get("never_ask", []), net, "never_ask"))
        decide = None if "decide" not in data else net.variable(_text(data["decide"], "decide")).name
        return cls(title, query, labels, groups, states, _state(data, net, query), never_ask, decide)


def _state(data: Mapping[str, Any], net: Model, query: str | None) -> str | None:
    """The state of the query that is explained first, if one is named."""
    if "state" not in data:
        return None
    if query is None:
        raise TacitError("state is named without a query; expected query, too")
    state, states = _text(data["state"], "state"), [str(own) for own in net.states(query)]
    if state not in states:
        raise TacitError(f"state is {state!r}, expected one of {', '.join(map(repr, states))}, the states of {query!r}")
    return state


def _names(value: Any, net: Model, where: str) -> list[str]:
    if not isinstance(value, list):
        raise TacitError(f"{where} is {value!r}, expected a list of variables")
    return [net.variable(_text(name, where)).name for name in value]


def _states(value: Any, states: list[str], where: str) -> dict[str, str]:
    texts = _table(value, where)
    for state in texts:
        if state not in states:
            raise TacitError(f"{where}: {state!r} is not a state; expected one of {', '.join(map(repr, states))}")
    return {state: _text(text, f"{where}.{state}") for state, text in texts.items()}


def _table(value: Any, where: str, keys: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """A table, with none but these keys, if they are named."""
    if not isinstance(value, Mapping):
        raise TacitError(f"{where} is {value!r}, expected a table")
    for key in value:
        if keys and key not in keys:
            raise TacitError(f"{key!r} is not known in {where}; expected {', '.join(keys)}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TacitError(f"{where} is {value!r}, expected some text")
    return value
