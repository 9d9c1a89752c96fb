"""The prior of learned tables: pseudo-counts, the same everywhere or in proportion to the tables of a network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.base.errors import TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.query.network import Network


class Prior(NamedTuple):
    """Pseudo-counts, and the network whose tables they are in proportion to, if there is one."""

    strength: float
    centre: Network | None = None

    def counts(self, net: Network, name: str, part: str) -> Floats:
        """The pseudo-counts of a table; an error if the centre has no such table, or not all of its numbers."""
        centre = self.centre
        if centre is None:
            return np.full(net.cpt(name).parts()[part].shape, self.strength)
        family = (*net.parents(name), name)
        if name not in centre or any(n not in centre or centre.states(n) != net.states(n) for n in family):
            raise TacitError(f"prior: that network has no node {name!r} with the same states and parents")
        axes, parts = (*centre.parents(name), name), centre.cpt(name).parts()
        if set(axes) != set(family) or part not in parts:
            problem = f"prior: node {name!r} of that network has no {part} below {list(net.parents(name))}"
            raise TacitError(f"{problem}; give one of the same structure")
        if np.isnan(parts[part]).any():
            raise UnsetError(f"prior: node {name!r} of that network has unset numbers (NaN)")
        return self.strength * parts[part].transpose([axes.index(n) for n in family])
