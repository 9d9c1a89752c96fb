"""A small reader of BIF files, enough for the networks of the bnlearn repository."""

from __future__ import annotations

import graphlib
import gzip
import itertools
import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit.cpt import Floats
from tacit.display import plural
from tacit.errors import FormatError, NetworkError
from tacit.network import Network

MAX_MISS = 1e-4 + 1e-9  # by how much a row may miss 1: numbers of four digits do, 0.3333 three times exactly

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[{}()\[\],;|]|[^\s{}()\[\],;|"]+', re.DOTALL)


def read_bif(path: str | os.PathLike[str]) -> Network:
    """Read a network from a `.bif` or `.bif.gz` file; rows that miss 1 by rounding are scaled to sum to 1."""
    raw = Path(path).read_bytes()
    text = (gzip.decompress(raw) if str(path).endswith(".gz") else raw).decode("utf-8", errors="replace")
    return _Parser(text, str(path)).network()


@dataclass
class _Row:
    """Numbers as written, and the token they begin at, for error messages."""

    at: int
    numbers: list[float]


@dataclass
class _Block:
    """What is said of one node: a row per state of the parents, or one for all under `None`."""

    at: int
    parents: list[str]
    rows: dict[tuple[str, ...] | None, _Row] = field(default_factory=dict)


class _Parser:
    def __init__(self, text: str, path: str) -> None:
        found = [m for m in _TOKEN.finditer(text) if not m[0].startswith(("//", "/*"))]
        self.text, self.path, self.at = text, path, 0
        self.tokens = [m[0].strip('"') for m in found]
        self.starts = [m.start() for m in found]
        self.states: dict[str, list[str]] = {}
        self.blocks: dict[str, _Block] = {}

    def network(self) -> Network:
        while self.at < len(self.tokens):
            match self._next():
                case "network":
                    self._until("{")
                    self._until("}")
                case "variable":
                    self._variable()
                case "probability":
                    self._probability()
                case other:
                    raise self._error(f"unexpected {other!r}, expected 'variable' or 'probability'")
        self._check_names()
        net = Network(Path(self.path).name.split(".")[0])
        for name in self._parents_first():
            block = self.blocks[name]
            table = self._table(name, block)
            try:
                net.add(name, block.parents, self.states[name], table)
            except NetworkError as error:
                raise self._error(str(error), block.at) from None
        return net

    # syntax -----------------------------------------------------------------------------------------------

    def _error(self, problem: str, at: int | None = None) -> FormatError:
        """An error at a token: the last one read, if left out."""
        line = 1 + self.text.count("\n", 0, self.starts[self.at - 1 if at is None else at])
        return FormatError(f"{self.path}, line {line}: {problem}")

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise FormatError(f"{self.path}: the file ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _until(self, end: str) -> list[str]:
        """The tokens up to `end`, which is consumed; commas are dropped."""
        found = []
        while (token := self._next()) != end:
            if token in ("{", "}"):
                raise self._error(f"unexpected {token!r}, expected {end!r}")
            if token != ",":
                found.append(token)
        return found

    def _variable(self) -> None:
        name, at = self._next(), self.at - 1
        if name in self.states:
            raise self._error(f"variable {name!r} is declared twice")
        self._until("{")
        if "discrete" not in self._until("{"):
            raise self._error(f"variable {name!r} is not discrete", at)
        self.states[name] = self._until("}")
        self._until("}")

    def _probability(self) -> None:
        self._until("(")
        at = self.at
        head = [token for token in self._until(")") if token != "|"]
        if not head:
            raise self._error("a probability block names no variable")
        name, block = head[0], _Block(at, head[1:])
        if name in self.blocks:
            raise self._error(f"node {name!r} has two probability blocks", at)
        self.blocks[name] = block
        self._until("{")
        while (token := self._next()) != "}":
            at = self.at - 1
            if token == "property":
                self._until(";")
                continue
            if token not in ("(", "table"):
                raise self._error(f"node {name!r}: unexpected {token!r}, expected 'table' or a row '(states) numbers;'")
            key = tuple(self._until(")")) if token == "(" else None
            if key in block.rows:
                raise self._error(f"node {name!r}: {_shown(key)} is given twice", at)
            block.rows[key] = _Row(at, [self._number(name, word) for word in self._until(";")])

    def _number(self, name: str, word: str) -> float:
        try:
            number = float(word)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise self._error(f"node {name!r}: {word!r} is not a probability")
        return number

    # meaning ----------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        for name, block in self.blocks.items():
            for used in (name, *block.parents):
                if used not in self.states:
                    raise self._error(f"node {name!r}: there is no variable {used!r}", block.at)
        for name in self.states:
            if name not in self.blocks:
                raise FormatError(f"{self.path}: node {name!r} has no probability block")

    def _table(self, name: str, block: _Block) -> Floats:
        """The distributions of a node: (parents..., own)."""
        cards = [len(self.states[parent]) for parent in block.parents]
        own = len(self.states[name])
        if None in block.rows:
            if len(block.rows) > 1:
                raise self._error(f"node {name!r} has both a table and rows", block.at)
            whole = self._numbers(name, None, block.rows[None], own * math.prod(cards))
            table = np.moveaxis(np.reshape(whole, (own, *cards)), 0, -1)  # own states vary slowest in the file
        else:
            rows = self._ordered(name, block).items()
            table = np.reshape([self._numbers(name, key, row, own) for key, row in rows], (*cards, own))
        return self._scaled(name, block, table)

    def _ordered(self, name: str, block: _Block) -> dict[tuple[str, ...], _Row]:
        """One row per state of the parents, the last parent's varying fastest."""
        keys = list(itertools.product(*(self.states[parent] for parent in block.parents)))
        for key in block.rows.keys() - set(keys):
            raise self._error(
                f"node {name!r}: {_shown(key)} is not a state of the parents {block.parents}", block.rows[key].at
            )
        for key in keys:
            if key not in block.rows:
                raise self._error(f"node {name!r}: {_shown(key)} is missing", block.at)
        return {key: block.rows[key] for key in keys}

    def _numbers(self, name: str, key: tuple[str, ...] | None, row: _Row, count: int) -> list[float]:
        if len(row.numbers) != count:
            given = plural(len(row.numbers), "number")
            raise self._error(f"node {name!r}: {_shown(key)} has {given}, expected {count:,}", row.at)
        return row.numbers

    def _scaled(self, name: str, block: _Block, table: Floats) -> Floats:
        total = table.sum(axis=-1, keepdims=True)
        for place in np.argwhere(abs(total[..., 0] - 1) > MAX_MISS)[:1].tolist():
            key = tuple(self.states[parent][i] for parent, i in zip(block.parents, place, strict=True))
            at = block.rows[None if None in block.rows else key].at
            raise self._error(f"node {name!r}: {_shown(key)} sums to {total[(*place, 0)]:g}, expected 1", at)
        return np.asarray(table / total)

    def _parents_first(self) -> list[str]:
        parents = {name: block.parents for name, block in self.blocks.items()}
        try:
            graphlib.TopologicalSorter(parents).prepare()
        except graphlib.CycleError as error:
            raise FormatError(f"{self.path}: the parents form a cycle: {' -> '.join(error.args[1])}") from None
        order: dict[str, None] = {}
        for name in parents:
            stack = [name]
            while stack:
                waiting = [p for p in parents[stack[-1]] if p not in order]
                if waiting:
                    stack.extend(waiting)
                else:
                    order.setdefault(stack.pop())
        return list(order)


def _shown(key: tuple[str, ...] | None) -> str:
    return "the table" if not key else f"row ({', '.join(key)})"
