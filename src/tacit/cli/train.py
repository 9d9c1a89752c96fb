"""The command train: learn the numbers of a network from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import tacit
from tacit.cli.arguments import Columns, Json, Model, Query, Rows, check_output, names, read_network
from tacit.cli.models import learned
from tacit.cli.output import show_json
from tacit.cli.unused import note_unused
from tacit.errors import EvidenceError, TacitError
from tacit.evidence import read
from tacit.network import Network
from tacit.rows.columns import Source, choose, columns_of, find
from tacit.rows.files import Table, open_table
from tacit.rows.places import in_file
from tacit.words import listed, plural

RESULTS = ("loss", "hard_loss", "validation_loss", "optimizer", "seconds", "interrupted")  # of a Fit


def train(
    model: Model,
    table: Rows,
    query: Query,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of answers; the one named like the query, if left out."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The network to write.")] = Path(
        "trained.json"
    ),
    columns: Columns = None,
    learn: Annotated[
        list[str] | None,
        typer.Option(metavar="NODES", help="Nodes whose numbers are not known but a start, or 'all' (0s and 1s stay)."),
    ] = None,
    loss: Annotated[Literal["mse", "cross_entropy"], typer.Option(help="Squared error, or cross entropy.")] = "mse",
    optimizer: Annotated[Literal["auto", "lm", "lbfgs", "adam"], typer.Option(help="By default, what suits.")] = "auto",
    steps: Annotated[int | None, typer.Option(help="Steps of every restart; by optimizer, if left out.")] = None,
    restarts: Annotated[int | None, typer.Option(help="Random starts; by optimizer, if left out.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.")] = 0,
    validation: Annotated[float | None, typer.Option(help="A share of the rows to hold out, such as 0.2.")] = None,
    gamma: Annotated[
        float | None, typer.Option(help="The slope of testing nodes; each node's own, if left out.")
    ] = None,
    harden: Annotated[bool, typer.Option("--harden", help="End with hard tests.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Saved while training; an interrupted run resumes from it."),
    ] = None,
    json: Json = False,
) -> None:
    """Learn what a network leaves open from a table.

    The table holds evidence, as for "tacit batch", and answers: the label column holds states of the query, or
    probabilities of its first state; or columns LABEL.true and LABEL.false hold one probability for each state.

    \b
    Examples:
      tacit train layer.json rows.csv -q Q --label y --validation 0.2
      tacit train asia.bif rows.csv -q lung --learn all --loss cross_entropy -o asia.json
    """
    check_output(output)
    net, source = with_starts(read_network(model), names(learn)), open_table(table)
    answers = find(net.variable(query), set(source.names), label)
    if answers is None:
        raise EvidenceError(f"{table} has no column {label or query!r}; it has {listed(source.names, 20)}; see --label")
    chosen = choose(net, source.names, names(columns), but=[query, *answers.columns])
    answered = set(answers.columns)
    leaks = [name for name in chosen if name == query or not answered.isdisjoint(chosen[name].columns)]
    if leaks:
        raise EvidenceError(f"{leaks[0]!r} is the answer to be learned; it cannot be evidence, too (--columns)")
    if not columns:
        note_unused(net, source.names, columns_of([*chosen.values(), answers]), [query])
    if not learn and not learned(net):
        raise TacitError(f"all numbers of {model} are known: name the nodes to learn with --learn, or --learn all")
    try:
        X, y = _read(source, chosen, answers)
        tac = tacit.compile(net, query, list(X), read(X, [net.variable(name) for name in X]).certain)
        found = tacit.fit(
            tac, X, y, loss, optimizer, steps, restarts, seed, validation,
            gamma=gamma, harden=harden, checkpoint=checkpoint,
        )  # fmt: skip
    except EvidenceError as error:
        raise in_file(error, table) from None
    tacit.io.write(found.network, output)
    if json:
        return show_json({"output": str(output), "rows": len(y)} | {name: getattr(found, name) for name in RESULTS})
    held_out = "" if found.validation_loss is None else f", validation loss {found.validation_loss:.3g}"
    hard = "" if found.hard_loss == found.loss else f", loss with hard tests {found.hard_loss:.3g}"
    print(f"{output}: loss {found.loss:.3g}{hard}{held_out}")
    print(f"{plural(len(y), 'row')}, {found.optimizer}, {found.seconds:.1f} s")


def with_starts(net: Network, nodes: list[str]) -> Network:
    """The network with the numbers of some nodes, or of all, as a start for learning."""
    start = net.learnable()
    return start if nodes == ["all"] else net.with_cpts({name: start.cpt(name) for name in nodes})


def _read(table: Table, sources: dict[str, Source], answers: Source) -> tuple[dict[str, Any], Any]:
    """Evidence and answers of all rows."""
    import pyarrow as pa

    wanted = dict.fromkeys(columns_of([*sources.values(), answers]))
    batches = [batch.rows for batch in table.batches(list(wanted))]
    if not batches:
        raise EvidenceError("there are no rows")
    rows = pa.concat_tables(batches)
    return {name: source.values(rows) for name, source in sources.items()}, answers.values(rows)
