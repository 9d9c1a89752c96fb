"""Sequences: hidden Markov models as networks, beside the forward pass and Baum and Welch's iteration."""

import numpy as np
import pytest

import tacit
from tacit import CPT, Network
from tests.helpers import close

START = np.array([0.6, 0.3, 0.1])
TRANSITION = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
EMISSION = np.array([[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.05, 0.7, 0.05, 0.2]])


def hmm(steps, learn=False):
    net = Network("hmm")
    emission = CPT(EMISSION, learn, tie="emission")
    net.add("X[0]", states=3, cpt=CPT(START, learn))
    net.add("E[0]", ["X[0]"], 4, emission)
    net.add("X[1]", ["X[0]"], 3, CPT(TRANSITION, learn))
    net.add("E[1]", ["X[1]"], 4, emission)
    return tacit.unroll(net, steps)


def columns(array):
    return {f"E[{t}]": column for t, column in enumerate(array.T)}


def forward_backward(symbols):
    """One sequence: its log-likelihood, the filtered and the smoothed states, and the expected transitions."""
    likelihoods = EMISSION.T[symbols]  # (steps, states)
    alphas, log = [], 0.0
    for t, likelihood in enumerate(likelihoods):
        alpha = (alphas[-1] @ TRANSITION if t else START) * likelihood
        log += np.log(alpha.sum())
        alphas.append(alpha / alpha.sum())
    beta, smoothed, moves = np.ones(3), [alphas[-1]], np.zeros((3, 3))
    for t in reversed(range(len(symbols) - 1)):
        onwards = likelihoods[t + 1] * beta
        pair = alphas[t][:, None] * TRANSITION * onwards
        moves += pair / pair.sum()
        beta = TRANSITION @ onwards
        beta /= beta.sum()
        smoothed.insert(0, alphas[t] * beta / (alphas[t] * beta).sum())
    return log, np.array(alphas), np.array(smoothed), moves


def sequences(rows, steps, shortest):
    """Symbols, padded with NaN, and the sequences without it."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(shortest, steps + 1, rows)
    array = rng.integers(4, size=(rows, steps)).astype(float)
    array[np.arange(steps) >= lengths[:, None]] = np.nan
    return array, [row[:length].astype(int) for row, length in zip(array, lengths, strict=True)]


def test_padded_sequences_have_the_answers_of_each_alone():
    steps = 9
    array, each = sequences(20, steps, 2)
    net, rows = hmm(steps), columns(array)
    tac = tacit.compile(net, None, list(rows))
    log, filtered, smoothed = net.log_likelihood(rows), tac.filtered("X", rows), tac.marginals(rows)
    for i, symbols in enumerate(each):
        expected, alphas, gammas, _ = forward_backward(symbols)
        close(log[i], expected)
        close(filtered[i, : len(symbols)], alphas)
        close([smoothed[f"X[{t}]"][i] for t in range(len(symbols))], gammas)
        ahead = alphas[-1]
        for t in range(len(symbols), steps):  # padding: what is to be expected
            ahead = ahead @ TRANSITION
            close(filtered[i, t], ahead)


def test_one_step_of_em_is_that_of_baum_and_welch():
    array, each = sequences(30, 8, 8)
    start, moves, seen = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 4))
    for symbols in each:
        _, _, smoothed, pairs = forward_backward(symbols)
        start += smoothed[0]
        moves += pairs
        np.add.at(seen.T, symbols, smoothed)
    learned = tacit.estimate(hmm(8, learn=True), columns(array), steps=1, tolerance=0, progress=False).network
    close(learned.cpt("X[0]").table, start / start.sum())
    for t in range(1, 8):
        close(learned.cpt(f"X[{t}]").table, moves / moves.sum(axis=1, keepdims=True))
    for t in range(8):
        close(learned.cpt(f"E[{t}]").table, seen / seen.sum(axis=1, keepdims=True))


def test_labels_teach_tied_tables_one_transition():
    net = hmm(4, learn=True)
    array, _ = sequences(40, 4, 4)
    tac = tacit.compile(net, "X[3]", hard=[f"E[{t}]" for t in range(4)])
    labels = np.random.default_rng(1).integers(3, size=40)
    fit = tacit.fit(tac, columns(array), labels, loss="cross_entropy", steps=5, restarts=1, progress=False)
    tables = [fit.network.cpt(f"X[{t}]").table for t in (1, 2, 3)]
    assert abs(tables[0] - TRANSITION).max() > 1e-3
    assert np.array_equal(tables[0], tables[1])
    assert np.array_equal(tables[0], tables[2])


@pytest.mark.slow
@pytest.mark.parametrize("hard", [False, True])
def test_ten_thousand_steps_neither_underflow_nor_take_long_to_compile(hard):
    symbols = np.random.default_rng(2).integers(4, size=(3, 10_000))
    net, rows = hmm(10_000), columns(symbols)
    tac = tacit.compile(net, None, *((), list(rows)) if hard else (list(rows),))
    expected = [forward_backward(row)[0] for row in symbols]
    np.testing.assert_allclose(tac.log_evidence(rows), expected, rtol=1e-12)
    assert len(tac.program) < 7 * 10_000
