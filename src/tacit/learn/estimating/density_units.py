"""Densities to be estimated, with those that are tied to them: their start, and the best numbers for moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, NetworkError, TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.learn.estimating.density_forms import covariances, locations, log_likelihood, parts_of, statistic
from tacit.learn.estimating.density_totals import DensityTotals, RowSample
from tacit.learn.estimating.moments import Moments
from tacit.learn.prior import Prior
from tacit.model.densities import AnyDensity, Gaussian, Poisson
from tacit.query.network import Network

FLOOR = 1e-9  # of a column's variance, or of its mean count: what is learned is not smaller
LEAST_START = 0.1  # of the mean count, for the rates that EM starts from
AT_FLOOR = 1e-6  # how far from the floor, in shares of it, rounding may leave what was raised to it

Mask = NDArray[np.bool_]


class CollapsedDensityWarning(UserWarning):
    """A variance that was learned fell to almost nothing, and was raised to 1e-9 of the variance of its column."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What the rows say of a density before EM: `whole` of each of its columns, complete rows of each component."""

    whole: Moments
    complete: Moments
    prior: Moments

    @cached_property
    def mean(self) -> Floats:
        """The mean of each column (columns,)."""
        return self.whole.mean[:, 0]

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation of each column (columns,); 1 of those without."""
        variance = self.whole.cov[:, 0, 0]
        return np.where(variance > 0, np.sqrt(variance), 1.0)


@dataclass(frozen=True, eq=False)
class FreeDensity:
    """A density with free numbers, and the nodes that share it.

    `unset` is where (components,) some number has none to start from, and `given` has any number there.
    """

    names: tuple[str, ...]
    given: AnyDensity
    free: Mapping[str, Mask]  # by part, with one axis for the components
    unset: Mapping[str, Mask]
    seen: Seen | None = None

    @classmethod
    def of(cls, names: Sequence[str], density: AnyDensity) -> FreeDensity | None:
        """The free numbers of a density; None if it has none."""
        unset = {part: np.isnan(density.flat(part)) for part in density.parts()}
        free = {part: np.full_like(own, True) for part, own in unset.items()} if density.learn else unset
        if not any(own.any() for own in free.values()):
            return None
        if isinstance(density, Gaussian) and density.cov is not None:
            _refuse_gaps(names[0], unset)
        known = {part: np.where(np.isnan(own), 1.0, own) for part, own in density.parts().items()}
        if density.dimension > 1 and unset["cov"].any():
            gaps = np.isnan(density.parts()["cov"])
            known["cov"] = np.where(gaps, np.eye(density.dimension), density.parts()["cov"])
        return cls(tuple(names), density.with_parts(known), free, unset)

    @property
    def size(self) -> int:
        return sum(own.size for own in self.free.values())

    @property
    def count(self) -> int:
        """How many numbers can be chosen: of a covariance matrix, one triangle."""
        columns = self.given.dimension
        shares = {"cov": (columns + 1) / (2 * columns)}
        return sum(round(own.sum() * shares.get(part, 1)) for part, own in self.free.items())

    @property
    def random(self) -> bool:
        """Whether some numbers have no start of their own."""
        return any(own.any() for own in self.unset.values())

    def looked(self, totals: Mapping[str, DensityTotals], net: Network, prior: Prior) -> FreeDensity:
        """The same after a first pass over the rows."""
        nothing = DensityTotals(Moments.none(self.given.dimension, 1), _nothing(self.given))
        total = sum((totals.get(name, nothing) for name in self.names), nothing)
        self._require_numbers(total.whole, net)
        return replace(self, seen=Seen(total.whole, total.complete, self._prior(total.whole, net, prior)))

    def points(self, sample: RowSample) -> Floats:
        """The numbers of some rows in all of the nodes, one below the other, each column with variance 1."""
        assert self.seen is not None
        nothing = np.full((len(sample.hashes), self.given.dimension), np.nan)
        values = np.concatenate([sample.values.get(name, nothing) for name in self.names])
        return (statistic(self.given, values) - self.seen.mean) / self.seen.spread

    def start(self, seeds: Floats) -> Floats:
        """The given numbers; means of others are those of complete rows, or seeds of variance 1 (components, columns).

        Variances are those of the whole column.
        """
        if self.seen is None:
            return self._vector(self._flat_parts(self.given))
        labelled = (self.seen.complete.weight > 0)[:, None]
        mean = np.where(labelled, self.seen.complete.mean, self.seen.mean + seeds * self.seen.spread)
        if isinstance(self.given, Poisson):  # a component that starts from a count of 0 would never get another one
            mean = np.maximum(mean, LEAST_START * self.seen.mean)
        return self._vector(_chosen(self.unset, self.parts(mean, self.whole_cov), self._flat_parts(self.given)))

    def density(self, numbers: Floats) -> AnyDensity:
        """The density with such numbers."""
        parts = {part: own.reshape(self.given.parts()[part].shape) for part, own in self._split(numbers)}
        return self.given.with_parts(parts)

    def maximised(self, moments: Mapping[str, Moments], now: Floats, negligible: float) -> Floats:
        """The most probable numbers; a component of negligible weight stays, or is the whole column if it was unset."""
        own, before = self.gathered(moments, negligible), self.density(now)
        reached = own.weight > 0
        mean = np.where(self.mean_is_free & reached[:, None], own.mean, locations(before))
        off = own.mean - mean
        made = self.parts(mean, own.cov + off[:, :, None] * off[:, None, :])
        kept = self._flat_parts(before)
        if not reached.all():
            whole = np.broadcast_to(self.whole.mean, mean.shape)
            gone = {part: gap & ~_like(reached, gap) for part, gap in self.unset.items()}
            kept = _chosen(gone, self.parts(whole, self.whole_cov), kept)
        return self._vector(_chosen({part: own & _like(reached, own) for part, own in self.free.items()}, made, kept))

    def gathered(self, moments: Mapping[str, Moments], negligible: float) -> Moments:
        """The moments of all nodes together, with those of the prior; a component of negligible weight has none."""
        own = sum((moments[name] for name in self.names if name in moments), _nothing(self.given))
        return own.where(own.weight >= negligible) + self.whole.prior

    def log_prior(self, numbers: Floats) -> float:
        """The logarithm of the prior, up to a constant: the log-likelihood of the rows that it stands for."""
        assert self.seen is not None
        return log_likelihood(self.density(numbers), self.seen.prior) if self.seen.prior.weight.any() else 0.0

    def collapsed(self, numbers: Floats) -> list[int]:
        """The components with a variance, or a rate, that is no larger than the floor."""
        density = self.density(numbers)
        part = list(self.free)[-1]
        learned = self.free[part].reshape(density.components, -1).any(axis=1)
        if self.seen is None or not self.seen.whole.weight.any():
            return []
        if isinstance(density, Poisson):
            least: Floats = density.flat("rate") / self._least_rate
        else:
            least = np.asarray(np.linalg.eigvalsh(covariances(density) / self._scales)[:, 0] / FLOOR, np.float64)
        return np.flatnonzero(learned & (np.abs(least - 1) <= AT_FLOOR)).tolist()

    @cached_property
    def mean_is_free(self) -> Mask:
        return next(iter(self.free.values())).reshape(self.given.components, self.given.dimension)

    @property
    def whole(self) -> Seen:
        """What the rows say of the density before EM."""
        assert self.seen is not None
        return self.seen

    @property
    def whole_cov(self) -> Floats:
        """The covariance of all columns (components, columns, columns), as if they did not vary together."""
        spread = self.whole.spread
        return np.broadcast_to(np.diag(spread**2), (self.given.components, *[len(spread)] * 2))

    @property
    def _scales(self) -> Floats:
        return self.whole.spread[:, None] * self.whole.spread

    @property
    def _least_rate(self) -> float:
        return FLOOR * (float(self.whole.mean[0]) or 1.0)

    def parts(self, mean: Floats, cov: Floats) -> dict[str, Floats]:
        """The parts that belong to means and covariances, of which none is too small."""
        if isinstance(self.given, Poisson):
            return {"rate": np.maximum(mean[:, 0], self._least_rate)}
        return parts_of(self.given, mean, self.raised(cov))

    def raised(self, cov: Floats) -> Floats:
        """Covariances (components, d, d), none of which is too small."""
        return _raised(cov / self._scales) * self._scales

    def _flat_parts(self, density: AnyDensity) -> dict[str, Floats]:
        return {part: density.flat(part) for part in self.free}

    def _vector(self, parts: Mapping[str, Floats]) -> Floats:
        return np.concatenate([parts[part].ravel() for part in self.free])

    def _split(self, numbers: Floats) -> Iterator[tuple[str, Floats]]:
        start = 0
        for part, own in self.free.items():
            yield part, numbers[start : start + own.size]
            start += own.size

    def _require_numbers(self, whole: Moments, net: Network) -> None:
        """An error if no rows, or only equal ones, say something of numbers that need rows."""
        name, columns = self.names[0], net.variable(self.names[0]).columns
        if self.random and not whole.weight.all():
            raise EvidenceError(
                f"node {name!r}: no row has a number of it to learn its {self.given.kind} density from; "
                "give its numbers, or leave the node out"
            )
        needs_spread = any(self.free[part].any() for part in ("sd", "cov") if part in self.free)
        for column, value, weight, variance in zip(
            columns, whole.mean[:, 0], whole.weight, whole.cov[:, 0, 0], strict=True
        ):
            if needs_spread and weight > 0 and not variance > 0:
                raise EvidenceError(
                    f"{column!r} has the same number ({value:g}) in all rows, from which no variance can be learned; "
                    f"give the {list(self.free)[-1]} of node {name!r}, or leave the node out"
                )

    def _prior(self, whole: Moments, net: Network, prior: Prior) -> Moments:
        """The rows that a prior stands for: as many for each component, with the mean and spread of the whole column.

        With a network as its centre, with those of its densities; of several nodes that are tied, of their average.
        """
        strength, centre = prior
        if not strength:
            return _nothing(self.given)
        weight = np.full(self.given.components, float(strength))
        if centre is None:
            return Moments.alike(weight, whole.mean.T, np.diag(whole.cov[:, 0, 0]))
        rows = [_central(net, name, centre, self.given) for name in self.names]
        return sum(
            (Moments.alike(weight / len(rows), locations(own), covariances(own)) for own in rows), _nothing(self.given)
        )


def _nothing(density: AnyDensity) -> Moments:
    return Moments.none(density.components, density.dimension)


def _like(reached: Mask, mask: Mask) -> Mask:
    """A mask of components with the axes of another one."""
    return reached.reshape(-1, *[1] * (mask.ndim - 1))


def _chosen(where: Mapping[str, Mask], new: Mapping[str, Floats], old: Mapping[str, Floats]) -> dict[str, Floats]:
    return {part: np.where(mask, new[part], old[part]) for part, mask in where.items()}


def _raised(scaled: Floats) -> Floats:
    """Covariances of columns of variance 1, of which no direction has less variance than the floor."""
    if scaled.shape[-1] == 1:
        return np.maximum(scaled, FLOOR)
    values, vectors = np.linalg.eigh(scaled)
    small = values[:, 0] < FLOOR
    if not small.any():
        return scaled
    clipped = (vectors * np.maximum(values, FLOOR)[:, None]) @ np.swapaxes(vectors, 1, 2)
    return np.where(small[:, None, None], (clipped + np.swapaxes(clipped, 1, 2)) / 2, scaled)


def _refuse_gaps(name: str, unset: Mapping[str, Mask]) -> None:
    """Refuse to learn single numbers of a joint Gaussian: the best ones depend on all others."""
    for part, gaps in unset.items():
        flat = gaps.reshape(len(gaps), -1)
        for component in np.flatnonzero(flat.any(axis=1) & ~flat.all(axis=1))[:1].tolist():
            problem = f"component {component} of {part} has some numbers and some gaps (NaN)"
            remedy = "give all of its numbers or none; what does not vary together can be nodes of their own"
            raise NetworkError(f"node {name!r}: {problem}; {remedy}")


def _central(net: Network, name: str, centre: Network, given: AnyDensity) -> AnyDensity:
    """The density of a node in the network that a prior is centred on, with the parents in the order of `net`."""
    parents = net.parents(name)
    same = name in centre and set(centre.parents(name)) == set(parents)
    if not same or any(centre.states(n) != net.states(n) for n in parents) or type(centre.cpt(name)) is not type(given):
        problem = f"node {name!r} of that network has no {given.kind} density below {list(parents)}"
        raise TacitError(f"prior: {problem}; give one of the same structure")
    density = centre.density(name)
    if density.unset:
        raise UnsetError(f"prior: node {name!r} of that network has unset numbers (NaN)")
    if density.dimension != given.dimension:
        raise TacitError(f"prior: node {name!r} of that network has {density.dimension} columns")
    order = [centre.parents(name).index(parent) for parent in parents]
    parts = {
        part: own.transpose([*order, *range(len(order), own.ndim)]).reshape(given.parts()[part].shape)
        for part, own in density.parts().items()
    }
    return given.with_parts(parts)
