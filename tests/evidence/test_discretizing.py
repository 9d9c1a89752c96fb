"""Edges for the numbers of a frame."""

from __future__ import annotations

from collections import Counter
from math import inf, log2, nan

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import TacitError
from tacit.evidence.intervals import codes_of_numbers
from tacit.evidence.summaries.discretizing import mdl_cuts, quantile_cuts, short_number
from tacit.model.elements.intervals import checked_edges


def entropy(classes: list[int]) -> float:
    return -sum(n / len(classes) * log2(n / len(classes)) for n in Counter(classes).values())


def naive_mdl(pairs: list[tuple[float, int]]) -> list[int]:
    """How many pairs are below each cut of Fayyad and Irani, by definition, cut by cut."""
    pairs = sorted(pairs)
    classes, n = [c for _, c in pairs], len(pairs)
    cuts = [i for i in range(1, n) if pairs[i - 1][0] < pairs[i][0]]
    if not cuts:
        return []

    def after(i: int) -> float:
        return (i * entropy(classes[:i]) + (n - i) * entropy(classes[i:])) / n

    best = min(cuts, key=lambda i: (round(after(i), 9), i))
    left, right = classes[:best], classes[best:]
    k, k1, k2 = len(set(classes)), len(set(left)), len(set(right))
    delta = log2(3**k - 2) - (k * entropy(classes) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(classes) - after(best) <= (log2(n - 1) + delta) / n:
        return []
    return [*naive_mdl(pairs[:best]), best, *(best + i for i in naive_mdl(pairs[best:]))]


@pytest.mark.parametrize("seed", range(12))
def test_mdl_agrees_with_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=300).round(1 + seed % 3)
    noisy = rng.random(300) < 0.1
    classes = np.where(noisy, rng.integers(0, 3, 300), np.digitize(x, [-1, 0.2][: 1 + seed % 2]))
    cuts = mdl_cuts(x, classes, 100)
    assert [int((x < cut).sum()) for cut in cuts] == naive_mdl(list(zip(x.tolist(), classes.tolist(), strict=True)))
    fewer = mdl_cuts(x, classes, 2)
    assert len(fewer) <= 1
    assert set(fewer) <= set(cuts)


def test_mdl_finds_nothing_in_noise() -> None:
    rng = np.random.default_rng(0)
    frame = {"x": rng.random(500), "y": rng.choice(["a", "b"], 500)}
    assert tacit.discretize(frame, "mdl", target="y") == {"x": (-inf, inf)}


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3), min_size=1), st.integers(1, 9))
def test_every_way_gives_edges_that_take_every_number(numbers: list[float], count: int) -> None:
    values = np.array(numbers, dtype=np.float64)
    frame = {"x": values, "y": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)}
    for how in ("quantile", "equal", "mdl", count):
        edges = tacit.discretize(frame, how, target="y", max_bins=count)["x"]
        assert checked_edges(edges) == edges
        assert len(edges) <= count + 1
        assert (codes_of_numbers(edges, values) >= 0).all()
    if 1 < len(set(numbers)) <= count:
        assert len(quantile_cuts(values, count)) == len(np.unique(values)) - 1


def test_quantiles_have_as_many_rows_each() -> None:
    x = np.random.default_rng(0).lognormal(size=10_000)
    (edges,) = tacit.discretize(pd.DataFrame({"x": x}), 5).values()
    np.testing.assert_allclose(np.bincount(codes_of_numbers(edges, x)), 2000, atol=40)
    assert all(len(str(edge)) <= 4 for edge in edges)  # of few digits
    frequent = np.array([0.0] * 60 + list(range(1, 41)))
    assert quantile_cuts(frequent, 4)[0] == 1


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_cut_lies_between(one: float, other: float) -> None:
    low, high = sorted([one, other])
    if low < high:
        assert low < short_number(low, high) <= high


def test_frames_of_any_library_and_columns_that_are_not_numeric() -> None:
    columns = {
        "whole": [1, 2, 3, None, 5, 6],
        "float": [0.5, nan, 1.5, 2.5, 3.5, 4.5],
        "same": [7] * 6,
        "flag": [True, False] * 3,
        "text": list("ababab"),
    }
    want = {"whole": (-inf, 4.0, inf), "float": (-inf, 3.0, inf), "same": (-inf, inf)}
    for frame in (columns, pd.DataFrame(columns), pl.DataFrame(columns, strict=False)):
        assert tacit.discretize(frame, 2) == want
    assert tacit.discretize(pd.DataFrame({"x": pd.Series([None, None], dtype="Float64")})) == {"x": (-inf, inf)}
    mixed = tacit.discretize(columns, {"flag": 2, "whole": [0, 3, 10]})
    assert mixed == {"flag": (-inf, 1.0, inf), "whole": (0, 3, 10)}


@pytest.mark.parametrize(
    ("bins", "target", "message"),
    [
        ("mdl", None, "needs a target"),
        ("mdl", "z", "target is 'z', which is not a column"),
        ("width", None, "bins is 'width'; expected 'quantile', 'equal', 'mdl', a number, or edges"),
        (0, None, "expected the number of intervals"),
        ({"z": 3}, None, "bins= names 'z'"),
        ({"y": 3}, None, "column 'y' does not hold numbers"),
        ({"x": [2, 1]}, None, "column 'x': edge 1 of bins is 1, after 2"),
    ],
)
def test_errors(bins: object, target: str | None, message: str) -> None:
    with pytest.raises(TacitError) as error:
        tacit.discretize({"x": [1.0, 2.0], "y": ["a", "b"]}, bins, target)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_network_from_edges_takes_bins() -> None:
    rows = pd.DataFrame({"age": [17.5, 30, 45, 80], "ill": ["no", "no", "yes", "yes"]})
    net = tacit.Network.from_edges([("age", "ill")], rows, bins=2)
    assert net.bins("age") == (-inf, 40.0, inf)
    learned = tacit.estimate(net, rows, progress=False).network
    assert learned.posterior("ill", {"age": [20, 90]}).tolist() == [[1, 0], [0, 1]]
    with pytest.warns(tacit.DefaultBinsWarning, match="into intervals of about as many rows each: age; choose"):
        assert tacit.Network.from_edges([("age", "ill")], rows).bins("age") == (-inf, 20.0, 40.0, 60.0, inf)
