"""One measurement of `bench.structure`, in a process of its own: `python -m bench.structure_worker`.

It reads a line of JSON that says what to do and writes one or more with what was found so far, so that something is
left of a process that is ended for taking too long.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.networks import leaves, network, widest_root
from tacit import compiler
from tacit.operations import Structured

SECONDS, MEMORY = 60, 8 * 2**30  # of processor time, from when the kernels are warm
NEVER = 2.0  # a share of known entries that no network has
ROWS, FEW_ROWS, MANY_TERMS = 1024, 256, 500_000
REPEATS = 5


def tell(**found: Any) -> None:
    """Report something that was found."""
    print(json.dumps(found), flush=True)


# before the clock starts ----------------------------------------------------------------------------------


def warm() -> None:
    """Use all kernels once, on a small grid that is compiled to a structured program, and on tables."""
    net = tacit.Network()
    late = [[[1, 0], [1, 0]], [[1, 0], [0.01, 0.99]]]
    for i in range(16):
        for j in range(16):
            inner = bool(i and j)
            parents = [(i - 1, j), (i, j - 1)] if inner else []
            net.add(f"{i} {j}", [f"{k} {m}" for k, m in parents], cpt=late if inner else [0.1, 0.9])
    assert is_structured(tacit.compile(net, "15 15"))
    tacit.compile(net, None, given={"15 15": "true"}).log_evidence()
    tacit.compile(net, "0 1", ["15 15"], engine="tape").posterior({"15 15": 0.3})
    tacit.compile(tacit.examples.abc(), "B", ["A"], engine="tape").posterior({"A": 0.3})


def limit() -> None:
    """End this process when it takes too much."""
    spent = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def is_structured(tac: tacit.TAC) -> bool:
    """Whether diagrams were cheaper than tables."""
    return any(isinstance(operation, Structured) for operation in tac.program)


# states known when the query is compiled ------------------------------------------------------------------


def given(folder: str, instance: Mapping[str, Any]) -> None:
    """Compile and answer one published question."""
    limit()
    start = time.perf_counter()
    net = tacit.read(Path(folder) / instance["network"])
    read = time.perf_counter()
    if instance.get("goal"):
        name, state = instance["goal"]
        tac = tacit.compile(net, name, given=instance["evidence"])
        answer = float(tac.posterior()[0, net.states(name).index(state)])
    else:
        tac = tacit.compile(net, None, given=instance["evidence"])
        answer = math.exp(tac.log_evidence()[0])
    seconds = time.perf_counter() - read
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tell(answer=answer, seconds=seconds, read=read - start, structured=is_structured(tac), megabytes=memory)


# soft evidence --------------------------------------------------------------------------------------------


def soft(folder: str, instance: Mapping[str, Any] | None, tables: bool) -> None:
    """A row of likelihoods for the variables observed in an instance, or for all leaves of pathfinder.

    The first row has the states of the instance.
    """
    if tables:
        compiler.KNOWN_SHARE = NEVER
    if instance is None:
        net = network("pathfinder")
        query, observed = widest_root(net), leaves(net)
        evidence = likelihoods(net, observed)
    else:
        net = tacit.read(Path(folder) / instance["network"])
        query, observed = None, list(instance["evidence"])
        evidence = likelihoods(net, observed)
        for name, state in instance["evidence"].items():
            evidence[name][0] = [float(label == state) for label in net.states(name)]
    limit()
    start = time.perf_counter()
    tac = tacit.compile(net, query, observed, engine="tape", threads=1)
    seconds = time.perf_counter() - start
    terms = tac.engine().tape.work  # type: ignore[attr-defined]
    tell(seconds=seconds, structured=is_structured(tac), terms=terms)
    rows = FEW_ROWS if terms > MANY_TERMS else ROWS
    part = {name: column[:rows] for name, column in evidence.items()}
    answers = tac.log_evidence(part)
    spent = [timed(lambda: tac.log_evidence(part)) for _ in range(REPEATS)]
    tell(per_row=statistics.median(spent) / rows, answers=answers[:FEW_ROWS].tolist())


def likelihoods(net: tacit.Network, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Random ones, the same in every process."""
    rng = np.random.default_rng(1)
    return {name: rng.dirichlet(np.ones(len(net.states(name))), ROWS) for name in names}


# ordinary networks ----------------------------------------------------------------------------------------


def ordinary(name: str) -> None:
    """The same query with and without a look for structure, in turns: seconds to compile, and for each row."""
    net = network(name)
    query = widest_root(net)
    observed = [leaf for leaf in leaves(net) if leaf != query]
    shares = {"on": compiler.KNOWN_SHARE, "off": NEVER}
    compiling: dict[str, list[float]] = {side: [] for side in shares}
    tacs: dict[str, tacit.TAC] = {}

    def compiled(side: str) -> None:
        compiler.KNOWN_SHARE = shares[side]
        tacs[side] = tacit.compile(net, query, observed, engine="tape", threads=1)

    for _ in range(REPEATS):
        for side in shares:
            compiling[side].append(timed(lambda side=side: compiled(side)))
    rows = FEW_ROWS if tacs["off"].program.cost.multiply_adds > MANY_TERMS else ROWS
    evidence = {n: column[:rows] for n, column in likelihoods(net, observed).items()}
    answers = {side: tac.posterior(evidence) for side, tac in tacs.items()}
    spent: dict[str, list[float]] = {side: [] for side in shares}
    for _ in range(2 * REPEATS):
        for side, tac in tacs.items():
            spent[side].append(timed(lambda tac=tac: tac.posterior(evidence)) / rows)
    tell(
        structured=is_structured(tacs["on"]),
        compiling={side: statistics.median(times) for side, times in compiling.items()},
        per_row={side: statistics.median(times) for side, times in spent.items()},
        difference=float(np.abs(answers["on"] - answers["off"]).max()),
    )


def timed(run: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


TASKS: dict[str, Callable[..., None]] = {"given": given, "soft": soft, "ordinary": ordinary}


def main() -> None:
    """Do what a line of input says."""
    request = json.loads(sys.stdin.readline())
    warm()
    try:
        TASKS[request.pop("task")](**request)
    except tacit.TooLargeError as error:
        tell(refused=str(error))
    except MemoryError:
        tell(refused=f"more than {MEMORY / 2**30:.0f} GB")


if __name__ == "__main__":
    main()
