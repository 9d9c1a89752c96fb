"""How testing nodes were decided, row by row: what `TAC.selected` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from tacit.base.floats import Floats, divide
from tacit.compiler.operations.select import codes, weigh
from tacit.compiler.program import Program
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.engines.results import Array, Decided
from tacit.evidence.column import Column
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.model import Model

M = TypeVar("M", bound=Model)


class Selected(NamedTuple):
    """How a testing node was decided, row by row.

    Both are (rows, parents' cardinalities...): P*(u) given the evidence that the node sees, NaN where the part of it
    that bears on the parents has probability zero, and the weight of `plus`: 1 or 0 for a test, between them for a
    sigmoid. Of more than two tables, the weight of each: (rows, parents' cardinalities..., tables).
    """

    posterior: Floats
    weight: Floats


def selected_rows(net: Model, program: Program, node: str, how: Decided, columns: Mapping[str, Column]) -> Selected:
    """Posterior and weight over all parent states, from a run's over those that are possible."""
    cpt = net.cpt(node)
    assert isinstance(cpt, TestingCPT)
    full = _over_all_states(net, program, node, how.marginal, columns, 0.0)
    n = full.sum(axis=tuple(range(full.ndim - 1)), keepdims=True)
    posterior = np.moveaxis(divide(full, n), -1, 0)
    if len(cpt.tables) > 2 and cpt.gamma is not None:
        return Selected(posterior, _sigmoid_weights(cpt, posterior))
    held = how.weight if len(cpt.tables) > 2 else how.weight[..., None, :]
    tests, limits = codes(cpt.test)[..., None], np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1)
    weights = []
    for j in range(held.shape[-2]):
        impossible, _ = weigh(NumpyArrays(), tests, np.zeros_like(full), n, limits[..., j, None], cpt.gamma)
        others = np.broadcast_to(impossible, full.shape)
        weights.append(np.moveaxis(_over_all_states(net, program, node, held[..., j, :], columns, others), -1, 0))
    if len(weights) == 1:
        return Selected(posterior, weights[0])
    held_in_turn = np.stack([np.ones_like(weights[0]), *weights, np.zeros_like(weights[0])], axis=-1)
    return Selected(posterior, held_in_turn[..., :-1] - held_in_turn[..., 1:])


def _sigmoid_weights(cpt: TestingCPT, posterior: Floats) -> Floats:
    """The weights of all tables, more than two, by sigmoids: (..., parents..., tables)."""
    assert cpt.gamma is not None
    known = ~np.isnan(posterior)[..., None]
    limits = np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1)
    sign = np.where(cpt.mirrored[..., None], -1.0, 1.0)
    x = np.where(known, cpt.gamma * sign * (posterior[..., None] - limits), 0.0)
    holding, failing = NumpyArrays().sigmoids(x, x)
    between = -np.expm1(np.diff(x, axis=-1)) * holding[..., :-1] * failing[..., 1:]  # as in `semantics`
    return np.concatenate([failing[..., :1], between, holding[..., -1:]], axis=-1)


def parent_posterior(net: Model, program: Program, node: str, how: Decided, columns: Mapping[str, Column]) -> Floats:
    """P*(u) of all states of a testing node's parents, NaN where the evidence is impossible: (states..., rows)."""
    full = _over_all_states(net, program, node, how.marginal, columns, 0.0)
    return divide(full, full.sum(axis=tuple(range(full.ndim - 1)), keepdims=True))


def no_rows(net: Model, node: str) -> Selected:
    """The decisions of a testing node for no rows."""
    cpt = net.cpt(node)
    assert isinstance(cpt, TestingCPT)
    nothing = np.empty((0, *cpt.test.shape))
    return Selected(nothing, np.empty((*nothing.shape, len(cpt.tables))) if len(cpt.tables) > 2 else nothing)


def join_rows(blocks: Sequence[Selected]) -> Selected:
    """Blocks of rows as one."""
    return Selected(*(np.concatenate(column) for column in zip(*blocks, strict=True)))


def selected_network(net: M, decided: Mapping[str, Selected], row: int = 0) -> M:
    """The Bayesian network that one row selects: every testing CPT replaced by the table that rules."""
    tables = {}
    for node, how in decided.items():
        cpt = net.cpt(node)
        assert isinstance(cpt, TestingCPT)
        weights = how.weight[row]
        if len(cpt.tables) == 2:
            weights = np.stack([_weight_of_minus(cpt, how, row), weights], axis=-1)
        terms = [weights[..., i, None] * table for i, table in enumerate(cpt.tables)]
        mixed = np.minimum(sum(terms[1:], start=terms[0]), 1.0)
        only = [(np.delete(weights, i, axis=-1) == 0).all(axis=-1, keepdims=True) for i in range(len(terms))]
        tables[node] = CPT(np.select(only, cpt.tables, mixed))
    return net.with_cpts(tables)


def _weight_of_minus(cpt: TestingCPT, how: Selected, row: int) -> Floats:
    """What is left of 1, with all its digits where the weight of `plus` is near 1."""
    if cpt.gamma is None:
        return np.asarray(1 - how.weight[row])
    posterior = np.nan_to_num(how.posterior[row])
    rest = weigh(NumpyArrays(), codes(cpt.test), posterior, np.ones(1), cpt.thresholds, cpt.gamma)[1]
    return np.asarray(np.where(how.weight[row] > 0.5, rest, 1 - how.weight[row]))


def _over_all_states(
    net: Model, program: Program, node: str, values: Array, columns: Mapping[str, Column], others: Floats | float
) -> Floats:
    """Values (axes of a marginal..., rows) as (parents' cardinalities..., rows); impossible states have `others`."""
    parents, place, hard = net.parents(node), program.selections[node], program.hard
    axes, rows = program.operations[place.marginal].axes, values.shape[-1]
    full = np.array(np.broadcast_to(others, (*(net.variable(p).card for p in parents), rows)), dtype=np.float64)
    order = [axes.index(a) for a in place.axes if a is not None]
    states = [np.broadcast_to(columns[p].states(), rows)[None] if p in hard else
              np.array(program.states[p])[:, None] for p in parents]  # fmt: skip
    # (possible states of each parent..., rows); of an observed parent, the one of each row
    index = [own.reshape([-1 if i == j else 1 for j in range(len(parents))] + [own.shape[-1]])
             for i, own in enumerate(states)]  # fmt: skip
    shape = [len(own) for own in states]
    full[(*index, np.arange(rows))] = values.transpose([*order, len(order)]).reshape([*shape, rows])
    return full
