"""A note about the columns of a table that a command does not use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tacit.cli.output import note
from tacit.network import Network
from tacit.rows.columns import unused
from tacit.words import listed


def note_unused(net: Network, names: Sequence[str], used: Iterable[str], queries: Sequence[str]) -> None:
    """Say which columns of a table have no part in what is done; one that is misspelt is an error."""
    left = unused(net, names, used)
    asked = set(queries)
    for query in [name for name in left if name in asked]:
        note(f"the column {query!r} is the query itself and is not used as evidence")
        left.remove(query)
    if left:
        note(f"columns that are not used: {listed(left)}")
