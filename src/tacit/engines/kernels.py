"""The numba kernels of the tape engine: one generic interpreter over tiles of rows.

A tile is a few rows of every slot, `values` (slots, rows of a tile): all slots of a tile stay in cache while the
whole tape runs over them. The kernels are compiled once per installation (see `jit`), never per network.
`instructions` is (count, 4): operation, destination slot, first term, end of terms; `terms` is (count, 2), and
what the two numbers of a term mean depends on the operation. Constants (parameters and what is computed from
them) are scalars. Rows of a tile that are not there repeat the last one, so that no underflow comes from them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from tacit.engines.exponential import exp_of_negative
from tacit.engines.flags import clear_underflow, raise_underflow, underflowed
from tacit.engines.jit import jit

(
    INPUT,  # (input row, 0)
    INDEX,  # (hard variable, stride) ...: where the observed states point to in a table
    TABLE,  # (first constant, slot of an index)
    LINEAR,  # sum of constant * slot
    PRODUCT,  # sum of slot * slot
    TEST,  # (n_u, n), (threshold, operator), (plus, minus): constants
    TEST_SLOTS,  # the same, all of them slots
    WEIGHT,  # (n_u, n), (threshold, operator), (gamma, 0): constants; gives the lesser weight, see below
    WEIGHT_SLOTS,  # the same, with threshold and operator in slots
    MIX,  # (lesser weight, 0), (plus, minus): constants
    MIX_SLOTS,  # the same, with plus and minus in slots
    SCALE,  # (exponent slot, earlier exponent slot or -1) then the slots to be scaled
    OUTPUT,  # (slot, 0); the destination is a row of the output
) = range(13)

# The two weights of a mixture are kept as the lesser one, with a minus sign if it is that of `minus`: taken from 1, it
# would lose its digits. Weights end at e**-400 = 2**-577, in float32 at e**-60 = 2**-86. That changes nothing beside an
# entry of the other table from NEGLIGIBLE on; where the weight is all there is, the row is doubtful.
LEAST_64, LEAST_32 = math.exp(-400.0), math.exp(-60.0)
NEGLIGIBLE_64, NEGLIGIBLE_32 = 2.0**-400, 2.0**-50


@jit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def forward_tile(instructions, terms, constants, inputs, codes, outputs, values, r0, n):
    """Run the tape over rows r0 .. r0+n-1, with `values` as the working space."""
    for i in range(instructions.shape[0]):
        op = instructions[i, 0]
        dst = instructions[i, 1]
        first = instructions[i, 2]
        end = instructions[i, 3]
        if op == LINEAR:
            linear(values, terms, constants, dst, first, end)
        elif op == PRODUCT:
            product(values, terms, dst, first, end)
        elif op == INPUT:
            row = terms[first, 0]
            for j in range(n):
                values[dst, j] = inputs[row, r0 + j]
            for j in range(n, values.shape[1]):
                values[dst, j] = inputs[row, r0 + n - 1]
        elif op == INDEX:
            index = as_index(values[dst])
            for j in range(n):
                index[j] = codes[terms[first, 0], r0 + j] * terms[first, 1]
            for t in range(first + 1, end):
                for j in range(n):
                    index[j] += codes[terms[t, 0], r0 + j] * terms[t, 1]
            for j in range(n, values.shape[1]):
                index[j] = index[n - 1]
        elif op == TABLE:
            base, index = terms[first, 0], as_index(values[terms[first, 1]])
            for j in range(values.shape[1]):
                values[dst, j] = constants[base + index[j]]
        elif op == TEST:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = constants[terms[first + 1, 0]], terms[first + 1, 1]
            plus, minus = constants[terms[first + 2, 0]], constants[terms[first + 2, 1]]
            for j in range(values.shape[1]):
                values[dst, j] = plus if holds(x[j], total[j] * limit, operator) else minus
        elif op == TEST_SLOTS:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = values[terms[first + 1, 0]], values[terms[first + 1, 1]]
            plus, minus = values[terms[first + 2, 0]], values[terms[first + 2, 1]]
            for j in range(values.shape[1]):
                values[dst, j] = plus[j] if holds(x[j], total[j] * limit[j], int(operator[j])) else minus[j]
        elif op == WEIGHT:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = constants[terms[first + 1, 0]], terms[first + 1, 1]
            gamma = constants[terms[first + 2, 0]] * (1.0 if operator < 2 else -1.0)
            lesser_weights(values[dst], x, total, limit, gamma)
        elif op == WEIGHT_SLOTS:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = values[terms[first + 1, 0]], values[terms[first + 1, 1]]
            gamma = constants[terms[first + 2, 0]]
            least = least_weight(values)
            for j in range(values.shape[1]):
                slope = gamma if operator[j] < 2 else -gamma
                values[dst, j] = lesser_weight(x[j], total[j], limit[j], slope, least)
        elif op == MIX:
            lesser = values[terms[first, 0]]
            plus, minus = constants[terms[first + 1, 0]], constants[terms[first + 1, 1]]
            for j in range(values.shape[1]):
                values[dst, j] = weight_of_plus(lesser[j]) * plus + weight_of_plus(-lesser[j]) * minus
            few = negligible(values)
            if plus < few or minus < few:
                least, hanging = least_weight(values), 0
                for j in range(values.shape[1]):
                    hanging += hangs_on(lesser[j], plus, minus, least, few)
                if hanging:
                    raise_underflow()
        elif op == MIX_SLOTS:
            lesser = values[terms[first, 0]]
            plus, minus = values[terms[first + 1, 0]], values[terms[first + 1, 1]]
            for j in range(values.shape[1]):
                values[dst, j] = weight_of_plus(lesser[j]) * plus[j] + weight_of_plus(-lesser[j]) * minus[j]
            few, least, hanging = negligible(values), least_weight(values), 0
            for j in range(values.shape[1]):
                hanging += hangs_on(lesser[j], plus[j], minus[j], least, few)
            if hanging:
                raise_underflow()
        elif op == SCALE:
            scale(values, terms, dst, first, end)
        elif op == OUTPUT:
            slot = terms[first, 0]
            for j in range(n):
                outputs[dst, r0 + j] = values[slot, j]


@jit(nogil=True, error_model="numpy")
def forward(instructions, terms, constants, inputs, codes, outputs, values, doubts, start, stop):
    """Run the tape over rows start .. stop-1, tile by tile.

    `doubts` (rows,) says where digits may be lost; returns whether there are any such rows.
    """
    some = False
    clear_underflow()
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(instructions, terms, constants, inputs, codes, outputs, values, r0, n)
        doubt = underflowed()
        doubts[r0 : r0 + n] = doubt
        some = some or doubt
    return some


@jit(nogil=True, inline="always")
def as_index(slot):
    """A slot that holds whole numbers, which a float32 could not from 2**24 on."""
    return slot.view(np.int32)


@jit(nogil=True, inline="always")
def least_weight(values):
    """The smallest weight of a mixture in numbers of this type."""
    return LEAST_64 if values.itemsize == 8 else LEAST_32


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
def weight_of_plus(lesser):
    """The weight of plus from the lesser one; that of minus with the sign turned."""
    return lesser if lesser > 0 else 1 + lesser


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


@jit(nogil=True, inline="always", error_model="numpy")
def lesser_weight(x, total, threshold, gamma, least):
    """The lesser of sigmoid(z), the weight of plus, and sigmoid(-z), that of minus, which gets a minus sign.

    z = gamma (x/total - threshold), 0 where total is 0; gamma < 0 for <= and <.
    """
    z = gamma * (x / total - threshold) if total > 0 else 0.0
    small = max(exp_of_negative(-abs(z)), least)
    return (-small if z >= 0 else small) / (1.0 + small)


@jit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def lesser_weights(out, x, total, threshold, gamma):
    """The same for all rows of a tile."""
    least = least_weight(out)
    for j in range(out.shape[0]):
        out[j] = lesser_weight(x[j], total[j], threshold, gamma, least)


@jit(nogil=True, fastmath={"contract", "nsz"})
def linear(values, terms, constants, dst, first, end):
    """values[dst] = sum of constant * slot, four terms at a time so that the sum is loaded and stored less often."""
    out = values[dst]
    t = first
    head = (end - first) % 4
    if head == 0:
        c0, c1, c2, c3 = (
            constants[terms[t, 0]],
            constants[terms[t + 1, 0]],
            constants[terms[t + 2, 0]],
            constants[terms[t + 3, 0]],
        )
        y0, y1, y2, y3 = values[terms[t, 1]], values[terms[t + 1, 1]], values[terms[t + 2, 1]], values[terms[t + 3, 1]]
        for j in range(values.shape[1]):
            out[j] = (c0 * y0[j] + c1 * y1[j]) + (c2 * y2[j] + c3 * y3[j])
        t += 4
    elif head == 1:
        c0, y0 = constants[terms[t, 0]], values[terms[t, 1]]
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j]
        t += 1
    elif head == 2:
        c0, c1 = constants[terms[t, 0]], constants[terms[t + 1, 0]]
        y0, y1 = values[terms[t, 1]], values[terms[t + 1, 1]]
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j] + c1 * y1[j]
        t += 2
    else:
        c0, c1, c2 = constants[terms[t, 0]], constants[terms[t + 1, 0]], constants[terms[t + 2, 0]]
        y0, y1, y2 = values[terms[t, 1]], values[terms[t + 1, 1]], values[terms[t + 2, 1]]
        for j in range(values.shape[1]):
            out[j] = c0 * y0[j] + c1 * y1[j] + c2 * y2[j]
        t += 3
    while t < end:
        c0, c1, c2, c3 = (
            constants[terms[t, 0]],
            constants[terms[t + 1, 0]],
            constants[terms[t + 2, 0]],
            constants[terms[t + 3, 0]],
        )
        y0, y1, y2, y3 = values[terms[t, 1]], values[terms[t + 1, 1]], values[terms[t + 2, 1]], values[terms[t + 3, 1]]
        for j in range(values.shape[1]):
            out[j] += (c0 * y0[j] + c1 * y1[j]) + (c2 * y2[j] + c3 * y3[j])
        t += 4


@jit(nogil=True, fastmath={"contract", "nsz"})
def product(values, terms, dst, first, end):
    """values[dst] = sum of slot * slot, two terms at a time."""
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


@jit(nogil=True)
def scale(values, terms, dst, first, end):
    """values[dst] = the power of two that brings the largest of some slots near 1; the exponent is kept."""
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


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def backward_tile(
    instructions, terms, constants, codes, seeds, values, adjoints, d_constants, d_inputs, through, r0, n
):
    """The reverse sweep over one tile whose `values` are all there.

    `seeds` (rows of the output, rows) are the derivatives of some function by the outputs. Adds the derivatives
    by the constants to `d_constants` and stores those by the inputs. `through` says whether derivatives pass
    through sigmoids into the posteriors they are applied to.
    """
    adjoints[:] = 0.0
    for i in range(instructions.shape[0] - 1, -1, -1):
        op = instructions[i, 0]
        dst = instructions[i, 1]
        first = instructions[i, 2]
        end = instructions[i, 3]
        if op == OUTPUT:
            slot = terms[first, 0]
            if dst < seeds.shape[0]:
                for j in range(n):
                    adjoints[slot, j] += seeds[dst, r0 + j]
            continue
        a = adjoints[dst]
        if op == LINEAR:
            for t in range(first, end):
                c = constants[terms[t, 0]]
                y, dy = values[terms[t, 1]], adjoints[terms[t, 1]]
                total = 0.0
                for j in range(values.shape[1]):
                    total += a[j] * y[j]
                    dy[j] += c * a[j]
                d_constants[terms[t, 0]] += total
        elif op == PRODUCT:
            for t in range(first, end):
                x, dx = values[terms[t, 0]], adjoints[terms[t, 0]]
                y, dy = values[terms[t, 1]], adjoints[terms[t, 1]]
                for j in range(values.shape[1]):
                    dx[j] += a[j] * y[j]
                for j in range(values.shape[1]):
                    dy[j] += a[j] * x[j]
        elif op == INPUT:
            row = terms[first, 0]
            for j in range(n):
                d_inputs[row, r0 + j] = a[j]
        elif op == TABLE:
            base, index = terms[first, 0], as_index(values[terms[first, 1]])
            for j in range(n):
                d_constants[base + index[j]] += a[j]
        elif op == TEST:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = constants[terms[first + 1, 0]], terms[first + 1, 1]
            for j in range(values.shape[1]):
                chosen = 0 if holds(x[j], total[j] * limit, operator) else 1
                d_constants[terms[first + 2, chosen]] += a[j]
        elif op == TEST_SLOTS:
            x, total = values[terms[first, 0]], values[terms[first, 1]]
            limit, operator = values[terms[first + 1, 0]], values[terms[first + 1, 1]]
            for j in range(values.shape[1]):
                chosen = 0 if holds(x[j], total[j] * limit[j], int(operator[j])) else 1
                adjoints[terms[first + 2, chosen], j] += a[j]
        elif op == WEIGHT and through:
            x, total = terms[first, 0], terms[first, 1]
            limit, gamma = terms[first + 1, 0], terms[first + 2, 0]
            sign = 1.0 if terms[first + 1, 1] < 2 else -1.0
            d_gamma, d_limit = weight_backward(
                values[dst], a, values[x], values[total], adjoints[x], adjoints[total],
                constants[limit], constants[gamma] * sign,
            )  # fmt: skip
            d_constants[gamma] += d_gamma * sign
            d_constants[limit] += d_limit
        elif op == WEIGHT_SLOTS and through:
            gamma = terms[first + 2, 0]
            d_constants[gamma] += weight_slots_backward(values, adjoints, terms, constants[gamma], dst, first)
        elif op == MIX:
            lesser, d_tau = values[terms[first, 0]], adjoints[terms[first, 0]]
            plus, minus = constants[terms[first + 1, 0]], constants[terms[first + 1, 1]]
            high, low = 0.0, 0.0
            for j in range(values.shape[1]):
                d_tau[j] += a[j] * (plus - minus)
                high += a[j] * weight_of_plus(lesser[j])
                low += a[j] * weight_of_plus(-lesser[j])
            d_constants[terms[first + 1, 0]] += high
            d_constants[terms[first + 1, 1]] += low
        elif op == MIX_SLOTS:
            lesser, d_tau = values[terms[first, 0]], adjoints[terms[first, 0]]
            plus, minus = terms[first + 1, 0], terms[first + 1, 1]
            for j in range(values.shape[1]):
                d_tau[j] += a[j] * (values[plus, j] - values[minus, j])
            for j in range(values.shape[1]):
                adjoints[plus, j] += a[j] * weight_of_plus(lesser[j])
            for j in range(values.shape[1]):
                adjoints[minus, j] += a[j] * weight_of_plus(-lesser[j])
        # SCALE: the scale is a power of two that drops out of the joint, so it needs no derivative


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def weight_backward(lesser, a, x, total, dx, d_total, limit, gamma):
    """Derivatives of sigmoid(gamma (x/total - limit)): into dx and d_total; returns those by gamma and limit."""
    d_gamma, d_limit = 0.0, 0.0
    for j in range(lesser.shape[0]):
        inverse = 1.0 / total[j] if total[j] > 0 else 0.0
        dz = a[j] * abs(lesser[j]) * (1 - abs(lesser[j])) if total[j] > 0 else 0.0
        posterior = x[j] * inverse
        dx[j] += dz * gamma * inverse
        d_total[j] -= dz * gamma * posterior * inverse
        d_gamma += dz * (posterior - limit)
        d_limit -= dz * gamma
    return d_gamma, d_limit


@jit(nogil=True, error_model="numpy")
def weight_slots_backward(values, adjoints, terms, gamma, dst, first):
    """The same where thresholds and operators depend on the row; returns the derivative by gamma."""
    x, total = values[terms[first, 0]], values[terms[first, 1]]
    dx, d_total = adjoints[terms[first, 0]], adjoints[terms[first, 1]]
    limit, d_limit = values[terms[first + 1, 0]], adjoints[terms[first + 1, 0]]
    operator = values[terms[first + 1, 1]]
    d_gamma = 0.0
    for j in range(values.shape[1]):
        sign = 1.0 if operator[j] < 2 else -1.0
        inverse = 1.0 / total[j] if total[j] > 0 else 0.0
        lesser = abs(values[dst, j])
        dz = adjoints[dst, j] * lesser * (1 - lesser) * sign if total[j] > 0 else 0.0
        posterior = x[j] * inverse
        dx[j] += dz * gamma * inverse
        d_total[j] -= dz * gamma * posterior * inverse
        d_limit[j] -= dz * gamma
        d_gamma += dz * (posterior - limit[j])
    return d_gamma


@jit(nogil=True, error_model="numpy")
def backward(
    instructions,
    terms,
    constants,
    inputs,
    codes,
    outputs,
    seeds,
    values,
    adjoints,
    pinned,
    d_constants,
    d_inputs,
    through,
    doubts,
    start,
    stop,
):
    """Forward and reverse over rows start .. stop-1: values are made again, tile by tile, so they stay in cache."""
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        clear_underflow()
        forward_tile(instructions, terms, constants, inputs, codes, outputs, values, r0, n)
        doubts[r0 : r0 + n] = underflowed()
        backward_tile(
            instructions, terms, constants, codes, seeds, values, adjoints, d_constants, d_inputs, through, r0, n
        )
        add_pinned(pinned, adjoints, d_constants)


@jit(nogil=True)
def add_pinned(pinned, adjoints, d_constants):
    """Add the derivatives by the slots that hold constants to those by the constants."""
    for i in range(pinned.shape[0]):
        if pinned[i, 1] >= 0:
            d_constants[pinned[i, 1]] += adjoints[pinned[i, 0]].sum()
