"""File formats, a module for each."""
