"""`tacit.learn.place_tests`: which nodes to make testing, by screening and by refits that rows held out judge."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.learn.fitting.data import Data
from tacit.learn.fitting.labelled import LabelledRows
from tacit.learn.fitting.losses import Loss, check_loss
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.options import PlaceOptions
from tacit.learn.partitions import Local
from tacit.learn.placing.placement import BLIND, CONSTANT, HELPS, IRRELEVANT, LEARN_TABLE, NOT_CLEAR, Place, Placement
from tacit.learn.placing.refitting import (
    Fold,
    Learner,
    PlacingTask,
    collapsed,
    open_table,
    priors,
    read_rows,
    regular,
    with_tests,
)
from tacit.learn.placing.splitting import MIN_VARIATION, Rows, Slopes, Split, parent_posterior, split
from tacit.learn.progress_line import Line
from tacit.model.cpt import CPT, TestingCPT
from tacit.query.network import Network

SIGNIFICANCE = 0.025  # how often chance may pass for a gain in a round: if one place is refitted, two standard errors
MAX_DERIVATIVES, MIN_SCREENED_ROWS = 20_000_000, 100  # by tables, of all rows that screening looks at together
MIN_DEGREES = 1e-9  # of freedom: with fewer, there is only one row held out
MIN_RELATIVE_GAIN = 1e-4  # of the loss: a smaller gain is none, however sure it is


def place_tests(
    net: Network,
    query: str,
    rows: Any,
    y: Any = None,
    budget: int = 5,
    *,
    nodes: Iterable[str] | None = None,
    selection: str | None = None,
    max_tests: int = 1,
    gamma: float | None = 16.0,
    loss: Loss = "cross_entropy",
    prior: float | tuple[Network, float] = 0.1,
    validation: int | float = 5,
    steps: int = 100,
    restarts: int = 4,
    weights: ArrayLike | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Placement:
    """Find out which nodes to make testing, so that a query predicts its labels better; perhaps none.

    All places are screened: by how much would two tables and a threshold per parent state lower the loss, if all other
    numbers stayed? The most promising ones are refitted, with all that the network leaves to learn, and compared with
    the network without the test on rows held out. A node that becomes testing has both tables learned, also if its
    table is known; where that is so, it is also compared with the network in which this table is learned. A test helps
    if it is better by more than chance explains, and the bar is higher the more places are refitted.

    Parameters
    ----------
    net
        The network. What is known in it stays known, but for the table of a node that is made testing.
    query, rows, y
        The variable to predict, evidence by name (a mapping or a frame), and labels, as `tacit.fit` takes them. Without
        `y`, the column of `rows` that is called like the query holds them.
    budget
        How many places are refitted, over all rounds.
    nodes
        The places to look at; all, if left out: nodes with parents and a table, on which the query depends.
    selection
        What tests see: "ancestral" or "general", as in `Network`; the network's own, if left out.
    max_tests
        How many tests to place, one after the other, each only if it helps.
    gamma
        The slope of the new tests; None: hard tests.
    loss, prior
        What is minimised and compared, and the pseudo-counts of learned tables; those of `tacit.fit`.
    validation
        The number of parts that the rows are cut into, each held out once, or a share of the rows to hold out.
    steps, restarts
        Steps of every fit, and random starts of the network without new tests. Those with a test start from there.
    weights, seed, progress
        How much each row counts; the seed of everything random; whether to show how far the search is.

    >>> import numpy as np
    >>> import tacit
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random(400)
    >>> net = tacit.Network()
    >>> net.add("E")
    >>> net.add("T", ["E"])
    >>> net.add("Q", ["T"])
    >>> labels = np.where(rng.random(400) < 0.2 + 0.6 * (abs(x - 0.5) < 0.2), "true", "false")
    >>> placement = place_tests(net, "Q", {"E": x}, labels, progress=False)
    >>> placement.best.helps, placement.network.testing_nodes == placement.best.nodes
    (True, True)
    """
    if not isinstance(net, Network):
        raise TacitError(f"net is a {type(net).__name__}, expected a Network")
    net = net if selection is None else net.with_selection(selection)
    check_loss(loss)
    options = PlaceOptions.among(locals())
    task = PlacingTask(query, read_rows(net, query, rows, y, weights), options, Line(options.progress))
    search = PlaceSearch(Learner(task, net), [*task.folds(), Fold(task.data)])
    allowed = None if nodes is None else search.allowed(nodes)
    budget = options.budget
    table: list[Place] = []
    chosen: list[Place] = []
    network, without = search.fitted[-1].more, search.loss
    for number in range(1, options.max_tests + 1):
        places = search.round(number, allowed, budget)
        table += places
        budget -= sum(not math.isnan(place.difference) for place in places)
        best = next((place for place in places if place.helps), None)
        if best is None:
            break
        chosen.append(best)
        network = search.refit(best)
        if number == options.max_tests or budget < 1:
            break
        search = search.with_test(best)
    task.line.end(f"{len(table)} places")
    loss_now = chosen[-1].loss if chosen else without
    seconds = time.monotonic() - options.started
    return Placement(network, table, chosen, loss_now, without, query, task.data.rows, seconds)


@dataclass
class Fitted:
    """The network without the next test, learned from a fold of the rows."""

    first: Network  # where refits start
    more: Network  # after as many steps again, as refits have
    losses: Floats  # of rows held out


class PlaceSearch:
    """A network that tests may be added to, learned from every fold of the rows; the last fold is all of them."""

    def __init__(self, base: Learner, folds: Sequence[Fold], fitted: list[Fitted] | None = None) -> None:
        self.task, self.base, self.folds = base.task, base, folds
        self.screening = Screening(base)
        self.judging = Judging(np.concatenate([self.task.data.weights[fold.places] for fold in folds]))
        self.fitted = fitted or [self._fit(number, fold) for number, fold in enumerate(folds)]
        self._refits: dict[str, Learner] = {}

    def _fit(self, number: int, fold: Fold) -> Fitted:
        self.task.line.say(f"learning without a test: {number + 1} of {len(self.folds)}")
        base, options = self.base, self.task.options
        restarts = options.restarts if base.parameters.random else 1
        starts = [base.random((options.seed, start)) for start in range(restarts)]
        if number == 0:
            LabelledRows(Local(self.task.data)).require_possible(base.started)
        return self._fitted(base, fold, base.learned(fold.rows, starts))

    def _fitted(self, learner: Learner, fold: Fold, first: Network) -> Fitted:
        more = learner.learned(fold.rows, [first])
        return Fitted(first, more, learner.losses(more, fold.held_out))

    @property
    def loss(self) -> float:
        """The loss of rows held out, without the next test."""
        return float(self.judging.weights @ np.concatenate([fitted.losses for fitted in self.fitted]))

    def places(self) -> list[Place]:
        """The nodes that could be made testing, those of a tie together, with the evidence that a test would see."""
        net, places = self.base.network, []
        for node in net:
            group = net.ties[tie] if (tie := net.cpt(node).tie) is not None else (node,)
            if node == group[0] and all(self.possible(n) for n in group):
                tested = with_tests(net, group, self.task.options.gamma)
                sees = {name for n in group for name in tested.seen_by(n, self.task.data.columns)}
                places.append(Place(node, group, net.parents(node), tuple(name for name in net if name in sees)))
        return places

    def possible(self, node: str) -> bool:
        """Whether a node can be made testing, and the query depends on it."""
        cpt = self.base.network.cpt(node)
        used = node in self.base.tac.program.nodes and bool(self.base.network.parents(node))
        return used and isinstance(cpt, CPT) and bool(np.isnan(open_table(cpt)).any())

    def allowed(self, nodes: Iterable[str]) -> frozenset[str]:
        """The nodes that a user named; an error if one of them cannot be made testing."""
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise TacitError(f"nodes is {nodes!r}, expected a sequence of names")
        names = frozenset(nodes)
        for name in names:
            self.base.network.node(name)
            if not self.possible(name):
                expected = "a node with parents and a regular table, not all 0s and 1s, that the query depends on"
                raise TacitError(f"node {name!r} cannot be made testing here; expected {expected}")
        return names

    def round(self, number: int, allowed: frozenset[str] | None, budget: int) -> list[Place]:
        """All places, screened; the best of them refitted and judged."""
        places = [replace(place, round=number) for place in self.places()]
        if allowed is not None:
            places = [place for place in places if allowed & set(place.nodes)]
        places = self.screening.screened(places, self.fitted[-1].first)
        places.sort(key=lambda place: -np.nan_to_num(place.screened, nan=-math.inf))
        tried = [place for place in places if not math.isnan(place.screened)][:budget]
        bar = self.judging.bar(len(tried))
        losses = [self._losses(place, f"{i} of {len(tried)}") for i, place in enumerate(tried, start=1)]
        judged = [self.judging.judged(place, some, bar) for place, some in zip(tried, losses, strict=True)]
        judged.sort(key=lambda place: (not place.helps, -place.difference))
        return judged + [place for place in places if place not in tried]

    def _losses(self, place: Place, which: str) -> list[Floats]:
        """The losses of rows held out with the test, with the table of the node learned, and without either."""
        cpt = self.base.network.cpt(place.node)
        assert isinstance(cpt, CPT)
        known = not cpt.learn and not np.isnan(cpt.table).any()
        tested = Learner(self.task, self.screening.testing(place))
        opened = Learner(self.task, regular(self.base.network, place.nodes)) if known else self.base
        self._refits[place.node], losses = tested, list[list[Floats]]()
        for number, (fold, fitted) in enumerate(zip(self.folds[:-1], self.fitted, strict=False)):
            self.task.line.say(f"refitting {place.name}, {which}: {number + 1} of {len(self.folds) - 1}")
            refitted = self.refit(place, number)
            one = collapsed(tested, refitted, place.nodes, fold.rows)
            free = base = opened.learned(fold.rows, [fitted.more, _with(refitted, place, one)])
            if known:
                base = self.base.learned(fold.rows, [fitted.more, _with(refitted, place, cpt)])
            pairs = ((tested, refitted), (opened, free), (self.base, base))
            losses.append([learner.losses(net, fold.held_out) for learner, net in pairs])
        return [np.concatenate(some) for some in zip(*losses, strict=True)]

    def refit(self, place: Place, number: int = -1) -> Network:
        """The network with the test, learned from a fold of the rows; from all of them, if left out."""
        net, rows = self.fitted[number].first, self.folds[number].rows
        cpt = self.screening.start(place, net, rows)
        return self._refits[place.node].learned(rows, [_with(net, place, cpt)])

    def with_test(self, place: Place) -> PlaceSearch:
        """The search that goes on from a network with the test."""
        learner, folds = self._refits[place.node], enumerate(self.folds)
        fitted = [self._fitted(learner, fold, self.refit(place, number)) for number, fold in folds]
        return PlaceSearch(learner, self.folds, fitted)


def _with(net: Network, place: Place, cpt: CPT | TestingCPT) -> Network:
    return net.with_cpts(dict.fromkeys(place.nodes, cpt))


@dataclass(frozen=True)
class Screening:
    """The gains of tests, if all other numbers stayed."""

    base: Learner

    def screened(self, places: list[Place], net: Network) -> list[Place]:
        """Places with the gain of a test there, or why there is none, in a learned network."""
        seeing = [node for place in places if place.sees for node in place.nodes]
        line, data = self.base.task.line, self._some(net, self.base.task.data, seeing)
        slopes, posterior = self.base.slopes(net, data, seeing), cache(partial(parent_posterior, net, data))
        screened = []
        for i, place in enumerate(places):
            line.say(f"screening {place.name}: {i + 1} of {len(places)}")
            if not place.sees:
                screened.append(replace(place, verdict=BLIND))
                continue
            rows = self._rows(place, data, slopes, posterior)
            if np.ptp(rows.posterior, axis=-1).max() <= MIN_VARIATION:
                screened.append(replace(place, verdict=CONSTANT))
            elif not any(slopes.matters(node) for node in place.nodes):
                screened.append(replace(place, verdict=IRRELEVANT))
            else:
                screened.append(replace(place, screened=self._gain(place, net, rows)))
        return screened

    def start(self, place: Place, net: Network, data: Data) -> TestingCPT:
        """The tables and thresholds that are best if all other numbers of a learned network stay."""
        data = self._some(net, data, place.nodes)
        slopes, posterior = self.base.slopes(net, data, place.nodes), partial(parent_posterior, net, data)
        return self._split(place, net, self._rows(place, data, slopes, posterior)).tested

    def testing(self, place: Place) -> Network:
        """The network in which a place is testing."""
        return with_tests(self.base.network, place.nodes, self.base.task.options.gamma)

    def _rows(self, place: Place, data: Data, slopes: Slopes, posterior: Callable[..., Floats]) -> Rows:
        tested, task = self.testing(place), self.base.task
        posteriors = [posterior(tested.parents(n), tested.seen_by(n, task.data.columns)) for n in place.nodes]
        return Rows.of(slopes, place.nodes, posteriors, data, task.options.loss)

    def _gain(self, place: Place, net: Network, rows: Rows) -> float:
        """The gain of a test on each half of the rows, if it is found on the other."""
        half = np.random.default_rng(self.base.task.options.seed).permutation(len(rows.weights)) % 2
        gains = np.empty(len(rows.weights))
        for k in range(2):
            best = self._split(place, net, rows.take(np.flatnonzero(half != k)))
            gains[half == k] = best.gains(rows.take(np.flatnonzero(half == k)))
        return float(rows.weights @ gains)

    def _split(self, place: Place, net: Network, rows: Rows) -> Split:
        shapes = (regular(self.base.network, place.nodes), self.testing(place))
        free, tested = (Parameters(shape, place.nodes) for shape in shapes)
        both = [priors(parameters, self.base.task.options.prior) for parameters in (free, tested)]
        return split(free, tested, net.table(place.node), rows, both)

    def _some(self, net: Network, data: Data, nodes: Sequence[str]) -> Data:
        """As many rows as derivatives by the tables of some nodes fit into memory for."""
        task = self.base.task
        size = len(net.states(task.query)) * sum(net.table(node).size for node in nodes)
        most = max(MIN_SCREENED_ROWS, MAX_DERIVATIVES // max(1, size))
        if data.rows <= most:
            return data
        return data.take(np.sort(np.random.default_rng(task.options.seed).permutation(data.rows)[:most]))


class Judging:
    """Verdicts on places by rows held out, given the weights of these, fold by fold."""

    def __init__(self, weights: Floats) -> None:
        self.weights = np.asarray(weights / weights.sum())
        self._effective = float(1 / np.sum(self.weights**2))  # as many rows of equal weight as they are worth

    def bar(self, tried: int) -> float:
        """How many standard errors a gain must be, where so many places are refitted."""
        return float(stdtrit(max(self._effective - 1, MIN_DEGREES), 1 - SIGNIFICANCE / max(1, tried)))

    def judged(self, place: Place, losses: list[Floats], bar: float) -> Place:
        """A place with its verdict, by losses with the test, with the table of its node learned, and without either."""
        tested, opened, base = losses
        without = min(opened, base, key=lambda rival: self._mean(rival)[0])
        difference, error = self._mean(without - tested)
        table_gain, table_error = self._mean(base - opened)
        means = self._mean(tested)[0], self._mean(without)[0]
        least = MIN_RELATIVE_GAIN * abs(means[1])
        verdict = NOT_CLEAR
        if difference > max(bar * error, least):
            verdict = HELPS
        elif table_gain > max(bar * table_error, least):
            verdict = LEARN_TABLE
        return replace(place, loss=means[0], without=means[1], difference=difference, error=error, verdict=verdict)

    def _mean(self, values: Floats) -> tuple[float, float]:
        """The mean over the rows held out, and its standard error, which is infinite for a single row."""
        mean, n = float(self.weights @ values), self._effective
        if n - 1 < MIN_DEGREES:
            return mean, math.inf
        return mean, float(np.sqrt(np.sum(self.weights**2 * (values - mean) ** 2) * n / (n - 1)))
