"""Arguments of training, checked before anything is done with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.network import Network

LARGEST_SEED = 2**128  # as many bits as NumPy advises
LARGEST = 2**53  # whole numbers up to here are exact as floats, too


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST) -> int:
    """A whole number between two others."""
    value = _plain(value)
    if not isinstance(value, int) or value < least:
        raise TacitError(f"{name} is {_shown(value)}, expected a whole number >= {least}")
    if value > most:
        raise TacitError(f"{name} is {_shown(value)}, expected at most {most:,}")
    return value


def seed(value: Any) -> int:
    """A seed of random numbers."""
    return whole("seed", value, least=0, most=LARGEST_SEED)


def whole_or_none(name: str, value: Any) -> int | None:
    """A whole number >= 1, or None."""
    return None if value is None else whole(name, value)


def positive(name: str, value: Any, what: str) -> float:
    """A finite number > 0."""
    return _number(name, value, f"{what} > 0", lambda number: number > 0)


def not_negative(name: str, value: Any, what: str) -> float:
    """A finite number >= 0."""
    return _number(name, value, f"{what} >= 0", lambda number: number >= 0)


def prior(value: Any) -> tuple[float, Network | None]:
    """Pseudo-counts, and the network whose tables they are in proportion to, if there is one."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Network):
        return not_negative("prior", value[1], "how many rows the network counts as: a number"), value[0]
    return not_negative("prior", value, "a number of pseudo-counts, or (network, strength), with numbers"), None


def share(name: str, value: Any, what: str) -> float:
    """A number between 0 and 1."""
    return _number(name, value, what, lambda number: 0 < number < 1)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise TacitError(f"{name} is {_shown(value)}, expected True or False")
    return bool(value)


def functions(name: str, value: Any) -> Sequence[Callable[..., Any]]:
    """A sequence of functions."""
    if not isinstance(value, Sequence) or not all(callable(f) for f in value):
        raise TacitError(f"{name} is {_shown(value)}, expected a list of functions")
    return value


def file_path(name: str, value: Any) -> Path | None:
    """Where a file is or will be, or None."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TacitError(f"{name} is {_shown(value)}, expected the path of a file")
    path = Path(os.fspath(value))
    if not path.parent.is_dir():
        raise TacitError(f"{name} is {str(path)!r}, but there is no folder {str(path.parent)!r}")
    return path


def _number(name: str, value: Any, expected: str, good: Callable[[float], bool]) -> float:
    value = _plain(value)
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.nan
    if not (math.isfinite(number) and good(number)):
        raise TacitError(f"{name} is {_shown(value)}, expected {expected}")
    return number


def _plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, and no number where there is True or False."""
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    return np.bool_(value) if isinstance(value, bool) else value


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        return f"a {type(value).__name__} of very many digits"
