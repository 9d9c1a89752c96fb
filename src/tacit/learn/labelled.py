"""Labelled rows as training sees them: in memory, or scattered over the parts of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from tacit.engines.engine import Sweep
from tacit.errors import EvidenceError, TacitError
from tacit.evidence import blocks
from tacit.floats import Floats
from tacit.learn.checkpoint import fingerprint
from tacit.learn.data import Data
from tacit.learn.losses import Loss
from tacit.learn.objective import Objective
from tacit.learn.parameters import Parameters
from tacit.tac import TAC

MAX_JACOBIAN = 50_000_000  # derivatives of some rows by all numbers, known ones included: 400 MB


class Labelled(ABC):
    """Rows to learn from.

    `groups` is how many numbers a target has, `here` how many of the rows are in this process, and `optimizers` are
    those that can be used. `jacobian` is how many derivatives there may be.
    """

    rows: int
    groups: int
    here: int
    optimizers: Sequence[str]
    jacobian: float

    @abstractmethod
    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Objective:
        """What is minimised."""

    @abstractmethod
    def require_possible(self, tac: TAC, what: str) -> None:
        """An error, if some row has probability 0."""

    @abstractmethod
    def split(self, share: float, seed: int) -> tuple[Labelled, Labelled]:
        """Most rows, and the share of them that is held out."""

    @abstractmethod
    def digest(self) -> str:
        """What tells the rows from others."""


class InMemory(Labelled):
    """All rows in this process."""

    optimizers = ("lm", "lbfgs", "adam")
    jacobian = MAX_JACOBIAN

    def __init__(self, data: Data) -> None:
        self.data = data
        self.rows = self.here = data.rows
        self.groups = len(data.targets)

    def objective(self, parameters: Parameters, tac: TAC, loss: Loss, prior: Floats | None = None) -> Objective:
        """What is minimised."""
        return Objective(parameters, tac.engine().twin(), self.data, loss, prior)

    def require_possible(self, tac: TAC, what: str) -> None:
        """An error that names the first row that has probability 0."""
        row = first_impossible(self.data, tac)
        if row is not None:
            raise impossible(what, row)

    def counted(self) -> InMemory:
        """The rows that weigh something."""
        return InMemory(self.data.take(np.flatnonzero(self.data.weights)))

    def split(self, share: float, seed: int) -> tuple[Labelled, Labelled]:
        """Most rows, and the share of them that is held out, drawn at random."""
        count = max(1, round(share * self.rows))
        if count >= self.rows:
            raise TacitError(f"validation={share} leaves no row of {self.rows} to learn from")
        order = np.random.default_rng((seed, self.rows)).permutation(self.rows)
        kept, held_out = np.sort(order[count:]), np.sort(order[:count])
        return InMemory(self.data.take(kept)), InMemory(self.data.take(held_out))

    def digest(self) -> str:
        """What tells the rows from others."""
        return fingerprint(sorted(self.data.columns), self.data.arrays())


def first_impossible(data: Data, tac: TAC) -> int | None:
    """The first row that has probability 0."""
    engine = tac.engine().runner(data.rows, Sweep.FORWARD)
    for rows, block in blocks(data.columns, data.rows, engine.chunk):
        total = engine.run(block.columns, block.rows).joint.sum(axis=0)
        for row in np.flatnonzero(total <= 0)[:1].tolist():
            return int(rows.start + row)
    return None


def impossible(what: str, row: int) -> EvidenceError:
    """The error about such a row, which may be called otherwise: "validation row"."""
    problem = "the evidence has probability 0; known 0s rule it out"
    return EvidenceError(problem, row=row) if what == "row" else EvidenceError(problem, subject=f"{what} {row}")
