"""A small reader of BIF files, enough for the networks of the bnlearn repository."""

from __future__ import annotations

import gzip
import itertools
import os
import re
from pathlib import Path

import numpy as np

from tacit.errors import FormatError
from tacit.network import Network

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+', re.DOTALL)


def read_bif(path: str | os.PathLike[str]) -> Network:
    """Read a network from a `.bif` or `.bif.gz` file; rows are scaled to sum to 1."""
    raw = Path(path).read_bytes()
    text = (gzip.decompress(raw) if str(path).endswith(".gz") else raw).decode("utf-8", errors="replace")
    tokens = [t.strip('"') for t in _TOKEN.findall(text) if not t.startswith(("//", "/*"))]
    return _Parser(tokens, str(path)).network()


class _Parser:
    def __init__(self, tokens: list[str], path: str) -> None:
        self.tokens, self.path, self.at = tokens, path, 0
        self.states: dict[str, list[str]] = {}
        self.tables: dict[str, tuple[list[str], dict[tuple[str, ...] | None, list[float]]]] = {}

    def network(self) -> Network:
        net = Network(Path(self.path).name.split(".")[0])
        while self.at < len(self.tokens):
            match self._next():
                case "network":
                    self._skip_block()
                case "variable":
                    self._variable()
                case "probability":
                    self._probability()
                case other:
                    raise FormatError(f"{self.path}: unexpected {other!r}")
        for name in self._parents_first():
            parents, rows = self.tables[name]
            net.add(name, parents, self.states[name], self._table(name, parents, rows))
        return net

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise FormatError(f"{self.path}: the file ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _until(self, *ends: str) -> list[str]:
        """The tokens up to one of `ends`, which is consumed; commas are dropped."""
        found = []
        while (token := self._next()) not in ends:
            if token != ",":
                found.append(token)
        return found

    def _skip_block(self) -> None:
        self._until("{")
        self._until("}")

    def _variable(self) -> None:
        name = self._next()
        self._until("{")
        body = self._until("}")
        start = body.index("{") if "{" in body else body.index("]") + 1
        self.states[name] = [t for t in body[start + 1 :] if t not in (";", "{")]
        self._until("}")

    def _probability(self) -> None:
        self._until("(")
        head = self._until(")")
        name, parents = head[0], [t for t in head[1:] if t != "|"]
        self._until("{")
        rows: dict[tuple[str, ...] | None, list[float]] = {}
        while (token := self._next()) != "}":
            if token == "(":
                key: tuple[str, ...] | None = tuple(self._until(")"))
            elif token == "table":
                key = None
            else:
                raise FormatError(f"{self.path}: unexpected {token!r} in the table of {name!r}")
            rows[key] = [float(t) for t in self._until(";")]
        self.tables[name] = (parents, rows)

    def _table(self, name: str, parents: list[str], rows: dict[tuple[str, ...] | None, list[float]]) -> np.ndarray:
        shape = [len(self.states[p]) for p in parents] + [len(self.states[name])]
        if None in rows:
            table = np.array(rows[None]).reshape(shape)
        else:
            labels = itertools.product(*(self.states[p] for p in parents))
            table = np.array([rows[state] for state in labels]).reshape(shape)
        return np.asarray(table / table.sum(axis=-1, keepdims=True))

    def _parents_first(self) -> list[str]:
        order: list[str] = []
        done: set[str] = set()
        for name in self.tables:
            stack = [name]
            while stack:
                waiting = [p for p in self.tables[stack[-1]][0] if p not in done]
                if waiting:
                    stack.extend(waiting)
                    continue
                top = stack.pop()
                if top not in done:
                    done.add(top)
                    order.append(top)
        return order
