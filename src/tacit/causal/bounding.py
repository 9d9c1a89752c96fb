"""Bounds of the probabilities of causation: what they can be, whatever the mechanisms behind the tables are.

A probability of causation is linear in how probable each response function of one random node is, and the tables are
linear constraints on these: of one random node, a linear program has the exact bounds. Of several, the probability is
linear in each of them, and linear programs for one after the other lead to mechanisms that nearly attain the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import shown
from tacit.causal.causal_bounds import KINDS, CausalBounds, Interval
from tacit.causal.causation import ELSE, both, necessity, sufficiency, three_worlds
from tacit.causal.events import Causation, with_columns
from tacit.causal.experiment import with_experiment
from tacit.causal.linear_program import least
from tacit.evidence.column import Evidence, take
from tacit.evidence.read import EvidenceLike
from tacit.model.mechanisms import RESPONSE, Node, with_mechanisms
from tacit.model.rules import FunctionCPT
from tacit.model.twin import WOULD, below, is_function
from tacit.query.answers.answer import quietly, warn_impossible
from tacit.query.asking.options import CompileOptions
from tacit.query.network import Network
from tacit.query.query import compiled
from tacit.query.tac import TAC, compile

ROUNDS = 50  # of linear programs for one node after the other
GAIN = 1e-10  # of a probability, below which a round has come to its end


def bounds(
    net: Network,
    cause: Any,
    effect: Any,
    rows: EvidenceLike | None = None,
    experiment: Sequence[Any] | None = None,
    restarts: int = 8,
    seed: int = 0,
) -> CausalBounds:
    """The probabilities of causation, over all mechanisms that agree with the tables.

    Exact where one node that X may change is random, by linear programs. With several, linear programs for one after
    the other, from `restarts` random starts: inner bounds.

    Parameters
    ----------
    net
        The network; no node has to be a function of its parents.
    cause, effect, rows
        Those of `necessity`.
    experiment
        P(Y = y | do(X = x)) and P(Y = y | do(X = x')) as an experiment found them, numbers or (rows,). X and Y may then
        have common causes that are not in the network; it only says how X and Y are distributed together.
    restarts, seed
        Random starts where several nodes are random.

    >>> import tacit
    >>> net = tacit.examples.kidney_stones()
    >>> cause, effect = ("treatment", "A", "B"), ("recovery", "yes")
    >>> bounds = tacit.causal.bounds(net, cause, effect, {"size": "small"})
    >>> bounds
    What the probabilities of causation can be
                              0
    necessity    0.069 to 0.143
    sufficiency  0.483 to 1.000
    both         0.064 to 0.133
    >>> bounds.both.low.round(3), bounds.exact
    (array([0.064]), True)
    """
    question = Causation.of(net, cause, effect)
    known = question.others(net, rows)
    if experiment is not None:
        return with_experiment(net, question, known, experiment)
    reached = below(net, [question.x], [question.y])
    random = [name for name in reached if not is_function(net.cpt(name))]
    if not isinstance(restarts, int) or restarts < 1:
        raise TacitError(f"restarts is {shown(restarts)}, expected a number of random starts, at least 1")
    if not known.rows:
        return CausalBounds.of([Interval(np.empty(0), np.empty(0))] * len(KINDS), exact=len(random) <= 1)
    if not random:
        exact = (ask(net, cause, effect, known) for ask in (necessity, sufficiency, both))
        return CausalBounds.of((Interval(own, own) for own in exact), exact=True)
    program = _Responses(net, question, known, random)
    if len(random) == 1:
        return CausalBounds.of((program.extremes(kind, random[0]) for kind in KINDS), exact=True)
    rng = np.random.default_rng(seed)
    starts = [program.random(rng) for _ in range(restarts)]
    return CausalBounds.of((program.search(kind, starts) for kind in KINDS), exact=False)


class _Responses:
    """Probabilities of causation as functions of how probable the response functions of some random nodes are."""

    def __init__(self, net: Network, question: Causation, known: Evidence, random: Sequence[str]) -> None:
        self.question, self.known, self.nodes = question, known, random
        functional = with_mechanisms(net, "response", [question.x], random)
        self.network = functional.with_cpts({own: _equal(functional, own) for own in map(_response, random)})
        self.tables = net
        self.constraints = {name: _constraints(net, functional, name) for name in random}
        self._queries: dict[tuple[str, str], tuple[TAC, Evidence, float]] = {}
        self.log_weights = {kind: self._log_weight(kind) for kind in KINDS}

    def extremes(self, kind: str, node: str) -> Interval:
        """The least and the largest value, row by row, where one node is random."""
        gains, rows = np.unique(self._gains(kind, node, {}), axis=0, return_inverse=True)
        low, high = (np.array([self._best(row, node, sign)[0] for row in gains]) for sign in (1.0, -1.0))
        return self._interval(kind, low[rows], -high[rows])

    def search(self, kind: str, starts: Sequence[dict[str, Floats]]) -> Interval:
        """The least and the largest value that is found, row by row, going from node to node."""
        ends = np.empty((2, self.known.rows))
        for row in range(self.known.rows):
            for end, sign in enumerate((1.0, -1.0)):
                ends[end, row] = min(self._descend(kind, start, row, sign) for start in starts) * sign
        return self._interval(kind, *ends)

    def random(self, rng: np.random.Generator) -> dict[str, Floats]:
        """Mechanisms of all nodes that agree with the tables: corners in random directions."""
        corners = {}
        for name in self.nodes:
            p = self.network.table(_response(name))
            corners[name] = self._best(rng.standard_normal(p.size), name, 1.0)[1].reshape(p.shape)
        return corners

    def _descend(self, kind: str, start: dict[str, Floats], row: int, sign: float) -> float:
        responses, value = dict(start), np.inf
        for _ in range(ROUNDS):
            before = value
            for node in self.nodes:
                gains = self._gains(kind, node, responses, slice(row, row + 1))[0]
                value, best = self._best(gains, node, sign)
                responses[node] = best.reshape(responses[node].shape)
            if before - value < GAIN:
                break
        return value

    def _best(self, gains: Floats, node: str, sign: float) -> tuple[float, Floats]:
        """The least of `sign` times what the responses of a node come to, and those that attain it."""
        best = least(sign * gains, *self.constraints[node])
        if best is None:
            raise TacitError(f"the linear program for the mechanism of {node!r} has no answer")
        return float(sign * gains @ best), best

    def _gains(self, kind: str, node: str, responses: dict[str, Floats], rows: slice = slice(None)) -> Floats:
        """The probability of the event under each response function, over that of what is known.

        A row has one number for each state of the response's parents and each response.
        """
        tac, evidence, scale = self._query(kind, node)
        cpts = {_response(name): own for name, own in responses.items() if name != node}
        own, some = tac.with_network(tac.network.with_cpts(cpts)) if cpts else tac, _some(evidence, rows)
        with quietly():
            posterior = np.nan_to_num(own.posterior(some))  # NaN where no response leads to the event
        known = self.log_weights[kind][rows]
        share = np.exp(own.log_evidence(some) - np.where(np.isneginf(known), 0.0, known))
        count = posterior.shape[-1]  # of responses, all of which are equally probable in the network
        return np.asarray(scale * share[:, None] * posterior.reshape(len(posterior), -1) * count)

    def _query(self, kind: str, node: str) -> tuple[TAC, Evidence, float]:
        """The query for the response of a node together with the event, its rows, and a scale."""
        if (kind, node) not in self._queries:
            worlds, _, columns = three_worlds(self.network, self.question)
            event = self._event(kind, columns)
            names = [*self.known.columns, *(name for name in event if name not in columns)]
            options = CompileOptions(do=tuple(columns))
            response = _response(node)
            tac = compiled(TAC, worlds, [*worlds.parents(response), response], names, (), options)
            scale = self.question.effect.scale
            self._queries[kind, node] = tac, with_columns(self.known, event), scale
        return self._queries[kind, node]

    def _event(self, kind: str, columns: dict[str, Any]) -> dict[str, Any]:
        """The event of a probability of causation, in all worlds."""
        x, y, effect = self.question.x, self.question.y, self.question.effect
        would, otherwise = f"{y}{WOULD}", f"{y}{ELSE}"
        if kind == "both":
            return {**columns, would: effect.column(would), otherwise: effect.absent(otherwise)}
        if kind == "necessity":
            return {
                **columns,
                x: self.question.present.column(),
                y: effect.column(),
                otherwise: effect.absent(otherwise),
            }
        return {**columns, x: self.question.instead.column(), y: effect.absent(), would: effect.column(would)}

    def _log_weight(self, kind: str) -> Floats:
        """The logarithm of how probable what is known is: the tables decide it, whatever the mechanisms are."""
        event = {} if kind == "both" else self._event(kind, {})
        seen = with_columns(self.known, {name: event[name] for name in (self.question.x, self.question.y) if event})
        tac = compile(self.tables, None, list(seen.columns))
        scale = self.question.effect.scale if kind == "sufficiency" else 1.0
        return np.asarray(tac.log_evidence(seen) + np.log(scale))

    def _interval(self, kind: str, low: Floats, high: Floats) -> Interval:
        impossible = np.isneginf(self.log_weights[kind])
        warn_impossible(impossible, f"their bounds of {kind} are NaN")
        return Interval(*(np.where(impossible, np.nan, np.clip(end, 0.0, 1.0)) for end in (low, high)))


def _some(evidence: Evidence, rows: slice) -> Evidence:
    return Evidence(len(range(evidence.rows)[rows]), take(evidence.columns, rows))


def _response(name: str) -> str:
    return f"{name}{RESPONSE}"


def _equal(net: Network, name: str) -> Floats:
    """A table in which all states are equally probable."""
    shape = net.table(name).shape
    return np.full(shape, 1 / shape[-1])


def _constraints(net: Network, functional: Network, name: str) -> tuple[Any, Floats]:
    """What a table says of the response functions: those that give a state together have its probability.

    It does so for each state of the response's parents by itself.
    """
    rule = functional.cpt(name)
    assert isinstance(rule, FunctionCPT)
    node = Node.of(net, name, functional.parents(name))
    codes = rule.codes.reshape(-1, rule.codes.shape[-1])  # (parents' states, responses)
    states, count = net.variable(name).card, codes.shape[1]
    lines = codes + states * np.arange(len(codes))[:, None]
    places = np.broadcast_to(np.arange(count), codes.shape)
    shape = (states * len(codes), count)
    matrix = csr_array((np.ones(codes.size), (lines.ravel(), places.ravel())), shape=shape)
    return block_diag([matrix] * len(node.rows)), node.rows.ravel()
