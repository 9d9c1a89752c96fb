"""Refits of a network, as it is, with a table opened, or with a test, on folds of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats, divide
from tacit.engines import engine_for_many_passes
from tacit.evidence.column import Evidence
from tacit.evidence.read import named_columns, read, without_columns
from tacit.learn.fitting.data import Data, read_data
from tacit.learn.fitting.objective import Objective
from tacit.learn.fitting.optimizers import LBFGS, State
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.options import PlaceOptions, share, whole
from tacit.learn.placing.splitting import Slopes, slopes, weight, weights_of, with_every_state
from tacit.learn.prior import Prior
from tacit.learn.progress_line import Line
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.elements.distributions import structural
from tacit.query.asking.options import CompileOptions
from tacit.query.network import Network
from tacit.query.query import compiled
from tacit.query.tac import TAC


def read_rows(net: Network, query: str, rows: Any, y: Any, weights: ArrayLike | None) -> Data:
    """Labelled rows, checked; those that weigh nothing are left out. Without `y`, a column has the query's labels."""
    columns = named_columns(rows)
    if columns is None:
        raise EvidenceError(f"rows is a {type(rows).__name__}, expected a mapping or a frame, with names of columns")
    if (y is None) != (query in list(columns)):
        what = "there are no labels" if y is None else f"rows has a column {query!r}, which holds labels, beside y"
        raise EvidenceError(f"{what}; expected y, or a column of rows that is called {query!r}")
    if y is None:
        rows, y = without_columns(rows, [query]), columns[query]
    evidence = read(rows, [net.variable(name) for name in net])
    data = read_data(compiled_for(evidence, net, query, effort="low"), evidence, y, weights)
    return data.take(np.flatnonzero(data.weights))


def compiled_for(evidence: Evidence, net: Network, query: str, effort: str = "auto") -> TAC:
    """The query, compiled for evidence of this kind."""
    soft = [name for name in evidence.columns if name not in evidence.fully_observed]
    return compiled(TAC, net, query, soft, evidence.fully_observed, CompileOptions(effort=effort))


@dataclass(frozen=True)
class PlacingTask:
    """The rows, the query to predict from them, and the options."""

    query: str
    data: Data
    options: PlaceOptions
    line: Line

    def folds(self) -> list[Fold]:
        """Rows to learn from, with those held out."""
        count, validation = self.data.rows, self.options.validation
        order = np.random.default_rng((self.options.seed, count)).permutation(count)
        if isinstance(validation, int) and not isinstance(validation, bool):
            number = whole("validation", validation, least=2, most=count)
            held_out = [np.sort(order[k::number]) for k in range(number)]
        else:
            part = share("validation", validation, "a number of parts >= 2, or a share of the rows")
            held_out = [np.sort(order[: max(1, round(part * count))])]
        folds = []
        for out in held_out:
            kept = np.setdiff1d(np.arange(count), out)
            if not len(kept):
                raise TacitError(f"validation={validation} leaves no row of {count} to learn from")
            folds.append(Fold(self.data.take(kept), self.data.take(out), out))
        return folds


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, and rows held out, with their places among all."""

    rows: Data
    held_out: Data | None = None
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Learner:
    """A network with numbers to learn, compiled once for all folds of the rows."""

    def __init__(self, task: PlacingTask, net: Network) -> None:
        self.task, self.network = task, net
        self.tac = compiled_for(Evidence(task.data.rows, task.data.columns), net, task.query)
        self.parameters = Parameters(net, self.tac.program.nodes)

    def random(self, seed: Sequence[int]) -> Network:
        """The network with random numbers for those that have no start of their own."""
        return self.parameters.fill(self.parameters.start(np.random.default_rng(seed)))

    def learned(self, rows: Data, starts: Iterable[Network]) -> Network:
        """The best network that some starts lead to."""
        states = [State(weights_of(self.parameters, start)) for start in starts]
        if not self.parameters.count:
            return self.network
        objective = self.objective(rows, priors(self.parameters, self.task.options.prior))
        for state in states:
            LBFGS().advance(objective, state, self.task.options.steps)
        best = min(states, key=lambda state: math.inf if math.isnan(state.loss) else state.loss)
        return self.parameters.fill(best.weights)

    def objective(self, rows: Data, prior: Floats | None = None) -> Objective:
        """The loss of some rows, as a function of the learned numbers."""
        return Objective(self.parameters, self.started.engine().clone(), rows, self.task.options.loss, prior)

    @cached_property
    def started(self) -> TAC:
        """The query with some numbers, so that its engine is built once, whatever numbers come."""
        # the same engine in every run, whatever is compiled already
        engine = engine_for_many_passes(self.tac.program, self.task.data.rows)
        return self.tac.with_network(self.random((self.task.options.seed, 0)), engine=engine)

    def slopes(self, net: Network, rows: Data, nodes: Sequence[str]) -> Slopes:
        """The derivatives of the answers of a learned network by the tables of some nodes."""
        return slopes(with_every_state(self.tac).with_network(net), rows, nodes)

    def losses(self, net: Network, rows: Data | None) -> Floats:
        """The loss of every row."""
        if rows is None:
            return np.zeros(0)
        (weighted,) = self.objective(rows).losses([weights_of(self.parameters, net)], self.task.query)
        return np.asarray(weighted / rows.weights)


def priors(parameters: Parameters, prior: Prior) -> Floats | None:
    """Pseudo-counts of learned numbers; both tables of a testing node have those of the one."""
    strength, centre = prior
    if not strength:
        return None
    if centre is not None:
        both = {}
        for node in parameters.network.testing_nodes:
            cpt = centre.cpt(node) if node in centre else None
            if isinstance(cpt, CPT):
                both[node] = TestingCPT(cpt.table, cpt.table, np.full(cpt.table.shape[:-1], 0.5), tie=cpt.tie)
        centre = centre.with_cpts(both)
    return parameters.pseudo_counts(strength, centre)


def open_table(cpt: CPT) -> Floats:
    """A table with NaN where numbers are learned; one that is known is opened, but for its exact 0s and 1s."""
    if np.isnan(cpt.table).any() and not cpt.learn:
        return cpt.table
    return np.where(structural(cpt.table), cpt.table, np.nan)


def regular(net: Network, nodes: Sequence[str]) -> Network:
    """The network with the tables of these nodes to learn."""
    cpts = [(node, net.cpt(node)) for node in nodes]
    return net.with_cpts({node: CPT(open_table(cpt), tie=cpt.tie) for node, cpt in cpts if isinstance(cpt, CPT)})


def with_tests(net: Network, nodes: Sequence[str], gamma: float | None) -> Network:
    """The network in which these nodes are testing."""
    cpts = {}
    for node in nodes:
        cpt = net.cpt(node)
        assert isinstance(cpt, CPT)
        table = open_table(cpt)
        cpts[node] = TestingCPT(table, table, np.full(table.shape[:-1], np.nan), gamma=gamma, tie=cpt.tie)
    return net.with_cpts(cpts)


def collapsed(learner: Learner, net: Network, nodes: Sequence[str], rows: Data) -> CPT:
    """One table for a testing node, or tied ones: the mean of the tables that the rows select."""
    cpt = net.cpt(nodes[0])
    assert isinstance(cpt, TestingCPT)
    tested = learner.objective(rows).parent_posteriors(weights_of(learner.parameters, net), nodes)
    posterior = np.concatenate([tested[node] for node in nodes], axis=1)  # (u, r)
    above = (posterior * weight(posterior, cpt.thresholds.reshape(-1, 1), cpt.gamma)).sum(axis=1)
    share = divide(above, posterior.sum(axis=1), otherwise=0.5).reshape(*cpt.thresholds.shape, 1)
    return CPT(cpt.minus + share * (cpt.plus - cpt.minus), tie=cpt.tie)
