"""The functions of `tacit.dask`, `tacit.ray` and `tacit.spark`, written once for all backends."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from tacit.base.errors import TacitError
from tacit.clusters.discovering import coded
from tacit.clusters.learning import ClusterTable, Roles, Tables, estimated
from tacit.clusters.plan import Columns
from tacit.clusters.scoring import Names, Renamed, Request, posteriors
from tacit.learn.discovering.coded_table import Bins
from tacit.learn.discovering.constraints import Edge
from tacit.learn.discovering.discovery import Discovery, check_search, discovered
from tacit.learn.estimating.estimation import Estimate, Estimation
from tacit.learn.fitting.losses import Loss
from tacit.learn.fitting.run import Run
from tacit.learn.fitting.training import Fit, Training, train
from tacit.learn.options import EM_STEPS, DiscoverOptions, EstimateOptions, FitOptions
from tacit.learn.partitions import Distributed
from tacit.query.answer_columns import LogEvidence, MostProbable, SampleColumns
from tacit.query.assignments import checked_seed
from tacit.query.network import Network
from tacit.query.tac import TAC


class ClusterBackend(ABC):
    """A kind of cluster: what differs between them is abstract, and the other methods are what users call."""

    kind: ClassVar[str]  # of a table, such as "Dask DataFrame"
    table_type: ClassVar[type]
    also_scored: ClassVar[str] = ""  # beside tables, for a message

    def columns(self, rows: Any) -> Sequence[Any]:
        """The names of the columns of a table."""
        return list(rows.columns)

    @abstractmethod
    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        """The partitions of a table, with the columns that are evidence, and others."""

    @abstractmethod
    def score(self, request: Request, rows: Any) -> Any:
        """The answers to all rows of a table, lazily."""

    def table(self, rows: Any, otherwise: str = "tacit.estimate and tacit.fit") -> ClusterTable:
        """A table to learn from."""
        self.require_table(rows, otherwise)
        return ClusterTable(self.columns(rows), partial(self.parts, rows))

    def require_table(self, rows: Any, otherwise: str, also: str = "") -> None:
        """Refuse rows that are not on the cluster, and say what takes rows in memory."""
        if not isinstance(rows, self.table_type):
            raise TacitError(
                f"the rows are of type {type(rows).__name__}, expected a {self.kind}{also}; rows that are in memory "
                f"can be given to {otherwise}"
            )

    def scored(self, request: Request, rows: Any) -> Any:
        """The answers to all rows of a table, which is checked."""
        self.require_table(rows, "the method of the compiled query", self.also_scored)
        return self.score(request, rows)

    def posterior(self, tac: TAC, rows: Any, keep: Names = (), names: Renamed = None, likelihoods: Names = ()) -> Any:
        """The posterior of the query for every row of a table, computed where the rows are.

        Nothing is computed yet: the answer is another table. In Spark's expressions, names with a dot need backticks.

        Parameters
        ----------
        tac
            The compiled query.
        rows
            The table. Columns named like variables in `tac.evidence` are read as `tac.posterior` reads a frame; columns
            `A.lo` and `A.hi` hold one likelihood for each state of `A`. All other columns are left alone. On Dask, also
            an Array (rows, variables) of floats, as `tac.posterior` takes it; the answer is an Array (rows, states).
        keep
            Columns of the table that the answer begins with.
        names
            Other names for columns of the result, which are named `QUERY.STATE`, or `A.true,B.lo` for a joint
            posterior.
        likelihoods
            Variables of two states whose column holds likelihoods of the first state. Needed where a partition may
            happen to hold only 0s and 1s, which could be codes.

        A row whose evidence has probability 0 gets NaN or null. An error in the rows names the partition, and the row
        in it; both are counted from 0. On Spark, each task uses as many threads as `spark.task.cpus` says. Examples:
        `help(tacit.dask)`, `help(tacit.spark)`.
        """
        return self.scored(Request(tac, posteriors(tac), keep, names, likelihoods), rows)

    def log_evidence(
        self, tac: TAC, rows: Any, keep: Names = (), names: Renamed = None, likelihoods: Names = ()
    ) -> Any:
        """The logarithm of the probability of the evidence for every row of a table: a column `log_evidence`.

        Parameters are those of `posterior`. Where the evidence is impossible, it is minus infinity. For a Dask Array,
        the answer is an Array (rows,).
        """
        return self.scored(Request(tac, LogEvidence(), keep, names, likelihoods), rows)

    def mpe(self, tac: TAC, rows: Any, keep: Names = (), names: Renamed = None, likelihoods: Names = ()) -> Any:
        """The states of all variables that are jointly most probable, for every row of a table.

        The result has a column for each variable, named like it, and `log_probability`. Parameters are as in
        `posterior`. Of a column that is kept, the result of the same name needs another one. Where the evidence is
        impossible, states are missing. On Dask, labels that are whole numbers are of type Int64, which has a missing
        value.
        """
        return self.scored(Request(tac, MostProbable(), keep, names, likelihoods), rows)

    def sample(
        self,
        tac: TAC,
        rows: Any,
        keep: Names = (),
        names: Renamed = None,
        likelihoods: Names = (),
        seed: int | None = 0,
    ) -> Any:
        """One draw of all variables given the evidence, for every row of a table.

        The result has a column for each variable, named like it. Parameters are as in `posterior`. The same seed gives
        the same draws if the rows are in the same partitions and in the same order; None gives others at each call.
        """
        return self.scored(Request(tac, SampleColumns((checked_seed(seed),)), keep, names, likelihoods), rows)

    def estimate(
        self,
        net: Network,
        rows: Any,
        prior: float | tuple[Network, float] = 0.0,
        weights: str | None = None,
        restarts: int = 1,
        seed: int = 0,
        tolerance: float = 1e-8,
        steps: int = EM_STEPS,
        progress: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        likelihoods: Sequence[str] = (),
    ) -> Estimate:
        """Estimate the tables of a network from rows on a cluster: by counting, and by EM if some have holes.

        Each partition is read once. Rows that are not complete stay on the cluster, a byte for each value: with Dask's
        workers, in Ray's object store, or persisted by Spark. Counts travel, not rows. The result is that of
        `tacit.estimate`, whose parameters these are; sums are taken in another order, so last digits may differ. All
        restarts share each pass over the rows.

        Parameters
        ----------
        rows
            The table. Columns named like variables are read as `tacit.estimate` reads a frame; columns `A.lo` and
            `A.hi` hold one likelihood for each state of `A`. All other columns are left alone.
        weights
            The name of a column: how many rows each row counts as.
        checkpoint
            A file on this machine, not on the workers.
        likelihoods
            Variables of two states whose column holds likelihoods of the first state. Needed where a partition may
            happen to hold only 0s and 1s, which could be codes.
        """
        options = EstimateOptions.among(locals())
        return estimated(self.table(rows), Estimation(net, options), weights, likelihoods)

    def fit(
        self,
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
        """Learn the numbers that a network leaves out, from labelled rows on a cluster.

        Each partition is read once, and stays on the cluster: with Dask's workers, in Ray's object store, or persisted
        by Spark. Every step sends some numbers there, and gets back the loss and its derivatives, summed. The result is
        that of `tacit.fit`, whose parameters these are; sums are taken in another order, so last digits may differ.
        Restarts run side by side.

        Not offered, since they need all rows in one place: `optimizer="adam"` and `harden=True`.

        Parameters
        ----------
        rows, label
            The table, and its column of labels; None if that is named like the query. Columns named like variables in
            `tac.evidence` are evidence, and all others are left alone.
        validation
            Another table with the same columns; or the share of the rows to hold out, drawn partition by partition:
            other rows than `tacit.fit` would draw.
        weights
            The name of a column: how much each row counts.
        checkpoint
            A file on this machine, not on the workers.
        likelihoods
            Variables of two states whose column holds likelihoods of the first state; and the label, if it holds
            probabilities of the first state. Needed where a partition may happen to hold only 0s and 1s.
        """
        options = FitOptions.among(locals())
        roles, table = Roles(label, weights, likelihoods), self.table(rows)
        others = self.table(validation) if hasattr(validation, "columns") else validation
        if not isinstance(tac, TAC):
            raise TacitError(
                f"tac is a {type(tac).__name__}, expected a compiled query: tacit.compile(net, query, evidence)"
            )
        training = Training(tac, roles.scattered(table, tac), options)
        if isinstance(others, ClusterTable):
            training.validate_on(roles.scattered(others, tac))
        elif others is not None:
            training.hold_out(others)
        return train(training)

    def discover(
        self,
        rows: Any,
        score: str = "bic",
        search: str = "tabu",
        bins: Bins = None,
        tiers: Sequence[Sequence[str]] | None = None,
        forbid: Iterable[Edge] = (),
        require: Iterable[Edge] = (),
        max_parents: int | None = None,
        max_cost: float | None = None,
        start: Network | Iterable[Edge] | None = None,
        weights: str | None = None,
        exclude: Iterable[str] = (),
        bootstrap: int = 0,
        seed: int = 0,
        progress: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Discovery:
        """Find the structure of a network in a table on a cluster, and estimate its tables.

        Each partition is read twice: to find out what its columns hold, and to code its values. Equal rows are counted
        together where they are, and then travel; the search runs here. So the coded table must fit into the memory of
        this machine: a byte for each value of each distinct row. The result is that of `tacit.discover`, whose
        parameters these are, however the rows are divided; but weights with fractions are summed in another order, so
        last digits may differ.

        Parameters
        ----------
        rows
            The table. All columns become variables, but for the one of weights and those to `exclude`.
        weights
            The name of a column: how many rows each row counts as.
        checkpoint
            A file on this machine, not on the workers.
        """
        options = DiscoverOptions.among(locals())
        check_search(options)  # before the rows are read
        return discovered(coded(self.table(rows, "tacit.discover"), weights, bins, exclude), options)
