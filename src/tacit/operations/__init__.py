"""The eleven operations of a program, each with all its rules in one place."""

from tacit.operations.base import ONE, ZERO, Axes, Axis, Operation, Setting, Support, spread
from tacit.operations.blend import Add, Share
from tacit.operations.contract import Contract
from tacit.operations.elementary import Constant, Gather, Likelihood, Parameter, Rescale, Slice
from tacit.operations.select import Select
from tacit.operations.structured import Structured

__all__ = [
    "ONE",
    "ZERO",
    "Add",
    "Axes",
    "Axis",
    "Constant",
    "Contract",
    "Gather",
    "Likelihood",
    "Operation",
    "Parameter",
    "Rescale",
    "Select",
    "Setting",
    "Share",
    "Slice",
    "Structured",
    "Support",
    "spread",
]
