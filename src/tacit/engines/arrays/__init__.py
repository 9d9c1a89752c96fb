"""Engines that run a program operation by operation: NumPy and torch."""
