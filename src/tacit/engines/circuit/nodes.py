"""The nodes of a circuit as flat arrays: a node is a position, its children are earlier positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TacitError, UnsetError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.engines.arrays.numpy_arrays import PlainArrays
from tacit.evidence.column import Column, Evidence
from tacit.evidence.read import EvidenceLike, read
from tacit.model.cpt import TESTS
from tacit.model.elements.variable import Variable, similar

Ids = NDArray[np.int64]

LEAVES = ("constant", "parameter", "input")
KINDS = (*LEAVES, "sum", "product", "test", "sigmoid", "divide", "complement", "normalise", "slice")
CODE = {kind: i for i, kind in enumerate(KINDS)}
ARRAYS = ("kind", "start", "children", "owner", "entry", "blocks", "outputs")  # of integers
CHUNK_NUMBERS = 2**23  # numbers held at one time while a circuit is evaluated


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes in topological order, in blocks of one kind that only use earlier blocks.

    kind        what each node is, as a position in `KINDS`
    start       where its children begin in `children` (one more entry than nodes)
    owner       parameter: position in `tables`; input, slice: position in `inputs`; normalise: which child;
                test, sigmoid: position in `TESTS` of the operator
    entry       parameter: position in the flattened table; input: the state
    number      constant, parameter: its value; sigmoid: its slope
    blocks      where each block begins, and the number of nodes
    outputs     the nodes that hold the results
    tables      (node, part) of the tables that parameters come from
    inputs      the variables that inputs and slices speak about; one without states is a plain number
    """

    kind: NDArray[np.uint8]
    start: Ids
    children: Ids
    owner: Ids
    entry: Ids
    number: Floats
    blocks: Ids
    outputs: Ids
    tables: tuple[tuple[str, str], ...]
    inputs: tuple[Variable, ...]

    def __len__(self) -> int:
        return len(self.kind)

    def __eq__(self, other: object) -> bool:
        """Whether two circuits are the same, node by node; a number to be learned (NaN) equals another."""
        if not isinstance(other, Nodes) or (self.tables, self.inputs) != (other.tables, other.inputs):
            return False
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS)
        return all(same) and np.array_equal(self.number, other.number, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """The number of edges."""
        return len(self.children)

    def count(self, kind: str) -> int:
        """How many nodes are of a kind: "sum", "product", "test", "sigmoid", "parameter", "input", ..."""
        if kind not in CODE:
            raise TacitError(f"unknown kind of node {kind!r}, expected one of {', '.join(KINDS)}")
        return int((self.kind == CODE[kind]).sum())

    @property
    def internal(self) -> int:
        """The number of nodes that are not leaves."""
        return len(self) - sum(self.count(kind) for kind in LEAVES)

    @property
    def binary_operations(self) -> int:
        """Sums and products counted with two children each: an n-ary one counts n - 1."""
        arity = np.diff(self.start)
        return int((arity - 1)[np.isin(self.kind, (CODE["sum"], CODE["product"]))].sum())

    @cached_property
    def depth(self) -> int:
        """The number of edges on the longest path from a leaf to an output."""
        depth = np.zeros(len(self), dtype=np.int64)
        for begin, end, _, children, offsets in self.iter_blocks():
            if len(children):
                depth[begin:end] = 1 + np.maximum.reduceat(depth[children], offsets)
        return int(depth[self.outputs].max(initial=0))

    def iter_blocks(self) -> Iterator[tuple[int, int, str, Ids, Ids]]:
        """Begin, end, kind, children and their offsets of every block."""
        for begin, end in zip(self.blocks[:-1].tolist(), self.blocks[1:].tolist(), strict=True):
            first, last = self.start[begin], self.start[end]
            yield begin, end, KINDS[self.kind[begin]], self.children[first:last], self.start[begin:end] - first

    def children_of(self, i: int) -> list[int]:
        """The nodes that a node is computed of."""
        return [*self.children[self.start[i] : self.start[i + 1]].tolist()]

    def evaluate(self, evidence: EvidenceLike | None = None, numbers: Floats | None = None) -> Floats:
        """The outputs for every row of evidence, or of numbers: (rows, outputs).

        The slow, plain way: node by node, without rescaling; see `tape` for the fast one. `numbers` replaces the
        numbers of constants and parameters.
        """
        numbers = self.number if numbers is None else numbers
        self.require(numbers)
        checked = self.read(evidence)
        observed = Evidence(checked.rows, self._observed(checked.columns))
        blocks = observed.blocks(max(1, CHUNK_NUMBERS // max(1, len(self))))
        return np.concatenate([self.values(b.columns, b.rows, numbers)[self.outputs].T for b in blocks])

    def read(self, evidence: EvidenceLike | None) -> Evidence:
        """Checked evidence on the inputs; numbers, where they have no states."""
        if self.inputs and not any(v.states for v in self.inputs):
            return read_numbers(evidence, self.inputs)
        return read(evidence, self.inputs)

    def require(self, numbers: Floats) -> None:
        """Raise `UnsetError` where a parameter is still to be learned."""
        for i in np.flatnonzero((self.kind == CODE["parameter"]) & np.isnan(numbers))[:1].tolist():
            node, part = self.tables[self.owner[i]]
            raise UnsetError(
                f"node {node!r}: {part} has unset numbers (NaN); give them, or learn them: tacit.estimate, tacit.fit"
            )

    def _observed(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns, with states where slices need them: checked for all rows, so that errors name the true row."""
        observed = dict(columns)
        for i in np.unique(self.owner[self.kind == CODE["slice"]]).tolist():
            variable = self.inputs[i]
            if variable.name not in columns:
                raise TacitError(f"there is no evidence on {variable.name!r}, which is needed in every row")
            observed[variable.name] = Column(variable, codes=columns[variable.name].states())
        return observed

    def values(self, columns: Mapping[str, Column], rows: int, numbers: Floats) -> Floats:
        """What every node is in some rows: (nodes, rows)."""
        values = np.empty((len(self), rows))
        for begin, end, kind, children, offsets in self.iter_blocks():
            block, below = slice(begin, end), values[children]
            if kind not in ("input", "slice"):
                values[block] = _computed(kind, below, offsets, numbers[block], self.owner[block])
                continue
            name = self.inputs[self.owner[begin]].name
            if kind == "slice":
                values[block] = below[offsets[:, None] + columns[name].states(), np.arange(rows)]
            else:
                values[block] = columns[name].likelihoods()[self.entry[block]] if name in columns else 1.0
        return values

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(k):,} {k}" for k in KINDS if self.count(k))
        return f"{type(self).__name__}({len(self):,} nodes: {counts}; {self.size:,} edges, depth {self.depth})"


def _computed(kind: str, below: Floats, offsets: Ids, numbers: Floats, owner: Ids) -> Floats:
    """The values of a block of nodes, given those of their children, which begin at `offsets`."""
    match kind:
        case "sum":
            return np.asarray(np.add.reduceat(below, offsets, axis=0))
        case "product":
            return np.asarray(np.multiply.reduceat(below, offsets, axis=0))
        case "test":
            x, limit, plus, minus = (below[offsets + i] for i in range(4))
            holds = [x >= limit, x > limit, x <= limit, x < limit]
            return np.where(np.select([owner[:, None] == i for i in range(len(TESTS))], holds), plus, minus)
        case "sigmoid":
            x, threshold, plus, minus = (below[offsets + i] for i in range(4))
            slope = np.where(owner < 2, numbers, -numbers)[:, None]  # mirrored for <= and <
            z = np.nan_to_num(slope * (x - threshold), nan=0.0)  # 0/0: weight 1/2
            weight, rest = PlainArrays().sigmoids(z, z)
            return np.asarray(weight * plus + rest * minus)
        case "divide":
            return _quotient(below[offsets], below[offsets + 1])
        case "complement":
            return 1.0 - below
        case "normalise":
            return _quotient(below[offsets + owner], np.add.reduceat(below, offsets, axis=0))
    return numbers[:, None]  # a constant, or a parameter


def _quotient(x: Floats, total: Floats) -> Floats:
    """Unlike totals of probabilities, those of a circuit may be negative."""
    return np.asarray(np.divide(x, total, out=np.full_like(x, np.nan), where=total != 0))


def read_numbers(values: Any, variables: Sequence[Variable]) -> Evidence:
    """The numbers that variables without states are, checked: a 2-D array, or a mapping from their names to columns."""
    names = [v.name for v in variables]
    table = _table(values, names) if isinstance(values, Mapping) else _floats(values, "the inputs")
    if table.ndim != 2 or table.shape[1] != len(names):
        some = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise EvidenceError(f"the inputs have shape {table.shape}, expected (rows, {len(names)}): {some}")
    if not len(table):
        raise EvidenceError("the inputs have no rows; expected at least one")
    for row, i in np.argwhere(~np.isfinite(table))[:1].tolist():
        raise EvidenceError(f"input {names[i]!r}, row {row}: {table[row, i]:g} is not a finite number")
    columns = np.ascontiguousarray(table.T)
    return Evidence(len(table), {v.name: Column(v, soft=columns[i : i + 1]) for i, v in enumerate(variables)})


def _table(values: Mapping[str, Any], names: Sequence[str]) -> Floats:
    for name in values:
        if name not in names:
            raise EvidenceError(f"{name!r} is not an input of the circuit{similar(name, names)}")
    for name in names:
        if name not in values:
            raise EvidenceError(f"there is no number for input {name!r}, which is needed in every row")
    columns = [np.atleast_1d(_floats(values[name], f"input {name!r}")) for name in names]
    rows = max(len(column) for column in columns)
    for name, column in zip(names, columns, strict=True):
        if column.ndim > 1 or len(column) not in (1, rows):
            raise EvidenceError(f"input {name!r} has shape {column.shape}, expected {plural(rows, 'row')}")
    return np.column_stack(np.broadcast_arrays(*columns))


def _floats(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvidenceError(f"{what}: expected numbers, got {type(values).__name__}") from None
