"""The reverse sweep over what only depends on parameters: from derivatives by static values to those by tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.compiler.program import Axes, Contract, Gather, Parameter, Program, Select, spread
from tacit.engines.numpy import Array, NumpyEngine, contract


def parameter_gradients(
    engine: NumpyEngine, adjoints: Mapping[int, Array]
) -> tuple[dict[tuple[str, str], Array], dict[str, float]]:
    """Derivatives by the tables and by the slopes, given those by some static values."""
    program = engine.program
    pending = {i: a.copy() for i, a in adjoints.items()}
    tables: dict[tuple[str, str], Array] = {}
    slopes: dict[str, float] = {}
    for i in range(len(program) - 1, -1, -1):
        adjoint = pending.pop(i, None)
        if adjoint is None:
            continue
        operation = program.operations[i]
        match operation:
            case Parameter():
                key = (operation.node, operation.part)
                tables[key] = tables[key] + adjoint if key in tables else adjoint
            case Gather():
                _add(pending, operation.inputs[0], _scattered(engine, operation, adjoint))
            case Contract():
                for k, j in enumerate(operation.inputs):
                    others = [o for o in range(len(operation.inputs)) if o != k]
                    _add(pending, j, _contracted(engine, operation, adjoint, j, [operation.inputs[o] for o in others]))
            case Select():
                slope = _selected(engine, operation, adjoint, pending)
                slopes[operation.node] = slopes.get(operation.node, 0.0) + slope
            case _:
                pass  # constants
    return tables, slopes


def _add(pending: dict[int, Array], i: int, adjoint: Array) -> None:
    pending[i] = pending[i] + adjoint if i in pending else adjoint


def _scattered(engine: NumpyEngine, operation: Gather, adjoint: Array) -> Array:
    source = engine.static(operation.inputs[0])
    made = np.zeros(source.size)
    real = operation.index >= 0
    np.add.at(made, operation.index[real], adjoint[real])
    return made.reshape(source.shape)


def _contracted(engine: NumpyEngine, operation: Contract, adjoint: Array, j: int, others: list[int]) -> Array:
    program = engine.program
    target = program.operations[j].axes
    axes: list[Axes] = [operation.axes, *(program.operations[o].axes for o in others)]
    arrays = [adjoint, *(engine.static(o) for o in others)]
    present = tuple(a for a in target if any(a in own for own in axes))
    made = contract(arrays, axes, [False] * len(arrays), present)
    # an axis that the operation summed out, and no other operand has, takes the same derivative everywhere
    shape = [made.shape[present.index(a)] if a in present else 1 for a in target]
    return np.array(np.broadcast_to(made.reshape(shape), [program.sizes[a] for a in target]))


def _selected(engine: NumpyEngine, operation: Select, adjoint: Array, pending: dict[int, Array]) -> float:
    """Through a selection that no evidence reaches; returns the derivative by the slope."""
    program = engine.program
    marginal, plus, minus, thresholds, _ = operation.inputs
    arrays = [spread(engine.static(j), program.operations[j].axes, operation.axes) for j in operation.inputs]
    n_u, p, m, threshold, code = arrays
    gamma = engine.gammas[operation.node]
    tau = engine.weight(operation)
    _add(pending, plus, _summed(program, adjoint * tau, operation.axes, plus))
    _add(pending, minus, _summed(program, adjoint * (1 - tau), operation.axes, minus))
    if gamma is None:
        return 0.0
    parents = program.operations[marginal].axes
    over = tuple(i for i, a in enumerate(operation.axes) if a in parents)
    n = n_u.sum(axis=over, keepdims=True)
    sign = np.where(code < 2, 1.0, -1.0)
    dz = adjoint * (p - m) * tau * (1 - tau) * sign
    own = _summed(program, dz, operation.axes, marginal)
    _add(pending, thresholds, _summed(program, -gamma * dz, operation.axes, thresholds))
    posterior = engine.static(marginal) / n.sum()
    _add(pending, marginal, gamma * (own - (own * posterior).sum()) / n.sum())
    return float((dz * (n_u / n - threshold)).sum())


def _summed(program: Program, array: Array, axes: Axes, j: int) -> Array:
    """An array over `axes` summed down to the axes of value j."""
    target = program.operations[j].axes
    array = np.broadcast_to(array, [program.sizes[a] for a in axes])
    return contract([array], [axes], [False], target)
