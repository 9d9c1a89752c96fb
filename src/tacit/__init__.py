"""tacit: Testing Arithmetic CIrcuiTs.

Bayesian-network queries, classical and testing, compiled into fast, trainable circuits.
"""

from tacit import examples
from tacit.cpt import CPT, TestingCPT
from tacit.errors import (
    EvidenceError,
    FormatError,
    NetworkError,
    TacitError,
    TooLargeError,
    UnsetError,
)
from tacit.factored import Mux, NoisyOr
from tacit.io import load, save
from tacit.network import Network
from tacit.tac import TAC, ImpossibleEvidenceWarning, compile

__version__ = "0.1.0"

__all__ = [
    "CPT",
    "TAC",
    "EvidenceError",
    "FormatError",
    "ImpossibleEvidenceWarning",
    "Mux",
    "Network",
    "NetworkError",
    "NoisyOr",
    "TacitError",
    "TestingCPT",
    "TooLargeError",
    "UnsetError",
    "compile",
    "examples",
    "load",
    "save",
]
