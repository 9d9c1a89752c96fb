"""Scores of families, counted by bitmaps or row by row."""
