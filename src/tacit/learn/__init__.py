"""Learning: the numbers that a network leaves out, from labelled rows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.learn.discovering.discovery import Discovery, discover
    from tacit.learn.estimating.density_units import CollapsedDensityWarning
    from tacit.learn.estimating.estimation import Estimate, estimate
    from tacit.learn.fitting.growing import grow
    from tacit.learn.fitting.parameters import Parameters
    from tacit.learn.fitting.training import Fit, fit
    from tacit.learn.placing.placement import Place, Placement
    from tacit.learn.placing.placing import place_tests

__all__ = [
    "CollapsedDensityWarning",
    "Discovery",
    "Estimate",
    "Fit",
    "Parameters",
    "Place",
    "Placement",
    "discover",
    "estimate",
    "fit",
    "grow",
    "place_tests",
]

HOMES = {
    "discovering.discovery": ("Discovery", "discover"),
    "estimating.density_units": ("CollapsedDensityWarning",),
    "estimating.estimation": ("Estimate", "estimate"),
    "fitting.growing": ("grow",),
    "fitting.parameters": ("Parameters",),
    "fitting.training": ("Fit", "fit"),
    "placing.placement": ("Place", "Placement"),
    "placing.placing": ("place_tests",),
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Each function is loaded when it is first used: `estimate` needs no optimizers."""
    for module, names in HOMES.items():
        if name in names:
            return getattr(import_module(f"tacit.learn.{module}"), name)
    raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")
