"""Twin networks: beside what was, a second world in which some variables are set, and all that is random is shared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.text import listed
from tacit.model.cpt import CPT, AnyCPT, TestingCPT
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT, Mux, NoisyOr

M = TypeVar("M", bound=Model)
WOULD = ".would"


def twin(net: M, set_to: Sequence[str], wanted: Iterable[str] | None = None, suffix: str = WOULD) -> M:
    """A network of two worlds: the nodes of `net`, and counterparts of those that setting some variables may change.

    The counterpart of a variable that is set has no parents; each row says its state. Counterparts of what is below
    have the same tables, and counterparts as parents where there are any. `wanted` names the nodes whose counterparts
    are asked for (all, if left out): others have none, unless these need them. A counterpart is called `NAME.would`,
    or by another `suffix`. What is copied must be a function of its parents.
    """
    if taken := [name for name in net if f"{name}{suffix}" in net]:
        problem = f"is what the counterpart of {taken[0]!r} in a second world is called"
        raise NetworkError(f"node '{taken[0]}{suffix}' {problem}; give it another name")
    reached = below(net, set_to, net if wanted is None else wanted)
    for name in reached:
        _require_function(net, name, set_to)
    twins = net.with_selection(net.selection)
    called = {name: f"{name}{suffix}" for name in (*set_to, *reached)}
    for name, other in called.items():
        variable = net.variable(name)
        if name in set_to:
            equal = np.full(variable.card, 1 / variable.card)
            twins.add(other, (), variable.states, equal, bins=variable.bins)
        else:
            parents = [called.get(parent, parent) for parent in net.parents(name)]
            twins.add(other, parents, variable.states, _as_given(net.cpt(name), called), bins=variable.bins)
    return twins


def counterpart(twins: Model, name: str, suffix: str = WOULD) -> str:
    """What a variable is called in the second world: its own name where both worlds share it."""
    return f"{name}{suffix}" if f"{name}{suffix}" in twins else name


def is_function(cpt: AnyCPT) -> bool:
    """Whether the states of a node's parents decide its own."""
    if isinstance(cpt, NoisyOr):
        return all(np.isin(cause, (0.0, 1.0)).all() for cause in cpt.causes) and cpt.leak in (0.0, 1.0)
    if isinstance(cpt, CPT | FunctionCPT):
        return bool(np.isin(cpt.table if isinstance(cpt, CPT) else cpt.rows, (0.0, 1.0)).all())
    return isinstance(cpt, Mux)


def below(net: Model, set_to: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """What setting some variables may change, as far as the wanted ones depend on it; parents before children."""
    changed = set(set_to)
    for name in net:
        if not changed.isdisjoint(net.parents(name)):
            changed.add(name)
    needed = {*wanted}
    for name in reversed(net.variables):
        if name in needed and name in changed and name not in set_to:
            needed.update(net.parents(name))
    return [name for name in net if name in changed and name in needed and name not in set_to]


def _require_function(net: Model, name: str, set_to: Sequence[str]) -> None:
    """An error where chance decides a node together with its parents: how, its table does not say."""
    cpt = net.cpt(name)
    where = f"node {name!r} is below {listed(list(map(repr, set_to)))}"
    if isinstance(cpt, TestingCPT):
        problem = "testing: which of its tables would hold in the other world, no evidence selects"
        raise NetworkError(f"{where}, and it is {problem}; ask net.select(row) for the network of one row")
    if net.variable(name).continuous:
        raise NetworkError(f"{where}, and it has a density: what its number would have been, the density does not say; "
                           "ask for a discrete variable")  # fmt: skip
    if not is_function(cpt):
        problem = "its state is random given its parents: what it would have been depends on how chance works there"
        ways = f"net.mechanisms(would={list(set_to)}) assumes that, and tacit.causal.bounds holds whatever it is"
        raise NetworkError(f"{where}, and {problem}; {ways}")


def _as_given(cpt: AnyCPT, called: dict[str, str]) -> AnyCPT:
    """The CPT of a counterpart: the same numbers, under the names of its parents."""
    if isinstance(cpt, Mux):
        return Mux(called.get(cpt.selector, cpt.selector), [called.get(name, name) for name in cpt.inputs])
    if isinstance(cpt, NoisyOr):
        return NoisyOr(cpt.causes, cpt.leak)
    return CPT(cpt.table) if isinstance(cpt, CPT) else cpt
