"""The rows of a table in a file as checked evidence, one batch after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.errors import EvidenceError
from tacit.evidence import Evidence, read
from tacit.rows.columns import AmbiguousColumnError, Source
from tacit.rows.files import Batch, Table
from tacit.rows.places import in_file


class Reader:
    """Reads what the batches of a table say about some variables.

    A batch whose column holds only 0 and 1 may mean codes or likelihoods; then the rest of the table decides.
    """

    def __init__(self, table: Table, sources: Mapping[str, Source]) -> None:
        self.table, self.sources = table, sources
        self._soft: set[str] = set()  # the variables whose columns are known to hold likelihoods

    def evidence(self, batch: Batch) -> Evidence:
        """What some rows say, checked."""
        variables = [source.variable for source in self.sources.values()]
        try:
            return read({name: self._values(name, batch.rows) for name in self.sources}, variables)
        except EvidenceError as error:
            raise in_file(error, self.table.path, batch.first) from None

    def _values(self, name: str, rows: Any) -> Any:
        source = self.sources[name]
        if name not in self._soft:
            try:
                return source.values(rows)
            except AmbiguousColumnError:
                if not any(source.has_likelihoods(other.rows) for other in self.table.batches(source.columns)):
                    raise
                self._soft.add(name)
        return source.likelihoods(rows)
