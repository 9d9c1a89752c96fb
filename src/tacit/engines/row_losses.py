"""The losses that engines can compute between their two sweeps: their numbers, and where the cross entropy ends."""

# What is built into kernels: see `jit`.

from __future__ import annotations

MEAN_SQUARED, CROSS_ENTROPY = range(2)
# Below this probability the cross entropy ends as a parabola that is flat at 0, so that its slope stays continuous and
# finite. Far above what underflows, and far below what products of learned numbers come to.
SMALLEST = 1e-100
