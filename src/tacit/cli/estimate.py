"""The command estimate: the tables of a network from the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tacit
from tacit.cli.arguments import Json, Model, Rows, check_output, names, read_network
from tacit.cli.models import learned
from tacit.cli.output import aligned, show_json
from tacit.cli.train import with_starts
from tacit.errors import TacitError
from tacit.words import counted, plural

RESULTS = ("log_likelihood", "aic", "bic", "parameters", "converged", "interrupted", "seconds")  # of an Estimate


def estimate(
    model: Model,
    table: Rows,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The network to write.")] = Path(
        "estimated.json"
    ),
    learn: Annotated[
        list[str] | None,
        typer.Option(metavar="NODES", help="Nodes whose tables are not known but a start, or 'all' (0s and 1s stay)."),
    ] = None,
    prior: Annotated[float, typer.Option(help="Pseudo-counts for every entry of a table.")] = 0.0,
    strength: Annotated[
        float | None,
        typer.Option(metavar="ROWS", help="Let each row of the tables of MODEL count as so many rows of the table."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says how many rows each row counts as.")
    ] = None,
    restarts: Annotated[int, typer.Option(help="Random starts for what has no start of its own.")] = 1,
    seed: Annotated[int, typer.Option(help="The seed of the random starts.")] = 0,
    tolerance: Annotated[
        float, typer.Option(help="EM ends when the relative increase of the log-likelihood is smaller.")
    ] = 1e-8,
    steps: Annotated[int | None, typer.Option(help="The most iterations of EM; 1,000 if left out.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Saved while EM runs; an interrupted run resumes from it.")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the tables of a network from a table of rows.

    Complete rows are counted; where cells are empty, where columns hold likelihoods, and where a variable has no column
    at all, EM fills in. Columns mean what they mean for "tacit batch". The table may be larger than the memory.

    What is estimated is what the network leaves open; for a network with all its tables, say which with --learn.

    \b
    Examples:
      tacit estimate alarm.bif rows.parquet --learn all -o estimated.bif
      tacit estimate alarm.bif rows.csv --learn all --prior 1 -o estimated.json
      tacit estimate expert.json rows.csv --learn all --strength 20
    """
    check_output(output)
    given = read_network(model)
    net = with_starts(given, names(learn))
    if not learn and not learned(net):
        raise TacitError(f"all numbers of {model} are known: name the nodes to estimate with --learn, or --learn all")
    if strength is not None and prior:
        raise typer.BadParameter("--prior and --strength are two kinds of prior; give one of them")
    how: dict[str, Any] = {} if steps is None else {"steps": steps}
    believed = prior if strength is None else (given, strength)
    found = tacit.estimate(net, table, believed, weights, restarts, seed, tolerance, checkpoint=checkpoint, **how)
    tacit.io.write(found.network, output)
    iterations = len(found.history)
    if json:
        results = {name: getattr(found, name) for name in RESULTS}
        return show_json({"output": str(output), "rows": found.rows, "iterations": iterations} | results)
    print(f"{output}: {plural(found.parameters, 'number')} from {counted(found.rows)}, {found.seconds:.1f} s")
    lines = [
        ("log-likelihood", f"{found.log_likelihood:,.2f}"),
        ("AIC, BIC", f"{found.aic:,.1f}, {found.bic:,.1f}"),
        ("iterations", f"{iterations:,}" + ("" if found.converged else ", not converged: see --steps")),
    ]
    print(aligned([(f"  {name}", value) for name, value in lines]))
