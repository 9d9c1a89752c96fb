"""Commands that ask about one row of evidence: query, explain and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Annotated, Any

import typer

from tacit import theory
from tacit.cli.arguments import Do, Evidence, Json, Model, Queries, Query, variables
from tacit.cli.output import aligned, asked, heading, show_json, together
from tacit.cli.posteriors import Posterior, posterior
from tacit.cli.row import Row
from tacit.cli.values import read_box, state_of
from tacit.factor_graph import FactorGraph
from tacit.variable import Label


def query(
    model: Model,
    query: Queries,
    evidence: Evidence = None,
    do: Do = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="The joint posterior of all query variables, not one of each.")
    ] = False,
    next_: Annotated[
        bool, typer.Option("--next", help="Also which variables would tell most about the query if they were observed.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the posterior of one or more variables.

    A value is a state; or the likelihood of the first state, for a variable that has two; or one likelihood per state,
    with commas between. Likelihoods need not sum to 1.

    The variables are answered one by one; with --joint, all combinations of their states are.

    \b
    Examples:
      tacit query asia.bif -q lung
      tacit query asia.bif -q lung -e xray=yes -e smoke=0.7
      tacit query asia.bif -q lung -q bronc --joint -e dysp=yes
      tacit query asia.bif -q lung -e xray=yes --next
      tacit query asia.bif -q lung --do smoke=no
      tacit query asia.bif -q lung -e seen.inst
      tacit query alarm.bif -q LVFAILURE -e CVP=0.1,0.2,0.7 --json
    """
    row = Row(model, evidence, do)
    names = variables(row.net, query)
    found = [posterior(row, group, next_) for group in ([names] if joint else [(name,) for name in names])]
    if json:
        return show_json(_posterior_data(names, found))
    for one in found:
        heading(asked(together(one.names), row.given))
        print(one.text())
        if one.drops is not None:
            print(one.observations())
    if evidence or isinstance(row.net, FactorGraph):
        what = (
            "log of the partition function" if isinstance(row.net, FactorGraph) else "log-probability of the evidence"
        )
        print(f"{what}: {found[0].log_evidence:.6g}")


def _posterior_data(names: tuple[str, ...], found: list[Posterior]) -> dict[str, Any]:
    """What --json prints; where there is only one posterior, without an object around it."""
    apart = {",".join(one.names): one for one in found} if len(found) > 1 else None
    data = {
        "query": names[0] if len(names) == 1 else names,
        "posterior": {name: one.data() for name, one in apart.items()} if apart else found[0].data(),
        "log_evidence": found[0].log_evidence,
    }
    if found[0].drops is not None:
        data["next"] = {name: one.drops for name, one in apart.items()} if apart else found[0].drops
    return data


def explain(model: Model, query: Query, evidence: Evidence = None, json: Json = False) -> None:
    """Show why a query has this answer.

    That is: all tests, what they select, where that would change, and the function that applies there. Without testing
    nodes: what each finding adds to the others.

    \b
    Example:
      tacit explain abc.json -q B -e A=0.8 -e C=lo
    """
    row = Row(model, evidence)
    row.require_network()
    tac = row.compile(query)
    row.ask(tac)
    found = tac.explain(row.values(tac))
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
        "findings": [_finding(one, found.states) for one in found.findings],
    })  # fmt: skip


def _finding(one: theory.Finding, states: Sequence[Label]) -> dict[str, Any]:
    """A finding as plain data; weights without a number, which JSON has none for, are left out."""
    labels = list(map(str, states))
    weights = {q: w for q, w in zip(labels, one.weight.tolist(), strict=True) if isfinite(w)}
    without = {q: p for q, p in zip(labels, one.without.tolist(), strict=True) if isfinite(p)}
    return {"name": one.name, "value": one.value, "without": without, "weight": weights}


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
    row = Row(model, evidence)
    row.require_network()
    tac = row.compile(query, list(ranges))
    row.ask(tac)
    found = theory.bounds(tac, ranges, None if state is None else state_of(tac.variable, state), row.values(tac))
    if json:
        ends = {name: asdict(end) for name, end in (("minimum", found.minimum), ("maximum", found.maximum))}
        return show_json({"query": query, "state": found.state, **ends, "exact": found.exact})
    heading(asked(f"{query}={found.state}", [*box, *(evidence or ())]))
    print(aligned([("minimum", str(found.minimum)), ("maximum", str(found.maximum))]))
