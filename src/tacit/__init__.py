"""tacit: Testing Arithmetic CIrcuiTs.

Bayesian-network queries, classical and testing, compiled into fast, trainable circuits.
"""

from typing import TYPE_CHECKING, Any

from tacit import examples
from tacit.base.errors import EvidenceError, FormatError, NetworkError, TacitError, TooLargeError, UnsetError
from tacit.base.pickling import explain_former_modules
from tacit.base.version import VERSION, refuse_a_mixture
from tacit.evidence.column_names import MissingColumnWarning, UnusedColumnWarning
from tacit.evidence.read import AmbiguousRowsWarning
from tacit.evidence.summaries.discretizing import DefaultBinsWarning
from tacit.evidence.summaries.observed_states import (
    ConstantColumnWarning,
    GapWordWarning,
    SpoiltNumbersWarning,
)
from tacit.evidence.summaries.similar_states import SimilarStatesWarning
from tacit.io import LostBinsWarning, RoundingWarning, load, read, read_evidence, save, write
from tacit.learn.discovering.copied_columns import CopiedColumnWarning
from tacit.model.adjustment import NoAdjustmentWarning
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import Density, Gaussian, LogNormal, Poisson
from tacit.model.factor_graph import FactorGraph
from tacit.model.rules import Mux, NoisyOr
from tacit.model.unrolling import unroll
from tacit.query.answers.answer import ImpossibleEvidenceWarning, ObservedQueryWarning
from tacit.query.answers.interval import Interval, WideIntervalWarning
from tacit.query.factor_query import FactorQuery
from tacit.query.network import Network
from tacit.query.numbers.intervals import OpenIntervalWarning
from tacit.query.numbers.mixture import Mixture
from tacit.query.tac import TAC, compile

if TYPE_CHECKING:
    from tacit.bounds.querying.bounded_query import BoundedQuery
    from tacit.engines.circuit import Circuit
    from tacit.evidence.read import AmbiguousEvidenceError
    from tacit.evidence.summaries.discretizing import discretize
    from tacit.evidence.tables.columns import AmbiguousColumnError
    from tacit.io.bridges.pgmpy import from_pgmpy, to_pgmpy
    from tacit.io.bridges.pyagrum import from_pyagrum, to_pyagrum
    from tacit.io.bridges.y0 import to_y0
    from tacit.learn import CollapsedDensityWarning, Discovery, Estimate, Fit, discover, estimate, fit
    from tacit.query.decisions.decision_query import DecisionQuery
    from tacit.query.ensemble import Ensemble

refuse_a_mixture()
explain_former_modules()

__version__ = VERSION

__all__ = [
    "CPT",
    "TAC",
    "AmbiguousColumnError",
    "AmbiguousEvidenceError",
    "AmbiguousRowsWarning",
    "BoundedQuery",
    "Circuit",
    "CollapsedDensityWarning",
    "ConstantColumnWarning",
    "CopiedColumnWarning",
    "DecisionQuery",
    "DefaultBinsWarning",
    "Density",
    "Discovery",
    "Ensemble",
    "Estimate",
    "EvidenceError",
    "FactorGraph",
    "FactorQuery",
    "Fit",
    "FormatError",
    "GapWordWarning",
    "Gaussian",
    "ImpossibleEvidenceWarning",
    "Interval",
    "LogNormal",
    "LostBinsWarning",
    "MissingColumnWarning",
    "Mixture",
    "Mux",
    "Network",
    "NetworkError",
    "NoAdjustmentWarning",
    "NoisyOr",
    "ObservedQueryWarning",
    "OpenIntervalWarning",
    "Poisson",
    "RoundingWarning",
    "SimilarStatesWarning",
    "SpoiltNumbersWarning",
    "TacitError",
    "TestingCPT",
    "TooLargeError",
    "UnsetError",
    "UnusedColumnWarning",
    "WideIntervalWarning",
    "compile",
    "discover",
    "discretize",
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
    "to_y0",
    "unroll",
    "write",
]

ELSEWHERE = {  # names that are loaded on first use, with their modules
    "Circuit": "tacit.engines.circuit",
    "AmbiguousColumnError": "tacit.evidence.tables.columns",
    "AmbiguousEvidenceError": "tacit.evidence.read",
    "BoundedQuery": "tacit.bounds.querying.bounded_query",
    "DecisionQuery": "tacit.query.decisions.decision_query",
    "Ensemble": "tacit.query.ensemble",
    "discretize": "tacit.evidence.summaries.discretizing",
    **dict.fromkeys(
        ("CollapsedDensityWarning", "Discovery", "Estimate", "Fit", "discover", "estimate", "fit"), "tacit.learn"
    ),
    **dict.fromkeys(("from_pgmpy", "to_pgmpy"), "tacit.io.bridges.pgmpy"),
    "to_y0": "tacit.io.bridges.y0",
    **dict.fromkeys(("from_pyagrum", "to_pyagrum"), "tacit.io.bridges.pyagrum"),
}
MODULES = (
    "causal",
    "dask",
    "drawing",
    "learn",
    "plot",
    "ray",
    "semantics",
    "serve",
    "sklearn",
    "spark",
    "theory",
    "torch",
)
LATER = {"circuit": "tacit.engines.circuit", **{name: f"tacit.{name}" for name in MODULES}}


def __dir__() -> list[str]:
    return sorted([*__all__, *LATER])


def __getattr__(name: str) -> Any:
    """What needs more packages, or more time to load, is loaded when it is first used."""
    from importlib import import_module

    if name in ELSEWHERE:
        return getattr(import_module(ELSEWHERE[name]), name)
    if name in LATER:
        return import_module(LATER[name])
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")
