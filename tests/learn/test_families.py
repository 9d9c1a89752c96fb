"""Rows are counted by NumPy or by a kernel, with the same digits."""

import sys

import numpy as np
import pytest

import tacit
from tacit.learn.estimating import families
from tacit.learn.estimating.count_kernels import count_families
from tacit.learn.estimating.families import Families

ROWS = families.ROWS_PER_NUMPY_BLOCK + 4097


def network():
    net = tacit.Network()
    net.add("A", states=3)
    net.add("B", ["A"], states=2)
    net.add("C", ["A", "B"], states=5)
    net.add("D", ["C"], states=2)
    return net


@pytest.mark.parametrize("weighted", [False, True])
def test_both_ways_count_the_same(monkeypatch, weighted):
    net, rng = network(), np.random.default_rng(0)
    names = list(net)
    codes = [rng.integers(0, len(net.states(name)), ROWS).astype(np.int8) for name in names]
    weights = rng.random(ROWS) if weighted else np.zeros(0)
    found = []
    for way in (families.count_by_numpy, count_families):
        monkeypatch.setattr("tacit.learn.estimating.families.count_for", lambda work, way=way: way)
        found.append(Families(net, names).counts(codes, weights))
    for name, counts, expected in zip(names, *found, strict=True):
        np.testing.assert_array_equal(counts, expected, err_msg=name)
        assert counts.sum() == pytest.approx(weights.sum() if weighted else ROWS)
    a, b, c, _ = codes
    np.testing.assert_allclose(
        found[0][2][1, 0, 4], (weights if weighted else np.ones(ROWS))[(a == 1) & (b == 0) & (c == 4)].sum()
    )


def test_a_kernel_counts_where_it_pays(monkeypatch):
    few, many = families.LOADING_WORK - 1, families.LOADING_WORK
    monkeypatch.delitem(sys.modules, families.KERNEL)
    for compiled in (True, False):
        monkeypatch.setattr(families, "is_compiled", lambda kernel, compiled=compiled: compiled)
        assert families.count_for(few) is families.count_by_numpy
        loads = families.count_for(many) is not families.count_by_numpy
        assert loads == compiled
        monkeypatch.delitem(sys.modules, families.KERNEL, raising=False)
    assert families.count_for(families.COMPILING_WORK) is not families.count_by_numpy
    assert families.count_for(0) is not families.count_by_numpy  # it is loaded now


def test_rows_before_count_too(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "tacit.learn.estimating.families.count_for", lambda work: seen.append(work) or families.count_by_numpy
    )
    monkeypatch.setattr("tacit.learn.estimating.sources.MIN_BATCH_ROWS", 1)
    net = tacit.examples.kidney_stones()
    rows = net.sample(10, seed=0)
    tacit.estimate(net.learnable(), iter([rows, rows]))
    assert seen == [30, 60]  # three families
