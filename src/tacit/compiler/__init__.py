"""The compiler: prune -> order -> eliminate -> program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tacit import machine
from tacit.compiler import factors as initial
from tacit.compiler import order as ordering
from tacit.compiler.copies import can_copy
from tacit.compiler.eliminate import Elimination, Plan, Planner
from tacit.compiler.program import Program
from tacit.compiler.prune import Pruned, prune
from tacit.compiler.question import Question
from tacit.compiler.structure import Failure, Structure
from tacit.compiler.tree import ROWS, STEP, Path, Problem, Tree
from tacit.errors import TacitError, TooLargeError
from tacit.model import Model
from tacit.operations import Structured

MAX_GLOBAL = 64  # testing nodes up to which one order for all phases is tried as well: it costs nodes x phases
DEAR = 5e9  # the price from which a second search is worth its time: 20 million multiply-adds per row
# structured elimination: budgets of nodes, for a single answer and for rows
FULL, FULL_ROWS = (2**16, 2**18, 2**20, 2**22), (2**16, 2**18, 2**20)
KNOWN_SHARE = 1 / 3  # of all entries are 0 or 1 where structure is looked for
WORTH = 40_000  # multiply-adds of a row from which that may pay
MANY_NUMBERS = 0.12  # for each node of the diagrams: there is hardly any structure
TOO_MANY_NUMBERS = 0.5  # so few are equal that nothing will come of it
HOPELESS = 1e24  # multiply-adds of a row that no search for a plan brings within reach
SLOW = 1e9  # multiply-adds of the first row, seconds, from which structure is looked for at any price
CLEAR = 10  # times cheaper than a first plan with tables, diagrams need no comparison with the best one
GAIN = 3  # times cheaper it must be: a number takes longer than an entry of a table
EVIDENCE_PER_STRUCTURE = {"float64": 256, "float32": 32}  # as below, but likelihoods are rarely so small
EVIDENCE_PER_SCALE = {"float64": 8, "float32": 4}  # rows that underflow are computed again


def compile_program(
    net: Model,
    question: Question,
    order: Sequence[str] | None = None,
    effort: str = "auto",
    dtype: str = "float64",
) -> tuple[Program, Plan]:
    """The cheapest program found for a question, and the plan of its inference phase.

    With testing nodes there are several phases. Each can have an order of its own, with the marginals of
    earlier phases as ready factors; or one order serves all, so that equal messages are computed once. Both
    win sometimes: both are planned, the cheaper is kept.
    """
    _check(net, order, effort)
    whole = net.cut(question.do) if question.do else net
    pruned = prune(whole, question)
    net = whole.cut(pruned.settled) if pruned.settled else whole

    def eliminate(
        planner: Planner, reuse: bool, index_first: bool = False, copying: bool = False
    ) -> tuple[Program, Plan]:
        scale = EVIDENCE_PER_SCALE[dtype]
        return Elimination(
            net, pruned, question, planner, scale, reuse=reuse, index_first=index_first, copying=copying
        ).run()

    if order is not None:
        return eliminate(_follow(order), reuse=False)
    search = _searching(effort)
    structured = _Structured(whole, question, search, dtype)
    early = structured.early() if structured.promising else None
    if early is not None and early.clear:
        return early.program, early.plan
    if can_copy(net, pruned, question):
        with suppress(TooLargeError):
            copied = [eliminate(search, True, copying=True)]
            if structured.promising and (way := structured.early(copying=True)) is not None:
                copied.append((way.program, way.plan))
            return _cheapest([*copied, *([] if early is None else [(early.program, early.plan)])])
    if structured.hopeless is not None:
        return structured.instead(structured.hopeless)
    ways: list[tuple[Planner, bool]] = [(search, True)]
    if 1 < sum(net.cpt(n).testing for n in pruned.nodes) <= MAX_GLOBAL:
        ways.append((_follow(_global_order(net, pruned, question)), False))
    found: list[tuple[Program, Plan]] = []
    refused: list[TooLargeError] = []
    for planner, reuse in ways:
        try:
            found.append(eliminate(planner, reuse))
        except TooLargeError as error:
            refused.append(error)
    if question.indexed and (not found or min(price(program) for program, _ in found) > DEAR):
        # tables over all observed states may have led the search astray
        try:
            found.append(eliminate(search, True, index_first=True))
        except TooLargeError as error:
            refused.append(error)
    if not found:
        return (early.program, early.plan) if early is not None else structured.instead(refused[0])
    best = min(found, key=lambda way: price(way[0]))
    if early is None and structured.promising and _first_row(best[0]) > SLOW:
        with suppress(TooLargeError):
            found.append(structured.instead(TooLargeError()))
        return min(found, key=lambda way: price(way[0]))
    if early is not None and GAIN * price(early.program) <= price(best[0]):
        return early.program, early.plan
    return best


def _cheapest(ways: Iterable[tuple[Program, Plan]]) -> tuple[Program, Plan]:
    """The cheapest of some ways to compile; the numbers of structured ones take longer than entries of tables."""
    return min(ways, key=lambda way: price(way[0]) * (GAIN if way[0].structured else 1))


def by_diagrams(net: Model, question: Question, evidence_at_once: int = 1) -> Program:
    """A program of decision diagrams, whether tables would do or not; numbers are rescaled after so much evidence."""
    structured = _Structured(net, question, _searching("low"), "float64")
    structured._factors = evidence_at_once
    return structured.instead(TooLargeError("no diagrams"))[0]


class _Way(NamedTuple):
    """A structured program, and whether it is clearly cheaper than tables would be."""

    program: Program
    plan: Plan
    clear: bool


class _Structured:
    """Structured elimination as another way to compile a question.

    Observed states are likelihoods, which leave known 0s and 1s as they are. So are the states of variables that are
    asked for, of which a structured program does not know the axes.
    """

    def __init__(self, net: Model, question: Question, search: Planner, dtype: str) -> None:
        wanted = (*question.evidence, *question.best, *(net.variables if question.every_node else ()))
        given = {name for name, _ in question.given}
        evidence = tuple(dict.fromkeys(name for name in wanted if name not in given))
        self._question = replace(question, evidence=evidence, index=False)
        self._orders: dict[tuple[int, ...], list[int]] = {}
        self._failure: Failure | None = None  # of the first attempts
        self.hopeless: TooLargeError | None = None  # why tables need not be planned
        self._whole, self._search = net, search
        self._scale, self._factors = EVIDENCE_PER_SCALE[dtype], EVIDENCE_PER_STRUCTURE[dtype]

    @cached_property
    def _pruned(self) -> Pruned:
        return prune(self._whole, self._question)

    @cached_property
    def _net(self) -> Model:
        return self._whole.cut(self._pruned.settled) if self._pruned.settled else self._whole

    @property
    def _possible(self) -> bool:
        """Not where derivatives by 0s are wanted, nor where compiled code cannot run."""
        return not self._question.every_state and machine.can_run_code()

    @cached_property
    def promising(self) -> bool:
        """Whether many entries of the tables are known to be 0 or 1."""
        if not self._possible:
            return False
        known = total = 0
        for name in self._pruned.nodes:
            for part, table in self._net.cpt(name).parts().items():
                if part != "thresholds":
                    known += int(((table == 0) | (table == 1)).sum())
                    total += table.size
        return known >= KNOWN_SHARE * total

    def early(self, copying: bool = False) -> _Way | None:
        """A program that is found before tables are planned, where these would take WORTH and more."""
        structure = Structure(FULL_ROWS, self._factors, WORTH, MANY_NUMBERS, self._orders)
        elimination = self._elimination(structure, copying)
        try:
            program, plan = elimination.run()
        except TooLargeError:
            if copying:
                return None
            self._failure = elimination.failure
            work, width = elimination.work
            if work > HOPELESS:
                self.hopeless = TooLargeError(
                    f"the query is too wide to compile: width {width}, tables would take about {work:.1g} "
                    "multiply-adds; name what is the same in all rows in given=, or ask for less evidence"
                )
            return None
        terms = sum(len(operation.terms) for operation in program if isinstance(operation, Structured))
        return _Way(program, plan, CLEAR * terms <= elimination.saved) if elimination.saved else None

    def instead(self, refusal: TooLargeError) -> tuple[Program, Plan]:
        """A program in place of one that is refused."""
        if not self._possible:
            raise refusal
        if self._failure is not None and self._question.soft and self._failure.numbers > TOO_MANY_NUMBERS:
            raise TooLargeError(f"{refusal}; {self._failure}")
        budgets, numbers = (FULL_ROWS, TOO_MANY_NUMBERS) if self._question.soft else (FULL, math.inf)
        elimination = self._elimination(Structure(budgets, self._factors, 0.0, numbers, self._orders))
        try:
            return elimination.run()
        except TooLargeError:
            raise TooLargeError(f"{refusal}; {elimination.failure}" if elimination.failure else str(refusal)) from None

    def _elimination(self, structure: Structure, copying: bool = False) -> Elimination:
        net, pruned, question = self._net, self._pruned, self._question
        return Elimination(net, pruned, question, self._search, self._scale, structure=structure, copying=copying)


def _first_row(program: Program) -> int:
    """The multiply-adds that a first row takes."""
    return program.cost.multiply_adds + program.cost.static_multiply_adds


def _searching(effort: str) -> Planner:
    return lambda problem: ordering.search(problem, effort)


def price(program: Program) -> float:
    """The cost of a program for a batch, in the units of the order search."""
    cost = program.cost
    per_row = cost.multiply_adds + cost.elements
    return ROWS * per_row + cost.static_multiply_adds + cost.static_elements + STEP * cost.operations


def trace(net: Model, query: Sequence[str], evidence: Sequence[str]) -> Program:
    """The paper's trace: evidence entered into the tables first, one min-fill order for all phases.

    Nothing is dropped but barren nodes: every state stays, and nothing is rescaled. This is what
    `TAC.circuit(fold=False)` shows; queries run on the cheaper `compile_program`.
    """
    question = Question(tuple(query), tuple(evidence), every_state=True)
    pruned = prune(net, question)
    planner = _follow(_global_order(net, pruned, question, only_min_fill=True))
    never = 2**62
    return Elimination(net, pruned, question, planner, never, reuse=False, enter_evidence_first=True).run()[0]


def _global_order(net: Model, pruned: Pruned, question: Question, only_min_fill: bool = False) -> list[str]:
    """One elimination order for the whole network, from the axes of its factors."""
    axes = list(_factor_axes(net, pruned, question))
    names = list(dict.fromkeys([*pruned.nodes, *(name for factor in axes for name, _ in factor)]))
    sizes = {name: size for factor in axes for name, size in factor}
    bit = {name: 1 << i for i, name in enumerate(names)}
    problem = Problem(
        masks=[sum(bit[name] for name, _ in factor) for factor in axes],
        soft=[True] * len(axes),
        names=names,
        sizes=[sizes.get(name, 1) for name in names],
        keep=0,
    )
    weighs = [ordering.min_fill, ordering.weighted_min_fill, ordering.min_size]
    orders = [ordering.elimination_order(problem, weigh) for weigh in weighs[: 1 if only_min_fill else 3]]
    best = min(orders, key=lambda o: Tree(problem, ordering.by_elimination(problem, o)).total)
    return [names[i] for i in best]


def _factor_axes(net: Model, pruned: Pruned, question: Question) -> Iterator[list[tuple[str, int]]]:
    """The axes, with their lengths, of every factor that the nodes will be made into."""
    names = initial.AxisNames(net)
    readings = initial.readings(net, pruned, question, names)
    for name in pruned.nodes:
        if net.cpt(name).testing:
            yield [(n, net.variable(n).card) for n in (*net.parents(name), name)]
        else:
            for factor in initial.node_factors(net, name, readings, names):
                yield list(zip(factor.axes, factor.index.shape, strict=True))


def _follow(order: Sequence[str]) -> Planner:
    """A planner that eliminates variables in a given order, then the rest (auxiliary axes, left out) by min-fill."""
    place = {name: i for i, name in enumerate(order)}

    def plan(problem: Problem) -> Path:
        free = ordering.elimination_order(problem, ordering.min_fill)
        owners = {axis: problem.owners.get(problem.names[axis], problem.names[axis]) for axis in free}
        return ordering.by_elimination(problem, sorted(free, key=lambda axis: place.get(owners[axis], len(place))))

    return plan


def _check(net: Model, order: Sequence[str] | None, effort: str) -> None:
    if effort not in ordering.EFFORTS:
        raise TacitError(f"effort is {effort!r}, expected one of {', '.join(map(repr, ordering.EFFORTS))}")
    for name in order or ():
        net.node(name)
