"""Networks whose numbers stay numbers: normal distributions below the class, in closed form from the moments of rows.

Below a class, or each of several components of it, the columns of numbers are one joint normal distribution, whose
covariances are held to what all components have in common. With a component around every row, that is a kernel
density. Columns of text are below the class, with tables of their counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from tacit.base.floats import Floats
from tacit.model.cpt import CPT
from tacit.model.densities.gaussian import Gaussian
from tacit.model.densities.missing import patterns
from tacit.model.densities.normal import blocks
from tacit.query.network import Network
from tacit.query.tac import TAC, compile
from tacit.sklearn.levels import Categories
from tacit.sklearn.model_selection import LabelledTable
from tacit.sklearn.table import FeatureTable

Known = list[tuple[NDArray[np.intp], NDArray[np.intp]]]  # the columns that are known in some rows, and these rows

LEAST_VARIANCE = 1e-3  # of a column of variance 1, within a component
MAX_KERNELS = 8_000
ROUNDS = 20  # of moving the centres of components
WIDEST = 6.0  # deviations from the mean: numbers beyond count as that far


@dataclass(frozen=True)
class Shape:
    """What the normal distributions of a network are like.

    `components` is how many each class has, and None one around every row, of a share `width` of the deviations of
    its class. `shared` is the share of the covariances that is the same for all, `diagonal` that without correlations,
    and with `scores`, numbers are their normal scores: as if what is ranked alike were normally distributed.
    """

    scores: bool = False
    components: int | None = 1
    shared: float = 1.0
    diagonal: float = 0.0
    width: float = 1.0


JOINT = [(shared, diagonal) for shared in (0.0, 0.5, 0.8, 1.0) for diagonal in (0.02, 0.2, 1.0)]
MIXED = [(components, shared) for components in (2, 4, 8) for shared in (0.3, 1.0)]
KERNEL = [(diagonal, width) for diagonal in (0.1, 1.0) for width in (0.1, 0.15, 0.25, 0.4, 0.6, 1.0)]
FAMILIES: dict[str, list[Shape]] = {
    "joint": [Shape(scores, 1, *pair) for scores in (False, True) for pair in JOINT],
    "mixed": [Shape(scores, *pair, diagonal=0.1) for scores in (False, True) for pair in MIXED],
    "kernel": [Shape(scores, None, 1.0, *pair) for scores in (False, True) for pair in KERNEL],
}


@dataclass(frozen=True)
class NumberScale:
    """A column of numbers in standard deviations from its mean, of the numbers themselves or of their normal scores.

    >>> NumberScale.of(np.array([1.0, 10.0, 1000.0]), np.ones(3), True)(np.array([1.0, 10.0, np.nan])).round(2)
    array([-1.22,  0.  ,   nan])
    """

    values: Floats  # ascending, of which `scores` are the normal scores; none of both: numbers as they are
    scores: Floats
    mean: float
    deviation: float

    @classmethod
    def of(cls, column: Floats, weights: Floats, scores: bool) -> NumberScale:
        """The scale of a column; a row of weight 2 counts as two rows, NaN as none. A constant one has deviation 0."""
        known = ~np.isnan(column) & (weights > 0)
        seen, weights = column[known], weights[known]
        if not len(seen):
            return cls(seen, seen, 0.0, 0.0)
        if scores:
            values, places = np.unique(seen, return_inverse=True)
            counts = np.bincount(places, weights)
            normal = ndtri((np.cumsum(counts) - counts / 2) / counts.sum())
            seen = normal[places]
        else:
            values = normal = np.zeros(0)
        shares = weights / weights.sum()
        mean = float(shares @ seen)
        widest = np.abs(seen - mean).max()  # whose square may be too large for a float
        if widest <= 1e-12 * abs(mean):
            return cls(values, normal, mean, 0.0)
        return cls(values, normal, mean, float(widest * np.sqrt(shares @ ((seen - mean) / widest) ** 2)))

    def __call__(self, column: Floats) -> Floats:
        numbers = np.interp(column, self.values, self.scores) if len(self.values) else column
        return np.asarray(np.clip((numbers - self.mean) / self.deviation, -WIDEST, WIDEST))


@dataclass(frozen=True, eq=False)
class Scaling:
    """The scales of a table's columns by their place, and the names of these columns as variables."""

    numbers: dict[int, NumberScale]
    texts: dict[int, Categories]
    names: tuple[str, ...]

    @classmethod
    def of(cls, rows: LabelledTable, scores: bool) -> Scaling:
        columns = list(enumerate(rows.table.columns))
        numbers = {i: NumberScale.of(c, rows.weights, scores) for i, c in columns if c.dtype != object}
        texts = {i: Categories.of(c, rows.weights) for i, c in columns if c.dtype == object}
        several = {i: text for i, text in texts.items() if len(text.states) > 1}
        return cls({i: scale for i, scale in numbers.items() if scale.deviation > 0}, several, tuple(rows.names))

    def matrix(self, table: FeatureTable) -> Floats:
        """The scaled numbers (rows, columns of numbers)."""
        columns = [scale(table.columns[i]) for i, scale in self.numbers.items()]
        return np.stack(columns, axis=1) if columns else np.zeros((table.shape[0], 0))

    def __call__(self, table: FeatureTable) -> dict[str, Floats]:
        """Evidence on the variables of a network."""
        evidence = {self.names[i]: scale(table.columns[i]) for i, scale in self.numbers.items()}
        return evidence | {self.names[i]: text(table.columns[i]) for i, text in self.texts.items()}


@dataclass(frozen=True, eq=False)
class Parts:
    """Components: the class, the weight and the mean of each."""

    classes: NDArray[np.intp]
    weights: Floats
    means: Floats  # (components, columns)
    members: NDArray[np.intp]  # the component of each row; empty where each row has one of its own


@dataclass(frozen=True, eq=False)
class GaussianRows:
    """Rows of scaled numbers, from which networks of all shapes with the same scaling are made."""

    rows: LabelledTable
    scaling: Scaling

    @cached_property
    def classes(self) -> NDArray[np.intp]:
        return np.asarray(self.rows.targets.argmax(axis=1))

    @cached_property
    def values(self) -> Floats:
        """The scaled numbers; a missing one is the mean of its class."""
        values = self.scaling.matrix(self.rows.table)
        for k in np.unique(self.classes):
            of_class = self.classes == k
            known = np.where(np.isnan(values[of_class]), 0.0, self.rows.weights[of_class, None])
            mean = (known * np.nan_to_num(values[of_class])).sum(axis=0) / np.maximum(known.sum(axis=0), 1e-300)
            values[of_class] = np.where(np.isnan(values[of_class]), mean, values[of_class])
        return values

    def parts(self, components: int | None) -> Parts:
        """The components of all classes."""
        if components is None:
            kernels = np.flatnonzero(self.rows.weights)[:MAX_KERNELS]
            weights = self.rows.weights[kernels]
            return Parts(self.classes[kernels], weights, self.values[kernels], np.zeros(0, dtype=np.intp))
        members, classes = np.zeros(len(self.classes), dtype=np.intp), list[int]()
        for k in range(self.rows.targets.shape[1]):
            of_class = np.flatnonzero(self.classes == k)
            found = clusters(self.values[of_class], self.rows.weights[of_class], components)
            members[of_class] = len(classes) + found
            classes += [k] * (int(found.max(initial=-1)) + 1)
        return Parts(np.array(classes, dtype=np.intp), *self._moments(members, len(classes)), members)

    def _moments(self, members: NDArray[np.intp], count: int) -> tuple[Floats, Floats]:
        sums = np.zeros((count, self.values.shape[1]))
        np.add.at(sums, members, self.rows.weights[:, None] * self.values)
        weights = np.asarray(np.bincount(members, self.rows.weights, count), dtype=np.float64)
        return weights, sums / np.maximum(weights, 1e-300)[:, None]

    def covariances(self, parts: Parts, shape: Shape) -> Floats:
        """The covariances of components (components or 1, columns, columns)."""
        size = self.values.shape[1]
        means = parts.means if len(parts.members) else self._moments(self.classes, self.rows.targets.shape[1])[1]
        members = parts.members if len(parts.members) else self.classes
        off = (self.values - means[members]) * np.sqrt(self.rows.weights)[:, None]
        pooled = off.T @ off / max(float(self.rows.weights.sum()), 1e-300)
        if shape.shared == 1.0:
            found = pooled[None]
        else:
            own = np.stack([off[members == part].T @ off[members == part] for part in range(len(parts.weights))])
            own /= np.maximum(parts.weights, 1e-300)[:, None, None]
            trust = ((1 - shape.shared) * parts.weights / (parts.weights + size))[:, None, None]
            found = trust * own + (1 - trust) * pooled
        uncorrelated = found * np.eye(size)
        held = (1 - shape.diagonal) * found + shape.diagonal * uncorrelated
        return np.asarray(shape.width**2 * (held + LEAST_VARIANCE * np.eye(size)))

    def network(self, shape: Shape) -> Network:
        """The network of a shape: the class, which components `C` determine, where there are several."""
        parts, rows = self.parts(shape.components), self.rows
        net, top = Network("classifier"), rows.query
        shares = _shares(parts, rows.targets.shape[1])
        if shape.components == 1 and len(parts.classes) == len(shares):
            net.add(top, (), rows.classes, CPT(shares))
        else:
            top, within = "C", parts.weights / np.bincount(parts.classes, parts.weights)[parts.classes]
            prior = shares[parts.classes] * within
            net.add("C", (), len(parts.classes), CPT(prior / prior.sum()))
            net.add(rows.query, ["C"], rows.classes, np.eye(len(shares))[parts.classes])
        for i, text in self.scaling.texts.items():
            net.add(rows.names[i], [rows.query], text.states, CPT(self._text_table(i, text)))
        numbers = tuple(rows.names[i] for i in self.scaling.numbers)
        if len(numbers) == 1:
            deviations = np.sqrt(self.covariances(parts, shape)[:, 0, 0])
            deviations = np.broadcast_to(deviations, len(parts.classes))
            net.add(numbers[0], [top], cpt=Gaussian(parts.means[:, 0], sd=deviations))
        elif numbers:
            cov = self.covariances(parts, shape)
            net.add(numbers, [top], cpt=Gaussian(parts.means, cov=cov[0] if len(cov) == 1 else cov))
        return net

    def _text_table(self, i: int, text: Categories) -> Floats:
        likelihoods = np.nan_to_num(text(self.rows.table.columns[i]))
        alone = self.rows.weights @ likelihoods + 1.0
        counts = (self.rows.targets * self.rows.weights[:, None]).T @ likelihoods + alone / alone.sum()
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def query(self, shape: Shape) -> TAC:
        net = self.network(shape)
        numbers = [self.rows.names[i] for i in (*self.scaling.numbers, *self.scaling.texts)]
        return compile(net, self.rows.query, numbers, order=["C"] if "C" in net.variables else [])

    def logs(self, shapes: list[Shape], others: FeatureTable) -> Iterator[tuple[Shape, Floats]]:
        """What the networks of shapes say of other rows: logs of the joint densities with each class (rows, classes).

        The same numbers as from the networks, but for those that all classes of a row share; and far faster, as plain
        floats will do for a choice.
        """
        values, texts = self.scaling.matrix(others), self._text_logs(others)
        known = [(observed, np.arange(len(values))[rows]) for observed, rows in patterns(values)]
        nearby: dict[float, Floats] = {}
        made = {components: self.parts(components) for components in {shape.components for shape in shapes}}
        for shape in shapes:
            parts = made[shape.components]
            if shape.components is None:
                if shape.diagonal not in nearby:
                    cov = self.covariances(parts, Shape(True, None, 1.0, shape.diagonal))
                    nearby[shape.diagonal] = log_densities(values, known, parts.means, cov)
                logs = nearby[shape.diagonal] / shape.width**2
            else:
                logs = log_densities(values, known, parts.means, self.covariances(parts, shape))
            yield shape, texts + _by_class(logs, parts, self.rows.targets.shape[1])

    def _text_logs(self, others: FeatureTable) -> Floats:
        logs = np.zeros((others.shape[0], self.rows.targets.shape[1]))
        for i, text in self.scaling.texts.items():
            likelihoods = np.nan_to_num(text(others.columns[i]), nan=1.0)
            logs += np.log(likelihoods @ self._text_table(i, text).T)
        return logs


def _shares(parts: Parts, classes: int) -> Floats:
    """The prior of the classes."""
    counts = np.bincount(parts.classes, parts.weights, classes) + 1.0
    return np.asarray(counts / counts.sum())


def _by_class(logs: Floats, parts: Parts, classes: int) -> Floats:
    """Logs of the joint densities with classes, from those given components."""
    found = np.full((len(logs), classes), -np.inf)
    shares = np.log(_shares(parts, classes))
    for k in range(classes):
        of_class = parts.classes == k
        if of_class.any():
            weights = parts.weights[of_class] / parts.weights[of_class].sum()
            found[:, k] = logsumexp(logs[:, of_class], b=weights, axis=1) + shares[k]
    return found


def log_densities(values: Floats, known: Known, means: Floats, cov: Floats) -> Floats:
    """Logs of normal densities (rows, components), but for what is the same for all components of a row."""
    logs = np.zeros((len(values), len(means)))
    for observed, rows in known:
        part, centres, own = values[rows][:, observed], means[:, observed], cov[:, observed[:, None], observed]
        if not len(observed):
            continue
        if len(own) == 1:
            logs[rows] = -0.5 * _squares(part, centres, own[0])
            continue
        factors = np.linalg.cholesky(own)
        volumes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        for block in blocks(len(part), centres.size):
            off = np.linalg.solve(factors, (part[block, None] - centres).transpose(1, 2, 0))
            logs[rows[block]] = -0.5 * (off**2).sum(axis=1).T - volumes
    return logs


def _squares(values: Floats, centres: Floats, cov: Floats) -> Floats:
    """Squared distances (rows, centres), in deviations."""
    whiten = np.linalg.inv(np.linalg.cholesky(cov)).T
    values, centres = values @ whiten, centres @ whiten
    squares = (values**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * values @ centres.T
    return np.asarray(np.maximum(squares, 0.0))


def clusters(values: Floats, weights: Floats, count: int) -> NDArray[np.intp]:
    """The cluster of each row, from 0 without gaps: of at most `count`, around means, with a few rows each.

    The first are cut across the direction of most variance, so that nothing is left to chance.
    """
    count = min(count, int(np.count_nonzero(weights) // 8))
    if count <= 1 or not values.shape[1]:
        return np.zeros(len(values), dtype=np.intp)
    shares = weights / weights.sum()
    off = values - shares @ values
    direction = np.linalg.eigh((off * shares[:, None]).T @ off)[1][:, -1]
    order = np.argsort(off @ direction, kind="stable")
    places = np.empty(len(values))
    places[order] = np.cumsum(shares[order]) - shares[order] / 2
    members = np.minimum((places * count).astype(np.intp), count - 1)
    for _ in range(ROUNDS):
        kept = np.unique(members[weights > 0])
        means = np.stack([np.average(values[members == k], axis=0, weights=weights[members == k]) for k in kept])
        members = _squares(values, means, np.eye(values.shape[1])).argmin(axis=1)
    return np.asarray(np.unique(members, return_inverse=True)[1])


def logs_of_all(rows: LabelledTable, others: FeatureTable) -> Iterator[tuple[str, Shape, Floats]]:
    """What networks of all shapes, made from some rows, say of others."""
    made = {scores: GaussianRows(rows, Scaling.of(rows, scores)) for scores in (False, True)}
    for family, shapes in FAMILIES.items():
        for scores, gaussian in made.items():
            for shape, logs in gaussian.logs([one for one in shapes if one.scores == scores], others):
                yield family, shape, logs
