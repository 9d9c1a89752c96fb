"""Shared by commands: arguments, output, rows."""
