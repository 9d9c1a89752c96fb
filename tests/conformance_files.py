"""The conformance files as networks and evidence: networks, queries, rows and what must come out."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tacit

FOLDER = Path(__file__).parent / "conformance"


@dataclass(frozen=True)
class Query:
    """One compiled query of a case: rows of evidence and what must come out."""

    case: str
    group: str
    net: tacit.Network
    query: str
    evidence_vars: tuple[str, ...]
    rows: list[dict[str, Any]]

    @property
    def evidence(self) -> dict[str, np.ndarray]:
        """All rows as columns of likelihoods; NaN where a variable is left out of a row."""
        columns = {}
        for name in self.evidence_vars:
            nothing = [np.nan] * len(self.net.states(name))
            columns[name] = np.array([row["evidence"].get(name, nothing) for row in self.rows])
        return columns

    @property
    def joint(self) -> np.ndarray:
        return np.array([row["joint"] for row in self.rows])

    @property
    def posterior(self) -> np.ndarray:
        undefined = [np.nan] * len(self.net.states(self.query))
        return np.array([undefined if row["posterior"] is None else row["posterior"] for row in self.rows])

    @property
    def all_hard(self) -> tuple[str, ...]:
        """The variables that are observed, with certainty, in every row."""
        return tuple(n for n, c in self.evidence.items() if ((c == 0) | (c == 1)).all() and (c.sum(1) == 1).all())


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def network(data: dict[str, Any]) -> tacit.Network:
    """A network from the conformance format, whose nodes may come in any order."""
    net = tacit.Network()
    waiting = list(data["nodes"])
    cards = {node["name"]: node["card"] for node in waiting}
    while waiting:
        node = next((n for n in waiting if all(p in net or p not in cards for p in n["parents"])), waiting[0])
        waiting.remove(node)
        shape = tuple(cards.get(p, 2) for p in node["parents"])
        states = None if node["card"] == 2 else node["card"]
        net.add(node["name"], node["parents"], states, _cpt(node, shape), testing=node["testing"])
    return net


def _cpt(node: dict[str, Any], shape: tuple[int, ...]) -> Any:
    def table(rows: list[list[Any]]) -> np.ndarray:
        return _shaped(np.array(rows, dtype=float), (*shape, node["card"]))

    if not node["testing"]:
        return table(node["cpt"])
    return tacit.TestingCPT(
        table(node["plus"]),
        table(node["minus"]),
        _shaped(np.array(node["thresholds"]), shape),
        _shaped(np.array(node["ops"]), shape),
        node["gamma"],
    )


def _shaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return array.reshape(shape) if array.size == np.prod(shape) else array


@cache
def queries() -> tuple[Query, ...]:
    found = []
    for case in read("cases.json")["cases"]:
        net = network(case["network"])
        for q in case["queries"]:
            found.append(Query(case["id"], case["group"], net, q["query"], tuple(q["evidence_vars"]), q["rows"]))
    return tuple(found)
