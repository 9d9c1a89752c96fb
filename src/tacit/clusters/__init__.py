"""Scoring and learning on Dask, Ray and Spark."""
