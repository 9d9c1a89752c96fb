"""Pictures of networks and answers with numbers."""

import numpy as np
import pytest

import tacit
from tacit import NetworkError, TacitError
from tests.helpers import close
from tests.sensors import sensors


def noisy():
    """A network with a density of which nothing else is known."""
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("noise", ["A"], cpt=tacit.Density(lambda values: -np.abs(values[:, None] - np.array([0, 3]))))
    return net


def test_continuous_nodes_are_boxes():
    assert sensors().plot().svg.count("<ellipse") == 2
    assert sensors().plot(nodes=["Fault", "x"]).svg.count("<rect") == 1


def test_posteriors_of_numbers_are_curves_and_observed_ones_are_written():
    picture = sensors().plot({"heat": 82.5, "x": 1.0}).svg
    mean, sd = (getattr(sensors().posterior("y", {"heat": 82.5, "x": 1.0}), part)[0] for part in ("mean", "sd"))
    for text in ("= 82.5", "= 1", f"mean {mean:.2f}, sd {sd:.3g}"):
        assert f">{text}</text>" in picture
    assert picture.count('z" fill="#4b82be"/>') == 2  # trips and shake
    assert ">a density</text>" in noisy().plot({}).svg


def test_numbers_below_0_have_a_true_minus_and_the_mean_as_many_decimals_as_the_sd():
    net = tacit.Network()
    for name, mean, sd in (("x", -71.7391, 12.24), ("y", -3.5, 1e-9), ("z", 0.0, 0.25)):
        net.add(name, cpt=tacit.Gaussian(mean, sd))
    picture = net.plot({"z": -1.5}).svg
    for text in ("mean −71.7, sd 12.2", "mean −3.5, sd 1e−09", "= −1.5", "−112"):
        assert f">{text}</text>" in picture


def test_a_curve_shows_narrow_components(tmp_path):
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("x", ["A"], cpt=tacit.Gaussian([0.0, 1000.0], [1e-3, 100.0]))
    from tacit.views.curves import places

    mixture = net.posterior("x")
    assert mixture.pdf(places(mixture)).max() > 100
    pytest.importorskip("matplotlib")
    net.plot({}).save(tmp_path / "net.png")


@pytest.mark.parametrize(
    "density",
    [tacit.LogNormal(1.4, 0.8), tacit.LogNormal(0.0, 2.5), tacit.LogNormal(2.0, 0.01), tacit.Gaussian(1e6, 1e-3)],
    ids=["skewed", "very skewed", "narrow", "far from 0"],
)
def test_curves_begin_at_0_and_have_their_peaks(density):
    """With evenly spaced points, the peak of a skewed density was 6% too low."""
    from tacit.views.curves import places

    net = tacit.Network()
    net.add("x", cpt=density)
    mixture = net.posterior("x")
    x = places(mixture)
    y = mixture.pdf(x)[0]
    some = mixture.quantile(np.linspace(1e-6, 0.9, 20001))[0]
    assert y.max() == pytest.approx(mixture.pdf(some).max(), rel=5e-3)
    assert max(y[0], y[-1]) < 0.01 * y.max()
    middles = (x[1:] + x[:-1]) / 2
    assert np.abs(mixture.pdf(middles)[0] - (y[1:] + y[:-1]) / 2).max() < 1e-3 * y.max()
    assert 121 < len(x) < 1000


def test_the_density_of_each_row_is_drawn_above_its_components():
    pytest.importorskip("matplotlib")
    mixture = sensors().posterior("heat", {"trips": [3, 0]})
    lines = mixture.plot().get_lines()
    x, y = lines[0].get_data()
    close(y, mixture.pdf(x)[0])
    close(np.sum([line.get_ydata() for line in lines[1:7]], axis=0), y)
    counts = sensors().posterior("trips").plot()
    assert counts.get_ylabel() == "probability"
    assert set(counts.get_lines()[0].get_xdata()) == set(range(10))


def test_what_cannot_be_drawn_is_said():
    pytest.importorskip("matplotlib")
    with pytest.raises(TacitError, match=r"joint distribution of \('x', 'y'\); draw one of them"):
        sensors().posterior("x, y").plot()
    with pytest.raises(TacitError, match="a picture has 1 to 40 rows, got 41"):
        sensors().posterior("heat", {"x": [1.0] * 41}).plot()
    with pytest.raises(TacitError, match="give x=, the numbers to draw 'noise' at"):
        noisy().posterior("noise").plot()
    assert noisy().posterior("noise").plot(x=[0.0, 1.0]).get_xlabel() == "noise"
    with pytest.raises(NetworkError, match="do cannot set 'heat'"):
        sensors().plot(do={"heat": 80})
