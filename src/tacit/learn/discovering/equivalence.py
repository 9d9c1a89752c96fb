"""The equivalence class of a graph: which directions its score, and so the data, decide (Verma and Pearl; Meek)."""

from __future__ import annotations

import numpy as np

from tacit.learn.discovering.constraints import Mask


def directed_edges(edges: Mask, known: Mask | None = None) -> Mask:
    """The edges [parent, child] that have this direction in every equivalent graph; `known` ones have it anyway."""
    adjacent = edges | edges.T
    fixed = np.zeros_like(edges) if known is None else edges & known
    for child in range(len(edges)):
        parents = np.flatnonzero(edges[:, child])
        for i, a in enumerate(parents):
            for b in parents[i + 1 :]:
                if not adjacent[a, b]:
                    fixed[a, child] = fixed[b, child] = True
    while (more := implied(edges, adjacent, fixed) & ~fixed).any():
        fixed |= more
    return fixed


def implied(edges: Mask, adjacent: Mask, fixed: Mask) -> Mask:
    """The directions that follow from fixed ones by Meek's rules, which rule out new colliders and cycles."""
    more, loose = np.zeros_like(fixed), edges & ~fixed
    either = loose | loose.T
    for a, b in np.argwhere(loose):
        collider = (fixed[:, a] & ~adjacent[:, b]).any()
        cycle = (fixed[a] & fixed[:, b]).any()
        between = np.flatnonzero(either[a] & fixed[:, b])
        two_paths = any(not adjacent[c, d] for i, c in enumerate(between) for d in between[i + 1 :])
        # a - c -> d -> b, with a and d adjacent: only directions that are known beforehand make this rule necessary
        chain = any(
            (fixed[:, d] & adjacent[a] & ~adjacent[:, b]).any() for d in np.flatnonzero(fixed[:, b] & adjacent[a])
        )
        more[a, b] = collider or cycle or two_paths or chain
    return more
