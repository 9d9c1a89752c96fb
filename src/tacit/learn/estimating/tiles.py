"""How rows are counted: so many at a time, into so many tables side by side."""

# What is built into kernels: see `jit`.

from __future__ import annotations

TILE = 4096  # rows whose codes stay in the cache while all families are counted
LANES = 4  # counts side by side, so that equal rows one after the other do not wait for each other
