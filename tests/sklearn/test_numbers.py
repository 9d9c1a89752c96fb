"""`TACClassifier(numbers=...)`: networks with Gaussian leaves, alone and together with others."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd
from scipy.stats import multivariate_normal, norm
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit import TacitError
from tacit.model.densities.missing import patterns
from tacit.sklearn import TACClassifier
from tacit.sklearn.gaussian_leaves import FAMILIES, GaussianRows, Scaling, Shape, clusters, log_densities, logs_of_all
from tacit.sklearn.model_selection import LabelledTable
from tacit.sklearn.number_choice import shares_of
from tacit.sklearn.pool import best_power, best_weights, calibrated
from tacit.sklearn.table import FeatureTable
from tests.helpers import close

QUICK = {"prior": 1.0, "steps": 5, "random_state": 0}


def labelled(rows=60, texts=False):
    """Two classes, the second of which is two clouds; some weights are 2."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, 2)) + np.where(y == 1, rng.choice([-4.0, 4.0], rows), 0.0)[:, None]
    columns = [*X.T] + [np.array(["no", "yes"], dtype=object)[(y + (X[:, 0] > 0)) % 2]] * texts
    table = FeatureTable(columns)
    return LabelledTable(table, ["a", "b", "c"], np.eye(2)[y], ("no", "yes"), 1.0 + (np.arange(rows) % 5 == 0))


@pytest.mark.slow
@pytest.mark.parametrize("numbers", ["gaussian", "auto"])
def test_all_of_scikit_learns_checks_pass(numbers):
    results = check_estimator(TACClassifier(**QUICK, numbers=numbers), on_skip=None)
    assert len(results) > 50


@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize("texts", [False, True])
def test_choices_are_made_by_what_the_networks_say(texts, hole):
    rows = labelled(texts=texts)
    others = rows.table.take(np.arange(7))
    if hole:
        others.columns[0][2] = np.nan
    for _, shape, logs in list(logs_of_all(rows, others))[:: len(FAMILIES["joint"]) // 3]:
        made = GaussianRows(rows, Scaling.of(rows, shape.scores))
        close(
            made.query(shape).posterior(made.scaling(others)), calibrated(logs, 1.0), 2e-9
        )  # which holds what is less to 1e-9


def test_rows_with_holes_are_judged_by_the_densities_of_what_they_hold():
    rng = np.random.default_rng(0)
    values, means = rng.normal(size=(40, 3)), rng.normal(size=(2, 3))
    values[rng.random(values.shape) < 0.4] = np.nan
    cov = np.stack([np.cov(rng.normal(size=(9, 3)).T) for _ in means])
    known = [(observed, np.arange(len(values))[rows]) for observed, rows in patterns(values)]
    for own in (cov, cov[:1]):
        expected = np.zeros((len(values), 2))
        for row, one in enumerate(values):
            (seen,) = np.nonzero(~np.isnan(one))
            for k in range(2) if len(seen) else ():
                matrix = own[k % len(own)][np.ix_(seen, seen)]
                expected[row, k] = multivariate_normal(means[k, seen], matrix).logpdf(one[seen])
        found = log_densities(values, known, means, own)
        close(found - found[:, :1], expected - expected[:, :1], 1e-9)


def test_one_component_without_anything_shared_is_the_normal_distribution_of_each_class():
    rows = labelled(4_000)
    made = GaussianRows(rows, Scaling.of(rows, False))
    posterior = made.query(Shape(shared=0.0)).posterior(made.scaling(rows.table))
    X, y = np.stack(rows.table.columns, axis=1), rows.targets.argmax(axis=1)
    moments = [(X[y == k].mean(axis=0), np.cov(X[y == k].T)) for k in (0, 1)]
    expected = np.stack([multivariate_normal(*pair).pdf(X) for pair in moments], axis=1)
    assert np.abs(posterior - expected / expected.sum(axis=1, keepdims=True)).mean() < 0.01


def test_components_find_the_clouds_of_a_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 30, axis=0)
    found = clusters(X, np.ones(90), 3)
    assert len(set(found[:30])) == len(set(found[30:60])) == len(set(found[60:])) == 1
    assert len(set(found)) == 3


def test_the_weights_of_a_pool_favour_what_predicts_well_and_are_held_to_equal_ones_where_rows_are_few():
    y = np.eye(2)[[0, 1] * 50]
    good, bad = 0.8 * y + 0.1, np.full((100, 2), 0.5)
    assert best_weights([good, bad], y, np.ones(100))[0] > 0.9
    assert best_weights([good[:2], bad[:2]], y[:2], np.ones(2))[0] < 0.8


def test_a_power_calibrates_probabilities_that_are_too_sure():
    rng = np.random.default_rng(0)
    score = rng.normal(size=5_000)
    y = np.eye(2)[(rng.random(5_000) < 1 / (1 + np.exp(-score))).astype(int)]
    logs = np.stack([np.zeros(5_000), 3 * score], axis=1)
    assert best_power(logs, y, np.ones(5_000)) == pytest.approx(1 / 3, rel=0.1)


def test_gaussian_leaves_below_two_classes_follow_normal_distributions():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = pd.DataFrame({"x": rng.normal(np.where(y == 1, 3.0, 0.0), 1.0)})
    model = TACClassifier(numbers="gaussian", random_state=0).fit(X, y)
    x = np.array([[0.0], [1.5], [3.0]])
    expected = norm.pdf(x[:, 0], 3) / (norm.pdf(x[:, 0], 3) + norm.pdf(x[:, 0], 0))
    close(model.predict_proba(pd.DataFrame(x, columns=["x"]))[:, 1], expected, 0.1)
    assert isinstance(model.network_.density("x"), tacit.Gaussian)


@pytest.mark.parametrize("numbers", ["gaussian", pytest.param("auto", marks=pytest.mark.slow)])
def test_members_predict_together_and_explain_themselves_with_holes_and_text(numbers):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) % 2, "ill", "well")
    X = pd.DataFrame({"x": rng.normal(np.where(y == "ill", 2, 0)), "cough": np.where(rng.random(80) < 0.3, "no", y)})
    X.iloc[::7, 0], X.iloc[::9, 1] = np.nan, None
    model = TACClassifier(numbers=numbers, **QUICK).fit(X, y)
    assert sum(member.weight for member in model.members_) == pytest.approx(1)
    close(model.predict_proba(X).sum(axis=1), 1, 1e-12)
    feature = model.explain(X.iloc[[1]]).features[0]
    without = model.predict_proba(X.iloc[[1]].assign(**{feature.name: [np.nan if feature.name == "x" else None]}))
    close(feature.without, without[0], 1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numbers": "normal"}, "numbers is 'normal', expected one of 'bins', 'gaussian', 'auto'"),
        (
            {"numbers": "auto", "tests": 2},
            "numbers='auto' is for networks that are made for the table; leave out tests",
        ),
    ],
)
def test_numbers_that_cannot_be(settings, message):
    with pytest.raises(TacitError, match=message):
        TACClassifier(**settings).fit([[0.0], [1.0]], [0, 1])


def test_equal_rows_and_rows_with_weight_are_dealt_out_to_folds_alike():
    x, y = np.array([0.0, 0, 0, 1, 2, 3]), np.eye(2)[[0, 0, 0, 1, 0, 1]]
    rows = LabelledTable(FeatureTable([x]), ["x"], y, (0, 1), np.ones(6))
    weighted = LabelledTable(FeatureTable([x[2:]]), ["x"], y[2:], (0, 1), np.array([3.0, 1, 1, 1]))
    by_row, by_weight = np.array(shares_of(rows, 0)), np.array(shares_of(weighted, 0))
    close(np.column_stack([by_row[:, :3].sum(axis=1), by_row[:, 3:]]), by_weight)
    assert set(by_weight[:, 0]) == {0, 1}
