"""Decision diagrams whose ends are numbers of a circuit: the loops, on flat arrays.

A *number* is a constant, a symbol, or the sum or product of two numbers. Its fingerprint is its value at one point of a
prime field, so that equal polynomials are one number; at every hit, its value at a point of the reals is compared as
well. A *diagram* is a node with one child for each state of the axis of its level, or an end: child k >= 0 is node k,
child -1 - k is number k. Equal nodes are one node, and a node whose children are all equal is that child.
"""

# What is built into kernels: see `jit`.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.base.jit import jit

# For kernels that allocate nothing: numba then counts no references, which takes more than half of the time where all
# arrays of a store are passed.
in_place = jit(_nrt=False)

CONSTANT, SYMBOL, SUM, PRODUCT = range(4)
# what is counted: numbers and nodes that there are, nodes ever made, ...; `UNIQUE` is the part of a hash table in use
NUMBERS, NODES, MADE, CELLS, STEPS, MOST_NUMBERS, MOST_NODES, MOST_STEPS, FULL, STAMP, LARGEST, UNIQUE = range(12)
COUNTERS = 12
MARK, CHILDREN = 1, 2  # where the parts of a node are; the level comes first
ZERO, ONE = -1, -2  # the diagrams of the numbers 0 and 1
FIRST_NODE = 2  # its place: a remembered result of nodes 0 and 0 is none
MIN_SLOTS = 2**16  # of the hash table of nodes that are in use at least
END_LEVEL = 1 << 30  # below all others
EMPTY = -1
PRIME = np.uint64(2**64 - 59)
GAP = np.uint64(59)  # 2**64 less the prime
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MIX_A, MIX_B, MIX_C = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_A, SHIFT_B = np.uint64(29), np.uint64(32)
POWERS = 2.0 ** -np.arange(100.0)
SHIFTS = 2.0 ** np.arange(-1.0, 2.0)
TOLERANCE = 1e-8  # two ways to compute the same number differ by much less
MULTIPLY, ADD, ELIMINATE = range(3)  # what a remembered result is of; eliminating adds the level
# A frame of `apply`: what it waits for, its task on two diagrams, the level of the topmost, the child at hand, and the
# part of `work` for results.
STAGE, TASK, LEFT, RIGHT, LEVEL, CHILD, BEGIN, END = range(8)
FRAME_COLUMNS = 8
GATHERING, ADDING, ADDED, SCALING = range(4)  # stages: children one by one; products, each then added; a sum to scale


class Store(NamedTuple):
    """All numbers and nodes of one attempt."""

    # numbers
    print: Any
    mantissa: Any
    exponent: Any
    kind: Any
    left: Any
    right: Any
    degree: Any  # factors that depend on evidence, at most
    known: Any  # hash table of fingerprints
    # nodes, each by its place: the level, a mark, the children
    cells: Any
    unique: Any  # hash table of nodes
    # axes, by level
    card: Any
    card_number: Any
    # remembered results: two diagrams; the task and its result
    memory: Any
    # scratch
    work: Any
    frames: Any
    stack: Any
    count: Any


@in_place
def times(a, b):  # type: ignore[no-untyped-def]
    """The product of two elements of the field."""
    hi, lo = _wide_product(a, b)
    more, low = _wide_product(hi, GAP)
    total = lo + low
    if total < lo:
        more += np.uint64(1)
    product = total + more * GAP
    if product < total:
        product += GAP
    return product - PRIME if product >= PRIME else product


@jit()
def all_times(elements, factor):  # type: ignore[no-untyped-def]
    """The products of some elements of the field with one."""
    products = np.empty_like(elements)
    flat, into = elements.ravel(), products.ravel()
    for i in range(len(flat)):
        into[i] = times(flat[i], factor)
    return products


@in_place
def _wide_product(a, b):  # type: ignore[no-untyped-def]
    """The upper and the lower half of a product of two numbers of 64 bits."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    p00, p01, p10 = a0 * b0, a0 * b1, a1 * b0
    middle = (p00 >> HALF) + (p01 & LOW) + (p10 & LOW)
    return a1 * b1 + (p01 >> HALF) + (p10 >> HALF) + (middle >> HALF), (p00 & LOW) | (middle << HALF)


@in_place
def plus(a, b):  # type: ignore[no-untyped-def]
    """The sum of two elements of the field."""
    total = a + b
    if total < a:
        total += GAP
    return total - PRIME if total >= PRIME else total


@in_place
def _mixed(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> SHIFT_B)) * MIX_B
    x = (x ^ (x >> SHIFT_A)) * MIX_C
    return x ^ (x >> SHIFT_B)


@in_place
def _scaled(mantissa, exponent):  # type: ignore[no-untyped-def]
    """A positive number with its mantissa in [1, 2)."""
    if mantissa == 0.0:
        return 0.0, 0
    while mantissa >= 2.0:
        mantissa *= 0.5
        exponent += 1
    while mantissa < 1.0:
        mantissa *= 2.0
        exponent -= 1
    return mantissa, exponent


@in_place
def _near(s, other, mantissa, exponent):  # type: ignore[no-untyped-def]
    """Whether the real value of a number is this one, too; otherwise two different numbers have one fingerprint."""
    shift = s.exponent[other] - exponent
    return abs(shift) <= 1 and abs(s.mantissa[other] * SHIFTS[1 + shift] - mantissa) < TOLERANCE


@in_place
def number(s, kind, point, left, right, degree):  # type: ignore[no-untyped-def]
    """The number with these values in the field and (mantissa, exponent) in the reals, made if there is none."""
    print_, mantissa, exponent = point
    mask = len(s.known) - 1
    slot = np.int64(_mixed(print_)) & mask
    while s.known[slot] != EMPTY:
        other = s.known[slot]
        if s.print[other] == print_ and _near(s, other, mantissa, exponent):
            return other
        slot = (slot + 1) & mask
    new = s.count[NUMBERS]
    if new >= s.count[MOST_NUMBERS]:
        s.count[FULL] = 1
        return 0
    s.count[NUMBERS] = new + 1
    s.known[slot] = new
    s.print[new], s.mantissa[new], s.exponent[new] = print_, mantissa, exponent
    s.kind[new], s.left[new], s.right[new], s.degree[new] = kind, left, right, degree
    return new


@in_place
def register(s, count):  # type: ignore[no-untyped-def]
    """Make the first numbers known by their fingerprints; 0 never comes up."""
    mask = len(s.known) - 1
    for i in range(1, count):
        slot = np.int64(_mixed(s.print[i])) & mask
        while s.known[slot] != EMPTY:
            slot = (slot + 1) & mask
        s.known[slot] = i


@in_place
def product_of(s, a, b):  # type: ignore[no-untyped-def]
    """The product of two numbers."""
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    if b == 1:
        return a
    mantissa, exponent = _scaled(s.mantissa[a] * s.mantissa[b], s.exponent[a] + s.exponent[b])
    kind = CONSTANT if s.kind[a] == CONSTANT and s.kind[b] == CONSTANT else PRODUCT
    degree = s.degree[a] + s.degree[b]
    return number(s, kind, (times(s.print[a], s.print[b]), mantissa, exponent), a, b, degree)


@in_place
def sum_of(s, a, b):  # type: ignore[no-untyped-def]
    """The sum of two numbers, or the larger one."""
    if a == 0 or b == 0:
        return max(a, b)
    constant = s.kind[a] == CONSTANT and s.kind[b] == CONSTANT
    degree = max(s.degree[a], s.degree[b])
    shift = s.exponent[a] - s.exponent[b]
    larger, smaller = (a, b) if shift > 0 or (shift == 0 and s.mantissa[a] >= s.mantissa[b]) else (b, a)
    if s.count[LARGEST] == 0:
        small = s.mantissa[smaller] * POWERS[abs(shift)] if abs(shift) < len(POWERS) else 0.0
        mantissa, exponent = _scaled(s.mantissa[larger] + small, s.exponent[larger])
        point = plus(s.print[a], s.print[b]), mantissa, exponent
        return number(s, CONSTANT if constant else SUM, point, a, b, degree)
    if constant or a == b:
        return larger
    # equal sums are not equal maxima: only what is made of the same two numbers is the same
    joined = plus(_mixed(s.print[a]) % PRIME, _mixed(s.print[b]) % PRIME)
    return number(s, SUM, (joined, s.mantissa[larger], s.exponent[larger]), a, b, degree)


@in_place
def node(s, level, at, card):  # type: ignore[no-untyped-def]
    """The node of a level whose children are `work[at:at + card]`."""
    same = 1
    while same < card and s.work[at + same] == s.work[at]:
        same += 1
    if same >= card:
        return np.int64(s.work[at])
    mask = s.count[UNIQUE] - 1
    slot = np.int64(_node_key(level, s.work, at, card)) & mask
    while s.unique[slot] != EMPTY:
        other = s.unique[slot]
        if s.cells[other] == level:
            same = 0
            while same < card and s.cells[other + CHILDREN + same] == s.work[at + same]:
                same += 1
            if same == card:
                return np.int64(other)
        slot = (slot + 1) & mask
    new = s.count[CELLS]
    if s.count[MADE] >= s.count[MOST_NODES] or new + CHILDREN + card > len(s.cells):
        s.count[FULL] = 1
        return np.int64(ZERO)
    s.count[MADE] += 1
    s.count[NODES] += 1
    s.count[CELLS] = new + CHILDREN + card
    s.unique[slot] = new
    s.cells[new], s.cells[new + MARK] = level, 0
    for c in range(card):
        s.cells[new + CHILDREN + c] = s.work[at + c]
    if 2 * s.count[NODES] > s.count[UNIQUE]:
        _spread_out(s, 2 * s.count[UNIQUE])
    return np.int64(new)


@in_place
def _node_key(level, children, first, card):  # type: ignore[no-untyped-def]
    """The hash of a node, whose children are in `children` from `first` on."""
    key = np.uint64(level) * MIX_A
    for c in range(first, first + card):
        key = _mixed(key + np.uint64(np.int64(children[c])) * MIX_A)
    return key


@in_place
def _spread_out(s, size):  # type: ignore[no-untyped-def]
    """Use so much of the hash table of nodes: little at first, since what is small stays in the caches."""
    s.count[UNIQUE] = size
    s.unique[:size] = EMPTY
    place = FIRST_NODE
    while place < s.count[CELLS]:
        level = s.cells[place]
        card = s.card[level]
        slot = np.int64(_node_key(level, s.cells, place + CHILDREN, card)) & (size - 1)
        while s.unique[slot] != EMPTY:
            slot = (slot + 1) & (size - 1)
        s.unique[slot] = place
        place += CHILDREN + card


@jit()
def collect(s, roots):  # type: ignore[no-untyped-def]
    """Drop all nodes that no diagram in `roots` uses, and move the others together; `roots` follow."""
    s.count[STAMP] += 1
    stamp = s.count[STAMP]
    for root in roots:
        if root >= 0:
            s.cells[root + MARK] = stamp
    forward = np.empty(s.count[CELLS], dtype=np.int32)
    places = np.empty(s.count[NODES], dtype=np.int32)
    place = FIRST_NODE
    for i in range(len(places)):
        places[i] = place
        place += CHILDREN + s.card[s.cells[place]]
    for place in places[::-1]:  # children were made before their parents
        if s.cells[place + MARK] == stamp:
            for c in range(s.card[s.cells[place]]):
                child = s.cells[place + CHILDREN + c]
                if child >= 0:
                    s.cells[child + MARK] = stamp
    to, kept = FIRST_NODE, 0
    for place in places:
        if s.cells[place + MARK] != stamp:
            continue
        forward[place] = to
        card = s.card[s.cells[place]]
        s.cells[to], s.cells[to + MARK] = s.cells[place], 0
        for c in range(card):
            child = s.cells[place + CHILDREN + c]
            s.cells[to + CHILDREN + c] = forward[child] if child >= 0 else child
        to += CHILDREN + card
        kept += 1
    s.count[CELLS], s.count[NODES] = to, kept
    for i in range(len(roots)):
        if roots[i] >= 0:
            roots[i] = forward[roots[i]]
    size = MIN_SLOTS
    while size < 4 * kept:
        size *= 2
    s.memory[: s.count[UNIQUE]] = 0
    _spread_out(s, min(size, len(s.unique)))


@in_place
def _memory(s, f, g, task, axis):  # type: ignore[no-untyped-def]
    """Where the result of a task on two diagrams would be remembered, and what tells it from others."""
    which = task + axis if task == ELIMINATE else task
    key = (np.uint64(f) << HALF) | (np.uint64(g) & LOW)
    slots = min(s.count[UNIQUE], len(s.memory))
    return np.int64(_mixed(key + np.uint64(which) * MIX_A)) & (slots - 1), np.int64(key), np.int64(which)


@in_place
def _level(s, f):  # type: ignore[no-untyped-def]
    return np.int64(s.cells[f]) if f >= 0 else np.int64(END_LEVEL)


@in_place
def _child(s, f, level, child):  # type: ignore[no-untyped-def]
    """A child of a node of that level; a diagram below it stays as it is."""
    return np.int64(s.cells[f + CHILDREN + child]) if _level(s, f) == level else f


@in_place
def apply(s, task, f, g, axis):  # type: ignore[no-untyped-def]
    """The product of two diagrams, their sum, or their product summed over the axis of a level (or its largest).

    A loop with a stack of its own: recursion in compiled code would pass all arrays again and again. For that reason,
    what is done with a frame is inlined.
    """
    depth = 0
    while True:
        if f > g:
            f, g = g, f
        finished, result, task, f, g = _enter(s, depth, task, f, g, axis)
        if not finished:
            depth += 1
        while finished:
            if depth == 0:
                return result
            finished, depth, result, task, f, g = _resume(s, depth, result, axis)


@jit(_nrt=False, forceinline=True)
def _enter(s, depth, task, f, g, axis):  # type: ignore[no-untyped-def]
    """Begin a task: whether it is finished, and its result; else a new frame, and the first task that it waits for."""
    nothing = np.int64(ZERO)
    if s.count[FULL] or (task != ADD and (f == ZERO or g == ZERO)):
        return True, nothing, task, f, g
    if task == ADD and (f == ZERO or g == ZERO):
        return True, g if f == ZERO else f, task, f, g
    if task == MULTIPLY and (f == ONE or g == ONE):
        return True, g if f == ONE else f, task, f, g
    if task != ELIMINATE and g < 0:  # both are ends
        end = product_of(s, -1 - f, -1 - g) if task == MULTIPLY else sum_of(s, -1 - f, -1 - g)
        return True, np.int64(-1 - end), task, f, g
    level = min(_level(s, f), _level(s, g))
    if task == ELIMINATE and level > axis:  # neither depends on it
        stage, width, first = SCALING, 0, MULTIPLY
    elif task == ELIMINATE and level == axis:
        stage, width, first = ADDING, 1, MULTIPLY
    else:
        stage, width, first = GATHERING, s.card[level], task
    if stage != SCALING:
        place, key, which = _memory(s, f, g, task, axis)
        if s.memory[place, 0] == key and s.memory[place, 1] >> 32 == which:
            return True, np.int64(np.int32(s.memory[place, 1] & 0xFFFFFFFF)), task, f, g
        s.count[STEPS] += 1
        if s.count[STEPS] > s.count[MOST_STEPS]:
            s.count[FULL] = 1
            return True, nothing, task, f, g
    frame, begin = s.frames[depth], s.frames[depth - 1, END] if depth else 0
    frame[STAGE], frame[TASK], frame[LEFT], frame[RIGHT] = stage, task, f, g
    frame[LEVEL], frame[CHILD], frame[BEGIN], frame[END] = level, 0, begin, begin + width
    if stage == ADDING:
        s.work[begin] = ZERO
    if stage != SCALING:
        f, g = _child(s, f, level, 0), _child(s, g, level, 0)
    return False, nothing, first, f, g


@jit(_nrt=False, forceinline=True)
def _resume(s, depth, result, axis):  # type: ignore[no-untyped-def]
    """Hand a result to the frame on top: whether that is finished, and its result; else the next task it waits for."""
    frame = s.frames[depth - 1]
    stage, task, f, g, level, begin = frame[STAGE], frame[TASK], frame[LEFT], frame[RIGHT], frame[LEVEL], frame[BEGIN]
    if stage == SCALING:
        return s.count[LARGEST] != 0, depth - 1, result, MULTIPLY, result, np.int64(-1 - s.card_number[axis])
    if stage == ADDING:  # a product was found: add it to the others
        frame[STAGE] = ADDED
        return False, depth, result, ADD, np.int64(s.work[begin]), result
    if stage == ADDED:
        s.work[begin] = result
        frame[STAGE] = ADDING
    else:
        s.work[begin + frame[CHILD]] = result
    frame[CHILD] += 1
    if frame[CHILD] < s.card[level]:
        f, g = _child(s, f, level, frame[CHILD]), _child(s, g, level, frame[CHILD])
        return False, depth, result, MULTIPLY if stage == ADDED else task, f, g
    if stage != ADDED:
        result = node(s, level, begin, s.card[level])
    place, key, which = _memory(s, f, g, task, axis)
    s.memory[place, 0], s.memory[place, 1] = key, (which << 32) | (result & 0xFFFFFFFF)
    return True, depth - 1, result, task, f, g


@in_place
def tables(s, numbers, ends, levels, level_ends, roots):  # type: ignore[no-untyped-def]
    """Make diagrams of tables of numbers, whose axes have these levels, the topmost first; `numbers` is used up."""
    start = first = 0
    for t in range(len(roots)):
        size = ends[t] - start
        for i in range(start, ends[t]):
            numbers[i] = -1 - numbers[i]
        for k in range(level_ends[t] - 1, first - 1, -1):
            card = s.card[levels[k]]
            size //= card
            for i in range(size):
                for c in range(card):
                    s.work[c] = numbers[start + i * card + c]
                numbers[start + i] = node(s, levels[k], 0, card)
        roots[t] = numbers[start]
        start, first = ends[t], level_ends[t]


@in_place
def _reached(s, f):  # type: ignore[no-untyped-def]
    """List the nodes of a diagram in `stack`; returns how many there are."""
    if f < 0:
        return 0
    s.count[STAMP] += 1
    stamp = s.count[STAMP]
    s.stack[0] = f
    s.cells[f + MARK] = stamp
    seen, size = 0, 1
    while seen < size:
        place = s.stack[seen]
        seen += 1
        for c in range(s.card[s.cells[place]]):
            child = s.cells[place + CHILDREN + c]
            if child >= 0 and s.cells[child + MARK] != stamp:
                s.cells[child + MARK] = stamp
                s.stack[size] = child
                size += 1
    return size


@in_place
def look(s, f, support, ends):  # type: ignore[no-untyped-def]
    """Mark the levels of a diagram, list the numbers at its ends, if there is room, and count its nodes and ends."""
    size, count = _reached(s, f), 0
    if f < 0:
        if len(ends):
            ends[0] = -1 - f
        return 0, 1
    for place in s.stack[:size]:
        level = s.cells[place]
        support[level] = True
        for c in range(s.card[level]):
            child = s.cells[place + CHILDREN + c]
            if child < 0:
                if count < len(ends):
                    ends[count] = -1 - child
                count += 1
    return size, count


@jit()
def renamed(s, f, old, new):  # type: ignore[no-untyped-def]
    """A diagram with other numbers at its ends: `new[k]` for `old[k]`, which are in order; 0 stays."""
    if f < 0:
        return _other_end(f, old, new)
    forward = np.empty(f + 1, dtype=np.int32)
    for place in np.sort(s.stack[: _reached(s, f)]):  # children were made before their parents
        level = s.cells[place]
        for c in range(s.card[level]):
            child = np.int64(s.cells[place + CHILDREN + c])
            s.work[c] = forward[child] if child >= 0 else _other_end(child, old, new)
        forward[place] = node(s, level, 0, s.card[level])
    return np.int64(forward[f])


@in_place
def _other_end(end, old, new):  # type: ignore[no-untyped-def]
    return np.int64(ZERO) if end == ZERO else np.int64(-1 - new[np.searchsorted(old, -1 - end)])


@in_place
def write_table(s, f, levels, table):  # type: ignore[no-untyped-def]
    """Write the table of a diagram whose axes have these levels, the topmost first: the numbers of all entries."""
    for i in range(len(table)):
        rest, stride = i, len(table)
        at = f
        for k in range(len(levels)):
            card = s.card[levels[k]]
            stride //= card
            state, rest = rest // stride, rest % stride
            if at >= 0 and s.cells[at] == levels[k]:
                at = np.int64(s.cells[at + CHILDREN + state])
        table[i] = -1 - at
