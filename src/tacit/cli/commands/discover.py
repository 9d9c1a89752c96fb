"""The command discover: a network from the rows of a table."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import typer

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import counted, plural
from tacit.cli.shared.arguments import (
    CaptionsFile,
    Json,
    Rows,
    check_folder,
    check_output,
    check_page,
    names,
    options_of,
    stem,
)
from tacit.cli.shared.output import aligned, note, show_json
from tacit.cli.shared.rows import open_rows
from tacit.evidence.numbers import as_number
from tacit.evidence.tables.csv_parquet import FileTable, with_columns
from tacit.model.elements.variable import similar
from tacit.views.drawing import SUFFIXES

OPTIONS = (
    "score",
    "search",
    "max_parents",
    "max_cost",
    "weights",
    "bootstrap",
    "seed",
    "checkpoint",
)  # of `tacit.discover`, as they are
ARROW = "->"
DEFAULT_OUTPUT = Path("discovered.json")
NetworkOutputOrNone = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=f"The network to write; {DEFAULT_OUTPUT} if left out."),
]


@dataclass(frozen=True)
class DiscoverJob:
    """The arguments and options of `tacit discover`."""

    table: Rows
    output: NetworkOutputOrNone = None
    score: Annotated[str, typer.Option(help="What is to be large: bic, aic, bdeu or k2.")] = "bic"
    search: Annotated[str, typer.Option(help="How to search: tabu, orders, exact (up to 16 columns), tree or pc.")] = (
        "tabu"
    )
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="The columns to take, separated by commas. All, if left out."),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="The columns to leave out, separated by commas."),
    ] = None
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOW",
            help="The intervals of columns of numbers: quantile, equal, or how many; or of one column, as in "
            "age=0,18,65,120 or age=equal, which may be repeated.",
        ),
    ] = None
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column that says how many rows each row counts as.")
    ] = None
    tiers: Annotated[
        str | None,
        typer.Option(
            metavar="'A,B<C'", help="Groups of columns, earliest first: no edge leads from a later to an earlier one."
        ),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="'A->B'", help="An edge that must not be there, in quotation marks. May be repeated."),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="'A->B'", help="An edge that must be there, in quotation marks. May be repeated."),
    ] = None
    edges: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'A->B,A->C'",
            help="All edges, in quotation marks: nothing is searched for, and the tables of these are estimated. "
            "Columns that they do not name are left out. May be repeated.",
        ),
    ] = None
    max_parents: Annotated[int | None, typer.Option(help="The most parents that a variable may have.")] = None
    max_cost: Annotated[
        float | None, typer.Option(help="The most multiply-adds per row that all marginals may take.")
    ] = None
    bootstrap: Annotated[
        int, typer.Option(metavar="SAMPLES", help="Repeat the search on so many samples of the rows: how sure is it?")
    ] = 0
    seed: Annotated[int, typer.Option(help="The seed of the samples.")] = 0
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file to write on the way, and to resume from.")
    ] = None
    densities: Annotated[
        bool,
        typer.Option(
            "--densities",
            help="Keep columns of numbers that cause nothing as numbers, with a density, where that describes them "
            "better than intervals do. Such a network is written as .json.",
        ),
    ] = False
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write an explorer page (.html): doubtful edges are dashed, undirected ones have no tip.",
        ),
    ] = None
    draw: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the network, with the same marks, as .svg, .png or .pdf."),
    ] = None
    query: Annotated[
        str | None, typer.Option("--query", "-q", metavar="COLUMN", help="What the page asks about first.")
    ] = None
    captions: CaptionsFile = None
    json: Json = False


@options_of(DiscoverJob)
def discover(job: DiscoverJob) -> None:
    """Find a network in a table of rows: its edges, and its tables.

    Every column becomes a variable: the values that occur in it are its states, and numbers are sorted into intervals
    if they are fractions, or more than 12 different ones. Empty cells, and NA, are taken to be missing at random. The
    table may be larger than the memory.

    An arrow is no proof of a cause. Edges whose direction the data cannot tell are listed with a line instead of an
    arrow; the network that is written has them in one of the directions that are possible.

    \b
    Examples:
      tacit discover patients.csv -o patients.bif
      tacit discover patients.csv --forbid "recovery->treatment" --require "size->treatment"
      tacit discover patients.parquet --search exact --bootstrap 100
      tacit discover patients.csv --columns age,dose,recovery --bins age=0,18,65,120 --tiers "age<dose<recovery"
      tacit discover patients.csv --exclude id,name --bootstrap 20 --page patients.html
      tacit discover patients.csv --edges "size->treatment,size->recovery,treatment->recovery"
    """
    output = _output(job)
    if job.page is not None:
        check_page(job.page)
    elif job.query is not None:
        raise typer.BadParameter("--query is for the page; name its file with --page")
    if job.draw is not None:
        if job.draw.suffix.lower() not in SUFFIXES:
            raise typer.BadParameter(f"{job.draw}: a drawing is a .svg, .png or .pdf file")
        check_folder(job.draw)
    forbid, require = _edges("--forbid", job.forbid), _edges("--require", job.require)
    if job.edges:
        job = _with_edges(job)
        require = _edges("--edges", job.edges)
        forbid = [pair for pair in permutations(names(job.columns), 2) if pair not in require]
    options = {name: getattr(job, name) for name in OPTIONS} | {"bins": _bins(job.bins), "tiers": _tiers(job.tiers)}
    with open_rows(job.table) as table:
        chosen = _chosen(table, job)
        try:
            found = tacit.discover(chosen, forbid=forbid, require=require, **options)
        except EvidenceError as error:
            raise _with_remedy(error, chosen, job) from None
        net = found.with_densities(chosen, job.weights) if job.densities else found.network
    if job.table != Path("-"):
        net.name = found.network.name = stem(job.table)
    if output.suffix == ".json":
        replace(found, network=net).save(output)
    else:
        tacit.io.write(net, output)
    if job.output is None:
        note(f"the network is in {output}, since there is no -o")
    if job.page is not None:
        found.page(job.page, job.captions, job.query)
    if job.draw is not None:
        found.plot(captions=job.captions).save(job.draw)
    if job.json:
        return show_json(_results(job, output, found, net))
    size = f"{plural(len(found.network.edges), 'edge')} among {plural(len(found.network), 'variable')}"
    print(f"{output}: {size} from {counted(found.rows)}, {found.seconds:.1f} s")
    if job.page is not None:
        print(job.page)
    if job.draw is not None:
        print(job.draw)
    print(f"  {job.score} score  {found.score:,.2f}")
    if job.densities:
        print(f"  densities  {', '.join(net.continuous) or 'none: intervals describe all columns better'}")
    for title, sign, pairs in (
        ("directions that the data or the constraints decide", ARROW, found.arrows.directed),
        ("directions that the data leave open", "--", found.arrows.undirected),
    ):
        if pairs:
            print(f"\n{title}:")
            print(aligned([(f"  {a} {sign} {b}", *_share(found, a, b, sign)) for a, b in pairs]))


def _with_edges(job: DiscoverJob) -> DiscoverJob:
    """The job with an edge in each text of its own, and the columns that they name."""
    for option in ("forbid", "require", "tiers", "columns", "max_parents"):
        if getattr(job, option):
            raise typer.BadParameter(f"--edges names all edges; leave out --{option.replace('_', '-')}")
    texts = [part for text in job.edges or () for part in (text.split(",") if text.count(ARROW) > 1 else [text])]
    named = dict.fromkeys(name for edge in _edges("--edges", texts) for name in edge)
    return replace(job, edges=texts, columns=list(named))


def _output(job: DiscoverJob) -> Path:
    """Where the network is to be written; what is not named is replaced only by what is found in the same table."""
    if job.output is None and DEFAULT_OUTPUT.exists() and not _is_found_in(job.table):
        remedy = f"-o FILE writes another file, -o {DEFAULT_OUTPUT} replaces this one"
        raise TacitError(f"{DEFAULT_OUTPUT} is there already, and there is no -o: {remedy}")
    output = job.output or DEFAULT_OUTPUT
    check_output(output)
    if job.densities and output.suffix != ".json":
        raise typer.BadParameter(f"--densities needs a file that keeps them, such as {output.with_suffix('.json')}")
    return output


def _is_found_in(table: Path) -> bool:
    """Whether the default output is the network of an earlier run on the same table, which has the table's name."""
    try:
        return tacit.load(DEFAULT_OUTPUT).name == stem(table)
    except (TacitError, OSError):
        return False


def _with_remedy(error: EvidenceError, table: FileTable, job: DiscoverJob) -> EvidenceError:
    """The error about columns that make no variable, with the option that leaves them out, if others remain."""
    remaining = set(table.names) - set(error.columns) - {job.weights}
    if not error.columns or not remaining or any("," in name or name != name.strip() for name in error.columns):
        return error.changed(remedy=None)
    unwanted = dict.fromkeys([*names(job.exclude), *error.columns])
    option = f"--exclude {shlex.quote(','.join(unwanted))}"
    return error.changed(remedy=f"to leave out what makes no variable: {option}")


def _share(found: tacit.learn.Discovery, a: str, b: str, sign: str) -> tuple[str, ...]:
    """The share of the bootstrap samples with an edge, and with this direction where that is decided."""
    if found.strength is None:
        return ()
    share, turned = found.strength.get((a, b), 0.0), found.strength.get((b, a), 0.0)
    whole = f"in {share + turned:.0%} of the samples"
    return (whole, f"{share:.0%} this way") if sign == ARROW else (whole,)


def _results(job: DiscoverJob, output: Path, found: tacit.learn.Discovery, net: tacit.Network) -> dict[str, Any]:
    strength = None if found.strength is None else [[*edge, share] for edge, share in found.strength.items()]
    return {
        "output": str(output),
        **({} if job.page is None else {"page": str(job.page)}),
        "rows": found.rows,
        "score": found.score,
        "edges": found.network.edges,
        **({"densities": list(net.continuous)} if job.densities else {}),
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


def _chosen(table: FileTable, job: DiscoverJob) -> FileTable:
    """The table with the columns to take."""
    wanted, unwanted = ([name.strip() for name in names(texts)] for texts in (job.columns, job.exclude))
    for name in [*wanted, *unwanted]:
        if name not in table.names:
            raise EvidenceError(f"{table.name} has no column {name!r}{similar(name, table.names)}")
    if job.weights in unwanted:
        raise typer.BadParameter(f"the column {job.weights!r} holds the weights (--weights); do not --exclude it")
    weights = [] if job.weights is None else [job.weights]
    chosen = [name for name in wanted or table.names if name not in unwanted]
    if job.query is not None and job.query not in chosen:
        raise EvidenceError(f"--query is {job.query!r}, which is not a column{similar(job.query, chosen)}")
    if not chosen:
        raise typer.BadParameter("--exclude leaves no column")
    if not wanted and not unwanted:
        return table
    return with_columns(table, list(dict.fromkeys([*chosen, *weights])))


def _bins(texts: list[str] | None) -> Any:
    """What `bins` of `discover` is: a word, a number, or a dictionary by column.

    >>> _bins(["equal"]), _bins(["5"]), _bins(["age=0,18,65", "dose=4"])
    ('equal', 5, {'age': [0, 18, 65], 'dose': 4})
    """
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return as_number(texts[0])
    chosen: dict[str, Any] = {}
    for text in texts:
        name, sign, how = (part.strip() for part in text.rpartition("="))
        if not (name and sign and how):
            raise typer.BadParameter(f"--bins is {text!r}, expected a column and its intervals, such as age=0,18,65")
        parts = [as_number(part.strip()) for part in how.split(",")]
        chosen[name] = parts if len(parts) > 1 else parts[0]
    return chosen


def _tiers(text: str | None) -> list[list[str]] | None:
    """Groups of columns from a text.

    >>> _tiers("A, B < C")
    [['A', 'B'], ['C']]
    """
    if text is None:
        return None
    return [[name.strip() for name in group.split(",") if name.strip()] for group in text.split("<")]
