"""What one thread of a GPU does with its row: evidence of any form, what is noticed, and sums over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

from tacit.engines.native.backward import REVERSE, Adjoints
from tacit.engines.native.forward import FORWARD, Terms
from tacit.engines.native.lanes import Lanes, Note
from tacit.engines.native.pieces import TapeStep
from tacit.engines.native.readers import SMALLEST_NORMAL
from tacit.engines.tape import instructions as k
from tacit.evidence.column import Kind

WARP, LEVELS = 32, 5  # threads that can hand each other numbers: 2**5 of them
CODES = {"b": ("i8", 2**7), "h": ("i16", 2**15), "i": ("i32", 2**31)}  # by a letter: the type, and how many states

# Products of two numbers that are not smaller are exact but for rounding.
LEAST_EXACT = {64: 2.0**-500, 32: 2.0**-60}
LEAST_EXACT_BITS = {64: (1023 - 500) << 20, 32: (127 - 60) << 23}  # as bits: of a double, the upper half
SUMS = frozenset((k.LINEAR, k.PRODUCT, k.MIX, k.LARGEST_LINEAR, k.LARGEST_PRODUCT))


@dataclass(frozen=True)
class Given:
    """How evidence on a variable is given: codes by a letter of `CODES`, with 0 `states` if they index tables."""

    kind: Kind
    states: int
    code: str = ""


def letter_of(states: int) -> str:
    """The letter of the shortest codes that tell so many states apart."""
    return next(letter for letter, (_, most) in CODES.items() if states < most)


@dataclass
class Thread(Adjoints):
    """The lines of one thread, which works on `%row`.

    The evidence on variable i begins at `%data<i>`; `%row<i>` and `%state<i>` are the bytes from one row, and one
    state, to the next. In the backward pass, sums over rows are added to `%sums`, one for each number in the order of
    `gathered`, and to `%sums.tables`, one for each constant, where rows point to them.
    """

    given: Sequence[Given] = ()
    device: bool = True
    unusual: list[str] = field(default_factory=list)  # where evidence is not as it should be
    results: dict[int, str] = field(default_factory=dict)
    least: str | None = None  # the bits of the smallest value so far, less 1: this makes 0 the largest
    likelihoods: dict[tuple[int, int], str] = field(default_factory=dict)
    recomputed: dict[int, TapeStep] = field(default_factory=dict)  # slots that are computed again rather than kept
    gathered: list[int] = field(default_factory=list)
    waiting: list[str | None] = field(default_factory=lambda: [None] * LEVELS)

    unchanging = ", !invariant.load !0"

    def follow(self, step: TapeStep) -> None:
        FORWARD[step.kind](self, step.dst, step.terms)
        if step.kind in SUMS:
            self.note_small(self.values[step.dst])

    def slot(self, slot: int) -> str:
        self._recompute(slot)
        return super().slot(slot)

    def index(self, slot: int) -> str:
        self._recompute(slot)
        return super().index(slot)

    def _recompute(self, slot: int) -> None:
        if slot in self.recomputed and slot not in self.values:
            step = self.recomputed[slot]
            FORWARD[step.kind](self, step.dst, step.terms)

    def seed(self, state: int) -> str:
        """The derivatives by a number of the joint, 0 for threads without a row."""
        return self.select("%there", super().seed(state), self.lanes.literal(0.0))

    def load(self, array: str, number: int, scalar: str = "", unit: str = "") -> str:
        """A number of an array; evidence in any form."""
        if array == "inputs":
            return self.likelihood(*self.owners[number])
        if array == "codes":
            return self.code(number + sum(own.states > 0 for own in self.given))
        return super().load(array, number, scalar, unit)

    def store(self, array: str, number: int, value: str, scalar: str = "", unit: str = "") -> None:
        """Keep a number of an array; outputs are written all together."""
        if array == "outputs":
            self.results[number] = value
        else:
            super().store(array, number, value, scalar, unit)

    @cached_property
    def owners(self) -> list[tuple[int, int]]:
        """The variable and the state of every input."""
        return [(variable, state) for variable, own in enumerate(self.given) for state in range(own.states)]

    def likelihood(self, variable: int, state: int) -> str:
        """A likelihood; from the first to the last state they sum to 1."""
        if (variable, state) not in self.likelihoods:
            kind = self.given[variable].kind
            states = [state] if kind is Kind.NORMALISED else range(self.given[variable].states)
            for own, value in zip(states, READ[kind](self, variable, states), strict=True):
                self.likelihoods[variable, own] = value
                if kind is not Kind.CODES:  # only a comparison sees the smallest of all, which a value's halves do not
                    small = self.compare("olt", value, self.lanes.literal(LEAST_EXACT[self.lanes.bits]))
                    self.note_doubt(self.both(small, self.compare("ogt", value, self.lanes.literal(0.0))))
        return self.likelihoods[variable, state]

    def number(self, variable: int, state: int) -> str:
        address = self._start(variable)
        if state:
            address = self.place(address, self.let(f"mul i64 %state{variable}, {state}"), "i8")
        return self.let(f"load {self.lanes.number}, ptr {address}{self.unchanging}")

    def code(self, variable: int) -> str:
        kind, _ = CODES[self.given[variable].code]
        code = self.let(f"load {kind}, ptr {self._start(variable)}{self.unchanging}")
        return code if kind == "i32" else self.let(f"sext {kind} {code} to i32")

    def _start(self, variable: int) -> str:
        return self.place(f"%data{variable}", self.let(f"mul i64 %row, %row{variable}"), "i8")

    def note_small(self, value: str) -> None:
        """Look at a value that may be so small that products with it lose digits."""
        bits = self.let(f"bitcast {self.lanes.type} {value} to {self.lanes.integer}")
        if self.lanes.bits == 64:
            bits = self.let(f"trunc i64 {self.let(f'lshr i64 {bits}, 32')} to i32")
        less = self.let(f"add i32 {bits}, -1")
        before = self.least
        self.least = less if before is None else self.let(f"call i32 @llvm.umin.i32(i32 {before}, i32 {less})")

    def note(self) -> str:
        """All that was noticed."""
        doubt = self.doubt or "false"
        if self.least is not None:
            small = self.let(f"icmp ult i32 {self.least}, {LEAST_EXACT_BITS[self.lanes.bits] - 1}")
            doubt = self.either(doubt, small)
        note = self.let(f"select i1 {doubt}, i8 {Note.IMPRECISE}, i8 0")
        if not self.unusual:
            return note
        return self.let(f"select i1 {reduce(self.either, self.unusual)}, i8 {Note.IMPRECISE | Note.UNUSUAL}, i8 {note}")

    def settle(self) -> None:
        """Look at what is to be noticed so far: LLVM would rather do so at the end, and keep all values until then."""
        if not self.device:
            return
        if self.least is not None:
            self.least = self._settled(self.least)
        if self.unusual:
            self.unusual = [self._settled_mask(reduce(self.either, self.unusual))]
        if self.doubt is not None:
            self.doubt = self._settled_mask(self.doubt)

    def _settled_mask(self, mask: str) -> str:
        return self.let(f"icmp ne i32 {self._settled(self.let(f'zext i1 {mask} to i32'))}, 0")

    def _settled(self, number: str) -> str:
        return self.let(f'call i32 asm sideeffect "mov.b32 $0, $1;", "=r,r"(i32 {number})')

    def raise_flag(self, note: str) -> None:
        """Tell the host, which looks at the rows only if there is something to see."""
        with self.when(self.let(f"icmp ne i8 {note}, 0")):
            wide = self.let(f"zext i8 {note} to i32")
            self.let(f"atomicrmw or ptr %flag, i32 {wide} monotonic")

    def give_constant(self, place: int, derivative: str, factor: str | None = None) -> None:
        """Add up the derivatives by a constant: 32 numbers of each thread of a warp with 31 exchanges."""
        # of two numbers, a thread keeps one and hands the other to a neighbour: at last, each has one of the sums
        sum_ = derivative if factor is None else self.mul(derivative, factor)
        self.gathered.append(place)
        if not self.device:
            self.add_to_sum(self.place("%sums", len(self.gathered) - 1, "double"), sum_)
            return
        level = 0
        while level < LEVELS and (first := self.waiting[level]) is not None:
            self.waiting[level] = None
            keep, hand = self.select(f"%bit{level}", sum_, first), self.select(f"%bit{level}", first, sum_)
            sum_ = self.add(keep, self._exchanged(hand, 1 << level))
            level += 1
        if level < LEVELS:
            self.waiting[level] = sum_
        else:
            self.add_to_sum(self.place("%sums.lane", len(self.gathered) - WARP, "double"), sum_)

    def finish_sums(self) -> None:
        """Fill up the last numbers that are added up together."""
        while any(number is not None for number in self.waiting):
            self.give_constant(0, self.lanes.literal(0.0))

    def _exchanged(self, value: str, distance: int) -> str:
        """What the thread at some distance has."""
        parts = self.lanes.bits // 32
        wide, vector = f"<{parts} x i32>", "poison"
        halves = self.let(f"bitcast {self.lanes.type} {value} to {wide}")
        for i in range(parts):
            own = self.let(f"extractelement {wide} {halves}, i32 {i}")
            other = self.let(f"call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {own}, i32 {distance}, i32 31)")
            vector = self.let(f"insertelement {wide} {vector}, i32 {other}, i32 {i}")
        return self.let(f"bitcast {wide} {vector} to {self.lanes.type}")

    def add_to_sum(self, address: str, value: str) -> None:
        self.let(f"atomicrmw fadd ptr {address}, double {self.cast(value, self.lanes, Lanes(64))} monotonic")


def _look_up(t: Thread, dst: int, terms: Terms, a: str) -> None:
    """Each row points to a constant of its own."""
    base, index = terms[0]
    far = t.let(f"sext i32 {t.index(index)} to i64")
    t.add_to_sum(t.place("%sums.tables", t.let(f"add i64 {far}, {base}"), "double"), a)


BACKWARD: dict[int, Callable[[Thread, int, Terms, str], None]] = {**REVERSE, k.TABLE: _look_up}


def _normalised(t: Thread, variable: int, states: Sequence[int]) -> list[str]:
    return [t.number(variable, state) for state in states]


def _likelihoods(t: Thread, variable: int, states: Sequence[int]) -> list[str]:
    """In any proportion: they are divided by their sum; no number at all is no evidence."""
    numbers = _normalised(t, variable, states)
    one, zero = t.lanes.literal(1.0), t.lanes.literal(0.0)
    total, none, good = numbers[0], t.compare("uno", numbers[0], numbers[0]), t.compare("oge", numbers[0], zero)
    for x in numbers[1:]:
        total = t.add(total, x)
        none = t.both(none, t.compare("uno", x, x))
        good = t.both(good, t.compare("oge", x, zero))
    tiny = SMALLEST_NORMAL[t.lanes.bits]
    least, most = t.lanes.literal(4 * tiny), t.lanes.literal(0.25 / tiny)
    good = t.both(good, t.both(t.compare("oge", total, least), t.compare("ole", total, most)))
    t.unusual.append(t.let(f"xor i1 {t.either(none, good)}, true"))
    return [t.select(none, one, t.div(x, total)) for x in numbers]


def _first(t: Thread, variable: int, states: Sequence[int]) -> list[str]:
    """From the likelihood of the first of two states; NaN is no evidence."""
    one, zero = t.lanes.literal(1.0), t.lanes.literal(0.0)
    p = t.number(variable, 0)
    none = t.compare("uno", p, p)
    good = t.both(t.compare("oge", p, zero), t.compare("ole", p, one))
    t.unusual.append(t.let(f"xor i1 {t.either(none, good)}, true"))
    return [t.select(none, one, p), t.select(none, one, t.sub(one, p))]


def _observed(t: Thread, variable: int, states: Sequence[int]) -> list[str]:
    """1 for the observed state; a negative code is no evidence."""
    code = t.code(variable)
    none = t.let(f"icmp slt i32 {code}, 0")
    masks = [t.either(none, t.let(f"icmp eq i32 {code}, {state}")) for state in states]
    return [t.select(mask, t.lanes.literal(1.0), t.lanes.literal(0.0)) for mask in masks]


READ: dict[Kind, Callable[[Thread, int, Sequence[int]], list[str]]] = {
    Kind.NORMALISED: _normalised,
    Kind.LIKELIHOODS: _likelihoods,
    Kind.FIRST: _first,
    Kind.CODES: _observed,
}
