"""The numbers by which an exponential is computed: see `exponential`, and `native.body` for generated code."""

# What is built into kernels: see `jit`.

from __future__ import annotations

import math

LOG2_HIGH, LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # log 2 in two parts, the first short
INVERSE_LOG2 = 1.4426950408889634
SMALLEST = -708.0  # e to this is about the smallest normal number
SERIES = tuple(1.0 / math.factorial(i) for i in range(14))
