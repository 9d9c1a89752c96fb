"""A query of a Markov network, compiled once and evaluated on many rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.compiler.program import Cost
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.factor_graph import FactorGraph, conditioned
from tacit.query.answer import Answer
from tacit.query.assignments import Assignment, Samples, most_probable, samples
from tacit.query.information import information
from tacit.query.marginals import labelled, marginals
from tacit.query.options import CompileOptions
from tacit.query.probabilities import Marginals, Probabilities
from tacit.query.query import DEFAULTS, Query, compiled


class FactorQuery:
    """A query of a `FactorGraph`, compiled once and evaluated on many rows. Made by `tacit.compile`.

    It takes evidence as a `TAC` does and answers what makes sense without CPTs. Where a `TAC` tells probabilities
    p*(...) that belong to a Bayesian network, this tells sums of products of factors, not divided by their total.
    Likelihoods of soft evidence are scaled to sum to 1, as always.

    Attributes
    ----------
    variables
        The variables of the graph.
    query, evidence, hard, given, dtype
        What the query was compiled for; see `tacit.compile`.
    program
        The operations that are run: factors divided by their largest numbers, uniform variables.
    """

    def __init__(self, graph: FactorGraph, asked: Query, log_scale: float) -> None:
        self._asked, self._log_scale, self.variables = asked, log_scale, graph.variables
        self.query, self.evidence, self.hard, self.dtype = asked.query, asked.evidence, asked.hard, asked.dtype
        self.given = {name: state for name, state in asked.given.items() if name in graph}
        self.program, self.refused = asked.program, asked.refused
        self.is_slow, self.multiply_adds = asked.is_slow, asked.multiply_adds

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row, circuit nodes (None where the circuit would be very large)."""
        return self._asked.cost()

    def read(self, evidence: EvidenceLike | None) -> Evidence:
        """Evidence that is checked once, to be asked about often: every method that takes evidence takes it."""
        return self._asked.read(evidence)

    def ask(self, evidence: EvidenceLike | None = None) -> Answer:
        """Posterior, joint and `log_evidence` for every row, from one run."""
        answer = self._asked.ask(evidence)
        whole = math.floor(self._log_scale / math.log(2))
        factor = math.exp(self._log_scale - whole * math.log(2))
        return replace(answer, mantissa=answer.mantissa * factor, exponent=answer.exponent + whole)

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
            joint = self.ask(evidence).joint
        return self._asked.labelled(joint, evidence) if labels else joint

    def log_evidence(self, evidence: EvidenceLike | None = None) -> Floats:
        """The logarithm of the partition function with each row of evidence; minus infinity where nothing agrees."""
        return self._asked.log_evidence(evidence) + self._log_scale

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> dict[str, Floats]: ...

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Marginals: ...

    def marginals(self, evidence: EvidenceLike | None = None, labels: bool = False) -> dict[str, Floats] | Marginals:
        """The posterior of *every* variable, each (rows, states); see `TAC.marginals`."""
        posteriors = self._shown(marginals(self._asked, evidence))
        return labelled(self._asked, posteriors, evidence) if labels else posteriors

    def mpe(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The states of all variables where the product of factors and likelihoods is largest, for every row.

        `log_probability` is the logarithm of that product; less `log_evidence`, of the states' probability.
        """
        return self._scaled(most_probable(self._asked, self.variables, evidence))

    def map(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The states of the query variables that are jointly most probable, with all others summed out."""
        self._asked.require_query("map")
        return self._scaled(most_probable(self._asked, self._asked.question.query, evidence))

    def _scaled(self, best: Assignment) -> Assignment:
        return replace(best, log_probability=best.log_probability + self._log_scale)

    def _shown(self, by_name: Mapping[str, Floats]) -> dict[str, Floats]:
        """What belongs to variables of the graph, and not to the nodes of factors."""
        return {name: by_name[name] for name in self.variables}

    def sample(self, evidence: EvidenceLike | None = None, n: int = 1, seed: int | None = 0) -> dict[str, Any]:
        """Exact, independent samples of all variables given the evidence of each row: labels (rows, n)."""
        return Samples(self._shown(samples(self._asked, evidence, n, seed)))

    def information(self, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
        """For every variable, by how much the query's entropy is expected to drop if its state were observed: (rows,).

        In nats; NaN where the state is observed already.
        """
        return self._shown(information(self._asked, evidence))

    def __repr__(self) -> str:
        return repr(self._asked).replace("Query(", "FactorQuery(", 1)


def compiled_graph(
    graph: FactorGraph,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    options: CompileOptions = DEFAULTS,
) -> FactorQuery:
    """A query of a graph. The parameters are those of `tacit.compile`."""
    if options.do:
        raise TacitError("do= needs a Bayesian network: a FactorGraph does not tell causes from effects")
    given = {} if options.given is None else options.given
    if not isinstance(given, Mapping):
        raise TacitError(f"given is {given!r}, expected a mapping from variables to states")
    model, true, log_scale = conditioned(graph)
    asked = compiled(Query, model, query, evidence, hard, replace(options, given={**given, **true}))
    for name in (*asked.question.query, *given):
        graph.variable(name)  # the nodes of factors are none of the user's
    return FactorQuery(graph, asked, log_scale)
