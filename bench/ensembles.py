"""Answers under many networks: `python -m bench ensembles [part ...] [--against COMMIT]`.

One program with the tables of a thousand networks, beside the same number of rows under one network, in turns in one
process; whether intervals hold what they say, on networks drawn from a prior; and whether queries that ask under one
network have stayed as fast as they were.
"""

from __future__ import annotations

import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.networks import leaves, network, widest_root
from bench.sides import ROOT, Side, checkout, taking_turns
from bench.tables import MISSED, OK, Section, at_least, at_most, run_parts
from tacit.query import under_draws

PAGE = Path(__file__).parent.parent / "docs" / "bench-ensembles.md"
BEFORE = "277a325"  # the last commit without ensembles
INTRO = f"""One compiled query, answered under many networks; `python -m bench ensembles` writes this page. Sides take
turns, on two cores, and ratios are medians of turns. The commit before ensembles is `{BEFORE}`."""
AGREES, SHARE, NO_SLOWER = 1e-12, 0.5, 1.02
NETWORK, DRAWS, ROWS, MANY, TURNS = "alarm", 1000, 1000, 10**6, 9
ROUNDS = 5  # of turns with the older commit: the bar is less than the noise of one
NETWORKS, QUERIES, CASES, LEVEL, FEW_ROWS = 400, 2, 4, 0.9, 100  # of the coverage
COVERAGE = {"draws": (0.88, 0.92), "delta": (0.85, 0.95)}


def estimated(rows: int = 2000) -> tuple[tacit.learn.Estimate, str, list[str]]:
    """An estimate of alarm, its widest root, and its leaves."""
    net = network(NETWORK)
    found = tacit.estimate(net.learnable(), net.sample(rows, seed=1), prior=1.0, progress=False)
    return found, widest_root(net), leaves(net)


def agreement() -> list[Section]:
    """Answers under an ensemble beside a loop over its networks."""
    section = Section(
        "1. Agreement", f"{AGREES:g} beside a loop over single networks",
        ("query", "networks", "rows", "engine", "largest difference", "verdict"),
    )  # fmt: skip
    found, query, observed = estimated()
    ensemble, rows = found.draws(50, seed=2), network(NETWORK).sample(200, seed=3)
    evidence = {name: rows[name] for name in observed}
    for engine in ("auto", "numpy", "tape", "native", "torch"):
        tac = tacit.compile(found.network, query, observed, engine=engine)
        answers = tac.posterior(evidence, tables=ensemble)
        loop = np.stack([tac.with_network(own).posterior(evidence) for own in ensemble])
        error = float(np.abs(answers - loop).max())
        section.add(query, len(ensemble), len(loop[0]), engine, f"{error:.0e}", at_most(error, AGREES))
    return [section]


def in_turns(sides: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """The seconds that each side takes, turn by turn, after a first one."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(-1, TURNS):
        for name, ask in sides.items():
            start = time.perf_counter()
            ask()
            if turn >= 0:
                spent[name].append(time.perf_counter() - start)
    return spent


def throughput() -> list[Section]:
    """Answers a second, under one network and under many."""
    section = Section(
        f"2. Speed: {NETWORK}, leaves observed",
        f"{SHARE:.0%} of the answers a second of {MANY:,} rows under one network",
        ("question", "networks", "rows", "million answers a second", "share", "verdict"),
    )
    found, query, observed = estimated()
    drawn = network(NETWORK).sample(MANY, seed=2)
    ensemble, tac = found.draws(DRAWS), tacit.compile(found.network, query, observed)
    many = tac.read({name: drawn[name] for name in observed})
    few = tac.read({name: drawn[name][:ROWS] for name in observed})
    spent = in_turns({
        "one": lambda: tac.posterior(many),
        "posterior": lambda: tac.posterior(few, tables=ensemble),
        "credible": lambda: tac.credible(few, ensemble),
        "delta": lambda: tac.credible(few, ensemble, method="delta"),
    })  # fmt: skip
    answers = {"one": MANY, "posterior": DRAWS * ROWS, "credible": DRAWS * ROWS}
    shown = {"one": "posterior", "posterior": "posterior(tables=)", "credible": "credible"}
    for name, count in answers.items():
        share = statistics.median(a / b for a, b in zip(spent["one"], spent[name], strict=True)) * count / MANY
        rate, networks = count / statistics.median(spent[name]) / 1e6, 1 if name == "one" else DRAWS
        verdict = "" if name != "posterior" else at_least(share, SHARE)
        section.add(shown[name], networks, count // networks, f"{rate:.1f}", f"{share:.0%}", verdict)
    delta = statistics.median(spent["delta"])
    section.notes.append(
        f'`credible(..., method="delta")` takes {delta:.2f} s for these {ROWS:,} rows, and the draws themselves '
        f"{min(in_turns({'draws': lambda: found.draws(DRAWS)})['draws']):.2f} s. What is worked on at a time holds "
        f"{under_draws.ANSWERS_AT_ONCE:,} probabilities at most, whatever the numbers of networks and rows are."
    )
    return [section]


def drawn_network(rng: np.random.Generator) -> tacit.Network:
    """A network of 8 nodes with 2 or 3 states and up to 2 parents, whose rows are uniform on the simplex."""
    net = tacit.Network()
    for i in range(8):
        parents = [f"X{j}" for j in rng.permutation(i)[: rng.integers(0, 3)]]
        states = int(rng.integers(2, 4))
        table = rng.dirichlet(np.ones(states), [len(net.states(p)) for p in parents])
        net.add(f"X{i}", parents, states=states, cpt=table)
    return net


def held(net: tacit.Network, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Whether intervals, after estimating from rows of a network, hold its answers: (cases, methods)."""
    data = net.sample(rows, seed=int(rng.integers(2**32)))
    found = tacit.estimate(net.learnable(), data, prior=1.0, progress=False)
    ensemble = found.draws(DRAWS, seed=int(rng.integers(2**32)))
    hits: list[Any] = []
    for _ in range(QUERIES):
        query, *observed = (f"X{i}" for i in rng.permutation(8)[:4])
        # states that have nothing to do with the true tables, as the prior has
        evidence = {name: rng.integers(len(net.states(name)), size=CASES) for name in observed}
        state = int(rng.integers(len(net.states(query))))
        tac = tacit.compile(net.learnable(), query, observed, engine="tape", effort="low")
        truth = tac.posterior(evidence)[:, state]
        intervals = [tac.credible(evidence, ensemble, LEVEL, method) for method in COVERAGE]
        hits.append([(sure.low[:, state] <= truth) & (truth <= sure.high[:, state]) for sure in intervals])
    return np.concatenate(hits, axis=1).T


def coverage() -> list[Section]:
    """How many intervals hold what the tables that the rows were drawn from answer."""
    bars = ", ".join(f"{low:.0%} to {high:.0%} by {method}" for method, (low, high) in COVERAGE.items())
    section = Section(
        f"3. Coverage of {LEVEL:.0%} intervals", bars,
        ("method", "networks", "rows of data", "intervals", "hold the truth", "error of that", "verdict"),
    )  # fmt: skip
    for rows in (FEW_ROWS, 1000):
        rng = np.random.default_rng(rows)
        shares = np.mean([held(drawn_network(rng), rows, rng) for _ in range(NETWORKS)], axis=1)
        for (method, (low, high)), own in zip(COVERAGE.items(), shares.T, strict=True):
            share, error = float(own.mean()), float(own.std(ddof=1) / np.sqrt(NETWORKS))
            verdict = OK if low <= share <= high else MISSED
            shown = "" if (method, rows) == ("delta", FEW_ROWS) else verdict
            section.add(method, NETWORKS, rows, NETWORKS * QUERIES * CASES, f"{share:.1%}", f"{error:.1%}", shown)
    section.notes.append(
        "Every network, with 8 nodes of 2 or 3 states, is drawn from the prior that it is estimated with, and is asked "
        f"{QUERIES} queries, each given random states of three other nodes, {CASES} times. With 100 rows, most "
        "parents' states are rare, and log-odds are no straight lines: there the delta method has no bar."
    )
    return [section]


def plain(revision: str) -> list[Section]:
    """Answers under one network, in this checkout and in an older one."""
    section = Section(
        "4. Without an ensemble", f"at most {NO_SLOWER:g} of the time before",
        ("network", "rows", "before, ns a row", "now, ns a row", "now / before", "verdict"),
    )  # fmt: skip
    with ExitStack() as stack:
        sides = [Side(tree) for tree in (stack.enter_context(checkout(revision)), ROOT)]
        for side in sides:
            stack.callback(side.close)
        for rows, repeats in ((100_000, 5), (1, 2000)):
            for side in sides:
                side.prepare("hard", name=NETWORK, rows=rows, container="pyarrow dictionary", role="evidence")
                side.finish()
            asks = [partial(side.ask, repeats=repeats) for side in sides]
            rounds = [taking_turns(asks) for _ in range(ROUNDS)]
            before, now = (list(chain.from_iterable(own)) for own in zip(*rounds, strict=True))
            ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
            times = (f"{statistics.median(own) / rows * 1e9:,.0f}" for own in (before, now))
            section.add(NETWORK, rows, *times, f"{ratio:.3f}", at_most(ratio, NO_SLOWER))
    return [section]


def main(arguments: list[str]) -> None:
    """Measure all, and write the page, or only what is named."""
    parser = ArgumentParser(prog="python -m bench ensembles")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--against", default=BEFORE, metavar="COMMIT")
    given = parser.parse_args(arguments)
    parts = {
        "agreement": agreement,
        "throughput": throughput,
        "coverage": coverage,
        "plain": partial(plain, given.against),
    }
    run_parts(given.parts, parts, PAGE, "Benchmark: answers under many networks", INTRO)
