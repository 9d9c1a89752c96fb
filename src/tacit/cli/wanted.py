"""What a batch wants of every row: the posteriors of some variables, or the states that are most probable together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from tacit.answer import Answer, ImpossibleEvidenceWarning
from tacit.errors import TacitError
from tacit.evidence import Evidence
from tacit.network import Network
from tacit.rows.columns import state_column, written, written_type
from tacit.tac import TAC

MOST_COLUMNS = 1_000  # for the combinations of a joint posterior; 65,536 rows of them take half a gigabyte


class Wanted(Protocol):
    """What is wanted of every row, as a question and as columns of the answer.

    The first column is empty where the evidence has probability 0, and only there.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that are asked for by name: their columns are not evidence."""
        ...

    @property
    def queries(self) -> Sequence[str | tuple[str, ...] | None]:
        """What to compile."""
        ...

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """The names of the columns, and their pyarrow types."""
        ...

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """The columns for some rows, found with the compiled queries."""
        ...


@dataclass(frozen=True)
class Posteriors:
    """The posteriors of groups of variables; more than one variable in a group are asked for together."""

    groups: tuple[tuple[str, ...], ...]
    argmax: bool = False
    log_evidence: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All variables of all groups."""
        return tuple(itertools.chain(*self.groups))

    @property
    def queries(self) -> list[str | tuple[str, ...]]:
        """One for each group."""
        return [group if len(group) > 1 else group[0] for group in self.groups]

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """A column for each combination of states, and for each most probable state."""
        import pyarrow as pa

        found: list[tuple[str, Any]] = []
        for group in self.groups:
            found += [(name, pa.float64()) for name in _combinations(net, group)]
            if self.argmax:
                found += [(f"{name}.argmax", written_type(net.variable(name))) for name in group]
        return found + [("log_evidence", pa.float64())] * self.log_evidence

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """Probabilities, the states of the largest, and the logarithm of the probability of the evidence."""
        import pyarrow as pa

        found = []
        for group, tac in zip(self.groups, tacs, strict=True):
            answer = tac.ask(known)
            found += self._group_columns(net, group, answer)
        if self.log_evidence:
            found.append(pa.array(answer.log_evidence))
        return found

    def _group_columns(self, net: Network, group: tuple[str, ...], answer: Answer) -> list[Any]:
        import pyarrow as pa

        with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
            posterior = answer.posterior
        flat = posterior.reshape(len(posterior), -1)
        impossible = np.isnan(flat[:, 0])
        found = [pa.array(column, mask=impossible) for column in flat.T]
        if self.argmax:
            best = np.unravel_index(flat.argmax(axis=1), posterior.shape[1:])
            for name, codes in zip(group, best, strict=True):
                labels = written(net.variable(name), net.states(name))
                found.append(labels.take(pa.array(codes, mask=impossible)))
        return found


@dataclass(frozen=True)
class MostProbable:
    """The jointly most probable states: of all variables, or of some with the others summed out."""

    names: tuple[str, ...] = ()
    log_evidence: bool = False

    @property
    def queries(self) -> list[tuple[str, ...] | None]:
        """The variables that are not summed out, if they are not all."""
        return [self.names or None]

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """A column for each variable."""
        import pyarrow as pa

        found = [(name, written_type(net.variable(name))) for name in self.names or net]
        found.append(("log_probability", pa.float64()))
        return found + [("log_evidence", pa.float64())] * self.log_evidence

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """States, and the logarithm of their probability together with the evidence."""
        import pyarrow as pa

        (tac,) = tacs
        with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
            best = tac.map(known) if self.names else tac.mpe(known)
        found = [written(net.variable(name), labels) for name, labels in best.states.items()]
        found.append(pa.array(best.log_probability))
        if self.log_evidence:
            found.append(pa.array(tac.log_evidence(known)))
        return found


def _combinations(net: Network, names: Sequence[str]) -> list[str]:
    """The names of the columns for all combinations of states: `A.true,B.lo`."""
    count = prod(net.variable(name).card for name in names)
    if count > MOST_COLUMNS and len(names) > 1:
        raise TacitError(
            f"{', '.join(names)} have {count:,} combinations of states, and at most {MOST_COLUMNS:,} can be columns; "
            f"name fewer variables, or ask for the most probable combination: --mpe --only {','.join(names)}"
        )
    columns = [[state_column(name, state) for state in net.states(name)] for name in names]
    return [",".join(combination) for combination in itertools.product(*columns)]
