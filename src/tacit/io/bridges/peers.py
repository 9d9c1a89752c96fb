"""What the bridges to other libraries share: their packages, which may not be there, and networks made of pieces."""

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
from tacit.model.distributions import SUM_TOLERANCE
from tacit.query.network import Network


class PeerNode(NamedTuple):
    """A node as a peer states it; the table has shape (parents' cardinalities..., own cardinality)."""

    parents: tuple[str, ...]
    states: Iterable[Any]
    table: Floats


def require(package: str, extra: str) -> Any:
    """An optional package, or an error that says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise TacitError(f"{package} is needed, but {error}: {how_to_install(extra)}") from None


def is_safe(text: str) -> bool:
    """Whether C++ can hold a text: it has no NUL and no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def assemble(name: str | None, pieces: Mapping[str, PeerNode]) -> Network:
    """A network from nodes in any order. Rows that miss the sum 1 by up to 1e-4 are scaled, with a warning."""
    net, scaled = Network(name), 0
    for node in TopologicalSorter({node: piece.parents for node, piece in pieces.items()}).static_order():
        parents, states, table = pieces[node]
        miss = abs(table.sum(axis=-1, keepdims=True) - 1)
        rough = (miss > SUM_TOLERANCE) & (miss <= MAX_MISS)
        scaled += int(rough.sum())
        net.add(node, parents, states, np.where(rough, table / table.sum(axis=-1, keepdims=True), table))
    if scaled:
        warnings.warn(f"{plural(scaled, 'row')} missed the sum 1 by up to 1e-4; scaled", RoundingWarning, stacklevel=3)
    return net


def check_classical(net: Network, peer: str) -> None:
    """Refuse what other libraries have no notion of."""
    if not isinstance(net, Network):
        raise TacitError(f"expected a Network, got {type(net).__name__}")
    for node in net.testing_nodes[:1]:
        raise NetworkError(
            f"node {node!r} is testing, which {peer} cannot hold; net.select(evidence) gives the classical network "
            "that one row of evidence selects"
        )
    net.require_numbers()
