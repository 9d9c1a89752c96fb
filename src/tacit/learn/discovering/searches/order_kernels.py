"""Kernels of the search over orders: sets of columns are rows of 64-bit words, and parents come from a list of sets.

The sets of a column are at places `begins[column]` to `begins[column + 1]`, the best one first. `chosen` has the place
of the set that each column has in an order; the end of its list stands for none, which is impossible.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from tacit.base.jit import jit

IMPOSSIBLE = -1e15  # for a column none of whose sets of parents comes before it


@jit(nogil=True)
def first_subset(sets, begin, end, seen):
    """The first of some sets that has only columns seen; the end if there is none."""
    for i in range(begin, end):
        outside = np.uint64(0)
        for word in range(sets.shape[1]):
            outside |= sets[i, word] & ~seen[word]
        if outside == 0:
            return i
    return end


@jit(nogil=True)
def holds(members, column):
    """Whether a set has a column."""
    return (members[column >> 6] >> np.uint64(column & 63)) & np.uint64(1) != 0


@jit(nogil=True)
def flip(members, column):
    """Put a column into a set, or take it out."""
    members[column >> 6] ^= np.uint64(1) << np.uint64(column & 63)


@jit(nogil=True)
def score_at(scores, begins, column, place):
    """The score of a column with the set at a place."""
    return IMPOSSIBLE if place == begins[column + 1] else scores[place]


@jit(nogil=True)
def choose(order, sets, begins, chosen):
    """Choose the best parents of all columns in an order."""
    seen = np.zeros(sets.shape[1], np.uint64)
    for column in order:
        chosen[column] = first_subset(sets, begins[column], begins[column + 1], seen)
        flip(seen, column)


@jit(nogil=True)
def order_score(order, scores, begins, chosen):
    """The score of the graph of an order."""
    total = 0.0
    for column in order:
        total += score_at(scores, begins, column, chosen[column])
    return total


@jit(nogil=True)
def move(order, start, stop):
    """Move a column from one place of an order to another."""
    column = order[start]
    step = 1 if stop > start else -1
    for place in range(start, stop, step):
        order[place] = order[place + step]
    order[stop] = column


@jit(nogil=True)
def best_place(order, start, sets, scores, begins, chosen):
    """The place to which the column at `start` moves best, and what the score gains."""
    column = order[start]
    before = np.zeros(sets.shape[1], np.uint64)
    for i in range(start):
        flip(before, order[i])
    own = score_at(scores, begins, column, chosen[column])
    best, place = 0.0, start

    seen, passed, mine = before.copy(), 0.0, chosen[column]
    gains_nothing = mine == begins[column]  # since no set of parents is better than its own
    for i in range(
        start + 1, start + 1 if gains_nothing else len(order)
    ):  # to the right: others lose it, it gains them
        other = order[i]
        now = chosen[other]
        if now < begins[other + 1] and holds(sets[now], column):
            less = first_subset(sets, now + 1, begins[other + 1], seen)
            passed += score_at(scores, begins, other, less) - scores[now]
        flip(seen, other)
        mine = first_subset(sets, begins[column], mine, seen)
        gain = passed + score_at(scores, begins, column, mine) - own
        if gain > best:
            best, place = gain, i

    seen, passed, mine = before.copy(), 0.0, chosen[column]
    for i in range(start - 1, -1, -1):  # to the left: others gain the column, which loses them
        other = order[i]
        now = chosen[other]
        flip(seen, other)
        flip(seen, column)
        more = first_subset(sets, begins[other], now, seen)
        flip(seen, column)
        passed += score_at(scores, begins, other, more) - score_at(scores, begins, other, now)
        mine = first_subset(sets, mine, begins[column + 1], seen)
        gain = passed + score_at(scores, begins, column, mine) - own
        if gain > best:
            best, place = gain, i
    return place, best


@jit(nogil=True)
def settle(order, sets, scores, begins, chosen, least):
    """Move every column to its best place, again and again, while that gains more than `least`."""
    choose(order, sets, begins, chosen)
    improved = True
    while improved:
        improved = False
        for column in range(len(order)):
            start = 0
            while order[start] != column:
                start += 1
            place, gain = best_place(order, start, sets, scores, begins, chosen)
            if gain > least:
                move(order, start, place)
                choose(order, sets, begins, chosen)
                improved = True
    return order_score(order, scores, begins, chosen)


@jit(nogil=True)
def kicked(order, kicks, sets, scores, begins, least):
    """Settle an order after each of some kicks, and keep what is no worse; `kicks` are places (kicks, moves, 2)."""
    chosen = np.empty(len(order), np.int64)
    best = settle(order, sets, scores, begins, chosen, least)
    for moves in kicks:
        trial = order.copy()
        for pair in moves:
            move(trial, pair[0], pair[1])
        score = settle(trial, sets, scores, begins, chosen, least)
        if score >= best:
            best = score
            order[:] = trial
    return best


@jit(nogil=True)
def undominated(sets):
    """Which of some sets, from the best to the worst, have no better one within them."""
    kept = np.ones(len(sets), np.bool_)
    for i in range(len(sets)):
        for j in range(i):
            if kept[j]:
                outside = np.uint64(0)
                for word in range(sets.shape[1]):
                    outside |= sets[j, word] & ~sets[i, word]
                if outside == 0:
                    kept[i] = False
                    break
    return kept
