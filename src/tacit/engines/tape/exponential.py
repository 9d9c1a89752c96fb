"""An exponential that compilers can vectorise, for loops over rows: six times faster than a call of the library's.

Within one unit in the last place of `math.exp` for arguments from -708 to 0.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from tacit.base.jit import jit
from tacit.engines.tape.instructions import INVERSE_LOG2, LEAST_EXPONENT, LOG2_HIGH, LOG2_LOW, SERIES

C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = SERIES[2:]


@intrinsic
def power_of_two(typing_context, k):
    """2.0**k from the bits of its exponent, for -1022 <= k <= 1023."""

    def generate(context, builder, signature, arguments):
        exponent = builder.add(arguments[0], ir.Constant(ir.IntType(64), 1023))
        return builder.bitcast(builder.shl(exponent, ir.Constant(ir.IntType(64), 52)), ir.DoubleType())

    return types.float64(types.int64), generate


@jit(nogil=True, inline="always", fastmath={"contract"}, error_model="numpy")
def exp_of_negative(x):
    """exp(x) for x <= 0: x = k log 2 + r with |r| <= log(2)/2, and a Taylor polynomial for e**r."""
    x = max(x, LEAST_EXPONENT)
    k = math.floor(x * INVERSE_LOG2 + 0.5)
    r = (x - k * LOG2_HIGH) - k * LOG2_LOW
    high = C7 + r * (C8 + r * (C9 + r * (C10 + r * (C11 + r * (C12 + r * C13)))))
    return (1 + r * (1 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * high))))))) * power_of_two(np.int64(k))
