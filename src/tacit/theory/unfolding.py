"""Networks in which every test chooses between two tables, and says the same of all else.

A testing node X with k tables becomes k - 1 testing nodes, one for each threshold, which have X's parents and tell for
sure whether their test holds, and X itself, a regular node below all of these and its parents. Where tests are mixed by
sigmoids, the testing nodes are independent of each other, and table j and those before it share what is left when
table j's own test holds: with e = exp(-gamma |T_(j+1) - T_j|), the row of X is F_(k-1), where F_0 = t_0, and F_j is
(1 - e) t_j + e F_(j-1) if test j holds, else F_(j-1). In the mean, table i then weighs s_i - s_(i+1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import fresh_name, large
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.model import Model
from tacit.model.rules import MAX_DENSE

HOLDS, FAILS = (1.0, 0.0), (0.0, 1.0)


class Threshold(NamedTuple):
    """A test of an unfolded network in the network itself: a testing node, and its table from which the test holds."""

    node: str
    table: int | None  # None: there are two, plus and minus


def unfold(net: Model, nodes: Iterable[str]) -> tuple[Model, dict[str, Threshold]]:
    """A network in which no node, of some, has more than two tables, and what each of its testing nodes stands for."""
    thresholds = {node: Threshold(node, None) for node in net.testing_nodes}
    cpts = {node: cpt for node in nodes if isinstance(cpt := net.cpt(node), TestingCPT)}
    several = {node: cpt for node, cpt in cpts.items() if len(cpt.tables) > 2}
    net.require_numbers(several)
    if not several:
        return net, thresholds
    unfolded, taken = Model(net.name, net.selection), set(net.variables)
    for name in net.variables:
        parents, cpt = net.parents(name), net.cpt(name)
        if name in several:
            del thresholds[name]
            tests = []
            for j, test in enumerate(_tests(several[name]), start=1):
                tests.append(fresh_name(f"{name}|{j}", taken))
                taken.add(tests[-1])
                unfolded.add(tests[-1], parents, cpt=test)
                thresholds[tests[-1]] = Threshold(name, j)
            parents, cpt = (*parents, *tests), CPT(_rows(name, several[name]))
        if columns := net.variable(name).columns:
            unfolded.add(columns, parents, cpt=cpt)
        else:
            unfolded.add(name, parents, net.states(name), cpt, bins=net.bins(name))
    return unfolded, thresholds


def _tests(cpt: TestingCPT) -> list[TestingCPT]:
    """For each threshold, in the order in which tests come to hold, a node that is true where its test holds.

    A test between rows that are equal does not matter; if all tests are hard, it counts as one that fails.
    """
    limits = np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1)
    cpts = []
    for j in range(limits.shape[-1]):
        idle = (cpt.tables[j] == cpt.tables[j + 1]).all(axis=-1) & (cpt.gamma is None)
        plus = np.where(idle[..., None], FAILS, HOLDS)
        cpts.append(TestingCPT(plus, np.broadcast_to(FAILS, plus.shape), limits[..., j], cpt.test, cpt.gamma))
    return cpts


def _rows(name: str, cpt: TestingCPT) -> Floats:
    """The table of a node below its parents and its tests, which hold in their first states."""
    count = len(cpt.tables) - 1
    if cpt.tables[0].size * 2**count > MAX_DENSE:
        entries = f"{large(cpt.tables[0].size * 2**count)} rows' entries (limit {MAX_DENSE:,})"
        outcomes = f"all outcomes of its tests together {entries}"
        raise TooLargeError(f"node {name!r} has {len(cpt.tables)} tables, and {outcomes}")
    limits = np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1)
    x = np.full(np.diff(limits).shape, np.inf) if cpt.gamma is None else cpt.gamma * np.abs(np.diff(limits))
    near, rest = np.exp(-x), -np.expm1(-x)
    table = cpt.tables[0]  # (parents..., tests so far..., own)
    for j in range(count):
        own = _with_axes(cpt.tables[j + 1], j)
        if j + 1 < count:
            own = _with_axes(rest[..., j, None], j) * own + _with_axes(near[..., j, None], j) * table
        table = np.stack(np.broadcast_arrays(own, table), axis=-2)
    return np.minimum(table, 1.0)


def _with_axes(table: Floats, count: int) -> Floats:
    """With so many axes of length 1 before the last one."""
    return table.reshape(*table.shape[:-1], *[1] * count, table.shape[-1])
