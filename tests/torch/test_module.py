"""A compiled query as a torch module: the same answers, exact gradients, and knowledge that never changes."""

import copy
import importlib.util
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, TestingCPT
from tacit.engines.tape.tape_engine import TapeEngine
from tacit.evidence.read import read
from tests.helpers import always_hard, close, impossible, posterior, tries
from tests.strategies import queries, tied_networks

torch = pytest.importorskip("torch")

from tacit.learn.fitting.parameters import Parameters  # noqa: E402
from tacit.torch import TACModule  # noqa: E402
from tacit.torch.backends import Tables  # noqa: E402

ENGINES = ["auto", "tape", "native", "numpy", "torch"]
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
# on a GPU, the first matrix product of autograd's own thread says so, and works
pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")


def rows_of(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def holed(gamma=6.0, seed=0):
    """Every kind of learned number: whole rows, rows beside known entries, a start, ties, thresholds, slopes."""
    rng, net = np.random.default_rng(seed), tacit.Network()
    net.add("A", states=["a", "b", "c"])
    net.add("B", ["A"], cpt=CPT([[0.2, 0.8], [np.nan, np.nan], [0.0, 1.0]]))
    thresholds = np.array([[0.35, np.nan], [0.1, 0.3], [np.nan, 0.0]])
    tests = [[">=", ">"], ["<=", "<"], [">", ">="]]
    shared = TestingCPT(rows_of(rng, 3, 2, 2), rows_of(rng, 3, 2, 2), thresholds, tests, gamma, True, "shared")
    net.add("T", ["A", "B"], cpt=shared)
    net.add("U", ["A", "B"], cpt=shared)
    net.add("C", ["T"], list("xyzw"), [[0.1, np.nan, np.nan, np.nan], [0.25, np.nan, 0.5, 0.125]])
    net.add("Q", ["U", "C"], states=["l", "m", "h"], tie="last")
    net.add("R", ["U", "C"], states=["l", "m", "h"], tie="last")
    net.add("Z", ["Q", "R"], testing=True, gamma=gamma)
    return net


def soft_rows(net, names, rows, seed=1):
    rng = np.random.default_rng(seed)
    return {n: rows_of(rng, rows, len(net.states(n))) for n in names}


def tensors(net, evidence, hard=()):
    """Evidence that `tac.posterior` takes, as tensors."""
    columns = read(evidence, [net.variable(n) for n in net]).columns
    found = {n: torch.tensor(c.likelihoods().T) for n, c in columns.items() if n not in hard}
    return found | {n: torch.tensor(columns[n].states()) for n in hard}


# answers --------------------------------------------------------------------------------------------------


@given(queries(rows=3), st.booleans(), st.sampled_from(ENGINES))
@tries(40)
@impossible
def test_the_posterior_is_that_of_the_query(case, sliced, engine):
    net, query, evidence = case
    hard = [n for n in always_hard(net, evidence) if sliced]
    tac = tacit.compile(net, query, [n for n in evidence if n not in hard], hard, engine=engine)
    found = TACModule(tac)(tensors(net, evidence, hard))
    close(found.expand(len(tac.posterior(evidence)), -1), tac.posterior(evidence))


@pytest.mark.parametrize("engine", ENGINES)
def test_forms_of_evidence(engine):
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", ["A", "C"], engine=engine)
    module = TACModule(tac)
    first = torch.tensor([[0.8, 0.6], [0.1, 0.9]], dtype=torch.float64)
    expected = tac.posterior(first.numpy())
    close(module(first), expected)
    close(module({"A": first[:, 0], "C": first[:, 1]}), expected)
    scaled = torch.stack([7 * first[:, 1], 7 - 7 * first[:, 1]], dim=1)
    close(module({"A": first[:, 0], "C": scaled}), expected)
    close(module({"A": first[:, 0], "C": scaled.float()}), expected, 1e-7)
    close(module({"A": first[:, 0]}), tac.posterior({"A": first[:, 0].numpy()}))
    close(module({"A": first[:1, 0], "C": first[:, 1]}), tac.posterior({"A": 0.8, "C": first[:, 1].numpy()}))
    for nothing in (None, {}):
        close(module(nothing), tac.posterior())


def test_hard_evidence_on_the_query():
    tac = tacit.compile(tacit.examples.abc(), "C", ["A"], ["C"])
    found = TACModule(tac)({"A": torch.tensor([0.5, 0.5]), "C": torch.tensor([1, 0])})
    close(found, [[0, 1], [1, 0]])


def test_more_rows_than_a_block(monkeypatch):
    monkeypatch.setattr(TapeEngine, "chunk", 7)
    monkeypatch.setattr(TapeEngine, "gradient_chunk", 5)
    net = holed()
    module, other = (TACModule(tacit.compile(net, "Z", ["A", "Q", "C"], engine=e)) for e in ("tape", "torch"))
    evidence = {n: t.requires_grad_() for n, t in tensors(net, soft_rows(net, ["A", "Q", "C"], 17)).items()}
    found, expected = module(evidence), other(evidence)
    close(found.detach(), expected.detach())
    one, two = (torch.autograd.grad(p[:, 0].mean(), [m.weights, *evidence.values()])
                for p, m in ((found, module), (expected, other)))  # fmt: skip
    for a, b in zip(one, two, strict=True):
        close(a, b)


@pytest.mark.parametrize("engine", ENGINES)
def test_float32(engine):
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "C", "Q"], 20))
    module = TACModule(tacit.compile(net, "Z", list(evidence), engine=engine))
    expected = module(evidence).detach()
    found = module.float()(evidence)
    assert found.dtype == torch.float32
    close(found.detach(), expected, 1e-5)
    found[:, 0].sum().backward()
    assert module.weights.grad.dtype == torch.float32
    assert TACModule(tacit.compile(net, "Z", list(evidence), dtype="float32")).weights.dtype == torch.float32


@pytest.mark.parametrize("engine", ENGINES)
def test_float32_does_not_underflow(engine):
    rng, net = np.random.default_rng(0), tacit.Network()
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, 40):  # eight of them would be too much for float32 before it is rescaled
        rare = rng.uniform(1e-6, 2e-6, 2)
        net.add(f"X{i}", ["X0"], cpt=np.stack([rare, 1 - rare], axis=1))
    tac = tacit.compile(net, "X0", net.variables[1:], engine=engine)
    evidence = np.ones((2, 39))
    close(TACModule(tac).float()(torch.tensor(evidence)), tac.posterior(evidence), 1e-4)


# gradients ------------------------------------------------------------------------------------------------


def posterior_of(module, names, codes):
    """The posterior as a function of the weights and the soft evidence."""

    def run(weights, *likelihoods):
        evidence = dict(zip(names, likelihoods, strict=True)) | codes
        return torch.func.functional_call(module, {"weights": weights}, (evidence,))

    return run


def leaves(module, evidence):
    """Copies of the weights and of the soft evidence that gradients are asked of; the scale of evidence is free."""
    soft = [(3 * column).requires_grad_() for column in evidence.values()]
    return [module.weights.detach().clone().requires_grad_(), *soft]


@pytest.mark.parametrize("hard", [(), ("A", "C")], ids=["soft", "hard"])
@pytest.mark.parametrize("gamma", [None, 6.0])
@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_against_finite_differences(engine, gamma, hard):
    net = holed(gamma)
    soft = [n for n in ("A", "C", "Q", "T") if n not in hard]
    module = TACModule(tacit.compile(net, "Z", soft, hard, engine=engine), slopes=True)
    evidence = tensors(net, soft_rows(net, soft, 3))
    codes = {n: torch.tensor([0, 2, 1]) for n in hard}
    run = posterior_of(module, soft, codes)
    assert torch.autograd.gradcheck(run, leaves(module, evidence), eps=1e-6, atol=1e-7, rtol=1e-5, fast_mode=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_second_derivatives(engine):
    net = holed()
    module = TACModule(tacit.compile(net, "Z", ["A", "Q"], engine=engine), slopes=True)
    evidence = tensors(net, soft_rows(net, ["A", "Q"], 2))
    run = posterior_of(module, ["A", "Q"], {})
    assert torch.autograd.gradgradcheck(run, leaves(module, evidence), eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=True)


def test_second_derivatives_by_the_evidence_alone():
    net = tacit.examples.abc().with_gamma(5.0)
    module = TACModule(tacit.compile(net, "B", ["A", "C"]))
    table = torch.tensor([[0.8, 0.6], [0.1, 0.9]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(module, [table])


def test_both_ways_have_the_same_gradients():
    net = tacit.examples.layer(4)
    table = torch.rand((50, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = []
    for engine in ENGINES:
        module = TACModule(tacit.compile(net, "Q", ["E1", "E2"], engine=engine))
        loss = (module(table)[:, 0] - table.detach().prod(dim=1)).square().mean()
        found.append((loss.item(), *torch.autograd.grad(loss, [module.weights, table])))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            close(a, b)


def test_an_evaluation_keeps_its_numbers():
    module = TACModule(tacit.compile(tacit.examples.layer(2), "Q", ["E1", "E2"]))
    table = torch.tensor([[0.3, 0.6]], dtype=torch.float64)
    start = module.weights.detach().clone()
    (expected,) = torch.autograd.grad(module(table)[0, 0], module.weights)
    first = torch.func.functional_call(module, {"weights": start.requires_grad_()}, (table,))
    torch.func.functional_call(module, {"weights": start.detach() + 1}, (table,))  # in between
    (found,) = torch.autograd.grad(first[0, 0], start)
    close(found.detach(), expected.detach(), 1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_caller_writes_to_is_not_ours(engine):
    net = holed()
    module = TACModule(tacit.compile(net, "Z", ["A"], ["C"], engine=engine))
    evidence = tensors(net, soft_rows(net, ["A"], 3)) | {"C": torch.tensor([0, 2, 1])}
    (expected,) = torch.autograd.grad(module(evidence)[:, 0].sum(), module.weights)
    found = module(evidence)
    total = found[:, 0].sum()
    with torch.no_grad():
        found.zero_()
        evidence["A"].zero_()
    if engine != "torch":  # torch itself refuses to go back through what it indexed with
        evidence["C"].zero_()
    close(torch.autograd.grad(total, module.weights)[0], expected, 1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_impossible_rows_are_nan_and_harmless(engine):
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"])
    module = TACModule(tacit.compile(net, "B", ["A", "B"], engine=engine))
    likelihoods = torch.tensor([[0.0, 1.0], [0.5, 0.5], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    found = module({"A": likelihoods, "B": torch.tensor([0.5])})
    assert found.isnan().all(dim=1).tolist() == [True, False, True]
    found[1, 0].backward()
    assert likelihoods.grad.isfinite().all()
    assert module.weights.grad.isfinite().all()
    assert module.weights.grad.abs().max() > 0


# learning -------------------------------------------------------------------------------------------------


@given(tied_networks(unset=True))
@tries(25)
def test_tensors_make_the_numbers_that_arrays_make(net):
    learned = Parameters(net, net.variables, slopes=True)
    weights = learned.start(np.random.default_rng(0))
    tables, slopes = Tables(learned, torch.float64, torch.device("cpu"))(torch.tensor(weights))
    numbers = learned.numbers(weights)
    expected = learned.tables(numbers)
    assert set(tables) == set(expected)
    for key, table in expected.items():
        close(tables[key], table, 1e-15)
    assert set(slopes) == set(learned.slopes(numbers))
    for node, slope in learned.slopes(numbers).items():
        assert math.isclose(slopes[node].item(), slope, rel_tol=1e-15)


def trained(module, evidence, steps=5):
    """The module after some steps towards the first state."""
    optimizer = torch.optim.Adam(module.parameters(), lr=0.3)
    for _ in range(steps):
        optimizer.zero_grad()
        (-module(evidence)[:, 0].log().mean()).backward()
        optimizer.step()
    return module


@pytest.mark.parametrize("engine", ["tape", "torch"])
def test_any_optimizer_keeps_tables_legal_and_knowledge_as_it_is(engine):
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "C", "Q"], 20))
    module = TACModule(tacit.compile(net, "Z", list(evidence), engine=engine), slopes=True)
    before = module(evidence)[:, 0].log().mean().item()
    found = trained(module, evidence).float().double().network()  # a change of dtype does not touch what is known
    assert module(evidence)[:, 0].log().mean().item() > before
    found.require_numbers()
    assert found.cpt("B").table[[0, 2]].tobytes() == net.cpt("B").table[[0, 2]].tobytes()
    assert found.cpt("C").table[0, 0] == 0.1
    assert found.cpt("C").table[1, 2] == 0.5
    assert found.cpt("T").thresholds[2, 1] == 0.0
    assert found.cpt("T") == found.cpt("U")
    assert found.cpt("T").gamma != 6.0
    assert (found.cpt("Q").table != TACModule(module.tac).network().cpt("Q").table).all()


def test_the_network_gives_the_same_answers():
    net = holed()
    evidence = soft_rows(net, ["A", "C", "Q"], 20)
    tac = tacit.compile(net, "Z", list(evidence))
    module = trained(TACModule(tac), tensors(net, evidence))
    tac.set_parameters(module.network())
    close(module(tensors(net, evidence)).detach(), tac.posterior(evidence))


def test_starts_are_seeded():
    tac = tacit.compile(tacit.examples.layer(2), "Q", ["E1", "E2"])
    assert (TACModule(tac).weights == TACModule(tac, seed=0).weights).all()
    assert (TACModule(tac, seed=1).weights != TACModule(tac).weights).any()


def test_a_given_table_is_the_start():
    net = tacit.examples.abc()
    start = net.with_cpts({"A": CPT([0.3, 0.7], learn=True)})
    tac = tacit.compile(start, "B", ["C"])
    close(TACModule(tac)({"C": torch.tensor([0.25])}).detach(), tac.posterior({"C": 0.25}))


def test_without_anything_to_learn_it_is_a_layer_of_knowledge():
    module = TACModule(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]))
    assert list(module.parameters()) == []
    assert module.state_dict() == {}
    assert module.network() == tacit.examples.abc()
    table = torch.tensor([[0.8, 0.6]], dtype=torch.float64, requires_grad=True)
    module(table)[0, 0].backward()
    assert table.grad.abs().min() > 0


def test_a_frozen_module_has_gradients_by_the_evidence_only():
    module = TACModule(tacit.compile(tacit.examples.layer(2), "Q", ["E1", "E2"])).requires_grad_(False)
    table = torch.tensor([[0.8, 0.6]], dtype=torch.float64, requires_grad=True)
    module(table)[0, 0].backward()
    assert module.weights.grad is None
    assert table.grad.abs().min() > 0
    assert not module(table.detach()).requires_grad


# storing --------------------------------------------------------------------------------------------------


def pickled(module):
    return pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_copies(again, engine):
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "C"], 4))
    module = TACModule(tacit.compile(net, "Z", list(evidence), engine=engine))
    expected = module(evidence)
    other = again(module)
    trained(module, evidence)
    assert (other(evidence) == expected).all()


def test_state_dict():
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "C"], 4))
    tac = tacit.compile(net, "Z", list(evidence))
    module, other = trained(TACModule(tac), evidence), TACModule(tac, seed=5)
    assert list(module.state_dict()) == ["weights"]
    other.load_state_dict(module.state_dict())
    close(other(evidence).detach(), module(evidence).detach(), 1e-14)
    assert other.network() == module.network()


def test_load_network():
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "C"], 4))
    tac = tacit.compile(net, "Z", list(evidence))
    module, other = (TACModule(tac, slopes=True, seed=seed) for seed in (0, 5))
    other.load_network(trained(module, evidence).network())
    close(other(evidence).detach(), module(evidence).detach())
    for name in net:
        found, expected = (m.network().cpt(name) for m in (other, module))
        for part, table in expected.parts().items():
            close(found.parts()[part], table)
        close(getattr(found, "gamma", 0), getattr(expected, "gamma", 0))


def test_load_network_with_numbers_that_are_zero():
    net = tacit.Network()
    net.add("A", states=["a", "b", "c"])
    module = TACModule(tacit.compile(net, "A"))
    module.load_network(net.with_cpts({"A": [0.0, 0.3, 0.7]}))
    close(module().detach(), [[0, 0.3, 0.7]], 1e-10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A": [0.4, 0.6]}, "node 'A': table differs in numbers that are known"),
        ({"B": CPT([[np.nan, np.nan], [0.7, 0.3]])}, "node 'B'.* differs in .* kind of CPT"),
        ({"C": CPT([[np.nan, np.nan], [0.5, 0.5]])}, "node 'C': table has unset numbers"),
    ],
)
def test_load_network_refuses_what_does_not_fit(changed, message):
    net = tacit.examples.abc()
    unset = net.with_cpts({"C": CPT(np.full((2, 2), np.nan))})
    module = TACModule(tacit.compile(unset, "B", ["A", "C"]))
    with pytest.raises(tacit.NetworkError, match=message):
        module.load_network(net.with_cpts(changed))


def test_load_network_refuses_other_slopes():
    net = tacit.examples.abc().with_gamma(4.0)
    module = TACModule(tacit.compile(net, "B", ["A"]))
    with pytest.raises(tacit.NetworkError, match=r"node 'B': its slope is 5\.0, expected 4\.0"):
        module.load_network(net.with_gamma(5.0))


def test_a_printed_model_names_the_query():
    module = TACModule(tacit.compile(tacit.examples.layer(2), "Q", ["E1", "E2"]))
    assert repr(module) == "TACModule(query='Q', evidence=['E1', 'E2'], 30 weights)"


# errors ---------------------------------------------------------------------------------------------------


def three_kinds():
    """A binary variable, one with three states, one with numbers as labels, and a hard one."""
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], ["x", "y", "z"], [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
    net.add("C", ["A"], 2, [[0.2, 0.8], [0.5, 0.5]])
    net.add("H", ["A"], cpt=[[0.2, 0.8], [0.5, 0.5]])
    net.add("Other", cpt=[0.5, 0.5])
    return TACModule(tacit.compile(net, "A", ["A", "B", "C"], ["H"]))


def test_to_observe_the_query_is_no_advice():
    module = TACModule(tacit.compile(tacit.examples.abc(), "B", ["A"]))
    with pytest.raises(tacit.EvidenceError, match=r"compiled for evidence on \['A'\]; leave it out$"):
        module({"A": torch.ones(1), "B": torch.ones(1)})
    with pytest.raises(tacit.EvidenceError, match=r"\['A'\]; name it in evidence= or hard=, or leave it out$"):
        module({"C": torch.ones(1)})


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"Othr": torch.ones(2)}, "evidence names 'Othr', which is not a variable of the .*; did you mean 'Other'"),
        ({"Other": torch.ones(2)}, r"evidence on 'Other', but the query was compiled for evidence on \['A', 'B', 'C'"),
        ({"A": [0.5, 0.5]}, "evidence on 'A' is a list, expected a tensor"),
        ({"A": torch.tensor([1, 0])}, "evidence on 'A' is a tensor of torch.int64 .* the likelihood of 'true'"),
        ({"A": torch.tensor(0.5)}, r"evidence on 'A' is a tensor of torch.float32 of shape \(\)"),
        ({"B": torch.ones(2)}, r"evidence on 'B' .* \(2,\), expected floats \(rows, 3\): a likelihood per state$"),
        ({"B": torch.ones((2, 2))}, r"evidence on 'B' .* shape \(2, 2\), expected floats \(rows, 3\)"),
        ({"C": torch.ones(2)}, r"evidence on 'C' .* expected floats \(rows, 2\): a likelihood per state$"),
        ({"H": torch.ones(2)}, r"evidence on 'H' .* expected integers \(rows,\): the positions"),
        ({"H": torch.tensor([True])}, "evidence on 'H' is a tensor of torch.bool"),
        ({"H": torch.tensor([0, 2])}, "evidence on 'H', row 1: 2 is not the position of a state, from 0 to 1"),
        ({"H": torch.tensor([0, -1])}, "evidence on 'H', row 1: -1 is not the position"),
        ({"A": torch.tensor([0.5, 1.5])}, "evidence on 'A', row 1: likelihoods must not be negative"),
        ({"B": torch.tensor([[1.0, 0.5, -0.5]])}, "evidence on 'B', row 0: likelihoods must not be negative"),
        ({"A": torch.ones(3), "B": torch.ones((2, 3))}, "evidence on 'B' has 2 rows, other columns have 3"),
        ({"A": torch.ones(0), "H": torch.ones(0, dtype=torch.int64)}, "the evidence has no rows"),
        (torch.ones((2, 3)), r"the evidence has shape \(2, 3\), expected \(rows, 4\): A, B, C, H"),
        (torch.ones((2, 4)), "evidence on 'B' is a tensor"),
    ],
)  # fmt: skip
def test_evidence_that_does_not_fit(evidence, message):
    if isinstance(evidence, dict):
        evidence = {"H": torch.tensor([0])} | evidence
    with pytest.raises(tacit.EvidenceError, match=message):
        three_kinds()(evidence)


def test_hard_evidence_is_needed():
    with pytest.raises(tacit.EvidenceError, match="no evidence on 'H', which the query was compiled to have"):
        three_kinds()({"A": torch.tensor([0.5])})


def test_half_precision_is_refused():
    with pytest.raises(tacit.TacitError, match=r"the module is in torch.float16, expected torch.float32"):
        three_kinds().half()({"H": torch.tensor([0])})


def test_torch_is_asked_for_by_name(monkeypatch):
    monkeypatch.delitem(sys.modules, "tacit.torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'torch>="):
        importlib.import_module("tacit.torch")


# with neural networks -------------------------------------------------------------------------------------


def test_a_neural_network_learns_through_the_circuit():
    torch.manual_seed(0)
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    perceive = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sigmoid())
    model = torch.nn.Sequential(perceive, TACModule(tacit.compile(net, "B", ["A"])).float())
    x = torch.linspace(-1, 1, 100)[:, None]
    y = (x[:, 0] > 0).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < losses[0]  # 0.025 is the least that B's noise leaves


@pytest.mark.parametrize("engine", ["tape", "torch"])
def test_mixed_precision_stays_outside(engine):
    net = tacit.examples.layer(4)
    module = TACModule(tacit.compile(net, "Q", ["E1", "E2"], engine=engine, dtype="float32"))
    table = torch.rand((10, 2), generator=torch.Generator().manual_seed(0))
    expected = module(table)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = module(table)
    close(found.detach(), expected.detach(), 1e-14)


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_fit_learns_on_the_torch_engine(optimizer):
    rng, net = np.random.default_rng(0), tacit.Network()
    net.add("E")
    net.add("T", ["E"], testing=True, gamma=16.0)
    net.add("Q", ["T"])
    x = rng.random(60)
    y = 0.2 + 0.6 * (x > 0.5)
    found = [
        tacit.fit(
            tacit.compile(net, "Q", ["E"], engine=engine), {"E": x}, y, optimizer=optimizer, steps=8, restarts=1,
            gamma="learn", progress=False,
        )
        for engine in ("tape", "torch")
    ]  # fmt: skip
    assert math.isclose(found[0].loss, found[1].loss, rel_tol=1e-6)
    close(posterior(found[1].tac, {"E": x}), posterior(found[0].tac, {"E": x}), 1e-5)


@pytest.mark.parametrize("name", ["neural_evidence", "knowledge_layer"])
def test_examples_run(name, monkeypatch, capsys):
    path = Path(__file__).parents[2] / "docs" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "STEPS", 2)
    example.main()
    assert "nan" not in capsys.readouterr().out


# GPU ------------------------------------------------------------------------------------------------------


@CUDA
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_on_a_gpu(dtype):
    net = holed()
    evidence = tensors(net, soft_rows(net, ["A", "Q"], 50)) | {"C": torch.arange(50) % 4}
    module = TACModule(tacit.compile(net, "Z", ["A", "Q"], ["C"]), slopes=True).to(dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    expected = module(evidence)
    (by_weight,) = torch.autograd.grad(expected[:, 0].sum(), module.weights)
    module.cuda()
    moved = {n: t.cuda() for n, t in evidence.items()}
    found = module(moved)
    assert found.is_cuda
    close(found.detach().cpu(), expected.detach(), tolerance)
    close(torch.autograd.grad(found[:, 0].sum(), module.weights)[0].cpu(), by_weight, 100 * tolerance)
    trained(module, moved)
    close(module.cpu()(evidence).detach(), module.cuda()(moved).detach().cpu(), tolerance)
