"""One network of `bench.uai`, in a process of its own: `python -m bench.uai_worker FILE SECONDS`.

`FILE` is a network whose evidence and answer are in the files of the same name with `.evid` and `.MAR` behind it.
Standard output gets a line of JSON for every step: the distance of uniform marginals to the answer, then what was
found, so that something is left of a process that is ended for taking too long.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.io.formats import uai

MEMORY = 8 * 2**30  # of address space
WITHIN = 0.01  # the width of intervals that is narrow enough
SHARE = 0.42  # of the time may be spent on intervals: before them, an exact answer is looked for
DIGITS = 1e-6  # within which the published answers are right

Vectors = Sequence[NDArray[np.float64]]  # a distribution for every variable
Net = tacit.Network | tacit.FactorGraph


def limit(seconds: int) -> None:
    """End this process when it takes more than this."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class Found(NamedTuple):
    """The posteriors of all variables, and the ends of their intervals, which are the same where they are exact."""

    low: Vectors
    high: Vectors
    estimate: Vectors
    exact: bool

    def widths(self) -> NDArray[np.float64]:
        """The largest width over the states of every variable."""
        return np.array([(high - low).max() for low, high in zip(self.low, self.high, strict=True)])

    def outside(self, expected: Vectors) -> int:
        """How many variables have an expected posterior that is not in its interval."""
        ends = zip(self.low, self.high, expected, strict=True)
        return sum(bool(((p < low - DIGITS) | (p > high + DIGITS)).any()) for low, high, p in ends)


def marginals(net: Net, evidence: Mapping[str, Any], seconds: int) -> Found:
    """The posteriors of all variables, exact ones where these can be had in the time."""
    tac = tacit.compile(net, None, given=evidence, within=WITHIN, seconds=SHARE * seconds)
    if tac.exact:
        answers = tac.marginals()
        exact = [answers[name][0] for name in net]
        return Found(exact, exact, exact, True)
    intervals = tac.marginal_intervals()
    each = [intervals[name] for name in net]
    return Found([own.low[0] for own in each], [own.high[0] for own in each], [own.estimate[0] for own in each], False)


def answers(path: Path) -> list[NDArray[np.float64]]:
    """The marginals in a file of the competition: `MAR`, then for every variable its number of states, and these."""
    words = iter(path.read_text(encoding="utf-8").split())
    if (first := next(words)) != "MAR":
        raise ValueError(f"{path.name} begins with {first!r}, expected 'MAR'")

    def vector(words: Iterator[str]) -> NDArray[np.float64]:
        return np.array([float(next(words)) for _ in range(int(next(words)))])

    return [vector(words) for _ in range(int(next(words)))]


def distance(found: Vectors, expected: Vectors) -> float:
    """The mean over all variables of the Hellinger distance."""
    squares = [((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2 for p, q in zip(found, expected, strict=True)]
    return float(np.sqrt(squares).mean())


def tell(**found: Any) -> None:
    """Report something that was found."""
    print(json.dumps(found), flush=True)


def main(file: str, seconds: str) -> None:
    """Answer one network, and tell how far the answers are from the published ones."""
    limit(int(seconds))
    path = Path(file)
    expected = answers(path.with_name(f"{path.name}.MAR"))
    tell(uniform=distance([np.full(len(p), 1 / len(p)) for p in expected], expected), widths=[1.0] * len(expected))
    start = time.process_time()
    try:
        net = tacit.read(path)
        evidence = uai.parse_evidence(path.with_name(f"{path.name}.evid").read_bytes(), path.name, net)
        found = marginals(net, evidence, int(seconds))
    except tacit.TooLargeError as error:
        tell(refused=str(error), seconds=time.process_time() - start)
        return
    except MemoryError:
        tell(refused=f"more than {MEMORY / 2**30:.0f} GB", seconds=time.process_time() - start)
        return
    seconds_taken = time.process_time() - start
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    off = distance(found.estimate, expected)
    tell(distance=off, exact=found.exact, seconds=seconds_taken, megabytes=megabytes)
    tell(outside=found.outside(expected), widths=found.widths().tolist())


if __name__ == "__main__":
    main(*sys.argv[1:])
