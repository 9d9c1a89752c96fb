"""Folds of a cross-validation side by side on a cluster, by joblib: the scores are those of one process."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import joblib  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402

import tacit  # noqa: E402
from tacit.sklearn import TACClassifier  # noqa: E402

pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\..*")  # what Ray says about itself


@pytest.fixture(scope="module")
def model() -> TACClassifier:
    net = tacit.examples.kidney_stones().with_cpts({"recovery": None})
    return TACClassifier(net, query="recovery", steps=5, random_state=0)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rows = pd.DataFrame(tacit.examples.kidney_stones().sample(200, seed=0))
    return rows[["size", "treatment"]], rows["recovery"].to_numpy()


@pytest.fixture(params=["dask", "ray"])
def backend(request: pytest.FixtureRequest) -> Any:
    """A backend of joblib with a cluster behind it."""
    if request.param == "dask":
        request.getfixturevalue("dask_client")
    else:
        request.getfixturevalue("ray_cluster")
        from ray.util.joblib import register_ray

        register_ray()
    return request.param


def test_folds_give_the_scores_of_one_process(backend: str, model: TACClassifier, table: Any) -> None:
    alone = cross_val_score(model, *table, cv=4)
    with joblib.parallel_config(backend=backend):
        found = cross_val_score(model, *table, cv=4)
    np.testing.assert_array_equal(found, alone)


def test_a_grid_gives_the_choice_of_one_process(backend: str, model: TACClassifier, table: Any) -> None:
    grid = GridSearchCV(model, {"steps": [1, 5]}, scoring="neg_log_loss", cv=2)
    alone = grid.fit(*table).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend=backend):
        found = grid.fit(*table).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found, alone)
