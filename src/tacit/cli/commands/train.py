"""The command train: learn the numbers of a network from a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import plural
from tacit.cli.commands.models import learned
from tacit.cli.shared import arguments, completion
from tacit.cli.shared.output import show_json
from tacit.cli.shared.rows import open_rows
from tacit.evidence.column_names import listed_columns
from tacit.evidence.read import read
from tacit.evidence.tables.columns import Source, choose, columns_of, find
from tacit.evidence.tables.csv_parquet import FileTable
from tacit.evidence.tables.messages import in_file
from tacit.query.network import Network

OPTIONS = ("loss", "optimizer", "steps", "restarts", "seed", "validation", "gamma", "harden", "checkpoint")  # of `fit`
RESULTS = ("loss", "hard_loss", "validation_loss", "optimizer", "seconds", "interrupted")  # of a Fit


@dataclass(frozen=True)
class TrainJob:
    """The arguments and options of `tacit train`."""

    model: arguments.Model
    table: arguments.Rows
    query: arguments.Query
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of answers; the one named like the query, if left out."),
    ] = None
    output: arguments.NetworkOutput = Path("trained.json")
    columns: arguments.Columns = None
    learn: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODES",
            help="Nodes whose numbers are not known but a start, or 'all' (0s and 1s stay).",
            autocompletion=completion.lists,
        ),
    ] = None
    loss: Annotated[Literal["mse", "cross_entropy"], typer.Option(help="Squared error, or cross entropy.")] = "mse"
    optimizer: Annotated[Literal["auto", "lm", "lbfgs", "adam"], typer.Option(help="By default, what suits.")] = "auto"
    steps: Annotated[int | None, typer.Option(help="Steps of every restart; by optimizer, if left out.")] = None
    restarts: Annotated[int | None, typer.Option(help="Random starts; by optimizer, if left out.")] = None
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0
    validation: Annotated[float | None, typer.Option(help="A share of the rows to hold out, such as 0.2.")] = None
    gamma: Annotated[float | None, typer.Option(help="The slope of testing nodes; each node's own, if left out.")] = (
        None
    )
    harden: Annotated[bool, typer.Option("--harden", help="End with hard tests.")] = False
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Saved while training; an interrupted run resumes from it.")
    ] = None
    json: arguments.Json = False


@arguments.options_of(TrainJob)
def train(job: TrainJob) -> None:
    """Learn what a network leaves open from a table.

    The table holds evidence, as for "tacit batch", and answers: the label column holds states of the query, or
    probabilities of its first state; or columns LABEL.true and LABEL.false hold one probability for each state.

    \b
    Examples:
      tacit train layer.json rows.csv -q Q --label y --validation 0.2
      tacit train asia.bif rows.csv.gz -q lung --learn all --loss cross_entropy -o asia.json
    """
    arguments.check_output(job.output)
    net = with_starts(arguments.read_network(job.model), arguments.names(job.learn))
    with open_rows(job.table) as table:
        chosen, answers = _chosen(net, table, job)
        try:
            X, y = _read(table, chosen, answers)
            tac = tacit.compile(net, job.query, list(X), read(X, [net.variable(name) for name in X]).fully_observed)
            fit = tacit.fit(tac, X, y, **{name: getattr(job, name) for name in OPTIONS})
        except EvidenceError as error:
            raise in_file(error, table.name) from None
    tacit.io.write(fit.network, job.output)
    if job.json:
        return show_json({"output": str(job.output), "rows": len(y)} | {name: getattr(fit, name) for name in RESULTS})
    held_out = "" if fit.validation_loss is None else f", validation loss {fit.validation_loss:.3g}"
    hard = "" if fit.hard_loss == fit.loss else f", loss with hard tests {fit.hard_loss:.3g}"
    print(f"{job.output}: loss {fit.loss:.3g}{hard}{held_out}")
    print(f"{plural(len(y), 'row')}, {fit.optimizer}, {fit.seconds:.1f} s")


def _chosen(net: Network, table: FileTable, job: TrainJob) -> tuple[dict[str, Source], Source]:
    """The columns that are evidence, and those that are answers."""
    query = job.query
    answers = find(net.variable(query), set(table.names), job.label)
    if answers is None:
        called = job.label or query
        raise EvidenceError(
            f"{table.name} has no column {called!r}; it has {listed_columns(table.names, 20)}; see --label"
        )
    chosen = choose(net, table.names, arguments.names(job.columns), but=[query, *answers.columns])
    answered = set(answers.columns)
    leaks = [name for name in chosen if name == query or not answered.isdisjoint(chosen[name].columns)]
    if leaks:
        raise EvidenceError(f"{leaks[0]!r} is the answer to be learned; it cannot be evidence, too (--columns)")
    if not job.columns:
        arguments.note_unused(net, table.names, columns_of([*chosen.values(), answers]), [query])
    if not job.learn and not learned(net):
        raise TacitError(f"all numbers of {job.model} are known: name the nodes to learn with --learn, or --learn all")
    return chosen, answers


def with_starts(net: Network, nodes: list[str]) -> Network:
    """The network with the numbers of some nodes, or of all, as a start for learning."""
    start = net.learnable()
    return start if nodes == ["all"] else net.with_cpts({name: start.cpt(name) for name in nodes})


def _read(table: FileTable, sources: dict[str, Source], answers: Source) -> tuple[dict[str, Any], Any]:
    """Evidence and answers of all rows."""
    import pyarrow as pa

    columns = dict.fromkeys(columns_of([*sources.values(), answers]))
    batches = [batch.rows for batch in table.batches(list(columns))]
    if not batches:
        raise EvidenceError("there are no rows")
    rows = pa.concat_tables(batches)
    return {name: source.values(rows) for name, source in sources.items()}, answers.values(rows)
