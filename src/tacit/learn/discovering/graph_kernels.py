"""Kernels on graphs as matrices [parent, child]: paths, and changes that leave no cycle."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from tacit.base.jit import jit


@jit(nogil=True)
def descendants(edges):
    """Matrix [a, b]: whether there is a path from a to b."""
    reach = edges.copy()
    for middle in range(len(reach)):
        for start in range(len(reach)):
            if reach[start, middle]:
                reach[start] |= reach[middle]
    return reach


@jit(nogil=True)
def legal_changes(edges, gains, allowed, required, changes):
    """What each change that leaves no cycle gains, minus infinity for the others.

    `changes[0]` is of adding an edge, or of dropping it where it is there, and `changes[1]` of turning it.
    """
    reach = descendants(edges)
    changes[:] = -np.inf
    for a in range(len(edges)):
        for b in range(len(edges)):
            if edges[a, b]:
                if not required[a, b]:
                    changes[0, a, b] = gains[a, b]
                    if allowed[b, a] and not (edges[a] & reach[:, b]).any():  # there is no other path
                        changes[1, a, b] = gains[a, b] + gains[b, a]
            elif allowed[a, b] and not edges[b, a] and not reach[b, a]:
                changes[0, a, b] = gains[a, b]
