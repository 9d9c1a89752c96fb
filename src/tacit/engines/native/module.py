"""A tape as a module of LLVM IR for a processor: what runs it over rows, forward and in reverse.

Rows pass through in tiles: readers fill a tile with evidence, each piece of the tape runs over it, and its outputs are
copied to where they are wanted, or divided by their sum. All of this stays in the caches. A function takes one pointer
to its arguments, 64 bits each, as `CALL` lists them, and works in memory of its caller's, which `TileLayout` divides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from tacit.engines.native.backward import GATHERED, REVERSE, THROUGH, Adjoints, GroupedAdjoints, Sums, gather
from tacit.engines.native.forward import FORWARD, Body, Watching
from tacit.engines.native.lanes import FunctionText, Lanes, Note, mangled
from tacit.engines.native.loss_code import DECLARED as LOGARITHM
from tacit.engines.native.loss_code import loss_text, share_text
from tacit.engines.native.pieces import CodePiece, memory_of, pieces_of
from tacit.engines.native.readers import COLUMN, STRIDE, TILE, lanes_of
from tacit.engines.tape import instructions as k
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
ARRAYS = ("constants", "inputs", "codes", "outputs", "values", "doubts")
BACKWARD = ("constants", "inputs", "codes", "values", "adjoints", "d_constants", "d_inputs", "seeds")
BACKWARD_BITS = 256  # bits of a vector in the backward pass, where more values are alive
CACHE_BYTES = 2**18  # bytes of values and derivatives that the backward pass should find in the caches


@dataclass(frozen=True)
class TileLayout:
    """The memory of one thread, in bytes: where each array of a tile begins."""

    tape: Tape
    lanes: Lanes
    inputs: int
    kept: int  # values that are kept in memory
    reverse: bool = False
    groups: int = 0  # of the targets, where there is a loss
    by_row: bool = False  # whether derivatives by constants are not added up

    @property
    def common(self) -> tuple[str, ...]:
        """The arrays that are the same for all rows."""
        return ("constants", "doubts") if self.by_row else ("constants", "doubts", "d_constants")

    @property
    def group(self) -> int:
        """Rows whose values are in memory at a time."""
        fitting = CACHE_BYTES // (2 * max(self.kept, 1) * self.lanes.bytes) // self.lanes.rows * self.lanes.rows
        return min(max(fitting, self.lanes.rows), TILE)

    @property
    def apart(self) -> int:
        """Rows from one slot to the next: an odd number of lines of the cache, of which all places are used then."""
        line = 64 // self.lanes.bytes
        lines = -(-self.group // line)
        return (lines if lines % 2 else lines + 1) * line

    @cached_property
    def starts(self) -> dict[str, int]:
        """The first byte of every array, and of what follows them."""
        number, tape = self.lanes.bytes, self.tape
        sizes = {
            "inputs": self.inputs * STRIDE * number,
            "codes": len(tape.codes) * STRIDE * 4,
            "outputs": tape.outputs * STRIDE * number,
            "posterior": tape.states * STRIDE * number,
            "values": self.kept * self.apart * number,
            "doubts": 64,
        }
        if self.reverse:
            sizes["adjoints"] = self.kept * self.apart * number
            sizes["seeds"] = tape.states * STRIDE * number
            sizes["d_inputs"] = self.inputs * STRIDE * number
            sizes["d_constants"] = tape.constant_count * (STRIDE if self.by_row else self.lanes.rows) * number
        if self.groups:
            sizes["targets"], sizes["weights"] = self.groups * STRIDE * 8, STRIDE * 8
        starts, place = {}, 0
        for name, size in sizes.items():
            starts[name] = place
            place += -(-size // 64) * 64
        return {**starts, "end": place}


class TapeModule:
    """The code of a tape whose values have a slot each, for floats of some bits and so many rows of inputs."""

    def __init__(
        self, tape: Tape, bits: int, inputs: int, reverse: bool = False, groups: int = 0, by_row: bool = False
    ) -> None:
        self.tape, self.inputs = tape, inputs
        self.lanes = Lanes(bits, BACKWARD_BITS // bits) if reverse else lanes_of(bits)
        self.pinned = dict(tape.pinned.tolist())
        self.pieces = pieces_of(tape)
        self.memory, count = memory_of(self.pieces)
        self.layout = TileLayout(tape, self.lanes, inputs, tape.slots if reverse else count, reverse, groups, by_row)
        self.strides: dict[str, int | str] = dict.fromkeys((*ARRAYS, *BACKWARD), STRIDE)
        self.strides |= {"values": self.layout.apart, "adjoints": self.layout.apart}
        if not by_row:
            self.strides["d_constants"] = self.lanes.rows

    def _piece(self, number: int, piece: CodePiece, all_kept: bool) -> str:
        body = Watching(self.lanes, strides=self.strides, pinned=self.pinned, memory=None if all_kept else self.memory)
        with body.loop("0", "%count", self.lanes.rows) as row:
            self._shift(body, ARRAYS, row)
            for step in piece.steps:
                FORWARD[step.kind](body, step.dst, step.terms)
                if all_kept:
                    for slot in sorted(step.writes):
                        body.keep(slot)
            for slot in () if all_kept else sorted(piece.kept):
                body.keep(slot)
            body.look_at_mixtures(partial(self._note_doubt, body))
        body.do("ret void")
        return body.function(f"define internal void @forward_{number}({_parameters(ARRAYS)}) alignstack(32)")

    def _note_doubt(self, body: Body, mask: str) -> None:
        bits = body.let(f"bitcast {self.lanes.mask} {mask} to i{self.lanes.rows}")
        some = body.let(f"icmp ne i{self.lanes.rows} {bits}, 0")
        own = body.let(f"zext i1 {some} to i8")
        before = body.let("load i8, ptr %all.doubts")
        body.do(f"store i8 {body.let(f'or i8 {before}, {own}')}, ptr %all.doubts")

    def _shift(self, text: FunctionText, arrays: tuple[str, ...], row: str) -> None:
        """The arrays of a tile from some row on."""
        for name in arrays:
            if name in self.layout.common:
                text.do(f"%{name} = getelementptr inbounds i8, ptr %all.{name}, i64 0")
            else:
                scalar = "i32" if name == "codes" else self.lanes.number
                text.do(f"%{name} = getelementptr inbounds {scalar}, ptr %all.{name}, i64 {row}")

    def _reverse_piece(
        self, number: int, piece: CodePiece, inert: set[int], begun: set[int], through: bool
    ) -> list[str]:
        kind = Adjoints if self.layout.by_row else GroupedAdjoints
        body = kind(
            self.lanes, strides=self.strides, pinned=self.pinned, seeds=self.tape.states, inert=inert, begun=set(begun)
        )
        with body.loop("0", "%count", self.lanes.rows) as row:
            self._shift(body, BACKWARD, row)
            for step in reversed(piece.steps):
                if step.kind == k.OUTPUT:
                    if step.dst < body.seeds:
                        body.give(step.terms[0][0], body.load("seeds", step.dst))
                    continue
                a = body.adjoint(step.dst)
                body.own.pop(step.dst, None)
                body.begun.discard(step.dst)
                if step.kind == k.INPUT:
                    if step.dst in inert:
                        continue
                    body.store("d_inputs", step.terms[0][0], a or self.lanes.literal(0.0))
                elif a is not None and step.kind in REVERSE and (through or step.kind not in THROUGH):
                    REVERSE[step.kind](body, step.dst, step.terms, a)
            for slot, value in sorted(body.own.items()):
                body.store("adjoints", slot, value)
        begun.clear()
        begun |= body.begun | set(body.own)
        body.do("ret void")
        own = body.function(f"define internal void @backward_{number}({_parameters(BACKWARD)}) alignstack(32)")
        return [own, self._gathering_piece(number, body.later)] if isinstance(body, GroupedAdjoints) else [own]

    def _gathering_piece(self, number: int, sums: Sums) -> str:
        body = Adjoints(self.lanes, strides=dict(self.strides), pinned=self.pinned)
        gather(body, sums)
        body.do("ret void")
        head = ", ".join([*(f"ptr noalias %{name}" for name in GATHERED), "i64 %count"])
        return body.function(f"define internal void @gather_{number}({head}) alignstack(32)")

    def forward(self) -> str:
        """The text of `run`: outputs, or posteriors, of some rows."""
        texts = [self._piece(i, piece, all_kept=False) for i, piece in enumerate(self.pieces)]
        driver = _Driver(self.lanes, self.layout)
        with _tiles(driver):
            driver.clear_flags()
            driver.read()
            driver.look_at_flags(Note.UNUSUAL)
            driver.clear_flags()
            with driver.loop("0", driver.padded, self.layout.group) as first:
                self._call_forward(driver, first)
            driver.look_at_flags(Note.IMPRECISE)
            driver.copy_outputs()
            driver.divide()
        return self._text([*texts, driver.finished()])

    def backward(self, through: bool) -> str:
        """The text of `run`: derivatives of some rows, `through` sigmoids into what they are applied to or not."""
        texts = self._both_ways((k.INDEX,), through)
        driver = _Driver(self.lanes, self.layout)
        # the constants gather derivatives; inputs that make no difference get none
        driver.clear("d_inputs", self.layout.starts["end"] - self.layout.starts["d_inputs"])
        with _tiles(driver):
            driver.clear_flags()
            driver.read()
            driver.look_at_flags(Note.UNUSUAL)
            driver.take_seeds()
            driver.clear_flags()
            with driver.loop("0", driver.padded, self.layout.group) as first:
                self._call_forward(driver, first)
                self._call_backward(driver, first)
            driver.look_at_flags(Note.IMPRECISE)
            driver.copy_outputs()
            driver.copy_d_inputs()
            driver.flush(self.tape.constant_count)
        return self._text([*texts, driver.finished()])

    def learning(self, loss: int) -> str:
        """The text of `run`: a loss of some rows, and its derivatives by the constants."""
        texts = self._both_ways((k.INDEX, k.INPUT), through=True)
        texts.append(loss_text(loss, self.lanes, self.tape.states, self.layout.groups))
        driver = _Driver(self.lanes, self.layout)
        driver.clear_sums()
        with _tiles(driver):
            driver.read()
            driver.take_labels()
            with driver.loop("0", driver.padded, self.layout.group) as first:
                driver.clear_flags()
                self._call_forward(driver, first)
                # now: what becomes too small in the backward pass is nothing beside the rest
                driver.look_at_flags(Note.IMPRECISE)
                driver.call_loss(first)
                self._call_backward(driver, first)
            driver.flush(self.tape.constant_count)
        return self._text([*texts, driver.finished()])

    def jacobian(self) -> str:
        """The text of `run`: the share that some states have, and its derivatives by the constants, row by row."""
        texts = [*self._both_ways((k.INDEX, k.INPUT), through=True), share_text(self.lanes, self.tape.states)]
        driver = _Driver(self.lanes, self.layout)
        with _tiles(driver):
            driver.read()
            driver.clear_sums()
            with driver.loop("0", driver.padded, self.layout.group) as first:
                driver.clear_flags()
                self._call_forward(driver, first)
                driver.look_at_flags(Note.IMPRECISE)
                driver.call_share(first)
                self._call_backward(driver, first)
            driver.copy_outputs()
            driver.copy_d_constants()
        return self._text([*texts, driver.finished()])

    def _both_ways(self, without: tuple[int, ...], through: bool) -> list[str]:
        """The pieces, forward and backward, to all but what some kinds of instructions write."""
        texts = [self._piece(i, piece, all_kept=True) for i, piece in enumerate(self.pieces)]
        steps = [step for piece in self.pieces for step in piece.steps]
        inert = {slot for step in steps if step.kind == k.SCALE for slot in step.writes}
        inert |= {step.dst for step in steps if step.kind in without}
        begun: set[int] = set()
        for i, piece in reversed(list(enumerate(self.pieces))):
            texts += self._reverse_piece(i, piece, inert, begun, through)
        return texts

    def _call_forward(self, driver: _Driver, first: str) -> None:
        for i in range(len(self.pieces)):
            driver.call(f"forward_{i}", ARRAYS, first)

    def _call_backward(self, driver: _Driver, first: str) -> None:
        for i in reversed(range(len(self.pieces))):
            driver.call(f"backward_{i}", BACKWARD, first)
            if not self.layout.by_row:
                driver.call(f"gather_{i}", GATHERED, first)

    def _text(self, functions: list[str]) -> str:
        kinds = {self.lanes.type, Lanes(64, self.lanes.rows).type}
        declared = [f"declare {kind} @llvm.fabs.{mangled(kind)}({kind})" for kind in kinds]
        return "\n".join([*sorted(declared), *DECLARED, *functions])


DECLARED = (
    "declare i32 @fetestexcept(i32)",
    "declare i32 @feclearexcept(i32)",
    LOGARITHM,
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
)


def _parameters(arrays: tuple[str, ...]) -> str:
    return ", ".join([*(f"ptr noalias %all.{name}" for name in arrays), "i64 %count"])


class _Driver(FunctionText):
    """The function that callers see: what it does to each tile of rows."""

    def __init__(self, lanes: Lanes, layout: TileLayout) -> None:
        super().__init__(lanes)
        self.layout = layout
        self.given = {name: self.let(f"load i64, ptr {self.place('%call', i, 'i64')}") for i, name in enumerate(CALL)}
        work = self._pointer("work")
        self.arrays = {name: self.place(work, start, "i8") for name, start in layout.starts.items()}
        self.arrays["constants"] = self._pointer("constants")
        self.note = self.rows = self.row = self.padded = ""

    def _pointer(self, name: str) -> str:
        return self.let(f"inttoptr i64 {self.given[name]} to ptr")

    def finished(self) -> str:
        """The text of the function."""
        self.do("ret void")
        return self.function("define void @run(ptr %call)")

    def call(self, name: str, arrays: tuple[str, ...], first: str) -> None:
        """Run a piece over a group of rows of the tile."""
        places = []
        for name_ in arrays:
            scalar = "i32" if name_ == "codes" else self.lanes.number
            whole = name_ in (*self.layout.common, "values", "adjoints")
            places.append(self.arrays[name_] if whole else self.place(self.arrays[name_], first, scalar))
        given = ", ".join(f"ptr {place}" for place in places)
        self.do(f"call void @{name}({given}, i64 {self._count(first)})")

    def call_loss(self, first: str) -> None:
        """Put the derivatives of a loss by the outputs of a group of rows into the tile of seeds."""
        places = [self.place(self.arrays[name], first, self.lanes.number) for name in ("outputs", "seeds")]
        places[1:1] = [self.place(self.arrays[name], first, "double") for name in ("targets", "weights")]
        given = ", ".join(f"ptr {place}" for place in (*places, self._pointer("loss")))
        self.do(f"call void @loss({given}, i64 {self._count(first)})")

    def call_share(self, first: str) -> None:
        """Put the share of some states into the first output, and its derivatives into the tile of seeds."""
        places = [self.place(self.arrays[name], first, self.lanes.number) for name in ("outputs", "seeds")]
        numbers = self._count(first), self.given["first_state"], self.given["end_state"]
        given = [*(f"ptr {place}" for place in places), *(f"i64 {number}" for number in numbers)]
        self.do(f"call void @share({', '.join(given)})")

    def _count(self, first: str) -> str:
        """How many rows the group has that begins with this one."""
        left = self.let(f"sub i64 {self.padded}, {first}")
        short = self.let(f"icmp slt i64 {left}, {self.layout.group}")
        return self.let(f"select i1 {short}, i64 {left}, i64 {self.layout.group}")

    def read(self) -> None:
        """Fill the tile with evidence."""
        table = self._pointer("table")
        with self.loop("0", self.given["columns"]) as i:
            column = self.place(table, self.let(f"mul i64 {i}, {len(COLUMN)}"), "i64")
            reader = self.let(f"load ptr, ptr {self.place(column, COLUMN.index('read'), 'i64')}")
            far = self.let(f"load i64, ptr {self.place(column, COLUMN.index('tile'), 'i64')}")
            tile = self.place(self.arrays["inputs"], far, "i8")
            odd = self.let(f"call i32 {reader}(ptr {column}, i64 {self.row}, i64 {self.rows}, ptr {tile})")
            self.note_if(self.let(f"icmp ne i32 {odd}, 0"), Note.UNUSUAL)

    def note_if(self, condition: str, what: int) -> None:
        """Note something of the tile where a condition holds."""
        more = self.let(f"select i1 {condition}, i8 {what}, i8 0")
        before = self.let(f"load i8, ptr {self.note}")
        self.do(f"store i8 {self.let(f'or i8 {before}, {more}')}, ptr {self.note}")

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
        self.note_if(some, what)

    def clear_sums(self) -> None:
        """Begin with derivatives of nothing by the constants."""
        self.clear("d_constants", self.layout.starts["end"] - self.layout.starts["d_constants"])

    def clear(self, name: str, size: int) -> None:
        self.do(f"call void @llvm.memset.p0.i64(ptr {self.arrays[name]}, i8 0, i64 {size}, i1 false)")

    def _copy(self, to: str, source: str, size: str) -> None:
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def take_labels(self) -> None:
        """Targets and weights; rows of the tile that are not there weigh nothing."""
        self._rows_copied("targets", self.layout.groups, out=False, lanes=Lanes(64))
        self.clear("weights", STRIDE * 8)
        here, there = self.arrays["weights"], self.place(self._pointer("weights"), self.row, "double")
        self._copy(here, there, self.let(f"mul i64 {self.rows}, 8"))

    def _rows_copied(self, name: str, count: int, out: bool = True, lanes: Lanes | None = None) -> None:
        """Copy rows between the tile of an array and the array, whose place the caller gives."""
        lanes = lanes or self.lanes
        size = self.let(f"mul i64 {self.rows}, {lanes.bytes}")
        array = self._pointer(name)
        with self.loop("0", str(count)) as i:
            start = self.let(f"mul i64 {i}, {self.given[name + '_stride']}")
            far = self.let(f"add i64 {start}, {self.row}")
            there = self.place(array, far, lanes.number)
            here = self.place(self.arrays[name], self.let(f"mul i64 {i}, {STRIDE}"), lanes.number)
            self._copy(*((there, here) if out else (here, there)), size)

    def copy_outputs(self) -> None:
        with self.when(self.let(f"icmp ne i64 {self.given['outputs']}, 0")):
            self._rows_copied("outputs", self.layout.tape.outputs)

    def copy_d_inputs(self) -> None:
        with self.when(self.let(f"icmp ne i64 {self.given['d_inputs']}, 0")):
            self._rows_copied("d_inputs", self.layout.inputs)

    def copy_d_constants(self) -> None:
        self._rows_copied("d_constants", self.layout.tape.constant_count)

    def take_seeds(self) -> None:
        """Rows of the tile that are not there have none."""
        self.clear("seeds", self.layout.tape.states * STRIDE * self.lanes.bytes)
        self._rows_copied("seeds", self.layout.tape.states, out=False)

    def divide(self) -> None:
        """The posterior of every row, if it is wanted: what rows that are impossible have is no number."""
        states, number, bytes_ = self.layout.tape.states, self.lanes.number, self.lanes.bytes
        with self.when(self.let(f"icmp ne i64 {self.given['posterior']}, 0")):
            with self.loop("0", self.padded, self.lanes.rows) as row:
                total = self.variable(self.lanes.type, self.lanes.literal(0.0))
                with self.loop("0", str(states)) as state:
                    x = self._output(state, row)
                    before = self.let(f"load {self.lanes.type}, ptr {total}")
                    self.do(f"store {self.lanes.type} {self.add(before, x)}, ptr {total}")
                whole = self.let(f"load {self.lanes.type}, ptr {total}")
                finite = self.compare("olt", self.magnitude(whole), self.lanes.literal(float("inf")))
                infinite = self.let(f"xor {self.lanes.mask} {finite}, {self.lanes.same('i1', 'true')}")
                self._note_rows(infinite, Note.INFINITE)
                with self.loop("0", str(states)) as state:
                    shares = self.rows_of(number, self.div(self._output(state, row), whole))
                    first = self.let(f"add i64 {self.let(f'mul i64 {row}, {states}')}, {state}")
                    start = self.place(self.arrays["posterior"], first, number)
                    for lane, share in enumerate(shares):
                        self.do(f"store {number} {share}, ptr {self.place(start, lane * states, number)}")
            to = self.place(self._pointer("posterior"), self.let(f"mul i64 {self.row}, {states}"), number)
            self._copy(to, self.arrays["posterior"], self.let(f"mul i64 {self.rows}, {states * bytes_}"))

    def _output(self, state: str, row: str) -> str:
        far = self.let(f"add i64 {self.let(f'mul i64 {state}, {STRIDE}')}, {row}")
        address = self.place(self.arrays["outputs"], far, self.lanes.number)
        return self.let(f"load {self.lanes.type}, ptr {address}, align {self.lanes.bytes}")

    def _note_rows(self, mask: str, what: int) -> None:
        bits = self.let(f"bitcast {self.lanes.mask} {mask} to i{self.lanes.rows}")
        self.note_if(self.let(f"icmp ne i{self.lanes.rows} {bits}, 0"), what)

    def flush(self, constants: int) -> None:
        """Add up the rows of what the constants gathered, now and then, and after the last tile."""
        end = self.let(f"add i64 {self.row}, {self.rows}")
        done = self.let(f"icmp sge i64 {end}, {self.given['stop']}")
        now = self.let(f"icmp eq i64 {self.let(f'and i64 {end}, {ROWS_PER_FLUSH - 1}')}, 0")
        with self.when(self.let(f"or i1 {done}, {now}")):
            target = self._pointer("d_constants")
            with self.loop("0", str(constants)) as i:
                place = self.place(
                    self.arrays["d_constants"], self.let(f"mul i64 {i}, {self.lanes.rows}"), self.lanes.number
                )
                value = self.let(f"load {self.lanes.type}, ptr {place}")
                total = self.place(target, i, "double")
                made = self.let(f"load double, ptr {total}")
                for lane in self.rows_of(self.lanes.number, value):
                    wide = lane if self.lanes.bits == 64 else self.let(f"fpext float {lane} to double")
                    made = self.let(f"fadd double {made}, {wide}")
                self.do(f"store double {made}, ptr {total}")
                self.do(f"store {self.lanes.type} zeroinitializer, ptr {place}")


@contextmanager
def _tiles(d: _Driver) -> Iterator[None]:
    """All tiles one after the other: their first row, how many rows they have, and that rounded up to vectors."""
    with d.loop(d.given["start"], d.given["stop"], d.given["tile"]) as row:
        left = d.let(f"sub i64 {d.given['stop']}, {row}")
        short = d.let(f"icmp slt i64 {left}, {d.given['tile']}")
        d.row, d.rows = row, d.let(f"select i1 {short}, i64 {left}, i64 {d.given['tile']}")
        d.padded = d.let(f"and i64 {d.let(f'add i64 {d.rows}, {d.lanes.rows - 1}')}, {-d.lanes.rows}")
        gone = d.let(f"sub i64 {row}, {d.given['start']}")
        number = d.let(f"udiv i64 {gone}, {d.given['tile']}")
        d.note = d.place(d._pointer("notes"), number, "i8")
        d.do(f"store i8 0, ptr {d.note}")
        yield
