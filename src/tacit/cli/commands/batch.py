"""The command batch: the answers to all rows of a table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import plural
from tacit.cli.shared import arguments, completion
from tacit.cli.shared.output import note, show_json
from tacit.cli.shared.rows import STANDARD_INPUT, open_rows
from tacit.evidence.column import Evidence
from tacit.evidence.column_names import listed_columns
from tacit.evidence.tables import csv_parquet
from tacit.evidence.tables.columns import Source, TableReader, choose, columns_of
from tacit.evidence.tables.csv_parquet import FileTable, TableBatch, repeated
from tacit.evidence.tables.messages import in_file
from tacit.evidence.tables.suffixes import storage_of
from tacit.query.network import Network
from tacit.query.tac import TAC, compile

if TYPE_CHECKING:  # loaded by the command, since they load pyarrow
    from tacit.cli.shared.batch_files import ResultFiles
    from tacit.query.answer_columns import AnswerColumns


@dataclass(frozen=True)
class BatchJob:
    """The arguments and options of `tacit batch`."""

    model: arguments.Model
    table: arguments.Rows
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The table to write, with such a suffix.")
    ]
    query: Annotated[list[str] | None, arguments.SEVERAL_QUERIES] = None
    joint: Annotated[
        bool,
        typer.Option("--joint", help="The joint posterior of all query variables, in columns such as A.true,B.lo."),
    ] = False
    mpe: Annotated[
        bool, typer.Option("--mpe", help="The states that are jointly most probable, in a column for each variable.")
    ] = False
    only: arguments.Only = None
    do: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIABLES",
            help="The variables that each row sets, not observes. Separated by commas.",
            autocompletion=completion.lists,
        ),
    ] = None
    columns: arguments.Columns = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns of the table to copy to the output, with commas between, such as an identifier: it has none "
            "otherwise.",
        ),
    ] = None
    argmax: Annotated[
        bool,
        typer.Option(
            "--argmax", help="Add the most probable state, as QUERY.argmax; with --joint, of the combination."
        ),
    ] = False
    log_evidence: Annotated[
        bool, typer.Option("--log-evidence", help="Add the logarithm of the probability of the evidence.")
    ] = False
    credible: arguments.Credible = None
    draws: arguments.Draws = None
    json: arguments.Json = False


@arguments.options_of(BatchJob)
def batch(job: BatchJob) -> None:
    """Answer a query for every row of a table.

    Columns named after variables are evidence: states, or likelihoods of the first of two states; an empty cell is no
    evidence. Columns A.lo, A.mid and A.hi hold one likelihood for each state of A, and those of continuous variables
    numbers. The output has a column for each state of the query, such as Q.true and Q.false, empty where the evidence
    has probability 0; of a continuous query Q.mean, Q.sd, Q.5%, Q.50% and Q.95%.

    With --credible and --draws, columns such as Q.true are means under the networks of an ensemble, and Q.true.low and
    Q.true.high the ends of intervals of this level.

    With --mpe, the output has a column of states for each variable, named like it, and log_probability, the logarithm
    of the probability of these states and the evidence. What a row observes stays; what it leaves open is filled in.

    Tables are text with commas (.csv) or tabs (.tsv), plain or gzipped, or Parquet; the suffix decides. An
    empty line of text is skipped, unless the table has only one column: there it is a row with an empty cell.

    Columns that --keep copies from text to Parquet are integers, floats or booleans if all of their cells are; empty
    cells and NA are gaps there. All others stay text, such as codes with leading zeros. Text to text is a plain copy.

    Memory does not grow with the table. After an interruption, the same command resumes where it stopped, unless it
    reads standard input. Only one run at a time can write an output. Messages count rows from 1, without the header.

    \b
    Examples:
      tacit batch alarm.bif rows.parquet -q LVFAILURE -o answers.parquet
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --keep id --argmax
      tacit batch alarm.bif rows.csv -q LVFAILURE -o answers.csv --columns HISTORY,CVP
      tacit batch alarm.bif rows.csv -q LVFAILURE -q HYPOVOLEMIA --joint -o answers.csv
      tacit batch alarm.bif rows.tsv --mpe -o explanations.csv
      zcat rows.csv.gz | tacit batch alarm.bif - -q LVFAILURE -o answers.csv.gz
      tacit batch alarm.bif rows.csv --mpe --only LVFAILURE,HYPOVOLEMIA -o explanations.csv
      tacit batch found.json rows.csv -q lung --credible 0.9 --draws draws.npz -o answers.csv
    """
    started = time.perf_counter()
    output = job.output.resolve() if job.output.is_symlink() else job.output
    storage_of(output)  # an error, now rather than at the end, if it is no table
    arguments.check_folder(output)
    net = arguments.read_network(job.model)
    wanted = _wanted(net, job)
    with open_rows(job.table) as table:
        if output.exists() and output.samefile(table.path):
            raise TacitError(f"{output}: the output would replace the table it is made from")
        rows, impossible = _written(Answers(net, table, _planned(net, table, wanted, job)), output)
    seconds = time.perf_counter() - started
    if job.json:
        return show_json({"output": str(output), "rows": rows, "impossible": impossible, "seconds": seconds})
    print(f"{output}: {plural(rows, 'row')} in {seconds:.1f} s")
    if impossible:
        note(f"the evidence of {plural(impossible, 'row')} has probability 0; the answers are empty there")


def _written(answers: Answers, output: Path) -> tuple[int, int]:
    """Write the answers to all rows; how many rows there are, and how many of them are impossible."""
    from tacit.cli.shared.batch_files import ResultFiles, only_writer, typed_schema

    table, keep, schema = answers.table, answers.plan.keep, answers.schema
    with only_writer(output):
        parts = ResultFiles(output, _settings(answers.net, table, answers.plan))
        _answer(table, answers, parts)
        rows, impossible = parts.rows, sum(part.column(len(keep)).null_count for part in parts)
        if storage_of(output).is_parquet and not storage_of(table.path).is_parquet:  # text gets the types of its cells
            schema = typed_schema(schema, keep, parts)
        parts.join(output, schema)
    return rows, impossible


@dataclass(frozen=True)
class BatchPlan:
    """The question about every row, the columns that it observes or sets, and the columns to copy."""

    wanted: AnswerColumns
    sources: dict[str, Source]
    do: tuple[str, ...]
    keep: list[str]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are needed."""
        return list(dict.fromkeys([*columns_of(self.sources.values()), *self.keep]))


class Answers:
    """Turns batches of a table into tables of answers.

    Variables that have had a state in every row so far are indexed, which is cheap, until the first batch in which one
    has none. The indexed variables are noted in the answers (`hard`), and a computation that is resumed begins with
    them: otherwise its last digits might differ.
    """

    def __init__(self, net: Network, table: FileTable, plan: BatchPlan) -> None:
        import pyarrow as pa

        self.net, self.table, self.plan = net, table, plan
        self._reader = TableReader(table, plan.sources, net)
        fields = [*zip(plan.keep, table.types(plan.keep), strict=True), *plan.wanted.fields(net)]
        for name in repeated([name for name, _ in fields])[:1]:
            raise TacitError(f"the output would have two columns {name!r}; do not keep the one of the table")
        self.schema = pa.schema(fields)
        self._tacs: list[TAC] = []

    def resume(self, last: Any) -> None:
        """Continue after a part that was answered before."""
        self._tacs = self._compile(json.loads(last.schema.metadata[b"hard"]))

    def part(self, batch: TableBatch) -> Any:
        """The answers to some rows."""
        import pyarrow as pa

        evidence = self._reader.evidence(batch)
        for name in self.plan.do:
            self._require_states(evidence, name, batch.first)
        tacs = self._compiled_for(evidence.fully_observed)
        columns = [batch.rows.column(name).cast(self.schema.field(name).type) for name in self.plan.keep]
        columns += self.plan.wanted.columns(self.net, tacs, evidence)
        return pa.Table.from_arrays(columns, schema=self.schema.with_metadata({"hard": json.dumps(tacs[0].hard)}))

    def _require_states(self, evidence: Evidence, name: str, first: int) -> None:
        """Refuse evidence in which a variable is not set to a state in every row."""
        column = evidence.columns.get(name)
        unset = np.array([0]) if column is None else np.flatnonzero(~column.observed)
        if evidence.rows and len(unset):
            problem, subject = "a state is needed in every row (--do)", f"intervention on {name!r}"
            error = EvidenceError(problem, variable=name, subject=subject, row=int(unset[0]))
            raise in_file(error, self.table.name, first)

    def _compiled_for(self, certain: list[str]) -> list[TAC]:
        if not self._tacs:
            self._tacs = self._compile([name for name in certain if name not in self.plan.do])
        elif missing := set(self._tacs[0].hard).difference(certain):
            self._tacs = self._compile([name for name in self._tacs[0].hard if name not in missing])
        return self._tacs

    def _compile(self, hard: list[str]) -> list[TAC]:
        do = self.plan.do
        observed = [name for name in self.plan.sources if name not in do]
        return [compile(self.net, query, observed, hard, do) for query in self.plan.wanted.queries]


def _wanted(net: Network, job: BatchJob) -> AnswerColumns:
    """The question about every row; wrong usage where options contradict each other."""
    from tacit.query.answer_columns import CredibleColumns, MostProbable, PosteriorColumns

    ensemble = arguments.read_draws(job.credible, job.draws)
    if job.mpe:
        if job.query or job.joint or job.argmax or ensemble:
            raise typer.BadParameter("--mpe finds states, and takes no -q, --joint, --argmax or --credible; see --only")
        return MostProbable(arguments.variables(net, job.only), job.log_evidence)
    if job.only:
        raise typer.BadParameter("--only names variables for --mpe; give --mpe as well")
    if not job.query:
        raise typer.BadParameter("there is no query; name a variable with -q, or use --mpe")
    queries = arguments.variables(net, job.query)
    groups = (queries,) if job.joint else tuple((name,) for name in queries)
    if ensemble is not None and job.credible is not None and job.draws is not None:
        if job.argmax:
            raise typer.BadParameter("--credible is about probabilities, and takes no --argmax")
        file = job.draws.stat()
        source = f"{job.draws.resolve()}, {file.st_size} bytes, {file.st_mtime_ns}"
        return CredibleColumns(groups, ensemble, job.credible, source, job.log_evidence)
    return PosteriorColumns(groups, job.argmax, job.log_evidence)


def _planned(net: Network, table: FileTable, wanted: AnswerColumns, job: BatchJob) -> BatchPlan:
    do, columns, keep = arguments.variables(net, job.do), arguments.names(job.columns), arguments.names(job.keep)
    _require_columns(table, keep, "to keep")
    chosen = list(dict.fromkeys([*columns, *do])) if columns else []
    sources = choose(net, table.names, chosen, but=[name for name in wanted.names if name not in do])
    _require_columns(table, do, "to set", sources)
    plan = BatchPlan(wanted, sources, do, keep)
    if not columns:
        arguments.note_unused(net, table.names, plan.columns, wanted.names)
    return plan


def _require_columns(table: FileTable, needed: Iterable[str], why: str, present: Collection[str] | None = None) -> None:
    """Refuse a table without a column that is needed; `present` are all of its columns, if left out."""
    columns = set(table.names if present is None else present)
    for name in needed:
        if name not in columns:
            raise EvidenceError(f"{table.name} has no column {name!r} {why}; it has {listed_columns(table.names, 20)}")


def _settings(net: Network, table: FileTable, plan: BatchPlan) -> dict[str, object]:
    """All that the parts of the answer depend on."""
    import pyarrow

    file = table.path.stat()
    return {
        "versions": [tacit.__version__, pyarrow.__version__],
        "model": net.to_dict(),
        "table": [str(table.path.resolve()), file.st_size, file.st_mtime_ns],
        "batches": [csv_parquet.BATCH_ROWS, csv_parquet.BLOCK_BYTES],
        "asked": [repr(plan.wanted), plan.columns, list(plan.sources), plan.do, plan.keep],
    }


def _answer(table: FileTable, answers: Answers, parts: ResultFiles) -> None:
    """Answer all rows that were not answered before."""
    before = parts.done
    if before:
        note(f"resuming after {plural(parts.rows, 'row')} that were answered before")
        answers.resume(parts.read(before - 1))
    try:
        with _progress(table) as show:
            for number, rows in enumerate(table.batches(answers.plan.columns)):
                if number >= before:
                    parts.add(answers.part(rows))
                show(rows)
    except KeyboardInterrupt:
        if table.name == STANDARD_INPUT:  # of which the rows are gone
            parts.remove()
        else:
            note(f"{plural(parts.rows, 'row')} are answered; the same command resumes from there")
        raise
    except TacitError:  # the table must be repaired, so that there is nothing to go on with
        parts.remove()
        raise


@contextmanager
def _progress(table: FileTable) -> Iterator[Callable[[TableBatch], None]]:
    """A bar on the terminal, if there is one."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown = ("[progress.percentage]{task.percentage:>3.0f}%", "{task.completed:,} rows")
    columns = (BarColumn(), *map(TextColumn, shown), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=table.rows)
        yield lambda batch: bar.update(task, completed=batch.stop)
