"""Kernels that count a family with each of many further parents, and score it."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from math import lgamma, log

import numpy as np

from tacit.base.jit import jit
from tacit.learn.discovering.kinds import K2, LIKELIHOOD


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
