"""The paper's theorems as functions: universal approximation, neural networks as circuits, pieces and bounds.

Every question has a file. Those about all evidence at once are answered on a query whose selection can be chosen
(`selectable`), the hard ones over boxes of evidence (`boxes`).
"""

from tacit.theory.certified.bounding import Bounds, bounds
from tacit.theory.certified.monotonicity import Monotonicity, monotone
from tacit.theory.certified.robustness import Robustness, robust
from tacit.theory.explain import Explanation
from tacit.theory.explain_changes import Change
from tacit.theory.explain_difference import Comparison, Difference
from tacit.theory.findings import Finding
from tacit.theory.piecewise import Pieces, Region, pieces
from tacit.theory.universal.approximation import Approximation, approximate
from tacit.theory.universal.neural import from_neural_network

__all__ = [
    "Approximation",
    "Bounds",
    "Change",
    "Comparison",
    "Difference",
    "Explanation",
    "Finding",
    "Monotonicity",
    "Pieces",
    "Region",
    "Robustness",
    "approximate",
    "bounds",
    "from_neural_network",
    "monotone",
    "pieces",
    "robust",
]
