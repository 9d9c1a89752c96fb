"""Symbolic factor elimination in two phases, as in the paper's appendix.

Selection: testing nodes, ancestors first, are flattened, each from the marginal of its parents given the
evidence that takes part (see `visibility`). Inference: the query, from the original regular tables and the flattened
ones.

Where the largest probability is asked for, inference has two parts, since a maximum does not commute with a sum: what
is summed out goes first, and the maximum is taken of the rest. Selection sums as always.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.compiler import factors as initial
from tacit.compiler.builder import Builder
from tacit.compiler.contraction import Contractor, Plan
from tacit.compiler.copies import copies, known_function
from tacit.compiler.diagram_choice import StructureBudget, Structuring
from tacit.compiler.factors import IndexedFactor
from tacit.compiler.operations import ONE, Axes, Axis, Constant, Likelihood, Parameter
from tacit.compiler.operations.select import codes as test_codes
from tacit.compiler.order.tree import Planner, bits, mask_of, union_of
from tacit.compiler.planners import or_in_order, quick
from tacit.compiler.program import ParentMarginal, Program
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.compiler.visibility import report_scopes, selection_scopes
from tacit.model.cpt import THRESHOLDS, TestingCPT
from tacit.model.model import Model

MAX_REUSED = 64  # how many earlier marginals are looked at before a phase is planned
MAX_PLANNED_TWICE = 12  # up to so many nodes, a phase is also planned without the earlier marginals


@dataclass(frozen=True)
class Marginal:
    """The marginal of some parents, made in an earlier phase: which nodes' factors are in it, by bit mask."""

    value: int
    covers: int
    parents: int


@dataclass(frozen=True)
class Approach:
    """How to eliminate: the planner, and what is tried besides.

    `evidence_per_scale` is as in `Builder`. Earlier marginals may stand for the factors they are made of, observed
    states may index tables before all else, evidence may be entered into tables at once (as in the paper's trace),
    factors may become diagrams, and known functions may be copied.
    """

    planner: Planner
    evidence_per_scale: int
    reuse_marginals: bool = True
    index_first: bool = False
    enter_evidence_first: bool = False
    structure: StructureBudget = field(default_factory=StructureBudget)
    copying: bool = False


class Elimination:
    """One compilation: the network that is left after pruning, and the program that grows."""

    def __init__(self, net: Model, pruned: Pruned, question: Question, approach: Approach) -> None:
        self.net, self.pruned, self.question, self.approach = net, pruned, question, approach
        self.builder = Builder(net, pruned, question.indexed, approach.evidence_per_scale)
        self.structuring = Structuring(net, self.builder, approach.structure)
        self._contractor = Contractor(self.builder, question.by_row)
        self._readings = initial.readings(net, pruned, question, self.builder.names)
        self._position = {n: i for i, n in enumerate(pruned.nodes)}
        self._everything = (1 << len(pruned.nodes)) - 1
        self._soft, self._reporting = frozenset(question.soft), frozenset(dict(question.reports))
        self._values: dict[str, list[int]] = {}
        self._entered = 0  # the nodes that have values, as a bit mask: looking at each in every phase would take long
        self._functions: dict[int, str] = {}  # values that are known functions, and the nodes they are of
        self._beside: dict[str, Axis] = {}  # axes of variables that are indexed elsewhere
        self._copied: dict[str, None] = {}  # nodes whose functions were copied
        self._marginals: dict[tuple[frozenset[str], int], Marginal] = {}
        self._latest: deque[Marginal] = deque(maxlen=MAX_REUSED)

    @cached_property
    def _parents(self) -> list[int]:
        """For every node, its parents as a bit mask."""
        return [mask_of(self._position[p] for p in self.net.parents(n)) for n in self.pruned.nodes]

    @cached_property
    def _scopes(self) -> dict[str, int]:
        """For every testing node, the nodes whose factors take part in its selection, as a bit mask."""
        net, nodes, question = self.net, self.pruned.nodes, self.question
        evidence = (*question.evidence, *question.indexed, *(name for name, _ in question.given))
        known = {name for name, axis in self.builder.axis.items() if axis is None} | question.indexed
        scopes = selection_scopes(net, nodes, evidence, known)
        return scopes | report_scopes(net, nodes, question.reports) if question.reports else scopes

    def run(self) -> tuple[Program, Plan]:
        """Selection phase, then inference phase."""
        for name in self.pruned.nodes:
            self.enter(name)
        joint, plan = self.maximisation() if self.question.best else self.inference()
        fixed = self._copied | self.structuring.fixed
        program = self.builder.finish(self.question, joint, fixed, self._traced)
        self._contractor.check_live(program)
        return program, plan

    def enter(self, name: str) -> None:
        """The factors of a node and of its evidence; where its table is selected, those that take part go first."""
        if name in self._values:
            return
        if not self.net.cpt(name).testing:
            self._values[name] = self.initialise(name)
        else:
            for i in bits(self._scopes[name] & ~self._entered):
                self.enter(self.pruned.nodes[i])
            selected = self.flatten(name)
            self._values[name] = [] if name in self._reporting else [selected]
        self._entered |= 1 << self._position[name]
        if name in self._soft:
            self.enter_evidence(name)

    def initialise(self, name: str) -> list[int]:
        """The factors of a regular node: none where its state is set, or sure."""
        if name in self.question.do or name in self.pruned.determined:
            return []
        if name in self.question.per_row:
            return [self.table_of_rows(name)]
        factors = initial.node_factors(self.net, name, self._readings, self.builder.names)
        values = [value for factor in factors if not self._is_one(value := self._restricted(factor))]
        if self.approach.copying and len(factors) == len(values) == 1 and known_function(self.net, name):
            self._functions[values[0]] = name
        return values

    def table_of_rows(self, name: str) -> int:
        """The table that each row brings along, at the states of its family that are known in every row.

        It depends on evidence and cannot be indexed. So these states are likelihoods of axes of their own, summed out.
        """
        family, build = (*self.net.parents(name), name), self.builder
        value = build.factor(initial.table_of_rows(self.net, name, tuple(map(self._axis_beside, family))))
        for member in filter(self.question.indexed.__contains__, family):
            axis, card = self._axis_beside(member), self.net.variable(member).card
            known = build.factor(initial.whole(Likelihood(member, (axis,)), [card]))
            value = build.contract((value, known), [a for a in build.axes(value) if a != axis])
        return value

    def _axis_beside(self, name: str) -> Axis:
        """The axis of a variable in tables that rows bring along: that of its own, if that is not indexed."""
        if name not in self.question.indexed:
            return name
        if name not in self._beside:
            self._beside[name] = self.builder.names.fresh(f"{name}'")
        return self._beside[name]

    def _is_one(self, value: int) -> bool:
        """Whether a value is 1 everywhere, as what a multiplexer says of an input that cannot be selected."""
        operation = self.builder.operations[value]
        return isinstance(operation, Constant) and bool((operation.table == 1).all())

    def _restricted(self, factor: IndexedFactor) -> int:
        """A factor over the possible states, indexed by observed states if these come first."""
        value = self.builder.factor(factor)
        return self.builder.slice(value) if self.approach.index_first else value

    def enter_evidence(self, name: str) -> None:
        """Multiply the likelihoods of a node into its table, after selection if the node is testing."""
        likelihoods = [self._restricted(f) for f in initial.likelihood_factors(self.net, name, self._readings)]
        values = self._values[name]
        if self.approach.enter_evidence_first and len(values) == len(likelihoods) == 1:
            axes = self.builder.axes(values[0])
            self._values[name] = [self.builder.contract((values[0], likelihoods[0]), axes)]
        else:
            self._values[name] = values + likelihoods

    def flatten(self, name: str) -> int:
        """The table of a testing node, selected by the posterior of its parents."""
        cpt, parents, build = self.net.cpt(name), self.net.parents(name), self.builder
        assert isinstance(cpt, TestingCPT)
        marginal = build.slice(self.marginal(name))
        axes = tuple(None if p in build.hard else build.axis[p] for p in parents)
        build.selections[name] = ParentMarginal(marginal, axes)
        tests, observed = self._tests(cpt, parents, build.axes(marginal))
        family = (*parents, name)
        values = {
            part: build.factor(initial.whole(Parameter(name, part, family), table.shape))
            for part, table in cpt.parts().items()
            if part != THRESHOLDS
        }
        tables = [values[part] for part in cpt.table_parts]
        limits, gaps = initial.thresholds(name, cpt, parents, build.names)
        chosen = tables[0]  # among the first tables: see `operations.blend`
        for j, limit in enumerate(limits):
            table = tables[j + 1]
            if j < len(gaps):
                lower, upper = map(build.factor, gaps[j])
                own, rest = (build.share(name, (lower, upper, table), own) for own in (True, False))
                table = build.add((own, build.contract((rest, chosen), build.axes(table))))
            inputs = (build.slice(table), build.slice(chosen), build.slice(build.factor(limit)))
            chosen = build.select(name, (marginal, *inputs), tests, observed)
        return chosen

    def _tests(self, cpt: TestingCPT, parents: Axes, marginal: Axes) -> tuple[NDArray[np.int64], Axes]:
        """The operators over the axes of a marginal and of the observed parents that matter to them, and the latter."""
        codes = test_codes(cpt.test)[np.ix_(*(self.pruned.states[p] for p in parents))]
        named = [axis for p in parents if (axis := self.builder.axis[p]) is not None]
        observed = tuple(a for a in named if a not in marginal)
        codes = codes.reshape(self.builder.shape(named)).transpose([named.index(a) for a in (*marginal, *observed)])
        for k in reversed(range(len(observed))):
            at = len(marginal) + k
            if (codes == codes.take([0], axis=at)).all():
                codes, observed = np.asarray(codes.take(0, axis=at)), (*observed[:k], *observed[k + 1 :])
        return np.array(codes), observed

    def marginal(self, name: str) -> int:
        """p*(u) of the parents of a testing node, given the evidence that takes part in its selection."""
        parents, nodes = self.net.parents(name), self._scopes[name]
        key = (frozenset(parents), nodes)
        if key not in self._marginals:
            value, _ = self.eliminate(nodes, parents)
            self._marginals[key] = Marginal(value, nodes, mask_of(self._position[p] for p in parents))
            self._latest.append(self._marginals[key])
        return self._marginals[key].value

    def inference(self) -> tuple[int, Plan]:
        """p*(q) for all states of the query variables."""
        query = self.question.query
        value, plan = self._all_diagrams() if self._traced else self.eliminate(self._everything, query, last=True)
        return self.builder.embed(self.builder.slice(value), query), plan

    def maximisation(self) -> tuple[int, Plan]:
        """The largest p*(states of `best`), all else summed out, also a noisy-or's axes: no maximum may enter it."""
        hard, planner, contractor = self.builder.hard, self.approach.planner, self._contractor
        best = frozenset(a for name in self.question.best if (a := self.builder.axis[name]) is not None) - hard
        if self._traced:
            value, plan = self._all_diagrams(best)
        else:
            reused = self._reusable(self._everything, self.question.best)
            values = contractor.closed(self._values_of(self._everything, reused), best)
            groups = contractor.linked(values, best | hard)
            summed = [contractor.contract(g, best, planner)[0] if len(g) > 1 else g[0] for g in groups]
            value, plan = contractor.contract(contractor.closed(summed, (), True), (), planner, largest=True)
        return self.builder.slice(value), plan

    @property
    def _traced(self) -> bool:
        """Whether states are wanted of a structured program, whose traceback follows single instructions."""
        return bool(self.approach.structure.budgets) and bool(self.question.best or self.question.every_node)

    def _all_diagrams(self, best: frozenset[Axis] = frozenset()) -> tuple[int, Plan]:
        """Inference in the structured way all through, with the factors of all nodes in one operation or one chain."""
        solution = self._as_diagrams(self._values_of(self._everything, []), (), best)
        if solution is None:
            raise TooLargeError("the query is too wide to compile")
        return solution

    def eliminate(self, nodes: int, keep: Axes, last: bool = False) -> tuple[int, Plan]:
        """Eliminate all factors of some nodes (a bit mask) down to one factor over the variables in `keep`."""
        reused, planner = self._reusable(nodes, keep), self.approach.planner
        values = self._values_of(nodes, reused)
        kept = [axis for name in keep if (axis := self.builder.axis[name]) is not None]
        if self._functions:
            values, planner = self._with_copies(values, kept)
        if self.approach.copying and last and not self._copied:
            raise TooLargeError("the query has no function that copies would help")
        if self.approach.structure.budgets:
            solution = self._as_diagrams(values, kept)
            if solution is not None:
                return solution
            if last and not self.structuring.saved:
                raise TooLargeError("the query has no part that structure would help")
        twice = bool(reused) and nodes.bit_count() <= MAX_PLANNED_TWICE
        options = [values, self._values_of(nodes, [])] if twice else [values]
        options = [self._contractor.closed(option, kept) for option in options]
        if twice:
            options.sort(key=lambda option: self._contractor.planned(option, kept, quick).total)
        return self._contractor.contract(options[0], kept, planner)

    def _with_copies(self, values: list[int], keep: Sequence[Axis]) -> tuple[list[int], Planner]:
        """The values, with known functions in copies where that saves much, and a planner for them."""
        build, problem = self.builder, self._contractor.problem(values, keep)
        axes = problem.names
        functions = {
            axes.index(axis): i
            for i, value in enumerate(values)
            if value in self._functions and (axis := build.axis[self._functions[value]]) is not None
        }
        copied = copies(problem, functions)
        if copied is None:
            return values, self.approach.planner
        times = Counter(i for i, _ in copied.leaves)
        self._copied |= {self._functions[value]: None for i, value in enumerate(values) if times[i] > 1}
        pairs = sorted({pair for _, names in copied.leaves for pair in names})
        fresh = {(v, number): build.names.fresh(f"{axes[v]}~") for v, number in pairs}
        step = {axes[v]: i for i, v in enumerate(copied.order)}
        step.update({name: step[axes[v]] for (v, _), name in fresh.items()})
        renamed = [(values[i], {axes[pair[0]]: fresh[pair] for pair in names}) for i, names in copied.leaves]
        return [build.renamed(*leaf) for leaf in renamed], or_in_order(self.approach.planner, step)

    def _as_diagrams(
        self, values: list[int], keep: Sequence[Axis], best: frozenset[Axis] = frozenset()
    ) -> tuple[int, Plan] | None:
        """Some values as one over the axes in `keep`, by structured elimination where that is worth it."""
        problem = self._contractor.problem(values, keep)
        value = self.structuring.eliminate(values, problem, keep, best)
        return None if value is None else (value, Plan(problem, ()))

    def _values_of(self, nodes: int, reused: Sequence[Marginal]) -> list[int]:
        """The values whose product is the joint of some nodes and their evidence, given marginals to be reused."""
        nodes &= ~union_of(marginal.covers for marginal in reused)
        values = [marginal.value for marginal in reused]
        for i in bits(nodes):
            values.extend(self._values[self.pruned.nodes[i]])
        return values or [self.builder.factor(IndexedFactor(None, np.array(ONE), ()))]  # the product of nothing

    def _reusable(self, nodes: int, keep: Axes) -> list[Marginal]:
        """Earlier marginals whose sums are neither over what is kept nor over axes of factors they do not cover."""
        kept, taken = mask_of(self._position[name] for name in keep), 0
        reusable: list[Marginal] = []
        for marginal in reversed(self._latest) if self.approach.reuse_marginals else ():
            summed = marginal.covers & ~marginal.parents
            if marginal.covers & ~nodes or marginal.covers & taken or summed & kept:
                continue
            if not any(self._parents[i] & summed for i in bits(nodes & ~marginal.covers)):
                reusable.append(marginal)
                taken |= marginal.covers
        return reusable
