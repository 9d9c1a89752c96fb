"""Twofold floats against exact fractions and 50 digits of mpmath."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tacit.base.double_double import Twofold, exp_of_difference, log, two_product, two_sum

rng = np.random.default_rng(7)
A, B = rng.normal(size=(2, 100)) * 10.0 ** rng.integers(-9, 10, size=(2, 100))


def exact(numbers):
    return [Fraction(high) + Fraction(low) for high, low in zip(*map(np.ravel, numbers), strict=True)]


def twofolds(numbers):
    return two_sum(numbers, numbers * 1e-17 * rng.normal(size=len(numbers)))


def assert_close(numbers, expected, tolerance=1e-31):
    for one, other in zip(exact(numbers), expected, strict=True):
        assert abs(one - other) <= tolerance * abs(other)


def test_sums_and_products_of_floats_lose_nothing():
    pairs = [(Fraction(a), Fraction(b)) for a, b in zip(A, B, strict=True)]
    assert exact(two_sum(A, B)) == [a + b for a, b in pairs]
    assert exact(two_product(A, B)) == [a * b for a, b in pairs]


def test_arithmetic_has_31_digits():
    a, b = twofolds(A), twofolds(B)
    pairs = list(zip(exact(a), exact(b), strict=True))
    assert_close(a + b, [x + y for x, y in pairs])
    assert_close(a - b, [x - y for x, y in pairs])
    assert_close(a * b, [x * y for x, y in pairs])
    assert_close(a / b, [x / y for x, y in pairs])
    assert_close(2.5 - a * 3.0, [Fraction(2.5) - 3 * x for x, _ in pairs], 1e-30)
    assert_close(A * b, [Fraction(x) * y for x, (_, y) in zip(A, pairs, strict=True)])


def test_logarithms_have_30_digits_near_1_too():
    x = np.array([5e-324, 1e-300, 0.3, 0.5, 1 - 2**-53, 1.0, 1 + 2**-52, 1.0001, np.sqrt(2), 3.0, 1e9, 1.7e308])
    with mpmath.workdps(50):
        for number, high, low in zip(x, *log(x), strict=True):
            expected = mpmath.log(mpmath.mpf(number))
            assert abs(mpmath.mpf(high) + mpmath.mpf(low) - expected) <= 1e-30 * abs(expected)
        third = Twofold.of(np.array([1.0])) / 3.0
        (high,), (low,) = log(third)
        assert abs(mpmath.mpf(high) + mpmath.mpf(low) + mpmath.log(3)) <= 1e-30


def test_a_small_difference_of_large_numbers_keeps_its_digits():
    a, b = two_sum(1e8, 1e-9), two_sum(1e8, 3e-9)
    np.testing.assert_allclose(exp_of_difference(a - b), np.exp(-2e-9), rtol=1e-16)
    np.testing.assert_allclose((a - b).high, -2e-9, rtol=1e-15)


def test_sum_and_maximum_along_an_axis():
    numbers = Twofold(np.array([[1.0, 1.0, -3.0], [2.0, 5.0, 1e30]]), np.array([[1e-20, 3e-20, 0.0], [0.0, 0.0, 1.0]]))
    assert exact(numbers.max(1)) == [1 + Fraction(3e-20), Fraction(1e30) + 1]
    assert_close(numbers.sum(1), [Fraction(-1) + Fraction(1e-20) + Fraction(3e-20), Fraction(1e30) + 8])
    assert numbers[0, :2].sum(0).high == 2


def test_what_overflows_or_is_infinite_is_as_with_floats():
    with np.errstate(all="raise"):
        assert (Twofold.of(1e308) * 1.5).high == 1.5e308
        assert (Twofold.of(1e308) / 10.0).high == 1e307
        assert (Twofold.of(3.0) / np.inf).high == 0
        assert [*(Twofold.of(np.array([-np.inf, 1.0])) * 2.0 + 1.0).high] == [-np.inf, 3.0]
        assert [*log(np.array([0.0, np.inf])).high] == [-np.inf, np.inf]
        assert (Twofold.of(np.full((2, 2), -np.inf)).max(0).high == -np.inf).all()
        assert exp_of_difference(Twofold.of(-np.inf)) == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_no_numbers_are_0(axis):
    assert Twofold.of(np.empty((0, 0))).sum(axis).high.shape == (0,)
