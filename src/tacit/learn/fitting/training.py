"""`tacit.fit`: the stages of training, from which rows, and the result."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.html import curve, facts
from tacit.engines import for_learning
from tacit.learn.checkpoint import fingerprint
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.labelled import MAX_JACOBIAN, LabelledRows
from tacit.learn.fitting.links import deeper, depths, shortened
from tacit.learn.fitting.losses import Loss, check_loss, identity
from tacit.learn.fitting.objective import Trainable
from tacit.learn.fitting.optimizers import LBFGS, Adam, LevenbergMarquardt, Optimizer, State
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.fitting.run import Record, Run, Stage, Trainer, read_run, write_run
from tacit.learn.fitting.thresholds import ThresholdSearch
from tacit.learn.options import FitOptions
from tacit.learn.options import share as check_share
from tacit.learn.partitions import Local
from tacit.learn.progress_line import Bar, clock
from tacit.learn.session import Session
from tacit.query.network import Network
from tacit.query.tac import TAC

DEFAULT_STEPS = {"lm": 200, "lbfgs": 500, "adam": 2000}
DEFAULT_RESTARTS = {"lm": 16, "lbfgs": 4, "adam": 1}
MAX_ROUND_STEPS = {"lm": 50, "lbfgs": 100, "adam": 100}  # between two looks at the losses
LM_WEIGHTS, LM_ENTRIES = 600, 4_000_000  # up to which Levenberg-Marquardt is the best choice: its Jacobian is dense
LARGE_TABLE = 20_000  # numbers from which Adam is the best choice: L-BFGS hardly follows their tiny gradients
RATE, LARGE_TABLE_RATE = 0.05, 0.2
FULL_BATCH_ROWS = 20_000
SHORT_CHAIN = 4  # tests one below the other that are trained at once; longer chains grow, twice as long each time
COPIED_SHARE = 0.75  # of a link's row, where it starts as a loose copy of its parent
GROWN_CHAINS = 4  # short ones that go on into longer ones
HARD_ROUNDS, SWEEPS_PER_ROUND = 2, 4  # with hard tests before the worse half is dropped
HARDENED_RESTARTS = 8  # the best with sigmoids is seldom the best with tests


@dataclass(frozen=True)
class Fit:
    """The result of training.

    `network` has the learned numbers filled in and `tac` evaluates it. `loss` is the loss of the training rows,
    `hard_loss` the same with hard tests instead of sigmoids, `validation_loss` that of the rows held out.
    """

    network: Network
    tac: TAC
    loss: float
    hard_loss: float
    validation_loss: float | None
    history: list[Record]
    optimizer: str
    seconds: float
    interrupted: bool = False

    def __repr__(self) -> str:
        held_out = "" if self.validation_loss is None else f", validation {self.validation_loss:.3g}"
        hard = "" if self.hard_loss == self.loss else f", {self.hard_loss:.3g} with hard tests"
        return f"Fit(loss {self.loss:.3g}{hard}{held_out}; {self.optimizer}, {clock(self.seconds)})"

    def _repr_html_(self) -> str:
        best = list(itertools.accumulate((record.loss for record in self.history), min))
        values = {
            "loss": self.loss,
            "with hard tests": None if self.hard_loss == self.loss else self.hard_loss,
            "of the rows held out": self.validation_loss,
            "optimizer": self.optimizer,
            "restarts": len({record.restart for record in self.history}),
            "time": clock(self.seconds) + ", interrupted" * self.interrupted,
        }
        return facts(repr(self), values) + curve(best)


def fit(
    tac: TAC,
    X: Any,
    y: Any = None,
    loss: Loss = "mse",
    optimizer: str = "auto",
    steps: int | None = None,
    restarts: int | None = None,
    seed: int = 0,
    validation: float | tuple[Any, Any] | None = None,
    progress: bool = True,
    *,
    label: Any = None,
    weights: ArrayLike | None = None,
    gamma: float | str | None = None,
    harden: bool = False,
    prior: float | tuple[Network, float] = 0.0,
    rate: float | None = None,
    batch: int = 1024,
    clip: float | None = 1.0,
    patience: int = 5,
    callbacks: Sequence[Callable[[Run], Any]] = (),
    checkpoint: str | os.PathLike[str] | None = None,
) -> Fit:
    """Learn the numbers that a network leaves out, from labelled rows; what is given is known and stays.

    Parameters
    ----------
    tac
        The compiled query. Numbers that are NaN are learned, and those of tables with `learn=True`.
    X, y
        Evidence, in any form that `tac.posterior` takes, and labels: probabilities of the query's first state,
        distributions (rows, states), or states. Without `y`, `label` names the column of `X` that holds them.
    loss
        "mse", "cross_entropy", or a function `loss(p, y)` that returns the loss of every row and its derivatives.
    optimizer
        "lm" (Levenberg-Marquardt: squared errors, few hundred weights), "lbfgs" (all rows in every step), "adam"
        (mini-batches, large tables), or "auto".
    steps, restarts, seed
        Steps of every restart; how many starts (the worse half is dropped repeatedly); the seed of everything random.
        Where more than four tests form a chain, chains of four are trained first, then chains of eight, and so on, each
        with this many steps and restarts.
    validation
        A share of the rows to hold out, or other rows `(X, y)`. Training ends when their loss has not fallen
        for `patience` rounds, and the numbers with the lowest are kept.
    progress
        Whether to show a progress bar, in a terminal or a notebook.
    weights
        How much each row counts.
    gamma
        The slope to train with, "learn" to learn the slope of every testing node, or None for each node's own.
    harden
        End with hard tests: search their thresholds and fit the tables again, so that the network is good with
        these. Without it, thresholds of hard tests have no gradient and stay where they start.
    prior
        Pseudo-counts for every learned entry of a table, as of a Dirichlet prior; or `(network, strength)`: every row
        of its tables counts as so many rows of data.
    rate, batch, clip
        For "adam": the highest learning rate (None: 0.05, or 0.2 for tables of 20,000 numbers), the rows of a step,
        the largest norm of a gradient. Rows that weigh more than a whole batch are in every step.
    callbacks
        Functions of a `Run`, called after every round; training ends when one returns True.
    checkpoint
        A file to write after rounds; if it exists already, training resumes from it. A `loss` of your own must compute
        the same as before.

    >>> import numpy as np
    >>> import tacit
    >>> net = tacit.Network("step")
    >>> net.add("E")
    >>> net.add("T", ["E"], testing=True, gamma=16.0)
    >>> net.add("Q", ["T"])
    >>> x = np.linspace(0, 1, 50)
    >>> fit(tacit.compile(net, "Q", ["E"]), {"E": x}, 0.5 + 0.4 * np.sin(3 * x)).loss < 1e-4
    True
    """
    if not isinstance(tac, TAC):
        expected = "a compiled query: tacit.compile(net, query, evidence)"
        raise TacitError(f"tac is a {type(tac).__name__}, expected {expected}")
    options = FitOptions.among(locals())
    training = Training(tac, LabelledRows(Local(read_data(tac, X, y, weights, label))), options)
    if isinstance(validation, tuple) and len(validation) == 2:
        training.validate_on(LabelledRows(Local(read_data(tac, *validation, None))))
    elif validation is not None:
        training.hold_out(validation)
    return train(training)


class Training:
    """The numbers to learn, the rows to learn from, and the objectives of every stage."""

    def __init__(self, tac: TAC, rows: LabelledRows, options: FitOptions) -> None:
        self.tac, self.rows, self.options = tac, rows, options
        self.loss, self.prior = check_loss(options.loss), options.prior
        self.held_out: LabelledRows | None = None
        slope = options.gamma
        self.network = tac.network if slope is None or isinstance(slope, str) else tac.network.with_gamma(slope)
        self.parameters = Parameters(self.network, tac.program.nodes, slopes=slope == "learn")
        if not self.parameters.count:
            problem = "there is nothing to learn: every number that the query needs is known"
            raise TacitError(f"{problem}; leave a CPT out, set some entries to NaN, or give it with learn=True")
        rows.require_possible(self._start())
        if rows.data is not None:  # rows without weight are of no more use
            self.rows = LabelledRows(Local(rows.data.take(np.flatnonzero(rows.data.weights))))

    def hold_out(self, share: Any) -> None:
        """Set aside a share of the rows for validation."""
        share = check_share("validation", share, "a share of the rows, or other rows (X, y)")
        self.rows, self.held_out = self.rows.split(share, self.options.seed)

    def validate_on(self, rows: LabelledRows) -> None:
        """Take other rows for validation."""
        rows.require_possible(self._start(), "validation row")
        self.held_out = rows

    def objectives(self, stage: Stage) -> tuple[Trainable, Trainable | None]:
        """The objectives of the training rows and of the rows held out, with the slopes of a stage."""
        parameters = self.parameters_of(stage)
        net = parameters.network
        if stage.slope != "own":
            net = net.with_gamma(None)
            parameters = parameters.without_slopes()
        prior = parameters.pseudo_counts(*self.prior) if self.prior.strength else None
        tac = self._filled(parameters.fill(parameters.start(np.random.default_rng(0)), net))
        objective = self.rows.objective(parameters, tac, self.loss, prior)
        return objective, None if self.held_out is None else self.held_out.objective(parameters, tac, self.loss)

    def parameters_of(self, stage: Stage) -> Parameters:
        """The numbers learned in a stage: all that are left out, but for links that are exact copies still."""
        if stage.depth is None:
            return self.parameters
        nodes, slopes = self.tac.program.nodes, bool(self.parameters.learned_slopes)
        return Parameters(shortened(self.network, nodes, stage.depth), nodes, slopes)

    @property
    def depths(self) -> list[int]:
        """The depths of chains of tests at first, and as they grow; none, if no chain is deep."""
        depths, depth = [], SHORT_CHAIN
        while deeper(self.network, self.tac.program.nodes, depth):
            depths.append(depth)
            depth *= 2
        return depths

    def _start(self) -> TAC:
        """The query with numbers to start from: engines rely on their exact 0s and 1s, which stay."""
        return self._filled(self.parameters.fill(self.parameters.start(np.random.default_rng(0)), self.network))

    def _filled(self, network: Network) -> TAC:
        """The compiled query with other numbers; large ones are learned on a GPU, where there is one."""
        rows = 0 if self.rows.data is None else self.rows.rows
        engine = for_learning(self.tac.options.engine, self.tac.program, rows)
        return self.tac.with_network(network, "float64", engine)

    def chosen(self) -> FitOptions:
        """The options, with defaults that suit the training."""
        options, name = self.options, self._choose(self.options.optimizer)
        return replace(
            options,
            optimizer=name,
            steps=options.steps or DEFAULT_STEPS[name],
            restarts=options.restarts or (DEFAULT_RESTARTS[name] if self.parameters.random else 1),
            rate=options.rate or (LARGE_TABLE_RATE if self.parameters.largest >= LARGE_TABLE else RATE),
        )

    def _choose(self, optimizer: str) -> str:
        """The optimizer asked for, or the one that suits the training."""
        groups, here = self.rows.groups, self.rows.data is not None
        offered = ("lm", "lbfgs", "adam") if here else ("lm", "lbfgs")  # mini-batches are drawn in this process only
        if optimizer not in ("auto", *offered):
            raise TacitError(f"optimizer={optimizer!r} needs all rows in one place; expected one of {offered!r} here")
        entries = self.parameters.count * self.rows.rows * (1 if groups == 2 else groups)
        small = self.parameters.count <= LM_WEIGHTS and entries <= LM_ENTRIES
        if optimizer == "lm" or (optimizer == "auto" and small):
            reason = self._not_least_squares()
            if not reason:
                return "lm"
            if optimizer == "lm":
                raise TacitError(f"optimizer='lm' is for squared errors of soft evidence: {reason}; use 'lbfgs'")
        if optimizer == "auto":
            few = self.rows.rows <= FULL_BATCH_ROWS and self.parameters.largest < LARGE_TABLE
            return "adam" if here and not few else "lbfgs"
        return optimizer

    def _not_least_squares(self) -> str:
        if self.loss != "mse":
            return f"the loss is {self.loss!r}"
        if self.prior.strength or self.parameters.learned_slopes:
            return "there is a prior" if self.prior.strength else "slopes are learned"
        engine = self._start().engine()
        if reason := engine.lacks_jacobian():
            return reason
        if self.rows.data is not None and engine.jacobian_size * self.rows.rows > MAX_JACOBIAN:
            return "its Jacobian would be too large"
        return ""

    def key(self, *settings: Any) -> str:
        """A digest that tells this training from others."""
        strength, centre = self.prior
        texts = (
            self.network.to_dict(),
            self.tac.query,
            self.tac.evidence,
            self.tac.do,
            identity(self.loss, self.rows.groups),
            strength if centre is None else (strength, centre.to_dict()),
            sorted(self.parameters.learned_slopes),
            [rows.digest() for rows in (self.rows, self.held_out) if rows is not None],
            settings,
        )
        return fingerprint([repr(t) for t in texts], [])

    def result(self, run: Run, optimizer: str, stages: Sequence[Stage], seconds: float, interrupted: bool) -> Fit:
        """The network with the best numbers, and its losses."""
        if run.best is None:
            raise TacitError("the loss is not a number from any of the starts; some rows may have probability 0")
        network = self.parameters_of(stages[min(run.stage, len(stages) - 1)]).fill(run.best)
        if stages[run.best_stage].slope == "hard":
            network = network.with_gamma(None)
        loss, hard = self._loss(network, self.rows), network.with_gamma(None)
        hard_loss = loss if hard == network else self._loss(hard, self.rows)
        validation_loss = None if self.held_out is None else self._loss(network, self.held_out)
        tac = self.tac.with_network(network)  # on the engine that was asked for, which need not be that of learning
        return Fit(network, tac, loss, hard_loss, validation_loss, run.history, optimizer, seconds, interrupted)

    def _loss(self, network: Network, rows: LabelledRows) -> float:
        return rows.objective(self.parameters, self._filled(network), self.loss).loss_of_rows()


@dataclass(frozen=True)
class Restarts:
    """The starts of restarts, also after chains have grown.

    Short chains start with random numbers. Those that cannot grow start so, or with links as loose copies of their
    parent, in turns. Of chains that have grown, half go on from the best of the shorter ones, with new links as loose
    copies, and half start anew with all links as loose copies: the best long chain does not always come from the best
    short one.
    """

    training: Training
    options: FitOptions

    def first(self, stage: Stage) -> list[State]:
        """The states that the restarts start from."""
        assert self.options.restarts is not None
        parameters = self.training.parameters_of(stage)
        learned = {place.key[0] for place in parameters.places}
        depth = depths(parameters.network, self.training.tac.program.nodes)
        # of links that could not grow: tied ones, or those with numbers of their own
        long_chain = any(above > SHORT_CHAIN for node, above in depth.items() if node in learned)
        copies = (COPIED_SHARE, 0.0) if long_chain else (0.0, 0.0)
        return [State(parameters.start(self._rng(r), copies[r % 2])) for r in range(self.options.restarts)]

    def grow(self, run: Run, before: Stage, after: Stage) -> tuple[list[State], Floats | None]:
        """The restarts in longer chains, and the best of the shorter ones, whose new links are exact copies."""
        small, large = self.training.parameters_of(before), self.training.parameters_of(after)
        best = run.states[run.alive[0]].weights if run.best is None else run.best
        others = sorted(run.states, key=lambda state: (math.isnan(state.loss), state.loss))[1:GROWN_CHAINS]
        kept = [small.numbers(weights) for weights in (best, *(state.weights for state in others))]
        states = []
        for r in range(len(run.states)):
            start = large.start(self._rng(r, run.stage), COPIED_SHARE)
            states.append(State(start if r % 2 else large.taking(small, kept[r // 2 % len(kept)], start)))
        if run.best is None:
            return states, None
        return states, large.taking(small, kept[0], large.start(self._rng(0), copies=1.0))

    def _rng(self, *which: int) -> np.random.Generator:
        return np.random.default_rng((self.options.seed, *which))


def train(training: Training) -> Fit:
    """Train to the end."""
    if training.options.harden and training.rows.data is None:
        raise TacitError("harden=True needs all rows in one place, where thresholds are searched for among them")
    options = training.chosen()
    stages = _stages(options, training.depths)
    restarts = Restarts(training, options)
    patience = options.patience if training.held_out is not None else 0
    trainer = Trainer(stages, training.objectives, patience, restarts.grow)
    run, save = Run(restarts.first(stages[0])), None
    if path := options.checkpoint:
        key = training.key(stages, options.steps, options.restarts, options.seed, options.patience)
        sizes = [training.parameters_of(stage).count for stage in stages]
        run = read_run(path, key, run, stages, sizes) or run
        save = partial(write_run, path, run, key)
    session = Session("training", save, lambda: run.best is not None)
    rounds = sum(stage.rounds for stage in stages)  # if nothing ends early
    bar = Bar(rounds, options.progress, before=(trainer.done(run), run.steps))

    def after_round(run: Run) -> bool:
        bar.show(trainer.done(run), run.steps, f"loss {min(run.best_loss, run.history[-1].loss):.3g}")
        stop = True in [bool(callback(run)) for callback in options.callbacks]
        session.checkpoint(last=stop or run.finished)
        return stop

    try:
        interrupted = session.run(lambda: trainer.train(run, after_round))
    finally:
        bar.end(f"loss {run.best_loss:.3g}")
    return training.result(run, options.optimizer, stages, time.monotonic() - options.started, interrupted)


def _stages(options: FitOptions, depths: Sequence[int]) -> list[Stage]:
    """The stages: each node's own slope first, shorter chains before longer ones; to harden, hard tests at last."""
    steps, restarts, harden = options.steps, options.restarts, options.harden
    assert steps is not None
    assert restarts is not None
    halvings = min(max(0, math.ceil(math.log2(restarts / (HARDENED_RESTARTS if harden else 1)))), steps - 1)
    rounds = (halvings + 1) * math.ceil(steps / (halvings + 1) / MAX_ROUND_STEPS[options.optimizer])
    smooth = Stage("own", rounds, max(1, steps // rounds), _optimizer(options, steps), halvings)
    stages = [*(replace(smooth, depth=depth) for depth in depths), smooth]
    if not harden:
        return stages
    share = math.ceil(steps / 4)
    refit = _optimizer(options, math.ceil(share / SWEEPS_PER_ROUND))
    search = ThresholdSearch(refit, options.seed, sweeps=SWEEPS_PER_ROUND)
    more = math.ceil(math.log2(math.ceil(restarts / 2**halvings)))
    return [*stages, Stage("hard", HARD_ROUNDS * (more + 1), share, search, more)]


def _optimizer(options: FitOptions, steps: int) -> Optimizer:
    if options.optimizer == "lm":
        return LevenbergMarquardt()
    if options.optimizer == "lbfgs":
        return LBFGS()
    assert options.rate is not None
    return Adam(options.rate, options.batch, steps, options.clip, options.seed)
