"""The command that chooses an action: decide."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

import tacit
from tacit.base.errors import EvidenceError
from tacit.cli.shared import completion
from tacit.cli.shared.arguments import Do, Evidence, Json, Model
from tacit.cli.shared.output import aligned, asked, heading, show_json
from tacit.cli.shared.row import Row
from tacit.cli.shared.values import read_costs
from tacit.query.answers.answer import quietly
from tacit.query.decisions.worth import checked_costs

MAX_OBSERVATIONS = 5  # to make next


def decide(
    model: Model,
    decision: Annotated[
        str,
        typer.Option(
            "--decision", "-d", metavar="VARIABLE", help="The variable to decide.", autocompletion=completion.variables
        ),
    ],
    evidence: Evidence = None,
    do: Do = None,
    next_: Annotated[
        bool, typer.Option("--next", help="Also which variables it would be worth most to observe before the decision.")
    ] = False,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="VARIABLE=NUMBER",
            help="With --next: what observing a variable costs, in the unit of the values; if any is given, only these "
            "are answered for. May be given many times.",
            autocompletion=completion.values,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find the best action, by the value nodes of a network.

    The action is set from outside, as by --do; what is observed is known before. The model is a .json file, which keeps
    value nodes.

    \b
    Examples:
      tacit decide clinic.json -d Treat -e Blood=high
      tacit decide clinic.json -d Treat -e Blood=high --next --cost Scan=3
    """
    row = Row(model, evidence, do)
    row.require_network()
    costs = read_costs(cost or ())
    if costs and not next_:
        raise typer.BadParameter("--cost is what an observation costs; expected --next beside it")
    below = {decision, *row.net.descendants(decision)}
    others = [name for name in row.net if name not in (*below, *row.observed, *row.set)] if next_ else []
    numbers = [name for name in others if row.net.variable(name).continuous]
    states = [name for name in others if name not in numbers]
    asked_for = list(checked_costs(costs, states, numbers)) or states
    tac = tacit.compile(
        row.net, evidence=[*row.observed, *asked_for], do=list(row.set), engine="numpy", decide=decision
    )
    rows = {**row.observed, **row.set}
    with quietly():
        found = tac.decide(rows)
    if np.isnan(found.expected).any():
        raise EvidenceError("the evidence has probability 0, so there is no best action")
    expected = dict(zip(map(str, tac.actions), found.expected[0].tolist(), strict=True))
    worth = {name: float(own[0]) for name, own in tac.worth(rows, costs).items() if not np.isnan(own[0])}
    best = sorted(worth, key=lambda name: -worth[name])
    if json:
        data = {"decision": decision, "action": found.action.tolist()[0], "expected": expected}
        told = {"worth": {name: worth[name] for name in best}} if next_ else {}
        return show_json({**data, "margin": float(found.margin[0]), **told})
    heading(asked(decision, row.given))
    chosen = str(found.action[0])
    print(aligned([(name, f"{value:.6g}", "best" * (name == chosen)) for name, value in expected.items()], stubs=1))
    print(f"better than the second best by {found.margin[0]:.6g}")
    if next_:
        print(_observations({name: worth[name] for name in best if worth[name] > 0}))


def _observations(worth: dict[str, float]) -> str:
    """The observations that are worth most, less what they cost."""
    if not worth:
        return "no further observation would be worth its cost"
    lines = [(f"  {name}", f"{value:.6g}") for name, value in list(worth.items())[:MAX_OBSERVATIONS]]
    return f"to observe first, by what it is worth:\n{aligned(lines, stubs=1)}"
