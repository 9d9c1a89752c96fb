"""The command line. `tacit --help` says what it can do; it needs the extra `cli`."""

from __future__ import annotations

import sys

from tacit.base.version import how_to_install, refuse_a_mixture


def main() -> None:
    """Run the command that the program's arguments name."""
    try:
        refuse_a_mixture()  # once more, since the __init__.py that did may have been replaced by the other project's
    except ImportError as error:
        sys.exit(f"tacit: {error}")
    try:
        from tacit.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"tacit: the command line needs {error.name}: {how_to_install('cli')}")
    run()
