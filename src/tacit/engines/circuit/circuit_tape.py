"""Scalar circuits on the tape: their nodes as instructions of the numba kernels, run over tiles of rows.

Nodes without an input below are constants. A product with one of them, constant * node, is no instruction of its own
but a term of the sums, and the limit of the tests, that use it; nor is a product that only one sum uses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.machine import threads as usable_threads
from tacit.engines.circuit.nodes import CODE, KINDS, Ids, Nodes
from tacit.engines.tape import instructions as k
from tacit.engines.tape.slots import allocate
from tacit.engines.tape.tape import READS
from tacit.engines.tape.tape_based import blocks_of_tiles, in_threads
from tacit.engines.tape.tape_engine import MAX_CHUNK, tile_width
from tacit.engines.tape.tape_kernels import forward
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike

RUNNABLE = ("constant", "parameter", "input", "sum", "product", "test", "complement")
EXTRA = (0.0, 1.0, 2.0, 3.0, -1.0)  # constants behind those of the nodes; the first four are also codes of operators
ONE, MINUS_ONE = 1, 4  # places among them
NOWHERE = -1

Instruction = tuple[int, int, Ids]  # operation, destination, terms
Listing = list[Instruction]


class CircuitTape:
    """A circuit of sums, products, tests and complements, ready to run on many rows. Made by `Circuit.tape`."""

    def __init__(self, circuit: Nodes) -> None:
        self.circuit = circuit
        self.threads = usable_threads()
        assembler = _CircuitAssembler(circuit)
        listing = assembler.listing()
        place, self.slots, pinned = _places(listing, assembler.fixed)
        self.instructions, self.terms = _renamed(listing, place)
        self.constants = assembler.constants
        self._pinned = self.constants[pinned, None]  # what the first slots hold throughout
        self._inputs = assembler.inputs

    def evaluate(self, evidence: EvidenceLike | None = None) -> Floats:
        """The outputs for every row of evidence, or of numbers: (rows, outputs)."""
        blocks = self.circuit.read(evidence).blocks(MAX_CHUNK)
        return np.concatenate([self._run(self._packed(block)) for block in blocks], axis=1).T

    def _packed(self, evidence: Evidence) -> Floats:
        """The input nodes of some rows: (input nodes, rows); 1 where there is no evidence."""
        circuit = self.circuit
        packed = np.ones((len(self._inputs), evidence.rows))
        for i, node in enumerate(self._inputs.tolist()):
            column = evidence.columns.get(circuit.inputs[circuit.owner[node]].name)
            if column is not None:
                packed[i] = column.likelihoods()[circuit.entry[node]]
        return packed

    def _run(self, inputs: Floats) -> Floats:
        rows = inputs.shape[1]
        outputs = np.empty((len(self.circuit.outputs), rows))
        codes = np.empty((0, rows), dtype=np.int32)  # of hard evidence, which circuits take as likelihoods
        doubts = np.empty(rows, dtype=np.bool_)  # a circuit is what it is: nothing is scaled, nothing computed again
        arrays = self.instructions, self.terms, self.constants, inputs, codes, outputs, doubts
        width = tile_width(8 * self.slots, rows)

        def work(block: tuple[int, int]) -> None:
            values = np.empty((self.slots, width))
            values[: len(self._pinned)] = self._pinned
            forward(*arrays, values, *block)

        in_threads(work, blocks_of_tiles(self.threads, rows, width, len(self.terms)))
        return outputs


class _CircuitAssembler:
    """A circuit as instructions whose slots still have the numbers of the nodes that they hold."""

    def __init__(self, circuit: Nodes) -> None:
        odd = np.flatnonzero(~np.isin(circuit.kind, [CODE[kind] for kind in RUNNABLE]))
        if len(odd):
            raise TacitError(
                f"a circuit with {KINDS[circuit.kind[odd[0]]]!r} nodes (n{odd[0]} is one) does not run on the tape; "
                "use circuit.evaluate, or evaluate the compiled query"
            )
        self.circuit = circuit
        self.inputs = np.flatnonzero(circuit.kind == CODE["input"])
        self.fixed = np.append(_without_inputs(circuit), np.ones(len(EXTRA), dtype=bool))
        with np.errstate(all="ignore"):  # any inputs will do: only what is computed without them is used
            values = circuit.values({}, 1, circuit.number)[:, 0]
        self.constants = np.concatenate([values, EXTRA])
        self.one = len(circuit) + ONE
        self.factor, self.slot = self._scaled()
        self.pair = self._absorbed()

    def _scaled(self) -> tuple[Ids, Ids]:
        """Every node as constant * slot: products with a constant need no slot of their own."""
        fixed, nodes = self.fixed, np.arange(len(self.circuit))
        constant = fixed[nodes]
        factor, slot = np.where(constant, nodes, self.one), np.where(constant, self.one, nodes)
        product, a, b = self._binary_products()
        scaled = fixed[a] | fixed[b]
        factor[product[scaled]] = np.where(fixed[a], a, b)[scaled]
        slot[product[scaled]] = np.where(fixed[a], b, a)[scaled]
        return factor, slot

    def _absorbed(self) -> Ids:
        """Products of two slots that only one sum uses, as pairs of slots; NOWHERE for all other nodes."""
        circuit = self.circuit
        pair = np.full((len(circuit), 2), NOWHERE)
        in_sums = np.repeat(circuit.kind == CODE["sum"], np.diff(circuit.start))
        uses, in_sum = (np.bincount(c, minlength=len(circuit)) for c in (circuit.children, circuit.children[in_sums]))
        absorbed = (uses == 1) & (in_sum == 1) & (self.slot == np.arange(len(circuit)))
        absorbed[circuit.outputs] = False
        product, a, b = self._binary_products()
        chosen = absorbed[product]
        pair[product[chosen]] = np.stack([a, b], axis=1)[chosen]
        return pair

    def _binary_products(self) -> tuple[Ids, Ids, Ids]:
        """The products of two nodes, one or both of which depend on inputs, and these nodes."""
        circuit = self.circuit
        two = (circuit.kind == CODE["product"]) & (np.diff(circuit.start) == 2) & ~self.fixed[: len(circuit)]
        product = np.flatnonzero(two)
        first = circuit.start[product]
        return product, circuit.children[first], circuit.children[first + 1]

    def listing(self) -> Listing:
        """The instructions of all nodes that need a slot, found from the outputs downwards."""
        outputs = self.circuit.outputs
        listing: Listing = [(k.OUTPUT, i, np.array([[node, 0]])) for i, node in enumerate(outputs)]
        needed = np.zeros(len(self.fixed), dtype=bool)
        needed[outputs] = True
        for node in np.flatnonzero(~self.fixed)[::-1].tolist():
            if needed[node] and self.pair[node, 0] == NOWHERE:
                steps = self._instructions(node)
                listing.extend(steps[::-1])
                for operation, _, terms in steps:
                    needed[terms[_slots(operation, terms)]] = True
        return listing[::-1]

    def _instructions(self, node: int) -> Listing:
        circuit = self.circuit
        children = circuit.children[circuit.start[node] : circuit.start[node + 1]]
        match KINDS[circuit.kind[node]]:
            case "input":
                return [(k.INPUT, node, np.array([[np.searchsorted(self.inputs, node), 0]]))]
            case "sum":
                return self._sum(node, children)
            case "product":
                return self._product(node, children)
            case "test":
                return [self._test(node, *children.tolist())]
            case _:  # a complement
                minus_one = len(circuit) + MINUS_ONE
                return [(k.LINEAR, node, np.array([[self.one, self.one], [minus_one, children[0]]]))]

    def _sum(self, node: int, children: Ids) -> Listing:
        absorbed = self.pair[children, 0] != NOWHERE
        linear, pairs = children[~absorbed], self.pair[children[absorbed]]
        terms = np.stack([self.factor[linear], self.slot[linear]], axis=1)
        if not len(pairs):
            return [(k.LINEAR, node, terms)]
        if not len(linear):
            return [(k.PRODUCT, node, pairs)]
        part = int(children[absorbed][0])  # this product has no slot of its own: its number is free
        return [(k.PRODUCT, part, pairs), (k.LINEAR, node, np.concatenate([terms, [[self.one, part]]]))]

    def _product(self, node: int, children: Ids) -> Listing:
        if self.slot[node] != node:
            return [(k.LINEAR, node, np.array([[self.factor[node], self.slot[node]]]))]
        first, *rest = children.tolist()
        pairs = [(first, rest.pop(0) if rest else self.one), *((node, child) for child in rest)]
        return [(k.PRODUCT, node, np.array([pair])) for pair in pairs]

    def _test(self, node: int, x: int, limit: int, plus: int, minus: int) -> Instruction:
        operator = int(self.circuit.owner[node])
        compared = (x, self.slot[limit])
        if self.fixed[plus] and self.fixed[minus]:
            return k.TEST, node, np.array([compared, (~self.factor[limit], ~operator), (~plus, ~minus)])
        as_slot = len(self.circuit) + operator
        return k.TEST, node, np.array([compared, (self.factor[limit], as_slot), (plus, minus)])


def _without_inputs(circuit: Nodes) -> NDArray[np.bool_]:
    fixed: NDArray[np.bool_] = circuit.kind != CODE["input"]
    for begin, end, _, children, offsets in circuit.iter_blocks():
        if len(children):
            fixed[begin:end] = np.logical_and.reduceat(fixed[children], offsets)
    return fixed


def _slots(operation: int, terms: Ids) -> NDArray[np.bool_]:
    """Which numbers of an instruction's terms are slots: (terms, 2)."""
    return np.asarray(READS[operation][0] & (terms >= 0))


def _places(listing: Listing, fixed: NDArray[np.bool_]) -> tuple[Ids, int, Ids]:
    """A slot for every node while it is read, how many there are, and the constants that keep theirs throughout."""
    place, last = np.full(len(fixed), NOWHERE), np.full(len(fixed), NOWHERE)
    first: dict[int, int] = {}  # by node: the instruction that writes it first
    for i, (operation, node, terms) in enumerate(listing):
        last[terms[_slots(operation, terms)]] = i
        if operation != k.OUTPUT:
            first.setdefault(node, i)
    pinned = np.flatnonzero(fixed & (last != NOWHERE))
    place[pinned] = np.arange(len(pinned))
    written = list(first)
    place[written], count = allocate(list(first.values()), last[written].tolist(), len(listing), [], len(pinned))
    return place, count, pinned


def _renamed(listing: Listing, place: Ids) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Instructions and terms as the kernels read them, with places for nodes."""
    terms = np.concatenate([terms for _, _, terms in listing])
    slots = np.concatenate([_slots(operation, terms) for operation, _, terms in listing])
    terms[slots] = place[terms[slots]]
    ends = np.cumsum([len(terms) for _, _, terms in listing])
    operation = np.array([operation for operation, _, _ in listing])
    node = np.array([node for _, node, _ in listing])
    output = operation == k.OUTPUT
    target = np.where(output, node, place[np.where(output, 0, node)])
    instructions = np.stack([operation, target, np.append(0, ends[:-1]), ends], axis=1)
    return np.ascontiguousarray(instructions, dtype=np.int32), np.ascontiguousarray(terms, dtype=np.int32)
