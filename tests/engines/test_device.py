"""Kernels for GPUs: their text, made for this processor instead, gives the answers and derivatives of the tape."""

import numpy as np
from hypothesis import given, settings

import tacit
from tacit.engines.assemble import assemble
from tacit.engines.native.device import forward_kernel, keeping_kernel, reverse_kernel
from tacit.engines.native.target import Code
from tacit.engines.native.thread import DOUBT, IMPOSSIBLE, WARP, Given
from tacit.evidence import Kind, read
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
        sums = np.zeros(kernel.sum_count(len(self.constants)))
        d_inputs = np.zeros((sum(self.sizes[n] for n in self.tape.inputs), self.rows), self.dtype)
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
    sure = (notes & DOUBT) == 0
    scaled = np.ldexp(joint.astype(float), (exponent - expected.exponent).astype(int))
    tolerance = 1e-12 if own.bits == 64 else 1e-5
    np.testing.assert_allclose(scaled[:, sure], expected.joint[:, sure], rtol=tolerance, atol=1e-300)
    total = expected.joint.sum(axis=0)
    np.testing.assert_array_equal(((notes & IMPOSSIBLE) != 0)[sure], (total == 0)[sure])
    possible = sure & (total > 0)
    np.testing.assert_allclose(
        posterior[possible], (expected.joint[:, possible] / total[possible]).T, rtol=tolerance, atol=1e-300
    )
    seeds = np.where(sure, rng.random(joint.shape), 0.0)
    for through in (True, False):
        wanted, found = own.engine.gradients(columns, own.rows, seeds, through), own.reverse(seeds, through)
        # derivatives by mantissas whose exponents differ would differ, too
        if not own.tape.scaled or (exponent == expected.exponent).all():
            for key, table in wanted.tables.items():
                close(found.tables[key], table, 1e-11 * max(1.0, np.abs(table).max()))
            for node, slope in wanted.slopes.items():
                close(found.slopes.get(node, 0.0), slope, 1e-11 * max(1.0, abs(slope)))
            for name, likelihoods in wanted.likelihoods.items():
                close(found.likelihoods[name], likelihoods, 1e-11 * max(1.0, np.abs(likelihoods).max()))
    return notes


@settings(max_examples=12)
@given(queries())
def test_kernels_agree_with_the_tape(case):
    net, query, evidence = case
    if tie_margin(net, evidence) > 1e-9:
        for way in roles(net, evidence):
            check(tacit.compile(net, query, **way, engine="native"), evidence)
