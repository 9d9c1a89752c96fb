"""The traceback on arrays: every axis that was summed out, or maximised, gets a state.

It follows the decisions of a program, and looks only at the entries that the states chosen so far leave open: in wide
networks, that is far less than the forward pass does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.operations.axes import Axes, Ids
from tacit.compiler.program import Program
from tacit.engines.arrays.wide import Wide
from tacit.engines.results import States

Array = Any  # of NumPy, or Wide


def descend(
    program: Program, value: Callable[[int], Array], observed: Mapping[str, Ids], rows: int, draws: Floats | None
) -> States:
    """States of all axes: (rows, samples). Without `draws` (decisions, rows, samples), one sample, the largest.

    `value` gives the value of an operation, `observed` the states of the variables that index tables.
    """
    samples = 1 if draws is None else draws.shape[2]
    of_row = np.repeat(np.arange(rows), samples)
    states: dict[str, Ids] = {name: np.broadcast_to(codes, rows)[of_row] for name, codes in observed.items()}

    def entries(i: int, chosen: Axes) -> Array:
        """The entries of value i for all states of some axes: (states, rows of `of_row`), or (states, 1)."""
        strides = strides_of(program, i)
        flat = value(i).reshape(program.size(program.operations[i].axes), -1)
        width = flat.shape[1]
        place = of_row.copy() if width > 1 else np.zeros(1, dtype=np.int64)
        for axis, stride in strides.items():
            if axis not in chosen:
                step = states[axis] * (stride * width)
                place = step if len(place) < len(step) else np.add(place, step, out=place)
        index = width * offsets_of(program, chosen, strides)[:, None] + place
        return flat.reshape(-1)[index]  # one index is faster than two

    for k, decision in enumerate(program.decisions):
        weights: Array = reduce(mul, (entries(i, decision.chosen) for i in decision.inputs))
        if isinstance(weights, Wide):
            weights = weights.floats(-weights.top(axis=0))
        place = weights.argmax(axis=0) if draws is None else _drawn(weights, draws[k].ravel())
        shape = [program.sizes[a] for a in decision.chosen]
        place = np.broadcast_to(place, len(of_row))  # where no row differs from the others, there is one of them
        chosen = [place] if len(shape) == 1 else np.unravel_index(place, shape)
        states |= zip(decision.chosen, chosen, strict=True)
    return {axis: codes.reshape(rows, samples) for axis, codes in states.items()}


def strides_of(program: Program, i: int) -> dict[str, int]:
    """How far apart the entries of a value are along each axis, the last one fastest."""
    strides, stride = {}, 1
    for axis in reversed(program.operations[i].axes):
        strides[axis] = stride
        stride *= program.sizes[axis]
    return strides


def offsets_of(program: Program, chosen: Axes, strides: Mapping[str, int]) -> Ids:
    """Where the states of some axes are in a value, one after the other; axes that it lacks do not move."""
    states = np.indices([program.sizes[a] for a in chosen]).reshape(len(chosen), -1)
    return np.asarray(np.array([strides.get(a, 0) for a in chosen], dtype=np.int64) @ states)


def _drawn(weights: Floats, draws: Floats) -> Ids:
    """States drawn in proportion to their weights, from numbers between 0 and 1; never one of weight 0."""
    heaps = [weights[0]]
    for weight in weights[1:]:  # each is a whole row: faster than a sum along the other axis
        heaps.append(heaps[-1] + weight)
    limit = np.minimum(draws * heaps[-1], np.nextafter(heaps[-1], 0))  # a product may be rounded up to all there is
    place = np.zeros(len(draws), dtype=np.int64)
    for heap in heaps[:-1]:
        place += heap <= limit
    return place
