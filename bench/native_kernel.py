"""Generated code beside the interpreter, and beside what the machine can do."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import tacit
from bench.networks import network, widest_root
from bench.sides import AGREEMENT, Comparison, difference, taking_turns
from bench.tables import MISSED, OK, Section, at_least
from bench.worker import likelihoods, observed, seconds
from tacit.base import machine
from tacit.engines import ENGINES
from tacit.engines.native.module import CodeKind
from tacit.engines.native.native_engine import NativeEngine
from tacit.engines.tape import tape_kernels as kernels
from tacit.engines.tape.tape_based import blocks_of_tiles, in_threads
from tacit.engines.tape.tape_engine import TapeEngine
from tacit.evidence.column import Column, blocks

NETWORKS = ("alarm", "win95pts", "hepar2", "hailfinder")
GENERATED = "native" if "native" in ENGINES else "tape"
EACH, BEST, HOW_MANY = 3.0, 4.0, 2  # how many times as fast each network is, and some of them
NARROW, SHARE = 1.4, 0.5  # float32 against float64; of what the machine can do
MATRIX, COPIED = 1000, 2**25  # rows of a matrix, and numbers to copy

Run = Callable[[], list[np.ndarray]]


@dataclass(frozen=True)
class Sample:
    """A query with soft evidence on all leaves, and rows of evidence that were read before."""

    name: str
    rows: int
    threads: int

    @property
    def net(self) -> tacit.Network:
        return network(self.name)

    @cache  # noqa: B019 - a handful that live as long as the program
    def tac(self, engine: str, dtype: str = "float64") -> tacit.TAC:
        how: Any = {"engine": engine, "dtype": dtype, "threads": self.threads}
        return tacit.compile(self.net, widest_root(self.net), observed(self.net), **how)

    def evidence(self, dtype: str = "float64") -> dict[str, np.ndarray]:
        return likelihoods(self.net, self.rows, dtype)

    @property
    def work(self) -> int:
        """Multiply-adds of a row."""
        return self._tape.work

    @property
    def live(self) -> int:
        """Values of a row that are kept at the same time."""
        return self._tape.slots

    @property
    def _tape(self) -> Any:
        engine: Any = self.tac("tape").engine()
        return engine.tape

    @property
    def bytes(self) -> int:
        """Those of evidence and answer of a row, in float64."""
        return 8 * sum(len(self.net.states(n)) for n in (*observed(self.net), widest_root(self.net)))


# runs -----------------------------------------------------------------------------------------------------


def whole(engine: Any, columns: Mapping[str, Column], rows: int) -> Run:
    """`engine.run` on all rows, block by block, as a query runs it."""
    parts = [block for _, block in blocks(columns, rows, engine.chunk)]
    return lambda: [engine.run(part.columns, part.rows).joint for part in parts]


def kernel(engine: Any, columns: Mapping[str, Column], rows: int) -> Run:
    """The kernel alone: the evidence is packed beforehand, and there is room for the outputs."""
    one = _interpreted if isinstance(engine, TapeEngine) else _generated
    runs = [one(engine, part.columns, part.rows) for _, part in blocks(columns, rows, engine.chunk)]
    return lambda: [run() for run in runs]


def _generated(engine: NativeEngine, columns: Mapping[str, Column], rows: int) -> Callable[[], np.ndarray]:
    code = engine.compile(CodeKind(False, False))
    evidence = engine._packed_evidence(code, *engine._packed(code.tape, columns, rows))
    outputs = np.empty((code.tape.outputs, rows), dtype=engine.dtype)

    def run() -> np.ndarray:
        engine._run(code, evidence, rows, {"outputs": outputs})
        return outputs[: code.tape.states]

    return run


def _interpreted(engine: TapeEngine, columns: Mapping[str, Column], rows: int) -> Callable[[], np.ndarray]:
    tape, width = engine.tape, engine._width(engine.tape, rows)
    arrays = engine._arrays(tape, *engine._packed(tape, columns, rows))

    def work(block: tuple[int, int]) -> None:
        kernels.forward(*arrays, engine._values(tape, arrays.constants, width), *block)

    def run() -> np.ndarray:
        in_threads(work, blocks_of_tiles(engine.threads, rows, width, tape.work))
        return arrays.outputs[: tape.states]

    return run


def matrix_product(threads: int) -> Callable[[], float]:
    """Seconds of a multiply-add, in a product of matrices by BLAS."""
    a = np.random.default_rng(0).random((MATRIX, MATRIX))
    out = np.empty_like(a)

    def run() -> float:
        with machine.limited(threads):
            return seconds(lambda: np.matmul(a, a, out=out)) / MATRIX**3

    return run


def copying(threads: int) -> Callable[[], float]:
    """Seconds of a byte that is read or written, where large arrays are copied."""
    parts = np.array_split(np.ones(COPIED), threads)
    places = [np.empty_like(part) for part in parts]

    def run() -> float:
        with ThreadPoolExecutor(threads) as pool:
            spent = seconds(lambda: list(pool.map(np.copyto, places, parts)))
        return spent / (2 * 8 * COPIED)

    return run


# sections -------------------------------------------------------------------------------------------------


def against_interpreter(rows: int) -> list[Section]:
    """Both engines on the same packed rows, one thread."""
    section = Section(
        f"1. Generated code against the interpreter: {rows:,} rows, one thread",
        f"the kernel is {EACH:g}x as fast on each network, {BEST:g}x on {HOW_MANY} of them; in float32, {NARROW:g}x as "
        "fast again; answers agree",
        ("network", "multiply-adds", "live values", "interpreter, ns", "generated, ns", "gain", "float32, ns",
         "gain in float32", "run, interpreter, ns", "run, generated, ns", "of BLAS", "of copying", "limited by",
         "difference", "difference, float32", "verdict", "verdict, float32"),
    )  # fmt: skip
    found = {name: _engines(Sample(name, rows, threads=1)) for name in NETWORKS}
    best = sum(compared.gain.ratio >= BEST for compared in found.values()) >= HOW_MANY
    for compared in found.values():
        section.add(*compared.cells(best))
    section.notes.append(
        "Evidence is soft; times are per row. *Run*: `engine.run`, which packs the evidence first; a kernel that reads "
        "the evidence itself makes no difference between the two. *Of BLAS*, *of copying*: multiply-adds per second, "
        "and bytes of evidence and answers per second, as shares of what one core does in a product of matrices, and "
        "where it copies large arrays. *Live values*: those of a row that are kept at the same time."
    )
    return [section]


@dataclass(frozen=True)
class Engines:
    """What the engines took for one network, in seconds per row and turn, beside the rates of the machine."""

    sample: Sample
    interpreted: list[float]
    generated: list[float]
    narrow: list[float]
    interpreted_run: list[float]
    generated_run: list[float]
    product: list[float]
    copy: list[float]
    error: float
    narrow_error: float

    @property
    def gain(self) -> Comparison:
        return Comparison(self.interpreted, self.generated)

    def cells(self, best: bool) -> list[Any]:
        """A row of the table; `best` says whether enough networks are fast enough."""
        sample, narrow = self.sample, Comparison(self.generated, self.narrow)
        shares = share(self.product, self.generated, sample.work), share(self.copy, self.generated, sample.bytes)
        agrees = self.error <= AGREEMENT["float64"], self.narrow_error <= AGREEMENT["float32"]
        return [
            sample.name, sample.work, sample.live, ns(self.interpreted), ns(self.generated), self.gain, ns(self.narrow),
            narrow, ns(self.interpreted_run), ns(self.generated_run), f"{shares[0]:.0%}", f"{shares[1]:.0%}",
            limit(*shares), f"{self.error:.0e}", f"{self.narrow_error:.0e}",
            OK if best and self.gain.ratio >= EACH and agrees[0] else MISSED,
            OK if narrow.ratio >= NARROW and agrees[1] else MISSED,
        ]  # fmt: skip


def _engines(sample: Sample) -> Engines:
    interpreted, generated, narrow = sample.tac("tape"), sample.tac(GENERATED), sample.tac(GENERATED, "float32")
    columns = interpreted.read(sample.evidence()).columns
    less = narrow.read(sample.evidence("float32")).columns
    runs = [
        *(kernel(tac.engine(), columns, sample.rows) for tac in (interpreted, generated)),
        kernel(narrow.engine(), less, sample.rows),
        *(whole(tac.engine(), columns, sample.rows) for tac in (interpreted, generated)),
    ]
    first, second, third = ([posterior(joint) for joint in run()] for run in runs[:3])
    times = taking_turns([
        *(partial(per_row, run, sample.rows) for run in runs), matrix_product(sample.threads), copying(sample.threads)
    ])  # fmt: skip
    return Engines(sample, *times, *(largest(a, b) for a, b in ((second, first), (third, second))))


def share_of_machine(rows: int) -> list[Section]:
    """The kernel alone and a whole query, two threads, against matrix products and copies in two threads."""
    section = Section(
        f"4. Share of the machine: alarm, {rows:,} rows, 2 threads",
        f"the better share is at least {SHARE:.0%}",
        ("what", "ns/row", "multiply-adds/s", "of BLAS", "bytes/s", "of copying", "difference", "verdict"),
    )
    sample = Sample("alarm", rows, threads=2)
    evidence, auto = sample.evidence(), sample.tac("auto")
    alone = kernel(sample.tac(GENERATED).engine(), auto.read(evidence).columns, rows)
    expected = sample.tac("tape").posterior(evidence)
    errors = [difference(np.concatenate([posterior(joint) for joint in alone()], axis=1).T, expected)]
    errors += [difference(auto.posterior(evidence), expected) for _ in range(3)][-1:]  # it may compile meanwhile
    runs: list[Callable[[], Any]] = [alone, lambda: auto.posterior(evidence)]
    *spent, product, copy = taking_turns(
        [*(partial(per_row, run, rows) for run in runs), matrix_product(2), copying(2)]
    )
    for name, own, error in zip(("the kernel alone", "`tac.posterior`"), spent, errors, strict=True):
        shares = share(product, own, sample.work), share(copy, own, sample.bytes)
        middle, agrees = statistics.median(own), error <= AGREEMENT["float64"]
        section.add(
            name, ns(own), f"{sample.work / middle:.1e}", f"{shares[0]:.0%}", f"{sample.bytes / middle:.1e}",
            f"{shares[1]:.0%}", f"{error:.0e}", at_least(max(shares), SHARE) if agrees else MISSED,
        )  # fmt: skip
    section.notes.append(
        f"BLAS: {1 / statistics.median(product):.1e} multiply-adds per second in a product of matrices of {MATRIX:,} x "
        f"{MATRIX:,}; copying: {1 / statistics.median(copy):.1e} bytes per second, read and written. A row has "
        f"{sample.work:,} multiply-adds, and {sample.bytes} bytes of evidence and answers."
    )
    return [section]


def share(machine_takes: list[float], row_takes: list[float], units: int) -> float:
    """How much of the machine's rate is reached by rows of so many units."""
    return units * Comparison(machine_takes, row_takes).ratio


def limit(of_blas: float, of_copying: float) -> str:
    """What keeps a kernel from being faster."""
    if max(of_blas, of_copying) < SHARE:
        return "moving values between registers and cache"
    return "arithmetic" if of_blas >= of_copying else "memory"


def per_row(run: Callable[[], Any], rows: int) -> float:
    return seconds(run) / rows


def ns(spent: list[float]) -> str:
    """Seconds in nanoseconds, their median."""
    return f"{statistics.median(spent) * 1e9:,.0f}"


def posterior(joint: np.ndarray) -> np.ndarray:
    return np.asarray(joint / joint.sum(axis=0))


def largest(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference; blocks of different engines may differ in length."""
    return difference(np.concatenate(found, axis=1), np.concatenate(expected, axis=1))
