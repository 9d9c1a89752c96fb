"""The thirteen operations of a program, each with all its rules in one place."""

from tacit.compiler.operations.arrangement import spread
from tacit.compiler.operations.axes import ONE, ZERO, Axes, Axis, Setting
from tacit.compiler.operations.blend import Add, Share
from tacit.compiler.operations.contract import Contract
from tacit.compiler.operations.elementary import Constant, Gather, Likelihood, Parameter, Rescale, Slice
from tacit.compiler.operations.extremes import Corners, Extremes
from tacit.compiler.operations.operation import Operation, Support
from tacit.compiler.operations.select import Select
from tacit.compiler.operations.structured import Structured

__all__ = [
    "ONE",
    "ZERO",
    "Add",
    "Axes",
    "Axis",
    "Constant",
    "Contract",
    "Corners",
    "Extremes",
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
