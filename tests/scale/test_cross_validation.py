"""Folds of a cross-validation side by side on a cluster, by joblib: the scores are those of one process."""

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import joblib
from sklearn.model_selection import cross_val_score

import tacit
from tacit.sklearn import TACClassifier

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
def on_cluster(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What tells joblib to work on a cluster."""
    if request.param == "dask":
        request.getfixturevalue("dask_client")
        return {"backend": "dask"}
    request.getfixturevalue("ray_cluster")
    from ray.util.joblib import register_ray

    register_ray()
    return {"backend": "ray", "n_jobs": -1}


def test_work_leaves_this_process(on_cluster: dict[str, Any]) -> None:
    with joblib.parallel_config(**on_cluster):
        found = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))
    assert os.getpid() not in found


def test_folds_give_the_scores_of_one_process(on_cluster: dict[str, Any], model: TACClassifier, table: Any) -> None:
    alone = cross_val_score(model, *table, cv=4)
    with joblib.parallel_config(**on_cluster):
        found = cross_val_score(model, *table, cv=4)
    np.testing.assert_array_equal(found, alone)
