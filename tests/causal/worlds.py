"""Counterfactuals by their definition: all states of the roots, in the world as it was and in one set otherwise."""

import itertools

import numpy as np
from hypothesis import strategies as st

import tacit
from tests.strategies import rngs


@st.composite
def functional_networks(draw, most=6):
    """Random networks in which all that is random are roots; some zeros among their tables."""
    rng = draw(rngs)
    net = tacit.Network()
    count = draw(st.integers(2, most))
    for i in range(count):
        card = int(rng.integers(2, 4))
        parents = [p for p in net.variables if rng.random() < 0.5][-3:] if i else []
        shape = [net.variable(p).card for p in parents]
        table = np.eye(card)[rng.integers(0, card, shape)] if parents else rng.dirichlet(np.ones(card))
        net.add(f"N{i}", parents, card, table)
    return net, rng


def states_of(net, roots, set_to):
    """The states of all variables, where roots are in given states and some variables are set."""
    states = {}
    for name in net:
        parents = net.parents(name)
        if name in set_to:
            states[name] = set_to[name]
        elif not parents:
            states[name] = roots[name]
        else:
            states[name] = int(net.table(name)[tuple(states[p] for p in parents)].argmax())
    return states


def counterfactual(net, query, likelihoods, set_to):
    """P(query in the world where variables are set | likelihoods of what was), by enumeration; NaN where impossible."""
    roots = net.roots
    answer = np.zeros(net.variable(query).card)
    for states in itertools.product(*(range(net.variable(r).card) for r in roots)):
        by_root = dict(zip(roots, states, strict=True))
        was = states_of(net, by_root, {})
        would = states_of(net, by_root, set_to)
        weight = np.prod([net.table(r)[s] for r, s in by_root.items()])
        weight *= np.prod([likelihood[was[name]] for name, likelihood in likelihoods.items()])
        answer[would[query]] += weight
    total = answer.sum()
    return answer / total if total else np.full(len(answer), np.nan)
