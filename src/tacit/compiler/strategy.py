"""Strategies to compile a question: each may give candidates, and the cheapest is kept.

With testing nodes there are several phases. Each can have an order of its own, with the marginals of earlier phases as
ready factors; or one order serves all, so that equal messages are computed once. Both win sometimes. Where tables are
full of 0s and 1s, decision diagrams may be smaller than any tables, and known functions may be copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tacit.base import machine
from tacit.base.errors import TacitError, TooLargeError
from tacit.compiler.contraction import Plan
from tacit.compiler.copies import can_copy
from tacit.compiler.diagram_choice import Failure, StructureBudget
from tacit.compiler.eliminate import Approach, Elimination
from tacit.compiler.operations import Structured
from tacit.compiler.order.search import EFFORTS
from tacit.compiler.order.tree import ROWS, STEP_COST
from tacit.compiler.planners import following, global_order, searching
from tacit.compiler.program import Program
from tacit.compiler.prune import Pruned, as_asked, prune
from tacit.compiler.question import Question
from tacit.model.cpt import THRESHOLDS
from tacit.model.model import Model

EVIDENCE_PER_SCALE = {"float64": 8, "float32": 4}  # rows that underflow are computed again


class ProgramCandidate(NamedTuple):
    """A program, and the plan of its inference phase."""

    program: Program
    plan: Plan
    weight: float = 1.0  # of its price, against others
    final: bool = False  # no later strategy need be tried


def compile_program(
    net: Model,
    question: Question,
    order: Sequence[str] | None = None,
    effort: str = "auto",
    dtype: str = "float64",
    patience: float = math.inf,
) -> tuple[Program, Plan]:
    """The cheapest program found for a question, and the plan of its inference phase; by an order, if one is given.

    Searches that may take more than `patience`, in seconds, are left out.
    """
    if effort not in EFFORTS:
        raise TacitError(f"effort is {effort!r}, expected one of {', '.join(map(repr, EFFORTS))}")
    for name in order or ():
        net.node(name)
    approach = Approach(searching(effort, patience), EVIDENCE_PER_SCALE[dtype])
    question = with_densities(net, question)
    task = Compilation(as_asked(net, question), question, approach, EVIDENCE_PER_STRUCTURE[dtype], patience)
    if order is not None:
        return task.eliminated(replace(approach, planner=following(order), reuse_marginals=False))[:2]
    for strategy in STRATEGIES:
        try:
            task.candidates += strategy(task)
        except TooLargeError as error:
            task.refusals.append(error)
        if any(candidate.final for candidate in task.candidates):
            break
    if not task.candidates:
        raise task.refusals[-1]
    return task.cheapest[:2]


def compile_tables(net: Model, question: Question, effort: str = "auto", dtype: str = "float64") -> Program:
    """A program of contractions of tables alone, for those who count what becomes of each number.

    The question is about a network without densities and tests.
    """
    approach = Approach(searching(effort), EVIDENCE_PER_SCALE[dtype])
    return Task(as_asked(net, question), question, approach).elimination(approach).run()[0]


def with_densities(net: Model, question: Question) -> Question:
    """A question that keeps the axes of the parents of all densities, and asks for no states of these themselves."""
    dense = net.continuous
    if not dense:
        return question
    whole = tuple(dict.fromkeys(parent for name in dense for parent in net.parents(name)))
    return replace(question, best=tuple(name for name in question.best if name not in dense), whole=whole)


def price(program: Program) -> float:
    """The cost of a program for a batch, in the units of the order search."""
    cost = program.cost
    per_row = cost.multiply_adds + cost.elements
    return ROWS * per_row + cost.static_multiply_adds + cost.static_elements + STEP_COST * cost.operations


class Task:
    """A question, the part of a network that it needs, and how to eliminate."""

    def __init__(self, whole: Model, question: Question, approach: Approach) -> None:
        self.question, self.approach, self._whole = question, approach, whole

    @cached_property
    def pruned(self) -> Pruned:
        return prune(self._whole, self.question)

    @cached_property
    def net(self) -> Model:
        determined = self.pruned.determined
        return self._whole.cut(determined) if determined else self._whole

    def elimination(self, approach: Approach) -> Elimination:
        return Elimination(self.net, self.pruned, self.question, approach)


class Compilation(Task):
    """A task, and what strategies found for it so far."""

    def __init__(
        self, whole: Model, question: Question, approach: Approach, evidence_at_once: int, patience: float
    ) -> None:
        super().__init__(whole, question, approach)
        self.diagrams = Diagrams(whole, question, approach, evidence_at_once, patience)
        self.candidates: list[ProgramCandidate] = []
        self.refusals: list[TooLargeError] = []

    def eliminated(self, approach: Approach) -> ProgramCandidate:
        """A program of tables."""
        return ProgramCandidate(*self.elimination(approach).run())

    @property
    def cheapest(self) -> ProgramCandidate:
        """The best candidate so far."""
        return min(self.candidates, key=lambda c: (c.weight * price(c.program), not c.final))


NODE_BUDGETS = (2**16, 2**18, 2**20, 2**22)  # of diagrams for a single answer
NODES_PER_SECOND = 2**18  # of diagrams: 2^22 nodes took 13 seconds
NODE_BUDGETS_ROWS = (2**16, 2**18, 2**20)  # of diagrams for rows
KNOWN_SHARE = 1 / 3  # of all entries are 0 or 1 where structure is looked for
MIN_WORK = 40_000  # multiply-adds of a row with tables from which that may pay
MAX_NUMBERS_EARLY = 0.12  # for each node of the diagrams: with more, there is hardly any structure
MAX_NUMBERS = 0.5  # for each node: with more, so few are equal that nothing will come of it
MAX_SEARCHED_WORK = 1e24  # multiply-adds of a row beyond which no search brings a plan within reach
SLOW_FIRST_ROW = 1e9  # multiply-adds, seconds, from which structure is looked for at any price
TABLES_GAIN = 10  # times faster, as products of large tables, where no evidence is taken
CLEARLY_CHEAPER = 10  # times cheaper than a first plan with tables, diagrams need no comparison with the best one
WEIGHT_OF_NUMBERS = 3  # of their price: a number takes longer than an entry of a table
EVIDENCE_PER_STRUCTURE = {"float64": 256, "float32": 32}  # likelihoods are rarely as small as assumed above


class Diagrams(Task):
    """Structured elimination of a question.

    Observed states are likelihoods, which leave known 0s and 1s as they are. So are the states of variables that are
    asked for, of which a structured program does not know the axes.
    """

    def __init__(
        self,
        whole: Model,
        question: Question,
        approach: Approach,
        evidence_at_once: int,
        patience: float = math.inf,
    ) -> None:
        asked = (*question.evidence, *question.best, *(whole.variables if question.every_node else ()))
        given = {name for name, _ in question.given}
        evidence = tuple(dict.fromkeys(name for name in asked if name not in given))
        super().__init__(whole, replace(question, evidence=evidence, index=False), approach)
        self._budget = StructureBudget(most_factors=evidence_at_once)
        self._most_nodes = max(patience * NODES_PER_SECOND, NODE_BUDGETS[0])
        self._failure: Failure | None = None  # of the first attempts
        self.no_tables: TooLargeError | None = None  # why tables need not be planned

    @property
    def possible(self) -> bool:
        """Not where derivatives by 0s are wanted, nor where compiled code cannot run."""
        return not self.question.every_state and machine.can_run_code()

    @cached_property
    def promising(self) -> bool:
        """Whether many entries of the tables are known to be 0 or 1."""
        if not self.possible:
            return False
        names = [name for name in self.pruned.nodes if not self.net.variable(name).continuous]
        parts = (part for name in names for part in self.net.cpt(name).parts().items())
        tables = [table for name, table in parts if name != THRESHOLDS]
        known = sum(int(((table == 0) | (table == 1)).sum()) for table in tables)
        return known >= KNOWN_SHARE * sum(table.size for table in tables)

    def early(self, copying: bool = False) -> ProgramCandidate | None:
        """A program that is found before tables are planned, where these would take MIN_WORK and more."""
        budget = replace(self._budget, budgets=NODE_BUDGETS_ROWS, worth=MIN_WORK, numbers=MAX_NUMBERS_EARLY)
        elimination = self.elimination(replace(self.approach, structure=budget, copying=copying))
        structuring = elimination.structuring
        try:
            program, plan = elimination.run()
        except TooLargeError:
            if not copying:
                self._failure = structuring.failure
                if structuring.work > MAX_SEARCHED_WORK:
                    self.no_tables = TooLargeError(
                        f"the query is too wide to compile: width {structuring.width}, tables would take about "
                        f"{structuring.work:.1g} multiply-adds; name what is the same in all rows in given=, or ask "
                        "for less evidence"
                    )
            return None
        if not structuring.saved:
            return None
        terms = sum(len(operation.terms) for operation in program if isinstance(operation, Structured))
        final = copying or CLEARLY_CHEAPER * terms <= structuring.saved
        return ProgramCandidate(program, plan, WEIGHT_OF_NUMBERS, final)

    def instead(self, refusal: TooLargeError) -> ProgramCandidate:
        """A program in place of one that is refused."""
        if not self.possible:
            raise refusal
        soft = bool(self.question.soft)
        if self._failure is not None and soft and self._failure.numbers > MAX_NUMBERS:
            raise TooLargeError(f"{refusal}; {self._failure}")
        budgets, numbers = (NODE_BUDGETS_ROWS, MAX_NUMBERS) if soft else (NODE_BUDGETS, math.inf)
        in_time = tuple(nodes for nodes in budgets if nodes <= self._most_nodes)
        budget = replace(self._budget, budgets=in_time, numbers=numbers)
        elimination = self.elimination(replace(self.approach, structure=budget))
        try:
            return ProgramCandidate(*elimination.run())
        except TooLargeError:
            failure = elimination.structuring.failure
            raise TooLargeError(f"{refusal}; {failure}" if failure else str(refusal)) from None


def by_diagrams(net: Model, question: Question, evidence_at_once: int = 1) -> Program:
    """A program of decision diagrams, whether tables would do or not; numbers are rescaled after so much evidence."""
    approach = Approach(searching("low"), EVIDENCE_PER_SCALE["float64"])
    return Diagrams(net, question, approach, evidence_at_once).instead(TooLargeError("no diagrams")).program


MAX_GLOBAL_TESTS = 64  # testing nodes up to which one order for all phases is tried as well: it costs nodes x phases
SEARCH_AGAIN_PRICE = 5e9  # from which a second search is worth its time: 20 million multiply-adds per row


def diagrams_first(task: Compilation) -> Iterable[ProgramCandidate]:
    """Decision diagrams, before tables are planned: final where tables cannot come close."""
    early = task.diagrams.early() if task.diagrams.promising else None
    return () if early is None else (early,)


def functions_in_copies(task: Compilation) -> Iterable[ProgramCandidate]:
    """Known functions in copies, as tables and as diagrams."""
    copies: list[ProgramCandidate] = []
    if can_copy(task.net, task.pruned, task.question):
        with suppress(TooLargeError):
            copies.append(task.eliminated(replace(task.approach, copying=True))._replace(final=True))
            if task.diagrams.promising and (structured := task.diagrams.early(copying=True)) is not None:
                copies.append(structured)
    return copies


def tables(task: Compilation) -> Iterable[ProgramCandidate]:
    """Tables, with an order for each phase."""
    return () if task.diagrams.no_tables else (task.eliminated(task.approach),)


def tables_in_one_order(task: Compilation) -> Iterable[ProgramCandidate]:
    """Tables, with one order for all phases."""
    net, pruned = task.net, task.pruned
    if task.diagrams.no_tables or not 1 < sum(net.cpt(n).testing for n in pruned.nodes) <= MAX_GLOBAL_TESTS:
        return ()
    planner = following(global_order(net, pruned, task.question))
    return (task.eliminated(replace(task.approach, planner=planner, reuse_marginals=False)),)


def tables_indexed_first(task: Compilation) -> Iterable[ProgramCandidate]:
    """Tables indexed by observed states before all else: those over all states may have led the search astray."""
    prices = [price(candidate.program) for candidate in task.candidates if not candidate.program.structured]
    if task.diagrams.no_tables or not task.question.indexed or min(prices, default=math.inf) <= SEARCH_AGAIN_PRICE:
        return ()
    return (task.eliminated(replace(task.approach, index_first=True)),)


def diagrams_instead(task: Compilation) -> Iterable[ProgramCandidate]:
    """Decision diagrams where tables are refused, or so slow that structure is looked for at any price."""
    if not task.candidates:
        return (task.diagrams.instead(task.diagrams.no_tables or task.refusals[0]),)
    if not task.diagrams.promising or any(candidate.program.structured for candidate in task.candidates):
        return ()
    cost = task.cheapest.program.cost
    slow = cost.multiply_adds + cost.static_multiply_adds / TABLES_GAIN > SLOW_FIRST_ROW
    return (task.diagrams.instead(TooLargeError()),) if slow else ()


# in turn, until one is final
STRATEGIES = (diagrams_first, functions_in_copies, tables, tables_in_one_order, tables_indexed_first, diagrams_instead)


def trace(net: Model, query: Sequence[str], evidence: Sequence[str]) -> Program:
    """The paper's trace: evidence entered into the tables first, one min-fill order for all phases.

    Nothing is dropped but barren nodes: every state stays, and nothing is rescaled. This is what
    `TAC.circuit(fold=False)` shows; queries run on the cheaper `compile_program`.
    """
    question = with_densities(net, Question(tuple(query), tuple(evidence), every_state=True))
    pruned = prune(net, question)
    planner, never = following(global_order(net, pruned, question, only_min_fill=True)), 2**62
    approach = Approach(planner, never, reuse_marginals=False, enter_evidence_first=True)
    return Elimination(net, pruned, question, approach).run()[0]
