"""Mixtures of densities: their numbers against integrals and exact arithmetic, and what is shown of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import exp, inf, nan, pi, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from tacit import Mixture
from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.query.numbers.components import (
    Components,
    DensityComponents,
    GaussianComponents,
    JointGaussianComponents,
    LogNormalComponents,
    PoissonComponents,
)
from tests.helpers import tries

WEIGHTS = np.array([[0.3, 0.7], [1.0, 0.0], [0.999, 0.001], [0.0, 1.0]])
MEAN, SD, RATE = np.array([[0.5, 2.0]]), np.array([[0.3, 0.1]]), np.array([[0.4, 30.0]])
GAUSSIAN, LOG_NORMAL, POISSON = GaussianComponents(MEAN, SD), LogNormalComponents(MEAN, SD), PoissonComponents(RATE)
JOINT = JointGaussianComponents(
    mean=np.array([[[0.0, 1.0], [3.0, -1.0]]]),
    cov=np.array([[[[1.0, 0.5], [0.5, 2.0]], [[0.25, -0.1], [-0.1, 0.5]]]]),
)


def integral(f: Callable[[float], Any], low: float, high: float) -> float:
    """In pieces, since quad overlooks narrow peaks."""
    edges = np.linspace(low, high, 40)
    return sum(quad(f, a, b, epsabs=1e-13)[0] for a, b in pairwise(edges))


@pytest.mark.parametrize(("components", "low", "high"), [(GAUSSIAN, -4.0, 6.0), (LOG_NORMAL, 0.0, 40.0)])
def test_numbers_are_integrals_of_the_density(components: Components, low: float, high: float) -> None:
    for mixture in Mixture(WEIGHTS, components):
        mean = integral(lambda x, own=mixture: x * own.pdf(x)[0], low, high)
        variance = integral(lambda x, own=mixture, mean=mean: (x - mean) ** 2 * own.pdf(x)[0], low, high)
        assert mixture.mean[0] == pytest.approx(mean, rel=1e-10)
        assert mixture.sd[0] ** 2 == pytest.approx(variance, rel=1e-10)
        for q in (0.003, 0.5, 0.98):
            x = mixture.quantile(q)[0]
            assert integral(lambda x, own=mixture: own.pdf(x)[0], low, x) == pytest.approx(q, abs=1e-11)
            assert mixture.cdf(x)[0] == pytest.approx(q, rel=1e-13)


def test_numbers_of_counts_are_sums() -> None:
    mixture, counts = Mixture(WEIGHTS, POISSON), np.arange(120.0)
    pdf = mixture.pdf(counts)
    np.testing.assert_allclose(pdf.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(mixture.mean, pdf @ counts, rtol=1e-12)
    np.testing.assert_allclose(mixture.sd**2, (pdf * (counts - mixture.mean[:, None]) ** 2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(mixture.cdf(counts), np.cumsum(pdf, axis=1), rtol=1e-12)
    assert mixture.cdf(3.7).tolist() == mixture.cdf(3).tolist()
    for q in (0.0, 1e-9, 0.3, 0.5, 0.999):
        assert mixture.quantile(q).tolist() == (np.cumsum(pdf, axis=1) < q).sum(axis=1).tolist()


@pytest.mark.parametrize("rate", [1e-3, 7.5, 1e3, 1e7, 1e12])
def test_counts_of_any_size(rate: float) -> None:
    mixture = Mixture(np.ones((1, 1)), PoissonComponents(np.array([[rate]])))
    for count in {0.0, 3.0, float(round(rate)), float(round(rate + 5 * sqrt(rate)))}:
        with mpmath.workdps(40):
            want = mpmath.exp(count * mpmath.log(rate) - rate - mpmath.loggamma(count + 1))
        assert mixture.pdf(count)[0] == pytest.approx(float(want), rel=1e-9)
        if 1e-9 < (below := mixture.cdf(count)[0]) < 1 - 1e-9:
            assert mixture.quantile(below).tolist() == [count]


@st.composite
def gaussians(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Weights, means and standard deviations of a mixture: far apart or not, narrow or not, some without weight."""
    count = draw(st.integers(1, 5))
    scales = st.sampled_from([1e-9, 1.0, 30.0, 1e6])
    mean = [draw(st.floats(-1, 1)) * draw(scales) for _ in range(count)]
    sd = [draw(st.floats(0.1, 1)) * draw(scales) for _ in range(count)]
    shares = np.array([draw(st.sampled_from([1.0, 0.1, 1e-12, 0.0])) for _ in range(count)])
    shares[0] += 1e-9
    return shares / shares.sum(), np.array(mean), np.array(sd)


@tries(90)
@given(gaussians(), st.one_of(st.floats(1e-12, 1 - 1e-12), st.sampled_from([1e-200, 1e-30, 0.5, 1 - 2**-53])))
def test_cdf_and_quantile_are_those_of_exact_arithmetic(parts: tuple[Floats, Floats, Floats], q: float) -> None:
    weights, mean, sd = parts
    mixture = Mixture(weights[None], GaussianComponents(mean[None], sd[None]))

    def exact(x: Any) -> Any:
        terms = [
            w * mpmath.ncdf((x - m) / s) for w, m, s in zip(weights.tolist(), mean.tolist(), sd.tolist(), strict=True)
        ]
        return mpmath.fsum(terms) / mpmath.fsum(weights.tolist())

    x = float(mixture.quantile(q)[0])
    with mpmath.workdps(50):
        point = mpmath.mpf(x)
        apart = 1e-12 * abs(point)
        room = 1e-13 * min(q, 1 - q)
        assert exact(point - apart) - room <= q <= exact(point + apart) + room
        slack = float(max(abs(exact(point * (1 + sign * 2e-15)) - exact(point)) for sign in (-1, 1)))
        assert mixture.cdf(x)[0] == pytest.approx(float(exact(point)), rel=1e-13, abs=slack + 1e-300)


def test_quantiles_of_many_rows_are_those_of_each_row() -> None:
    random = np.random.default_rng(5)
    weights = random.dirichlet([0.2] * 3, 30_000)  # more than a block
    weights[7] = nan
    components = GaussianComponents(random.normal(0, 100, weights.shape), np.exp(random.normal(size=weights.shape)))
    mixture = Mixture(weights, components)
    levels = [0.0, 0.01, 0.5, 0.9, 1.0]
    quantiles = mixture.quantile(levels)
    assert np.isnan(quantiles[7]).all()
    assert (quantiles[[0, -1]][:, [0, 4]] == [-inf, inf]).all()
    for row in (0, 1, 21_844, 21_845, 29_999):
        assert mixture[row].quantile(levels)[0].tolist() == quantiles[row].tolist()
        assert mixture[row].cdf(quantiles[row])[0] == pytest.approx(np.array(levels), rel=1e-11)
    some = mixture[::100]
    np.testing.assert_allclose(np.diagonal(some.cdf(quantiles[::100, 2])), 0.5, rtol=1e-11)
    np.testing.assert_allclose(some.cdf(3), some.cdf([2, 3])[:, 1], rtol=1e-14)
    np.testing.assert_array_equal(mixture.interval(0.8)[1], mixture.quantile(0.9))


def test_narrow_components_far_from_each_other() -> None:
    components = GaussianComponents(np.array([[0.0, 1e300]]), np.array([[1e-290, 1e-3]]))
    mixture = Mixture(np.array([[0.75, 0.25], [0.25, 0.75]]), components)
    assert mixture.quantile(0.5) == pytest.approx([0.430727299295457e-290, 1e300], rel=1e-12)
    assert np.isfinite(mixture.quantile([5e-324, 1e-310])).all()
    between = GaussianComponents(np.array([[20.0, 0.0, 110.0]]), np.array([[1.0, 1.0, 2.0]]))
    assert Mixture(np.array([[0.5, 0.0, 0.5]]), between).quantile(0.5).tolist() == [50.0]
    assert mixture.pdf(0.0)[0] == pytest.approx(0.75e290 / sqrt(2 * pi))


@pytest.mark.parametrize("components", [GAUSSIAN, LOG_NORMAL, POISSON, JOINT])
def test_impossible_rows_are_nan_and_others_are_not(components: Components) -> None:
    mixture = Mixture(np.array([[nan, nan], [0.5, 0.5]]), components, ["x", "y"][: 1 + components.joint])
    numbers = [mixture.mean, mixture.sd, mixture.pdf([1.0, 2.0])]
    numbers += [mixture.cov] if components.joint else [mixture.cdf([1.0, 2.0]), mixture.quantile([0.0, 0.5, 1.0])]
    for array in numbers:
        assert np.isnan(array[0]).all()
        assert not np.isnan(array[1]).any()


@pytest.mark.parametrize(
    ("components", "pdf", "cdf", "ends"),
    [
        (GAUSSIAN, [0, None, 0, nan], [0, None, 1, nan], [-inf, inf]),
        (LOG_NORMAL, [0, 0, 0, nan], [0, 0, 1, nan], [0, inf]),
        (POISSON, [0, exp(-0.4), 0, nan], [0, exp(-0.4), 1, nan], [0, inf]),
    ],
)
def test_the_ends_of_the_support(components: Components, pdf: list[Any], cdf: list[Any], ends: list[float]) -> None:
    mixture = Mixture(WEIGHTS[1:2], components)
    points = [-inf, 0, inf, nan]
    for want, number in zip([*pdf, *cdf], [*mixture.pdf(points)[0], *mixture.cdf(points)[0]], strict=True):
        assert want is None or number == pytest.approx(want, rel=1e-14, abs=0, nan_ok=True)
    assert mixture.quantile([0, 1]).tolist() == [ends]
    assert mixture.pdf([]).shape == mixture.quantile([]).shape == (1, 0)


def test_a_component_without_weight_may_have_no_numbers() -> None:
    components = LogNormalComponents(np.array([[0.0, 800.0]]), np.array([[1.0, 30.0]]))
    mixture = Mixture(np.array([[1.0, 0.0]]), components)
    assert mixture.mean.tolist() == [exp(0.5)]
    assert mixture.sd == pytest.approx([sqrt((exp(1) - 1) * exp(1))])


def test_the_spread_of_large_numbers() -> None:
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(3), 100)
    near = GaussianComponents(np.array([[1.7e9, 1.7e9 + 2**-20, 1.7e9]]), np.full((1, 3), 1e-7))
    p = weights[:, 1]
    np.testing.assert_allclose(Mixture(weights, near).sd, np.sqrt(1e-14 + p * (1 - p) * 2**-40), rtol=1e-12)


def test_joint_distributions() -> None:
    mixture = Mixture(WEIGHTS, JOINT, ["x", "y"])
    x, y = mixture.column("x"), mixture.column("y")
    np.testing.assert_allclose(mixture.mean, np.stack([x.mean, y.mean], axis=1))
    np.testing.assert_allclose(mixture.sd, np.stack([x.sd, y.sd], axis=1))
    np.testing.assert_allclose(np.diagonal(mixture.cov, axis1=1, axis2=2), mixture.sd**2)
    assert mixture.cov[0, 0, 1] == pytest.approx(0.3 * 0.5 + 0.7 * -0.1 + 0.3 * 0.7 * 3 * -2)
    for row in range(len(WEIGHTS)):
        density = integral(lambda at, own=mixture[row]: own.pdf([1.2, at])[0], -14, 14)
        assert x.pdf(1.2)[row] == pytest.approx(density, rel=1e-10)
    one = mixture.pdf([1.2, 3.0])
    np.testing.assert_allclose(mixture.pdf([[0.0, 0.0], [1.2, 3.0]])[:, 1], one, rtol=1e-14)
    by_row = JointGaussianComponents(np.repeat(JOINT.mean, 4, axis=0), JOINT.cov)
    np.testing.assert_allclose(Mixture(WEIGHTS, by_row, "xy").pdf([1.2, 3.0]), one)


def test_densities_of_which_only_the_logarithm_is_known() -> None:
    def laplace(x: Floats) -> Floats:
        return np.stack([-np.abs(x), -np.abs(x - 3)], axis=1) - np.log(2)

    mixture = Mixture(WEIGHTS, DensityComponents(laplace), ["noise"])
    assert mixture.pdf([0.0, 3.0])[0] == pytest.approx([0.15 + 0.35 * exp(-3), 0.15 * exp(-3) + 0.35])
    assert repr(mixture) == "densities of noise in 4 rows, which .pdf(x) computes"
    with pytest.raises(TacitError, match=r"a mean takes more than a log-density, .*; sum \.pdf\(x\)"):
        _ = mixture.mean


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda heat, both: heat.quantile(1.5), "q is 1.5, expected a number from 0 to 1"),
        (lambda heat, both: heat.interval([0.5, 0.9]), "level is .*, expected one number from 0 to 1"),
        (lambda heat, both: heat.pdf("hot"), r"x is 'hot', expected a number, or an array \(k,\) of them"),
        (lambda heat, both: heat.cov, r"'heat' is one; its variance is \.sd \*\* 2"),
        (lambda heat, both: both.pdf(1.0), r"x is 1\.0, expected points \(k, 2\)"),
        (lambda heat, both: both.cdf(1.0), r"ask about one of them, e\.g\. \.column\('x'\)\.cdf\(x\)"),
        (lambda heat, both: both.quantile(), r"ask about one of them, e\.g\. \.column\('x'\)\.quantile\(q\)"),
        (lambda heat, both: both.column("X"), r"'X' is not a column; expected one of \['x', 'y'\]; did you mean 'x'\?"),
    ],
)
def test_errors_say_what_would_be_right(ask: Callable[[Mixture, Mixture], Any], message: str) -> None:
    with pytest.raises(TacitError, match=message):
        ask(Mixture(WEIGHTS, GAUSSIAN, ["heat"]), Mixture(WEIGHTS, JOINT, ["x", "y"]))


def test_it_prints_as_a_table() -> None:
    heat = Mixture(np.repeat(WEIGHTS, 10, axis=0), GAUSSIAN, ["heat"])
    lines = repr(heat).splitlines()
    assert lines[:2] == [
        "heat     mean        sd        5%   median      95%",
        "0     1.55000  0.711688  0.209774  1.94341  2.14652",
    ]
    assert [line.split()[0] for line in lines[9:13]] == ["8", "9", "...", "30"]
    assert lines[-1] == "[40 rows]"
    assert heat._repr_html_().count("<tr") >= 22
    assert repr(Mixture(WEIGHTS, POISSON, ["calls"])[2:]).splitlines() == [
        "calls      mean       sd  5%  median  95%",
        "0      0.429600  1.14232   0       0    2",
        "1       30.0000  5.47723  21      30   39",
    ]
    assert repr(heat[:0]) == "no rows of heat"
    assert repr(Mixture(WEIGHTS[:2], JOINT, ["x", "y"])).splitlines() == [
        "row  column       mean       sd         5%     median      95%",
        "0    x         2.10000  1.53786  -0.967422    2.71909  3.73277",
        "     y       -0.400000  1.33791   -2.07053  -0.698555  2.36815",
        "1    x         0.00000  1.00000   -1.64485    0.00000  1.64485",
        "     y         1.00000  1.41421   -1.32617    1.00000  3.32617",
    ]


def test_frames_keep_the_index() -> None:
    pandas = pytest.importorskip("pandas")
    heat = Mixture(WEIGHTS, GAUSSIAN, ["heat"], pandas.Index(["a", "b", "c", "d"]))
    assert heat[[1, 3]].to_pandas().index.tolist() == ["b", "d"]
    assert repr(heat[2]).splitlines()[1].startswith("c ")
    assert heat.to_pandas()["median"].tolist() == heat.quantile(0.5).tolist()
    both = Mixture(WEIGHTS, JOINT, ["x", "y"], heat.index).to_pandas()
    assert both["y", "mean"].tolist() == Mixture(WEIGHTS, JOINT, ["x", "y"]).mean[:, 1].tolist()
    for name in ("polars", "pyarrow"):
        pytest.importorskip(name)
    assert Mixture(WEIGHTS, JOINT, ["x", "y"]).to_polars()["y.mean"].to_list() == both["y", "mean"].tolist()
    assert heat.to_arrow().column_names == ["mean", "sd", "5%", "median", "95%"]
