"""Learning: the numbers that a network leaves out, from labelled rows."""

from tacit.learn.estimation import Estimate, estimate
from tacit.learn.fitting import Fit, fit
from tacit.learn.growing import grow
from tacit.learn.parameters import Parameters

__all__ = ["Estimate", "Fit", "Parameters", "estimate", "fit", "grow"]
