"""What one value of a tape is in generated code, and arithmetic on it, written as text of LLVM IR.

On a processor a value is a vector of rows, on a GPU one number of the row that a thread works on. The rules of the
instructions are written once, for both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntFlag
from functools import reduce
from itertools import count

from tacit.engines.tape.instructions import INVERSE_LOG2, LOG2_HIGH, LOG2_LOW, SERIES

FLAGS = "contract nsz"  # a * b + c may be one instruction
ROUNDING = 1.5 * 2.0**52  # added to a double, it leaves the nearest whole number in its last digits


class Note(IntFlag):
    """What generated code may notice of a tile of rows, or, on a GPU, of a row."""

    IMPRECISE = 1  # a number is too small for a float
    UNUSUAL = 2  # evidence needs a closer look
    INFINITE = 4  # the joint has no finite sum
    IMPOSSIBLE = 8  # the evidence has probability zero
    LOST = 16  # a density underflows beside the largest one of its row


class Lanes:
    """The type of a value: so many rows (one on a GPU) of floats of some bits."""

    def __init__(self, bits: int, rows: int = 1) -> None:
        self.bits, self.rows, self.bytes = bits, rows, bits // 8
        self.number = "double" if bits == 64 else "float"  # the type of one row's number
        self.type = self.of(self.number)  # of a value
        self.index, self.mask = self.of("i32"), self.of("i1")  # of places in tables, and of yes or no
        self.integer = self.of(f"i{bits}")  # of the bits of a value
        self.magnitude = f"@llvm.fabs.{'' if rows == 1 else f'v{rows}'}f{bits}"  # which takes the sign away
        self.declared_magnitude = f"declare {self.type} {self.magnitude}({self.type})"

    def of(self, scalar: str) -> str:
        """The type of one scalar for each row."""
        return scalar if self.rows == 1 else f"<{self.rows} x {scalar}>"

    def same(self, scalar: str, text: str) -> str:
        """A scalar for all rows."""
        return text if self.rows == 1 else f"splat ({scalar} {text})"

    def literal(self, number: float) -> str:
        """A number for all rows, as LLVM reads it: as the bits of a double, whatever the type."""
        if self.bits == 32:
            (number,) = struct.unpack("<f", struct.pack("<f", number))
        return self.same(self.number, f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}")


@dataclass
class FunctionText:
    """The lines of a function, with fresh names; arithmetic is done row by row."""

    lanes: Lanes
    lines: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))  # of names and labels
    block: str = "entry"
    variables: list[str] = field(default_factory=list)

    def variable(self, kind: str, value: str) -> str:
        """Memory for a value that changes, set to its first one."""
        name = f"%v{next(self.numbers)}"
        self.variables.append(f"{name} = alloca {kind}")
        self.do(f"store {kind} {value}, ptr {name}")
        return name

    def value(self, variable: str) -> str:
        """What a variable holds, row by row."""
        return self.let(f"load {self.lanes.type}, ptr {variable}")

    def add_to(self, variable: str, more: str) -> None:
        self.do(f"store {self.lanes.type} {self.add(self.value(variable), more)}, ptr {variable}")

    def function(self, head: str) -> str:
        """The lines as the body of a function, given its first line."""
        return "\n".join([f"{head} {{", "entry:", *self.variables, *self.lines, "}", ""])

    def let(self, expression: str) -> str:
        """A name for the value of an expression."""
        name = f"%v{next(self.numbers)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def do(self, statement: str) -> None:
        """A line without a value."""
        self.lines.append(statement)

    def mul(self, a: str, b: str) -> str:
        return self.let(f"fmul {FLAGS} {self.lanes.type} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        return self.let(f"fadd {FLAGS} {self.lanes.type} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.let(f"fsub {FLAGS} {self.lanes.type} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.let(f"fdiv nsz {self.lanes.type} {a}, {b}")

    def negative(self, a: str) -> str:
        return self.let(f"fneg {self.lanes.type} {a}")

    def compare(self, how: str, a: str, b: str) -> str:
        """A mask: whether a and b compare in some way, as LLVM names it."""
        return self.let(f"fcmp {how} {self.lanes.type} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """a where a mask holds, else b."""
        return self.let(f"select {self.lanes.mask} {mask}, {self.lanes.type} {a}, {self.lanes.type} {b}")

    def largest(self, a: str, b: str) -> str:
        """The larger of two numbers; b if one is none."""
        return self.select(self.compare("ogt", a, b), a, b)

    def magnitude(self, a: str) -> str:
        return self.let(f"call {self.lanes.type} {self.lanes.magnitude}({self.lanes.type} {a})")

    def cast(self, value: str, source: Lanes, target: Lanes) -> str:
        """A value with as many bits as others have."""
        if source.bits == target.bits:
            return value
        return self.let(f"{'fpext' if source.bits < target.bits else 'fptrunc'} {source.type} {value} to {target.type}")

    def both(self, a: str, b: str) -> str:
        return self.let(f"and {self.lanes.mask} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.let(f"or {self.lanes.mask} {a}, {b}")

    def any(self, mask: str) -> str:
        bits = self.let(f"bitcast {self.lanes.mask} {mask} to i{self.lanes.rows}")
        return self.let(f"icmp ne i{self.lanes.rows} {bits}, 0")

    def place(self, base: str, offset: int | str, scalar: str) -> str:
        """The address of an entry of an array."""
        return self.let(f"getelementptr inbounds {scalar}, ptr {base}, i64 {offset}")

    def spread(self, scalar: str, value: str) -> str:
        """One number for all rows."""
        if self.lanes.rows == 1:
            return value
        wide = self.lanes.of(scalar)
        first = self.let(f"insertelement {wide} poison, {scalar} {value}, i64 0")
        return self.let(f"shufflevector {wide} {first}, {wide} poison, <{self.lanes.rows} x i32> zeroinitializer")

    def by_row(self, scalar: str, numbers: Sequence[str]) -> str:
        """A value from one scalar for each row."""
        if self.lanes.rows == 1:
            return numbers[0]
        wide, vector = self.lanes.of(scalar), "poison"
        for lane, number in enumerate(numbers):
            vector = self.let(f"insertelement {wide} {vector}, {scalar} {number}, i64 {lane}")
        return vector

    def rows_of(self, scalar: str, value: str) -> list[str]:
        """One scalar for each row of a value."""
        if self.lanes.rows == 1:
            return [value]
        wide = self.lanes.of(scalar)
        return [self.let(f"extractelement {wide} {value}, i64 {lane}") for lane in range(self.lanes.rows)]

    def exp_of_negative(self, x: str, least: float) -> str:
        """exp(x) of doubles x <= 0, and at least exp(`least`), with as many bits as all other values.

        As `exponential` does it, but with a polynomial in two parts, which do not wait for each other, and one that is
        as long as these floats need.
        """
        wide = self.in_doubles()
        x = wide.largest(x, wide.lanes.literal(least))
        shifted = wide.add(wide.mul(x, wide.lanes.literal(INVERSE_LOG2)), wide.lanes.literal(ROUNDING))
        whole = wide.sub(shifted, wide.lanes.literal(ROUNDING))
        for part in (LOG2_HIGH, LOG2_LOW):
            x = wide.sub(x, wide.mul(whole, wide.lanes.literal(part)))
        bits = wide.let(f"bitcast {wide.lanes.type} {shifted} to {wide.lanes.integer}")  # the last ones are the number
        r, integer = self.cast(x, wide.lanes, self.lanes), self.lanes.integer
        terms, digits, bias = (14, 52, 1023) if self.lanes.bits == 64 else (8, 23, 127)
        square = self.mul(r, r)
        even, odd = (self._polynomial(square, SERIES[first:terms:2]) for first in (0, 1))
        if self.lanes.bits == 32:
            bits = self.let(f"trunc {wide.lanes.integer} {bits} to {integer}")
        biased = self.let(f"add {integer} {bits}, {self.lanes.same(f'i{self.lanes.bits}', str(bias))}")
        power = self.let(f"shl {integer} {biased}, {self.lanes.same(f'i{self.lanes.bits}', str(digits))}")
        power = self.let(f"bitcast {integer} {power} to {self.lanes.type}")
        return self.mul(self.add(even, self.mul(r, odd)), power)

    def _polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        *lower, top = map(self.lanes.literal, coefficients)
        return reduce(lambda sum_, c: self.add(c, self.mul(x, sum_)), reversed(lower), top)

    def in_doubles(self) -> FunctionText:
        """These lines, for values of 64 bits."""
        return FunctionText(Lanes(64, self.lanes.rows), self.lines, self.numbers)

    @contextmanager
    def loop(self, start: str, stop: str, step: int | str = 1) -> Iterator[str]:
        """Lines that are repeated with a counter of 64 bits, from `start` while it is below `stop`."""
        number, before = next(self.numbers), self.block
        counter, label = f"%v{number}", f"loop{number}"
        self.do(f"br label %{label}")
        self.begin(label)
        self.do(f"{counter} = phi i64 [{start}, %{before}], [{counter}.next, %{label}.next]")
        more = self.let(f"icmp slt i64 {counter}, {stop}")
        self.do(f"br i1 {more}, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        yield counter
        self.do(f"br label %{label}.next")
        self.begin(f"{label}.next")
        self.do(f"{counter}.next = add i64 {counter}, {step}")
        self.do(f"br label %{label}")
        self.begin(f"{label}.end")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Lines that are done where a condition holds."""
        label = f"when{next(self.numbers)}"
        self.do(f"br i1 {condition}, label %{label}, label %{label}.end")
        self.begin(label)
        yield
        self.do(f"br label %{label}.end")
        self.begin(f"{label}.end")

    def begin(self, block: str) -> None:
        """The lines that follow are a block of this name."""
        self.do(f"{block}:")
        self.block = block
