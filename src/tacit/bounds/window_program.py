"""One program for a window: what takes the evidence of many rows to intervals of one variable, on any engine.

The factors of the window are a small model, whose joint T(x, b) over the query and its boundary is compiled as every
question is; the extremes of T(x, b) / sum T(., b) end the program. What regions beyond the boundary say about it comes
first, in the same way: T(x, b) is over the corners of their messages, then, in place of the states of the boundary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.base.floats import Floats
from tacit.base.text import fresh_name
from tacit.bounds.factor_list import Factor
from tacit.bounds.regions import Region, regions_around, shortened
from tacit.bounds.row_numbers import Pair, relaxed
from tacit.bounds.windows import Surroundings, Window
from tacit.compiler import operations as ops
from tacit.compiler.factors import places
from tacit.compiler.operations import Axis
from tacit.compiler.operations.extremes import PARTS
from tacit.compiler.program import Program
from tacit.compiler.question import Question
from tacit.compiler.strategy import compile_tables
from tacit.model.elements.variable import row_table
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
    tables
        The numbers that it reads.
    roundings
        How many there are at most in any of the ratios, each by half a unit in the last place.
    """

    program: Program
    tables: Mapping[tuple[str, str], Floats]
    roundings: int


def window_program(
    surroundings: Surroundings,
    window: Window,
    regions: Sequence[Region] = (),
    dtype: str = "float64",
    effort: str = "auto",
) -> WindowProgram:
    """Compile a window, and regions around it.

    >>> import tacit
    >>> from tacit.bounds.factor_list import factor_list
    >>> surroundings = Surroundings(factor_list(tacit.examples.abc(), Question(("B",), ("C",))))
    >>> window = Window("B", ("B",), ("A",), (1,))  # the table of B alone
    >>> window_program(surroundings, window).program.outputs
    6
    """
    chain = _Chain(replace(surroundings, relaxed=window.relaxed), dtype, effort)
    corners = [chain.add_region(region) for region in regions]
    told = {name for region in regions for name in region.speaks_of}
    left = tuple(name for name in window.boundary if name not in told and name != window.query)
    roundings = chain.add_part(_Part(window.factors, (window.query,), (), left), corners)
    return WindowProgram(chain.program(), chain.tables, roundings)


def program_for_rows(
    surroundings: Surroundings,
    window: Window,
    states: int,
    entries: int,
    dtype: str = "float64",
    effort: str = "auto",
) -> WindowProgram:
    """A program for rows: of a window, if its boundary has so many joint states, and of regions of so many entries."""
    surroundings = replace(surroundings, relaxed=window.relaxed)
    part = shortened(surroundings, window, states)
    return window_program(surroundings, part, regions_around(surroundings, part, entries), dtype, effort)


@dataclass(frozen=True)
class _Part:
    """A window or a region: its factors, the variables whose extremes are taken, those that are kept, and the rest."""

    factors: tuple[int, ...]
    of: tuple[str, ...]
    kept: tuple[str, ...]
    over: tuple[str, ...]
    without: tuple[str, ...] = ()  # variables whose evidence another part has


@dataclass(frozen=True)
class _CornerTable:
    """Corners in a program: the value, and the variables whose states they are about."""

    value: int
    variables: tuple[str, ...]
    states: int


class _Chain:
    """Programs one after the other, the later ones of which read what earlier ones found."""

    def __init__(self, surroundings: Surroundings, dtype: str, effort: str) -> None:
        self._surroundings, self._factors = surroundings, surroundings.factors
        self._dtype, self._effort = dtype, effort
        self._observed = dict.fromkeys((*surroundings.factors.evidence, *sorted(surroundings.settled)))
        self._operations: list[ops.Operation] = []
        self._batched: list[bool] = []
        self._roundings: list[int] = []
        self._sizes: dict[Axis, int] = {}
        self.tables: dict[tuple[str, str], Floats] = {}

    def program(self) -> Program:
        """All of it, which puts out the last value."""
        likelihoods = (op.variable for op in self._operations if isinstance(op, ops.Likelihood))
        return Program(
            operations=tuple(self._operations),
            sizes=self._sizes,
            batched=tuple(self._batched),
            query=self._operations[-1].axes,
            joint=len(self._operations) - 1,
            selections={},
            states={},
            owners={},
            soft=tuple(dict.fromkeys(likelihoods)),
        )

    def add_region(self, region: Region) -> _CornerTable:
        """The corners of the messages of a region."""
        variables = (*region.speaks_of, *region.given)
        self.add_part(_Part(region.factors, region.speaks_of, region.given, region.beyond, without=variables), ())
        extremes, states = len(self._operations) - 1, math.prod(self._factors.cards[name] for name in region.speaks_of)
        slack = 2 * (self._roundings[extremes] + states + 4) * float(np.finfo(self._dtype).eps)
        axes = (self._fresh("corner", states), *self._operations[extremes].axes[1:])
        return _CornerTable(self._add(ops.Corners((extremes,), slack, axes)), variables, states)

    def add_part(self, part: _Part, corners: Sequence[_CornerTable]) -> int:
        """The extremes of a part; returns how many roundings its ratios have gone through at most."""
        graph, side = self._graph(part.factors)
        model, true, _ = conditioned(graph)
        names = _with_corners(model, corners)
        question = Question(
            query=(*part.of, *part.kept, *names, *part.over, *([side] if side else [])),
            evidence=tuple(name for name in self._observed if name in graph and name not in part.without),
            given=tuple((name, model.states(name).index(state)) for name, state in true.items()),
            per_row=tuple(names),
        )
        joint = compile_tables(model, question, self._effort, self._dtype)
        axis = f"{len(self._operations)}:".__add__
        tables = {row_table(name): table for name, table in zip(names, corners, strict=True)}
        self._splice(joint, model, tables, axis)
        last, of = len(self._operations) - 1, tuple(map(axis, part.of))
        assert joint.joint == len(joint) - 1, "the joint is the last value of a program without selections"
        axes = (self._fresh("extremes", PARTS), *of, *map(axis, part.kept))
        self._add(ops.Extremes((last,), of, axes, axis(side) if side else None))
        return self._roundings[-1]

    def _graph(self, members: Sequence[int]) -> tuple[FactorGraph, str | None]:
        """Some factors; where a table is only known to lie between two, an axis of both is among its own."""
        own = [self._factor(place) for place in sorted(members)]
        names = {name for factor in own for name in factor.scope}
        graph, cards = FactorGraph(), self._factors.cards
        for name in cards:
            if name in names:
                graph.add(name, states=cards[name])
        side = None
        if any(factor.low is not factor.high for factor in own):
            side = fresh_name("side", names)
            graph.add(side, states=SIDES)
        for factor in own:
            if factor.low is factor.high:
                graph.add_factor(factor.scope, factor.low)
            else:
                assert side is not None
                graph.add_factor((side, *factor.scope), [factor.low, factor.high])
        return graph, side

    def _factor(self, place: int) -> Factor:
        """A factor, without variables that it is relaxed over."""
        factor, without = self._factors.factors[place], self._surroundings.left_out.get(place, ())
        if not without:
            return factor
        pair = Pair(factor.low[..., None], factor.high[..., None])
        low, high = relaxed(pair, [axis for axis, name in enumerate(factor.scope) if name in without])
        scope = tuple(name for name in factor.scope if name not in without)
        return factor._replace(scope=scope, low=low[..., 0], high=high[..., 0])

    def _splice(
        self, program: Program, model: Model, corners: Mapping[str, _CornerTable], axis: Callable[[str], str]
    ) -> None:
        """Add the operations of a program, with names of their own; corners are likelihoods there."""
        first = len(self._operations)
        self._sizes |= {axis(name): size for name, size in program.sizes.items()}
        for operation in program:
            axes = tuple(map(axis, operation.axes))
            inputs: Any = tuple(first + j for j in operation.inputs)
            match operation:
                case ops.Likelihood() if operation.variable in corners:
                    table = corners[operation.variable]
                    made = places([table.states, *(self._factors.cards[name] for name in table.variables)])
                    self._add(ops.Gather((table.value,), np.moveaxis(made, 0, -1).copy(), axes))
                case ops.Likelihood():
                    self._sizes[operation.variable] = program.sizes[operation.variable]
                    self._add(replace(operation, axes=axes))
                case ops.Parameter():
                    node, part = axis(operation.node), operation.part
                    self.tables[node, part] = model.cpt(operation.node).parts()[part]
                    self._add(replace(operation, node=node, axes=axes))
                case ops.Constant():
                    self._add(replace(operation, axes=axes))
                case ops.Rescale() if not self._batched[inputs[0]]:  # corners of a region without evidence
                    self._add(ops.Gather(inputs, places([self._sizes[a] for a in axes]), axes))
                case ops.Contract() | ops.Gather() | ops.Rescale():
                    self._add(replace(operation, inputs=inputs, axes=axes))
                case _:
                    raise AssertionError(f"a window has no {type(operation).__name__}")

    def _add(self, operation: ops.Operation) -> int:
        self._operations.append(operation)
        self._batched.append(operation.reads_evidence or any(self._batched[j] for j in operation.inputs))
        self._roundings.append(self._most_roundings(operation))
        return len(self._operations) - 1

    def _most_roundings(self, operation: ops.Operation) -> int:
        """The most roundings that a number of the value has gone through, one in each number that it is made of."""
        below = sum(self._roundings[j] for j in operation.inputs)
        match operation:
            case ops.Parameter() | ops.Likelihood():
                return 1  # divided by a sum, or the largest entry; made a float of another size
            case ops.Contract():
                axes = {a for j in operation.inputs for a in self._operations[j].axes}
                summed = math.prod(self._sizes[a] for a in axes.difference(operation.axes))
                return below + len(operation.inputs) - 1 + summed - 1
            case ops.Extremes():
                return below + math.prod(self._sizes[a] for a in operation.of) + 3
            case ops.Corners():
                return 2  # whatever was rounded before is in its slack
            case ops.Constant() | ops.Gather() | ops.Rescale():
                return below
        raise AssertionError(f"a window has no {type(operation).__name__}")

    def _fresh(self, word: str, size: int) -> Axis:
        name = fresh_name(f"{len(self._operations)}:{word}", self._sizes)
        self._sizes[name] = size
        return name


def _with_corners(model: Model, corners: Sequence[_CornerTable]) -> list[str]:
    """Add a node for each table of corners, whose number is its state; its table is not among the numbers."""
    names = list[str]()
    for table in corners:
        names.append(fresh_name(f"corner {len(names)}", model.variables))
        model.add(names[-1], table.variables, states=table.states)
    return names
