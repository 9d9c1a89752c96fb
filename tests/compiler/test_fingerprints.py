"""Numbers as elements of a prime field: what is equal stays equal, and nothing else becomes it."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.compiler.diagrams import diagram_kernels as kernels
from tacit.compiler.diagrams.fingerprints import PRIME, of_fraction, of_rows, symbols
from tests.helpers import tries
from tests.strategies import rngs

EDGES = [0, 1, 2, 58, 59, 60, 2**32 - 1, 2**32, 2**63, PRIME - 60, PRIME - 59, PRIME - 2, PRIME - 1]
elements = st.sampled_from(EDGES) | st.integers(0, PRIME - 1)


def test_the_field():
    assert int(kernels.PRIME) == PRIME
    assert pow(2, PRIME - 1, PRIME) == 1
    assert pow(2, PRIME // 2, PRIME) in (1, PRIME - 1)


@tries(300)
@given(a=elements, b=elements)
def test_products_and_sums_are_those_of_whole_numbers(a, b):
    assert int(kernels.times(np.uint64(a), np.uint64(b))) == a * b % PRIME
    assert int(kernels.plus(np.uint64(a), np.uint64(b))) == (a + b) % PRIME
    found = kernels.all_times(np.array([[a, b]], dtype=np.uint64), np.uint64(b))
    assert found.tolist() == [[a * b % PRIME, b * b % PRIME]]


def test_all_edges():
    for a in EDGES:
        for b in EDGES:
            assert int(kernels.times(np.uint64(a), np.uint64(b))) == a * b % PRIME
            assert int(kernels.plus(np.uint64(a), np.uint64(b))) == (a + b) % PRIME


@tries(60)
@given(rng=rngs, card=st.integers(1, 6), digits=st.none() | st.integers(1, 15))
def test_rows_sum_to_1(rng, card, digits):
    rows = rng.dirichlet(np.ones(card), (3, 2))
    if digits is not None:
        rows = rows.round(digits)
        rows[..., -1] = (1 - rows[..., :-1].sum(axis=-1)).round(digits)
    found = of_rows(rows)
    assert found.shape == rows.shape
    assert [sum(row) % PRIME for row in found.reshape(-1, card).tolist()] == [1] * 6


def test_equal_decimals_are_equal_wherever_they_stand():
    tables = [[0.1, 0.2, 0.7], [0.7, 0.1, 0.2], [0.2, 0.1, 0.7]]
    found = of_rows(np.array(tables)).tolist()
    for row, own in zip(tables, found, strict=True):
        assert own == [of_fraction(Fraction(str(x))) for x in row]
    (tenth, _), (_, fifth) = of_rows(np.array([[0.1, 0.9], [0.8, 0.2]])).tolist()
    assert fifth == 2 * tenth % PRIME


def test_0_and_1_are_themselves():
    assert of_rows(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [[0, 1], [1, 0]]


def test_what_does_not_sum_to_1_is_taken_as_it_is():
    """The numbers of a noisy-or are parts of a table, not rows of one."""
    assert of_rows(np.array([[0.25, 0.5]])).tolist() == [[of_fraction(Fraction(1, 4)), of_fraction(Fraction(1, 2))]]


def test_rows_of_thirds_are_divided_by_their_sum():
    (row,) = of_rows(np.array([[1 / 3, 1 / 3, 1 / 3]])).tolist()
    assert row == [of_fraction(Fraction(1, 3))] * 3


def test_a_row_whose_sum_is_0_in_the_field():
    """Rounding may make a row sum to 1 - 59 / 2**64, whose numerator is the prime."""
    row = [7.285165585524069e-05, 0.9999271483441448]
    assert sum(map(Fraction, row)) == Fraction(PRIME, 2**64)
    ((small, large),) = of_rows(np.array([row])).tolist()
    assert small == of_fraction(Fraction(row[0]))
    assert (small + large) % PRIME == 1


def test_powers_of_a_half_differ():
    half, power, found = of_fraction(Fraction(1, 2)), 1, set()
    for _ in range(5000):
        power = power * half % PRIME
        found.add(power)
    assert len(found) == 5000


def test_symbols_differ_and_are_repeatable():
    first = symbols(1000, 7)
    assert len(set(first.tolist())) == 1000
    assert (first == symbols(1000, 7)).all()
    assert not set(first.tolist()) & set(symbols(1000, 8).tolist())
