"""Sums of products of single entries, on every engine, against the same in Python's own numbers."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.compiler.program import Program, check
from tacit.engines import build
from tacit.engines.numpy import WideEngine
from tacit.evidence import Column
from tacit.operations import ONE, ZERO, Likelihood, Parameter, Rescale, Structured
from tests.helpers import ENGINES_OF_MANY, tries

ROWS = 5
FIRST = ("A", "B")  # variables with soft evidence
TABLE = np.array([[0.5, 0.0, 0.25], [1.0, 0.125, 0.75]])
NET = tacit.Network()
NET.add("A", states=3, cpt=[0.2, 0.3, 0.5])
NET.add("B", states=2, cpt=[0.5, 0.5])
NET.add("T", parents=["B"], states=3, cpt=TABLE / TABLE.sum(axis=1, keepdims=True))


def structured(inputs, instructions, index, axes=("Q",), literals=((1.0, 0),), linear=(), largest=False):
    """An operation from lists of pairs."""
    starts = np.cumsum([0, *(len(own) for own in instructions)])[:-1]
    return Structured(
        tuple(inputs),
        np.array([m for m, _ in literals]),
        np.array([e for _, e in literals], dtype=np.int64),
        starts.astype(np.int64),
        np.array([pair for own in instructions for pair in own], dtype=np.int64).reshape(-1, 2),
        np.array([k in linear for k in range(len(instructions))], dtype=np.bool_),
        np.array(index, dtype=np.int64),
        axes,
        largest,
    )


def program(operation, rescaled=False):
    """Likelihoods of A (3) and B (2), the table of T (2 x 3), both likelihoods rescaled, and then the operation."""
    sources = [Likelihood("A", ("A",)), Likelihood("B", ("B",)), Parameter("T", "table", ("B", "T"))]
    batched = [True, True, False]
    if rescaled:
        sources += [Rescale((0,), ("A",)), Rescale((1,), ("B",))]
        batched += [True, True]
    sizes = {"A": 3, "B": 2, "T": 3, "Q": operation.index.size}
    rows = any(batched[i] for i in operation.inputs)
    return Program((*sources, operation), sizes, (*batched, rows), ("Q",), len(sources), {}, {}, {}, ("A", "B"))


def columns(rows=ROWS, seed=0, tiny=0):
    """Likelihoods, those of some states tiny."""
    random = np.random.default_rng(seed)
    found = {}
    for name in FIRST:
        soft = 0.1 + random.random((NET.variable(name).card, rows))
        soft[0] *= 2.0**-tiny
        found[name] = Column(NET.variable(name), soft=soft)
    return found


def exactly(made, table, given, row, moved=None):
    """The result for one row in fractions; `moved` (name, entry) adds to some numbers."""
    operation, values = made.operations[-1], []
    arrays = {"A": given["A"].soft, "B": given["B"].soft, "T": np.repeat(table.ravel()[:, None], row + 1, axis=1)}
    for i in operation.inputs:
        name = ("A", "B", "T", "A", "B")[i]
        own = [Fraction(x) for x in arrays[name][:, row].tolist()]
        values += [x + (moved or {}).get((name, entry), 0) for entry, x in enumerate(own)]
    literals = zip(operation.mantissas.tolist(), operation.exponents.tolist(), strict=True)
    values += [Fraction(mantissa) * Fraction(2) ** exponent for mantissa, exponent in literals]
    for first, end in pairwise(operation.bounds.tolist()):
        products = [values[a] * values[b] for a, b in operation.terms[first:end].tolist()]
        values.append(max(products) if operation.largest else sum(products))
    known = {ZERO: Fraction(0), ONE: Fraction(1)}
    return [known[i] if i < 0 else values[i] for i in operation.index.ravel().tolist()]


def engine(name, made, table=TABLE, dtype="float64"):
    if name == "wide":
        return WideEngine(made, {("T", "table"): table}, {})
    return build(name, made, {("T", "table"): table}, {}, dtype)


def agrees(found, expected, tolerance):
    """Results (states, rows) with an exponent for each row, and fractions by row."""
    for row, numbers in enumerate(expected):
        for joint, number in zip(found.joint[:, row].tolist(), numbers, strict=True):
            value = Fraction(joint) * Fraction(2) ** int(found.exponent[row])
            assert abs(value - number) <= tolerance * number


def setting_of(made):
    return made.setting(len(made) - 1)


SIZES = {0: 3, 1: 2, 2: 6}


@st.composite
def operations(draw, static=None, largest=None, most=12):
    """Legal operations: any order of inputs, any DAG, any mix of instructions, any references in the result."""
    static = draw(st.booleans()) if static is None else static
    inputs = draw(st.lists(st.sampled_from([2] if static else [0, 1, 2]), unique=True, max_size=3))
    if not static and not {0, 1} & set(inputs):
        inputs = [*inputs, draw(st.sampled_from([0, 1]))]
    entries = [(i, entry) for i in inputs for entry in range(SIZES[i])]
    literals = [(1.0, 0), *draw(st.lists(st.tuples(st.floats(0.5, 0.99), st.integers(-8, 3)), max_size=3))]
    fixed = [r for r, (i, _) in enumerate(entries) if i == 2] + [len(entries) + n for n in range(len(literals))]
    changing = [r for r, (i, _) in enumerate(entries) if i != 2]
    first = len(entries) + len(literals)
    instructions, linear = [], set()
    for k in range(draw(st.integers(0, most))):
        kinds = draw(st.booleans()) and not static
        results = list(range(first, first + k))
        a = fixed if kinds else (fixed if static else changing) + results
        b = (fixed if static else changing) + results
        count = draw(st.sampled_from([1, 2, 2, 3, 5, 9]))
        instructions.append([(draw(st.sampled_from(a)), draw(st.sampled_from(b))) for _ in range(count)])
        linear |= {k} if kinds else set()
    every = st.integers(0, first + len(instructions) - 1)
    index = draw(st.lists(st.one_of(st.sampled_from([ZERO, ONE]), every), min_size=1, max_size=5))
    largest = draw(st.booleans()) if largest is None else largest
    return structured(inputs, instructions, index, literals=literals, linear=linear, largest=largest)


@given(operations(), st.integers(0, 3))
@tries(60)
@pytest.mark.parametrize("name", [*ENGINES_OF_MANY, "wide"])
def test_any_operation_on_any_engine_is_what_python_makes_of_it(name, operation, seed):
    made, given = program(operation), columns(seed=seed)
    check(made)
    found = engine(name, made).run(given, ROWS)
    agrees(found, [exactly(made, TABLE, given, row) for row in range(ROWS)], 1e-12)


@given(operations(largest=False))
@tries(30)
@pytest.mark.parametrize("name", ["numpy", "tape", "torch", "wide"])
def test_derivatives_of_any_operation_are_those_of_its_polynomial(name, operation):
    """Differences of exact results over a tiny step are as good as derivatives."""
    made, given, step = program(operation), columns(3), Fraction(1, 2**200)
    seeds = np.random.default_rng(1).random((operation.index.size, 3))

    def by(source, entry):
        both = [
            [exactly(made, TABLE, given, row, moved) for row in range(3)] for moved in ({(source, entry): step}, {})
        ]
        return [
            float(sum(Fraction(s) * (x - y) / step for s, x, y in zip(seeds[:, row], *own, strict=True)))
            for row, own in enumerate(zip(*both, strict=True))
        ]

    found = engine(name, made).gradients(given, 3, seeds, exponent=np.zeros(3, dtype=np.int64))
    for source, own in found.likelihoods.items():
        expected = [by(source, entry) for entry in range(len(own))]
        np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-300)
    expected = [sum(by("T", entry)) if number else 0 for entry, number in enumerate(TABLE.ravel())]
    own = np.where(TABLE.ravel() == 0, 0, found.tables["T", "table"].ravel())  # known 0s may be left out
    np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-300)
