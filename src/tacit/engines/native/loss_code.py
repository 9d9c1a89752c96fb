"""The loss of the rows of a tile in LLVM IR, and its derivatives: what `loss_kernels.loss_of_rows` does.

The function takes tiles of outputs, targets, weights and seeds, which it fills in, and adds the loss to a double. It
computes in doubles. A row of weight 0 counts for nothing, whatever its outputs are. In place of a loss, there is the
share that some states have of all.
"""

from __future__ import annotations

from tacit.engines.native.lanes import FunctionText, Lanes
from tacit.engines.native.readers import place_in_tile
from tacit.engines.tape.instructions import CROSS_ENTROPY, LEAST_PROBABILITY


class _Outputs(FunctionText):
    """Lines that work on some rows of a tile of outputs, from `row` on, in doubles."""

    def __init__(self, tile_lanes: Lanes, states: int) -> None:
        super().__init__(Lanes(64, tile_lanes.rows))
        self.tile_lanes, self.states = tile_lanes, states
        self.row = self.whole = ""

    def _function(self, name: str, arrays: tuple[str, ...], *others: str) -> str:
        self.do("ret void")
        given = [*(f"ptr noalias %{array}" for array in arrays), "i64 %count", *others]
        return self.function(f"define internal void @{name}({', '.join(given)}) alignstack(32)")

    def _load(self, array: str, number: str, lanes: Lanes) -> str:
        address = place_in_tile(self, array, number, self.row, lanes.number)
        return self.let(f"load {lanes.type}, ptr {address}, align {lanes.bytes}")

    def _store(self, array: str, state: str, value: str) -> None:
        value = self.cast(value, self.lanes, self.tile_lanes)
        address = place_in_tile(self, array, state, self.row, self.tile_lanes.number)
        self.do(f"store {self.tile_lanes.type} {value}, ptr {address}, align {self.tile_lanes.bytes}")

    def _sum_from(self, state: str, stop: str = "") -> str:
        total = self.variable(self.lanes.type, self.lanes.literal(0.0))
        with self.loop(state, stop or str(self.states)) as other:
            output = self._load("%outputs", other, self.tile_lanes)
            self.add_to(total, self.cast(output, self.tile_lanes, self.lanes))
        return self.value(total)


class ShareCode(_Outputs):
    """The probability of states `first` to `end`, which goes to the first output, and its derivatives."""

    def text(self) -> str:
        """The function `share`."""
        one, zero = self.lanes.literal(1.0), self.lanes.literal(0.0)
        with self.loop("0", "%count", self.lanes.rows) as self.row:
            whole = self._sum_from("0")
            part = self.div(self._sum_from("%first", "%end"), whole)
            with self.loop("0", str(self.states)) as state:
                late, early = self.let(f"icmp sge i64 {state}, %first"), self.let(f"icmp slt i64 {state}, %end")
                inside = self.let(f"and i1 {late}, {early}")
                own = self.let(f"select i1 {inside}, {self.lanes.type} {one}, {self.lanes.type} {zero}")
                self._store("%seeds", state, self.div(self.sub(own, part), whole))
            self._store("%outputs", "0", part)
        return self._function("share", ("outputs", "seeds"), "i64 %first", "i64 %end")


class LogCode(_Outputs):
    """Derivatives by the logarithm of the joint, in `seeds`, become those by the joint; what is 0 stays 0."""

    def text(self) -> str:
        """The function `by_log`."""
        zero = self.lanes.literal(0.0)
        with self.loop("0", "%count", self.lanes.rows) as self.row, self.loop("0", str(self.states)) as state:
            seed, joint = (
                self.cast(self._load(array, state, self.tile_lanes), self.tile_lanes, self.lanes)
                for array in ("%seeds", "%outputs")
            )
            counts = self.compare("une", seed, zero)
            self._store("%seeds", state, self.select(counts, self.div(seed, joint), zero))
        return self._function("by_log", ("outputs", "seeds"))


class LossCode(_Outputs):
    """The loss of rows, and its derivatives; targets have a group for every state, or the last for the rest."""

    def __init__(self, kind: int, tile_lanes: Lanes, states: int, groups: int) -> None:
        super().__init__(tile_lanes, states)
        self.kind, self.groups = kind, groups

    def text(self) -> str:
        """The function `loss`."""
        zero = self.lanes.literal(0.0)
        loss = self.variable(self.lanes.type, zero)
        with self.loop("0", "%count", self.lanes.rows) as self.row:
            weight = self._load("%weights", "0", self.lanes)
            counts = self.compare("une", weight, zero)
            self.whole = self._sum_from("0")
            own, inner = (self.variable(self.lanes.type, zero) for _ in range(2))
            with self.loop("0", str(self.groups)) as group:
                p, target = self._probability(group), self._load("%targets", group, self.lanes)
                self.add_to(own, self._cost(p, target))
                self.add_to(inner, self.mul(self._slope(p, target), p))
            self.add_to(loss, self.select(counts, self.mul(weight, self.value(own)), zero))
            scale, mean = self.div(weight, self.whole), self.value(inner)
            with self.loop("0", str(self.states)) as state:
                early = self.let(f"icmp slt i64 {state}, {self.groups - 1}")
                group = self.let(f"select i1 {early}, i64 {state}, i64 {self.groups - 1}")
                slope = self._slope(self._probability(group), self._load("%targets", group, self.lanes))
                self._store("%seeds", state, self.select(counts, self.mul(scale, self.sub(slope, mean)), zero))
        total = self.let("load double, ptr %total")
        for lane in self.rows_of("double", self.value(loss)):
            total = self.let(f"fadd double {total}, {lane}")
        self.do(f"store double {total}, ptr %total")
        return self._function("loss", ("outputs", "targets", "weights", "seeds"), "ptr noalias %total")

    def _probability(self, group: str) -> str:
        """The probability of a group: of one state, or of all that are left."""
        last = self.let(f"icmp eq i64 {group}, {self.groups - 1}")
        stop = self.let(f"select i1 {last}, i64 {self.states}, i64 {self.let(f'add i64 {group}, 1')}")
        return self.div(self._sum_from(group, stop), self.whole)

    def _cost(self, p: str, target: str) -> str:
        if self.kind != CROSS_ENTROPY:
            off = self.sub(p, target)
            return self.mul(self.mul(off, off), self.lanes.literal(1 / self.groups))
        bounded, ratio = self._bounded(p)
        logs = [self.let(f"call double @log(double {x})") for x in self.rows_of("double", bounded)]
        missing = self.sub(self.lanes.literal(1.0), self.mul(ratio, ratio))
        half = self.mul(missing, self.lanes.literal(0.5))
        return self.mul(target, self.sub(half, self.by_row("double", logs)))

    def _slope(self, p: str, target: str) -> str:
        if self.kind != CROSS_ENTROPY:
            return self.mul(self.sub(p, target), self.lanes.literal(2 / self.groups))
        bounded, ratio = self._bounded(p)
        return self.negative(self.mul(target, self.div(ratio, bounded)))

    def _bounded(self, p: str) -> tuple[str, str]:
        """A probability that is not too small for a logarithm, and p divided by it: 1 down to `LEAST_PROBABILITY`."""
        bounded = self.largest(p, self.lanes.literal(LEAST_PROBABILITY))
        return bounded, self.div(p, bounded)
