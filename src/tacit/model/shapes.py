"""The shape that a node's table must have, and what a table of another shape may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.model.variable import Variable


def check_shape(part: str, table: Floats, own: Variable, parents: Sequence[Variable]) -> None:
    """Refuse a table that is not (states of each parent..., own states)."""
    expected = (*(p.card for p in parents), own.card)
    if table.shape != expected:
        axes = ", ".join(f"states of {v.name}" for v in (*parents, own))
        raise NetworkError(f"{part} has shape {table.shape}, expected {expected} = ({axes}){_hint(table, expected)}")


def _hint(table: Floats, expected: tuple[int, ...]) -> str:
    """What a table of the wrong shape may be, and how to make the right one of it; nothing, if that is not clear.

    >>> import numpy as np
    >>> _hint(np.array([0.1, 0.2, 0.3]), (3, 2))
    '; is it the probability of the first state only? Give both: np.stack([table, 1 - table], axis=-1)'
    """
    *parents, own = expected
    meant = ""
    if not parents and table.ndim == 2 and table.size == own:
        meant = "is it a row or a column? A node without parents has one axis: np.ravel(table)"
    elif not parents and table.ndim == 0 and own == 2:
        meant = f"is it the probability of the first state only? Give both: [{table:g}, {1 - table:g}]"
    elif parents and own == 2 and table.shape == tuple(parents):
        meant = "is it the probability of the first state only? Give both: np.stack([table, 1 - table], axis=-1)"
    elif table.ndim == 1 and table.size == math.prod(expected):
        meant = f"is it flat, the states of the node varying fastest? Then give np.reshape(table, {expected})"
    elif table.shape == (own, math.prod(parents)):
        meant = f"does it have a column for each state of the parents, as in pgmpy? Then give {_turned(expected)}"
    elif table.shape == (own, *parents):
        meant = "do the states of the node come first? They are the last axis here: np.moveaxis(table, 0, -1)"
    return f"; {meant}" if meant else ""


def _turned(expected: tuple[int, ...]) -> str:
    turned = "np.transpose(table)"
    return turned if len(expected) == 2 else f"{turned}.reshape{expected}"
