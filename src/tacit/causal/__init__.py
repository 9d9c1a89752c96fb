"""What caused what: probabilities of necessity and sufficiency, and what they can be where mechanisms are unknown."""

from tacit.causal.bounding import bounds
from tacit.causal.causal_bounds import CausalBounds, Interval
from tacit.causal.causation import both, necessity, sufficiency

__all__ = ["CausalBounds", "Interval", "both", "bounds", "necessity", "sufficiency"]
