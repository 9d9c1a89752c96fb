"""The numbers of a network that are estimated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.base.warnings import warn
from tacit.engines.draws import Draws
from tacit.learn.estimating.density_totals import DensityTotals, RowSample
from tacit.learn.estimating.density_units import CollapsedDensityWarning, FreeDensity
from tacit.learn.estimating.expected_counts import ExpectedCounts, Numbers
from tacit.learn.estimating.seeding import seeds
from tacit.learn.estimating.units import Causes, FreeTable, Key, TableGroup, causes_of
from tacit.learn.prior import Prior
from tacit.model.cpt import CPT, AnyCPT, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.elements.distributions import structural
from tacit.model.elements.variable import describe
from tacit.model.rules import NoisyOr
from tacit.query.network import Network

Unit = FreeTable | Causes | FreeDensity
N = TypeVar("N", bound=np.generic)


class Estimable:
    """The free numbers of a network, as one vector. The pseudo-counts of a prior are added to their counts."""

    def __init__(self, net: Network, prior: Prior) -> None:
        self.network, self._prior = net, prior
        self.units: list[Unit] = []
        self._sample: RowSample | None = None
        members: dict[str, list[str]] = {}
        for name in net.variables:
            cpt = net.cpt(name)
            if isinstance(cpt, CPT | TestingCPT | BaseDensity):
                members.setdefault(cpt.tie if cpt.tie is not None else f"\0{name}", []).append(name)
            elif isinstance(cpt, NoisyOr) and cpt.learn:
                self.units.append(Causes(name, cpt, self._prior_of_causes(name, cpt)))
        densities = []
        for names in members.values():
            if net.variable(names[0]).continuous:
                densities.append(FreeDensity.of(names, net.density(names[0])))
            else:
                self.units += self._tables(names)
        self.units += [unit for unit in densities if unit is not None]
        if not self.units:
            remedy = "mark them with learn=True, or estimate net.learnable(), a copy in which all of them are"
            raise TacitError(f"no table of the network is to be learned; leave tables out (cpt=None), {remedy}")

    @property
    def count(self) -> int:
        return sum(unit.count for unit in self.units)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have free numbers."""
        return list(dict.fromkeys(name for unit in self.units for name in unit.names))

    @property
    def densities(self) -> tuple[str, ...]:
        """The nodes whose densities have free numbers."""
        return tuple(name for unit in self.units if isinstance(unit, FreeDensity) for name in unit.names)

    @property
    def random(self) -> bool:
        """Whether some number has no start of its own."""
        return any(unit.random for unit in self.units)

    def looked(self, totals: Mapping[str, DensityTotals], sample: RowSample) -> Self:
        """The same, knowing what a first pass found out about the columns of densities."""
        knowing = copy(self)
        knowing.units = [
            unit.looked(totals, self.network, self._prior) if isinstance(unit, FreeDensity) else unit
            for unit in self.units
        ]
        knowing._sample = sample
        return knowing

    def start(self, rng: np.random.Generator) -> Floats:
        """The given numbers; those missing of tables are random, those of densities from random rows."""
        starts = {i: unit.start(rng) for i, unit in enumerate(self.units) if not isinstance(unit, FreeDensity)}
        for places in self._side_by_side():
            units = [(i, unit) for i in places if isinstance(unit := self.units[i], FreeDensity)]
            columns = np.cumsum([0, *(unit.given.dimension for _, unit in units)])
            if self._sample is None:
                chosen = np.zeros((units[0][1].given.components, columns[-1]))
            else:
                points = np.concatenate([unit.points(self._sample) for _, unit in units], axis=1)
                chosen = seeds(points, units[0][1].given.components, rng)
            for (i, unit), first, stop in zip(units, columns, columns[1:], strict=False):
                starts[i] = unit.start(chosen[:, first:stop])
        return np.concatenate([starts[i] for i in range(len(self.units))])

    def _side_by_side(self) -> list[list[int]]:
        """The densities, by place, that have the same parents: one row seeds a component of all of them."""
        groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
        for i, unit in enumerate(self.units):
            if isinstance(unit, FreeDensity):
                groups.setdefault(tuple(self.network.parents(name) for name in unit.names), []).append(i)
        return list(groups.values())

    def maximised(self, counts: ExpectedCounts, now: Floats, negligible: float) -> Floats:
        """The M-step for several sets of numbers (sets, numbers): the most probable ones, given counts and prior.

        Less than `negligible` is no count.
        """
        made = np.empty_like(now)
        for group in self._groups:
            made[:, group.places] = group.maximised(counts.tables, now[:, group.places], negligible)
        for (unit, own), (_, to) in zip(self.split(now), self.split(made), strict=True):
            for i, vector in enumerate(own):
                if isinstance(unit, Causes):
                    to[i] = unit.maximised(counts.tables_of(i, unit.node), vector, negligible)
                elif isinstance(unit, FreeDensity):
                    to[i] = unit.maximised(counts.moments[i], vector, negligible)
        return made

    @cached_property
    def _groups(self) -> list[TableGroup]:
        """The tables, those with as many states together."""
        by_states: dict[int, list[tuple[FreeTable, NDArray[np.intp]]]] = {}
        for unit, places in self.split(np.arange(sum(unit.size for unit in self.units), dtype=np.intp)):
            if isinstance(unit, FreeTable):
                by_states.setdefault(unit.given.shape[-1], []).append((unit, places))
        return [
            TableGroup(tuple(table for table, _ in group), np.concatenate([places for _, places in group]))
            for group in by_states.values()
        ]

    def warn_collapsed(self, numbers: Floats) -> None:
        """Warn of densities whose variance was raised."""
        for unit, vector in self.split(numbers):
            if not isinstance(unit, FreeDensity) or not (components := unit.collapsed(vector)):
                continue
            name, part, states = unit.names[0], list(unit.free)[-1], ""
            if parents := [self.network.variable(parent) for parent in self.network.parents(name)]:
                state = [int(i) for i in np.unravel_index(components[0], unit.given.shape)]
                states = f", {describe(parents, state)}"
            more = f" (and {len(components) - 1} more)" if len(components) > 1 else ""
            problem = (
                f"node {name!r}{states}{more}: {part} fell to almost 0, and was raised to the least that is learned"
            )
            remedy = "too few rows, or equal ones, belong there: give a prior=, give its numbers, or merge states"
            warn(f"{problem}; {remedy}", CollapsedDensityWarning)

    def log_prior(self, several: Floats) -> Floats:
        """The logarithms of the prior, up to a constant, of several sets of numbers (sets,)."""
        total = np.zeros(len(several))
        for group in self._groups:
            total += group.whole.log_prior(several[:, group.places])
        for unit, own in self.split(several):
            if not isinstance(unit, FreeTable):
                total += [unit.log_prior(vector) for vector in own]
        return total

    def numbers(self, several: Floats) -> Numbers:
        """Several sets of numbers (sets, numbers) as tables and densities."""
        tables: dict[Key, Floats] = {}
        fixed = {name: self.network.density(name) for name in self.network.continuous}
        densities = [dict(fixed) for _ in several]
        for unit, own in self.split(several):
            if isinstance(unit, FreeTable):
                table = own.reshape(-1, *unit.given.shape)
                tables |= dict.fromkeys(unit.keys, table)
            elif isinstance(unit, Causes):
                parts = [unit.filled(vector).parts() for vector in own]
                tables |= {(unit.node, part): np.stack([p[part] for p in parts]) for part in parts[0]}
            else:
                for found, vector in zip(densities, own, strict=True):
                    found |= dict.fromkeys(unit.names, unit.density(vector))
        return Numbers(Draws(len(several), tables), densities)

    def filled(self, numbers: Floats) -> Network:
        """The network with such numbers."""
        cpts: dict[str, AnyCPT] = {}
        tables: dict[str, dict[str, Floats]] = {}
        for unit, vector in self.split(numbers):
            if isinstance(unit, Causes):
                cpts[unit.node] = unit.filled(vector)
                continue
            if isinstance(unit, FreeDensity):
                cpts |= dict.fromkeys(unit.names, unit.density(vector))
                continue
            table, first = vector.reshape(unit.given.shape), self.network.cpt(unit.keys[0][0])
            if isinstance(first, CPT):  # the same for all nodes that are tied
                cpts |= dict.fromkeys([name for name, _ in unit.keys], CPT(table, first.learn, first.tie))
                continue
            for name, part in unit.keys:
                tables.setdefault(name, {})[part] = table
        for name, parts in tables.items():
            cpt = self.network.cpt(name)
            assert isinstance(cpt, TestingCPT)
            cpts[name] = cpt.with_parts(parts)
        return self.network.with_cpts(cpts)

    def split(self, numbers: NDArray[N]) -> Iterator[tuple[Unit, NDArray[N]]]:
        """Each unit with its numbers, which are the last axis."""
        start = 0
        for unit in self.units:
            yield unit, numbers[..., start : start + unit.size]
            start += unit.size

    def _tables(self, names: list[str]) -> list[FreeTable]:
        """The tables of a node, and of those that are tied to it."""
        cpt = self.network.cpt(names[0])
        if isinstance(cpt, TestingCPT) and np.isnan(cpt.thresholds).any():
            problem = f"node {names[0]!r}: thresholds are unset (NaN), and estimating leaves them as they are"
            raise UnsetError(f"{problem}; give them, or learn them with tacit.fit")
        tables = []
        for part, table in cpt.parts().items():
            free = ~structural(table) if cpt.learn else np.isnan(table)
            if part != "thresholds" and free.any():
                counts = np.mean([self._prior.counts(self.network, name, part) for name in names], axis=0)
                keys = tuple((name, part) for name in names)
                tables.append(FreeTable(keys, table, free, np.where(free, counts, 0.0)))
        return tables

    def _prior_of_causes(self, name: str, cpt: NoisyOr) -> Floats:
        strength, centre = self._prior
        if centre is None:
            return np.full((2, len(causes_of(cpt))), strength)
        central = centre.cpt(name) if name in centre else None
        parents = self.network.parents(name)
        if not isinstance(central, NoisyOr) or set(centre.parents(name)) != set(parents):
            raise TacitError(f"prior: node {name!r} of that network is not a noisy-or of the same causes")
        causes = [central.causes[centre.parents(name).index(parent)] for parent in parents]
        if list(map(len, causes)) != list(map(len, cpt.causes)):
            raise TacitError(f"prior: the causes of node {name!r} of that network have other states")
        numbers = np.concatenate([[central.leak], *causes])
        return strength * np.stack([numbers, 1 - numbers])
