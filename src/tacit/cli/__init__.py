"""The command line. `tacit --help` says what it can do; it needs the extra `cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the program's arguments name."""
    try:
        from tacit.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"tacit: the command line needs {error.name}: pip install 'tacit[cli]'")
    app(prog_name="tacit")
