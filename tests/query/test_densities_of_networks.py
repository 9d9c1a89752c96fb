"""Questions about networks with numbers that are asked of the network itself, and how their answers are shown."""

import numpy as np
import pytest

import tacit
from tacit import NetworkError
from tests.helpers import close
from tests.sensors import READINGS, sensors


def test_the_network_answers_about_numbers():
    net = sensors()
    found = net.posterior("heat", {"Load": ["low", "high"], "x": [1.0, None]})
    tac = tacit.compile(net, "heat", ["Load", "x"])
    close(found.mean, tac.posterior({"Load": ["low", "high"], "x": [1.0, None]}).mean)
    labelled = {"Load": "low"}  # for which the query is kept as code that takes labels
    for _ in range(3):
        close(net.posterior("trips", labelled).mean, [0.1 * 4 + 0.9 * 0.5])


def test_marginals_print_with_what_is_known_of_numbers():
    shown = sensors().marginals(READINGS, labels=True)
    written = [f"{mean:.6g}" for mean in shown["y"].mean]
    assert ["y", "mean", *written] in [line.split() for line in str(shown).splitlines()]
    pandas = pytest.importorskip("pandas")
    frame = shown.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    close(frame["y", "mean"], shown["y"].mean)
    assert {"Fault.true", "y.mean", "y.50%"} <= shown.columns().keys()


def test_functions_cannot_be_drawn_or_predicted():
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("noise", ["A"], cpt=tacit.Density(lambda values: -np.abs(values[:, None] - np.array([0, 3]))))
    with pytest.raises(NetworkError, match="node 'noise': a Density knows its log-density only"):
        net.sample(2)
    assert np.isnan(net.mpe().states["noise"].astype(float)).all()
    assert list(net.marginals(labels=True).columns()) == ["A.true", "A.false"]


def test_numbers_are_not_set():
    with pytest.raises(NetworkError, match="do cannot set 'x, y': it is continuous"):
        sensors().do({"x": 1.0})


def test_the_table_of_variables_names_densities():
    html = sensors()._repr_html_()
    assert "numbers" in html
    assert "gaussian, 12 parameters" in html
    assert '"heat" [shape=box, style=rounded];' in sensors().to_dot()


def test_steps_are_filtered_by_numbers():
    template = tacit.Network()
    template.add("H[0]", cpt=[0.5, 0.5])
    template.add("H[1]", ["H[0]"], cpt=[[0.7, 0.3], [0.3, 0.7]])
    for t in (0, 1):
        density = tacit.Gaussian([[0.0, 0.0], [2.0, 1.0]], cov=np.eye(2))
        template.add((f"x[{t}]", f"y[{t}]"), [f"H[{t}]"], cpt=density)
    net = tacit.unroll(template, steps=3)
    tac = tacit.compile(net, None, evidence=["x[0]", "x[1]", "x[2]"])
    rows = {"y[0]": [0.1], "x[1]": [2.0], "y[2]": [3.0]}
    found = tac.filtered("H", rows)[0]
    close(found[0], net.posterior("H[0]", {"y[0]": [0.1]})[0])
    close(found[1], net.posterior("H[1]", {"y[0]": [0.1], "x[1]": [2.0]})[0])
    close(found[2], net.posterior("H[2]", rows)[0])
    scalar = tacit.Network()
    for t in (0, 1):
        scalar.add(f"x[{t}]", cpt=tacit.Gaussian(0.0, 1.0))
    with pytest.raises(tacit.TacitError, match=r"'x\[0\]' is continuous, and filtered answers with states"):
        tacit.compile(tacit.unroll(scalar, steps=2), None, evidence=["x[0]"]).filtered("x", {"x[0]": 1.0})


def test_columns_are_told_from_nodes():
    with pytest.raises(NetworkError, match="'x' is a column of the node 'x, y'; name the node"):
        sensors().cpt("x")
