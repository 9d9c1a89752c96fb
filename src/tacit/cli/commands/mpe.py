"""Commands that find states for all variables at once: mpe and sample."""

from __future__ import annotations

import csv
import sys
from math import exp
from pathlib import Path
from typing import Annotated

import typer

from tacit.base.text import plural
from tacit.base.version import package
from tacit.cli.shared.arguments import Do, Evidence, Json, Model, Only, check_folder, variables
from tacit.cli.shared.output import aligned, asked, heading, show_json, together
from tacit.cli.shared.row import Row
from tacit.evidence.tables.columns import written
from tacit.evidence.tables.csv_parquet import write_table
from tacit.evidence.tables.suffixes import storage_of
from tacit.model.factor_graph import FactorGraph


def mpe(model: Model, evidence: Evidence = None, do: Do = None, only: Only = None, json: Json = False) -> None:
    """Find the most probable states of all variables together.

    This is the most probable explanation of the evidence. The most probable state of each variable by itself, which
    "tacit query" shows, may be another. What is observed keeps its state. With --only, the others are summed out, which
    can be much more work.

    \b
    Examples:
      tacit mpe asia.bif -e xray=yes -e dysp=yes
      tacit mpe asia.bif -e xray=yes --only lung,bronc
      tacit mpe asia.bif --do smoke=yes --json
    """
    row = Row(model, evidence, do)
    names = variables(row.net, only)
    tac = row.compile(names or None)
    log_evidence = row.log_evidence(tac, "explanation")
    best = tac.map(row.values(tac)) if names else tac.mpe(row.values(tac))
    states = {name: labels.tolist()[0] for name, labels in best.states.items()}
    log_probability = float(best.log_probability[0])
    if json:
        return show_json({
            "states": states,
            "observed": [*row.hard, *row.numbers],
            "set": list(row.set),
            "log_probability": log_probability,
            "log_evidence": log_evidence,
        })  # fmt: skip
    heading(asked(f"most probable states of {together(names)}" if names else "most probable states", row.given))
    print(aligned([(name, str(state), _mark(row, name)) for name, state in states.items()]))
    print(f"probability of these states: {exp(log_probability - log_evidence):.6g}")
    if isinstance(row.net, FactorGraph):
        what = "log of the sum of products of factors" if names else "log of the product of all factors"
        return print(f"{what}: {log_probability:.6g}")
    print(f"log-{row.measure} of these states{' and the evidence' if evidence else ''}: {log_probability:.6g}")


def sample(
    model: Model,
    evidence: Evidence = None,
    do: Do = None,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many samples.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same samples.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .csv, .tsv, .csv.gz, .tsv.gz or .parquet file; else the terminal."
        ),
    ] = None,
) -> None:
    """Draw samples of all variables.

    The output is a table with a row for each sample and a column for each variable, as "tacit batch" and "tacit train"
    take it. The samples are exact and independent, however improbable the evidence is.

    \b
    Examples:
      tacit sample asia.bif
      tacit sample asia.bif -e xray=yes -n 1000 --seed 1 -o samples.csv
      tacit sample asia.bif --do smoke=yes -n 1000000 -o samples.parquet
    """
    if output is not None:
        storage_of(output)  # an error, now rather than at the end, if it is no table
        check_folder(output)
    row = Row(model, evidence, do)
    tac = row.compile(None)
    row.ask(tac, "sample")
    columns = {name: labels[0] for name, labels in tac.sample(row.values(tac), n, seed).items()}
    if output is None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        return writer.writerows(zip(*columns.values(), strict=True))
    pyarrow = package("pyarrow", "cli", "a table in a file")
    variables = {name: row.net.variable(row.net.named(name)) for name in columns}
    table = pyarrow.table({name: written(variables[name], labels) for name, labels in columns.items()})
    write_table(output, table.schema, [table])
    print(f"{output}: {plural(n, 'sample')} of {plural(len(columns), 'variable')}")


def _mark(row: Row, name: str) -> str:
    """The reason for a state that was given, not found."""
    if name in row.set:
        return "set"
    if name in row.hard or name in row.numbers:
        return "observed"
    if row.net.variable(row.net.named(name)).continuous:
        return "mean"
    return "" if row.observed.get(name) is None else "soft evidence"
