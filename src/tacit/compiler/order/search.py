"""The search for a plan: a portfolio of elimination orders and greedy pairs, with the batch in the cost model."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, compress
from typing import NamedTuple

from tacit.base import machine
from tacit.compiler.order.exact import cheapest_path, perfect_order
from tacit.compiler.order.long_search import long_search
from tacit.compiler.order.sweep import by_windows, sweep_order, widest_front
from tacit.compiler.order.tree import MAX_STEP, ROWS, STEP_COST, Path, Problem, Tree, anneal, bits, union_of

HUB_NEIGHBOURS = 100  # of an axis, beyond which the pairs that elimination would join are not counted one by one
MAX_GROUP = 8  # factors of one axis up to which all pairs of them are compared
MAX_EXACT = 4  # factors up to which the cheapest plan of all is taken, ...
MAX_EXACT_HIGH = 9  # ... and with the highest effort: 3^9 / 2 pairs of sets take a tenth of a second
MAX_SEARCHED = 2000  # factors beyond which an order that adds no edge, or a plan by windows, is taken at once
MAX_PAIRED = 300  # factors up to which greedy pairing is tried: beyond, elimination orders always won
MIN_LONG_SEARCH = 40  # factors below which a plan is found with less search
MAX_SETTLED = 16  # factors up to which annealing that finds nothing at any heat will find nothing any more
SWEEP_PRICE = 1e8  # the cost from which sweeps are tried, and several annealing runs are worth their time
HEATS = (0.03, 0.1, 0.3, 0.03)  # where annealing starts, run by run
MAX_RUNS = 12  # of annealing, ...
MAX_RUNS_SWEPT = 2  # ... and where it starts from a sweep, which the first run gets most out of
# A largest step that is so many times beyond what is accepted, before annealing and after it has begun, ends the
# search: on grids of up to 32 by 32, where the first orders are at their worst, it gained a factor of 2^9 at most.
MAX_EXCESS = 2.0**20
MAX_EXCESS_ANNEALED = 2.0**10
MAX_EXCESS_SLOW = 4.0  # where a run of annealing gained less than a tenth, as twelve of them would
MAX_EXCESS_SWEPT = 4.0  # annealing makes sweeps cheaper by a third, and their largest steps larger

DEAR = 2e9  # multiply-adds of a row from which a long search pays, ...
DEAR_START = 2e11  # ... and of plans before annealing, from which it takes the place of the usual runs
STARTS = 10  # of a long search
LONG_SEARCH = 20  # seconds that are needed for one, or nearly

EFFORTS = ("low", "auto", "high")

Weigh = Callable[[Problem, list[int], int, int], float]
Method = Callable[[Problem, random.Random | None], Path]
Priced = tuple[float, Path]  # what a plan costs, and the plan


def search(problem: Problem, effort: str = "auto", seed: int = 0, patient: bool = True) -> Path:
    """The cheapest plan found: a portfolio of orders, then annealing while it promises to pay.

    Deterministic: the amount of search depends on the problem, never on the clock. Who is not `patient` gets no long
    search.
    """
    leaves = len(problem.masks)
    if leaves <= (MAX_EXACT_HIGH if effort == "high" else MAX_EXACT):
        return cheapest_path(problem)
    if leaves > MAX_SEARCHED and (order := perfect_order(problem)) is not None:
        return by_elimination(problem, order)
    again = partial(search, effort=effort, seed=seed, patient=patient)
    if leaves > MAX_SEARCHED and (path := by_windows(problem, again)) is not None:
        return path
    rng = random.Random(seed)
    tried = _first_plans(problem)
    sweeps = _sweeps(problem, tried[0].total)
    if effort == "auto" and _out_of_reach(problem, tried[0], sweeps):
        return (sweeps or tried)[0][1]
    plans = _portfolio(problem, tried, sweeps, effort, rng)
    long = effort == "auto" and patient
    if long and _dear(problem, plans[0][0], DEAR_START):
        plans.append(_from_many_starts(problem, plans, rng))
    elif effort != "low":
        runs = MAX_RUNS_SWEPT if sweeps and sweeps[0][0] <= plans[0][0] else MAX_RUNS
        plans.append(_annealed(problem, [path for _, path in plans[:3]], "auto", rng, runs))
        if long and _dear(problem, min(plans)[0], DEAR):
            plans.append(_from_many_starts(problem, plans, rng))
    if effort == "high":
        plans.append(_annealed(problem, [path for _, path in sorted(plans)[:3]], "high", rng))
        plans += [(Tree(problem, path).total, path) for path in _cotengra(problem)]
    return min(plans)[1]


def _dear(problem: Problem, cost: float, limit: float) -> bool:
    """Whether a single row of a plan takes so long that a long search pays, which compiled code must do."""
    return cost / (ROWS if any(problem.soft) else 1) > limit and not problem.hard and machine.can_run_code()


def _from_many_starts(problem: Problem, plans: Sequence[Priced], rng: random.Random) -> Priced:
    """The best plan of a long search from the cheapest plans so far, and from jittered orders."""
    orders = [by_elimination(problem, elimination_order(problem, JITTERED[i % 3], rng)) for i in range(STARTS)]
    enough = 2 * DEAR * (ROWS if any(problem.soft) else 1)
    return long_search(problem, [*(path for _, path in sorted(plans)[:2]), *orders], enough)


class _Tried(NamedTuple):
    """A plan, what it costs, and the method that it is from."""

    total: float
    path: Path
    method: Method


def _first_plans(problem: Problem) -> list[_Tried]:
    """The plans of several methods, cheapest first."""
    first, weighted = _tried(problem, _eliminating(min_fill)), _eliminating(weighted_min_fill)
    plans = [first, first._replace(method=weighted) if problem.uniform else _tried(problem, weighted)]
    methods = [_eliminating(min_size)]
    if len(problem.masks) <= MAX_PAIRED:
        methods += [_pairing(score) for score in (score_cost, score_growth, score_relative)]
    plans += [_tried(problem, method) for method in methods]
    return sorted(plans, key=lambda plan: plan.total)


def _tried(problem: Problem, method: Method, rng: random.Random | None = None) -> _Tried:
    path = method(problem, rng)
    return _Tried(Tree(problem, path).total, path, method)


def _sweeps(problem: Problem, least: float) -> list[Priced]:
    """Sweeps in both directions that cost less than the best plan so far, where plans are dear; cheapest first."""
    if least < SWEEP_PRICE:
        return []
    order = sweep_order(problem)
    if widest_front(problem, order) > least:
        return []
    paths = [by_elimination(problem, axes) for axes in (order, order[::-1])]
    both = [(Tree(problem, path).total, path) for path in paths]
    return sorted((plan for plan in both if plan[0] < least), key=lambda plan: plan[0])


def _out_of_reach(problem: Problem, best: _Tried, sweeps: list[Priced]) -> bool:
    """Whether the first plans' largest steps are so far beyond what is accepted that no search will bring one back."""
    if not sweeps:
        return _beyond(problem, best, MAX_EXCESS)
    return _beyond(problem, sweeps[0], MAX_EXCESS_SWEPT) and _beyond(problem, best, MAX_EXCESS_ANNEALED)


def _beyond(problem: Problem, plan: _Tried | Priced, times: float) -> bool:
    """Whether a plan's largest step is more than so many times what is accepted."""
    total, path = plan[:2]
    return total > times * MAX_STEP and Tree(problem, path).largest_step > times * MAX_STEP


def _portfolio(
    problem: Problem, tried: list[_Tried], sweeps: list[Priced], effort: str, rng: random.Random
) -> list[Priced]:
    """The first plans, and some of the best methods among them with jitter; cheapest first."""
    least = (sweeps or tried)[0][0]
    good = [plan.method for plan in tried if plan.total <= 8 * least]
    restarts = _restarts(least, len(problem.masks), effort) if good else 0
    jittered = [_tried(problem, good[i % len(good)], rng) for i in range(restarts)]
    return sorted([*((plan.total, plan.path) for plan in (*tried, *jittered)), *sweeps])


def _restarts(total: float, leaves: int, effort: str) -> int:
    """How many jittered plans to try: none where an interpreter's overhead is most of the cost."""
    if effort == "low":
        return 0
    worth = int((total - STEP_COST * leaves) / 2e4)
    most = min(30, max(2, 1500 // leaves))
    return 4 * most if effort == "high" else min(worth, most, leaves // (2 if leaves >= MIN_LONG_SEARCH else 8))


def _annealed(problem: Problem, starts: list[Path], effort: str, rng: random.Random, most: int = 16) -> Priced:
    """The best of some annealing runs, hot and cool in turn: the more a plan costs, the more of them are worth it."""
    total, leaves = Tree(problem, starts[0]).total, len(problem.masks)
    if effort == "high":
        moves, runs = 200_000, 16
    else:
        per_factor = 500 if leaves >= MIN_LONG_SEARCH else 200
        moves = int(min((total - STEP_COST * leaves) / 20, per_factor * leaves, 150_000))
        runs = 1 if total < SWEEP_PRICE else 5 if total < 1e10 else MAX_RUNS
    best = (total, starts[0])
    gained = 0  # the last run that found something cheaper
    for i in range(min(runs, most)):
        start, before = starts[i] if i < len(starts) else best[1], best[0]
        tree = anneal(Tree(problem, start), moves, rng, start=HEATS[i % len(HEATS)])
        if tree.total < best[0] * (1 - 1e-9):
            gained = i
        best = min(best, (tree.total, tree.path()))
        if effort == "high":
            if leaves <= MAX_SETTLED and i - gained >= len(HEATS):
                break  # so small a problem, and nothing found at any heat
        elif (i == (leaves > 50) and best[0] > 0.99 * total) or _beyond(problem, best, MAX_EXCESS_ANNEALED):
            break  # next to nothing found, or nothing that helps
        elif i >= len(starts) and best[0] > 0.9 * before and _beyond(problem, best, MAX_EXCESS_SLOW):
            break  # so little found that all runs together would not help
    return best


def _eliminating(weigh: Weigh) -> Method:
    return lambda problem, rng: by_elimination(problem, elimination_order(problem, weigh, rng))


def _pairing(score: Score) -> Method:
    return lambda problem, rng: greedy(problem, score, rng)


# The neighbours of v in `joined` are adjacent to each other, as those of the axis that was eliminated last are: pairs
# of them need not be counted, which leaves few to look at where clusters are large.


def min_fill(problem: Problem, adjacent: list[int], v: int, joined: int = 0) -> float:
    """How many pairs of neighbours would become adjacent."""
    around = adjacent[v]
    if (degree := around.bit_count()) > HUB_NEIGHBOURS:
        return degree * (degree - 1) / 2
    inside = around & joined
    outside = around ^ inside
    once = twice = 0
    for u in bits(outside):
        apart = ~adjacent[u]
        once += (inside & apart).bit_count()
        twice += (outside & apart).bit_count() - 1
    return once + twice / 2


def weighted_min_fill(problem: Problem, adjacent: list[int], v: int, joined: int = 0) -> float:
    """The pairs of neighbours that would become adjacent, weighted (twice) by the product of their cardinalities."""
    around, sizes = adjacent[v], problem.sizes
    if problem.uniform:
        return 2 * sizes[v] ** 2 * min_fill(problem, adjacent, v, joined)
    if around.bit_count() > HUB_NEIGHBOURS:
        return float(sum(sizes[u] for u in bits(around)) ** 2)
    inside = around & joined
    outside = around ^ inside
    weight = 0
    for u in bits(outside):
        apart = ~adjacent[u] & ~(1 << u)
        once, twice = bits(inside & apart), bits(outside & apart)
        weight += sizes[u] * (2 * sum(sizes[w] for w in once) + sum(sizes[w] for w in twice))
    return weight


def min_size(problem: Problem, adjacent: list[int], v: int, joined: int = 0) -> float:
    """The size of the cluster that eliminating v would make."""
    return problem.size(adjacent[v] | 1 << v)


JITTERED = (min_fill, weighted_min_fill, min_size)  # what orders a long search starts from


def elimination_order(problem: Problem, weigh: Weigh, rng: random.Random | None = None) -> list[int]:
    """The axes to be summed, cheapest first by `weigh` (jittered by `rng`), on the graph of the factors."""

    def priority(v: int, joined: int = 0) -> float:
        weight = weigh(problem, adjacent, v, joined)
        return weight if rng is None else weight * (1 + 0.3 * rng.random()) + 0.01 * rng.random()

    adjacent = _adjacency(problem)
    free = union_of(problem.masks) & ~problem.hard & ~problem.keep
    current = {v: priority(v, 0) for v in bits(free)}
    heap = [(w, v) for v, w in current.items()]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        weight, v = heapq.heappop(heap)
        if current.get(v) != weight:
            continue
        order.append(v)
        del current[v]
        free ^= 1 << v
        around = adjacent[v]
        touched = (around | _seeing_new_edges(adjacent, around)) & free
        for u in bits(around):
            adjacent[u] = (adjacent[u] | around) & ~(1 << u) & ~(1 << v)
        for u in bits(touched):
            new = priority(u, around)
            if new != current[u]:
                current[u] = new
                heapq.heappush(heap, (new, u))
    return order


def _adjacency(problem: Problem) -> list[int]:
    """The neighbours of every axis in the graph of the factors, of which observed axes are no part."""
    adjacent = [0] * len(problem.sizes)
    for mask in problem.masks:
        axes = mask & ~problem.hard
        for v in bits(axes):
            adjacent[v] |= axes & ~(1 << v)
    return adjacent


def work(problem: Problem, order: Sequence[int]) -> tuple[float, int]:
    """About how many multiply-adds of a row an elimination order takes, the sizes of all clusters, and its width."""
    adjacent, soft = _adjacency(problem), union_of(compress(problem.masks, problem.soft))
    by_row = once = 0.0
    widest = 1
    for v in order:
        cluster = adjacent[v] | 1 << v
        widest = max(widest, cluster.bit_count())
        if soft >> v & 1:
            by_row += problem.size(cluster)
            soft |= cluster
        else:
            once += problem.size(cluster)
        for u in bits(cluster):
            adjacent[u] = (adjacent[u] | cluster) & ~(1 << v)
    return (by_row + once / ROWS if by_row else once), widest - 1  # what needs no evidence is made once for many rows


def _seeing_new_edges(adjacent: list[int], around: int) -> int:
    """The axes outside of `around` that are adjacent to two axes in it which are not adjacent to each other."""
    neighbours = bits(around)
    apart = {u: around & ~adjacent[u] & (-2 << u) for u in neighbours}  # pairs once
    once = twice = 0
    for u in neighbours:
        twice |= once & adjacent[u]
        once |= adjacent[u]
    outside = twice & ~around
    seeing = 0
    if sum(others.bit_count() for others in apart.values()) <= outside.bit_count():
        for u, others in apart.items():
            reached = 0
            for w in bits(others):
                reached |= adjacent[w]
            seeing |= adjacent[u] & reached
        return seeing & ~around
    for x in bits(outside):
        seen = around & adjacent[x]
        if any(seen & apart[u] for u in bits(seen)):
            seeing |= 1 << x
    return seeing


class Pool:
    """Factors that are still there while a plan is built: their axes and softness, and who holds each axis."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.path: Path = []
        self.nodes: dict[int, tuple[int, bool]] = {}
        self.entries: dict[int, float] = {}
        self.holders: dict[int, set[int]] = {}
        for i, (mask, soft) in enumerate(zip(problem.masks, problem.soft, strict=True)):
            self._put(i, mask & ~problem.hard if soft else mask, soft)

    def _put(self, i: int, mask: int, soft: bool) -> None:
        self.nodes[i], self.entries[i] = (mask, soft), self.problem.entries(mask, soft)
        for axis in bits(mask & ~self.problem.hard):
            self.holders.setdefault(axis, set()).add(i)

    def neighbours(self, i: int) -> list[int]:
        neighbours: set[int] = set()
        for axis in bits(self.nodes[i][0] & ~self.problem.hard):
            neighbours |= self.holders[axis]
        return sorted(neighbours - {i})

    def product(self, i: int, j: int) -> tuple[int, int, bool]:
        """Union, remaining axes and softness of the product of two factors."""
        (a, soft_a), (b, soft_b) = self.nodes[i], self.nodes[j]
        union, soft = self.problem.meet(a, soft_a, b, soft_b)
        out = union
        for axis in bits(union & ~self.problem.keep & ~self.problem.hard):
            if len(self.holders[axis]) <= (i in self.holders[axis]) + (j in self.holders[axis]):
                out &= ~(1 << axis)
        return union, out, soft

    def merge(self, i: int, j: int) -> int:
        _, out, soft = self.product(i, j)
        for k in (i, j):
            for axis in bits(self.nodes.pop(k)[0] & ~self.problem.hard):
                self.holders[axis].discard(k)
        new = len(self.problem.masks) + len(self.path)
        self._put(new, out, soft)
        self.path.append((i, j))
        return new

    def merge_all(self, group: list[int]) -> None:
        """Multiply a group into one factor, cheapest pair first (smallest first while the group is large)."""
        if len(group) == 2:
            self.merge(*sorted(group))
            return
        heap = [self._rank(k) for k in group]
        heapq.heapify(heap)
        while len(heap) > MAX_GROUP:
            i, j = heapq.heappop(heap)[-1], heapq.heappop(heap)[-1]
            heapq.heappush(heap, self._rank(self.merge(i, j)))
        group = sorted(k for _, _, k in heap)
        while len(group) > 1:
            i, j = min(combinations(group, 2), key=lambda pair: (score_cost(self, *pair), pair))
            group = [k for k in group if k not in (i, j)] + [self.merge(i, j)]

    def _rank(self, i: int) -> tuple[bool, float, int]:
        """Parameters before evidence, then small before large."""
        mask, soft = self.nodes[i]
        return soft, self.problem.size(mask), i


def by_elimination(problem: Problem, order: Sequence[int]) -> Path:
    """Bucket elimination as a tree: for each axis in turn, multiply the factors that hold it and sum it out."""
    pool = Pool(problem)
    for axis in order:
        pool.merge_all(sorted(pool.holders.get(axis, ())))
    pool.merge_all(list(pool.nodes))
    return pool.path


Score = Callable[[Pool, int, int], float]


def score_cost(pool: Pool, i: int, j: int) -> float:
    """The cost of multiplying two factors."""
    return pool.problem.cost(*pool.product(i, j))


def score_growth(pool: Pool, i: int, j: int) -> float:
    """How many entries their product adds to what is stored."""
    _, out, soft = pool.product(i, j)
    return pool.problem.entries(out, soft) - (pool.entries[i] + pool.entries[j])


def score_relative(pool: Pool, i: int, j: int) -> float:
    """The product against the larger factor, so that large factors shrink early; then the cost."""
    union, out, soft = pool.product(i, j)
    growth = pool.problem.entries(out, soft) / max(pool.entries[i], pool.entries[j])
    return math.log2(growth) + 1e-3 * math.log2(pool.problem.cost(union, out, soft))


def greedy(problem: Problem, score: Score, rng: random.Random | None = None) -> Path:
    """Repeatedly multiply the best pair of factors that share an axis; `rng` jitters what is best."""
    pool = Pool(problem)
    jitter = 0.0 if rng is None else 0.1 + 0.6 * rng.random()
    heap: list[tuple[float, int, int]] = []

    def consider(i: int, others: Iterable[int]) -> None:
        for j in others:
            value = score(pool, i, j)
            if rng is not None:
                value = value * (1 + jitter * (rng.random() - 0.5)) - jitter * math.log(rng.random() + 1e-12)
            heapq.heappush(heap, (value, min(i, j), max(i, j)))

    for i in list(pool.nodes):
        consider(i, (j for j in pool.neighbours(i) if j > i))
    while heap:
        _, i, j = heapq.heappop(heap)
        if i in pool.nodes and j in pool.nodes:
            new = pool.merge(i, j)
            consider(new, pool.neighbours(new))
    pool.merge_all(list(pool.nodes))
    return pool.path


def _cotengra(problem: Problem) -> list[Path]:
    """Paths of cotengra's hyper-optimizer, where it is installed: slow, and far better on the widest networks."""
    try:
        import cotengra
    except ImportError:
        return []
    batch = "batch"
    inputs = [
        [str(axis) for axis in bits(mask & ~problem.hard)] + ([batch] if soft or mask & problem.hard else [])
        for mask, soft in zip(problem.masks, problem.soft, strict=True)
    ]
    sizes = {str(axis): problem.sizes[axis] for mask in problem.masks for axis in bits(mask)} | {batch: ROWS}
    output = [str(axis) for axis in bits(problem.keep & ~problem.hard)]
    output = [axis for axis in output if any(axis in i for i in inputs)] + ([batch] if any(problem.soft) else [])
    optimizer = cotengra.HyperOptimizer(
        methods=["greedy", "labels"], minimize="combo", max_repeats=128, max_time=15, parallel=False, progbar=False
    )
    tree = optimizer.search(inputs, output, sizes)
    return [_from_ssa(tree.get_ssa_path(), len(inputs))]


def _from_ssa(path: Iterable[Sequence[int]], leaves: int) -> Path:
    """Pairs only: a step over more or fewer factors is split, or skipped."""
    pairs: Path = []
    nodes = {i: i for i in range(leaves)}
    for k, step in enumerate(path):
        current = nodes[step[0]]
        for other in step[1:]:
            pairs.append((current, nodes[other]))
            current = leaves + len(pairs) - 1
        nodes[leaves + k] = current
    return pairs
