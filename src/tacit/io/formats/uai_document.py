"""The layout of UAI files, and names and labels in a comment of ours at the end.

Programs that know no comments have stopped reading there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import NamedTuple

import numpy as np

from tacit.base.errors import FormatError, TacitError
from tacit.base.floats import Floats
from tacit.io.parsing.content import parse_json
from tacit.io.parsing.extension import encode, table_rows
from tacit.io.parsing.scanner import fault, show
from tacit.io.parsing.wordlist import Words
from tacit.model.as_dict import Reader
from tacit.model.factor_graph import FactorGraph
from tacit.model.model import SELECTIONS, Model
from tacit.model.variable import Label, variable

MAX_NUMBER = 10**18  # of a variable or state
_OURS = re.compile(r"^# tacit (.*)$", re.MULTILINE)


class NumberedVariable(NamedTuple):
    """A variable in our comment; elsewhere a file only has the number."""

    number: int
    name: str
    states: list[Label]


class Comment(NamedTuple):
    """Our comment: the network's name and selection, as properties, and its variables in order."""

    properties: dict[str, str]
    variables: list[NumberedVariable]


def comment_of(words: Words) -> Comment:
    """What our comment says; nothing, if there is none."""
    match = _OURS.search(words.text)
    if match is None:
        return Comment({}, [])
    try:
        comment = Reader(parse_json(match[1]), "comment")
        variables = []
        for i, data in enumerate(comment.get("variables", list)):
            item = Reader(data, f"variables[{i}]")
            variables.append(NumberedVariable(item.get("number", int), item.get("name", str), item.get("states", list)))
        for number, name, states in variables:
            if not 0 <= number < MAX_NUMBER:
                raise FormatError(f"{show(number)} is not the number of a variable")
            if states:
                variable(name, states)
        properties = {"tacit_name": encode(comment.get("name", str, NoneType))}
        selection = comment.get("selection", str, NoneType)
        if selection is not None:
            if selection not in SELECTIONS:
                options = " or ".join(map(repr, SELECTIONS))
                raise FormatError(f"comment.selection is {show(selection)}, expected {options}")
            properties["tacit_selection"] = encode(selection)
        return Comment(properties, variables)
    except TacitError as error:
        place = words.place_of(match.start(), words.text.count("\n", 0, match.start()))
        raise fault(words.source, place, f"the comment '# tacit': {error}") from None


def file_numbers(names: Iterable[str]) -> dict[str, int]:
    """The number of each variable in a file: that of its name if all are called x0, x1, ..., else its position."""
    order = list(names)
    plain = {f"x{i}": i for i in range(len(order))}
    return plain if plain.keys() == set(order) else {name: i for i, name in enumerate(order)}


def document(kind: str, net: Model | FactorGraph, scopes: Sequence[Sequence[str]], tables: Iterable[Floats]) -> str:
    """A network as a UAI document, by the variables of its tables, the tables, and our comment."""
    numbers = file_numbers(net)
    order = sorted(net, key=numbers.__getitem__)
    lines = [kind, str(len(order)), " ".join(str(len(net.states(name))) for name in order), str(len(scopes))]
    lines += [" ".join(map(str, [len(scope), *(numbers[name] for name in scope)])) for scope in scopes]
    for table in tables:
        lines += ["", str(table.size), *(f" {row}" for row in table_rows(np.atleast_1d(table)))]
    return "\n".join([*lines, "", our_comment(net, numbers), ""])


def our_comment(net: Model | FactorGraph, numbers: Mapping[str, int]) -> str:
    """Our comment on a network: which evidence its testing nodes would see is said where it is not ancestral alone."""
    variables = [NumberedVariable(numbers[name], name, list(net.states(name)))._asdict() for name in net]
    selection = {"selection": net.selection} if isinstance(net, Model) and net.selection != "ancestral" else {}
    return "# tacit " + json.dumps({"name": net.name, **selection, "variables": variables})
