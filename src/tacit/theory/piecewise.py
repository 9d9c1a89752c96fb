"""The pieces of a testing query: regions of soft evidence, and the multilinear function in each (paper, Theorem 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, NetworkError
from tacit.base.floats import Floats
from tacit.base.html import table as html_table
from tacit.base.text import large, plural
from tacit.evidence.density_column import scale_of
from tacit.evidence.read import EvidenceLike, read
from tacit.model.elements.variable import describe
from tacit.model.model import Model
from tacit.query.query import Query
from tacit.theory.arguments import first_state
from tacit.theory.multilinear import moebius, polynomial, products, subsets, unit_vertices
from tacit.theory.reachable import reachable_selections
from tacit.theory.scope import TIE, Bools, Sides
from tacit.theory.selectable import SelectableQuery, make_selectable, normalised

MAX_SHOWN = 20
MAX_LOG_SCALE = 600.0  # of the densities of numbers; e^709 is the largest float
Ruling = NDArray[np.generic]  # whether plus rules, or which of more than two tables


class Interval(NamedTuple):
    """The values of a single input that make up a region; an end belongs to it if it is closed."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool

    def __str__(self) -> str:
        return f"{'[' if self.low_closed else '('}{self.low:.6g}, {self.high:.6g}{']' if self.high_closed else ')'}"


@dataclass(frozen=True)
class Condition:
    """A test as an inequality that holds throughout a region: sum_I C_I prod_{i in I} lambda_i > 0, or >= 0.

    `parent_state` names the parent state that is tested, `plus` tells which table its outcome selects, and `strict`
    whether the inequality is. Of more than two tables, `plus` tells whether the test holds, and `table` from which of
    them on it selects then.
    """

    node: str
    parent_state: str
    plus: bool
    strict: bool
    coefficients: Mapping[tuple[str, ...], float]
    table: int | None = None

    def __str__(self) -> str:
        return f"{polynomial(self.coefficients)} {'>' if self.strict else '>='} 0"


@dataclass(frozen=True, eq=False)
class Region:
    """All inputs that select the same Bayesian network.

    Attributes
    ----------
    selection
        For each testing node, an array over the parents' states: whether `plus` rules, or which of more tables.
    coefficients
        C_I for every set I of inputs: an array over the states of the query. p*(q) = sum_I C_I prod_{i in I} lambda_i;
        the sum of an array over the states is the coefficient of p*(evidence).
    conditions
        What makes up the region: an inequality for each test that could come out otherwise, but for those that
        plainly follow from another.
    inside
        A point of the region.
    interval
        The region itself, if there is one input.
    """

    selection: Mapping[str, Ruling]
    coefficients: Mapping[tuple[str, ...], Floats]
    conditions: tuple[Condition, ...]
    inside: Mapping[str, float]
    interval: Interval | None


class Pieces(Sequence[Region]):
    """The regions of a query that have positive measure; for one input, from left to right.

    Attributes
    ----------
    query, states, inputs
        The query variable, its states, and the names of the inputs.
    most
        How many regions there can be: more than were found only where the search was cut short.
    """

    def __init__(self, query: SelectableQuery, regions: Sequence[Region], holds: Bools, most: int) -> None:
        self.query, self.states, self.inputs = query.query, query.network.states(query.query), query.inputs
        self.most = most
        self._query, self._regions = query, tuple(regions)
        self._index = {holding.tobytes(): i for i, holding in enumerate(holds)}

    @property
    def granularity(self) -> int:
        """The number of regions found; of all there are, if `exact`."""
        return len(self._regions)

    @property
    def exact(self) -> bool:
        """Whether there are no other regions."""
        return self.most == self.granularity

    @property
    def borders(self) -> list[float]:
        """Where one region ends and the next begins, for one input."""
        return [region.interval.low for region in self._regions[1:] if region.interval is not None]

    def joint(self, evidence: EvidenceLike) -> Floats:
        """p*(q) from the coefficients that apply in each row: (rows, states). Evidence on the inputs, as for a TAC."""
        points = self._points(evidence)
        kinds, which = np.unique(self._selected(points), axis=1, return_inverse=True)
        joint = np.empty((len(self.states), points.shape[1]))
        for i, plus in enumerate(kinds.T):
            rows, place = which.ravel() == i, self._index.get(plus.tobytes())
            if place is None:  # a selection that occurs on a border only
                table = coefficients(self._query, plus[:, None])[0]
            else:
                table = np.stack(list(self._regions[place].coefficients.values()))
            joint[:, rows] = table.T @ products(points[:, rows])
        return joint.T

    def posterior(self, evidence: EvidenceLike) -> Floats:
        """P*(q), a quotient of multilinear functions: (rows, states); NaN where the evidence is impossible."""
        return normalised(self.joint(evidence).T).T

    def region(self, evidence: EvidenceLike) -> Region | None:
        """The region of one row of evidence; None on a border that belongs to neither side."""
        points = self._points(evidence)
        if points.shape[1] != 1:
            raise EvidenceError(f"region takes one row of evidence, got {points.shape[1]} rows")
        place = self._index.get(self._selected(points)[:, 0].tobytes())
        return None if place is None else self._regions[place]

    def _selected(self, points: Floats) -> Bools:
        return np.asarray(self._query.select(points)[0] > 0)

    def _points(self, evidence: EvidenceLike) -> Floats:
        variables = [self._query.network.variable(n) for n in self._query.network]
        checked = read(evidence, variables, self.inputs, queries=[self.query])
        points = np.empty((len(self.inputs), checked.rows))
        for i, name in enumerate(self.inputs):
            points[i] = first_state(checked, name)
            for row in np.flatnonzero(np.isnan(points[i]))[:1].tolist():
                needed = f"the pieces are functions of a likelihood of every input ({', '.join(self.inputs)})"
                raise EvidenceError(f"evidence on {name!r}, row {row}: there is none, but {needed}")
        return points

    @overload
    def __getitem__(self, index: int) -> Region: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Region, ...]: ...
    def __getitem__(self, index: int | slice) -> Region | tuple[Region, ...]:
        return self._regions[index]

    def __len__(self) -> int:
        return len(self._regions)

    def __repr__(self) -> str:
        size = plural(len(self), "region") if self.exact else f"{len(self)} regions found of at most {large(self.most)}"
        return f"Pieces({size} of {self.query} over {', '.join(self.inputs) or 'no input'})"

    def __str__(self) -> str:
        """Every region: where it is, what is selected, and p*(q) there."""
        blocks = []
        for number, (where, selected, functions) in enumerate(self._described(), start=1):
            lines = [f"{name} = {value}" for name, value in zip(self._heads(), functions, strict=True)]
            blocks.append(f"{number}. " + "\n   ".join([", ".join(where), selected, *lines]))
        return "\n".join([repr(self), *blocks, *self._more()])

    def _repr_html_(self) -> str:
        cells = [("\n".join(where), selected, *functions) for where, selected, functions in self._described()]
        return html_table(("where", "selected", *self._heads()), cells, title=repr(self), notes=self._more())

    def _heads(self) -> list[str]:
        return [f"p*({self.query}={state})" for state in self.states]

    def _described(self) -> Iterator[tuple[list[str], str, list[str]]]:
        """The conditions, the selection and the functions p*(q) of the first regions."""
        for region in self._regions[:MAX_SHOWN]:
            where = [str(condition) for condition in region.conditions] or ["everywhere"]
            if region.interval is not None:
                where = [f"{self.inputs[0]} in {region.interval}"]
            functions = [{names: c[i] for names, c in region.coefficients.items()} for i in range(len(self.states))]
            yield where, _selection_text(self._query.network, region.selection), list(map(polynomial, functions))

    def _more(self) -> list[str]:
        return [f"... and {len(self) - MAX_SHOWN} more"] if len(self) > MAX_SHOWN else []


def pieces(
    tac: Query, inputs: Iterable[str] | None = None, given: EvidenceLike | None = None, budget: int = 5_000
) -> Pieces:
    """The regions of a query over soft evidence on binary variables, and its multilinear coefficients in each.

    With one input, all regions and exact borders. With several, selections are met by sampling or by solving for the
    inequalities that define them, and excluded by linear programs over boxes, which are cut where they are too coarse:
    `Pieces.exact` says that every selection was met or excluded; where the budget ends first, `Pieces.most` bounds
    their number. A region thinner than about 1e-12 counts as a border.

    Parameters
    ----------
    tac
        A compiled query whose testing nodes use hard tests.
    inputs
        Binary evidence variables, at most 10; if left out, all that are not given. An input is the likelihood, from 0
        to 1, of the variable's first state.
    given
        One row of evidence that stays fixed. Evidence variables that are neither given nor inputs have no evidence.
    budget
        How many linear programs to solve at most, about a millisecond each; one input needs none.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> print(pieces(tac, inputs=["A"], given={"C": "lo"}))
    Pieces(3 regions of B over A)
    1. A in [0, 0.7)
       B: minus at A='true', plus at A='false'
       p*(B=true) = 0.245 - 0.23 A
       p*(B=false) = 0.105 - 0.045 A
    2. A in [0.7, 0.777778]
       B: plus
       p*(B=true) = 0.245 - 0.1775 A
       p*(B=false) = 0.105 - 0.0975 A
    3. A in (0.777778, 1]
       B: plus at A='true', minus at A='false'
       p*(B=true) = 0.035 + 0.0325 A
       p*(B=false) = 0.315 - 0.3075 A
    """
    query = make_selectable(tac, inputs, given)
    if abs(float(scale_of(query.fixed, 1)[0])) > MAX_LOG_SCALE:
        names = [name for name in query.fixed if tac.network.variable(name).continuous]
        problem = f"with the numbers of {', '.join(names)}, p*(q) is a density beyond the range of floats"
        raise EvidenceError(f"{problem}; leave some out of given=, or ask for bounds, which take them")
    for test in np.flatnonzero(query.tests.soft)[:1]:
        problem = f"node {query.threshold(test).node!r} is selected by a sigmoid, so that the query has no pieces"
        raise NetworkError(f"{problem}; make its tests hard with net.with_gamma(None)")
    reachable = reachable_selections(query, budget)
    regions = []
    for i, table in enumerate(coefficients(query, (reachable.sides > 0).T)):
        sides, margins = reachable.sides[i], reachable.margins[i]
        interval = _interval(query, sides, margins) if len(query.inputs) == 1 else None
        terms = dict(zip(subsets(query.inputs), table, strict=True))
        conditions = tuple(_conditions(query, sides, margins, interval))
        inside = query.evidence(reachable.points[:, i])
        regions.append(Region(query.by_node(sides > 0), terms, conditions, inside, interval))
    return Pieces(query, regions, reachable.sides > 0, len(regions) + reachable.unknown)


def coefficients(query: SelectableQuery, weights: Floats | Bools) -> Floats:
    """C_I under selections (tests, selections): (selections, sets of inputs, states of the query).

    With numbers among the fixed evidence, they are densities.
    """
    count, corners = weights.shape[1], unit_vertices(len(query.inputs))
    repeated = np.repeat(np.asarray(weights, dtype=np.float64), corners.shape[1], axis=1)
    joint, exponent = query.joint(np.tile(corners, count), repeated)
    with np.errstate(over="ignore"):
        scale = np.exp(scale_of(query.fixed, 1))
    return moebius(np.ldexp(joint, exponent).reshape(len(joint), count, -1)).transpose(1, 2, 0) * scale


def _conditions(query: SelectableQuery, sides: Sides, margins: Floats, interval: Interval | None) -> list[Condition]:
    """The tests of a region that come out otherwise somewhere in the unit box, and follow from no other."""
    holding, rejects = sides[:, None] * margins, query.tests.rejects_ties(sides)
    open_tests = np.flatnonzero(query.tests.hard & (holding.min(axis=1) < -TIE))
    if interval is None:
        implied = _implied(holding[open_tests])
    else:  # those that are positive at both ends
        ends, (first, last) = np.array(interval[:2])[:, None], holding[open_tests].T
        implied = ((1 - ends) * first + ends * last > TIE).all(axis=0)
    open_tests = _distinct(open_tests[~implied], holding, rejects)
    conditions = []
    for test in open_tests.tolist():
        (node, table), plus, strict = query.threshold(test), bool(sides[test] > 0), bool(rejects[test])
        terms = dict(zip(subsets(query.inputs), moebius(holding[test]).tolist(), strict=True))
        conditions.append(Condition(node, query.name(test), plus, strict, terms, table))
    return conditions


def _implied(holding: Floats) -> Bools:
    """Which functions f are above a multiple a * g, a >= 0, of another at all vertices: g >= 0 implies f > 0."""
    f, g = holding[:, None], holding[None]  # (f, g, vertices)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = f / g
    least = np.where(g < 0, quotient, 0).max(axis=-1, initial=0)
    most = np.where(g > 0, quotient, np.inf).min(axis=-1, initial=np.inf)
    above = ((g != 0) | (f > TIE)).all(axis=-1)
    return np.asarray((above & (least < most - TIE)).any(axis=1))


def _distinct(tests: NDArray[np.intp], holding: Floats, strict: Bools) -> NDArray[np.intp]:
    """One of the tests that are the same inequality: a strict one, if there is any."""
    distinct: dict[bytes, int] = {}
    for test in sorted(tests.tolist(), key=lambda t: not strict[t]):
        same = (holding[test] / np.abs(holding[test]).max()).round(9) + 0.0  # not -0.0
        distinct.setdefault(same.tobytes(), test)
    return np.array(sorted(distinct.values()), dtype=np.intp)


def _interval(query: SelectableQuery, sides: Sides, margins: Floats) -> Interval:
    """The inputs at which all tests, linear under the region's own selection, come out as they do in the region."""
    hard = query.tests.hard
    first, last = (sides[hard] * margins[hard, end] for end in (0, 1))
    crossing = first * last < 0
    zeros, rising = first[crossing] / (first - last)[crossing], (last > first)[crossing]
    low, high = float(zeros[rising].max(initial=0.0)), float(zeros[~rising].min(initial=1.0))
    rejects = query.tests.rejects_ties(sides)[hard]
    closed = [not (rejects & (np.abs((1 - end) * first + end * last) <= TIE)).any() for end in (low, high)]
    return Interval(low, high, *closed)


def _selection_text(net: Model, selection: Mapping[str, Ruling]) -> str:
    """Which table rules at each testing node: "B: plus at A='true', minus at A='false'"."""
    shown = [f"{node}: {_sides(net, node, selection[node])}" for node in list(selection)[:6]]
    return "; ".join([*shown, *_others(len(selection) - 6)]) or "no testing node"


def _others(count: int) -> list[str]:
    return [f"and {count} more"] if count > 0 else []


def _sides(net: Model, node: str, ruling: Ruling) -> str:
    parents = [net.variable(p) for p in net.parents(node)]
    states: Sequence[tuple[int, ...]] = list(np.ndindex(ruling.shape))
    names = {u: ("plus" if ruling[u] else "minus") if ruling.dtype == bool else f"table {ruling[u]}" for u in states}
    if len(set(names.values())) == 1:
        return names[states[0]]
    shown = [f"{names[u]} at {describe(parents, u)}" for u in states[:8]]
    return ", ".join([*shown, *_others(len(states) - 8)])
