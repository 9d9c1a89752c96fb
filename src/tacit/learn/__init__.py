"""Learning: the numbers that a network leaves out, from labelled rows."""

from tacit.learn.estimation import Estimate, estimate
from tacit.learn.fitting import fit
from tacit.learn.growing import grow
from tacit.learn.parameters import Parameters
from tacit.learn.training import Fit

__all__ = ["Estimate", "Fit", "Parameters", "estimate", "fit", "grow"]
