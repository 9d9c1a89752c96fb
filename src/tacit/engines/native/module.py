"""A tape as a module of LLVM IR for a processor: what runs it over rows, forward and in reverse.

Rows pass through in tiles: readers fill a tile with evidence, each piece of the tape runs over it, and its outputs are
copied to where they are wanted, or divided by their sum. All of this stays in the caches.
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.engines.native.backward import GATHERED, REVERSE, Adjoints, GroupedAdjoints, gather
from tacit.engines.native.forward import FORWARD, Watching
from tacit.engines.native.lanes import FunctionText, Lanes, Note
from tacit.engines.native.loss_code import LogCode, LossCode, ShareCode
from tacit.engines.native.pieces import CodePiece, memory_of, pieces_of
from tacit.engines.native.readers import TILE_STRIDE, lanes_of
from tacit.engines.native.tile_loop import TileLayout, TileLoop
from tacit.engines.tape import instructions as k
from tacit.engines.tape.tape import Tape

FORWARD_ARRAYS = ("constants", "inputs", "codes", "outputs", "values", "doubts")
BACKWARD_ARRAYS = ("constants", "inputs", "codes", "values", "adjoints", "d_constants", "d_inputs", "seeds")
BACKWARD_BITS = 256  # bits of a vector in the backward pass, where more values are alive
DECLARED = (
    "declare i32 @fetestexcept(i32)",
    "declare i32 @feclearexcept(i32)",
    "declare double @log(double)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
)


class CodeKind(NamedTuple):
    """What some code does."""

    reverse: bool
    option: bool  # forward: with selections; in reverse: through sigmoids
    loss: int | None = None  # MEAN_SQUARED or CROSS_ENTROPY, whose derivatives are taken
    groups: int = 0  # of its targets
    by_row: bool = False  # the derivatives of a share of the joint by the constants, row by row
    descent: bool = False  # forward: with all values that a traceback looks at
    by_log: bool = False  # in reverse: the seeds are derivatives by the logarithm of the joint


class TapeModule:
    """The code of a tape whose values have a slot each, for floats of some bits and so many rows of inputs."""

    def __init__(self, tape: Tape, bits: int, inputs: int, kind: CodeKind) -> None:
        self.tape, self.kind = tape, kind
        self.lanes = Lanes(bits, BACKWARD_BITS // bits) if kind.reverse else lanes_of(bits)
        self.pinned = dict(tape.pinned.tolist())
        self.pieces = pieces_of(tape)
        self.memory, count = memory_of(self.pieces)
        kept = tape.slots if kind.reverse else count
        self.layout = TileLayout(tape, self.lanes, inputs, kept, kind.reverse, kind.groups, kind.by_row)
        self.strides: dict[str, int | str] = dict.fromkeys((*FORWARD_ARRAYS, *BACKWARD_ARRAYS), TILE_STRIDE)
        self.strides |= {"values": self.layout.apart, "adjoints": self.layout.apart}
        if not kind.by_row:
            self.strides["d_constants"] = self.lanes.rows

    def text(self) -> str:
        """The module, with a function `run`."""
        if self.kind.by_row:
            functions = self._jacobian()
        elif self.kind.loss is not None:
            functions = self._learning(self.kind.loss)
        else:
            functions = self._backward() if self.kind.reverse else self._forward()
        declared = sorted({lanes.declared_magnitude for lanes in (self.lanes, Lanes(64, self.lanes.rows))})
        return "\n".join([*declared, *DECLARED, *functions])

    def _piece(self, number: int, piece: CodePiece, all_kept: bool) -> str:
        body = Watching(self.lanes, strides=self.strides, pinned=self.pinned, memory=None if all_kept else self.memory)
        with body.loop("0", "%count", self.lanes.rows) as row:
            self._shift(body, FORWARD_ARRAYS, row)
            for step in piece.steps:
                FORWARD[step.kind](body, step.dst, step.terms)
                for slot in sorted(step.writes) if all_kept else ():
                    body.keep(slot)
            for slot in () if all_kept else sorted(piece.kept):
                body.keep(slot)
            body.look_at_mixtures()
        body.do("ret void")
        return body.function(f"define internal void @forward_{number}({_parameters(FORWARD_ARRAYS)}) alignstack(32)")

    def _shift(self, text: FunctionText, arrays: tuple[str, ...], row: str) -> None:
        """The arrays of a tile from some row on."""
        for name in arrays:
            if name in self.layout.common:
                text.do(f"%{name} = getelementptr inbounds i8, ptr %all.{name}, i64 0")
            else:
                scalar = "i32" if name == "codes" else self.lanes.number
                text.do(f"%{name} = getelementptr inbounds {scalar}, ptr %all.{name}, i64 {row}")

    def _reverse_piece(self, number: int, piece: CodePiece, inert: set[int], begun: set[int]) -> list[str]:
        """The backward pass of a piece; `begun` are the slots whose derivatives are in memory, before and after."""
        adjoints = Adjoints if self.layout.by_row else GroupedAdjoints
        body = adjoints(
            self.lanes, strides=self.strides, pinned=self.pinned, seeds=self.tape.states, inert=inert, begun=set(begun)
        )
        with body.loop("0", "%count", self.lanes.rows) as row:
            self._shift(body, BACKWARD_ARRAYS, row)
            for step in reversed(piece.steps):
                body.hand_back(step, self.kind.option, REVERSE)
            for slot, value in sorted(body.own.items()):
                body.store("adjoints", slot, value)
        begun.clear()
        begun |= body.begun | set(body.own)
        body.do("ret void")
        own = body.function(f"define internal void @backward_{number}({_parameters(BACKWARD_ARRAYS)}) alignstack(32)")
        if not isinstance(body, GroupedAdjoints):
            return [own]
        sums = Adjoints(self.lanes, strides=dict(self.strides), pinned=self.pinned)
        gather(sums, body.later)
        sums.do("ret void")
        head = ", ".join([*(f"ptr noalias %{name}" for name in GATHERED), "i64 %count"])
        return [own, sums.function(f"define internal void @gather_{number}({head}) alignstack(32)")]

    def _forward(self) -> list[str]:
        texts = [self._piece(i, piece, all_kept=False) for i, piece in enumerate(self.pieces)]
        loop = TileLoop(self.layout)
        with loop.tiles():
            loop.read_with_care()
            loop.clear_flags()
            with loop.loop("0", loop.padded, self.layout.group) as first:
                self._call_forward(loop, first)
            loop.look_at_flags(Note.IMPRECISE)
            loop.look_at_lost()
            loop.put_out("outputs", self.tape.outputs)
            loop.divide()
        return [*texts, loop.text()]

    def _backward(self) -> list[str]:
        texts, loop = self._both_ways((k.INDEX,)), TileLoop(self.layout)
        if self.kind.by_log:
            texts.append(LogCode(self.lanes, self.tape.states).text())
        loop.clear_from("d_inputs")  # the constants gather derivatives; inputs that make no difference get none
        with loop.tiles():
            loop.read_with_care()
            loop.take_seeds()
            loop.clear_flags()
            with loop.loop("0", loop.padded, self.layout.group) as first:
                self._call_forward(loop, first)
                if self.kind.by_log:
                    loop.call("by_log", ("outputs", "seeds"), first)
                self._call_backward(loop, first)
            loop.look_at_flags(Note.IMPRECISE)
            loop.put_out("outputs", self.tape.outputs)
            loop.put_out("d_inputs", self.layout.inputs)
            loop.flush()
        return [*texts, loop.text()]

    def _learning(self, loss: int) -> list[str]:
        """A loss of some rows, and its derivatives by the constants."""
        texts, loop = self._both_ways((k.INDEX, k.INPUT)), TileLoop(self.layout)
        texts.append(LossCode(loss, self.lanes, self.tape.states, self.layout.groups).text())
        loop.clear_from("d_constants")
        total = loop.pointer("loss")
        with loop.tiles():
            loop.read()
            loop.take_labels()
            with loop.loop("0", loop.padded, self.layout.group) as first:
                self._call_noticing(loop, first)
                loop.call("loss", ("outputs", "targets", "weights", "seeds"), first, [f"ptr {total}"])
                self._call_backward(loop, first)
            loop.flush()
        return [*texts, loop.text()]

    def _jacobian(self) -> list[str]:
        """The share that some states have, and its derivatives by the constants, row by row."""
        texts, loop = self._both_ways((k.INDEX, k.INPUT)), TileLoop(self.layout)
        texts.append(ShareCode(self.lanes, self.tape.states).text())
        states = [f"i64 {loop.given[name]}" for name in ("first_state", "end_state")]
        with loop.tiles():
            loop.read()
            loop.clear_from("d_constants")
            with loop.loop("0", loop.padded, self.layout.group) as first:
                self._call_noticing(loop, first)
                loop.call("share", ("outputs", "seeds"), first, states)
                self._call_backward(loop, first)
            loop.put_out("outputs", self.tape.outputs)
            loop.put_out("d_constants", self.tape.constant_count)
        return [*texts, loop.text()]

    def _both_ways(self, without: tuple[int, ...]) -> list[str]:
        """The pieces, forward and backward, to all but what some kinds of instructions write."""
        texts = [self._piece(i, piece, all_kept=True) for i, piece in enumerate(self.pieces)]
        steps = [step for piece in self.pieces for step in piece.steps]
        inert = {slot for step in steps if step.kind == k.SCALE for slot in step.writes}
        inert |= {step.dst for step in steps if step.kind in without}
        begun: set[int] = set()
        for i, piece in reversed(list(enumerate(self.pieces))):
            texts += self._reverse_piece(i, piece, inert, begun)
        return texts

    def _call_forward(self, loop: TileLoop, first: str) -> None:
        for i in range(len(self.pieces)):
            loop.call(f"forward_{i}", FORWARD_ARRAYS, first)

    def _call_noticing(self, loop: TileLoop, first: str) -> None:
        """Run forward and look at flags: what becomes too small in the backward pass is nothing beside the rest."""
        loop.clear_flags()
        self._call_forward(loop, first)
        loop.look_at_flags(Note.IMPRECISE)

    def _call_backward(self, loop: TileLoop, first: str) -> None:
        for i in reversed(range(len(self.pieces))):
            loop.call(f"backward_{i}", BACKWARD_ARRAYS, first)
            if not self.layout.by_row:
                loop.call(f"gather_{i}", GATHERED, first)


def _parameters(arrays: tuple[str, ...]) -> str:
    return ", ".join([*(f"ptr noalias %all.{name}" for name in arrays), "i64 %count"])
