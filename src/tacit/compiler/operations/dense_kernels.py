"""The numba kernels of products of large tables: one pass over the result, whatever the order of the axes.

A place in a table is the sum of offsets: of a tile, of a place in this tile, and of what is summed over. Tables are
given with these three.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from tacit.base.jit import jit


@jit(nogil=True, fastmath={"contract"}, error_model="numpy")
def sums(a, a_tiles, a_places, a_summed, out, tiles, places):
    """Sums of entries: also those of one, which is a copy in another order."""
    for tile in range(tiles.size):
        for s in range(a_summed.size):
            x, to = a_tiles[tile] + a_summed[s], tiles[tile]
            if s == 0:
                for k in range(places.size):
                    out[to + places[k]] = a[x + a_places[k]]
            else:
                for k in range(places.size):
                    out[to + places[k]] += a[x + a_places[k]]


@jit(nogil=True, fastmath={"contract"}, error_model="numpy")
def products(a, a_tiles, a_places, a_summed, b, b_tiles, b_places, b_summed, out, tiles, places):
    """Sums of products, with entries of both operands anywhere."""
    for tile in range(tiles.size):
        for s in range(a_summed.size):
            x, y, to = a_tiles[tile] + a_summed[s], b_tiles[tile] + b_summed[s], tiles[tile]
            if s == 0:
                for k in range(places.size):
                    out[to + places[k]] = a[x + a_places[k]] * b[y + b_places[k]]
            else:
                for k in range(places.size):
                    out[to + places[k]] += a[x + a_places[k]] * b[y + b_places[k]]


@jit(nogil=True, fastmath={"contract"}, error_model="numpy")
def products_in_runs(a, a_runs, a_summed, b, b_runs, b_summed, step, length, out):
    """The same where the entries of a run follow one another in `a`, and in `b` if `step` is 1; 0: it has but one."""
    for run in range(a_runs.size):
        own = out[run * length : (run + 1) * length]
        for s in range(a_summed.size):
            x, y = a_runs[run] + a_summed[s], b_runs[run] + b_summed[s]
            mine = a[x : x + length]
            if step == 0:
                factor = b[y]
                if s == 0:
                    for k in range(length):
                        own[k] = mine[k] * factor
                else:
                    for k in range(length):
                        own[k] += mine[k] * factor
            else:
                theirs = b[y : y + length]
                if s == 0:
                    for k in range(length):
                        own[k] = mine[k] * theirs[k]
                else:
                    for k in range(length):
                        own[k] += mine[k] * theirs[k]
