"""Learning: the numbers that a network leaves out, from labelled rows."""

from tacit.learn.fitting import Fit, fit
from tacit.learn.parameters import Parameters

__all__ = ["Fit", "Parameters", "fit"]
