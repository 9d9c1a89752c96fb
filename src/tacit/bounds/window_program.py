"""One program for a window: what takes the evidence of many rows to intervals of one variable, on any engine.

The factors of the window are a small model, whose joint T(x, b) over the query and its boundary is compiled as every
question is; the extremes of T(x, b) / sum T(., b) end the program.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tacit.base.text import fresh_name
from tacit.bounds.factor_list import FactorList
from tacit.compiler import operations as ops
from tacit.compiler.operations import Axis
from tacit.compiler.operations.extremes import PARTS
from tacit.compiler.program import Program
from tacit.compiler.question import Question
from tacit.compiler.strategy import compile_tables
from tacit.model.factor_graph import FactorGraph, conditioned
from tacit.model.model import Model

SIDES = ("low", "high")


@dataclass(frozen=True)
class WindowProgram:
    """The bounds of a posterior by a window, as a program whose outputs are (smallest, largest, mixture) x states.

    Attributes
    ----------
    program
        The operations; it reads the likelihoods of variables over their states in the factor list.
    model
        The network whose numbers it reads: a node that is sure for each factor.
    roundings
        How many there are at most in any of the ratios, each by half a unit in the last place.
    """

    program: Program
    model: Model
    roundings: int


def window_program(
    factors: FactorList,
    query: str,
    members: Collection[int],
    boundary: Collection[str],
    dtype: str = "float64",
    effort: str = "auto",
) -> WindowProgram:
    """Compile the window of the factors in some places of a list, whose `boundary` is what other factors have, too.

    A variable with a state in every row need not be in the boundary.

    >>> import tacit
    >>> from tacit.bounds.factor_list import factor_list
    >>> factors = factor_list(tacit.examples.abc(), Question(("B",), ("C",)))
    >>> window_program(factors, "B", {1}, ["A"]).program.outputs  # the table of B alone
    6
    """
    graph, side = _graph(factors, members)
    model, true, _ = conditioned(graph)
    question = Question(
        query=(query, *(name for name in boundary if name != query), *([side] if side else [])),
        evidence=tuple(name for name in factors.evidence if name in graph),
        given=tuple((name, model.states(name).index(state)) for name, state in true.items()),
    )
    joint = compile_tables(model, question, effort, dtype)
    program = _with_extremes(joint, query, side)
    return WindowProgram(program, model, _roundings(joint) + joint.sizes[query] + 3)


def _graph(factors: FactorList, members: Collection[int]) -> tuple[FactorGraph, str | None]:
    """The factors of a window; where a table is only known to lie between two, an axis of both is among its own."""
    own = [factors.factors[i] for i in sorted(members)]
    scope = {name for factor in own for name in factor.scope}
    graph = FactorGraph()
    for name in factors.cards:
        if name in scope:
            graph.add(name, states=factors.cards[name])
    side = None
    if any(factor.low is not factor.high for factor in own):
        side = fresh_name("side", scope)
        graph.add(side, states=SIDES)
    for factor in own:
        if factor.low is factor.high:
            graph.add_factor(factor.scope, factor.low)
        else:
            assert side is not None
            graph.add_factor((side, *factor.scope), [factor.low, factor.high])
    return graph, side


def _with_extremes(joint: Program, query: str, side: Axis | None) -> Program:
    """A program that ends with the extremes of a joint."""
    parts = fresh_name("extremes", joint.sizes)
    last = ops.Extremes((joint.joint,), (parts, query), side)
    return replace(
        joint,
        operations=(*joint.operations, last),
        sizes={**joint.sizes, parts: PARTS},
        batched=(*joint.batched, joint.batched[joint.joint]),
        query=last.axes,
        joint=len(joint.operations),
    )


def _roundings(program: Program) -> int:
    """The most roundings that an entry of the joint has gone through, one in each number that it is made of."""
    counts: list[int] = []
    for i, operation in enumerate(program):
        below = sum(counts[j] for j in operation.inputs)
        match operation:
            case ops.Parameter() | ops.Likelihood():
                counts.append(1)  # divided by a sum, or the largest entry; made a float of another size
            case ops.Contract():
                summed = program.size(program.union(i)) // max(1, program.size(operation.axes))
                counts.append(below + len(operation.inputs) - 1 + summed - 1)
            case ops.Constant() | ops.Gather() | ops.Slice() | ops.Rescale():
                counts.append(below)
            case _:
                raise AssertionError(f"a window has no {type(operation).__name__}")
    return counts[program.joint]
