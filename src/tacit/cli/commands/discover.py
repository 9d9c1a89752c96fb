"""The command discover: a network from the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import tacit
from tacit.base.errors import EvidenceError
from tacit.base.text import counted, plural
from tacit.cli.shared.arguments import Json, NetworkOutput, Rows, check_output, options_of
from tacit.cli.shared.output import aligned, show_json
from tacit.cli.shared.rows import open_rows
from tacit.evidence.frames import decoded
from tacit.evidence.states import MISSING_WORDS
from tacit.evidence.tables.csv_parquet import FileTable

OPTIONS = ("score", "search", "max_parents", "max_cost", "bootstrap", "seed")  # of `tacit.discover`, as they are
ARROW = "->"


@dataclass(frozen=True)
class DiscoverJob:
    """The arguments and options of `tacit discover`."""

    table: Rows
    output: NetworkOutput = Path("discovered.json")
    score: Annotated[str, typer.Option(help="What is to be large: bic, aic, bdeu or k2.")] = "bic"
    search: Annotated[str, typer.Option(help="How to search: tabu, orders, exact (up to 16 columns) or tree.")] = "tabu"
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="'A->B'", help="An edge that must not be there, in quotation marks. May be repeated."),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="'A->B'", help="An edge that must be there, in quotation marks. May be repeated."),
    ] = None
    max_parents: Annotated[int | None, typer.Option(help="The most parents that a variable may have.")] = None
    max_cost: Annotated[
        float | None, typer.Option(help="The most multiply-adds per row that all marginals may take.")
    ] = None
    bootstrap: Annotated[
        int, typer.Option(metavar="SAMPLES", help="Repeat the search on so many samples of the rows: how sure is it?")
    ] = 0
    seed: Annotated[int, typer.Option(help="The seed of the samples.")] = 0
    json: Json = False


@options_of(DiscoverJob)
def discover(job: DiscoverJob) -> None:
    """Find a network in a table of rows: its edges, and its tables.

    Every column becomes a variable, and the values that occur in it become its states. The rows must be complete, and
    the table must fit into memory. Cells of a text file are text, numbers too: sort measurements into groups before.

    An arrow is no proof of a cause. Edges whose direction the data cannot tell are listed with a line instead of an
    arrow; the network that is written has them in one of the directions that are possible.

    \b
    Examples:
      tacit discover patients.csv -o patients.bif
      tacit discover patients.csv --forbid "recovery->treatment" --require "size->treatment"
      tacit discover patients.parquet --search exact --bootstrap 100
    """
    check_output(job.output)
    forbid, require = _edges("--forbid", job.forbid), _edges("--require", job.require)
    with open_rows(job.table) as table:
        rows = _in_memory(table)
    options = {name: getattr(job, name) for name in OPTIONS}
    found = tacit.discover(rows, forbid=forbid, require=require, **options)
    tacit.io.write(found.network, job.output)
    if job.json:
        return show_json(_results(job, found))
    size = f"{plural(len(found.network.edges), 'edge')} among {plural(len(found.network), 'variable')}"
    print(f"{job.output}: {size} from {counted(found.rows)}, {found.seconds:.1f} s")
    print(f"  {job.score} score  {found.score:,.2f}")
    for title, sign, pairs in (
        ("directions that the data or the constraints decide", ARROW, found.arrows.directed),
        ("directions that the data leave open", "--", found.arrows.undirected),
    ):
        if pairs:
            print(f"\n{title}:")
            print(aligned([(f"  {a} {sign} {b}", *_share(found, a, b, sign)) for a, b in pairs]))


def _share(found: tacit.learn.Discovery, a: str, b: str, sign: str) -> tuple[str, ...]:
    """The share of the bootstrap samples with an edge, in either direction where that is open."""
    if found.strength is None:
        return ()
    share = found.strength.get((a, b), 0.0)
    if sign == ARROW:
        return (f"in {share:.0%} of the samples",)
    return (f"in {share + found.strength.get((b, a), 0.0):.0%} of the samples",)


def _results(job: DiscoverJob, found: tacit.learn.Discovery) -> dict[str, Any]:
    strength = None if found.strength is None else [[*edge, share] for edge, share in found.strength.items()]
    return {
        "output": str(job.output),
        "rows": found.rows,
        "score": found.score,
        "edges": found.network.edges,
        "directed": found.arrows.directed,
        "undirected": found.arrows.undirected,
        "strength": strength,
        "seconds": found.seconds,
    }


def _edges(option: str, texts: list[str] | None) -> list[tuple[str, str]]:
    """Edges (parent, child) from texts such as A->B.

    >>> _edges("--forbid", ["A->B", "B -> C"])
    [('A', 'B'), ('B', 'C')]
    """
    pairs = []
    for text in texts or ():
        parent, arrow, child = (part.strip() for part in text.partition(ARROW))
        if not (parent and arrow and child):
            hint = " (in quotation marks, or the shell takes > for itself)"
            raise typer.BadParameter(f"{option} is {text!r}, expected an edge such as 'A->B'{hint}")
        pairs.append((parent, child))
    return pairs


def _in_memory(table: FileTable) -> Any:
    """All rows of a file as a pyarrow table, the cells of text without spaces around them; an error at a gap."""
    import pyarrow as pa

    batches = [batch.rows for batch in table.batches(table.names)]
    if not batches:
        raise EvidenceError(f"{table.name}: there are no rows")
    rows = pa.concat_tables(batches)
    return pa.table({name: _complete(table, name, decoded(rows[name])) for name in rows.column_names})


def _complete(table: FileTable, name: str, column: Any) -> Any:
    """A column in which every cell has a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    where, remedy = f"{table.name}: column {name!r}", "discover needs complete rows, so leave out the others"
    if column.null_count:
        raise EvidenceError(f"{where}, row {pc.index(column.is_null(), True).as_py() + 1:,}: no value; {remedy}")
    if not isinstance(column, pa.DictionaryArray):
        return column
    words = [word.strip() for word in column.dictionary.to_pylist()]
    indices = column.indices.to_numpy()
    gaps = np.array([word.lower() in MISSING_WORDS for word in words], dtype=bool)[indices]
    if gaps.any():
        row = int(gaps.argmax())
        problem = f"{words[indices[row]]!r}, which stands for no value" if words[indices[row]] else "no value"
        raise EvidenceError(f"{where}, row {row + 1:,}: {problem}; {remedy}")
    return pa.array(words, pa.string()).take(column.indices)
