"""Queries answered under many sets of tables: one program, run with the numbers of one network after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from tacit.base.floats import Floats
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import Array
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.density_column import DensityColumn, scale_of
from tacit.evidence.read import EvidenceLike
from tacit.query.answers.answer import Answer, warn_impossible
from tacit.query.compiled_query import CompiledQuery
from tacit.query.ensembles.base_ensemble import AnyEnsemble

Q_co = TypeVar("Q_co", bound=CompiledQuery, covariant=True)
ANSWERS_AT_ONCE = 2**24  # probabilities of several draws and rows in memory at a time, beside what is returned


class UnderDraws(Generic[Q_co]):
    """A query, and the networks of an ensemble to answer it under."""

    def __init__(self, query: Q_co, ensemble: AnyEnsemble) -> None:
        self.query, self.ensemble = query, ensemble

    @property
    def states(self) -> int:
        """The number of joint states of the query."""
        return math.prod(self.query.states_asked)

    def posterior(self, evidence: EvidenceLike | None) -> Floats:
        """P*(q) under each network: (draws, rows, states...)."""
        query = self.query
        query.require_query("posterior")
        query.require_posterior()
        known = query._read(evidence)
        answer = np.empty((len(self.ensemble), known.rows, *query.states_asked), query.dtype)
        flat = answer.reshape(len(self.ensemble), known.rows, -1)
        for rows, part in self.posteriors(known):
            flat[:, rows] = part
        warn_impossible(
            np.asarray(np.isnan(flat[..., 0]).any(axis=0)), "their posterior is NaN under some of the networks"
        )
        return answer

    def posteriors(self, known: Evidence) -> Iterator[tuple[slice, Array]]:
        """The posteriors (draws, rows, states) of some rows at a time."""
        query, count = self.query, len(self.ensemble)
        engine = query.engine().runner(known.rows * count, Sweep.FORWARD, calls=count)
        at_once = max(1, ANSWERS_AT_ONCE // (count * self.states))
        for rows, block in blocks(known.columns, known.rows, min(at_once, engine.chunk_for(known.rows))):
            if self._densities_differ(block):
                drawn = self.each(engine, block, query.program.nodes)
                yield rows, np.stack([own.posterior(part.columns, part.rows) for own, part in drawn])
            else:
                draws = self.ensemble.draws(query.program.nodes)
                yield rows, engine.posteriors(block.columns, block.rows, draws)

    def answers(self, evidence: EvidenceLike | None) -> Iterator[Answer]:
        """What the rows say about the query under one network after the other."""
        query = self.query
        known = query._read(evidence)
        count = len(self.ensemble)
        engine = query.engine().runner(known.rows * count, Sweep.FORWARD, calls=count)
        shape = () if query.refused else query.states_asked
        for own, part in self.each(engine, known, query.program.nodes):
            parts = []
            for block in part.blocks(engine.chunk):
                result = own.run(block.columns, block.rows)
                parts.append((result.joint.T, result.exponent, scale_of(block.columns, block.rows)))
            joint, exponent, scale = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            yield Answer(joint.reshape(known.rows, *shape), exponent, {}, scale if query.network.continuous else 0.0)

    def _densities_differ(self, known: Evidence) -> bool:
        return any(name in self.ensemble.differing for name in self._numbers(known))

    @staticmethod
    def _numbers(known: Evidence) -> list[str]:
        return [name for name, column in known.columns.items() if isinstance(column, DensityColumn)]

    def each(self, engine: Engine, known: Evidence, nodes: Iterable[str]) -> Iterator[tuple[Engine, Evidence]]:
        """An engine of a program that reads some nodes, and the evidence, under one network after the other."""
        names = [name for name in self._numbers(known) if name in self.ensemble.differing]
        for i, own in enumerate(engine.each(self.ensemble.draws(nodes))):
            columns = dict(known.columns)
            for name in names:
                column = columns[name]
                assert isinstance(column, DensityColumn)
                columns[name] = column.bound(self.ensemble.density(name, i))
            yield own, Evidence(known.rows, columns)
