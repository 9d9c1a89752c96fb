"""The numbers of a network that are estimated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.base.errors import TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.base.lru import LRUCache
from tacit.learn.estimating.units import Causes, FreeTable, Key, causes_of
from tacit.learn.prior import Prior
from tacit.model.cpt import CPT, AnyCPT, TestingCPT
from tacit.model.elements.distributions import structural
from tacit.model.rules import NoisyOr
from tacit.query.network import Network


class Estimable:
    """The free numbers of a network, as one vector. The pseudo-counts of a prior are added to their counts."""

    def __init__(self, net: Network, prior: Prior) -> None:
        self.network, self._prior = net, prior
        self.units: list[FreeTable | Causes] = []
        self._recent: LRUCache[Network] = LRUCache(2)
        members: dict[str, list[str]] = {}
        for name in net.variables:
            cpt = net.cpt(name)
            if isinstance(cpt, CPT | TestingCPT):
                members.setdefault(cpt.tie if cpt.tie is not None else f"\0{name}", []).append(name)
            elif isinstance(cpt, NoisyOr) and cpt.learn:
                self.units.append(Causes(name, cpt, self._prior_of_causes(name, cpt)))
        for names in members.values():
            self.units += self._tables(names)
        if not self.units:
            remedy = "mark them with learn=True, or estimate net.learnable(), a copy in which all of them are"
            raise TacitError(f"no table of the network is to be learned; leave tables out (cpt=None), {remedy}")

    @property
    def count(self) -> int:
        return sum(unit.count for unit in self.units)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have free numbers."""
        by_unit = [[u.node] if isinstance(u, Causes) else [name for name, _ in u.keys] for u in self.units]
        return list(dict.fromkeys(name for names in by_unit for name in names))

    @property
    def random(self) -> bool:
        """Whether some number has no start of its own."""
        return any(unit.random for unit in self.units)

    def start(self, rng: np.random.Generator) -> Floats:
        return np.concatenate([unit.start(rng) for unit in self.units])

    def maximised(self, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Floats:
        """The M-step: the most probable numbers, given counts and prior; less than `negligible` is no count."""
        return np.concatenate([unit.maximised(counts, vector, negligible) for unit, vector in self._split(now)])

    def log_prior(self, numbers: Floats) -> float:
        """The logarithm of the prior, up to a constant."""
        return sum(unit.log_prior(vector) for unit, vector in self._split(numbers))

    def filled(self, numbers: Floats) -> Network:
        """The network with such numbers."""
        return self._recent.get(numbers.tobytes(), lambda: self._made(numbers))

    def _made(self, numbers: Floats) -> Network:
        cpts: dict[str, AnyCPT] = {}
        tables: dict[str, dict[str, Floats]] = {}
        for unit, vector in self._split(numbers):
            if isinstance(unit, Causes):
                cpts[unit.node] = unit.filled(vector)
                continue
            for name, part in unit.keys:
                tables.setdefault(name, {})[part] = vector.reshape(unit.given.shape)
        for name, parts in tables.items():
            cpt = self.network.cpt(name)
            assert isinstance(cpt, CPT | TestingCPT)
            cpts[name] = CPT(parts["table"], cpt.learn, cpt.tie) if isinstance(cpt, CPT) else cpt.with_parts(parts)
        return self.network.with_cpts(cpts)

    def _split(self, numbers: Floats) -> list[tuple[FreeTable | Causes, Floats]]:
        ends = np.cumsum([unit.size for unit in self.units])[:-1]
        return list(zip(self.units, np.split(numbers, ends), strict=True))

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
            raise TacitError(f"prior: node {name!r} of that network is no noisy-or of the same causes")
        causes = [central.causes[centre.parents(name).index(parent)] for parent in parents]
        if list(map(len, causes)) != list(map(len, cpt.causes)):
            raise TacitError(f"prior: the causes of node {name!r} of that network have other states")
        numbers = np.concatenate([[central.leak], *causes])
        return strength * np.stack([numbers, 1 - numbers])
