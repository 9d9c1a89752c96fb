"""Symbolic factor elimination in two phases, as in the paper's appendix.

Selection: testing nodes, ancestors first, are flattened, each from the marginal of its parents given the
evidence that takes part (see `sight`). Inference: the query, from the original regular tables and the flattened ones.

Where the largest probability is asked for, inference has two parts, since a maximum does not commute with a sum: what
is summed out goes first, and the maximum is taken of the rest. Selection sums as always.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.machine import memory
from tacit.compiler import factors as initial
from tacit.compiler.builder import Builder
from tacit.compiler.copies import copies, known_function
from tacit.compiler.diagram_choice import Structuring
from tacit.compiler.factors import Factor
from tacit.compiler.operations import ONE, Axes, Axis, Constant, Likelihood, Parameter
from tacit.compiler.operations.select import codes as test_codes
from tacit.compiler.order.tree import MAX_STEP, Problem, Tree, bits, mask_of
from tacit.compiler.planners import Planner, or_in_order, quick
from tacit.compiler.program import ParentMarginal, Program
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.compiler.structure_budget import Failure, Structure
from tacit.compiler.visibility import reporting, taking_part
from tacit.model.cpt import THRESHOLDS, TestingCPT
from tacit.model.model import Model

MAX_REUSED = 64  # how many earlier marginals are looked at before a phase is planned
MAX_PLANNED_TWICE = 12  # up to so many nodes, a phase is also planned without the earlier marginals


@dataclass(frozen=True)
class Plan:
    """The contraction tree of one elimination: the factors and the pairs in which they are multiplied.

    If elimination was structured, there are no pairs.
    """

    problem: Problem
    path: tuple[tuple[int, int], ...]

    @property
    def structured(self) -> bool:
        """Whether factors were eliminated as diagrams."""
        return len(self.path) < len(self.problem.masks) - 1


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
    structure: Structure | None = None
    copying: bool = False


class Elimination:
    """One compilation: the network that is left after pruning, and the program that grows."""

    def __init__(self, net: Model, pruned: Pruned, question: Question, approach: Approach) -> None:
        self.net, self.pruned, self.question, self.hard = net, pruned, question, question.indexed
        self.approach, structure = approach, approach.structure
        self.memory_limit = memory_limit()
        self.names = initial.AxisNames(net)
        self.axis = {n: self._axis(n, states) for n, states in pruned.states.items()}
        self._owners = {axis: n for n, axis in self.axis.items() if axis is not None}
        self.builder = Builder(self._variable_sizes(), self.hard, approach.evidence_per_scale)
        self._structuring = None if structure is None else Structuring(net, self.builder, structure)
        self._readings = initial.readings(net, pruned, question, self.names)
        self._evidence = frozenset(question.soft)
        self._reports = frozenset(name for name, _ in question.reports)
        self._values: dict[str, list[int]] = {}
        self._entered = 0  # the nodes that have values, as a bit mask: looking at each in every phase would take long
        self._functions: dict[int, str] = {}  # values that are known functions, and the nodes they are of
        self.copied: dict[str, None] = {}  # nodes whose functions were copied
        self._selections: dict[str, ParentMarginal] = {}
        self._marginals: dict[tuple[frozenset[str], int], Marginal] = {}
        self._latest: deque[Marginal] = deque(maxlen=MAX_REUSED)
        self._position = {n: i for i, n in enumerate(pruned.nodes)}

    def _axis(self, name: str, states: tuple[int, ...]) -> Axis | None:
        """The axis of a variable in the program: none if one state is possible, another name if not all are."""
        if len(states) == 1:
            return None
        return name if len(states) == self.net.variable(name).card else self.names.fresh(f"{name}'")

    def _variable_sizes(self) -> dict[Axis, int]:
        sizes = {n: self.net.variable(n).card for n in self.pruned.nodes}
        sizes.update({a: len(self.pruned.states[n]) for n, a in self.axis.items() if a is not None})
        return sizes

    @cached_property
    def _parents(self) -> list[int]:
        """For every node, its parents as a bit mask."""
        return [mask_of(self._position[p] for p in self.net.parents(n)) for n in self.pruned.nodes]

    @cached_property
    def _taking_part(self) -> dict[str, int]:
        """For every testing node, the nodes whose factors take part in its selection, as a bit mask."""
        evidence = (*self.question.evidence, *self.question.indexed, *(name for name, _ in self.question.given))
        known = {name for name, axis in self.axis.items() if axis is None} | self.hard
        found = taking_part(self.net, self.pruned.nodes, evidence, known)
        return found | reporting(self.net, self.pruned.nodes, self.question.reports) if self.question.reports else found

    def run(self) -> tuple[Program, Plan]:
        """Selection phase, then inference phase."""
        for name in self.pruned.nodes:
            self.enter(name)
        joint, plan = self.maximisation() if self.question.best else self.inference()
        fixed = tuple({**self.copied, **({} if self._structuring is None else self._structuring.fixed)})
        program = self.builder.finish(
            self.question, joint, self._selections, self.pruned.states, self._owners, fixed, self.traced
        )
        check_live(program, self.memory_limit)
        return program, plan

    def enter(self, name: str) -> None:
        """The factors of a node and of its evidence; where its table is selected, those that take part go first."""
        if name in self._values:
            return
        if not self.net.cpt(name).testing:
            self._values[name] = self.initialise(name)
        else:
            for i in bits(self._taking_part[name] & ~self._entered):
                self.enter(self.pruned.nodes[i])
            selected = self.flatten(name)
            self._values[name] = [] if name in self._reports else [selected]
        self._entered |= 1 << self._position[name]
        self.enter_evidence(name)

    def initialise(self, name: str) -> list[int]:
        """The factors of a regular node: none where its state is set, or sure."""
        if name in self.question.do or name in self.pruned.determined:
            return []
        found = initial.node_factors(self.net, name, self._readings, self.names)
        values = [value for factor in found if not self._is_one(value := self._restricted(factor))]
        if self.approach.copying and len(found) == len(values) == 1 and known_function(self.net, name):
            self._functions[values[0]] = name
        return values

    def enter_evidence(self, name: str) -> None:
        """Multiply the likelihoods of a node into its table, after selection if the node is testing."""
        if name not in self._evidence:
            return
        likelihoods = [self._restricted(f) for f in initial.likelihood_factors(self.net, name, self._readings)]
        values = self._values[name]
        if self.approach.enter_evidence_first and len(values) == len(likelihoods) == 1:
            axes = self.builder.axes(values[0])
            self._values[name] = [self.builder.contract((values[0], likelihoods[0]), axes)]
        else:
            self._values[name] = values + likelihoods

    def flatten(self, name: str) -> int:
        """The table of a testing node, selected by the posterior of its parents."""
        cpt, parents = self.net.cpt(name), self.net.parents(name)
        assert isinstance(cpt, TestingCPT)
        build = self.builder
        marginal = build.slice(self.marginal(name))
        axes = tuple(None if p in self.hard else self.axis[p] for p in parents)
        self._selections[name] = ParentMarginal(marginal, axes)
        tests, observed = self._tests(cpt, parents, build.axes(marginal))
        values = {part: self._possible(initial.whole(Parameter(name, part, (*parents, name)), table.shape))
                  for part, table in cpt.parts().items() if part != THRESHOLDS}  # fmt: skip
        tables = [values[part] for part in cpt.table_parts]
        thresholds = initial.Thresholds.of(name, cpt, parents, self.names)
        chosen = tables[0]  # among the first tables: see `operations.blend`
        for j, limit in enumerate(thresholds.in_turn):
            table = tables[j + 1]
            if j < len(thresholds.gaps):
                lower, upper = (self._possible(factor) for factor in thresholds.gaps[j])
                own, rest = (build.share(name, (lower, upper, table), own) for own in (True, False))
                table = build.add((own, build.contract((rest, chosen), build.axes(table))))
            inputs = (build.slice(table), build.slice(chosen), build.slice(self._possible(limit)))
            chosen = build.select(name, (marginal, *inputs), tests, observed)
        return chosen

    def _tests(self, cpt: TestingCPT, parents: Axes, marginal: Axes) -> tuple[NDArray[np.int64], Axes]:
        """The operators over the axes of a marginal and of the observed parents that matter to them, and the latter."""
        states = [self.pruned.states[p] for p in parents]
        codes = test_codes(cpt.test)[np.ix_(*states)]
        axes = [self.axis[p] for p in parents]
        codes = codes.reshape([n for n, a in zip(codes.shape, axes, strict=True) if a is not None])
        named = [a for a in axes if a is not None]
        observed = tuple(a for a in named if a not in marginal)
        codes = codes.transpose([named.index(a) for a in (*marginal, *observed)])
        for k in reversed(range(len(observed))):
            at = len(marginal) + k
            if (codes == codes.take([0], axis=at)).all():
                codes, observed = np.asarray(codes.take(0, axis=at)), (*observed[:k], *observed[k + 1 :])
        return np.array(codes), observed

    def marginal(self, name: str) -> int:
        """p*(u) of the parents of a testing node, given the evidence that takes part in its selection."""
        parents = self.net.parents(name)
        nodes = self._taking_part[name]
        key = (frozenset(parents), nodes)
        if key not in self._marginals:
            value, _ = self.eliminate(nodes, parents)
            self._marginals[key] = Marginal(value, nodes, mask_of(self._position[p] for p in parents))
            self._latest.append(self._marginals[key])
        return self._marginals[key].value

    def inference(self) -> tuple[int, Plan]:
        """p*(q) for all states of the query variables."""
        query, states = self.question.query, self.pruned.states
        value, plan = self._traced() if self.traced else self.eliminate(self._everything, query, last=True)
        return self.builder.embed(self.builder.slice(value), query, [states[n] for n in query], self.axis), plan

    def maximisation(self) -> tuple[int, Plan]:
        """The largest p*(states of the variables in `best`), with all others summed out.

        Auxiliary axes count as others: those of a noisy-or are sums that no maximum may enter.
        """
        best = {axis for name in self.question.best if (axis := self.axis[name]) is not None} - self.hard
        if self.traced:
            value, plan = self._traced(frozenset(best))
            return self.builder.slice(value), plan
        reused = self._reusable(self._everything, self.question.best) if self.approach.reuse_marginals else []
        values = self._closed_alone(self._factors(self._everything, reused), best)
        summed: list[int] = []
        for part in self._linked(values, best | self.hard):
            summed.append(self._eliminated(part, best, self.approach.planner)[0] if len(part) > 1 else part[0])
        values = self._closed_alone(summed, (), largest=True)
        value, plan = self._eliminated(values, (), self.approach.planner, largest=True)
        return self.builder.slice(value), plan

    @property
    def traced(self) -> bool:
        """Whether states are wanted of a structured program, whose way down follows single instructions."""
        return self._structuring is not None and bool(self.question.best or self.question.every_node)

    def _traced(self, best: frozenset[Axis] = frozenset()) -> tuple[int, Plan]:
        """Inference in the structured way all through, with the factors of all nodes in one operation or one chain."""
        found = self._as_diagrams(self._factors(self._everything, []), (), best)
        if found is None:
            raise TooLargeError("the query is too wide to compile")
        return found

    @property
    def saved(self) -> float:
        """About how many multiply-adds tables would take where elimination is structured."""
        return 0.0 if self._structuring is None else self._structuring.saved

    @property
    def work(self) -> tuple[float, int]:
        """About how many multiply-adds tables would take for the largest part, by a quick order, and its width."""
        return (0.0, 0) if self._structuring is None else (self._structuring.work, self._structuring.width)

    @property
    def failure(self) -> Failure | None:
        """Where structured elimination gave up, if it did."""
        return None if self._structuring is None else self._structuring.failure

    @property
    def _everything(self) -> int:
        return (1 << len(self.pruned.nodes)) - 1

    def eliminate(self, nodes: int, keep: Axes, last: bool = False) -> tuple[int, Plan]:
        """Eliminate all factors of some nodes (a bit mask) down to one factor over the variables in `keep`."""
        reused = self._reusable(nodes, keep) if self.approach.reuse_marginals else []
        options = [self._factors(nodes, reused)]
        kept = [axis for name in keep if (axis := self.axis[name]) is not None]
        planner = self.approach.planner
        if self._functions:
            options[0], planner = self._with_copies(options[0], kept)
        if self.approach.copying and last and not self.copied:
            raise TooLargeError("the query has no function that copies would help")
        if self._structuring is not None:
            found = self._as_diagrams(options[0], kept)
            if found is not None:
                return found
            if last and not self.saved:
                raise TooLargeError("the query has no part that structure would help")
        if reused and nodes.bit_count() <= MAX_PLANNED_TWICE:
            options.append(self._factors(nodes, []))
        options = [self._closed_alone(values, kept) for values in options]
        if len(options) > 1:
            options.sort(key=lambda values: self._planned(values, kept, quick).total)
        return self._eliminated(options[0], kept, planner)

    def _with_copies(self, values: list[int], keep: Sequence[Axis]) -> tuple[list[int], Planner]:
        """The values, with known functions in copies where that saves much, and a planner for them."""
        problem = self._problem(values, keep)
        axes = problem.names
        functions = {
            axes.index(axis): i
            for i, value in enumerate(values)
            if value in self._functions and (axis := self.axis[self._functions[value]]) is not None
        }
        found = copies(problem, functions)
        if found is None:
            return values, self.approach.planner
        times = Counter(i for i, _ in found.leaves)
        self.copied |= {self._functions[value]: None for i, value in enumerate(values) if times[i] > 1}
        pairs = sorted({pair for _, names in found.leaves for pair in names})
        made = {pair: self.names.fresh(f"{axes[pair[0]]}~") for pair in pairs}
        step = {axes[v]: i for i, v in enumerate(found.order)}
        step.update({name: step[axes[v]] for (v, _), name in made.items()})
        copied = [
            self.builder.renamed(values[i], {axes[pair[0]]: made[pair] for pair in names}) for i, names in found.leaves
        ]
        return copied, or_in_order(self.approach.planner, step)

    def _as_diagrams(
        self, values: list[int], keep: Sequence[Axis], best: frozenset[Axis] = frozenset()
    ) -> tuple[int, Plan] | None:
        """The same in the structured way, where that is worth it."""
        assert self._structuring is not None
        problem = self._problem(values, keep)
        value = self._structuring.eliminate(values, problem, keep, best)
        return None if value is None else (value, Plan(problem, ()))

    def _eliminated(
        self, values: list[int], keep: Iterable[Axis], planner: Planner, largest: bool = False
    ) -> tuple[int, Plan]:
        """Some values as one over the axes in `keep`: summed, or the largest."""
        tree = self._planned(values, keep, planner)
        check_size(tree, self.memory_limit)
        return self._execute(tree, values, largest), Plan(tree.problem, tuple(tree.path()))

    def _linked(self, values: Sequence[int], apart: set[Axis] | frozenset[Axis]) -> list[list[int]]:
        """Values in groups that have no axis in common but those in `apart`."""
        leader = list(range(len(values)))

        def find(i: int) -> int:
            while leader[i] != i:
                leader[i] = i = leader[leader[i]]
            return i

        first: dict[Axis, int] = {}
        for i, value in enumerate(values):
            for axis in self.builder.axes(value):
                if axis not in apart:
                    leader[find(i)] = find(first.setdefault(axis, i))
        groups: dict[int, list[int]] = {}
        for i, value in enumerate(values):
            groups.setdefault(find(i), []).append(value)
        return list(groups.values())

    def _restricted(self, factor: Factor) -> int:
        """A factor over the possible states only, indexed by observed states if these come first."""
        value = self._possible(factor)
        return self.builder.slice(value) if self.approach.index_first else value

    def _possible(self, factor: Factor) -> int:
        """A factor over the possible states only, without axes of one state, as a value of the program."""
        for axis, size in zip(factor.axes, factor.index.shape, strict=True):
            self.builder.sizes.setdefault(axis, size)
        if factor.source is not None:
            for axis in factor.source.axes:
                if axis not in self.builder.sizes:
                    self.builder.sizes[axis] = self._source_size(factor.source, axis)
        picks = [
            self.pruned.states.get(a, tuple(range(n))) for a, n in zip(factor.axes, factor.index.shape, strict=True)
        ]
        index = factor.index[np.ix_(*picks)] if picks else factor.index
        axes = [self.axis.get(a, a) for a in factor.axes]
        index = index.reshape([n for n, a in zip(index.shape, axes, strict=True) if a is not None])
        return self.builder.factor(
            Factor(factor.source, index.copy(), factor.axes), tuple(a for a in axes if a is not None)
        )

    def _is_one(self, value: int) -> bool:
        """Whether a value is 1 everywhere, as what a multiplexer says of an input that cannot be selected."""
        made = self.builder.operations[value]
        return isinstance(made, Constant) and bool((made.table == 1).all())

    def _source_size(self, source: Parameter | Likelihood, axis: Axis) -> int:
        assert isinstance(source, Parameter)  # likelihoods only have axes of variables
        return int(self.net.cpt(source.node).parts()[source.part].shape[source.axes.index(axis)])

    def _factors(self, nodes: int, reused: Sequence[Marginal]) -> list[int]:
        """The values whose product is the joint of some nodes and their evidence."""
        for marginal in reused:
            nodes &= ~marginal.covers
        values = [m.value for m in reused]
        for i in bits(nodes):
            values.extend(self._values[self.pruned.nodes[i]])
        return values or [self.builder.factor(Factor(None, np.array(ONE), ()), ())]  # the product of nothing

    def _reusable(self, nodes: int, keep: Axes) -> list[Marginal]:
        """Earlier marginals that can stand for the factors they cover.

        What a marginal has summed out must neither be kept nor occur in a factor that it does not cover.
        """
        kept = sum(1 << self._position[name] for name in keep)
        found: list[Marginal] = []
        taken = 0
        for marginal in reversed(self._latest):
            summed = marginal.covers & ~marginal.parents
            outside = nodes & ~marginal.covers
            if marginal.covers & ~nodes or marginal.covers & taken or summed & kept:
                continue
            if not any(self._parents[i] & summed for i in bits(outside)):
                found.append(marginal)
                taken |= marginal.covers
        return found

    def _closed_alone(self, values: Sequence[int], keep: Collection[Axis], largest: bool = False) -> list[int]:
        """Sum out, in each factor, what no other factor holds, or take the largest. Observed axes stay."""
        uses = Counter(axis for v in values for axis in self.builder.axes(v))

        def stays(axis: Axis) -> bool:
            return uses[axis] > 1 or axis in keep or axis in self.hard

        return [self.builder.contract((v,), [a for a in self.builder.axes(v) if stays(a)], largest) for v in values]

    def _planned(self, values: list[int], keep: Iterable[Axis], planner: Planner) -> Tree:
        problem = self._problem(values, keep)
        return Tree(problem, planner(problem))

    def _problem(self, values: Sequence[int], keep: Iterable[Axis]) -> Problem:
        names = list(dict.fromkeys(axis for v in values for axis in self.builder.axes(v)))
        place = {axis: i for i, axis in enumerate(names)}
        return Problem(
            masks=[mask_of(place[a] for a in self.builder.axes(v)) for v in values],
            soft=[self.question.by_row or self.builder.batched[v] for v in values],
            names=names,
            sizes=[self.builder.sizes[a] for a in names],
            keep=mask_of(place[a] for a in keep if a in place),
            hard=mask_of(i for i, axis in enumerate(names) if axis in self.hard),
            owners=self._owners,
        )

    def _execute(self, tree: Tree, values: Sequence[int], largest: bool) -> int:
        """Carry a plan out, symbolically."""
        made = list(values)
        for i in range(tree.leaves, len(tree.out)):
            pair = (made[tree.left[i]], made[tree.right[i]])
            if tree.soft[i]:  # also where both are tables that observed states index
                pair = (self.builder.slice(pair[0]), self.builder.slice(pair[1]))
            keep = [tree.problem.names[axis] for axis in bits(tree.out[i])]
            made.append(self.builder.contract(pair, keep, largest))
        return made[-1]


def check_size(tree: Tree, limit: float) -> None:
    """Stop before anything large is allocated."""
    size, steps = tree.problem.size, tree.costs[tree.leaves :]
    if steps and not tree.problem.hard and 8 * max(steps) <= min(limit, MAX_STEP):
        return  # a step costs more than its sizes, which are slow to find out where there are very many axes
    worst = max(range(len(tree.out)), key=lambda i: size(tree.union(i)))
    union, out = tree.union(worst), max(tree.out, key=size)
    if 8 * size(out) <= limit and size(union) <= MAX_STEP:
        return
    cluster = [tree.problem.names[axis] for axis in bits(union)]
    shown = ", ".join(cluster[:12]) + (", ..." if len(cluster) > 12 else "")
    raise TooLargeError(
        f"the query is too wide to compile: width {len(cluster) - 1}, the cluster ({shown}) has {size(union):.3g} "
        f"states, and its largest table would need {8 * size(out):.3g} bytes per row (limit {limit:.3g}); "
        "name observed variables in hard=, ask for less evidence, or try effort='high'"
    )


def check_live(program: Program, limit: float) -> None:
    """Stop where no value is too large by itself, but those that are needed at one time are."""
    if 8 * program.cost.live > limit:
        raise TooLargeError(
            f"the query is too large to run: the values of one row that are needed at one time would take "
            f"{8 * program.cost.live:.3g} bytes (limit {limit:.3g}); name observed variables in hard=, ask for less "
            "evidence, or try effort='high'"
        )


def memory_limit() -> float:
    """How many bytes the values of one row may take: half of the memory that there is for this process."""
    return memory() / 2
