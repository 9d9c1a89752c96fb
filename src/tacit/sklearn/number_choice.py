"""The choice of networks for a table of numbers, by how they predict rows that are held out in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tacit.base.floats import Floats
from tacit.sklearn.gaussian_leaves import GaussianRows, Scaling, Shape, logs_of_all
from tacit.sklearn.model_selection import FOLDS, LabelledTable, folds_of, keys_of
from tacit.sklearn.pool import LEAST, Member, best_power, best_weights, calibrated, log_loss

Learner = Callable[[LabelledTable], Member]


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
        self.rows = rows.take(np.flatnonzero(rows.weights))
        shares = shares_of(self.rows, seed)
        self.folds = [fold for fold in (self._fold(out) for out in shares) if fold] or [(self.rows, self.rows)]
        self.targets = np.concatenate([out.targets for _, out in self.folds])
        self.weights = np.concatenate([out.weights for _, out in self.folds])

    def _fold(self, out: Floats) -> tuple[LabelledTable, LabelledTable] | None:
        """The rows to learn from and those held out; none, where the former are of one class."""
        kept, others = ((replace(self.rows, weights=w).take(np.flatnonzero(w))) for w in (self.rows.weights - out, out))
        return (kept, others) if (kept.targets.sum(axis=0) > 0).sum() > 1 and len(others.weights) else None

    def gaussian(self) -> dict[tuple[str, Shape], tuple[Floats, Callable[[], Member]]]:
        """What all networks with Gaussian leaves say of the rows held out, and how to make them from all rows."""
        found: dict[tuple[str, Shape], list[Floats]] = {}
        for kept, others in self.folds:
            for family, shape, logs in logs_of_all(kept, others.table):
                found.setdefault((family, shape), []).append(logs)
        return {key: (np.concatenate(logs), partial(self._made, key[1])) for key, logs in found.items()}

    def _made(self, shape: Shape) -> Member:
        scaling = Scaling.of(self.rows, shape.scores)
        return Member(GaussianRows(self.rows, scaling).query(shape), scaling)

    def learned(self, learner: Learner) -> tuple[Floats, Callable[[], Member]]:
        """What a learner says of the rows held out, and how it learns from all rows."""
        said = [learner(kept).posterior(others.table) for kept, others in self.folds]
        return np.log(np.maximum(np.concatenate(said), LEAST)), partial(learner, self.rows)

    def tried(self, logs: Floats, learn: Callable[[], Member], calibrate: bool = True) -> Tried:
        power = best_power(logs, self.targets, self.weights) if calibrate else 1.0
        return Tried(logs, learn, power, log_loss(calibrated(logs, power), self.targets, self.weights))


def shares_of(rows: LabelledTable, seed: int) -> list[Floats]:
    """The part of the weight of each row that each fold holds out.

    Equal rows are dealt out to the folds, as they come among the rows to be predicted, too. So is a row of weight 2,
    which counts as two, unless weights are no multiples of the least.
    """
    folds = folds_of(rows, keys_of(rows.table, seed))
    counts = rows.weights / rows.weights.min()
    whole = counts if np.allclose(counts, np.round(counts)) else np.ones(len(counts))
    keys = np.stack([keys_of(rows.table, seed), rows.targets.argmax(axis=1)])
    group = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    dealt = np.minimum(np.floor(np.bincount(group, whole)[group] + 0.5), FOLDS)
    first = np.argmax([*folds, np.ones(len(counts), dtype=bool)], axis=0)
    turns = [(fold - first) % FOLDS for fold in range(len(folds))]
    return [np.where(turn < dealt, rows.weights / dealt, 0.0) for turn in turns]
