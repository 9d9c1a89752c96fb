"""The command bench: how fast a query is on this machine."""

from __future__ import annotations

import time
import warnings
from typing import Annotated, Any

import numpy as np
import typer

import tacit
from tacit.base.text import listed
from tacit.cli.shared import completion
from tacit.cli.shared.arguments import Json, Model, Query, read_network
from tacit.cli.shared.output import aligned, asked, heading, show_json
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.query.network import Network
from tacit.query.tac import TAC

ROW_COUNTS = (1, 1_000, 100_000)
MAX_SECONDS = 10.0  # above which a measurement is left out
REPEAT_SECONDS = 0.5  # in which one is repeated, for the fastest time


def bench(
    model: Model,
    query: Query,
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence",
            "-e",
            metavar="VARIABLE",
            help="Evidence on it; on all leaves, if left out.",
            autocompletion=completion.variables,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure how fast a query is on this machine.

    Random evidence, soft and hard, on 1, 1,000 and 100,000 rows at once. Continuous variables have numbers in both.

    \b
    Examples:
      tacit bench alarm.bif -q LVFAILURE
      tacit bench alarm.bif -q LVFAILURE -e HISTORY -e CVP
    """
    net = read_network(model)
    parents = {parent for name in net for parent in net.parents(name)}
    observed = evidence or [name for name in net if name not in parents and name != query]
    columns = [name for name in observed if net.variable(net.named(name)).continuous]
    states = [name for name in observed if name not in columns]
    soft_tac, hard_tac = tacit.compile(net, query, observed), tacit.compile(net, query, columns, hard=states)
    rng, numbers = np.random.default_rng(0), _numbers(net, columns)
    likelihoods = {n: rng.dirichlet(np.ones(len(net.states(n))), ROW_COUNTS[-1]) for n in states}
    soft, hard = _speeds(soft_tac, likelihoods | numbers), _speeds(hard_tac, _states(net, states) | numbers)
    if json:
        return show_json({"query": query, "evidence": observed, "soft": soft, "hard": hard})
    heading(asked(query, [listed(observed)]))
    shown = [(f"{rows:,}", _shown(soft.get(rows)), _shown(hard.get(rows))) for rows in ROW_COUNTS]
    print(aligned([("rows at once", "soft evidence, rows/s", "hard evidence, rows/s"), *shown], stubs=0))


def _speeds(tac: TAC, evidence: dict[str, Any]) -> dict[int, float]:
    """Rows per second by the number of rows at once, as far as it does not take too long."""
    speeds: dict[int, float] = {}
    for rows in ROW_COUNTS:
        if not speeds or rows / max(speeds.values()) <= MAX_SECONDS:
            speeds[rows] = rows / _fastest(tac, {name: column[:rows] for name, column in evidence.items()})
    return speeds


def _fastest(tac: TAC, evidence: dict[str, Any]) -> float:
    """The fewest seconds of some runs; the first, in which kernels are loaded, does not count."""
    spent: list[float] = []
    with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
        tac.posterior(evidence)
        while not spent or sum(spent) < REPEAT_SECONDS:
            start = time.perf_counter()
            tac.posterior(evidence)
            spent.append(time.perf_counter() - start)
    return min(spent)


def _numbers(net: Network, names: list[str]) -> dict[str, Any]:
    """Numbers of continuous variables, or of columns of theirs, as the network draws them."""
    drawn = net.sample(ROW_COUNTS[-1]) if names else {}
    return {column: drawn[column] for name in names for column in net.variable(net.named(name)).columns}


def _states(net: Network, names: list[str]) -> dict[str, Any]:
    """Labels as a Parquet file holds them: text is dictionary-encoded."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    columns = {}
    for name in names:
        states = net.states(name)
        codes = rng.integers(len(states), size=ROW_COUNTS[-1])
        text = all(isinstance(label, str) for label in states)
        columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(states)) if text else np.array(states)[codes]
    return columns


def _shown(speed: float | None) -> str:
    return "takes long" if speed is None else f"{speed:,.0f}"
