"""Random networks, engines, dtypes, efforts and containers of evidence, against the definition."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import tacit
from tacit import semantics
from tacit.model.model import SELECTIONS
from tests import exact
from tests.fuzz import extreme

ENGINES = ("auto", "native", "numpy", "tape", "torch")
ROWS = 6
SMALLEST = -600.0  # log p of the rows that the definition, which enumerates in float64, can hold
Columns = dict[str, Any]


def check_query(rng: np.random.Generator) -> str:
    """One query, asked in a random way; what is wrong, if anything is."""
    net = network(rng)
    query = str(rng.choice(net.variables))
    columns, certain = random_columns(rng, net)
    rows = [{n: likelihoods_of(net, n, column[i]) for n, column in columns.items()} for i in range(ROWS)]
    right = [exact.query(net, query, {n: v for n, v in row.items() if v is not None}) for row in rows]
    if min(r.nearest for r in right) < extreme.MARGIN:
        return ""
    hard = [n for n in certain if rng.random() < 0.5]
    engine, dtype = str(rng.choice(ENGINES)), str(rng.choice(["float64", "float64", "float32"]))
    effort = "high" if rng.random() < 0.02 else str(rng.choice(["low", "auto"]))
    tac = tacit.compile(net, query, list(columns), hard, engine=engine, dtype=dtype, effort=effort)
    container = str(rng.choice(list(CONTAINERS)))
    with warnings.catch_warnings(action="ignore", category=tacit.ImpossibleEvidenceWarning):
        given = CONTAINERS[container](columns) if columns else None
        found = {"posterior": tac.posterior(given), "marginals": tac.marginals(given)[query]}
        if columns:
            found["network"] = net.posterior(query, columns)
    theirs = np.array([r.posterior if r.possible else [np.nan] * len(net.states(query)) for r in right])
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    for what, ours in found.items():
        if not np.allclose(ours, theirs[: len(ours)], rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{what}, {engine}, {dtype}, {effort}, {container}: {ours.tolist()}, right {theirs.tolist()}"
    if all(not r.possible or r.log_evidence > SMALLEST for r in right):
        enumerated = semantics.posterior(net, query, columns)
        if not np.allclose(enumerated, theirs[: len(enumerated)], equal_nan=True):
            return "the definition itself"
    return ""


def check_threads(rng: np.random.Generator) -> str:
    """Many queries of one network from many threads at once: the same as one after the other."""
    net = network(rng)
    calls = [(str(rng.choice(net.variables)), _some_evidence(rng, net)) for _ in range(24)]

    def ask(call: tuple[str, Columns]) -> Any:
        return net.posterior(*call)

    with warnings.catch_warnings(action="ignore", category=tacit.ImpossibleEvidenceWarning):
        alone = [ask(call) for call in calls]
        fresh = net.copy()
        net = fresh
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(ask, calls))
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(alone, together, strict=True))
    return "" if same else "threads disagree with one another"


def network(rng: np.random.Generator, testing: bool = True) -> tacit.Network:
    """A small one with single-state variables, testing nodes, exact 0s and 1s, and steep sigmoids."""
    net, cards = tacit.Network(selection=str(rng.choice(SELECTIONS))), list[int]()
    for i in range(rng.integers(2, 8)):
        parents = sorted(rng.choice(i, size=min(i, int(rng.integers(0, 4))), replace=False).tolist())
        cards.append(int(rng.choice([1, 2, 2, 3, 4])))
        above = [cards[p] for p in parents]
        states = [f"s{k}" for k in range(cards[i])] if rng.random() < 0.5 else cards[i]
        cpt: object = _rows(rng, (*above, cards[i]))
        if parents and testing and rng.random() < 0.4:
            gamma = None if rng.random() < 0.5 else float(rng.choice([0.0, 4.0, 16.0, 200.0, 1000.0]))
            tests = rng.choice([">=", ">", "<=", "<"], size=above)
            two = _rows(rng, (*above, cards[i])), _rows(rng, (*above, cards[i]))
            cpt = tacit.TestingCPT(*two, rng.random(above), tests, gamma)
        net.add(f"V{i}", [f"V{p}" for p in parents], states, cpt)
    return net


def _rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    rows = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    if rng.random() < 0.4:
        rows = np.where(rng.random(shape) < 0.4, 0.0, rows)
        rows[..., 0] += rows.sum(axis=-1) == 0
    return rows / rows.sum(axis=-1, keepdims=True)


def random_columns(rng: np.random.Generator, net: tacit.Network) -> tuple[Columns, list[str]]:
    """Evidence of all kinds on some variables, and which of them have a state in every row."""
    kinds = {n: str(rng.choice(["hard", "soft", "gaps", "none"], p=[0.3, 0.3, 0.2, 0.2])) for n in net.variables}
    columns = {n: _column(rng, net, n, kind) for n, kind in kinds.items() if kind != "none"}
    return columns, [n for n, kind in kinds.items() if kind == "hard"]


def _column(rng: np.random.Generator, net: tacit.Network, name: str, kind: str) -> list[Any]:
    """Labels, labels with gaps, or likelihoods."""
    states = net.states(name)
    if kind == "soft":
        return rng.dirichlet(np.ones(len(states)), size=ROWS).tolist()
    labels: list[Any] = [states[k] for k in rng.integers(len(states), size=ROWS)]
    return [None if kind == "gaps" and rng.random() < 0.4 else label for label in labels]


def likelihoods_of(net: tacit.Network, name: str, value: Any) -> list[float] | None:
    if isinstance(value, list):
        return value
    return None if value is None else [float(state == value) for state in net.states(name)]


def _some_evidence(rng: np.random.Generator, net: tacit.Network) -> Columns:
    names = [n for n in net.variables if rng.random() < 0.5] or [net.variables[0]]
    return {n: _column(rng, net, n, str(rng.choice(["hard", "soft"]))) for n in names}


def _labels(columns: Columns) -> Columns:
    """Likelihoods as arrays: frames hold labels only."""
    return {n: np.array(c) if isinstance(c[0], list) else c for n, c in columns.items()}


def _framed(columns: Columns, make: Callable[[Any], Any]) -> Columns:
    """Columns of labels as a library holds them."""
    return {n: c if isinstance(c, np.ndarray) else make(c) for n, c in _labels(columns).items()}


CONTAINERS: dict[str, Callable[[Columns], Any]] = {
    "lists": lambda columns: columns,
    "arrays": lambda columns: {
        n: np.array(c, dtype=object) if c[0] is None else c for n, c in _labels(columns).items()
    },
    "pandas": lambda columns: _framed(columns, lambda c: pd.Series(c, dtype=object)),
    "categories": lambda columns: _framed(columns, lambda c: pd.Series(pd.Categorical(c))),
    "polars": lambda columns: _framed(columns, lambda c: pl.Series("x", c, strict=False)),
    "pyarrow": lambda columns: _framed(columns, pa.array),
    "dictionaries": lambda columns: _framed(columns, lambda c: pa.array(c).dictionary_encode()),
}
