"""Rows that say the same, and what is found out about them without a look at all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.evidence import distinct as module
from tacit.evidence.column import Evidence, take
from tacit.evidence.distinct import distinct
from tacit.evidence.read import read
from tests.helpers import tries
from tests.strategies import evidence, networks, rngs


def known(net, columns):
    return read(columns, [net.variable(name) for name in net])


def coin(count, card=2):
    net = tacit.Network()
    for i in range(count):
        net.add(f"X{i}", states=list(range(card)), cpt=np.full(card, 1 / card))
    return net


@st.composite
def repeated(draw):
    """Rows of any evidence, many of them equal."""
    net = draw(networks(testing=False, factored=False))
    columns = known(net, draw(evidence(net, rows=5))).columns
    return Evidence(200, take(columns, draw(rngs).integers(0, 5, 200)))


@tries(40)
@given(rows=repeated())
def test_every_row_is_equal_to_the_one_that_stands_for_it(rows):
    found = distinct(rows)
    assert found.known.rows <= 5
    assert len(found.places) == rows.rows
    for name, column in rows.columns.items():
        chosen = found.known.columns[name].likelihoods()
        np.testing.assert_array_equal(found.for_all(chosen.T), column.likelihoods().T)


def test_rows_that_differ_stay_as_they_are(monkeypatch):
    """Nor are all of them looked at: a sample is enough."""
    net, rng, sizes = coin(4, 100), np.random.default_rng(0), []
    rows = known(net, {name: rng.integers(0, 100, 50_000) for name in net})
    numbers = module._numbers
    monkeypatch.setattr(module, "_numbers", lambda columns, rows: sizes.append(rows) or numbers(columns, rows))
    found = distinct(rows)
    assert (found.known, found.places) == (rows, None)
    assert max(sizes) <= 2 * module.SAMPLE_ROWS
    answers = np.arange(3)
    assert found.for_all(answers) is answers


@pytest.mark.parametrize("rows", [0, 1, module.MIN_ROWS - 1])
def test_few_rows_are_not_looked_at(rows):
    some = read({"X0": np.zeros(rows, dtype=np.int64)}, [coin(1).variable("X0")], empty=True)
    assert distinct(some) == (some, None)


def test_a_sample_may_mislead():
    """Rows that are equal where they are looked at, and different elsewhere."""
    net, values = coin(1, 100_000), np.arange(4 * module.SAMPLE_ROWS)
    values[::4] = 0
    rows = known(net, {"X0": values})
    assert distinct(rows) == (rows, None)
    values[::2] = 0
    rows = known(net, {"X0": values})
    found = distinct(rows)
    assert found.known.rows == 2 * module.SAMPLE_ROWS + 1
    np.testing.assert_array_equal(found.for_all(found.known.columns["X0"].codes), values)


def test_more_states_together_than_a_number_can_count():
    net, rng = coin(60, 4), np.random.default_rng(0)
    table = rng.integers(-1, 4, (7, 60))
    picks = rng.integers(0, 7, 500)
    columns = {f"X{i}": np.where(table[picks, i] < 0, None, table[picks, i]) for i in range(60)}
    found = distinct(known(net, columns))
    assert found.known.rows == len(np.unique(picks))
    assert len(np.unique(np.stack([picks, found.places]), axis=1).T) == found.known.rows


def test_a_table_without_evidence_has_one_different_row():
    pandas = pytest.importorskip("pandas")
    rows = known(coin(2), pandas.DataFrame({"X0": [None] * 100}))
    assert rows.rows == 100
    assert distinct(rows).known.rows == 1
