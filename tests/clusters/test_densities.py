"""Columns of numbers in tables on clusters, without any cluster."""

import numpy as np
import pytest

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tests.helpers import close
from tests.sensors import READINGS, sensors

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

from tacit.clusters.scoring import Request, posteriors  # noqa: E402
from tacit.query.answer_columns import MostProbable, SampleColumns  # noqa: E402

EVIDENCE = ("heat", "x", "trips", "shake")


def request(query="Fault", wanted=None, **options):
    tac = tacit.compile(sensors(), query, [name for name in EVIDENCE if name != query])
    return Request(tac, wanted or posteriors(tac), **options)


@pytest.mark.parametrize("rows", [pd.DataFrame(READINGS, dtype=float), pa.table(READINGS)], ids=["pandas", "pyarrow"])
def test_numbers_are_scored(rows):
    scorer = request().announced(list(READINGS))
    assert set(scorer.columns) == set(EVIDENCE)
    close(scorer.score(rows)["Fault.true"].to_numpy(), request().tac.posterior(READINGS)[:, 0])


def test_a_continuous_query_has_columns_of_numbers():
    asked = request("heat", names={"heat.mean": "temperature"})
    scorer = asked.scorer(list(READINGS))
    assert [name for name, _ in scorer.fields] == ["temperature", "heat.sd", "heat.5%", "heat.50%", "heat.95%"]
    others = {name: values for name, values in READINGS.items() if name != "heat"}
    close(scorer.score(pa.table(READINGS))["temperature"].to_numpy(), asked.tac.posterior(others).mean)


def test_explanations_and_samples_have_numbers():
    best = request(wanted=MostProbable()).scorer(list(READINGS)).score(pa.table(READINGS))
    assert best["heat"].to_pylist() == [82.5, 65.0, 60.0]
    drawn = request(wanted=SampleColumns((1,))).scorer(list(READINGS)).score(pa.table(READINGS))
    assert drawn["x"].to_pylist()[:2] == [1.0, 0.5]
    assert np.isfinite(drawn["y"].to_numpy()).all()


def test_what_is_wrong_is_named():
    wrong = pa.table({"trips": [1.0, 2.5]})
    with pytest.raises(EvidenceError, match=r"partition 2: evidence on 'trips', row 1: 2.5 is not a whole number"):
        request().scorer(["trips"]).score(wrong, 2)
    with pytest.raises(EvidenceError, match="column 'X' is not a variable; did you mean 'x'"):
        request().scorer(["heat", "X"])
    with pytest.raises(EvidenceError, match="likelihoods= names 'heat', which is continuous"):
        request(likelihoods=["heat"]).scorer(["heat"])
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("noise", ["A"], cpt=tacit.Density(lambda values: -np.abs(values[:, None] - np.array([0, 3]))))
    tac = tacit.compile(net, "noise", ["A"])
    with pytest.raises(TacitError, match="the query, 'noise', has a Density, of which no mean"):
        Request(tac, posteriors(tac)).scorer(["A"])
    with pytest.raises(TacitError, match="the function of a Density must be one of a module"):
        Request(tac, MostProbable()).scorer(["A"])
