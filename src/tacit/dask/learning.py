"""Learning on Dask: `estimate` and `fit` from the rows of a DataFrame, where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tacit.clusters.learning import Roles, estimated, fitted
from tacit.dask.parts import table
from tacit.learn.estimation import STEPS, Estimate, Settings
from tacit.learn.losses import Loss
from tacit.learn.run import Run
from tacit.learn.training import Fit, How
from tacit.network import Network
from tacit.tac import TAC


def estimate(
    net: Network,
    rows: Any,
    prior: float | tuple[Network, float] = 0.0,
    weights: str | None = None,
    restarts: int = 1,
    seed: int = 0,
    tolerance: float = 1e-8,
    steps: int = STEPS,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Estimate:
    """Estimate the tables of a network from the rows of a Dask DataFrame: by counting, and by EM if it has holes.

    Each partition is read once, and rows that are not complete stay with the workers, a byte for each value. Counts
    travel, not rows. The result is that of `tacit.estimate`, whose parameters these are; sums are taken in another
    order, so last digits may differ. All restarts share each pass over the rows.

    Parameters
    ----------
    rows
        A DataFrame. Columns named like variables are read as `tacit.estimate` reads a frame; columns `A.lo` and `A.hi`
        hold one likelihood for each state of `A`. All other columns are left alone.
    weights
        The name of a column: how many rows each row counts as.
    checkpoint
        A file on this machine, not on the workers.
    likelihoods
        Variables of two states whose column holds likelihoods of the first state. Needed where a partition may happen
        to hold only 0s and 1s, which could be codes.

    >>> import dask.dataframe, pandas, tacit
    >>> net = tacit.Network()
    >>> net.add("rain", states=["yes", "no"])
    >>> net.add("wet", ["rain"], states=["yes", "no"])
    >>> columns = {"rain": ["yes", "yes", "no", "no"], "wet": ["yes", "yes", "yes", "no"]}
    >>> frame = pandas.DataFrame(columns)
    >>> found = estimate(net, dask.dataframe.from_pandas(frame, npartitions=2))
    >>> found.network.table("wet").tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    settings = Settings.checked(net, prior, restarts, seed, tolerance, steps, progress, checkpoint)
    return estimated(table(rows), settings, weights, likelihoods)


def fit(
    tac: TAC,
    rows: Any,
    label: str | None = None,
    loss: Loss = "mse",
    optimizer: str = "auto",
    steps: int | None = None,
    restarts: int | None = None,
    seed: int = 0,
    validation: Any = None,
    progress: bool = True,
    *,
    weights: str | None = None,
    gamma: float | str | None = None,
    harden: bool = False,
    prior: float | tuple[Network, float] = 0.0,
    patience: int = 5,
    callbacks: Sequence[Callable[[Run], Any]] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Fit:
    """Learn the numbers that a network leaves out, from the labelled rows of a Dask DataFrame.

    Each partition is read once, and stays with the workers. Every step sends them some numbers, and gets back the loss
    and its derivatives, summed. The result is that of `tacit.fit`, whose parameters these are; sums are taken in
    another order, so last digits may differ. Restarts run side by side.

    Not offered, since they need all rows in one place: `optimizer="adam"` and `harden=True`.

    Parameters
    ----------
    rows, label
        A DataFrame, and its column of labels; None if that is named like the query. Columns named like variables in
        `tac.evidence` are evidence, and all others are left alone.
    validation
        Another DataFrame with the same columns; or the share of the rows to hold out, drawn partition by partition:
        other rows than `tacit.fit` would draw.
    weights
        The name of a column: how much each row counts.
    checkpoint
        A file on this machine, not on the workers.
    likelihoods
        Variables of two states whose column holds likelihoods of the first state; and the label, if it holds
        probabilities of the first state. Needed where a partition may happen to hold only 0s and 1s.

    >>> import dask.dataframe, numpy, pandas, tacit
    >>> net = tacit.Network()
    >>> net.add("E")
    >>> net.add("Q", ["E"])
    >>> x = numpy.linspace(0.01, 0.99, 50)
    >>> frame = pandas.DataFrame({"E": x, "Q": 0.2 + 0.5 * x})
    >>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
    >>> found = fit(tacit.compile(net, "Q", ["E"]), rows, progress=False)
    >>> found.loss < 1e-6
    True
    """
    how = How.checked(
        optimizer,
        steps,
        restarts,
        seed,
        progress,
        harden,
        patience=patience,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    others = table(validation) if hasattr(validation, "columns") else validation
    return fitted(table(rows), tac, Roles(label, weights, likelihoods), how, loss, gamma, prior, others)
