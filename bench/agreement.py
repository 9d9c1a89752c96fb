"""Do we agree with pyAgrum on real networks? 50 rows of evidence on each, as far as both sides can compile it.

`python -m bench agreement alarm child` runs some networks only. A third of the variables has evidence: once likelihoods
only, once half of them states drawn from the network. The query is the root with the most descendants, which evidence
on them reaches. Every network has a process of its own with a limit on its memory, so that one that does not fit is a
row of the table and not the end of the run.
"""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tests.pyagrum_peer import likelihood_rows, posteriors

import tacit
from bench.inference import sample
from bench.networks import NAMES, network, widest_root
from bench.tables import Section, at_most, write
from tacit.io.bridges.pyagrum import to_pyagrum

ROWS = 50
SECONDS = 120.0  # after which pyAgrum is asked no more
MEMORY = 12 * 2**30
TOLERANCE = 1e-9
NO_MEMORY = f"needs more than {MEMORY >> 30} GiB"
PAGE = Path(__file__).parent.parent / "docs" / "bench-agreement.md"


@dataclass(frozen=True)
class Case:
    """A query with its evidence, which is never impossible."""

    net: tacit.Network
    query: str
    hard: dict[str, list[Any]]
    soft: dict[str, np.ndarray]

    @classmethod
    def random(cls, net: tacit.Network, mixed: bool) -> Case:
        """Random evidence: likelihoods, half of them replaced by states if it is to be mixed."""
        rng, query = np.random.default_rng(0), widest_root(net)
        drawn, names = sample(net, ROWS, rng), rng.permutation([n for n in net if n != query]).tolist()
        count = max(2, len(net) // 3)
        observed = count // 2 if mixed else 0
        hard = {n: [net.states(n)[i] for i in drawn[n]] for n in names[:observed]}
        soft = {n: rng.uniform(0.05, 1, (ROWS, len(net.states(n)))) for n in names[observed:count]}
        return cls(net, query, hard, soft)

    @property
    def evidence(self) -> dict[str, Any]:
        """All columns."""
        return self.hard | self.soft


def measure(name: str, mixed: bool) -> list[Any]:
    """The cells of one row: a network, with evidence of one kind."""
    case = Case.random(network(name), mixed)
    about = [name, len(case.net), case.query, len(case.hard), len(case.soft)]
    start = time.perf_counter()
    try:
        tac = tacit.compile(case.net, case.query, list(case.soft), list(case.hard))
        ours = tac.posterior(case.evidence)
    except tacit.TooLargeError as error:
        return [*about, *["-"] * 6, str(error).split(",")[0]]
    spent = time.perf_counter() - start
    theirs, peer_spent = peer_answers(case)
    figures = [
        tac.program.cost.width,
        f"{spent:.1f} s",
        f"{peer_spent:.1f} s",
        len(theirs),
        f"{np.ptp(ours, 0).max():.1g}",
    ]
    if not len(theirs):
        return [*about, *figures, "-", f"pyAgrum {NO_MEMORY}"]
    difference = float(np.abs(ours[: len(theirs)] - theirs).max())
    return [*about, *figures, f"{difference:.1e}", at_most(difference, TOLERANCE)]


def peer_answers(case: Case) -> tuple[np.ndarray, float]:
    """As many of pyAgrum's answers as it gives within its time, and that time."""
    rows = likelihood_rows(case.net, case.evidence)
    found: list[np.ndarray] = []
    start = time.perf_counter()
    try:
        for answer in posteriors(to_pyagrum(case.net), case.query, rows):
            found.append(answer)
            if time.perf_counter() - start > SECONDS:
                break
    except MemoryError:
        pass
    return np.array(found), time.perf_counter() - start


def limited(name: str, mixed: bool) -> list[Any]:
    """`measure` in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), _limit_memory) as pool:
        try:
            return pool.submit(measure, name, mixed).result()
        except (BrokenProcessPool, MemoryError):
            return [name, len(network(name)), *["-"] * 9, NO_MEMORY]


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(arguments: list[str]) -> None:
    """Compare, print, and write the page when all networks were run."""
    section = Section(
        f"{ROWS} rows of random evidence against pyAgrum",
        f"the largest difference of two posteriors is at most {TOLERANCE:g}",
        ("network", "nodes", "query", "hard", "soft", "width", "tacit", "pyAgrum", "rows", "spread",
         "largest difference", "verdict"),
    )  # fmt: skip
    for name in arguments or NAMES:
        for mixed in (False, True):
            section.add(*limited(name, mixed))
            print(" ".join(section.rows[-1]), flush=True)
    print(section.text())
    if not arguments:
        write(PAGE, "Agreement with pyAgrum: measured", INTRO, [section])


INTRO = """Made by `python -m bench agreement`. "spread" is how far the posterior moves from row to row: where it is 0,
agreement would say nothing. The times, which include compiling, are of one run on a busy machine and say little. A
network too wide for one side is listed with the reason."""


if __name__ == "__main__":
    main(sys.argv[1:])
