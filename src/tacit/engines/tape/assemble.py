"""From a program to a tape: the batched operations, entry by entry, as flat arrays of instructions.

What only depends on parameters is not on the tape: its entries are constants of it, filled in by the NumPy
engine. Entries that known 0s make zero vanish, and so do multiplications by known 1s. A slot is used again
after the last operation that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import TooLargeError
from tacit.compiler import operations as ops
from tacit.compiler.operations import Axes, Axis, Setting, spread
from tacit.compiler.operations.axes import Array, Ids, Key, Mask
from tacit.compiler.program import Program
from tacit.engines.tape import instructions as k
from tacit.engines.tape.slots import NOTHING, ONES, Slots
from tacit.engines.tape.tape import ONE_CONSTANT, ZERO_CONSTANT, Tape, TapeWriter
from tacit.engines.tape.traceback_plan import axes_with_states, traceback_plan
from tacit.model.cpt import TESTS

SUMS = {False: (k.PRODUCT, k.LINEAR), True: (k.LARGEST_PRODUCT, k.LARGEST_LINEAR)}  # without and with constants
MAX_TERMS = 50_000_000
MAX_SUM_TERMS = 32  # of single entries: of longer sums, LLVM takes ten times as long for a term


@dataclass(frozen=True)
class Knowledge:
    """What is known of a program's numbers without knowing them.

    For its static values, which entries may differ from 0 and which are 1; for its testing nodes, whether they are
    selected by a sigmoid.
    """

    supports: Mapping[int, ops.Support]
    soft: Mapping[str, bool]


def knowledge(program: Program, parameters: Mapping[Key, Array], gammas: Mapping[str, float | None]) -> Knowledge:
    """What the exact 0s and 1s of the parameters, which never change, say about the static values."""
    supports: dict[int, ops.Support] = {}
    for i, operation in enumerate(program):
        if not program.batched[i]:
            inputs = [supports[j] for j in operation.inputs]
            supports[i] = operation.support(program.setting(i), inputs, parameters)
    return Knowledge(supports, {node: gamma is not None for node, gamma in gammas.items()})


def assemble(
    program: Program,
    known: Knowledge,
    reuse_slots: bool = True,
    pin: bool = False,
    selections: bool = False,
    descent: bool = False,
) -> Tape:
    """The tape of a program. Without `reuse_slots`, every value keeps its slot, as the reverse pass needs.

    With `pin`, static values have slots, too: the reverse pass then finds their derivatives row by row. With
    `selections`, the tape also puts out how testing nodes are decided; with `descent`, it has a plan of the
    traceback, for which every value must keep its slot.
    """
    return _Assembler(program, known, reuse_slots, pin, selections, descent).run()


class _Assembler:
    """What the scalar rules of a program's batched operations write to. Entries that are known to be 0 have no slot."""

    zero, one = NOTHING, ONES

    def __init__(
        self, program: Program, known: Knowledge, reuse_slots: bool, pin: bool, selections: bool, descent: bool
    ) -> None:
        self.program, self.known, self.pin, self.selections, self.descent = program, known, pin, selections, descent
        self.writer, self.slots = TapeWriter(), Slots(reuse_slots)
        self.values: dict[int, Ids] = {}  # the slots of values that are needed
        self.value = self.values.__getitem__
        self.exponent: dict[int, int] = {}
        self.first_constant: dict[int, int] = {}  # of static values
        self.slopes: dict[str, int] = {}
        self.inputs: list[str] = []
        self.input_rows = 0
        self.codes: dict[str, int] = {}  # observed variable -> its row
        self.output_count = program.outputs + 1
        self.decided: list[tuple[str, int, tuple[int, ...]]] = []

    def run(self) -> Tape:
        program = self.program
        ends = program.last_uses()
        for i, operation in enumerate(program):
            if program.batched[i]:
                self.values[i] = operation.scalar(self, i, program.setting(i))
                self.slots.retain(self._referred(i))
            for j in ends[i] if not self.descent else ():
                if j in self.values and j != program.joint:
                    self.slots.release(self._referred(j))
                    del self.values[j]
        joint = self._as_slots(program.joint).ravel()
        if program.joint in self.exponent:
            joint = np.append(joint, self.exponent[program.joint])
        self.writer.emit(k.OUTPUT, np.arange(len(joint)), (joint, 0))
        plan = traceback_plan(program, self._constant, self._as_slots) if self.descent else None
        instructions, terms = self.writer.arrays()
        given = {i for i, operation in enumerate(program) if isinstance(operation, ops.Parameter | ops.Constant)}
        return Tape(
            instructions=instructions,
            terms=terms,
            slots=self.slots.count,
            constant_count=self.writer.constant_count,
            constants=tuple(self.first_constant.items()),
            computed=tuple(value for value in self.first_constant if value not in given),
            literals=tuple(self.writer.literals),
            slopes=tuple(self.slopes.items()),
            pinned=np.array([(slot, c) for c, slot in self.slots.pinned.items()], dtype=np.int64).reshape(-1, 2),
            inputs=tuple(self.inputs),
            codes=tuple(self.codes),
            states=program.outputs,
            scaled=program.joint in self.exponent,
            outputs=self.output_count,
            decided=tuple(self.decided),
            traceback=plan,
            axes=axes_with_states(program) if self.descent else (),
        )

    def _referred(self, i: int) -> list[int]:
        """The slots that a value refers to."""
        slots = set(self.values[i].ravel().tolist()) - {NOTHING, ONES}
        if i in self.exponent:
            slots.add(self.exponent[i])
        return sorted(slots)

    def _constant(self, value: int) -> int:
        """The position of the first constant of a static value."""
        if value not in self.first_constant:
            self.first_constant[value] = self.writer.reserve(self.program.size(self.program.operations[value].axes))
        return self.first_constant[value]

    def _pin(self, constants: Ids) -> Ids:
        slots = [self.slots.hold(constant) for constant in constants.ravel().tolist()]
        return np.array(slots, dtype=np.int64).reshape(constants.shape)

    def _check_terms(self, count: int) -> None:
        """Stop before anything large is allocated."""
        if self.writer.term_count + count > MAX_TERMS:
            raise TooLargeError(f"the tape would have more than {MAX_TERMS:,} terms; use engine='numpy'")

    def _unreachable(self, *_: Any) -> Ids:
        raise AssertionError("what does not depend on evidence is not on the tape")

    parameters = constants = shares = _unreachable

    def likelihoods(self, variable: str) -> Ids:
        states = self.program.sizes[variable]
        slots = self.slots.new(states)
        self.writer.emit(k.INPUT, slots, (self.input_rows + np.arange(states), 0))
        self.inputs.append(variable)
        self.input_rows += states
        return slots

    def slices(self, operation: ops.Slice, setting: Setting) -> Ids:
        (source,), (axes,) = operation.inputs, setting.axes
        over = tuple(axes.index(v) for v in operation.variables)
        possible = np.asarray(self.known.supports[source].nonzero.any(axis=over))
        return self._indexed(self._constant(source), axes, operation.variables, setting, possible)

    def _indexed(self, first: int, axes: Axes, variables: Axes, setting: Setting, possible: Mask) -> Ids:
        """The entries of a table of constants that the observed states point to, row by row."""
        sizes = setting.shape(axes)
        strides: dict[Axis, int] = dict(zip(axes, np.cumprod([1, *sizes[:0:-1]])[::-1].tolist(), strict=True))
        for name in variables:
            self.codes.setdefault(name, len(self.codes))
        # positions of the entries at the first state of every observed variable; the rest is reached by strides
        at_first = tuple(0 if a in variables else slice(None) for a in axes)
        offsets = (first + np.arange(setting.size(axes)).reshape(sizes))[at_first]
        shape, offsets = offsets.shape, offsets.ravel()
        slots = np.full(len(offsets), NOTHING, dtype=np.int64)
        live = np.flatnonzero(possible)
        index = self.slots.new(1)
        slots[live] = self.slots.new(len(live))
        reach = np.array([(self.codes[name], strides[name]) for name in variables])
        self.writer.emit_sums(k.INDEX, index, reach, len(reach))
        self.writer.emit(k.TABLE, slots[live], (offsets[live], index))
        self.slots.free(index.tolist())
        return slots.reshape(shape)

    def same_scale(self, i: int, inputs: Sequence[int]) -> None:
        """The exponents of the inputs add up."""
        exponents = [self.exponent[j] for j in inputs if j in self.exponent]
        if len(exponents) == 1:
            self.exponent[i] = exponents[0]
        elif exponents:
            self.exponent[i] = self._sum_of(np.array(exponents))

    def sums(self, i: int, operation: ops.Contract, order: Axes, setting: Setting) -> Ids:
        self._check_terms(setting.size(order))
        shape = setting.shape(order)
        rows = setting.size(operation.axes)
        inputs = sorted(operation.inputs, key=lambda j: self.program.batched[j])
        ids, live, ones = zip(*(self._operand(j, order, shape, rows) for j in inputs), strict=True)
        if len(inputs) == 1:
            inputs, ids, live = [inputs[0]] * 2, (np.zeros_like(ids[0]), ids[0]), (live[0], live[0])
            ones = (np.ones_like(live[0]), ones[0])
        linear = len(operation.inputs) == 1 or not (self.pin or self.program.batched[inputs[0]])
        valid = live[0] & live[1]
        counts = valid.sum(axis=1)
        slots = np.full(rows, NOTHING, dtype=np.int64)
        single = counts == 1
        # one term whose other factor is known to be 1: the same number, in the same slot
        first = valid.argmax(axis=1)
        at = (np.arange(rows), first)
        alias = single & ones[0][at]
        slots[alias] = ids[1][at][alias]
        if not linear:
            other = single & ~alias & ones[1][at]
            slots[other] = ids[0][at][other]
            alias = alias | other
        computed = (counts > 0) & ~alias
        slots[computed] = self.slots.new(int(computed.sum()))
        keep = valid & computed[:, None]
        terms = np.stack([ids[0][keep], ids[1][keep]], axis=1)
        self.writer.emit_sums(SUMS[operation.largest][linear], slots[computed], terms, counts[computed])
        return slots.reshape(setting.shape(operation.axes))

    def _operand(self, j: int, order: Axes, shape: list[int], rows: int) -> tuple[Ids, Mask, Mask]:
        """Slots or constants of an input over (results, summed), which may be nonzero, which are known to be 1."""
        axes = self.program.operations[j].axes
        if self.program.batched[j]:
            ids = self.values[j]
            live, ones = ids != NOTHING, ids == ONES
        else:
            live, ones = self.known.supports[j]
            ids = self._as_slots(j) if self.pin else self._constants_of(j)
        return tuple(np.broadcast_to(spread(x, axes, order), shape).reshape(rows, -1) for x in (ids, live, ones))  # type: ignore[return-value]

    def structured(self, operation: ops.Structured, setting: Setting) -> Ids:
        self._check_terms(len(operation.terms))
        operation = operation.shortened(setting, MAX_SUM_TERMS)
        ids, constant = self._referred_by(operation, setting)
        results, terms = _nonzero(operation, ids != NOTHING)
        slots = self.slots.in_turn(operation.last_uses(setting), results)
        ids = np.concatenate([ids, slots])
        counts = np.bincount(operation.owners[terms], minlength=len(slots))[results]
        product, linear = SUMS[operation.largest]
        kinds = np.where(operation.linear & (not self.pin), linear, product)
        pairs = ids[operation.terms[terms]]
        pairs[operation.terms[terms, 1] == operation.first_literal(setting), 1] = ONES
        self.writer.emit_sums(kinds[results], slots[results], pairs, counts)
        index, taken = operation.index, np.maximum(operation.index, 0)
        entries = np.where(index >= 0, ids[taken], np.where(index == ops.ONE, ONES, NOTHING))
        fixed = (index >= 0) & (entries != NOTHING) & np.append(constant, np.zeros(len(slots), dtype=np.bool_))[taken]
        entries[fixed] = self._pin(entries[fixed])
        return entries

    def _referred_by(self, operation: ops.Structured, setting: Setting) -> tuple[Ids, Mask]:
        """What the references to inputs and literals stand for, and whether that are constants, which have no slots."""
        ids, constant = [], []
        for j, rows in zip(operation.inputs, setting.batched, strict=True):
            if rows:
                own = self.values[j]
            else:
                own = self._as_slots(j) if self.pin else self._constants_of(j)
                own = np.where(self.known.supports[j].nonzero, own, NOTHING)
            ids.append(own.ravel())
            constant.append(np.full(own.size, not (rows or self.pin)))
        literals = self.writer.literal(operation.mantissas, operation.exponents)
        ids.append(self._pin(literals) if self.pin else literals)
        constant.append(np.full(len(literals), not self.pin))
        return np.concatenate(ids), np.concatenate(constant)

    def choices(self, operation: ops.Select, setting: Setting) -> Ids:
        marginal, plus, minus, thresholds = operation.inputs
        parents, out = setting.axes[0], operation.axes
        fixed = not (self.pin or operation.observed or any(setting.batched[1:]))
        n_u = self._as_slots(marginal)
        n = int(n_u.ravel()[0]) if n_u.size == 1 else self._sum_of(n_u.ravel())
        tables = (thresholds, parents), (plus, out), (minus, out)
        threshold, high, low = (self._whole(j, axes, fixed) for j, axes in tables)
        operator = ~operation.tests if fixed else self._operators(operation, setting)
        live = self._live(plus, out) | self._live(minus, out)
        slots = np.full(live.shape, NOTHING, dtype=np.int64)
        compared = (n_u.ravel(), n), (threshold.ravel(), operator.ravel())
        if self.known.soft[operation.node]:
            weights = self.slots.new(n_u.size)
            if operation.node not in self.slopes:
                self.slopes[operation.node] = self.writer.reserve(1)
            self.writer.emit(k.WEIGHT, weights, *compared, (self.slopes[operation.node], 0))
            lesser = np.broadcast_to(spread(weights.reshape(n_u.shape), parents, out), live.shape)
            slots[live] = results = self.slots.new(int(live.sum()))
            self.writer.emit(k.MIX, results, (lesser[live], 0), (high[live], low[live]))
        else:
            x, t, o = (np.broadcast_to(spread(v, parents, out), live.shape)[live] for v in (n_u, threshold, operator))
            slots[live] = results = self.slots.new(int(live.sum()))
            self.writer.emit(k.TEST, results, (x, n), (t, o), (high[live], low[live]))
            weights = self.slots.new(n_u.size if self.selections else 0)
            if self.selections:  # 1 where a test holds, and 0 elsewhere
                ends = (~ONE_CONSTANT, ~ZERO_CONSTANT) if fixed else (ONES, self.slots.hold(ZERO_CONSTANT))
                self.writer.emit(k.TEST, weights, *compared, ends)
        if self.selections:
            self._decided(operation.node, n_u, weights)
        self.slots.free(weights.tolist())
        if n_u.size > 1:
            self.slots.free([n])
        return slots

    def added(self, operation: ops.Add, setting: Setting) -> Ids:
        pairs = zip(operation.inputs, setting.axes, strict=True)
        live = [self._live(j, operation.axes) for j in operation.inputs]
        slots = [np.where(own, spread(self._as_slots(j), axes, operation.axes), NOTHING)
                 for own, (j, axes) in zip(live, pairs, strict=True)]  # fmt: skip
        both = live[0] & live[1]
        sums = np.where(live[0], slots[0], slots[1])
        sums[both] = self.slots.new(int(both.sum()))
        self.writer.emit(k.LINEAR, sums[both], *((ONE_CONSTANT, own[both]) for own in slots))
        return sums

    def extremes(self, operation: ops.Extremes, setting: Setting) -> Ids:
        (source,), order, shape = operation.inputs, operation.arranged(setting), operation.shape(setting)
        self._check_terms(2 * setting.size(order))
        known = self._as_slots(source), self.values[source] != NOTHING
        entries, live = (spread(x, setting.axes[0], order).reshape(shape) for x in known)
        possible, work = np.asarray(live.any(axis=(0, 1))), self.slots.new(1)
        parts = [self._extremes_of(entries[:, :, k, own], work) for k, own in enumerate(possible)]
        self.slots.free(work.tolist())
        return np.stack(parts, axis=-1).reshape(setting.shape(operation.axes))

    def _extremes_of(self, entries: Ids, work: Ids) -> Ids:
        """The extremes of a table (side, x, b), some b at a time, which are forgotten then: (parts, x)."""
        states = entries.shape[1]
        pairs = np.stack([entries[0], entries[-1]], axis=-1).transpose(1, 0, 2).reshape(-1, 2)
        step, now = max(1, MAX_SUM_TERMS // states) * states, np.full(3 * states, -1)
        for first in range(0, max(len(pairs), 1), step):
            new = self.slots.new(len(now))
            head = np.array([[states, first + step >= len(pairs)]])
            terms = np.concatenate([head, np.stack([new, now], axis=1), pairs[first : first + step]])
            self.writer.emit_sums(k.EXTREMES, work, terms, len(terms))
            self.slots.free(now[now >= 0].tolist())
            now = new
        return now.reshape(3, states)

    def corners(self, operation: ops.Corners, setting: Setting) -> Ids:
        states = setting.sizes[operation.axes[0]]
        low, _, mixture = self.values[operation.inputs[0]].reshape(3, states, -1)  # (x, kept)
        numbers = np.array([1 + operation.slack, -1.0, ops.extremes.LEAST_CORNER])
        whole, minus, least = self.writer.literal(numbers, np.zeros(3, dtype=np.int64)).tolist()
        corners = np.empty((states, *low.shape), dtype=np.int64)
        for j in range(low.shape[1]):
            left = self._combined([(whole, ONES), *((minus, slot) for slot in low[:, j])])
            left = self._combined([(ONE_CONSTANT, left), (ZERO_CONSTANT, left)], k.LARGEST_LINEAR)
            few = self._combined([(least, slot) for slot in mixture[:, j]])
            for s in range(states):
                weight = self._combined([(ONE_CONSTANT, mixture[s, j]), (minus, low[s, j])])
                weight = self._combined([(ONE_CONSTANT, weight), (ONE_CONSTANT, few)], k.LARGEST_LINEAR)
                at_corner = self._combined([(ONE_CONSTANT, low[s, j]), (ONE_CONSTANT, left)])
                for x in range(states):
                    entry = at_corner if x == s else low[x, j]
                    corners[s, x, j] = self._combined([(weight, entry)], k.PRODUCT)
        return corners.reshape(setting.shape(operation.axes))

    def _combined(self, terms: Sequence[tuple[int, int]], kind: int = k.LINEAR) -> int:
        """The slot of what one instruction makes of some terms."""
        result = self.slots.new(1)
        self.writer.emit_sums(kind, result, np.array(terms), len(terms))
        return int(result[0])

    def _decided(self, node: str, n_u: Ids, weight: Ids) -> None:
        """Put the marginal of a testing node's parents and the weights out, as the kernels keep them."""
        slots = np.concatenate([n_u.ravel(), weight.ravel()])
        self.writer.emit(k.OUTPUT, self.output_count + np.arange(len(slots)), (slots, 0))
        self.decided.append((node, self.output_count, n_u.shape))
        self.output_count += len(slots)

    def _operators(self, operation: ops.Select, setting: Setting) -> Ids:
        """Operators in slots, where they, or what they are used with, depend on the row."""
        if not operation.observed:
            return self._pin(self._whole_numbers(np.arange(len(TESTS)))[operation.tests])
        axes = (*setting.axes[0], *operation.observed)
        every = np.ones(setting.shape(setting.axes[0]), dtype=np.bool_)
        first = int(self._whole_numbers(operation.tests.ravel())[0])
        return self._indexed(first, axes, operation.observed, setting, every)

    def _whole_numbers(self, numbers: Ids) -> Ids:
        """Constants that the structure gives."""
        return self.writer.literal(numbers.astype(np.float64), np.zeros(len(numbers), dtype=np.int64))

    def _live(self, j: int, out: Axes) -> Mask:
        axes = self.program.operations[j].axes
        live = self.values[j] != NOTHING if self.program.batched[j] else self.known.supports[j].nonzero
        return np.array(spread(live, axes, out))

    def _whole(self, j: int, out: Axes, fixed: bool) -> Ids:
        """A table as ~constants, or as slots where some of the tables depend on the row."""
        axes = self.program.operations[j].axes
        ids = ~self._constants_of(j) if fixed else self._as_slots(j)
        return np.array(spread(ids, axes, out))

    def _constants_of(self, j: int) -> Ids:
        shape = [self.program.sizes[a] for a in self.program.operations[j].axes]
        return self._constant(j) + np.arange(int(np.prod(shape))).reshape(shape)

    def _as_slots(self, j: int) -> Ids:
        """A value as slots; entries known to be 0 are a slot that holds 0."""
        if not self.program.batched[j]:
            return self._pin(self._constants_of(j))
        slots = self.values[j]
        if (slots == NOTHING).any():
            slots = np.where(slots == NOTHING, self.slots.hold(ZERO_CONSTANT), slots)
        return slots

    def _sum_of(self, slots: Ids) -> int:
        total = self.slots.new(1)
        self.writer.emit_sums(k.LINEAR, total, np.stack([np.full_like(slots, ONE_CONSTANT), slots], axis=1), len(slots))
        return int(total[0])

    def rescaled(self, i: int, source: int) -> Ids:
        slots = self.values[source]
        present = slots != NOTHING
        live = np.array(sorted(set(slots[present].tolist())), dtype=np.int64)
        if not len(live):  # known to be 0: there is nothing to scale by
            if source in self.exponent:
                self.exponent[i] = self.exponent[source]
            return slots
        factor, exponent = self.slots.new(2)
        head = np.array([[exponent, self.exponent.get(source, -1)]])
        terms = np.concatenate([head, np.stack([live, live], axis=1)])
        self.writer.emit_sums(k.SCALE, np.array([factor]), terms, len(terms))
        products = self.slots.new(len(live))
        self.writer.emit(k.PRODUCT, products, (live, factor))
        self.exponent[i] = int(exponent)
        scaled = np.full(slots.shape, NOTHING, dtype=np.int64)
        scaled[present] = products[np.searchsorted(live, slots[present])]
        self.slots.free([int(factor)])
        return scaled


def _nonzero(operation: ops.Structured, known: Mask) -> tuple[Mask, Mask]:
    """Which results, and which terms, may differ from 0, given which inputs and literals may."""
    nonzero, bounds = np.append(known, np.ones(len(operation.linear), dtype=np.bool_)), operation.bounds
    while True:  # the compiler drops what it knows to be 0, so there is little left to find
        terms = np.asarray(nonzero[operation.terms].all(axis=1))
        results = np.add.reduceat(terms, bounds[:-1], dtype=np.int64) > 0 if len(bounds) > 1 else nonzero[:0]
        if (results == nonzero[len(known) :]).all():
            return results, terms
        nonzero[len(known) :] = results
