"""A query whose selection is an input: what pieces, bounds and explanations are computed on.

Axes, batch last: points are (inputs, rows), the likelihoods of the inputs' first states; weights of plus and margins
are (tests, rows), one for each row of each testing CPT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.prune import relevant
from tacit.cpt import Floats, TestingCPT
from tacit.errors import EvidenceError, TooLargeError
from tacit.evidence import Column, Evidence, EvidenceLike, read
from tacit.floats import divide
from tacit.network import Network
from tacit.tac import TAC
from tacit.theory.companions import (
    Between,
    Companions,
    Frame,
    Group,
    Likelihoods,
    Slopes,
    common_power,
    three_parts,
    two_parts,
)
from tacit.variable import describe, similar

Bools = NDArray[np.bool_]
Sides = NDArray[np.int8]  # of tests: 1 plus, -1 minus, 0 open

MAX_INPUTS = 10  # a box has 2^inputs vertices
TIE = 1e-12  # a posterior this close to its threshold counts as a tie


@dataclass(frozen=True)
class Tests:
    """The rows of the testing CPTs that a query needs, one after the other; every array is (tests,).

    `sign` is -1 for `<=` and `<`, so that the margin sign * (P*(u) - threshold) is positive where plus rules; `closed`
    says whether plus rules at a tie. `gamma` is NaN for hard tests. A test is `idle` if both of its rows are equal.
    """

    nodes: tuple[str, ...]
    states: tuple[int, ...]
    thresholds: Floats
    sign: Floats
    closed: Bools
    gamma: Floats
    idle: Bools

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def hard(self) -> Bools:
        """The tests that have a border: neither sigmoids nor idle."""
        return np.isnan(self.gamma) & ~self.idle

    @cached_property
    def soft(self) -> Bools:
        """The tests that are sigmoids, and not idle."""
        return ~np.isnan(self.gamma) & ~self.idle

    def rejects_ties(self, sides: Sides) -> Bools:
        """Whether a tie puts a test on the other side: sides are (tests,) or (tests, rows)."""
        closed = self.closed.reshape(-1, *[1] * (sides.ndim - 1))
        return np.where(sides > 0, ~closed, closed)

    def weights(self, margin: Floats, which: NDArray[np.intp]) -> Floats:
        """The weights of plus of some tests from their margins (which..., rows); NaN, from 0/0, counts as a tie."""
        margin, shape = np.nan_to_num(margin), (*which.shape, 1)
        holds = np.where(self.closed[which].reshape(shape), margin >= 0, margin > 0)
        slope = self.gamma[which].reshape(shape)
        soft = _sigmoid(np.nan_to_num(slope) * margin)
        return np.where(self.idle[which].reshape(shape), 1.0, np.where(np.isnan(slope), holds, soft))


class Frozen:
    """A query, its inputs, and the evidence that stays fixed, with the selection as an input.

    With `posterior_only`, evidence and testing nodes that do not bear on P*(query) are left out: p* lacks their factor.
    """

    def __init__(
        self, tac: TAC, inputs: Sequence[str], fixed: Mapping[str, Column], posterior_only: bool = False
    ) -> None:
        self.frame = _frame(tac, inputs, fixed, posterior_only)
        self.network, self.query, self.inputs = tac.network, tac.query, self.frame.inputs
        self.groups, self.fixed = self.frame.groups, dict(fixed)
        self.tests = _tests(tac.network, self.frame.places)
        self._two, self._three = Companions(self.frame, two_parts), Companions(self.frame, three_parts)

    def with_fixed(self, fixed: Mapping[str, Column]) -> Frozen:
        """The same query with other values of the same fixed evidence; nothing is compiled again."""
        other = copy(self)
        other.fixed = dict(fixed)
        return other

    # evaluating -------------------------------------------------------------------------------------------

    def joint(self, points: Floats, weights: Floats) -> tuple[Floats, int]:
        """p*(q) for every state of the query, (states, rows), as numbers and a power of two common to all."""
        return self._two.joint(_exactly(points, weights), self.fixed)

    def joint_ends(self, setting: Between) -> tuple[Floats, Floats]:
        """Ends of p*(q), each (states, rows), but for a common factor."""
        return common_power(*(self._three.joint(end, self.fixed) for end in setting.ends()))

    def joint_slopes(self, setting: Between) -> Slopes:
        """Ends of p*(q) and of its derivatives."""
        return self._three.joint_slopes(setting, self.fixed)

    def marginal(self, group: Group, points: Floats, weights: Floats) -> Floats:
        """p*(u) of a group's parents, (parent states, rows), but for a common factor."""
        return self._two.marginal(group, _exactly(points, weights), self.fixed)[0]

    def marginal_ends(self, group: Group, setting: Between) -> tuple[Floats, Floats]:
        """Ends of p*(u), each (parent states, rows), but for a common factor."""
        return common_power(*(self._three.marginal(group, end, self.fixed) for end in setting.ends()))

    def marginal_slopes(self, group: Group, setting: Between) -> Slopes:
        """Ends of p*(u) and of its derivatives."""
        return self._three.marginal_slopes(group, setting, self.fixed)

    def margins(self, group: Group, marginal: Floats) -> Floats:
        """sign * (p*(u) - T p*) of a group's tests, (nodes, parent states, rows): multilinear in the inputs."""
        which = group.tests[..., None]
        return np.asarray(self.tests.sign[which] * (marginal - self.tests.thresholds[which] * marginal.sum(axis=0)))

    def select(self, points: Floats, sides: Sides | None = None) -> tuple[Floats, Floats]:
        """What evidence selects: weights of plus, and margins sign * (P*(u) - T), both (tests, rows).

        Tests whose side (tests, rows) is given, not 0, take it whatever their margin is.
        """
        weights = np.ones((len(self.tests), points.shape[1]))
        margins = np.zeros_like(weights)
        for group in self.groups:
            marginal = self.marginal(group, points, weights)
            margins[group.tests] = divide(self.margins(group, marginal), marginal.sum(axis=0))
            found = self.tests.weights(margins[group.tests], group.tests)
            if sides is not None:
                side = sides[group.tests]
                found = np.where(side == 0, found, side > 0)
            weights[group.tests] = found
        return weights, margins

    def posterior(self, points: Floats) -> Floats:
        """P*(q), (states, rows), with what the evidence selects; NaN where it is impossible."""
        return normalised(self.joint(points, self.select(points)[0])[0])

    def possible(self, tac: TAC, point: Floats) -> bool:
        """Whether evidence has positive probability, what does not bear on the query included."""
        fixed = {name: column.likelihoods().T for name, column in self.fixed.items()}
        moved = {name: np.array([[value, 1 - value]]) for name, value in zip(self.inputs, point, strict=True)}
        return bool(np.isfinite(tac.log_evidence({**fixed, **moved})).all())

    # naming -----------------------------------------------------------------------------------------------

    def by_node(self, values: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
        """Values of all tests, (tests,), as one array (parents' cardinalities...) for each testing node."""
        return {
            node: values[place].reshape([self.network.variable(p).card for p in self.network.parents(node)])
            for node, place in self.frame.places.items()
        }

    def name(self, test: int) -> str:
        """The parent state that a test is about, by labels: "A='yes', B='lo'"."""
        parents = [self.network.variable(p) for p in self.network.parents(self.tests.nodes[test])]
        return describe(parents, [int(i) for i in np.unravel_index(self.tests.states[test], [p.card for p in parents])])

    def evidence(self, point: Floats) -> dict[str, float]:
        """A point by the names of the inputs."""
        return dict(zip(self.inputs, point.tolist(), strict=True))


def normalised(joint: Floats) -> Floats:
    """A joint (states, rows) as posteriors; NaN where the evidence has probability zero."""
    return divide(joint, joint.sum(axis=0))


# names and evidence from outside ---------------------------------------------------------------------------


def freeze(tac: TAC, inputs: Iterable[str] | None, given: EvidenceLike | None, posterior_only: bool = False) -> Frozen:
    """The frozen query of a TAC: `inputs` (if None, all that can be) and one row of evidence that is `given`."""
    known = read_given(tac, given)
    if known.rows != 1:
        raise EvidenceError(f"given fixes one row of evidence, got {known.rows} rows")
    return Frozen(tac, checked_inputs(tac, inputs, known.columns), known.columns, posterior_only)


def read_given(tac: TAC, given: EvidenceLike | None) -> Evidence:
    """Evidence as a TAC reads it; what it was compiled to have in every row must be there."""
    known = read(given, [tac.network.variable(n) for n in tac.network], tac.evidence)
    for name in tac.hard:
        if name not in known.columns:
            raise EvidenceError(f"there is no evidence on {name!r}, which the query needs in every row; give its state")
        known.columns[name].states()  # an error where it is not certain
    return known


def checked_inputs(tac: TAC, inputs: Iterable[str] | None, fixed: Mapping[str, Column]) -> tuple[str, ...]:
    """The names of binary evidence variables that nothing fixes; if None, all of them."""
    if isinstance(inputs, str):
        raise EvidenceError(f"inputs must be a sequence of names, e.g. [{inputs!r}]")
    if inputs is None:
        free = [n for n in tac.evidence if n not in fixed and n not in tac.hard]
        return _few(tuple(n for n in free if tac.network.variable(n).card == 2))
    names = tuple(dict.fromkeys(inputs))
    for name in names:
        if name not in tac.evidence:
            raise EvidenceError(
                f"{name!r} is not an evidence variable of the query; expected some of {list(tac.evidence)}"
                f"{similar(name, tac.evidence)}"
            )
        if name in tac.hard:
            raise EvidenceError(f"{name!r} takes hard evidence only (hard=); name it in evidence= to make it an input")
        if name in fixed:
            raise EvidenceError(f"{name!r} is an input, but its evidence is given as well; leave one of them out")
        card = tac.network.variable(name).card
        if card != 2:
            raise EvidenceError(
                f"{name!r} has {card} states, but an input is the likelihood of a binary variable's first state; "
                "give its evidence instead (given=)"
            )
    return _few(names)


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > MAX_INPUTS:
        raise TooLargeError(
            f"{len(names)} inputs make boxes of {2 ** len(names):,} vertices (limit {MAX_INPUTS} inputs); "
            "fix the evidence on some of them"
        )
    return names


# what a query needs ----------------------------------------------------------------------------------------


def _frame(tac: TAC, inputs: Sequence[str], fixed: Mapping[str, Column], posterior_only: bool) -> Frame:
    net = tac.network
    hard = [n for n, column in fixed.items() if column.certain]
    nodes = relevant(net, [tac.query, *inputs, *fixed])
    bearing = set(nodes)
    if posterior_only:
        bearing = _connected(net, nodes, tac.query, hard)
        nodes = relevant(net, [tac.query, *(n for n in nodes if n in bearing and (n in inputs or n in fixed))])
    net.require_numbers(nodes)
    return Frame(
        network=net,
        query=tac.query,
        nodes=nodes,
        inputs=tuple(inputs),
        soft=tuple(n for n in fixed if n not in hard),
        hard=tuple(hard),
        bearing=frozenset(bearing),
        groups=_groups(net, nodes),
    )


def _connected(net: Network, nodes: Iterable[str], query: str, hard: Sequence[str]) -> set[str]:
    """The variables that the query depends on: those it reaches in the moral graph, but not through certain ones."""
    neighbours: dict[str, set[str]] = {}
    for name in nodes:
        family = {name, *net.parents(name)}
        for member in family:
            neighbours.setdefault(member, set()).update(family)
    reached, stack = {query}, [query]
    while stack:
        name = stack.pop()
        if name == query or name not in hard:
            new = neighbours[name] - reached
            reached |= new
            stack.extend(new)
    return reached


def _groups(net: Network, nodes: Iterable[str]) -> tuple[Group, ...]:
    together: dict[tuple[str, ...], list[str]] = {}
    places, start = {}, 0
    for node in nodes:
        cpt = net.cpt(node)
        if isinstance(cpt, TestingCPT):
            together.setdefault(net.parents(node), []).append(node)
            places[node] = np.arange(start, start + cpt.thresholds.size)
            start += cpt.thresholds.size
    return tuple(Group(tuple(alike), np.stack([places[n] for n in alike])) for alike in together.values())


def _tests(net: Network, places: Mapping[str, NDArray[np.intp]]) -> Tests:
    order = sorted(places, key=lambda node: int(places[node][0]))
    cpts = {node: cpt for node in order if isinstance(cpt := net.cpt(node), TestingCPT)}
    each = [(node, cpt, u) for node, cpt in cpts.items() for u in range(cpt.thresholds.size)]
    operators = np.array([cpt.test.flat[u] for _, cpt, u in each], dtype="<U2")
    return Tests(
        nodes=tuple(node for node, _, _ in each),
        states=tuple(u for _, _, u in each),
        thresholds=np.array([cpt.thresholds.flat[u] for _, cpt, u in each]),
        sign=np.where(np.isin(operators, (">=", ">")), 1.0, -1.0),
        closed=np.isin(operators, (">=", "<=")),
        gamma=np.array([np.nan if cpt.gamma is None else cpt.gamma for _, cpt, _ in each]),
        idle=np.array([(cpt.plus == cpt.minus).all(axis=-1).flat[u] for _, cpt, u in each], dtype=bool),
    )


def _exactly(points: Floats, weights: Floats) -> Likelihoods:
    return Likelihoods(points, 1 - points, weights, 1 - weights)


def _sigmoid(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1.0, small) / (1.0 + small)
