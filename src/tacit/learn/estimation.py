"""`tacit.estimate`: the tables of a network from rows, by counting, and by EM where rows have holes."""

from __future__ import annotations

import math
import os
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import EvidenceError, TacitError
from tacit.html_table import curve, facts
from tacit.learn import arguments
from tacit.learn.checkpoint import fingerprint
from tacit.learn.counting import Counter, Kept, Lot, Sorter, Summary
from tacit.learn.em import EM, Search, read_search, write_search
from tacit.learn.estimable import Estimable
from tacit.learn.parts import Here, Parts
from tacit.learn.progress import Line, clock
from tacit.learn.sources import is_stream, pieces
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

    def _repr_html_(self) -> str:
        values = {
            "log-likelihood": self.log_likelihood,
            "from": counted(self.rows),
            "free numbers": self.parameters,
            "AIC": self.aic,
            "BIC": self.bic,
            "iterations": f"{len(self.history):,}{'' if self.converged else ', not converged'}",
            "time": clock(self.seconds) + ", interrupted" * self.interrupted,
        }
        return facts(repr(self), values) + curve(self.history)


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
        Whether to show how far it is, in a terminal or a notebook.
    checkpoint
        A file to write while EM runs; if it exists already, EM resumes from it, after the rows were read again.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("rain", states=["yes", "no"])
    >>> net.add("wet", ["rain"], states=["yes", "no"])
    >>> rain, wet = ["yes", "yes", "no", "no", "no"], ["yes", "yes", "yes", "no", "no"]
    >>> rows = {"rain": rain, "wet": wet}
    >>> found = tacit.estimate(net, rows)
    >>> found.network.table("rain").round(3), found.network.table("wet").round(3).tolist()
    (array([0.4, 0.6]), [[1.0, 0.0], [0.333, 0.667]])
    """
    settings = Settings.checked(net, prior, restarts, seed, tolerance, steps, progress, checkpoint)
    place: AbstractContextManager[Kept] = Spool() if is_stream(rows) else nullcontext([])
    with place as kept:
        lot = settings.sorter.lot(pieces(net, rows, weights), kept, settings.say_rows)
        return settings.estimate(Here(lot))


@dataclass(frozen=True)
class Settings:
    """What to estimate, and how. Rows come later, and may lie in many places."""

    network: Network
    strength: float  # of the prior
    centre: Network | None
    restarts: int
    seed: int
    tolerance: float
    steps: int
    path: Path | None
    line: Line
    started: float

    @staticmethod
    def checked(
        net: Network, prior: Any, restarts: Any, seed: Any, tolerance: Any, steps: Any, progress: Any, checkpoint: Any
    ) -> Settings:
        """The arguments of `estimate`; an error where one is wrong."""
        started = time.monotonic()
        if not isinstance(net, Network):
            raise TacitError(
                f"net is a {type(net).__name__}, expected a Network; tacit.read(path) reads one from a file"
            )
        strength, centre = arguments.prior(prior)
        settings = Settings(
            network=net,
            strength=strength,
            centre=centre,
            restarts=arguments.whole("restarts", restarts),
            seed=arguments.seed(seed),
            tolerance=arguments.not_negative("tolerance", tolerance, "a relative change"),
            steps=arguments.whole("steps", steps),
            path=arguments.file_path("checkpoint", checkpoint),
            line=Line(arguments.flag("progress", progress)),
            started=started,
        )
        assert settings.estimable  # an error where there is nothing to estimate
        return settings

    @cached_property
    def estimable(self) -> Estimable:
        """The free numbers."""
        return Estimable(self.network, self.strength, self.centre)

    @cached_property
    def sorter(self) -> Sorter:
        """What takes a first look at rows."""
        start = self.estimable.filled(self.estimable.start(np.random.default_rng([self.seed, 0])))
        marked = start.learnable()  # no number that will change may be built into a program
        structure = start.with_cpts({name: marked.cpt(name) for name in self.estimable.nodes})
        return Sorter(structure, digest=self.path is not None)

    def say_rows(self, count: int) -> None:
        """Tell how many rows were looked at."""
        self.line.say(f"{count:,} rows  {count / max(self.line.spent, 1e-9):,.0f} rows/s")

    def estimate(self, lots: Parts[Lot]) -> Estimate:
        """Estimate from rows that were looked at."""
        counter = Counter(self.sorter.structure, lots)
        _require_rows(counter.summary)
        restarts = self.restarts if self.estimable.random and counter.holes else 1
        em = EM(self.estimable, counter, restarts, self.seed, self.tolerance, self.steps)
        centre = None if self.centre is None else self.centre.to_dict()
        told = [self.network.to_dict(), self.strength, centre, em.settings, counter.summary.digests]
        store = None if self.path is None else Store(self.path, fingerprint(told, []))
        search, interrupted = _search(em, store, self.line)
        return _result(em, search, time.monotonic() - self.started, interrupted)


def _require_rows(summary: Summary) -> None:
    if not math.isfinite(summary.rows):
        raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
    if not summary.rows:
        raise EvidenceError("all weights are 0; at least one row must count" if summary.count else "there are no rows")


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
    written = time.monotonic()

    def after(search: Search) -> None:
        nonlocal written
        starts = "" if em.restarts == 1 else f"{em.restarts} starts  "
        line.say(f"{starts}iteration {search.iterations}  log-likelihood {search.found.log_likelihood:.8g}")
        if store is not None and (em.finished(search) or time.monotonic() - written >= CHECKPOINT_EVERY):
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
