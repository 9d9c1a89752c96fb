"""A window's program at work: intervals of many rows, by any engine, made safe against rounding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit import engines
from tacit.base.floats import Floats
from tacit.bounds.factor_list import FactorList
from tacit.bounds.posterior_bounds import Bounds
from tacit.bounds.window_program import WindowProgram
from tacit.compiler.operations.extremes import PARTS
from tacit.engines.engine import Engine, Sweep
from tacit.evidence.column import Column, blocks
from tacit.model.elements.variable import variable

TINY = 2.0**-1000  # numbers below may have lost digits


class WindowRows:
    """A window of a factor list, ready to run on rows.

    >>> import tacit
    >>> from tacit.bounds.factor_list import factor_list
    >>> from tacit.bounds.window_program import window_program
    >>> from tacit.bounds.windows import Surroundings, Window
    >>> from tacit.compiler.question import Question
    >>> factors = factor_list(tacit.examples.abc(), Question(("B",), ("C",)))
    >>> program = window_program(Surroundings(factors), Window("B", ("B",), ("A",), (1,)))
    >>> low, high, _ = WindowRows(factors, program, "numpy").bounds({}, 1)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([[0.1], [0.1]], [[0.9], [0.9]])
    """

    def __init__(
        self,
        factors: FactorList,
        window: WindowProgram,
        engine: str = "auto",
        dtype: str = "float64",
        threads: int | None = None,
    ) -> None:
        self._factors, self.window = factors, window
        self._engine: Engine = engines.build(engine, window.program, window.tables, {}, dtype, threads)
        self._slack = window.roundings * float(np.finfo(dtype).eps)

    def bounds(self, columns: Mapping[str, Column], rows: int) -> Bounds:
        """The bounds of the query's states in the factor list: (states, rows)."""
        engine = self._engine.runner(rows, Sweep.FORWARD)
        own = {name: self._column(name, columns[name]) for name in self.window.program.likelihoods if name in columns}
        parts = np.empty((PARTS, self.window.program.outputs // PARTS, rows))
        for some, block in blocks(own, rows, engine.chunk_for(rows)):
            results = engine.run(block.columns, block.rows)
            joint = results.joint.reshape(*parts.shape[:2], -1)
            parts[..., some] = np.ldexp(joint, results.exponent) if results.exponent.any() else joint
        return self._rounded(*parts)

    def _column(self, name: str, column: Column) -> Column:
        """Evidence on the states that are in the factor list."""
        states = self._factors.states.get(name)
        if states is None or len(states) == column.variable.card:
            return column
        return Column(variable(name, len(states)), soft=column.likelihoods()[list(states)])

    def _rounded(self, low: Floats, high: Floats, estimate: Floats) -> Bounds:
        """Intervals that are wide enough for all roundings; nothing is known where numbers left the range of floats."""
        impossible = (high == 0).all(axis=0)
        low *= 1 - self._slack
        high *= 1 + self._slack
        if (unusual := ~((low >= TINY) & (high <= 1))).any():
            low[low < TINY] = 0.0
            np.clip(high, TINY, 1.0, out=high, where=high > 0)
            beyond = unusual.any(axis=0) & ~np.isfinite(high).all(axis=0)
            low[:, beyond], high[:, beyond], estimate[:, beyond] = 0.0, 1.0, 1 / len(low)
        np.clip(estimate, low, high, out=estimate)
        if impossible.any():
            for own in (low, high, estimate):
                own[:, impossible] = np.nan
        return Bounds(low, high, estimate)
