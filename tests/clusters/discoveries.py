"""Rows to discover from, and what it means that two discoveries are the same."""

import numpy as np
import pandas as pd


def mixed(rows, gaps=0.0, seed=0):
    """Text, truths, whole numbers and measurements that depend on each other, and weights."""
    rng = np.random.default_rng(seed)
    kind, step = rng.integers(3, size=rows), rng.random(rows) < 0.5
    columns = {
        "kind": np.array(["low", "mid", "high"])[kind],
        "step": step,
        "count": kind + rng.integers(3, size=rows),
        "size": kind + step + rng.normal(size=rows).round(3),
        "word": np.array(["no", "yes"])[(rng.random(rows) < 0.3 + 0.4 * step).astype(int)],
    }
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    frame = frame.mask(rng.random(frame.shape) < gaps, None)
    return frame.assign(times=rng.integers(0, 4, size=rows).astype(float))


def same_discovery(found, expected):
    """Two discoveries that are the same to the last digit."""
    assert (found.score, found.history, found.rows) == (expected.score, expected.history, expected.rows)
    assert (found.network.edges, found.arrows) == (expected.network.edges, expected.arrows)
    assert found.strength == expected.strength
    for name in expected.network:
        assert found.network.variable(name) == expected.network.variable(name)
        np.testing.assert_array_equal(found.network.table(name), expected.network.table(name))
