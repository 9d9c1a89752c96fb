"""The torch engine: the same answers as the others, gradients, and no numbers that are not numbers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, TestingCPT, semantics
from tacit.compiler.operations import Setting, contract
from tacit.compiler.operations.select import weigh
from tacit.engines.arrays.evaluation import changed
from tacit.evidence.read import read
from tacit.model.cpt import TESTS
from tests.conformance_files import network
from tests.conformance_files import read as read_file
from tests.helpers import always_hard, close, impossible
from tests.strategies import queries as random_queries
from tests.strategies import tie_margin

torch = pytest.importorskip("torch")
engines = pytest.importorskip("tacit.engines.arrays.torch_engine")
arrays = pytest.importorskip("tacit.engines.arrays.torch_arrays")

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
# on a GPU, the first matrix product of autograd's own thread says so, and works
pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")


def on_cpu(tac, dtype="float64"):
    """The engine of a query on the CPU, wherever the tests run."""
    own = tacit.compile(tac.network, tac.query, tac.program.soft, tac.program.hard, engine="numpy").engine()
    return engines.TorchEngine(tac.program, own.parameters, own.gammas, dtype, "cpu")


def tensors(tac, evidence):
    """Evidence as `forward` takes it: likelihoods and codes."""
    columns = read(evidence, [tac.network.variable(n) for n in tac.network]).columns
    soft = {n: torch.tensor(columns[n].likelihoods()) for n in tac.program.soft if n in columns}
    return soft, {n: torch.tensor(columns[n].states()) for n in tac.program.hard}


def forward(tac, evidence, tables=None, gammas=None):
    """The posterior (rows, states) from `forward`."""
    mantissa, _, _ = on_cpu(tac).forward(*tensors(tac, evidence), tables, gammas)
    return (mantissa / mantissa.sum(dim=0)).T


def distributions(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def random_testing(rng, *shape, gamma=None, test=">="):
    thresholds = distributions(rng, math.prod(shape[:-1])).reshape(shape[:-1])
    return TestingCPT(distributions(rng, *shape), distributions(rng, *shape), thresholds, test, gamma)


def mixed(gamma, seed=0):
    """Nested testing nodes with all four operators, three states and a shared ancestor."""
    rng, net = np.random.default_rng(seed), tacit.Network()
    net.add("A", states=["a", "b", "c"], cpt=distributions(rng, 3))
    net.add("B", ["A"], cpt=distributions(rng, 3, 2))
    net.add(
        "T", ["A", "B"], cpt=random_testing(rng, 3, 2, 2, gamma=gamma, test=[[">=", ">"], ["<=", "<"], [">", ">="]])
    )
    net.add("C", ["T", "A"], states=3, cpt=distributions(rng, 2, 3, 3))
    net.add("U", ["C", "T"], cpt=random_testing(rng, 3, 2, 2, gamma=gamma, test="<"))
    net.add("Q", ["U", "B"], cpt=distributions(rng, 2, 2, 2))
    return net


def rows_for(net, names, rows, seed=1):
    rng = np.random.default_rng(seed)
    return {n: distributions(rng, rows, len(net.states(n))) for n in names}


def chain(length, gamma=None, seed=0):
    rng, net = np.random.default_rng(seed), tacit.Network()
    net.add("X0", cpt=distributions(rng, 2))
    for i in range(1, length):
        cpt = random_testing(rng, 2, 2, gamma=gamma) if i % 10 == 0 else distributions(rng, 2, 2)
        net.add(f"X{i}", [f"X{i - 1}"], cpt=cpt)
    return net


# answers --------------------------------------------------------------------------------------------------


@given(random_queries(rows=3), st.booleans())
@impossible
def test_random_queries(case, sliced):
    net, query, evidence = case
    rows = [{name: column[i : i + 1] for name, column in evidence.items()} for i in range(3)]
    assume(min(tie_margin(net, row) for row in rows) > 1e-9)
    hard = [n for n in always_hard(net, evidence) if sliced]
    tac = tacit.compile(net, query, [n for n in evidence if n not in hard], hard, engine="torch")
    close(tac.joint(evidence), semantics.joint(net, query, evidence))


@pytest.mark.parametrize("wide", [0, 10**9], ids=["row-products", "broadcast"])
@pytest.mark.parametrize("blocks", [0, 10**9], ids=["side-by-side", "block-diagonal"])
@pytest.mark.parametrize("gamma", [None, 8.0])
def test_all_ways_to_contract(monkeypatch, wide, blocks, gamma):
    monkeypatch.setattr(contract, "WIDE_WORK", wide)
    monkeypatch.setitem(arrays.BLOCK_DIAGONAL, "cpu", blocks)
    net = mixed(gamma)
    evidence = rows_for(net, ["A", "B", "T", "C", "U"], 7) | {"B": 0.3}
    for query in net:
        tac = tacit.compile(net, query, list(evidence), engine="torch")
        close(tac.joint(evidence), semantics.joint(net, query, evidence))


def test_wide_products_of_rows_are_found():
    def wide(**sizes):
        axes = ("a", "b"), ("b", "c")
        return contract.AxisRoles.of(Setting(axes, (True, True), sizes), ("a", "c")).wide

    assert wide(a=32, b=32, c=32)
    assert not wide(a=2, b=16, c=16)


def test_float32():
    net = mixed(8.0)
    evidence = rows_for(net, ["A", "B", "C", "U"], 50)
    tac = tacit.compile(net, "Q", list(evidence), engine="torch", dtype="float32")
    found = tac.posterior(evidence)
    assert found.dtype == np.float32
    close(found, tacit.compile(net, "Q", list(evidence)).posterior(evidence), 1e-5)


def test_more_rows_than_a_chunk():
    net = mixed(None)
    evidence = rows_for(net, ["A", "B", "C", "U"], 40_000)
    tac = tacit.compile(net, "Q", list(evidence), engine="torch")
    close(tac.joint(evidence), tacit.compile(net, "Q", list(evidence), engine="numpy").joint(evidence))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("gamma", [None, 8.0])
def test_a_long_chain_does_not_underflow(dtype, gamma):
    net = chain(1200, gamma)
    evidence = rows_for(net, net.variables[:-1], 5)
    tac = tacit.compile(net, "X1199", list(evidence), engine="torch", dtype=dtype, effort="low")
    expected = tacit.compile(net, "X1199", list(evidence), engine="numpy", effort="low")
    log = expected.log_evidence(evidence)
    assert (log < -800).all()  # float64 ends at -745
    np.testing.assert_allclose(tac.log_evidence(evidence), log, rtol=1e-12 if dtype == "float64" else 1e-5)
    if gamma is not None or dtype == "float64":
        close(tac.posterior(evidence), expected.posterior(evidence), 1e-12 if dtype == "float64" else 1e-4)


def test_evidence_that_must_not_be_written_to():
    net = mixed(None)
    tac = tacit.compile(net, "Q", ["A"], engine="torch")
    column = read({"A": [[0.2, 0.3, 0.5]]}, [net.variable("A")]).columns["A"]
    column.soft.flags.writeable = False
    found = tac.engine().run({"A": column}, 4)
    assert found.joint.shape == (2, 4)
    close(found.joint.T, np.repeat(tac.joint({"A": [[0.2, 0.3, 0.5]]}), 4, axis=0))


# gradients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", read_file("grads.json")["cases"], ids=lambda c: c["id"])
def test_gradients_of_the_reference(case):
    net, parameters, tables = network(case["network"]), {}, {}
    for node in case["logits"]:
        shape = [len(net.states(p)) for p in net.parents(node["name"])]
        for part, name in (("z", "table"), ("z_plus", "plus"), ("z_minus", "minus"), ("thresholds", "thresholds")):
            if part in node:
                leaf = parameters[node["name"], part] = torch.tensor(node[part], dtype=torch.float64).requires_grad_()
                made = leaf if part == "thresholds" else leaf.softmax(dim=-1)
                tables[node["name"], name] = made.reshape([*shape, *([] if part == "thresholds" else [node["card"]])])
    evidence = {n: np.array([row["evidence"][n] for row in case["data"]]) for n in case["data"][0]["evidence"]}
    tac = tacit.compile(net, case["query"], list(evidence), engine="torch")
    labels = torch.tensor([row["label"] for row in case["data"]], dtype=torch.float64)
    loss = ((forward(tac, evidence, tables)[:, case["state"]] - labels) ** 2).mean()
    assert abs(loss.item() - case["loss"]) < 1e-12
    loss.backward()
    for (node, part), leaf in parameters.items():
        close(leaf.grad, case["grad"][node][part], 1e-8)


@pytest.mark.parametrize("hard", [(), ("B",), ("A", "C")], ids=str)
@pytest.mark.parametrize("gamma", [None, 4.0])
def test_gradients_against_finite_differences(gamma, hard):
    net = mixed(gamma)
    evidence = rows_for(net, [n for n in ("A", "B", "C", "U") if n not in hard], 4)
    evidence |= {n: [net.states(n)[i % 2] for i in range(4)] for n in hard}
    tac = tacit.compile(net, "Q", [n for n in evidence if n not in hard], hard, engine="torch")
    engine, (soft, codes) = on_cpu(tac), tensors(tac, evidence)
    own = dict(engine._tensors)

    def posteriors(*leaves):
        likelihoods = dict(zip(soft, leaves, strict=False))
        tables = dict(zip(own, leaves[len(soft) :], strict=True))
        mantissa, _, _ = engine.forward(likelihoods, codes, tables)
        return mantissa / mantissa.sum(dim=0)

    leaves = [t.clone().requires_grad_() for t in (*soft.values(), *own.values())]
    assert torch.autograd.gradcheck(posteriors, leaves, eps=1e-6, atol=1e-8, rtol=1e-6)


def test_the_slope_has_a_gradient():
    net = mixed(4.0)
    evidence = rows_for(net, ["A", "B", "C"], 4)
    tac = tacit.compile(net, "Q", list(evidence), engine="torch")
    slope = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda g: forward(tac, evidence, gammas={"T": g, "U": g}), [slope])
    close(forward(tac, evidence, gammas={"T": slope, "U": slope}).detach(), forward(tac, evidence))


def test_a_hard_test_passes_gradients_to_the_selected_table_only():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.6, 0.6]))
    tac = tacit.compile(net, "B", ["A"], engine="torch")
    tables = {key: table.clone().requires_grad_() for key, table in on_cpu(tac)._tensors.items()}
    likelihood = torch.tensor([[0.7], [0.3]], dtype=torch.float64, requires_grad=True)
    joint, _, _ = on_cpu(tac).forward({"A": likelihood}, {}, tables)
    joint[0, 0].backward()
    close(tables["B", "plus"].grad, [[0.35, 0], [0, 0]])  # 0.7 >= 0.6: plus
    close(tables["B", "minus"].grad, [[0, 0], [0.15, 0]])  # 0.3 < 0.6: minus
    assert tables["B", "thresholds"].grad is None
    close(likelihood.grad, [[0.5 * 0.9], [0.5 * 0.1]])  # none through the comparison


@pytest.mark.parametrize("gamma", [None, 8.0])
def test_evidence_above_a_testing_node_may_be_impossible(gamma):
    net = tacit.Network()
    net.add("A", cpt=CPT([1.0, 0.0]))
    net.add("B", ["A"], cpt=CPT([[0.5, 0.5], [0.25, 0.75]]))
    net.add("T", ["B"], cpt=TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.3, 0.6], gamma=gamma))
    tac = tacit.compile(net, "T", ["A"], engine="torch")
    likelihood = torch.tensor([[0.0, 0.5], [1.0, 0.5]], dtype=torch.float64, requires_grad=True)
    tables = {key: table.clone().requires_grad_() for key, table in on_cpu(tac)._tensors.items()}
    joint, _, _ = on_cpu(tac).forward({"A": likelihood}, {}, tables)
    assert (joint[:, 0] == 0).all()
    joint.sum().backward()
    leaves = [likelihood, *tables.values()]
    assert all(leaf.grad is None or leaf.grad.isfinite().all() for leaf in leaves)


def test_undefined_posteriors_weigh_one_half():
    zero, threshold = (torch.tensor(x, dtype=torch.float64) for x in ([0.0, 0.0], [0.3, 0.9]))
    leaves = [
        zero.requires_grad_(),
        torch.zeros(1, dtype=torch.float64, requires_grad=True),
        threshold.requires_grad_(),
    ]
    xp = arrays.TorchArrays(torch.float64, torch.device("cpu"))
    weight, _ = weigh(xp, np.array([TESTS.index(">="), TESTS.index("<=")]), *leaves, 16.0)
    close(weight.detach(), [0.5, 0.5])
    weight.sum().backward()
    assert all((leaf.grad == 0).all() for leaf in leaves)


def test_gradients_of_a_long_chain_are_those_of_the_posterior():
    net = chain(120, gamma=8.0)
    evidence = rows_for(net, net.variables[:-1], 3)
    tac = tacit.compile(net, "X119", list(evidence), engine="torch")
    engine, (soft, _) = on_cpu(tac), tensors(tac, evidence)
    for name in ("X0", "X118"):
        leaf = soft[name].clone().requires_grad_()

        def first(likelihood, name=name):
            mantissa, _, _ = engine.forward({**soft, name: likelihood}, {})
            return mantissa[0] / mantissa.sum(dim=0)

        assert torch.autograd.gradcheck(first, [leaf])


# numbers --------------------------------------------------------------------------------------------------


def test_given_tables_replace_the_engines_own():
    net, other = mixed(4.0), mixed(9.0, seed=5)
    evidence = rows_for(net, ["A", "B", "C"], 6)
    tac, expected = (tacit.compile(n, "Q", list(evidence), engine="torch") for n in (net, other))
    close(forward(tac, evidence, on_cpu(expected)._tensors, {"T": 9.0, "U": 9.0}), expected.posterior(evidence))
    some = {key: table for key, table in on_cpu(expected)._tensors.items() if key[0] == "Q"}
    partly = tacit.Network.from_dict(net.to_dict())
    close(forward(tac, evidence, some), with_table(partly, "Q", other).posterior("Q", evidence))
    close(forward(tac, evidence), tac.posterior(evidence))  # its own are as they were
    close(forward(tac, evidence, gammas={"T": None, "U": None}), net.with_gamma(None).posterior("Q", evidence))


def with_table(net, name, other):
    made = tacit.Network()
    for n in net:
        made.add(n, net.parents(n), net.states(n), (other if n == name else net).cpt(n))
    return made


def test_only_what_depends_on_given_tables_is_computed_again():
    net = chain(30)
    tac = tacit.compile(net, "X29", ["X20"], engine="torch")
    near = changed(tac.program, frozenset({("X29", "table")}))
    every = changed(tac.program, frozenset(tac.program.parameters))
    assert 0 < len(near) < len(every)


def test_without_evidence_nothing_has_rows():
    tac = tacit.compile(mixed(None), "Q", engine="torch")
    joint, exponent, _ = on_cpu(tac).forward({}, {})
    assert (joint.shape, exponent.shape) == ((2, 1), (1,))
    close(joint.T, tac.joint())


def test_missing_codes_are_named():
    tac = tacit.compile(mixed(None), "Q", hard=["B"], engine="torch")
    with pytest.raises(tacit.EvidenceError, match="no codes for 'B'"):
        on_cpu(tac).forward({}, {})


# learning -------------------------------------------------------------------------------------------------


def columns_of(net, evidence):
    return read(evidence, [net.variable(n) for n in net]).columns


def squares(joint):
    """The sum of all squared posteriors, and its derivatives by the joint."""
    total = joint.sum(axis=0)
    p = joint / total
    return (p**2).sum(), 2 * (p - (p**2).sum(axis=0)) / total


def same_gradients(found, expected, tolerance=1e-12):
    assert (set(found.tables), set(found.likelihoods)) == (set(expected.tables), set(expected.likelihoods))
    for key, table in expected.tables.items():
        assert found.tables[key].dtype == np.float64
        close(found.tables[key], table, tolerance)
    for name, by_state in expected.likelihoods.items():
        close(found.likelihoods[name], by_state, tolerance)
    for node, slope in expected.slopes.items():
        close(found.slopes.get(node, 0.0), slope, tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("hard", [(), ("A", "B")], ids=["soft", "hard"])
@pytest.mark.parametrize("gamma", [None, 0.0, 4.0])
def test_value_and_gradients_are_those_of_the_numpy_engine(gamma, hard, dtype):
    net = mixed(gamma)
    evidence = rows_for(net, [n for n in ("A", "B", "C") if n not in hard], 6)
    evidence |= {n: [net.states(n)[i % 2] for i in range(6)] for n in hard}
    if "B" not in hard:
        evidence["B"] = 0.3  # one row that speaks for all; U has no evidence
    tac = tacit.compile(net, "Q", ["A", "B", "C", "U"] if not hard else ["C", "U"], hard, engine="numpy")
    columns = columns_of(net, evidence)
    value, found = on_cpu(tac, dtype).value_and_gradients(columns, 6, squares)
    expected_value, expected = tac.engine().value_and_gradients(columns, 6, squares)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    assert abs(value - expected_value) < tolerance
    same_gradients(found, expected, tolerance)


def test_new_numbers():
    net, other = mixed(4.0), mixed(9.0, seed=5)
    evidence = rows_for(net, ["A", "B", "C"], 6)
    tac, expected = (tacit.compile(n, "Q", list(evidence), engine="torch") for n in (net, other))
    engine, columns = on_cpu(tac), columns_of(net, evidence)
    before = engine.run(columns, 6).joint.copy()
    new = {key: table.numpy() for key, table in on_cpu(expected)._tensors.items()}
    clone = engine.clone()
    clone.update(new, {"T": 9.0, "U": 9.0})
    close(clone.run(columns, 6).joint, on_cpu(expected).run(columns, 6).joint)
    value, found = clone.value_and_gradients(columns, 6, squares)
    expected_value, gradients = on_cpu(expected).value_and_gradients(columns, 6, squares)
    assert value == expected_value
    same_gradients(found, gradients)
    assert (engine.run(columns, 6).joint == before).all()  # the engine itself has its own numbers
    clone.update({key: table for key, table in new.items() if key[0] == "Q"}, {"U": 2.0})
    with_slope = other.with_cpts({"U": other.cpt("U").with_gamma(2.0)})
    close(clone.run(columns, 6).joint.T, semantics.joint(with_slope, "Q", evidence))


@pytest.mark.slow
def test_blocks_for_gradients_are_smaller():
    engine = on_cpu(tacit.compile(chain(1500), "X1499", [f"X{i}" for i in range(1499)], engine="torch"))
    assert 1 <= engine.gradient_chunk < engine.chunk


# GPU ------------------------------------------------------------------------------------------------------


@CUDA
@pytest.mark.parametrize("hard", [(), ("A",)], ids=str)
def test_recorded_runs_are_the_same(hard):
    net = mixed(None)
    evidence = rows_for(net, [n for n in ("A", "B", "C", "U") if n not in hard], 3000)
    evidence |= {n: [net.states(n)[i % 3] for i in range(3000)] for n in hard}
    tac = tacit.compile(net, "Q", [n for n in evidence if n not in hard], hard, engine="torch")
    expected = tacit.compile(net, "Q", [n for n in evidence if n not in hard], hard, engine="numpy").joint(evidence)
    for _ in range(3):  # one by one, recorded, replayed
        close(tac.joint(evidence), expected)
    assert all(slot.recorded for slot in tac.engine()._slots.values())


@CUDA
def test_recorded_runs_take_new_numbers():
    net, other = mixed(4.0), mixed(9.0, seed=5)
    evidence = rows_for(net, ["A", "B", "C"], 3000)
    tac = tacit.compile(net, "Q", list(evidence), engine="torch")
    for _ in range(3):
        tac.joint(evidence)
    engine = tac.engine()
    assert all(slot.recorded for slot in engine._slots.values())
    new = {key: table.numpy() for key, table in on_cpu(tacit.compile(other, "Q", list(evidence)))._tensors.items()}
    engine.update(new, {"T": 9.0, "U": 9.0})
    for _ in range(3):
        close(tac.joint(evidence), tacit.compile(other, "Q", list(evidence), engine="numpy").joint(evidence))
    assert all(slot.recorded for slot in engine._slots.values())
