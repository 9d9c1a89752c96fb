"""The instructions of a tape: what each does to a tile of rows, and how it hands derivatives back.

`values` (slots, rows of a tile) is the working space of a tile. An instruction writes one slot of it, `dst`, and reads
its terms, pairs of whole numbers from `first` on: slots, or places of constants, which are scalars. Backward, `a` are
the derivatives of some function by that slot, and `adjoints` (slots, rows of a tile) and `d_constants` (constants,)
gather those by what was read. What the numbers of a term mean is said here, once for each kind of instruction.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math
from typing import NamedTuple

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
def read_input_backward(d_inputs, terms, a, first, r0, n):
    row = terms[first, 0]
    for j in range(n):
        d_inputs[row, r0 + j] = a[j]


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
def look_up_backward(d_constants, terms, values, a, first, n):
    base, index = terms[first, 0], as_index(values[terms[first, 1]])
    for j in range(n):
        d_constants[base + index[j]] += a[j]


# LINEAR: (constant, slot) ... The sum of constant * slot.


@jit(nogil=True, inline="always")
def two_terms(values, terms, constants, t):
    return constants[terms[t, 0]], values[terms[t, 1]], constants[terms[t + 1, 0]], values[terms[t + 1, 1]]


@jit(nogil=True, fastmath={"contract", "nsz"})
def linear(values, terms, constants, dst, first, end):
    """Four terms at a time, so that the sum is loaded and stored less often."""
    out = values[dst]
    t = first
    head = (end - first) % 4
    if head == 0:
        c0, y0, c1, y1 = two_terms(values, terms, constants, t)
        c2, y2, c3, y3 = two_terms(values, terms, constants, t + 2)
        for j in range(values.shape[1]):
            out[j] = (c0 * y0[j] + c1 * y1[j]) + (c2 * y2[j] + c3 * y3[j])
        t += 4
    elif head == 1:
        c0, y0 = constants[terms[t, 0]], values[terms[t, 1]]
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j]
        t += 1
    elif head == 2:
        c0, y0, c1, y1 = two_terms(values, terms, constants, t)
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j] + c1 * y1[j]
        t += 2
    else:
        c0, y0, c1, y1 = two_terms(values, terms, constants, t)
        c2, y2 = constants[terms[t + 2, 0]], values[terms[t + 2, 1]]
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j] + c1 * y1[j] + c2 * y2[j]
        t += 3
    while t < end:
        c0, y0, c1, y1 = two_terms(values, terms, constants, t)
        c2, y2, c3, y3 = two_terms(values, terms, constants, t + 2)
        for j in range(values.shape[1]):
            out[j] += (c0 * y0[j] + c1 * y1[j]) + (c2 * y2[j] + c3 * y3[j])
        t += 4


@jit(nogil=True, inline="always")
def linear_backward(values, adjoints, constants, d_constants, terms, a, span):
    for t in range(span[0], span[1]):
        constant, slot = terms[t, 0], terms[t, 1]
        c, y, dy = constants[constant], values[slot], adjoints[slot]
        total = 0.0
        for j in range(values.shape[1]):
            total += a[j] * y[j]
            dy[j] += c * a[j]
        d_constants[constant] += total


# PRODUCT: (slot, slot) ... The sum of slot * slot.


@jit(nogil=True, fastmath={"contract", "nsz"})
def product(values, terms, dst, first, end):
    """Two terms at a time."""
    out = values[dst]
    t = first
    if (end - first) % 2:
        x0, y0 = values[terms[t, 0]], values[terms[t, 1]]
        for j in range(values.shape[1]):
            out[j] = x0[j] * y0[j]
        t += 1
    else:
        x0, y0 = values[terms[t, 0]], values[terms[t, 1]]
        x1, y1 = values[terms[t + 1, 0]], values[terms[t + 1, 1]]
        for j in range(values.shape[1]):
            out[j] = x0[j] * y0[j] + x1[j] * y1[j]
        t += 2
    while t < end:
        x0, y0 = values[terms[t, 0]], values[terms[t, 1]]
        x1, y1 = values[terms[t + 1, 0]], values[terms[t + 1, 1]]
        for j in range(values.shape[1]):
            out[j] += x0[j] * y0[j] + x1[j] * y1[j]
        t += 2


@jit(nogil=True, inline="always")
def product_backward(values, adjoints, terms, a, first, end):
    for t in range(first, end):
        left, right = terms[t, 0], terms[t, 1]
        x, dx, y, dy = values[left], adjoints[left], values[right], adjoints[right]
        for j in range(values.shape[1]):
            dx[j] += a[j] * y[j]
        for j in range(values.shape[1]):
            dy[j] += a[j] * x[j]


# LARGEST_LINEAR: (constant, slot) ... LARGEST_PRODUCT: (slot, slot) ... The largest product: no derivatives.


@jit(nogil=True, fastmath={"nsz"})
def largest_linear(values, terms, constants, dst, first, end):
    c, y, out = constants[terms[first, 0]], values[terms[first, 1]], values[dst]
    for j in range(values.shape[1]):
        out[j] = c * y[j]
    for t in range(first + 1, end):
        c, y = constants[terms[t, 0]], values[terms[t, 1]]
        for j in range(values.shape[1]):
            out[j] = max(out[j], c * y[j])


@jit(nogil=True, fastmath={"nsz"})
def largest_product(values, terms, dst, first, end):
    x, y, out = values[terms[first, 0]], values[terms[first, 1]], values[dst]
    for j in range(values.shape[1]):
        out[j] = x[j] * y[j]
    for t in range(first + 1, end):
        x, y = values[terms[t, 0]], values[terms[t, 1]]
        for j in range(values.shape[1]):
            out[j] = max(out[j], x[j] * y[j])


# TEST and TEST_SLOTS: plus where x compares with total * limit as the operator says, else minus.


class Tested(NamedTuple):
    """(x, total), (limit, operator), (plus, minus). x and total are slots.

    In TEST, limit, plus and minus are constants, and the operator is a number; in TEST_SLOTS, all are slots.
    """

    x: int
    total: int
    limit: int
    operator: int
    plus: int
    minus: int


@jit(nogil=True, inline="always")
def tested(terms, first):
    t, u, v = first, first + 1, first + 2
    return Tested(terms[t, 0], terms[t, 1], terms[u, 0], terms[u, 1], terms[v, 0], terms[v, 1])


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


@jit(nogil=True, inline="always")
def test(values, constants, terms, dst, first):
    it = tested(terms, first)
    x, total, limit, out = values[it.x], values[it.total], constants[it.limit], values[dst]
    plus, minus = constants[it.plus], constants[it.minus]
    for j in range(len(out)):
        out[j] = plus if holds(x[j], total[j] * limit, it.operator) else minus


@jit(nogil=True, inline="always")
def test_backward(values, constants, d_constants, terms, a, first):
    it = tested(terms, first)
    x, total, limit = values[it.x], values[it.total], constants[it.limit]
    for j in range(len(a)):
        d_constants[it.plus if holds(x[j], total[j] * limit, it.operator) else it.minus] += a[j]


@jit(nogil=True, inline="always")
def test_slots(values, terms, dst, first):
    it = tested(terms, first)
    x, total, limit, out = values[it.x], values[it.total], values[it.limit], values[dst]
    operator, plus, minus = values[it.operator], values[it.plus], values[it.minus]
    for j in range(len(out)):
        out[j] = plus[j] if holds(x[j], total[j] * limit[j], int(operator[j])) else minus[j]


@jit(nogil=True, inline="always")
def test_slots_backward(values, adjoints, terms, a, first):
    it = tested(terms, first)
    x, total, limit, operator = values[it.x], values[it.total], values[it.limit], values[it.operator]
    for j in range(len(a)):
        adjoints[it.plus if holds(x[j], total[j] * limit[j], int(operator[j])) else it.minus, j] += a[j]


# WEIGHT and WEIGHT_SLOTS: the lesser weight of a mixture, see above.


class Weighed(NamedTuple):
    """(x, total), (limit, operator), (gamma, 0). x and total are slots, gamma is a constant.

    In WEIGHT, limit is a constant, and the operator is a number; in WEIGHT_SLOTS, both are slots.
    """

    x: int
    total: int
    limit: int
    operator: int
    gamma: int


@jit(nogil=True, inline="always")
def weighed(terms, first):
    t, u, v = first, first + 1, first + 2
    return Weighed(terms[t, 0], terms[t, 1], terms[u, 0], terms[u, 1], terms[v, 0])


@jit(nogil=True, inline="always")
def sign_of(operator):
    """Sigmoids fall for <= and <."""
    return 1.0 if operator < 2 else -1.0


@jit(nogil=True, inline="always")
def least_weight(values):
    """The smallest weight of a mixture in numbers of this type."""
    return LEAST_WEIGHT_64 if values.itemsize == 8 else LEAST_WEIGHT_32


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
    it = weighed(terms, first)
    x, total, limit, out = values[it.x], values[it.total], constants[it.limit], values[dst]
    gamma, least = constants[it.gamma] * sign_of(it.operator), least_weight(values)
    for j in range(len(out)):
        out[j] = lesser_weight(x[j], total[j], limit, gamma, least)


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def weight_backward(values, adjoints, constants, d_constants, terms, dst, first):
    it, lesser, a = weighed(terms, first), values[dst], adjoints[dst]
    x, total, dx, d_total = values[it.x], values[it.total], adjoints[it.x], adjoints[it.total]
    sign, limit = sign_of(it.operator), constants[it.limit]
    gamma = constants[it.gamma] * sign
    d_gamma, d_limit = 0.0, 0.0
    for j in range(len(a)):
        inverse = 1.0 / total[j] if total[j] > 0 else 0.0
        dz = a[j] * abs(lesser[j]) * (1 - abs(lesser[j])) if total[j] > 0 else 0.0
        posterior = x[j] * inverse
        dx[j] += dz * gamma * inverse
        d_total[j] -= dz * gamma * posterior * inverse
        d_gamma += dz * (posterior - limit)
        d_limit -= dz * gamma
    d_constants[it.gamma] += d_gamma * sign
    d_constants[it.limit] += d_limit


@jit(nogil=True, inline="always")
def weight_slots(values, constants, terms, dst, first):
    it = weighed(terms, first)
    x, total, limit, operator = values[it.x], values[it.total], values[it.limit], values[it.operator]
    out, gamma, least = values[dst], constants[it.gamma], least_weight(values)
    for j in range(len(out)):
        out[j] = lesser_weight(x[j], total[j], limit[j], gamma * sign_of(operator[j]), least)


@jit(nogil=True, error_model="numpy")
def weight_slots_backward(values, adjoints, constants, d_constants, terms, dst, first):
    it, lesser, a = weighed(terms, first), values[dst], adjoints[dst]
    x, total, limit, operator = values[it.x], values[it.total], values[it.limit], values[it.operator]
    dx, d_total, d_limit, gamma = adjoints[it.x], adjoints[it.total], adjoints[it.limit], constants[it.gamma]
    d_gamma = 0.0
    for j in range(len(a)):
        inverse = 1.0 / total[j] if total[j] > 0 else 0.0
        slope = abs(lesser[j]) * (1 - abs(lesser[j])) * sign_of(operator[j])
        dz = a[j] * slope if total[j] > 0 else 0.0
        posterior = x[j] * inverse
        dx[j] += dz * gamma * inverse
        d_total[j] -= dz * gamma * posterior * inverse
        d_limit[j] -= dz * gamma
        d_gamma += dz * (posterior - limit[j])
    d_constants[it.gamma] += d_gamma


# MIX and MIX_SLOTS: plus and minus, each with its weight.


class Mixed(NamedTuple):
    """(lesser weight, 0), (plus, minus). The weight is a slot; plus and minus are constants, in MIX_SLOTS slots."""

    lesser: int
    plus: int
    minus: int


@jit(nogil=True, inline="always")
def mixed(terms, first):
    return Mixed(terms[first, 0], terms[first + 1, 0], terms[first + 1, 1])


@jit(nogil=True, inline="always")
def weight_of_plus(lesser):
    """The weight of plus from the lesser one; that of minus with the sign turned."""
    return lesser if lesser > 0 else 1 + lesser


@jit(nogil=True, inline="always")
def negligible(values):
    """Entries below it do not hide what becomes of the smallest weight."""
    return NEGLIGIBLE_64 if values.itemsize == 8 else NEGLIGIBLE_32


@jit(nogil=True, inline="always")
def hangs_on(lesser, plus, minus, least, few):
    """Whether a weight that ended at the smallest one decides about a mixture."""
    entry, other = (plus, minus) if lesser > 0 else (minus, plus)
    return abs(lesser) < 2 * least and entry > 0 and other < few


@jit(nogil=True, inline="always")
def mix(values, constants, terms, dst, first):
    it = mixed(terms, first)
    lesser, plus, minus, out = values[it.lesser], constants[it.plus], constants[it.minus], values[dst]
    for j in range(len(out)):
        out[j] = weight_of_plus(lesser[j]) * plus + weight_of_plus(-lesser[j]) * minus
    few = negligible(values)
    if plus < few or minus < few:
        least, hanging = least_weight(values), 0
        for j in range(len(out)):
            hanging += hangs_on(lesser[j], plus, minus, least, few)
        if hanging:
            raise_underflow()


@jit(nogil=True, inline="always")
def mix_backward(values, adjoints, constants, d_constants, terms, a, first):
    it = mixed(terms, first)
    lesser, d_tau = values[it.lesser], adjoints[it.lesser]
    difference = constants[it.plus] - constants[it.minus]
    high, low = 0.0, 0.0
    for j in range(len(a)):
        d_tau[j] += a[j] * difference
        high += a[j] * weight_of_plus(lesser[j])
        low += a[j] * weight_of_plus(-lesser[j])
    d_constants[it.plus] += high
    d_constants[it.minus] += low


@jit(nogil=True, inline="always")
def mix_slots(values, terms, dst, first):
    it = mixed(terms, first)
    lesser, plus, minus, out = values[it.lesser], values[it.plus], values[it.minus], values[dst]
    for j in range(len(out)):
        out[j] = weight_of_plus(lesser[j]) * plus[j] + weight_of_plus(-lesser[j]) * minus[j]
    few, least, hanging = negligible(values), least_weight(values), 0
    for j in range(len(out)):
        hanging += hangs_on(lesser[j], plus[j], minus[j], least, few)
    if hanging:
        raise_underflow()


@jit(nogil=True, inline="always")
def mix_slots_backward(values, adjoints, terms, a, first):
    it = mixed(terms, first)
    lesser, plus, minus = values[it.lesser], values[it.plus], values[it.minus]
    d_tau, d_plus, d_minus = adjoints[it.lesser], adjoints[it.plus], adjoints[it.minus]
    for j in range(len(a)):
        d_tau[j] += a[j] * (plus[j] - minus[j])
    for j in range(len(a)):
        d_plus[j] += a[j] * weight_of_plus(lesser[j])
    for j in range(len(a)):
        d_minus[j] += a[j] * weight_of_plus(-lesser[j])


# SCALE: (slot of the exponent, slot of an earlier one or -1), (slot, slot) ... The power of two that brings the largest
# of some slots near 1. It drops out of the joint, so it needs no derivative.


@jit(nogil=True)
def scale(values, terms, dst, first, end):
    out = values[dst]
    exponent, earlier = values[terms[first, 0]], terms[first, 1]
    top = values[terms[first + 1, 0]].copy()
    for t in range(first + 2, end):
        y = values[terms[t, 0]]
        for j in range(values.shape[1]):
            top[j] = max(top[j], y[j])
    for j in range(values.shape[1]):
        _, e = math.frexp(top[j])
        e = max(e, -1020 if values.itemsize == 8 else -120)  # 2**-e must be a number of this type
        out[j] = math.ldexp(1.0, -e)
        exponent[j] = e
    if earlier >= 0:
        before = values[earlier]
        for j in range(values.shape[1]):
            exponent[j] += before[j]


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
