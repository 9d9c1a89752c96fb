"""The command compare: why two rows of evidence get different answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any

import typer

from tacit import theory
from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.cli.shared import completion
from tacit.cli.shared.arguments import Json, Model, Query, read_network
from tacit.cli.shared.output import show_json
from tacit.cli.shared.values import read_evidence, refuse_several, state_of
from tacit.model.elements.variable import Label
from tacit.query.network import Network

BothRows = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        "-e",
        metavar="VARIABLE=VALUE",
        help="What is known in both rows. May be given many times.",
        autocompletion=completion.values,
    ),
]
FirstRow = Annotated[
    list[str] | None,
    typer.Option(
        "--first",
        metavar="VARIABLE=VALUE",
        help="What is known in the first row, written as in -e; or a file of states. May be given many times.",
        autocompletion=completion.values,
    ),
]
SecondRow = Annotated[
    list[str] | None,
    typer.Option(
        "--second",
        metavar="VARIABLE=VALUE",
        help="What is known in the second row. May be given many times.",
        autocompletion=completion.values,
    ),
]


def compare(
    model: Model,
    query: Query,
    first: FirstRow = None,
    second: SecondRow = None,
    evidence: BothRows = None,
    state: Annotated[
        str | None, typer.Option(help="The state to show weights of; the first row's most probable one, if left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Show why two rows of evidence have different answers.

    The findings that differ are set one after the other from the first row's to the second's, and each line says what
    that step adds. Values are written as for query; what both rows share, with -e.

    \b
    Examples:
      tacit compare asia.bif -q lung --first smoke=yes --first xray=yes --second smoke=no
      tacit compare asia.bif -q lung -e xray=yes --first smoke=yes --second smoke=no
      tacit compare asia.bif -q lung --first ann.inst --second bob.inst
    """
    net = read_network(model)
    one, other = (_row(net, evidence or [], own or [], which) for own, which in ((first, "first"), (second, "second")))
    shown = None if state is None else state_of(net.variable(query), state)
    why = net.compare(query, one, other, shown)
    if not json:
        return print(why)
    show_json({
        "query": query,
        "state": why.states[why.state],
        "posterior": [_by_state(why.states, row) for row in why.posterior],
        "differences": [_difference(one, why.states) for one in why.differences],
    })  # fmt: skip


def _row(net: Network, shared: list[str], own: list[str], which: str) -> dict[str, Any]:
    """The evidence of one of the two rows, which errors name."""
    for text in own:
        refuse_several(net, text, f"--{which}")
    try:
        return read_evidence(net, [*shared, *own])[0]
    except EvidenceError as error:
        raise error.changed(place=f"{which} row") from None


def _difference(one: theory.Difference, states: Sequence[Label]) -> dict[str, Any]:
    """A step as plain data; weights without a number, which JSON has none for, are left out."""
    posterior, weight = _by_state(states, one.posterior), _by_state(states, one.weight)
    return {"name": one.name, "first": one.first, "second": one.second, "posterior": posterior, "weight": weight}


def _by_state(states: Sequence[Label], numbers: Floats) -> dict[str, float]:
    return {str(q): x for q, x in zip(states, numbers.tolist(), strict=True) if isfinite(x)}
