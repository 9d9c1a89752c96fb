"""The answers to a query, for one batch of rows after the other."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.cli.columns import AmbiguousColumnError, Source, columns_of, state_column
from tacit.cli.tables import Batch, Table, repeated
from tacit.cli.values import in_file
from tacit.errors import EvidenceError, TacitError
from tacit.evidence import Evidence, read
from tacit.network import Network
from tacit.query import ImpossibleEvidenceWarning
from tacit.tac import TAC, compile


@dataclass(frozen=True)
class Asked:
    """What is wanted of every row: the posterior of a query, some columns as they are, and more on request."""

    query: str
    sources: dict[str, Source]
    keep: list[str]
    log_evidence: bool
    argmax: bool

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

        self.net, self.path, self.table, self.asked = net, table.path, table, asked
        states = net.states(asked.query)
        self.labels = pa.array(states if len({type(state) for state in states}) == 1 else list(map(str, states)))
        fields = list(zip(asked.keep, table.types(asked.keep), strict=True))
        fields += [(state_column(asked.query, state), pa.float64()) for state in states]
        fields += [(f"{asked.query}.argmax", self.labels.type)] * asked.argmax
        fields += [("log_evidence", pa.float64())] * asked.log_evidence
        for name in repeated([name for name, _ in fields])[:1]:
            raise TacitError(f"the output would have two columns {name!r}; do not keep the one of the table")
        self.schema = pa.schema(fields)
        self._tac: TAC | None = None
        self._soft: set[str] = set()  # the variables whose columns are known to hold likelihoods

    def go_on(self, last: Any) -> None:
        """Continue after a part that was answered before."""
        self._tac = self._compile(json.loads(last.schema.metadata[b"hard"]))

    def part(self, batch: Batch) -> Any:
        """The answers to some rows."""
        import pyarrow as pa

        known = self._evidence(batch)
        tac = self._compiled_for(known.certain)
        answer = tac.ask(known)
        with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
            posterior = answer.posterior
        impossible = np.isnan(posterior[:, 0])
        found = [batch.rows.column(name).cast(self.schema.field(name).type) for name in self.asked.keep]
        found += [pa.array(column, mask=impossible) for column in posterior.T]
        if self.asked.argmax:
            found.append(self.labels.take(pa.array(posterior.argmax(axis=1), mask=impossible)))
        if self.asked.log_evidence:
            found.append(pa.array(answer.log_evidence))
        return pa.Table.from_arrays(found, schema=self.schema.with_metadata({"hard": json.dumps(tac.hard)}))

    def _evidence(self, batch: Batch) -> Evidence:
        """What some rows say, checked."""
        try:
            given = {name: self._values(name, batch.rows) for name in self.asked.sources}
            return read(given, [source.variable for source in self.asked.sources.values()])
        except EvidenceError as error:
            raise in_file(error, self.path, batch.first) from None

    def _values(self, name: str, rows: Any) -> Any:
        """What some rows say of a variable. Where they hold only 0 and 1, the rest of the table says what is meant."""
        source = self.asked.sources[name]
        if name not in self._soft:
            try:
                return source.values(rows)
            except AmbiguousColumnError:
                if not any(source.has_likelihoods(other.rows) for other in self.table.batches(source.columns)):
                    raise
                self._soft.add(name)
        return source.likelihoods(rows)

    def _compiled_for(self, certain: list[str]) -> TAC:
        if self._tac is None:
            self._tac = self._compile(certain)
        elif missing := set(self._tac.hard).difference(certain):
            self._tac = self._compile([name for name in self._tac.hard if name not in missing])
        return self._tac

    def _compile(self, hard: list[str]) -> TAC:
        return compile(self.net, self.asked.query, list(self.asked.sources), hard)
