"""A tape as a kernel in LLVM IR for a GPU, with one row for each thread, forward or in reverse.

A kernel is straight-line code: its values stay in registers as far as these go. How evidence is given is part of it
(`Given`), where it lies is not. For tests, the same lines can be made for a processor, with a loop over rows around.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from tacit.base.errors import TooLargeError
from tacit.engines.cuda.thread import BACKWARD, LEVELS, WARP, Given, Thread
from tacit.engines.native.backward import THROUGH
from tacit.engines.native.lanes import FunctionText, Lanes, Note
from tacit.engines.native.pieces import TapeStep, deep, steps_of
from tacit.engines.tape import instructions as k
from tacit.engines.tape.tape import Tape

MAX_TERMS = 12_000  # of a kernel: the time that a driver takes to assemble it grows faster than that
TERMS_PER_BLOCK = 400  # of lines between two jumps
THREADS_PER_BLOCK = 128
LIVE_VALUES_OF_THREE_BLOCKS = 70  # which fit into the registers, if that many blocks run at a time
MAX_PARAMETER_BYTES = 32_000  # bytes that can be passed to a kernel
MAX_BANK_BYTES = 60_000  # bytes of constants that are kept in memory made for them, of which there are 64 kB
REPLICAS = 16  # of the sums over rows, so that fewer threads want to add to the same one

FORWARD_PARAMETERS = ("outputs.all", "outputs.stride", "posterior", "notes", "flag", "rows")
KEEP_PARAMETERS = ("values.all", "flag", "rows")
REVERSE_PARAMETERS = ("seeds.all", "seeds.stride", "d_inputs.all", "d_inputs.stride", "sums.all", *KEEP_PARAMETERS)

ON_DEVICE = (
    *(f"declare i32 @llvm.nvvm.read.ptx.sreg.{what}()" for what in ("tid.x", "ctaid.x", "ntid.x", "laneid")),
    "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)",
)


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel, and what whoever launches it must know.

    `parameters` are names, all of 64 bits; constants are a variable of the module if it has a `bank`, and a parameter
    if not. Sum i of a kernel in reverse is one by constant `sums[i]`; from `len(sums)` on, there is one by each
    constant.
    """

    name: str
    text: str
    parameters: tuple[str, ...]
    bank: bool
    sums: tuple[int, ...] = ()
    kept: int = 0  # values of a row that are kept in memory


def check_size(tape: Tape) -> None:
    """An error where a tape is too long for a kernel."""
    if len(tape.terms) > MAX_TERMS:
        raise TooLargeError(
            f"the query takes {len(tape.terms):,} multiply-adds a row, and code for GPUs is generated for up to "
            f"{MAX_TERMS:,}; use engine='torch'"
        )


def forward_kernel(tape: Tape, bits: int, given: Sequence[Given], device: bool = True) -> Kernel:
    """The kernel `forward`: the outputs, or the posterior, of every row."""
    return _Maker(tape, bits, given, device, FORWARD_PARAMETERS).forward()


def keeping_kernel(tape: Tape, bits: int, given: Sequence[Given], device: bool = True) -> Kernel:
    """The kernel `keep`, of values for the backward pass: in one kernel with that, registers would not suffice."""
    return _Maker(tape, bits, given, device, KEEP_PARAMETERS).keep()


def reverse_kernel(
    tape: Tape, bits: int, given: Sequence[Given], through: bool = True, inputs: bool = True, device: bool = True
) -> Kernel:
    """The kernel `reverse`: derivatives by the constants, and by the `inputs` if they are wanted.

    Values are those that the kernel `keep` left in memory. Without `through`, derivatives do not pass through sigmoids.
    """
    return _Maker(tape, bits, given, device, REVERSE_PARAMETERS).reverse(through, inputs)


class _Maker:
    def __init__(self, tape: Tape, bits: int, given: Sequence[Given], device: bool, names: Sequence[str]) -> None:
        check_size(tape)
        self.tape, self.lanes, self.device = tape, Lanes(bits), device
        self.bank = device and tape.constant_count * self.lanes.bytes <= MAX_BANK_BYTES
        columns = [f"{what}{i}" for i in range(len(given)) for what in ("data", "row", "state")]
        self.parameters = [*(() if self.bank else ("constants",)), *columns, *names]
        if 8 * len(self.parameters) > MAX_PARAMETER_BYTES:
            raise TooLargeError(
                f"the query has evidence on {len(given):,} variables, too many for a kernel; use engine='torch'"
            )
        self.steps = deep(list(steps_of(tape)))
        self.blocks = 0
        self.thread = Thread(
            self.lanes,
            strides={"seeds": "%seeds.stride", "d_inputs": "%d_inputs.stride", "values": WARP},
            pinned=dict(tape.pinned.tolist()),
            given=given,
            device=device,
            seeds=tape.states,
        )
        if self.bank:
            self.thread.do("%constants = addrspacecast ptr addrspace(4) @constants to ptr")
        if device:
            self._number()

    def _number(self) -> None:
        """The number of the thread, and of its block."""
        t, registers = self.thread, ("tid.x", "ctaid.x", "ntid.x")
        calls = (t.let(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()") for register in registers)
        own, block, size = (t.let(f"zext i32 {call} to i64") for call in calls)
        t.do(f"%block = add i64 {block}, 0")
        t.do(f"%thread = add i64 {t.let(f'mul i64 {block}, {size}')}, {own}")

    def forward(self) -> Kernel:
        t = self.thread
        t.do("%row = add i64 %thread, 0")
        with t.when(t.let("icmp slt i64 %row, %rows")):
            for step in self._in_blocks(self.steps):
                t.follow(step)
            self._write()
        return self._kernel("forward")

    def _in_blocks(self, steps: Iterable[TapeStep]) -> Iterator[TapeStep]:
        """Pass instructions on, and begin a new block of lines now and then.

        LLVM takes quadratic time for long blocks, and an assembler moves what a block reads to its beginning, for which
        registers do not suffice. A condition that always holds, which they cannot know, keeps blocks apart.
        """
        t, size = self.thread, 0
        for step in steps:
            size += len(step.terms)
            if size > TERMS_PER_BLOCK:
                size = 0
                self.blocks += 1
                t.settle()
                t.do(f"br i1 {t.let(f'icmp ne i64 %rows, -{self.blocks}')}, label %block{self.blocks}, label %end")
                t.begin(f"block{self.blocks}")
            yield step

    def _write(self) -> None:
        """The outputs as they are, and divided by their sum, whichever is wanted."""
        t, number = self.thread, self.lanes.number
        states = [t.results[i] for i in range(self.tape.states)]
        total = reduce(t.add, states)
        t.note_doubt(t.compare("oeq", total, t.lanes.literal(float("inf"))))
        impossible = t.compare("oeq", total, t.lanes.literal(0.0))
        note = t.let(f"or i8 {t.note()}, {t.let(f'select i1 {impossible}, i8 {Note.IMPOSSIBLE}, i8 0')}")
        t.do(f"store i8 {note}, ptr {t.place('%notes', '%row', 'i8')}")
        t.raise_flag(note)
        with t.when(t.let("icmp ne ptr %outputs.all, null")):
            start = t.place("%outputs.all", "%row", number)
            for i, value in sorted(t.results.items()):
                t.do(f"store {number} {value}, ptr {t.place(start, t.let(f'mul i64 %outputs.stride, {i}'), number)}")
        with t.when(t.let("icmp ne ptr %posterior, null")):
            start = t.place("%posterior", t.let(f"mul i64 %row, {len(states)}"), number)
            for i, value in enumerate(states):
                t.do(f"store {number} {t.div(value, total)}, ptr {t.place(start, i, number)}")

    def _keep_in_memory(self) -> None:
        """Say which values are kept, and where; what is a product of two others is computed again."""
        t = self.thread
        t.recomputed = {step.dst: step for step in self.steps if _is_cheap(step)}
        kept = sorted(_needed(self.steps) - set(t.recomputed) - set(t.pinned) - {0})
        t.memory = {slot: i for i, slot in enumerate(kept)}
        # values of a warp are together, each at a distance that is known now: it costs no registers
        warp, lane = t.let(f"and i64 %thread, {-WARP}"), t.let(f"and i64 %thread, {WARP - 1}")
        far = t.let(f"add i64 {t.let(f'mul i64 {warp}, {len(kept)}')}, {lane}")
        t.do(f"%values = getelementptr inbounds {t.lanes.number}, ptr %values.all, i64 {far}")

    def keep(self) -> Kernel:
        """Threads without a row keep the values of the last one: later, all of a warp read their place."""
        t = self.thread
        there = t.let("icmp slt i64 %thread, %rows")
        t.do(f"%row = select i1 {there}, i64 %thread, i64 {t.let('sub i64 %rows, 1')}")
        self._keep_in_memory()
        memory = t.memory or {}
        for step in self._in_blocks(self.steps):
            t.follow(step)
            for slot in sorted(step.writes & set(memory)):
                t.keep(slot)
        t.raise_flag(t.note())
        return self._kernel("keep", len(memory))

    def reverse(self, through: bool, inputs: bool) -> Kernel:
        """Threads without a row take the last one, with derivatives of 0: all of a warp have to exchange sums."""
        t = self.thread
        t.do("%there = icmp slt i64 %thread, %rows")
        t.do(f"%row = select i1 %there, i64 %thread, i64 {t.let('sub i64 %rows, 1')}")
        for name, place in (("seeds", "row"), ("d_inputs", "thread")):
            t.do(f"%{name} = getelementptr inbounds {t.lanes.number}, ptr %{name}.all, i64 %{place}")
        self._keep_in_memory()
        first, reads = len(t.lines), [step for step in self.steps if step.kind == k.INPUT]
        t.inert = {slot for step in self.steps if step.kind in (k.SCALE, k.INDEX) for slot in step.writes}
        if not inputs:
            t.inert |= {step.dst for step in reads}
        for step in self._in_blocks(reversed(self.steps)):
            t.hand_back(step, through, BACKWARD)
            for slot in step.writes:
                t.values.pop(slot, None)
        reached = {step.terms[0][0] for step in reads}
        for number in sorted(set(range(len(t.owners))) - reached) if inputs else ():
            t.store("d_inputs", number, self.lanes.literal(0.0))
        t.finish_sums()
        t.lines[first:first] = self._places_of_sums()
        return self._kernel("reverse", len(t.memory or {}))

    def _places_of_sums(self) -> list[str]:
        """Where this thread adds to sums, which is known when their number is: lines that come before."""
        t = FunctionText(self.lanes, numbers=self.thread.numbers)
        count, start = len(self.thread.gathered), "%sums.all"
        if self.device:
            replica = t.let(f"and i64 %block, {REPLICAS - 1}")
            size = count + self.tape.constant_count
            start = t.place(start, t.let(f"mul i64 {replica}, {size}"), "double")
            lane = t.let("call i32 @llvm.nvvm.read.ptx.sreg.laneid()")
            t.do(f"%sums.lane = getelementptr inbounds double, ptr {start}, i64 {t.let(f'zext i32 {lane} to i64')}")
            for level in range(LEVELS):
                t.do(f"%bit{level} = icmp ne i32 {t.let(f'and i32 {lane}, {1 << level}')}, 0")
        t.do(f"%sums = getelementptr inbounds double, ptr {start}, i64 0")
        t.do(f"%sums.tables = getelementptr inbounds double, ptr {start}, i64 {count}")
        return t.lines

    def _kernel(self, name: str, kept: int = 0) -> Kernel:
        self.thread.do("br label %end")
        self.thread.begin("end")
        self.thread.do("ret void")
        listed = ", ".join(f"{_type(p)} %{p}" for p in self.parameters)
        if self.device:
            sizes = f'"nvvm.maxntid"="{THREADS_PER_BLOCK}" "nvvm.minctasm"="{_resident(self.steps)}"'
            own = [self.thread.function(f"define ptx_kernel void @{name}({listed}) {sizes}")]
        else:
            body = self.thread.function(f"define internal void @{name}({listed}, i64 %thread)")
            own = [body, self._loop(name)]
        text = "\n".join([*self._declared(), *own, "!0 = !{}", ""])
        return Kernel(name, text, tuple(self.parameters), self.bank, tuple(self.thread.gathered), kept)

    def _loop(self, name: str) -> str:
        """The function `run` for a processor, which takes the address of the arguments."""
        t = FunctionText(self.lanes)
        given = []
        for i, parameter in enumerate(self.parameters):
            kind, address = _type(parameter), t.place("%call", i, "i64")
            given.append(f"{kind} {t.let(f'load {kind}, ptr {address}')}")
        with t.loop("0", given[-1].split()[1]) as thread:
            t.do(f"call void @{name}({', '.join(given)}, i64 {thread})")
        t.do("ret void")
        return t.function("define void @run(ptr %call)")

    def _declared(self) -> list[str]:
        functions = sorted({lanes.declared_magnitude for lanes in (self.lanes, Lanes(64))})
        functions.append("declare i32 @llvm.umin.i32(i32, i32)")
        if self.bank:
            table = f"[{self.tape.constant_count} x {self.lanes.number}]"
            functions.append(f"@constants = addrspace(4) externally_initialized global {table} zeroinitializer")
        return [*functions, *ON_DEVICE] if self.device else functions


def _type(parameter: str) -> str:
    numbers = parameter == "rows" or parameter.endswith(".stride") or parameter.startswith(("row", "state"))
    return "i64" if numbers else "ptr"


def _resident(steps: Sequence[TapeStep]) -> int:
    """How many blocks of threads a processor should have at a time: more of them leave fewer registers to each."""
    alive, most = set[int](), 0
    for step in reversed(steps):
        alive = (alive - step.writes) | step.reads
        most = max(most, len(alive))
    return 3 if most <= LIVE_VALUES_OF_THREE_BLOCKS else 2


def _is_cheap(step: TapeStep) -> bool:
    """Whether a value is faster computed again than fetched from memory."""
    return step.kind in (k.INPUT, k.INDEX) or (step.kind in (k.PRODUCT, k.LINEAR) and len(step.terms) == 1)


def _needed(steps: Sequence[TapeStep]) -> set[int]:
    """The slots whose values the backward pass reads."""
    needed: set[int] = set()
    for step in steps:
        if step.kind in BACKWARD:
            needed |= step.reads | (step.writes if step.kind in THROUGH else set())
    return needed


assert 2**LEVELS == WARP
