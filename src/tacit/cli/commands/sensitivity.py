"""The command sensitivity: how far an answer relies on each number of the network."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.base.floats import as_json
from tacit.cli.shared.arguments import Do, Evidence, Json, Model, Query
from tacit.cli.shared.output import aligned, asked, heading, show_json
from tacit.cli.shared.row import Row
from tacit.cli.shared.values import state_of
from tacit.query.sensitivity import HEADINGS

ROUNDING = 1e-13  # of a derivative that is 0


def sensitivity(
    model: Model,
    query: Query,
    evidence: Evidence = None,
    do: Do = None,
    state: Annotated[str | None, typer.Option(help="The state of the query; the most probable, if left out.")] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many entries to show.")] = 20,
    json: Json = False,
) -> None:
    """Show which numbers a posterior depends on.

    These are the entries of all tables of the network, those with the largest derivatives first. While an entry
    changes, the rest of its row changes in proportion. "Decision changes at" is the value of the entry at which another
    state of the query becomes the most probable one, the nearest to its present value.

    \b
    Examples:
      tacit sensitivity asia.bif -q lung -e xray=yes
      tacit sensitivity asia.bif -q lung -e xray=yes --state yes --top 5
      tacit sensitivity asia.bif -q lung --json
    """
    row = Row(model, evidence, do)
    row.require_network()
    tac = row.compile(query)
    tac.require_query("sensitivity")
    label = None if state is None else state_of(row.net.variable(query), state)
    posterior = row.ask(tac).posterior[0]
    label = row.net.states(query)[int(posterior.argmax())] if label is None else label
    probability = float(posterior[row.net.variable(query).codes[label]])
    # an entry of 1 has no derivative
    entries = [e for e in tac.sensitivity(row.values(tac)).entries(state=label) if abs(e.derivative) > ROUNDING]
    if json:
        data = {"query": query, "state": label, "posterior": probability}
        return show_json(data | {"entries": [as_json(entry._asdict()) for entry in entries[:top]]})
    heading(f"{asked(f'{query}={label}', row.given)}: {probability:.6f}")
    if not entries:
        return print("no entry changes this")
    print(aligned([HEADINGS, *(entry.cells for entry in entries[:top])], stubs=1))
    if len(entries) > top:
        print(f"and {len(entries) - top:,} more; see --top")
