"""`tacit.fit`: learn the numbers of a network from labelled rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from tacit.errors import TacitError
from tacit.learn.data import read_data
from tacit.learn.labelled import InMemory
from tacit.learn.losses import Loss
from tacit.learn.run import Run
from tacit.learn.training import Fit, How, Training, train
from tacit.network import Network
from tacit.tac import TAC


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
    >>> found = fit(tacit.compile(net, "Q", ["E"]), {"E": x}, 0.5 + 0.4 * np.sin(3 * x))
    >>> found.loss < 1e-4
    True
    """
    if not isinstance(tac, TAC):
        raise TacitError(
            f"tac is a {type(tac).__name__}, expected a compiled query: tacit.compile(net, query, evidence)"
        )
    how = How.checked(
        optimizer, steps, restarts, seed, progress, harden, rate, batch, clip, patience, callbacks, checkpoint
    )
    training = Training(tac, InMemory(read_data(tac, X, y, weights, label)), loss, gamma, prior)
    if isinstance(validation, tuple) and len(validation) == 2:
        training.validate_on(InMemory(read_data(tac, *validation, None)))
    elif validation is not None:
        training.hold_out(validation, how.seed)
    return train(training, how)
