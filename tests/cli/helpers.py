"""What the tests of the command line share: how a command is run, and how a table that it wrote is read."""

import json

from pyarrow import csv, parquet
from typer.testing import CliRunner

from tacit.cli.app import app


def tacit_(*arguments, code=0):
    """Run a command; its standard output, or its standard error if it is meant to fail."""
    found = CliRunner().invoke(app, [str(a) for a in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == code, found.output
    assert "\x1b" not in found.output
    return found.stderr if code else found.stdout


def as_json(*arguments):
    return json.loads(tacit_(*arguments, "--json"))


def answers(path):
    """A table that was written, by column."""
    table = parquet.read_table(path) if str(path).endswith("parquet") else csv.read_csv(path)
    return {name: table[name].to_pylist() for name in table.column_names}
