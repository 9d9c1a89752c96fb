"""The command batch: the answers to all rows of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli import tables
from tacit.cli.answers import Answers, Asked
from tacit.cli.arguments import Columns, Json, Model, Query, Rows, names
from tacit.cli.columns import choose, note_unused
from tacit.cli.lock import only_writer
from tacit.cli.output import listed, note, show_json
from tacit.cli.parts import Parts
from tacit.cli.tables import Batch, Table, is_parquet, open_table, write_table
from tacit.errors import EvidenceError, TacitError
from tacit.network import Network
from tacit.words import plural


def batch(
    model: Model,
    table: Rows,
    query: Query,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .csv or .parquet file to write.")],
    columns: Columns = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns of the table to copy to the output, with commas between."),
    ] = None,
    argmax: Annotated[bool, typer.Option("--argmax", help="Add the most probable state, as QUERY.argmax.")] = False,
    log_evidence: Annotated[
        bool, typer.Option("--log-evidence", help="Add the logarithm of the probability of the evidence.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer a query for every row of a table.

    Columns named like variables are evidence: states, or likelihoods of the first of two states; an empty cell is no
    evidence. Columns A.lo, A.mid and A.hi hold one likelihood for each state of A. The output has a column for each
    state of the query, such as Q.true and Q.false, empty where the evidence has probability 0.

    An empty line of a CSV file is skipped, unless the table has only one column: there it is a row with an empty cell.

    Memory does not grow with the table. After an interruption, the same command goes on where it was. Only one run at a
    time can write an output. Messages count rows from 1, without the header.

    \b
    Examples:
      tacit batch alarm.bif rows.parquet -q LVFAILURE -o answers.parquet
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --keep id --argmax
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --columns HISTORY,CVP
    """
    started = time.perf_counter()
    output = output.resolve() if output.is_symlink() else output
    is_parquet(output)  # an error, now rather than at the end, if it is no table
    net, source = tacit.io.read(model), open_table(table)
    if output.exists() and output.samefile(table):
        raise TacitError(f"{output}: the output would replace the table it is made from")
    asked = _asked(net, source, query, names(columns), names(keep), argmax, log_evidence)
    answers = Answers(net, source, asked)
    with only_writer(output):
        parts = Parts(output, _settings(net, source, asked))
        _answer(source, answers, parts)
        rows, impossible = parts.rows, sum(part.column(len(asked.keep)).null_count for part in parts)
        _join(parts, answers, output)
    seconds = time.perf_counter() - started
    if json:
        return show_json({"output": str(output), "rows": rows, "impossible": impossible, "seconds": seconds})
    print(f"{output}: {plural(rows, 'row')} in {seconds:.1f} s")
    if impossible:
        note(f"the evidence of {plural(impossible, 'row')} has probability 0; the answers are empty there")


def _asked(
    net: Network, table: Table, query: str, columns: list[str], keep: list[str], argmax: bool, log_evidence: bool
) -> Asked:
    present = set(table.names)
    for name in keep:
        if name not in present:
            raise EvidenceError(f"{table.path} has no column {name!r} to keep; it has {listed(table.names, 20)}")
    asked = Asked(query, choose(net, table.names, columns, but=[query]), keep, log_evidence, argmax)
    if not columns:
        note_unused(net, table.names, asked.columns, query)
    return asked


def _settings(net: Network, table: Table, asked: Asked) -> dict[str, object]:
    """What the parts of the answer depend on."""
    import pyarrow

    file = table.path.stat()
    return {
        "versions": [tacit.__version__, pyarrow.__version__],
        "model": net.to_dict(),
        "table": [str(table.path.resolve()), file.st_size, file.st_mtime_ns],
        "batches": [tables.BATCH_ROWS, tables.BLOCK_BYTES],
        "asked": [asked.query, asked.columns, list(asked.sources), asked.keep, asked.argmax, asked.log_evidence],
    }


def _answer(table: Table, answers: Answers, parts: Parts) -> None:
    """Answer all rows that were not answered before."""
    before = parts.done
    if before:
        note(f"going on after {plural(parts.rows, 'row')}, which were answered before")
        answers.go_on(parts.read(before - 1))
    try:
        with _progress(table) as show:
            for number, rows in enumerate(table.batches(answers.asked.columns)):
                if number >= before:
                    parts.add(answers.part(rows))
                show(rows)
    except KeyboardInterrupt:
        note(f"{plural(parts.rows, 'row')} are answered; the same command goes on from there")
        raise
    except TacitError:  # the table must be repaired, so that there is nothing to go on with
        parts.remove()
        raise


def _join(parts: Parts, answers: Answers, output: Path) -> None:
    """Put all parts in place as one file; one that is not whole can only be left in the folder of the parts."""
    joined = parts.folder / output.name
    write_table(joined, answers.schema, (part.replace_schema_metadata() for part in parts))
    joined.replace(output)
    parts.remove()


@contextmanager
def _progress(table: Table) -> Iterator[Callable[[Batch], None]]:
    """A bar on the terminal, if there is one."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown = ("[progress.percentage]{task.percentage:>3.0f}%", "{task.completed:,} rows")
    columns = (BarColumn(), *map(TextColumn, shown), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=table.rows)
        yield lambda batch: bar.update(task, completed=batch.stop)
