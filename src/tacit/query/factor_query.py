"""A query of a Markov network, compiled once and evaluated on many rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tacit.base.errors import TacitError
from tacit.evidence.read import EvidenceLike
from tacit.model.factor_graph import FactorGraph, conditioned
from tacit.query.answers.answer import Answer
from tacit.query.asking.options import CompileOptions, checked_given
from tacit.query.query import DEFAULTS, compiled
from tacit.query.user_query import UserQuery


class FactorQuery(UserQuery):
    """A query of a `FactorGraph`, compiled once and evaluated on many rows. Made by `tacit.compile`.

    It takes evidence as a `TAC` does and answers what makes sense without CPTs. Where a `TAC` tells probabilities
    p*(...) that belong to a Bayesian network, this tells sums of products of factors, not divided by their total:
    `log_evidence` is the logarithm of the partition function with each row of evidence, and `log_probability` of an
    `mpe` that of the largest product of factors and likelihoods. Sums may be too large for a float, and infinite in
    `joint`: `posterior` and `log_evidence` are not. Likelihoods of soft evidence are scaled to sum to 1, as always.

    Attributes
    ----------
    variables
        The variables of the graph.
    query, evidence, hard, given, dtype
        What the query was compiled for; see `tacit.compile`.
    program
        The operations that are run: factors divided by their largest numbers, uniform variables.
    """

    def ask(self, evidence: EvidenceLike | None = None, selected: bool = False) -> Answer:
        """Posterior, joint and `log_evidence` for every row, from one run."""
        answer = super().ask(evidence, selected)
        whole = math.floor(self.log_scale / math.log(2))
        factor = math.exp(self.log_scale - whole * math.log(2))
        return replace(answer, mantissa=answer.mantissa * factor, exponent=answer.exponent + whole)


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
    if options.per_row:
        raise TacitError("per_row= needs a Bayesian network: a FactorGraph has no CPTs")
    given, (model, true, log_scale) = checked_given(options.given), conditioned(graph)
    asked = compiled(FactorQuery, model, query, evidence, hard, replace(options, given={**given, **true}))
    for name in (*asked.question.query, *given):
        graph.variable(name)  # the nodes of factors are none of the user's
    asked.hidden, asked.log_scale = frozenset(true), log_scale
    return asked
