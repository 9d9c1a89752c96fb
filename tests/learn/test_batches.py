"""Mini-batches: whatever the weights of rows are, an epoch comes to the loss of all rows."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit.learn.fitting.batches import MiniBatches

weight_lists = st.lists(st.one_of(st.floats(1e-6, 1.0), st.floats(1.0, 1e6)), min_size=2, max_size=60)


@given(weight_lists, st.integers(1, 20), st.integers(0, 5), st.integers(0, 3))
def test_the_shares_of_an_epoch_add_up_to_the_weights(weights, size, seed, epoch):
    assume(len(weights) > size)
    shares = np.array(weights) / np.sum(weights)
    batches = MiniBatches(shares, size, seed)
    found = np.zeros(len(weights))
    for step in range(batches.count):
        batch = batches.of_step(epoch * batches.count + step)
        assert 1 <= len(batch.rows) <= 2 * size
        assert len(set(batch.rows)) == len(batch.rows)
        found[batch.rows] += batch.shares / batches.count
    np.testing.assert_allclose(found, shares, rtol=1e-12)


def test_one_batch_is_all_rows():
    assert MiniBatches(np.full(4, 0.25), 4, 0).of_step(7) is None
    assert MiniBatches(np.full(4, 0.25), 9, 0).of_step(7) is None


def test_rows_of_equal_weight_are_in_one_batch_of_equal_share():
    batches = MiniBatches(np.full(10, 0.1), 4, 0)
    assert batches.count == 3
    parts = [batches.of_step(step) for step in range(3)]
    assert sorted(len(part.rows) for part in parts) == [3, 3, 4]
    assert sorted(np.concatenate([part.rows for part in parts])) == list(range(10))
    for part in parts:
        np.testing.assert_allclose(part.shares, 0.3)


def test_batches_depend_on_the_seed_and_the_step_only():
    weights = np.full(100, 0.01)
    one, other = MiniBatches(weights, 10, 1), MiniBatches(weights, 10, 1)
    for step in (25, 3, 12, 3):  # in any order
        np.testing.assert_array_equal(one.of_step(step).rows, MiniBatches(weights, 10, 1).of_step(step).rows)
    assert one.of_step(0).rows.tolist() == other.of_step(0).rows.tolist()
    assert one.of_step(0).rows.tolist() != one.of_step(10).rows.tolist()  # the next epoch
    assert one.of_step(0).rows.tolist() != MiniBatches(weights, 10, 2).of_step(0).rows.tolist()


def test_a_row_that_outweighs_a_batch_is_in_every_one():
    weights = np.array([0.91] + [0.01] * 9)
    for step in range(5):
        batch = MiniBatches(weights, 2, 0).of_step(step)
        assert batch.rows[0] == 0
        assert batch.shares[0] == 0.91
        assert (batch.shares[1:] == 0.01 * 5).all()
    # 0.25 is what an average batch of four weighs: it takes more to be in all
    average = MiniBatches(np.array([0.25] + [0.75 / 7] * 7), 2, 0)
    assert sum(0 in average.of_step(step).rows for step in range(4)) == 1


def test_no_more_rows_than_a_batch_has_are_in_every_one():
    batches = MiniBatches(np.array([0.3, 0.26, 0.27, 0.17] + [0.0] * 6), 2, 0)  # three weigh more than a fifth
    assert [batches.of_step(step).rows[:2].tolist() for step in range(5)] == [[0, 2]] * 5


def test_every_step_has_the_weight_of_all_rows_on_average():
    """Ten rows make batches of 3, 3 and 4: which comes first is another one in every epoch."""
    weights = np.arange(1.0, 11.0) / 55
    for step in range(3):
        found = np.zeros(10)
        for seed in range(400):
            batch = MiniBatches(weights, 4, seed).of_step(step)
            found[batch.rows] += batch.shares / 400
        assert abs((found / weights).mean() - 1) < 0.03
        np.testing.assert_allclose(found, weights, rtol=0.35)
