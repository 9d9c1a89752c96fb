"""Pictures of queries, with matplotlib: curves, surfaces, regions, staircases and tornados."""

from tacit.views.plotting import curve, regions, staircase, surface
from tacit.views.tornado import tornado

__all__ = ["curve", "regions", "staircase", "surface", "tornado"]
