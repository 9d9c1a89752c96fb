"""Kidney stones with an edge missing: a testing node learns Simpson's paradox, a classical network cannot.

After Shen, Huang, Choi and Darwiche, *Conditional Independence in Testing Bayesian Networks* (ICML 2019), section 5.3.
Run with: python -m paper.kidney
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.base.grid import Grid
from tacit.examples import kidney_stones

Floats = NDArray[np.float64]

GAMMA, GENTLE = 16.0, 4.0  # slopes
RESTARTS, STEPS = 32, 500  # of every fit, classical or testing
DRAWS = 10_000
LEVELS = (1.0, 0.0, 0.5)  # evidence: yes, no, unknown
PUBLISHED = {
    "BN": (73.0, 93.0, 77.9, 69.0, 87.0, 82.9, 72.1, 88.4, 80.4),
    "AC": (71.4, 91.4, 81.1, 71.5, 88.6, 79.8, 71.5, 88.7, 79.8),
    "TAC": (73.0, 93.0, 78.0, 69.0, 87.1, 83.1, 72.1, 88.3, 80.3),
}


def truth() -> tacit.Network:
    """The network whose answers are learned: the published ones come from tables rounded to whole percentages.

    >>> net = truth()
    >>> tuple((100 * net.posterior("recovery", rows())[:, 0]).round(1).tolist()) == PUBLISHED["BN"]
    True
    """
    net = kidney_stones()
    return net.with_cpts({name: net.table(name).round(2) for name in net})


def rows() -> dict[str, Floats]:
    """The nine rows of evidence: a large stone and treatment A, each certain, excluded or unknown."""
    return evidence(LEVELS)


def grid() -> dict[str, Floats]:
    """Soft evidence between them: 441 rows."""
    return evidence(tuple(np.linspace(0, 1, 21)))


def evidence(levels: tuple[float, ...]) -> dict[str, Floats]:
    """Soft evidence of all these levels on a large stone, for each on treatment A."""
    treated, large = np.array(list(product(levels, repeat=2))).T
    return {"size": 1 - large, "treatment": treated}  # small is the first state of size


def incomplete(gamma: float | None = None) -> tacit.Network:
    """The network without size -> treatment, and with all numbers left out; recovery is testing if there is a slope."""
    net = tacit.Network("kidney stones, an edge missing")
    net.add("size", states=["small", "large"])
    net.add("treatment", states=["A", "B"])
    net.add("recovery", ["size", "treatment"], ["yes", "no"], testing=gamma is not None, gamma=gamma)
    return net


@dataclass(frozen=True)
class Learned:
    """A fitted network, and its largest errors, in percentage points: on the nine rows and on the whole grid."""

    network: tacit.Network
    error: float
    between: float

    @property
    def reversed(self) -> bool:
        """Whether A does better for small and for large stones, but worse in all."""
        large_a, small_a, a, large_b, small_b, b, *_ = answers(self.network, rows())
        return bool(large_a > large_b and small_a > small_b and a < b)


def learn(
    gamma: float | None,
    hard: bool = False,
    x: Mapping[str, Floats] | None = None,
    restarts: int = RESTARTS,
    steps: int = STEPS,
) -> Learned:
    """Fit the incomplete network to the answers of the true one, to the nine rows unless others are given."""
    x = rows() if x is None else x
    tac = tacit.compile(incomplete(gamma), "recovery", ["size", "treatment"])
    labels = answers(truth(), x) / 100
    net = tacit.fit(tac, x, labels, steps=steps, restarts=restarts, harden=hard, progress=False).network
    return Learned(net, largest_error(net, rows()), largest_error(net, grid()))


def answers(net: tacit.Network, x: Mapping[str, Floats]) -> Floats:
    """The probability of recovery in per cent."""
    return np.asarray(100 * net.posterior("recovery", x)[:, 0])


def largest_error(net: tacit.Network, x: Mapping[str, Floats]) -> float:
    """How far the answers are from those of the true network."""
    return float(np.abs(answers(net, x) - answers(truth(), x)).max())


def as_published(learned: Mapping[str, Learned]) -> Grid:
    """The answers on the nine rows side by side, those of the paper at the right."""
    columns = {"truth": answers(truth(), rows())}
    columns |= {kind: answers(found.network, rows()) for kind, found in learned.items()}
    columns |= {f"{kind} (2019)": np.array(PUBLISHED[kind]) for kind in ("AC", "TAC")}
    names = [f"{size}, {treatment}" for treatment in ("A", "B", "?") for size in ("large", "small", "?")]
    body = [(name, *(f"{column[i]:.1f}" for column in columns.values())) for i, name in enumerate(names)]
    return Grid([("stone, treatment", *columns)], body, title="P(recovery) in per cent, learned from nine rows")


def errors(learned: Mapping[str, Learned], title: str) -> Grid:
    """The largest errors, and whether the reversal was learned."""
    body = [
        (kind, f"{found.error:.2f}", f"{found.between:.2f}", "yes" if found.reversed else "no")
        for kind, found in learned.items()
    ]
    return Grid([("largest error, points", "nine rows", "441 rows", "reversal")], body, title=title)


def patients() -> dict[str, list[str]]:
    """The 700 patients of Charig et al. (1986), one by one."""
    counts = {("small", "A"): (81, 6), ("small", "B"): (234, 36), ("large", "A"): (192, 71), ("large", "B"): (55, 25)}
    listed = [
        (size, treatment, recovery)
        for (size, treatment), numbers in counts.items()
        for recovery, number in zip(("yes", "no"), numbers, strict=True)
        for _ in range(number)
    ]
    return dict(zip(("size", "treatment", "recovery"), map(list, zip(*listed, strict=True)), strict=True))


@dataclass(frozen=True)
class Sureness:
    """How probable 700 patients make each part of the reversal, and all of them together."""

    small: float
    large: float
    looks_worse: float
    reversed: float
    done: float  # that A is better where treatments are given, not seen


def how_sure(draws: int = DRAWS) -> Sureness:
    """Compare the treatments in networks whose tables are drawn from what the patients leave possible."""
    net = tacit.estimate(kidney_stones().learnable(), patients(), progress=False)
    ensemble = net.draws(draws, seed=0)
    seen = tacit.compile(net.network, "recovery", ["size", "treatment"])
    both = {"size": ["small", "small", "large", "large", None, None], "treatment": ["A", "B"] * 3}
    recovery = seen.posterior(both, tables=ensemble)[..., 0]
    small, large, worse = (recovery[:, a] > recovery[:, b] for a, b in ((0, 1), (2, 3), (5, 4)))
    set_to = tacit.compile(net.network, "recovery", do=["treatment"])
    done = set_to.posterior({"treatment": ["A", "B"]}, tables=ensemble)[..., 0]
    shares = (small, large, worse, small & large & worse, done[:, 0] > done[:, 1])
    return Sureness(*(float(share.mean()) for share in shares))


def sureness(found: Sureness) -> Grid:
    """The shares of draws, in per cent."""
    shares = {
        "A is better for small stones": found.small,
        "A is better for large stones": found.large,
        "B looks better in all": found.looks_worse,
        "all three: the reversal": found.reversed,
        "A is better if it is given, not seen": found.done,
    }
    body = [(what, f"{100 * share:.0f}") for what, share in shares.items()]
    return Grid([("after 700 patients", "sure, %")], body, title="How sure is the reversal?")


def main() -> None:
    """Learn from the nine rows, as the paper does, then from soft evidence of all levels; then ask how sure it is."""
    nine = {"AC": learn(None), "TAC": learn(GAMMA), "TAC, hard tests": learn(GAMMA, hard=True)}
    whole = {"AC": learn(None, x=grid())} | {f"TAC, slope {g:g}": learn(g, x=grid()) for g in (GAMMA, GENTLE)}
    print(as_published(nine), errors(nine, "Learned from nine rows"), sep="\n\n")
    print("", errors(whole, "Learned from 441 rows of soft evidence"), sep="\n")
    print("", sureness(how_sure()), sep="\n")


if __name__ == "__main__":
    main()
