"""Neural networks as circuits: the same outputs, of proportional size, from all three forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import EvidenceError, TacitError
from tacit.engines.circuit import Circuit
from tacit.theory import from_neural_network
from tests.conformance_files import read
from tests.helpers import close

TOLERANCE = 1e-9
ACTIVATE = {
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
    "step": lambda x: (x >= 0).astype(float),
}


def random_layers(seed, sizes, activations):
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=(m, n)) / np.sqrt(n), rng.normal(size=m), activation)
        for n, m, activation in zip(sizes, sizes[1:], activations, strict=False)
    ]


def forward(layers, x):
    for weights, bias, activation in layers:
        x = ACTIVATE[activation](x @ np.asarray(weights).T + (0 if bias is None else bias))
    return x


@pytest.mark.parametrize("case", read("nn.json")["cases"], ids=lambda case: case["id"])
def test_the_conformance_file(case):
    circuit = from_neural_network(case["nn"])
    x, y = (np.array([row[key] for row in case["rows"]]) for key in ("x", "y"))
    close(circuit.evaluate(x), y, TOLERANCE)
    close(circuit.tape().evaluate(x), y, TOLERANCE)
    assert circuit.internal <= case["max_internal_tac_nodes"]
    assert set(circuit.kind) <= set(from_neural_network(read("nn.json")["cases"][3]["nn"]).kind)


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 6), min_size=2, max_size=5),
    st.lists(st.sampled_from(["relu", "linear", "step"]), min_size=4, max_size=4),
)
def test_random_layers_against_numpy(seed, sizes, activations):
    layers = random_layers(seed, sizes, activations)
    circuit = from_neural_network(layers)
    x = np.random.default_rng(seed + 1).normal(size=(20, sizes[0]))
    close(circuit.evaluate(x), forward(layers, x), TOLERANCE)
    close(circuit.tape().evaluate(x), forward(layers, x), TOLERANCE)
    edges, neurons = sum(w.size for w, _, _ in layers), sum(len(w) for w, _, _ in layers)
    assert circuit.internal <= 2 * edges + 4 * neurons
    assert circuit.binary_operations + circuit.count("test") <= 2 * edges + 4 * neurons


def test_three_layers_of_ten_thousand_weights():
    layers = random_layers(0, [64, 64, 64, 32], ["relu", "relu", "linear"])
    circuit = from_neural_network(layers)
    x = np.random.default_rng(1).normal(size=(10_000, 64))
    close(circuit.tape().evaluate(x), forward(layers, x), TOLERANCE)
    close(circuit.evaluate(x[:20]), forward(layers, x[:20]), TOLERANCE)
    assert circuit.count("product") == 10_240
    assert circuit.internal == 10_240 + 160 + 128  # weights, neurons, ReLUs


def test_weights_are_parameters_and_exact_zeros_and_ones_structure():
    circuit = from_neural_network([([[2.0, 0.0, 1.0]], [0.0], "linear")])
    assert (circuit.count("product"), circuit.count("sum"), circuit.count("parameter")) == (1, 1, 1)
    assert circuit.tables == (("layer 0", "weights"), ("layer 0", "bias"))
    close(circuit.evaluate([[1.0, 10.0, 100.0]]), [[102.0]])
    (weight,) = np.flatnonzero(circuit.number == 2.0)
    close(circuit.evaluate([[1.0, 10.0, 100.0]], np.where(np.arange(len(circuit)) == weight, 3.0, circuit.number)), 103)


def test_activations_at_their_borders():
    """A ReLU is 0 below 0, a step is on at its threshold; -0.0 is 0, and infinities do not make NaN."""
    x = [[-1.0], [-0.0], [0.0], [5e-324], [2.0]]
    for activation, expected in (("relu", [0, 0, 0, 5e-324, 2]), ("step", [0, 1, 1, 1, 1])):
        circuit = from_neural_network([([[1.0]], None, activation)])
        assert circuit.evaluate(x)[:, 0].tolist() == expected
        assert circuit.tape().evaluate(x)[:, 0].tolist() == expected
    overflow = from_neural_network([([[1e308]], None, "linear"), ([[1e308]], None, "relu")])
    with np.errstate(over="ignore"):
        assert overflow.evaluate([[-1.0]]).tolist() == [[0.0]]
    assert overflow.tape().evaluate([[-1.0]]).tolist() == [[0.0]]


def test_neurons_may_come_in_any_order_and_use_any_source():
    network = {
        "n_inputs": 2,
        "outputs": ["late", "x1", "early", "late"],
        "neurons": [
            {"name": "late", "inputs": [["early", 2.0], ["x0", -1.0], ["early", 1.0]], "activation": "relu"},
            {
                "name": "early",
                "inputs": [["x0", 1.0], ["x1", 1.0]],
                "bias": -1,
                "activation": "step",
                "threshold": -0.5,
            },
            {"name": "unused", "inputs": []},
        ],
    }
    x = np.random.default_rng(0).normal(size=(50, 2))
    early = (x.sum(axis=1) - 1 >= -0.5).astype(float)
    late = np.maximum(3 * early - x[:, 0], 0)
    close(from_neural_network(network).evaluate(x), np.stack([late, x[:, 1], early, late], axis=1))


def test_a_neuron_without_inputs_is_its_bias():
    network = {"n_inputs": 1, "neurons": [{"name": "b", "inputs": [], "bias": 2.5}], "outputs": ["b"]}
    circuit = from_neural_network(network)
    close(circuit.evaluate([[1.0], [2.0]]), 2.5)
    close(circuit.tape().evaluate([[1.0], [2.0]]), 2.5)


# torch ----------------------------------------------------------------------------------------------------


class Tensor:
    """What the conversion needs of a tensor."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float32)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Linear:
    def __init__(self, weight, bias=None):
        self.weight, self.bias = Tensor(weight), None if bias is None else Tensor(bias)


class ReLU:
    pass


class Dropout:
    pass


class Tanh:
    pass


class Sequential(list):
    pass


def test_a_sequential_is_read_by_the_names_of_its_modules():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(5, 3)), rng.normal(size=(4, 5)), rng.normal(size=(2, 4))
    bias = rng.normal(size=5)
    module = Sequential([Linear(a, bias), ReLU(), Dropout(), Sequential([Linear(b), Linear(c)]), ReLU()])
    layers = [(a, bias, "relu"), (b, None, "linear"), (c, None, "relu")]
    layers = [(np.float32(w), None if v is None else np.float32(v), f) for w, v, f in layers]
    x = rng.normal(size=(30, 3))
    close(from_neural_network(module).evaluate(x), forward(layers, x), TOLERANCE)


@pytest.mark.parametrize("modules", [[Linear(np.eye(2)), Tanh()], [ReLU()], [Linear(np.eye(2)), ReLU(), ReLU()]])
def test_other_modules_are_refused(modules):
    place = len(modules) - 1
    with pytest.raises(TacitError, match=f"module {place} is a {type(modules[-1]).__name__}, expected Linear modules"):
        from_neural_network(Sequential(modules))


def test_a_real_sequential():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4, bias=False), nn.ReLU(), nn.Linear(4, 2)).double()
    x = np.random.default_rng(0).normal(size=(100, 6))
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).numpy()
    close(from_neural_network(module).tape().evaluate(x), expected, TOLERANCE)


# what is refused ------------------------------------------------------------------------------------------


def neuron(**changes):
    given = {"name": "a", "inputs": [["x0", 1.0]], "activation": "relu", **changes}
    return {"n_inputs": 1, "neurons": [given], "outputs": ["a"]}


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ([], "the neural network has no layers"),
        ("relu", "cannot read a neural network from a str"),
        (object(), "cannot read a neural network from a object"),
        ([np.eye(2)], r"layer 0: expected \(weights, bias, activation\)"),
        ([(np.ones(3), None, "relu")], r"layer 0: weights have shape \(3,\), expected \(neurons, inputs\)"),
        ([(np.eye(2), np.ones(3), "relu")], r"layer 0: bias has shape \(3,\), expected \(2,\)"),
        ([(np.eye(2), None, "tanh")], "layer 0: unknown activation 'tanh', expected one of linear, relu, step"),
        ([(np.eye(2), None, "relu"), (np.eye(3), None, "relu")], r"layer 1: weights have shape \(3, 3\), .* 2\)"),
        ([([[1.0, np.nan]], None, "relu")], r"layer 0: weights must be finite; the number at \[0, 1\] is nan"),
        ([([["a"]], None, "relu")], "layer 0: weights must be numbers"),
        ({"n_inputs": 1, "neurons": []}, "the neural network has no 'outputs'"),
        ({"n_inputs": 0, "neurons": [], "outputs": []}, "n_inputs is 0, expected a whole number"),
        ({"n_inputs": 1, "neurons": [], "outputs": []}, "the neural network has no outputs"),
        ({"n_inputs": 1, "neurons": [{}], "outputs": []}, "a neuron has no 'name'"),
        ({"n_inputs": 1, "neurons": [], "outputs": ["a"]}, "output 'a' is not a neuron"),
        (neuron(name="x0"), "neuron 'x0' has the name of another neuron or input"),
        (neuron(inputs=[["x1", 1.0]]), "source 'x1' is neither a neuron nor one of the 1 inputs"),
        (neuron(inputs=[["x0"]]), r"inputs are \[\['x0'\]\], expected pairs \(source, weight\)"),
        (neuron(inputs=[["x0", None]]), "neuron 'a': weights must be"),
        (neuron(inputs=[["a", 1.0]]), "the neurons form a cycle: 'a' -> 'a'"),
        (neuron(bias=np.inf), "neuron 'a': bias must be finite"),
        (neuron(threshold=1.0), "neuron 'a': only a step has a threshold, but the activation is 'relu'"),
    ],
)
def test_faults_are_named(network, message):
    with pytest.raises(TacitError, match=message):
        from_neural_network(network)


# the inputs are numbers -----------------------------------------------------------------------------------

SUM = from_neural_network([([[1.0, 10.0]], None, "linear")])


@pytest.mark.parametrize("run", [SUM.evaluate, SUM.tape().evaluate], ids=["evaluate", "tape"])
def test_inputs_by_position_or_by_name(run):
    close(run([[1, -2], [3, 0.5]]), [[-19], [8]])
    close(run({"x1": [-2, 0.5], "x0": [1, 3]}), [[-19], [8]])
    close(run({"x1": [-2, 0.5], "x0": 1}), [[-19], [6]])
    close(run({"x1": 2.0, "x0": 1}), [[21]])


@pytest.mark.parametrize("run", [SUM.evaluate, SUM.tape().evaluate], ids=["evaluate", "tape"])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"the inputs have shape \(2,\), expected \(rows, 2\): x0, x1"),
        (np.ones((3, 1)), r"the inputs have shape \(3, 1\), expected"),
        (np.ones((0, 2)), "the inputs have no rows"),
        ([[1.0, 2.0], [1.0, np.nan]], "input 'x1', row 1: nan is not a finite number"),
        (None, r"the inputs have shape \(\), expected"),
        ([["a", "b"]], "the inputs: expected numbers, got list"),
        ({"x0": 1.0}, "there is no number for input 'x1'"),
        ({"x0": 1.0, "x1": 1.0, "x2": 1.0}, "'x2' is not an input of the circuit"),
        ({"x0": [1.0, 2.0], "x1": [1.0, 2.0, 3.0]}, r"input 'x0' has shape \(2,\), expected 3 rows"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(run, x, message):
    with pytest.raises(EvidenceError, match=message):
        run(x)


def test_the_circuit_can_be_written_drawn_and_read():
    circuit = from_neural_network(read("nn.json")["cases"][3]["nn"])
    x = np.random.default_rng(0).normal(size=(10, 3))
    for again in (Circuit.from_text(circuit.to_text()), Circuit.from_dict(circuit.to_dict())):
        close(again.evaluate(x), circuit.evaluate(x), 0.0)
        close(again.tape().evaluate(x), circuit.evaluate(x))
    assert 'label="x2"' in circuit.to_dot()
