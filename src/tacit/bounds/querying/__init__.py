"""Queries that are too wide for exact answers, and what they answer."""
