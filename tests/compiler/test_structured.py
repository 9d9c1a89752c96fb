"""Structured elimination, wherever it is possible: against the definition, and against programs with tables."""

import math
import re
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Network, NetworkError, TacitError, TooLargeError
from tacit import semantics as definition
from tacit.compiler import compile_program, contraction, strategy
from tacit.compiler.operations import Rescale
from tacit.compiler.program import check
from tacit.compiler.question import Question
from tacit.query.asking import options
from tests.helpers import (
    ENGINES_OF_MANY,
    TOLERANCE,
    always_hard,
    close,
    decided,
    impossible,
    one_row,
    posterior,
    selected,
    tries,
)
from tests.strategies import queries, rngs, tie_margin

ROWS = 3
pytestmark = impossible


@contextmanager
def settings(**values):
    """With other constants of the compiler."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(strategy, name, value)
        yield


@pytest.fixture(autouse=True, scope="module")
def everything_is_structured():
    with settings(MIN_WORK=0, KNOWN_SHARE=-1.0, WEIGHT_OF_NUMBERS=0, CLEARLY_CHEAPER=0):
        yield


def dense():
    """With tables only."""
    return settings(KNOWN_SHARE=2.0)


def rescaling():
    """After every product of two factors that depend on evidence."""
    return settings(EVIDENCE_PER_STRUCTURE={"float64": 2, "float32": 2})


@pytest.fixture(params=ENGINES_OF_MANY, scope="module")
def engine(request):
    return request.param


@st.composite
def asked(draw, **kinds):
    """A network, a query, evidence, and those of its columns that are observed in every row and said to be."""
    net, query, columns = draw(queries(rows=ROWS, **kinds))
    certain = always_hard(net, columns)
    hard = draw(st.lists(st.sampled_from(certain), unique=True)) if certain else []
    return net, query, columns, hard


def compiled(net, query, columns, hard=(), **how):
    return tacit.compile(net, query, [n for n in columns if n not in hard], hard, **how)


def agrees(tac, net, columns, tolerance=TOLERANCE):
    """Joint, posterior, evidence, selections and marginals are those of the definition."""
    rows = decided(net, columns, max(1e-9, 10 * tolerance))
    joint, expected = tac.joint(columns)[rows], definition.joint(net, tac.query, columns)[rows]
    close(joint, expected, tolerance)
    assert (joint[expected.sum(axis=1) == 0] == 0).all()
    close(posterior(tac, columns)[rows], definition.posterior(net, tac.query, columns)[rows], tolerance)
    close(np.exp(tac.log_evidence(columns)[rows]), expected.sum(axis=1), tolerance)
    how = selected(tac, columns)
    for i in rows:
        for name, node in definition.select(net, one_row(columns, i)).nodes.items():
            if name in how and not np.isnan(node.posterior).any():
                close(how[name].posterior[i], node.posterior, tolerance)
                close(how[name].weight[i], node.weight, 20 * tolerance)  # slopes go up to 16
    for name, found in tac.marginals(columns).items():
        close(found[rows], definition.posterior(net, name, columns)[rows], tolerance)


def is_best(best, net, names, columns):
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


@tries(20)
@given(case=asked(), rescaled=st.booleans())
def test_answers(engine, case, rescaled):
    net, query, columns, hard = case
    with rescaling() if rescaled else settings():
        tac = compiled(net, query, columns, hard, engine=engine)
        agrees(tac, net, columns)


@tries(20)
@given(case=asked(), engine=st.sampled_from(["numpy", "tape"]))
def test_float32_is_close(case, engine):
    net, query, columns, hard = case
    agrees(compiled(net, query, columns, hard, engine=engine, dtype="float32"), net, columns, 1e-5)


@tries(20)
@given(case=asked(), rescaled=st.booleans(), data=st.data())
def test_best_states(case, rescaled, data):
    net, query, columns, hard = case
    others = data.draw(st.lists(st.sampled_from(net.variables), unique=True, max_size=2))
    names = [query, *(name for name in others if name != query)]
    with rescaling() if rescaled else settings():
        tac = compiled(net, names, columns, hard)
        is_best(tac.mpe(columns), net, net.variables, columns)
        is_best(tac.map(columns), net, names, columns)


def test_sums_below_a_maximum_need_not_depend_on_rows(engine):
    """What is summed here has no evidence, and numbers that may be learned are not built in."""
    net = chain(4).learnable()
    columns = {"Y3": [[0.3, 0.9], [1.0, 0.2]]}
    program, _ = compile_program(net, Question(evidence=("Y3",), best=("X2", "X3")))
    assert program.structured
    check(program)
    tac = tacit.compile(net, ["X2", "X3"], ["Y3"], engine=engine)
    is_best(tac.map(columns), net, ["X2", "X3"], columns)


SAMPLES = 20_000


@tries(8)
@given(case=asked(max_nodes=4))
def test_samples(case):
    net, _, columns, hard = case
    possible = [i for i in decided(net, columns) if definition.joint(net, (), columns)[i] > 0]
    assume(possible)
    row = one_row(columns, possible[0])
    drawn = compiled(net, None, columns, hard).sample(row, n=SAMPLES)
    expected = definition.posterior(net, net.variables, row)[0]
    codes = [np.array([net.variable(n).codes[x] for x in drawn[n][0].tolist()]) for n in net.variables]
    counts = np.bincount(np.ravel_multi_index(codes, expected.shape), minlength=expected.size).reshape(expected.shape)
    assert not counts[expected == 0].any()
    spread = np.sqrt(SAMPLES * expected * (1 - expected))
    assert (np.abs(counts - SAMPLES * expected) <= 6 * spread + 6).all()


@tries(20)
@given(case=queries(rows=ROWS), data=st.data())
def test_given_states_count_as_evidence(case, data):
    net, query, columns = case
    name = data.draw(st.sampled_from(net.variables))
    state = data.draw(st.sampled_from(net.states(name)))
    rest = {n: c for n, c in columns.items() if n != name}
    tac = tacit.compile(net, query, list(rest), given={name: state})
    whole = {**rest, name: [state] * ROWS}
    rows = decided(net, whole)
    picked = rows if rest else [0] * len(rows)
    close(tac.joint(rest or None)[picked], definition.joint(net, query, whole)[rows])
    for other, found in tac.marginals(rest or None).items():
        close(found[picked], definition.posterior(net, other, whole)[rows])


@tries(20)
@given(case=queries(rows=ROWS, certain=True), data=st.data())
def test_interventions(case, data):
    net, query, columns = case
    do = data.draw(st.lists(st.sampled_from(always_hard(net, columns)), min_size=1, unique=True))
    tac = tacit.compile(net, query, [n for n in columns if n not in do], do=do)
    states = tac.read(columns).columns
    best = tac.mpe(columns)
    for i in range(ROWS):
        cut = net.do({name: net.states(name)[np.broadcast_to(states[name].states(), ROWS)[i]] for name in do})
        row = one_row({n: c for n, c in columns.items() if n not in do}, i)
        if tie_margin(cut, row) > 1e-9:
            close(tac.joint(one_row(columns, i)), definition.joint(cut, query, row))
            close(np.exp(best.log_probability[i]), definition.most_probable(cut, cut.variables, row)[0])


def chain(length, p=0.9):
    """Copies with noise, each with a reading, and a parity of two of them: many numbers are equal."""
    net = Network("chain")
    for i in range(length):
        net.add(f"X{i}", [f"X{i - 1}"] if i else [], cpt=[[p, 1 - p], [1 - p, p]] if i else [0.5, 0.5])
    for i in range(length):
        net.add(f"Y{i}", [f"X{i}"], cpt=[[0.25, 0.75], [0.5, 0.5]])
    net.add("S", ["X0", f"X{length - 1}"], cpt=[[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    return net


def readings(net):
    return [name for name in net.variables if name.startswith("Y")]


def test_the_way_is_structured_here_and_nowhere_else():
    net = chain(4)
    names = readings(net)
    assert tacit.compile(net, "S", names).program.structured
    assert not tacit.compile(net, "S", names, order=net.variables).program.structured
    with dense():
        assert not tacit.compile(net, "S", names).program.structured


@pytest.mark.parametrize(
    ("engine", "dtype"), [("numpy", "float64"), ("tape", "float64"), ("torch", "float64"), ("tape", "float32")]
)
def test_many_tiny_likelihoods(engine, dtype):
    net = chain(200)
    tiny = {name: [[1e-10, 1.0], [1e-300, 1.0]] for name in readings(net)}
    tac = tacit.compile(net, "S", list(tiny), engine=engine, dtype=dtype)
    assert any(isinstance(operation, Rescale) for operation in tac.program) == (dtype == "float32")
    other = tacit.compile(net, "S", list(tiny), engine="numpy", order=net.variables[::-1])  # with tables
    close(tac.posterior(tiny), other.posterior(tiny), 1e-12 if dtype == "float64" else 1e-5)
    np.testing.assert_allclose(tac.log_evidence(tiny), other.log_evidence(tiny), 1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_tiny_numbers_of_tables(engine):
    """Each reading has a probability of 1e-10, so that their product leaves the range of floats."""
    net = Network()
    net.add("C", cpt=[0.5, 0.5])
    names = [f"X{i}" for i in range(200)]
    for name in names:
        net.add(name, ["C"], cpt=[[1e-10, 1 - 1e-10], [1.1e-10, 1 - 1.1e-10]])
    tac = tacit.compile(net, "C", names, engine=engine)
    row = dict.fromkeys(names, "true")
    np.testing.assert_allclose(tac.posterior(row)[0, 0], 1 / (1 + 1.1**200), 1e-9)
    expected = 200 * np.log(1e-10) + np.log(0.5) + np.log1p(1.1**200)
    np.testing.assert_allclose(tac.log_evidence(row), [expected], 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_given_states_of_probability_1e_400(engine, dtype):
    net = Network()
    net.add("C", cpt=[0.25, 0.75])
    names = [f"X{i}" for i in range(40)]
    for name in names:
        net.add(name, ["C"], cpt=[[1e-10, 1 - 1e-10], [2e-10, 1 - 2e-10]])
    net.add("Y", ["C"], cpt=[[0.5, 0.5], [1.0, 0.0]])
    tac = tacit.compile(net, "C", ["Y"], given=dict.fromkeys(names, "true"), engine=engine, dtype=dtype)
    assert tac.program.structured
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    close(tac.posterior({"Y": ["true", None]})[:, 0], [0.125 / (0.125 + 0.75 * 2**40), 0.25 / (0.25 + 0.75 * 2**40)],
          tolerance)  # fmt: skip
    expected = 40 * np.log(1e-10) + np.log(0.25 + 0.75 * 2.0**40)
    np.testing.assert_allclose(tac.log_evidence(None), [expected], tolerance)
    alone = tacit.compile(net, None, given=dict.fromkeys(names, "true"), engine=engine, dtype=dtype)
    np.testing.assert_allclose(alone.log_evidence(), [expected], tolerance)


def gradients(net, query, columns, hard, through, engine):
    tac = compiled(net, query, columns, hard, engine=engine)
    known = tac.read(columns)
    seeds = np.random.default_rng(1).random((net.variable(query).card, known.rows))
    return tac.engine().gradients(known.columns, known.rows, seeds, 0, through)


def by_learnable(found, net):
    """Derivatives by what may be learned: neither by exact 0s and 1s nor by the rows of functions."""
    kept = {}
    for (node, part), by_entry in found.tables.items():
        table = net.cpt(node).parts()[part]
        known = (table == 0) | (table == 1) if part != "thresholds" else np.zeros_like(table, dtype=bool)
        if getattr(net.cpt(node), "learn", False):
            kept[node, part] = np.where(known, 0.0, by_entry)
    return kept


@tries(50)
@given(case=asked(), through=st.booleans(), rescaled=st.booleans())
def test_derivatives_are_those_of_tables(engine, case, through, rescaled):
    net, query, columns, hard = case
    net = net.learnable()
    rows = decided(net, columns, 1e-6)
    assume(rows)
    columns = {name: column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows]
               for name, column in columns.items()}  # fmt: skip
    with rescaling() if rescaled else settings():
        found = gradients(net, query, columns, hard, through, engine)
    with dense():
        expected = gradients(net, query, columns, hard, through, "numpy")
    indexed = set(hard) - {query}  # by tables; here they have likelihoods
    agree({name: own for name, own in found.likelihoods.items() if name not in indexed}, expected.likelihoods)
    agree(by_learnable(found, net), by_learnable(expected, net))
    agree(found.slopes, expected.slopes)


def agree(found, expected, tolerance=1e-9):
    """Equal arrays; what one side leaves out is 0."""
    for key in {*found, *expected}:
        close(found.get(key, 0.0), expected.get(key, 0.0), tolerance)


@contextmanager
def counted():
    """Counts how often something is compiled."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "compile_program", lambda *a, **how: calls.append(a) or compile_program(*a, **how))
        yield calls


def other_numbers(net, rng, share=1.0):
    """The same network with other numbers in some of its regular tables."""
    cpts = {n: net.cpt(n) for n in net.variables if isinstance(net.cpt(n), CPT) and rng.random() < share}
    return net.with_cpts({
        n: CPT(rng.dirichlet(np.ones(cpt.table.shape[-1]), cpt.table.shape[:-1]), cpt.learn, cpt.tie)
        for n, cpt in cpts.items()
    })  # fmt: skip


@tries(20)
@given(case=asked(factored=False, max_nodes=4), rng=rngs, learnable=st.booleans())
def test_other_numbers_give_the_answers_of_a_new_query(case, rng, learnable):
    net, query, columns, hard = case
    net = net.learnable() if learnable else net
    tac = compiled(net, query, columns, hard)
    assume(tac.program.structured)  # tables refuse states that were impossible
    tac.marginals(columns)  # companions take the numbers, too
    tac.mpe(columns)
    other = other_numbers(net, rng, 0.7)
    close(tac.with_network(other).joint(columns), compiled(other, query, columns, hard).joint(columns))
    tac.set_parameters(other)
    agrees(tac, other, columns)
    is_best(tac.mpe(columns), other, other.variables, columns)
    tac.set_parameters(net)
    close(tac.joint(columns), compiled(net, query, columns, hard).joint(columns))


def test_what_is_not_built_in_changes_without_compiling_again():
    net = chain(3).with_cpts({"X1": CPT([[0.9, 0.1], [0.0, 1.0]], learn=True)})
    tac = tacit.compile(net, "S", readings(net))
    assert "X1" not in tac.program.fixed
    assert {"X0", "X2", "S"} <= set(tac.program.fixed)
    with counted() as calls:
        tac.set_parameters(net.with_cpts({"X1": CPT([[0.6, 0.4], [0.0, 1.0]], learn=True)}))
        tac.set_parameters(net.with_cpts({"X1": [[1.0, 0.0], [0.0, 1.0]]}))
        assert not calls
        tac.set_parameters(net.with_cpts({"X1": [[0.6, 0.4], [0.2, 0.8]]}))  # a known 0 goes
        assert len(calls) == 1
        tac.set_parameters(net.with_cpts({"X0": [0.25, 0.75]}))  # a number that is built in
        assert len(calls) == 2
        tac.set_parameters(net.with_cpts({"X0": CPT([0.25, 0.75], learn=True)}))  # which is to be learned now
        assert len(calls) == 3
        assert "X0" not in tac.program.fixed


def test_a_table_to_be_learned_of_0s_and_1s_alone_counts_as_built_in():
    net = chain(3).with_cpts({"X1": CPT([[1.0, 0.0], [0.0, 1.0]], learn=True)})
    tac = tacit.compile(net, "S", readings(net))
    other = net.with_cpts({"X1": CPT([[0.0, 1.0], [1.0, 0.0]], learn=True)})
    tac.set_parameters(other)
    agrees(tac, other, {"Y0": ["true"], "Y2": [0.3]})


def test_a_network_that_is_refused_leaves_the_query_as_it_was():
    net = grid(6)
    tac = tacit.compile(net, "X5,5", ["X5,0"])
    before = tac.posterior()
    other = net.with_cpts({"X0,0": [0.25, 0.75]})
    with refusing(), pytest.raises(TooLargeError):
        tac.set_parameters(other)
    close(tac.posterior(), before)


def learned_chain():
    """Some tables known, one with a start that has exact 0s, one left out, one with a known row."""
    net = chain(3)
    return net.with_cpts({
        "X1": CPT([[0.8, 0.2], [0.0, 1.0]], learn=True),
        "Y1": CPT(np.full((2, 2), np.nan)),
        "Y2": CPT([[0.25, 0.75], [np.nan, np.nan]]),
    })  # fmt: skip


@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_fitting_compiles_once_and_finds_the_same(engine):
    net, rng = learned_chain(), np.random.default_rng(3)
    rows = {name: rng.random(20) for name in readings(net)}
    target = rng.random(20)

    def fitted():
        tac = tacit.compile(net, "S", list(rows), engine=engine)
        return tacit.fit(tac, rows, target, optimizer="lbfgs", steps=8, restarts=1, progress=False)

    with counted() as calls:
        found = fitted()
    assert len(calls) == 1
    assert found.tac.program.structured
    with dense():
        expected = fitted()
    close([r.loss for r in found.history], [r.loss for r in expected.history], 1e-9)
    close(found.tac.posterior(rows), expected.tac.posterior(rows), 1e-9)
    close(found.tac.posterior(rows), compiled(found.network, "S", rows).posterior(rows))


def test_estimating_compiles_once_and_finds_the_same():
    net, rng = learned_chain(), np.random.default_rng(4)
    rows = {name: rng.choice(["true", "false"], 40) for name in (*readings(net), "S")}
    rows["Y0"] = [None if i % 4 == 0 else value for i, value in enumerate(rows["Y0"])]

    def estimated():
        return tacit.estimate(net, rows, steps=25, tolerance=0, progress=False)

    with counted() as calls:
        found = estimated()
    assert len(calls) == 1
    with dense():
        expected = estimated()
    close(found.history, expected.history, 1e-9)
    for name in net.variables:
        close(found.network.table(name), expected.network.table(name), 1e-9)
    close(found.log_likelihood, compiled(found.network, None, rows).log_evidence(rows).sum(), 1e-9)


def test_modules_of_torch_learn_what_is_not_built_in():
    torch = pytest.importorskip("torch")
    net, rng = learned_chain(), np.random.default_rng(5)
    rows = {name: torch.tensor(rng.random(8)) for name in readings(net)}

    def learned():
        module = tacit.torch.TACModule(tacit.compile(net, "S", list(rows)))
        found = module(rows)
        found[:, 0].sum().backward()
        return module, found.detach().numpy(), module.weights.grad.numpy()

    module, *found = learned()
    with dense():
        _, *expected = learned()
    close(found[0], expected[0])
    close(found[1], expected[1], 1e-9)
    close(module.float()({name: column.float() for name, column in rows.items()}).detach(), expected[0], 1e-5)
    filled = module.network()
    module.load_network(filled)
    with pytest.raises(NetworkError, match="node 'X0': table differs in numbers that are known"):
        module.load_network(filled.with_cpts({"X0": [0.25, 0.75]}))


def same(a, b):
    """Whether two programs are equal, to the last bit of their arrays."""

    def plain(operation):
        values = (getattr(operation, f.name) for f in fields(operation))
        return [v.tobytes() if isinstance(v, np.ndarray) else v for v in values]

    return [(type(x), plain(x)) for x in a] == [(type(x), plain(x)) for x in b] and a.sizes == b.sizes


@tries(20)
@given(case=asked())
def test_the_same_query_gets_the_same_program(case):
    net, query, columns, hard = case
    assert same(*(compiled(net, query, columns, hard).program for _ in range(2)))


@contextmanager
def refusing():
    """With hardly any room for diagrams, and none for tables."""
    with settings(NODE_BUDGETS=(400, 500), NODE_BUDGETS_ROWS=(400, 500)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "memory_limit", lambda: 256.0)
        yield


def grid(side):
    """A grid that no order of tables is good enough for."""
    net = Network()
    for i in range(side):
        for j in range(side):
            parents = [f"X{i - 1},{j}"] * (i > 0) + [f"X{i},{j - 1}"] * (j > 0)
            rng = np.random.default_rng([i, j])
            net.add(f"X{i},{j}", parents, cpt=rng.dirichlet([1, 1], (2,) * len(parents)))
    return net


@pytest.mark.parametrize("soft", [True, False], ids=["soft", "none"])
def test_refusals_name_the_variable_and_the_nodes(soft):
    net = grid(6)
    told = r"width \d+.*; structured elimination gave up at 'X\d,\d' after [\d,]+ nodes"
    with refusing(), pytest.raises(TooLargeError, match=told):
        tacit.compile(net, "X5,5", net.variables if soft else [])


def test_where_there_is_no_time_for_them_there_are_fewer_nodes():
    question = Question(("X5,5",))
    nodes = []
    for patience in (1e-9, math.inf):
        with refusing(), pytest.raises(TooLargeError) as refused:
            strategy.compile_program(grid(6), question, patience=patience)
        nodes.append(int(re.search(r"after ([\d,]+) nodes", str(refused.value))[1].replace(",", "")))
    assert nodes[0] <= 400 < nodes[1]


def mixed():
    """A testing node between tables with 0s, 1s and equal entries."""
    net = tacit.examples.abc()
    net.add("D", ["A", "B"], cpt=[[[1, 0], [0, 1]], [[0.5, 0.5], [1, 0]]])
    net.add("E", ["D"], cpt=[[0.3, 0.7], [0.7, 0.3]])
    return net


def both_ways(query="E", evidence=("A",), hard=("C",)):
    """The same query compiled in the structured way, and with tables."""
    found = tacit.compile(mixed(), query, evidence, hard)
    with dense():
        return found, tacit.compile(mixed(), query, evidence, hard)


ROW = {"A": [0.8, 0.1], "C": ["lo", "hi"]}


def test_structured_queries_are_shown():
    tac, _ = both_ways()
    assert "structured 17 terms of v1 v5 v6" in str(tac.program)
    assert "structured" in tac.program._repr_html_()
    assert tac.cost().multiply_adds == 23
    assert tac.cost().circuit_nodes == len(tac.circuit())
    with pytest.raises(TacitError, match="structured elimination, which has no clusters"):
        tac.jointree()


def test_circuits():
    tac, other = both_ways()
    for fold in (True, False):
        close(tac.circuit(fold).evaluate(ROW), other.joint(ROW))


def test_onnx_models_take_the_same_inputs(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    tac, other = both_ways()
    tac.to_onnx(tmp_path / "structured.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "structured.onnx")
    inputs = {"A": np.array([[0.8, 0.2], [0.1, 0.9]]), "C": np.array([0, 1])}
    close(session.run(["posterior"], inputs)[0], other.posterior(ROW))
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(["posterior"], inputs | {"C": np.array([0, 2])})


def test_questions_about_a_row():
    tac, other = both_ways()
    row = {"A": 0.8, "C": "lo"}
    assert str(tac.explain(row)) == str(other.explain(row))
    assert str(tac.sensitivity(row)) == str(other.sensitivity(row))
    agree(tac.information(ROW), other.information(ROW))
    box, given = {"A": (0.1, 0.9)}, {"C": "lo"}
    assert str(tacit.theory.bounds(tac, box, given=given)) == str(tacit.theory.bounds(other, box, given=given))


def test_pages_have_tables(tmp_path):
    """Numbers change on a page, so none may be built in."""
    mixed().page(tmp_path / "page.html")


def test_what_no_row_can_be():
    """Two states that are impossible together, which is only found out while variables are eliminated."""
    net = Network()
    net.add("A", cpt=[0.4, 0.6])
    net.add("B", cpt=[0.3, 0.7])
    net.add("same", ["A", "B"], cpt=[[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    net.add("other", ["A", "B"], cpt=[[[0, 1], [1, 0]], [[1, 0], [0, 1]]])
    net.add("E", ["A"], states=3, cpt=[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    tac = tacit.compile(net, "E", ["B"], given={"same": "true", "other": "true"})
    assert tac.log_evidence({"B": [0.3, 0.4]}).tolist() == [-np.inf] * 2
    assert {name: found.shape for name, found in tac.marginals().items()} == {
        name: (1, net.variable(name).card) for name in net.variables
    }
    assert tac.mpe().states["A"].tolist() == [None]
    assert tac.sample(n=2)["A"].tolist() == [[None, None]]
    assert np.isnan(tac.information()["A"]).all()


def test_a_selection_that_does_not_matter_is_still_reported(engine):
    net = Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.4, 0.6]], [0.5, 0.5]))
    net.add("B", states=3, cpt=[0.5, 0.5, 0.0])
    tac = tacit.compile(net, None, ["A", "T"], given={"B": 2}, engine=engine)
    assert tac.program.structured
    assert np.isneginf(tac.log_evidence({"A": 0.8}))
    assert set(tac.selected({"A": 0.8})) == {"T"}


def test_observed_numbers_are_likelihoods_of_several_variables(engine):
    rng, net = np.random.default_rng(4), tacit.Network()
    for i in range(6):
        above = [f"X{j}" for j in range(max(0, i - 2), i)]
        net.add(f"X{i}", above, 3, np.eye(3)[rng.integers(3, size=[3] * len(above))] if i > 1 else None)
    for i in (0, 1):
        net = net.with_cpts({f"X{i}": CPT(rng.dirichlet(np.ones(3), [3] * i))})
    net.add("left", ["X5", "X3"], cpt=tacit.Gaussian(rng.normal(size=(3, 3)), 1.0))
    net.add("right", ["X2"], cpt=tacit.Poisson([1.0, 4.0, 9.0]))
    rows = {"left": [0.5, np.nan, 30.0], "right": [2.0, 7.0, 1.0]}
    tac = tacit.compile(net, "X0", list(rows), engine=engine)
    assert tac.program.structured
    close(tac.posterior(rows), definition.posterior(net, "X0", rows))
    marginals = tac.marginals(rows)
    for name in ("X1", "X4"):
        close(marginals[name], definition.posterior(net, name, rows))
    best = definition.most_probable(net, [f"X{i}" for i in range(6)], rows)
    close(tac.mpe(rows).log_probability, np.log(best), 1e-9)
