"""Variables, CPTs and networks as data."""
