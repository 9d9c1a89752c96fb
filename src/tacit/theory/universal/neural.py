"""Neural networks as circuits: ReLU, step and linear neurons need only sums, products and tests (Theorem 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.node_builder import CircuitBuilder
from tacit.engines.circuit.nodes import Ids
from tacit.model.cpt import TESTS
from tacit.model.elements.variable import Variable, similar

ACTIVATIONS = ("linear", "relu", "step")
IDLE_MODULES = ("Identity", "Dropout")  # modules that change nothing outside training


def from_neural_network(network: Any) -> Circuit:
    """A circuit that computes what a feed-forward neural network computes, of proportional size.

    It has one product per weight, and at most one sum and one test per neuron; weights and thresholds are its
    parameters and may be negative, as may its inputs, which are plain numbers x0, x1, ... Weights of exactly 0 are no
    edges. `circuit.evaluate` takes an array (rows, inputs), and `circuit.tape` does so fast.

    Parameters
    ----------
    network
        One of three forms:

        - a sequence of layers `(weights, bias, activation)`: weights of shape (neurons, inputs), a bias per neuron or
          None, and "relu", "step" (1 where the weighted sum is at least 0, else 0) or "linear";
        - a mapping with `n_inputs`, `neurons` and the names of the `outputs`; a neuron is a mapping with a `name`, its
          `inputs` as pairs (source, weight), and, unless they are 0, 0 and "linear", its `bias`, `threshold` (for
          "step") and `activation`; a source is "x0", "x1", ... or another neuron;
        - a `torch.nn.Sequential` of `Linear` and `ReLU` modules.

    >>> hidden = ([[1.0, -1.0], [-1.0, 1.0]], None, "relu")
    >>> layers = [hidden, ([[1.0, 1.0]], [0.5], "linear")]
    >>> circuit = from_neural_network(layers)  # |x0 - x1| + 1/2
    >>> circuit.evaluate([[0.25, 1.0], [3.0, -1.0]])[:, 0]
    array([1.25, 4.5 ])
    """
    if isinstance(network, Mapping):
        return _from_neurons(network)
    if type(network).__name__ == "Sequential":
        network = _torch_layers(network)
    if isinstance(network, str) or not isinstance(network, Sequence):
        expected = "a sequence of layers, a mapping with neurons, or a torch.nn.Sequential"
        raise TacitError(f"cannot read a neural network from a {type(network).__name__}; expected {expected}")
    return _from_layers([_layer(layer, f"layer {i}") for i, layer in enumerate(network)])


@dataclass(frozen=True)
class _Layer:
    """Neurons with the same sources: weights (neurons, sources), bias and thresholds (neurons,)."""

    name: str
    weights: Floats
    bias: Floats
    activation: str
    thresholds: Floats


def _layer(layer: Any, name: str) -> _Layer:
    try:
        weights, bias, activation = layer
    except (TypeError, ValueError):
        raise TacitError(f"{name}: expected (weights, bias, activation), got {layer!r}") from None
    weights = _numbers(weights, f"{name}: weights")
    if weights.ndim != 2 or not weights.size:
        raise TacitError(f"{name}: weights have shape {weights.shape}, expected (neurons, inputs)")
    bias = np.zeros(len(weights)) if bias is None else _numbers(bias, f"{name}: bias")
    if bias.shape != weights.shape[:1]:
        raise TacitError(f"{name}: bias has shape {bias.shape}, expected {weights.shape[:1]}: one per neuron")
    return _Layer(name, weights, bias, _activation(activation, name), np.zeros(len(weights)))


def _from_layers(layers: Sequence[_Layer]) -> Circuit:
    if not layers:
        raise TacitError("the neural network has no layers; expected at least one")
    build = CircuitBuilder()
    nodes = _inputs(build, layers[0].weights.shape[1])
    for layer in layers:
        if layer.weights.shape[1] != len(nodes):
            expected = f"(neurons, {len(nodes)}): one weight per output of the layer before"
            raise TacitError(f"{layer.name}: weights have shape {layer.weights.shape}, expected {expected}")
        nodes = _neurons(build, layer, nodes)
    return build.finish(nodes)


def _torch_layers(module: Any) -> list[tuple[Any, Any, str]]:
    """The layers of a `torch.nn.Sequential`, by the names of its modules: torch itself is not imported."""
    layers: list[tuple[Any, Any, str]] = []
    for i, part in enumerate(_flat(module)):
        kind = type(part).__name__
        if kind == "Linear":
            weights, bias = (None if one is None else one.detach().cpu().numpy() for one in (part.weight, part.bias))
            layers.append((weights, bias, "linear"))
        elif kind == "ReLU" and layers and layers[-1][-1] == "linear":
            layers[-1] = (*layers[-1][:2], "relu")
        elif kind not in IDLE_MODULES:
            raise TacitError(f"module {i} is a {kind}, expected Linear modules, each followed by at most one ReLU")
    return layers


def _flat(module: Any) -> Iterator[Any]:
    for part in module:
        if type(part).__name__ == "Sequential":
            yield from _flat(part)
        else:
            yield part


def _from_neurons(network: Mapping[str, Any]) -> Circuit:
    inputs, listed, outputs = (_entry(network, key, "the neural network") for key in ("n_inputs", "neurons", "outputs"))
    build = CircuitBuilder()
    nodes = {f"x{i}": int(node) for i, node in enumerate(_inputs(build, inputs))}
    layers: dict[str, _Layer] = {}
    sources: dict[str, list[str]] = {}
    for neuron in listed:
        name = _entry(neuron, "name", "a neuron")
        if name in layers or name in nodes:
            raise TacitError(f"neuron {name!r} has the name of another neuron or input; names must be unique")
        layers[name], sources[name] = _neuron(name, neuron)
    for name in _sources_first(sources, list(nodes)):
        above = np.array([nodes[source] for source in sources[name]], dtype=np.int64)
        nodes[name] = int(_neurons(build, layers[name], above)[0])
    for name in outputs:
        if name not in nodes:
            raise TacitError(f"output {name!r} is not a neuron{similar(name, nodes)}")
    if not outputs:
        raise TacitError("the neural network has no outputs; expected the name of at least one neuron")
    return build.finish(np.array([nodes[name] for name in outputs]))


def _neuron(name: str, neuron: Mapping[str, Any]) -> tuple[_Layer, list[str]]:
    """A neuron as a layer of one, and its sources."""
    place = f"neuron {name!r}"
    try:
        pairs = [(source, weight) for source, weight in _entry(neuron, "inputs", place)]
    except (TypeError, ValueError):
        raise TacitError(f"{place}: inputs are {neuron['inputs']!r}, expected pairs (source, weight)") from None
    weights = _numbers([weight for _, weight in pairs], f"{place}: weights")
    bias, threshold = (_numbers([neuron.get(key, 0.0)], f"{place}: {key}") for key in ("bias", "threshold"))
    activation = _activation(neuron.get("activation", "linear"), place)
    if activation != "step" and threshold[0] != 0:
        raise TacitError(f"{place}: only a step has a threshold, but the activation is {activation!r}")
    return _Layer(name, weights[None], bias, activation, threshold), [source for source, _ in pairs]


def _sources_first(sources: Mapping[str, Sequence[str]], inputs: Sequence[str]) -> list[str]:
    """The names of all neurons, each after those it takes its inputs from."""
    names = {*sources, *inputs}
    for name, source in ((name, source) for name, above in sources.items() for source in above):
        if source not in names:
            problem = f"source {source!r} is neither a neuron nor one of the {len(inputs)} inputs"
            raise TacitError(f"neuron {name!r}: {problem}{similar(source, sorted(names))}")
    try:
        return [name for name in TopologicalSorter(sources).static_order() if name in sources]
    except CycleError as error:
        cycle = " -> ".join(map(repr, error.args[1]))
        raise TacitError(f"the neurons form a cycle: {cycle}; expected a feed-forward network") from None


def _entry(data: Any, key: str, what: str) -> Any:
    if not isinstance(data, Mapping) or key not in data:
        raise TacitError(f"{what} has no {key!r}")
    return data[key]


def _inputs(build: CircuitBuilder, count: Any) -> Ids:
    if not isinstance(count, int | np.integer) or count < 1:
        raise TacitError(f"n_inputs is {count!r}, expected a whole number of at least 1")
    return np.array([build.inputs(Variable(f"x{i}", ()))[0] for i in range(count)])


def _neurons(build: CircuitBuilder, layer: _Layer, sources: Ids) -> Ids:
    """The outputs of neurons that share their sources."""
    weights, bias = (_parameters(build, layer.name, part, getattr(layer, part)) for part in ("weights", "bias"))
    total = build.sums(np.concatenate([build.products(weights, sources), bias[:, None]], axis=1))
    if layer.activation == "linear":
        return total
    at_least = np.array(TESTS.index(">="))
    zero, one = np.array(build.zero), np.array(build.one)
    if layer.activation == "relu":  # x * [x >= 0], with the product inside the test
        return build.tests(total, zero, total, zero, at_least)
    return build.tests(total, _parameters(build, layer.name, "thresholds", layer.thresholds), one, zero, at_least)


def _parameters(build: CircuitBuilder, name: str, part: str, values: Floats) -> Ids:
    """One leaf per number; 0s and 1s are structure and fold away."""
    ids = build.parameters(name, part, values)
    return np.where(values == 0, build.zero, np.where(values == 1, build.one, ids))


def _activation(name: Any, place: str) -> str:
    if name not in ACTIVATIONS:
        raise TacitError(f"{place}: unknown activation {name!r}, expected one of {', '.join(ACTIVATIONS)}")
    return str(name)


def _numbers(values: Any, what: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TacitError(f"{what} must be numbers, got {values!r}") from None
    for place in np.argwhere(~np.isfinite(array))[:1].tolist():
        raise TacitError(f"{what} must be finite; the number at {place} is {array[tuple(place)]}")
    return array
