"""Elimination on decision diagrams, for networks with many zeros and ones."""
