"""Hidden Markov models of numbers beside hmmlearn: the likelihood of sequences, and iterations of EM.

`python -m bench densities_hmm likelihood` measures one part only; the other one is `em`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit
from bench.sequences import columns
from bench.tables import MISSED, OK, Ratio, Section, run_parts

PAGE = Path(__file__).parent.parent / "docs" / "bench-densities-hmm.md"
Floats = NDArray[np.float64]
SEQUENCES, STEPS, TURNS = 1000, 100, 3
ITERATIONS = {4: 20, 32: 5, 128: 2}  # of EM that are timed, after a first one, by the number of states
BARS = {4: 1.0, 32: 5.0, 128: 10.0}  # by the number of states: how many times as fast
INTRO = """`python -m bench densities_hmm` writes this page. Both programs answer in one process, in turns; figures are
medians of 3 turns, of processor time, of all threads together: others were using the machine, and slow some runs down
more than others. hmmlearn runs with `implementation="scaling"`, which is several times as fast as its default."""


@dataclass(frozen=True)
class GaussianChain:
    """The numbers of a hidden Markov model whose states emit normal numbers."""

    start: Floats
    transition: Floats
    mean: Floats
    sd: Floats

    @classmethod
    def random(cls, states: int) -> GaussianChain:
        rng = np.random.default_rng(0)
        start, transition = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
        return cls(start, transition, rng.normal(0, 3, states), rng.uniform(0.5, 1.5, states))

    def network(self, learn: bool) -> tacit.Network:
        """The chain unrolled; all steps share their numbers."""
        template = tacit.Network("hmm")
        density = tacit.Gaussian(self.mean, self.sd, learn=learn, tie="x")
        template.add("Z[0]", states=len(self.start), cpt=tacit.CPT(self.start, learn=learn))
        template.add("x[0]", ["Z[0]"], cpt=density)
        template.add("Z[1]", ["Z[0]"], len(self.start), tacit.CPT(self.transition, learn=learn))
        template.add("x[1]", ["Z[1]"], cpt=density)
        return tacit.unroll(template, STEPS)

    def drawn(self) -> Floats:
        """Numbers near the means of random states: (sequences, steps)."""
        rng = np.random.default_rng(1)
        states = rng.integers(len(self.start), size=(SEQUENCES, STEPS))
        return rng.normal(self.mean[states], self.sd[states])

    def peer(self, iterations: int) -> Any:
        """The chain in hmmlearn, with priors that count for nothing."""
        from hmmlearn.hmm import GaussianHMM

        model = GaussianHMM(
            len(self.start), "diag", min_covar=0.0, covars_prior=0.0, covars_weight=0.0, n_iter=iterations,
            tol=-np.inf, init_params="", implementation="scaling",
        )  # fmt: skip
        model.startprob_, model.transmat_ = self.start, self.transition
        model.means_, model.covars_ = self.mean[:, None], self.sd[:, None] ** 2
        return model


def main(arguments: Sequence[str] = ()) -> None:
    """Compare all parts, or those that are named."""
    run_parts(arguments, {"likelihood": likelihood, "em": em}, PAGE, "Densities: hidden Markov models", INTRO)


def likelihood() -> list[Section]:
    """Log-likelihoods, from arrays to answers."""
    section = _section("1. Log-likelihood of 1,000 sequences of 100 numbers, in milliseconds")
    for states in BARS:
        _compare(section, states, *_scorers(GaussianChain.random(states)))
    return [section]


def em() -> list[Section]:
    """Iterations of EM."""
    section = _section("2. One iteration of EM, in milliseconds")
    section.notes.append(
        "An iteration is what each more of them adds to the time of a call (20 with 4 states, 5 with 32, 2 with 128), "
        "so what is done once, reading and compiling, is left out. The difference is that of the log-likelihoods "
        "before the last one."
    )
    for states in BARS:
        _compare(section, states, *_learners(GaussianChain.random(states)))
    return [section]


Way = Callable[[], tuple[float, float]]  # seconds of processor time, and what was found


def _scorers(chain: GaussianChain) -> tuple[Way, Way]:
    """What times the log-likelihood in both programs."""
    net, model, values = chain.network(learn=False), chain.peer(1), chain.drawn()
    rows = columns("x", values)

    def ours() -> float:
        return float(net.log_likelihood(rows).sum())

    def theirs() -> float:
        return float(model.score(*_in_a_row(values)))

    return lambda: _timed(ours), lambda: _timed(theirs)


def _learners(chain: GaussianChain) -> tuple[Way, Way]:
    """What times an iteration of EM in both programs."""
    net, values = chain.network(learn=True), chain.drawn()
    rows = columns("x", values)

    def ours(steps: int) -> float:
        return tacit.estimate(net, rows, steps=steps, tolerance=0.0, progress=False).history[-1]

    def theirs(steps: int) -> float:
        return float(chain.peer(steps).fit(*_in_a_row(values)).monitor_.history[-1])

    more = ITERATIONS[len(chain.start)]
    return _iteration(ours, more), _iteration(theirs, more)


def _iteration(learn: Callable[[int], float], iterations: int) -> Way:
    def way() -> tuple[float, float]:
        few, _ = _timed(lambda: learn(1))
        more, found = _timed(lambda: learn(1 + iterations))
        return (more - few) / iterations, found

    return way


def _timed(run: Callable[[], float]) -> tuple[float, float]:
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def _in_a_row(values: Floats) -> tuple[Floats, list[int]]:
    """Sequences one after the other, and their lengths, as hmmlearn takes them."""
    return values.reshape(-1, 1), [STEPS] * len(values)


def _section(title: str) -> Section:
    return Section(
        title,
        "equal to 1e-9 (relative), and 1, 5 and 10 times as fast",
        ("states", "tacit", "hmmlearn", "gain", "largest difference", "verdict"),
    )


def _compare(section: Section, states: int, ours: Way, theirs: Way) -> None:
    """One line of a table."""
    spent: Mapping[str, list[float]] = {"tacit": [], "hmmlearn": []}
    error = 0.0
    for turn in range(TURNS + 1):
        (mine, found), (their, known) = ours(), theirs()
        error = max(error, abs(found / known - 1))
        if turn:  # the first one warms up
            spent["tacit"].append(mine)
            spent["hmmlearn"].append(their)
    median = {name: statistics.median(times) for name, times in spent.items()}
    gain = Ratio(median["hmmlearn"], median["tacit"])
    reached = error <= 1e-9 and float(gain) >= BARS[states]
    milliseconds = [f"{1000 * median[name]:,.1f}" for name in spent]
    section.add(states, *milliseconds, gain, f"{error:.1e}", OK if reached else MISSED)
    print(" ".join(section.rows[-1]), flush=True)
