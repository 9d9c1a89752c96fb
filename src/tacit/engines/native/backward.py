"""How each instruction of a tape hands derivatives back, as lines of LLVM IR: what `opcodes` does to a whole tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tacit.engines.native.forward import Body, Terms, by_direction, holds, weights
from tacit.engines.native.pieces import TapeStep
from tacit.engines.tape import instructions as k

THROUGH = frozenset((k.WEIGHT,))  # which pass derivatives through sigmoids


@dataclass
class Adjoints(Body):
    """Lines of the backward pass, on values that are all in memory.

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
        """Add derivatives, times a factor, to those by a slot, or by a constant, ~slot."""
        if slot == 0 or slot in self.inert:
            return
        if slot < 0 or slot in self.pinned:
            self.give_constant(~slot if slot < 0 else self.pinned[slot], derivative, factor)
            return
        more = derivative if factor is None else self.mul(derivative, factor)
        before = self.adjoint(slot)
        self.own[slot] = more if before is None else self.add(before, more)

    def give_constant(self, place: int, derivative: str, factor: str | None = None) -> None:
        more = derivative if factor is None else self.mul(derivative, factor)
        self.store("d_constants", place, self.add(self.load("d_constants", place), more))

    def hand_back(self, step: TapeStep, through: bool, rules: Mapping[int, Callable[..., None]]) -> None:
        """Add what the derivatives by the result of an instruction say about what it reads."""
        if step.kind == k.OUTPUT:
            if step.dst < self.seeds:
                self.give(step.terms[0][0], self.seed(step.dst))
            return
        a = self.adjoint(step.dst)
        self.own.pop(step.dst, None)
        self.begun.discard(step.dst)
        if step.kind == k.INPUT:
            if step.dst not in self.inert:
                self.store("d_inputs", step.terms[0][0], a or self.lanes.literal(0.0))
        elif a is not None and step.kind in rules and (through or step.kind not in THROUGH):
            rules[step.kind](self, step.dst, step.terms, a)

    def seed(self, state: int) -> str:
        return self.load("seeds", state)

    def give_factors(self, slot: int, terms: Terms, derivative: str) -> None:
        """Add what the derivatives by a slot, a sum of constants times slots, say about the constants."""
        for constant, factor in terms:
            self.give_constant(constant, derivative, self.slot(factor))


@dataclass
class GroupedAdjoints(Adjoints):
    """Lines for a group of rows; a loop of its own, `gather`, adds up the derivatives by most constants."""

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
    mask, zero = holds(b, terms), b.lanes.literal(0.0)
    b.give(plus, b.select(mask, a, zero))
    b.give(minus, b.select(mask, zero, a))


def weight(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    (x, total), (limit, operator), (gamma, _) = terms
    one, zero = b.lanes.literal(1.0), b.lanes.literal(0.0)
    whole, size = b.slot(total), b.magnitude(b.slot(dst))
    possible = b.compare("ogt", whole, zero)
    inverse = b.select(possible, b.div(one, whole), zero)
    d_z = b.select(possible, b.mul(a, b.mul(size, b.sub(one, size))), zero)
    d_z = by_direction(b, operator, d_z)
    threshold = b.operand(limit)
    posterior, steep = b.mul(b.slot(x), inverse), b.mul(d_z, b.constant(gamma))
    b.give(x, steep, inverse)
    b.give(total, b.negative(steep), b.mul(posterior, inverse))
    b.give_constant(gamma, d_z, b.sub(posterior, threshold))
    b.give(limit, b.negative(steep))


def mix(b: Adjoints, dst: int, terms: Terms, a: str) -> None:
    (lesser, _), (plus, minus) = terms
    high, low = weights(b, b.slot(lesser))
    b.give(lesser, a, b.sub(b.operand(plus), b.operand(minus)))
    b.give(plus, a, high)
    b.give(minus, a, low)


REVERSE: dict[int, Callable[[Adjoints, int, Terms, str], None]] = {
    k.TABLE: look_up,
    k.LINEAR: linear,
    k.PRODUCT: product,
    k.TEST: test,
    k.WEIGHT: weight,
    k.MIX: mix,
}

# To add every row to the memory of its constant costs more than all the rest of the backward pass. So a few constants
# at a time have their sums in registers while a loop goes over the rows of a group, whose values are in memory.
GATHERED = ("constants", "values", "adjoints", "d_constants")
SUMS_AT_ONCE = 10  # in registers: as many as keep the units for additions busy, and leave registers for factors


def gather(body: Adjoints, sums: Sequence[tuple[int, Terms]]) -> None:
    """Add to `%d_constants` what `%adjoints` of these slots say about their constants; `%count` are the rows."""
    every = [(slot, constant, factor) for slot, terms in sums for constant, factor in terms]
    for first in range(0, len(every), SUMS_AT_ONCE):
        some = every[first : first + SUMS_AT_ONCE]
        totals = [body.variable(body.lanes.type, body.lanes.literal(0.0)) for _ in some]
        with body.loop("0", "%count", body.lanes.rows) as row:
            there = {name: body.array_from(name, row) for name in ("values", "adjoints")}
            derivatives: dict[int, str] = {}
            for (slot, _, factor), total in zip(some, totals, strict=True):
                if slot not in derivatives:
                    derivatives[slot] = body.load(there["adjoints"], slot)
                more = derivatives[slot]
                if factor in body.pinned:
                    more = body.mul(more, body.constant(body.pinned[factor]))
                elif factor:  # slot 0 is 1
                    more = body.mul(more, body.load(there["values"], factor))
                body.add_to(total, more)
        for (_, constant, _), total in zip(some, totals, strict=True):
            body.give_constant(constant, body.value(total))
