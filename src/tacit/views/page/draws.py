"""What a page knows of an ensemble: the tables of a bounded number of its networks, for the intervals on its bars."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import large
from tacit.model.model import Model
from tacit.query.ensembles.base_ensemble import AnyEnsemble, BaseEnsemble
from tacit.views.page.programs import plain_density

LEVEL = 0.9  # of the intervals
MAX_DRAWS = 200  # networks on a page, the first ones: ends of intervals then stray by about a tenth of their length
MIN_DRAWS = 50
MAX_NUMBERS = 1_000_000  # of all of them together: 4 or 8 MB, and a third more as text


def check_ensemble(net: Model, ensemble: Any) -> None:
    """Refuse what has not the structure of a network."""
    if not isinstance(ensemble, BaseEnsemble):
        expected = "expected an Ensemble: estimate.draws(n), or tacit.Ensemble.of(networks)"
        raise TacitError(f"tables is a {type(ensemble).__name__}, {expected}")
    other = ensemble.network
    for name in {**dict.fromkeys(net), **dict.fromkeys(other)}:
        if name not in net or name not in other:
            raise TacitError(f"node {name!r} is in the network or in the ensemble of tables=, but not in both")
        mine, theirs = ((of.variable(name), of.parents(name), type(of.cpt(name))) for of in (net, other))
        if mine != theirs:
            raise TacitError(f"node {name!r} of the ensemble of tables= differs in states, parents or kind of CPT")
    if ensemble.slopes:
        name = next(iter(ensemble.slopes))
        raise TacitError(f"node {name!r}: the slopes of its tests differ by network, which no page can show")


def plain_draws(net: Model, ensemble: AnyEnsemble, tables: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of some networks, one network after the other: of those of the page's tables that differ.

    They are floats of 4 bytes: intervals need no more digits, but for tests, where a tie decides.
    """
    names, differing = net.variables, set(ensemble.differing)
    chosen = [t for t, table in enumerate(tables) if names[table["node"]] in differing]
    dense = [i for i, name in enumerate(names) if name in differing and net.variable(name).continuous]
    each = sum(len(tables[t]["values"]) for t in chosen)
    count = min(len(ensemble), MAX_DRAWS, max(1, MAX_NUMBERS // max(each, 1)))
    if count < min(len(ensemble), MIN_DRAWS):
        raise TooLargeError(
            f"too large for a page with intervals: each network of tables= has {large(each)} numbers, and a page holds "
            f"{large(MAX_NUMBERS)} of {MIN_DRAWS} networks or more; leave out tables="
        )
    networks = list(ensemble[:count])
    numbers = [_part(own, names[tables[t]["node"]], tables[t]["part"]) for own in networks for t in chosen]
    values = np.concatenate([np.empty(0), *numbers]).astype("<f8" if net.testing_nodes else "<f4")
    return {
        "count": count,
        "level": LEVEL,
        "tables": chosen,
        "digits": "double" if net.testing_nodes else "single",
        "values": b64encode(values.tobytes()).decode(),
        "densities": {i: [plain_density(own, names[i]) for own in networks] for i in dense},
    }


def _part(net: Model, name: str, part: str) -> Floats:
    return np.asarray(net.cpt(name).parts()[part], dtype=np.float64).ravel()
