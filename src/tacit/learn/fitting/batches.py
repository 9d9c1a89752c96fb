"""Mini-batches: every epoch takes all rows once, and the mean of its batches' losses is the loss of all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class MiniBatch:
    """Some rows, and the share of each in the loss of the batch."""

    rows: Rows
    shares: Floats


class MiniBatches:
    """The rows of a training in batches of at most `size`, in another order every epoch.

    `weights` are those of all rows, and sum to 1. The shares of a batch are the weights of its rows times the number
    of batches, so that their mean over an epoch is exactly what all rows come to. A row that weighs more than an
    average batch would come as a shock once in every epoch. It is in every batch instead, with its plain weight;
    so are at most `size` such rows. Where batches differ in size, another one is first in every epoch, so that the
    shares of any step are the weights of all rows on average.
    """

    def __init__(self, weights: Floats, size: int, seed: int) -> None:
        self.weights, self.seed = weights, seed
        self.count = -(-len(weights) // size)
        self._epoch, self._first = -1, 0
        if self.count == 1:  # a step sees all rows
            return
        heavy = np.flatnonzero(weights * self.count > 1)
        self._heavy = heavy[np.argsort(-weights[heavy], kind="stable")[:size]]
        self._light = np.delete(np.arange(len(weights)), self._heavy)
        self._order = self._light

    def of_step(self, step: int) -> MiniBatch | None:
        """The rows of a step, which depend on the seed and the number of the step only; None for all rows."""
        if self.count == 1:
            return None
        epoch, place = divmod(step, self.count)
        if epoch != self._epoch:
            rng = np.random.default_rng((self.seed, epoch))
            self._epoch, self._order, self._first = epoch, rng.permutation(self._light), int(rng.integers(self.count))
        place = (place + self._first) % self.count
        first, stop = (len(self._order) * i // self.count for i in (place, place + 1))
        light = self._order[first:stop]
        shares = np.concatenate([self.weights[self._heavy], self.weights[light] * self.count])
        return MiniBatch(np.concatenate([self._heavy, light]), shares)
