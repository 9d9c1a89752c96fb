"""Training: what is learned from which rows, in which stages, and what it comes to."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.cpt import check_gamma
from tacit.engines import for_learning
from tacit.errors import TacitError
from tacit.floats import Floats
from tacit.html_table import curve, facts
from tacit.learn import arguments
from tacit.learn.checkpoint import fingerprint, read_run, write_run
from tacit.learn.labelled import InMemory, Labelled
from tacit.learn.links import deeper, depths, shortened
from tacit.learn.losses import Loss, check_loss, identity
from tacit.learn.objective import Objective
from tacit.learn.optimizers import LBFGS, Adam, LevenbergMarquardt, Optimizer, State
from tacit.learn.parameters import Parameters
from tacit.learn.progress import Bar, clock
from tacit.learn.run import Record, Run, Stage, Trainer
from tacit.learn.thresholds import ThresholdSearch
from tacit.network import Network
from tacit.tac import TAC

OPTIMIZERS = ("auto", "lm", "lbfgs", "adam")
STEPS = {"lm": 200, "lbfgs": 500, "adam": 2000}
RESTARTS = {"lm": 16, "lbfgs": 4, "adam": 1}
ROUND = {"lm": 50, "lbfgs": 100, "adam": 100}  # the most steps between two looks at the losses
LM_WEIGHTS, LM_ENTRIES = 600, 4_000_000  # what Levenberg-Marquardt is the best choice for: its Jacobian is dense
LARGE = 20_000  # numbers of a table that Adam is the best choice for: L-BFGS hardly follows their tiny gradients
RATE, LARGE_RATE = 0.05, 0.2
FULL_BATCH_ROWS = 20_000
CHECKPOINT_EVERY = 1.0  # seconds
SHORT = 4  # tests one below the other that are trained at once; longer chains grow, twice as long each time
COPIES = 0.75  # the share of a link's row that copies the parent, where it starts as a loose copy
GROWN = 4  # short chains that go on into longer ones
SEARCHES, SWEEPS = 2, 4  # rounds with hard tests before the worse half is dropped, and what each consists of
KEPT = 8  # restarts that are hardened: the best with sigmoids is seldom the best with tests


@dataclass(frozen=True)
class Fit:
    """What training came to.

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


class Training:
    """What is to be learned from which rows, and the objectives of every stage of it."""

    def __init__(
        self,
        tac: TAC,
        rows: Labelled,
        loss: Loss,
        gamma: float | str | None = None,
        prior: float | tuple[Network, float] = 0.0,
    ) -> None:
        self.tac, self.rows, self.loss = tac, rows, check_loss(loss)
        self.prior, self.centre = arguments.prior(prior)
        self.held_out: Labelled | None = None
        learn_slopes = isinstance(gamma, str) and gamma == "learn"
        slope = None if learn_slopes else check_gamma(gamma)  # type: ignore[arg-type]
        self.network = tac.network if slope is None else tac.network.with_gamma(slope)
        self.parameters = Parameters(self.network, tac.program.nodes, slopes=learn_slopes)
        if not self.parameters.count:
            raise TacitError(
                "there is nothing to learn: every number that the query needs is known; leave a CPT out, set some "
                "entries to NaN, or give it with learn=True"
            )
        rows.require_possible(self._start(), "row")
        if isinstance(rows, InMemory):
            self.rows = rows.counted()

    def hold_out(self, share: Any, seed: int) -> None:
        """Set aside a share of the rows, to measure how well what is learned carries over."""
        share = arguments.share("validation", share, "a share of the rows, or other rows (X, y)")
        self.rows, self.held_out = self.rows.split(share, seed)

    def validate_on(self, rows: Labelled) -> None:
        """Take other rows for that."""
        rows.require_possible(self._start(), "validation row")
        self.held_out = rows

    def objectives(self, stage: Stage) -> tuple[Objective, Objective | None]:
        """The objective of the training rows and that of the rows held out, with the slopes of a stage."""
        parameters = self.parameters_of(stage)
        net = parameters.network
        if stage.slope != "own":
            net = net.with_gamma(None)
            parameters = parameters.without_slopes()
        prior = parameters.pseudo_counts(self.prior, self.centre) if self.prior else None
        tac = self._filled(parameters.fill(parameters.start(np.random.default_rng(0)), net), "float64")
        objective = self.rows.objective(parameters, tac, self.loss, prior)
        return objective, None if self.held_out is None else self.held_out.objective(parameters, tac, self.loss)

    def parameters_of(self, stage: Stage) -> Parameters:
        """What is learned in a stage: all that is left out, but for links that are exact copies still."""
        if stage.depth is None:
            return self.parameters
        nodes = self.tac.program.nodes
        slopes = bool(self.parameters.learned_slopes)
        return Parameters(shortened(self.network, nodes, stage.depth), nodes, slopes)

    @property
    def depths(self) -> list[int]:
        """How deep chains of tests are at first, and as they grow; empty where none is deep."""
        found, depth = [], SHORT
        while deeper(self.network, self.tac.program.nodes, depth):
            found.append(depth)
            depth *= 2
        return found

    def _start(self) -> TAC:
        """The query with numbers to start from: engines rely on their exact 0s and 1s, which stay."""
        start = self.parameters.start(np.random.default_rng(0))
        return self._filled(self.parameters.fill(start, self.network), "float64")

    def _filled(self, network: Network, dtype: str) -> TAC:
        """The compiled query with other numbers; what is large is learned on a GPU, where there is one."""
        engine = for_learning(self.tac.choice, self.tac.program, self.rows.here)
        return self.tac.with_network(network, dtype, engine)

    @property
    def rate(self) -> float:
        """The learning rate that suits the training."""
        return LARGE_RATE if self.parameters.largest >= LARGE else RATE

    def choose(self, optimizer: str) -> str:
        """The optimizer asked for, or the one that suits the training."""
        if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
            raise TacitError(f"optimizer is {optimizer!r}, expected one of {', '.join(map(repr, OPTIMIZERS))}")
        offered, groups = self.rows.optimizers, self.rows.groups
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
            few = self.rows.rows <= FULL_BATCH_ROWS and self.parameters.largest < LARGE
            return "lbfgs" if few or "adam" not in offered else "adam"
        return optimizer

    def _not_least_squares(self) -> str:
        if self.loss != "mse":
            return f"the loss is {self.loss!r}"
        if self.prior or self.parameters.learned_slopes:
            return "there is a prior" if self.prior else "slopes are learned"
        engine = self._start().engine()
        if reason := engine.lacks_jacobian():
            return reason
        return "" if engine.jacobian_size * self.rows.rows <= self.rows.jacobian else "its Jacobian would be too large"

    def key(self, *settings: Any) -> str:
        """What tells this training from others."""
        texts = (
            self.network.to_dict(),
            self.tac.query,
            self.tac.evidence,
            self.tac.do,
            identity(self.loss, self.rows.groups),
            self.prior if self.centre is None else (self.prior, self.centre.to_dict()),
            sorted(self.parameters.learned_slopes),
            [rows.digest() for rows in (self.rows, self.held_out) if rows is not None],
            settings,
        )
        return fingerprint([repr(t) for t in texts], [])

    def result(self, run: Run, optimizer: str, stages: Sequence[Stage], seconds: float, interrupted: bool) -> Fit:
        """The network with the best numbers, and what they cost."""
        if run.best is None:
            raise TacitError("the loss is not a number from any of the starts; some rows may have probability 0")
        last = stages[run.best_stage]
        network = self.parameters_of(stages[min(run.stage, len(stages) - 1)]).fill(run.best)
        if last.slope == "hard":
            network = network.with_gamma(None)
        loss = self._loss(network, self.rows)
        hard = network.with_gamma(None)
        return Fit(
            network=network,
            tac=self.tac.with_network(network),  # on the engine that was asked for, which need not be that of learning
            loss=loss,
            hard_loss=loss if hard == network else self._loss(hard, self.rows),
            validation_loss=None if self.held_out is None else self._loss(network, self.held_out),
            history=run.history,
            optimizer=optimizer,
            seconds=seconds,
            interrupted=interrupted,
        )

    def _loss(self, network: Network, rows: Labelled) -> float:
        return rows.objective(self.parameters, self._filled(network, "float64"), self.loss).loss_of_rows()


@dataclass(frozen=True)
class Levels:
    """Where restarts start, and where they go on as chains grow.

    Short chains start with random numbers. Those that cannot grow start so, or with links as loose copies of their
    parent, in turns. Of chains that have grown, half go on from the best of the shorter ones, with new links as loose
    copies, and half start anew with all links as loose copies: the best long chain does not always come from the best
    short one.
    """

    training: Training
    seed: int

    def first(self, stage: Stage, restarts: int) -> list[State]:
        """Where the restarts start."""
        parameters = self.training.parameters_of(stage)
        copies = (COPIES, 0.0) if self._is_deep(parameters) else (0.0, 0.0)
        return [State(parameters.start(self._rng(r), copies[r % 2])) for r in range(restarts)]

    def grow(self, run: Run, before: Stage, after: Stage) -> tuple[list[State], Floats | None]:
        """The restarts in longer chains, and the best of the shorter ones, whose new links are exact copies."""
        small, large = self.training.parameters_of(before), self.training.parameters_of(after)
        best = run.states[run.alive[0]].weights if run.best is None else run.best
        others = sorted(run.states, key=lambda state: (math.isnan(state.loss), state.loss))[1:GROWN]
        kept = [small.numbers(weights) for weights in (best, *(state.weights for state in others))]
        states = []
        for r in range(len(run.states)):
            start = large.start(self._rng(r, run.stage), COPIES)
            states.append(State(start if r % 2 else large.taking(small, kept[r // 2 % len(kept)], start)))
        if run.best is None:
            return states, None
        return states, large.taking(small, kept[0], large.start(self._rng(0), copies=1.0))

    def _is_deep(self, parameters: Parameters) -> bool:
        """Whether there is a long chain of links that could not grow: tied ones, or those with numbers of their own."""
        learned = {place.key[0] for place in parameters.places}
        depth = depths(parameters.network, self.training.tac.program.nodes)
        return any(own > SHORT for node, own in depth.items() if node in learned)

    def _rng(self, *which: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *which))


@dataclass(frozen=True)
class How:
    """The settings of a training, checked. `steps`, `restarts` and `rate` may be left to the training."""

    optimizer: str
    steps: int | None
    restarts: int | None
    seed: int
    progress: bool
    harden: bool
    rate: float | None
    batch: int
    clip: float | None
    patience: int
    callbacks: Sequence[Callable[[Run], Any]]
    path: Path | None
    started: float

    @staticmethod
    def checked(
        optimizer: Any,
        steps: Any,
        restarts: Any,
        seed: Any,
        progress: Any,
        harden: Any = False,
        rate: Any = None,
        batch: Any = 1024,
        clip: Any = 1.0,
        patience: Any = 5,
        callbacks: Any = (),
        checkpoint: Any = None,
    ) -> How:
        """The arguments of `fit`; an error where one is wrong."""
        return How(
            optimizer=optimizer,
            steps=arguments.whole_or_none("steps", steps),
            restarts=arguments.whole_or_none("restarts", restarts),
            seed=arguments.seed(seed),
            progress=arguments.flag("progress", progress),
            harden=arguments.flag("harden", harden),
            rate=None if rate is None else arguments.positive("rate", rate, "a learning rate"),
            batch=arguments.whole("batch", batch),
            clip=None if clip is None else arguments.positive("clip", clip, "None, or the norm of a gradient"),
            patience=arguments.whole("patience", patience),
            callbacks=arguments.functions("callbacks", callbacks),
            path=arguments.file_path("checkpoint", checkpoint),
            started=time.monotonic(),
        )


def train(training: Training, how: How) -> Fit:
    """Train to the end."""
    if how.harden and not training.rows.here:
        raise TacitError("harden=True needs all rows in one place, where thresholds are searched for among them")
    chosen = training.choose(how.optimizer)
    steps = how.steps or STEPS[chosen]
    restarts = how.restarts or (RESTARTS[chosen] if training.parameters.random else 1)
    pace = Pace(training.rate if how.rate is None else how.rate, how.batch, how.clip, how.seed)
    stages = _growing(training.depths, _stages(chosen, pace, steps, restarts, how.harden))
    levels = Levels(training, how.seed)
    trainer = Trainer(stages, training.objectives, how.patience if training.held_out is not None else 0, levels.grow)
    run = Run(levels.first(stages[0], restarts))
    store = None
    if how.path is not None:
        store = Store(how.path, training.key(stages, steps, restarts, how.seed, how.patience))
        sizes = [training.parameters_of(stage).count for stage in stages]
        run = read_run(store.path, store.key, run, stages, sizes) or run
    interrupted = _train(trainer, run, how.progress, how.callbacks, store)
    return training.result(run, chosen, stages, time.monotonic() - how.started, interrupted)


def _train(
    trainer: Trainer,
    run: Run,
    progress: bool,
    callbacks: Sequence[Callable[[Run], Any]],
    store: Store | None,
) -> bool:
    """Train to the end; True if the user stopped it before."""
    bar = Bar(trainer.rounds, progress, before=(trainer.done(run), run.steps))
    written = time.monotonic()

    def after_round(run: Run) -> bool:
        nonlocal written
        bar.show(trainer.done(run), run.steps, f"loss {min(run.best_loss, run.history[-1].loss):.3g}")
        stop = True in [bool(callback(run)) for callback in callbacks]
        if store is not None and (stop or run.finished or time.monotonic() - written >= CHECKPOINT_EVERY):
            write_run(store.path, run, store.key)
            written = time.monotonic()
        return stop

    try:
        trainer.train(run, after_round)
    except KeyboardInterrupt:
        if run.best is None:
            raise
        warnings.warn("training was interrupted; the result is the best so far", stacklevel=3)
        return True
    finally:
        bar.end(f"loss {run.best_loss:.3g}")
    return False


@dataclass(frozen=True)
class Store:
    """Where a run is stored, and what tells its training from others."""

    path: Path
    key: str


@dataclass(frozen=True)
class Pace:
    """How optimizers with random steps go: those of Adam, and the search for thresholds."""

    rate: float
    batch: int
    clip: float | None
    seed: int


def _optimizer(name: str, pace: Pace, steps: int) -> Optimizer:
    """An optimizer for so many steps."""
    if name == "lm":
        return LevenbergMarquardt()
    if name == "lbfgs":
        return LBFGS()
    return Adam(pace.rate, pace.batch, steps, pace.clip, pace.seed)


def _growing(depths: Sequence[int], stages: list[Stage]) -> list[Stage]:
    """Stages for shorter chains before those for all of them, each like the first of these."""
    return [*(replace(stages[0], depth=depth) for depth in depths), *stages]


def _stages(name: str, pace: Pace, steps: int, restarts: int, harden: bool) -> list[Stage]:
    """First each node's own slope; to harden, hard tests at last."""
    longest = ROUND[name]
    halvings = min(max(0, math.ceil(math.log2(restarts / (KEPT if harden else 1)))), steps - 1)
    rounds = (halvings + 1) * math.ceil(steps / (halvings + 1) / longest)
    stages = [Stage("own", rounds, max(1, steps // rounds), _optimizer(name, pace, steps), halvings)]
    if not harden:
        return stages
    share = math.ceil(steps / 4)
    search = ThresholdSearch(_optimizer(name, pace, math.ceil(share / SWEEPS)), pace.seed, sweeps=SWEEPS)
    more = math.ceil(math.log2(math.ceil(restarts / 2**halvings)))
    return [*stages, Stage("hard", SEARCHES * (more + 1), share, search, more)]
