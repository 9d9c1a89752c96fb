"""Estimates, and intervals that certainly hold the truth, where a network is too wide for exact answers."""
