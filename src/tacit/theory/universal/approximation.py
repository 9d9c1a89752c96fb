"""Universal approximation: a testing network whose posterior follows a given function (Theorem 1, Appendix B)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.node_builder import CircuitBuilder
from tacit.engines.circuit.nodes import Ids
from tacit.model.cpt import TESTS, TestingCPT
from tacit.model.rules import Mux
from tacit.query.network import Network
from tacit.theory.universal.staircase import SLACK, Function, MonotonicPiece, Staircase, require_size, sizes, staircase

QUERY = "Y"
ON, OFF = [1.0, 0.0], [0.0, 1.0]
ALWAYS, NEVER = (TestingCPT([row, row], [row, row], [1.0, 1.0]) for row in (ON, OFF))
ALMOST_ONE = float(np.nextafter(1.0, 0.0))
CHECKED_POINTS = 10_000


@dataclass(frozen=True, eq=False)
class Approximation:
    """A network that approximates a function; unpacks into the network, its evidence variables and its query.

    error       |P*(y) - f| is at most this; see `approximate` for what is guaranteed
    levels      the number N of values that P*(y) takes besides 0
    slices      how many slabs each input after the first is cut into
    staircase   the step function that P*(y) is, as numbers
    """

    network: Network
    evidence: tuple[str, ...]
    query: str
    error: float
    levels: int
    slices: tuple[int, ...]
    staircase: Staircase = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.network, self.evidence, self.query))

    @property
    def pieces(self) -> int:
        """How many monotonic pieces there are, over all slabs."""
        return self.staircase.pieces

    def circuit(self) -> Circuit:
        """The TAC of the paper's Figure 6b, which computes P*(y) directly: one test per level, their sum, times 1/N.

        Unlike the network, it needs a value of every input.

        >>> approximate(lambda x: x * x, error=0.2).circuit()
        Circuit(15 nodes: 7 constant, 1 input, 1 sum, 1 product, 5 test; 27 edges, depth 3)
        """
        build = CircuitBuilder()
        x = np.array([build.inputs(self.network.variable(name))[0] for name in self.evidence])
        return build.finish(_nodes(build, self.staircase, x)[None])


def approximate(
    f: Callable[..., Any],
    inputs: int = 1,
    error: float = 0.1,
    *,
    levels: int | None = None,
    slices: int | Sequence[int] | None = None,
    turning_points: Sequence[float] | None = None,
    lipschitz: float | Sequence[float] | None = None,
) -> Approximation:
    """A testing network whose posterior P*(y), given its inputs as soft evidence, is within `error` of `f`.

    Parameters
    ----------
    f
        A continuous function of `inputs` floats in [0, 1], with values in [0, 1].
    error
        The largest deviation allowed, shared equally between the levels and the slices of each further input.
    levels, slices
        The number N of levels, and the slabs of the inputs after the first (one number for all, or one for each),
        if `error` should not determine them.
    turning_points
        Where a function of one input changes between rising and falling. They are searched for if left out.
    lipschitz
        A bound on |f(..., a, ...) - f(..., b, ...)| / |a - b| for the inputs after the first: one number for all, or
        one for each. Estimated if left out.

    A monotonic f of one input becomes the network of Theorem 1: N = ceil(1 / error) testing nodes, each of which is on
    where f(x) has reached its level, so that P*(y) = floor(N f(x)) / N. Other functions of one input are cut into
    monotonic pieces, and those of several inputs into slabs, in which f is taken at the middle. The size is N times the
    number of pieces, and grows exponentially with the number of inputs.

    The error is guaranteed where f is monotonic in its first input, or has the turning points given, and obeys the
    Lipschitz bounds given. The rest is estimated from samples: turning points (those of an oscillation narrower than
    1/500 may be missed) and, without `lipschitz`, the change of f within a slab. Either way the result is compared with
    f at 10,000 points, and a larger error there is raised as a `TacitError`. Inputs closer to 0 than 1e-16 count as 0.

    >>> import tacit
    >>> network, evidence, query = approximate(lambda x: x**2, error=0.1)
    >>> network.counts().nodes, evidence, query
    (13, ('Z',), 'Y')
    >>> tacit.compile(network, query, evidence).posterior({"Z": [0.5, 0.75]})[:, 0].round(3)
    array([0.2, 0.5])
    """
    inputs = _whole(inputs, "inputs")
    if not isinstance(error, int | float | np.number) or not 0 < error <= 1:
        raise TacitError(f"error is {error!r}, expected a number above 0 and at most 1")
    if not callable(f):
        raise TacitError(f"f is {f!r}, expected a function of {inputs} floats")
    if turning_points is not None and inputs > 1:
        raise TacitError("turning_points are for functions of one input; those of slices are always searched for")
    function = Function(f, inputs)
    counts = None if slices is None else tuple(_whole(n, "slices") for n in _further(slices, inputs, "slices"))
    slopes = None if lipschitz is None else tuple(_slope(v) for v in _further(lipschitz, inputs, "lipschitz"))
    levels = None if levels is None else _whole(levels, "levels")
    guaranteed = inputs == 1 or bool(slopes) or counts is None
    levels, counts, bound = sizes(function, float(error), levels, counts, slopes)
    turns = None if turning_points is None else _turning_points(turning_points)
    steps = staircase(function, levels, counts, turns)
    require_size(levels * steps.pieces, f"{levels:,} levels in each of {steps.pieces:,} pieces")
    largest = _check(function, steps, bound if guaranteed else math.inf)
    names = ("Z",) if inputs == 1 else tuple(f"Z{i + 1}" for i in range(inputs))
    net = Network("approximation")
    for name in names:
        net.add(name, cpt=[0.5, 0.5])
    _add(net, steps, names, "", QUERY)
    return Approximation(net, names, QUERY, max(largest, bound), levels, counts, steps)


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise TacitError(f"{what} is {value!r}, expected a whole number of at least 1")
    return int(value)


def _slope(value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 <= value < math.inf:
        raise TacitError(f"lipschitz is {value!r}, expected a finite number of at least 0")
    return float(value)


def _further(value: Any, inputs: int, what: str) -> tuple[Any, ...]:
    """One value for each input after the first."""
    if inputs == 1:
        raise TacitError(f"{what} is for the inputs after the first, but inputs is 1; leave it out")
    values = tuple(value) if isinstance(value, Sequence | np.ndarray) else (value,) * (inputs - 1)
    if len(values) != inputs - 1:
        raise TacitError(f"{what} has {len(values)} values, expected {inputs - 1}: one for each input after the first")
    return values


def _turning_points(values: Sequence[float]) -> Floats:
    turns = np.array(values, dtype=np.float64)
    if turns.ndim != 1 or not ((turns > 0) & (turns < 1)).all() or (np.diff(turns) <= 0).any():
        raise TacitError(f"turning_points are {list(values)!r}, expected increasing numbers between 0 and 1")
    return turns


def _check(f: Function, steps: Staircase, allowed: float) -> float:
    """The largest error at random points; raised where it is more than what is allowed."""
    points = np.random.default_rng(0).random((CHECKED_POINTS, f.inputs))
    points[:2] = [[0.0], [1.0]]
    errors = np.abs(steps.value(points) - f(points))
    worst = int(errors.argmax())
    if errors[worst] > allowed + SLACK:
        remedy = "f changes faster than lipschitz= or its samples say; give a larger lipschitz=, or slices="
        if f.inputs == 1:
            remedy = "between its turning points f must rise or fall; give all turning_points="
        problem = f"the error at {f.shown(points[worst])} is {errors[worst]:.6g}, more than {allowed:.6g}"
        raise TacitError(f"{problem}: {remedy}")
    return float(errors[worst])


def _add(net: Network, steps: Staircase | MonotonicPiece, names: Sequence[str], prefix: str, out: str) -> None:
    """Add the nodes of a step function; `out` is on with the probability that is its value."""
    if isinstance(steps, MonotonicPiece):
        return _add_levels(net, steps, names[0], prefix, out)
    inner_names, count = names if steps.is_curve else names[:-1], len(steps.parts)
    if count == 1:
        return _add(net, steps.parts[0], inner_names, prefix, out)
    previous = ""
    for k, border in enumerate([0.0, *steps.borders.tolist()], start=1):
        inner = f"{prefix}{'P' if steps.is_curve else 'S'}{k}_"
        own, chained = f"{inner}Y", out if k == count else f"{prefix}Chain{k}"
        _add(net, steps.parts[k - 1], inner_names, inner, own)
        if k == 1:
            net.add(chained, [own], cpt=[ON, OFF])
        else:  # from its border on, a part is copied instead of the ones before
            net.add(f"{prefix}Test{k}", names[-1:], cpt=_at_least(border))
            net.add(chained, cpt=Mux(f"{prefix}Test{k}", [own, previous]))
        previous = chained


def _add_levels(net: Network, piece: MonotonicPiece, name: str, prefix: str, out: str) -> None:
    """Theorem 1: one testing node per level, of which a uniform selector picks one."""
    levels = len(piece.thresholds)
    tests = [f"{prefix}Y{i + 1}" for i in range(levels)]
    net.add(f"{prefix}I", states=levels, cpt=np.full(levels, 1 / levels))
    for test, threshold in zip(tests, piece.thresholds.tolist(), strict=True):
        if math.isinf(threshold):
            cpt = ALWAYS if (threshold < 0) == piece.rising else NEVER
        elif piece.rising:
            cpt = _at_least(threshold)
        else:  # on where P*(z) <= threshold, in both states of Z
            cpt = TestingCPT([ON, ON], [OFF, OFF], [threshold, 1.0 - threshold], ["<=", ">="])
        net.add(test, [name], cpt=cpt)
    net.add(out, cpt=Mux(f"{prefix}I", tests))


def _at_least(threshold: float) -> TestingCPT:
    """On where P*(z) >= threshold > 0; both states of Z decide alike, so that Z itself no longer matters."""
    # 1 - 1e-17 would round to 1, which P*(not z) never exceeds; but at x = 0 the node must be off
    complement = min(1.0 - threshold, ALMOST_ONE)
    return TestingCPT([ON, OFF], [OFF, ON], [threshold, complement], [">=", ">"])


def _nodes(build: CircuitBuilder, steps: Staircase | MonotonicPiece, x: Ids) -> Ids:
    """The circuit node that computes a step function of the nodes x, as an array without axes."""
    if isinstance(steps, MonotonicPiece):
        proper, operator = np.isfinite(steps.thresholds), np.array(TESTS.index(">=" if steps.rising else "<="))
        on = np.where((steps.thresholds < 0) == steps.rising, build.one, build.zero)
        limits = build.constants(steps.thresholds[proper])
        on[proper] = build.tests(x[0], limits, np.array(build.one), np.array(build.zero), operator)
        return build.products(build.constants(np.array(1 / len(on))), build.sums(on))
    inner = x if steps.is_curve else x[:-1]
    node, *later = (_nodes(build, part, inner) for part in steps.parts)
    for border, part in zip(build.constants(steps.borders), later, strict=True):
        node = build.tests(x[-1], border, part, node, np.array(TESTS.index(">=")))
    return node
