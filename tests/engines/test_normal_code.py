"""Normal densities in generated code beside those of NumPy."""

import numpy as np
import pytest

import tacit
from tacit.engines.native import llvm, normal_code
from tacit.engines.native.normal_code import NormalCode
from tacit.evidence.density_column import DensityColumn
from tacit.model.elements.variable import Variable

MEANS, DEVIATIONS = np.array([-3.0, 0.0, 0.5, 8.0]), np.array([0.5, 1.0, 2.0, 1.5])


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(normal_code, "WORTH", 0)


def columns(values):
    """The same column twice."""
    density = tacit.Gaussian(MEANS, DEVIATIONS)
    variable = Variable("x", tuple(range(len(MEANS))), columns=("x",))
    return [DensityColumn(variable, np.asarray(values)[:, None], density) for _ in range(2)]


def plain(column):
    return [column.likelihoods(), column.scale, column.floor]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("rows", [16, 17, 31, 100])
def test_code_finds_what_numpy_finds(rows):
    values = np.random.default_rng(0).normal(0.0, 4.0, 2 * rows)[::2].copy()
    values[rows // 2] = np.nan
    theirs, own = columns(values)
    assert NormalCode()(own) is not None
    likelihoods = own.likelihoods(keep=False, find=NormalCode())
    np.testing.assert_allclose(likelihoods, theirs.likelihoods(), rtol=1e-13)
    np.testing.assert_allclose(own.scale, theirs.scale, rtol=1e-14)
    np.testing.assert_allclose(own.floor, theirs.floor, rtol=1e-14)
    assert not own.lost.any()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("far", [30.0, 1e4, 1e300])  # where a density underflows, is rough, or is 0
def test_what_is_not_plain_is_left_to_numpy(far):
    theirs, own = columns([*np.linspace(-1.0, 1.0, 20), far])
    own.likelihoods(find=NormalCode())
    assert all(map(np.array_equal, plain(own), plain(theirs)))
    assert own.lost.tolist() == theirs.lost.tolist()


def test_code_waits_until_it_is_repaid(monkeypatch):
    monkeypatch.setattr(normal_code, "WORTH", 2 * 20 * len(MEANS))
    code, (column, _) = NormalCode(), columns(np.zeros(20))
    assert [code(column) is not None for _ in range(3)] == [False, True, True]
    assert code(columns(np.zeros(15))[0]) is None  # fewer than it takes at a time


@pytest.mark.usefixtures("eager")
def test_without_a_compiler_numpy_goes_on(monkeypatch):
    asked = []

    def fails(*_):
        asked.append(1)
        raise llvm.NoCodeError("no target")

    monkeypatch.setattr(llvm, "code", fails)
    code, (column, _) = NormalCode(), columns(np.zeros(20))
    assert [code(column) for _ in range(2)] == [None, None]
    assert asked == [1]


@pytest.mark.usefixtures("eager")
def test_other_densities_are_left_to_numpy():
    variable = Variable("x", (0, 1), columns=("x",))
    assert NormalCode()(DensityColumn(variable, np.ones((20, 1)), tacit.Poisson([1.0, 2.0]))) is None
