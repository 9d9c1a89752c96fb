"""tacit: Testing Arithmetic CIrcuiTs.

Bayesian-network queries, classical and testing, compiled into fast, trainable circuits.
"""

from typing import TYPE_CHECKING, Any

from tacit import examples
from tacit.answer import ImpossibleEvidenceWarning, ObservedQueryWarning
from tacit.cpt import CPT, TestingCPT
from tacit.errors import (
    EvidenceError,
    FormatError,
    NetworkError,
    TacitError,
    TooLargeError,
    UnsetError,
)
from tacit.factor_graph import FactorGraph
from tacit.factor_query import FactorQuery
from tacit.factored import Mux, NoisyOr
from tacit.installation import VERSION, refuse_a_mixture
from tacit.io import RoundingWarning, load, read, read_evidence, save, write
from tacit.naming import MissingColumnWarning, UnusedColumnWarning
from tacit.network import Network
from tacit.tac import TAC, compile
from tacit.unrolling import unroll

if TYPE_CHECKING:
    from tacit.io.pgmpy import from_pgmpy, to_pgmpy
    from tacit.io.pyagrum import from_pyagrum, to_pyagrum
    from tacit.learn import Estimate, Fit, estimate, fit

refuse_a_mixture()

__version__ = VERSION

__all__ = [
    "CPT",
    "TAC",
    "Estimate",
    "EvidenceError",
    "FactorGraph",
    "FactorQuery",
    "Fit",
    "FormatError",
    "ImpossibleEvidenceWarning",
    "MissingColumnWarning",
    "Mux",
    "Network",
    "NetworkError",
    "NoisyOr",
    "ObservedQueryWarning",
    "RoundingWarning",
    "TacitError",
    "TestingCPT",
    "TooLargeError",
    "UnsetError",
    "UnusedColumnWarning",
    "compile",
    "estimate",
    "examples",
    "fit",
    "from_pgmpy",
    "from_pyagrum",
    "load",
    "read",
    "read_evidence",
    "save",
    "to_pgmpy",
    "to_pyagrum",
    "unroll",
    "write",
]

LATER = ("dask", "drawing", "learn", "plot", "ray", "semantics", "sklearn", "spark", "theory", "torch")


def __dir__() -> list[str]:
    return sorted([*__all__, *LATER])


def __getattr__(name: str) -> Any:
    """What needs more packages, or more time to load, is loaded when it is first used."""
    from importlib import import_module

    if name in ("Estimate", "Fit", "estimate", "fit"):
        return getattr(import_module("tacit.learn"), name)
    if name in ("from_pgmpy", "to_pgmpy", "from_pyagrum", "to_pyagrum"):
        return getattr(import_module(f"tacit.io.{name.partition('_')[2]}"), name)
    if name in LATER:
        return import_module(f"tacit.{name}")
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")
