"""One measurement of `bench.structure`, in a process of its own: `python -m bench.structure_worker`.

It reads a line of JSON that says what to do and writes one or more with what was found so far, so that something is
left of a process that is ended for taking too long.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.networks import leaves, network, widest_root
from tacit.compiler import strategy
from tacit.compiler.operations import Structured

SECONDS, MEMORY = 60, 8 * 2**30  # of processor time, from when the kernels are warm
SIDE = 16  # of a small grid
SHARES = {"on": strategy.KNOWN_SHARE, "off": 2.0}  # of known entries where structure is looked for: none has the latter
ROWS, TURNS = 1024, 25
TURN = 0.03  # seconds that a turn takes at least
FEW_ROWS, FEW_TURNS, MANY_TERMS = 256, 5, 500_000  # where a row takes long


def tell(**found: Any) -> None:
    """Report something that was found."""
    print(json.dumps(found), flush=True)


# before the clock starts ----------------------------------------------------------------------------------


def warm() -> None:
    """Use all kernels once, on a grid of gates, which is compiled to structured programs, and on tables."""
    net = tacit.Network()
    either = [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]
    for i in range(SIDE):
        for j in range(SIDE):
            parents = [f"{i - 1} {j}", f"{i} {j - 1}"] if i and j else []
            net.add(f"{i} {j}", parents, cpt=either if parents else [0.1, 0.9])
    last = f"{SIDE - 1} {SIDE - 1}"
    fixed, rows = tacit.compile(net, "0 1", given={last: "true"}), tacit.compile(net, "0 1", [last], engine="tape")
    assert is_structured(fixed)
    assert is_structured(rows)
    fixed.posterior()
    rows.posterior({last: 0.3})
    tacit.compile(tacit.examples.abc(), "B", ["A"], engine="tape").posterior({"A": 0.3})


def limit() -> None:
    """End this process when it takes too much from now on."""
    most = math.ceil(time.process_time()) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
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


def soft(folder: str, instance: Mapping[str, Any] | None) -> None:
    """Likelihoods of the variables observed in an instance, or of all leaves of pathfinder; diagrams, then tables.

    The first row has the states of the instance.
    """
    if instance is None:
        net = network("pathfinder")
        query, observed = widest_root(net), leaves(net)
    else:
        net = tacit.read(Path(folder) / instance["network"])
        query, observed = None, list(instance["evidence"])
    evidence = likelihoods(net, observed)
    for name, state in (instance or {"evidence": {}})["evidence"].items():
        evidence[name][0] = [float(label == state) for label in net.states(name)]
    few = {name: column[:FEW_ROWS] for name, column in evidence.items()}
    tacs: dict[str, tacit.TAC] = {}
    answers = {}
    for side, share in SHARES.items():
        limit()
        strategy.KNOWN_SHARE = share
        start = time.perf_counter()
        tacs[side] = tac = tacit.compile(net, query, observed, engine="tape", threads=1)
        compiling = time.perf_counter() - start
        terms = tac.engine().tape.work  # type: ignore[attr-defined]
        found = {"compiling": compiling, "terms": terms, "structured": is_structured(tac)}
        tell(**{side: found})
        answers[side] = tac.log_evidence(few)
        seconds = timed(lambda tac=tac: tac.log_evidence(few)) / FEW_ROWS
        tell(**{side: found | {"per_row": seconds, "answer": float(answers[side][0])}})
    tell(turns=in_turns(tacs, evidence), difference=float(np.abs(answers["on"] - answers["off"]).max()))


def likelihoods(net: tacit.Network, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Random ones, the same in every process."""
    rng = np.random.default_rng(1)
    return {name: rng.dirichlet(np.ones(len(net.states(name))), ROWS) for name in names}


def in_turns(tacs: Mapping[str, tacit.TAC], evidence: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """Seconds per row of all queries, turn by turn."""
    longest = max(tac.engine().tape.work for tac in tacs.values())  # type: ignore[attr-defined]
    rows, turns = (FEW_ROWS, FEW_TURNS) if longest > MANY_TERMS else (ROWS, TURNS)
    part = {name: column[:rows] for name, column in evidence.items()}
    spent: dict[str, list[float]] = {side: [] for side in tacs}
    once = min(timed(lambda tac=tac: tac.log_evidence(part)) for tac in tacs.values() for _ in range(2))
    runs = max(1, math.ceil(TURN / once))
    for _ in range(turns):
        for side, tac in tacs.items():
            spent[side].append(timed(lambda tac=tac: [tac.log_evidence(part) for _ in range(runs)]) / runs / rows)
    return spent


# ordinary networks ----------------------------------------------------------------------------------------


def ordinary(name: str) -> None:
    """The same query with and without a look for structure: seconds to compile, and for each row."""
    net = network(name)
    query = widest_root(net)
    observed = [leaf for leaf in leaves(net) if leaf != query]
    compiling: dict[str, list[float]] = {side: [] for side in SHARES}
    tacs: dict[str, tacit.TAC] = {}

    def compiled(side: str) -> None:
        strategy.KNOWN_SHARE = SHARES[side]
        tacs[side] = tacit.compile(net, query, observed, engine="tape", threads=1)

    for _ in range(FEW_TURNS):
        for side in SHARES:
            compiling[side].append(timed(lambda side=side: compiled(side)))
    evidence = likelihoods(net, observed)
    few = {n: column[:FEW_ROWS] for n, column in evidence.items()}
    answers = {side: tac.posterior(few) for side, tac in tacs.items()}
    difference = float(np.abs(answers["on"] - answers["off"]).max())
    structured = is_structured(tacs["on"])
    tell(structured=structured, compiling=compiling, turns=in_turns(tacs, evidence), difference=difference)


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
