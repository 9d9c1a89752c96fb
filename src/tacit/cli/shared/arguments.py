"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import tacit
from tacit.base.errors import FormatError, TacitError
from tacit.cli.shared import completion
from tacit.cli.shared.output import note
from tacit.evidence.column_names import listed_columns
from tacit.evidence.tables.columns import unused
from tacit.evidence.tables.csv_parquet import repeated
from tacit.io.files import format_of, read
from tacit.model.factor_graph import FactorGraph
from tacit.query.ensemble import Ensemble
from tacit.query.network import Network

Job = TypeVar("Job")
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A network: .bif, .bif.gz, .xmlbif, .uai, .net, .dne, .erg or .json.")
]
Rows = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A table of evidence: .csv, .tsv, .csv.gz, .tsv.gz or .parquet; or - for standard input, as CSV.",
    ),
]
Query = Annotated[
    str,
    typer.Option(
        "--query", "-q", metavar="VARIABLE", help="The variable to query.", autocompletion=completion.variables
    ),
]
SEVERAL_QUERIES = typer.Option(
    "--query",
    "-q",
    metavar="VARIABLE",
    help="A variable to query. May be repeated.",
    autocompletion=completion.variables,
)
Queries = Annotated[list[str], SEVERAL_QUERIES]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        "-e",
        metavar="VARIABLE=VALUE",
        help="A state, the likelihood of the first of two states (0.7), one likelihood per state (0.2,0.3,0.5), or the "
        "number of a continuous variable. Or a file of states: .inst or .evid. May be given many times.",
        autocompletion=completion.values,
    ),
]
Do = Annotated[
    list[str] | None,
    typer.Option(
        "--do",
        metavar="VARIABLE=STATE",
        help="A state that is set, not seen: its ancestors are not updated. May be given many times.",
        autocompletion=completion.values,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="VARIABLES",
        help="The most probable states of these together, all others summed out. Separated by commas.",
        autocompletion=completion.lists,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="VARIABLES",
        help="The variables to take from the table, separated by commas. All that it has, if left out.",
        autocompletion=completion.lists,
    ),
]
NetworkOutput = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The network to write.")]
FirstQuery = Annotated[
    str | None,
    typer.Option(
        "--query",
        "-q",
        metavar="VARIABLE",
        help="The variable that the page opens with.",
        autocompletion=completion.variables,
    ),
]
CaptionsFile = Annotated[
    Path | None,
    typer.Option("--captions", metavar="FILE", help="A .toml file with a title, labels, groups and shown states."),
]
Credible = Annotated[
    float | None,
    typer.Option(
        "--credible",
        metavar="LEVEL",
        help="How sure the answer is: means under the networks of --draws, and intervals of this probability (0.9).",
    ),
]
Draws = Annotated[
    Path | None,
    typer.Option(
        "--draws",
        metavar="FILE",
        help="An ensemble for --credible: an .npz that 'tacit estimate --draws' or Ensemble.save wrote.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def options_of(job: type[Job]) -> Callable[[Callable[[Job], None]], Callable[..., None]]:
    """A decorator for a command whose arguments and options are the fields of a dataclass."""

    def decorate(run: Callable[[Job], None]) -> Callable[..., None]:
        @wraps(run)
        def command(**options: Any) -> None:
            run(job(**options))

        command.__signature__ = signature(job, eval_str=True)  # type: ignore[attr-defined]  # where typer looks
        return command

    return decorate


def read_draws(credible: float | None, draws: Path | None) -> Ensemble | None:
    """The ensemble of --draws where --credible asks for intervals; wrong usage where one of them is missing."""
    if credible is None and draws is None:
        return None
    if draws is None:
        raise typer.BadParameter(
            "--credible needs networks to compare: --draws FILE, which 'tacit estimate --draws FILE' writes"
        )
    if credible is None:
        raise typer.BadParameter("--draws is for intervals; give their probability as well, such as --credible 0.9")
    if not 0 < credible < 1:
        raise typer.BadParameter(f"--credible is {credible:g}, expected a probability between 0 and 1, such as 0.9")
    return Ensemble.load(draws)


def read_network(model: Path) -> Network:
    """A Bayesian network from a file, for commands that take no Markov network."""
    net = read(model)
    if isinstance(net, FactorGraph):
        raise TacitError(
            f"{model}: a Markov network, and this command needs a Bayesian network; query, mpe and sample take both"
        )
    return net


def discovery_of(model: Path) -> tacit.Discovery | None:
    """What "tacit discover" says in a file about the network there; nothing, if it is no such file."""
    if model.suffix != ".json":
        return None
    try:
        return tacit.Discovery.load(model)
    except FormatError:
        return None


def check_output(path: Path) -> None:
    """Refuse a file that no network can be written to, before the work rather than after it."""
    format_of(path)
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file whose folder does not exist, before the work rather than after it."""
    if not path.parent.is_dir():
        raise TacitError(f"{path}: there is no folder {str(path.parent)!r} to write to")


def check_draws(path: Path) -> None:
    """Refuse a file that no ensemble can be written to, before the work rather than after it."""
    if path.suffix != ".npz":
        raise TacitError(f"{path}: an ensemble is written as .npz, e.g. {path.with_suffix('.npz')}")
    check_folder(path)


def check_page(path: Path) -> None:
    """Refuse a file that is no page, or whose folder does not exist, before the work rather than after it."""
    if path.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"{path}: a page is a .html file")
    check_folder(path)


def stem(path: Path) -> str:
    """The name of a file without its folder and suffix, which may be a double one.

    >>> stem(Path("models/alarm.bif.gz")), stem(Path("v1.2.json"))
    ('alarm', 'v1.2')
    """
    return Path(path.name.removesuffix(".gz")).stem


def names(texts: list[str] | None) -> list[str]:
    """Names from options that may be repeated, and may hold several names with commas between.

    >>> names(["A,B", "C"])
    ['A', 'B', 'C']
    """
    return [name for text in texts or () for name in text.split(",") if name]


def variables(net: Network, texts: list[str] | None) -> tuple[str, ...]:
    """Variables from options that may be repeated; several with commas between, unless one has a comma in its name.

    >>> from tacit.examples import abc
    >>> variables(abc(), ["A,B", "C"])
    ('A', 'B', 'C')
    """
    chosen = [name for text in texts or () for name in ([text] if text in net else names([text]))]
    for name in chosen:
        net.named(name)  # an error where there is no such variable
    for name in repeated(chosen)[:1]:
        raise typer.BadParameter(f"{name} is named twice")
    return tuple(chosen)


def note_unused(net: Network, names: Sequence[str], used: Iterable[str], queries: Sequence[str]) -> None:
    """Name the columns of a table that are not used; a misspelt one is an error."""
    left = unused(net, names, used)
    asked = {name for query in queries for name in (query, *net.variable(net.named(query)).columns)}
    for query in [name for name in left if name in asked]:
        note(f"the column {query!r} is the query itself and is not used as evidence")
        left.remove(query)
    if left:
        note(f"columns that are not used: {listed_columns(left)}")
