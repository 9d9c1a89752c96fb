"""Edges of intervals for the numbers in columns: by quantiles, of equal width, or by what they tell about a target.

Cuts between two neighbouring values are placed near their middle, at a number of few digits, so that the names of the
intervals can be read. The outer edges are infinite: rows of tomorrow may lie outside the range of today.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import listed, shown
from tacit.base.warnings import warn
from tacit.evidence.frames import Coded, ConversionError, Plain, TextColumn, opened
from tacit.evidence.intervals import NUMBER
from tacit.evidence.labels import is_missing
from tacit.evidence.numbers import as_float
from tacit.evidence.read import EvidenceLike, named_columns
from tacit.model.elements.intervals import Edges, checked_edges
from tacit.model.elements.variable import similar

MAX_BINS = 8
METHODS = ("quantile", "equal", "mdl")
MAX_CLASSES = 100  # different values of a target up to which they are taken for its states
SLACK = 0.02  # of the width of an interval, or of its rows, by which an edge may be moved to have few digits
How = str | int | Sequence[float]


class DefaultBinsWarning(UserWarning):
    """Columns of numbers were sorted into intervals that nobody chose."""


def warn_of_default_bins(names: Sequence[str]) -> None:
    """Warn that columns have default intervals, if there are any."""
    if names:
        what = f"columns of numbers were sorted into intervals of about as many rows each: {listed(names)}"
        warn(f'{what}; choose with the option bins ("equal", a number, or edges by column)', DefaultBinsWarning)


def discretize(
    frame: EvidenceLike, bins: How | Mapping[str, How] = "quantile", target: str | None = None, max_bins: int = MAX_BINS
) -> dict[str, Edges]:
    """Edges for the numeric columns of a frame, by name, for `Network.add(..., bins=...)`.

    All but explicit edges begin with -inf and end with inf, so that no new row is refused. For intervals with finite
    ends, which `TAC.mean` and `Network.sample(numbers=True)` describe better, give edges. A column without two
    different values, or of which "mdl" finds that it tells nothing about the target, has one interval. Booleans and
    categories are not numeric; missing values are passed over.

    Parameters
    ----------
    frame
        A frame, or columns by name.
    bins
        "quantile": intervals with about as many rows each; a value that is frequent has an interval of its own.
        "equal": of equal width, from the least to the greatest value. "mdl": as few as tell what the numbers say about
        the `target`, by the minimum description length (Fayyad and Irani, 1993). A number: so many quantiles.
        A dictionary from columns to any of these, or to edges: for these columns only.
    target
        A column of few different values, for "mdl".
    max_bins
        The number of intervals that a column has at most.

    >>> import numpy as np
    >>> ages = np.arange(100)
    >>> discretize({"age": ages, "name": ["Ann"] * 100}, bins=4)
    {'age': (-inf, 25.0, 50.0, 75.0, inf)}
    >>> discretize({"age": ages, "vote": ages >= 18}, "mdl", target="vote")
    {'age': (-inf, 18.0, inf)}
    """
    columns = named_columns(frame)
    if columns is None:
        expected = "expected a frame, or columns by name"
        raise EvidenceError(f"a frame of type {type(frame).__name__} is not understood; {expected}")
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in columns:
                raise EvidenceError(f"bins= names {name!r}, which is not a column{similar(name, map(str, columns))}")
        chosen = dict(bins)
    else:
        chosen = {name: bins for name in columns if name != target or bins != "mdl"}
    classes = _classes(columns, target) if "mdl" in (how for how in chosen.values() if isinstance(how, str)) else None
    limit = _count(max_bins, "max_bins")
    edges: dict[str, Edges] = {}
    for name, how in chosen.items():
        numbers = _numbers(name, columns[name], named=isinstance(bins, Mapping))
        if numbers is not None:
            edges[name] = _edges(name, numbers, how, classes, limit)
    return edges


def edges_of_counts(name: str, values: Floats, counts: NDArray[np.int64], how: How, max_bins: int = MAX_BINS) -> Edges:
    """The edges that `discretize` gives for a column, from its different values in order and their counts."""
    if isinstance(how, str) and how == "mdl":
        remedy = 'give edges: bins=tacit.discretize(frame, "mdl", target=...)'
        raise TacitError(f'bins="mdl" needs a target, which a search for a structure has not; {remedy}')
    if isinstance(how, int | np.integer) and not isinstance(how, bool):
        return _with_ends(_quantile_cuts(values, counts, _count(how, f"bins of {name!r}")))
    if isinstance(how, str) and how == "quantile":
        return _with_ends(_quantile_cuts(values, counts, max_bins))
    return _edges(name, values, how, None, max_bins)


def _edges(name: str, numbers: Floats, how: Any, classes: NDArray[np.intp] | None, limit: int) -> Edges:
    if isinstance(how, str):
        if how not in METHODS:
            raise TacitError(f"bins is {how!r}; expected {', '.join(map(repr, METHODS))}, a number, or edges")
        if how == "mdl":
            assert classes is not None
            if len(classes) != len(numbers):
                raise EvidenceError(f"column {name!r} has {len(numbers):,} rows, and the target {len(classes):,}")
            known = np.isfinite(numbers) & (classes >= 0)
            return _with_ends(mdl_cuts(numbers[known], classes[known], limit))
        finite = numbers[np.isfinite(numbers)]
        return _with_ends(quantile_cuts(finite, limit) if how == "quantile" else equal_cuts(finite, limit))
    if isinstance(how, int | np.integer):
        return _with_ends(quantile_cuts(numbers[np.isfinite(numbers)], _count(how, f"bins of {name!r}")))
    try:
        return checked_edges(how)
    except NetworkError as error:
        raise NetworkError(f"column {name!r}: {error}") from None


def _with_ends(cuts: Iterable[float]) -> Edges:
    return (-math.inf, *cuts, math.inf)


def _count(number: Any, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise TacitError(f"{what} is {shown(number)}, expected the number of intervals, a whole number >= 1")
    return int(number)


def quantile_cuts(numbers: Floats, count: int) -> list[float]:
    """Cuts into so many intervals with about as many numbers each; fewer, where numbers are often equal.

    >>> quantile_cuts(np.array([1.0, 1, 1, 1, 2, 3]), 3)
    [2.0, 3.0]
    """
    return _quantile_cuts(*np.unique(numbers, return_counts=True), count)


def _quantile_cuts(values: Floats, counts: NDArray[np.integer[Any]], count: int) -> list[float]:
    if len(values) > count:
        below = np.concatenate([[0], np.cumsum(counts)])  # numbers below each value
        rows = int(below[-1])
        wanted = rows * np.arange(1, count) / count
        after = np.searchsorted(below, wanted)  # the first value with at least as many below it
        places = after - (abs(below[after - 1] - wanted) < abs(below[after] - wanted))
        slack = SLACK / 2 * rows / count
        firsts = np.minimum(places, np.searchsorted(below, wanted - slack))
        lasts = np.maximum(places, np.searchsorted(below, wanted + slack, side="right") - 1)
        inside = (firsts > 0) & (lasts < len(values))
        return sorted(
            {short_number(values[i - 1], values[j]) for i, j in zip(firsts[inside], lasts[inside], strict=True)}
        )
    return [short_number(values[i - 1], values[i]) for i in range(1, len(values))]


def equal_cuts(numbers: Floats, count: int) -> list[float]:
    """Cuts into so many intervals of about equal width.

    >>> equal_cuts(np.array([0.0, 0.3, 1.0]), 4)
    [0.25, 0.5, 0.75]
    """
    if not len(numbers) or (low := float(numbers.min())) == (high := float(numbers.max())):
        return []
    slack = SLACK * (high / count - low / count)
    shares = [i / count for i in range(1, count)]
    cuts = [low * (1 - share) + high * share for share in shares]  # the width itself may overflow
    return sorted({short_number(cut - slack / 2, cut + slack / 2) for cut in cuts if low < cut < high})


def mdl_cuts(numbers: Floats, classes: NDArray[np.intp], count: int) -> list[float]:
    """Cuts that tell classes apart, as many as the minimum description length allows (Fayyad and Irani, 1993).

    Where these would make more than so many intervals, the cuts that tell most are made.
    """
    values, places = np.unique(numbers, return_inverse=True)
    if len(values) < 2:
        return []
    table = np.zeros((len(values), int(classes.max()) + 1))
    np.add.at(table, (places, classes), 1)
    sums = np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(table, axis=0)])
    cuts: list[int] = []
    waiting = [split for split in [_split(sums, 0, len(values))] if split is not None]
    while waiting and len(cuts) < count - 1:
        _, start, cut, stop = heapq.heappop(waiting)
        cuts.append(cut)
        for split in (_split(sums, start, cut), _split(sums, cut, stop)):
            if split is not None:
                heapq.heappush(waiting, split)
    return [short_number(values[i - 1], values[i]) for i in sorted(cuts)]


def _split(sums: Floats, start: int, stop: int) -> tuple[float, int, int, int] | None:
    """The best cut of the values from `start` to `stop`, after the bits it saves, negative; None if it saves none."""
    if stop - start < 2:
        return None
    whole = sums[stop] - sums[start]
    left, right = sums[start + 1 : stop] - sums[start], sums[stop] - sums[start + 1 : stop]
    bits = _bits(left) + _bits(right)  # that the classes take, once it is known on which side of the cut they are
    best = int(bits.argmin())
    saved, rows = float(_bits(whole)) - float(bits[best]), float(whole.sum())
    states = [int(np.count_nonzero(part)) for part in (whole, left[best], right[best])]
    entropies = [float(_bits(part)) / float(part.sum()) for part in (whole, left[best], right[best])]
    signed = states[0] * entropies[0] - states[1] * entropies[1] - states[2] * entropies[2]
    cost = math.log2(rows - 1) + math.log2(3.0 ** min(states[0], 600) - 2) - signed
    return (cost - saved, start, start + 1 + best, stop) if saved > cost else None


def _bits(counts: Floats) -> Floats:
    """The entropy of counts (..., classes) times their sum, in bits."""
    total = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(counts > 0, counts * np.log2(counts), 0.0).sum(axis=-1)
        return np.asarray(np.where(total > 0, total * np.log2(total), 0.0) - parts)


def short_number(low: float, high: float) -> float:
    """A number of few digits near the middle of two: more than the lower one, and at most the higher one.

    >>> short_number(17, 18), short_number(0.123, 0.129), short_number(-1e308, 1e308)
    (18.0, 0.126, 0.0)
    """
    low, high = float(low), float(high)
    middle = low / 2 + high / 2
    digits = -math.ceil(math.log10(max(abs(low), abs(high)))) - 1
    for places in range(max(-308, digits), min(digits + 20, 323)):
        rounded = round(middle, places)
        for near in (rounded, round(rounded + 10.0**-places, places)):
            if low < near <= high:
                return near + 0.0
    return high


def _numbers(name: Any, values: Any, named: bool) -> Floats | None:
    """The numbers of a column, NaN in gaps; None if they are something else, which is an error if it is `named`."""
    numbers = _as_floats(name, values, booleans=named)
    if numbers is None and named:
        raise EvidenceError(f"column {name!r} does not hold numbers; leave it out of bins=")
    return numbers


def _as_floats(name: Any, values: Any, booleans: bool) -> Floats | None:
    column = _opened(name, values)
    if isinstance(column, Coded) and booleans:
        column = column.plain()
    if not isinstance(column, Plain) or column.values.ndim != 1:
        return None
    array, missing = column.values, column.missing
    if array.dtype.kind == "O":
        present = [value for value in array.tolist() if not is_missing(value)]
        kinds = NUMBER if booleans else (NUMBER if not any(isinstance(v, bool | np.bool_) for v in present) else ())
        if not present or not all(isinstance(value, kinds) for value in present):
            return None
        return np.array([np.nan if is_missing(value) else as_float(value) for value in array.tolist()])
    if array.dtype.kind not in ("fiub" if booleans else "fiu"):
        return None
    floats = array.astype(np.float64)
    return floats if missing is None else np.where(missing, np.nan, floats)


def _opened(name: Any, values: Any) -> TextColumn | Coded | Plain:
    try:
        return opened(values)
    except ConversionError as error:
        raise EvidenceError(f"column {name!r}: {error}") from None


def _classes(columns: Mapping[Any, Any], target: str | None) -> NDArray[np.intp]:
    """The place of each row's value among those of the target; -1 where there is none."""
    if target is None:
        raise TacitError('bins="mdl" needs a target: the name of the column that the intervals are to tell about')
    if target not in columns:
        raise EvidenceError(f"target is {target!r}, which is not a column{similar(target, map(str, columns))}")
    column = _opened(target, columns[target])
    if not isinstance(column, Plain):
        places_of_values: NDArray[np.intp] = np.unique(column.places, return_inverse=True)[1]
        return places_of_values - int((column.places == -1).any())
    values: list[Any] = column.values.tolist()
    gaps = [False] * len(values) if column.missing is None else column.missing.tolist()
    places: dict[Any, int] = {}
    classes = [
        -1 if gap or is_missing(value) else places.setdefault(value, len(places))
        for value, gap in zip(values, gaps, strict=True)
    ]
    if len(places) > MAX_CLASSES:
        problem = f"the target {target!r} has {len(places):,} different values (limit {MAX_CLASSES})"
        raise EvidenceError(f"{problem}; expected classes: sort its values into a few intervals first")
    return np.array(classes, dtype=np.intp)
