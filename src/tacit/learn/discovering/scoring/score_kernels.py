"""Kernels that count a family with each of many further parents, and score it: row by row, or 64 rows at once."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from math import lgamma, log

import numpy as np

from tacit.base.jit import jit
from tacit.learn.discovering.scoring.kinds import K2, LIKELIHOOD

TILE = 512  # words, so that all cells of a family stay in the fast caches


@jit(nogil=True)
def extended_scores(places, cells, card, codes, cards, candidates, weights, kind, strength, scores):
    """Score a family with each candidate as one more parent.

    `places` numbers the states of parents and child, the child's as its last digit, in each row: there are `cells` of
    them. The score of candidate i goes to `scores[i]`. Four histograms take turns, so that an increment need not wait
    for the one before it.
    """
    for i in range(len(candidates)):
        other = candidates[i]
        size = np.int64(cards[other])
        own = codes[other]
        counts = np.zeros((4, cells * size), weights.dtype)
        rows = len(places)
        whole = rows - rows % 4
        lane0, lane1, lane2, lane3 = counts[0], counts[1], counts[2], counts[3]
        if len(weights) == 0:
            for j in range(0, whole, 4):
                lane0[places[j] * size + own[j]] += 1
                lane1[places[j + 1] * size + own[j + 1]] += 1
                lane2[places[j + 2] * size + own[j + 2]] += 1
                lane3[places[j + 3] * size + own[j + 3]] += 1
            for j in range(whole, rows):
                lane0[places[j] * size + own[j]] += 1
        else:
            for j in range(0, whole, 4):
                lane0[places[j] * size + own[j]] += weights[j]
                lane1[places[j + 1] * size + own[j + 1]] += weights[j + 1]
                lane2[places[j + 2] * size + own[j + 2]] += weights[j + 2]
                lane3[places[j + 3] * size + own[j + 3]] += weights[j + 3]
            for j in range(whole, rows):
                lane0[places[j] * size + own[j]] += weights[j]
        for cell in range(cells * size):
            lane0[cell] += lane1[cell] + lane2[cell] + lane3[cell]
        scores[i] = score_of(lane0, cells // card, card, size, kind, strength)


@jit(nogil=True)
def score_of(counts, configurations, card, size, kind, strength):
    """The score of counts (configurations, child's states, further parent's states), without a penalty.

    That is the log-likelihood, or the logarithm of the marginal likelihood under a Dirichlet prior.
    """
    total = 0.0
    bayesian = kind != LIKELIHOOD
    entry = 1.0 if kind == K2 else strength / (configurations * size * card)
    row = entry * card
    for j in range(configurations):
        for y in range(size):
            seen = 0.0
            for x in range(card):
                count = np.float64(counts[(j * card + x) * size + y])
                if count > 0:
                    seen += count
                    if bayesian:
                        total += lgamma(entry + count) - lgamma(entry)
                    else:
                        total += count * log(count)
            if seen > 0:
                if bayesian:
                    total -= lgamma(row + seen) - lgamma(row)
                else:
                    total -= seen * log(seen)
    return total


@jit(nogil=True)
def population_count(x):
    """The number of ones; LLVM knows this as one instruction, also for vectors."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@jit(nogil=True)
def common_ones(a, b):
    """How many bits are 1 in both."""
    total = np.uint64(0)
    for word in range(len(a)):
        total += population_count(a[word] & b[word])
    return np.int64(total)


@jit(nogil=True)
def cells_of(plane, states, firsts, cards, family, start, cells, spare):
    """The rows of a plane in each cell of a family, from a word on: bitmaps (cells, words); the last column varies
    fastest."""
    words = cells.shape[1]
    count = 1
    cells[0] = plane[start : start + words]
    for column in family:
        card = cards[column]
        spare[:count] = cells[:count]
        for cell in range(count):
            for state in range(card):
                own = states[firsts[column] + state, start : start + words]
                for word in range(words):
                    cells[cell * card + state, word] = spare[cell, word] & own[word]
        count *= card


@jit(nogil=True)
def bitmap_scores(states, firsts, planes, lengths, cards, family, candidates, kind, strength, scores):
    """Score a family, its child last, with each candidate as one more parent; the counts come from bitmaps."""
    card = cards[family[-1]]
    cells = 1
    for column in family:
        cells *= cards[column]
    begins = np.zeros(len(candidates) + 1, np.int64)
    for i in range(len(candidates)):
        begins[i + 1] = begins[i] + cells * cards[candidates[i]]
    counts, totals = np.zeros(begins[-1], np.int64), np.zeros(cells, np.int64)
    buffer, spare = np.empty((cells, TILE), np.uint64), np.empty((cells, TILE), np.uint64)
    for digit in range(len(planes)):
        for start in range(0, lengths[digit], TILE):
            words = min(TILE, lengths[digit] - start)
            bits = buffer[:, :words]
            cells_of(planes[digit], states, firsts, cards, family, start, bits, spare[:, :words])
            for cell in range(cells):
                totals[cell] += common_ones(bits[cell], bits[cell]) << digit
            for i in range(len(candidates)):
                size = cards[candidates[i]]
                for state in range(size - 1):  # the last one has what is left
                    own = states[firsts[candidates[i]] + state, start : start + words]
                    for cell in range(cells):
                        counts[begins[i] + cell * size + state] += common_ones(bits[cell], own) << digit
    for i in range(len(candidates)):
        size = cards[candidates[i]]
        own = counts[begins[i] : begins[i + 1]]
        for cell in range(cells):
            row = own[cell * size : (cell + 1) * size]
            row[size - 1] = totals[cell] - row[: size - 1].sum()
        scores[i] = score_of(own, cells // card, card, size, kind, strength)
