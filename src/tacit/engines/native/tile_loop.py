"""The function of generated code that callers see: a loop over tiles of rows, as text of LLVM IR.

It takes one pointer to its arguments, 64 bits each, as `CALL` lists them, and works in memory of its caller's, which
`TileLayout` divides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from tacit.engines.engine import LEAST_TRUSTED
from tacit.engines.native.lanes import FunctionText, Lanes, Note
from tacit.engines.native.readers import COLUMN, ROWS_PER_TILE, TILE_STRIDE, place_in_tile
from tacit.engines.tape.instructions import UNDERFLOW
from tacit.engines.tape.tape import Tape

CALL = (
    "columns",  # how many columns of evidence there are
    "table",  # their descriptions
    "constants",
    "outputs",  # where the outputs go (outputs, rows), or 0
    "outputs_stride",  # numbers from one output to the next
    "posterior",  # where the posterior goes (rows, states), or 0
    "notes",  # a byte for each tile: what was noticed
    "work",  # memory to work in
    "start",
    "stop",
    "tile",  # rows of a tile
    "seeds",  # the derivatives by the joint (states, rows)
    "seeds_stride",
    "d_inputs",  # where the derivatives by the inputs go (inputs, rows), or 0
    "d_inputs_stride",
    "d_constants",  # what those by the constants are added to, as doubles, or where they go (constants, rows)
    "d_constants_stride",
    "targets",  # of a loss (groups, rows), as doubles
    "targets_stride",
    "weights",  # of the rows, as doubles
    "loss",  # a double that the loss is added to
    "first_state",  # whose share is differentiated
    "end_state",
)
ROWS_PER_FLUSH = 1024  # sums of float32 go on as doubles where a tile ends at a multiple of this
CACHE_BYTES = 2**18  # bytes of values and derivatives that the backward pass should find in the caches


class TileLayout:
    """The memory of one thread: where each array of a tile begins, in bytes."""

    def __init__(
        self, tape: Tape, lanes: Lanes, inputs: int, kept: int, reverse: bool, groups: int, by_row: bool
    ) -> None:
        self.tape, self.lanes, self.inputs, number = tape, lanes, inputs, lanes.bytes
        self.groups, self.by_row = groups, by_row  # of targets, if any; whether constants have derivatives row by row
        self.common = ("constants", "doubts", *(() if by_row else ("d_constants",)))  # the same for all rows
        fitting = CACHE_BYTES // (2 * max(kept, 1) * number) // lanes.rows * lanes.rows
        self.group = min(max(fitting, lanes.rows), ROWS_PER_TILE)  # rows with `kept` values in memory at a time
        # rows from one slot to the next: an odd number of lines of the cache, of which all places are used then
        self.apart = (-(-self.group * number // 64) | 1) * 64 // number
        sizes = {
            "inputs": inputs * TILE_STRIDE * number,
            "codes": len(tape.codes) * TILE_STRIDE * 4,
            "outputs": tape.outputs * TILE_STRIDE * number,
            "posterior": tape.states * TILE_STRIDE * number,
            "values": kept * self.apart * number,
            "doubts": 64,
        }
        if reverse:
            sizes["adjoints"] = kept * self.apart * number
            sizes["seeds"] = tape.states * TILE_STRIDE * number
            sizes["d_inputs"] = inputs * TILE_STRIDE * number
            sizes["d_constants"] = tape.constant_count * (TILE_STRIDE if by_row else lanes.rows) * number
        if groups:
            sizes["targets"], sizes["weights"] = groups * TILE_STRIDE * 8, TILE_STRIDE * 8
        rounded = [-(-size // 64) * 64 for size in sizes.values()]
        self.starts = dict(zip((*sizes, "end"), accumulate(rounded, initial=0), strict=True))


class TileLoop(FunctionText):
    """Lines for each tile of rows: `row` is its first one, `rows` how many it has, `padded` that in whole vectors."""

    def __init__(self, layout: TileLayout) -> None:
        super().__init__(layout.lanes)
        self.layout = layout
        self.given = {name: self.let(f"load i64, ptr {self.place('%call', i, 'i64')}") for i, name in enumerate(CALL)}
        work = self.pointer("work")
        self.arrays = {name: self.place(work, start, "i8") for name, start in layout.starts.items()}
        self.arrays["constants"] = self.pointer("constants")
        self.note = self.rows = self.row = self.padded = ""

    @contextmanager
    def tiles(self) -> Iterator[None]:
        with self.loop(self.given["start"], self.given["stop"], self.given["tile"]) as self.row:
            left = self.let(f"sub i64 {self.given['stop']}, {self.row}")
            short = self.let(f"icmp slt i64 {left}, {self.given['tile']}")
            self.rows = self.let(f"select i1 {short}, i64 {left}, i64 {self.given['tile']}")
            beyond = self.let(f"add i64 {self.rows}, {self.lanes.rows - 1}")
            self.padded = self.let(f"and i64 {beyond}, {-self.lanes.rows}")
            gone = self.let(f"sub i64 {self.row}, {self.given['start']}")
            number = self.let(f"udiv i64 {gone}, {self.given['tile']}")
            self.note = self.place(self.pointer("notes"), number, "i8")
            self.do(f"store i8 0, ptr {self.note}")
            yield

    def text(self) -> str:
        """The function `run`."""
        self.do("ret void")
        return self.function("define void @run(ptr %call)")

    def pointer(self, name: str) -> str:
        """An argument that is an address."""
        return self.let(f"inttoptr i64 {self.given[name]} to ptr")

    def call(self, name: str, arrays: Sequence[str], first: str, others: Sequence[str] = ()) -> None:
        """Run a function over a group of rows: it takes arrays from the first of them on, their number, and others."""
        scalars = {"codes": "i32", "targets": "double", "weights": "double"}
        places = []
        for array in arrays:
            whole = array in (*self.layout.common, "values", "adjoints")
            scalar = scalars.get(array, self.lanes.number)
            places.append(self.arrays[array] if whole else self.place(self.arrays[array], first, scalar))
        left = self.let(f"sub i64 {self.padded}, {first}")
        short = self.let(f"icmp slt i64 {left}, {self.layout.group}")
        count = self.let(f"select i1 {short}, i64 {left}, i64 {self.layout.group}")
        given = [*(f"ptr {place}" for place in places), f"i64 {count}", *others]
        self.do(f"call void @{name}({', '.join(given)})")

    def read(self) -> None:
        """Fill the tile with evidence."""
        table = self.pointer("table")
        with self.loop("0", self.given["columns"]) as i:
            column = self.place(table, self.let(f"mul i64 {i}, {len(COLUMN)}"), "i64")
            reader = self.let(f"load ptr, ptr {self.place(column, COLUMN.index('read'), 'i64')}")
            far = self.let(f"load i64, ptr {self.place(column, COLUMN.index('tile'), 'i64')}")
            tile = self.place(self.arrays["inputs"], far, "i8")
            self._add_note(self.let(f"call i8 {reader}(ptr {column}, i64 {self.row}, i64 {self.rows}, ptr {tile})"))

    def read_with_care(self) -> None:
        """Fill the tile with evidence, and note where a likelihood is too small for a float."""
        self.clear_flags()
        self.read()
        self.look_at_flags(Note.UNUSUAL)

    def _note_if(self, condition: str, what: int) -> None:
        self._add_note(self.let(f"select i1 {condition}, i8 {what}, i8 0"))

    def _add_note(self, what: str) -> None:
        before = self.let(f"load i8, ptr {self.note}")
        self.do(f"store i8 {self.let(f'or i8 {before}, {what}')}, ptr {self.note}")

    def clear_flags(self) -> None:
        self.do(f"store i8 0, ptr {self.arrays['doubts']}")
        raised = self.let(f"call i32 @fetestexcept(i32 {UNDERFLOW})")
        with self.when(self.let(f"icmp ne i32 {raised}, 0")):  # to ask is far cheaper than to clear
            self.let(f"call i32 @feclearexcept(i32 {UNDERFLOW})")

    def look_at_flags(self, what: int) -> None:
        """Note something of the tile where a number was too small for a float, or a weight for a mixture."""
        raised = self.let(f"call i32 @fetestexcept(i32 {UNDERFLOW})")
        own = self.let(f"load i8, ptr {self.arrays['doubts']}")
        some = self.let(f"or i1 {self.let(f'icmp ne i32 {raised}, 0')}, {self.let(f'icmp ne i8 {own}, 0')}")
        self._note_if(some, what)

    def look_at_lost(self) -> None:
        """Note where a density underflowed and the joint is so small that it may matter."""
        before = self.let(f"load i8, ptr {self.note}")
        lost = self.let(f"icmp ne i8 {self.let(f'and i8 {before}, {int(Note.LOST)}')}, 0")
        with self.when(lost), self.loop("0", self.padded, self.lanes.rows) as row:
            small = self.compare("olt", self._sum_of_outputs(row), self._least_trusted(row))
            self._note_if(self.any(small), Note.IMPRECISE)

    def _least_trusted(self, row: str) -> str:
        """The mantissa of the least joint beside which what underflows counts for nothing."""
        least = LEAST_TRUSTED[f"float{self.lanes.bits}"]
        if not self.layout.tape.scaled:
            return self.lanes.literal(2.0**least)
        scalar, integer = f"i{self.lanes.bits}", self.lanes.integer
        digits, bias = (52, 1023) if self.lanes.bits == 64 else (23, 127)
        exponent = self._output(str(self.layout.tape.states), row)
        power = self.let(f"fptosi {self.lanes.type} {exponent} to {integer}")
        biased = self.let(f"sub {integer} {self.lanes.same(scalar, str(least + bias))}, {power}")
        for how, bound in (("sgt", 1), ("slt", 2 * bias)):
            inside = self.let(f"icmp {how} {integer} {biased}, {self.lanes.same(scalar, str(bound))}")
            other = self.lanes.same(scalar, str(bound))
            biased = self.let(f"select {self.lanes.mask} {inside}, {integer} {biased}, {integer} {other}")
        bits = self.let(f"shl {integer} {biased}, {self.lanes.same(scalar, str(digits))}")
        return self.let(f"bitcast {integer} {bits} to {self.lanes.type}")

    def _sum_of_outputs(self, row: str) -> str:
        total = self.variable(self.lanes.type, self.lanes.literal(0.0))
        self.do(f"store {self.lanes.type} {self.lanes.literal(0.0)}, ptr {total}")
        with self.loop("0", str(self.layout.tape.states)) as state:
            self.add_to(total, self._output(state, row))
        return self.value(total)

    def clear_from(self, name: str) -> None:
        """Set an array, and all arrays behind it, to 0."""
        self._clear(name, self.layout.starts["end"] - self.layout.starts[name])

    def _clear(self, name: str, size: int) -> None:
        self.do(f"call void @llvm.memset.p0.i64(ptr {self.arrays[name]}, i8 0, i64 {size}, i1 false)")

    def _copy(self, to: str, source: str, size: str) -> None:
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def take_labels(self) -> None:
        """Targets and weights; rows of the tile that are not there weigh nothing."""
        self._copy_rows("targets", self.layout.groups, out=False, lanes=Lanes(64))
        self._clear("weights", TILE_STRIDE * 8)
        here, there = self.arrays["weights"], self.place(self.pointer("weights"), self.row, "double")
        self._copy(here, there, self.let(f"mul i64 {self.rows}, 8"))

    def take_seeds(self) -> None:
        """Rows of the tile that are not there have none."""
        self._clear("seeds", self.layout.tape.states * TILE_STRIDE * self.lanes.bytes)
        self._copy_rows("seeds", self.layout.tape.states, out=False)

    def put_out(self, name: str, count: int) -> None:
        """Copy an array of the tile to where it is wanted, if it is."""
        with self.when(self.let(f"icmp ne i64 {self.given[name]}, 0")):
            self._copy_rows(name, count)

    def _copy_rows(self, name: str, count: int, out: bool = True, lanes: Lanes | None = None) -> None:
        """Copy rows between the tile of an array and the array, whose place the caller gives."""
        lanes = lanes or self.lanes
        size = self.let(f"mul i64 {self.rows}, {lanes.bytes}")
        array = self.pointer(name)
        with self.loop("0", str(count)) as i:
            start = self.let(f"mul i64 {i}, {self.given[name + '_stride']}")
            far = self.let(f"add i64 {start}, {self.row}")
            there = self.place(array, far, lanes.number)
            here = self.place(self.arrays[name], self.let(f"mul i64 {i}, {TILE_STRIDE}"), lanes.number)
            self._copy(*((there, here) if out else (here, there)), size)

    def divide(self) -> None:
        """The posterior of every row, if it is wanted: what rows that are impossible have is no number."""
        states, number = self.layout.tape.states, self.lanes.number
        with self.when(self.let(f"icmp ne i64 {self.given['posterior']}, 0")):
            with self.loop("0", self.padded, self.lanes.rows) as row:
                whole = self._sum_of_outputs(row)
                finite = self.compare("olt", self.magnitude(whole), self.lanes.literal(float("inf")))
                infinite = self.let(f"xor {self.lanes.mask} {finite}, {self.lanes.same('i1', 'true')}")
                self._note_if(self.any(infinite), Note.INFINITE)
                with self.loop("0", str(states)) as state:
                    shares = self.rows_of(number, self.div(self._output(state, row), whole))
                    first = self.let(f"add i64 {self.let(f'mul i64 {row}, {states}')}, {state}")
                    start = self.place(self.arrays["posterior"], first, number)
                    for lane, share in enumerate(shares):
                        self.do(f"store {number} {share}, ptr {self.place(start, lane * states, number)}")
            to = self.place(self.pointer("posterior"), self.let(f"mul i64 {self.row}, {states}"), number)
            self._copy(to, self.arrays["posterior"], self.let(f"mul i64 {self.rows}, {states * self.lanes.bytes}"))

    def _output(self, state: str, row: str) -> str:
        address = place_in_tile(self, self.arrays["outputs"], state, row, self.lanes.number)
        return self.let(f"load {self.lanes.type}, ptr {address}, align {self.lanes.bytes}")

    def flush(self) -> None:
        """Add up the rows of what the constants gathered, now and then, and after the last tile."""
        end = self.let(f"add i64 {self.row}, {self.rows}")
        done = self.let(f"icmp sge i64 {end}, {self.given['stop']}")
        now = self.let(f"icmp eq i64 {self.let(f'and i64 {end}, {ROWS_PER_FLUSH - 1}')}, 0")
        with self.when(self.let(f"or i1 {done}, {now}")):
            target, sums, number = self.pointer("d_constants"), self.arrays["d_constants"], self.lanes.number
            with self.loop("0", str(self.layout.tape.constant_count)) as i:
                place = self.place(sums, self.let(f"mul i64 {i}, {self.lanes.rows}"), number)
                value = self.value(place)
                total = self.place(target, i, "double")
                whole = self.let(f"load double, ptr {total}")
                for lane in self.rows_of(number, value):
                    wide = lane if self.lanes.bits == 64 else self.let(f"fpext float {lane} to double")
                    whole = self.let(f"fadd double {whole}, {wide}")
                self.do(f"store double {whole}, ptr {total}")
                self.do(f"store {self.lanes.type} zeroinitializer, ptr {place}")
