"""The meaning of a query once more, with numbers of any size: 60 digits, and exponents without end.

An independent definition for what float64 cannot hold: plain variable elimination on arrays of mpmath's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

import tacit
from tacit.model.cpt import TestingCPT
from tacit.model.densities import BaseDensity, Density, LogNormal, Poisson

CONTEXT = mpmath.mp.clone()
CONTEXT.dps = 60
NUMBER = np.vectorize(CONTEXT.mpf, otypes=[object])

Factor = tuple[tuple[str, ...], np.ndarray[Any, Any]]


@dataclass
class Exact:
    """p*(q) as numbers of any size; and of the testing nodes, how near to a tie any test was, relatively."""

    joint: list[Any]
    weights: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    nearest: float = float("inf")

    @property
    def possible(self) -> bool:
        return sum(self.joint) > 0

    @property
    def posterior(self) -> list[float]:
        total = sum(self.joint)
        return [float(p / total) for p in self.joint]

    @property
    def log_evidence(self) -> float:
        return float(CONTEXT.log(sum(self.joint)))


def query(net: tacit.Network, name: str, likelihoods: Mapping[str, Sequence[float]]) -> Exact:
    """p*(q) for one row of evidence: likelihoods by variable, scaled to sum to 1, or the numbers of continuous ones."""
    known = {}
    for n, values in likelihoods.items():
        known[n] = densities(net.density(n), values) if n in net.continuous else _scaled(values)
    discrete = [node for node in net.variables if node not in net.continuous]
    tables = {node: NUMBER(net.table(node)) for node in discrete if not net.cpt(node).testing}
    found = Exact([])
    for node in net.testing_nodes:
        cpt, parents = net.cpt(node), net.parents(node)
        assert isinstance(cpt, TestingCPT)
        seen = {n: known[n] for n in net.seen_by(node, known)}
        marginal = _marginal(net, tables, _with_ancestors(net, (*parents, *seen)), parents, seen)
        weight, rest, nearest = _weights(cpt, marginal)
        found.weights[node], found.nearest = weight, min(found.nearest, nearest)
        tables[node] = weight[..., None] * NUMBER(cpt.plus) + rest[..., None] * NUMBER(cpt.minus)
    found.joint = list(_marginal(net, tables, _with_ancestors(net, (name, *known)), (name,), known))
    return found


def densities(density: BaseDensity, values: Sequence[float]) -> np.ndarray[Any, Any]:
    """The density of some numbers, NaN where they are missing, for every state of the parents."""
    seen = [i for i, value in enumerate(values) if not np.isnan(value)]
    x = [CONTEXT.mpf(float(values[i])) for i in seen]
    found = np.empty(density.shape, dtype=object)
    for state in np.ndindex(*density.shape):
        found[state] = _density(density, state, seen, x) if seen else CONTEXT.mpf(1)
    return found


def _density(density: Any, state: tuple[int, ...], seen: list[int], x: list[Any]) -> Any:
    if isinstance(density, Density):
        return CONTEXT.exp(CONTEXT.mpf(float(density.f(np.array([x[0]], dtype=float))[(0, *state)])))
    if isinstance(density, Poisson):
        rate = CONTEXT.mpf(float(density.rate[state]))
        return CONTEXT.exp(x[0] * CONTEXT.log(rate) - rate - CONTEXT.loggamma(x[0] + 1))
    mean, cov, jacobian = density.mean[state], None, CONTEXT.mpf(1)
    if isinstance(density, LogNormal):
        x, jacobian = [CONTEXT.log(x[0])], 1 / x[0]
    elif density.cov is not None:
        mean, cov = mean[seen], density.cov[state][np.ix_(seen, seen)]
    off = [value - CONTEXT.mpf(float(middle)) for value, middle in zip(x, np.atleast_1d(mean), strict=True)]
    square = CONTEXT.matrix([[CONTEXT.mpf(float(density.sd[state])) ** 2]] if cov is None else cov.tolist())
    column = CONTEXT.matrix(off)
    distance = (column.T * CONTEXT.inverse(square) * column)[0]
    size = CONTEXT.sqrt((2 * CONTEXT.pi) ** len(off) * CONTEXT.det(square))
    return jacobian * CONTEXT.exp(-distance / 2) / size


def _with_ancestors(net: tacit.Network, names: Iterable[str]) -> list[str]:
    needed = {a for name in names for a in (name, *net.ancestors(name))}
    return [name for name in net.variables if name in needed]


def _scaled(values: Sequence[float]) -> np.ndarray[Any, Any]:
    numbers = NUMBER(np.asarray(values, dtype=float))
    return numbers / sum(numbers)


def _weights(cpt: TestingCPT, marginal: np.ndarray[Any, Any]) -> tuple[Any, Any, float]:
    total = marginal.sum()
    weight, rest = np.empty(marginal.shape, dtype=object), np.empty(marginal.shape, dtype=object)
    nearest = float("inf")
    for u in np.ndindex(*marginal.shape):
        limit, test = CONTEXT.mpf(float(cpt.thresholds[u])), str(cpt.test[u])
        if cpt.gamma is None:
            holds = {
                ">=": marginal[u] >= limit * total,
                ">": marginal[u] > limit * total,
                "<=": marginal[u] <= limit * total,
                "<": marginal[u] < limit * total,
            }[test]
            weight[u], rest[u] = CONTEXT.mpf(int(holds)), CONTEXT.mpf(int(not holds))
            if total > 0:
                nearest = min(nearest, float(abs(marginal[u] / total - limit)))
        else:
            x = CONTEXT.mpf(0) if total == 0 else cpt.gamma * (marginal[u] / total - limit)
            x = x if test in (">=", ">") else -x
            weight[u], rest[u] = 1 / (1 + CONTEXT.exp(-x)), 1 / (1 + CONTEXT.exp(x))
    return weight, rest, nearest


def _marginal(
    net: tacit.Network,
    tables: Mapping[str, np.ndarray[Any, Any]],
    nodes: Iterable[str],
    keep: tuple[str, ...],
    known: Mapping[str, np.ndarray[Any, Any]],
) -> np.ndarray[Any, Any]:
    """The joint of `keep` and the evidence, by elimination of one variable after the other."""
    names = list(nodes)
    discrete = [n for n in names if n not in net.continuous]
    factors: list[Factor] = [((*net.parents(n), n), tables[n]) for n in discrete]
    factors += [((n,), values) for n, values in known.items() if n in discrete]
    factors += [(net.parents(n), values) for n, values in known.items() if n in names and n not in discrete]
    for name in discrete[::-1]:  # children first
        if name not in keep:
            factors = _summed_out(factors, name)
    axes, product = _product(factors)
    assert set(axes) == set(keep)
    return product.transpose([axes.index(n) for n in keep])


def _summed_out(factors: list[Factor], name: str) -> list[Factor]:
    axes, product = _product([f for f in factors if name in f[0]])
    rest = [f for f in factors if name not in f[0]]
    i = axes.index(name)
    return [*rest, ((*axes[:i], *axes[i + 1 :]), np.asarray(product.sum(axis=i), dtype=object))]


def _product(factors: Sequence[Factor]) -> Factor:
    axes = tuple(dict.fromkeys(a for own, _ in factors for a in own))
    product = np.full([1] * len(axes), CONTEXT.mpf(1), dtype=object)
    for own, table in factors:
        order = sorted(range(len(own)), key=lambda k: axes.index(own[k]))
        shape = [1] * len(axes)
        for k, a in enumerate(own):
            shape[axes.index(a)] = table.shape[k]
        product = product * table.transpose(order).reshape(shape)
    return axes, product
