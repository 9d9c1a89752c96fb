"""Values of a program under construction, multiplied and summed as a plan says, within the memory that there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tacit.base.errors import TooLargeError
from tacit.base.machine import memory
from tacit.compiler.builder import Builder
from tacit.compiler.operations import Axis
from tacit.compiler.order.tree import MAX_STEP, Planner, Problem, Tree, bits, mask_of
from tacit.compiler.program import Program


@dataclass(frozen=True)
class Plan:
    """The contraction tree of one elimination: factors, and the pairs in which they are multiplied, if they are."""

    problem: Problem
    path: tuple[tuple[int, int], ...]

    @property
    def structured(self) -> bool:
        """Whether factors were eliminated as diagrams."""
        return len(self.path) < len(self.problem.masks) - 1


class Contractor:
    """Multiplies and sums the values of a program; with `by_row`, all of them count as if they depended on rows."""

    def __init__(self, builder: Builder, by_row: bool) -> None:
        self._builder, self._by_row = builder, by_row
        self._limit = memory_limit()

    def problem(self, values: Sequence[int], keep: Iterable[Axis]) -> Problem:
        """The contraction of some values down to the axes in `keep`."""
        build = self._builder
        names = list(dict.fromkeys(axis for v in values for axis in build.axes(v)))
        place = {axis: i for i, axis in enumerate(names)}
        return Problem(
            masks=[mask_of(place[a] for a in build.axes(v)) for v in values],
            soft=[self._by_row or build.batched[v] for v in values],
            names=names,
            sizes=build.shape(names),
            keep=mask_of(place[a] for a in keep if a in place),
            hard=mask_of(i for i, axis in enumerate(names) if axis in build.hard),
            owners=build.owners,
        )

    def planned(self, values: Sequence[int], keep: Iterable[Axis], planner: Planner) -> Tree:
        """The tree of a plan for some values."""
        problem = self.problem(values, keep)
        return Tree(problem, planner(problem))

    def contract(
        self, values: Sequence[int], keep: Iterable[Axis], planner: Planner, largest: bool = False
    ) -> tuple[int, Plan]:
        """Some values as one over the axes in `keep`: summed, or the largest."""
        tree = self.planned(values, keep, planner)
        check_size(tree, self._limit)
        nodes = list(values)
        for i in range(tree.leaves, len(tree.out)):
            pair = (nodes[tree.left[i]], nodes[tree.right[i]])
            if tree.soft[i]:  # also where both are tables that observed states index
                pair = (self._builder.slice(pair[0]), self._builder.slice(pair[1]))
            axes = [tree.problem.names[axis] for axis in bits(tree.out[i])]
            nodes.append(self._builder.contract(pair, axes, largest))
        return nodes[-1], Plan(tree.problem, tuple(tree.path()))

    def closed(self, values: Sequence[int], keep: Collection[Axis], largest: bool = False) -> list[int]:
        """The values with every axis that one of them alone holds summed out, or the largest. Observed axes stay."""
        build = self._builder
        uses = Counter(axis for v in values for axis in build.axes(v))
        stay = {axis for axis, count in uses.items() if count > 1 or axis in keep or axis in build.hard}
        return [build.contract((v,), stay.intersection(build.axes(v)), largest) for v in values]

    def linked(self, values: Sequence[int], apart: Collection[Axis]) -> list[list[int]]:
        """Values in groups that have no axis in common but those in `apart`."""
        leader = list(range(len(values)))

        def find(i: int) -> int:
            while leader[i] != i:
                leader[i] = i = leader[leader[i]]
            return i

        first: dict[Axis, int] = {}
        for i, value in enumerate(values):
            for axis in self._builder.axes(value):
                if axis not in apart:
                    leader[find(i)] = find(first.setdefault(axis, i))
        groups: dict[int, list[int]] = {}
        for i, value in enumerate(values):
            groups.setdefault(find(i), []).append(value)
        return list(groups.values())

    def check_live(self, program: Program) -> None:
        """Stop where no value is too large by itself, but those that are needed at one time are."""
        if 8 * program.cost.live > self._limit:
            raise TooLargeError(
                f"the query is too large to run: the values of one row that are needed at one time would take "
                f"{8 * program.cost.live:.3g} bytes (limit {self._limit:.3g}); name observed variables in hard=, ask "
                "for less evidence, or try effort='high'"
            )


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


def memory_limit() -> float:
    """How many bytes the values of one row may take: half of the memory that there is for this process."""
    return memory() / 2
