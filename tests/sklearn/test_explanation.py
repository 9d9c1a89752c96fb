"""Explanations of estimators, in the names and units of their features."""

import operator

import numpy as np
import pandas as pd
import pytest

import tacit

pytest.importorskip("sklearn")

from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from tacit.sklearn import TACClassifier, TACRegressor
from tests.helpers import close

COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def without(row, name):
    row = row.copy()
    row[name] = np.nan
    return row


@pytest.mark.parametrize("settings", [{"prior": 1.0, "steps": 5}, {"tests": 1, "steps": 20}], ids=["chosen", "tests"])
def test_a_feature_adds_what_is_lost_if_it_is_missing(iris, settings):
    X, y = iris
    model, row = TACClassifier(random_state=0, **settings).fit(X, y), X[60:61]
    found = model.explain(row)
    close(found.predicted, model.predict_proba(row)[0])
    assert [one.name for one in found.features] == list(X.columns)
    assert [one.value for one in found.features] == row.to_numpy()[0].tolist()
    for one in found.features:
        rest = model.predict_proba(without(row, one.name))[0]
        close(one.without, rest)
        odds = found.predicted / (1 - found.predicted) / (rest / (1 - rest))
        close(one.weight, np.log(odds), 1e-6)
    text = str(found)
    assert f"the log-odds of {model.predict(row)[0]}, given the others" in text
    assert "petal length (cm)" in text
    assert "E2" not in text
    assert ">petal length (cm)</td>" in found._repr_html_()


def test_thresholds_are_in_the_units_of_the_features(iris):
    X, y = iris
    model = TACClassifier(tests=2, steps=5, random_state=0).fit(X, y)
    for i in (0, 60, 110):
        found = model.explain(X[i : i + 1])
        assert len(found.tests) == 4 * 2 * 2
        for test in found.tests:
            assert test.value == X[test.feature][i]
            low, high = X[test.feature].min(), X[test.feature].max()
            assert low <= test.threshold <= high
            if test.distance > 1e-6:
                assert (test.holds > 0.5) == COMPARE[test.operator](test.value, test.threshold)
    assert f"{found.tests[0].feature} {found.tests[0].operator} {found.tests[0].threshold:.6g}" in str(found)


def test_missing_values_add_nothing(iris):
    X, y = iris
    for settings in ({"steps": 5, "prior": 1.0}, {"tests": 1, "steps": 5}):
        model = TACClassifier(random_state=0, **settings).fit(X, y)
        found = model.explain(without(X[:1], "petal width (cm)"))
        assert [one.name for one in found.features] == list(X.columns)[:3]
        assert {test.feature for test in found.tests} <= set(X.columns[:3])


def test_a_regressor_explains_in_the_units_of_y(iris):
    X, _ = iris
    y, X = X["petal width (cm)"], X.iloc[:, :3]
    model = TACRegressor(steps=5, random_state=0).fit(X, y)
    found = model.explain(X[:1])
    close(found.predicted, model.predict(X[:1]))
    for one in found.features:
        close(one.without, model.predict(without(X[:1], one.name)))
        close(one.weight, found.predicted - one.without)
    assert str(found).startswith(f"prediction {found.predicted[0]:.6g}\n")
    plain = TACRegressor(steps=5, random_state=0).fit(X.to_numpy(), y).explain(X[:1].to_numpy())
    assert [one.name for one in plain.features] == ["x0", "x1", "x2"]


def test_text_and_a_network_of_ones_own():
    net = tacit.Network()
    net.add("y", states=["no", "yes"])
    net.add("size", ["y"], ["lo", "mid", "hi"])
    net.add("wet", ["y"])
    rows = pd.DataFrame({"size": ["lo", "mid", "hi", "hi"] * 5, "wet": ["true", "false", "true", "true"] * 5})
    y = ["no", "no", "yes", "yes"] * 5
    model = TACClassifier(net, query="y", steps=5, random_state=0).fit(rows, y)
    for fitted in (model, TACClassifier(steps=5, prior=1.0, random_state=0).fit(rows, y)):
        found = fitted.explain(rows[2:3])
        assert [(one.name, one.value) for one in found.features] == [("size", "hi"), ("wet", "true")]
        close(found.predicted, fitted.predict_proba(rows[2:3])[0])
        assert found.tests == ()
    by_place = TACClassifier(net, query="y", evidence=["size", "wet"], steps=5, random_state=0).fit(rows.to_numpy(), y)
    assert [one.name for one in by_place.explain(rows[2:3].to_numpy()).features] == ["size", "wet"]


def test_one_row_of_a_fitted_model(iris):
    X, y = iris
    with pytest.raises(NotFittedError):
        TACClassifier().explain(X[:1])
    model = TACClassifier(tests=1, steps=2, random_state=0).fit(X, y)
    with pytest.raises(tacit.EvidenceError, match="explain takes one row, got 2"):
        model.explain(X[:2])
