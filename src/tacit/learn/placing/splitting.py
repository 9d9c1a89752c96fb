"""The gain of a test at a node while all other numbers stay, without compiling the network that has it.

The joint of a query is linear in the table of a node. One backward pass gives its derivatives by all tables, row by
row, and with them the loss for any tables of one node, selected row by row by any thresholds. A threshold goes where
the derivatives of the loss differ most between the rows on its two sides.

Axes: nodes of a tie n, query states s, parent states u, own states k, rows r (last).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, flat
from tacit.engines.arrays.by_row import ByRow
from tacit.evidence.column import Evidence, blocks
from tacit.learn.fitting.data import Data
from tacit.learn.fitting.losses import Loss, evaluate, evaluate_rows
from tacit.learn.fitting.objective import Penalty
from tacit.learn.fitting.optimizers import LBFGS, State
from tacit.learn.fitting.parameters import Parameters
from tacit.model.cpt import CPT, THRESHOLDS, TestingCPT
from tacit.query.asking.options import CompileOptions
from tacit.query.marginals import no_pause
from tacit.query.network import Network
from tacit.query.query import Query, compiled
from tacit.query.tac import TAC

SPLIT_STEPS = 30  # of training the tables of one node, everything else held
CUTS_TRIED = 31  # thresholds for a parent state
UNIFORM_SHARE = 0.3  # of uniform tables in the two tables at the start: next to 0 and 1, gradients vanish
MIN_VARIATION = 1e-6  # a posterior that varies less over the rows is the same in all of them
ROUNDING = 1e-12  # of a difference of equals, relative to them
MIN_JOINT = 1e-300  # below which it is 0


@dataclass(frozen=True)
class Slopes:
    """The joint (s, r) of some rows, in units of p*(evidence), and its derivatives by tables, each (s, u, k, r)."""

    joint: Floats
    by_table: Mapping[str, Floats]

    def matters(self, node: str) -> bool:
        """Whether the posterior of some row depends on the table of a node."""
        slope = self.by_table[node]
        shared = self.joint[:, None, None] * slope.sum(axis=0)
        return bool((np.abs(slope - shared) > ROUNDING * (np.abs(slope) + np.abs(shared))).any())


def with_every_state(tac: TAC) -> Query:
    """A query that has derivatives by every entry of every table."""
    return tac.companion(replace(tac.question, every_state=True, index=False))


def slopes(query: Query, data: Data, nodes: Sequence[str]) -> Slopes:
    """The joint of every row, and its derivatives by the tables of some nodes, of a query with every state."""
    engine = ByRow(query.program, *query.numbers())
    joints: list[Floats] = []
    by_table: dict[str, list[Floats]] = {node: [] for node in nodes}
    for _, block in blocks(data.columns, data.rows, engine.gradient_chunk):
        joint, derivatives, _ = engine.derivatives(block.columns, block.rows, no_pause)
        joints.append(joint.astype(np.float64))
        for node, several in by_table.items():
            shape = query.network.table(node).shape
            slope = derivatives.get((node, "table"), np.zeros((len(joint), *shape, block.rows)))
            several.append(slope.reshape(len(joint), -1, shape[-1], block.rows).astype(np.float64))
    whole = {node: np.concatenate(several, axis=-1) for node, several in by_table.items()}
    return Slopes(np.concatenate(joints, axis=-1), whole)


def parent_posterior(net: Network, data: Data, parents: tuple[str, ...], seen: tuple[str, ...]) -> Floats:
    """P*(u) of the parents of a node, given the evidence that a test there would see: (u, r)."""
    evidence = Evidence(data.rows, {name: data.columns[name] for name in seen})
    soft = [name for name in seen if name not in evidence.fully_observed]
    query = compiled(Query, net, parents, soft, evidence.fully_observed, CompileOptions(effort="low"))
    states = flat(query.posterior(evidence)).T
    return np.ascontiguousarray(np.broadcast_to(states, (len(states), data.rows)))


@dataclass(frozen=True)
class Rows:
    """The derivatives of some rows by the table of one node, or of tied ones: all that a split needs."""

    joint: Floats  # (s, r)
    slopes: Floats  # (n, s, u, k, r)
    posterior: Floats  # (n, u, r)
    targets: Floats
    weights: Floats
    loss: Loss

    @staticmethod
    def of(slopes: Slopes, nodes: Sequence[str], posteriors: Sequence[Floats], data: Data, loss: Loss) -> Rows:
        by_table = np.stack([slopes.by_table[node] for node in nodes])
        return Rows(slopes.joint, by_table, np.stack(posteriors), data.targets, data.weights, loss)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        weights = self.weights[rows] / self.weights[rows].sum()
        targets = np.ascontiguousarray(self.targets[:, rows])
        return Rows(self.joint[:, rows], self.slopes[..., rows], self.posterior[..., rows], targets, weights, self.loss)

    def moved(self, change: Floats) -> Floats:
        """The joint after a change of the tables (n, u, k, r or 1)."""
        change = np.broadcast_to(change, (*self.slopes.shape[:1], *self.slopes.shape[2:]))
        joint = self.joint + np.einsum("nsukr,nukr->sr", self.slopes, change)
        return np.asarray(np.maximum(joint, MIN_JOINT))  # of tied tables it is linear only nearby

    def losses(self, change: Floats) -> Floats:
        """The loss of every row after a change of the tables."""
        return evaluate_rows(self.loss, self.moved(change), self.targets, np.ones(len(self.weights)))


class Held:
    """The loss as a function of the parameters of one node, regular or testing, and its tie; all other numbers stay."""

    small = True  # few numbers: too little work for the threads of BLAS

    def __init__(self, parameters: Parameters, rows: Rows, table: Floats, prior: Floats | None) -> None:
        self.parameters, self.rows = parameters, rows
        self.table = table.reshape(-1, table.shape[-1])
        self.leader = parameters.places[0].key[0]
        self.penalty = Penalty(parameters, prior, len(rows.weights))

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The loss with the penalty, and its derivatives by the weights."""
        numbers, rows = self.parameters.numbers(weights), self.rows
        selection = self._selection(numbers, rows)
        loss, seeds = evaluate(rows.loss, rows.moved(selection.change(self.table)), rows.targets, rows.weights)
        by_entry = np.einsum("nsukr,sr->nukr", rows.slopes, seeds)
        by_part = {(self.leader, part): table for part, table in selection.by_part(by_entry).items()}
        by_number = self.parameters.by_number(by_part, {})
        loss += self.penalty.add(numbers, by_number)
        return loss, self.parameters.by_weight(numbers, by_number)

    def learned(self, start: Floats) -> State:
        """The state where the loss is lowest."""
        state = State(start)
        if self.parameters.count:
            LBFGS().advance(self, state, SPLIT_STEPS)
        return state

    def losses(self, weights: Floats, rows: Rows) -> Floats:
        """The loss of each of some rows."""
        return rows.losses(self._selection(self.parameters.numbers(weights), rows).change(self.table))

    def _selection(self, numbers: Floats, rows: Rows) -> Selection:
        cpt, learned = self.parameters.network.cpt(self.leader), self.parameters.tables(numbers, {self.leader})
        parts = cpt.parts() | {part: table for (_, part), table in learned.items()}
        gamma = cpt.gamma if isinstance(cpt, TestingCPT) else None
        return Selection(parts, gamma, rows.posterior, self.table.shape)


class Selection:
    """The tables of a node as rows select them."""

    def __init__(
        self, parts: Mapping[str, Floats], gamma: float | None, posterior: Floats, shape: tuple[int, ...]
    ) -> None:
        self._parts, self._gamma, self._shape = parts, gamma, shape
        self.tests = THRESHOLDS in parts
        if self.tests:
            self.tau = weight(posterior, parts[THRESHOLDS].reshape(-1, 1), gamma)[:, :, None]  # (n, u, 1, r)

    def _table(self, part: str) -> Floats:
        return self._parts[part].reshape(*self._shape, 1)

    def change(self, table: Floats) -> Floats:
        """By how much the selected tables differ from the present one: (n, u, k, r), or r = 1 if none is selected."""
        if not self.tests:
            return self._table("table")[None] - table[..., None]
        plus, minus = self._table("plus"), self._table("minus")
        return np.asarray(minus + self.tau * (plus - minus) - table[..., None])

    def by_part(self, by_entry: Floats) -> dict[str, Floats]:
        """Derivatives by the parts of the CPT, from those by the entries that were selected (n, u, k, r)."""
        if not self.tests:
            return {"table": by_entry.sum(axis=(0, 3))}
        above = (by_entry * self.tau).sum(axis=(0, 3))
        by_part = {"plus": above, "minus": by_entry.sum(axis=(0, 3)) - above}
        by_tau = (by_entry * (self._table("plus") - self._table("minus"))).sum(axis=2, keepdims=True)
        steep = (self._gamma or 0.0) * self.tau * (1 - self.tau)
        return by_part | {THRESHOLDS: -(by_tau * steep).sum(axis=(0, 2, 3))}


def weight(posterior: Floats, thresholds: Floats, gamma: float | None) -> Floats:
    """The weight of `plus` by a test, or by a sigmoid."""
    if gamma is None:
        return (posterior >= thresholds).astype(np.float64)
    return np.asarray(0.5 * (1 + np.tanh(gamma / 2 * (posterior - thresholds))))


def cuts(rows: Rows, table: Floats, gamma: float | None) -> Floats:
    """A threshold for every parent state: where the derivatives of the loss differ most between its sides.

    This is the score test for a break: the derivatives by a row of the table sum to 0 at its best, and if one row of
    the table serves all data they do so on either side of every threshold, but for noise, in units of which the sum is
    measured.
    """
    _, seeds = evaluate(rows.loss, rows.joint, rows.targets, rows.weights)
    gradients = np.einsum("nsukr,sr->nukr", rows.slopes, seeds)
    entries = table.reshape(-1, table.shape[-1])[..., None]
    # by the logarithms of the entries
    scores = entries * (gradients - (entries * gradients).sum(axis=2, keepdims=True))
    by_state = np.moveaxis(scores, 1, 0).swapaxes(2, 3).reshape(len(entries), -1, table.shape[-1])  # (u, n r, k)
    thresholds = [_cut(rows.posterior[:, u].ravel(), by_state[u], gamma) for u in range(len(entries))]
    return np.array(thresholds).reshape(table.shape[:-1])


def _cut(values: Floats, scores: Floats, gamma: float | None) -> float:
    tried = np.unique(np.quantile(values, (np.arange(CUTS_TRIED) + 0.5) / CUTS_TRIED))
    middle = (tried[1:] + tried[:-1]) / 2 if len(tried) > 1 else tried
    tau = weight(values, middle[:, None], gamma)
    side = tau - tau.mean(axis=1, keepdims=True)  # (cuts, rows)
    sums = side @ scores
    spread = np.einsum("cr,ra,rb->cab", side**2, scores, scores, optimize=True)
    ridge = 1e-9 * np.trace(spread, axis1=1, axis2=2)[:, None, None] + MIN_JOINT
    solved = np.linalg.solve(spread + ridge * np.eye(scores.shape[1]), sums[..., None])[..., 0]
    return float(np.clip(middle[np.argmax((sums * solved).sum(axis=1))], 1e-6, 1 - 1e-6))


@dataclass(frozen=True)
class Split:
    """The best tables of a node with a test, all other numbers held, and its best table without."""

    free: CPT
    tested: TestingCPT
    _held: tuple[tuple[Held, Floats], tuple[Held, Floats]]

    def gains(self, rows: Rows) -> Floats:
        """The gain of the test in the loss of each of some rows."""
        without, with_test = (held.losses(weights, rows) for held, weights in self._held)
        return np.asarray(without - with_test)


def split(free: Parameters, tested: Parameters, table: Floats, rows: Rows, priors: Sequence[Floats | None]) -> Split:
    """Learn the table of a node, then two tables and thresholds, all other numbers held at where the slopes were taken.

    `free` and `tested` are the learned numbers of the node alone, in networks in which it is regular and testing.
    """
    leader = tested.places[0].key[0] if tested.places else free.places[0].key[0]
    alone = Held(free, rows, table, priors[0])
    without = alone.learned(weights_of(free, {leader: CPT(table)}))
    best = free.fill(without.weights).cpt(leader)
    assert isinstance(best, CPT)
    moved = replace(rows, joint=rows.moved((best.table - table).reshape(1, *alone.table.shape, 1)))
    cpt = tested.network.cpt(leader)
    assert isinstance(cpt, TestingCPT)
    both = Held(tested, rows, table, priors[1])
    inside = (1 - UNIFORM_SHARE) * best.table + UNIFORM_SHARE / best.table.shape[-1]
    start = TestingCPT(inside, inside, cuts(moved, best.table, cpt.gamma))
    with_test = both.learned(weights_of(tested, {leader: start}))
    best_test = tested.fill(with_test.weights).cpt(leader)
    assert isinstance(best_test, TestingCPT)
    return Split(best, best_test, ((alone, without.weights), (both, with_test.weights)))


def weights_of(parameters: Parameters, cpts: Network | Mapping[str, CPT | TestingCPT]) -> Floats:
    """The weights that make the numbers of a network, or of some CPTs, those of one node of every tie at least."""
    numbers = np.empty(parameters.entries)
    for place in parameters.places:
        node, part = place.key
        cpt = cpts.cpt(node) if isinstance(cpts, Network) else cpts.get(node)
        if cpt is not None:
            numbers[place.span] = cpt.parts()[part].ravel()[place.index]
    return parameters.weights(numbers)
