"""Windows bound posteriors, whatever they leave out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit import semantics
from tacit.bounds.factor_list import factor_list
from tacit.bounds.posterior_bounds import bounds_of
from tacit.bounds.row_numbers import RowNumbers, impossible_rows, numbers_of
from tacit.bounds.window_choice import Budget, chosen
from tacit.bounds.window_table import WindowTable
from tacit.bounds.windows import Surroundings
from tacit.compiler.question import Question
from tacit.evidence.read import read
from tests.helpers import close
from tests.strategies import networks, queries

ROWS = 3


def window_bounds(net, query, rows, multiply_adds, hard=()):
    """Bounds of the states that are left, and which rows are certainly impossible."""
    names = tuple(rows)
    surroundings = Surroundings(factor_list(net, Question((query,), names, tuple(hard))), frozenset(hard))
    known = read(rows, [net.variable(n) for n in net], queries=[query])
    window = chosen(RowNumbers(surroundings), query, Budget(multiply_adds)).window
    table = WindowTable.of(numbers_of(surroundings, known.columns, known.rows), window)
    assert table.window == window
    impossible = impossible_rows(surroundings.factors.states, known.columns, known.rows)
    return bounds_of(table, known.rows), impossible


@given(queries(rows=ROWS), st.sampled_from([1, 4, 16, 64, 10**6]))
def test_posterior_is_between_the_bounds(case, multiply_adds):
    net, query, rows = case
    names = tuple(rows)
    factors = factor_list(net, Question((query,), names))
    if query not in factors.cards:
        return  # it has one state
    bounds, impossible = window_bounds(net, query, rows, multiply_adds)
    truth = semantics.posterior(net, query, rows)[:, list(factors.states[query])].T
    known = ~np.isnan(truth[0])
    low, high, estimate = (np.broadcast_to(end, (len(truth), len(known))) for end in bounds)
    assert not (np.isnan(low[0]) & known).any()
    assert not (impossible & known).any()
    assert (low <= truth)[:, known].all()
    assert (truth <= high)[:, known].all()
    close(estimate[:, known].sum(axis=0), 1)
    assert (low <= estimate)[:, known].all()
    assert (estimate <= high)[:, known].all()
    if multiply_adds == 10**6 and not net.testing_nodes:
        close(low[:, known], truth[:, known])
        close(high[:, known], truth[:, known])


@given(networks(), st.data())
def test_what_is_not_worked_out_again_stays_right(net, data):
    surroundings = Surroundings(factor_list(net, Question((net.variables[-1],), net.variables)))
    count = len(surroundings.factors.factors)
    barren = frozenset(data.draw(st.sets(st.integers(0, count)))) & frozenset(range(count))
    query = data.draw(st.sampled_from([*surroundings.factors.cards, None]))
    if query is None:
        return
    part = surroundings.without(barren)
    for derived in (part, part.small_enough(query, data.draw(st.integers(1, 20)))):
        plain = Surroundings(surroundings.factors, barren=barren, relaxed=derived.relaxed)
        assert (derived.scopes, derived.excluding) == (plain.scopes, plain.excluding)
        assert derived.places == plain.places
