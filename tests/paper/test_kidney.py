"""Kidney stones with an edge missing: the published figures, met by a small fit."""

import doctest

import numpy as np
import pytest
from paper import kidney
from paper.kidney import PUBLISHED, answers, learn, rows


def test_examples_in_docstrings():
    found = doctest.testmod(kidney)
    assert found.attempted
    assert not found.failed


def test_the_true_network_has_the_reversal_and_neither_incomplete_one_draws_the_edge():
    true = answers(kidney.truth(), rows())
    assert kidney.Learned(kidney.truth(), 0, 0).reversed
    assert not kidney.Learned(kidney.truth().with_cpts({"treatment": [[0.5, 0.5]] * 2}), 0, 0).reversed
    np.testing.assert_allclose(true, PUBLISHED["BN"], atol=0.051)
    assert all(kidney.incomplete(gamma).parents("treatment") == () for gamma in (None, 16.0))


def test_the_testing_network_learns_the_reversal_and_the_classical_one_cannot():
    classical, testing = (learn(gamma, restarts=8, steps=200) for gamma in (None, kidney.GAMMA))
    assert classical.error == pytest.approx(3.2, abs=0.1)
    assert not classical.reversed
    assert testing.error < 0.2
    assert testing.reversed


def test_the_report_shows_the_papers_figures_beside_ours():
    found = kidney.Learned(kidney.truth(), 1.25, 0.5)
    text = str(kidney.as_published({"made up": found}))
    assert "?, B               82.9     82.9       79.8        83.1" in text
    assert "made up                     1.25      0.50       yes" in str(kidney.errors({"made up": found}, ""))


def test_how_sure_the_reversal_is():
    patients = kidney.patients()
    assert len(patients["size"]) == 700
    found = kidney.how_sure(draws=2000)
    rng = np.random.default_rng(1)  # by hand: a beta distribution for each treatment and size
    counts = np.array([[[81, 6], [234, 36]], [[192, 71], [55, 25]]])
    rate = rng.beta(counts[..., 0] + 0.5, counts[..., 1] + 0.5, (20_000, 2, 2))
    better = rate[..., 0] > rate[..., 1]
    assert found.small == pytest.approx(better[:, 0].mean(), abs=0.03)
    assert found.large == pytest.approx(better[:, 1].mean(), abs=0.03)
    assert found.reversed <= min(found.small, found.large, found.looks_worse)
    assert "all three: the reversal" in str(kidney.sureness(found))
