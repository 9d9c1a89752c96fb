"""The application: all commands together, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.base.version import how_to_install
from tacit.cli.commands import (
    batch,
    bench,
    compare,
    decide,
    discover,
    estimate,
    models,
    mpe,
    query,
    sensitivity,
    serving,
    train,
    warm,
)
from tacit.cli.shared.completion import complete_in_bash
from tacit.cli.shared.output import note


class Commands(TyperGroup):
    """The commands. An error is exit code 1 and one line, or one for each column of a table that is wrong.

    Wrong usage, which is left to typer, is 2.
    """

    def invoke(self, ctx: Any) -> Any:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # bars, on a terminal without them
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: note(str(message))
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                note("interrupted")
                raise typer.Exit(130) from None
            except Exception as error:
                by_typer = type(error).__module__.partition(".")[0] in ("typer", "click")  # wrong usage, or an exit
                if ctx.params["debug"] or by_typer or isinstance(error, BrokenPipeError):
                    raise
                note(_said(error))
                raise typer.Exit(1) from None


def _said(error: Exception) -> str:
    """An error in one line, or in one for each column that it is about."""
    if isinstance(error, EvidenceError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, ModuleNotFoundError):
        remedy = f": {how_to_install('cli')}" if error.name == "pyarrow" else ""
        return f"this needs the package {error.name}, which is not installed{remedy}"
    if isinstance(error, TacitError):
        return " ".join(str(error).splitlines())
    return f"{type(error).__name__}: {error}; this should not happen, and tacit --debug shows where it does"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tacit {tacit.__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Query Bayesian networks, classical and testing: one question, or millions of rows.

    A MODEL is a file: .bif, .bif.gz, .xmlbif, .uai, .net, .dne, .erg or .json.

    \b
    Examples:
      tacit info alarm.bif
      tacit query alarm.bif -q LVFAILURE -e HISTORY=TRUE -e CVP=0.1,0.2,0.7
      tacit batch alarm.bif rows.parquet -q LVFAILURE -o answers.parquet

    Exit codes: 0 fine, 1 something is wrong with the files or the evidence, 2 wrong usage.
    """


for command in (
    *(models.info, query.query, mpe.mpe, mpe.sample, batch.batch, discover.discover, estimate.estimate),
    *(
        train.train,
        query.explain,
        compare.compare,
        decide.decide,
        query.bounds,
        sensitivity.sensitivity,
        models.convert,
        models.draw,
        models.page,
    ),
    *(serving.serve, bench.bench, warm.warm),
):
    app.command()(command)


def run() -> None:
    """Run the command that the program's arguments name, or offer how they may go on."""
    if os.environ.get("_TACIT_COMPLETE") == "complete_bash":
        return complete_in_bash(lambda: app(prog_name="tacit"))
    app(prog_name="tacit")
