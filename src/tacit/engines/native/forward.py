"""The instructions of a tape as lines of LLVM IR on one value of every slot: what `opcodes` does to a whole tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import starmap

from tacit.engines.native.lanes import FunctionText
from tacit.engines.tape import instructions as k
from tacit.engines.tape.tape import extremes_head

Terms = Sequence[Sequence[int]]
SPLIT_PRODUCTS = 6  # products from which on a sum has two parts
OPERATORS = ("oge", "ogt", "ole", "olt")  # x >=, >, <=, < limit for operator 0, 1, 2, 3


@dataclass
class Body(FunctionText):
    """Lines that work on some rows: a piece of a tape, whose values that other pieces made or need are in memory.

    The arrays are pointers to these rows: `%inputs`, `%codes`, `%outputs`, `%values`. The next number of an array is
    `strides` rows further on. `%constants` are numbers; `%doubts` is one row of yes or no that only ever gets more yes.
    """

    strides: dict[str, int | str] = field(default_factory=dict)
    pinned: dict[int, int] = field(default_factory=dict)  # slots that hold constants throughout
    values: dict[int, str] = field(default_factory=dict)  # by slot: the names of values
    places: set[int] = field(default_factory=set)  # slots that hold places in tables
    addresses: dict[tuple[int, str], list[str]] = field(default_factory=dict)  # of places in tables, row by row
    doubt: str | None = None
    memory: dict[int, int] | None = None  # where values that outlive their piece are kept; None: each at its slot

    def kept_at(self, slot: int) -> int:
        return slot if self.memory is None else self.memory[slot]

    def entry(self, array: str, number: int, scalar: str) -> str:
        """The address of a number of an array, for these rows."""
        stride = self.strides[array]
        offset: int | str = number * stride if isinstance(stride, int) else 0
        if isinstance(stride, str) and number:
            offset = self.let(f"mul i64 {stride}, {number}")
        return self.place(f"%{array}", offset, scalar)

    def array_from(self, array: str, row: str) -> str:
        """The name of an array that begins at a later row of another one."""
        address = self.place(f"%{array}", row, self.lanes.number)
        self.strides[address[1:]] = self.strides[array]
        return address[1:]

    def load(self, array: str, number: int, scalar: str = "", unit: str = "") -> str:
        """A number of an array of some `unit`, for these rows."""
        scalar = scalar or self.lanes.number
        address = self.entry(array, number, unit or scalar)
        return self.let(f"load {self.lanes.of(scalar)}, ptr {address}, align {self.alignment(scalar)}")

    def store(self, array: str, number: int, value: str, scalar: str = "", unit: str = "") -> None:
        """Keep a number of an array of some `unit`, for these rows."""
        scalar = scalar or self.lanes.number
        address = self.entry(array, number, unit or scalar)
        self.do(f"store {self.lanes.of(scalar)} {value}, ptr {address}, align {self.alignment(scalar)}")

    def alignment(self, scalar: str) -> int:
        """Bytes that addresses are multiples of, in arrays of tiles."""
        return {"i8": 1, "i32": 4, "float": 4, "double": 8}[scalar] * self.lanes.rows

    def constant(self, place: int) -> str:
        address = self.place("%constants", place, self.lanes.number)
        return self.spread(self.lanes.number, self.let(f"load {self.lanes.number}, ptr {address}{self.unchanging}"))

    unchanging = ""  # what tells that memory is not written while this runs

    def slot(self, slot: int) -> str:
        if slot == 0:
            return self.lanes.literal(1.0)
        if slot in self.pinned and slot not in self.values:
            return self.constant(self.pinned[slot])
        if slot not in self.values:
            self.values[slot] = self.load("values", self.kept_at(slot))
        return self.values[slot]

    def operand(self, number: int) -> str:
        """The value of a slot, or of a constant, ~number."""
        return self.slot(number) if number >= 0 else self.constant(~number)

    def index(self, slot: int) -> str:
        """The places in tables that a slot holds."""
        if slot not in self.values:
            self.values[slot] = self.load("values", self.kept_at(slot), "i32", self.lanes.number)
        return self.values[slot]

    def keep(self, slot: int) -> None:
        scalar = "i32" if slot in self.places else self.lanes.number
        self.store("values", self.kept_at(slot), self.values[slot], scalar, self.lanes.number)

    def set(self, slot: int, value: str, place: bool = False) -> None:
        """Give a slot its value, or a place in tables."""
        self.values[slot] = value
        (self.places.add if place else self.places.discard)(slot)
        for key in [key for key in self.addresses if key[0] == slot]:
            del self.addresses[key]

    def note_doubt(self, where: str) -> None:
        self.doubt = where if self.doubt is None else self.either(self.doubt, where)

    @property
    def bounds_of_weights(self) -> tuple[float, float]:
        """The smallest weight of a mixture; entries below the second number do not hide what it does."""
        wide = self.lanes.bits == 64
        return (k.LEAST_WEIGHT_64, k.NEGLIGIBLE_64) if wide else (k.LEAST_WEIGHT_32, k.NEGLIGIBLE_32)

    def note_mixture(self, lesser: str, plus: str, minus: str) -> None:
        """Say where a mixture hangs on a weight that came to its end."""
        (least, few), zero = self.bounds_of_weights, self.lanes.literal(0.0)
        positive = self.compare("ogt", lesser, zero)
        entry, other = self.select(positive, plus, minus), self.select(positive, minus, plus)
        ended = self.compare("olt", self.magnitude(lesser), self.lanes.literal(2 * least))
        alone = self.both(self.compare("ogt", entry, zero), self.compare("olt", other, self.lanes.literal(few)))
        self.note_doubt(self.both(ended, alone))

    def total(self, products: Sequence[tuple[str, str]]) -> str:
        """The sum of some products; of many, in two parts, which do not wait for each other."""
        halves = [products] if len(products) < SPLIT_PRODUCTS else [products[::2], products[1::2]]
        return reduce(self.add, [reduce(self.add, starmap(self.mul, half)) for half in halves])

    def places_in(self, slot: int, array: str, scalar: str, scale: int = 1, rows_apart: bool = False) -> list[str]:
        """The addresses that an index leads to, row by row: each has `scale` numbers, one per row if `rows_apart`."""
        key = slot, array
        if key not in self.addresses:
            addresses = []
            for row, place in enumerate(self.rows_of("i32", self.index(slot))):
                far = self.let(f"sext i32 {place} to i64")
                far = far if scale == 1 else self.let(f"mul i64 {far}, {scale}")
                far = far if not (rows_apart and row) else self.let(f"add i64 {far}, {row}")
                addresses.append(self.place(f"%{array}", far, scalar))
            self.addresses[key] = addresses
        return self.addresses[key]


@dataclass
class Watching(Body):
    """Lines that check all mixtures at the end, and only if some weight is the smallest one."""

    mixtures: list[tuple[str, str, str]] = field(default_factory=list)

    def note_mixture(self, lesser: str, plus: str, minus: str) -> None:
        self.mixtures.append((lesser, plus, minus))

    def look_at_mixtures(self) -> None:
        """Note in `%all.doubts` whether rows are in doubt, if there may be some."""
        if not self.mixtures:
            return
        sizes = [self.magnitude(lesser) for lesser in dict.fromkeys(lesser for lesser, _, _ in self.mixtures)]
        smallest = reduce(lambda least, size: self.select(self.compare("olt", size, least), size, least), sizes)
        ended = self.compare("olt", smallest, self.lanes.literal(2 * self.bounds_of_weights[0]))
        with self.when(self.any(ended)):
            for mixture in self.mixtures:
                super().note_mixture(*mixture)
            assert self.doubt is not None
            some = self.let(f"zext i1 {self.any(self.doubt)} to i8")
            before = self.let("load i8, ptr %all.doubts")
            self.do(f"store i8 {self.let(f'or i8 {before}, {some}')}, ptr %all.doubts")


def read_input(b: Body, dst: int, terms: Terms) -> None:
    b.set(dst, b.load("inputs", terms[0][0]))


def point(b: Body, dst: int, terms: Terms) -> None:
    """Places in tables, from the codes of observed states."""

    def step(row: int, stride: int) -> str:
        code = b.load("codes", row, "i32")
        return code if stride == 1 else b.let(f"mul {b.lanes.index} {code}, {b.lanes.same('i32', str(stride))}")

    b.set(dst, reduce(lambda x, y: b.let(f"add {b.lanes.index} {x}, {y}"), starmap(step, terms)), place=True)


def look_up(b: Body, dst: int, terms: Terms) -> None:
    (base, index), number = terms[0], b.lanes.number
    places = [b.place(address, base, number) for address in b.places_in(index, "constants", number)]
    b.set(dst, b.by_row(number, [b.let(f"load {number}, ptr {place}{b.unchanging}") for place in places]))


def _factors(b: Body, terms: Terms, linear: bool) -> list[tuple[str, str]]:
    """Constants and slots, or pairs of slots."""
    return [(b.constant(x) if linear else b.slot(x), b.slot(y)) for x, y in terms]


def total(b: Body, dst: int, terms: Terms, linear: bool) -> None:
    b.set(dst, b.total(_factors(b, terms, linear)))


def largest(b: Body, dst: int, terms: Terms, linear: bool) -> None:
    b.set(dst, reduce(lambda top, x: b.largest(x, top), starmap(b.mul, _factors(b, terms, linear))))


def test(b: Body, dst: int, terms: Terms) -> None:
    _, _, (plus, minus) = terms
    b.set(dst, b.select(holds(b, terms), b.operand(plus), b.operand(minus)))


def holds(b: Body, terms: Terms) -> str:
    """Where x compares with total * limit as the operator says."""
    (x, total), (limit, operator), _ = terms
    left, right = b.slot(x), b.mul(b.slot(total), b.operand(limit))
    if operator < 0:
        return b.compare(OPERATORS[~operator], left, right)
    mask = b.compare(OPERATORS[3], left, right)
    for number in (2, 1, 0):
        own = b.compare("oeq", b.slot(operator), b.lanes.literal(number))
        other = b.compare(OPERATORS[number], left, right)
        mask = b.let(f"select {b.lanes.mask} {own}, {b.lanes.mask} {other}, {b.lanes.mask} {mask}")
    return mask


def by_direction(b: Body, operator: int, value: str) -> str:
    """A value, negative for <= and <, where sigmoids fall."""
    if operator < 0:
        return value if ~operator < 2 else b.negative(value)
    rises = b.compare("olt", b.slot(operator), b.lanes.literal(2.0))
    return b.select(rises, value, b.negative(value))


def weight(b: Body, dst: int, terms: Terms) -> None:
    """See `opcodes.lesser_weight`. What the exponential is taken of is worked out in doubles."""
    (x, total), (limit, operator), (gamma, _) = terms
    wide, zero = b.in_doubles(), b.in_doubles().lanes.literal(0.0)
    given = b.slot(x), b.slot(total), b.operand(limit), by_direction(b, operator, b.constant(gamma))
    left, whole, threshold, steep = (b.cast(value, b.lanes, wide.lanes) for value in given)
    z = wide.mul(steep, wide.sub(wide.div(left, whole), threshold))
    z = wide.select(wide.compare("ogt", whole, zero), z, zero)
    small = b.exp_of_negative(wide.negative(wide.magnitude(z)), math.log(b.bounds_of_weights[0]))
    rises = b.compare("oge", b.cast(z, wide.lanes, b.lanes), b.lanes.literal(0.0))
    signed = b.select(rises, b.negative(small), small)
    b.set(dst, b.div(signed, b.add(b.lanes.literal(1.0), small)))


def weights(b: Body, lesser: str) -> tuple[str, str]:
    """The weights of plus and of minus from the lesser one."""
    one, zero = b.lanes.literal(1.0), b.lanes.literal(0.0)
    other = b.negative(lesser)
    high = b.select(b.compare("ogt", lesser, zero), lesser, b.add(one, lesser))
    return high, b.select(b.compare("ogt", other, zero), other, b.add(one, other))


def mix(b: Body, dst: int, terms: Terms) -> None:
    (lesser, _), (plus, minus) = terms
    values = b.slot(lesser), b.operand(plus), b.operand(minus)
    high, low = weights(b, values[0])
    b.set(dst, b.add(b.mul(high, values[1]), b.mul(low, values[2])))
    b.note_mixture(*values)


def scale(b: Body, dst: int, terms: Terms) -> None:
    """The power of two that brings the largest of some slots near 1, from the bits of its exponent."""
    (exponent, earlier), *rest = terms
    top = reduce(lambda top, x: b.largest(x, top), (b.slot(slot) for slot, _ in rest))
    bits, scalar, integer = b.lanes.bits, f"i{b.lanes.bits}", b.lanes.integer
    digits, bias, least, none = (52, 1023, -1020, 2047) if bits == 64 else (23, 127, -120, 255)

    def same(number: int) -> str:
        return b.lanes.same(scalar, str(number))

    pattern = b.let(f"bitcast {b.lanes.type} {top} to {integer}")
    biased = b.let(f"lshr {integer} {pattern}, {same(digits)}")
    power = b.let(f"sub {integer} {biased}, {same(bias - 1)}")
    for how, bound in (("sgt", least), ("slt", bias - 1)):
        inside = b.let(f"icmp {how} {integer} {power}, {same(bound)}")
        power = b.let(f"select {b.lanes.mask} {inside}, {integer} {power}, {integer} {same(bound)}")
    for how in (f"eq {integer} {pattern}, {same(0)}", f"uge {integer} {biased}, {same(none)}"):  # no number to scale by
        odd = b.let(f"icmp {how}")
        power = b.let(f"select {b.lanes.mask} {odd}, {integer} {same(0)}, {integer} {power}")
    inverse = b.let(f"sub {integer} {same(bias)}, {power}")
    factor = b.let(f"shl {integer} {inverse}, {same(digits)}")
    b.set(dst, b.let(f"bitcast {integer} {factor} to {b.lanes.type}"))
    own = b.let(f"sitofp {integer} {power} to {b.lanes.type}")
    b.set(exponent, own if earlier < 0 else b.add(own, b.slot(earlier)))


def extremes(b: Body, dst: int, terms: Terms) -> None:
    """Where a state is impossible, its ratios are no numbers, which no comparison lets pass."""
    (states, last), head = terms[0], extremes_head(terms)
    olds = [b.slot(old) if old >= 0 else "" for _, old in terms[1:head]]
    parts = [old or b.lanes.literal(k.EXTREMES_STARTS[i // states]) for i, old in enumerate(olds)]
    smallest, largest, sums = (parts[first : first + states] for first in range(0, head - 1, states))
    for first in range(head, len(terms), states):
        pairs = terms[first : first + states]
        lows, highs = ([b.slot(pair[side]) for pair in pairs] for side in (0, 1))
        if lows == highs:
            inverse = b.div(b.lanes.literal(1.0), reduce(b.add, highs))
            low_ratios = high_ratios = [b.mul(own, inverse) for own in highs]
        else:
            low_ratios, high_ratios = (_shares(b, *sides) for sides in ((lows, highs), (highs, lows)))
        for x in range(states):
            smallest[x] = b.select(b.compare("olt", low_ratios[x], smallest[x]), low_ratios[x], smallest[x])
            largest[x] = b.largest(high_ratios[x], largest[x])
            sums[x] = b.add(sums[x], highs[x])
    if last:
        total, zero = reduce(b.add, sums), b.lanes.literal(0.0)
        possible, inverse = b.compare("ogt", total, zero), b.div(b.lanes.literal(1.0), total)
        sums = [b.select(possible, b.mul(own, inverse), zero) for own in sums]
    for (new, _), value in zip(terms[1:head], (*smallest, *largest, *sums), strict=True):
        b.set(new, value)


def _shares(b: Body, owns: Sequence[str], others: Sequence[str]) -> list[str]:
    """Each number divided by the sum of it and the other ones of all other places."""
    totals = ([others[i] for i in range(len(others)) if i != x] for x in range(len(owns)))
    return [b.div(own, reduce(b.add, rest, own)) for own, rest in zip(owns, totals, strict=True)]


def write_output(b: Body, dst: int, terms: Terms) -> None:
    b.store("outputs", dst, b.slot(terms[0][0]))


FORWARD: dict[int, Callable[[Body, int, Terms], None]] = {
    k.INPUT: read_input,
    k.INDEX: point,
    k.TABLE: look_up,
    k.LINEAR: partial(total, linear=True),
    k.PRODUCT: partial(total, linear=False),
    k.TEST: test,
    k.WEIGHT: weight,
    k.MIX: mix,
    k.SCALE: scale,
    k.OUTPUT: write_output,
    k.LARGEST_LINEAR: partial(largest, linear=True),
    k.LARGEST_PRODUCT: partial(largest, linear=False),
    k.EXTREMES: extremes,
}
