"""How each instruction of a tape hands derivatives back, as lines of LLVM IR: what `opcodes` does to a whole tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tacit.engines import instructions as k
from tacit.engines.native.body import Body, Terms, holds, weights


@dataclass
class Adjoints(Body):
    """Lines of the way back, on values that are all in memory.

    `%adjoints` is memory for the derivatives by slots that other pieces need. `%d_constants` gathers those by the
    constants, with a number for each of these rows; `%d_inputs` are those by the inputs, and `%seeds` come from the
    joint, `seeds` numbers of it.
    """

    seeds: int = 0
    inert: set[int] = field(default_factory=set)  # slots that have no derivatives
    begun: set[int] = field(default_factory=set)  # slots whose derivatives are in memory
    own: dict[int, str] = field(default_factory=dict)  # the derivatives that have a name

    def adjoint(self, slot: int) -> str | None:
        """The derivatives by a slot, None where there are none."""
        if slot not in self.own and slot in self.begun:
            self.own[slot] = self.load("adjoints", slot)
        return self.own.get(slot)

    def give(self, slot: int, derivative: str, factor: str | None = None) -> None:
        """Add derivatives, times a factor, to those by a slot."""
        if slot == 0 or slot in self.inert:
            return
        if slot in self.pinned:
            self.give_constant(self.pinned[slot], derivative, factor)
            return
        more = derivative if factor is None else self.mul(derivative, factor)
        before = self.adjoint(slot)
        self.own[slot] = more if before is None else self.add(before, more)

    def give_constant(self, place: int, derivative: str, factor: str | None = None) -> None:
        """Add derivatives, times a factor, to those by a constant."""
        more = derivative if factor is None else self.mul(derivative, factor)
        self.store("d_constants", place, self.add(self.load("d_constants", place), more))

    def give_factors(self, slot: int, terms: Terms, derivative: str) -> None:
        """Add what the derivatives by a slot, a sum of constants times slots, say about the constants."""
        for constant, factor in terms:
            self.give_constant(constant, derivative, self.slot(factor))


@dataclass
class GroupedAdjoints(Adjoints):
    """The same for a group of rows, of which a loop of its own gathers the derivatives by most constants.

    It adds up many rows before it touches the memory of a constant: see `gather`.
    """

    later: list[tuple[int, Terms]] = field(default_factory=list)  # slots, and the terms that they are sums of

    def give_factors(self, slot: int, terms: Terms, derivative: str) -> None:
        """Keep the derivatives by a slot for the loop."""
        self.store("adjoints", slot, derivative)
        self.later.append((slot, terms))


def look_up(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    (base, index), number = terms[0], b.lanes.number
    rows = b.lanes.rows
    derivatives = b.rows_of(number, a)
    for address, derivative in zip(b.places_in(index, "d_constants", number, rows, True), derivatives, strict=True):
        place = b.place(address, base * rows, number)
        before = b.let(f"load {number}, ptr {place}")
        b.do(f"store {number} {b.let(f'fadd nsz {number} {before}, {derivative}')}, ptr {place}")


def linear(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    b.give_factors(dst, terms, a)
    for constant, slot in terms:
        b.give(slot, a, b.constant(constant))


def product(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    for left, right in terms:
        b.give(left, a, b.slot(right))
        b.give(right, a, b.slot(left))


def test(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    plus, minus = terms[2]
    mask, zero = holds(b, terms, slots=False), b.lanes.literal(0.0)
    b.give_constant(plus, b.select(mask, a, zero))
    b.give_constant(minus, b.select(mask, zero, a))


def test_slots(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    plus, minus = terms[2]
    mask, zero = holds(b, terms, slots=True), b.lanes.literal(0.0)
    b.give(plus, b.select(mask, a, zero))
    b.give(minus, b.select(mask, zero, a))


def weight(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    _weight(b, dst, terms, a, slots=False)


def weight_slots(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    _weight(b, dst, terms, a, slots=True)


def _weight(b: Adjoints, dst: int, terms: Terms, a: str, slots: bool) -> None:
    (x, total), (limit, operator), (gamma, _) = terms
    one, zero = b.lanes.literal(1.0), b.lanes.literal(0.0)
    whole, size = b.slot(total), b.magnitude(b.slot(dst))
    possible = b.compare("ogt", whole, zero)
    inverse = b.select(possible, b.div(one, whole), zero)
    d_z = b.select(possible, b.mul(a, b.mul(size, b.sub(one, size))), zero)
    if slots:
        d_z = b.select(b.compare("olt", b.slot(operator), b.lanes.literal(2.0)), d_z, b.negative(d_z))
    elif operator >= 2:
        d_z = b.negative(d_z)
    threshold = b.slot(limit) if slots else b.constant(limit)
    posterior, steep = b.mul(b.slot(x), inverse), b.mul(d_z, b.constant(gamma))
    b.give(x, steep, inverse)
    b.give(total, b.negative(steep), b.mul(posterior, inverse))
    b.give_constant(gamma, d_z, b.sub(posterior, threshold))
    if slots:
        b.give(limit, b.negative(steep))
    else:
        b.give_constant(limit, b.negative(steep))


def mix(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    (lesser, _), (plus, minus) = terms
    high, low = weights(b, b.slot(lesser))
    b.give(lesser, a, b.sub(b.constant(plus), b.constant(minus)))
    b.give_constant(plus, a, high)
    b.give_constant(minus, a, low)


def mix_slots(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    (lesser, _), (plus, minus) = terms
    high, low = weights(b, b.slot(lesser))
    b.give(lesser, a, b.sub(b.slot(plus), b.slot(minus)))
    b.give(plus, a, high)
    b.give(minus, a, low)


REVERSE: dict[int, Callable[[Adjoints, int, Terms, str], None]] = {
    k.TABLE: look_up,
    k.LINEAR: linear,
    k.PRODUCT: product,
    k.TEST: test,
    k.TEST_SLOTS: test_slots,
    k.WEIGHT: weight,
    k.WEIGHT_SLOTS: weight_slots,
    k.MIX: mix,
    k.MIX_SLOTS: mix_slots,
}
THROUGH = frozenset((k.WEIGHT, k.WEIGHT_SLOTS))  # which pass derivatives through sigmoids
