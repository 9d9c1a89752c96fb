"""Bounds of the logarithm of the probability of evidence, by weighted mini-buckets and cutsets."""
