"""`engine="auto"` that changes its runner before every call, asked by one thread or by eight: right every time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tacit
from tests import exact
from tests.fuzz import extreme
from tests.fuzz.ordinary import ROWS, Columns, likelihoods_of, network, random_columns
from tests.switching import forced

CODED, WITH_CODE = 0.15, 4  # the share of trials, and one of so many of their queries, with code among the runners
TURNS = 3  # as many as there are runners
THREADED = 0.1  # the share of trials with eight threads
TOLERANCE = 1e-10
Answers = dict[str, np.ndarray]


def check_switches(rng: np.random.Generator) -> str:
    """One query, asked all it can be asked, again and again; what is wrong, if anything is."""
    net = network(rng)
    query = str(rng.choice(net.variables))
    columns, certain = random_columns(rng, net)
    rows = [{n: likelihoods_of(net, n, column[i]) for n, column in columns.items()} for i in range(ROWS)]
    right = [exact.query(net, query, {n: v for n, v in row.items() if v is not None}) for row in rows]
    if min(r.nearest for r in right) < extreme.MARGIN:
        return ""
    hard = [n for n in certain if rng.random() < 0.5]
    with warnings.catch_warnings(action="ignore", category=UserWarning), pytest.MonkeyPatch.context() as patch:
        forced(patch, WITH_CODE if rng.random() < CODED else 10**9)
        tac = tacit.compile(net, query, list(columns), hard)
        if rng.random() < THREADED:
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: _asked(tac, columns), range(8)))
        else:
            answers = [_asked(tac, columns) for _ in range(TURNS)]
    # the posterior is compared with the definition, all else with what another runner said
    expected = answers[-1] | _definition(net, query, right)
    for turn, answer in enumerate(answers):
        for what, value in expected.items():
            if not np.allclose(answer[what], value, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                return f"{what} of {query}, turn {turn}, hard {hard}: {answer[what].tolist()}, right {value.tolist()}"
    return ""


def _definition(net: tacit.Network, query: str, right: list[Any]) -> Answers:
    """What enumeration in exact numbers says."""
    states = len(net.states(query))
    posterior = np.array([r.posterior if r.possible else [np.nan] * states for r in right])
    return {"posterior": posterior, "marginal": posterior}


def _asked(tac: tacit.TAC, columns: Columns) -> Answers:
    questions: list[Callable[[], Answers]] = [
        lambda: {"posterior": _for_all_rows(tac.posterior(columns))},
        lambda: {"evidence": tac.log_evidence(columns)},
        lambda: {"marginal": _for_all_rows(tac.marginals(columns)[str(tac.query)])},
        lambda: {f"information of {n}": v for n, v in tac.information(columns).items()},
        lambda: {"best": tac.mpe(columns).log_probability},
        lambda: _gradients(tac, columns),
    ]
    found: Answers = {}
    for question in questions:
        found |= question()
    return found


def _for_all_rows(found: np.ndarray) -> np.ndarray:
    """Without any evidence there is one row."""
    return np.broadcast_to(found, (ROWS, found.shape[1]))


def _gradients(tac: tacit.TAC, columns: Columns) -> Answers:
    """Derivatives of the logarithm of the probability of all possible rows."""
    engine, known = tac.engine(), tac.read(columns)
    found = engine.run(known.columns, known.rows)
    total = found.joint.sum(axis=0)
    seeds = np.where(total > 0, 1 / np.where(total > 0, total, 1.0), 0.0)
    by = engine.gradients(known.columns, known.rows, seeds, found.exponent)
    tables = {key: (tac.numbers()[0][key], by.tables[key]) for key in by.tables if key[1] != "thresholds"}
    # known 0s and 1s, which never change, are left out by some runners
    counts = {
        f"by {n} {p}": np.multiply(own, d, out=np.zeros_like(own), where=(own > 0) & (own < 1))
        for (n, p), (own, d) in tables.items()
    }
    return counts | {"by likelihoods": np.sum([v.sum() for v in by.likelihoods.values()] or [0.0])}
