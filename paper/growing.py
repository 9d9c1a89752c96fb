"""Larger networks from trained smaller ones: more tests, the same function, and room to learn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit import CPT, Network, TestingCPT
from tacit.floats import Floats

COPY = np.eye(2)
LOOSE_COPY = 0.8 * COPY + 0.1  # of 0.05, 0.1 and 0.15 off the diagonal, 0.1 led furthest (docs/learning.md)


def grow(small: Network, large: Network) -> Network:
    """`large` with numbers that make it the same function as `small`.

    Both are of the same kind: chains, layers or split layers. New links of a chain copy their parent, and in a layer
    the query's table pays no attention to the new tests.

    >>> from tacit.examples import chain
    >>> import tacit
    >>> small = tacit.fit(
    ...     tacit.compile(chain(1), "Q", ["E1", "E2"]), {"E1": 0.3}, [0.4], steps=1, restarts=1, progress=False
    ... ).network
    >>> evidence = {"E1": 0.7, "E2": 0.2}
    >>> bool(grow(small, chain(3)).posterior("Q", evidence)[0, 0] == small.posterior("Q", evidence)[0, 0])
    True
    """
    places = _places(small, large)
    cpts = {places[name]: small.cpt(name) for name in small.variables if name != "Q"}
    for name in _new(large, places.values()):
        cpts[name] = _without_effect(large, name)
    return large.with_cpts({**cpts, "Q": CPT(_stretched(small, large, places))})


def start_from(small: Network, large: Network) -> Network:
    """`large` as a start for training: grown from `small`, but with numbers that may change.

    What has no effect on the function yet is left out, so that every restart draws it anew: the new tests of a
    layer, and the thresholds of a chain's new links, whose tables are still alike. An exact copy would not learn,
    since the logistic is flat there; the links start as copies that err in a tenth of the cases.
    """
    new = set(_new(large, _places(small, large).values()))
    grown = grow(small, large)
    cpts = {name: _learned(grown.cpt(name)) for name in grown.variables if name not in new}
    cpts |= {name: _loose_link(large, name) for name in new if _is_link(large, name)}
    return large.with_cpts(cpts)


def thaw(net: Network) -> Network:
    """A trained network as a start: all its numbers may change."""
    return net.with_cpts({name: _learned(net.cpt(name)) for name in net.variables})


def _places(small: Network, large: Network) -> dict[str, str]:
    """Where every node of the smaller network goes: to the first free one with the same parents."""
    places: dict[str, str] = {}
    for name in small.variables:
        if name != "Q":
            parents = tuple(places[p] for p in small.parents(name))
            free = (n for n in large.variables if n not in places.values() and large.parents(n) == parents)
            places[name] = next(free)
    return places


def _new(large: Network, places: Iterable[str]) -> list[str]:
    taken = set(places)
    return [name for name in large.testing_nodes if name not in taken]


def _is_link(net: Network, name: str) -> bool:
    """Whether a testing node hangs below another one alone."""
    return net.parents(name)[0] in net.testing_nodes


def _without_effect(net: Network, name: str) -> TestingCPT:
    if _is_link(net, name):
        return TestingCPT(COPY, COPY, [0.5, 0.5], gamma=_gamma(net, name))
    parents = (2,) * len(net.parents(name))
    even = np.full((*parents, 2), 0.5)
    return TestingCPT(even, even, np.full(parents, 0.5), gamma=_gamma(net, name))


def _loose_link(net: Network, name: str) -> TestingCPT:
    return TestingCPT(LOOSE_COPY, LOOSE_COPY, [np.nan, np.nan], gamma=_gamma(net, name), learn=True)


def _stretched(small: Network, large: Network, places: dict[str, str]) -> Floats:
    """The query's table, repeated along the axes of new parents."""
    table = small.table("Q")
    if len(large.parents("Q")) == len(small.parents("Q")):
        return table
    kept = [places[p] for p in small.parents("Q")]
    new = [i for i, name in enumerate(large.parents("Q")) if name not in kept]
    shape = (2,) * (len(large.parents("Q")) + 1)
    return np.array(np.broadcast_to(np.expand_dims(table, new), shape))


def _learned(cpt: object) -> CPT | TestingCPT:
    if isinstance(cpt, TestingCPT):
        return TestingCPT(cpt.plus, cpt.minus, cpt.thresholds, cpt.test, cpt.gamma, learn=True)
    assert isinstance(cpt, CPT)
    return CPT(cpt.table, learn=True)


def _gamma(net: Network, name: str) -> float | None:
    cpt = net.cpt(name)
    assert isinstance(cpt, TestingCPT)
    return cpt.gamma
