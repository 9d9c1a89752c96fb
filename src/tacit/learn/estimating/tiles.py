"""Constants of the kernel that counts."""

# What is built into kernels: see `jit`.

TILE = 4096  # rows whose codes stay in the cache while all families are counted
LANES = 4  # counts side by side, so that equal rows one after the other do not wait for each other
