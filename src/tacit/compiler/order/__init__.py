"""Cheap orders of products and sums."""
