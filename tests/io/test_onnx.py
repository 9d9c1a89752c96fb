"""Exported models, run by ONNX Runtime, give the answers of the compiled queries they were made from."""

import json
import sys

import numpy as np
import pytest
from bench.networks import leaves, network
from hypothesis import assume, given

import tacit
from tacit import TacitError, TestingCPT, TooLargeError
from tacit.compiler.operations import contract
from tacit.io.bridges import onnx_graph
from tacit.io.bridges.onnx import onnx_model
from tests.conformance_files import queries as conformance
from tests.density_cases import DECLARED, ROWS, plant
from tests.helpers import always_hard, close, impossible
from tests.strategies import queries, tie_margin

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

TOLERANCE = {"float64": 1e-12, "float32": 1e-6}


def session(tac):
    """A model checked with all its shapes, and ready to run."""
    model = onnx_model(tac)
    onnx.checker.check_model(model, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # as many sessions as tests: threads would only wait for each other
    return runtime.InferenceSession(model.SerializeToString(), options)


def feed(tac, evidence):
    """Evidence as the model takes it: likelihoods, ones where there is none, and codes of hard variables."""
    known, given = tac.read(evidence), {}
    for name in tac.evidence:
        card = len(tac.network.states(name))
        if tac.network.variable(name).continuous:
            given[name] = known.columns[name].values.squeeze().astype(tac.dtype)
        elif name in tac.always_known:
            given[name] = np.broadcast_to(known.columns[name].states(), (known.rows,)).astype(np.int64)
        else:
            values = known.columns[name].likelihoods() if name in known.columns else np.ones((card, 1))
            given[name] = np.broadcast_to(values.T, (known.rows, card)).astype(tac.dtype)
    return given


def run(tac, evidence):
    return session(tac).run(None, feed(tac, evidence))


def check(tac, evidence):
    """Posterior and log evidence are those of the query."""
    posterior, log_evidence = run(tac, evidence)
    assert posterior.dtype == log_evidence.dtype == tac.dtype
    close(posterior, tac.posterior(evidence), TOLERANCE[tac.dtype])
    expected = tac.log_evidence(evidence)
    np.testing.assert_allclose(log_evidence, expected, rtol=TOLERANCE[tac.dtype], atol=TOLERANCE[tac.dtype])


# the same answers -----------------------------------------------------------------------------------------

OFTEN = ("random", "hand-thm1-chain")  # groups with many cases of one kind
CASES = [q for q in conformance() if q.group not in OFTEN]
CASES += [q for group in OFTEN for q in [q for q in conformance() if q.group == group][::20]]


@impossible
@pytest.mark.parametrize("q", CASES, ids=lambda q: f"{q.case}-{q.query}")
def test_the_conformance_cases(q):
    for hard in {(), q.all_hard}:
        tac = tacit.compile(q.net, q.query, [n for n in q.evidence_vars if n not in hard], hard)
        posterior, log_evidence = run(tac, q.evidence)
        close(posterior, q.posterior)
        close(np.exp(log_evidence), q.joint.sum(axis=1))


@impossible
@given(queries(rows=3))
def test_random_queries_of_every_kind(case):
    check_away_from_ties(*case)


@impossible
@given(queries(rows=3))
def test_products_of_two_batches_may_be_matrix_products(case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "WIDE_WORK", 0)
        check_away_from_ties(*case)


def check_away_from_ties(net, query, evidence):
    rows = [{n: column[i : i + 1] for n, column in evidence.items()} for i in range(3)]
    assume(not any("\0" in name for name in evidence) and min(tie_margin(net, row) for row in rows) > 1e-9)
    hard = [name for name in always_hard(net, evidence) if name != query]
    check(tacit.compile(net, query, [n for n in evidence if n not in hard], hard), evidence)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_a_real_network(kind, dtype):
    net, rng = network("alarm"), np.random.default_rng(0)
    observed = leaves(net)
    if kind == "soft":
        evidence = {n: rng.dirichlet(np.ones(len(net.states(n))), 50) for n in observed}
    else:
        evidence = {n: rng.choice(net.states(n), 50) for n in observed}
    check(
        tacit.compile(net, "HYPOVOLEMIA", **{"evidence" if kind == "soft" else "hard": observed}, dtype=dtype), evidence
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("gamma", [None, 12.0])
@pytest.mark.parametrize("hard", [(), ("S",), ("A", "S")])
def test_testing_nodes_in_both_types(hard, gamma, dtype):
    """All operators; the tables, the thresholds and the operators of T are indexed where its parents are hard."""
    rng = np.random.default_rng(1)
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("S", parents=["A"], states=2, cpt=rng.dirichlet([1, 1], 3))
    plus, minus = rng.dirichlet([1, 1, 1], (2, 3, 2)).swapaxes(1, 2)
    tests = [[">=", ">", "<="], ["<", ">=", "<="]]
    net.add("T", parents=["S", "A"], states=3, cpt=TestingCPT(plus, minus, rng.random((2, 3)) / 2, tests, gamma))
    net.add("U", parents=["T"], cpt=TestingCPT(*rng.dirichlet([1, 1], (2, 3)), [0.3, 0.3, 0.3], "<", gamma))
    columns = {"A": rng.integers(0, 3, 40), "S": rng.integers(0, 2, 40), "T": rng.dirichlet([1, 1, 1], 40)}
    columns |= {n: rng.dirichlet(np.ones(len(net.states(n))), 40) for n in ("A", "S") if n not in hard}
    check(tacit.compile(net, "U", [n for n in columns if n not in hard], hard, dtype=dtype), columns)


@pytest.mark.parametrize(("length", "dtype"), [(400, "float64"), (60, "float32")])
def test_long_chains_stay_in_range(length, dtype):
    """Evidence that the chain contradicts at every step: its probability is below the smallest number there is."""
    net = tacit.Network()
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, length):
        net.add(f"X{i}", parents=[f"X{i - 1}"], cpt=[[0.99, 0.01], [0.02, 0.98]])
    noise = np.random.default_rng(0).uniform(0, 0.02, (length, 5))
    evidence = {n: np.stack([noise[i], 1 - noise[i]], axis=1)[:, :: (-1) ** i] for i, n in enumerate(net)}
    tac = tacit.compile(net, "X0", net.variables, dtype=dtype)
    assert (tac.log_evidence(evidence) < np.log(np.finfo(dtype).tiny)).all()
    check(tac, evidence)


def test_a_multiplexer_is_read_state_by_state():
    net, rng, count = tacit.Network(), np.random.default_rng(0), 40
    inputs = [f"Y{i}" for i in range(count)]
    net.add("I", states=count, cpt=rng.dirichlet(np.ones(count)))
    for name in inputs:
        net.add(name, cpt=rng.dirichlet([1, 1]))
    net.add("Y", parents=["I", *inputs], cpt=tacit.Mux("I", inputs))
    evidence = {n: rng.dirichlet(np.ones(len(net.states(n))), 4) for n in ("I", *inputs[::2])}
    check(tacit.compile(net, "Y", list(evidence)), evidence)


@impossible
def test_rows_of_probability_zero_are_nan():
    net = tacit.Network()
    net.add("A", cpt=[1, 0])
    net.add("B", parents=["A"], cpt=[[1, 0], [0.5, 0.5]])
    tac = tacit.compile(net, "A", ["B"])
    evidence = {"B": ["false", "true"]}
    check(tac, evidence)
    posterior, log_evidence = run(tac, evidence)
    np.testing.assert_array_equal(posterior, [[np.nan, np.nan], [1, 0]])
    np.testing.assert_array_equal(log_evidence, [-np.inf, 0])


def test_likelihoods_count_as_they_are_given():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    once = session(tac).run(None, {"A": np.array([[0.4, 0.1]]), "C": np.array([[1.0, 1.0]])})
    close(once[0], tac.posterior({"A": 0.8}))
    close(once[1], tac.log_evidence({"A": 0.8}) + np.log(0.5))


# what a model says of itself ------------------------------------------------------------------------------


def test_one_session_takes_any_number_of_rows():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A"], ["C"])
    ready = session(tac)
    for rows in (1, 7, 1000):
        evidence = {"A": np.linspace(0, 1, rows), "C": np.resize(["lo", "hi"], rows)}
        close(ready.run(["posterior"], feed(tac, evidence))[0], tac.posterior(evidence))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_inputs_outputs_and_properties(dtype, tmp_path):
    path = tmp_path / "abc.onnx"
    tacit.compile(tacit.examples.abc(), "B", ["C"], ["A"], dtype=dtype).to_onnx(path)
    ready, kind = runtime.InferenceSession(path), "tensor(double)" if dtype == "float64" else "tensor(float)"
    assert [(i.name, i.type, i.shape) for i in ready.get_inputs()] == [
        ("C", kind, ["rows", 2]),
        ("A", "tensor(int64)", ["rows"]),
    ]
    assert [(o.name, o.type, o.shape) for o in ready.get_outputs()] == [
        ("posterior", kind, ["rows", 2]),
        ("log_evidence", kind, ["rows"]),
    ]
    model = onnx.load(path)
    assert (model.producer_name, model.opset_import[0].version, model.ir_version) == ("tacit", 17, 8)
    assert model.doc_string == 'The posterior of "B", one row per row of evidence.'
    assert {p.key: json.loads(p.value) for p in model.metadata_props} == {
        "query": "B",
        "states": ["true", "false"],
        "evidence": {"C": ["lo", "hi"], "A": ["true", "false"]},
        "hard": ["A"],
    }


def test_every_table_is_read_by_some_node():
    for net in (tacit.examples.abc(), tacit.examples.abc().with_gamma(4), tacit.examples.abc(testing=False)):
        graph = onnx_model(tacit.compile(net, "B", ["A", "C"])).graph
        assert {t.name for t in graph.initializer} <= {name for node in graph.node for name in node.input}


def test_names_never_clash():
    net = tacit.Network()
    odd = ["posterior", "log_evidence", "table_0", "table_0'", "Mul_1", "Transpose_0", "ünï cødé", " "]
    for name, parent in zip(odd, [None, *odd], strict=False):
        net.add(name, parents=[parent] if parent else [], cpt=[[0.2, 0.8], [0.7, 0.3]] if parent else [0.4, 0.6])
    check(tacit.compile(net, "Mul_1", odd), {name: [[0.3, 0.6]] for name in odd})


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_names_that_cannot_be_inputs_are_refused(name):
    net = tacit.Network()
    net.add(name, cpt=[0.2, 0.8])
    with pytest.raises(TacitError, match="an input's name cannot hold a NUL or a lone surrogate"):
        onnx_model(tacit.compile(net, name, [name]))


def test_without_evidence_there_is_one_row():
    tac = tacit.compile(tacit.examples.abc(), "B")
    check(tac, None)
    assert run(tac, None)[0].shape == (1, 2)


def test_evidence_on_a_variable_of_one_state_has_rows():
    net = tacit.Network()
    net.add("A", states=["only"], cpt=[1])
    net.add("B", parents=["A"], cpt=[[0.2, 0.8]])
    check(tacit.compile(net, "B", hard=["A"]), {"A": ["only"] * 3})


def hard_variables():
    """H has one state; Z has nothing to do with the others."""
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("B", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("H", states=["only"], cpt=[1.0])
    net.add("C", ["H", "A"], cpt=[[[0.9, 0.1], [0.2, 0.8]]])
    net.add("Z", cpt=[0.5, 0.5])
    return net


@pytest.mark.filterwarnings("ignore:.*the query itself")
@pytest.mark.parametrize("query", ["A", "B", "H", "C", "Z"])
@pytest.mark.parametrize("hard", [["A"], ["B"], ["H"], ["C"], ["Z"], ["Z", "C", "H", "B"]])
def test_hard_variables_are_positions_whatever_is_asked(query, hard):
    """Also if they are asked for, have one state, or have nothing to do with the query."""
    net = hard_variables()
    tac = tacit.compile(net, query, hard=hard)
    assert [(i.name, i.type, i.shape) for i in session(tac).get_inputs()] == [
        (name, "tensor(int64)", ["rows"]) for name in hard
    ]
    check(tac, {name: [net.states(name)[-1], net.states(name)[0]] for name in hard})
    assert {p.key: json.loads(p.value) for p in onnx_model(tac).metadata_props}["hard"] == sorted(hard)


@pytest.mark.parametrize("code", [-1, 2])
@pytest.mark.parametrize("hard", [["C"], ["A", "C"]])
def test_states_that_do_not_exist_are_errors(hard, code):
    ready = session(tacit.compile(tacit.examples.abc(), "B", hard=hard))
    given = {name: np.array([0, 1]) for name in hard}
    ready.run(None, given)
    with pytest.raises(Exception, match="out of data bounds"):
        ready.run(None, given | {"C": np.array([code, 0])})


def test_models_beyond_what_a_file_can_hold_are_refused(monkeypatch):
    monkeypatch.setattr(onnx_graph, "MAX_BYTES", 100)
    with pytest.raises(TooLargeError, match="more than 2 GiB"):
        onnx_model(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]))


def test_without_onnx_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(TacitError, match=r"onnx is needed.*pip install 'onnx>="):
        onnx_model(tacit.compile(tacit.examples.abc(), "B"))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_are_inputs_whose_likelihoods_the_model_makes(dtype):
    """Of joint numbers, either all are missing or none: with some of them, the answer is NaN."""
    rows = {**ROWS, "Heat": [71.0, np.nan, 3000.0, 75.0], "x": [0.3, 2.0, np.nan, 0], "y": [0.5, 1.0, np.nan, 0]}
    rows["Count"], rows["Delay"] = [3.0, 40.0, 0.0, np.nan], [1.5, 0.2, np.nan, 4.0]
    check(tacit.compile(plant(), "Fault", DECLARED, dtype=dtype), rows)
    tac = tacit.compile(plant(), "Load", ["x, y"], dtype=dtype)
    gap = {"x, y": np.array([[0.3, np.nan]], dtype)}
    assert np.isnan(session(tac).run(None, gap)[0]).all()


def test_numbers_that_a_density_cannot_have_are_impossible():
    runs = session(tacit.compile(plant(), "Fault", ["Count", "Delay"]))
    counts, delays = np.array([1.0, -1.0, 2.5, 1.0]), np.array([1.0, 1.0, 1.0, -3.0])
    posterior, log_evidence = runs.run(None, {"Count": counts, "Delay": delays})
    assert np.isnan(posterior).all(axis=1).tolist() == [False, True, True, True]
    assert np.isneginf(log_evidence).tolist() == [False, True, True, True]


def test_a_function_is_no_density_of_a_model():
    net = plant()
    net.add("Noise", ["Fault"], cpt=tacit.Density(lambda x: -np.abs(x[:, None] - np.array([0.0, 3.0]))))
    with pytest.raises(TacitError, match="'Noise' has the density of a Python function"):
        onnx_model(tacit.compile(net, "Fault", ["Noise"]))
    with pytest.raises(TacitError, match="'Heat', is continuous, so there is no ONNX model"):
        onnx_model(tacit.compile(net, "Heat", ["Count"]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("hard", [(), ("A",)])
def test_tables_of_rows_are_inputs(hard, dtype):
    """The table of C is below a variable that may be indexed; that of A is a root's."""
    rng, soft = np.random.default_rng(0), [] if hard else ["A"]
    tac = tacit.compile(tacit.examples.abc(), "B", ["C", *soft], hard, dtype=dtype, per_row=["C", "A"])
    tables = {"C.table": rng.dirichlet(np.ones(2), (4, 2)), "A.table": rng.dirichlet(np.ones(2), 4)}
    evidence = {"A": ["true", "false", "true", "false"], "C": [0.2, 0.9, 0.5, 0.7]}
    evidence["C"] = np.stack([evidence["C"], 1 - np.array(evidence["C"])], axis=1)
    given = feed(tac, evidence | tables) | {name: own.astype(dtype) for name, own in tables.items()}
    posterior, log_evidence = session(tac).run(None, given)
    close(posterior, tac.posterior(evidence | tables), TOLERANCE[dtype])
    close(log_evidence, tac.log_evidence(evidence | tables), TOLERANCE[dtype])
    assert json.loads({p.key: p.value for p in onnx_model(tac).metadata_props}["tables"]) == {"C": ["A"], "A": []}
