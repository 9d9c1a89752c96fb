"""Densities in the place of intervals, chosen by score."""

import math

import numpy as np
import pandas as pd
import pytest

import tacit
from tests.helpers import close

ROWS = 3000


def sensors():
    """A fault, and three columns that it moves: a Gaussian, a log-normal, and one that no bell describes."""
    rng = np.random.default_rng(0)
    fault = rng.random(ROWS) < 0.3
    return pd.DataFrame(
        {
            "fault": np.where(fault, "yes", "no"),
            "heat": rng.normal(np.where(fault, 80, 60), np.where(fault, 6, 3)),
            "delay": rng.lognormal(np.where(fault, 2.0, 0.5), 0.6),
            "phase": np.where(rng.random(ROWS) < 0.5, rng.uniform(0, 0.05, ROWS), rng.uniform(0.95, 1, ROWS)),
        }
    )


def discovered(frame, **options):
    edges = [("fault", "heat"), ("fault", "delay")]
    bins = tacit.discretize(frame[["heat", "delay", "phase"]], 6)
    return tacit.discover(frame, bins=bins, require=edges, forbid=[("heat", "delay")], max_parents=1, **options)


def independent_bic(frame, name, edges):
    """The BIC of a column below `fault`, by plain sums: of its intervals, and of both densities."""
    n, scores, logs = len(frame), [0.0, 0.0, 0.0], np.log(frame[name]) if (frame[name] > 0).all() else None
    ends = np.clip(edges, frame[name].min(), frame[name].max())
    for _, part in frame.groupby("fault"):
        values = part[name].to_numpy()
        counts = np.histogram(values, ends)[0]
        seen = counts > 0
        scores[0] += float((counts * np.log(np.where(seen, counts / len(values) / np.diff(ends), 1)))[seen].sum())
        scores[1] -= len(values) / 2 * (math.log(2 * math.pi * values.var()) + 1)
        if logs is not None:
            own = logs[part.index].to_numpy()
            scores[2] -= len(values) / 2 * (math.log(2 * math.pi * own.var()) + 1) + own.sum()
    free = [2 * (len(ends) - 2), 4, 4]
    return [score - k * math.log(n) / 2 for score, k in zip(scores, free, strict=True)]


def test_each_column_gets_what_describes_it_best():
    frame = sensors()
    found = discovered(frame)
    net = found.with_densities(frame)
    assert net.edges == found.network.edges
    kinds = {name: type(net.cpt(name)).__name__ for name in ("heat", "delay", "phase")}
    assert kinds == {"heat": "Gaussian", "delay": "LogNormal", "phase": "CPT"}
    for name, best in ("heat", 1), ("delay", 2):
        scores = independent_bic(frame, name, np.array(found.network.bins(name)))
        assert int(np.argmax(scores)) == best
    means = frame.groupby("fault")["heat"].mean()[list(net.states("fault"))]
    close(net.density("heat").mean, means, 1e-9)
    assert found.network.continuous == ()  # which stays as it is


@pytest.mark.parametrize("form", ["batches", "file", "weights"])
def test_rows_of_any_kind(form, tmp_path):
    frame = sensors()
    found = discovered(frame)
    expected = found.with_densities(frame)
    if form == "batches":
        net = found.with_densities([frame[:1000], frame[1000:]])
    elif form == "file":
        frame.to_parquet(tmp_path / "rows.parquet")
        net = found.with_densities(tmp_path / "rows.parquet")
    else:
        net = found.with_densities(frame.iloc[::-1].assign(count=2.0), weights="count")
    close(net.density("heat").mean, expected.density("heat").mean, 1e-9)
    close(net.density("delay").sd, expected.density("delay").sd, 1e-9)
    with pytest.raises(tacit.TacitError, match="an iterator comes but once"):
        found.with_densities(iter([frame]))


def test_gaps_and_points():
    frame = sensors()
    frame.loc[::3, "heat"] = np.nan
    frame.loc[::4, "fault"] = None
    net = discovered(frame).with_densities(frame)
    close(np.sort(net.density("heat").mean), [60, 80], 0.5)
    frame = sensors()
    frame.loc[frame["fault"] == "yes", "heat"] = 80.0  # a density would have no spread there
    assert discovered(frame).with_densities(frame).continuous == ("delay",)


def test_what_causes_something_keeps_its_intervals():
    frame = sensors()
    found = tacit.discover(frame[["fault", "heat"]], bins=4, require=[("heat", "fault")])
    assert found.with_densities(frame[["fault", "heat"]]) == found.network
