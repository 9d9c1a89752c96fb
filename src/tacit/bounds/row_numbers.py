"""The numbers of some rows: the tables of factors and the likelihoods of variables, the rows last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.bounds.windows import Surroundings
from tacit.evidence.column import Column


class Pair(NamedTuple):
    """A table that lies between two, entry by entry; often they are the same array. Axes: variables..., rows or 1."""

    low: Floats
    high: Floats

    @property
    def exact(self) -> bool:
        return self.low is self.high


@dataclass(frozen=True)
class RowNumbers:
    """What some rows say about a question.

    Attributes
    ----------
    rows
        How many there are. Tables that are the same for all of them have one row.
    likelihoods
        Of variables with evidence, over their states in the factor list: (states, rows or 1).
    states
        Of settled variables, the places of their states in the factor list: (rows or 1,). Without, as when there are no
        rows yet, tables are their means over all states.
    selected
        Tables of testing nodes that are better known here than in the factor list, by the places of factors.
    """

    surroundings: Surroundings
    rows: int = 1
    likelihoods: Mapping[str, Floats] = field(default_factory=dict)
    states: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    selected: Mapping[int, Pair] = field(default_factory=dict)

    def factor(self, place: int) -> Pair:
        """The table of a factor over its open variables: (scope..., rows or 1)."""
        factor, known = self.surroundings.factors.factors[place], self.selected.get(place)
        if known is None:
            low = factor.low[..., None]
            known = Pair(low, low if factor.low is factor.high else factor.high[..., None])
        settled = [axis for axis, name in enumerate(factor.scope) if name in self.surroundings.settled]
        if settled:
            states = [self.states.get(factor.scope[axis]) for axis in settled]
            low = _at(known.low, settled, states)
            known = Pair(low, low if known.exact else _at(known.high, settled, states))
        without = self.surroundings.left_out.get(place, ())
        scope = [name for name in factor.scope if name not in self.surroundings.settled]
        return relaxed(known, [axis for axis, name in enumerate(scope) if name in without]) if without else known

    def likelihood(self, name: str) -> Floats | None:
        """The likelihoods of an open variable; None without evidence."""
        return self.likelihoods.get(name)


def numbers_of(surroundings: Surroundings, columns: Mapping[str, Column], rows: int) -> RowNumbers:
    """The numbers of rows of evidence."""
    likelihoods, codes = {}, {}
    for name, column in columns.items():
        if name not in surroundings.factors.cards:
            continue
        left = list(surroundings.factors.states[name])
        if name in surroundings.settled:
            codes[name] = np.searchsorted(left, column.states())
        else:
            likelihoods[name] = column.likelihoods()[left]
    return RowNumbers(surroundings, rows, likelihoods, codes)


def impossible_rows(states: Mapping[str, Sequence[int]], columns: Mapping[str, Column], rows: int) -> NDArray[np.bool_]:
    """The rows whose evidence rules out all `states` that the network leaves a variable: (rows,)."""
    impossible = np.zeros(rows, dtype=np.bool_)
    for name, column in columns.items():
        if len(states.get(name, ())) < column.variable.card and name in states:
            impossible |= (column.likelihoods()[list(states[name])] == 0).all(axis=0)
    return impossible


def relaxed(pair: Pair, axes: list[int]) -> Pair:
    """What a table lies between whatever the states of some axes are, if it may be scaled for each of them."""
    kept = tuple(axis for axis in range(pair.high.ndim - 1) if axis not in axes)
    scale = pair.high.max(axis=kept, keepdims=True)
    low = np.divide(pair.low, scale, out=np.full_like(pair.low, np.inf), where=scale > 0)
    high = np.divide(pair.high, scale, out=np.zeros_like(pair.high), where=scale > 0)
    least = low.min(axis=tuple(axes))
    return Pair(np.where(np.isfinite(least), least, 0.0), high.max(axis=tuple(axes)))


def _at(table: Floats, axes: list[int], states: list[NDArray[np.int64] | None]) -> Floats:
    """A table at the states of some axes, row by row; the mean where there are none."""
    open_axes = tuple(axis for axis, state in zip(axes, states, strict=True) if state is None)
    index = [state for state in states if state is not None]
    table = table.mean(axis=open_axes, keepdims=True)
    front = np.moveaxis(table, [axis for axis in axes if axis not in open_axes], range(len(index)))
    if index:
        rows = np.arange(front.shape[-1]) if front.shape[-1] > 1 else 0
        front = np.moveaxis(front[(*index, ..., rows)], 0, -1)
    return front.reshape(*(n for axis, n in enumerate(table.shape[:-1]) if axis not in axes), front.shape[-1])
