"""The instructions of a tape: what each does to a tile of rows, and how it hands derivatives back.

`values` (slots, rows of a tile) is the working space of a tile. An instruction writes one slot of it, `dst`, and reads
its terms, pairs of whole numbers from `first` on: slots, or places of constants, which are scalars. Backward,
`adjoints` (slots, rows of a tile) and `d_constants` (constants,) gather the derivatives of some function by what was
read, given those by `dst`. What the numbers of a term mean is said here, once for each kind of instruction.

Slots are indexed row by row, and where operands are either constants or slots, one of two loops is empty: for views of
slots, and for arrays in branches, numba counts references, which takes longer than the arithmetic of a narrow tile.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from tacit.base.jit import jit
from tacit.engines.tape.exponential import exp_of_negative
from tacit.engines.tape.instructions import LEAST_WEIGHT_32, LEAST_WEIGHT_64, NEGLIGIBLE_32, NEGLIGIBLE_64
from tacit.engines.tape.underflow_flag import raise_underflow

# INPUT: (row of the inputs, 0). The likelihoods of a state.


@jit(nogil=True, inline="always")
def read_input(inputs, terms, values, dst, first, r0, n):
    """Rows of a tile that are not there repeat the last one, so that no underflow comes from them."""
    row = terms[first, 0]
    for j in range(n):
        values[dst, j] = inputs[row, r0 + j]
    for j in range(n, values.shape[1]):
        values[dst, j] = inputs[row, r0 + n - 1]


@jit(nogil=True, inline="always")
def read_input_backward(d_inputs, adjoints, terms, dst, first, r0, n):
    row = terms[first, 0]
    for j in range(n):
        d_inputs[row, r0 + j] = adjoints[dst, j]


# INDEX: (row of the codes, stride) ... Where the observed states point to in a table: no derivatives.


@jit(nogil=True, inline="always")
def point(codes, terms, values, dst, span, rows):
    (first, end), (r0, n) = span, rows
    index = as_index(values[dst])
    for j in range(n):
        index[j] = codes[terms[first, 0], r0 + j] * terms[first, 1]
    for t in range(first + 1, end):
        for j in range(n):
            index[j] += codes[terms[t, 0], r0 + j] * terms[t, 1]
    for j in range(n, values.shape[1]):
        index[j] = index[n - 1]


@jit(nogil=True, inline="always")
def as_index(slot):
    """A slot that holds whole numbers, which a float32 could not from 2**24 on."""
    return slot.view(np.int32)


# TABLE: (first constant, slot of an index). The entry of a table that an index points to.


@jit(nogil=True, inline="always")
def look_up(constants, terms, values, dst, first):
    base, index = terms[first, 0], as_index(values[terms[first, 1]])
    for j in range(values.shape[1]):
        values[dst, j] = constants[base + index[j]]


@jit(nogil=True, inline="always")
def look_up_backward(d_constants, adjoints, terms, values, dst, first, n):
    base, index = terms[first, 0], as_index(values[terms[first, 1]])
    for j in range(n):
        d_constants[base + index[j]] += adjoints[dst, j]


# LINEAR: (constant, slot) ... The sum of constant * slot.


@jit(nogil=True, fastmath={"contract", "nsz"})
def linear(values, terms, constants, dst, first, end):
    """Four terms at a time, so that the sum is loaded and stored less often."""
    t = first
    head = (end - first) % 4
    if head == 0:
        c0, y0, c1, y1 = constants[terms[t, 0]], terms[t, 1], constants[terms[t + 1, 0]], terms[t + 1, 1]
        c2, y2, c3, y3 = constants[terms[t + 2, 0]], terms[t + 2, 1], constants[terms[t + 3, 0]], terms[t + 3, 1]
        for j in range(values.shape[1]):
            values[dst, j] = (c0 * values[y0, j] + c1 * values[y1, j]) + (c2 * values[y2, j] + c3 * values[y3, j])
        t += 4
    elif head == 1:
        c0, y0 = constants[terms[t, 0]], terms[t, 1]
        for j in range(values.shape[1]):
            values[dst, j] = c0 * values[y0, j]
        t += 1
    elif head == 2:
        c0, y0, c1, y1 = constants[terms[t, 0]], terms[t, 1], constants[terms[t + 1, 0]], terms[t + 1, 1]
        for j in range(values.shape[1]):
            values[dst, j] = c0 * values[y0, j] + c1 * values[y1, j]
        t += 2
    else:
        c0, y0, c1, y1 = constants[terms[t, 0]], terms[t, 1], constants[terms[t + 1, 0]], terms[t + 1, 1]
        c2, y2 = constants[terms[t + 2, 0]], terms[t + 2, 1]
        for j in range(values.shape[1]):
            values[dst, j] = c0 * values[y0, j] + c1 * values[y1, j] + c2 * values[y2, j]
        t += 3
    while t < end:
        c0, y0, c1, y1 = constants[terms[t, 0]], terms[t, 1], constants[terms[t + 1, 0]], terms[t + 1, 1]
        c2, y2, c3, y3 = constants[terms[t + 2, 0]], terms[t + 2, 1], constants[terms[t + 3, 0]], terms[t + 3, 1]
        for j in range(values.shape[1]):
            values[dst, j] += (c0 * values[y0, j] + c1 * values[y1, j]) + (c2 * values[y2, j] + c3 * values[y3, j])
        t += 4


@jit(nogil=True, inline="always")
def linear_backward(values, adjoints, constants, d_constants, terms, dst, span):
    for t in range(span[0], span[1]):
        constant, slot, total = terms[t, 0], terms[t, 1], 0.0
        c = constants[constant]
        for j in range(values.shape[1]):
            total += adjoints[dst, j] * values[slot, j]
            adjoints[slot, j] += c * adjoints[dst, j]
        d_constants[constant] += total


# PRODUCT: (slot, slot) ... The sum of slot * slot.


@jit(nogil=True, fastmath={"contract", "nsz"})
def product(values, terms, dst, first, end):
    """Two terms at a time."""
    t, x0, y0 = first, terms[first, 0], terms[first, 1]
    if (end - first) % 2:
        for j in range(values.shape[1]):
            values[dst, j] = values[x0, j] * values[y0, j]
        t += 1
    else:
        x1, y1 = terms[t + 1, 0], terms[t + 1, 1]
        for j in range(values.shape[1]):
            values[dst, j] = values[x0, j] * values[y0, j] + values[x1, j] * values[y1, j]
        t += 2
    while t < end:
        x0, y0, x1, y1 = terms[t, 0], terms[t, 1], terms[t + 1, 0], terms[t + 1, 1]
        for j in range(values.shape[1]):
            values[dst, j] += values[x0, j] * values[y0, j] + values[x1, j] * values[y1, j]
        t += 2


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"})
def product_backward(values, adjoints, terms, dst, first, end):
    for t in range(first, end):
        left, right = terms[t, 0], terms[t, 1]
        for j in range(values.shape[1]):
            adjoints[left, j] += adjoints[dst, j] * values[right, j]
        for j in range(values.shape[1]):
            adjoints[right, j] += adjoints[dst, j] * values[left, j]


# LARGEST_LINEAR: (constant, slot) ... LARGEST_PRODUCT: (slot, slot) ... The largest product: no derivatives.


@jit(nogil=True, fastmath={"nsz"})
def largest_linear(values, terms, constants, dst, first, end):
    c, y = constants[terms[first, 0]], terms[first, 1]
    for j in range(values.shape[1]):
        values[dst, j] = c * values[y, j]
    for t in range(first + 1, end):
        c, y = constants[terms[t, 0]], terms[t, 1]
        for j in range(values.shape[1]):
            values[dst, j] = max(values[dst, j], c * values[y, j])


@jit(nogil=True, fastmath={"nsz"})
def largest_product(values, terms, dst, first, end):
    x, y = terms[first, 0], terms[first, 1]
    for j in range(values.shape[1]):
        values[dst, j] = values[x, j] * values[y, j]
    for t in range(first + 1, end):
        x, y = terms[t, 0], terms[t, 1]
        for j in range(values.shape[1]):
            values[dst, j] = max(values[dst, j], values[x, j] * values[y, j])


# TEST: (x, total), (limit, operator), (plus, minus). Plus where x compares with total * limit as the operator says, and
# minus elsewhere. All are slots; or limit, plus and minus are ~constant, and the operator is ~operator.


@jit(nogil=True, inline="always")
def holds(x, limit, operator):
    """x >=, >, <=, < limit for operator 0, 1, 2, 3."""
    if operator == 0:
        return x >= limit
    if operator == 1:
        return x > limit
    if operator == 2:
        return x <= limit
    return x < limit


@jit(nogil=True, fastmath={"contract", "nsz"})
def test(values, constants, terms, dst, first):
    x, total, limit, operator = terms[first, 0], terms[first, 1], terms[first + 1, 0], terms[first + 1, 1]
    plus, minus = terms[first + 2, 0], terms[first + 2, 1]
    fixed, threshold = values.shape[1] if operator < 0 else 0, constants[max(~limit, 0)]
    high, low = constants[max(~plus, 0)], constants[max(~minus, 0)]
    for j in range(fixed):
        met = holds(values[x, j], values[total, j] * threshold, ~operator)
        values[dst, j] = high if met else low
    for j in range(values.shape[1] - fixed):
        met = holds(values[x, j], values[total, j] * values[limit, j], int(values[operator, j]))
        values[dst, j] = values[plus, j] if met else values[minus, j]


@jit(nogil=True)
def test_backward(values, adjoints, constants, d_constants, terms, dst, first):
    x, total, limit, operator = terms[first, 0], terms[first, 1], terms[first + 1, 0], terms[first + 1, 1]
    plus, minus = terms[first + 2, 0], terms[first + 2, 1]
    fixed, threshold = values.shape[1] if operator < 0 else 0, constants[max(~limit, 0)]
    for j in range(fixed):
        met = holds(values[x, j], values[total, j] * threshold, ~operator)
        d_constants[~plus if met else ~minus] += adjoints[dst, j]
    for j in range(values.shape[1] - fixed):
        met = holds(values[x, j], values[total, j] * values[limit, j], int(values[operator, j]))
        adjoints[plus if met else minus, j] += adjoints[dst, j]


# WEIGHT: (x, total), (limit, operator), (gamma, 0). The lesser weight of a mixture: see `instructions`. Gamma is a
# constant; the others are as in TEST.


@jit(nogil=True, inline="always")
def sign_of(operator):
    """Sigmoids fall for <= and <."""
    return 1.0 if operator < 2 else -1.0


@jit(nogil=True, inline="always")
def bounds_of_weights(itemsize):
    """The smallest weight of a mixture in numbers of this size; entries below the second do not hide what it does."""
    return (LEAST_WEIGHT_64, NEGLIGIBLE_64) if itemsize == 8 else (LEAST_WEIGHT_32, NEGLIGIBLE_32)


@jit(nogil=True, inline="always", error_model="numpy")
def lesser_weight(x, total, threshold, gamma, least):
    """The lesser of sigmoid(z), the weight of plus, and sigmoid(-z), that of minus, which gets a minus sign.

    z = gamma (x/total - threshold), 0 where total is 0; gamma < 0 for <= and <.
    """
    z = gamma * (x / total - threshold) if total > 0 else 0.0
    small = max(exp_of_negative(-abs(z)), least)
    return (-small if z >= 0 else small) / (1.0 + small)


@jit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def weight(values, constants, terms, dst, first):
    x, total, limit, operator = terms[first, 0], terms[first, 1], terms[first + 1, 0], terms[first + 1, 1]
    gamma, (least, _) = constants[terms[first + 2, 0]], bounds_of_weights(values.itemsize)
    fixed, threshold = values.shape[1] if operator < 0 else 0, constants[max(~limit, 0)]
    steep = gamma * sign_of(~operator)
    for j in range(fixed):
        values[dst, j] = lesser_weight(values[x, j], values[total, j], threshold, steep, least)
    for j in range(values.shape[1] - fixed):
        steep = gamma * sign_of(values[operator, j])
        values[dst, j] = lesser_weight(values[x, j], values[total, j], values[limit, j], steep, least)


@jit(nogil=True, inline="always", error_model="numpy")
def weight_slope(x, total, lesser, a):
    """The derivative by z, x / total, and 1 / total; all are 0 where total is 0."""
    inverse = 1.0 / total if total > 0 else 0.0
    return a * abs(lesser) * (1 - abs(lesser)) if total > 0 else 0.0, x * inverse, inverse


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def weight_backward(values, adjoints, constants, d_constants, terms, dst, first):
    x, total, limit, operator = terms[first, 0], terms[first, 1], terms[first + 1, 0], terms[first + 1, 1]
    gamma, d_gamma, d_limit = constants[terms[first + 2, 0]], 0.0, 0.0
    fixed, threshold = values.shape[1] if operator < 0 else 0, constants[max(~limit, 0)]
    sign = sign_of(~operator)
    for j in range(fixed):
        dz, posterior, inverse = weight_slope(values[x, j], values[total, j], values[dst, j], adjoints[dst, j] * sign)
        adjoints[x, j] += dz * gamma * inverse
        adjoints[total, j] -= dz * gamma * posterior * inverse
        d_gamma += dz * (posterior - threshold)
        d_limit -= dz * gamma
    d_constants[max(~limit, 0)] += d_limit
    for j in range(values.shape[1] - fixed):
        a = adjoints[dst, j] * sign_of(values[operator, j])
        dz, posterior, inverse = weight_slope(values[x, j], values[total, j], values[dst, j], a)
        adjoints[x, j] += dz * gamma * inverse
        adjoints[total, j] -= dz * gamma * posterior * inverse
        adjoints[limit, j] -= dz * gamma
        d_gamma += dz * (posterior - values[limit, j])
    d_constants[terms[first + 2, 0]] += d_gamma


# MIX: (lesser weight, 0), (plus, minus). Plus and minus, each with its weight. All are slots; or plus and minus are
# ~constant.


@jit(nogil=True, inline="always")
def weight_of_plus(lesser):
    """The weight of plus from the lesser one; that of minus with the sign turned."""
    return lesser if lesser > 0 else 1 + lesser


@jit(nogil=True, inline="always")
def hangs_on(lesser, plus, minus, least, few):
    """Whether a weight that ended at the smallest one decides about a mixture."""
    entry, other = (plus, minus) if lesser > 0 else (minus, plus)
    return abs(lesser) < 2 * least and entry > 0 and other < few


@jit(nogil=True, inline="always")
def mix(values, constants, terms, dst, first):
    lesser, plus, minus = terms[first, 0], terms[first + 1, 0], terms[first + 1, 1]
    (least, few), hanging = bounds_of_weights(values.itemsize), 0
    fixed, high, low = values.shape[1] if plus < 0 else 0, constants[max(~plus, 0)], constants[max(~minus, 0)]
    for j in range(fixed):
        values[dst, j] = weight_of_plus(values[lesser, j]) * high + weight_of_plus(-values[lesser, j]) * low
    for j in range(fixed if high < few or low < few else 0):
        hanging += hangs_on(values[lesser, j], high, low, least, few)
    for j in range(values.shape[1] - fixed):
        tau, other = weight_of_plus(values[lesser, j]), weight_of_plus(-values[lesser, j])
        values[dst, j] = tau * values[plus, j] + other * values[minus, j]
    for j in range(values.shape[1] - fixed):
        hanging += hangs_on(values[lesser, j], values[plus, j], values[minus, j], least, few)
    if hanging:
        raise_underflow()


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"})
def mix_backward(values, adjoints, constants, d_constants, terms, dst, first):
    lesser, plus, minus = terms[first, 0], terms[first + 1, 0], terms[first + 1, 1]
    fixed, high, low = values.shape[1] if plus < 0 else 0, 0.0, 0.0
    difference = constants[max(~plus, 0)] - constants[max(~minus, 0)]
    for j in range(fixed):
        high += adjoints[dst, j] * weight_of_plus(values[lesser, j])
        low += adjoints[dst, j] * weight_of_plus(-values[lesser, j])
        adjoints[lesser, j] += adjoints[dst, j] * difference
    d_constants[max(~plus, 0)] += high
    d_constants[max(~minus, 0)] += low
    for j in range(values.shape[1] - fixed):
        adjoints[lesser, j] += adjoints[dst, j] * (values[plus, j] - values[minus, j])
    for j in range(values.shape[1] - fixed):
        adjoints[plus, j] += adjoints[dst, j] * weight_of_plus(values[lesser, j])
    for j in range(values.shape[1] - fixed):
        adjoints[minus, j] += adjoints[dst, j] * weight_of_plus(-values[lesser, j])


# SCALE: (slot of the exponent, slot of an earlier one or -1), (slot, slot) ... The power of two that brings the largest
# of some slots near 1. It drops out of the joint, so it needs no derivative.


@jit(nogil=True)
def scale(values, terms, dst, first, end):
    exponent, earlier, top = terms[first, 0], terms[first, 1], terms[first + 1, 0]
    for j in range(values.shape[1]):
        values[dst, j] = values[top, j]
    for t in range(first + 2, end):
        top = terms[t, 0]
        for j in range(values.shape[1]):
            values[dst, j] = max(values[dst, j], values[top, j])
    for j in range(values.shape[1]):
        _, e = math.frexp(values[dst, j])
        e = max(e, -1020 if values.itemsize == 8 else -120)  # 2**-e must be a number of this type
        values[dst, j] = math.ldexp(1.0, -e)
        values[exponent, j] = e
    for j in range(values.shape[1] if earlier >= 0 else 0):
        values[exponent, j] += values[earlier, j]


# EXTREMES: (states of x, 1 if there is nothing more), then for the smallest ratio of every x, for the largest, and for
# the sum (new slot, slot of what there is so far or -1), then for every b and x the slots of (low, high): see
# `operations.extremes`. The destination is a slot to work in. A ratio of 0 to 0 is no number, and compares with none.


@jit(nogil=True, inline="always", error_model="numpy")
def inverse_of_sum(values, dst, terms, first, states):
    """1 / the sum of the high entries of a state."""
    slot = terms[first, 1]
    for j in range(values.shape[1]):
        values[dst, j] = values[slot, j]
    for t in range(first + 1, first + states):
        slot = terms[t, 1]
        for j in range(values.shape[1]):
            values[dst, j] += values[slot, j]
    for j in range(values.shape[1]):
        values[dst, j] = 1.0 / values[dst, j]


@jit(nogil=True, inline="always", error_model="numpy")
def inverse_of_mixed_sum(values, dst, terms, span, side):
    """1 / the sum of an entry of one side and those of the other side of all other x; `span` is of a state, and it."""
    first, end, own = span
    slot = terms[own, side]
    for j in range(values.shape[1]):
        values[dst, j] = values[slot, j]
    for t in range(first, end):
        slot = terms[t, 1 - side]
        for j in range(values.shape[1] if t != own else 0):
            values[dst, j] += values[slot, j]
    for j in range(values.shape[1]):
        values[dst, j] = 1.0 / values[dst, j]


@jit(nogil=True, inline="always", error_model="numpy")
def take_smallest(values, slot, inverse, least):
    for j in range(values.shape[1]):
        ratio = values[slot, j] * values[inverse, j]
        values[least, j] = ratio if ratio < values[least, j] else values[least, j]


@jit(nogil=True, inline="always", error_model="numpy")
def take_largest(values, slot, inverse, most):
    for j in range(values.shape[1]):
        ratio = values[slot, j] * values[inverse, j]
        values[most, j] = ratio if ratio > values[most, j] else values[most, j]


@jit(nogil=True, fastmath={"nsz"}, error_model="numpy")
def extremes(values, terms, dst, first, end):
    states, last, parts = terms[first, 0], terms[first, 1], first + 1
    entries, sums = parts + 3 * states, parts + 2 * states
    for i in range(parts, entries):
        new, old = terms[i, 0], terms[i, 1]
        for j in range(values.shape[1]):
            values[new, j] = values[old, j] if old >= 0 else (1.0 if i < parts + states else 0.0)
    for b in range(entries, end, states):
        alike = True
        for t in range(b, b + states):
            alike = alike and terms[t, 0] == terms[t, 1]
        if alike:
            inverse_of_sum(values, dst, terms, b, states)
        for x in range(states):
            low, high = terms[b + x, 0], terms[b + x, 1]
            if not alike:
                inverse_of_mixed_sum(values, dst, terms, (b, b + states, b + x), 0)
            take_smallest(values, low, dst, terms[parts + x, 0])
            if not alike:
                inverse_of_mixed_sum(values, dst, terms, (b, b + states, b + x), 1)
            take_largest(values, high, dst, terms[parts + states + x, 0])
            total = terms[sums + x, 0]
            for j in range(values.shape[1]):
                values[total, j] += values[high, j]
    if last:
        share_out(values, terms, dst, sums, entries)


@jit(nogil=True, inline="always", error_model="numpy")
def share_out(values, terms, dst, first, end):
    """Divide some new slots by their sum, where it is not 0."""
    for j in range(values.shape[1]):
        values[dst, j] = 0.0
    for t in range(first, end):
        slot = terms[t, 0]
        for j in range(values.shape[1]):
            values[dst, j] += values[slot, j]
    for t in range(first, end):
        slot = terms[t, 0]
        for j in range(values.shape[1]):
            values[slot, j] = values[slot, j] / values[dst, j] if values[dst, j] > 0 else 0.0


# OUTPUT: (slot, 0). The destination is a row of the outputs.


@jit(nogil=True, inline="always")
def write_output(outputs, values, terms, dst, first, r0, n):
    slot = terms[first, 0]
    for j in range(n):
        outputs[dst, r0 + j] = values[slot, j]


@jit(nogil=True, inline="always")
def write_output_backward(seeds, adjoints, terms, dst, first, r0, n):
    """Only the first rows of the outputs, the joint, have seeds."""
    slot = terms[first, 0]
    if dst < seeds.shape[0]:
        for j in range(n):
            adjoints[slot, j] += seeds[dst, r0 + j]
