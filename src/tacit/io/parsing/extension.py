"""What other formats cannot say of a network, in properties that other programs ignore.

A node is written with a name, labels and a table that any program can read. Where that is not all, properties tell
tacit the rest, each as JSON whose special characters are percent-encoded, so that no format's syntax is touched:

- `tacit_name`: the name, where the format cannot hold it (also the network's; `null` for none);
- `tacit_states`: the labels, where they are not strings or the format cannot hold them;
- `tacit_cpt`: the CPT as in our JSON format, where it is not a plain table of known numbers;
- `tacit_selection`: which evidence the testing nodes of the network see, where that is not ancestral evidence alone.
"""

from __future__ import annotations

import json as stdlib_json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from tacit.base.errors import FormatError, TooLargeError, UnsetError
from tacit.base.floats import Floats
from tacit.base.text import large
from tacit.io.parsing.content import parse_json
from tacit.model.as_dict import cpt_to_dict
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.elements.variable import Label
from tacit.model.rules import MAX_DENSE
from tacit.query.network import Network


@dataclass(frozen=True)
class Spelled:
    """A node in words and numbers that a format can hold, and properties that tell the rest."""

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    table: Floats
    properties: dict[str, str]


def spell(
    net: Network, fits_name: Callable[[str], bool], fits_state: Callable[[str], bool], plain: str = ""
) -> list[Spelled]:
    """The nodes of a network in words that pass the format's two tests; `plain` names one that holds only numbers."""
    names = dict(zip(net, _words(net, fits_name), strict=True))
    nodes = []
    for original, name in names.items():
        labels, cpt = net.states(original), net.cpt(original)
        states = tuple(_words(labels, fits_state))
        parents = tuple(names[parent] for parent in net.parents(original))
        table = plain_table(net, original, plain) if plain else visible_table(net, original)
        properties = {} if name == original else {"tacit_name": encode(original)}
        if states != labels:
            properties["tacit_states"] = encode(labels)
        if not plain and (not isinstance(cpt, CPT) or cpt.learn or cpt.tie is not None or np.isnan(cpt.table).any()):
            properties["tacit_cpt"] = encode(cpt_to_dict(cpt))
        nodes.append(Spelled(name, states, parents, table, properties))
    return nodes


def _words(labels: Iterable[Label], fits: Callable[[str], bool]) -> list[str]:
    """A word for each label, all different: the label itself where it fits, else one like it."""
    labels = list(labels)
    taken = {label for label in labels if isinstance(label, str) and fits(label)}
    words: list[str] = []
    for position, label in enumerate(labels):
        if not (isinstance(label, str) and label in taken):
            # of ASCII letters, digits and underscores
            like = re.sub(r"\W+", "_", unicodedata.normalize("NFKD", str(label)).encode("ascii", "ignore").decode())
            like = like if like[:1].isalpha() else f"_{like}"
            options = chain([str(label), like], (f"{like}_{i}" for i in count(position)))
            label = next(word for word in options if word not in taken and fits(word))
            taken.add(label)
        words.append(label)
    return words


def encode(value: Any) -> str:
    """A value as JSON of harmless characters.

    >>> encode([0, "a;b"])
    '[0, %22a%3Bb%22]'
    """
    text = stdlib_json.dumps(value, ensure_ascii=False, allow_nan=False)
    return quote(text, safe=" [],:.+-", errors="surrogatepass")


def decode(text: str) -> Any:
    """The value that `encode` was given."""
    try:
        return parse_json(unquote(text, errors="surrogatepass"))
    except UnicodeDecodeError:
        raise FormatError(f"{text[:40]!r} does not encode a text") from None


def spell_network(net: Network, fits_name: Callable[[str], bool]) -> tuple[str, dict[str, str]]:
    """A network's name, empty if it does not pass the test, and the properties that tell the rest."""
    name = net.name if net.name is not None and fits_name(net.name) else ""
    properties = {} if name else {"tacit_name": encode(net.name)}
    return name, properties if net.selection == "ancestral" else properties | {"tacit_selection": encode(net.selection)}


def visible_table(net: Network, name: str) -> Floats:
    """The table that other programs see: (parents..., own).

    That is `plus` of a testing CPT, the last of several tables, and the dense table of a factored one. Numbers to be
    learned get equal shares of what the known ones of their row leave.
    """
    cpt = net.cpt(name)
    table = cpt.tables[-1] if isinstance(cpt, TestingCPT) else _dense(net, name)
    learned = np.isnan(table)
    left = 1.0 - np.nansum(table, axis=-1, keepdims=True)
    return np.where(learned, left / np.maximum(learned.sum(axis=-1, keepdims=True), 1), table)


def plain_table(net: Network, name: str, form: str) -> Floats:
    """The table of a node for a format that holds numbers and nothing else."""
    if net.cpt(name).testing:
        raise FormatError(f"node {name!r} is testing, which {form} cannot hold; write .json, .xmlbif or .net")
    table = _dense(net, name)
    if np.isnan(table).any():
        remedy = "learn them (tacit.estimate, tacit.fit), or write .json, .xmlbif or .net"
        raise UnsetError(f"node {name!r} has unset numbers (NaN), which {form} cannot hold; {remedy}")
    return table


def _dense(net: Network, name: str) -> Floats:
    if net.variable(name).continuous:
        raise FormatError(f"node {name!r} has a density, which no format but JSON holds; write .json")
    entries = math.prod(len(net.states(n)) for n in (name, *net.parents(name)))
    if entries > MAX_DENSE and not isinstance(net.cpt(name), CPT):
        problem = f"node {name!r}: its table would have {large(entries)} entries (limit {MAX_DENSE:,})"
        raise TooLargeError(f"{problem}; write .json, which keeps the rule")
    return net.table(name)


def table_rows(table: Floats, separator: str = " ") -> list[str]:
    """The rows of a table as text, one distribution each."""
    return [separator.join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist()]
