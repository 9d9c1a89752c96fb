"""Densities: what is accepted and refused, how they print, moments, draws and conditional distributions."""

import pickle

import numpy as np
import pytest

import tacit
from tacit import Density, Gaussian, LogNormal, NetworkError, Poisson
from tests.model.densities.cases import JOINT, OWN, F, L, gaussian, joint, log_normal, poisson

nan = np.nan
EYE = np.eye(2)
ALL = pytest.mark.parametrize("make", [gaussian, log_normal, poisson, joint])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0, [1, 0]), r"sd, parent state \(1,\): 0 is not a positive, finite number"),
        (lambda: Gaussian(0, 1e-320), "sd: 9.99989e-321 is not a positive, finite number"),
        (lambda: LogNormal(0, np.inf), "sd: inf is not a positive, finite number"),
        (lambda: Poisson([[1, -2]]), r"rate, parent state \(0, 1\): -2 is not a positive, finite number"),
        (lambda: Gaussian([0, np.inf], 1), r"mean, parent state \(1,\): inf is not finite"),
        (lambda: Gaussian([[0, -np.inf]], cov=EYE), r"mean, parent state \(0,\): -inf is not finite"),
        (lambda: Gaussian([0, 0], 1, EYE), "takes sd, for one column, or cov, for several; give either"),
        (lambda: Gaussian([0, 0], cov=[1, 2]), r"cov has shape \(2,\), expected \(parents' cardinalities..., d, d\)"),
        (lambda: Gaussian(0, cov=EYE), r"mean has shape \(\), expected \(parents' cardinalities..., 2\)"),
        (lambda: Gaussian([0, 0], cov=[EYE, -EYE]), r"cov, parent state \(1,\): the variance -1 is not a positive"),
        (lambda: Gaussian(cov=[[1, 0.5], [0.4, 1]]), r"cov: \[0, 1\] is 0.5 but \[1, 0\] is 0.4, expected both"),
        (lambda: Gaussian(cov=[[1, nan], [0, 1]]), r"cov: \[0, 1\] is nan but \[1, 0\] is 0"),
        (
            lambda: Gaussian(cov=[[1, 2], [2, 1]]),
            "cov: the smallest eigenvalue of the correlations is -1; a covariance",
        ),
        (lambda: Gaussian(cov=[[1, 1], [1, 1]]), "a covariance matrix is positive definite"),
        (lambda: Gaussian("warm", 1), "mean is not an array of numbers"),
        (lambda: Gaussian(0, 1, tie=""), "tie is '', expected None or a non-empty string"),
        (lambda: Density(3), "a Density takes a function of values that gives log-densities, got 3"),
    ],
)
def test_bad_numbers_are_refused_with_their_place(make, message):
    with pytest.raises(NetworkError, match=message):
        make()


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (Gaussian(np.zeros((3, 2)), 1), r"mean has shape \(3, 2\), expected \(2, 3\) = .*come in another order"),
        (Gaussian(0, np.ones(6)), r"sd has shape \(6,\), .*Then give np.reshape\(sd, \(2, 3\)\)"),
        (Poisson([1, 2]), r"rate has shape \(2,\), expected \(2, 3\) = \(states of F, states of L\); a number holds"),
        (Gaussian(np.zeros((2, 2)), cov=EYE), r"expected \(2, 3, 2\) = .*, columns\); shape \(2,\) holds for all"),
    ],
)
def test_a_wrong_shape_is_refused_with_a_remedy(density, message):
    with pytest.raises(NetworkError, match=message):
        density.bind(OWN, [F, L])


def test_what_is_given_once_holds_for_all_states_of_the_parents():
    density = Gaussian(1.5, np.full((2, 3), 2.0), learn=True).bind(OWN, [F, L])
    assert (density.shape, density.components, density.dimension, density.unset) == ((2, 3), 6, 1, False)
    np.testing.assert_array_equal(density.mean, np.full((2, 3), 1.5))
    pair = Gaussian([1.0, 2.0], cov=EYE).bind(OWN, [F, L])
    assert {part: numbers.shape for part, numbers in pair.parts().items()} == {"mean": (2, 3, 2), "cov": (2, 3, 2, 2)}
    assert Poisson(3).bind(OWN, []).components == 1


def test_what_is_left_out_is_to_be_learned():
    for density in (Gaussian(), Gaussian(0.0), LogNormal(sd=1), Poisson(), Gaussian([0, 1], cov=np.full((2, 2), nan))):
        assert density.bind(OWN, [F]).unset
    assert np.isnan(Gaussian().bind(OWN, [F]).mean).tolist() == [True, True]


@ALL
def test_copies_are_equal_and_read_only(make):
    density = make(np.random.default_rng(0)).named(OWN, [F, L])
    for copy in (pickle.loads(pickle.dumps(density)), density.with_parts({}), density.bind(OWN, [F, L])):
        assert copy == density
        assert str(copy) == str(density)
        assert not any(numbers.flags.writeable for numbers in copy.parts().values())
    changed = {part: 2 * numbers for part, numbers in density.parts().items()}
    assert density.with_parts(changed) != density
    assert density.with_parts(changed).shape == (2, 3)
    with pytest.raises(NetworkError, match="a CPT is immutable"):
        density.learn = True


def test_numbers_that_replace_others_are_checked():
    density = gaussian(np.random.default_rng(0))
    with pytest.raises(NetworkError, match=r"sd, parent state \(\): |sd: -1"):
        density.with_parts({"sd": -1.0})
    with pytest.raises(NetworkError, match=r"mean has shape \(3,\), expected \(2, 3\)"):
        density.with_parts({"mean": np.zeros(3)})
    assert density.with_parts({"sd": 1.0}).sd.shape == (2, 3)


def test_a_density_prints_as_a_table_of_the_parents_states():
    shown = str(Gaussian([20.0, nan], 1.5).bind(OWN, [F]).named(OWN, [F]))
    assert shown.splitlines() == [
        "P(T | F): Gaussian",
        "F  mean   sd",
        "a    20  1.5",
        "b     ?  1.5",
        "?: to be learned",
    ]
    pair = Gaussian([1, 2, 3], cov=np.diag([4.0, 5, 6])).bind(JOINT, [F]).named(JOINT, [F])
    head, first = str(pair).splitlines()[1:3]
    assert head.split("  ")[1:4] == ["mean x", "mean y", "mean z"]
    assert first.split() == ["a", "1", "2", "3", "4", "0", "0", "5", "0", "6"]
    assert "cov y, z" in head
    assert repr(Poisson([1, 2], learn=True, tie="t")) == "Poisson(rate=[1.0, 2.0], learn=True, tie='t')"
    assert repr(Gaussian(np.zeros(9), 1)) == "Gaussian(mean=<9>, sd=1.0)"


@ALL
def test_draws_have_the_moments(make):
    rng = np.random.default_rng(8)
    density, n = make(rng), 20_000
    means, variances = density.means(), density.variances()
    assert means.shape == variances.shape == (6, density.dimension)
    for i in (0, 5):
        values = density.draw(np.full(n, i), rng)
        np.testing.assert_allclose(values.mean(axis=0), means[i], atol=5 * np.sqrt(variances[i].max() / n))
        np.testing.assert_allclose(values.var(axis=0), variances[i], rtol=0.1)
    each = density.draw(np.arange(6), rng)
    assert each.shape == (6, density.dimension)


def test_a_joint_density_is_that_of_some_columns_times_that_of_others_given_them():
    rng = np.random.default_rng(9)
    density, values = joint(rng), rng.normal(size=(50, 3))
    given = np.where([True, False, True], np.nan, values)
    means, covs = density.conditional([2, 0], given)
    assert (means.shape, covs.shape) == ((50, 6, 2), (6, 2, 2))
    rest = np.stack(
        [Gaussian(mean, cov=covs).logs(row[None])[0] for mean, row in zip(means, values[:, [2, 0]], strict=True)]
    )
    np.testing.assert_allclose(density.logs(given) + rest, density.logs(values), rtol=1e-12)


def test_given_no_other_columns_a_conditional_is_a_marginal():
    density = joint(np.random.default_rng(9))
    means, covs = density.conditional([1], np.full((4, 3), nan))
    np.testing.assert_array_equal(means[0], density.means()[:, [1]])
    np.testing.assert_allclose(covs[:, 0], density.variances()[:, [1]], rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            lambda x: np.zeros((len(x), 3)),
            r"has shape \(1, 3\), expected \(1, 2\) = \(values, \*states of the parents\)",
        ),
        (lambda x: ["low", "high"], "what <lambda> gives is not an array of numbers"),
        (lambda x: np.full((len(x), 2), nan), r"<lambda> of 0.5, parent state \(0,\): nan is not a log-density"),
        (lambda x: np.array([[0.0, np.inf]]), r"parent state \(1,\): inf is not a log-density"),
    ],
)
def test_a_function_that_gives_no_log_densities_is_refused(f, message):
    with pytest.raises(NetworkError, match=message):
        Density(f).bind(OWN, [F]).logs(np.array([[0.5]]))


def test_a_density_knows_its_log_density_only():
    density = Density(np.log).bind(OWN, []).named(OWN, [])
    with pytest.raises(NetworkError, match="a Density knows its log-density only: it has no means; use Gaussian"):
        density.means()
    with pytest.raises(NetworkError, match="values cannot be drawn"):
        density.draw(np.zeros(1, dtype=int), np.random.default_rng())
    assert str(density) == "Density(log)"
    assert density == Density(np.log) != Density(np.exp)
    assert density.logs(np.array([[1.0], [nan]])).tolist() == [[0.0], [0.0]]
    assert (density.unset, density.components, density.parts()) == (False, 1, {})


def test_the_kinds_have_names():
    names = [kind.kind for kind in (tacit.Gaussian, tacit.LogNormal, tacit.Poisson, tacit.Density)]
    assert names == ["gaussian", "log-normal", "poisson", "density"]
