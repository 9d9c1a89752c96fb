"""The search for a plan: a portfolio of elimination orders and greedy pairs, with the batch in the cost model."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tacit.compiler.order.exact import cheapest_path, perfect_order
from tacit.compiler.order.sweep import sweep_order, widest_front
from tacit.compiler.order.tree import MAX_STEP, ROWS, STEP, Path, Problem, Tree, anneal, bits
from tacit.compiler.order.windows import by_windows

HUB = 100  # neighbours beyond which the pairs that elimination would join are not counted one by one
MAX_GROUP = 8  # factors of one axis up to which all pairs of them are compared
FEW = 4  # factors up to which the cheapest plan of all is taken, ...
MAX_EXACT = 9  # ... and with the highest effort: 3^9 / 2 pairs of sets take a tenth of a second
TINY = 16  # factors up to which annealing that finds nothing at any heat will find nothing any more
MANY = 2000  # factors beyond which an order that adds no edge, or a plan by windows, is not searched any further
HEAT = (0.03, 0.1, 0.3, 0.03)  # where annealing starts, run by run
# A largest step that is so many times beyond what is accepted, before annealing and after it has begun, ends the
# search: on grids of up to 32 by 32, where the first orders are at their worst, it gained a factor of 2^9 at most.
HOPELESS = 2.0**20
HOPELESS_ANNEALED = 2.0**10
HOPELESS_SLOW = 4.0  # the same, where a run of annealing gained less than a tenth, as twelve of them would
HOPELESS_SWEPT = 4.0  # annealing makes sweeps cheaper by a third, and their largest steps larger
DEAR = 1e8  # the cost from which sweeps are tried, and several annealing runs are worth their time
MAX_RUNS = 12  # of annealing, ...
MAX_RUNS_SWEPT = 2  # ... and where it starts from a sweep, which the first run gets most out of
SMALL = 40  # factors below which a plan is found with less search
MAX_PAIRED = 300  # factors up to which greedy pairing is tried: beyond, elimination orders always won

EFFORTS = ("low", "auto", "high")

Weigh = Callable[[Problem, list[int], int, int], float]
Score = Callable[[Problem, int, int, int, int, bool, bool, bool], float]
Method = Callable[[Problem, random.Random | None], Path]


def search(problem: Problem, effort: str = "auto", seed: int = 0) -> Path:
    """The cheapest plan found: a portfolio of orders, then annealing while it promises to pay.

    Deterministic: the amount of search depends on the problem, never on the clock.
    """
    leaves = len(problem.masks)
    if leaves <= (MAX_EXACT if effort == "high" else FEW):
        return cheapest_path(problem)
    if leaves > MANY and (order := perfect_order(problem)) is not None:
        return by_elimination(problem, order)
    if leaves > MANY and (path := by_windows(problem, lambda part: search(part, effort, seed))) is not None:
        return path
    rng = random.Random(seed)
    tried = _first_plans(problem)
    sweeps = _sweeps(problem, tried[0].total)
    if effort == "auto" and _out_of_reach(problem, tried[0], sweeps):
        return (sweeps or tried)[0].path
    found = _portfolio(problem, tried, sweeps, effort, rng)
    if effort != "low":
        runs = MAX_RUNS_SWEPT if sweeps and sweeps[0].total <= found[0][0] else MAX_RUNS
        found.append(_annealed(problem, [path for _, path in found[:3]], "auto", rng, runs))
    if effort == "high":
        found.append(_annealed(problem, [path for _, path in sorted(found)[:3]], "high", rng))
        found += [(Tree(problem, path).total, path) for path in _cotengra(problem)]
    return min(found)[1]


class _Tried(NamedTuple):
    """A plan, what it costs, and the method that it is from."""

    total: float
    path: Path
    method: Method


def _first_plans(problem: Problem) -> list[_Tried]:
    """The plans of several methods, cheapest first."""
    first, weighted = _tried(problem, _eliminating(min_fill), None), _eliminating(weighted_min_fill)
    plans = [first, first._replace(method=weighted) if problem.uniform else _tried(problem, weighted, None)]
    methods = [_eliminating(min_size)]
    if len(problem.masks) <= MAX_PAIRED:
        methods += [_pairing(score) for score in (score_cost, score_growth, score_relative)]
    plans += [_tried(problem, method, None) for method in methods]
    return sorted(plans, key=lambda plan: plan.total)


def _tried(problem: Problem, method: Method, rng: random.Random | None) -> _Tried:
    path = method(problem, rng)
    return _Tried(Tree(problem, path).total, path, method)


def _sweeps(problem: Problem, least: float) -> list[_Tried]:
    """Sweeps in both directions that cost less than the best plan so far, where plans are dear; cheapest first."""
    if least < DEAR:
        return []
    order = sweep_order(problem)
    if widest_front(problem, order) > least:
        return []
    both = [_tried(problem, _following(axes), None) for axes in (order, order[::-1])]
    return sorted((plan for plan in both if plan.total < least), key=lambda plan: plan.total)


def _out_of_reach(problem: Problem, best: _Tried, sweeps: list[_Tried]) -> bool:
    """Whether the first plans' largest steps are so far beyond what is accepted that no search will bring one back."""
    if not sweeps:
        return _beyond(problem, best, HOPELESS)
    return _beyond(problem, sweeps[0], HOPELESS_SWEPT) and _beyond(problem, best, HOPELESS_ANNEALED)


def _beyond(problem: Problem, plan: _Tried | tuple[float, Path], times: float) -> bool:
    """Whether a plan's largest step is more than so many times what is accepted."""
    total, path = plan[:2]
    return total > times * MAX_STEP and Tree(problem, path).largest_step > times * MAX_STEP


def _portfolio(
    problem: Problem, tried: list[_Tried], sweeps: list[_Tried], effort: str, rng: random.Random
) -> list[tuple[float, Path]]:
    """The first plans, and some of the best methods among them with jitter; cheapest first."""
    least = (sweeps or tried)[0].total
    good = [plan.method for plan in tried if plan.total <= 8 * least]
    found = [*tried, *sweeps]
    for i in range(_restarts(least, len(problem.masks), effort) if good else 0):
        found.append(_tried(problem, good[i % len(good)], rng))
    return sorted((plan.total, plan.path) for plan in found)


def _restarts(total: float, leaves: int, effort: str) -> int:
    """How many jittered plans to try: none where an interpreter's overhead is most of the cost."""
    if effort == "low":
        return 0
    worth = int((total - STEP * leaves) / 2e4)
    most = min(30, max(2, 1500 // leaves))
    return 4 * most if effort == "high" else min(worth, most, leaves // (2 if leaves >= SMALL else 8))


def _annealed(
    problem: Problem, starts: list[Path], effort: str, rng: random.Random, most: int = 16
) -> tuple[float, Path]:
    """The best of some annealing runs, the later ones from the best plan so far, hot and cool in turn.

    A run takes some tenths of a second; the more a plan costs, the more of them are worth it.
    """
    total, leaves = Tree(problem, starts[0]).total, len(problem.masks)
    moves = (
        200_000
        if effort == "high"
        else int(min((total - STEP * leaves) / 20, (500 if leaves >= SMALL else 200) * leaves, 150_000))
    )
    runs = min(most, 16 if effort == "high" else 1 if total < DEAR else 5 if total < 1e10 else MAX_RUNS)
    best = (total, starts[0])
    gained = 0  # the last run that found something cheaper
    for i in range(runs):
        start, before = starts[i] if i < len(starts) else best[1], best[0]
        tree = anneal(Tree(problem, start), moves, rng, start=HEAT[i % len(HEAT)])
        if tree.total < best[0] * (1 - 1e-9):
            gained = i
        best = min(best, (tree.total, tree.path()))
        if effort == "high":
            if leaves <= TINY and i - gained >= len(HEAT):
                break  # so small a problem, and nothing found at any heat
        elif (i == (leaves > 50) and best[0] > 0.99 * total) or _beyond(problem, best, HOPELESS_ANNEALED):
            break  # next to nothing found, or nothing that helps
        elif i >= len(starts) and best[0] > 0.9 * before and _beyond(problem, best, HOPELESS_SLOW):
            break  # so little found that all runs together would not help
    return best


def _eliminating(weigh: Weigh) -> Method:
    return lambda problem, rng: by_elimination(problem, elimination_order(problem, weigh, rng))


def _following(order: Sequence[int]) -> Method:
    return lambda problem, rng: by_elimination(problem, order)


def _pairing(score: Score) -> Method:
    return lambda problem, rng: greedy(problem, score, rng)


# The neighbours of v in `joined` are adjacent to each other, as those of the axis that was eliminated last are: pairs
# of them need not be counted, which leaves few to look at where clusters are large.


def min_fill(problem: Problem, adjacent: list[int], v: int, joined: int = 0) -> float:
    """How many pairs of neighbours would become adjacent."""
    around = adjacent[v]
    if (degree := around.bit_count()) > HUB:
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
    """The same, each pair weighted (twice) by the product of its cardinalities."""
    around, sizes = adjacent[v], problem.sizes
    if problem.uniform:
        return 2 * sizes[v] ** 2 * min_fill(problem, adjacent, v, joined)
    if around.bit_count() > HUB:
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


def elimination_order(problem: Problem, weigh: Weigh, rng: random.Random | None = None) -> list[int]:
    """The axes to be summed, cheapest first by `weigh` (jittered by `rng`), on the graph of the factors."""

    def priority(v: int, joined: int = 0) -> float:
        weight = weigh(problem, adjacent, v, joined)
        return weight if rng is None else weight * (1 + 0.3 * rng.random()) + 0.01 * rng.random()

    live = ~problem.hard
    adjacent = [0] * len(problem.sizes)
    for mask in problem.masks:
        for v in bits(mask & live):
            adjacent[v] |= mask & live & ~(1 << v)
    present = 0
    for mask in problem.masks:
        present |= mask
    free = present & live & ~problem.keep
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


def work(problem: Problem, order: Sequence[int]) -> tuple[float, int]:
    """About how many multiply-adds of a row it takes to eliminate axes in an order, and the width.

    These are the sizes of all clusters. Those that do not depend on evidence are made once for many rows, if there are
    others.
    """
    live = ~problem.hard
    adjacent = [0] * len(problem.sizes)
    soft = 0
    for mask, depends in zip(problem.masks, problem.soft, strict=True):
        soft |= mask & live if depends else 0
        for v in bits(mask & live):
            adjacent[v] |= mask & live
    by_row = once = 0.0
    widest = 1
    for v in order:
        cluster = adjacent[v]
        widest = max(widest, cluster.bit_count())
        if soft >> v & 1:
            by_row += problem.size(cluster)
            soft |= cluster
        else:
            once += problem.size(cluster)
        for u in bits(cluster):
            adjacent[u] = (adjacent[u] | cluster) & ~(1 << v)
    return (by_row + once / ROWS if by_row else once), widest - 1


def _seeing_new_edges(adjacent: list[int], around: int) -> int:
    """The axes outside of `around` that are adjacent to two axes in it which are not adjacent to each other."""
    neighbours = bits(around)
    apart = {u: around & ~adjacent[u] & (-2 << u) for u in neighbours}  # pairs once
    once = twice = 0
    for u in neighbours:
        twice |= once & adjacent[u]
        once |= adjacent[u]
    outside = twice & ~around
    found = 0
    if sum(others.bit_count() for others in apart.values()) <= outside.bit_count():
        for u, others in apart.items():
            reached = 0
            for w in bits(others):
                reached |= adjacent[w]
            found |= adjacent[u] & reached
        return found & ~around
    for x in bits(outside):
        seen = around & adjacent[x]
        if any(seen & apart[u] for u in bits(seen)):
            found |= 1 << x
    return found


def by_elimination(problem: Problem, order: Sequence[int]) -> Path:
    """Bucket elimination as a tree: for each axis in turn, multiply the factors that hold it and sum it out."""
    state = _Pool(problem)
    for axis in order:
        state.merge_all(state.holders(axis))
    state.merge_all(list(state.nodes))
    return state.path


def score_cost(problem: Problem, a: int, b: int, union: int, out: int, sa: bool, sb: bool, soft: bool) -> float:
    """The cost of the step itself."""
    return problem.cost(union, out, soft)


def score_growth(problem: Problem, a: int, b: int, union: int, out: int, sa: bool, sb: bool, soft: bool) -> float:
    """How many entries the step adds to what is stored."""
    rows = float(ROWS)
    before = problem.size(a) * (rows if sa else 1) + problem.size(b) * (rows if sb else 1)
    return problem.size(out) * (rows if soft else 1) - before


def score_relative(problem: Problem, a: int, b: int, union: int, out: int, sa: bool, sb: bool, soft: bool) -> float:
    """The result against the larger operand, so that large factors shrink early; then the cost."""
    larger = max(problem.size(a) * (ROWS if sa else 1), problem.size(b) * (ROWS if sb else 1))
    return math.log2(problem.size(out) * (ROWS if soft else 1) / larger) + 1e-3 * math.log2(
        problem.cost(union, out, soft)
    )


def greedy(problem: Problem, score: Score, rng: random.Random | None = None) -> Path:
    """Repeatedly multiply the best pair of factors that share an axis; `rng` jitters what is best."""
    pool = _Pool(problem)
    jitter = 0.0 if rng is None else 0.1 + 0.6 * rng.random()
    heap: list[tuple[float, int, int]] = []

    def consider(i: int, others: Iterable[int]) -> None:
        for j in others:
            value = pool.score(score, i, j)
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


class _Pool:
    """Factors that are still there while a plan is built."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.path: Path = []
        self.next = len(problem.masks)
        self.nodes: dict[int, tuple[int, bool]] = {}
        self.where: dict[int, set[int]] = {}
        for i, (mask, soft) in enumerate(zip(problem.masks, problem.soft, strict=True)):
            self._put(i, mask & ~problem.hard if soft else mask, soft)

    def _put(self, i: int, mask: int, soft: bool) -> None:
        self.nodes[i] = (mask, soft)
        for axis in bits(mask & ~self.problem.hard):
            self.where.setdefault(axis, set()).add(i)

    def _drop(self, i: int) -> None:
        for axis in bits(self.nodes.pop(i)[0] & ~self.problem.hard):
            self.where[axis].discard(i)

    def holders(self, axis: int) -> list[int]:
        return sorted(self.where.get(axis, ()))

    def neighbours(self, i: int) -> list[int]:
        found: set[int] = set()
        for axis in bits(self.nodes[i][0] & ~self.problem.hard):
            found |= self.where[axis]
        found.discard(i)
        return sorted(found)

    def _result(self, i: int, j: int) -> tuple[int, int, bool]:
        """Union, remaining axes and softness of the product of two factors."""
        (a, sa), (b, sb) = self.nodes[i], self.nodes[j]
        union, soft = self.problem.meet(a, sa, b, sb)
        out = union
        for axis in bits(union & ~self.problem.keep & ~self.problem.hard):
            if len(self.where[axis]) <= (i in self.where[axis]) + (j in self.where[axis]):
                out &= ~(1 << axis)
        return union, out, soft

    def score(self, score: Score, i: int, j: int) -> float:
        (a, sa), (b, sb) = self.nodes[i], self.nodes[j]
        union, out, soft = self._result(i, j)
        return score(self.problem, a, b, union, out, sa, sb, soft)

    def merge(self, i: int, j: int) -> int:
        _, out, soft = self._result(i, j)
        self._drop(i)
        self._drop(j)
        new = self.next
        self._put(new, out, soft)
        self.path.append((i, j))
        self.next += 1
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
            i, j = min(itertools.combinations(group, 2), key=lambda pair: (self.score(score_cost, *pair), pair))
            group = [k for k in group if k not in (i, j)] + [self.merge(i, j)]

    def _rank(self, i: int) -> tuple[bool, float, int]:
        """Parameters before evidence, then small before large."""
        mask, soft = self.nodes[i]
        return soft, self.problem.size(mask), i


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
    made: dict[int, int] = {i: i for i in range(leaves)}
    for k, step in enumerate(path):
        current = made[step[0]]
        for other in step[1:]:
            pairs.append((current, made[other]))
            current = leaves + len(pairs) - 1
        made[leaves + k] = current
    return pairs
