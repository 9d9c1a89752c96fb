"""The ensemble that users hold: networks of one structure, in files, too."""

from __future__ import annotations

import os

from tacit.query.ensembles.base_ensemble import BaseEnsemble
from tacit.query.network import Network


class Ensemble(BaseEnsemble[Network]):
    """Many networks of one structure. `tac.posterior(rows, tables=ensemble)` answers under each of them.

    `Estimate.draws` makes one of the numbers that data leave possible, and `Ensemble.of` of any networks. `network` has
    the means of all numbers; of draws, the expected tables, and densities as they were estimated.

    >>> import tacit
    >>> optimist, pessimist = tacit.Network(), tacit.Network()
    >>> for net, p in (optimist, 0.1), (pessimist, 0.4):
    ...     net.add("Fault", cpt=[p, 1 - p])
    ...     net.add("Alarm", ["Fault"], cpt=[[0.9, 0.1], [0.05, 0.95]])
    >>> experts = tacit.Ensemble.of([optimist, pessimist])
    >>> experts
    Ensemble(2 networks, 2 nodes, 1 of which differs)
    >>> tac = tacit.compile(optimist, query="Fault", evidence=["Alarm"])
    >>> tac.posterior({"Alarm": "true"}, tables=experts).round(3).tolist()
    [[[0.667, 0.333]], [[0.923, 0.077]]]
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the networks to a file, atomically: one .npz, which keeps all numbers as they are.

        >>> import pathlib, tempfile, tacit
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "draws.npz"
        >>> ensemble = tacit.Ensemble.of([tacit.examples.abc()])
        >>> ensemble.save(path)
        >>> list(tacit.Ensemble.load(path)) == list(ensemble)
        True
        """
        from tacit.io.formats.ensemble import Contents, write_ensemble

        own = Contents(self.network, self.parts, self.slopes, self.causes, self.dirichlets, len(self))
        write_ensemble(own, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ensemble:
        """The networks that `save` wrote to a file; a damaged one raises `FormatError`."""
        from tacit.io.formats.ensemble import read_ensemble

        return read_ensemble(path, lambda contents: cls(*contents))
