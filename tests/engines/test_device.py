"""Kernels for GPUs: their text, made for this processor instead, gives the answers and derivatives of the tape."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import examples
from tacit.base.errors import TooLargeError
from tacit.engines.cuda import device_kernels as device
from tacit.engines.cuda.device_kernels import forward_kernel, keeping_kernel, reverse_kernel
from tacit.engines.cuda.ptx import ptx
from tacit.engines.cuda.thread import WARP, Given, Thread
from tacit.engines.native.lanes import Lanes, Note
from tacit.engines.native.llvm import Code
from tacit.engines.tape.assemble import assemble
from tacit.evidence.column import Kind
from tacit.evidence.read import read
from tests.helpers import always_hard, close
from tests.strategies import queries, tie_margin

LETTERS = {1: "b", 2: "h", 4: "i"}


class Emulated:
    """A tape's kernels on this processor."""

    def __init__(self, tac, evidence):
        self.engine = tac.engine()
        self.tape = assemble(self.engine.program, self.engine.known, False)
        self.evidence = read(evidence, [tac.network.variable(n) for n in tac.network], tac.evidence, lazily=True)
        self.rows, self.sizes = self.evidence.rows, self.engine.program.sizes
        self.constants, self.dtype = self.engine.constants(self.tape), self.engine.dtype
        self.bits, self.arrays, self.given = 8 * self.dtype.itemsize, [], []
        for name in (*self.tape.inputs, *self.tape.codes):
            self._add(name, 0 if name in self.tape.codes else self.sizes[name])

    def _add(self, name, states):
        column = self.evidence.columns.get(name)
        if column is None:
            kind, array = Kind.NORMALISED, np.ones((states, 1))
        elif states:
            kind, array = column.source()
        else:
            kind, array = Kind.CODES, column.certain_codes()
        if kind is not Kind.CODES:
            array = array.astype(self.dtype)
        self.given.append(Given(kind, states, LETTERS.get(array.dtype.itemsize, "") if kind is Kind.CODES else ""))
        rows, states = (array.T.strides if kind is Kind.NORMALISED else (*array.strides, 0))[:2]
        many = array.shape[-1 if kind is Kind.NORMALISED else 0] > 1
        self.arrays.append((array, rows if many else 0, states))

    def _run(self, kernel, **others):
        values = {"constants": self.constants, "rows": self.rows, **others}
        for i, (array, row, state) in enumerate(self.arrays):
            values |= {f"data{i}": array, f"row{i}": row, f"state{i}": state}
        call = np.array(
            [v.ctypes.data if isinstance(v, np.ndarray) else v for v in map(values.__getitem__, kernel.parameters)],
            dtype=np.int64,
        )
        code = Code(kernel.text, "run")
        code.run(call.ctypes.data)

    def forward(self):
        """The joint with its exponent, the posterior and the notes."""
        outputs = np.zeros((self.tape.outputs, self.rows), self.dtype)
        posterior, notes = np.zeros((self.rows, self.tape.states), self.dtype), np.zeros(self.rows, np.uint8)
        places = {"outputs.all": outputs, "outputs.stride": self.rows, "posterior": posterior, "notes": notes}
        flag = np.zeros(1, np.int32)
        self._run(forward_kernel(self.tape, self.bits, self.given, device=False), **places, flag=flag)
        assert bool(flag[0]) == bool(notes.any())
        exponent = outputs[self.tape.states] if self.tape.scaled else np.zeros(self.rows)
        return outputs[: self.tape.states], exponent.astype(int), posterior, notes

    def reverse(self, seeds, through=True):
        kernel = reverse_kernel(self.tape, self.bits, self.given, through, device=False)
        sums = np.zeros(len(kernel.sums) + len(self.constants))
        d_inputs = np.full((sum(self.sizes[n] for n in self.tape.inputs), self.rows), np.nan, self.dtype)
        padded = -(-self.rows // WARP) * WARP
        values, seeds = np.zeros((kernel.kept, padded), self.dtype), np.ascontiguousarray(seeds, self.dtype)
        places = {"seeds.all": seeds, "d_inputs.all": d_inputs, "sums.all": sums, "values.all": values}
        strides = {f"{name}.stride": self.rows for name in ("seeds", "d_inputs")}
        places |= {"flag": np.zeros(1, np.int32)}
        self._run(keeping_kernel(self.tape, self.bits, self.given, device=False), **places, **strides)
        self._run(kernel, **places, **strides)
        d_constants = sums[len(kernel.sums) :].copy()
        np.add.at(d_constants, list(kernel.sums), sums[: len(kernel.sums)])
        return self.engine._collected(self.tape, d_constants, d_inputs, through)


def roles(net, evidence):
    hard = always_hard(net, evidence)
    yield {"evidence": list(evidence)}
    if hard:
        yield {"hard": hard, "evidence": [n for n in evidence if n not in hard]}


def check(tac, evidence, rng=None):
    own, rng = Emulated(tac, evidence), rng or np.random.default_rng(0)
    columns = own.evidence.columns
    expected = own.engine.run(columns, own.rows)
    joint, exponent, posterior, notes = own.forward()
    sure = (notes & Note.IMPRECISE) == 0
    scaled = np.ldexp(joint.astype(float), (exponent - expected.exponent).astype(int))
    tolerance = 1e-12 if own.bits == 64 else 1e-5
    np.testing.assert_allclose(scaled[:, sure], expected.joint[:, sure], rtol=tolerance, atol=1e-300)
    total = expected.joint.sum(axis=0)
    np.testing.assert_array_equal(((notes & Note.IMPOSSIBLE) != 0)[sure], (total == 0)[sure])
    possible = sure & (total > 0)
    np.testing.assert_allclose(
        posterior[possible], (expected.joint[:, possible] / total[possible]).T, rtol=tolerance, atol=1e-300
    )
    seeds = np.where(sure, rng.random(joint.shape), 0.0)
    for through in (True, False):
        wanted = own.engine.gradients(columns, own.rows, seeds, expected.exponent, through)
        found = own.reverse(seeds, through)
        # derivatives by mantissas whose exponents differ would differ, too
        if not own.tape.scaled or (exponent == expected.exponent).all():
            for key, table in wanted.tables.items():
                close(found.tables[key], table, 1e-11 * max(1.0, np.abs(table).max()))
            for node, slope in wanted.slopes.items():
                close(found.slopes.get(node, 0.0), slope, 1e-11 * max(1.0, abs(slope)))
            for name, likelihoods in wanted.likelihoods.items():
                close(found.likelihoods[name], likelihoods, 1e-11 * max(1.0, np.abs(likelihoods).max()))
    return notes


@settings(max_examples=5)
@given(queries())
def test_kernels_agree_with_the_tape(case):
    net, query, evidence = case
    if tie_margin(net, evidence) > 1e-9:
        for way in roles(net, evidence):
            check(tacit.compile(net, query, **way, engine="native"), evidence)


@settings(max_examples=3)
@given(queries(), st.sampled_from(["float64", "float32"]))
def test_an_assembler_takes_the_kernels_of_any_tape(case, dtype):
    net, query, evidence = case
    for way in roles(net, evidence):
        own = Emulated(tacit.compile(net, query, **way, engine="native", dtype=dtype), evidence)
        given = own.tape, own.bits, own.given
        for kernel in (forward_kernel(*given), keeping_kernel(*given), reverse_kernel(*given)):
            text = ptx(kernel.text)
            assert f".entry {kernel.name}(" in text
            assert (".const" in text) == kernel.bank
            if shutil.which("ptxas"):
                options = ["-arch=sm_90", "-o", os.devnull, "-"]
                subprocess.run(["ptxas", *options], input=text, text=True, check=True)


def test_small_and_wrong_numbers_are_noticed():
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="native")
    rows = [[0.5, 0.5], [1e-200, 1.0], [np.nan, np.nan], [-1.0, 2.0], [np.nan, 1.0], [0.0, 0.0], [5e-324, 0.0]]
    notes = Emulated(tac, {"C": np.array(rows)}).forward()[3]
    odd = Note.IMPRECISE | Note.UNUSUAL
    assert notes.tolist() == [0, Note.IMPRECISE, 0, odd, odd, odd, odd]


def test_long_chains_are_rescaled():
    names = [f"E{t}" for t in range(1, 13)]
    tac = tacit.compile(examples.hmm(12), "H12", names, engine="native")
    evidence = {n: np.random.default_rng(i).dirichlet(np.ones(2), 5) for i, n in enumerate(names)}
    assert not check(tac, evidence).any()


def test_what_is_too_long_is_refused(monkeypatch):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="native")
    own = Emulated(tac, {"A": [0.5]})
    monkeypatch.setattr(device, "MAX_TERMS", 3)
    with pytest.raises(TooLargeError, match="use engine='torch'"):
        forward_kernel(own.tape, 64, own.given)
    monkeypatch.undo()
    monkeypatch.setattr(device, "MAX_PARAMETER_BYTES", 50)
    with pytest.raises(TooLargeError, match="evidence on 2 variables"):
        forward_kernel(own.tape, 64, own.given)


class Warp(Thread):
    """The exchanges of 32 threads, on arrays of their numbers."""

    threads = np.arange(WARP)

    def select(self, mask, a, b):
        return np.where(self.threads & (1 << int(mask.removeprefix("%bit"))), a, b)

    def add(self, a, b):
        return a + b

    def place(self, base, offset, scalar):
        return offset

    def _exchanged(self, value, distance):
        return value[self.threads ^ distance]

    def add_to_sum(self, address, value):
        self.results[address] = value


@pytest.mark.parametrize("count", [1, 31, 32, 33, 70])
def test_a_warp_adds_up_its_numbers(count):
    numbers, warp = np.random.default_rng(0).random((count, WARP)), Warp(Lanes(64))
    for place, own in enumerate(numbers):
        warp.give_constant(place, own)
    while any(waits is not None for waits in warp.waiting):
        warp.give_constant(0, np.zeros(WARP))
    sums = np.concatenate([warp.results[first] for first in sorted(warp.results)])
    close(sums[:count], numbers.sum(axis=1))
    assert not sums[count:].any()
    assert len(warp.gathered) == len(sums)
