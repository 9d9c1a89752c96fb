"""Products of large tables in one pass, or as matrix products, against einsum."""

from collections.abc import Sequence

import numpy as np
import pytest

from tacit.compiler.operations import dense
from tacit.compiler.operations.axes import Axes, Setting
from tacit.compiler.operations.dense import Dense

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2, "f": 5, "g": 2, "h": 64, "i": 40}
CONTRACTIONS = [
    (("abcd", "bcef"), "fda"),  # a pass, and everything at once: kept, left, summed, right
    (("abgh", "bg"), "hab"),  # runs that one entry multiplies
    (("abgh", "bgh"), "hga"),  # runs of both
    (("hai", "ibh"), "abh"),  # matrix products
    (("hi", "ia"), "ha"),
    (("abc", "ade"), "ad"),  # axes that one alone has, and that are gone
    (("abcde",), "db"),
    (("ab", "cd"), "dcba"),
    (("ab", "ab"), ""),
]


def einsum(arrays: Sequence[np.ndarray], axes: Sequence[str], out: str) -> np.ndarray:
    return np.asarray(np.einsum(",".join(axes) + "->" + out, *arrays))


def tables(axes: Sequence[str], rng: np.random.Generator) -> list[np.ndarray]:
    """Random ones, whose axes are in another order in memory."""
    orders = [rng.permutation(len(own)) for own in axes]
    lying = [rng.random([SIZES[own[k]] for k in order]) for own, order in zip(axes, orders, strict=True)]
    return [array.transpose(np.argsort(order)) for array, order in zip(lying, orders, strict=True)]


@pytest.mark.parametrize("multiplied", [0.0, 1.0])  # matrix products wherever possible, and nowhere
@pytest.mark.parametrize(("axes", "out"), CONTRACTIONS)
def test_sums_of_products(axes: tuple[str, ...], out: str, multiplied: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "MULTIPLIED", multiplied)
    monkeypatch.setattr(dense, "MOVED", multiplied)
    monkeypatch.setattr(dense, "CALLED", multiplied)
    for seed in range(3):
        arrays = tables(axes, np.random.default_rng(seed))
        found = dense.contracted(arrays, [tuple(own) for own in axes], tuple(out), SIZES)
        np.testing.assert_allclose(found, einsum(arrays, axes, out), rtol=1e-13)


@pytest.mark.parametrize("rows", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize(("axes", "out"), CONTRACTIONS)
def test_adjoints(axes: tuple[str, ...], out: str, rows: tuple[bool, ...]) -> None:
    rng, batched = np.random.default_rng(0), rows[: len(axes)]
    arrays = [a[..., None] if row else a for a, row in zip(tables(axes, rng), batched, strict=True)]
    upper = rng.random([SIZES[a] for a in out] + [1] * any(batched))
    step = Dense(Setting(tuple(map(tuple, axes)), batched, SIZES), tuple(out))
    assert step.takes(arrays, upper)
    for k in range(len(axes)):
        change = rng.random(arrays[k].shape)
        others = [change if j == k else array for j, array in enumerate(arrays)]
        expected = (step.contracted(others) * upper).sum()  # linear in each table
        assert (step.adjoint(k, arrays, upper) * change).sum() == pytest.approx(expected, rel=1e-12)
        assert step.adjoint(k, arrays, upper).shape == arrays[k].shape


def test_several_rows_are_left_to_others() -> None:
    axes: tuple[Axes, ...] = (("a",), ("a",))
    step = Dense(Setting(axes, (True, False), SIZES), ())
    assert step.takes([np.ones((2, 1)), np.ones(2)])
    assert not step.takes([np.ones((2, 3)), np.ones(2)])
    assert not step.takes([np.ones((2, 1)), np.ones(2)], np.ones(3))
