"""Answers that are numbers: means and quantiles of intervals, mixtures of densities."""
