"""Sequences: hidden Markov models beside hmmlearn and pomegranate, and what chains of any length take.

`python -m bench sequences likelihood` measures one part only; the others are `padded` and `length`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tacit
from bench.tables import MISSED, OK, Ratio, Section, run_parts

PAGE = Path(__file__).parent.parent / "docs" / "bench-sequences.md"
Floats = NDArray[np.float64]
TURNS = 7
FEW_TURNS = 3  # where a turn takes many seconds
INTRO = """`python -m bench sequences` writes this page. Models have random tables, and sequences random symbols. All
programs answer in one process, in turns; figures are medians, of 7 turns or, with 1,000 states, of 3. Times are those
of `net.log_likelihood(rows)`, `score` and `log_probability`, from arrays to answers, without compiling, which has a
column of its own. hmmlearn runs with `implementation="scaling"`, which is several times as fast as its default,
pomegranate in float64."""


@dataclass(frozen=True)
class Chain:
    """The numbers of a hidden Markov model."""

    start: Floats
    transition: Floats
    emission: Floats

    @classmethod
    def random(cls, states: int, symbols: int) -> Chain:
        rng = np.random.default_rng(0)
        return cls(
            rng.dirichlet(np.ones(states)),
            rng.dirichlet(np.ones(states), states),
            rng.dirichlet(np.ones(symbols), states),
        )

    def template(self) -> tacit.Network:
        template = tacit.Network("hmm")
        emission = tacit.CPT(self.emission, tie="emission")
        states, symbols = self.emission.shape
        template.add("X[0]", states=states, cpt=self.start)
        template.add("E[0]", ["X[0]"], symbols, emission)
        template.add("X[1]", ["X[0]"], states, self.transition)
        template.add("E[1]", ["X[1]"], symbols, emission)
        return template

    def forward(self, symbols: NDArray[np.int64]) -> Floats:
        """Log-likelihoods of sequences of one length, by the forward pass, in logarithms: (sequences,)."""
        logs = np.log(self.start) + np.log(self.emission.T[symbols[:, 0]])
        for column in symbols.T[1:]:
            top = logs.max(axis=1, keepdims=True)
            logs = np.log(np.exp(logs - top) @ self.transition) + top + np.log(self.emission.T[column])
        top = logs.max(axis=1, keepdims=True)
        found: Floats = (np.log(np.exp(logs - top).sum(axis=1, keepdims=True)) + top)[:, 0]
        return found


def columns(name: str, array: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    """Evidence on the steps of a variable: (sequences, steps)."""
    return {f"{name}[{t}]": column for t, column in enumerate(array.T)}


# the log-likelihood ---------------------------------------------------------------------------------------


def likelihood() -> list[Section]:
    """Sequences of one length."""
    section = _section("1. Log-likelihood of sequences of 100 steps, in milliseconds")
    for states, symbols, sequences in ((4, 4, 1000), (32, 32, 1000), (128, 32, 1000), (1000, 32, 100)):
        _compare(section, states, symbols, np.full(sequences, 100))
    section.notes.append(
        "With 1,000 states, the peers would take minutes for 1,000 sequences, so there are 100 of them."
    )
    return [section]


def padded() -> list[Section]:
    """Sequences of 10 to 100 steps."""
    section = _section("2. Log-likelihood of 1,000 sequences of 10 to 100 steps, in milliseconds")
    for states, symbols in ((4, 4), (32, 32), (128, 32)):
        lengths = np.random.default_rng(1).integers(10, 101, 1000)
        _compare(section, states, symbols, lengths)
    section.notes.append(
        "tacit gets one array, padded with NaN; hmmlearn gets the symbols end to end, with lengths; pomegranate takes "
        "no lengths, and is left out."
    )
    return [section]


def _section(title: str) -> Section:
    return Section(
        title,
        "equal to 1e-9 (relative), and at least as fast as the faster of the two",
        ("states", "symbols", "sequences", "compile and first answer", "tacit", "hmmlearn", "pomegranate",
         "vs the faster", "largest difference", "verdict"),
    )  # fmt: skip


def _compare(section: Section, states: int, symbols: int, lengths: NDArray[np.int64]) -> None:
    """One line of a table."""
    chain = Chain.random(states, symbols)
    rng = np.random.default_rng(2)
    sequences = [rng.integers(symbols, size=length) for length in lengths.tolist()]
    net = tacit.unroll(chain.template(), int(lengths.max()))
    rows = columns("E", _array(sequences))
    start = time.perf_counter()
    net.log_likelihood(rows)
    first = time.perf_counter() - start
    ways: dict[str, Callable[[], float]] = {
        "tacit": lambda: float(net.log_likelihood(rows).sum()),
        "hmmlearn": _hmmlearn(chain, sequences),
    }
    if len(set(lengths.tolist())) == 1:
        ways["pomegranate"] = _pomegranate(chain, np.stack(sequences))
    spent, found = _in_turns(ways, FEW_TURNS if states > 500 else TURNS)
    peers = [name for name in ways if name != "tacit"]
    error = max(abs(found[peer] / found["tacit"] - 1) for peer in peers)
    ratio = Ratio(min(spent[peer] for peer in peers), spent["tacit"])
    reached = error <= 1e-9 and float(ratio) >= 1
    times = [f"{1000 * spent[way]:,.1f}" if way in spent else "" for way in ("tacit", "hmmlearn", "pomegranate")]
    section.add(
        states, symbols, len(lengths), f"{first:.2f} s", *times, ratio, f"{error:.1e}", OK if reached else MISSED
    )
    print(" ".join(section.rows[-1]), flush=True)


def _array(sequences: list[NDArray[np.int64]]) -> NDArray[np.generic]:
    """Sequences side by side: whole numbers if all have one length, else padded with NaN."""
    steps = max(map(len, sequences))
    if all(len(s) == steps for s in sequences):
        return np.stack(sequences)
    array = np.full((len(sequences), steps), np.nan)
    for row, sequence in zip(array, sequences, strict=True):
        row[: len(sequence)] = sequence
    return array


def _hmmlearn(chain: Chain, sequences: list[NDArray[np.int64]]) -> Callable[[], float]:
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(n_components=len(chain.start), implementation="scaling")
    model.n_features = chain.emission.shape[1]
    model.startprob_, model.transmat_, model.emissionprob_ = chain.start, chain.transition, chain.emission
    together, lengths = np.concatenate(sequences)[:, None], [len(s) for s in sequences]
    return lambda: float(model.score(together, lengths))


def _pomegranate(chain: Chain, sequences: NDArray[np.int64]) -> Callable[[], float]:
    import torch
    from pomegranate.distributions import Categorical
    from pomegranate.hmm import DenseHMM

    torch.set_default_dtype(torch.float64)
    states = [Categorical(torch.tensor(row[None])) for row in chain.emission]
    ends = torch.ones(len(chain.start))  # a sequence may end anywhere, at no price
    model = DenseHMM(states, edges=torch.tensor(chain.transition), starts=torch.tensor(chain.start), ends=ends)
    batch = torch.tensor(sequences)[..., None]

    def total() -> float:
        with torch.no_grad():
            return float(model.log_probability(batch).sum())

    return total


def _in_turns(ways: Mapping[str, Callable[[], float]], turns: int) -> tuple[dict[str, float], dict[str, float]]:
    """The median seconds of each way, and what it found."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, float] = {}
    for turn in range(turns + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            found[name] = way()
            if turn:  # the first one warms up
                spent[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in spent.items()}, found


# the length -----------------------------------------------------------------------------------------------

LENGTHS = (100, 1000, 10_000)
ROWS = 16
GROWTH = 20  # times as long for ten times as many steps


def length() -> list[Section]:
    """How compiling and answering grow with the number of steps."""
    section = Section(
        "3. Chains of any length",
        f"ten times as many steps take at most {GROWTH} times as long, from 1,000 to 10,000, to compile and for a "
        "row; no underflow: equal to the forward pass in logarithms to 1e-9 (relative)",
        ("model", "steps", "compile", "first answer", "milliseconds a row", "operations a step", "largest difference",
         "verdict"),
    )  # fmt: skip
    chain = Chain.random(4, 4)
    models = {
        "HMM, 4 states": (chain.template(), chain),
        "testing HMM": (testing(), None),
        "factorial HMM, 2 chains": (factorial(2), None),
        "factorial HMM, 3 chains": (factorial(3), None),
    }
    for name, (template, known) in models.items():
        before: Grown | None = None
        for steps in LENGTHS:
            now = grown(template, steps, known)
            reached = before is None or steps < LENGTHS[-1] or now.times(before) <= GROWTH
            section.add(
                name, steps, f"{now.compiling:.2f} s", f"{now.first:.2f} s", f"{1000 * now.row:.2f}",
                f"{now.operations / steps:.1f}", "" if known is None else f"{now.error:.1e}",
                OK if reached and now.error <= 1e-9 else MISSED,
            )  # fmt: skip
            print(" ".join(section.rows[-1]), flush=True)
            before = now
    return [section]


@dataclass(frozen=True)
class Grown:
    """What a chain of some length takes: seconds, operations, and the error of its answers."""

    compiling: float
    first: float
    row: float
    operations: int
    error: float

    def times(self, before: Grown) -> float:
        return max(self.compiling / before.compiling, self.row / before.row)


def grown(template: tacit.Network, steps: int, known: Chain | None) -> Grown:
    """Soft evidence on all observations; `known` is what the answers are compared with."""
    net = tacit.unroll(template, steps)
    names = [f"E[{t}]" for t in range(steps)]
    symbols = np.random.default_rng(3).integers(net.variable("E[0]").card, size=(ROWS, steps))
    start = time.perf_counter()
    tac = tacit.compile(net, None, names)
    compiling = time.perf_counter() - start
    rows = tac.read(columns("E", symbols))
    start = time.perf_counter()
    tac.log_evidence(rows)
    first = time.perf_counter() - start
    spent, found = _in_turns({"tacit": lambda: float(tac.log_evidence(rows).sum())}, 5)
    error = 0.0 if known is None else float(abs(known.forward(symbols).sum() / found["tacit"] - 1))
    return Grown(compiling, first, spent["tacit"] / ROWS, len(tac.program), error)


def testing() -> tacit.Network:
    """Hidden states are testing nodes that see all earlier observations."""
    rng = np.random.default_rng(4)
    net = tacit.Network("testing HMM", selection="general")
    emission = tacit.CPT(rng.dirichlet(np.ones(3), 2), tie="emission")
    net.add("X[0]", cpt=[0.5, 0.5])
    net.add("E[0]", ["X[0]"], 3, emission)
    plus, minus = rng.dirichlet(np.ones(2), (2, 2))
    net.add("X[1]", ["X[0]"], cpt=tacit.TestingCPT(plus, minus, rng.random(2), gamma=16.0))
    net.add("E[1]", ["X[1]"], 3, emission)
    return net


def factorial(chains: int) -> tacit.Network:
    """Hidden chains of two states each that are seen together."""
    rng = np.random.default_rng(5)
    net = tacit.Network("factorial HMM")
    emission = tacit.CPT(rng.dirichlet(np.ones(4), (2,) * chains), tie="emission")
    for t in (0, 1):
        for i in range(chains):
            net.add(f"X{i}[{t}]", [f"X{i}[0]"] * t, cpt=rng.dirichlet(np.ones(2), (2,) * t))
        net.add(f"E[{t}]", [f"X{i}[{t}]" for i in range(chains)], 4, emission)
    return net


def main(arguments: list[str]) -> None:
    parts = {"likelihood": likelihood, "padded": padded, "length": length}
    run_parts(arguments, parts, PAGE, "Sequences: measured", INTRO)
