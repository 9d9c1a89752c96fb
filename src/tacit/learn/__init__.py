"""Learning: the numbers that a network leaves out, from labelled rows."""

from tacit.learn.estimation import Estimate, estimate
from tacit.learn.fitting import fit
from tacit.learn.growing import grow
from tacit.learn.parameters import Parameters
from tacit.learn.placement import Place, Placement
from tacit.learn.placing import place_tests
from tacit.learn.training import Fit

__all__ = ["Estimate", "Fit", "Parameters", "Place", "Placement", "estimate", "fit", "grow", "place_tests"]
