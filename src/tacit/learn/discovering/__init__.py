"""Structures from rows: `discover`."""
