"""The bridge to pyAgrum."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError, TooLargeError
from tacit.base.text import large
from tacit.io.bridges.peers import PeerNode, assemble, check_classical, is_safe, require
from tacit.model.elements.variable import Label, Variable
from tacit.model.rules import MAX_DENSE
from tacit.query.network import Network


def from_pyagrum(bn: Any) -> Network:
    """The network of a `pyagrum.BayesNet`.

    Names, the order of parents and the order of states are pyAgrum's. The labels of range and integer variables are
    integers, those of numerical variables floats, those of labelized variables strings. Discretized variables are
    interval variables, with their ticks as `bins`; the outer edges of those that are empirical, and so take any
    number, are infinite. Noisy-ors and other aggregators become dense tables.

    In evidence, a number is a *label* here and a *position* in pyAgrum, and likelihoods are rows: what pyAgrum takes
    as `{"A": [0.6, 0.4]}` is `{"A": [[0.6, 0.4]]}`.

    >>> import pyagrum, tacit
    >>> bn = pyagrum.BayesNet("rain")
    >>> for name in "rain", "wet":
    ...     _ = bn.add(pyagrum.LabelizedVariable(name, "", ["yes", "no"]))
    >>> bn.addArc("rain", "wet")
    >>> _ = bn.cpt("rain").fillWith([0.2, 0.8])
    >>> _ = bn.cpt("wet").fillWith([0.9, 0.1, 0.1, 0.9])
    >>> tacit.from_pyagrum(bn).posterior("rain", {"wet": "yes"}).round(4)
    array([[0.6923, 0.3077]])
    """
    gum = require("pyagrum")
    if not isinstance(bn, gum.BayesNet):
        raise NetworkError(f"expected a pyagrum.BayesNet, got {type(bn).__name__}")
    name = bn.property("name") if "name" in bn.properties() else None
    return assemble(name, {bn.variable(i).name(): _node(gum, bn, i) for i in sorted(bn.nodes())})


def _node(gum: Any, bn: Any, node: int) -> PeerNode:
    cpt, variable = bn.cpt(node), bn.variable(node)
    if cpt.domainSize() > MAX_DENSE:
        problem = f"node {variable.name()!r}: its table has {large(cpt.domainSize())} entries (limit {MAX_DENSE:,})"
        raise TooLargeError(f"{problem}; build the network here, with NoisyOr or another factored CPT")
    parents = cpt.names[1:]
    # toarray() of an aggregator gives uninitialised memory in pyAgrum 3.3, indexing does not.
    table = np.array(cpt[:])  # the first name varies fastest: (last parent, ..., first parent, own)
    table = table.transpose([*reversed(range(len(parents))), -1])
    if variable.varType() == gum.VarType_DISCRETIZED:
        return PeerNode(tuple(parents), None, table, _bins(variable.asDiscretizedVar()))
    return PeerNode(tuple(parents), _labels(gum, variable), table)


def _bins(variable: Any) -> tuple[float, ...]:
    ticks = tuple(variable.ticks())
    return (-np.inf, *ticks[1:-1], np.inf) if variable.isEmpirical() else ticks


def _labels(gum: Any, variable: Any) -> list[Label]:
    if variable.varType() in (gum.VarType_RANGE, gum.VarType_INTEGER):
        return [int(label) for label in variable.labels()]
    if variable.varType() == gum.VarType_NUMERICAL:  # whose labels have six digits only
        return [variable.numerical(i) for i in range(variable.domainSize())]
    return list(variable.labels())


def to_pyagrum(net: Network) -> Any:
    """A network as a `pyagrum.BayesNet`.

    Ascending numbers stay numbers: integers become a range or integer variable, others a numerical one. An interval
    variable becomes a discretized one if its edges are finite, as pyAgrum's are. All other labels become strings,
    since pyAgrum has no unordered or mixed ones. Factored CPTs become dense tables. What is to be learned, and ties,
    have no counterpart. A testing node is an error: select a classical network with `net.select(evidence)` first.

    >>> import tacit
    >>> bn = tacit.to_pyagrum(tacit.examples.abc().select({"A": 0.8}))
    >>> bn.variable("C").labels()
    ('lo', 'hi')
    """
    gum = require("pyagrum")
    check_classical(net, "pyAgrum")
    bn = gum.BayesNet()
    if net.name is not None:
        bn.setProperty("name", _text(net.name, "the network's name"))
    for node in net:
        bn.add(_variable(gum, net.variable(node)))
        for parent in net.parents(node):
            bn.addArc(parent, node)
        table = net.table(node)
        # numbers in pyAgrum's order, see _node
        bn.cpt(node).fillWith(table.transpose([*reversed(range(table.ndim - 1)), -1]).ravel().tolist())
    return bn


def _variable(gum: Any, variable: Variable) -> Any:
    name, states = _text(variable.name, f"node {variable.name!r}"), variable.states
    if variable.bins is not None and np.isfinite(variable.bins).all():
        return gum.DiscretizedVariable(name, "", list(variable.bins))
    numbers = [s for s in states if isinstance(s, int | float)]
    if len(numbers) == len(states) and all(a < b for a, b in pairwise(numbers)):
        if all(isinstance(s, int) and abs(s) < 2**31 for s in numbers):  # the integers of C++
            integers = [int(s) for s in numbers]
            if integers[-1] - integers[0] == len(integers) - 1:
                return gum.RangeVariable(name, "", integers[0], integers[-1])
            return gum.IntegerVariable(name, "", integers)
        if all(isinstance(s, float) or abs(s) <= 2**53 for s in numbers):
            return gum.NumericalDiscreteVariable(name, "", [float(s) for s in numbers])
    labels = [_text(str(s), f"node {name!r}, state {s!r}") for s in states]
    if len(set(labels)) < len(labels):
        raise NetworkError(f"node {name!r}: {list(states)} are not all different as strings, which pyAgrum needs")
    return gum.LabelizedVariable(name, "", labels)


def _text(text: str, what: str) -> str:
    """A text, unless pyAgrum would cut it at a NUL, or crash at a lone surrogate."""
    if not is_safe(text):
        raise NetworkError(f"{what} holds a NUL or a lone surrogate, which pyAgrum cannot; rename it")
    return text
