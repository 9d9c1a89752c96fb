"""The factors of a question multiply to its joint distribution, as the definition has it."""

import numpy as np
from hypothesis import given

from tacit import examples, semantics
from tacit.bounds.factor_list import factor_list
from tacit.compiler.question import Question
from tests.helpers import close
from tests.strategies import networks


@given(networks(testing=False))
def test_product_is_the_joint(net):
    query = net.variables[-1]
    factors = factor_list(net, Question((query,)))
    axes = {name: i for i, name in enumerate(factors.cards)}
    operands = [part for f in factors.factors for part in (f.low, [axes[name] for name in f.scope])]
    marginal = np.einsum(*operands, [axes[query]] if query in axes else [])
    expected = semantics.joint(net, query)[0]
    close(np.atleast_1d(marginal), expected[list(factors.states[query])])
    close(expected.sum(), marginal.sum())  # what is left out is impossible


def test_given_states_are_cut_out():
    net = examples.abc()
    factors = factor_list(net, Question(("B",), ("C",), given=(("A", 1),)))
    assert set(factors.cards) == {"B", "C"}
    assert factors.evidence == ("C",)


def test_tables_that_are_chosen_lie_between_two():
    net = examples.abc()
    chosen = {f.testing: f for f in factor_list(net, Question(("B",), ("A",))).factors}["B"]
    tables = np.stack(net.cpt("B").tables)
    close(chosen.low, tables.min(axis=0))
    close(chosen.high, tables.max(axis=0))
