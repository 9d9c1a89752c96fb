"""The questions beyond one posterior, side by side with other people's software.

One run: every peer answers the same rows, and its answers are compared with ours. `python -m bench questions mpe` asks
one question only; the others are `joint`, `samples` and `sensitivity`.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm
from tests.pyagrum_peer import to_peer

import tacit
from bench.inference import Case, per_row, pgmpy_evidence, pgmpy_model, sample, sampled, us
from bench.networks import leaves, network, widest_root
from bench.tables import MISSED, OK, Ratio, Section, at_least, at_most, run_parts
from bench.toulbar2 import NARY, NotProvedError, Toulbar2, log_probability

PAGE = Path(__file__).parent.parent / "docs" / "bench-questions.md"
SECONDS = 10.0  # how long we, and each peer, may take for the rows of one case


# the most probable explanation ----------------------------------------------------------------------------

EXPLAINED = ("alarm", "hailfinder", "win95pts", "andes", "pigs", "munin1", "link")
FASTER = dict.fromkeys(("alarm", "hailfinder", "win95pts"), 300)
ROWS = 1000


def explanations() -> list[Section]:
    """MPE against toulbar2, with hard evidence on all leaves and on every second one."""
    section = Section(
        "1. The most probable explanation: time per row, in microseconds",
        "the same log-probability to 1e-9; 300x toulbar2's search on alarm, hailfinder, win95pts",
        ("network", "observed", "compile", "rows", "tacit", "rows of toulbar2", "toulbar2", "toulbar2, tuned",
         "vs toulbar2", "vs tuned", "largest difference", "verdict"),
    )  # fmt: skip
    for name in EXPLAINED:
        every = leaves(network(name))
        for what, observed in {"all leaves": every, "half of them": every[::2]}.items():
            explain(section, name, what, observed)
            print(" ".join(section.rows[-1]), flush=True)
    return [section]


def explain(section: Section, name: str, what: str, observed: Sequence[str]) -> None:
    """One line of the table."""
    net = network(name)
    evidence = hard_rows(net, observed, ROWS)
    plain = by_toulbar2(net, evidence, NARY)
    tuned = by_toulbar2(net, evidence, nary=0)
    for peer, how in ((plain, ""), (tuned, ", tuned")):
        if peer.unproved:
            section.notes.append(f"{name}, {what}: toulbar2{how} proved no optimum in {peer.unproved} rows.")
    theirs = [f"{len(plain.found):,}", us(plain.seconds), us(tuned.seconds)]
    try:
        ours = explained(net, evidence)
    except tacit.TacitError as problem:
        section.notes.append(f"{name}, {what}: not answered. {problem}")
        section.add(name, what, "-", "-", "-", *theirs, "-", "-", "-", MISSED)
        return
    error = ours.error(plain.found, tuned.found)
    ratio = Ratio(plain.seconds, ours.seconds)
    reached = error <= 1e-9 and float(ratio) >= FASTER.get(name, 0)
    section.add(
        name, what, f"{ours.compiling:.2f} s", ours.rows, us(ours.seconds), *theirs, ratio,
        Ratio(tuned.seconds, ours.seconds), f"{error:.1e}", OK if reached else MISSED,
    )  # fmt: skip


@dataclass(frozen=True)
class Explained:
    """Our explanations, and the seconds per row they took."""

    net: tacit.Network
    compiling: float
    seconds: float
    rows: int
    found: Any

    def error(self, *peers: Mapping[int, float]) -> float:
        """The largest difference to the log-probabilities of peers, and to those of our own states by the tables."""
        found = []
        for i, theirs in (pair for peer in peers for pair in peer.items() if pair[0] < self.rows):
            claimed = float(self.found.log_probability[i])
            states = {n: column[i] for n, column in self.found.states.items()}
            found += [abs(claimed - theirs), abs(claimed - log_probability(self.net, states))]
        return float(np.max(found)) if found else math.nan


def explained(net: tacit.Network, evidence: Mapping[str, np.ndarray]) -> Explained:
    """As many rows as the time allows."""
    start = time.perf_counter()
    tac = tacit.compile(net, None, hard=tuple(evidence))
    compiling = time.perf_counter() - start
    few = first(evidence, 8)
    tac.mpe(few)
    rows = int(np.clip(SECONDS / 3 / per_row(lambda: tac.mpe(few), 8, repeats=1), 8, ROWS))
    part = first(evidence, rows)
    seconds = per_row(lambda: tac.mpe(part), rows, repeats=3 if rows < ROWS else 15)
    return Explained(net, compiling, seconds, rows, tac.mpe(part))


@dataclass(frozen=True)
class Searched:
    """The log-probabilities toulbar2 found, by row; the median of its seconds; in how many rows it gave up."""

    found: dict[int, float]
    seconds: float
    unproved: int


def by_toulbar2(net: tacit.Network, evidence: Mapping[str, np.ndarray], nary: int) -> Searched:
    """Row by row until the time is up; only the search counts, not building the problem."""
    peer = Toulbar2(net, nary=nary)
    found: dict[int, float] = {}
    spent: list[float] = []
    start = time.perf_counter()
    for i in range(ROWS):
        if spent and time.perf_counter() - start > SECONDS:
            break
        try:
            _, found[i], seconds = peer.solve({n: column[i] for n, column in evidence.items()})
        except NotProvedError:
            seconds = float(peer.limit)  # at least
        spent.append(seconds)
    return Searched(found, statistics.median(spent), len(spent) - len(found))


# the joint posterior of two variables ---------------------------------------------------------------------

PAIR = ("HYPOVOLEMIA", "CATECHOL")


def pairs() -> list[Section]:
    """A table over two variables of alarm, evidence on all leaves."""
    section = Section(
        f"2. The joint posterior of two variables of alarm, {' and '.join(PAIR)}: time per row, in microseconds",
        "equal to 1e-12; 300x pyAgrum, 10,000 rows",
        ("evidence", "compile", "tacit", "pyAgrum", "pgmpy", "vs pyAgrum", "vs pgmpy", "largest difference", "verdict"),
    )
    net = network("alarm")
    for soft in (True, False):
        case = Case("alarm", net, PAIR[0], tuple(leaves(net)), soft, "all leaves")
        evidence = case.rows(10_000)
        start = time.perf_counter()
        tac = tacit.compile(net, PAIR, **{"evidence" if soft else "hard": case.observed})
        compiling = time.perf_counter() - start
        ours = tac.posterior(evidence)
        seconds = per_row(lambda tac=tac, evidence=evidence: tac.posterior(evidence), 10_000, repeats=5)
        pyagrum, by_pyagrum = pair_by_pyagrum(case, evidence)
        pgmpy, by_pgmpy = pair_by_pgmpy(case, evidence)
        error = max(float(np.abs(theirs - ours[: len(theirs)]).max()) for theirs in (by_pyagrum, by_pgmpy))
        ratio = Ratio(pyagrum, seconds)
        section.add(
            "soft" if soft else "hard", f"{compiling:.2f} s", us(seconds), us(pyagrum), us(pgmpy), ratio,
            Ratio(pgmpy, seconds), f"{error:.1e}", at_least(float(ratio), 300) if error <= 1e-12 else MISSED,
        )  # fmt: skip
    return [section]


def pair_by_pyagrum(case: Case, evidence: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """LazyPropagation, one engine, evidence changed in place."""
    import pyagrum

    engine = pyagrum.LazyPropagation(to_peer(case.net))
    engine.eraseAllTargets()
    engine.addJointTarget(set(PAIR))
    rows = [case.likelihoods(evidence, i) for i in range(500)]
    engine.setEvidence(rows[0])
    engine.makeInference()

    def answer(i: int) -> np.ndarray:
        for name, values in rows[i].items():
            engine.chgEvidence(name, values)
        engine.makeInference()
        return in_order(engine.jointPosterior(set(PAIR)), PAIR)

    return sampled(answer, len(rows))


def in_order(tensor: Any, names: Sequence[str]) -> np.ndarray:
    """A table of pyAgrum's with its axes in this order; its arrays have the first of its variables last."""
    axes = tensor.names[::-1]
    return np.array(tensor.toarray()).transpose([axes.index(n) for n in names])


def pair_by_pgmpy(case: Case, evidence: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """VariableElimination, row by row."""
    from pgmpy.inference import VariableElimination

    engine = VariableElimination(pgmpy_model(case.net))

    def answer(i: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = engine.query(list(PAIR), **pgmpy_evidence(case, evidence, i), joint=True, show_progress=False)
        return np.array(found.values).transpose([found.variables.index(n) for n in PAIR])

    return sampled(answer, 50)


# samples --------------------------------------------------------------------------------------------------

DRAWN = 1_000_000
FIVE = {"HISTORY": "FALSE", "CVP": "NORMAL", "PCWP": "NORMAL", "HRBP": "HIGH", "HREKG": "NORMAL"}
ELEVEN = FIVE | {
    "HRSAT": "HIGH", "EXPCO2": "LOW", "MINVOL": "ZERO", "PAP": "NORMAL", "PRESS": "HIGH", "BP": "HIGH",
}  # fmt: skip


def samples() -> list[Section]:
    """A million samples of alarm: how fast, and whether they are right."""
    times = Section(
        "3. A million exact samples of alarm: time per sample, in microseconds",
        "given five leaves, 100x pyAgrum's sampler or pgmpy's",
        ("observed", "its probability", "tacit", "pyAgrum", "pgmpy", "pgmpy, weighted", "vs pyAgrum", "vs pgmpy",
         "verdict"),
    )  # fmt: skip
    right = Section(
        "4. The same samples: how far their frequencies are from the probabilities",
        "5 standard deviations, for the states of every variable and the pairs of states of every two of eight",
        ("observed", "frequencies compared", "largest deviation", "verdict"),
    )
    net = network("alarm")
    for what, row in {"nothing": {}, "five leaves": FIVE, "all leaves": ELEVEN}.items():
        tac = tacit.compile(net, None, hard=tuple(row))
        probability = math.exp(float(tac.log_evidence({n: [s] for n, s in row.items()})[0])) if row else 1.0
        draw = drawing(net, tac, row)
        draw(1000)
        seconds = per_row(lambda draw=draw: draw(DRAWN), DRAWN)
        pyagrum, pgmpy = samples_of_pyagrum(net, row, probability), samples_of_pgmpy(net, row, probability)
        ratios = Ratio(pyagrum, seconds), Ratio(pgmpy, seconds)
        times.add(
            what, f"{probability:.2g}", us(seconds), us(pyagrum), us(pgmpy), us(weighted_of_pgmpy(net, row)), *ratios,
            at_least(max(map(float, ratios)), 100) if row == FIVE else "",
        )  # fmt: skip
        compared, deviation = deviations(net, row, draw(DRAWN))
        right.add(what, compared, f"{deviation:.2f}", at_most(deviation, 5))
    return [times, right]


def drawing(net: tacit.Network, tac: tacit.TAC, row: Mapping[str, str]) -> Callable[[int], dict[str, np.ndarray]]:
    """A function that draws so many samples: labels by variable."""
    if not row:
        return lambda n: net.sample(n, seed=0)
    evidence = {name: [state] for name, state in row.items()}
    return lambda n: {name: drawn[0] for name, drawn in tac.sample(evidence, n=n, seed=0).items()}


def samples_of_pyagrum(net: tacit.Network, row: Mapping[str, str], probability: float) -> float:
    """BNDatabaseGenerator draws from the prior and drops what contradicts the evidence; seconds per sample kept."""
    import pyagrum

    pyagrum.initRandom(1)
    peer = to_peer(net)  # named, because the generator does not keep it alive
    generator = pyagrum.BNDatabaseGenerator(peer)
    kept = max(500, int(200_000 * probability))
    evidence = {name: f"s{net.states(name).index(state)}" for name, state in row.items()}
    return per_row(lambda: generator.drawSamples(kept, evidence) if row else generator.drawSamples(kept), kept)


def samples_of_pgmpy(net: tacit.Network, row: Mapping[str, str], probability: float) -> float:
    """Rejection sampling; seconds per sample kept."""
    sampler, evidence = pgmpy_sampler(net, row)
    kept = max(200, int(50_000 * probability))
    if not row:
        return quietly(lambda: sampler.forward_sample(size=kept, show_progress=False, seed=1), kept)
    return quietly(lambda: sampler.rejection_sample(evidence, size=kept, show_progress=False, seed=1), kept)


def weighted_of_pgmpy(net: tacit.Network, row: Mapping[str, str]) -> float:
    """Likelihood weighting; its samples carry weights, so fewer of them count."""
    if not row:
        return math.nan
    sampler, evidence = pgmpy_sampler(net, row)
    size = 20_000
    return quietly(lambda: sampler.likelihood_weighted_sample(evidence, size=size, show_progress=False, seed=1), size)


def pgmpy_sampler(net: tacit.Network, row: Mapping[str, str]) -> tuple[Any, list[Any]]:
    """pgmpy's sampler and the evidence in its terms, states by their positions."""
    from pgmpy.factors.discrete import State
    from pgmpy.sampling import BayesianModelSampling

    return BayesianModelSampling(pgmpy_model(net)), [State(n, net.states(n).index(s)) for n, s in row.items()]


def quietly(run: Callable[[], object], rows: int) -> float:
    """Median seconds per row, without the warnings of a peer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return per_row(run, rows)


def deviations(net: tacit.Network, row: Mapping[str, str], drawn: Mapping[str, np.ndarray]) -> tuple[int, float]:
    """How many frequencies were compared with pyAgrum's posteriors, and the largest deviation of one."""
    codes = {n: sum(i * (drawn[n] == state) for i, state in enumerate(net.states(n))) for n in net}
    free = [n for n in net if n not in row and net.parents(n)]  # roots are independent of most others
    eight = free[:: len(free) // 8][:8]
    compared, worst = 0, 0.0
    for names in [*((n,) for n in net), *itertools.combinations(eight, 2)]:
        shape = tuple(len(net.states(n)) for n in names)
        counts = np.zeros(shape, dtype=int)
        np.add.at(counts, tuple(codes[n] for n in names), 1)
        worst = max(worst, standard_deviations(counts, exact(net, row, names)))
        compared += counts.size
    return compared, worst


def exact(net: tacit.Network, row: Mapping[str, str], names: tuple[str, ...]) -> np.ndarray:
    """The posterior of one or two variables by pyAgrum."""
    import pyagrum

    states = {n: net.states(n).index(s) for n, s in row.items()}
    if len(names) == 1 and names[0] in states:
        return np.eye(len(net.states(names[0])))[states[names[0]]]
    engine = pyagrum.LazyPropagation(to_peer(net))
    engine.setEvidence(states)
    engine.addJointTarget(set(names)) if len(names) > 1 else engine.addTarget(names[0])
    engine.makeInference()
    return in_order(engine.jointPosterior(set(names)) if len(names) > 1 else engine.posterior(names[0]), names)


def standard_deviations(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The least likely of these counts, as so many standard deviations of a normal variable.

    By the binomial distribution itself: for rare states the normal one would call a single sample a wonder.
    """
    n, p = counts.sum(), np.clip(probabilities, 0.0, 1.0)
    tails = np.minimum(binom.cdf(counts, n, p), binom.sf(counts - 1, n, p))
    return float(norm.isf(np.minimum(tails, 0.5)).max())


# sensitivity ----------------------------------------------------------------------------------------------

YODO = {"alarm": 0.034, "andes": 0.30, "pigs": 0.52, "munin1": 14.4}  # seconds, PGM 2022


def sensitivities() -> list[Section]:
    """Derivatives of one posterior by all entries of all tables, beside YODO's published times."""
    section = Section(
        "5. Sensitivity of one query to all parameters, one row",
        "an answer, once compiled, is faster than YODO's published time",
        ("network", "query", "observed", "entries", "compile and answer", "answer", "YODO, published",
         "published / compile and answer", "published / answer", "verdict"),
    )  # fmt: skip
    for name, published in YODO.items():
        for query, observed in asked(name):
            both, answer, entries = sensitivity(name, query, observed)
            what = observed[0] if len(observed) == 1 else "all leaves"
            section.add(
                name, query, what, entries, f"{both:.3f} s", f"{answer:.4f} s", f"{published} s",
                Ratio(published, both), Ratio(published, answer), at_most(answer, published),
            )  # fmt: skip
            print(" ".join(section.rows[-1]), flush=True)
    return [section]


def asked(name: str) -> list[tuple[str, list[str]]]:
    """A leaf given another, as in YODO's own examples, and a root given all leaves, where no table is irrelevant."""
    net = network(name)
    every = leaves(net)
    pair = ("CVP", "HISTORY") if name == "alarm" else (every[0], every[-1])
    root = widest_root(net)
    return [(pair[0], [pair[1]]), (root, [n for n in every if n != root])]


def sensitivity(name: str, query: str, observed: Sequence[str]) -> tuple[float, float, int]:
    """Seconds to compile and answer, seconds for an answer, and how many entries it is about."""
    net = network(name)
    row = {"HISTORY": ["TRUE"]} if list(observed) == ["HISTORY"] else hard_rows(net, observed, 1)
    tacit.compile(net, query, hard=tuple(observed)).sensitivity(row)  # loads the kernels
    start = time.perf_counter()
    tac = tacit.compile(net, query, hard=tuple(observed))
    found = tac.sensitivity(row)
    both = time.perf_counter() - start
    answer = per_row(lambda: tac.sensitivity(row), 1, repeats=5)
    return both, answer, sum(d[0, 0].size for d in found.derivatives.values())


# all of them ----------------------------------------------------------------------------------------------


def hard_rows(net: tacit.Network, observed: Sequence[str], count: int) -> dict[str, np.ndarray]:
    """States of these variables, in rows drawn from the network."""
    drawn = sample(net, count, np.random.default_rng(1))
    return {n: np.array(net.states(n), dtype=object)[drawn[n]] for n in observed}


def first(evidence: Mapping[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    return {n: column[:rows] for n, column in evidence.items()}


QUESTIONS = {"mpe": explanations, "joint": pairs, "samples": samples, "sensitivity": sensitivities}


def main(arguments: list[str]) -> None:
    """Measure, print, and write the page when all questions were asked."""
    run_parts(arguments, QUESTIONS, PAGE, "More questions: measured", INTRO)


INTRO = """Made by `make bench`. Two cores and as many threads as each program takes by itself: tacit up to two,
toulbar2 one. Every figure of a row of a table comes from one run, medians of several. Times include reading the
evidence, and leave out compiling, which has a column of its own.

**Explanations.** Rows drawn from the network give hard evidence on all leaves or on every second one. toulbar2 gets a
problem per row, with costs -log p to 12 digits and the evidence already sliced into the tables; the time is that of its
search alone, the median of the rows it gets through in 10 seconds, building not counted (building takes longer than
searching on most of these networks). It has 60 seconds for a row; where it proves no optimum by then, a note says so.
"Tuned" is toulbar2 without its treatment of large tables (`preprocessNary=0`), faster on small networks and slower on
andes and link. Log-probabilities are added up from the tables, for its states and for ours. toulbar2 searches, so its
time depends on the row; tacit eliminates, so its time is the same for all rows and grows with the width of the network.

**Joint posteriors.** pyAgrum: LazyPropagation with a joint target, one engine, evidence changed in place. pgmpy:
VariableElimination, row by row.

**Samples.** Both peers draw from the prior and drop what contradicts the evidence, so their time per sample kept grows
as one over the probability of the evidence, and ours does not: the ratio says as much about the evidence as about the
samplers. The first line, without evidence, compares the samplers themselves. pyAgrum's time leaves out turning its
samples into a table; ours and pgmpy's include labels. "Weighted" is pgmpy's likelihood weighting, whose samples are not
exact: each carries a weight. Frequencies are compared with pyAgrum's posteriors.

**Sensitivity.** YODO's seconds are those of the paper, from another machine, for one state of the query; it does not
run here, because torch no longer has the named tensors it is written with. Its paper's queries were not to be had: the
pair of alarm is the one in YODO's documentation, the other pairs are the first leaf given the last, and the root with
the most descendants given all leaves stands for the worst case. Its code finds an order of contraction in every
call, so the ratio with compiling is the closer comparison; the verdict is about an answer, once compiled."""
