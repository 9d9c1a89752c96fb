"""`tacit.estimate`: the numbers of a network from rows, by counting, and by EM where rows are incomplete."""

from __future__ import annotations

import math
import os
import time
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.html import curve, facts
from tacit.base.text import counted, plural
from tacit.evidence.frames import frame_index
from tacit.learn.checkpoint import fingerprint
from tacit.learn.estimating.counting import ExpectationStep
from tacit.learn.estimating.em import EM, best, read_runs, write_runs
from tacit.learn.estimating.estimable import Estimable
from tacit.learn.estimating.first_pass import FirstPass, ScannedRows
from tacit.learn.estimating.posterior.numbers_posterior import NumbersPosterior
from tacit.learn.estimating.sources import RowBuffer, SpooledRows, is_stream, row_batches
from tacit.learn.options import EM_STEPS, EstimateOptions
from tacit.learn.partitions import Distributed, Local
from tacit.learn.progress_line import Line, clock
from tacit.learn.session import Session
from tacit.query.ensemble import Ensemble
from tacit.query.network import Network


@dataclass(frozen=True, eq=False)
class Estimate:
    """A network with estimated tables. Made by `tacit.estimate`.

    `log_likelihood` is that of all rows, without the prior, and `history` has it before each iteration. `rows` is the
    number of rows, or the sum of their weights, and `parameters` how many numbers were free. `posterior` is the
    distribution of the numbers that `draws` come from.
    """

    network: Network
    log_likelihood: float
    history: list[float]
    rows: float
    parameters: int
    converged: bool
    seconds: float
    posterior: NumbersPosterior
    interrupted: bool = False

    def draws(self, n: int, seed: int | None = 0) -> Ensemble:
        """Networks with numbers drawn from what the rows leave possible: an `Ensemble` of so many.

        Rows of tables follow the Dirichlet distribution of their counts, numbers of a noisy-or beta distributions,
        means and covariances of a density a normal-inverse-Wishart one, and rates a gamma one; pseudo-counts of the
        prior are part of it, and known numbers stay. Without a prior, each row of a table counts one row more, spread
        evenly over its free entries (or, if it was never seen, as it is estimated), and a component of a density that
        has too few rows is filled up with the mean and variances of the whole column.

        Where values were missing, or noisy-ors have causes, counts are expected ones: they count as if they had been
        observed, so that draws vary less than they should. A row counts for the table of a testing node that the
        estimated numbers select. The same seed gives the same networks, None others each time.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("fault", states=["yes", "no"])
        >>> found = tacit.estimate(net, {"fault": ["yes"] * 3 + ["no"] * 17}, prior=1.0)
        >>> networks = found.draws(1000)
        >>> networks.network.table("fault").round(3), networks[0].table("fault").round(3)
        (array([0.182, 0.818]), array([0.162, 0.838]))
        """
        return self.posterior.draws(n, seed)

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
        likelihood = f"log-likelihood {self.log_likelihood:.6g} of {counted(self.rows)}"
        numbers, iterations = plural(self.parameters, "free number"), plural(len(self.history), "iteration")
        return f"Estimate({likelihood}, {numbers}, {iterations}{end})"

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
    steps: int = EM_STEPS,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Estimate the tables of a network from rows: by counting, and by EM where values are missing or soft.

    What is estimated are the tables that the network leaves out, entries that are NaN, and tables and noisy-ors with
    `learn=True`, whose numbers are the start of EM; `net.learnable()` is a copy in which all of them are. Known
    numbers, exact 0s and 1s, and thresholds stay, and tied tables share their counts. A row counts for that table of a
    testing node which its evidence selects. The same holds for the numbers of densities, but for a `Density`, which has
    none; a variance is at least 1e-9 of that of its column, and a `CollapsedDensityWarning` says where that acts.

    Parameters
    ----------
    net
        The network.
    rows
        Evidence, in any form that `net.posterior` takes; the path of a table (`.csv` or `.tsv`, plain or gzipped, or
        `.parquet`), which may be larger than the memory; or batches of evidence, from a list, a generator or any other
        iterable. They are read once. Rows that are not complete are kept for EM: in memory, or in a temporary file
        where they are many. A variable of which a frame or a list of dictionaries has no column is hidden, as a
        `MissingColumnWarning` says; a column of None says that it is meant to be.
    prior
        Pseudo-counts for every free entry, or `(network, strength)`: each row of the tables of that network counts as
        so many rows. To each parents' state of a density, as many rows are added, with the mean and variance of the
        whole column, or of that network's density.
    weights
        How many rows each row counts as: numbers, or the name of a column that holds them.
    restarts, seed
        How many random starts for what has no start of its own, of which the best is kept; the seed. Means of densities
        start from random rows that are far from each other, variances from those of the whole column.
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
    >>> learned = tacit.estimate(net, rows).network
    >>> learned.table("rain").round(3), learned.table("wet").round(3).tolist()
    (array([0.4, 0.6]), [[1.0, 0.0], [0.333, 0.667]])
    """
    estimation = Estimation(net, EstimateOptions.among(locals()))
    place: AbstractContextManager[RowBuffer] = closing(SpooledRows()) if is_stream(rows) else nullcontext([])
    try:
        with place as buffer:
            scanned = estimation.first_pass.scan(row_batches(net, rows, weights), buffer, estimation.say_rows)
            return estimation.estimate(Local(scanned))
    except EvidenceError as error:
        raise error.indexed(frame_index(rows)) from None


class Estimation:
    """The numbers to estimate, and the options. Rows come later, and may lie in many places."""

    def __init__(self, net: Network, options: EstimateOptions) -> None:
        if not isinstance(net, Network):
            problem = f"net is a {type(net).__name__}, expected a Network"
            raise TacitError(f"{problem}; tacit.read(path) reads one from a file")
        self.network, self.options, self.line = net, options, Line(options.progress)
        self.estimable = Estimable(net, options.prior)

    @cached_property
    def first_pass(self) -> FirstPass:
        """The pass that reads all rows once, before EM."""
        start = self.estimable.filled(self.estimable.start(np.random.default_rng([self.options.seed, 0])))
        marked = start.learnable()  # no number that will change may be built into a program
        structure = start.with_cpts({name: marked.cpt(name) for name in self.estimable.nodes})
        return FirstPass(structure, digest=self.options.checkpoint is not None)

    def say_rows(self, count: int) -> None:
        """Show how many rows were read."""
        self.line.say(f"{count:,} rows  {count / max(self.line.spent, 1e-9):,.0f} rows/s")

    def estimate(self, scanned: Distributed[ScannedRows]) -> Estimate:
        """Estimate from rows after the first pass."""
        expectation = ExpectationStep(self.first_pass.structure, scanned)
        totals = expectation.totals
        if not math.isfinite(totals.rows):
            raise EvidenceError("the weights sum to more than a float holds; divide them by their mean")
        if not totals.rows:
            problem = "all weights are 0; at least one row must count" if totals.count else "there are no rows"
            raise EvidenceError(problem)
        options, several = self.options, self.estimable.random and expectation.incomplete
        estimable = self.estimable.looked(totals.densities, totals.sample)
        em = EM(estimable, expectation, options if several else replace(options, restarts=1))
        runs, save = em.begin(), None
        if path := options.checkpoint:
            strength, centre = options.prior
            settings = [em.options.restarts, options.seed, options.tolerance]
            networks = [self.network.to_dict(), strength, None if centre is None else centre.to_dict()]
            key = fingerprint([*networks, settings, totals.digests], [])
            runs = read_runs(path, key, runs) or runs
            save = partial(write_runs, path, key, runs)
        session = Session("EM", save, lambda: bool(best(runs).history))
        starts = f"{em.options.restarts} starts  " if em.options.restarts > 1 else ""

        def after() -> None:
            iteration = max(len(run.history) for run in runs)
            self.line.say(f"{starts}iteration {iteration}  log-likelihood {best(runs).log_likelihood:.8g}")
            session.checkpoint(last=not em.active(runs))

        interrupted = session.run(lambda: em.run(runs, after))
        run = best(runs)
        counts = em.counts(run)
        self.line.end(f"log-likelihood {run.log_likelihood:.8g} after {plural(len(run.history), 'iteration')}")
        estimable.warn_collapsed(run.numbers)
        return Estimate(
            network=estimable.filled(run.numbers),
            log_likelihood=run.log_likelihood,
            history=run.history,
            rows=totals.rows,
            parameters=self.estimable.count,
            converged=run.converged,
            seconds=time.monotonic() - options.started,
            posterior=NumbersPosterior.of(estimable, run.numbers, counts, expectation.negligible),
            interrupted=interrupted,
        )
