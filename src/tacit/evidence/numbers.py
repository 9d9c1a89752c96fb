"""Numbers that texts spell, and numbers as floats."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_number(text: str) -> int | float | str:
    """The number, or truth value, that a text spells, if any."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.strip().lower(), text)


def as_float(number: Any) -> float:
    """A number of any size as a float."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf
