"""Observed numbers of continuous variables: likelihoods of their parents' joint states.

Densities may be far beyond the range of floats. What engines multiply are the densities of a row divided by its
largest; the logarithm of that is the row's `scale`. Where one underflows even so, the row is `lost` to plain floats,
and engines with an exponent for every number ask for the densities `with_exponents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tacit.base.double_double import LOG_2, Twofold
from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.evidence.column import Column, ColumnArray, Evidence, Kind
from tacit.evidence.labels import Codes, Mask
from tacit.evidence.likelihoods import Numbers, numbers_of
from tacit.evidence.wrong_values import counted_values
from tacit.model.elements.variable import Variable

if TYPE_CHECKING:
    from tacit.model.densities import AnyDensity
    from tacit.model.model import Model

LOG_SMALLEST = math.log(np.finfo(np.float64).smallest_normal)
MAX_PLAIN_LOG = 128.0  # beyond it, the roundings of several logarithms may show in the 13th digit of a probability


class Shares(NamedTuple):
    """Densities divided by the largest of each row (components, rows), and the logarithms (rows,) of that largest one
    and of the least; what is below exp(`LOG_SMALLEST`) need not be right."""

    likelihoods: Floats
    top: Floats
    low: Floats


class _OfRows(NamedTuple):
    """What is known of the densities of each row (rows,): the logarithm of what they were divided by, whether one of
    them underflows, and the logarithm (base 2) of the least one that is not 0."""

    scale: Floats
    lost: Mask
    floor: Floats


class DensityColumn(Column):
    """Numbers `values` (rows, columns) of one continuous variable, NaN where they are missing.

    Once it is `bound` to a density, its likelihoods are those of the parents' joint states.
    """

    def __init__(
        self, variable: Variable, values: Floats, density: AnyDensity | None = None, numbers: Numbers | None = None
    ) -> None:
        self.values, self.density = values, density
        self._kept: Floats | None = None  # the likelihoods, once they are worked out for more than one use
        self._known: _OfRows | None = None
        super().__init__(variable, numbers=numbers)

    @property
    def rows(self) -> int:
        return len(self.values)

    def source(self) -> ColumnArray:
        return ColumnArray(Kind.NORMALISED, self.likelihoods())

    @property
    def soft(self) -> Floats:
        """Likelihoods (components, rows) of the joint states of the parents; the largest of a row is 1."""
        return self.likelihoods()

    @property
    def scale(self) -> Floats:
        """The logarithms (rows,) of what the densities of each row were divided by."""
        return self._of_rows.scale

    @property
    def lost(self) -> Mask:
        """The rows (rows,) in which a density underflows beside the largest one."""
        return self._of_rows.lost

    @property
    def floor(self) -> Floats:
        """The logarithms (base 2) of the least likelihood of each row that is not 0: (rows,)."""
        return self._of_rows.floor

    @property
    def fully_observed(self) -> bool:
        """Never: numbers index no tables."""
        return False

    @property
    def known_in_all_rows(self) -> bool:
        return not np.isnan(self.values).any()

    def knows(self, name: str) -> bool:
        """Whether one of its columns has a number in every row."""
        return not np.isnan(self.values[:, self.variable.columns.index(name)]).any()

    @property
    def empty(self) -> bool:
        return bool(np.isnan(self.values).all())

    @property
    def observed(self) -> Mask:
        """Where all numbers are known: (rows,)."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    def take(self, rows: NDArray[np.int64] | slice) -> DensityColumn:
        if self.rows == 1:
            return self
        column = DensityColumn(self.variable, self.values[rows], self.density, numbers_of(self.numbers, rows))
        column.index = self.index
        return column

    def kept(self) -> DensityColumn:
        column = DensityColumn(self.variable, self.values.copy(), self.density, self.numbers)
        column.index = self.index
        return column

    def bound(self, density: AnyDensity) -> DensityColumn:
        """The column with the density that its numbers have; an error names the first one that it cannot have."""
        if density is self.density:
            return self
        wrong, reason = density.wrong(self.values)
        if wrong.any():
            raise self._impossible(np.flatnonzero(wrong), reason)
        column_bound = DensityColumn(self.variable, self.values, density, self.numbers)
        column_bound.index = self.index
        return column_bound

    def likelihoods(self, keep: bool = True, find: FindShares | None = None) -> Floats:
        """Likelihoods (components, rows). Those that nobody will ask for again need not be kept, which takes memory.

        `find` may be a faster way to work them out.
        """
        if self._kept is not None:
            return self._kept
        likelihoods, self._known = (find and self._found(find)) or self._worked_out()
        if keep:
            self._kept = likelihoods
        return likelihoods

    @property
    def _of_rows(self) -> _OfRows:
        if self._known is None:
            self.likelihoods()
        assert self._known is not None
        return self._known

    def _impossible(self, rows: NDArray[np.intp], reason: str) -> EvidenceError:
        """The error about all numbers of some rows that the density cannot have."""
        errors = []
        for name, column in zip(self.variable.columns, self.values[rows].T, strict=True):
            bad = np.isinf(column) if len(self.variable.columns) > 1 else np.full(len(rows), True)
            if not bad.any():
                continue
            numbers = [int(self.numbers[row]) for row in rows[bad]]
            values = counted_values(zip(column[bad].tolist(), numbers, strict=True), lambda _: reason)
            error = EvidenceError(f"{column[bad][0]:g} {reason}", variable=name, row=numbers[0], values=values)
            errors.append(error.indexed(self.index))
        return errors[0].changed(others=errors[1:])

    def certain_codes(self) -> Codes:
        problem = "is continuous, and its numbers index no tables; name it in evidence= in place of hard="
        raise EvidenceError(problem, variable=self.variable.name)

    @cached_property
    def normal_terms(self) -> Floats | None:
        """What the densities of these numbers are made of, if they are normal: see `normal.normal_terms`."""
        return None if self.density is None else self.density.normal_terms()

    def _found(self, find: FindShares) -> tuple[Floats, _OfRows] | None:
        """The densities, if none of them underflows, and no logarithm is so large that its roundings show."""
        shares = find(self)
        if shares is None:
            return None
        likelihoods, top, low = shares
        plain = low.min(initial=0.0) >= LOG_SMALLEST and np.abs(top).max(initial=0.0) <= MAX_PLAIN_LOG
        return (likelihoods, _OfRows(top, np.zeros(len(top), dtype=np.bool_), low / LOG_2.high)) if plain else None

    def _worked_out(self) -> tuple[Floats, _OfRows]:
        """The densities (components, rows), divided by the largest of each row."""
        assert self.density is not None, "numbers have likelihoods only beside a density"
        logs = self.density.logs_by_component(self.values)
        top = _tops(logs)
        logs -= top
        rough = np.flatnonzero(np.abs(top) > MAX_PLAIN_LOG)
        if rough.size:
            differences, tops = _differences(self.density.exact_logs(self.values[rough]))
            logs[:, rough], top[rough] = differences.high, tops
        least, lost = logs.min(axis=0, initial=0.0), np.zeros(len(top), dtype=np.bool_)
        small = least.min(initial=0.0) < LOG_SMALLEST  # a quick look, which is enough for most rows
        if small:
            normal = logs >= LOG_SMALLEST
            lost |= (~normal & (logs > -np.inf)).any(axis=0)
            least = logs.min(axis=0, initial=0.0, where=normal)
        with np.errstate(under="ignore"):
            likelihoods = np.exp(logs, out=logs)
        if rough.size:
            likelihoods[:, rough] *= 1.0 + differences.low
        if small:
            likelihoods[likelihoods < np.finfo(np.float64).smallest_normal] = 0.0  # which keeps products fast
        return likelihoods, _OfRows(top, lost, least / LOG_2.high)

    def with_exponents(self) -> tuple[Floats, NDArray[np.int64]]:
        """The likelihoods as mantissas (components, rows) and the powers of two that they are multiplied by."""
        assert self.density is not None
        differences, _ = _differences(self.density.exact_logs(self.values))
        possible = differences.high > -np.inf
        high = np.where(possible, differences.high, 0.0)
        power = np.rint(high / LOG_2.high)
        rest = Twofold(high, np.where(possible, differences.low, 0.0)) - LOG_2 * power
        mantissas = np.where(possible, np.exp(rest.high) * (1.0 + rest.low), 0.0)
        return mantissas, power.astype(np.int64)


FindShares = Callable[[DensityColumn], Shares | None]  # None where it does not know


def _tops(logs: Floats) -> Floats:
    """The largest logarithm of each row; 0 where no component has a density."""
    top: Floats = logs.max(axis=0)
    top[top == -np.inf] = 0.0
    return top


def _differences(logs: Twofold) -> tuple[Twofold, Floats]:
    """Logarithms less the largest of their row, in twofold precision, and that largest one."""
    place = logs.high.argmax(axis=0)[None]
    top = Twofold(np.take_along_axis(logs.high, place, 0), np.take_along_axis(logs.low, place, 0))
    impossible = top.high == -np.inf
    top = Twofold(np.where(impossible, 0.0, top.high), np.where(impossible, 0.0, top.low))
    none = logs.high == -np.inf
    finite = Twofold(np.where(none, 0.0, logs.high), np.where(none, 0.0, logs.low))
    difference = finite - top
    return Twofold(np.where(none, -np.inf, difference.high), np.where(none, 0.0, difference.low)), top.high[0]


def with_densities(evidence: Evidence, net: Model) -> Evidence:
    """Evidence whose numbers are bound to the densities of a network."""
    if not any(isinstance(column, DensityColumn) for column in evidence.columns.values()):
        return evidence
    columns = dict(evidence.columns)
    for name, column in evidence.columns.items():
        if isinstance(column, DensityColumn):
            net.require_numbers([name])
            columns[name] = column.bound(net.density(name))
    return Evidence(evidence.rows, columns)


def bound(columns: Mapping[str, Column], densities: Mapping[str, AnyDensity]) -> dict[str, Column]:
    """Columns of which those of numbers are bound to densities, by the name of their variable."""
    return {n: c.bound(densities[n]) if isinstance(c, DensityColumn) else c for n, c in columns.items()}


def is_normal(column: Column) -> TypeGuard[DensityColumn]:
    """Whether a column holds numbers of normal densities, one in each row."""
    return isinstance(column, DensityColumn) and column.normal_terms is not None


def density_columns(columns: Mapping[str, Column]) -> list[DensityColumn]:
    """The columns of numbers."""
    return [column for column in columns.values() if isinstance(column, DensityColumn)]


def scale_of(columns: Mapping[str, Column], rows: int) -> Floats:
    """The logarithms (rows,) of what the densities of each row were divided by, all columns together."""
    total = np.zeros(rows)
    for column in density_columns(columns):
        total += column.scale
    return total


def lost_rows(columns: Mapping[str, Column], rows: int) -> Mask | None:
    """The rows (rows,) in which a density underflows beside the largest one of its column; None without numbers."""
    columns_of_numbers = density_columns(columns)
    if not columns_of_numbers:
        return None
    lost = np.zeros(rows, dtype=np.bool_)
    for column in columns_of_numbers:
        lost |= column.lost
    return lost
