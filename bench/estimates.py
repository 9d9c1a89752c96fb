"""Estimates against loopy belief propagation and importance sampling of pyAgrum, at the same CPU seconds.

The exact plans of these networks are treated as too wide: no graph of ours may have more than a tenth of the entries
that exact clusters have. `python -m bench estimates link` compares on one network and writes no page.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyagrum

from bench.networks import network
from bench.tables import MISSED, OK, Section, write
from tacit import Network
from tacit.bounds.estimating import Estimator
from tacit.bounds.factor_list import FactorList, factor_list
from tacit.compiler.order.search import elimination_order, weighted_min_fill, work
from tacit.compiler.order.tree import Problem, mask_of
from tacit.compiler.question import Question
from tacit.io.bridges.pyagrum import to_pyagrum

SECONDS, ROWS, SHARE_OF_EXACT, ORDERS = 1.0, 2, 0.1, 5
PROBE = 0.2  # seconds of wall time after which it is seen how much of a processor a sampler gets
PAGE = Path(__file__).parent.parent / "docs" / "bench-estimates.md"
INTRO = f"""Made by `python -m bench estimates`. All posteriors of a network, given some variables of a row that was
sampled from it: the mean absolute error over all states of all other variables, of {ROWS} rows. Each side has about
{SECONDS:g} second of CPU for a row, from the network to the answer; pyAgrum's loopy propagation stops earlier where
its messages have settled. The exact answers are tacit's. No join graph of
ours may have more than a tenth of the entries that the clusters of the exact plan have ("exact", best of
{ORDERS} orders by min-fill, with the evidence cut out). With 20% observed, the large networks of bnlearn are narrow,
so they have 5%; grid16 has 10%. Random networks have up to 8, 6 and 4 parents per node, grids two; their numbers are
uniform. Where ours took less than its time, the limit of entries ended it."""

Row = Mapping[str, int]
Answer = dict[str, np.ndarray]


class Case(NamedTuple):
    """A network, and which share of its variables is observed."""

    make: Callable[[], Network]
    observed: float


def grid(side: int) -> Network:
    """A square on which each variable depends on those above and left of it."""
    rng, net = np.random.default_rng(side), Network(f"grid {side} x {side}")
    for i in range(side):
        for j in range(side):
            parents = [f"x{a}_{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            net.add(f"x{i}_{j}", parents, cpt=rng.dirichlet([1.0, 1.0], size=(2,) * len(parents)))
    return net


def of_many_parents(count: int, most: int, near: int) -> Network:
    """A network whose nodes have up to `most` parents among the `near` nodes before."""
    rng, net = np.random.default_rng(count), Network(f"{count} nodes, up to {most} parents")
    for i in range(count):
        above = np.arange(max(0, i - near), i)
        chosen = sorted(rng.choice(above, min(len(above), int(rng.integers(1, most + 1))), replace=False))
        net.add(f"x{i}", [f"x{j}" for j in chosen], cpt=rng.dirichlet([1.0, 1.0], size=(2,) * len(chosen)))
    return net


CASES = {
    "link": Case(lambda: network("link"), 0.05),
    "munin1": Case(lambda: network("munin1"), 0.05),
    "munin4": Case(lambda: network("munin4"), 0.05),
    "mildew": Case(lambda: network("mildew"), 0.05),
    "andes": Case(lambda: network("andes"), 0.05),
    "grid16": Case(lambda: grid(16), 0.1),
    "grid20": Case(lambda: grid(20), 0.2),
    "random60": Case(lambda: of_many_parents(60, 8, 30), 0.2),
    "random80": Case(lambda: of_many_parents(80, 6, 30), 0.2),
    "random100": Case(lambda: of_many_parents(100, 4, 100), 0.2),
}


def observed(net: Network, share: float, seed: int) -> Row:
    """The states of some variables in a row drawn from the network."""
    drawn, rng = net.sample(1, seed=seed), np.random.default_rng(seed)
    names = rng.choice(np.array(net.variables, dtype=object), int(share * len(net.variables)), replace=False)
    return {name: list(net.states(name)).index(drawn[name][0]) for name in net.variables if name in set(names)}


def question(net: Network, row: Row) -> FactorList:
    """All other variables, given the row."""
    return factor_list(net, Question(tuple(name for name in net if name not in row), given=tuple(row.items())))


def exact_entries(factors: FactorList) -> float:
    """The entries of all clusters of an exact plan."""
    names = list(factors.cards)
    masks = [mask_of(names.index(name) for name in factor.scope) for factor in factors.factors]
    problem = Problem(masks, [True] * len(masks), names, list(factors.cards.values()), keep=0)
    orders = (elimination_order(problem, weighted_min_fill, random.Random(seed)) for seed in range(ORDERS))
    return min(work(problem, order)[0] for order in orders)


def ours(net: Network, row: Row, entries: float) -> Answer:
    """Our estimates, over all states."""
    factors = question(net, row)
    estimator = Estimator(factors, seconds=SECONDS, entries=entries)
    if estimator.exact and len(row):
        raise RuntimeError("the graphs are large enough to be exact")
    answers = {}
    for name, found in estimator.marginals({}).items():
        if name in net:
            answers[name] = np.zeros(len(net.states(name)))
            answers[name][list(factors.states[name])] = found[0]
    return answers


def theirs(peer: pyagrum.BayesNet, method: type, row: Row, names: Sequence[str]) -> Answer:
    """What pyAgrum says after so many seconds of CPU; its own limit is one of wall time."""
    start = time.process_time()
    _run(peer, method, row, PROBE)
    share = max(time.process_time() - start, 0.01) / PROBE
    engine = _run(peer, method, row, SECONDS / share)
    return {name: engine.posterior(name).toarray() for name in names}


def _run(peer: pyagrum.BayesNet, method: type, row: Row, seconds: float) -> Any:
    engine = method(peer)
    engine.setEvidence(dict(row))
    engine.setEpsilon(1e-9)
    engine.setMinEpsilonRate(1e-12)
    engine.setMaxIter(10**9)
    engine.setMaxTime(seconds)
    engine.setPeriodSize(20)  # it looks at the clock so often
    engine.makeInference()
    return engine


def error(found: Answer, truth: Answer) -> float:
    """The mean absolute error over all states of all variables."""
    return float(np.mean(np.concatenate([np.abs(found[name] - truth[name]) for name in truth])))


def compare(name: str) -> list[object]:
    """A line of the table."""
    case = CASES[name]
    net = case.make()
    peer = to_pyagrum(net)
    errors, seconds, entries = np.zeros((ROWS, 3)), np.zeros((ROWS, 3)), 0.0
    for seed in range(ROWS):
        row = observed(net, case.observed, seed)
        factors = question(net, row)
        names = [n for n in factors.cards if n in net]
        entries = exact_entries(factors)
        truth = {n: one[0] for n, one in net.marginals({n: [net.states(n)[s]] for n, s in row.items()}).items()}
        truth = {n: truth[n] for n in names}
        methods: list[Callable[[], Answer]] = [
            lambda row=row, entries=entries: ours(net, row, entries * SHARE_OF_EXACT),
            lambda row=row, names=names: theirs(peer, pyagrum.LoopyBeliefPropagation, row, names),
            lambda row=row, names=names: theirs(peer, pyagrum.ImportanceSampling, row, names),
        ]
        for i, method in enumerate(methods):
            start = time.process_time()
            errors[seed, i] = error(method(), truth)
            seconds[seed, i] = time.process_time() - start
    mean, took = errors.mean(axis=0), seconds.mean(axis=0)
    verdict = OK if mean[0] < mean[1:].min() else MISSED
    cells = [f"{one:.5f} ({cpu:.1f} s)" for one, cpu in zip(mean, took, strict=True)]
    return [name, len(net.variables), f"{case.observed:.0%}", f"{entries:.2g}", *cells, verdict]


def main(arguments: list[str]) -> None:
    """Compare, print, and write the page when all networks were run."""
    section = Section(
        "Mean absolute error of all posteriors",
        "ours is the smallest on at least 9 of 10 networks",
        ("network", "nodes", "observed", "exact", "tacit", "loopy propagation", "importance sampling", "verdict"),
    )
    tiny = grid(3)
    ours(tiny, {}, 20)  # compiles the kernels
    for name in arguments or CASES:
        section.add(*compare(name))
        print(" ".join(section.rows[-1]), flush=True)
    print(section.text())
    if not arguments:
        write(PAGE, "Estimates where networks are too wide: measured", INTRO, [section])


if __name__ == "__main__":
    main(sys.argv[1:])
