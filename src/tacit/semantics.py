"""The meaning of a testing Bayesian network, executed literally (paper, "TBN Semantics").

Nodes are visited parents before children. A regular CPT is copied; a testing CPT is replaced by the table
that the posterior of its parents selects, computed by enumerating all states of the node's proper ancestors
with the evidence on them. In a network with general selection, all evidence takes part but that at or below testing
nodes which are no ancestors (Shen, Huang, Choi and Darwiche, ICML 2019, section 3). The network that results answers
the query with all the evidence. Everything else in this library is checked against this file, so it has no cleverness
and no speed. It is float64 as it stands: evidence less probable than about 1e-300 is beyond it, though not beyond the
engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.base.errors import EvidenceError, NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import large
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import scale_of, with_densities
from tacit.evidence.read import EvidenceLike, read
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.model import Model
from tacit.model.unrolling import step_of, steps_of

MAX_STATES = 2**20
MAX_VARIABLES = 64  # the most axes that a NumPy array has


@dataclass(frozen=True)
class SelectedNode:
    """How one testing node was decided.

    `posterior` (parents...) is P*(u); NaN where the ancestral evidence has probability zero. `weights`
    (parents..., tables) are those of all tables: 1 or 0 for a test, between them for a sigmoid.
    """

    posterior: Floats
    weights: Floats

    @property
    def weight(self) -> Floats:
        """Of two tables, the weight of `plus` (parents...); of more, `weights`."""
        return self.weights[..., 1] if self.weights.shape[-1] == 2 else self.weights


@dataclass(frozen=True)
class SelectedNetwork:
    """The Bayesian network that one row of evidence selects, and why."""

    network: Model
    nodes: Mapping[str, SelectedNode]


def select(net: Model, evidence: EvidenceLike | None = None) -> SelectedNetwork:
    """Select a table for every testing node from one row of evidence."""
    known = _read(net, evidence)
    if known.rows != 1:
        raise EvidenceError(f"select explains one row of evidence, got {known.rows} rows")
    return _select(net, known.likelihoods())


def joint(net: Model, query: str | Sequence[str], evidence: EvidenceLike | None = None) -> Floats:
    """p*(q) for every state of the query: an array (rows, states), or (rows, states of the first, ...) of several.

    >>> from tacit import examples
    >>> joint(examples.abc(), "B", {"A": 0.8, "C": [[0.6, 0.4]]}).round(6)
    array([[0.1042, 0.0738]])
    """
    joints, scale = _joints(net, query, evidence)
    return np.asarray(joints * np.exp(scale).reshape(-1, *[1] * (joints.ndim - 1)))


def posterior(net: Model, query: str | Sequence[str], evidence: EvidenceLike | None = None) -> Floats:
    """P*(q) for every state of the query: as `joint`; NaN where the evidence has probability zero."""
    joints, _ = _joints(net, query, evidence)
    total = joints.sum(axis=tuple(range(1, joints.ndim)), keepdims=True)
    result: Floats = np.divide(joints, total, out=np.full_like(joints, np.nan), where=total > 0)
    return result


def _joints(net: Model, query: str | Sequence[str], evidence: EvidenceLike | None) -> tuple[Floats, Floats]:
    """The joint of every row, (rows, states...), divided by exp(scale) (rows,), by which densities are."""
    names = (query,) if isinstance(query, str) else tuple(query)
    for name in names:
        if net.variable(name).continuous:  # an unknown name is an error here, too
            raise NetworkError(f"{name!r} is continuous: it has no states to enumerate; ask about its parents")
    known = _read(net, evidence, names)
    rows = [known.likelihoods(i) for i in range(known.rows)]
    joints = np.stack([_marginal(_select(net, row).network, {}, net.variables, names, row) for row in rows])
    return joints, scale_of(known.columns, known.rows)


def filtered(net: Model, name: str, evidence: EvidenceLike | None = None) -> Floats:
    """P*(x) of every step `name[t]`, each from the evidence of steps up to its own: an array (rows, steps, states).

    Evidence on variables without a step is known from the start.
    """
    known = _read(net, evidence)
    posteriors = []
    for own in steps_of(net, name):
        so_far = {n: column for n, column in known.columns.items() if (step_of(n) or 0) <= (step_of(own) or 0)}
        posteriors.append(posterior(net, own, Evidence(known.rows, so_far)))
    return np.stack(posteriors, axis=1)


def most_probable(net: Model, names: Sequence[str], evidence: EvidenceLike | None = None) -> Floats:
    """The largest p*(states of some variables), over all of their states, the others summed out: (rows,).

    With all variables, that of a most probable explanation.
    """
    joints = joint(net, names, _read(net, evidence))
    return np.asarray(joints.reshape(len(joints), -1).max(axis=1))


def information(net: Model, query: str, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
    """For every variable, by how much the entropy of the query is expected to drop if its state is observed: (rows,).

    In nats, and in the network that the present evidence selects. NaN where the state is observed already, and where
    the evidence has probability zero. Continuous variables are left out.
    """
    known = _read(net, evidence, [query])
    drops = {}
    for name in net.variables:
        if net.variable(name).continuous:
            continue
        pairs = posterior(net, (query, name) if name != query else (query,), known)
        both = pairs if name != query else pairs[:, :, None] * np.eye(pairs.shape[1])
        drop = _entropy(both.sum(axis=2)) + _entropy(both.sum(axis=1)) - _entropy(both.reshape(len(both), -1))
        drops[name] = np.where(known.columns[name].observed, np.nan, drop) if name in known.columns else drop
    return drops


def expected_values(net: Model, decision: str, evidence: EvidenceLike | None = None) -> Floats:
    """What all value nodes together are expected to be worth if a variable is set to each of its states.

    An array (rows, states of the decision). The evidence is what is known before the decision.
    """
    known, free = _read(net, evidence), net.cut([decision])
    own = free.variable(decision)
    expected = np.zeros((known.rows, own.card))
    for action in range(own.card):
        row = Evidence(known.rows, {**known.columns, decision: Column(own, np.array([action]))})
        for value in net.value_nodes.values():
            worth = posterior(free, value.parents, row) * value.table
            expected[:, action] += worth.reshape(known.rows, -1).sum(axis=1)
    return expected


def _entropy(distributions: Floats) -> Floats:
    logs = np.log(distributions, out=np.zeros_like(distributions), where=distributions != 0)
    return np.asarray(-(distributions * logs).sum(axis=1))


def _read(net: Model, evidence: EvidenceLike | None, queries: Sequence[str] = ()) -> Evidence:
    return with_densities(read(evidence, [net.variable(n) for n in net], queries=queries), net)


def _select(net: Model, likelihoods: Mapping[str, Floats]) -> SelectedNetwork:
    net.require_numbers()
    tables: dict[str, Floats] = {}  # those that are selected
    nodes: dict[str, SelectedNode] = {}
    for name in net.testing_nodes:  # ancestors first
        cpt = net.cpt(name)
        assert isinstance(cpt, TestingCPT)
        seen = {n: likelihoods[n] for n in _taking_part(net, name, likelihoods)}
        over = _with_ancestors(net, (*net.parents(name), *seen))
        marginal = _marginal(net, tables, over, net.parents(name), seen)
        total = marginal.sum()
        normalised = marginal / total if total > 0 else np.full_like(marginal, np.nan)
        nodes[name] = how = SelectedNode(normalised, _weights(cpt, marginal))
        tables[name] = _flatten(cpt, how.weights)
    return SelectedNetwork(net.with_cpts({name: CPT(tables[name]) for name in nodes}), nodes)


def _taking_part(net: Model, name: str, evidence: Iterable[str]) -> list[str]:
    """The evidence that takes part when the table of a testing node is selected."""
    above = net.ancestors(name)  # proper ancestors: neither the node's own evidence nor any below
    if net.selection == "ancestral":
        return [n for n in evidence if n in above]
    others = [n for n in net.testing_nodes if n not in above]  # the node itself is one of them
    hidden = {*others, *(n for other in others for n in net.descendants(other))}
    return [n for n in evidence if n not in hidden]


def _with_ancestors(net: Model, names: Iterable[str]) -> list[str]:
    closure = {n for name in names for n in (name, *net.ancestors(name))}
    return [n for n in net.variables if n in closure]


def _marginal(
    net: Model,
    selected: Mapping[str, Floats],
    over: Iterable[str],
    keep: tuple[str, ...],
    likelihoods: Mapping[str, Floats],
) -> Floats:
    """The joint probability of the states of `keep` and the evidence, by enumeration over `over`.

    What is observed of a continuous variable is a likelihood of its parents' joint states; it has no states of its own.
    """
    seen = [n for n in over if net.variable(n).continuous and n in likelihoods]
    names = [n for n in over if not net.variable(n).continuous]
    shape = tuple(net.variable(n).card for n in names)
    if math.prod(shape) > MAX_STATES or len(names) > MAX_VARIABLES:
        limits = f"(limits {MAX_STATES:,} and {MAX_VARIABLES}); compile the query instead"
        size = f"{large(math.prod(shape))} states of {len(names)} variables"
        raise TooLargeError(f"enumeration would visit {size} {limits}")
    axis = {n: i for i, n in enumerate(names)}
    product = np.ones(shape)
    for name in names:
        family = (*net.parents(name), name)
        table = selected[name] if name in selected else net.table(name)
        product = product * _spread(table, [axis[n] for n in family], len(names))
        if name in likelihoods:
            product = product * _spread(likelihoods[name], [axis[name]], len(names))
    for name in seen:
        parents = net.parents(name)
        table = likelihoods[name].reshape([net.variable(p).card for p in parents])
        product = product * _spread(table, [axis[p] for p in parents], len(names))
    kept: Floats = product.sum(axis=tuple(axis[n] for n in names if n not in keep))
    order = [n for n in names if n in keep]
    return kept.transpose([order.index(n) for n in keep])


def _spread(table: Floats, axes: list[int], ndim: int) -> Floats:
    """`table` with its axes moved to the places `axes` of an `ndim`-dimensional array."""
    order = np.argsort(axes)
    shape = [1] * ndim
    for i in order:
        shape[axes[i]] = table.shape[i]
    return table.transpose(order).reshape(shape)


def _weights(cpt: TestingCPT, marginal: Floats) -> Floats:
    """The weights of all tables for every parent state u, from p*(u): (parents..., tables)."""
    total, p = marginal.sum(), marginal[..., None]
    if cpt.gamma is None:
        limit = total * cpt.limits  # p*(u) against p*(.)T: no division, so exact ties stay exact
        holds = {">=": p >= limit, ">": p > limit, "<=": p <= limit, "<": p < limit}
        tests = np.select([cpt.test[..., None] == t for t in holds], list(holds.values()))
        return np.asarray(np.eye(len(cpt.tables))[tests.sum(axis=-1)])
    posterior = p / total if total > 0 else cpt.limits  # 0/0: weight 1/2
    sign = np.where(cpt.mirrored[..., None], -1.0, 1.0)
    x = -np.sort(-cpt.gamma * sign * (posterior - cpt.limits))  # falling: a test that holds at all holds before others
    holding, failing = _sigmoid(x), _sigmoid(-x)
    # sigmoid(a) - sigmoid(b) as a product, which keeps its digits where the two are close
    between = -np.expm1(np.diff(x)) * holding[..., :-1] * failing[..., 1:]
    return np.concatenate([failing[..., :1], between, holding[..., -1:]], axis=-1)


def _sigmoid(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _flatten(cpt: TestingCPT, weights: Floats) -> Floats:
    terms = [weights[..., i, None] * table for i, table in enumerate(cpt.tables)]
    mixed = np.minimum(sum(terms[1:], start=terms[0]), 1.0)  # rounding may exceed 1 by a digit
    only = [(np.delete(weights, i, axis=-1) == 0).all(axis=-1, keepdims=True) for i in range(len(terms))]
    return np.asarray(np.select(only, cpt.tables, mixed))
