"""Pictures of queries, with matplotlib: curves, surfaces, regions, staircases, densities and tornados."""

from tacit.views.densities import density
from tacit.views.plotting import curve, regions, staircase, surface
from tacit.views.tornado import tornado

__all__ = ["curve", "density", "regions", "staircase", "surface", "tornado"]
