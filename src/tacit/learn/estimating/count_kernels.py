"""The kernel that counts how often the states of families occur together."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from tacit.base.jit import jit
from tacit.learn.estimating.tiles import LANES, TILE


@jit(nogil=True)
def count_families(codes, weights, members, sizes, ends, first, totals):
    """Add the weights of all rows to the entries of all tables; arguments are those of `count_by_numpy`."""
    places = np.empty(TILE, dtype=np.int32)
    lane0, lane1, lane2, lane3 = totals[0], totals[1], totals[2], totals[3]
    rows = codes.shape[1]
    for start in range(0, rows, TILE):
        count = min(TILE, rows - start)
        axis = 0
        for f in range(len(ends)):
            states = codes[members[axis], start : start + count]
            for j in range(count):
                places[j] = np.int32(states[j])
            axis += 1
            while axis < ends[f]:
                states, size = codes[members[axis], start : start + count], np.int32(sizes[axis])
                for j in range(count):
                    places[j] = places[j] * size + np.int32(states[j])
                axis += 1
            offset = first[f]
            if len(weights) == 0:
                whole = count - count % LANES
                for j in range(0, whole, LANES):
                    lane0[offset + places[j]] += 1.0
                    lane1[offset + places[j + 1]] += 1.0
                    lane2[offset + places[j + 2]] += 1.0
                    lane3[offset + places[j + 3]] += 1.0
                for j in range(whole, count):
                    lane0[offset + places[j]] += 1.0
            else:
                for j in range(count):
                    lane0[offset + places[j]] += weights[start + j]
