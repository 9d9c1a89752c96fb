"""Learning of tables beside numbers: losses and gradients, also of rows in which densities underflow."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import tacit
from tacit import CPT
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.objective import Objective
from tacit.learn.fitting.parameters import Parameters
from tests.density_cases import DECLARED, ROWS, exact_joint, plant, row_of

ENGINES = ["numpy", "tape", "native", "torch"]
Y = np.array([0.9, 0.2, 0.6, 0.5])


def open_tables():
    """The plant, whose tables are learned."""
    net = plant()
    return net.with_cpts({name: CPT(net.table(name), learn=True) for name in ("Load", "Fault")})


def far_off():
    """Three causes, of which the evidence rules out the one that explains the number."""
    net = tacit.Network()
    net.add("Fault", states=3, cpt=CPT([0.2, 0.3, 0.5], learn=True))
    net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[0, 60, 61], sd=[1, 1, 1]))
    net.add("Alarm", ["Fault"], cpt=[[0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    return net


def objective(net, declared, engine, rows, y, loss):
    tac = tacit.compile(net, "Fault", declared, engine=engine)
    return Objective(Parameters(net, tac.program.nodes), tac.engine(), read_data(tac, rows, y, None), loss)


@pytest.mark.parametrize("engine", ENGINES)
def test_losses_are_those_of_exact_posteriors(engine):
    net = open_tables()
    own = objective(net, DECLARED, engine, ROWS, Y, "mse")
    weights = own.parameters.start(np.random.default_rng(0))
    joints = [exact_joint(net, "Fault", row_of(ROWS, i), {}) for i in range(4)]
    p = np.array([float(joint[0] / mpmath.fsum(joint)) for joint in joints])
    assert own.value_and_gradient(weights)[0] == pytest.approx(((p - Y) ** 2).mean(), rel=1e-12)
    assert own.value(weights) == pytest.approx(((p - Y) ** 2).mean(), rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_whose_densities_underflow_keep_their_loss(engine):
    net, rows = far_off(), {"Heat": [0.5, 60.2, 0.7], "Alarm": ["true", "true", None]}
    y = np.array([[0, 0.5, 0.5], [0, 0.9, 0.1], [1, 0, 0]])
    own = objective(net, ["Heat", "Alarm"], engine, rows, y, "cross_entropy")
    weights = own.parameters.start(np.random.default_rng(0))
    log = [[-((mpf(x) - m) ** 2) / 2 for m in (0, 60, 61)] for x in (0.5, 60.2, 0.7)]
    alarm = [(0.0, 0.9, 0.2), (0.0, 0.9, 0.2), (1, 1, 1)]

    def exact(prior):
        total = mpf(0)
        for logs, told, label in zip(log, alarm, y, strict=True):
            joint = [mpmath.exp(a) * mpf(b) * c for a, b, c in zip(logs, told, prior, strict=True)]
            posterior = [p / mpmath.fsum(joint) for p in joint]
            total -= mpmath.fsum(mpf(t) * mpmath.log(p) for t, p in zip(label, posterior, strict=True) if t)
        return total / 3

    def prior(weights):
        shares = [mpmath.exp(w) for w in weights]
        return [share / mpmath.fsum(shares) for share in shares]

    loss, gradient = own.value_and_gradient(weights)
    exact_weights, step = [mpf(w) for w in weights], mpf("1e-15")
    assert loss == pytest.approx(float(exact(prior(exact_weights))), rel=1e-10)
    for i, slope in enumerate(gradient):
        ends = [exact(prior([w + sign * step * (j == i) for j, w in enumerate(exact_weights)])) for sign in (-1, 1)]
        assert slope == pytest.approx(float((ends[1] - ends[0]) / (2 * step)), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("engine", ["tape", "native"])
def test_least_squares_see_rows_whose_densities_underflow(engine):
    rows = {"Heat": [0.5, 60.2], "Fault": np.array([[0.0, 0.9, 0.2], [0.0, 0.9, 0.2]])}
    targets = np.array([[0, 0.5, 0.5], [0, 0.9, 0.1]])
    own = objective(far_off(), ["Heat", "Fault"], engine, rows, targets, "mse")
    assert own.engine.lacks_jacobian() == ""
    weights = own.parameters.start(np.random.default_rng(0))
    loss, gradient = own.value_and_gradient(weights)
    squares = own.squares(weights)
    assert squares.loss == pytest.approx(loss, rel=1e-10)
    np.testing.assert_allclose(2 * squares.gradient, gradient, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_a_table_is_learned_beside_a_density(loss):
    rng = np.random.default_rng(0)
    net = tacit.Network()
    net.add("Fault", cpt=CPT([0.5, 0.5], learn=True))
    net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[2.0, 0.0], sd=[1.0, 1.0]))
    heat = rng.normal(size=200)
    true = 0.2 * np.exp(2 * heat - 2)
    fitted = tacit.fit(tacit.compile(net, "Fault", ["Heat"]), {"Heat": heat}, true / (true + 0.8), loss, progress=False)
    np.testing.assert_allclose(fitted.network.table("Fault"), [0.2, 0.8], atol=1e-6)


def test_densities_are_learned_elsewhere():
    net = open_tables()
    for density in (tacit.Gaussian(mean=1, sd=1, learn=True), tacit.Gaussian(mean=1)):
        tac = tacit.compile(net.with_cpts({"Heat": density}), "Fault", ["Heat"])
        with pytest.raises(tacit.TacitError, match=r"node 'Heat' has a density to learn.*tacit.estimate"):
            tacit.fit(tac, {"Heat": [1.0]}, ["true"])
    with pytest.raises(tacit.TacitError, match=r"the query, 'Heat', is continuous.*tacit.estimate"):
        tacit.fit(tacit.compile(net, "Heat", ["Count"]), {"Count": [1.0]}, [1.0])
