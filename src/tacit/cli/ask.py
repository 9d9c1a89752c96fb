"""Commands that ask about one row of evidence: query, explain and bounds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import tacit
from tacit import theory
from tacit.cli.arguments import Evidence, Json, Model, Query
from tacit.cli.output import aligned, asked, heading, show_json
from tacit.cli.values import label_of, read_box, read_evidence
from tacit.errors import EvidenceError
from tacit.query import Answer
from tacit.tac import TAC
from tacit.variable import Label
from tacit.words import bars


def query(model: Model, query: Query, evidence: Evidence = None, json: Json = False) -> None:
    """Show the posterior of a variable, given evidence.

    A value is a state; or the likelihood of the first state, for a variable that has two; or one likelihood per state,
    with commas between. Likelihoods need not sum to 1.

    \b
    Examples:
      tacit query asia.bif -q lung
      tacit query asia.bif -q lung -e xray=yes -e smoke=0.7
      tacit query alarm.bif -q LVFAILURE -e CVP=0.1,0.2,0.7 --json
    """
    tac, _, answer = _asked(model, query, evidence or [])
    states, posterior, log_evidence = tac.network.states(query), answer.posterior[0].tolist(), answer.log_evidence[0]
    if json:
        by_state = dict(zip(map(str, states), posterior, strict=True))
        return show_json({"query": query, "posterior": by_state, "log_evidence": log_evidence})
    heading(asked(query, evidence or ()))
    print(bars(states, posterior))
    if evidence:
        print(f"log-probability of the evidence: {log_evidence:.6g}")


def explain(model: Model, query: Query, evidence: Evidence = None, json: Json = False) -> None:
    """Show why evidence leads to its answer.

    That is: all tests, what they select, where that would change, and the function that applies there.

    \b
    Example:
      tacit explain abc.json -q B -e A=0.8 -e C=lo
    """
    tac, row, _ = _asked(model, query, evidence or [])
    found = tac.explain(row)
    if not json:
        return print(found)
    functions = None
    if found.coefficients is not None:
        functions = [{"inputs": names, "coefficients": c.tolist()} for names, c in found.coefficients.items()]
    show_json({
        "query": query,
        "posterior": dict(zip(map(str, found.states), found.posterior.tolist(), strict=True)),
        "tests": [asdict(test) | {"margin": test.margin, "selected": test.selected} for test in found.tests],
        "functions": functions,
    })  # fmt: skip


def bounds(
    model: Model,
    box: Annotated[list[str], typer.Argument(metavar="VARIABLE=LOW:HIGH", help="Where the evidence may be.")],
    query: Query,
    evidence: Evidence = None,
    state: Annotated[str | None, typer.Option(help="The state of the query; its first one, if left out.")] = None,
    json: Json = False,
) -> None:
    """Find the range of a posterior over a box of soft evidence.

    The box has, for each of at most 10 variables of two states, the least and the greatest likelihood of the first one.

    \b
    Example:
      tacit bounds abc.json -q B A=0.2:0.9 -e C=lo
    """
    ranges = read_box(box)
    tac, row, _ = _asked(model, query, evidence or [], list(ranges))
    found = theory.bounds(tac, ranges, _state(tac, state), row)
    if json:
        ends = {name: asdict(end) for name, end in (("minimum", found.minimum), ("maximum", found.maximum))}
        return show_json({"query": query, "state": found.state, **ends, "exact": found.exact})
    heading(asked(f"{query}={found.state}", [*box, *(evidence or ())]))
    print(aligned([("minimum", str(found.minimum)), ("maximum", str(found.maximum))]))


def _asked(
    model: Path, query: str, texts: list[str], inputs: list[str] | None = None
) -> tuple[TAC, dict[str, Any], Answer]:
    """A query, evidence of the command line, and its answer. NumPy has it ready before numba is loaded."""
    net = tacit.io.read(model)
    row, hard = read_evidence(net, texts)
    tac = tacit.compile(net, query, [*row, *(inputs or ())], hard, engine="numpy")
    answer = tac.ask(row)
    if np.isneginf(answer.log_evidence[0]):
        raise EvidenceError("the evidence has probability 0, so that there is no posterior")
    return tac, row, answer


def _state(tac: TAC, text: str | None) -> Label | None:
    """The label of the query that was written; one that is a number is found by its text."""
    if text is None:
        return None
    variable = tac.variable
    return label_of(variable, text) or next((label for label in variable.states if str(label) == text), text)
