"""The parameters of `tacit.compile`, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from tacit import engines
from tacit.base import machine
from tacit.base.errors import TacitError
from tacit.compiler import compile_program
from tacit.compiler.contraction import Plan
from tacit.compiler.program import Program
from tacit.compiler.question import Question
from tacit.evidence.read import read
from tacit.model.elements.variable import Label
from tacit.model.model import Model
from tacit.query.asking.row_tables import check_per_row

DTYPES = ("float64", "float32")
Asked = str | tuple[str, ...] | None  # one query variable, several, or none


@dataclass(frozen=True)
class CompileOptions:
    """How a query is compiled and run: the parameters of `tacit.compile` from `do` on."""

    do: Sequence[str] = ()
    given: Mapping[str, Label] | None = None
    engine: str = "auto"
    dtype: str = "float64"
    order: Sequence[str] | None = None
    effort: str = "auto"
    threads: int | None = None
    per_row: Sequence[str] = ()
    patience: float = math.inf  # seconds: searches that may take longer are left out

    def checked(self, net: Model) -> Self:
        """Options that fit a network: an error where they do not, and names as tuples."""
        engines.check(self.engine)
        machine.threads_wanted(self.threads)  # an error, if it is not a number of threads
        order = None if self.order is None else names_of(net, self.order, "order")
        do, dtype = names_of(net, self.do, "do"), ""
        check_do(net, do)
        with suppress(TypeError):
            dtype = str(np.dtype(self.dtype).name)
        if dtype not in DTYPES:
            raise TacitError(f"dtype is {self.dtype!r}, expected one of {', '.join(map(repr, DTYPES))}")
        per_row = names_of(net, self.per_row, "per_row")
        check_per_row(net, per_row, do)
        return replace(self, do=do, dtype=dtype, order=order, per_row=per_row)

    def compile(self, net: Model, question: Question) -> tuple[Program, Plan]:
        """The program that answers a question about a network, and its plan."""
        return compile_program(net, question, self.order, self.effort, self.dtype, self.patience)


def check_do(net: Model, names: Iterable[str]) -> None:
    """An error where a continuous variable is set."""
    for name in names:
        if net.variable(name).continuous:
            problem = "do= sets states, and this is continuous; nothing is below it, so setting it changes nothing else"
            raise TacitError(f"{name!r}: {problem}; leave it out")


def checked_question(
    net: Model, query: Asked, evidence: Iterable[str], hard: Iterable[str], options: CompileOptions
) -> Question:
    """What to compile; an error where variables do not exist, or are named in several places."""
    maybe, always, done = names_of(net, evidence, "evidence"), names_of(net, hard, "hard"), tuple(options.do)
    known = _given_codes(net, options.given)
    if both := [name for name, _ in known if name in (*maybe, *always, *done)]:
        raise TacitError(f"{both[0]!r} is in given=, the same for all rows; leave it out of evidence=, hard= and do=")
    if both := [name for name in done if name in maybe or name in always]:
        raise TacitError(f"{both[0]!r} is in do= and in {'hard' if both[0] in always else 'evidence'}=; a row sets it "
                         "or observes it, so name it in one of them")  # fmt: skip
    if numbers := [name for name in always if net.variable(name).continuous]:
        raise TacitError(
            f"{numbers[0]!r} is continuous, and numbers index no tables; name it in evidence=, not in hard="
        )
    asked = (query,) if isinstance(query, str) else query or ()
    if isinstance(query, str) and net.variable(net.named(query)).continuous:
        node = net.named(query)
        if node in maybe and len(net.variable(node).columns) == 1:
            raise TacitError(
                f"{query!r} is the query, and its own number would be the answer; leave it out of evidence="
            )
        asked = net.parents(node)  # whose posterior weighs its densities
    observable = tuple(dict.fromkeys((*maybe, *always, *done)))
    return Question(asked, observable, always, done, known, per_row=tuple(options.per_row))


def checked_query(net: Model, query: Any) -> Asked:
    """The query as it is kept: a name, a tuple of several, or None."""
    if query is None:
        return None
    if isinstance(query, str):
        several = [name.strip() for name in query.split(",")]
        if query not in net and len(several) > 1 and all(name in net for name in several):
            raise TacitError(f"query is {query!r}; give the names of several variables as a list: query={several!r}")
        net.named(query)  # an error where there is no such variable
        return query
    if isinstance(query, set | frozenset):
        raise TacitError("query is a set, which has no order; give a list, whose order the axes of the answer follow")
    if isinstance(query, Mapping):
        raise TacitError(f"query is a mapping; give the name of a variable, or a list of names: {list(query)!r}")
    if not isinstance(query, Iterable):
        raise TacitError(f"query is {query!r}; give the name of a variable, a list of names, or None")
    listed = list(query)
    names = names_of(net, listed, "query")
    if len(names) != len(listed):
        raise TacitError(f"query names a variable twice: {listed!r}")
    if not names:
        raise TacitError("query is an empty sequence; give at least one name, or None to ask without a query")
    if numbers := [name for name in names if net.variable(name).continuous]:
        problem = "is continuous, and has no states that could be asked for together with others"
        raise TacitError(f"query names {numbers[0]!r}, which {problem}; ask for it alone: query={numbers[0]!r}")
    return names


def checked_given(given: Mapping[str, Label] | None) -> dict[str, Label]:
    """Variables and the labels of the states that they are known to be in."""
    if given is not None and not isinstance(given, Mapping):
        raise TacitError(f"given is {given!r}, expected a mapping from variables to states")
    return dict(given or {})


def _given_codes(net: Model, given: Mapping[str, Label] | None) -> tuple[tuple[str, int], ...]:
    states = checked_given(given)
    if numbers := [name for name in states if name in net.continuous]:
        raise TacitError(
            f"given[{numbers[0]!r}]: this is continuous, and given= takes states; give its number as evidence"
        )
    known = read({name: [label] for name, label in states.items()}, [net.variable(n) for n in net])
    for name, label in states.items():
        if name not in known.columns or not known.columns[name].observed.all():
            raise TacitError(f"given[{name!r}] is {label!r}, expected one of its states: {list(net.states(name))}")
    return tuple((name, int(column.states()[0])) for name, column in known.columns.items())


class Limits(NamedTuple):
    """What intervals of a query that is too wide are to be: as narrow as `within`, after at most so many seconds.

    `multiply_adds` is what a step of the elimination of a window may cost, for one row of a batch; work for a single
    row may cost more.
    """

    within: float = 0.01
    seconds: float = 30.0
    multiply_adds: int = 2**16


def checked_limits(within: Any, seconds: Any) -> None:
    """An error unless a width of intervals, if one is given, is in (0, 1], and a time is positive."""
    if within is not None and not (_is_number(within) and 0 < within <= 1):
        problem = f"within is {within!r}, expected a number above 0 and at most 1"
        raise TacitError(f"{problem}: the width of intervals that is narrow enough, such as 0.01")
    if not (_is_number(seconds) and seconds > 0):
        raise TacitError(f"seconds is {seconds!r}, expected a positive number: how long to look for narrow intervals")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def names_of(net: Model, names: Iterable[str] | None, what: str) -> tuple[str, ...]:
    """The variables that an option names, each once; an error where there is no such variable."""
    if isinstance(names, Mapping):
        where = "the states of each row go to posterior(...), and those that are the same in all rows to given="
        raise TacitError(f"{what} takes names, not states: {what}={list(names)!r}; {where}")
    if isinstance(names, str):
        meant = "; an engine is given by name: engine=..." if what == "do" and names in engines.ENGINES else ""
        several = [name.strip() for name in names.split(",")]
        raise TacitError(f"{what} must be a sequence of names, e.g. {several!r}{meant}")
    try:
        distinct = tuple(dict.fromkeys(() if names is None else names))
    except TypeError:
        raise TacitError(f"{what} must be a sequence of names, got {names!r}") from None
    return tuple(
        dict.fromkeys(net.named(name) if isinstance(name, str) else net.node(name).variable.name for name in distinct)
    )
