"""The command batch: the answers to all rows of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import tacit
from tacit.cli.answers import Answers, Asked
from tacit.cli.arguments import Columns, Json, Model, Only, Rows, check_folder, names, read_network, variables
from tacit.cli.kept import typed, typed_schema
from tacit.cli.lock import only_writer
from tacit.cli.output import note, show_json
from tacit.cli.parts import Parts
from tacit.cli.unused import note_unused
from tacit.errors import EvidenceError, TacitError
from tacit.network import Network
from tacit.rows import files
from tacit.rows.columns import choose
from tacit.rows.files import Batch, Table, is_parquet, open_table, write_table
from tacit.wanted import MostProbable, Posteriors, Wanted
from tacit.words import listed, plural


def batch(
    model: Model,
    table: Rows,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .csv or .parquet file to write.")],
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", metavar="VARIABLE", help="A variable to query. May be repeated."),
    ] = None,
    joint: Annotated[
        bool,
        typer.Option("--joint", help="The joint posterior of all query variables, in columns such as A.true,B.lo."),
    ] = False,
    mpe: Annotated[
        bool,
        typer.Option("--mpe", help="The states that are jointly most probable, in a column for each variable."),
    ] = False,
    only: Only = None,
    do: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIABLES", help="The variables that each row sets, not observes. Separated by commas."),
    ] = None,
    columns: Columns = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns of the table to copy to the output, with commas between."),
    ] = None,
    argmax: Annotated[
        bool,
        typer.Option(
            "--argmax", help="Add the most probable state, as QUERY.argmax; with --joint, of the combination."
        ),
    ] = False,
    log_evidence: Annotated[
        bool, typer.Option("--log-evidence", help="Add the logarithm of the probability of the evidence.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer a query for every row of a table.

    Columns named after variables are evidence: states, or likelihoods of the first of two states; an empty cell is no
    evidence. Columns A.lo, A.mid and A.hi hold one likelihood for each state of A. The output has a column for each
    state of the query, such as Q.true and Q.false, empty where the evidence has probability 0.

    With --mpe, the output has a column of states for each variable, named like it, and log_probability, the logarithm
    of the probability of these states and the evidence. What a row observes stays; what it leaves open is filled in.

    An empty line of a CSV file is skipped, unless the table has only one column: there it is a row with an empty cell.

    Columns that --keep copies from CSV to Parquet are integers, floats or booleans if all of their cells are; empty
    cells and NA are gaps there. All others stay text, such as codes with leading zeros. CSV to CSV is a plain copy.

    Memory does not grow with the table. After an interruption, the same command resumes where it stopped. Only one run
    at a time can write an output. Messages count rows from 1, without the header.

    \b
    Examples:
      tacit batch alarm.bif rows.parquet -q LVFAILURE -o answers.parquet
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --keep id --argmax
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --columns HISTORY,CVP
      tacit batch alarm.bif rows.csv -q LVFAILURE -q HYPOVOLEMIA --joint -o answers.csv
      tacit batch alarm.bif rows.csv --mpe -o explanations.csv
      tacit batch alarm.bif rows.csv --mpe --only LVFAILURE,HYPOVOLEMIA -o explanations.csv
    """
    started = time.perf_counter()
    output = output.resolve() if output.is_symlink() else output
    is_parquet(output)  # an error, now rather than at the end, if it is no table
    check_folder(output)
    net = read_network(model)
    wanted = _wanted(net, query, joint, mpe, only, argmax, log_evidence)
    source = open_table(table)
    if output.exists() and output.samefile(table):
        raise TacitError(f"{output}: the output would replace the table it is made from")
    asked = _asked(net, source, wanted, variables(net, do), names(columns), names(keep))
    answers = Answers(net, source, asked)
    with only_writer(output):
        parts = Parts(output, _settings(net, source, asked))
        _answer(source, answers, parts)
        rows, impossible = parts.rows, sum(part.column(len(asked.keep)).null_count for part in parts)
        _join(parts, _schema(source, answers, parts, output), output)
    seconds = time.perf_counter() - started
    if json:
        return show_json({"output": str(output), "rows": rows, "impossible": impossible, "seconds": seconds})
    print(f"{output}: {plural(rows, 'row')} in {seconds:.1f} s")
    if impossible:
        note(f"the evidence of {plural(impossible, 'row')} has probability 0; the answers are empty there")


def _wanted(
    net: Network,
    query: list[str] | None,
    joint: bool,
    mpe: bool,
    only: list[str] | None,
    argmax: bool,
    log_evidence: bool,
) -> Wanted:
    """What is asked of every row; wrong usage where options contradict each other."""
    if mpe:
        if query or joint or argmax:
            raise typer.BadParameter("--mpe finds states, and takes no -q, --joint or --argmax; see --only")
        return MostProbable(variables(net, only), log_evidence)
    if only:
        raise typer.BadParameter("--only names variables for --mpe; give --mpe as well")
    if not query:
        raise typer.BadParameter("there is no query; name a variable with -q, or use --mpe")
    found = variables(net, query)
    return Posteriors((found,) if joint else tuple((name,) for name in found), argmax, log_evidence)


def _asked(
    net: Network, table: Table, wanted: Wanted, do: tuple[str, ...], columns: list[str], keep: list[str]
) -> Asked:
    present = set(table.names)
    for name in keep:
        if name not in present:
            raise EvidenceError(f"{table.path} has no column {name!r} to keep; it has {listed(table.names, 20)}")
    chosen = list(dict.fromkeys([*columns, *do])) if columns else []
    sources = choose(net, table.names, chosen, but=[name for name in wanted.names if name not in do])
    for name in do:
        if name not in sources:
            raise EvidenceError(f"{table.path} has no column {name!r} to set; it has {listed(table.names, 20)}")
    asked = Asked(wanted, sources, do, keep)
    if not columns:
        note_unused(net, table.names, asked.columns, wanted.names)
    return asked


def _settings(net: Network, table: Table, asked: Asked) -> dict[str, object]:
    """What the parts of the answer depend on."""
    import pyarrow

    file = table.path.stat()
    return {
        "versions": [tacit.__version__, pyarrow.__version__],
        "model": net.to_dict(),
        "table": [str(table.path.resolve()), file.st_size, file.st_mtime_ns],
        "batches": [files.BATCH_ROWS, files.BLOCK_BYTES],
        "asked": [repr(asked.wanted), asked.columns, list(asked.sources), asked.do, asked.keep],
    }


def _answer(table: Table, answers: Answers, parts: Parts) -> None:
    """Answer all rows that were not answered before."""
    before = parts.done
    if before:
        note(f"resuming after {plural(parts.rows, 'row')} that were answered before")
        answers.go_on(parts.read(before - 1))
    try:
        with _progress(table) as show:
            for number, rows in enumerate(table.batches(answers.asked.columns)):
                if number >= before:
                    parts.add(answers.part(rows))
                show(rows)
    except KeyboardInterrupt:
        note(f"{plural(parts.rows, 'row')} are answered; the same command resumes from there")
        raise
    except TacitError:  # the table must be repaired, so that there is nothing to go on with
        parts.remove()
        raise


def _schema(table: Table, answers: Answers, parts: Parts, output: Path) -> Any:
    """The columns of the output. What is copied from text to a file with types gets the type that its cells have."""
    if is_parquet(table.path) or not is_parquet(output):
        return answers.schema
    return typed_schema(answers.schema, answers.asked.keep, parts)


def _join(parts: Parts, schema: Any, output: Path) -> None:
    """Put all parts in place as one file; one that is not whole can only be left in the folder of the parts."""
    joined = parts.folder / output.name
    write_table(joined, schema, (typed(part, schema) for part in parts))
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
