"""Numbers with an exponent each: the same as floats where floats suffice, and right where they do not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.engines.arrays.wide import Wide, einsum

NUMBERS = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-3)
VECTORS = arrays.arrays(np.float64, 4, elements=NUMBERS)
SIZES = {"a": 2, "b": 3, "c": 4, "z": 5}
CONTRACTIONS = [
    "ab,bc->ac",
    "abz,bz->az",
    "ab->b",
    "abz,cz->abcz",
    "a,a->a",
    "abz->z",
    "ba,bcz->acz",
    "ab,c->c",
    "a->a",
]


@given(VECTORS, VECTORS)
def test_arithmetic(a, b):
    for ufunc in (np.add, np.subtract, np.multiply):
        np.testing.assert_allclose(ufunc(Wide.of(a), Wide.of(b)).floats(), ufunc(a, b), rtol=1e-15, atol=1e-13)
        np.testing.assert_allclose(ufunc(Wide.of(a), b).floats(), ufunc(a, b), rtol=1e-15, atol=1e-13)
    divisor = np.where(b == 0, 1.0, b)
    np.testing.assert_allclose((Wide.of(a) / divisor).floats(), a / divisor, rtol=1e-15)
    np.testing.assert_array_equal((-Wide.of(a)).floats(), -a)


@given(VECTORS, VECTORS)
def test_comparisons(a, b):
    b[:2] = a[:2]
    for ufunc in (np.greater, np.greater_equal, np.less, np.less_equal):
        np.testing.assert_array_equal(ufunc(Wide.of(a), b), ufunc(a, b))
        tiny = Wide.of(a, -5000), Wide.of(b, -5000)
        np.testing.assert_array_equal(ufunc(*tiny), ufunc(a, b))


def test_a_larger_exponent_decides_a_comparison():
    tiny, one = Wide.of([0.9], -3000), Wide.of([0.5])
    assert (tiny < one).tolist() == (-one < tiny).tolist() == (-one < -tiny).tolist() == [True]
    assert (tiny > 0.0).tolist() == (-tiny < 0.0).tolist() == [True]


@pytest.mark.parametrize("subscripts", CONTRACTIONS)
def test_contractions(subscripts, monkeypatch):
    rng = np.random.default_rng(0)
    terms = subscripts.split("->")[0].split(",")
    operands = [rng.normal(size=[SIZES[letter] for letter in term]) for term in terms]
    right = np.einsum(subscripts, *operands)
    for block in (1, 2**20):
        monkeypatch.setattr("tacit.engines.arrays.wide.PRODUCTS_AT_ONCE", block)
        found = einsum(subscripts, *map(Wide.of, operands))
        assert found.shape == right.shape
        np.testing.assert_allclose(found.floats(), right, rtol=1e-13)
        small = einsum(subscripts, *(Wide.of(x, -40_000) for x in operands))
        np.testing.assert_allclose(small.floats(40_000 * len(operands)), right, rtol=1e-13)


def test_sums_keep_the_largest():
    terms = Wide.of(np.array([[1.0, 0.5, 0.0], [0.25, 0.5, 0.0]]), np.array([[0, -9000, 0], [-9000, -9000, 0]]))
    np.testing.assert_array_equal(terms.sum(axis=0).floats(), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(terms.sum(axis=0).floats(9000)[1], 1.0)
    assert terms.sum(axis=0, keepdims=True).shape == (1, 3)
    assert terms.sum(axis=()).shape == (2, 3)
    np.testing.assert_array_equal(terms.top(axis=0), [1, -9000, 0])  # 1 is 0.5 * 2


def test_adding_up_by_place():
    places = np.array([[0, 1], [1, 3]])
    found = Wide.of([[1.0, 2.0], [3.0, 4.0]], -5000).added_up(places, 4)
    np.testing.assert_array_equal(found.floats(5000), [1.0, 5.0, 0.0, 4.0])


def test_exponentials():
    x = np.linspace(-50_000, 0, 101)
    found = Wide.exp(x)
    np.testing.assert_allclose((np.log2(found.mantissa) + found.exponent) / math.log2(math.e), x, rtol=1e-14)
    np.testing.assert_allclose(Wide.exp(x[-1:] - 3).floats(), np.exp(-3.0), rtol=1e-15)


def test_entries_are_taken_and_put():
    wide = Wide.of([1.0, 2.0, 3.0], -2000)
    wide[np.array([True, False, False])] = 5.0
    np.testing.assert_array_equal(wide.floats(), [5.0, 0.0, 0.0])
    np.testing.assert_array_equal(wide[1:].floats(2000), [2.0, 3.0])
    joined = np.concatenate([wide, Wide.of([1.0])])
    np.testing.assert_array_equal(joined.floats(), [5.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(np.where(np.array([True, False, True]), wide, 7.0).floats(), [5.0, 7.0, 0.0])
    assert "Wide" in repr(wide)


def test_what_it_has_no_rule_for_is_refused():
    with pytest.raises(TypeError):
        np.exp(Wide.of([1.0]))
    with pytest.raises(TypeError):
        np.sort(Wide.of([1.0]))
