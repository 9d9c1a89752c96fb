"""The answer to a query of a continuous node: a mixture of densities for each row of evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats, flat
from tacit.base.grid import GAP, Grid, ends, row_name
from tacit.base.text import plural, shown
from tacit.base.version import package
from tacit.model.elements.variable import similar
from tacit.query.numbers.intervals import shares

if TYPE_CHECKING:  # it loads scipy
    from tacit.query.numbers.components import Components, JointGaussianComponents

MAX_ROWS = 20  # that are printed; of more, the first and last ones
BLOCK = 1 << 16  # numbers of components that are computed at a time, so that they stay in a cache
LEVELS = {"5%": 0.05, "median": 0.5, "95%": 0.95}  # quantiles that are printed
MOST_WHOLE = 1e9  # up to where whole numbers are written with all their digits
SUMMARY = ("mean", "sd", *LEVELS)
IN_FILES = ("mean", "sd", *(f"{level:.0%}" for level in LEVELS.values()))  # what these are called in tables and JSON


class Mixture:
    """The distribution of a number in each row of evidence: densities, the components, that are weighted and added.

    There is a component for each joint state of the node's parents, weighted by the posterior of that state. Where a
    node has several columns, this is their joint distribution, and `column` gives that of one of them. Rows of
    impossible evidence have NaN for all numbers. It prints as a table, and indexing selects rows.

    Attributes
    ----------
    weights
        The weight of each component: (rows, components).
    components
        The densities of the components.
    columns
        The name of the column, or of each column of a joint distribution.
    index
        The index of the pandas frame that the rows came from, if they did.

    >>> import numpy as np
    >>> from tacit.query.numbers.components import GaussianComponents
    >>> components = GaussianComponents(mean=np.array([[20.0, 35.0]]), sd=np.array([[1.0, 5.0]]))
    >>> heat = Mixture(np.array([[1.0, 0.0], [0.5, 0.5]]), components, ["heat"])
    >>> heat
    heat     mean       sd       5%   median      95%
    0     20.0000  1.00000  18.3551  20.0000  21.6449
    1     27.5000  8.32166  18.7152  22.5000  41.4078
    >>> heat.mean, heat.cdf(25.0).round(4), heat.quantile(0.25).round(4)
    (array([20. , 27.5]), array([1.    , 0.5114]), array([19.3255, 19.9966]))
    """

    def __init__(
        self, weights: Floats, components: Components, columns: Sequence[str] = ("x",), index: Any = None
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.components, self.columns, self.index = components, tuple(columns), index

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: Any) -> Mixture:
        """The mixtures of some rows: of one, of a slice, or of an array of their numbers or of truth values."""
        places = np.atleast_1d(np.arange(len(self))[rows])
        index = None if self.index is None else self.index[places]
        return Mixture(self.weights[places], self.components.rows(places), self.columns, index)

    def __iter__(self) -> Iterator[Mixture]:
        return (self[row] for row in range(len(self)))

    def column(self, name: str) -> Mixture:
        """The distribution of one column of several."""
        if name not in self.columns:
            expected = f"expected one of {list(self.columns)}"
            raise TacitError(f"{name!r} is not a column; {expected}{similar(name, self.columns)}")
        if not self.components.joint:
            return self
        components: JointGaussianComponents = self.components  # type: ignore[assignment]
        return Mixture(self.weights, components.column(self.columns.index(name)), [name], self.index)

    @property
    def mean(self) -> Floats:
        """The mean: (rows,), or (rows, columns) of several columns."""
        heaviest, apart = self._means()
        return heaviest + self._average(apart)

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def sd(self) -> Floats:
        """The standard deviation: (rows,), or (rows, columns) of several columns."""
        return np.asarray(np.sqrt(self._average(self.components.variances() + self._apart() ** 2)))

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def cov(self) -> Floats:
        """The covariances of several columns: (rows, columns, columns)."""
        if not self.components.joint:
            raise TacitError(f"cov is of several columns, and {self.columns[0]!r} is one; its variance is .sd ** 2")
        components: JointGaussianComponents = self.components  # type: ignore[assignment]
        apart = self._apart()
        return self._average(components.cov + apart[..., :, None] * apart[..., None, :])

    @np.errstate(over="ignore", invalid="ignore")
    def _means(self) -> tuple[Floats, Floats]:
        """The mean of the heaviest component, and how much greater that of each is: equal ones differ by exactly 0."""
        means = self.components.means()
        heaviest = means[np.arange(len(self)) % len(means), self.weights.argmax(axis=1)]
        return heaviest, np.asarray(means - heaviest[:, None])

    def _apart(self) -> Floats:
        """How far the mean of each component is from the mean of all."""
        _, apart = self._means()
        return np.asarray(apart - self._average(apart)[:, None])

    @np.errstate(over="ignore", invalid="ignore")
    def _average(self, values: Floats) -> Floats:
        """The weighted average of numbers of the components: (rows, ...) of (rows | 1, components, ...)."""
        weights = self.weights.reshape(*self.weights.shape, *(1,) * (values.ndim - 2))
        return np.asarray(np.where(weights == 0, 0.0, weights * values).sum(axis=1))

    def pdf(self, x: Any) -> Floats:
        """The density at a number, (rows,), or at several, (rows, k); of counts, their probability.

        Of several columns it takes a point, (columns,), or several, (k, columns).
        """
        return self._at(x, lambda components, x: np.exp(components.logs(x)))

    def cdf(self, x: Any) -> Floats:
        """The probability of at most a number, (rows,), or of at most each of several, (rows, k)."""
        self._require_one_column("cdf(x)")
        return np.minimum(self._at(x, lambda components, x: components.cumulative(x)), 1.0)

    def quantile(self, q: Any = 0.5) -> Floats:
        """The number below which the share q of the distribution lies, (rows,), or those of several shares, (rows, k).

        Of counts, it is the smallest one that makes `cdf` at least q.
        """
        self._require_one_column("quantile(q)")
        levels = shares(q)
        quantiles = np.full((len(self), levels.size), np.nan)
        possible = np.flatnonzero(~np.isnan(self.weights).any(axis=1))
        for block in self._blocks(len(possible)):
            rows = possible[block]
            components = self.components.rows(rows)
            for place, level in enumerate(levels.reshape(-1).tolist()):
                with np.errstate(all="ignore"):  # where Newton's method leaves the range of floats, bisection goes on
                    quantiles[rows, place] = components.quantile(self.weights[rows], level)
        return quantiles[:, 0] if levels.ndim == 0 else quantiles

    def interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """The ends, each (rows,), of the interval that holds this share, with as much below it as above."""
        share = shares(level, "level")
        if share.ndim:
            raise TacitError(f"level is {shown(level)}, expected one number from 0 to 1")
        return self.quantile((1 - share) / 2), self.quantile((1 + share) / 2)

    def _require_one_column(self, what: str) -> None:
        if self.components.joint:
            advice = f"ask about one of them, e.g. .column({self.columns[0]!r}).{what}"
            raise TacitError(f"{what} is of one number, and this is the joint distribution of {self.columns}; {advice}")

    def _at(self, x: Any, values: Callable[[Components, Floats], Floats]) -> Floats:
        """The weighted sum of what the components have at some points: (rows,) of one, (rows, k) of several."""
        points, one = self._points(x)
        with np.errstate(all="ignore"):
            if self.components.shared:
                mixed = self.weights @ values(self.components, points[None])[0].T
            else:
                mixed = np.empty((len(self), len(points)))
                for rows in self._blocks(len(self), len(points)):
                    own = values(self.components.rows(rows), points[None])
                    mixed[rows] = np.matmul(own, self.weights[rows, :, None])[:, :, 0]
        mixed[:, np.isnan(flat(points)).any(axis=1)] = np.nan
        return np.asarray(mixed[:, 0] if one else mixed)

    def _points(self, x: Any) -> tuple[Floats, bool]:
        """Points (k,), or (k, columns), and whether x was just one."""
        axes = int(self.components.joint)
        try:
            points = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            points = np.empty((0, 0, 0))
        if points.ndim not in (axes, axes + 1) or (axes and points.shape[-1] != len(self.columns)):
            expected = f"points (k, {len(self.columns)})" if axes else "a number, or an array (k,) of them"
            raise TacitError(f"x is {shown(x)}, expected {expected}")
        return (points[None], True) if points.ndim == axes else (points, False)

    def _blocks(self, count: int, points: int = 1) -> Iterator[slice]:
        """So many rows in blocks, each with not too many numbers of components at some points."""
        size = max(1, BLOCK // max(1, points * self.weights.shape[1]))
        return (slice(first, first + size) for first in range(0, count, size))

    def plot(self, x: Any = None, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw the density of each row on the axes given, or on new ones, of a width such as "3.3in".

        See `tacit.plot.density`. It needs matplotlib.
        """
        from tacit.views.densities import density

        return density(self, x, ax, width)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, with its index; mean, sd and quantiles as columns.

        Of several columns, these have two levels.
        """
        pandas = package("pandas", "frames")
        parts = {name: pandas.DataFrame(self.summary(name), self.index, SUMMARY) for name in self.columns}
        return pandas.concat(parts, axis=1) if self.components.joint else parts[self.columns[0]]

    def to_polars(self) -> Any:
        """A polars frame with columns `mean`, `sd`, ...; of several columns `x.mean`, `x.sd`, ..."""
        return package("polars", "frames").DataFrame(self._named_summary())

    def to_arrow(self) -> Any:
        """A pyarrow table with columns `mean`, `sd`, ...; of several columns `x.mean`, `x.sd`, ..."""
        return package("pyarrow", "cli").table(self._named_summary())

    def _named_summary(self) -> dict[str, Floats]:
        """Mean, sd and quantiles, each (rows,), by name."""
        return {
            f"{name}.{part}" if self.components.joint else part: numbers
            for name in self.columns
            for part, numbers in zip(SUMMARY, np.ascontiguousarray(self.summary(name).T), strict=True)
        }

    def summary(self, name: str) -> Floats:
        """Mean, sd and quantiles of a column: (rows, 5)."""
        own = self.column(name)
        return np.column_stack([own.mean, own.sd, own.quantile(list(LEVELS.values()))])

    def _grid(self) -> Grid:
        """A line for each row, or for each column in each row of a joint distribution."""
        rows, joint = ends(len(self), MAX_ROWS), self.components.joint
        names = [row_name(self.index, row) for row in rows if row is not None]
        some = self[[row for row in rows if row is not None]]
        numbers = np.stack([some.summary(name) for name in self.columns], axis=1).reshape(-1, len(SUMMARY))
        cells = zip(*map(_cells, numbers.T), strict=True)
        stubs = [(name if i == 0 else "", own)[: 1 + joint] for name in names for i, own in enumerate(self.columns)]
        body = [(*stub, *line) for stub, line in zip(stubs, cells, strict=True)]
        head = ("row", "column", *SUMMARY) if joint else (self.columns[0], *SUMMARY)
        hidden = None in rows
        if hidden:
            body.insert(rows.index(None) * len(self.columns), (GAP,) * len(head))
        return Grid([head], body, stubs=1 + joint, note=f"[{len(self):,} rows]" if hidden else "")

    def __repr__(self) -> str:
        names = ", ".join(self.columns)
        if not len(self):
            return f"no rows of {names}"
        if not self.components.summarised:
            return f"densities of {names} in {plural(len(self), 'row')}, which .pdf(x) computes"
        return str(self._grid())

    def _repr_html_(self) -> str | None:
        return self._grid().html() if len(self) and self.components.summarised else None


def _cells(numbers: Floats) -> list[str]:
    """Numbers with six digits, or, where all are whole, without any after the point."""
    known = numbers[np.isfinite(numbers)]
    whole = bool(((known == np.round(known)) & (np.abs(known) < MOST_WHOLE)).all())
    return [f"{number + 0.0:.0f}" if whole else f"{number:#.6g}".rstrip(".") for number in numbers]
