"""Multilinear functions of inputs in [0, 1], given by their values at the vertices of a box.

Vertices are numbered by bits: input i is high at vertex v where bit i of v is set. Axes, batch last: points are
(inputs, rows), values are (..., vertices).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from tacit.base.floats import Floats

NEGLIGIBLE = 1e-13  # beside the largest coefficient: what rounding leaves of a 0

T = TypeVar("T")


def vertices(low: Floats, high: Floats) -> Floats:
    """The vertices of boxes (inputs, boxes): points (inputs, boxes, 2^inputs)."""
    count = len(low)
    bits = (np.arange(2**count) >> np.arange(count)[:, None]) & 1  # (inputs, vertices)
    return np.where(bits[:, None, :] == 1, high[:, :, None], low[:, :, None])


def unit_vertices(count: int) -> Floats:
    """The vertices of the unit box: (inputs, 2^inputs)."""
    return vertices(np.zeros((count, 1)), np.ones((count, 1)))[:, 0]


def restricted(values: Floats, low: Floats, high: Floats) -> Floats:
    """Functions known at the unit box's vertices, at those of another box (inputs,), (inputs,)."""
    count = len(low)
    cube = values.reshape((*values.shape[:-1], *[2] * count))
    for i in range(count):  # input i is the i-th axis from the end: bit i
        ends = np.array([[1 - low[i], low[i]], [1 - high[i], high[i]]])
        cube = np.moveaxis(np.moveaxis(cube, -1 - i, -1) @ ends.T, -1, -1 - i)
    return cube.reshape(values.shape)


def at_point(values: Floats, point: Floats) -> Floats:
    """Functions known at the unit box's vertices, at a point (inputs,): (...,)."""
    return restricted(values, point, point)[..., 0]


def moebius(values: Floats) -> Floats:
    """The coefficients C_I of functions known at the unit box's vertices: (..., sets), in the order of `subsets`.

    >>> moebius(np.array([1.0, 3.0, 6.0, 12.0])).tolist()  # 1 + 2 x + 5 y + 4 x y
    [1.0, 2.0, 5.0, 4.0]
    """
    differences, size = values.copy(), values.shape[-1]
    bit = 1
    while bit < size:
        split = differences.reshape(*values.shape[:-1], -1, 2, bit)
        split[..., 1, :] -= split[..., 0, :]
        bit *= 2
    # the set I belongs to the vertex at which exactly its inputs are high
    order = [sum(1 << i for i in chosen) for chosen in subsets(range(size.bit_length() - 1))]
    return differences[..., order]


def subsets(inputs: Sequence[T]) -> list[tuple[T, ...]]:
    """All sets of inputs, smaller ones first."""
    return [chosen for size in range(len(inputs) + 1) for chosen in combinations(inputs, size)]


def bernstein(a: Floats, b: Floats) -> Floats:
    """The Bernstein coefficients of products of functions known at a box's vertices: (..., 3^inputs).

    The product is of degree 2 in each input, and everywhere in the box between its least and greatest coefficients.

    >>> bernstein(np.array([1.0, 2.0]), np.array([0.0, 1.0])).tolist()  # (1 + x) x
    [0.0, 0.5, 2.0]
    """
    count = a.shape[-1].bit_length() - 1
    lead = np.broadcast_shapes(a.shape, b.shape)[:-1]
    product = _with_sums(a, count) * _with_sums(b, count)
    for i in range(count):
        first, both, last = np.moveaxis(product, -1 - i, 0)
        product = np.stack([first, (both - first - last) / 2, last], axis=-1)
        product = np.moveaxis(product, -1, -1 - i)
    return product.reshape((*lead, 3**count))


def _with_sums(values: Floats, count: int) -> Floats:
    """Along every input the value at 0, the sum of both, and the value at 1."""
    cube = values.reshape((*values.shape[:-1], *[2] * count))
    for i in range(count):
        first, last = np.moveaxis(cube, -1 - i, 0)
        cube = np.moveaxis(np.stack([first, first + last, last], axis=-1), -1, -1 - i)
    return cube


def faces(values: Floats, axis: int) -> tuple[Floats, Floats]:
    """Functions known at a box's vertices, at those where one input is low and where it is high."""
    high = (np.arange(values.shape[-1]) >> axis) & 1 == 1
    return values[..., ~high], values[..., high]


def products(points: Floats) -> Floats:
    """The product of the inputs of each set, at points (inputs, rows): (sets, rows)."""
    return np.stack([points[list(chosen)].prod(axis=0) for chosen in subsets(range(len(points)))])


def polynomial(coefficients: Mapping[tuple[str, ...], float]) -> str:
    """A multilinear function, without what is 0.

    >>> polynomial({(): 0.25, ("A",): -1.0, ("B",): 0.0, ("A", "B"): 0.5})
    '0.25 - A + 0.5 A B'
    """
    text, least = "", NEGLIGIBLE * max(map(abs, coefficients.values()))
    for names, value in coefficients.items():
        if abs(value) > least:
            number = "" if names and abs(value) == 1 else f"{abs(value):.6g}"
            sign = (" - " if value < 0 else " + ") if text else ("-" if value < 0 else "")
            text += sign + " ".join([number, *names] if number else names)
    return text or "0"
