"""Densities in a torch module: gradients by values, means and deviations, against differences with 40 digits."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import tacit
from tests.density_cases import DECLARED, ROWS, exact_joint, plant, row_of

torch = pytest.importorskip("torch")

from tacit.torch import TACModule  # noqa: E402

STEP = mpf("1e-15")
ENGINES = ["numpy", "tape", "native", "auto", "torch"]


def tensors(rows=ROWS):
    return {name: torch.tensor(numbers, dtype=torch.float64) for name, numbers in rows.items()}


def learning(net):
    """The same network, all of whose densities of one column are learned."""
    learned = {}
    for name in net.continuous:
        density = net.density(name)
        if density.dimension == 1:
            learned[name] = type(density)(**density.parts(), learn=True)
        else:
            learned[name] = tacit.Gaussian(np.where([True, False], np.nan, density.mean), cov=density.cov)
    return net.with_cpts(learned)


def module_of(net, engine):
    """A module with the numbers of a network, whose densities learn."""
    module = TACModule(tacit.compile(learning(net), "Fault", DECLARED, engine=engine))
    module.load_network(net)
    return module


def exact_log(net, row, changes):
    """The logarithm of the posterior of a fault."""
    joint = exact_joint(net, "Fault", row, changes)
    return mpmath.log(joint[0]) - mpmath.log(mpmath.fsum(joint))


def exact_slope(at, value):
    return float((at(value + STEP) - at(value - STEP)) / (2 * STEP))


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_by_values(engine):
    net, evidence = plant(), tensors()
    for column in evidence.values():
        column.requires_grad_()
    posterior = TACModule(tacit.compile(net, "Fault", DECLARED, engine=engine))(evidence)
    posterior[:, 0].log().sum().backward()
    for name, column in evidence.items():
        node = net.named(name)
        place = net.variable(node).columns.index(name)
        for i, value in enumerate(ROWS[name]):
            row = row_of(ROWS, i)
            if math.isnan(value):
                assert column.grad[i] == 0
                continue

            def at(moved, node=node, place=place, row=row):
                values = list(row[node])
                values[place] = moved
                return exact_log(net, {**row, node: values}, {})

            assert column.grad[i].item() == pytest.approx(exact_slope(at, mpf(value)), rel=1e-8, abs=1e-12), name


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_by_means_and_deviations(engine):
    net = plant()
    module = module_of(net, engine)
    module(tensors())[:, 0].log().sum().backward()
    rows = [row_of(ROWS, i) for i in range(4)]
    for layer in module.densities:
        node = layer.variable.name
        for part, weights in layer.weights.items():
            places = [p for p in np.ndindex(*net.density(node).parts()[part].shape) if node != "x, y" or p[-1] == 0]
            for place, slope in zip(places, weights.grad.tolist(), strict=True):
                value = mpf(float(net.density(node).parts()[part][place]))

                def at(moved, key=(node, part, place)):
                    return mpmath.fsum(exact_log(net, row, {key: moved}) for row in rows)

                expected = exact_slope(at, value) * (1 if part == "mean" else float(value))
                assert slope == pytest.approx(expected, rel=1e-8, abs=1e-12), (node, part, place)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_densities_that_underflow_still_count_where_others_are_impossible(engine):
    """What is far off must not be lost: the state that explains it is ruled out."""
    net = tacit.Network()
    net.add("Fault", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[0, 60, 61], sd=[1, 1, 1]))
    net.add("Alarm", ["Fault"], cpt=[[0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    heat = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    tac = tacit.compile(net, "Fault", ["Heat", "Alarm"], engine=engine)
    posterior = TACModule(tac)({"Heat": heat, "Alarm": torch.tensor([1.0], dtype=torch.float64)})
    np.testing.assert_allclose(posterior.detach(), tac.posterior({"Heat": [0.5], "Alarm": ["true"]}), rtol=1e-12)
    # the log-odds of 60 against 61 are linear in the value, with slope 60 - 61
    (posterior[0, 1].log() - posterior[0, 2].log()).backward()
    assert heat.grad.item() == pytest.approx(-1, rel=1e-10)


def test_what_is_learned_is_in_the_network():
    net = tacit.Network()
    net.add("Fault", cpt=[0.5, 0.5])
    net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[1.0, -1.0], sd=[1.0, 1.0], learn=True))
    module = TACModule(tacit.compile(net, "Fault", ["Heat"]))
    rng = np.random.default_rng(0)
    fault = rng.random(400) < 0.5
    heat = torch.tensor(np.where(fault, 3.0, -2.0) + rng.normal(size=400))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        posterior = module({"Heat": heat})[:, 0]
        torch.nn.functional.binary_cross_entropy(posterior, torch.tensor(fault, dtype=torch.float64)).backward()
        optimizer.step()
    learned = module.network()
    expected = tacit.compile(learned, "Fault", ["Heat"]).posterior({"Heat": heat.numpy()})
    np.testing.assert_allclose(module({"Heat": heat}).detach(), expected, rtol=1e-12)
    assert learned.density("Heat").mean[0] > 1.2
    assert (module({"Heat": heat})[:, 0].detach().numpy().round() == fault).mean() > 0.97


def test_second_derivatives():
    net = plant()
    module = TACModule(tacit.compile(net, "Fault", ["Heat"]))
    heat = torch.tensor([75.0, 80.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: module({"Heat": x}), heat)


def test_evidence_that_cannot_be():
    net = plant()
    module = TACModule(tacit.compile(net, "Fault", DECLARED))
    with pytest.raises(tacit.EvidenceError, match="'Count', row 1: -1 is not a whole number"):
        module({"Count": torch.tensor([1.0, -1.0])})
    with pytest.raises(tacit.EvidenceError, match=r"'Heat' is a tensor of torch.int64 .* the numbers"):
        module({"Heat": torch.tensor([1, 2])})
    with pytest.raises(tacit.EvidenceError, match=r"expected floats \(rows, 2\)"):
        module({"x, y": torch.zeros(3)})
    joint = tacit.Gaussian(mean=[[0, 1], [3, -2]], cov=np.eye(2), learn=True)
    tac = tacit.compile(net.with_cpts({"x, y": joint}), "Fault", ["x, y"])
    with pytest.raises(tacit.NetworkError, match=r"node 'x, y': covariances are not learned .* tacit.estimate"):
        TACModule(tac)
