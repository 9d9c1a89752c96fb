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
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.io.formats import uai

MEMORY = 8 * 2**30  # of address space

Vectors = Sequence[NDArray[np.float64]]  # a distribution for every variable
Net = tacit.Network | tacit.FactorGraph


def limit(seconds: int) -> None:
    """End this process when it takes more than this."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def marginals(net: Net, evidence: Mapping[str, Any], seconds: int) -> tuple[Vectors, bool]:
    """The posteriors of all variables, and whether they are exact."""
    tac = tacit.compile(net, None, given=evidence)
    found = tac.marginals()
    return [found[name][0] for name in net], True


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
    tell(uniform=distance([np.full(len(p), 1 / len(p)) for p in expected], expected))
    start = time.process_time()
    try:
        net = tacit.read(path)
        evidence = uai.parse_evidence(path.with_name(f"{path.name}.evid").read_bytes(), path.name, net)
        found, exact = marginals(net, evidence, int(seconds))
    except tacit.TooLargeError as error:
        tell(refused=str(error), seconds=time.process_time() - start)
        return
    except MemoryError:
        tell(refused=f"more than {MEMORY / 2**30:.0f} GB", seconds=time.process_time() - start)
        return
    seconds_taken = time.process_time() - start
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tell(distance=distance(found, expected), exact=exact, seconds=seconds_taken, megabytes=megabytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
