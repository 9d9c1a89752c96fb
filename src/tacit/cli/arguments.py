"""Arguments and options that several commands have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import TacitError
from tacit.factor_graph import FactorGraph
from tacit.io.files import format_of, read
from tacit.network import Network

MODELS = "A network: .bif, .bif.gz, .xmlbif, .uai, .net, .dne, .erg or .json."
Model = Annotated[Path, typer.Argument(metavar="MODEL", help=MODELS)]
Rows = Annotated[Path, typer.Argument(metavar="TABLE", help="A table of evidence: .csv or .parquet.")]
Query = Annotated[str, typer.Option("--query", "-q", metavar="VARIABLE", help="The variable to query.")]
Queries = Annotated[
    list[str],
    typer.Option("--query", "-q", metavar="VARIABLE", help="A variable to query. May be repeated."),
]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        "-e",
        metavar="VARIABLE=VALUE",
        help="A state, the likelihood of the first of two states (0.7), or one likelihood per state (0.2,0.3,0.5). "
        "Or a file of states: .inst or .evid. May be given many times.",
    ),
]
Do = Annotated[
    list[str] | None,
    typer.Option(
        "--do",
        metavar="VARIABLE=STATE",
        help="A state that is set, not seen: its ancestors are not updated. May be given many times.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="VARIABLES",
        help="The most probable states of these together, all others summed out. Separated by commas.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="VARIABLES",
        help="The variables to take from the table, separated by commas. All that it has, if left out.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def read_network(model: Path) -> Network:
    """A Bayesian network from a file, for commands that a Markov network is nothing for."""
    net = read(model)
    if isinstance(net, FactorGraph):
        raise TacitError(
            f"{model}: a Markov network, and this command needs a Bayesian network; query, mpe and sample take both"
        )
    return net


def check_output(path: Path) -> None:
    """An error, now rather than after the work, if a network cannot be written there."""
    format_of(path)
    check_folder(path)


def check_folder(path: Path) -> None:
    """An error, now rather than after the work, if there is no folder for a file."""
    if not path.parent.is_dir():
        raise TacitError(f"{path}: there is no folder {str(path.parent)!r} to write to")


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
    found = [name for text in texts or () for name in ([text] if text in net else names([text]))]
    for name in found:
        net.variable(name)
    if doubled := [name for name, count in Counter(found).items() if count > 1]:
        raise typer.BadParameter(f"{doubled[0]} is named twice")
    return tuple(found)
