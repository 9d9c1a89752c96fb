"""`tacit.sklearn`: scikit-learn's own checks, and that predictions are posteriors of the networks that were learned."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd
import polars as pl
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mutual_info_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit import EvidenceError, Network, NetworkError, TacitError, examples, semantics
from tacit.sklearn import TACClassifier, TACRegressor, default_network
from tacit.sklearn.classifier_structure import ColumnCounts, forest
from tacit.sklearn.default import KNOTS, Ranks
from tacit.sklearn.levels import NumberLevels
from tacit.sklearn.model_selection import LabelledTable, folds_of, keys_of
from tacit.sklearn.table import FeatureTable
from tests.helpers import close

IRIS, SPECIES = load_iris(return_X_y=True)
QUICK = {"prior": 1.0, "random_state": 0}  # validation chooses the structure only
SMALL = {"tests": 1, "components": 1, "steps": 20, "random_state": 0}


def seed_of(random_state):
    """The seed that an estimator gives to `tacit.fit`."""
    return np.random.RandomState(random_state).randint(np.iinfo(np.int32).max)


def findings():
    """A disease with a finding of three states, known in part, and one of two."""
    net = Network("findings")
    net.add("disease", states=["ill", "fine"], cpt=[0.1, 0.9])
    net.add("cough", ["disease"], ["no", "some", "much"], [[0.2, np.nan, np.nan], [np.nan, np.nan, 0.0]])
    net.add("fever", ["disease"])
    return net


def patients(rows=200):
    rng = np.random.default_rng(0)
    ill = rng.random(rows) < 0.4
    cough = np.where(ill, rng.choice(["no", "some", "much"], rows), rng.choice(["no", "some"], rows))
    fever = np.clip(np.where(ill, 0.8, 0.2) + 0.3 * rng.normal(size=rows), 0, 1)
    return pd.DataFrame({"cough": cough, "fever": fever}), np.where(ill, "ill", "fine")


# scikit-learn's conventions -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [TACClassifier(**QUICK, steps=5), TACClassifier(steps=20, tests=1), TACRegressor(steps=20, tests=1)]
)
def test_all_of_scikit_learns_checks_pass(estimator):
    results = check_estimator(estimator, on_skip=None)
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # which needs an environment variable
    assert len(results) > 50


DAYS = pd.date_range("2024-03-01", periods=4)
WITH_DATES = {
    "datetime64[ns]": pd.DataFrame({"x": [1.0, 2, 3, 4], "when": DAYS.astype("datetime64[ns]")}),
    "datetime64[us, UTC]": pd.DataFrame({"when": DAYS.astype("datetime64[us]").tz_localize("UTC")}),
    "timedelta64[us]": pd.DataFrame({"when": (DAYS - DAYS[0]).astype("timedelta64[us]")}),
    "period[M]": pd.DataFrame({"when": DAYS.to_period("M")}),
    "object": pd.DataFrame({"when": pd.Series([day.date() for day in DAYS], dtype=object)}),
    "datetime64[s]": pd.DataFrame({"when": np.full(4, np.datetime64("NaT", "s"))}),
    "Date": pl.DataFrame({"when": [day.date() for day in DAYS]}),
    "Time": pl.DataFrame({"when": [day.time() for day in DAYS]}),
}


@pytest.mark.parametrize("model", [TACClassifier(), TACClassifier(tests=1), TACRegressor()], ids=repr)
@pytest.mark.parametrize("dtype", WITH_DATES)
def test_a_column_of_dates_is_named_with_its_type_and_what_would_be_right(model, dtype):
    """Also where NumPy would take a date for a number of nanoseconds."""
    with pytest.raises(TypeError) as error:
        model.fit(WITH_DATES[dtype], [0, 1, 0, 1])
    assert str(error.value).startswith(f"column 'when' of X has dtype {dtype} and holds ")
    assert str(error.value).endswith(": give the days since a date, or the month")


@pytest.mark.parametrize("unit", ["D", "ns"])
@pytest.mark.parametrize("model", [TACClassifier(), TACClassifier(tests=1), TACRegressor()], ids=repr)
def test_dates_in_an_array_are_refused_by_the_place_of_their_column(model, unit):
    dates = np.array(DAYS, dtype=f"datetime64[{unit}]")[:, None]
    for X in (dates, dates.astype(object))[: 1 if unit == "ns" else 2]:  # as an object, one of ns is an int
        with pytest.raises(TypeError, match=r"^column 0 of X has dtype .* and holds 2024-03-01.*days since a date"):
            model.fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("model", "column", "message"),
    [
        (
            TACClassifier(),
            [[1], [2], [3], [4]],
            r"holds \[1\]; expected numbers or text: give text, if it is a category",
        ),
        (TACRegressor(), [[1], [2], [3], [4]], r"holds \[1\]; every argument must be a number.*: leave the column out"),
        (TACRegressor(), ["1", "b", "3", "d"], r"holds 'b'; every argument must be a number.*: scikit-learn's OneHot"),
    ],
)
def test_a_column_of_no_use_is_named(model, column, message):
    X = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": pd.Series(column, dtype=object)})
    with pytest.raises((TypeError, ValueError), match=rf"^column 'b' of X has dtype object and {message}"):
        model.fit(X, [0, 1, 0, 1])


def test_clones_learn_the_same_in_any_process():
    model = TACClassifier(**SMALL).fit(IRIS, SPECIES)
    expected = model.predict_proba(IRIS)
    for other in (clone(model).fit(IRIS, SPECIES), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(IRIS), expected)
    assert not np.array_equal(clone(model).set_params(random_state=1).fit(IRIS, SPECIES).predict_proba(IRIS), expected)


def test_a_given_network_is_a_parameter_like_others():
    rng = np.random.default_rng(0)
    model = TACRegressor(examples.chain(2), "Q", ["E1", "E2"], steps=5)
    copy = clone(model)
    assert copy.network == model.network
    assert copy.network is not model.network
    assert copy.get_params()["query"] == "Q"
    X = rng.random((30, 2))
    search = GridSearchCV(model, {"network": [examples.chain(1), examples.chain(2)], "restarts": [1]}, cv=2)
    search.fit(X, X.mean(axis=1))
    assert search.best_estimator_.network in [examples.chain(1), examples.chain(2)]
    assert np.isnan(model.network.cpt("Q").table).all()  # what was given is not changed


def test_pipelines_and_searches_take_the_estimators():
    model = make_pipeline(StandardScaler(), TACClassifier(**SMALL))
    search = GridSearchCV(model, {"tacclassifier__prior": [0.1, 100.0]}, cv=2).fit(IRIS, SPECIES)
    assert search.best_params_ == {"tacclassifier__prior": 0.1}
    assert cross_val_score(TACClassifier(**SMALL), IRIS, SPECIES, cv=3).mean() > 0.85


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_have_their_names_remembered(frame):
    names = [f"feature {i}" for i in range(4)]
    X = frame({name: IRIS[:, i] for i, name in enumerate(names)})
    model = TACClassifier(**SMALL).fit(X, SPECIES)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict_proba(X), TACClassifier(**SMALL).fit(IRIS, SPECIES).predict_proba(IRIS))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({name: IRIS[:, i] for i, name in enumerate(reversed(names))}))


def test_an_estimator_must_be_fitted_first():
    for model in (TACClassifier(), TACRegressor()):
        for method in (model.predict, model.to_evidence):
            with pytest.raises(NotFittedError):
                method(IRIS)


# the default network --------------------------------------------------------------------------------------


def test_probabilities_are_posteriors_by_enumeration():
    X = IRIS[::10, 2:]
    model = TACClassifier(tests=2, components=2, steps=10, random_state=0).fit(X, SPECIES[::10] > 0)
    evidence = model.to_evidence(X)
    assert model.classes_.tolist() == [False, True] == list(model.network_.states("Q"))
    close(model.predict_proba(X), semantics.posterior(model.network_, "Q", evidence))
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] > 0.5)


def test_tests_compare_features_with_thresholds():
    model = TACClassifier(**SMALL).fit(IRIS, SPECIES)
    ranks = model.to_evidence(IRIS)["E2"]
    assert (ranks.min(), ranks.max()) == (0.0, 1.0)
    assert (np.diff(ranks[np.argsort(IRIS[:, 2])]) >= 0).all()
    close(model.tac_.selected(model.to_evidence(IRIS))["T2.0"].posterior, np.stack([ranks, 1 - ranks], axis=1))


def test_the_default_network_grows_linearly_and_its_tables_do_not_grow():
    small, large = default_network(30, ["a", "b", "c"]), default_network(60, ["a", "b", "c"])
    assert large.cpt("V59.1").table.size == small.cpt("V0.0").table.size == 2 * 6 * 2
    costs = []
    for net in (small, large):
        observed = [name for name in net if name.startswith("V")]
        tac = tacit.compile(net, "Q", [name for name in net if name.startswith("E")], hard=observed, effort="low")
        costs.append(tac.program.cost.multiply_adds)
    assert costs[1] <= 2.1 * costs[0]


def test_components_let_features_interact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] * X[:, 1] > 0
    scores = [TACClassifier(components=c, random_state=0).fit(X, y).score(X, y) for c in (1, 2)]
    assert scores[0] < 0.7
    assert scores[1] > 0.95


def test_only_the_order_of_a_features_values_matters_in_training():
    X = np.exp(3 * IRIS)
    np.testing.assert_array_equal(
        TACClassifier(**SMALL).fit(X, SPECIES).predict_proba(X),
        TACClassifier(**SMALL).fit(IRIS, SPECIES).predict_proba(IRIS),
    )


def test_missing_values_are_no_evidence():
    rng = np.random.default_rng(0)
    X = IRIS.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 1] = np.nan  # never seen
    model = TACClassifier(**SMALL | {"steps": 50}).fit(X, SPECIES)
    assert model.score(X, SPECIES) > 0.8
    known = {name: value for name, value in model.to_evidence(X[:1]).items() if name[0] == "V"}
    close(model.predict_proba(np.full((1, 4), np.nan)), model.tac_.posterior(known))
    without = model.predict_proba(np.where(np.arange(4) == 1, 5.0, IRIS))
    close(without, model.predict_proba(np.where(np.arange(4) == 1, np.nan, IRIS)))


def test_weights_count_rows():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, len(IRIS))
    repeated = TACClassifier(**SMALL).fit(np.repeat(IRIS, counts, axis=0), np.repeat(SPECIES, counts))
    weighted = TACClassifier(**SMALL).fit(IRIS, SPECIES, sample_weight=counts)
    np.testing.assert_allclose(weighted.predict_proba(IRIS), repeated.predict_proba(IRIS), atol=1e-6)
    assert not np.allclose(TACClassifier(**SMALL).fit(IRIS, SPECIES).predict_proba(IRIS), repeated.predict_proba(IRIS))


def test_ranks_rise_from_0_to_1():
    rng = np.random.default_rng(0)
    column = rng.normal(size=2000)
    ranks = Ranks.of(column, np.ones(2000))
    assert len(ranks.values) <= KNOTS
    found = ranks(np.sort(column))
    assert (found[0], found[-1]) == (0.0, 1.0)
    np.testing.assert_allclose(found, np.linspace(0, 1, 2000), atol=1 / KNOTS)
    np.testing.assert_array_equal(Ranks.of(np.array([3.0, 5.0, 3.0]), np.ones(3))(np.array([3.0, 5.0])), [0.0, 1.0])
    np.testing.assert_array_equal(Ranks.of(np.array([3.0, 3.0]), np.ones(2))(np.array([2.0, 3.0, 9.0])), 0.5)


def test_a_regressor_scales_y_and_stays_in_its_range():
    rng = np.random.default_rng(0)
    X, y = make_friedman1(200, noise=0.1, random_state=0)
    model = TACRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    found = model.predict(rng.random((500, X.shape[1])) * 3 - 1)
    assert y.min() <= found.min() < found.max() <= y.max()
    expected = 1e3 * TACRegressor(**SMALL).fit(X, y).predict(X) - 1e4
    np.testing.assert_allclose(TACRegressor(**SMALL).fit(X, 1e3 * y - 1e4).predict(X), expected, rtol=1e-6)
    np.testing.assert_array_equal(TACRegressor(**SMALL).fit(X, np.full(200, 7.0)).predict(X), 7.0)


# the network that validation chooses ----------------------------------------------------------------------


def clinic(rows=150):
    """Numbers, whole numbers, text and truth values, some of them missing, and who is ill."""
    rng = np.random.default_rng(0)
    ill = rng.random(rows) < 0.4
    frame = pd.DataFrame(
        {
            "age": 50 + 10 * rng.normal(size=rows) + 8 * ill,
            "visits": rng.poisson(1 + 2 * ill),
            "ward": np.where(rng.random(rows) < 0.8, np.where(ill, "north", "south"), "east"),
            "smoker": rng.random(rows) < 0.3 + 0.3 * ill,
        }
    )
    return frame.astype({"visits": float, "smoker": object}).mask(rng.random(frame.shape) < 0.1), ill


@pytest.mark.parametrize("holes", [False, True])
def test_what_is_chosen_is_one_network_whose_posterior_is_predicted(holes):
    X, y = clinic(80)
    X = X[["age", "ward"]] if holes else X[["age", "ward"]].ffill().bfill()
    model = TACClassifier(**QUICK).fit(X, y)
    evidence = model.to_evidence(X[:10])
    close(model.predict_proba(X[:10]), semantics.posterior(model.network_, "Q", evidence))
    close(model.predict_proba(X[:10]), model.tac_.posterior(evidence))


def test_text_and_missing_values_are_taken_as_they_are():
    X, y = clinic()
    model = TACClassifier(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.85
    assert set(model.network_.variables) - {"C", "Q"} == set(X.columns)
    assert model.network_.states("ward") == ("east", "north", "south")
    assert model.network_.states("smoker") == ("0", "1")
    strange = X[:1].assign(age=np.nan, visits=np.nan, ward="west", smoker=None)  # no ward of that name was seen
    shares = np.array([(~y).sum() + 1, y.sum() + 1]) / (len(y) + 2)
    close(model.predict_proba(strange), shares[None])
    for same in (pl.from_pandas(X.astype({"smoker": float})), X.to_numpy(dtype=object)):
        close(TACClassifier(**QUICK).fit(same, y).predict_proba(same), model.predict_proba(X), tolerance=1e-6)


def test_columns_may_have_the_names_of_other_nodes_or_say_nothing():
    X = pd.DataFrame({"Q": ["a", "b"] * 20, "C": np.arange(40.0), "same": 1.0, "none": None})
    model = TACClassifier(**QUICK).fit(X, ["yes", "no"] * 20)
    assert set(model.to_evidence(X)) == {"Q (column 0)", "C (column 1)"}
    assert model.score(X, ["yes", "no"] * 20) == 1.0
    for silent in (np.ones((9, 2)), np.full((9, 2), np.nan)):
        model = TACClassifier(**QUICK).fit(silent, [0, 0, 1] * 3)
        close(model.predict_proba(np.zeros((2, 2))), np.tile([2 / 3, 1 / 3], (2, 1)), tolerance=0.05)
    assert TACClassifier(**QUICK).fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.0]]).shape == (
        1,
        2,
    )  # nothing to hold out


def test_infinite_numbers_in_a_frame_are_an_error():
    X, y = clinic(20)
    with pytest.raises(ValueError, match="column 'age' of X contains infinity"):
        TACClassifier().fit(X.assign(age=np.inf), y)


def test_repeated_rows_are_held_out_together():
    rng = np.random.default_rng(0)
    columns, classes = [rng.normal(size=60), rng.choice(np.array(["a", "b"], dtype=object), 60)], np.arange(60) % 3
    rows = LabelledTable(FeatureTable(columns), ["x", "y"], np.eye(3)[classes], [0, 1, 2], np.ones(60))
    twice = rows.take(np.repeat(np.arange(60), 2))
    folds, again = (folds_of(some, keys_of(some.table, 0)) for some in (rows, twice))
    assert len(folds) == 5
    np.testing.assert_array_equal(np.sum(folds, axis=0), 1)  # each row once
    for out, both in zip(folds, again, strict=True):
        np.testing.assert_array_equal(np.bincount(classes[out]), 4)
        np.testing.assert_array_equal(both, np.repeat(out, 2))


def test_trees_join_the_columns_that_know_most_of_each_other():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 500)
    second = np.where(rng.random(500) < 0.9, first, rng.integers(0, 3, 500))
    third = np.where(rng.random(500) < 0.7, second, rng.integers(0, 3, 500))
    alone = rng.integers(0, 3, 500)
    likelihoods = [np.eye(3)[column] for column in (first, alone, second, third)]
    likelihoods[0][:50] = np.nan  # missing
    counts = ColumnCounts(likelihoods, np.ones(500))
    information = counts.information()
    chance = 4 * np.log(450) / 2
    assert information[0, 2] == pytest.approx(450 * mutual_info_score(first[50:], second[50:]) - chance)
    assert forest(information) == {0: None, 2: 0, 3: 2, 1: None}


def test_levels_are_a_deviation_apart_and_weights_count():
    column = np.array([1.0, 2.0, 2.0, 4.0, 6.0, np.nan])
    levels = NumberLevels.of(column, np.ones(6), 3, 4.0)
    assert (levels.mean, levels.deviation) == (pytest.approx(3.0), pytest.approx(np.std(column[:5])))
    weighted = NumberLevels.of(column[[0, 1, 3, 4]], np.array([1.0, 2.0, 1.0, 1.0]), 3, 4.0)
    assert (weighted.mean, weighted.deviation) == (pytest.approx(3.0), pytest.approx(levels.deviation))
    found = levels(np.array([3.0, -1e9, np.nan]))
    assert found[0].argmax() == 1
    assert found[1].argmax() == 0
    assert np.isnan(found[2]).all()
    close(found[:2].sum(axis=1), np.ones(2))
    assert np.isfinite(NumberLevels.of(np.array([-1e300, 0.0, 1e300]), np.ones(3), 2, 2.0).deviation)


def test_it_is_worth_choosing():
    X, y = load_wine(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=0)
    model = TACClassifier(random_state=0).fit(X[train], y[train])
    assert log_loss(y[test], model.predict_proba(X[test])) < 0.1


# a given network ------------------------------------------------------------------------------------------


def test_a_given_network_starts_from_counts_and_stays_a_model_of_the_data():
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="quantile", quantile_method="averaged_inverted_cdf")
    X = pd.DataFrame(bins.fit_transform(IRIS).astype(int), columns=list("abcd"))
    net = Network("naive")
    net.add("species", states=3)
    for name in X:
        net.add(name, ["species"], 4)
    model = TACClassifier(net, "species")
    trained = model.fit(X, SPECIES).network_
    np.testing.assert_allclose(trained.table("species"), 1 / 3, atol=0.03)
    counted = tacit.estimate(net, {**X, "species": SPECIES}, prior=1.0, progress=False).network
    for name in X:
        np.testing.assert_allclose(trained.table(name), counted.table(name), atol=0.2)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    losses = [
        -cross_val_score(
            TACClassifier(net, "species", prior=prior), X, SPECIES, cv=folds, scoring="neg_log_loss"
        ).mean()
        for prior in (None, 0.0)
    ]
    assert losses[0] < 0.2
    assert losses[0] < losses[1]


def test_with_a_network_to_fit_is_to_call_tacit_fit():
    rng = np.random.default_rng(0)
    X = rng.random((50, 2))
    y = 0.2 + 0.6 * (X[:, 0] > X[:, 1])
    model = TACRegressor(examples.chain(2), "Q", ["E1", "E2"], random_state=3, steps=10, restarts=2).fit(X, y)
    tac = tacit.compile(examples.chain(2), "Q", ["E1", "E2"])
    expected = tacit.fit(tac, X, y, seed=seed_of(3), steps=10, restarts=2)
    assert model.fit_.optimizer == expected.optimizer == "lm"
    assert model.network_ == expected.network
    np.testing.assert_array_equal(model.predict(X), expected.tac.posterior(X)[:, 0])


def test_frames_hold_labels_and_likelihoods_and_known_numbers_stay():
    X, y = patients()
    model = TACClassifier(findings(), "disease", steps=50, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.classes_.tolist() == ["fine", "ill"]  # sorted, unlike the states
    expected = semantics.posterior(model.network_, "disease", {"cough": X["cough"], "fever": X["fever"]})
    close(model.predict_proba(X), expected[:, ::-1])
    np.testing.assert_array_equal(model.network_.cpt("disease").table, [0.1, 0.9])
    assert model.network_.cpt("cough").table[0, 0] == 0.2
    assert model.network_.cpt("cough").table[1, 2] == 0.0
    np.testing.assert_array_equal(model.predict(X.assign(fever=None, cough="much")), "ill")


def test_evidence_names_some_columns_of_a_frame_and_all_of_an_array():
    X, y = patients()
    named = TACClassifier(findings(), "disease", ["fever"], steps=5, random_state=0).fit(X, y)
    by_place = clone(named).fit(X[["fever"]].to_numpy(), y)
    np.testing.assert_array_equal(named.predict_proba(X), by_place.predict_proba(X[["fever"]].to_numpy()))
    assert (named.n_features_in_, by_place.n_features_in_) == (2, 1)


def test_impossible_rows_have_no_class():
    net = Network()
    net.add("Q")
    net.add("F", ["Q"], ["a", "b", "c"], [[np.nan, np.nan, 0.0], [np.nan, np.nan, 0.0]])
    X = pd.DataFrame({"F": ["a", "b"] * 10})
    model = TACClassifier(net, "Q", steps=5, random_state=0).fit(X, ["true", "false"] * 10)
    bad = pd.DataFrame({"F": ["a", "c"]})
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        assert np.isnan(model.predict_proba(bad)).any(axis=1).tolist() == [False, True]
    with pytest.warns(tacit.ImpossibleEvidenceWarning), pytest.raises(EvidenceError, match=r"row 1: .* probability 0"):
        model.predict(bad)


# errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"network": findings()}, "without a query"),
        ({"network": "findings.json", "query": "disease"}, "network is a str"),
        ({"network": findings(), "query": "illness"}, "'illness' is not a variable"),
        ({"network": findings(), "query": "disease", "evidence": ["cogh"]}, "no column 'cogh'.*'cough'"),
        ({"network": findings(), "query": "disease", "evidence": ["disease"]}, "'disease' is among the evidence"),
        ({"network": findings(), "query": "fever"}, "y, row 0: .* is not a state of the query"),
    ],
)
def test_a_given_network_that_does_not_fit_is_an_error(parameters, message):
    with pytest.raises(TacitError, match=message):
        TACClassifier(**parameters).fit(*patients(10))


def test_arrays_need_named_columns():
    rng = np.random.default_rng(0)
    X = rng.random((10, 3))
    with pytest.raises(TacitError, match="X is an array"):
        TACRegressor(examples.chain(1), "Q").fit(X, X[:, 0])
    with pytest.raises(EvidenceError, match="X has 3 columns, expected 2: E1, E2"):
        TACRegressor(examples.chain(1), "Q", ["E1", "E2"]).fit(X, X[:, 0])


def test_probabilities_are_not_clipped():
    rng = np.random.default_rng(0)
    with pytest.raises(EvidenceError, match=r"row 1: 1\.5 is not a probability"):
        TACRegressor(examples.chain(1), "Q", ["E1", "E2"]).fit(rng.random((2, 2)), [0.5, 1.5])


def test_classes_must_be_of_one_kind_and_more_than_one():
    net = Network()
    net.add("Q", states=["none", 1])
    net.add("F", ["Q"])
    with pytest.raises(TacitError, match="'Q' are of different kinds"):
        TACClassifier(net, "Q", ["F"]).fit([[0.5], [0.6]], ["none", "none"])
    with pytest.raises(TacitError, match="one class only, 'a'"):
        TACClassifier().fit([[0.5], [0.6]], ["a", "a"])


@pytest.mark.parametrize("parameter", ["tests", "components"])
def test_the_default_network_needs_tests_and_components(parameter):
    with pytest.raises(NetworkError, match=f"{parameter} is 0"):
        TACClassifier(**{parameter: 0}).fit(IRIS, SPECIES)


@pytest.mark.parametrize("estimator", [TACClassifier, TACRegressor])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prior": "a"}, "prior is 'a', expected None, or a number of pseudo-counts >= 0"),
        ({"prior": -1.0}, "prior is -1.0"),
        ({"random_state": "a"}, "random_state is 'a', expected None, a whole number"),
        ({"random_state": -1}, "random_state is -1"),
        ({"steps": 0}, "steps is 0"),
        ({"restarts": "many"}, "restarts is 'many'"),
        ({"validation": 2}, "validation is 2"),
        ({"gamma": [1.0]}, r"gamma is \[1.0\]"),
        ({"loss": ["mse"]}, r"loss is \['mse'\]"),
        ({"optimizer": 3}, "optimizer is 3"),
        ({"tests": "2"}, "tests is '2'"),
        ({"components": 1.5}, "components is 1.5"),
        ({"network": 5, "query": "Q"}, "network is a int"),
    ],
)
def test_bad_parameters_are_errors_of_tacit(estimator, parameters, message):
    with pytest.raises(TacitError, match=message):
        estimator(**parameters).fit(IRIS[:, :1], SPECIES)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"query": ["disease"]}, r"query is \['disease'\], expected the name of a variable"),
        ({"query": "disease", "evidence": "fever"}, "evidence is 'fever', expected a list of the names"),
        ({"query": "disease", "evidence": 5}, "evidence is 5, expected a list of the names"),
        ({"query": "disease", "evidence": [["fever"]]}, "expected a list of the names"),
    ],
)
def test_names_must_be_names(parameters, message):
    with pytest.raises(TacitError, match=message):
        TACClassifier(findings(), **parameters).fit(*patients(10))


def test_some_row_must_count_and_numbers_be_numbers():
    for estimator in (TACClassifier(), TACRegressor()):
        with pytest.raises(ValueError, match="at least one"):
            estimator.fit(IRIS, SPECIES, sample_weight=np.zeros(len(IRIS)))
    with pytest.raises(EvidenceError, match="y holds other things than numbers"):
        TACRegressor().fit(IRIS[:2], ["a", "b"])


def test_a_column_of_another_kind_than_in_fit_is_named():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"size": rng.normal(size=40), "colour": rng.choice(["red", "blue"], 40)})
    model = TACClassifier(random_state=0).fit(X, rng.choice(["a", "b"], 40))
    with pytest.raises(TypeError, match=r"^column 'size' of X holds text, such as 'big'; in fit, it held numbers$"):
        model.predict(X[:2].assign(size=["big", "small"]))
    with pytest.raises(TypeError, match=r"^column 'colour' of X holds numbers, such as 1\.0; in fit, it held text$"):
        model.predict(X[:2].assign(colour=[np.nan, 1]))
    gaps = model.predict_proba(X[:2].assign(colour=[np.nan, np.nan]))  # of which no kind can be told
    close(gaps, model.predict_proba(X[:2].assign(colour=[None, None])))


def test_no_tests_are_none():
    X, y = np.random.default_rng(0).random((30, 2)), np.arange(30) % 2
    for setting in ({"tests": 0}, {"components": 0}):
        with pytest.raises(
            tacit.NetworkError, match=r"is 0, expected .* without tests, leave tests and components None"
        ):
            TACClassifier(**setting).fit(X, y)
        with pytest.raises(tacit.NetworkError, match=r"is 0, expected a whole number >= 1$"):
            TACRegressor(**setting).fit(X, y.astype(float))


@pytest.mark.parametrize("numbers", ["bins", "gaussian"])
def test_two_rows_are_compared_in_the_units_of_the_features(numbers):
    rng = np.random.default_rng(0)
    ill = pd.Series(rng.choice(["no", "yes"], 120), name="ill")
    sick = (ill == "yes").to_numpy()
    X = pd.DataFrame({"age": rng.normal(40 + 20 * sick, 8), "sex": rng.choice(["f", "m"], 120), "dose": 1.5})
    X.loc[3, "sex"] = None
    model = TACClassifier(random_state=0, steps=5, prior=1.0, numbers=numbers).fit(X, ill)
    assert model.tac_.variable.name == "ill"
    first, second = X.iloc[3], X.iloc[int(np.argmax(sick))]
    why = model.compare(first, second)
    rows = X.iloc[[3, int(np.argmax(sick))]]
    close(why.posterior, model.predict_proba(rows))
    assert {one.name: one.first for one in why.differences} == {"age": f"{first['age']:.6g}", "sex": "-"}
    odds = np.log(why.posterior[:, 0] / why.posterior[:, 1])
    assert sum(one.weight[0] for one in why.differences) == pytest.approx(odds[1] - odds[0])
    changed = rows[:1].assign(**{why.differences[0].name: second[why.differences[0].name]})
    close(why.differences[0].posterior, model.predict_proba(changed)[0])
    assert str(why).startswith("ill=")
    assert "row 3" in str(why)
    assert model.compare(first, second, label="yes").state == 1
    with pytest.raises(TacitError, match="label is 'maybe', expected one of 'no', 'yes'"):
        model.compare(first, second, label="maybe")
    with pytest.raises(TacitError, match="compare takes one row, got 2"):
        model.compare(X[:2], second)
    close(model.explain(first).predicted, model.explain(X[3:4]).predicted)
    assert "dose" not in str(model.explain(second))  # it weighs nothing


def test_rows_of_arrays_are_compared_and_explained():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 3 * y
    model = TACClassifier(random_state=0, steps=5, prior=1.0).fit(X, y)
    why = model.compare(X[0], X[1:2])
    assert (why.query, next(one.name for one in why.differences)) == ("class", "x0")
    close(model.explain(X[0]).predicted, model.predict_proba(X[:1])[0])
    taken = TACClassifier(random_state=0, steps=5, prior=1.0).fit(
        pd.DataFrame(X, columns=["a", "y"]), pd.Series(y, name="y")
    )
    assert taken.tac_.variable.name == "Q"


def test_rows_are_compared_by_their_values_and_not_by_how_these_are_shown():
    rng = np.random.default_rng(0)
    seconds = rng.integers(1234560, 1234580, 200).astype(float)
    X = pd.DataFrame({"seconds": seconds, "share": rng.random(200), "gap": rng.choice([0.5, np.nan], 200)})
    model = TACClassifier(random_state=0, steps=5, prior=1.0).fit(X, np.where(seconds > 1234570, "late", "early"))
    rows = pd.DataFrame({"seconds": [1234566.0, 1234574.0], "share": [0.5, 0.50000004], "gap": [np.nan, np.nan]})
    for second in (rows[1:], rows[1:].to_numpy(), rows.to_numpy()[1]):
        why = model.compare(rows[:1], second)
        close(why.posterior, model.predict_proba(rows))
        assert [(one.name, one.first, one.second) for one in why.differences] == [
            ("seconds", "1234566", "1234574"),
            ("share", "0.5", "0.50000004"),
        ]
        assert "seconds changes from 1234566 to 1234574" in " ".join(str(why).split())
    with pytest.raises(EvidenceError, match="the two rows have 3 and 2 columns, expected as many in both"):
        model.compare(rows[:1], np.zeros(2))
