"""Numbers that kernels and generated code share: kinds of instructions and losses, and constants of arithmetic.

What each instruction does, and what the numbers of its terms mean, is said in `opcodes`. Nothing here loads numba.
"""

# What is built into kernels: see `jit`.

from __future__ import annotations

import math
import platform
import sys

INPUT, INDEX, TABLE, LINEAR, PRODUCT, TEST, WEIGHT, MIX, SCALE, OUTPUT, LARGEST_LINEAR, LARGEST_PRODUCT = range(12)
EXTREMES = 12
EXTREMES_STARTS = (1.0, 0.0, 0.0)  # the smallest ratio, the largest, and the sum, of no entries

# The two weights of a mixture are kept as the lesser one, with a minus sign if it is that of `minus`: taken from 1, it
# would lose its digits. Weights end at e**-400 = 2**-577, in float32 at e**-60 = 2**-86. That changes nothing beside an
# entry of the other table from NEGLIGIBLE on; where the weight is all there is, the row is imprecise.
LEAST_WEIGHT_64, LEAST_WEIGHT_32 = math.exp(-400.0), math.exp(-60.0)
NEGLIGIBLE_64, NEGLIGIBLE_32 = 2.0**-400, 2.0**-50

# Losses that engines can compute between the forward and the backward pass.
MEAN_SQUARED, CROSS_ENTROPY = range(2)
# Below this probability the cross entropy ends as a parabola that is flat at 0, so that its slope stays continuous and
# finite. Far above what underflows, and far below what products of learned numbers come to.
LEAST_PROBABILITY = 1e-100

# The exponential: see `exponential`, and `native.forward` for generated code.
LOG2_HIGH, LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # log 2 in two parts, the first short
INVERSE_LOG2 = 1.4426950408889634
LEAST_EXPONENT = -708.0  # e to this is about the smallest normal number
SERIES = tuple(1.0 / math.factorial(i) for i in range(14))

# FE_UNDERFLOW of the C library, the flag of an underflow, which differs between systems and processors.
UNDERFLOW_FLAGS = {"aarch64": 0x08, "arm64": 0x08, "ppc64le": 0x08000000}  # by processor; else that of x86
UNDERFLOW = 0x02 if sys.platform == "win32" else UNDERFLOW_FLAGS.get(platform.machine(), 0x10)
