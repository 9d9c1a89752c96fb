"""Links: testing nodes below other testing nodes, which deep chains are made of.

A link that copies its parent passes on what it is told. As an exact copy it does nothing at all, so that a deep chain
whose last links are exact copies is a shorter chain; as a loose copy it is a start from which training finds its way.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit.base.floats import Floats
from tacit.model.cpt import THRESHOLDS, TestingCPT
from tacit.query.network import Network


def axis_of(net: Network, node: str) -> int | None:
    """The axis of the parent that a link copies, the only testing one; None if the node is no link."""
    tested = [i for i, parent in enumerate(net.parents(node)) if net.cpt(parent).testing]
    return tested[0] if net.cpt(node).testing and len(tested) == 1 else None


def copy_of(shape: tuple[int, ...], axis: int) -> Floats:
    """A table (parents..., own) whose node is in the state of one parent, or the nearest if it has fewer or more.

    >>> copy_of((2, 3), 0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    states, card = shape[axis], shape[-1]
    nearest = np.rint(np.linspace(0, card - 1, states)).astype(np.intp) if states > 1 else np.zeros(1, dtype=np.intp)
    along = [1] * len(shape)
    along[axis], along[-1] = states, card
    return np.array(np.broadcast_to(np.eye(card)[nearest].reshape(along), shape))


def depths(net: Network, nodes: Iterable[str]) -> dict[str, int]:
    """The longest chain of tests that ends with each testing node; parents come first."""
    depth: dict[str, int] = {}
    for node in nodes:
        if net.cpt(node).testing:
            depth[node] = 1 + max((depth.get(parent, 0) for parent in net.parents(node)), default=0)
    return depth


def shortened(net: Network, nodes: Iterable[str], depth: int) -> Network:
    """The network with its deeper links as exact copies: chains of `depth` tests, in the same structure."""
    return net.with_cpts(deeper(net, nodes, depth))


def deeper(net: Network, nodes: Iterable[str], depth: int) -> dict[str, TestingCPT]:
    """Exact copies for the links below a depth that have the states of their parent, no known number and no tie."""
    copies = {}
    for node in (node for node, above in depths(net, nodes).items() if above > depth):
        cpt, axis = net.cpt(node), axis_of(net, node)
        if axis is None or not isinstance(cpt, TestingCPT) or cpt.tie is not None:
            continue
        shape = cpt.tables[0].shape
        if shape[axis] == shape[-1] and all(np.isnan(part).all() for part in cpt.parts().values()):
            tables = dict.fromkeys(cpt.table_parts, copy_of(shape, axis))
            thresholds = {THRESHOLDS: np.full(cpt.thresholds.shape, 0.5)}
            copies[node] = cpt.with_parts(tables | thresholds, learn=False)
    return copies
