"""The distribution of all estimated numbers of a network, given the rows, and draws from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.base import machine
from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import plural, shown
from tacit.learn.estimating.density_units import FreeDensity
from tacit.learn.estimating.estimable import Estimable
from tacit.learn.estimating.expected_counts import ExpectedCounts
from tacit.learn.estimating.posterior.density_numbers import DensityPosterior
from tacit.learn.estimating.posterior.table_numbers import CausesPosterior, table_posterior
from tacit.learn.estimating.units import Causes
from tacit.model.cpt import CPT, AnyCPT, TestingCPT
from tacit.query.assignments import checked_seed
from tacit.query.ensemble import Ensemble
from tacit.query.ensembles.dirichlet import Dirichlet, Key
from tacit.query.network import Network

Part = Dirichlet | CausesPosterior | DensityPosterior
BYTES = 8  # of a number


@dataclass(frozen=True, eq=False)
class NumbersPosterior:
    """The distribution of the numbers of an estimated network: its parts are independent of each other."""

    network: Network
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, estimable: Estimable, numbers: Floats, counts: ExpectedCounts, negligible: float) -> NumbersPosterior:
        """That of estimated numbers, given the counts with them, which are the only set."""
        parts: list[Part] = []
        tables, (moments,) = {key: table[0] for key, table in counts.tables.items()}, counts.moments
        for unit, now in estimable.split(numbers):
            if isinstance(unit, FreeDensity):
                parts.append(DensityPosterior.of(unit, moments, now, negligible))
            elif isinstance(unit, Causes):
                parts.append(CausesPosterior.of(unit, tables, now, negligible))
            else:
                parts.append(table_posterior(unit, tables, now, negligible))
        return cls(estimable.filled(numbers), tuple(parts))

    def draws(self, n: int, seed: int | None) -> Ensemble:
        """Independent networks; see `Estimate.draws`."""
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise TacitError(f"n is {shown(n)}, expected a number of networks, at least 1")
        self._require_memory(int(n))
        seed = checked_seed(seed)
        tables: dict[Key, Floats] = {}
        causes = {}
        for i, part in enumerate(self.parts):
            rng = np.random.default_rng([seed, i])
            match part:
                case Dirichlet():
                    tables |= dict.fromkeys(part.keys, part.draws(int(n), rng))
                case CausesPosterior():
                    causes[part.unit.node] = part.draws(int(n), rng)
                case DensityPosterior():
                    tables |= part.draws(int(n), rng)
        dirichlets = tuple(part for part in self.parts if isinstance(part, Dirichlet))
        return Ensemble(self._expected, tables, causes=causes, dirichlets=dirichlets)

    @property
    def _expected(self) -> Network:
        """The network with the expected tables, and densities as they were estimated."""
        tables: dict[str, dict[str, Floats]] = {}
        cpts: dict[str, AnyCPT] = {}
        for part in self.parts:
            if isinstance(part, Dirichlet):
                for name, key in part.keys:
                    tables.setdefault(name, {})[key] = part.mean
            elif isinstance(part, CausesPosterior):
                cpts[part.unit.node] = part.mean
        for name, parts in tables.items():
            cpt = self.network.cpt(name)
            assert isinstance(cpt, CPT | TestingCPT)
            cpts[name] = CPT(parts["table"], cpt.learn, cpt.tie) if isinstance(cpt, CPT) else cpt.with_parts(parts)
        return self.network.with_cpts(cpts)

    def _require_memory(self, n: int) -> None:
        sizes = [own.size for name in self.network for own in self.network.cpt(name).parts().values()]
        needed, there = float(BYTES) * n * sum(sizes), machine.memory()
        if needed > there:
            room = f"take {needed / 2**30:,.3g} GiB of memory, and there are {there / 2**30:,.3g}"
            raise TooLargeError(f"the numbers of {plural(n, 'network')} {room}; draw fewer")
