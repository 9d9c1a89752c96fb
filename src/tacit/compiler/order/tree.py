"""A problem of contraction, a plan for it as a binary tree, and annealing, which improves a tree by rotations.

Sets of axes are bit masks. A factor is *soft* if it depends on evidence, so that every step on it is done
once per row; a step between factors that only depend on parameters is done once. An axis of hard evidence
is never summed: it stays an ordinary axis of a parameter table until the table meets something soft, and is
then indexed, row by row.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import accumulate

Path = list[tuple[int, int]]  # the k-th pair makes node (number of leaves + k)

ROWS = 256  # the batch a plan is made for
WRITE_COST = 4.0  # writing an element, in multiply-adds
STEP_COST = 2000.0  # what an operation costs by itself (an interpreter's overhead), in multiply-adds
MAX_STATIC = 2**22  # entries of a table computed ahead for all states of hard evidence
MAX_STEP = 1e11  # multiply-adds of one step for one row, beyond which a query is refused
MEMO_AXES = 2000  # axes up to which sizes are remembered: hashing a longer mask takes longer than its few axes do


@dataclass
class Problem:
    """Factors to be multiplied and summed down to the axes in `keep`."""

    masks: list[int]
    soft: list[bool]
    names: Sequence[str]  # of every axis, by bit
    sizes: Sequence[int]
    keep: int
    hard: int = 0
    owners: Mapping[str, str] = field(default_factory=dict)  # the variable of an axis that has another name
    _sizes: dict[int, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._few = len(self.sizes) <= MEMO_AXES
        # entries over so many axes, where all are equally long
        powers: Iterable[float] = accumulate([1.0, *map(float, self.sizes)], operator.mul)
        self._powers = list(powers) if self.uniform else []

    def size(self, mask: int) -> float:
        """The number of entries over the axes of `mask`."""
        if self._powers:
            return self._powers[mask.bit_count()]
        size = self._sizes.get(mask) if self._few else None
        if size is None:
            size = math.prod([self.sizes[axis] for axis in bits(mask)], start=1.0)
            if self._few:
                self._sizes[mask] = size
        return size

    def entries(self, mask: int, soft: bool) -> float:
        """The number of entries of a factor, of all rows of a batch if it is soft."""
        return self.size(mask) * (ROWS if soft else 1)

    @cached_property
    def uniform(self) -> bool:
        """Whether all axes are equally long."""
        return len(set(self.sizes)) <= 1

    def meet(self, a: int, soft_a: bool, b: int, soft_b: bool) -> tuple[int, bool]:
        """The axes that the product of two factors runs over, and whether it is soft."""
        union, soft = a | b, soft_a or soft_b
        if not soft and union & self.hard:
            whole = self.size(union)
            soft = whole > MAX_STATIC or whole > ROWS * self.size(union & ~self.hard)
        return (union & ~self.hard if soft else union), soft

    def cost(self, union: int, out: int, soft: bool) -> float:
        """What it costs to make a factor over `out` from a product over `union`."""
        work = self.size(union) + WRITE_COST * self.size(out)
        return (ROWS * work if soft else work) + STEP_COST


Planner = Callable[[Problem], Path]


def mask_of(positions: Iterable[int]) -> int:
    """The mask with the bits at these positions set.

    >>> bin(mask_of([0, 3]))
    '0b1001'
    """
    return union_of(1 << position for position in positions)


def union_of(masks: Iterable[int]) -> int:
    """The bits that are set in any of some masks."""
    return reduce(operator.or_, masks, 0)


def bits(mask: int) -> list[int]:
    """The positions of the bits that are set, low to high."""
    positions = []
    while mask:  # from the top, where the length of an integer is known at once
        high = mask.bit_length() - 1
        positions.append(high)
        mask ^= 1 << high
    positions.reverse()
    return positions


class Tree:
    """A plan as a tree, with the cost of every node."""

    def __init__(self, problem: Problem, path: Path) -> None:
        self.problem, self.leaves = problem, len(problem.masks)
        count = self.leaves + len(path)
        self.root = count - 1
        self.left, self.right = [-1] * count, [-1] * count
        self.out = [0] * count
        self.soft = [False] * count
        self.costs = [0.0] * count
        for k, (i, j) in enumerate(path, start=self.leaves):
            self.left[k], self.right[k] = i, j
        self._measure()

    @property
    def total(self) -> float:
        return sum(self.costs)

    @property
    def largest_step(self) -> float:
        """The most multiply-adds that one step takes for one row."""
        return max(self.problem.size(self.union(i)) for i in range(len(self.out)))

    def union(self, i: int) -> int:
        """The axes that a node's product runs over."""
        if i < self.leaves:
            return self.out[i]
        a, b = self.left[i], self.right[i]
        return self.problem.meet(self.out[a], self.soft[a], self.out[b], self.soft[b])[0]

    def _measure(self) -> None:
        """Outputs, softness and costs, leaves first. An axis leaves a subtree once nothing outside holds it."""
        p = self.problem
        uses = [0] * len(p.sizes)
        for mask in p.masks:
            for axis in bits(mask):
                uses[axis] += 1
        inside: list[dict[int, int]] = []
        for i in range(len(self.out)):
            if i < self.leaves:
                self.soft[i] = p.soft[i]
                self.out[i] = p.masks[i] & ~p.hard if p.soft[i] else p.masks[i]
                inside.append(dict.fromkeys(bits(p.masks[i]), 1))
                continue
            a, b = self.left[i], self.right[i]
            counts, fewer = inside[a], inside[b]
            for axis, k in fewer.items():
                counts[axis] = counts.get(axis, 0) + k
            union, self.soft[i] = p.meet(self.out[a], self.soft[a], self.out[b], self.soft[b])
            closed = 0
            for axis in bits(union & ~p.keep & ~p.hard):
                if counts[axis] == uses[axis]:
                    closed |= 1 << axis
                    del counts[axis]
            self.out[i] = union & ~closed
            inside.append(counts)
            self.costs[i] = p.cost(union, self.out[i], self.soft[i])

    def path(self) -> Path:
        """The pairs in an order in which children come first."""
        ids = {i: i for i in range(self.leaves)}
        path: Path = []
        stack = [(self.root, False)] if self.left[self.root] >= 0 else []
        while stack:
            i, ready = stack.pop()
            if i < self.leaves:
                continue
            if ready:
                ids[i] = self.leaves + len(path)
                path.append((ids[self.left[i]], ids[self.right[i]]))
            else:
                stack += [(i, True), (self.right[i], False), (self.left[i], False)]
        return path

    def rotated(self, top: int, a: int, b: int, c: int) -> tuple[int, bool, float, float] | None:
        """What `top` = ((a b) c) would be as ((a c) b): output, softness and cost of (a c), then the cost of `top`.

        An axis of (a c) stays open exactly if b or the outside holds it, so nothing else need be looked at. None
        where hard evidence would be indexed elsewhere, which would change nodes above.
        """
        outs, softs = self.out, self.soft
        wanted = outs[top]
        out, soft, inner = self.node_cost(outs[a], softs[a], outs[c], softs[c], outs[b] | wanted)
        top_out, top_soft, outer = self.node_cost(out, soft, outs[b], softs[b], wanted)
        if top_soft != softs[top] or top_out != wanted:
            return None
        return out, soft, inner, outer

    def node_cost(self, a: int, sa: bool, b: int, sb: bool, wanted: int) -> tuple[int, bool, float]:
        """Output, softness and cost of a product of which only the axes `wanted` outside are kept."""
        union, soft = self.problem.meet(a, sa, b, sb)
        out = union & (wanted | self.problem.hard | self.problem.keep)
        return out, soft, self.problem.cost(union, out, soft)


def anneal(tree: Tree, moves: int, rng: random.Random, start: float = 0.03, end: float = 1e-6) -> Tree:
    """The best tree met in annealing, which turns ((a b) c) into ((a c) b) or ((b c) a); heat is relative to cost."""
    internal = list(range(tree.leaves, len(tree.out)))
    if moves <= 0 or len(internal) < 2:
        return tree
    total = best_total = tree.total
    best = (tree.left[:], tree.right[:])
    for k in range(moves):
        temperature = start * (end / start) ** (k / moves)
        top = internal[rng.randrange(len(internal))]
        x, c = tree.left[top], tree.right[top]
        if rng.random() < 0.5:
            x, c = c, x
        if x < tree.leaves:
            continue
        a, b = tree.left[x], tree.right[x]
        if rng.random() < 0.5:
            a, b = b, a
        priced = tree.rotated(top, a, b, c)
        if priced is None:
            continue
        out, soft, inner, outer = priced
        change = inner + outer - tree.costs[x] - tree.costs[top]
        if change > 0 and rng.random() >= math.exp(-change / (temperature * total)):
            continue
        tree.left[x], tree.right[x] = a, c
        tree.left[top], tree.right[top] = x, b
        tree.out[x], tree.soft[x], tree.costs[x], tree.costs[top] = out, soft, inner, outer
        total += change
        if total < best_total * (1 - 1e-9):
            best_total, best = total, (tree.left[:], tree.right[:])
    tree.left, tree.right = best
    return Tree(tree.problem, tree.path())
