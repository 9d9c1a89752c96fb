"""Networks with densities: JSON keeps them, and every other way out says that it cannot."""

import json

import numpy as np
import pytest

import tacit
from tacit import FormatError, NetworkError, TacitError
from tests.sensors import sensors


def test_json_keeps_densities(tmp_path):
    net = sensors().with_cpts({"heat": tacit.Gaussian(sd=2.5, learn=True), "trips": tacit.Poisson([4, 0.5], tie="t")})
    tacit.save(net, tmp_path / "net.json")
    assert tacit.load(tmp_path / "net.json") == net
    document = json.loads((tmp_path / "net.json").read_text())
    assert document["version"] == 4
    heat, position = document["nodes"][2], document["nodes"][3]
    assert heat["cpt"] == {"kind": "gaussian", "mean": [[None] * 3] * 2, "sd": [[2.5] * 3] * 2, "learn": True}
    assert (position["name"], position["columns"]) == ("x, y", ["x", "y"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sd": [[1, 2], [3, 4]]}, r"nodes\[2\]: node 'heat': sd has shape \(2, 2\), expected \(2, 3\)"),
        ({"sd": [[1, 2, 3], [4, 0, 6]]}, r"nodes\[2\].*sd, .*0 is not a positive, finite number"),
        ({"kind": "cauchy"}, r"nodes\[2\].cpt.kind 'cauchy' is not known; .*gaussian, log-normal, poisson"),
        ({"mean": "hot"}, r"nodes\[2\].cpt.mean is a string, expected a list"),
    ],
)
def test_a_damaged_density_is_located(change, message):
    document = sensors().to_dict()
    document["nodes"][2]["cpt"].update(change)
    with pytest.raises(FormatError, match=message):
        tacit.Network.from_dict(document)


def test_a_function_is_not_saved(tmp_path):
    net = tacit.Network()
    net.add("noise", cpt=tacit.Density(lambda values: -np.abs(values)))
    with pytest.raises(NetworkError, match="node 'noise': a Density is a function of Python, which no file holds"):
        tacit.save(net, tmp_path / "net.json")
    assert not list(tmp_path.iterdir())


def test_json_keeps_densities_without_parents():
    net = tacit.Network()
    net.add("x", cpt=tacit.Gaussian(3.5))
    net.add("k", cpt=tacit.Poisson(2))
    net.add(("y", "z"), cpt=tacit.Gaussian([0.0, 1.0], cov=np.eye(2)))
    assert tacit.Network.from_dict(json.loads(json.dumps(net.to_dict()))) == net


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "uai", "net"])
def test_other_formats_say_what_holds_densities(tmp_path, suffix):
    with pytest.raises(FormatError, match=r"node 'heat' has a density, which no format but JSON holds; write \.json"):
        tacit.write(sensors(), tmp_path / f"net.{suffix}")


@pytest.mark.parametrize("library", ["pgmpy", "pyagrum"])
def test_bridges_take_tables_only(library):
    pytest.importorskip(library)
    with pytest.raises(NetworkError, match="node 'heat' has a density, and the bridge to"):
        getattr(tacit, f"to_{library}")(sensors())


def test_models_of_onnx_answer_with_states():
    with pytest.raises(TacitError, match="'heat', is continuous, so there is no ONNX model"):
        tacit.compile(sensors(), "heat", ["Load"]).to_onnx("net.onnx")
