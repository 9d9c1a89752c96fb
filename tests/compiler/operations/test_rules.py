"""The rules of the operations by themselves: the same numbers from every array library and in every way, and back."""

import numpy as np
import pytest

from tacit.compiler.operations import Contract, Rescale, Setting
from tacit.compiler.operations import contract as contractions
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.operations.select import weigh
from tacit.engines.arrays.numpy_arrays import NumpyArrays, WideArrays
from tacit.engines.arrays.wide import Wide
from tacit.model.cpt import TESTS
from tests.helpers import close

torch = pytest.importorskip("torch")

SIZES = {"i": 2, "j": 3, "k": 4, "r": 5}


class Frame:
    """The values of some inputs, and nothing else."""

    through = True

    def __init__(self, *values):
        self.values = dict(enumerate(values))

    def ready(self, step):
        return step.arranged(self.values[step.table].array)

    def floor(self, i):
        return np.zeros(1)


class Sweep:
    """The adjoints of the inputs."""

    def __init__(self, frame):
        self.frame, self.adjoints = frame, {}

    def add(self, i, adjoint):
        self.adjoints[i] = self.adjoints.get(i, 0) + adjoint


class Library(NumpyArrays):
    """NumPy, contracting in a way of our choice."""

    chosen = "einsum"

    def algorithm(self, layout, tables):
        return self.chosen


def with_torch(chosen):
    from tacit.engines.arrays.torch_arrays import TorchArrays

    class Chosen(TorchArrays):
        def algorithm(self, layout, tables):
            return chosen

        def product_floor(self, frame, inputs):
            return None

    return Chosen(torch.float64, torch.device("cpu"))


def library(chosen):
    found = Library()
    found.chosen = chosen
    return found


def random(axes):
    return np.random.default_rng(len(axes)).random([SIZES[a] for a in axes])


def planned(axes, out, batched, xp):
    setting = Setting(tuple(tuple(a) for a in axes), tuple(batched), SIZES)
    return Contract(tuple(range(len(axes))), tuple(out)).step(setting, xp)


def forward(axes, out, batched, xp, arrays):
    return planned(axes, out, batched, xp).forward(Frame(*map(Value, arrays))).array


def ways(axes, out, batched):
    """The ways to contract that apply, of both libraries."""
    layout = contractions.AxisRoles.of(Setting(tuple(tuple(a) for a in axes), (True, True), SIZES), tuple(out))
    found = ["einsum", "spread"]
    if layout.summed and not all(batched):
        found += ["matrix"] + ["block diagonal"] * bool(layout.kept)
    if layout.summed and all(batched):
        found += ["rows"]
    return found


every_batch = pytest.mark.parametrize("batched", [(False, False), (True, False), (False, True), (True, True)])
every_contraction = pytest.mark.parametrize(
    ("axes", "out"),
    [
        (("ij", "jk"), "ik"),
        (("ij", "jk"), "ki"),
        (("ijk", "jk"), "i"),
        (("ijk", "jk"), "ij"),
        (("ijk", "kj"), "ji"),
        (("ij", "jk"), "ijk"),
        (("ij", "k"), "kij"),
        (("ij", "jk"), ""),
        (("ij", ""), "j"),
        (("ij", "ji"), "i"),
    ],
)


@every_batch
@every_contraction
def test_every_way_to_contract_is_an_einsum(axes, out, batched):
    terms = [a + "r" * b for a, b in zip(axes, batched, strict=True)]
    arrays = [random(term) for term in terms]
    expected = np.einsum(f"{','.join(terms)}->{out}{'r' * any(batched)}", *arrays)
    for way in ways(axes, out, batched):
        found = forward(axes, out, batched, library(way), arrays)
        close(found, expected)
        assert found.flags.c_contiguous or way not in ("einsum", "matrix")
        if way != "einsum":
            tensors = [torch.from_numpy(array) for array in arrays]
            close(forward(axes, out, batched, with_torch(way), tensors).numpy(), expected)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("axes", "out"), [("ijk", "k"), ("ijk", "ki"), ("ij", ""), ("ij", "ji")])
def test_one_value_is_summed(axes, out, batched):
    array = random(axes + "r" * batched)
    expected = np.einsum(f"{axes}{'r' * batched}->{out}{'r' * batched}", array)
    for way in ("einsum", "alone"):
        close(forward([axes], out, [batched], library(way), [array]), expected)


@every_batch
@every_contraction
def test_contractions_are_linear_in_each_operand(axes, out, batched):
    """So that the derivative of <adjoint, product> along an operand is <adjoint, product> itself."""
    arrays = [random(a + "r" * b) for a, b in zip(axes, batched, strict=True)]
    adjoint = random(out + "r" * any(batched))
    layout = contractions.AxisRoles.of(Setting(tuple(tuple(a) for a in axes), (True, True), SIZES), tuple(out))
    for way in ("einsum", "matrix") if layout.is_matrix and sum(batched) == 1 else ("einsum",):
        xp = library(way)
        sweep = Sweep(Frame(*map(Value, arrays)))
        planned(axes, out, batched, xp).reverse(sweep, adjoint)
        for k, by in sweep.adjoints.items():
            assert by.shape == arrays[k].shape
            for index in np.ndindex(by.shape):
                one = np.zeros_like(by)
                one[index] = 1
                changed = [one, arrays[1]] if k == 0 else [arrays[0], one]
                close(by[index], (adjoint * forward(axes, out, batched, xp, changed)).sum())


@pytest.mark.parametrize("table", [0, 1])
@pytest.mark.parametrize(
    ("axes", "out"), [(("ij", "jk"), "ik"), (("ij", "jk"), "ki"), (("jik", "jk"), "i"), (("j", "kj"), "k")]
)
def test_a_row_that_speaks_for_all_is_broadcast(axes, out, table):
    """Forwards and back, where the batch that a table is multiplied with has one row and the adjoint many."""
    axes = axes[::-1] if table else axes
    batched = [k != table for k in range(2)]
    arrays = [random(a + "r" * b) for a, b in zip(axes, batched, strict=True)]
    arrays[1 - table] = arrays[1 - table][..., :1]
    adjoint = random(out + "r")
    found = []
    for way in ("einsum", "matrix"):
        close(forward(axes, out, batched, library(way), arrays), forward(axes, out, batched, library("einsum"), arrays))
        sweep = Sweep(Frame(*map(Value, arrays)))
        planned(axes, out, batched, library(way)).reverse(sweep, adjoint)
        found.append(sweep.adjoints)
    for k in range(2):
        close(*(np.broadcast_to(adjoints[k], found[0][k].shape) for adjoints in found))


def test_numpy_takes_matrix_products_for_tables_only():
    def chosen(axes, out, batched):
        return type(planned(axes, out, batched, NumpyArrays())).__name__

    assert chosen(("ij", "jk"), "ik", (False, True)) == chosen(("ij", "jk"), "ik", (True, False)) == "_Matrix"
    assert {
        chosen(("ij", "jk"), "ik", (True, True)),
        chosen(("ij", "jk"), "ijk", (False, True)),
        chosen(("ijk", "jk"), "ij", (False, True)),
        chosen(("ij", "jk"), "k", (False, True)),
    } == {"_Einsum"}


def rescaled(value, xp=None):
    step = Rescale((0,), ("i",)).step(Setting((("i",),), (True,), SIZES), xp or NumpyArrays())
    frame = Frame(value)
    frame.floor = lambda i: value.floor
    return step.forward(frame)


def test_rescaling_leaves_what_is_almost_nothing():
    array = np.array([[5e-324, 2.0**-1060]])
    scaled = rescaled(Value(array, floor=np.zeros(2)))
    np.testing.assert_array_equal(np.ldexp(scaled.array, scaled.exponent), array)


def test_rescaling_is_exact():
    array = np.array([[3e-200, 0.0, 0.7], [5e-201, 0.0, 1e-9]])
    scaled = rescaled(Value(array, np.array([5, 0, -3]), np.array([-1.0, -1.0, -np.inf])))
    np.testing.assert_array_equal(scaled.floor, [np.log2(scaled.array[1, 0]), 0.0, -np.inf])  # doubts stay
    assert ((scaled.array.max(axis=0) >= 0.5) | (array.max(axis=0) == 0)).all()
    assert (scaled.array.max(axis=0) < 1).all()
    np.testing.assert_array_equal(np.ldexp(scaled.array, scaled.exponent - [5, 0, -3]), array)


def test_numbers_with_an_exponent_each_are_not_rescaled():
    tiny = Wide.of([[1e-300], [1e-200]])
    assert rescaled(Value(tiny, floor=np.zeros(1)), WideArrays()).exponent is None


@pytest.mark.parametrize(
    ("test", "expected"), [(">=", [0, 1, 1]), (">", [0, 0, 1]), ("<=", [1, 1, 0]), ("<", [1, 0, 0])]
)
def test_tests_compare_without_division(test, expected):
    n_u, n = np.array([0.1, 0.25, 0.5]), np.array([1.0])
    for scale in (1.0, 2.0**-900):
        plus, minus = weigh(NumpyArrays(), np.array(TESTS.index(test)), scale * n_u, scale * n, np.array(0.25), None)
        assert plus.tolist() == (~minus).tolist() == expected


def test_every_parent_state_has_its_own_test():
    codes = np.arange(4)
    plus, minus = weigh(NumpyArrays(), codes, np.full(4, 0.25), np.array([1.0]), np.array(0.25), None)
    assert plus.tolist() == [True, False, True, False]
    tau, rest = weigh(NumpyArrays(), codes, np.full(4, 0.5), np.array([1.0]), np.array(0.25), 4.0)
    close(tau, [1 / (1 + np.exp(-1.0))] * 2 + [1 / (1 + np.exp(1.0))] * 2)
    close(tau + rest, np.ones(4))
    assert (plus != minus).all()


def test_sigmoids_are_mirrored_do_not_overflow_and_weigh_a_half_where_nothing_is_known():
    n_u, n, t = np.array([0.0, 0.2, 0.8]), np.array([0.0, 1.0, 1.0]), np.array(0.5)
    up, down = (weigh(NumpyArrays(), np.array(TESTS.index(c)), n_u, n, t, 1e6) for c in (">=", "<="))
    close(up, [[0.5, 0.0, 1.0], [0.5, 1.0, 0.0]])
    close(down, [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]])
