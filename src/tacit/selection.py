"""How testing nodes were decided, row by row: what `TAC.selected` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tacit.compiler.factors import parts
from tacit.compiler.program import Program
from tacit.cpt import CPT, Floats, TestingCPT
from tacit.engines.numpy_steps import Array, weigh
from tacit.evidence import Column
from tacit.network import Network


class Selected(NamedTuple):
    """How a testing node was decided, row by row.

    Both are (rows, parents' cardinalities...): P*(u) given the evidence on the node's ancestors, NaN where that
    has probability zero, and the weight of `plus`: 1 or 0 for a test, between them for a sigmoid.
    """

    posterior: Floats
    weight: Floats


def selected_rows(
    net: Network, program: Program, node: str, marginal: Array, columns: Mapping[str, Column]
) -> Selected:
    """Posterior and weight over all parent states, from a marginal over those that are possible."""
    cpt = net.cpt(node)
    assert isinstance(cpt, TestingCPT)
    full = _over_all_states(net, program, node, marginal, columns)
    n = full.sum(axis=tuple(range(full.ndim - 1)), keepdims=True)
    weight = weigh(full, n, cpt.thresholds[..., None], parts(cpt)["test"][..., None], cpt.gamma)
    posterior = np.divide(full, n, out=np.full_like(full, np.nan), where=n > 0)
    return Selected(np.moveaxis(posterior, -1, 0), np.moveaxis(np.broadcast_to(weight, full.shape), -1, 0))


def join_rows(blocks: Sequence[Selected]) -> Selected:
    """Blocks of rows as one."""
    return Selected(*(np.concatenate(column) for column in zip(*blocks, strict=True)))


def selected_network(net: Network, decided: Mapping[str, Selected], row: int = 0) -> Network:
    """The Bayesian network that one row selects: every testing CPT replaced by the table that rules."""
    tables = {}
    for node, how in decided.items():
        cpt = net.cpt(node)
        assert isinstance(cpt, TestingCPT)
        tau = how.weight[row][..., None]
        mixed = tau * cpt.plus + (1 - tau) * cpt.minus
        tables[node] = CPT(np.where(tau == 1, cpt.plus, np.where(tau == 0, cpt.minus, mixed)))
    return net.with_cpts(tables)


def _over_all_states(
    net: Network, program: Program, node: str, marginal: Array, columns: Mapping[str, Column]
) -> Floats:
    """A marginal (axes..., rows) as (parents' cardinalities..., rows), 0 at states that cannot be."""
    parents, place, hard = net.parents(node), program.selections[node], program.hard
    axes, rows = program.operations[place.marginal].axes, marginal.shape[-1]
    order = [axes.index(a) for a in place.axes if a is not None]
    states = [(0,) if p in hard else program.states[p] for p in parents]
    full = np.zeros((*(1 if p in hard else net.variable(p).card for p in parents), rows))
    full[np.ix_(*states, range(rows))] = marginal.transpose([*order, len(order)]).reshape([*map(len, states), rows])
    for i, parent in enumerate(parents):
        if parent in hard:
            observed = columns[parent].likelihoods()
            shape = [1] * len(parents)
            shape[i] = len(observed)
            full = full * observed.reshape(*shape, -1)
    return full
