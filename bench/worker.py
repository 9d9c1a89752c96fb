"""A process that waits to be asked how long something takes: `python -m bench.worker`.

It runs with the `tacit` that it finds, which may be that of an older commit: nothing used here is younger than that.
Requests and replies are lines of JSON. `bench.sides` starts it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import tacit
from bench.networks import leaves, scaled, widest_root

try:
    from tacit.learn.fitting import optimizers
    from tacit.learn.fitting.data import read_data
    from tacit.learn.fitting.objective import Objective
    from tacit.learn.fitting.parameters import Parameters
except ModuleNotFoundError:  # the other side is a checkout from before there were rooms
    from tacit.learn.data import read_data
    from tacit.learn.objective import Objective
    from tacit.learn.parameters import Parameters

    optimizers = import_module(f"tacit.learn.optimi{'z' if find_spec('tacit.learn.optimizers') else 's'}ers")

DRAWN = 20_000  # rows drawn from a network, from which longer tables are put together
TESTS, GAMMA, RATE = 4, 16.0, 1e-3  # as in bench.learning
Rows = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Something to be done again and again, and what it answers."""

    run: Callable[[], Any]
    answer: Callable[[], np.ndarray]


# evidence -------------------------------------------------------------------------------------------------


def observed(net: tacit.Network) -> list[str]:
    """What is observed: all leaves, but not the query."""
    return [name for name in leaves(net) if name != widest_root(net)]


def likelihoods(net: tacit.Network, rows: int, dtype: str) -> Rows:
    """Random likelihoods (rows, states) of all that is observed, the same in every process."""
    rng, found = np.random.default_rng(1), {}
    for name in observed(net):
        table = rng.random((rows, len(net.states(name)))) + 1e-3
        found[name] = (table / table.sum(axis=1, keepdims=True)).astype(dtype)
    return found


def drawn(net: tacit.Network, rows: int) -> dict[str, np.ndarray]:
    """States of rows drawn from the network, by their numbers, so that none is impossible."""
    rng = np.random.default_rng(2)
    found: dict[str, np.ndarray] = {}
    for name in net:
        table = net.table(name)[tuple(found[p] for p in net.parents(name))]
        chances = np.broadcast_to(table, (DRAWN, table.shape[-1])).cumsum(axis=1)
        found[name] = (rng.random((DRAWN, 1)) > chances).sum(axis=1).clip(max=chances.shape[1] - 1)
    chosen = rng.integers(0, DRAWN, rows)
    return {name: found[name][chosen] for name in observed(net)}


def categories(states: Sequence[str], codes: np.ndarray) -> pd.Categorical:
    """As pandas makes them of text, in alphabetical order."""
    order = np.argsort(states)
    return pd.Categorical.from_codes(np.argsort(order)[codes], np.array(states, dtype=object)[order])


def dictionary(states: Sequence[str], codes: np.ndarray) -> pa.DictionaryArray:
    """As pyarrow makes them of text, in the order in which they come."""
    return pa.array(states).take(pa.array(codes)).dictionary_encode()


CONTAINERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "pandas category": (categories, pd.DataFrame),
    "pyarrow dictionary": (dictionary, pa.table),
}


def framed(net: tacit.Network, rows: int, container: str) -> Any:
    """Rows drawn from the network in a frame of labels."""
    column, frame = CONTAINERS[container]
    return frame({name: column(net.states(name), codes) for name, codes in drawn(net, rows).items()})


# cases ----------------------------------------------------------------------------------------------------


def soft(name: str, rows: int, dtype: str) -> Case:
    """Posteriors from likelihoods of all leaves."""
    net = scaled(name)
    tac = tacit.compile(net, widest_root(net), observed(net), dtype=dtype)
    return _posterior(tac, likelihoods(net, rows, dtype))


def hard(name: str, rows: int, container: str, role: str, dtype: str) -> Case:
    """Posteriors from the states of all leaves, named in `evidence` or in `hard`."""
    net = scaled(name)
    tac = tacit.compile(net, widest_root(net), **{role: observed(net)}, dtype=dtype)
    return _posterior(tac, framed(net, rows, container))


def _posterior(tac: tacit.TAC, evidence: Any) -> Case:
    return Case(lambda: tac.posterior(evidence), lambda: tac.posterior(evidence))


def step(rows: int, dtype: str) -> Case:
    """A step of learning as in `bench.learning`: loss, gradient and an update by Adam."""
    x = np.random.default_rng(0).random((rows, 2))
    y = 0.1 + 0.8 * np.exp(-8 * ((x - 0.5) ** 2).sum(axis=1))
    objective, weights = _objective(tacit.examples.layer(TESTS, gamma=GAMMA), "Q", ["E1", "E2"], (x, y), dtype)
    state, adam = optimizers.State(weights), optimizers.Adam(RATE, batch=rows, total=10**9, clip=None)
    return Case(lambda: adam.advance(objective, state, 1), lambda: _flat(*objective.value_and_gradient(weights)))


def gradients(name: str, rows: int, dtype: str) -> Case:
    """The loss of rows of soft evidence, and its derivatives by all tables of a network."""
    net = scaled(name, learn=True)
    query, x = widest_root(net), likelihoods(net, rows, dtype)
    y = np.random.default_rng(3).dirichlet(np.ones(len(net.states(query))), rows)
    objective, weights = _objective(net, query, observed(net), (x, y), dtype)
    return Case(lambda: objective.value_and_gradient(weights), lambda: _flat(*objective.value_and_gradient(weights)))


def _objective(
    net: tacit.Network, query: str, evidence: list[str], data: tuple[Any, Any], dtype: str
) -> tuple[Objective, np.ndarray]:
    parameters = Parameters(net, net.variables)
    weights = parameters.start(np.random.default_rng(0))
    tac = tacit.compile(parameters.fill(weights), query, evidence, dtype=dtype)
    return Objective(parameters, tac.engine(), read_data(tac, *data, None), "mse"), weights


def _flat(loss: float, gradient: np.ndarray) -> np.ndarray:
    """The loss and its gradient, the latter in parts of its largest entry."""
    return np.concatenate([[loss], gradient / np.abs(gradient).max()])


CASES: dict[str, Callable[..., Case]] = {"soft": soft, "hard": hard, "step": step, "gradients": gradients}


# requests -------------------------------------------------------------------------------------------------


def seconds(run: Callable[[], Any]) -> float:
    """How long a run takes now."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def serve() -> None:
    """Answer requests, one at a time, until there are no more."""
    case = None
    for line in sys.stdin:
        request = json.loads(line)
        if "case" in request:
            case = None  # its rows make room for the next ones
            case = CASES[request.pop("case")](**request)
            reply = seconds(case.run)
        elif "answer" in request:
            np.save(request["answer"], case.answer())
            reply = 0.0
        else:
            reply = statistics.median(seconds(case.run) for _ in range(request["repeats"]))
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
