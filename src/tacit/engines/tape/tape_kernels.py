"""The numba kernels of the tape engine: a tape run over tiles of rows, forward and in reverse.

A tile is a few rows of every slot: all slots of a tile stay in cache while the whole tape runs over them. The kernels
are compiled once per installation (see `jit`), never per network.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.jit import jit
from tacit.engines.tape import instructions as k
from tacit.engines.tape import opcodes as op
from tacit.engines.tape.underflow_flag import clear_underflow, underflowed


class TapeArrays(NamedTuple):
    """A tape with its numbers, the evidence of some rows, and where its results go.

    `instructions` is (count, 4): opcode, destination, first term, end of terms; `terms` (count, 2). `inputs` are the
    likelihoods (states of all variables, rows) and `codes` the observed states (variables, rows). `doubts` (rows,)
    says where digits may be lost.
    """

    instructions: NDArray[np.int32]
    terms: NDArray[np.int32]
    constants: NDArray[Any]
    inputs: NDArray[Any]
    codes: NDArray[np.int32]
    outputs: NDArray[Any]
    doubts: NDArray[np.bool_]


class ReverseArrays(NamedTuple):
    """What a backward pass reads and writes.

    `seeds` (states, rows) are the derivatives of some function by the joint, the first rows of the outputs. Those by
    the constants are added to `d_constants`, those by the inputs stored in `d_inputs`. `adjoints` (slots, rows of a
    tile) is working space, and `pinned` (count, 2) lists slots that hold constants, with their constant.
    `through` says whether derivatives pass through sigmoids into the posteriors they are applied to.
    """

    seeds: NDArray[Any]
    adjoints: NDArray[Any]
    pinned: NDArray[np.int64]
    d_constants: NDArray[np.float64]
    d_inputs: NDArray[Any]
    through: bool


@jit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def run_tile(tape, values, r0, n):
    """Run the tape over rows r0 .. r0+n-1, with `values` (slots, rows of a tile) as the working space."""
    instructions, terms, constants, inputs, codes, outputs, _ = tape  # to look one up takes time
    for i in range(instructions.shape[0]):
        kind, dst, first, end = instructions[i, 0], instructions[i, 1], instructions[i, 2], instructions[i, 3]
        if kind == k.LINEAR:
            op.linear(values, terms, constants, dst, first, end)
        elif kind == k.PRODUCT:
            op.product(values, terms, dst, first, end)
        elif kind == k.INPUT:
            op.read_input(inputs, terms, values, dst, first, r0, n)
        elif kind == k.INDEX:
            op.point(codes, terms, values, dst, (first, end), (r0, n))
        elif kind == k.TABLE:
            op.look_up(constants, terms, values, dst, first)
        elif kind == k.TEST:
            op.test(values, constants, terms, dst, first)
        elif kind == k.WEIGHT:
            op.weight(values, constants, terms, dst, first)
        elif kind == k.MIX:
            op.mix(values, constants, terms, dst, first)
        elif kind == k.SCALE:
            op.scale(values, terms, dst, first, end)
        elif kind == k.OUTPUT:
            op.write_output(outputs, values, terms, dst, first, r0, n)
        elif kind == k.LARGEST_LINEAR:
            op.largest_linear(values, terms, constants, dst, first, end)
        elif kind == k.LARGEST_PRODUCT:
            op.largest_product(values, terms, dst, first, end)
        elif kind == k.EXTREMES:
            op.extremes(values, terms, dst, first, end)


@jit(nogil=True)
def forward_tile(tape, values, r0, n):
    """Run the tape over rows r0 .. r0+n-1, and note whether digits may be lost, which is returned, too."""
    clear_underflow()
    run_tile(tape, values, r0, n)
    doubt = underflowed()
    tape.doubts[r0 : r0 + n] = doubt
    return doubt


@jit(nogil=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def backward_tile(tape, reverse, values, r0, n):
    """The backward pass over one tile whose `values` are all there."""
    instructions, terms, constants = tape.instructions, tape.terms, tape.constants
    seeds, adjoints, _, d_constants, d_inputs, through = reverse
    adjoints[:] = 0.0
    for i in range(instructions.shape[0] - 1, -1, -1):
        kind, dst, first, end = instructions[i, 0], instructions[i, 1], instructions[i, 2], instructions[i, 3]
        if kind == k.LINEAR:
            op.linear_backward(values, adjoints, constants, d_constants, terms, dst, (first, end))
        elif kind == k.PRODUCT:
            op.product_backward(values, adjoints, terms, dst, first, end)
        elif kind == k.INPUT:
            op.read_input_backward(d_inputs, adjoints, terms, dst, first, r0, n)
        elif kind == k.TABLE:
            op.look_up_backward(d_constants, adjoints, terms, values, dst, first, n)
        elif kind == k.TEST:
            op.test_backward(values, adjoints, constants, d_constants, terms, dst, first)
        elif kind == k.WEIGHT and through:
            op.weight_backward(values, adjoints, constants, d_constants, terms, dst, first)
        elif kind == k.MIX:
            op.mix_backward(values, adjoints, constants, d_constants, terms, dst, first)
        elif kind == k.OUTPUT:
            op.write_output_backward(seeds, adjoints, terms, dst, first, r0, n)


@jit(nogil=True)
def add_pinned(reverse):
    """Add the derivatives by the slots that hold constants to those by the constants."""
    for i in range(reverse.pinned.shape[0]):
        reverse.d_constants[reverse.pinned[i, 1]] += reverse.adjoints[reverse.pinned[i, 0]].sum()


@jit(nogil=True)
def forward(instructions, terms, constants, inputs, codes, outputs, doubts, values, start, stop):
    """Run a tape over rows start .. stop-1, tile by tile; returns whether some rows are in doubt.

    Takes the fields of `TapeArrays` one by one: to hand over a tuple takes longer, which single rows would feel.
    """
    tape = TapeArrays(instructions, terms, constants, inputs, codes, outputs, doubts)
    some = False
    for r0 in range(start, stop, values.shape[1]):
        doubt = forward_tile(tape, values, r0, min(values.shape[1], stop - r0))
        some = some or doubt
    return some


@jit(nogil=True)
def backward(tape, reverse, values, start, stop):
    """Forward and reverse over rows start .. stop-1: values are made again, tile by tile, so they stay in cache."""
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(tape, values, r0, n)
        backward_tile(tape, reverse, values, r0, n)
        add_pinned(reverse)


@jit(nogil=True, error_model="numpy")
def jacobian(tape, reverse, values, start, stop, by_constant, states):
    """The probability of `states` (first, end) of the query, row by row, and its derivatives by the pinned constants.

    The probability goes into outputs[0], the derivatives into `by_constant` (constants, rows).
    """
    first, stop_state = states
    outputs, seeds, pinned, adjoints = tape.outputs, reverse.seeds, reverse.pinned, reverse.adjoints
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(tape, values, r0, n)
        for j in range(r0, r0 + n):
            total, part = 0.0, 0.0
            for s in range(seeds.shape[0]):
                total += outputs[s, j]
                part += outputs[s, j] if first <= s < stop_state else 0.0
            for s in range(seeds.shape[0]):
                seeds[s, j] = ((1.0 if first <= s < stop_state else 0.0) - part / total) / total
            outputs[0, j] = part / total
        backward_tile(tape, reverse, values, r0, n)
        for i in range(pinned.shape[0]):
            slot, constant = pinned[i, 0], pinned[i, 1]
            for j in range(n):
                by_constant[constant, r0 + j] = adjoints[slot, j]
