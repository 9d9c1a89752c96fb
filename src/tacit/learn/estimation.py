"""`tacit.estimate`: the tables of a network from rows, by counting, and by EM where rows have holes."""

from __future__ import annotations

import hashlib
import math
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import EvidenceError, TacitError
from tacit.learn import arguments
from tacit.learn.checkpoint import fingerprint
from tacit.learn.counting import Counter, Kept
from tacit.learn.em import EM, Search, read_search, write_search
from tacit.learn.estimable import Estimable
from tacit.learn.progress import Line
from tacit.learn.sources import Piece, is_stream, pieces
from tacit.learn.spool import Spool
from tacit.network import Network
from tacit.words import counted, plural

STEPS = 1000
CHECKPOINT_EVERY = 1.0  # seconds


@dataclass(frozen=True, eq=False)
class Estimate:
    """A network with estimated tables. Made by `tacit.estimate`.

    `log_likelihood` is that of all rows, without the prior, and `history` has it before each iteration. `rows` is the
    number of rows, or the sum of their weights, and `parameters` how many numbers were free.
    """

    network: Network
    log_likelihood: float
    history: list[float]
    rows: float
    parameters: int
    converged: bool
    seconds: float
    interrupted: bool = False

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 k - 2 log-likelihood; smaller is better."""
        return 2 * self.parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """The Bayesian criterion, k ln(rows) - 2 log-likelihood; smaller is better."""
        return self.parameters * math.log(self.rows) - 2 * self.log_likelihood

    def __repr__(self) -> str:
        end = "" if self.converged else ", not converged"
        return (
            f"Estimate(log-likelihood {self.log_likelihood:.6g} of {counted(self.rows)}, "
            f"{plural(self.parameters, 'free number')}, {plural(len(self.history), 'iteration')}{end})"
        )


def estimate(
    net: Network,
    rows: Any,
    prior: float | tuple[Network, float] = 0.0,
    weights: ArrayLike | str | None = None,
    restarts: int = 1,
    seed: int = 0,
    tolerance: float = 1e-8,
    steps: int = STEPS,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Estimate the tables of a network from rows: by counting, and by EM where values are missing or soft.

    What is estimated are the tables that the network leaves out, entries that are NaN, and tables and noisy-ors with
    `learn=True`, whose numbers are the start of EM; `net.learnable()` is a copy in which all of them are. Known
    numbers, exact 0s and 1s, and thresholds stay, and tied tables share their counts. A row counts for that table of a
    testing node which its evidence selects.

    Parameters
    ----------
    net
        The network.
    rows
        Evidence, in any form that `net.posterior` takes; the path of a `.csv` or `.parquet` file, which may be larger
        than the memory; or batches of evidence, from a list, a generator or any other iterable. They are read once.
        Rows that are not complete are kept for EM: in memory, or in a temporary file where they are many.
    prior
        Pseudo-counts for every free entry, or `(network, strength)`: each row of the tables of that network counts as
        so many rows.
    weights
        How many rows each row counts as: numbers, or the name of a column that holds them.
    restarts, seed
        How many random starts for what has no start of its own, of which the best is kept; the seed.
    tolerance, steps
        EM ends when the log-likelihood (with the prior) grows by less than this share of itself, or after so many
        iterations. With `tolerance=0`, there are as many as `steps` says.
    progress
        Whether to show how far it is, if standard error is a terminal.
    checkpoint
        A file to write while EM runs; if it is there already, EM goes on from it, after the rows were read again.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("rain", states=["yes", "no"])
    >>> net.add("wet", ["rain"], states=["yes", "no"])
    >>> rows = {"rain": ["yes", "yes", "no", "no", "no"], "wet": ["yes", "yes", "yes", "no", "no"]}
    >>> found = tacit.estimate(net, rows)
    >>> found.network.table("rain").round(3), found.network.table("wet").round(3).tolist()
    (array([0.4, 0.6]), [[1.0, 0.0], [0.333, 0.667]])
    """
    started = time.monotonic()
    if not isinstance(net, Network):
        raise TacitError(f"net is a {type(net).__name__}, expected a Network; tacit.read(path) reads one from a file")
    strength, centre = arguments.prior(prior)
    estimable = Estimable(net, strength, centre)
    restarts, steps = arguments.whole("restarts", restarts), arguments.whole("steps", steps)
    seed = arguments.seed(seed)
    tolerance = arguments.not_negative("tolerance", tolerance, "a relative change")
    path = arguments.file_path("checkpoint", checkpoint)
    line = Line(arguments.flag("progress", progress))
    place: AbstractContextManager[Kept] = Spool(net) if is_stream(rows) else nullcontext([])
    with place as kept:
        counter = Counter(estimable.filled(estimable.start(np.random.default_rng([seed, 0]))), kept)
        digest = _gather(counter, pieces(net, rows, weights), path is not None, line)
        em = EM(estimable, counter, restarts if estimable.random and counter.holes else 1, seed, tolerance, steps)
        told = [net.to_dict(), strength, None if centre is None else centre.to_dict(), em.settings, digest]
        store = None if path is None else Store(path, fingerprint(told, []))
        search, interrupted = _search(em, store, line)
    return _result(em, search, time.monotonic() - started, interrupted)


def _gather(counter: Counter, rows: Iterator[Piece], wanted: bool, line: Line) -> str:
    """Go through all rows; if it is wanted, a digest of them."""
    digest, number = hashlib.sha256(), 0
    for piece in rows:
        counter.add(piece)
        number += piece.rows
        if wanted:
            digest.update(fingerprint(list(piece.columns), piece.arrays()).encode())
        line.say(f"{number:,} rows  {number / max(line.spent, 1e-9):,.0f} rows/s")
    if not math.isfinite(counter.rows):
        raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
    if not counter.rows:
        raise EvidenceError("all weights are 0; at least one row must count" if number else "there are no rows")
    return digest.hexdigest()


@dataclass(frozen=True)
class Store:
    """Where a search is stored, and what tells it from others."""

    path: Path
    key: str


def _search(em: EM, store: Store | None, line: Line) -> tuple[Search, bool]:
    """Search to the end; True if the user stopped it before."""
    search = em.begin()
    if store is not None:
        search = read_search(store.path, store.key, search) or search
        em.extend(search)
    written = time.monotonic()

    def after(search: Search) -> None:
        nonlocal written
        start = "" if em.restarts == 1 else f"start {min(search.restart + 1, em.restarts)} of {em.restarts}  "
        line.say(f"{start}iteration {len(search.trail.history)}  log-likelihood {search.trail.log_likelihood:.8g}")
        if store is not None and (search.finished or time.monotonic() - written >= CHECKPOINT_EVERY):
            write_search(store.path, store.key, search)
            written = time.monotonic()

    interrupted = False
    try:
        em.run(search, after)
    except KeyboardInterrupt:
        if not search.found.history:
            raise
        warnings.warn("EM was interrupted; the result is the best so far", stacklevel=3)
        interrupted = True
    line.end(f"log-likelihood {search.found.log_likelihood:.8g} after {plural(len(search.found.history), 'iteration')}")
    return search, interrupted


def _result(em: EM, search: Search, seconds: float, interrupted: bool) -> Estimate:
    found = search.found
    return Estimate(
        network=em.estimable.filled(found.numbers),
        log_likelihood=found.log_likelihood,
        history=found.history,
        rows=em.counter.rows,
        parameters=em.estimable.count,
        converged=found.settled,
        seconds=seconds,
        interrupted=interrupted,
    )
