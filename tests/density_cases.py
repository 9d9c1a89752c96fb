"""A network with a density of each kind, and its answers with 40 digits, by enumeration."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import tacit

mpmath.mp.dps = 40
ROWS = {
    "Heat": [71.0, np.nan, 3000.0, 75.0],
    "x": [0.3, 2.0, np.nan, np.nan],
    "y": [np.nan, 1.0, -2.0, np.nan],
    "Count": [3.0, np.nan, 0.0, 8.0],
    "Delay": [1.5, 0.2, np.nan, 4.0],
}
DECLARED = ["Heat", "x, y", "Count", "Delay"]


def plant() -> tacit.Network:
    """Two causes, and a leaf of each kind below them."""
    net = tacit.Network("plant")
    net.add("Load", states=["low", "mid", "high"], cpt=[0.3, 0.5, 0.2])
    net.add("Fault", ["Load"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.4, 0.6]])
    mean, sd = [[88, 90, 93], [60, 64, 70]], [[5, 6, 7], [4, 4.5, 6]]
    net.add("Heat", ["Fault", "Load"], cpt=tacit.Gaussian(mean=mean, sd=sd))
    cov = [[[1, 0.5], [0.5, 2]], [[2, -0.3], [-0.3, 1]]]
    net.add(("x", "y"), ["Fault"], cpt=tacit.Gaussian(mean=[[0, 1], [3, -2]], cov=cov))
    net.add("Count", ["Load"], cpt=tacit.Poisson([2.0, 5.0, 9.0]))
    net.add("Delay", ["Fault"], cpt=tacit.LogNormal(mean=[0.5, -0.2], sd=[0.6, 1.1]))
    return net


def row_of(rows: Mapping[str, Any], i: int) -> dict[str, list[float]]:
    """The numbers of one row by node."""
    return {node: [rows[name][i] for name in node.split(", ")] for node in DECLARED}


def exact_joint(net: tacit.Network, query: str, row: Mapping[str, list[Any]], changes: Mapping[Any, Any]) -> list[mpf]:
    """p*(query, evidence) of a network without tests; `changes` are numbers of densities by node, part and place."""
    names = [name for name in net if name not in net.continuous]
    totals = [mpf(0)] * len(net.states(query))
    for states in product(*(range(len(net.states(name))) for name in names)):
        at = dict(zip(names, states, strict=True))
        weight = mpf(1)
        for name in names:
            weight *= mpf(float(net.table(name)[(*(at[p] for p in net.parents(name)), at[name])]))
        for node, values in row.items():
            weight *= mpmath.exp(_log(net, node, tuple(at[p] for p in net.parents(node)), values, changes))
        totals[at[query]] += weight
    return totals


def _log(net, node, state, values, changes):
    density = net.density(node)
    seen = [i for i, value in enumerate(values) if not (isinstance(value, float) and np.isnan(value))]
    if not seen:
        return mpf(0)

    def number(part, *place):
        place = (*state, *place)
        return mpf(changes.get((node, part, place), float(getattr(density, part)[place])))

    x = [mpf(values[i]) for i in seen]
    if isinstance(density, tacit.Poisson):
        return x[0] * mpmath.log(number("rate")) - number("rate") - mpmath.loggamma(x[0] + 1)
    if density.dimension > 1:
        cov = mpmath.matrix([[number("cov", i, j) for j in seen] for i in seen])
        off = mpmath.matrix([value - number("mean", i) for i, value in zip(seen, x, strict=True)])
        square, log_det = (off.T * mpmath.inverse(cov) * off)[0], mpmath.log(mpmath.det(cov))
        return -(square + log_det + len(seen) * mpmath.log(2 * mpmath.pi)) / 2
    z, jacobian = x[0], mpf(0)
    if isinstance(density, tacit.LogNormal):
        z, jacobian = mpmath.log(z), mpmath.log(z)
    off = (z - number("mean")) / number("sd")
    return -(off**2) / 2 - mpmath.log(number("sd")) - mpmath.log(2 * mpmath.pi) / 2 - jacobian
