"""The UAI format of the inference competitions: Bayesian networks (`BAYES`), Markov networks (`MARKOV`), evidence.

A network is numbers only: cardinalities, and for each node the numbers of its parents, then its own, and its table
(own states vary fastest, then those of the last parent); of a Markov network, the variables and the table of each
factor. Variables read from such a file are called x0, x1, ..., and their states are the integers from 0. A file that
tacit wrote ends in a comment with names and labels, and with the network's `selection` if it is not ancestral, where
programs that know no comments have stopped reading.

UAI cannot hold testing CPTs and numbers to be learned: these are errors. Factored CPTs are written out, and come back
as tables; `learn` and `tie` are not kept.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import NamedTuple

import numpy as np

from tacit.base.errors import EvidenceError, FormatError, TacitError
from tacit.base.text import large, plural
from tacit.evidence.codes import MISSING
from tacit.evidence.read import EvidenceLike, read
from tacit.io.parsing.content import decoded, parse_json, read_bytes, write_text
from tacit.io.parsing.draft import MAX_PARENTS, Declared, Draft, build, stem
from tacit.io.parsing.extension import decode, encode, plain_table, table_rows
from tacit.io.parsing.scanner import fault, show
from tacit.io.parsing.wordlist import Words
from tacit.model.as_dict import Reader
from tacit.model.elements.variable import Label, variable
from tacit.model.factor_graph import MAX_SCOPE, FactorGraph
from tacit.model.model import SELECTIONS
from tacit.query.network import Network

MAX_CELLS = 2**24  # of evidence: every variable observed has one in every row
MAX_NUMBER = 10**18  # of a variable or state
_COMMENT = re.compile(r"#[^\n]*")
_OURS = re.compile(r"^# tacit (.*)$", re.MULTILINE)


class NumberedVariable(NamedTuple):
    """A variable in our comment; elsewhere a file only has the number."""

    number: int
    name: str
    states: list[Label]


def parse(data: bytes, source: str) -> Network | FactorGraph:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    words = Words(decoded(data), source, _COMMENT)
    kind = words.take()
    if kind not in ("BAYES", "MARKOV"):
        raise words.error(f"{show(kind)} is neither 'BAYES' nor 'MARKOV', with which UAI networks begin")
    return build(_draft(words)) if kind == "BAYES" else _factor_graph(words)


def read_evidence(path: str | os.PathLike[str]) -> dict[str, list[Label | None]]:
    """Read a UAI evidence file: for each variable observed, its state in every row, or None.

    Both layouts are read: the number of rows, then each row on its line; or one row alone. A row is the number of
    variables observed, then number and state of each.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.evid"
    >>> _ = path.write_text("2\\n1 0 1\\n2 0 0 3 1\\n")
    >>> read_evidence(path)
    {'x0': [1, 0], 'x3': [None, 1]}
    """
    words = Words(decoded(read_bytes(path)), os.fspath(path), _COMMENT)
    by_number = {item.number: item for item in _comment(words)[1]}
    observed = _rows(words)
    count = len({number for row in observed for number in row})
    if count * len(observed) > MAX_CELLS:
        problem = f"{plural(len(observed), 'row')} on {plural(count, 'variable')}"
        raise words.error(f"{problem} make {large(count * len(observed))} cells (limit {MAX_CELLS:,})", 0)
    columns: dict[str, list[Label | None]] = {}
    for i, row in enumerate(observed):
        for number, state in row.items():
            item = by_number.get(number)
            if item is not None and state >= len(item.states):
                has = plural(len(item.states), "state")
                raise words.error(f"row {i}: {show(item.name)} has no state {state}; it has {has}", 0)
            name = f"x{number}" if item is None else item.name
            if name not in columns:
                columns[name] = [None] * len(observed)
            columns[name][i] = state if item is None else item.states[state]
    return columns


def parse_evidence(data: bytes, source: str, net: Network | FactorGraph) -> dict[str, Label]:
    """What an evidence file of one row says of a network: the state of each variable observed."""
    words = Words(decoded(data), source, _COMMENT)
    rows = _rows(words)
    if len(rows) > 1:
        problem = f"{len(rows):,} rows of evidence, expected one; tacit.io.formats.uai.read_evidence reads all of them"
        raise words.error(problem, 0)
    names = {item.number: item.name for item in _comment(words)[1]}
    names = names or {number: name for name, number in _file_numbers(net).items()}
    states: dict[str, Label] = {}
    first = len(words) - 2 * len(rows[0])  # the word that is the number of the first variable
    for at, (number, state) in zip(itertools.count(first, 2), rows[0].items(), strict=False):
        if number not in names or names[number] not in net:
            raise words.error(f"the network has no variable with the number {number:,}", at)
        name = names[number]
        if state >= (card := net.variable(name).card):
            raise words.error(f"{show(name)} has no state {state:,}; it has {plural(card, 'state')}", at + 1)
        states[name] = net.states(name)[state]
    return states


def write_evidence(net: Network | FactorGraph, evidence: EvidenceLike, path: str | os.PathLike[str]) -> None:
    """Write hard evidence on a network's variables, by their numbers in its UAI file, atomically.

    One row is written alone, more after their number, as `read_evidence` describes.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.evid"
    >>> write_evidence(tacit.examples.abc(), {"A": ["true", None], "C": ["hi", "lo"]}, path)
    >>> read_evidence(path)
    {'A': ['true', None], 'C': ['hi', 'lo']}
    """
    checked = read(evidence, [net.variable(name) for name in net])
    observed: list[list[str]] = [[] for _ in range(checked.rows)]
    numbers = _file_numbers(net)
    for name, column in checked.columns.items():
        if column.codes is None:
            raise EvidenceError(f"evidence on {name!r} is soft; UAI evidence files hold states only")
        for row, code in zip(observed, np.broadcast_to(column.codes, checked.rows).tolist(), strict=True):
            if code != MISSING:
                row.append(f"{numbers[name]} {code}")
    count = [str(checked.rows)] if checked.rows > 1 else []
    lines = [*count, *(" ".join([str(len(row)), *row]) for row in observed)]
    write_text("\n".join([*lines, _our_comment(net, numbers), ""]), path)


def _draft(words: Words) -> Draft:
    """What a file says of a Bayesian network, after its first word."""
    draft, first, cards = Draft(words.source), words.at + 1, words.cards()
    count = len(cards)
    if words.integer("the number of CPTs in the file", len(words)) != count:
        raise words.error(f"{words[words.at - 1]} CPTs, expected {count}: one per variable")
    scopes = [_scope(words, count) for _ in range(count)]
    for *parents, own in scopes:
        start, numbers = words.table([cards[number] for number in (*parents, own)], f"x{own}'s table")
        draft.define(f"x{own}", words.defined(start, [f"x{number}" for number in parents], numbers, cards[own]))
    words.end_tables(len(words))
    draft.properties, variables = _comment(words)
    names = {item.number: {"tacit_name": item.name, "tacit_states": item.states} for item in variables}
    names = names or {number: {} for number in range(count)}
    if sorted(names) != list(range(count)):
        raise words.error("the comment '# tacit' names other variables than the file has", 0)
    for number, properties in names.items():  # in the order of our comment, if there is one
        place = words.place(first + number)
        draft.declare(f"x{number}", Declared(place, range(cards[number]), decoded=properties))
    return draft


def _scope(words: Words, count: int) -> list[int]:
    """The numbers of a node's parents, then its own."""
    size = words.integer("the number of variables of a CPT", count + 1, least=1)
    if size > 1 + MAX_PARENTS:
        raise words.error(f"a CPT with {size - 1:,} parents; at most {MAX_PARENTS} are read")
    return words.integers(size, f"a variable; expected a number below {count}", count)


def _factor_graph(words: Words) -> FactorGraph:
    """The Markov network in a file, after its first word."""
    cards = words.cards()
    scopes = [_factor_scope(words, len(cards)) for _ in range(words.count("factors"))]
    properties, variables = _comment(words)
    variables = variables or [NumberedVariable(i, f"x{i}", list(range(card))) for i, card in enumerate(cards)]
    if sorted((item.number, len(item.states)) for item in variables) != list(enumerate(cards)):
        raise words.error("the comment '# tacit' names other variables or states than the file has", 0)
    graph = FactorGraph(decode(properties["tacit_name"]) if properties else stem(words.source))
    try:
        for item in variables:
            graph.add(item.name, item.states)
    except TacitError as error:
        raise words.error(f"the comment '# tacit': {error}", 0) from None
    names = {item.number: item.name for item in variables}
    for i, scope in enumerate(scopes):
        shape = [cards[number] for number in scope]
        start, numbers = words.table(shape, f"the table of factor {i}")
        for at in np.flatnonzero(~((numbers >= 0) & np.isfinite(numbers)))[:1].tolist():
            raise words.error(f"factor {i} holds {numbers[at]:g}, expected a finite number >= 0", start + at)
        graph.add_factor([names[number] for number in scope], numbers.reshape(shape))
    words.end_tables(len(words))
    return graph


def _factor_scope(words: Words, count: int) -> list[int]:
    size = words.integer("the number of variables of a factor", count + 1)
    if size > MAX_SCOPE:
        raise words.error(f"a factor with {size:,} variables; at most {MAX_SCOPE} are read")
    scope = words.integers(size, f"a variable; expected a number below {count}", count)
    if len(set(scope)) < size:
        raise words.error("a factor names a variable twice")
    return scope


def _comment(words: Words) -> tuple[dict[str, str], list[NumberedVariable]]:
    """What our comment says: the network's name and selection, as properties, and its variables in order."""
    match = _OURS.search(words.text)
    if match is None:
        return {}, []
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
        return properties, variables
    except TacitError as error:
        place = words.place_of(match.start(), words.text.count("\n", 0, match.start()))
        raise fault(words.source, place, f"the comment '# tacit': {error}") from None


def _file_numbers(names: Iterable[str]) -> dict[str, int]:
    """The number of each variable in a file: that of its name if all are called x0, x1, ..., else its position."""
    order = list(names)
    plain = {f"x{i}": i for i in range(len(order))}
    return plain if plain.keys() == set(order) else {name: i for i, name in enumerate(order)}


def _rows(words: Words) -> list[dict[int, int]]:
    """The rows of an evidence file, as states by the numbers of the variables."""
    numbers = words.integers(len(words), "a number of a variable or state", MAX_NUMBER)
    if not numbers:
        raise words.error("the file is empty; expected evidence", 0)
    rows = _split(numbers, words.line_lengths())
    if rows is None:
        problem = "the counts do not fit the numbers that follow; expected rows of count, variable, state, ..."
        raise words.error(problem, 0)
    observed = [dict(zip(row[1::2], row[2::2], strict=True)) for row in rows]
    for i, row in enumerate(rows):
        if len(observed[i]) < row[0]:
            raise words.error(f"row {i} observes a variable twice", 0)
    return observed


def _split(numbers: list[int], lengths: list[int]) -> list[list[int]] | None:
    """The numbers of an evidence file as rows, each with its count; None if they do not add up.

    "2 0 1 3 1" may be two observations, or two rows of which the first is empty: the lines decide.
    """
    if lengths[0] == 1 and numbers[0] == len(lengths) - 1 > 0:
        starts = list(itertools.accumulate(lengths))
        rows = [numbers[start:stop] for start, stop in itertools.pairwise(starts)]
        if all(len(row) == 1 + 2 * row[0] for row in rows):
            return rows
    if len(numbers) == 1 + 2 * numbers[0]:
        return [numbers]
    rows, at = [], 1
    while at < len(numbers):
        rows.append(numbers[at : at + 1 + 2 * numbers[at]])
        at += 1 + 2 * numbers[at]
    return rows if at == len(numbers) and len(rows) == numbers[0] else None


def compose(net: Network | FactorGraph) -> str:
    """A network as a UAI document."""
    numbers = _file_numbers(net)
    order = sorted(net, key=numbers.__getitem__)
    if isinstance(net, FactorGraph):
        kind, scopes = "MARKOV", [factor.variables for factor in net.factors]
        tables = [factor.table for factor in net.factors]
    else:
        kind, scopes = "BAYES", [(*net.parents(name), name) for name in order]
        tables = [plain_table(net, name, "UAI") for name in order]
    lines = [kind, str(len(order)), " ".join(str(len(net.states(name))) for name in order), str(len(scopes))]
    lines += [" ".join(map(str, [len(scope), *(numbers[name] for name in scope)])) for scope in scopes]
    for table in tables:
        lines += ["", str(table.size), *(f" {row}" for row in table_rows(np.atleast_1d(table)))]
    return "\n".join([*lines, "", _our_comment(net, numbers), ""])


def _our_comment(net: Network | FactorGraph, numbers: Mapping[str, int]) -> str:
    """Our comment on a network: its name, its selection if that is not ancestral, and its variables."""
    variables = [NumberedVariable(numbers[name], name, list(net.states(name)))._asdict() for name in net]
    selection = {"selection": net.selection} if isinstance(net, Network) and net.selection != "ancestral" else {}
    return "# tacit " + json.dumps({"name": net.name, **selection, "variables": variables})
