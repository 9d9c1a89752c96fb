"""Readers of evidence in LLVM IR: from the arrays that a user gave to the likelihoods of one tile.

A reader is `i8 read(ptr column, i64 row, i64 count, ptr tile)`. It fills a tile (states, `TILE_STRIDE` rows) with the
likelihoods of `count` rows from `row` on; rows that are not there repeat the last one, as far as a vector reaches. It
returns what it noticed: `UNUSUAL` where something needs a closer look, a likelihood that is negative, or no number, or
a sum out of range; `LOST` where a density underflows beside the largest one. That a likelihood is too small for floats
beside the others, or for float32, the underflow flag of the processor says. What a `column` holds, `COLUMN` lists;
distances are in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce

from tacit.engines.native.lanes import FunctionText, Lanes, Note
from tacit.evidence.density_column import MAX_PLAIN_LOG

COLUMN = ("read", "data", "row_stride", "state_stride", "states", "tile", "terms")
ROWS_PER_TILE = 192  # many, so that the code of a piece is fetched seldom
TILE_STRIDE = 208  # rows from state to state: room for the last vector, whole lines of the cache, no power of two
MAX_UNROLLED_STATES = 8  # up to which there is a reader for each number of them
VECTOR_BITS = 512  # two registers of most processors, which share what is loaded for all rows
SMALLEST_NORMAL = {64: 2.0**-1022, 32: 2.0**-126}
ADDRESSES = ("data", "terms")
SIZES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "double": 8}
Rule = Callable[["EvidenceReader"], None]


def lanes_of(bits: int) -> Lanes:
    """The vectors of floats of some bits."""
    return Lanes(bits, VECTOR_BITS // bits)


def place_in_tile(text: FunctionText, array: str, number: str, row: str, scalar: str) -> str:
    """The address of a number of some row in a tile of an array."""
    far = text.let(f"add i64 {text.let(f'mul i64 {number}, {TILE_STRIDE}')}, {row}")
    return text.place(array, far, scalar)


class EvidenceReader(FunctionText):
    """One reader: `rows` are the addresses of some rows, `first` the place of the first of them in the tile."""

    def __init__(self, tile_lanes: Lanes, kind: str, rule: Rule, per_row: int = 1) -> None:
        lanes = Lanes(64, tile_lanes.rows) if kind == "double" else tile_lanes  # to compute with
        super().__init__(lanes)
        self.tile_lanes, self.kind, self.rule = tile_lanes, kind, rule
        self.per_row = per_row  # numbers, if rows are dense
        self.rows: list[str] = []
        self.first, self.dense = "", False
        self.column = {
            name: self.let(f"load {'ptr' if name in ADDRESSES else 'i64'}, ptr {self.place('%column', i, 'i64')}")
            for i, name in enumerate(COLUMN)
        }
        # bounds that all rows keep are looked at once, at the end: masks of rows are slow to combine
        self.bounds: list[tuple[str, str, float, Note]] = []
        self.odd = self.variable("i1", "false")
        self.lowest = self.worst("olt", 0.0)
        self.least_sum = self.worst("olt", 4 * SMALLEST_NORMAL[lanes.bits])
        self.largest_sum = self.worst("ogt", 1 / SMALLEST_NORMAL[lanes.bits])
        self.largest_top = self.worst("ogt", MAX_PLAIN_LOG)
        self.least_share = self.worst("olt", math.log(SMALLEST_NORMAL[tile_lanes.bits]), Note.LOST)

    def text(self) -> str:
        """The function `read`: whole vectors of rows, then the rest, each row as if all of a vector were it."""
        stride = self.column["row_stride"]
        start = self.place(self.column["data"], self.let(f"mul i64 %row, {stride}"), "i8")
        whole = self.let(f"and i64 %count, {-self.lanes.rows}")
        dense = self.let(f"icmp eq i64 {stride}, {SIZES[self.kind] * self.per_row}")
        with self.when(dense), self.loop("0", whole, self.lanes.rows) as first:
            self._vector(start, first, stride, stride, dense=True)
        others = self.let(f"select i1 {dense}, i64 0, i64 {whole}")
        with self.loop("0", others, self.lanes.rows) as first:
            self._vector(start, first, stride, stride)
        with self.loop(whole, "%count") as first:
            self._vector(start, first, stride, "0")
        odd = self.let(f"load i1, ptr {self.odd}")
        noticed = self.let(f"select i1 {odd}, i8 {int(Note.UNUSUAL)}, i8 0")
        for worst, how, bound, note in self.bounds:
            outside = self.any(self.compare(how, self.value(worst), self.lanes.literal(bound)))
            own = self.let(f"select i1 {outside}, i8 {int(note)}, i8 0")
            noticed = self.let(f"or i8 {noticed}, {own}")
        self.do(f"ret i8 {noticed}")
        return self.function("define i8 @read(ptr %column, i64 %row, i64 %count, ptr noalias %tile)")

    def _vector(self, start: str, first: str, stride: str, apart: str, dense: bool = False) -> None:
        self.first, self.dense = first, dense
        self.rows = [self.place(start, self.let(f"mul i64 {first}, {stride}"), "i8")]
        for _ in range(1, self.lanes.rows):
            self.rows.append(self.place(self.rows[-1], apart, "i8"))
        self.rule(self)

    def worst(self, how: str, bound: float, note: Note = Note.UNUSUAL) -> str:
        """A place for the least, or the largest, of some numbers: it is noted if it compares so with a bound."""
        place = self.variable(self.lanes.type, self.lanes.literal(bound))
        self.bounds.append((place, how, bound, note))
        return place

    def note(self, place: str, value: str, how: str) -> None:
        """Keep the worst of what was and a value: the one that compares so with the other."""
        before = self.value(place)
        chosen = self.select(self.compare(how, value, before), value, before)
        self.do(f"store {self.lanes.type} {chosen}, ptr {place}")

    def given(self, distance: str = "0") -> str:
        """What is given of every row, at a distance from where it begins."""
        if self.dense:
            place, kind = self.place(self.rows[0], distance, "i8"), self.lanes.of(self.kind)
            return self.let(f"load {kind}, ptr {place}, align 1")
        places = [self.place(row, distance, "i8") for row in self.rows]
        return self.by_row(self.kind, [self.let(f"load {self.kind}, ptr {place}, align 1") for place in places])

    def table(self, states: int) -> list[str]:
        """The numbers of all states, which follow each other without a gap."""
        if not self.dense:
            return [self.number(str(state * SIZES[self.kind])) for state in range(states)]
        lanes, count = self.lanes, self.lanes.rows * states
        whole = self.let(f"load <{count} x {self.kind}>, ptr {self.rows[0]}, align {SIZES[self.kind]}")
        numbers = []
        for state in range(states):
            places = ", ".join(f"i32 {row * states + state}" for row in range(lanes.rows))
            kind = f"<{count} x {self.kind}>"
            own = self.let(f"shufflevector {kind} {whole}, {kind} poison, <{lanes.rows} x i32> <{places}>")
            numbers.append(self._extended(own))
        return numbers

    def number(self, distance: str = "0") -> str:
        """What is given of every row, as a number to compute with."""
        return self._extended(self.given(distance))

    def _extended(self, value: str) -> str:
        return self.cast(value, Lanes(8 * SIZES[self.kind], self.lanes.rows), self.lanes)

    def code(self, integer: str) -> str:
        """The states that are given, as integers of some type."""
        code, kind = self.given(), self.lanes.of(self.kind)
        return code if self.kind == integer else self.let(f"sext {kind} {code} to {self.lanes.of(integer)}")

    def put(self, state: str, value: str) -> None:
        """Fill in the likelihoods of a state."""
        value = self.cast(value, self.lanes, self.tile_lanes)
        address = place_in_tile(self, "%tile", state, self.first, self.tile_lanes.number)
        self.do(f"store {self.tile_lanes.type} {value}, ptr {address}, align {self.tile_lanes.bytes}")

    def far(self, state: str) -> str:
        """The distance of a state from where a row begins."""
        return self.let(f"mul i64 {state}, {self.column['state_stride']}")


def likelihoods(r: EvidenceReader) -> None:
    """(rows, states) in any proportion, which are divided by their sum; no number at all: no evidence."""
    lanes, states = r.lanes, r.column["states"]
    total = r.variable(lanes.type, lanes.literal(0.0))
    with r.loop("0", states) as state:
        x = r.number(r.far(state))
        r.note(r.lowest, x, "olt")
        r.add_to(total, x)
    whole = _checked_sum(r, r.value(total))
    with r.loop("0", states) as state:
        r.put(state, r.div(r.number(r.far(state)), whole))
    with r.when(r.any(r.compare("uno", whole, whole))):
        none = r.variable(lanes.mask, lanes.same("i1", "true"))
        with r.loop("0", states) as state:
            x = r.number(r.far(state))
            own = r.both(r.let(f"load {lanes.mask}, ptr {none}"), r.compare("uno", x, x))
            r.do(f"store {lanes.mask} {own}, ptr {none}")
        nothing = r.let(f"load {lanes.mask}, ptr {none}")
        _only_nothing(r, whole, nothing)
        with r.loop("0", states) as state:
            x = r.div(r.number(r.far(state)), whole)
            r.put(state, r.select(nothing, lanes.literal(1.0), x))


def few_likelihoods(r: EvidenceReader, states: int) -> None:
    """Likelihoods of few states, row after row without a gap: all are read at once, and sorted by state."""
    given = r.table(states)
    total = reduce(r.add, given)
    for x in given:
        r.note(r.lowest, x, "olt")
    whole = _checked_sum(r, total)
    for state, x in enumerate(given):
        r.put(str(state), r.div(x, whole))
    with r.when(r.any(r.compare("uno", whole, whole))):
        nothing = reduce(r.both, (r.compare("uno", x, x) for x in given))
        _only_nothing(r, whole, nothing)
        for state, x in enumerate(given):
            r.put(str(state), r.select(nothing, r.lanes.literal(1.0), r.div(x, whole)))


def _checked_sum(r: EvidenceReader, total: str) -> str:
    """The sum that likelihoods are divided by, which must be in the range of floats."""
    # a division, as `likelihoods.normalised` does it: the inverse would differ in the last bit, which decides at a tie
    r.note(r.least_sum, total, "olt")
    r.note(r.largest_sum, total, "ogt")
    return total


def _only_nothing(r: EvidenceReader, whole: str, nothing: str) -> None:
    """Rows without a sum must have no number at all."""
    lost = r.compare("uno", whole, whole)
    other = r.any(r.let(f"xor {r.lanes.mask} {lost}, {nothing}"))
    before = r.let(f"load i1, ptr {r.odd}")
    r.do(f"store i1 {r.let(f'or i1 {before}, {other}')}, ptr {r.odd}")


def first_state(r: EvidenceReader) -> None:
    """(rows,) of the first of two states; NaN is no evidence."""
    one, p = r.lanes.literal(1.0), r.number()
    other = r.sub(one, p)
    r.note(r.lowest, p, "olt")
    r.note(r.lowest, other, "olt")
    none = r.compare("uno", p, p)
    r.put("0", r.select(none, one, p))
    r.put("1", r.select(none, one, other))


def normalised(r: EvidenceReader) -> None:
    """(states, rows), checked and in proportion."""
    with r.loop("0", r.column["states"]) as state:
        r.put(state, r.number(r.far(state)))


def codes(r: EvidenceReader) -> None:
    """(rows,) of states; a negative one is no evidence."""
    lanes, wide, integer = r.lanes, r.lanes.integer, f"i{r.lanes.bits}"
    code, one, zero = r.code(integer), lanes.literal(1.0), lanes.literal(0.0)
    none = r.select(r.let(f"icmp slt {wide} {code}, {lanes.same(integer, '0')}"), one, zero)
    with r.loop("0", r.column["states"]) as state:
        own = state if lanes.bits == 64 else r.let(f"trunc i64 {state} to i32")
        same = r.let(f"icmp eq {wide} {code}, {r.spread(integer, own)}")
        r.put(state, r.add(r.select(same, one, zero), none))


def states(r: EvidenceReader) -> None:
    """(rows,) of states, each of which is known, into a tile of whole numbers."""
    code, place = r.code("i32"), place_in_tile(r, "%tile", "0", r.first, "i32")
    r.do(f"store {r.lanes.index} {code}, ptr {place}, align 4")


def densities(r: EvidenceReader) -> None:
    """(rows,) of numbers, as normal densities of all states, divided by the largest; NaN is no evidence."""
    x, lanes = r.number(), r.lanes
    none, top = r.compare("uno", x, x), r.variable(lanes.type, lanes.literal(-math.inf))
    with r.loop("0", r.column["states"]) as state:
        r.note(top, log_density(r, x, r.column["terms"], state), "ogt")
    largest = _checked_top(r, r.select(none, lanes.literal(0.0), r.value(top)))
    with r.loop("0", r.column["states"]) as state:
        share = _share(r, r.sub(log_density(r, x, r.column["terms"], state), largest))
        r.put(state, r.select(none, lanes.literal(1.0), share))


def few_densities(r: EvidenceReader, states: int) -> None:
    """Numbers as densities of few states. Of two, one is the largest, so that one exponential is enough."""
    x, one = r.number(), r.lanes.literal(1.0)
    logs = [log_density(r, x, r.column["terms"], str(state)) for state in range(states)]
    largest = _checked_top(r, reduce(r.largest, logs))
    none = r.compare("uno", x, x)
    if states == 2:
        less = r.sub(logs[1], logs[0])
        share, falls = _share(r, r.negative(r.magnitude(less))), r.compare("olt", less, r.lanes.literal(0.0))
        shares = [r.select(falls, one, share), r.select(falls, share, one)]
    else:
        shares = [_share(r, r.sub(log, largest)) for log in logs]
    for state, share in enumerate(shares):
        r.put(str(state), r.select(none, one, share))


def log_density(text: FunctionText, x: str, terms: str, state: str) -> str:
    """The logarithm of a normal density: see `normal.normal_terms`."""
    own = text.place(terms, text.let(f"mul i64 {state}, 3"), "double")
    places = (text.place(own, i, "double") for i in range(3))
    mean, scale, top = (text.spread("double", text.let(f"load double, ptr {place}")) for place in places)
    off = text.mul(text.sub(x, mean), scale)
    return text.sub(top, text.mul(off, off))


def _checked_top(r: EvidenceReader, top: str) -> str:
    """The largest logarithm; where it is so large that its roundings show, or infinite, rows need a closer look."""
    r.note(r.largest_top, r.magnitude(top), "ogt")
    return top


def _share(r: EvidenceReader, less: str) -> str:
    """A density divided by the largest one, from the difference of their logarithms; 0 where it underflows."""
    least = math.log(SMALLEST_NORMAL[r.tile_lanes.bits])
    r.note(r.least_share, less, "olt")
    lost = r.compare("olt", less, r.lanes.literal(least))
    return r.select(lost, r.lanes.literal(0.0), r.exp_of_negative(less, least))


READERS: dict[str, Rule] = {
    "likelihoods": likelihoods,
    "first": first_state,
    "normalised": normalised,
    "codes": codes,
    "states": states,
    "densities": densities,
}
FEW: dict[str, Callable[..., None]] = {"likelihoods": few_likelihoods, "densities": few_densities}


def reader_text(what: str, kind: str, bits: int, few: int = 0) -> str:
    """The text of one reader, `read`: what it reads, the type of that, and the bits of the likelihoods.

    `few` is the number of states, if they are few, of densities or of likelihoods that follow each other without a gap,
    or 0.
    """
    rule = partial(FEW[what], states=few) if few else READERS[what]
    per_row = few or 1 if what == "likelihoods" else 1
    reader = EvidenceReader(lanes_of(32 if what == "states" else bits), kind, rule, per_row)
    return "\n".join([reader.lanes.declared_magnitude, reader.text()])
