"""A query of a Markov network, compiled once and evaluated on many rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from tacit.answer import Answer
from tacit.assignments import Assignment, Samples, most_probable, samples
from tacit.compiler.program import Cost, Program
from tacit.errors import TacitError
from tacit.evidence import Evidence, EvidenceLike
from tacit.factor_graph import FactorGraph, conditioned
from tacit.floats import Floats
from tacit.information import information
from tacit.marginals import labelled, marginals
from tacit.probabilities import Labelling, Marginals, Probabilities
from tacit.query import Asked, Query, compiled
from tacit.variable import Label


class FactorQuery:
    """A query of a `FactorGraph`, compiled once and evaluated on many rows. Made by `tacit.compile`.

    It takes evidence as a `TAC` does and answers what makes sense without CPTs. Where a `TAC` tells probabilities
    p*(...) that belong to a Bayesian network, this tells sums of products of factors, not divided by their total.
    Likelihoods of soft evidence are scaled to sum to 1, as always.
    """

    def __init__(self, graph: FactorGraph, asked: Query, given: Mapping[str, Label], log_scale: float) -> None:
        self.variables = graph.variables
        self.given = dict(given)
        self._asked, self._log_scale = asked, log_scale

    @property
    def query(self) -> Asked:
        """The variable asked for, several, or None."""
        return self._asked.query

    @property
    def evidence(self) -> tuple[str, ...]:
        """The variables that may have evidence."""
        return self._asked.evidence

    @property
    def hard(self) -> tuple[str, ...]:
        """The variables that are observed in every row."""
        return self._asked.hard

    @property
    def dtype(self) -> str:
        return self._asked.dtype

    @property
    def program(self) -> Program:
        """The operations that are run: factors divided by their largest numbers, uniform variables."""
        return self._asked.program

    @property
    def dear(self) -> bool:
        """Whether the first row takes seconds, or is refused."""
        return self._asked.dear

    @property
    def work(self) -> int:
        """The multiply-adds that the first row takes."""
        return self._asked.work

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row, circuit nodes (None where the circuit would be very large)."""
        return self._asked.cost()

    def read(self, evidence: EvidenceLike | None) -> Evidence:
        """Evidence that is checked once, to be asked about often: every method that takes evidence takes it."""
        return self._asked.read(evidence)

    def ask(self, evidence: EvidenceLike | None = None) -> Answer:
        """Posterior, joint and `log_evidence` for every row, from one run."""
        found = self._asked.ask(evidence)
        whole = math.floor(self._log_scale / math.log(2))
        factor = math.exp(self._log_scale - whole * math.log(2))
        return replace(found, mantissa=found.mantissa * factor, exponent=found.exponent + whole)

    @overload
    def posterior(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> Floats: ...

    @overload
    def posterior(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Probabilities: ...

    def posterior(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Floats | Probabilities:
        """The distribution of the query given each row of evidence: (rows, states); see `TAC.posterior`."""
        return self._asked.posterior(evidence, labels=True) if labels else self._asked.posterior(evidence)

    @overload
    def joint(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> Floats: ...

    @overload
    def joint(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Probabilities: ...

    def joint(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Floats | Probabilities:
        """For every state of the query, the sum of products of all factors over the other variables: (rows, states).

        Such sums may be too large for a float, and infinite here: `posterior` and `log_evidence` are not.
        """
        self._asked.require_query("joint")
        with np.errstate(over="ignore"):
            found = self.ask(evidence).joint
        names = self._asked.question.query
        return Labelling.of(evidence)(found, [self._asked.network.variable(n) for n in names]) if labels else found

    def log_evidence(self, evidence: EvidenceLike | None = None) -> Floats:
        """The logarithm of the partition function with each row of evidence; minus infinity where nothing agrees."""
        return self._asked.log_evidence(evidence) + self._log_scale

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> dict[str, Floats]: ...

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Marginals: ...

    def marginals(self, evidence: EvidenceLike | None = None, labels: bool = False) -> dict[str, Floats] | Marginals:
        """The posterior of *every* variable, each (rows, states); see `TAC.marginals`."""
        every = marginals(self._asked, evidence)
        found = {name: every[name] for name in self.variables}
        return labelled(self._asked, found, evidence) if labels else found

    def mpe(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The states of all variables where the product of factors and likelihoods is largest, for every row.

        `log_probability` is the logarithm of that product; less `log_evidence`, of the states' probability.
        """
        return self._scaled(most_probable(self._asked, self.variables, evidence))

    def map(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The states of the query variables that are jointly most probable, with all others summed out."""
        self._asked.require_query("map")
        return self._scaled(most_probable(self._asked, self._asked.question.query, evidence))

    def _scaled(self, found: Assignment) -> Assignment:
        return replace(found, log_probability=found.log_probability + self._log_scale)

    def sample(self, evidence: EvidenceLike | None = None, n: int = 1, seed: int | None = 0) -> dict[str, Any]:
        """Exact, independent samples of all variables given the evidence of each row: labels (rows, n)."""
        drawn = samples(self._asked, evidence, n, seed)
        return Samples({name: drawn[name] for name in self.variables})

    def information(self, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
        """For every variable, by how much the query's entropy is expected to drop if its state were observed: (rows,).

        In nats; NaN where the state is observed already.
        """
        self._asked.require_query("information")
        self._asked.require_posterior()
        found = information(self._asked, evidence)
        return {name: found[name] for name in self.variables}

    def __repr__(self) -> str:
        return repr(self._asked).replace("Query(", "FactorQuery(", 1)


def compiled_graph(
    graph: FactorGraph,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    do: Sequence[str] = (),
    given: Mapping[str, Label] | None = None,
    *how: Any,
) -> FactorQuery:
    """A query of a graph. The parameters are those of `tacit.compile`; `how` are those from `engine` on."""
    if do:
        raise TacitError("do= needs a Bayesian network: a FactorGraph does not tell causes from effects")
    if given is not None and not isinstance(given, Mapping):
        raise TacitError(f"given is {given!r}, expected a mapping from variables to states")
    model, true, log_scale = conditioned(graph)
    asked = compiled(Query, model, query, evidence, hard, (), {**(given or {}), **true}, *how)
    for name in (*asked.question.query, *(given or ())):
        graph.variable(name)  # the nodes of factors are none of the user's
    return FactorQuery(graph, asked, {n: s for n, s in asked.given.items() if n in graph}, log_scale)
