"""Names and labels in UAI files: a comment of ours at the end, where programs that know no comments stopped reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import NamedTuple

from tacit.errors import FormatError, TacitError
from tacit.factor_graph import FactorGraph
from tacit.io.extension import encode
from tacit.io.json import parse_json
from tacit.io.scanner import fault, show
from tacit.io.wordlist import Words
from tacit.model import SELECTIONS, Model
from tacit.plain import Reader
from tacit.variable import Label, variable

MAX_NUMBER = 10**18  # of a variable or state
COMMENT = re.compile(r"#[^\n]*")
_OURS = re.compile(r"^# tacit (.*)$", re.MULTILINE)


class Called(NamedTuple):
    """A variable in our comment; elsewhere a file only has the number."""

    number: int
    name: str
    states: list[Label]


class Comment(NamedTuple):
    """Our comment: the network's name and selection, as properties, and its variables in order."""

    properties: dict[str, str]
    variables: list[Called]


def comment_of(words: Words) -> Comment:
    """What our comment says; nothing, if there is none."""
    match = _OURS.search(words.text)
    if match is None:
        return Comment({}, [])
    try:
        said = Reader(parse_json(match[1]), "comment")
        items = [Reader(item, f"variables[{i}]") for i, item in enumerate(said.get("variables", list))]
        called = [Called(item.get("number", int), item.get("name", str), item.get("states", list)) for item in items]
        for item in called:
            if not 0 <= item.number < MAX_NUMBER:
                raise FormatError(f"{show(item.number)} is not the number of a variable")
            if item.states:
                variable(item.name, item.states)
        return Comment(_properties(said), called)
    except TacitError as error:
        place = words.place_of(match.start(), words.text.count("\n", 0, match.start()))
        raise fault(words.source, place, f"the comment '# tacit': {error}") from None


def _properties(said: Reader) -> dict[str, str]:
    properties = {"tacit_name": encode(said.get("name", str, NoneType))}
    selection = said.get("selection", str, NoneType)
    if selection is None:
        return properties
    if selection not in SELECTIONS:
        raise FormatError(f"comment.selection is {show(selection)}, expected {' or '.join(map(repr, SELECTIONS))}")
    return properties | {"tacit_selection": encode(selection)}


def file_numbers(names: Iterable[str]) -> dict[str, int]:
    """The number of each variable in a file: that of its name if all are called x0, x1, ..., else its position."""
    order = list(names)
    plain = {f"x{i}": i for i in range(len(order))}
    return plain if plain.keys() == set(order) else {name: i for i, name in enumerate(order)}


def names_comment(net: Model | FactorGraph, numbers: Mapping[str, int]) -> str:
    """Our comment on a network: which evidence its testing nodes would see is said where it is not ancestral alone."""
    called = [Called(numbers[name], name, list(net.states(name)))._asdict() for name in net]
    selection = {"selection": net.selection} if isinstance(net, Model) and net.selection != "ancestral" else {}
    return "# tacit " + json.dumps({"name": net.name, **selection, "variables": called})
