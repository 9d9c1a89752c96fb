"""A compiled query: its program, the numbers that it runs on, and the evidence that it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit import engines
from tacit.base import pickling
from tacit.base.errors import NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.compiler.contraction import Plan
from tacit.compiler.program import Cost, Program
from tacit.compiler.prune import as_asked, certain, possible_states
from tacit.compiler.question import Question
from tacit.engines.circuit.lower import lower
from tacit.engines.engine import Engine
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT, Mux, NoisyOr
from tacit.model.twin import WOULD
from tacit.query.asking.asked_query import AskedQuery
from tacit.query.asking.options import Asked, CompileOptions

MAX_COUNTED = 2_000_000  # multiply-adds up to which cost() counts the nodes of the circuit


class CompiledQuery(AskedQuery):
    """A question about a network, compiled; `refused` says why there is a program of the evidence only, if so."""

    def __init__(
        self,
        net: Model,
        query: Asked,
        question: Question,
        options: CompileOptions,
        compiled: tuple[Program, Plan],
        refused: TooLargeError | None = None,
    ) -> None:
        super().__init__(net, query, question)
        self.options, self.refused = options, refused
        self.program, self.plan = compiled
        self._forget()

    def _forget(self) -> None:
        """Drop what was made of the numbers."""
        self._engine: Engine | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state))
        self._forget()

    @property
    def dtype(self) -> str:
        """The type of numbers: "float64" or "float32"."""
        return self.options.dtype

    def require_posterior(self) -> None:
        """An error where the query variables have too many joint states for a table."""
        if self.refused is not None:
            raise TooLargeError(str(self.refused))

    def engine(self) -> Engine:
        """The program with its numbers, ready to run."""
        if self._engine is None:
            how = self.options
            self._engine = engines.build(how.engine, self.program, *self.numbers(), how.dtype, how.threads)
        return self._engine

    def numbers(self) -> tuple[dict[tuple[str, str], Floats], dict[str, float | None]]:
        """The tables that the program reads, and the slopes of its testing nodes."""
        nodes = self.program.nodes
        self.network.require_numbers(nodes)
        tables = {(node, part): table for node in nodes for part, table in self.network.cpt(node).parts().items()}
        gammas = {n: cpt.gamma for n in nodes if isinstance(cpt := self.network.cpt(n), TestingCPT)}
        return tables, gammas

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds that the first row takes."""
        return self.program.cost.multiply_adds + self.program.cost.static_multiply_adds

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row, circuit nodes (None where the circuit would be very large)."""
        if self.refused is not None or self.per_row or self.multiply_adds > MAX_COUNTED:
            return self.program.cost
        return replace(self.program.cost, circuit_nodes=len(lower(self.program, self.network)))

    def __repr__(self) -> str:
        cost, evidence = self.program.cost, plural(len(self.evidence), "evidence variable")
        work = f"width {cost.width}, {cost.multiply_adds:,} multiply-adds per row"
        return f"{type(self).__name__}(query={self.query!r}, {evidence}, {work})"


def check_same_structure(query: CompiledQuery, new: Model) -> None:
    """An error unless a network has the variables, families and kinds of CPT of a query's, and no more possible states.

    A structured program is compiled again where states are: see `holds_for`.
    """
    check_families(query, new)
    if problem := possible_again(query, new):
        raise NetworkError(f"{problem}; compile the query again")


def check_families(query: CompiledQuery, new: Model) -> None:
    """An error unless a network has the variables, families and kinds of CPT of a query's."""
    old = query.network
    if new.selection != old.selection:
        before = f"was {old.selection!r} when the query was compiled"
        raise NetworkError(f"selection is {new.selection!r} and {before}; compile it again")
    for name in query.program.states:
        if name not in new:
            remedy = "which the query asks about; compile it again"
            if any(other.endswith(WOULD) for other in (*query.do, *query.given)):
                remedy = ("and would= asks networks of two worlds, which tacit.compile makes: "
                          "tacit.compile(net, ..., would=...).network")  # fmt: skip
            raise NetworkError(f"the other network has no variable {name!r}, {remedy}")
        a, b = old.node(name), new.node(name)
        same = (a.variable, a.parents, type(a.cpt)) == (b.variable, b.parents, type(b.cpt))
        if same and isinstance(a.cpt, TestingCPT) and isinstance(b.cpt, TestingCPT):
            same = len(a.cpt.tables) == len(b.cpt.tables) and bool((a.cpt.test == b.cpt.test).all())
        elif same and not isinstance(a.cpt, CPT | NoisyOr | BaseDensity):
            same = a.cpt == b.cpt
        if not same:
            problem = "differs in states, parents, kind of CPT or tests from the compiled network"
            raise NetworkError(f"node {name!r} {problem}; compile the query again")


def possible_again(query: CompiledQuery, new: Model) -> str:
    """What known 0s and 1s of a network no longer rule out as they did when a query was compiled; nothing, if all."""
    program, question = query.program, query.question
    if program.structured:
        return ""
    asked = as_asked(new, question)
    now = possible_states(asked, program.states, program.hard, dict(question.given), question.evidence)
    read = {*program.nodes, *question.per_row}
    for name, states in now.items():
        ruled = isinstance(asked.cpt(name), FunctionCPT | Mux)  # the same as before
        if extra := set(states) - set(program.states[name]):
            label = new.states(name)[min(extra)]
            problem = f"state {label!r} was impossible (known 0s) when the query was compiled, and is possible now"
        elif question.given and name not in read and not ruled and not certain(asked, name, program.states):
            before = "its known 0s and 1s said nothing beside given= when the query was compiled"
            problem = f"{before}, and now others do"
        else:
            continue
        return f"node {name!r}: {problem}"
    return ""
