"""Pictures of queries and answers, with matplotlib: posteriors, weights, curves, surfaces, densities and tornados."""

from tacit.views.charts import decision, posterior, weights
from tacit.views.densities import density
from tacit.views.plotting import curve, regions, staircase, surface
from tacit.views.tornado import tornado

__all__ = ["curve", "decision", "density", "posterior", "regions", "staircase", "surface", "tornado", "weights"]
