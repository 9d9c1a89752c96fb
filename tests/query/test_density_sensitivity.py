"""Derivatives by the numbers of densities: against central differences with 40 digits."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import tacit
from tacit import semantics
from tests.density_cases import DECLARED, ROWS, exact_joint, plant, row_of

STEP = mpf("1e-15")


def exact_derivatives(net, row, node, part, place):
    """The derivatives of the posterior of Fault by a number of a density; of a covariance, with its mirror image."""
    value, mirrored = mpf(float(net.density(node).parts()[part][place])), place
    if part == "cov":
        mirrored = (*place[:-2], place[-1], place[-2])
    ends = []
    for moved in (value - STEP, value + STEP):
        joint = exact_joint(net, "Fault", row, {(node, part, place): moved, (node, part, mirrored): moved})
        ends.append([p / mpmath.fsum(joint) for p in joint])
    return [float((b - a) / (2 * STEP)) for a, b in zip(*ends, strict=True)]


@pytest.mark.parametrize("row", range(4))
def test_derivatives_by_numbers_of_densities(row):
    net = plant()
    found = tacit.compile(net, "Fault", DECLARED).sensitivity(ROWS)
    for node in DECLARED:
        for part, numbers in net.density(node).parts().items():
            for place in np.ndindex(*numbers.shape):
                expected = exact_derivatives(net, row_of(ROWS, row), node, part, place)
                np.testing.assert_allclose(found.derivatives[node, part][row][(..., *place)], expected, 1e-8, 1e-12)


def test_entries_name_what_they_are():
    found = tacit.compile(plant(), "Fault", DECLARED).sensitivity(ROWS)
    entries = {entry.name: entry for entry in found.entries()}
    assert {
        "mean of Heat at Fault='true', Load='low'",
        "sd of Heat at Fault='false', Load='mid'",
        "mean of y at Fault='true'",
        "cov of x, y at Fault='false'",
        "rate of Count at Load='high'",
    } <= entries.keys()
    assert "cov of y, x at Fault='false'" not in entries
    heat = entries["mean of Heat at Fault='true', Load='low'"]
    assert heat.place == (0, 0)
    assert heat.value == 88
    assert np.isnan(heat.flips_at)


def test_derivatives_pass_through_sigmoids():
    net = plant()
    tables = [[0.9, 0.1], [0.6, 0.4]], [[0.3, 0.7], [0.1, 0.9]]
    net.add("Alarm", ["Fault"], cpt=tacit.TestingCPT(*tables, [0.5, 0.4], gamma=8.0))
    tac = tacit.compile(net, "Alarm", DECLARED)
    row = {name: numbers[0] for name, numbers in ROWS.items()}
    found, step = tac.sensitivity(row), 1e-5
    for node, part, place in [("Heat", "mean", (1, 1)), ("Heat", "sd", (0, 2)), ("Count", "rate", (1,))]:
        ends = []
        for moved in (-step, step):
            numbers = np.array(net.density(node).parts()[part])
            numbers[place] += moved
            changed = net.with_cpts({node: net.density(node).with_parts({part: numbers})})
            ends.append(semantics.posterior(changed, "Alarm", row)[0])
        expected = (ends[1] - ends[0]) / (2 * step)
        np.testing.assert_allclose(found.derivatives[node, part][0][(..., *place)], expected, rtol=1e-6, atol=1e-9)


def test_a_number_of_a_density_can_be_changed():
    net = plant()
    found = tacit.compile(net, "Fault", DECLARED).sensitivity(ROWS)
    changed = found.changed(0, (0,), ("Heat", "sd"), (0, 1), np.array([6.5, -1.0]))
    joint = exact_joint(net, "Fault", row_of(ROWS, 0), {("Heat", "sd", (0, 1)): 6.5})
    np.testing.assert_allclose(changed, [float(joint[0] / sum(joint)), np.nan], rtol=1e-12)


def test_a_continuous_query_has_no_sensitivity():
    with pytest.raises(tacit.TacitError, match="'Heat', is continuous, so there is no sensitivity"):
        tacit.compile(plant(), "Heat", ["Count"]).sensitivity({"Count": 3})
