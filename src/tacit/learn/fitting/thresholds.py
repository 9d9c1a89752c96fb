"""Training with hard tests, whose thresholds have no gradient: splits that are searched for exactly, and refits.

With the rest fixed, a threshold only decides which rows of data lie above it. Sorted by the posterior that is tested,
all thresholds are tried at once, as the split of a regression tree: what a row costs on either side is known from one
evaluation each, and prefix sums tell the rest. The two rows of the tables that a test chooses from are redrawn in the
same move: a test between rows that are alike has no good threshold, and no gradient leads away from there.

Between sweeps of such splits, tables are refitted with the selection held: thresholds follow the posteriors, so that
as many rows as before lie above them. Where they stayed, the first row that changed sides would stop the refit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.fitting.batches import MiniBatch
from tacit.learn.fitting.objective import Objective, Trainable
from tacit.learn.fitting.optimizers import Optimizer, State
from tacit.learn.fitting.parameters import Parameters
from tacit.model.cpt import MIRRORED, THRESHOLDS, TestingCPT

MIN_POSTERIOR_GAP = 1e-9  # posteriors nearer to each other are the same: no threshold comes between them
MIN_GAIN = 0.01  # of a sweep and its refit, relatively: with less, the search ends
MAX_LOSS_RATIO = 2.0  # of the loss after a sweep to the one to be improved on: with more, the search ends
NOISE_RANGE = (0.03, 1.0)  # standard deviations of the noise that a later search starts with
MAX_LEVELS = 8  # of tests below tests whose thresholds follow one after the other; deeper ones follow together


@dataclass(frozen=True)
class LearnedTest:
    """A learned threshold: which number it is, and where it is used, in several places if it is tied.

    `rank` is its place among the thresholds of a parent state. `below` and `above` are the weights of the rows of
    tables that hold on either side of it, if both are learned and of the same form.
    """

    entry: int
    places: tuple[tuple[str, int], ...]  # testing nodes, and states of their parents
    rank: int
    below: slice | None = None
    above: slice | None = None


@dataclass(frozen=True)
class ThresholdSearch:
    """Sweeps of splits and refits in turn; later rounds start with noise, and are kept if they are better."""

    tables: Optimizer
    seed: int = 0
    draws: int = 12  # rows tried for either side of a split, besides the present ones
    sweeps: int = 4  # of a round, at most

    def advance(self, objective: Trainable, state: State, steps: int) -> None:
        """Search from the weights of the state, or near them in later rounds. A sweep counts as a step, too."""
        objective = cast(Objective, objective)  # tests are only hardened where all rows are in this process
        rng = np.random.default_rng((self.seed, state.steps))
        first, tried = state.steps == 0, State(state.weights)
        if not first:  # other weights nearby: how near is drawn, too, since valleys are of all widths
            scale = math.exp(rng.uniform(*np.log(NOISE_RANGE)))
            tried.weights = objective.within_limits(tried.weights + scale * rng.normal(size=len(tried.weights)))
        tests = list(learned_tests(objective.parameters))
        tried.loss = objective.total(tried.weights)
        for _ in range(self.sweeps):
            before = tried.loss
            sweep(objective, tried, tests, self.draws, rng)
            self._refit(objective, tried, tests, math.ceil(steps / self.sweeps))
            if not (tried.loss < (1 - MIN_GAIN) * before and tried.loss < MAX_LOSS_RATIO * state.loss):
                break
        state.steps += tried.steps
        if first or tried.loss < state.loss:
            state.weights, state.loss = tried.weights, tried.loss
        state.memory, state.done = {}, False

    def _refit(self, objective: Objective, tried: State, tests: list[LearnedTest], steps: int) -> None:
        following = Following(objective, tried.weights, tests)
        refitted = State(tried.weights)
        self.tables.advance(following, refitted, steps)
        tried.steps += refitted.steps + 1
        weights = following.followed(refitted.weights)
        loss = objective.total(weights)
        if loss < tried.loss:
            tried.weights, tried.loss = weights, loss


def learned_tests(parameters: Parameters) -> Iterator[LearnedTest]:
    """All learned thresholds."""
    rows = dict(_learned_rows(parameters))
    places: dict[int, list[tuple[str, int]]] = {}
    for place in parameters.places:
        if place.key[1] == THRESHOLDS:
            for i, limit in enumerate(place.index.tolist()):
                places.setdefault(place.first + i, []).append((place.key[0], limit))
    for entry, limits in places.items():
        node, limit = limits[0]
        cpt = parameters.network.cpt(node)
        assert isinstance(cpt, TestingCPT)
        count = len(cpt.tables) - 1
        state, rank = divmod(limit, count)
        used = tuple((name, place // count) for name, place in limits)
        tables = cpt.table_parts[::-1] if cpt.test.ravel()[state] in MIRRORED else cpt.table_parts
        below, above = (rows.get((node, part, state)) for part in tables[rank : rank + 2])
        if len(used) > 1 or below is None or above is None or below[1] != above[1]:
            yield LearnedTest(entry, used, rank)
        else:
            yield LearnedTest(entry, used, rank, below[0], above[0])


def _learned_rows(parameters: Parameters) -> Iterator[tuple[tuple[str, str, int], tuple[slice, tuple[float, ...]]]]:
    """The weights of every learned row of a table, and its form: the mass that they share, and among which states."""
    for place in parameters.places:
        if place.key[1] not in ("table", THRESHOLDS):
            row, column = np.divmod(place.index, place.table.shape[-1])
            for state in np.unique(row).tolist():
                learned = np.flatnonzero(row == state)
                weights = parameters.weights_of(place.first + int(learned[0]))
                if weights.start < weights.stop:
                    known = np.delete(place.table.reshape(-1, place.table.shape[-1])[state], column[learned])
                    yield (*place.key, state), (weights, (1 - float(known.sum()), *column[learned].tolist()))


def sweep(objective: Objective, state: State, tests: list[LearnedTest], draws: int, rng: Generator) -> None:
    """Split the rows anew at every test once, node by node in any order."""
    nodes = list(dict.fromkeys(test.places[0][0] for test in tests))
    for i in rng.permutation(len(nodes)):
        # thresholds and tables of a node have no part in what it tests
        at_node = [test for test in tests if test.places[0][0] == nodes[i]]
        posteriors = objective.parent_posteriors(state.weights, [nodes[i]])[nodes[i]]
        for j in rng.permutation(len(at_node)):
            values = posteriors[at_node[j].places[0][1]]
            if len(at_node[j].places) == 1:
                split(objective, state, at_node[j], values, draws, rng)
            else:
                _try(objective, state, at_node[j], values, draws, rng)


def split(objective: Objective, state: State, test: LearnedTest, values: Floats, draws: int, rng: Generator) -> None:
    """Take the best threshold for tested posteriors, with the best rows tried on either side, if that is better."""
    order = np.argsort(values)
    tried = list(_tried(objective, state.weights, test, draws, rng))
    least = np.full((2, len(values) + 1), math.inf)  # cost of the rows below a cut and of those above
    best = np.zeros((2, len(values) + 1), dtype=np.intp)  # the weights tried that reach it
    for j, losses in enumerate(objective.losses((weights for weights, _ in tried), test.places[0][0])):
        weights, sides = tried[j]
        below = np.concatenate([[0.0], np.cumsum(losses[order])])
        for side in sides:
            costs = (below if side == 0 else below[-1] - below) + _penalty(objective, state, weights, test, side)
            better = costs < least[side]
            least[side, better], best[side, better] = costs[better], j
    ends = _with_ends(values[order], *_window(objective, state.weights, test))
    cuts = _cuts(ends)
    loss = least.sum(axis=0) + objective.penalty.value(state.weights)
    cut = int(cuts[np.argmin(loss[cuts])])
    if loss[cut] < state.loss:
        weights = objective.parameters.moved(state.weights, {test.entry: _middle(ends, cut)})
        for side, rows in enumerate((test.below, test.above)):
            if rows is not None:
                weights[rows] = tried[best[side, cut]][0][rows]
        state.weights, state.loss = weights, float(loss[cut])


def _tried(
    objective: Objective, weights: Floats, test: LearnedTest, draws: int, rng: Generator
) -> Iterator[tuple[Floats, tuple[int, ...]]]:
    """Weights with which all rows (between its neighbours) are below the threshold (0), above it (1), or either."""
    if test.below is None or test.above is None:
        low, high = _window(objective, weights, test)
        for side, end in enumerate((high, low)):
            yield objective.parameters.moved(weights, {test.entry: end}), (side,)
        return
    count = test.below.stop - test.below.start
    for row in [weights[test.below], weights[test.above], *_drawn(count, draws, rng)]:
        equal = weights.copy()
        equal[test.below] = equal[test.above] = row
        yield objective.within_limits(equal), (0, 1)


def _drawn(count: int, draws: int, rng: Generator) -> Floats:
    """The weights of rows of tables, all equally likely: (draws, weights)."""
    if count == 1:  # one of each of so many parts of the unit interval
        shares = (np.arange(draws) + rng.random(draws)) / draws
        return np.asarray(np.log(shares / (1 - shares))[:, None])
    logs = np.log(rng.exponential(size=(draws, count)))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _penalty(objective: Objective, state: State, tried: Floats, test: LearnedTest, side: int) -> float:
    """The difference that the row tried on one side makes to the penalty."""
    rows = (test.below, test.above)[side]
    if not objective.penalty or rows is None:
        return 0.0
    weights = state.weights.copy()
    weights[rows] = tried[rows]
    return objective.penalty.value(weights) - objective.penalty.value(state.weights)


def _window(objective: Objective, weights: Floats, test: LearnedTest) -> tuple[float, float]:
    """The range of a threshold: between its neighbours of the same parent state, or 0 and 1."""
    parameters, (node, state) = objective.parameters, test.places[0]
    limits = parameters.tables(parameters.numbers(weights), {node})[node, THRESHOLDS]
    cpt = parameters.network.cpt(node)
    assert isinstance(cpt, TestingCPT)
    row = [0.0, *limits.reshape(-1, len(cpt.tables) - 1)[state].tolist(), 1.0]
    return row[test.rank], row[test.rank + 2]


def _with_ends(values: Floats, low: float = 0.0, high: float = 1.0) -> Floats:
    """Sorted posteriors between the ends of a threshold's range; those beyond are at the ends."""
    return np.concatenate([[low], np.clip(values, low, high), [high]])


def _cuts(ends: Floats) -> NDArray[np.intp]:
    """How many of the sorted posteriors may lie below a threshold."""
    return np.flatnonzero(np.diff(ends) > MIN_POSTERIOR_GAP)


def _middle(ends: Floats, cut: int) -> float:
    """The threshold midway between the posteriors around a cut, which are equal only at the ends."""
    return float(np.clip((ends[cut] + ends[cut + 1]) / 2, 1e-15, 1 - 1e-15))


def _try(objective: Objective, state: State, test: LearnedTest, values: Floats, draws: int, rng: Generator) -> None:
    """Try some thresholds of a tied test, which change more than one selection, each by itself."""
    ends = _with_ends(np.sort(values), *_window(objective, state.weights, test))
    cuts = _cuts(ends)
    for cut in rng.choice(cuts, min(draws, len(cuts)), replace=False).tolist():
        weights = objective.parameters.moved(state.weights, {test.entry: _middle(ends, cut)})
        loss = objective.total(weights)
        if loss < state.loss:
            state.weights, state.loss = weights, loss


class Following(Objective):
    """An objective as a function of the tables alone: thresholds move so that as many rows as before lie below each."""

    def __init__(self, objective: Objective, weights: Floats, tests: list[LearnedTest]) -> None:
        super().__init__(objective.parameters, objective.engine, objective.data, objective.loss)
        self.penalty = objective.penalty
        self._levels = _levels(objective.parameters, [test for test in tests if len(test.places) == 1])
        posteriors = self.parent_posteriors(weights, {node for level in self._levels for node in level})
        thresholds = self.parameters.numbers(weights)
        self._below = {
            test.entry: int((posteriors[node][test.places[0][1]] < thresholds[test.entry]).sum())
            for level in self._levels
            for node, at_node in level.items()
            for test in at_node
        }

    def followed(self, weights: Floats) -> Floats:
        """Weights of equal tables, with thresholds such that as many rows as at first lie below them."""
        weights, changed = weights.copy(), None
        for level in self._levels:
            posteriors = self.parent_posteriors(weights, level, changed)
            thresholds = {}
            for node, at_node in level.items():
                for test in at_node:
                    ends = _with_ends(np.sort(posteriors[node][test.places[0][1]]))
                    thresholds[test.entry] = _middle(ends, self._below[test.entry])
            weights, changed = self.within_limits(self.parameters.moved(weights, thresholds)), level
        return weights

    def residuals(self, weights: Floats) -> tuple[Floats, Floats]:
        return super().residuals(self.followed(weights))

    def value_and_gradient(self, weights: Floats, batch: MiniBatch | None = None) -> tuple[float, Floats]:
        """The loss and its derivatives; with a batch, which is to be quick, thresholds stay."""
        return super().value_and_gradient(self.followed(weights) if batch is None else weights, batch)


def _levels(parameters: Parameters, tests: list[LearnedTest]) -> list[dict[str, list[LearnedTest]]]:
    """Tests by node, in levels: a threshold may affect only the posteriors that later levels test."""
    by_node: dict[str, list[LearnedTest]] = {}
    for test in tests:
        by_node.setdefault(test.places[0][0], []).append(test)
    net, level = parameters.network, dict[str, int]()
    levels: list[dict[str, list[LearnedTest]]] = [{} for _ in range(MAX_LEVELS)]
    for node in net:
        above = max((level[parent] for parent in net.parents(node)), default=0)
        level[node] = above + (node in by_node)
        if node in by_node:
            levels[min(above, MAX_LEVELS - 1)][node] = by_node[node]
    return [level for level in levels if level]
