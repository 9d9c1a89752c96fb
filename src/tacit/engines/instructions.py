"""The kinds of instructions of a tape, and the bounds that mixtures keep.

What each does, and what the numbers of its terms mean, is said in `opcodes`.
"""

# What is built into kernels: see `jit`.

from __future__ import annotations

import math

INPUT, INDEX, TABLE, LINEAR, PRODUCT, TEST, TEST_SLOTS, WEIGHT, WEIGHT_SLOTS, MIX, MIX_SLOTS, SCALE, OUTPUT = range(13)
LARGEST_LINEAR, LARGEST_PRODUCT = 13, 14

# The two weights of a mixture are kept as the lesser one, with a minus sign if it is that of `minus`: taken from 1, it
# would lose its digits. Weights end at e**-400 = 2**-577, in float32 at e**-60 = 2**-86. That changes nothing beside an
# entry of the other table from NEGLIGIBLE on; where the weight is all there is, the row is doubtful.
LEAST_64, LEAST_32 = math.exp(-400.0), math.exp(-60.0)
NEGLIGIBLE_64, NEGLIGIBLE_32 = 2.0**-400, 2.0**-50
