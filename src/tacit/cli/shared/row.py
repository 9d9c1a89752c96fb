"""One row of evidence and interventions, as it is written on the command line, and what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.cli.shared.values import read_evidence, read_states
from tacit.model.factor_graph import FactorGraph
from tacit.query.answers.answer import Answer
from tacit.query.query import for_one_row
from tacit.query.tac import TAC


class Row:
    """A network with one row: what is observed, and what is set."""

    def __init__(self, model: Path, evidence: list[str] | None, do: list[str] | None = None) -> None:
        self.net = tacit.io.read(model)
        self.observed, self.hard = read_evidence(self.net, evidence or ())
        self.numbers = [
            name for name, value in self.observed.items() if value is not None and _continuous(self.net, name)
        ]
        self.set = read_states(self.net, do or ())
        if both := [name for name in self.set if name in self.observed]:
            raise typer.BadParameter(f"{both[0]} is observed (-e) and set (--do); expected one or the other")
        self.given = [*(evidence or ()), *(f"do({text})" for text in do or ())]

    def require_network(self) -> None:
        """Refuse a Markov network, where only a Bayesian one has an answer."""
        if isinstance(self.net, FactorGraph):
            raise TacitError("this needs CPTs, and the file holds a Markov network; query, mpe and sample take both")

    @property
    def measure(self) -> str:
        """What the evidence has: a probability, or with numbers a density."""
        return "density" if self.numbers else "probability"

    def values(self, tac: TAC) -> dict[str, Any]:
        """The row as a query takes it."""
        row = {**self.observed, **self.set}
        return {name: value for name, value in row.items() if name not in tac.given}

    def compile(self, query: str | tuple[str, ...] | None, inputs: Sequence[str] = ()) -> TAC:
        """A query for this row, and for evidence on some `inputs`. NumPy has it ready before numba is loaded.

        Where a query for all states is refused, or takes seconds, it is one for the states of this row.
        """
        evidence, do = [*self.observed, *inputs], list(self.set)
        given = {name: self.observed[name] for name in self.hard}
        others = [name for name in evidence if name not in given]
        return for_one_row(
            lambda: tacit.compile(self.net, query, evidence, self.hard, do, engine="numpy"),
            (lambda: tacit.compile(self.net, query, others, do=do, given=given, engine="numpy")) if given else None,
        )

    def ask(self, tac: TAC, wanted: str = "posterior") -> Answer:
        """The answer to a query; an error if the evidence is impossible, so that nothing `wanted` exists."""
        self.log_evidence(tac, wanted)
        return tac.ask(self.values(tac))

    def log_evidence(self, tac: TAC, wanted: str) -> float:
        """The logarithm of the probability of the evidence; an error if it is impossible."""
        try:
            log_evidence = float(tac.log_evidence(self.values(tac))[0])
        except EvidenceError as error:
            raise error.changed(row=None) from None  # there is one row only
        if np.isneginf(log_evidence):
            raise EvidenceError(f"the evidence has probability 0, so there is no {wanted}")
        return log_evidence


def _continuous(net: Any, name: str) -> bool:
    return bool(net.variable(net.named(name)).continuous)
