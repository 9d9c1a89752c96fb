"""Markov networks in the UAI format: files that begin with MARKOV.

Cardinalities, the variables of each factor by their numbers, then the factors' tables, in which the last variable's
states vary fastest. Names are those of `uai.py`: x0, x1, ..., unless our comment tells others.
"""

from __future__ import annotations

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.io.formats.uai_document import Called, comment_of, document
from tacit.io.parsing.draft import stem
from tacit.io.parsing.extension import decode
from tacit.io.parsing.wordlist import Words
from tacit.model.factor_graph import MAX_SCOPE, FactorGraph


def graph_of(words: Words) -> FactorGraph:
    """The graph in a file, whose first word was read."""
    cards = words.cards()
    factors = words.count("factors")
    scopes = [_scope(words, len(cards)) for _ in range(factors)]
    graph, names = _variables(words, cards)
    for number, scope in enumerate(scopes):
        table = _table(words, number, [cards[v] for v in scope])
        graph.add_factor([names[v] for v in scope], table)
    words.end_tables(len(words))
    return graph


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
    start, numbers = words.table(cards, f"the table of factor {number}")
    for at in np.flatnonzero(~((numbers >= 0) & np.isfinite(numbers)))[:1].tolist():
        problem = f"factor {number} holds {numbers[at]:g}, expected a finite number >= 0"
        raise words.error(problem, start + at)
    return numbers.reshape(cards)


def compose(graph: FactorGraph) -> str:
    """A graph as a UAI document."""
    factors = graph.factors
    return document("MARKOV", graph, [factor.variables for factor in factors], (factor.table for factor in factors))
