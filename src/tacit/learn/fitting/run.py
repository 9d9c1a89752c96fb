"""Training round by round: restarts side by side, the worse half dropped as it goes, stage by stage.

A `Run` is all that training knows at the end of a round. Nothing else is carried over, so a run that is stored and
read again goes on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from tacit.base.archive import Arrays, require
from tacit.base.floats import Floats
from tacit.base.machine import limited
from tacit.learn.checkpoint import is_number, is_whole, list_of, read, vector, write
from tacit.learn.fitting.objective import Trainable
from tacit.learn.fitting.optimizers import MEMORY_SIZES, Optimizer, State

FORMAT = "tacit-training-2"
SCALARS = ("alive", "stage", "round", "best_stage", "best_loss", "stale", "steps", "finished")  # stored as JSON


@dataclass(frozen=True)
class Stage:
    """Some rounds with the same slopes: each node's own, or none, that is, hard tests."""

    slope: Literal["own", "hard"]
    rounds: int
    steps: int  # of every restart in every round
    optimizer: Optimizer
    halvings: int = 0  # how often the worse half of the restarts is dropped
    depth: int | None = None  # of chains of tests, which are longer in the next stage; None: all there are

    def __repr__(self) -> str:  # a checkpoint holds a digest of this text, so its words must not change
        what = f"slope={self.slope!r}, rounds={self.rounds}, steps={self.steps}"
        depth = "" if self.depth is None else f", depth={self.depth}"
        return f"Stage({what}, optimiser={self.optimizer!r}, halvings={self.halvings}{depth})"


@dataclass(frozen=True)
class Record:
    """One line of a training's history: the losses of a restart after a round."""

    stage: int
    round: int
    restart: int
    step: int
    loss: float
    validation: float | None = None


@dataclass
class Run:
    """The state of training: of every restart, those that are still in, and the best numbers of this stage."""

    states: list[State]
    alive: list[int] = field(default_factory=list)
    stage: int = 0
    round: int = 0
    best: Floats | None = None
    best_stage: int = 0
    best_loss: float = math.inf
    stale: int = 0  # rounds without a better validation loss
    steps: int = 0  # of all restarts together
    finished: bool = False
    history: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.alive = self.alive or list(range(len(self.states)))


@dataclass(frozen=True)
class Trainer:
    """Takes a run through the stages; `objectives` gives those of a stage, for training and for validation.

    After a stage with a `depth`, `grow` gives the restarts in longer chains, and the best numbers so far as numbers of
    these chains.
    """

    stages: Sequence[Stage]
    objectives: Callable[[Stage], tuple[Trainable, Trainable | None]]
    patience: int
    grow: Callable[[Run, Stage, Stage], tuple[list[State], Floats | None]] | None = None

    def done(self, run: Run) -> int:
        """How many rounds are done."""
        return sum(stage.rounds for stage in self.stages[: run.stage]) + run.round

    def train(self, run: Run, after_round: Callable[[Run], bool]) -> None:
        """Go on with a run until it is finished, or until `after_round` says so."""
        while not run.finished:
            number, stage = run.stage, self.stages[run.stage]
            objective, validation = self.objectives(stage)
            if run.round == 0 and run.best is not None and self._grew(run):
                # the loss of the best shorter chain, which a longer one has to beat
                loss = objective.value_and_gradient(run.best)[0] if validation is None else validation.value(run.best)
                run.best_loss = math.inf if math.isnan(loss) else loss
            # restarts run in threads of their own where one evaluation is not worth several
            clones = [objective.clone() for _ in run.alive] if objective.small else [objective]
            while run.stage == number:
                self._round(run, stage, clones, validation)
                over = run.round == stage.rounds or all(run.states[r].done for r in run.alive)
                if over or 0 < self.patience <= run.stale:
                    self._next_stage(run)
                run.finished = run.stage == len(self.stages)
                if after_round(run):
                    return

    def _round(self, run: Run, stage: Stage, clones: list[Trainable], validation: Trainable | None) -> None:
        active = [run.states[r] for r in run.alive if not run.states[r].done]
        before = sum(state.steps for state in active)
        self._advance(active, clones, stage)
        run.steps += sum(state.steps for state in active) - before
        losses = {}
        for r in run.alive:
            state = run.states[r]
            measured = None if validation is None else validation.value(state.weights)
            loss = state.loss if measured is None else measured
            losses[r] = math.inf if math.isnan(loss) else loss
            run.history.append(Record(run.stage, run.round, r, state.steps, state.loss, measured))
        run.round += 1
        leader = min(losses, key=lambda r: losses[r])
        if losses[leader] < run.best_loss:
            run.best, run.best_loss, run.stale = run.states[leader].weights.copy(), losses[leader], 0
            run.best_stage = run.stage
        else:
            run.stale += 1
        if run.round < stage.rounds and run.round % (stage.rounds // (stage.halvings + 1)) == 0:
            run.alive = sorted(run.alive, key=lambda r: losses[r])[: max(1, math.ceil(len(run.alive) / 2))]

    def _advance(self, states: list[State], clones: list[Trainable], stage: Stage) -> None:
        """Advance restarts side by side, if there is an objective for each, or else one after the other."""
        if not clones[0].small:
            for state in states:
                stage.optimizer.advance(clones[0], state, stage.steps)
            return
        # the threads of BLAS are of no use to small matrices, and wait for each other where cores are busy
        with limited(1), ThreadPoolExecutor(clones[0].at_once) as pool:
            list(pool.map(stage.optimizer.advance, clones[: len(states)], states, [stage.steps] * len(states)))

    def _next_stage(self, run: Run) -> None:
        """Start the next stage, in which losses count anew, with the restarts still in or with grown chains."""
        run.stage, run.round = run.stage + 1, 0
        if run.stage == len(self.stages):
            return
        if self._grew(run):
            assert self.grow is not None
            run.states, run.best = self.grow(run, self.stages[run.stage - 1], self.stages[run.stage])
            run.alive, run.best_stage = list(range(len(run.states))), run.stage
        else:
            run.states = [State(state.weights) for state in run.states]
        run.best_loss, run.stale = math.inf, 0

    def _grew(self, run: Run) -> bool:
        """Whether the chains of this stage are longer than those of the stage before."""
        return run.stage > 0 and self.stages[run.stage - 1].depth is not None


def write_run(path: Path, run: Run, key: str) -> None:
    head = {
        "states": [{"loss": s.loss, "steps": s.steps, "done": s.done, "memory": sorted(s.memory)} for s in run.states],
        "run": {name: getattr(run, name) for name in SCALARS},
        "history": [list(asdict(record).values()) for record in run.history],
    }
    arrays: dict[str, NDArray[Any]] = {f"weights{i}": state.weights for i, state in enumerate(run.states)}
    arrays |= {f"{name}{i}": array for i, state in enumerate(run.states) for name, array in state.memory.items()}
    if run.best is not None:
        arrays["best"] = run.best
    write(path, FORMAT, key, head, arrays)


def read_run(path: Path, key: str, fresh: Run, stages: Sequence[Stage], sizes: Sequence[int]) -> Run | None:
    """The stored run of a training, if there is one; `fresh` is its first run, `sizes` the weights of each stage."""
    return read(path, FORMAT, key, lambda head, arrays: _run(head, arrays, fresh, stages, sizes))


def _run(head: dict[str, Any], arrays: Arrays, fresh: Run, stages: Sequence[Stage], sizes: Sequence[int]) -> Run:
    scalars, lines, alive = head["run"], list_of(head["states"]), list_of(head["run"]["alive"])
    require(set(scalars) == set(SCALARS), "names")
    require(len(lines) == len(fresh.states), "number of restarts")
    require(all(is_whole(r, len(lines) - 1) for r in alive) and 0 < len(alive) == len(set(alive)), "restarts")
    require(is_whole(scalars["stage"], len(stages)), "stage")
    size = sizes[min(scalars["stage"], len(stages) - 1)]
    run = Run(
        [_state(line, i, arrays, size) for i, line in enumerate(lines)],
        best=vector(arrays["best"], size) if "best" in arrays else None,
        history=[_record(list_of(line)) for line in list_of(head["history"])],
        **scalars,
    )
    require(type(run.finished) is bool, "end")
    require((run.stage == len(stages)) == run.finished, "stage")
    require(is_whole(run.round, 0 if run.finished else stages[run.stage].rounds - 1), "round")
    require(is_whole(run.best_stage, min(run.stage, len(stages) - 1)), "best stage")
    require(is_number(run.best_loss) and (run.best is not None or run.best_loss == math.inf), "best loss")
    require(is_whole(run.stale) and is_whole(run.steps), "count of steps")
    return run


def _state(line: dict[str, Any], i: int, arrays: Arrays, size: int) -> State:
    weights = vector(arrays[f"weights{i}"], size)
    memory = {name: vector(arrays[f"{name}{i}"], MEMORY_SIZES[name] or size) for name in list_of(line["memory"])}
    require("damping" not in memory or bool((memory["damping"][:2] > 0).all()), "damping")
    require(is_number(line["loss"]) and is_whole(line["steps"]) and type(line["done"]) is bool, "state")
    return State(weights, line["loss"], line["steps"], line["done"], memory)


def _record(line: list[Any]) -> Record:
    record = Record(*line)
    require(all(is_whole(value) for value in line[:4]) and is_number(record.loss), "history")
    require(record.validation is None or is_number(record.validation), "history")
    return record
