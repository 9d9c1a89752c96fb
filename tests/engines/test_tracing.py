"""The way down through single instructions: best states and samples of structured programs, against the definition."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import tacit
from tacit import semantics as definition
from tacit.compiler.operations import Contract, Likelihood, Parameter, Structured
from tacit.compiler.program import Program, _check_traced, check
from tacit.engines.arrays import numpy_engine
from tacit.engines.arrays import structured_traceback as tracing
from tacit.query.query import Query
from tests import polynomials
from tests.helpers import ENGINES, close, decided, impossible, tries
from tests.strategies import queries

pytestmark = impossible
ROWS = 3
KINDS = {"factored": False, "max_nodes": 5, "tables": 2}


def asked(net, program, question, engine="numpy", dtype="float64"):
    """A query whose best states, or samples, come from a program that is made by hand."""
    check(program)
    tac = tacit.compile(net, None, net.variables, engine=engine, dtype=dtype, order=net.variables[::-1])
    question = replace(tac.question, **question)
    tac._companions[question] = Query(net, None, question, replace(tac.options, order=None), (program, tac.plan))
    return tac


def explaining(net, engine="numpy", dtype="float64", **how):
    return asked(net, polynomials.everything(net, largest=True, **how), {"best": net.variables}, engine, dtype)


def sampling(net, engine="numpy", dtype="float64", **how):
    return asked(net, polynomials.everything(net, **how), {"every_node": True}, engine, dtype)


def agrees(best, net, names, columns):
    """The probability is the largest, and it is that of the states."""
    joints, largest = definition.joint(net, names, columns), definition.most_probable(net, names, columns)
    for i in decided(net, columns):
        close(np.exp(best.log_probability[i]), largest[i])
        states = [best.states[name][i] for name in names]
        if largest[i] == 0:
            assert states == [None] * len(names)
        else:
            place = [net.variable(name).codes[state] for name, state in zip(names, states, strict=True)]
            close(joints[i][tuple(place)], largest[i])


@tries(30)
@given(case=queries(rows=ROWS, **KINDS), literals=st.booleans(), data=st.data())
def test_most_probable_explanations(case, literals, data):
    net, _, columns = case
    split = data.draw(st.integers(0, len(net.variables) - 1))
    agrees(explaining(net, literals=literals, split=split).mpe(columns), net, net.variables, columns)


@tries(30)
@given(case=queries(rows=ROWS, **KINDS), data=st.data())
def test_most_probable_states_of_some_variables(case, data):
    net, _, columns = case
    few = st.lists(st.sampled_from(net.variables), unique=True, min_size=1, max_size=max(1, len(net.variables) - 1))
    names = tuple(data.draw(few))
    if len(names) < len(net.variables):
        program = polynomials.some(net, names)
        asking = asked(net, program, {"best": names})
        agrees(tacit.query.assignments.most_probable(asking, names, columns), net, names, columns)


def network_of(seed):
    """Six variables of two or three states, with known 0s, one of them testing."""
    rng, net = np.random.default_rng(seed), tacit.Network()
    for i in range(6):
        parents = rng.permutation(net.variables)[: rng.integers(0, 3)].tolist() if i else []
        states = int(rng.integers(2, 4))
        tables = rng.dirichlet(np.ones(states), (2, *(net.variable(p).card for p in parents)))
        tables = np.where(rng.random(tables.shape) < 0.2, 0, tables) + 1e-3 * (np.arange(states) == 0)
        tables /= tables.sum(axis=-1, keepdims=True)
        thresholds = rng.uniform(0.2, 0.8, tables.shape[1:-1])
        cpt = tacit.TestingCPT(*tables, thresholds) if i == 4 and parents else tables[0]
        net.add(f"X{i}", parents, states, cpt)
    return net


@pytest.mark.parametrize("seed", range(6))
def test_frequencies_of_samples(seed):
    net, n = network_of(seed), 20_000
    row = {"X5": [[0.3] + [0.9] * (net.variable("X5").card - 1)], "X0": [0] if seed % 2 else [None]}
    drawn = sampling(net, literals=seed % 3 == 0, split=seed).sample(row, n=n, seed=seed)
    expected = n * definition.posterior(net, net.variables, row)[0]
    place = np.ravel_multi_index([drawn[name][0] for name in net.variables], expected.shape)
    counts = np.bincount(place, minlength=expected.size)
    assert not counts[expected.ravel() == 0].any()
    often = expected.ravel() >= 5
    seen, wanted = (np.append(x[often], x[~often].sum()) for x in (counts, expected.ravel()))
    assert chisquare(seen[wanted > 0], wanted[wanted > 0]).pvalue > 1e-5


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_engine_draws_the_same_however_rows_and_samples_are_cut(dtype, monkeypatch):
    net = network_of(1)
    rows = {"X5": [None, 0, 1], "X2": [1, None, None]}
    first = sampling(net).sample(rows, n=50, seed=7)
    best = explaining(net, split=3).mpe(rows)
    for engine in ENGINES:
        drawn = sampling(net, engine, dtype).sample(rows, n=50, seed=7)
        found = explaining(net, engine, dtype, split=3).mpe(rows)
        for name in net.variables:
            assert (drawn[name] == first[name]).all()
            assert (found.states[name] == best.states[name]).all()
        close(found.log_probability, best.log_probability)
    monkeypatch.setattr(tracing, "MAX_WEIGHTS", 1)  # a row at a time
    monkeypatch.setattr(tracing, "MAX_VISITS", 60)  # ten samples at a time
    monkeypatch.setattr(numpy_engine, "GRADIENT_ELEMENTS", 1)
    again, other = (sampling(net).sample(rows, n=50, seed=seed) for seed in (7, 8))
    assert all((again[name] == first[name]).all() for name in net.variables)
    assert any((other[name] != first[name]).any() for name in net.variables)
    assert any((first[name][:, :25] != first[name][:, 25:]).any() for name in net.variables)


@pytest.mark.parametrize("literals", [False, True])
def test_impossible_rows_have_no_states_and_no_samples(literals):
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    rows = {"A": [0, 0, 2], "B": ["true", "false", None]}
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="2 of 3 rows"):
        best = explaining(net, literals=literals).mpe(rows)
    assert best.states["A"].tolist() == [0, None, None]
    assert np.isneginf(best.log_probability).tolist() == [False, True, True]
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="2 of 3 rows"):
        drawn = sampling(net, literals=literals).sample(rows, n=2)
    assert drawn["A"].tolist() == [[0, 0], [None, None], [None, None]]


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_evidence_far_below_the_smallest_float(engine):
    """The joint of the second row is about 1e-356, that of the first is not."""
    net, count = tacit.Network(), 60
    net.add("H", cpt=[0.5, 0.5])
    for i in range(count):
        net.add(f"E{i}", ["H"], cpt=[[1e-6, 1 - 1e-6], [1.2e-6, 1 - 1.2e-6]])
    rows = {f"E{i}": ["false", "true"] for i in range(count)}
    best = explaining(net, engine).mpe(rows)
    assert best.states["H"].tolist() == ["true", "false"]
    close(best.log_probability, np.log(0.5) + count * np.log([1 - 1e-6, 1.2e-6]), 1e-10)
    drawn = sampling(net, engine).sample(rows, n=400)
    assert set(drawn["H"][1]) == {"false"}
    assert abs((drawn["H"][0] == "true").mean() - 0.5) < 0.1
    assert set(drawn["E7"][0]) == {"false"}
    assert set(drawn["E7"][1]) == {"true"}


def by_hand(mantissas, exponents, starts, terms, largest=False, linear=None):
    """A program of one operation, on the likelihoods of A, of three states, and B, of two."""
    linear = np.zeros(len(starts), dtype=np.bool_) if linear is None else np.array(linear)
    operation = Structured(
        (0, 1),
        np.array(mantissas),
        np.array(exponents, dtype=np.int64),
        np.array(starts, dtype=np.int64),
        np.array(terms, dtype=np.int64),
        linear,
        np.array(4 + len(mantissas) + len(starts)),  # the last instruction
        (),
        largest,
    )
    names = ("A", "B")
    return Program(
        (Likelihood("A", ("A",)), Likelihood("B", ("B",)), operation),
        {"A": 3, "B": 2},
        (True, True, True),
        query=(),
        joint=2,
        selections={},
        states={"A": (0, 1, 2), "B": (0, 1)},
        owners={name: name for name in names},
        soft=names,
        largest=largest,
        traced=True,
    )


def independent(weights):
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("B", states=2, cpt=weights)
    return net


@pytest.mark.parametrize("largest", [True, False])
def test_literals_that_are_no_floats(largest):
    """(0.2 a0 + 0.3 a1 + 0.5 a2) * 2**-3000 times (3 b0 + b1) / 4 * 2**3000."""
    mantissas = [0.5, 0.2, 0.3, 0.5, 0.75, 0.25]
    exponents = [1, -3000, -3000, -3000, 3000, 3000]
    terms = [[6, 0], [7, 1], [8, 2], [9, 3], [10, 4], [11, 12]]
    program = by_hand(mantissas, exponents, [0, 3, 5], terms, largest, [True, True, False])
    net = independent([0.75, 0.25])
    if largest:
        best = asked(net, program, {"best": net.variables}).mpe({"A": [None, 1], "B": [None, 1]})
        assert [best.states[name].tolist() for name in net.variables] == [[2, 1], [0, 1]]
        close(best.log_probability, np.log([0.5 * 0.75, 0.3 * 0.25]))
    else:
        drawn = asked(net, program, {"every_node": True}).sample(n=4000)
        assert np.abs(np.bincount(drawn["A"][0]) / 4000 - [0.2, 0.3, 0.5]).max() < 0.05
        assert np.abs(np.bincount(drawn["B"][0]) / 4000 - [0.75, 0.25]).max() < 0.05


def test_the_first_of_equal_terms_is_the_best():
    terms = [[5, 0], [5, 1], [5, 2], [5, 3], [5, 4], [6, 7]]
    net = independent([0.5, 0.5])
    best = asked(net, by_hand([0.5], [1], [0, 3, 5], terms, True, [True, True, False]), {"best": net.variables})
    rows = {"A": [[1, 1, 1], [0, 1, 1], [1, 1, 2]]}
    assert best.mpe(rows).states["A"].tolist() == [0, 1, 2]


def test_a_program_that_is_traced_has_no_decisions():
    net = tacit.examples.abc()
    program = polynomials.everything(net)
    assert program.draws == 1
    for wrong in (program, replace(program, traced=False)):
        with pytest.raises(AssertionError):
            wrong.decisions  # noqa: B018
    with pytest.raises(AssertionError, match="compiled without"):
        tracing.Tracing(replace(program, traced=False))


def test_nothing_dense_is_traced():
    operations = (Likelihood("A", ("A",)), Parameter("A", "table", ("A",)), Contract((0, 1), ()))
    dense = replace(by_hand([0.5], [1], [0], [[5, 0]]), operations=operations, batched=(True, False, True))
    with pytest.raises(AssertionError, match="operation 2 is dense"):
        check(dense)
    check(replace(dense, traced=False))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([[0, 3], [1, 4], [2, 3]], None),
        ([[0, 3], [1, 2]], "two likelihoods of a variable"),
        ([[0, 3], [1, 5]], "other variables than those beside"),
    ],
)
def test_every_product_has_one_likelihood_of_each_variable(terms, message):
    program = by_hand([0.5], [1], [0], terms)
    if message is None:
        check(program)
    else:
        with pytest.raises(AssertionError, match=message):
            _check_traced(program)
    with pytest.raises(AssertionError, match="without a likelihood of some variable"):
        check(by_hand([0.5], [1], [0], [[5, 0], [5, 1]], linear=[True]))


def test_random_numbers_of_a_sample_are_as_good_as_any():
    """Uniform, for samples with starts next to each other, and not correlated from one instruction to the next."""
    starts = tracing.splitmix(np.arange(2000, dtype=np.uint64))
    numbers = np.stack([tracing.fractions(starts, np.full(2000, k)) for k in range(20)])
    assert ((numbers >= 0) & (numbers < 1)).all()
    counts = np.histogram(numbers, 50, (0, 1))[0]
    assert chisquare(counts).pvalue > 1e-5
    related = np.corrcoef(numbers) - np.eye(20)
    assert np.abs(related).max() < 5 / np.sqrt(2000)
    pairs = itertools.pairwise(numbers.T)
    assert max(abs(np.corrcoef(a, b)[0, 1]) for a, b in itertools.islice(pairs, 100)) < 0.9
