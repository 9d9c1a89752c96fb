"""What caused what: probabilities of necessity and sufficiency, and what they can be where mechanisms are unknown."""

from tacit.causal.bounding import CausalBounds, Interval, bounds
from tacit.causal.causation import both, necessity, sufficiency

__all__ = ["CausalBounds", "Interval", "both", "bounds", "necessity", "sufficiency"]
