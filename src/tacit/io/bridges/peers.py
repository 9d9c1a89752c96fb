"""What the bridges to other libraries share: optional packages, texts for C++, and networks made of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tacit.base.errors import NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.base.version import how_to_install
from tacit.io.parsing.draft import MAX_MISS, RoundingWarning
from tacit.model.elements.distributions import SUM_TOLERANCE
from tacit.query.network import Network


class PeerNode(NamedTuple):
    """A node as a peer states it; the table has shape (parents' cardinalities..., own cardinality)."""

    parents: tuple[str, ...]
    states: Iterable[Any] | None
    table: Floats
    bins: tuple[float, ...] | None = None


def require(module: str) -> Any:
    """A module of an optional package, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TacitError(f"{module} is needed, but {error}: {how_to_install(module.partition('.')[0])}") from None


def is_safe(text: str) -> bool:
    """Whether C++ can hold a text: it has no NUL and no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def assemble(name: str | None, nodes: Mapping[str, PeerNode]) -> Network:
    """A network from nodes in any order. Rows that miss the sum 1 by up to 1e-4 are scaled, with a warning."""
    net, scaled = Network(name), 0
    for node in TopologicalSorter({node: stated.parents for node, stated in nodes.items()}).static_order():
        parents, states, table, bins = nodes[node]
        total = table.sum(axis=-1, keepdims=True)
        miss = abs(total - 1)
        rough = (miss > SUM_TOLERANCE) & (miss <= MAX_MISS)
        scaled += int(rough.sum())
        net.add(node, parents, states, np.where(rough, table / total, table), bins=bins)
    if scaled:
        warnings.warn(f"{plural(scaled, 'row')} missed the sum 1 by up to 1e-4; scaled", RoundingWarning, stacklevel=3)
    return net


def check_classical(net: Network, peer: str) -> None:
    """Refuse testing nodes, densities and unset numbers, which other libraries do not know."""
    if not isinstance(net, Network):
        raise TacitError(f"expected a Network, got {type(net).__name__}")
    for node in net.testing_nodes[:1]:
        remedy = "net.select(evidence) gives the classical network that one row of evidence selects"
        raise NetworkError(f"node {node!r} is testing, which {peer} cannot hold; {remedy}")
    for node in net.value_nodes:
        remedy = "give it net.without_values(); tacit.save keeps them in JSON"
        raise NetworkError(f"{node!r} is a value node, and the bridge to {peer} takes random variables only; {remedy}")
    for node in net.continuous[:1]:
        remedy = "give it bins= and a table for the bridge; tacit.save keeps it in JSON"
        raise NetworkError(f"node {node!r} has a density, and the bridge to {peer} takes tables only; {remedy}")
    net.require_numbers()
