"""The options of learning as data, checked when they are made."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np

from tacit.base.errors import TacitError
from tacit.learn.prior import Prior
from tacit.model.cpt import check_gamma
from tacit.query.network import Network

OPTIMIZERS = ("auto", "lm", "lbfgs", "adam")
EM_STEPS = 1000


def whole(name: str, value: Any, least: int = 1, most: int = 2**53) -> int:
    """A whole number between two others; any up to 2**53 is exact as a float, too."""
    value = _plain(value)
    if not isinstance(value, int) or value < least:
        raise TacitError(f"{name} is {_shown(value)}, expected a whole number >= {least}")
    if value > most:
        raise TacitError(f"{name} is {_shown(value)}, expected at most {most:,}")
    return value


def whole_or_none(name: str, value: Any) -> int | None:
    """A whole number >= 1, or None."""
    return None if value is None else whole(name, value)


def not_negative(name: str, value: Any, what: str) -> float:
    """A finite number >= 0."""
    return _number(name, value, f"{what} >= 0", lambda number: number >= 0)


def share(name: str, value: Any, what: str) -> float:
    """A number between 0 and 1."""
    return _number(name, value, what, lambda number: 0 < number < 1)


def prior(name: str, value: Any) -> Prior:
    """The pseudo-counts of a prior: a number, or `(network, strength)`."""
    if isinstance(value, Prior):
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Network):
        return Prior(not_negative(name, value[1], "how many rows the network counts as: a number"), value[0])
    return Prior(not_negative(name, value, "a number of pseudo-counts, or (network, strength), with numbers"))


def optimizer(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in OPTIMIZERS:
        raise TacitError(f"{name} is {value!r}, expected one of {', '.join(map(repr, OPTIMIZERS))}")
    return value


def slope(name: str, value: Any) -> float | str | None:
    """The slope of tests, None, or "learn"."""
    return value if isinstance(value, str) and value == "learn" else check_gamma(value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise TacitError(f"{name} is {_shown(value)}, expected True or False")
    return bool(value)


def functions(name: str, value: Any) -> Sequence[Callable[..., Any]]:
    if not isinstance(value, Sequence) or not all(callable(f) for f in value):
        raise TacitError(f"{name} is {_shown(value)}, expected a list of functions")
    return value


def file_path(name: str, value: Any) -> Path | None:
    """The path of a file that is or will be there, or None."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TacitError(f"{name} is {_shown(value)}, expected the path of a file")
    path = Path(os.fspath(value))
    if not path.parent.is_dir():
        raise TacitError(f"{name} is {str(path)!r}, but there is no folder {str(path.parent)!r}")
    return path


def _number(name: str, value: Any, expected: str, is_valid: Callable[[float], bool]) -> float:
    value = _plain(value)
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.nan
    if not (math.isfinite(number) and is_valid(number)):
        raise TacitError(f"{name} is {_shown(value)}, expected {expected}")
    return number


def _plain(value: Any) -> Any:
    """A number of Python's for one of NumPy's; True and False become a type that is not a number."""
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    return np.bool_(value) if isinstance(value, bool) else value


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        return f"a {type(value).__name__} of very many digits"


def _option(check: Callable[[str, Any], Any], default: Any) -> Any:
    return field(default=default, metadata={"check": check})


def _positive_or_none(what: str) -> Callable[[str, Any], float | None]:
    return lambda name, value: None if value is None else _number(name, value, f"{what} > 0", lambda number: number > 0)


@dataclass(frozen=True, kw_only=True)
class _Options:
    prior: Prior = _option(prior, 0.0)  # noqa: RUF009
    seed: int = _option(partial(whole, least=0, most=2**128), 0)  # as many bits as NumPy advises
    progress: bool = _option(flag, True)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Self:
        """The options among the arguments of a function, such as its `locals()`."""
        return cls(**{option.name: arguments[option.name] for option in fields(cls) if option.name in arguments})

    def __post_init__(self) -> None:
        for option in fields(self):
            if check := option.metadata.get("check"):
                object.__setattr__(self, option.name, check(option.name, getattr(self, option.name)))


@dataclass(frozen=True, kw_only=True)
class FitOptions(_Options):
    """The options of `tacit.fit`; the loss is checked later. Training chooses `steps`, `restarts` and `rate`."""

    loss: Any = "mse"
    optimizer: str = _option(optimizer, "auto")
    steps: int | None = _option(whole_or_none, None)
    restarts: int | None = _option(whole_or_none, None)
    gamma: float | str | None = _option(slope, None)
    harden: bool = _option(flag, False)
    rate: float | None = _option(_positive_or_none("a learning rate"), None)
    batch: int = _option(whole, 1024)
    clip: float | None = _option(_positive_or_none("None, or the norm of a gradient"), 1.0)
    patience: int = _option(whole, 5)
    callbacks: Sequence[Callable[..., Any]] = _option(functions, ())
    checkpoint: Path | None = _option(file_path, None)  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(_Options):
    """The options of `tacit.estimate`."""

    restarts: int = _option(whole, 1)
    tolerance: float = _option(partial(not_negative, what="a relative change"), 1e-8)
    steps: int = _option(whole, EM_STEPS)
    checkpoint: Path | None = _option(file_path, None)  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(_Options):
    """The options of `tacit.learn.place_tests`; `loss` and `validation` are checked later."""

    budget: int = _option(whole, 5)
    max_tests: int = _option(whole, 1)
    gamma: float | None = _option(lambda _, value: check_gamma(value), 16.0)
    loss: Any = "cross_entropy"
    prior: Prior = _option(prior, 0.1)  # noqa: RUF009
    validation: Any = 5
    steps: int = _option(whole, 100)
    restarts: int = _option(whole, 4)


@dataclass(frozen=True, kw_only=True)
class DiscoverOptions(_Options):
    """The options of `tacit.discover`; those without a check here are checked against the rows later."""

    score: str = "bic"
    search: str = "tabu"
    tiers: Any = None
    forbid: Any = ()
    require: Any = ()
    max_parents: int | None = _option(whole_or_none, None)
    max_cost: float | None = _option(_positive_or_none("None, or a number of multiply-adds per row"), None)
    start: Any = None
    bootstrap: int = _option(partial(whole, least=0), 0)
    checkpoint: Path | None = _option(file_path, None)  # noqa: RUF009
