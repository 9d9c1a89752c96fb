"""The choice of networks for a table of numbers, by how they predict rows that are held out in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.sklearn.gaussian_leaves import GaussianRows, Scaling, Shape, logs_of_all
from tacit.sklearn.model_selection import LabelledTable, folds_of, keys_of
from tacit.sklearn.pool import Member, best_power, best_weights, calibrated, log_loss

LEAST_LOG = -30.0  # of a probability
Learner = Callable[[NDArray[np.intp]], Member]  # from the places of rows to what is learned from them


@dataclass(frozen=True, eq=False)
class Tried:
    """What one candidate said of the rows held out, as logarithms (rows, classes); `learn` learns it from all rows."""

    logs: Floats
    learn: Callable[[], Member]
    power: float
    loss: float


def choose_gaussian(rows: LabelledTable, seed: int) -> tuple[Member, ...]:
    """The network with Gaussian leaves with the least loss of rows held out."""
    held_out = HeldOut(rows, seed)
    tried = [held_out.tried(*one, calibrate=False) for one in held_out.gaussian().values()]
    return (min(tried, key=lambda one: one.loss).learn(),)


def choose_together(rows: LabelledTable, seed: int, learners: Sequence[Learner]) -> tuple[Member, ...]:
    """Other candidates, and the best network of each family with Gaussian leaves, with weights and powers."""
    held_out = HeldOut(rows, seed)
    tried = [held_out.tried(*held_out.learned(one)) for one in learners]
    best: dict[str, Tried] = {}
    for (family, _), one in held_out.gaussian().items():
        now = held_out.tried(*one)
        if family not in best or now.loss < best[family].loss:
            best[family] = now
    tried += best.values()
    posteriors = [calibrated(one.logs, one.power) for one in tried]
    weights = best_weights(posteriors, held_out.targets, held_out.weights)
    chosen = [(one.learn(), one.power, weight) for one, weight in zip(tried, weights.tolist(), strict=True) if weight]
    return tuple(Member(member.tac, member.encoder, weight, power) for member, power, weight in chosen)


class HeldOut:
    """Rows of which some are held out in turn, to see how candidates predict them."""

    def __init__(self, rows: LabelledTable, seed: int) -> None:
        self.all = rows
        self.rows = rows.take(np.flatnonzero(rows.weights))
        classes = self.rows.targets.argmax(axis=1)
        folds = folds_of(self.rows, keys_of(self.rows.table, seed))
        self.folds = [out for out in folds if len(np.unique(classes[~out])) > 1] or [np.ones(len(classes), dtype=bool)]
        places = np.concatenate([np.flatnonzero(out) for out in self.folds])
        self.targets, self.weights = self.rows.targets[places], self.rows.weights[places]

    def _kept(self, out: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The places of the rows to learn from: all, where none is left."""
        return np.flatnonzero(out if out.all() else ~out)

    def gaussian(self) -> dict[tuple[str, Shape], tuple[Floats, Callable[[], Member]]]:
        """What all networks with Gaussian leaves say of the rows held out, and how to make them from all rows."""
        found: dict[tuple[str, Shape], list[Floats]] = {}
        for out in self.folds:
            others = self.rows.table.take(np.flatnonzero(out))
            for family, shape, logs in logs_of_all(self.rows.take(self._kept(out)), others):
                found.setdefault((family, shape), []).append(logs)
        return {key: (np.concatenate(logs), partial(self._made, key[1])) for key, logs in found.items()}

    def _made(self, shape: Shape) -> Member:
        scaling = Scaling.of(self.rows, shape.scores)
        return Member(GaussianRows(self.rows, scaling).query(shape), scaling)

    def learned(self, learner: Learner) -> tuple[Floats, Callable[[], Member]]:
        """What a learner says of the rows held out, and how it learns from all rows."""
        places, found = np.flatnonzero(self.all.weights), []
        for out in self.folds:
            table = self.rows.table.take(np.flatnonzero(out))
            posterior = learner(places[self._kept(out)]).posterior(table)
            found.append(np.log(np.maximum(posterior, np.exp(LEAST_LOG))))
        return np.concatenate(found), lambda: learner(places)

    def tried(self, logs: Floats, learn: Callable[[], Member], calibrate: bool = True) -> Tried:
        power = best_power(logs, self.targets, self.weights) if calibrate else 1.0
        return Tried(logs, learn, power, log_loss(calibrated(logs, power), self.targets, self.weights))
