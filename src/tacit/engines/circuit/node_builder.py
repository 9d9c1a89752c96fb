"""Circuits under construction: whole blocks of nodes at a time, each node made once.

The unique-node table is keyed by kind and children. Keys are 64-bit hashes; one that an earlier block has, too, is
checked by a second hash with another seed. The hash of a sum or product does not depend on the order of its children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.engines.arrays.structured_traceback import splitmix
from tacit.engines.circuit.circuit import Circuit
from tacit.engines.circuit.nodes import CODE, Ids
from tacit.model.elements.variable import Variable

Hashes = NDArray[np.uint64]
MAX_NODES = 10_000_000  # about 4 GB while it is made; the trace of water has 6 million
COMMUTATIVE = ("sum", "product")
SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


class CircuitBuilder:
    """Adds blocks of nodes. With `fold`, known 0s and 1s disappear; without, every node is kept."""

    def __init__(self, fold: bool = True) -> None:
        self.fold = fold
        self._blocks: list[_NodeBlock] = []
        self._count = 0
        self._known: dict[int, int] = {}
        self._second: dict[int, int] = {}
        self._tables: dict[tuple[str, str], int] = {}
        self._inputs: dict[str, tuple[int, Variable]] = {}
        self.zero, self.one = self.constants(np.array([0.0, 1.0])).tolist()

    def constants(self, values: Floats) -> Ids:
        """Constants are shared by value."""
        flat = values.ravel()
        bits = flat.view(np.uint64).astype(np.int64)
        return self._leaves("constant", np.zeros_like(bits), bits, flat).reshape(values.shape)

    def parameters(self, node: str, part: str, values: Floats) -> Ids:
        """One leaf per number of a table: never merged, even where their values are equal."""
        owner = self._tables.setdefault((node, part), len(self._tables))
        entry = np.arange(values.size)
        return self._leaves("parameter", np.full_like(entry, owner), entry, values.ravel()).reshape(values.shape)

    def inputs(self, variable: Variable) -> Ids:
        """One leaf per state of a variable with soft evidence; one for the number that a variable without states is."""
        owner = self.declare(variable)
        entry = np.arange(max(1, variable.card))
        return self._leaves("input", np.full_like(entry, owner), entry, np.zeros(len(entry)))

    def declare(self, variable: Variable) -> int:
        """The position of a variable among those that the circuit takes evidence on, whether or not it is used."""
        return self._inputs.setdefault(variable.name, (len(self._inputs), variable))[0]

    def _leaves(self, kind: str, owner: Ids, entry: Ids, number: Floats) -> Ids:
        block = _NodeBlock(self._count, CODE[kind], np.empty((len(owner), 0), dtype=np.int64), owner, entry, number)
        return self._add(block, *_keys(kind, block.children, owner, entry.astype(np.uint64)))

    def products(self, a: Ids, b: Ids) -> Ids:
        """The products of two arrays of nodes, entry by entry."""
        a, b = np.broadcast_arrays(a, b)
        pairs = np.stack([a.ravel(), b.ravel()], axis=1)
        if not self.fold:
            return self._nodes("product", pairs).reshape(a.shape)
        x, y = pairs[:, 0], pairs[:, 1]
        nodes = np.where(x == self.one, y, x)
        nodes[(x == self.zero) | (y == self.zero)] = self.zero
        real = (x != self.zero) & (y != self.zero) & (x != self.one) & (y != self.one)
        nodes[real] = self._nodes("product", pairs[real])
        return nodes.reshape(a.shape)

    def sums(self, terms: Ids) -> Ids:
        """The sums over the last axis of an array of nodes."""
        shape = terms.shape[:-1]
        rows = terms.reshape(-1, terms.shape[-1])
        if rows.shape[1] == 1:
            return rows[:, 0].reshape(shape)
        if not self.fold:
            return self._nodes("sum", rows).reshape(shape)
        rows = np.sort(np.where(rows == self.zero, np.iinfo(np.int64).max, rows), axis=1)
        arity = (rows < np.iinfo(np.int64).max).sum(axis=1)
        nodes = np.where(arity == 1, rows[:, 0], self.zero)
        for n in np.unique(arity[arity > 1]).tolist():  # nodes of one arity at a time
            nodes[arity == n] = self._nodes("sum", rows[arity == n, :n])
        return nodes.reshape(shape)

    def tests(self, x: Ids, limit: Ids, plus: Ids, minus: Ids, operator: Ids, gamma: float | None = None) -> Ids:
        """`plus` where `x operator limit` holds, else `minus`; with `gamma`, a mixture of both.

        The weight of `plus` is then sigmoid(gamma (x - limit)), mirrored for <= and <.
        """
        kind, number = ("test", 0.0) if gamma is None else ("sigmoid", gamma)
        *parts, operator, numbers = np.broadcast_arrays(x, limit, plus, minus, operator, number)
        rows = np.stack([p.ravel() for p in parts], axis=1)
        nodes = self._nodes(kind, rows, operator.ravel(), numbers.ravel())
        if self.fold:  # both sides alike: nothing to choose
            nodes = np.where(rows[:, 2] == rows[:, 3], rows[:, 2], nodes)
        return nodes.reshape(operator.shape)

    def quotients(self, x: Ids, total: Ids) -> Ids:
        """x divided by total; undefined where total is 0."""
        x, total = np.broadcast_arrays(x, total)
        return self._nodes("divide", np.stack([x.ravel(), total.ravel()], axis=1)).reshape(x.shape)

    def complements(self, x: Ids) -> Ids:
        """1 - x: the paper's inverters and 1-theta units."""
        return self._nodes("complement", x.reshape(-1, 1)).reshape(x.shape)

    def normalised(self, x: Ids) -> Ids:
        """Each entry of a vector divided by the sum of all: the paper's normalising unit."""
        rows = np.broadcast_to(x, (len(x), len(x)))
        return self._nodes("normalise", np.array(rows), np.arange(len(x)))

    def slices(self, variable: Variable, x: Ids) -> Ids:
        """The entry along the last axis that the observed state of `variable` points to."""
        rows = x.reshape(-1, x.shape[-1])
        nodes = self._nodes("slice", rows, np.full(len(rows), self.declare(variable)))
        if self.fold:
            nodes = np.where((rows == rows[:, :1]).all(axis=1), rows[:, 0], nodes)
        return nodes.reshape(x.shape[:-1])

    def _nodes(self, kind: str, children: Ids, owner: Ids | None = None, number: Floats | None = None) -> Ids:
        count = len(children)
        owner = np.zeros(count, dtype=np.int64) if owner is None else owner
        number = np.zeros(count) if number is None else number
        block = _NodeBlock(self._count, CODE[kind], children, owner, np.zeros(count, dtype=np.int64), number)
        return self._add(block, *_keys(kind, children, owner, number.view(np.uint64)))

    def _add(self, block: _NodeBlock, key: Hashes, check: Hashes) -> Ids:
        """The nodes of a block, new or known."""
        if not len(key):
            return np.empty(0, dtype=np.int64)
        first, inverse = _distinct(key)
        _check_count(len(first))  # before they are looked up one by one
        ids, new = self._look_up(key[first], check[first])
        if new.any():
            self._blocks.append(block.take(first[new]))
            self._count += int(new.sum())
            _check_count(self._count)
        return np.asarray(ids[inverse])

    def _look_up(self, key: Hashes, check: Hashes) -> tuple[Ids, NDArray[np.bool_]]:
        ids = np.empty(len(key), dtype=np.int64)
        known, fresh = self._known, self._count
        for i, (k, c) in enumerate(zip(key.tolist(), check.tolist(), strict=True)):
            node = known.get(k)
            if node is None:
                known[k] = node = fresh
                self._second[k] = c
                fresh += 1
            elif self._second[k] != c:
                raise AssertionError("two different nodes have the same hash")
            ids[i] = node
        return ids, ids >= self._count

    def finish(self, outputs: Ids) -> Circuit:
        """The circuit below `outputs`: nodes nobody uses are dropped."""
        outputs = np.asarray(outputs, dtype=np.int64)
        used = np.zeros(self._count, dtype=bool)
        used[outputs] = True
        for block in reversed(self._blocks):
            used[block.children[used[block.first : block.first + len(block.owner)]].ravel()] = True
        blocks = (b.take(np.flatnonzero(used[b.first : b.first + len(b.owner)])) for b in self._blocks)
        kept = [block for block in blocks if len(block.owner)]
        lengths, place = [len(block.owner) for block in kept], np.cumsum(used) - 1
        arity = np.repeat([block.children.shape[1] for block in kept], lengths)
        return Circuit(
            kind=np.repeat(np.array([block.code for block in kept], dtype=np.uint8), lengths),
            start=np.concatenate([[0], np.cumsum(arity)]).astype(np.int64),
            children=place[np.concatenate([block.children.ravel() for block in kept])],
            owner=np.concatenate([block.owner for block in kept]),
            entry=np.concatenate([block.entry for block in kept]),
            number=np.concatenate([block.number for block in kept]),
            blocks=np.cumsum([0, *lengths]),
            outputs=place[outputs],
            tables=tuple(self._tables),
            inputs=tuple(variable for _, variable in self._inputs.values()),
        )


def _check_count(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise TooLargeError(f"the circuit would have more than {MAX_NODES:,} nodes; evaluate the query instead")


def _distinct(key: Hashes) -> tuple[Ids, Ids]:
    """Where each distinct key occurs first, in that order, and which of them each entry is."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


class _NodeBlock(NamedTuple):
    """Nodes of one kind and one arity that were made together, and the number of the first."""

    first: int
    code: int
    children: Ids
    owner: Ids
    entry: Ids
    number: Floats

    def take(self, which: Ids) -> _NodeBlock:
        children, owner, entry, number = self.children[which], self.owner[which], self.entry[which], self.number[which]
        return _NodeBlock(self.first, self.code, children, owner, entry, number)


def _keys(kind: str, children: Ids, owner: Ids, detail: Hashes) -> tuple[Hashes, Hashes]:
    """Two independent hashes of each node; `detail` is the entry of a leaf, the number of an inner node."""
    keys = []
    for seed in SEEDS:
        salt = np.uint64((CODE[kind] + 1) << 48)
        root = _mix(owner.astype(np.uint64) + salt, detail, seed)
        values = children.astype(np.uint64)
        if kind not in COMMUTATIVE:
            values = values + (np.arange(children.shape[1], dtype=np.uint64) << np.uint64(40))
        keys.append(_mix(splitmix(values * seed + seed).sum(axis=1, dtype=np.uint64), root, seed))
    return keys[0], keys[1]


def _mix(a: Hashes, b: Hashes, seed: np.uint64) -> Hashes:
    return splitmix(a * seed ^ splitmix(b + seed))
