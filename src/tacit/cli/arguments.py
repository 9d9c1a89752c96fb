"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A network: .bif, .bif.gz, .xmlbif, .uai, .net or .json.")]
Rows = Annotated[Path, typer.Argument(metavar="TABLE", help="A table of evidence: .csv or .parquet.")]
Query = Annotated[str, typer.Option("--query", "-q", metavar="VARIABLE", help="The variable that is asked for.")]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        "-e",
        metavar="VARIABLE=VALUE",
        help="A state, the likelihood of the first of two states (0.7), or one likelihood per state (0.2,0.3,0.5). "
        "May be given many times.",
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


def names(texts: list[str] | None) -> list[str]:
    """Names from options that may be repeated, and may hold several names with commas between.

    >>> names(["A,B", "C"])
    ['A', 'B', 'C']
    """
    return [name for text in texts or () for name in text.split(",") if name]
