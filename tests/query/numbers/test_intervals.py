"""Numbers behind intervals: samples, means and quantiles."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import TacitError
from tacit.evidence.read import read_column
from tacit.model.elements.variable import variable
from tacit.query.numbers.intervals import means, numbers_inside, quantiles


def network() -> tacit.Network:
    net = tacit.Network()
    net.add("Sex", cpt=[0.5, 0.5])
    net.add("Age", ["Sex"], bins=[-inf, 0, 18, 65, inf], cpt=[[0.1, 0.2, 0.3, 0.4], [0.25] * 4])
    return net


def test_samples_are_inside_the_intervals_of_the_labels() -> None:
    net = network()
    labels, numbers = net.sample(5000, seed=3), net.sample(5000, seed=3, numbers=True)
    assert numbers["Sex"].tolist() == labels["Sex"].tolist()
    age = net.variable("Age")
    column, _ = read_column(age, numbers["Age"])
    assert column is not None
    assert [age.states[code] for code in column.states()] == labels["Age"].tolist()
    assert set(numbers["Age"][labels["Age"] == "[65, inf)"]) == {65.0}
    np.testing.assert_allclose(numbers["Age"][labels["Age"] == "(-inf, 0)"], 0, atol=1e-300)
    inside = numbers["Age"][labels["Age"] == "[18, 65)"]
    np.testing.assert_allclose(np.quantile(inside, [0.25, 0.5, 0.75]), 18 + 47 * np.array([0.25, 0.5, 0.75]), atol=2)
    tac = tacit.compile(net, None, evidence=["Sex"])
    drawn = tac.sample({"Sex": ["true", "false"]}, n=7, numbers=True)["Age"]
    assert drawn.shape == (2, 7)
    assert drawn.dtype == np.float64
    assert (drawn == tac.sample({"Sex": ["true", "false"]}, n=7, numbers=True)["Age"]).all()


EDGES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6, unique=True).map(sorted)


@given(EDGES, st.integers(0, 4), st.sampled_from([0.0, 0.5, 1 - 2**-53]))
def test_a_number_is_read_as_the_interval_it_was_drawn_from(edges: list[float], code: int, share: float) -> None:
    class Fixed:
        def random(self, shape: tuple[int, ...]) -> Any:
            return np.full(shape, share)

    own = variable("X", None, edges)
    code %= own.card
    number = numbers_inside(own, np.array([code]), Fixed())  # type: ignore[arg-type]
    column, _ = read_column(own, number)
    assert column is not None
    assert column.states().tolist() == [code]


@pytest.mark.filterwarnings("ignore::tacit.OpenIntervalWarning")
@given(EDGES, st.integers(0, 2**32), st.booleans())
def test_means_and_quantiles_are_those_of_a_piecewise_uniform_distribution(
    edges: list[float], seed: int, infinite: bool
) -> None:
    own = variable("X", None, [-inf, *edges, inf] if infinite else edges)
    posterior = np.random.default_rng(seed).dirichlet(np.ones(own.card), 3)
    low = np.array([edges[0], *edges] if infinite else edges[:-1])
    high = np.array([*edges, edges[-1]] if infinite else edges[1:])
    np.testing.assert_allclose(means(own, posterior), posterior @ ((low + high) / 2), rtol=1e-9, atol=1e-9)
    for row in range(3):
        upto = np.concatenate([[0], np.cumsum(posterior[row])])
        points = np.concatenate([low[:1], high])
        for q in (0.0, 0.1, 0.5, 0.9, 1.0):
            want = np.interp(q * upto[-1], upto, points)
            scale = max(map(abs, edges))
            np.testing.assert_allclose(quantiles(own, posterior, q)[row], want, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.filterwarnings("ignore::tacit.OpenIntervalWarning")
def test_shapes_gaps_and_impossible_rows() -> None:
    net = network()
    tac = tacit.compile(net, "Age", evidence=["Sex", "Age"])
    rows = {"Sex": ["true", "false", None]}
    assert tac.mean(rows).shape == tac.quantile(rows, 0.5).shape == tac.quantile(rows).shape == (3,)
    assert tac.quantile(rows, [0.1, 0.9]).shape == (3, 2)
    assert tac.mean({"Age": [30, "[0, 18)"]}).tolist() == [41.5, 9]
    own = variable("X", None, [0, 1, 2, 3])
    assert quantiles(own, np.array([[0.0, 0.5, 0.5]]), [0, 1]).tolist() == [[1, 3]]
    assert np.isnan(quantiles(own, np.full((1, 3), np.nan), 0.5)).all()


def test_errors() -> None:
    net = network()
    net.add("All", bins=[-inf, inf], cpt=[1.0])
    with pytest.raises(TacitError, match="'Sex' has a mean only if its states are intervals"):
        tacit.compile(net, "Sex").mean()
    with pytest.raises(TacitError, match="a query of one variable is needed"):
        tacit.compile(net, ["Sex", "Age"]).quantile({}, 0.5)
    with pytest.raises(TacitError, match="from -inf to inf"):
        tacit.compile(net, "All").mean()
    assert np.isnan(net.sample(2, numbers=True)["All"]).all()
    for q in (1.5, [0.1, -1], "a", [[0.5]], np.nan):
        with pytest.raises(TacitError, match="expected a number from 0 to 1"):
            tacit.compile(net, "Age").quantile({}, q)  # type: ignore[arg-type]


def test_a_mean_warns_of_an_interval_without_end() -> None:
    own = variable("Age", None, [-inf, 18, 65, inf])
    wanted = (
        r"^means of 'Age' in 2 of 3 rows count all of '\(-inf, 18\)' as 18 and all of '\[65, inf\)' as 65; give finite"
    )
    with pytest.warns(tacit.OpenIntervalWarning, match=wanted) as told:
        means(own, np.array([[0.1, 0.9, 0.0], [0.0, 0.9, 0.1], [1e-10, 1.0, 0.0]]))
    assert len(told) == 1
    means(own, np.array([[1e-10, 1.0, 0.0], [np.nan, np.nan, np.nan]]))
    means(variable("Age", None, [0, 18, inf]), np.array([[1.0, 0.0]]))


def test_a_quantile_warns_only_inside_an_interval_without_end() -> None:
    own = variable("Age", None, [0, 18, 65, inf])
    posterior = np.array([[0.5, 0.4, 0.1], [0.5, 0.5, 0.0], [np.nan, np.nan, np.nan]])
    assert quantiles(own, posterior, [0.1, 0.5, 0.9])[1].tolist() == [3.6, 18.0, 55.6]
    with pytest.warns(
        tacit.OpenIntervalWarning, match=r"^quantiles of 'Age' in 1 of 3 rows count .* as 65; give finite"
    ):
        quantiles(own, posterior, [0.5, 0.95])
