"""The command estimate: the tables of a network from the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.base.errors import TacitError
from tacit.base.text import counted, plural
from tacit.cli.commands.models import learned
from tacit.cli.commands.train import with_starts
from tacit.cli.shared import completion
from tacit.cli.shared.arguments import (
    Json,
    Model,
    NetworkOutput,
    Rows,
    check_draws,
    check_output,
    names,
    options_of,
    read_network,
)
from tacit.cli.shared.output import aligned, show_json
from tacit.cli.shared.rows import open_rows

OPTIONS = ("weights", "restarts", "seed", "tolerance", "steps", "checkpoint")  # of `tacit.estimate`
RESULTS = ("log_likelihood", "aic", "bic", "parameters", "converged", "interrupted", "seconds")  # of an Estimate


@dataclass(frozen=True)
class EstimateJob:
    """The arguments and options of `tacit estimate`."""

    model: Model
    table: Rows
    output: NetworkOutput = Path("estimated.json")
    learn: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODES",
            help="Nodes whose tables are not known but a start, or 'all' (0s and 1s stay).",
            autocompletion=completion.lists,
        ),
    ] = None
    prior: Annotated[float, typer.Option(help="Pseudo-counts for every entry of a table.")] = 0.0
    strength: Annotated[
        float | None,
        typer.Option(metavar="ROWS", help="Let each row of the tables of MODEL count as so many rows of the table."),
    ] = None
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says how many rows each row counts as.")
    ] = None
    restarts: Annotated[int, typer.Option(help="Random starts for what has no start of its own.")] = 1
    seed: Annotated[int, typer.Option(help="The seed of the random starts, and of --draws.")] = 0
    tolerance: Annotated[
        float, typer.Option(help="EM ends when the relative increase of the log-likelihood is smaller.")
    ] = 1e-8
    steps: Annotated[int | None, typer.Option(help="The most iterations of EM; 1,000 if left out.")] = None
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Saved while EM runs; an interrupted run resumes from it.")
    ] = None
    draws: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write networks drawn from what the rows leave possible, as .npz, for 'tacit query --credible'.",
        ),
    ] = None
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many networks --draws writes.")] = 1000
    json: Json = False


@options_of(EstimateJob)
def estimate(job: EstimateJob) -> None:
    """Estimate the tables of a network from a table of rows.

    Complete rows are counted; where cells are empty, where columns hold likelihoods, and where a variable has no column
    at all, EM fills in. Columns mean what they mean for "tacit batch". The table may be larger than the memory.

    What is estimated is what the network leaves open; for a network with all its tables, say which with --learn.

    \b
    Examples:
      tacit estimate alarm.bif rows.parquet --learn all -o estimated.bif
      tacit estimate alarm.bif rows.csv --learn all --prior 1 -o estimated.json
      tacit estimate expert.json rows.tsv --learn all --strength 20
      tacit estimate open.json rows.csv --prior 1 -o found.json --draws draws.npz
    """
    check_output(job.output)
    if job.draws is not None:
        check_draws(job.draws)
    original = read_network(job.model)
    net = with_starts(original, names(job.learn))
    if not job.learn and not learned(net):
        raise TacitError(
            f"all numbers of {job.model} are known: name the nodes to estimate with --learn, or --learn all"
        )
    if job.strength is not None and job.prior:
        raise typer.BadParameter("--prior and --strength are two kinds of prior; give one of them")
    prior = job.prior if job.strength is None else (original, job.strength)
    options = {name: getattr(job, name) for name in OPTIONS if name != "steps" or job.steps is not None}
    with open_rows(job.table) as table:
        estimated = tacit.estimate(net, table, prior, **options)
    ensemble = None if job.draws is None else estimated.draws(job.n, job.seed)
    tacit.io.write(estimated.network, job.output)
    if ensemble is not None and job.draws is not None:
        ensemble.save(job.draws)
    iterations = len(estimated.history)
    if job.json:
        results = {name: getattr(estimated, name) for name in RESULTS}
        drawn = {} if job.draws is None else {"draws": str(job.draws)}
        rows = {"output": str(job.output), **drawn, "rows": estimated.rows, "iterations": iterations}
        return show_json(rows | results)
    numbers = plural(estimated.parameters, "number")
    print(f"{job.output}: {numbers} from {counted(estimated.rows)}, {estimated.seconds:.1f} s")
    lines = [
        ("log-likelihood", f"{estimated.log_likelihood:,.2f}"),
        ("AIC, BIC", f"{estimated.aic:,.1f}, {estimated.bic:,.1f}"),
        ("iterations", f"{iterations:,}" + ("" if estimated.converged else ", not converged: see --steps")),
    ]
    print(aligned([(f"  {name}", value) for name, value in lines]))
    if job.draws is not None:
        print(f"{job.draws}: {plural(job.n, 'network')} drawn from what the rows leave possible")
