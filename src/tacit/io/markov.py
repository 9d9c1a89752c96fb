"""Markov networks in the UAI format: files that begin with MARKOV.

Cardinalities, the variables of each factor by their numbers, then the factors' tables, in which the last variable's
states vary fastest. Names are those of `uai.py`: x0, x1, ..., unless our comment tells others.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import FormatError, TacitError
from tacit.factor_graph import MAX_SCOPE, FactorGraph
from tacit.floats import Floats
from tacit.io.content import check_nodes
from tacit.io.draft import stem
from tacit.io.extension import decode
from tacit.io.scanner import show
from tacit.io.uai_names import Called, comment_of, file_numbers, names_comment
from tacit.io.wordlist import Words, as_integer
from tacit.words import large


def graph_of(words: Words) -> FactorGraph:
    """The graph in a file, whose first word was read."""
    most = len(words)  # whatever a count counts is in the file
    count = words.integer("the number of variables in the file", most)
    _check_count(words, count)
    cards = words.integers(count, "the number of a variable's states", most, least=1)
    factors = words.integer("the number of factors in the file", most)
    _check_count(words, factors)
    scopes = [_scope(words, count) for _ in range(factors)]
    graph, names = _variables(words, cards)
    for number, scope in enumerate(scopes):
        table = _table(words, number, [cards[v] for v in scope])
        graph.add_factor([names[v] for v in scope], table)
    if words.at < most:
        raise words.error(f"unexpected {show(words.take())} after the last table")
    return graph


def _check_count(words: Words, count: int) -> None:
    try:
        check_nodes(count)
    except FormatError as error:
        raise words.error(str(error)) from None


def _scope(words: Words, count: int) -> list[int]:
    """The numbers of a factor's variables."""
    size = words.integer("the number of variables of a factor", count + 1)
    if size > MAX_SCOPE:
        raise words.error(f"a factor with {size:,} variables; at most {MAX_SCOPE} are read")
    scope = words.integers(size, f"a variable; expected a number below {count}", count)
    if len(set(scope)) < size:
        raise words.error("a factor names a variable twice")
    return scope


def _variables(words: Words, cards: list[int]) -> tuple[FactorGraph, dict[int, str]]:
    """A graph without factors, and the names of its variables by their numbers."""
    properties, called = comment_of(words)
    name = decode(properties["tacit_name"]) if properties else stem(words.source)
    called = called or [Called(number, f"x{number}", list(range(card))) for number, card in enumerate(cards)]
    if sorted((item.number, len(item.states)) for item in called) != list(enumerate(cards)):
        raise words.error("the comment '# tacit' names other variables or states than the file has", 0)
    graph = FactorGraph(name)
    try:
        for item in called:
            graph.add(item.name, item.states)
    except TacitError as error:
        raise words.error(f"the comment '# tacit': {error}", 0) from None
    return graph, {item.number: item.name for item in called}


def _table(words: Words, number: int, cards: list[int]) -> Floats:
    """The table of a factor, in its shape."""
    entries, found = math.prod(cards), words.take()
    if as_integer(found) != entries:
        raise words.error(f"{show(found)} is not the size of the table of factor {number}, {large(entries)}")
    start = words.at
    numbers = np.array(words.floats(entries))
    for at in np.flatnonzero(~((numbers >= 0) & np.isfinite(numbers)))[:1].tolist():
        problem = f"factor {number} holds {numbers[at]:g}, expected a finite number >= 0"
        raise words.error(problem, start + at)
    return numbers.reshape(cards)


def compose(graph: FactorGraph) -> str:
    """A graph as a UAI document."""
    numbers = file_numbers(graph)
    order = sorted(graph, key=numbers.__getitem__)
    lines = [
        "MARKOV",
        str(len(order)),
        " ".join(str(len(graph.states(name))) for name in order),
        str(len(graph.factors)),
        *(" ".join(map(str, [len(f.variables), *(numbers[n] for n in f.variables)])) for f in graph.factors),
    ]
    for factor in graph.factors:
        rows = factor.table.reshape(-1, factor.table.shape[-1] if factor.variables else 1).tolist()
        lines += ["", str(factor.table.size), *(" " + " ".join(map(repr, row)) for row in rows)]
    return "\n".join([*lines, "", names_comment(graph, numbers), ""])
