"""Timings: never part of the tests."""
