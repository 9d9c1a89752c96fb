"""The kinds of scores, by number."""

# What is built into kernels.
LIKELIHOOD, BDEU, K2 = 0, 1, 2
