"""The answers to a question, for one batch of rows after the other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import EvidenceError, TacitError
from tacit.evidence import Evidence
from tacit.network import Network
from tacit.rows.columns import Source, columns_of
from tacit.rows.files import Batch, Table, repeated
from tacit.rows.places import in_file
from tacit.rows.reading import Reader
from tacit.tac import TAC, compile
from tacit.wanted import Wanted


@dataclass(frozen=True)
class Asked:
    """What is asked of every row, what it says and sets, and the columns that are wanted as they are."""

    wanted: Wanted
    sources: dict[str, Source]
    do: tuple[str, ...]
    keep: list[str]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are needed."""
        return list(dict.fromkeys([*columns_of(self.sources.values()), *self.keep]))


class Answers:
    """Turns batches of a table into tables of answers.

    Variables that have had a state in every row so far are indexed, which is cheap; the first batch in which one has
    none is the last that is compiled so. What was indexed is noted in the answers (`hard`), and a computation that goes
    on goes on with it: otherwise its last digits might differ.
    """

    def __init__(self, net: Network, table: Table, asked: Asked) -> None:
        import pyarrow as pa

        self.net, self.path, self.asked = net, table.path, asked
        self._reader = Reader(table, asked.sources)
        fields = [*zip(asked.keep, table.types(asked.keep), strict=True), *asked.wanted.fields(net)]
        for name in repeated([name for name, _ in fields])[:1]:
            raise TacitError(f"the output would have two columns {name!r}; do not keep the one of the table")
        self.schema = pa.schema(fields)
        self._tacs: list[TAC] = []

    def go_on(self, last: Any) -> None:
        """Continue after a part that was answered before."""
        self._tacs = self._compile(json.loads(last.schema.metadata[b"hard"]))

    def part(self, batch: Batch) -> Any:
        """The answers to some rows."""
        import pyarrow as pa

        known = self._evidence(batch)
        tacs = self._compiled_for(known.certain)
        found = [batch.rows.column(name).cast(self.schema.field(name).type) for name in self.asked.keep]
        found += self.asked.wanted.columns(self.net, tacs, known)
        return pa.Table.from_arrays(found, schema=self.schema.with_metadata({"hard": json.dumps(tacs[0].hard)}))

    def _evidence(self, batch: Batch) -> Evidence:
        """What some rows say, checked."""
        known = self._reader.evidence(batch)
        try:
            for name in self.asked.do:
                _require_states(known, name)
        except EvidenceError as error:
            raise in_file(error, self.path, batch.first) from None
        return known

    def _compiled_for(self, certain: list[str]) -> list[TAC]:
        if not self._tacs:
            self._tacs = self._compile([name for name in certain if name not in self.asked.do])
        elif missing := set(self._tacs[0].hard).difference(certain):
            self._tacs = self._compile([name for name in self._tacs[0].hard if name not in missing])
        return self._tacs

    def _compile(self, hard: list[str]) -> list[TAC]:
        do = self.asked.do
        observed = [name for name in self.asked.sources if name not in do]
        return [compile(self.net, query, observed, hard, do) for query in self.asked.wanted.queries]


def _require_states(known: Evidence, name: str) -> None:
    """An error that names the first row in which a variable is not set to a state."""
    column = known.columns.get(name)
    unset = np.array([0]) if column is None else np.flatnonzero(~column.observed)
    if known.rows and len(unset):
        problem, subject = "a state is needed in every row (--do)", f"intervention on {name!r}"
        raise EvidenceError(problem, variable=name, subject=subject, row=int(unset[0]))
