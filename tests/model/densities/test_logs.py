"""Log-densities, plain and of twice the digits, against SciPy and 50 digits of mpmath."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy import stats

from tacit import Density, Gaussian, Poisson
from tacit.model.densities.missing import patterns
from tacit.model.elements.variable import Variable
from tests.model.densities.cases import OWN, F, L, gaussian, joint, log_normal, poisson, with_gaps

ROWS = 20_000  # more than a block


def assert_logs(density, values, expected):
    """The log-densities (rows, components) in both layouts; of twice the digits, they are the same."""
    np.testing.assert_allclose(density.logs(values), expected, rtol=1e-13, atol=1e-13)
    assert density.logs_by_component(values).flags.c_contiguous
    np.testing.assert_allclose(density.exact_logs(values[:100]).high.T, expected[:100], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "sample", "reference"),
    [
        (gaussian, lambda rng, n: rng.normal(size=n), lambda x, d: stats.norm.logpdf(x, d.mean, d.sd)),
        (
            log_normal,
            lambda rng, n: rng.gamma(2, size=n),
            lambda x, d: stats.lognorm.logpdf(x, d.sd, scale=np.exp(d.mean)),
        ),
        (poisson, lambda rng, n: rng.poisson(9, size=n), lambda x, d: stats.poisson.logpmf(x, d.rate)),
    ],
)
def test_logs_of_one_column_are_those_of_scipy(make, sample, reference):
    rng = np.random.default_rng(1)
    density, values = make(rng), with_gaps(sample(rng, (ROWS, 1)), rng)
    expected = reference(values[:, :, None], density).reshape(ROWS, 6)
    assert_logs(density, values, np.where(np.isnan(values), 0.0, expected))


def test_missing_columns_of_a_joint_gaussian_are_integrated_out():
    rng = np.random.default_rng(2)
    density, values = joint(rng), with_gaps(2 * rng.normal(size=(100, 3)), rng)
    expected = np.zeros((100, 6))
    for row, out in zip(values, expected, strict=True):
        for i, (mean, cov) in enumerate(zip(density.flat("mean"), density.flat("cov"), strict=True)):
            if (seen := np.flatnonzero(~np.isnan(row))).size:
                out[i] = stats.multivariate_normal.logpdf(row[seen], mean[seen], cov[np.ix_(seen, seen)])
    assert_logs(density, values, expected)
    some = density.marginal([2, 0])
    gaps = np.where([False, True, False], np.nan, values)
    np.testing.assert_allclose(some.logs(values[:, [2, 0]]), density.logs(gaps), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(density.marginal([1]).means(), density.means()[:, [1]])


def test_floats_keep_the_digits_of_columns_that_are_correlated():
    cov = [[1.0, 1 - 1e-7], [1 - 1e-7, 1.0]]
    own = Variable("x, y", columns=("x", "y"))
    density = Gaussian([[0.0, 0.0], [0.0, 0.01]], cov=np.array([cov, cov])).bind(own, [F])
    values = np.array([[0.5, 0.502], [-1.0, -0.998]])
    exact = density.exact_logs(values)
    differences = (exact[0] - exact[1]).high
    np.testing.assert_allclose(np.subtract(*density.logs_by_component(values)), differences, rtol=1e-11)


def test_rows_are_grouped_by_what_is_missing_of_any_number_of_columns():
    rng = np.random.default_rng(2)
    missing = np.repeat(rng.random((20, 150)) < 0.5, 3, axis=0)[rng.permutation(60)]
    groups = list(patterns(np.where(missing, np.nan, 0.0)))
    assert len(groups) == 20
    for observed, rows in groups:
        assert len(rows) == 3
        np.testing.assert_array_equal(~missing[rows], np.isin(np.arange(150), observed)[None].repeat(3, axis=0))


@pytest.mark.parametrize("size", [3.0, 300.0, 1e6, 1e12])
def test_probabilities_of_large_counts_keep_their_digits(size):
    rng = np.random.default_rng(3)
    density = poisson(rng, size)
    values = np.array([[0.0], [1], [2], [15], [16], [17], [1e15], *rng.poisson(density.rate.ravel())[:, None]])
    with mpmath.workdps(50):
        rates, counts = [mpf(rate) for rate in density.rate.ravel()], [mpf(count) for (count,) in values]
        logs = [[k * mpmath.log(rate) - rate - mpmath.loggamma(k + 1) for rate in rates] for k in counts]
    np.testing.assert_allclose(density.logs(values), np.array(logs, dtype=float), rtol=2e-14, atol=1e-14)


def normal_log(x, mean, sd):
    return -(((x - mpf(mean)) / mpf(sd)) ** 2) / 2 - mpmath.log(mpf(sd))


def joint_log(row, mean, cov):
    seen = np.flatnonzero(~np.isnan(row))
    matrix = mpmath.matrix(cov[np.ix_(seen, seen)].tolist())
    off = mpmath.matrix([mpf(row[i]) - mpf(mean[i]) for i in seen])
    return -((off.T * mpmath.inverse(matrix) * off)[0] + mpmath.log(mpmath.det(matrix))) / 2


@pytest.mark.parametrize(
    ("make", "sample", "reference"),
    [
        (gaussian, lambda rng: rng.normal(size=(8, 1)) * 1e4, lambda x, *parts: normal_log(mpf(x[0]), *parts)),
        (
            log_normal,
            lambda rng: np.exp(rng.normal(size=(8, 1)) * 200),
            lambda x, *parts: normal_log(mpmath.log(mpf(x[0])), *parts),
        ),
        (joint, lambda rng: with_gaps(rng.normal(size=(8, 3)) * 1e4, rng)[~np.eye(8, 1, dtype=bool)[:, 0]], joint_log),
        (
            lambda rng: poisson(rng, 1e12),
            lambda rng: rng.poisson(1e12, size=(8, 1)).astype(float),
            lambda x, rate: mpf(x[0]) * mpmath.log(mpf(rate)) - mpf(rate),
        ),
    ],
)
def test_differences_far_from_all_components_have_14_digits(make, sample, reference):
    rng = np.random.default_rng(4)
    density, values = make(rng), sample(rng)
    parts = [density.flat(part) for part in density.parts()]
    logs = density.exact_logs(values)
    with mpmath.workdps(50):
        for row, high, low in zip(values, logs.high.T, logs.low.T, strict=True):
            got = [mpf(one) + mpf(other) for one, other in zip(high, low, strict=True)]
            expected = [reference(row, *numbers) for numbers in zip(*parts, strict=True)]
            for i in range(1, 6):
                difference = expected[i] - expected[0]
                assert abs(got[i] - got[0] - difference) <= 1e-14 * abs(difference)


@pytest.mark.parametrize(
    ("make", "good", "bad"),
    [
        (gaussian, [0.0, -1e300, np.nan], [np.inf, -np.inf]),
        (log_normal, [1e-300, 1e300, np.nan], [0.0, -1.0, np.inf]),
        (poisson, [0.0, 3.0, 1e15, np.nan], [-1.0, 0.5, np.inf]),
    ],
)
def test_values_outside_the_support_are_found_and_impossible(make, good, bad):
    density, values = make(np.random.default_rng(5)), np.array([*good, *bad])[:, None]
    wrong, reason = density.wrong(values)
    assert wrong.tolist() == [False] * len(good) + [True] * len(bad)
    assert reason.startswith("is no")
    for logs in (density.logs(values), density.exact_logs(values).high.T):
        assert (logs[wrong] == -np.inf).all()
        assert (logs[len(good) - 1] == 0).all()


def test_values_too_far_off_for_floats_are_impossible_without_a_warning():
    density = Gaussian([0.0, 1e300], [1e-300, 1e-300])
    far = np.array([[1e10], [-1e308], [1e308]])
    pair = Gaussian(np.zeros((2, 2)), cov=np.stack([1e-300 * np.eye(2)] * 2))
    for logs, values in ((density, far), (pair, np.full((1, 2), 1e160))):
        assert (logs.logs(values) == -np.inf).all()
        assert (logs.exact_logs(values).high == -np.inf).all()
    assert Poisson([1e-300]).logs(np.array([[1e300]]))[0, 0] < -1e300


def test_no_rows_have_no_logs():
    rng = np.random.default_rng(6)
    for density in (gaussian(rng), log_normal(rng), poisson(rng), joint(rng)):
        empty = np.empty((0, density.dimension))
        assert density.logs(empty).shape == density.exact_logs(empty).high.T.shape == (0, 6)


def test_a_density_is_asked_for_what_is_observed():
    laplace = Density(lambda x: -np.abs(x[:, None, None] - np.arange(6).reshape(2, 3))).bind(OWN, [F, L])
    values = np.array([[2.0], [np.nan], [4.5]])
    expected = -np.abs(values - np.arange(6))
    expected[1] = 0
    np.testing.assert_array_equal(laplace.logs(values), expected)
    np.testing.assert_array_equal(laplace.exact_logs(values).high.T, expected)
