"""Arc consistency: the states that are left everywhere once some states are given.

A state is left as long as every family that has its variable holds a combination of states that are left, and that
known 0s do not rule out. What is ruled out in one family may rule out states in the next, up and down, until nothing
changes.

Testing nodes limit this. Their tables are selected by a part of the evidence alone, so a state that other evidence
rules out still counts there. A family rules out states of a parent only if every selection that the parent has a
say in knows of the family, too: then whatever the parent is part of holds that family.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT, Mux, NoisyOr

States = NDArray[np.int64]  # some states of a variable, in order
Possible = Mapping[str, tuple[int, ...]]


def consistent(
    net: Model, states: Possible, whole: Collection[str], given: Mapping[str, int], selections: Mapping[str, int]
) -> Possible:
    """The states that are left of `states`, parents first, where some are given; `whole` variables keep theirs.

    `selections` are those that each node takes part in. Where nothing is left of a variable, what is given is
    impossible. Any sum over states is 0 then, so one state is enough for every variable that no selection depends on.
    """
    fixed = frozenset(whole).difference(given)
    left = {name: np.array(possible) for name, possible in states.items()}
    families = deque(name for name in states if name in given)
    waiting = set(families)
    below = children(net, states)
    while families:
        name = families.popleft()
        waiting.discard(name)
        family = (*net.parents(name), name)
        for other, support in zip(family, supported(net, name, left), strict=True):
            if other in fixed or len(support) == len(left[other]) or selections[other] != selections[name]:
                continue
            if not len(support):
                return {n: s if n in fixed or selections[n] else (given.get(n, 0),) for n, s in states.items()}
            left[other] = support
            touched = [n for n in (other, *below[other]) if n != name and n not in waiting]
            waiting.update(touched)
            families.extend(touched)
    return {name: tuple(possible.tolist()) for name, possible in left.items()}


def children(net: Model, nodes: Iterable[str]) -> dict[str, list[str]]:
    """The children of each of some nodes, which hold all their ancestors."""
    below: dict[str, list[str]] = {name: [] for name in nodes}
    for name in below:
        for parent in net.parents(name):
            below[parent].append(name)
    return below


def supported(net: Model, name: str, left: Mapping[str, States], node_only: bool = False) -> list[States]:
    """The states of a family, the node last, that its CPT allows of those in `left`; parents only if they matter."""
    cpt, parents = net.cpt(name), net.parents(name)
    above, own = [left[p] for p in parents], left[name]
    match cpt:
        case CPT():
            return _in_table(cpt.table != 0, [*above, own], node_only)  # NaN, to be learned, is not 0
        case TestingCPT():
            return _in_table(np.any([table != 0 for table in cpt.tables], axis=0), [*above, own], node_only)
        case FunctionCPT():
            return _in_function(cpt, above, own)
        case NoisyOr():
            return _in_noisy_or(cpt, above, own)
        case Mux():
            return _in_mux(cpt, parents, above, own)
        case BaseDensity():
            return [*above, own]  # no density is 0 everywhere


def _in_table(support: NDArray[np.bool_], left: list[States], last_only: bool) -> list[States]:
    """The states of each axis that have an entry which is not 0 beside states that are left of the others."""
    if support.all():
        return left
    entries = support if support.shape == tuple(map(len, left)) else support[np.ix_(*left)]
    return [left[-1][entries.reshape(-1, len(left[-1])).any(axis=0)]] if last_only else _on_each_axis(entries, left)


def _on_each_axis(holds: NDArray[np.bool_], left: list[States]) -> list[States]:
    """The states of each axis for which something holds, whatever the states of the others."""
    axes = range(holds.ndim)
    return [states[holds.any(axis=tuple(a for a in axes if a != axis))] for axis, states in enumerate(left)]


def _in_function(cpt: FunctionCPT, above: list[States], own: States) -> list[States]:
    """A row is left if it has a state that is; all else follows from which rows the parents reach."""
    rows = cpt.rows != 0
    codes = cpt.codes[np.ix_(*above)] if above else cpt.codes
    holds = rows[:, own].any(axis=1)[codes]
    reached = np.unique(codes[holds])
    return [*_on_each_axis(holds, above), own[rows[np.ix_(reached, own)].any(axis=0)]]


def _in_noisy_or(cpt: NoisyOr, above: list[States], own: States) -> list[States]:
    """No effect: every cause is inhibited. An effect: some cause works, which may be the only one that can."""
    causes = [cause[states] for cause, states in zip(cpt.causes, above, strict=True)]
    inhibited = [cause < 1 for cause in causes]
    works = [cause > 0 for cause in causes]
    working = [i for i, states in enumerate(works) if states.any()]
    possible = cpt.leak > 0 or bool(working), cpt.leak < 1 and all(states.any() for states in inhibited)
    effects = [state for state in own.tolist() if possible[state]]
    if not effects:
        above = [states[:0] for states in above]
    elif effects == [1]:
        above = [states[holds] for states, holds in zip(above, inhibited, strict=True)]
    elif effects == [0] and not cpt.leak and len(working) == 1:
        above = [states[works[i]] if i == working[0] else states for i, states in enumerate(above)]
    return [*above, np.array(effects, dtype=np.int64)]


def _in_mux(cpt: Mux, parents: Sequence[str], above: list[States], own: States) -> list[States]:
    """The node has a state of an input that can be selected; an input that must be selected has the node's states."""
    possible = dict(zip(parents, above, strict=True))
    shared = {i: np.intersect1d(possible[cpt.inputs[i]], own) for i in possible[cpt.selector].tolist()}
    selecting = [i for i, states in shared.items() if len(states)]
    possible[cpt.selector] = np.array(selecting, dtype=np.int64)
    if len(selecting) == 1:
        possible[cpt.inputs[selecting[0]]] = shared[selecting[0]]
    reached = np.unique(np.concatenate([shared[i] for i in selecting])) if selecting else own[:0]
    return [*(possible[p] for p in parents), reached]
