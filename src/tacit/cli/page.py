"""The command that writes the explorer of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.arguments import Model, read_network


def page(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .html file to write.")],
    captions: Annotated[
        Path | None,
        typer.Option("--captions", metavar="FILE", help="A .toml file with a title, labels, groups and shown states."),
    ] = None,
) -> None:
    """Write a page to explore a network: click a state to observe it, and all posteriors follow.

    The page is one file that computes its answers itself: open it anywhere, send it to anybody.

    \b
    Examples:
      tacit page alarm.bif -o alarm.html
      tacit page alarm.bif -o alarm.html --captions alarm.toml
    """
    if output.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"{output}: a page is a .html file")
    read_network(model).page(output, captions)
    print(output)
