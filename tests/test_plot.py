"""Pictures show what the functions are: checked by what is on the axes, not by pixels."""

import numpy as np
import pytest

import tacit
from tacit import Network, TacitError, TestingCPT, TooLargeError, examples
from tacit.drawing import draw
from tacit.theory import approximate

pytest.importorskip("igraph")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
plot = pytest.importorskip("tacit.plot")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def two_tests():
    net = Network()
    net.add("E", cpt=[0.5, 0.5])
    for i, t in ((1, 0.3), (2, 0.6)):
        net.add(f"T{i}", ["E"], cpt=TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [t, 1 - t], test=[">=", "<="]))
    net.add("Q", ["T1", "T2"], cpt=np.random.default_rng(0).dirichlet([1, 1], (2, 2)))
    return tacit.compile(net, "Q", ["E"])


def test_a_curve_has_its_pieces_and_borders():
    tac = two_tests()
    ax = plot.curve(tac)
    dashed = [line for line in ax.lines if line.get_color() == plot.PALE]
    assert [float(line.get_xdata()[0]) for line in dashed] == pytest.approx([0.3, 0.6])
    drawn = [line for line in ax.lines if line.get_color() == plot.ACCENT]
    assert len(drawn) == 3
    for line in drawn:
        x, y = line.get_data()
        np.testing.assert_allclose(tac.posterior({"E": np.asarray(x)})[:, 0], y)
    assert ax.get_ylabel() == "P*(Q='true')"


def test_a_curve_of_sigmoids_is_one_piece():
    tac = two_tests()
    soft = tacit.compile(tac.network.with_gamma(16.0), "Q", ["E"])
    assert len(plot.curve(soft, state="false").lines) == 1


def test_a_surface_and_a_map_of_regions():
    net = examples.split_layer(2, gamma=None)
    cpts = {n: TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.5, 0.5], test=[">=", "<"]) for n in ("T1", "T2")}
    cpts |= {"E1": [0.5, 0.5], "E2": [0.5, 0.5], "Q": np.random.default_rng(0).dirichlet([1, 1], (2, 2))}
    tac = tacit.compile(net.with_cpts(cpts), "Q", ["E1", "E2"])
    assert plot.surface(tac).get_zlabel() == "P*(Q='true')"
    ax = plot.regions(tac)
    assert ax.get_title() == "4 regions"
    assert sorted(text.get_text() for text in ax.texts) == ["1", "2", "3", "4"]
    assert plot.curve(tac, "E1", given={"E2": 0.2}).get_xlabel() == "λ(E1='true')"
    with pytest.raises(TacitError, match="has 1 input, but there are 2: E1, E2"):
        plot.curve(tac)
    with pytest.raises(TacitError, match="no regions"):
        plot.regions(tacit.compile(tac.network.with_gamma(3.0), "Q", ["E1", "E2"]))


def test_a_staircase_stays_within_its_band():
    found = approximate(lambda x: x * x, error=0.1)
    ax = plot.staircase(lambda x: x * x, found)
    f, steps = (np.asarray(line.get_ydata()) for line in ax.lines)
    assert np.abs(f - steps).max() <= 0.1 + 1e-12
    with pytest.raises(TacitError, match="one input"):
        plot.staircase(lambda x: x, approximate(lambda x, y: (x + y) / 2, inputs=2, error=0.5))


def test_drawings_name_everything_and_shade_testing_nodes(tmp_path):
    drawing = draw(examples.abc())
    assert drawing.svg.count("<ellipse") == 3
    assert drawing.svg.count("<path d=") == 2 + 1  # two edges and the tip of their arrows
    assert drawing.svg.count('fill="#d9dee7"') == 1
    drawing.save(tmp_path / "abc.svg")
    assert (tmp_path / "abc.svg").read_text(encoding="utf-8") == drawing.svg == drawing._repr_svg_()

    circuit = tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False)
    svg = draw(circuit).svg
    assert svg.count("<rect") == 4  # tests
    assert svg.count("marker-end") == circuit.size
    assert "A=true" in svg


def test_nodes_of_a_row_do_not_overlap():
    from tacit.drawing import _of_circuit, _places

    shapes, edges = _of_circuit(tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False))
    points, _ = _places(shapes, edges)
    for i, (x, y) in enumerate(points):
        for j, (u, v) in enumerate(points[:i]):
            assert y != v or abs(x - u) >= (shapes[i].width + shapes[j].width) / 2


def test_odd_names_and_large_circuits():
    net = Network()
    net.add('<a & "b">', cpt=[0.5, 0.5])
    assert "&lt;a &amp;" in draw(net).svg
    with pytest.raises(TooLargeError, match="cannot be read"):
        draw(tacit.compile(examples.hmm(80), "H80", ["E1"]).circuit(fold=False))
    with pytest.raises(TacitError, match="cannot draw a int"):
        draw(3)
