"""From a program to a tape: the batched operations, entry by entry, as flat arrays of instructions.

What only depends on parameters is not on the tape: its entries are constants of it, filled in by the NumPy
engine. Entries that known 0s make zero vanish, and so do multiplications by known 1s. A slot is used again
after the last operation that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats, representable, scaled
from tacit.compiler.operations import (
    ONE,
    Add,
    Axes,
    Axis,
    Constant,
    Contract,
    Parameter,
    Select,
    Setting,
    Slice,
    Structured,
    Support,
    spread,
)
from tacit.compiler.operations.operation import Array, Ids, Key, Mask
from tacit.compiler.program import Program
from tacit.engines.tape import instructions as k
from tacit.engines.tape.traceback_plan import TracebackPlan, axes_with_states, traceback_plan
from tacit.model.cpt import TESTS

Columns = list[tuple[Ids | int, Ids | int]]  # the terms of instructions of one kind
GIVEN = (Parameter, Constant)  # what is not computed
NOTHING = -1  # an entry that is known to be 0
ONES = 0  # the slot that always holds 1
ONE_CONSTANT, ZERO_CONSTANT = 0, 1
MAX_TERMS = 50_000_000
LONGEST = 32  # terms of a sum of single entries: of longer ones, LLVM takes ten times as long for a term


class Literals(NamedTuple):
    """Constants that the structure gives: the first of them is where, and they are mantissas * 2**exponents."""

    first: int
    mantissas: Floats
    exponents: Ids

    def put(self, constants: Array) -> None:
        """Fill them in, as floats of the type of the constants."""
        constants[self.first : self.first + len(self.mantissas)] = scaled(
            self.mantissas, self.exponents, constants.dtype
        )

    def fit(self, dtype: np.dtype[np.floating]) -> bool:
        """Whether all of them are in the range of floats of a type."""
        return bool(representable(self.mantissas, self.exponents, dtype).all())


@dataclass(frozen=True, eq=False)
class Tape:
    """Instructions and what they refer to.

    `constants` lists (value, first constant) for the program's values that the tape reads, `computed` those of them
    that are not tables as they were given; `literals` those that the structure gives;
    `slopes` the testing nodes whose gamma is a constant, and `pinned` the slots that hold constants throughout, with
    their constant.
    `inputs` and `codes` name the evidence: (variable, states) and variables, in the order of their rows.
    """

    instructions: NDArray[np.int32]
    terms: NDArray[np.int32]
    slots: int
    constant_count: int
    constants: tuple[tuple[int, int], ...]
    computed: tuple[int, ...]
    literals: tuple[Literals, ...]
    slopes: tuple[tuple[str, int], ...]
    pinned: tuple[tuple[int, int], ...]
    inputs: tuple[str, ...]
    codes: tuple[str, ...]
    states: int  # the first rows of the output are the joint, the next one, if it was rescaled, its exponent
    scaled: bool
    outputs: int
    decided: tuple[tuple[str, int, tuple[int, ...]], ...]  # testing node, first row of the output, parent states
    traceback: TracebackPlan | None
    axes: tuple[Axis, ...]  # that get states on it

    @property
    def work(self) -> int:
        """Multiply-adds per row, about."""
        return len(self.terms)


@dataclass(frozen=True)
class Knowledge:
    """What is known of a program's numbers without knowing them.

    For its static values, which entries may differ from 0 and which are 1; for its testing nodes, whether they are
    selected by a sigmoid.
    """

    supports: Mapping[int, Support]
    soft: Mapping[str, bool]


def knowledge(program: Program, parameters: Mapping[Key, Array], gammas: Mapping[str, float | None]) -> Knowledge:
    """What the exact 0s and 1s of the parameters, which never change, say about the static values."""
    supports: dict[int, Support] = {}
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
        self.program, self.known, self.reuse_slots, self.pin = program, known, reuse_slots, pin
        self.selections, self.descent = selections, descent
        self.slots: dict[int, Ids] = {}
        self.exponent: dict[int, int] = {}
        self.instructions: list[Ids] = []
        self.terms: list[Ids] = []
        self.term_count = 0
        self.slot_count = 1  # slot 0 holds ones
        self.free: list[int] = []
        self.uses: dict[int, int] = {}  # how many live values refer to a slot
        self.first_constant: dict[int, int] = {}
        self.constant_count = 2  # the first two are 1 and 0
        self.literals: list[Literals] = []
        self.slopes: dict[str, int] = {}
        self.pinned: dict[int, int] = {}  # constant -> slot
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
                self.slots[i] = operation.scalar(self, i, program.setting(i))
                self._retain(i)
            for j in ends[i] if not self.descent else ():
                self._release(j)
        self._output()
        plan = traceback_plan(program, self._constant, self._as_slots) if self.descent else None
        return Tape(
            instructions=_stacked(self.instructions, 4),
            terms=_stacked(self.terms, 2),
            slots=self.slot_count,
            constant_count=self.constant_count,
            constants=tuple(self.first_constant.items()),
            computed=tuple(
                value
                for value in self.first_constant
                if not isinstance(program.operations[value], Parameter | Constant)
            ),
            literals=tuple(self.literals),
            slopes=tuple(self.slopes.items()),
            pinned=tuple((slot, constant) for constant, slot in self.pinned.items()),
            inputs=tuple(self.inputs),
            codes=tuple(self.codes),
            states=program.outputs,
            scaled=program.joint in self.exponent,
            outputs=self.output_count,
            decided=tuple(self.decided),
            traceback=plan,
            axes=axes_with_states(program) if self.descent else (),
        )

    def _new_slots(self, count: int) -> Ids:
        taken = [self.free.pop() for _ in range(min(count, len(self.free)))] if self.reuse_slots else []
        fresh = range(self.slot_count, self.slot_count + count - len(taken))
        self.slot_count += len(fresh)
        return np.array([*taken, *fresh], dtype=np.int64)

    def _retain(self, i: int) -> None:
        for slot in self._referred(i):
            self.uses[slot] = self.uses.get(slot, 0) + 1

    def _release(self, i: int) -> None:
        if i not in self.slots or i == self.program.joint:
            return
        for slot in self._referred(i):
            self.uses[slot] -= 1
            if not self.uses[slot]:
                self.free.append(slot)
        del self.slots[i]

    def _referred(self, i: int) -> list[int]:
        slots = set(self.slots[i].ravel().tolist()) - {NOTHING, ONES}
        if i in self.exponent:
            slots.add(self.exponent[i])
        return sorted(slots)

    def _constant(self, value: int) -> int:
        """The position of the first constant of a static value."""
        if value not in self.first_constant:
            self.first_constant[value] = self.constant_count
            self.constant_count += self.program.size(self.program.operations[value].axes)
        return self.first_constant[value]

    def _pin(self, constants: Ids) -> Ids:
        """Slots that hold constants."""
        for c in _distinct(constants).tolist():
            if c not in self.pinned:
                self.pinned[c] = self.slot_count
                self.uses[self.slot_count] = 1  # for good
                self.slot_count += 1
        return np.vectorize(self.pinned.__getitem__, otypes=[np.int64])(constants) if constants.size else constants

    def _emit(self, op: int | Ids, dst: Ids, terms: Ids, per: int | Ids) -> None:
        """Instructions, of one kind or each of its own: `terms` (count, 2), `per` of them for each destination."""
        kinds, counts = np.full(len(dst), op), np.full(len(dst), per)
        end = self.term_count + np.cumsum(counts)
        self.instructions.append(np.stack([kinds, dst, end - counts, end], axis=1))
        self.terms.append(terms)
        self.term_count += len(terms)

    def _check_terms(self, count: int) -> None:
        """Stop before anything large is allocated."""
        if self.term_count + count > MAX_TERMS:
            raise TooLargeError(f"the tape would have more than {MAX_TERMS:,} terms; use engine='numpy'")

    def value(self, i: int) -> Ids:
        return self.slots[i]

    def parameters(self, operation: Any) -> Ids:
        raise AssertionError("what does not depend on evidence is not on the tape")

    def constants(self, table: Any) -> Ids:
        raise AssertionError("what does not depend on evidence is not on the tape")

    def likelihoods(self, variable: str) -> Ids:
        states = self.program.sizes[variable]
        rows = np.arange(self.input_rows, self.input_rows + states)
        self.inputs.append(variable)
        self.input_rows += states
        slots = self._new_slots(states)
        self._emit(k.INPUT, slots, np.stack([rows, np.zeros_like(rows)], axis=1), 1)
        return slots

    def slices(self, operation: Slice, setting: Setting) -> Ids:
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
        index = self._new_slots(1)
        slots[live] = self._new_slots(len(live))
        reach = np.array([(self.codes[name], strides[name]) for name in variables])
        self._emit(k.INDEX, index, reach, len(reach))
        self._emit(k.TABLE, slots[live], np.stack([offsets[live], np.full(len(live), index[0])], axis=1), 1)
        if self.reuse_slots:
            self.free.append(int(index[0]))
        return slots.reshape(shape)

    def same_scale(self, i: int, inputs: Sequence[int]) -> None:
        """The exponents of the inputs add up."""
        exponents = [self.exponent[j] for j in inputs if j in self.exponent]
        if len(exponents) == 1:
            self.exponent[i] = exponents[0]
        elif exponents:
            slot = self._new_slots(1)
            self._emit(k.LINEAR, slot, np.array([[ONE_CONSTANT, own] for own in exponents]), len(exponents))
            self.exponent[i] = int(slot[0])

    def sums(self, i: int, operation: Contract, order: Axes, setting: Setting) -> Ids:
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
        made = (counts > 0) & ~alias
        slots[made] = self._new_slots(int(made.sum()))
        keep = valid & made[:, None]
        terms = np.stack([ids[0][keep], ids[1][keep]], axis=1)
        kinds = (k.LARGEST_PRODUCT, k.LARGEST_LINEAR) if operation.largest else (k.PRODUCT, k.LINEAR)
        self._emit(kinds[linear], slots[made], terms, counts[made])
        return slots.reshape(setting.shape(operation.axes))

    def _operand(self, j: int, order: Axes, shape: list[int], rows: int) -> tuple[Ids, Mask, Mask]:
        """Slots or constants of an input over (results, summed), which may be nonzero, which are known to be 1."""
        axes = self.program.operations[j].axes
        if self.program.batched[j]:
            ids = self.slots[j]
            live, ones = ids != NOTHING, ids == ONES
        else:
            live, ones = self.known.supports[j]
            ids = self._as_slots(j) if self.pin else self._constants_of(j)
        return tuple(np.broadcast_to(spread(x, axes, order), shape).reshape(rows, -1) for x in (ids, live, ones))  # type: ignore[return-value]

    def structured(self, operation: Structured, setting: Setting) -> Ids:
        self._check_terms(len(operation.terms))
        operation = operation.shortened(setting, LONGEST)
        ids, constant = self._referred_by(operation, setting)
        results, terms = _nonzero(operation, ids != NOTHING)
        slots = self._slots_in_turn(operation.last_uses(setting), results)
        ids = np.concatenate([ids, slots])
        counts = np.bincount(operation.owners[terms], minlength=len(slots))[results]
        linear = operation.linear & (not self.pin)
        sums, largest = np.where(linear, k.LINEAR, k.PRODUCT), np.where(linear, k.LARGEST_LINEAR, k.LARGEST_PRODUCT)
        kinds = largest if operation.largest else sums
        pairs = ids[operation.terms[terms]]
        pairs[operation.terms[terms, 1] == operation.first_literal(setting), 1] = ONES
        self._emit(kinds[results], slots[results], pairs, counts)
        index, taken = operation.index, np.maximum(operation.index, 0)
        made = np.where(index >= 0, ids[taken], np.where(index == ONE, ONES, NOTHING))
        fixed = (index >= 0) & (made != NOTHING) & np.append(constant, np.zeros(len(slots), dtype=np.bool_))[taken]
        made[fixed] = self._pin(made[fixed])
        return made

    def _referred_by(self, operation: Structured, setting: Setting) -> tuple[Ids, Mask]:
        """What the references to inputs and literals stand for, and whether that are constants, which have no slots."""
        ids, constant = [], []
        for j, rows in zip(operation.inputs, setting.batched, strict=True):
            if rows:
                own = self.slots[j]
            else:
                own = self._as_slots(j) if self.pin else self._constants_of(j)
                own = np.where(self.known.supports[j].nonzero, own, NOTHING)
            ids.append(own.ravel())
            constant.append(np.full(own.size, not (rows or self.pin)))
        first = self._scaled_literals(operation.mantissas, operation.exponents)
        literals = first + np.arange(len(operation.mantissas))
        ids.append(self._pin(literals) if self.pin else literals)
        constant.append(np.full(len(literals), not self.pin))
        return np.concatenate(ids), np.concatenate(constant)

    def _slots_in_turn(self, last: Ids, made: Mask) -> Ids:
        """Slots for the results of instructions, each free again after the last one that reads it."""
        slots = np.full(len(last), NOTHING, dtype=np.int64)
        if not self.reuse_slots:
            slots[made] = self._new_slots(int(made.sum()))
            return slots
        which = np.flatnonzero(made)
        by_end = which[np.argsort(last[which], kind="stable")]
        ending, ends = by_end.tolist(), [*last[by_end].tolist(), len(last)]
        slot_of, free, fresh, ended = slots.tolist(), self.free, self.slot_count, 0
        for i in which.tolist():
            while ends[ended] < i:
                free.append(slot_of[ending[ended]])
                ended += 1
            if free:
                slot_of[i] = free.pop()
            else:
                slot_of[i] = fresh
                fresh += 1
        self.slot_count = fresh
        free += [slot_of[i] for i, end in zip(ending[ended:], ends[ended:], strict=False) if end < len(last)]
        return np.array(slot_of, dtype=np.int64)

    def choices(self, operation: Select, setting: Setting) -> Ids:
        marginal, plus, minus, thresholds = operation.inputs
        parents, out = setting.axes[0], operation.axes
        fixed = not (self.pin or operation.observed or any(setting.batched[1:]))
        gamma = self.known.soft[operation.node]
        n_u = self._as_slots(marginal)
        n = self._total(n_u)
        threshold, high, low = (
            self._whole(j, axes, fixed) for j, axes in ((thresholds, parents), (plus, out), (minus, out))
        )
        operator = ~operation.tests if fixed else self._operators(operation, setting)
        live = self._live(plus, out) | self._live(minus, out)
        if gamma:
            pairs: Columns = [(n_u.ravel(), n), (threshold.ravel(), operator.ravel()), (self._slope(operation.node), 0)]
            weight = self._new_slots(n_u.size)
            self._emit(k.WEIGHT, weight, _interleaved(pairs, n_u.size), 3)
            lesser = np.broadcast_to(spread(weight.reshape(n_u.shape), parents, out), live.shape)
            columns: Columns = [(lesser[live], 0), (high[live], low[live])]
            op = k.MIX
        else:
            x, t, o = (np.broadcast_to(spread(v, parents, out), live.shape)[live] for v in (n_u, threshold, operator))
            columns = [(x, n), (t, o), (high[live], low[live])]
            op = k.TEST
        slots = np.full(live.shape, NOTHING, dtype=np.int64)
        slots[live] = made = self._new_slots(int(live.sum()))
        self._emit(op, made, _interleaved(columns, len(made)), len(columns))
        if self.selections:
            self._decided(operation.node, n_u, weight if gamma else self._tested(n_u, n, threshold, operator, fixed))
        if gamma and self.reuse_slots:
            self.free.extend(weight.tolist())
        if self.reuse_slots and n_u.size > 1:
            self.free.append(n)
        return slots

    def shares(self, operation: Any, setting: Setting) -> Ids:
        raise AssertionError("what does not depend on evidence is not on the tape")

    def added(self, operation: Add, setting: Setting) -> Ids:
        pairs = zip(operation.inputs, setting.axes, strict=True)
        live = [self._live(j, operation.axes) for j in operation.inputs]
        slots = [np.where(own, spread(self._as_slots(j), axes, operation.axes), NOTHING)
                 for own, (j, axes) in zip(live, pairs, strict=True)]  # fmt: skip
        both = live[0] & live[1]
        made = np.where(live[0], slots[0], slots[1])
        made[both] = self._new_slots(int(both.sum()))
        columns: Columns = [(ONE_CONSTANT, own[both]) for own in slots]
        self._emit(k.LINEAR, made[both], _interleaved(columns, int(both.sum())), 2)
        return made

    def _tested(self, n_u: Ids, n: int, threshold: Ids, operator: Ids, fixed: bool) -> Ids:
        """Slots that hold 1 where a test holds, and 0 elsewhere."""
        one, zero = (~ONE_CONSTANT, ~ZERO_CONSTANT) if fixed else (ONES, self._zero())
        columns: Columns = [(n_u.ravel(), n), (threshold.ravel(), operator.ravel()), (one, zero)]
        slots = self._new_slots(n_u.size)
        self._emit(k.TEST, slots, _interleaved(columns, n_u.size), 3)
        if self.reuse_slots:
            self.free.extend(slots.tolist())
        return slots

    def _decided(self, node: str, n_u: Ids, weight: Ids) -> None:
        """Put the marginal of a testing node's parents and the weights out, as the kernels keep them."""
        slots = np.concatenate([n_u.ravel(), weight.ravel()])
        rows = self.output_count + np.arange(len(slots))
        self._emit(k.OUTPUT, rows, np.stack([slots, np.zeros_like(slots)], axis=1), 1)
        self.decided.append((node, self.output_count, n_u.shape))
        self.output_count += len(slots)

    def _operators(self, operation: Select, setting: Setting) -> Ids:
        """Operators in slots, where they, or what they are used with, depend on the row."""
        if not operation.observed:
            return self._pin(self._literal(np.arange(len(TESTS))) + operation.tests)
        axes = (*setting.axes[0], *operation.observed)
        every = np.ones(setting.shape(setting.axes[0]), dtype=np.bool_)
        return self._indexed(self._literal(operation.tests.ravel()), axes, operation.observed, setting, every)

    def _literal(self, numbers: Ids) -> int:
        """The position of the first of some constants that the structure gives."""
        return self._scaled_literals(numbers.astype(np.float64), np.zeros(len(numbers), dtype=np.int64))

    def _scaled_literals(self, mantissas: Floats, exponents: Ids) -> int:
        first = self.constant_count
        self.literals.append(Literals(first, mantissas, exponents))
        self.constant_count += len(mantissas)
        return first

    def _live(self, j: int, out: Axes) -> Mask:
        axes = self.program.operations[j].axes
        live = self.slots[j] != NOTHING if self.program.batched[j] else self.known.supports[j].nonzero
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
        slots = self.slots[j]
        if (slots == NOTHING).any():
            slots = np.where(slots == NOTHING, self._zero(), slots)
        return slots

    def _zero(self) -> int:
        if ZERO_CONSTANT not in self.pinned:
            self.pinned[ZERO_CONSTANT] = self.slot_count
            self.slot_count += 1
        return self.pinned[ZERO_CONSTANT]

    def _total(self, n_u: Ids) -> int:
        """A slot that holds the sum of some slots."""
        if n_u.size == 1:
            return int(n_u.ravel()[0])
        slot = self._new_slots(1)
        self._emit(k.LINEAR, slot, np.stack([np.zeros(n_u.size, dtype=np.int64), n_u.ravel()], axis=1), n_u.size)
        return int(slot[0])

    def _slope(self, node: str) -> int:
        if node not in self.slopes:
            self.slopes[node] = self.constant_count
            self.constant_count += 1
        return self.slopes[node]

    def rescaled(self, i: int, source: int) -> Ids:
        slots = self.slots[source]
        live = _distinct(slots[slots != NOTHING])
        if not len(live):  # known to be 0: there is nothing to scale by
            if source in self.exponent:
                self.exponent[i] = self.exponent[source]
            return slots
        factor, exponent = self._new_slots(2)
        head = np.array([[exponent, self.exponent.get(source, -1)]])
        self._emit(k.SCALE, np.array([factor]), np.concatenate([head, np.stack([live, live], axis=1)]), 1 + len(live))
        made = self._new_slots(len(live))
        self._emit(k.PRODUCT, made, np.stack([live, np.full(len(live), factor)], axis=1), 1)
        self.exponent[i] = int(exponent)
        scaled = np.full(slots.shape, NOTHING, dtype=np.int64)
        present = slots != NOTHING
        scaled[present] = made[np.searchsorted(live, slots[present])]
        if self.reuse_slots:
            self.free.append(int(factor))
        return scaled

    def _output(self) -> None:
        joint = self.program.joint
        slots = self._as_slots(joint).ravel()
        rows = np.arange(len(slots))
        if joint in self.exponent:
            slots, rows = np.append(slots, self.exponent[joint]), np.append(rows, len(rows))
        self._emit(k.OUTPUT, rows, np.stack([slots, np.zeros_like(slots)], axis=1), 1)


def _nonzero(operation: Structured, known: Mask) -> tuple[Mask, Mask]:
    """Which results, and which terms, may differ from 0, given which inputs and literals may."""
    nonzero, bounds = np.append(known, np.ones(len(operation.linear), dtype=np.bool_)), operation.bounds
    while True:  # the compiler drops what it knows to be 0, so there is little left to find
        terms = np.asarray(nonzero[operation.terms].all(axis=1))
        results = np.add.reduceat(terms, bounds[:-1], dtype=np.int64) > 0 if len(bounds) > 1 else nonzero[:0]
        if (results == nonzero[len(known) :]).all():
            return results, terms
        nonzero[len(known) :] = results


def _distinct(numbers: Ids) -> Ids:
    """Each number once, in order; `np.unique` would load masked arrays, which takes longer than a small tape does."""
    ordered = np.sort(numbers, axis=None)
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[new])


def _interleaved(columns: Columns, count: int) -> Ids:
    """Several terms per instruction: (count * len(columns), 2)."""
    terms = np.empty((count, len(columns), 2), dtype=np.int64)
    for t, (a, b) in enumerate(columns):
        terms[:, t, 0], terms[:, t, 1] = a, b
    return terms.reshape(-1, 2)


def _stacked(blocks: list[Ids], width: int) -> NDArray[np.int32]:
    if not blocks:
        return np.empty((0, width), dtype=np.int32)
    return np.ascontiguousarray(np.concatenate(blocks), dtype=np.int32)
