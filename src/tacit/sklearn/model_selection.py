"""The choice of a structure for a table, and of the strength of its prior, by rows held out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.base.text import short
from tacit.engines import engine_for_many_passes
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.objective import Objective
from tacit.learn.fitting.optimizers import LBFGS, State
from tacit.learn.fitting.parameters import Parameters
from tacit.model.cpt import CPT
from tacit.model.elements.variable import Label
from tacit.query.network import Network
from tacit.query.tac import TAC, compile
from tacit.sklearn.classifier_structure import ColumnCounts, forest, jittered, network
from tacit.sklearn.levels import Categories, Scale, Values, scales_of
from tacit.sklearn.table import FeatureTable

STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # of the prior: how many rows its tables count as
FOLDS = 5
ONE_FOLD_VALUES = 20_000  # of a table: from so many on, one fold must be enough
MAX_VALUES = 200_000  # to choose by; a table with more gives some of its rows
PATH_STEPS = 10  # from one strength to the next
MAX_LOSS_RATIO = 2.0  # of the rows held out to the least so far: with more, a path ends


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows of a table with names for its columns, a distribution over the classes for each row, and weights.

    `query` is what the variable of the classes is called.
    """

    table: FeatureTable
    names: Sequence[str]
    targets: Floats  # (rows, classes)
    classes: Sequence[Label]
    weights: Floats
    query: str = "Q"

    def take(self, rows: NDArray[np.int64]) -> LabelledTable:
        return replace(self, table=self.table.take(rows), targets=self.targets[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class Candidate:
    """A kind of structure: the levels of numbers, components per class, and whether columns form trees."""

    levels: int
    slope: float
    components: int = 1
    tree: bool = False


def candidates(table: FeatureTable) -> list[Candidate]:
    """The kinds to choose from: nearly a logistic regression; curves that interact; trees, where values are missing."""
    simple = [Candidate(2, slope=2.0), Candidate(5, slope=4.0, components=2)]
    return [*simple, Candidate(5, slope=4.0, tree=True)] if table.holes else simple


@dataclass(frozen=True, eq=False)
class Built:
    """A candidate for one table: the scales that make evidence of columns, and the compiled query of its network."""

    scales: dict[int, Scale]
    names: dict[int, str]
    centre: Network
    tac: TAC

    def with_numbers(self, weights: Floats) -> TAC:
        """The query with other numbers to start from."""
        return self.tac.with_network(Parameters(self.tac.network, self.tac.program.nodes).fill(weights))

    def evidence(self, table: FeatureTable) -> dict[str, Floats]:
        for i, scale in self.scales.items():
            _require_kind(self.names[i], scale, table.columns[i])
        return {self.names[i]: scale(table.columns[i]) for i, scale in self.scales.items()}


def _require_kind(name: str, scale: Scale, column: Values) -> None:
    """Refuse text in a column that held numbers when it was learned from, and numbers in one of text."""
    text = column.dtype == object
    if text == isinstance(scale, Categories):
        return
    known = [value for value in column if value is not None] if text else column[~np.isnan(column)].tolist()
    if known:
        held, holds = ("numbers", "text") if text else ("text", "numbers")
        raise TypeError(
            f"column {name!r} of X holds {holds}, such as {short(repr(known[0]), 40)}; in fit, it held {held}"
        )


def build(candidate: Candidate, rows: LabelledTable, rng: np.random.Generator) -> Built:
    """The network of a candidate, with tables that do not depend on the class, and its query."""
    scales = scales_of(rows.table.columns, rows.weights, candidate.levels, candidate.slope)
    counts = ColumnCounts([scale(rows.table.columns[i]) for i, scale in scales.items()], rows.weights)
    parents = forest(counts.information()) if candidate.tree else dict.fromkeys(range(len(scales)))
    names, states = [rows.names[i] for i in scales], [scale.states for scale in scales.values()]
    shares = rows.weights @ rows.targets + 1.0
    # with holes, much is predicted from little: what is predicted from nothing stays right
    prior = CPT(shares / shares.sum(), learn=not (rows.table.holes and scales))
    centre = network(names, states, rows.classes, prior, counts, parents, candidate.components, rows.query)
    start = jittered(centre, rng) if candidate.components > 1 else centre
    order = [names[i] for i in reversed(parents)] + ["C"] * (candidate.components > 1)  # leaves first: no search needed
    return Built(scales, dict(zip(scales, names, strict=True)), centre, compile(start, rows.query, names, order=order))


class RegularizationPath:
    """Training with weaker and weaker priors, each from where the stronger one led."""

    def __init__(self, built: Built, rows: LabelledTable) -> None:
        self.centre, self.weights = built.centre, rows.weights
        self.parameters = Parameters(built.tac.network, built.tac.program.nodes)
        # the same in every run, whatever is compiled already
        engine = engine_for_many_passes(built.tac.program, len(rows.weights))
        self.engine = built.tac.with_network(built.tac.network, engine=engine).engine()
        self.data = read_data(built.tac, built.evidence(rows.table), rows.targets, rows.weights)

    def objective(self, rows: NDArray[np.int64], strength: float = 0.0) -> Objective:
        # a row of weight 2 counts as two rows, also against the prior
        strength = strength * len(rows) / self.weights[rows].sum()
        prior = self.parameters.pseudo_counts(strength, self.centre) if strength else None
        return Objective(self.parameters, self.engine, self.data.take(rows), "cross_entropy", prior)

    def follow(self, out: NDArray[np.bool_], strengths: Sequence[float]) -> Iterator[tuple[float, Floats]]:
        """The loss of the rows held out and the weights after each strength, until the loss grows too large."""
        rows, check = np.flatnonzero(~out), self.objective(np.flatnonzero(out))
        weights, least = self.parameters.start(np.random.default_rng(0)), np.inf
        for strength in strengths:
            state = State(weights)
            LBFGS().advance(self.objective(rows, strength), state, PATH_STEPS)
            weights, loss = state.weights, check.value(state.weights)
            yield loss, weights
            least = min(least, loss)
            if loss > MAX_LOSS_RATIO * least:
                return


@dataclass(frozen=True, eq=False)
class Choice:
    """A network, the strength of its prior, and the weights that training led to."""

    built: Built
    strength: float
    loss: float  # of rows held out
    weights: Floats


def choose(among: Sequence[Candidate], strengths: Sequence[float], rows: LabelledTable, seed: int) -> Choice:
    """The candidate and the strength with the least loss of rows held out."""
    rows = rows.take(np.flatnonzero(rows.weights))
    keys = keys_of(rows.table, seed)
    most = max(1, MAX_VALUES // rows.table.shape[1])
    some = rows if len(keys) <= most else rows.take(np.flatnonzero(keys <= np.partition(keys, most)[most]))
    folds = folds_of(some, keys_of(some.table, seed))
    choices = [_follow(build(one, rows, np.random.default_rng(seed)), some, folds, strengths) for one in among]
    return min(choices, key=lambda choice: choice.loss)


def _follow(built: Built, rows: LabelledTable, folds: list[NDArray[np.bool_]], strengths: Sequence[float]) -> Choice:
    """The best strength for one network."""
    path = RegularizationPath(built, rows)
    total = np.zeros(len(strengths))
    weights: tuple[Floats, ...] = (path.parameters.start(np.random.default_rng(0)),)
    for out in folds:
        losses = np.full(len(strengths), np.inf)
        reached, weights = zip(*path.follow(out, strengths), strict=True)
        losses[: len(reached)] = reached
        total += losses * rows.weights[out].sum()
    best = int(total.argmin())
    return Choice(built, strengths[best], float(total[best]), weights[min(best, len(weights) - 1)])


def folds_of(rows: LabelledTable, keys: Floats) -> list[NDArray[np.bool_]]:
    """Masks of the rows to hold out; equal rows go together, since repeating a row is giving it weight.

    Every class is spread evenly. Of few rows, each is held out once, in five folds; of many rows there is one fold.
    """
    classes, place = rows.targets.argmax(axis=1), np.zeros(len(keys), dtype=np.intp)
    for k in np.unique(classes):
        of_class = np.flatnonzero(classes == k)
        place[of_class] = (np.unique(keys[of_class], return_inverse=True)[1] + k) % FOLDS
    used = min(math.ceil(ONE_FOLD_VALUES / (rows.weights.sum() * rows.table.shape[1])), FOLDS)
    return [out for fold in range(used) if 0 < (out := place == fold).sum() < len(out)]


def keys_of(table: FeatureTable, seed: int) -> Floats:
    """A random number for every row, the same for equal rows."""
    rng = np.random.default_rng(seed)
    keys = np.zeros(table.shape[0])
    for column in table.columns:
        values = column if column.dtype != object else np.array([text or "" for text in column])
        distinct, codes = np.unique(values, return_inverse=True)
        keys += rng.random(len(distinct))[codes]
    return keys % 1
