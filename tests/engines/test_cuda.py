"""The engine for GPUs: a clear error without one, else the answers and derivatives of the others.

Where there is no GPU, this processor does the work of one.
"""

import numpy as np
import pytest

import tacit
from tacit import EvidenceError, TacitError, examples
from tacit.engines.cuda import cuda_engine as engine_module
from tacit.engines.cuda import driver as cuda
from tests.engines import emulated_gpu


def close(found, expected, bar=1e-12):
    np.testing.assert_allclose(found, expected, rtol=bar, atol=bar)


def has_gpu():
    try:
        cuda.driver()
    except TacitError:
        return False
    return True


HAS_GPU = has_gpu()


@pytest.fixture
def gpu(monkeypatch):
    """One that is there, or emulated."""
    if not HAS_GPU:
        emulated_gpu.emulate(monkeypatch)
    yield
    emulated_gpu.check_memory()


GPU = pytest.mark.usefixtures("gpu")
ENGINES = ("cuda", "numpy")


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_without_a_gpu_the_error_says_so():
    with pytest.raises(TacitError, match="engine='cuda' needs"):
        tacit.compile(examples.abc(), "B", ["A"], engine="cuda")


@GPU
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", ["likelihoods", "labels", "hard", "first", "one row"])
def test_evidence_in_every_form(form, dtype):
    rng, rows, net = np.random.default_rng(0), 1000, examples.abc()
    soft = {"likelihoods": rng.random((rows, 2)) + 0.01, "first": rng.random(rows), "one row": "lo"}
    column = soft.get(form, rng.choice(["lo", "hi"], rows))
    roles = {"hard": ["C"], "evidence": ["A"]} if form == "hard" else {"evidence": ["A", "C"]}
    own, reference = (tacit.compile(net, "B", engine=e, dtype=dtype, **roles) for e in ("cuda", "numpy"))
    evidence = {"A": rng.random(rows), "C": column}
    bar = 1e-12 if dtype == "float64" else 1e-5
    close(own.posterior(evidence), reference.posterior(evidence), bar)
    close(own.joint(evidence), reference.joint(evidence), bar)


@GPU
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_are_likelihoods_made_on_the_host(dtype):
    """The last rows rule out the state that explains the number, so that what underflows beside it counts."""
    net = tacit.Network()
    net.add("Fault", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[0, 60, 61], sd=[1, 1, 1]))
    net.add("Alarm", ["Fault"], cpt=[[0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    own, reference = (tacit.compile(net, "Fault", ["Heat", "Alarm"], engine=e, dtype=dtype) for e in ("cuda", "numpy"))
    usual, far = ({"Heat": [60.2, np.nan, 0.3, *more], "Alarm": ["true", None, "false", *["true"] * len(more)]}
                  for more in ([], [0.5, 0.7]))  # fmt: skip
    bar = 1e-12 if dtype == "float64" else 1e-5
    for evidence in (usual, far):
        close(own.posterior(evidence), reference.posterior(evidence), bar)
        close(own.log_evidence(evidence), reference.log_evidence(evidence), bar)
        found, expected = own.marginals(evidence), reference.marginals(evidence)
        close(found["Alarm"], expected["Alarm"], bar)


@GPU
def test_rows_come_and_go_in_blocks(monkeypatch):
    monkeypatch.setattr(engine_module, "BLOCK_ROWS", (64, 100))
    net, rng = examples.abc(), np.random.default_rng(0)
    own, reference = (tacit.compile(net, "B", ["A", "C"], engine=e) for e in ("cuda", "numpy"))
    evidence = {"A": rng.random(1001), "C": rng.random((1001, 2))}
    close(own.posterior(evidence), reference.posterior(evidence))


@GPU
def test_wrong_and_missing_likelihoods():
    own, reference = (tacit.compile(examples.abc(), "B", ["A", "C"], engine=e) for e in ("cuda", "numpy"))
    gaps = np.array([[0.2, 0.8], [np.nan, np.nan], [5e-324, 1e-310], [1e300, 1e308]])
    close(own.joint({"C": gaps}), reference.joint({"C": gaps}))
    for bad in ([-0.1, 0.5], [np.nan, 0.5], [0.0, 0.0], [np.inf, 1.0]):
        with pytest.raises(EvidenceError, match="row 2"):
            own.posterior({"C": [[0.2, 0.8], [0.5, 0.5], bad]})


@GPU
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_leaves_the_range_of_floats_is_computed_again(dtype):
    net, rng = examples.hmm(200), np.random.default_rng(0)
    names = [f"E{t}" for t in range(1, 201)]
    own, reference = (tacit.compile(net, "H200", names, engine=e, dtype=dtype) for e in ("cuda", "numpy"))
    evidence = {n: rng.dirichlet(np.ones(2), 50) for n in names}
    evidence["E7"][3], evidence["E8"][3] = [1e-30, 1.0], [1.0, 1e-30]
    bar = 1e-10 if dtype == "float64" else 1e-4
    close(own.posterior(evidence), reference.posterior(evidence), bar)
    close(own.log_evidence(evidence), reference.log_evidence(evidence), 1e-9 if dtype == "float64" else 1e-2)


@GPU
@pytest.mark.parametrize("gamma", [None, 8.0])
def test_derivatives(gamma):
    net, rng = examples.abc().with_gamma(gamma), np.random.default_rng(0)
    evidence = {"A": rng.random(333), "C": rng.random((333, 2)) + 0.1}
    found = []
    for name in ("cuda", "native"):
        tac = tacit.compile(net, "B", ["A", "C"], engine=name)
        columns = tac.read(evidence).columns
        found.append(tac.engine().gradients(columns, 333, np.ones((2, 333)) * [[1.0], [0.5]], 0))
    own, expected = found
    for key, table in expected.tables.items():
        close(own.tables[key], table, 1e-10)
    for name, likelihoods in expected.likelihoods.items():
        close(own.likelihoods[name], likelihoods, 1e-11)
    assert own.slopes == pytest.approx(expected.slopes)


@GPU
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_of_what_is_rescaled(dtype):
    net, rng, rows = examples.hmm(12), np.random.default_rng(0), 150
    names = [f"E{t}" for t in range(1, 13)]
    evidence = {n: rng.dirichlet(np.ones(2), rows) for n in names[::2]}
    evidence |= {n: rng.choice(net.states(n), rows) for n in names[1::2]}
    evidence["E1"][3] = [1e-60, 1.0]  # which is too small for float32
    roles = {"evidence": names[::2], "hard": names[1::2]}
    own, reference = (tacit.compile(net, "H12", **roles, engine=e, dtype=d).engine() for e, d in
                      (("cuda", dtype), ("numpy", "float64")))  # fmt: skip
    columns = tacit.compile(net, "H12", **roles).read(evidence).columns
    seeds, exponent = rng.random((2, rows)), reference.run(columns, rows).exponent
    found, expected = (engine.gradients(columns, rows, seeds, exponent) for engine in (own, reference))
    bar = 1e-10 if dtype == "float64" else 1e-4
    for key, table in expected.tables.items():
        close(found.tables[key], table, bar * max(1.0, np.abs(table).max()))
    for name, table in expected.likelihoods.items():
        close(found.likelihoods[name], table, bar)


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.parametrize("engine", ["cuda", "auto", "torch"])
def test_modules_agree_with_those_of_the_cpu(engine):
    torch, modules = pytest.importorskip("torch"), pytest.importorskip("tacit.torch")
    net = examples.abc().learnable().with_gamma(8.0)
    rng, results = np.random.default_rng(0), []
    a, c = rng.random(777), rng.random((777, 2)) + 0.1
    for device in ("cpu", "cuda"):
        tac = tacit.compile(net, "B", ["A", "C"], engine=engine if device == "cuda" else "tape")
        module = modules.TACModule(tac, slopes=True).to(device)
        given = [torch.tensor(x, device=device, requires_grad=True) for x in (a, c)]
        posterior = module({"A": given[0], "C": given[1]})
        loss = (posterior[:, 0] ** 2).sum()
        grads = torch.autograd.grad(loss, [module.weights, *given], create_graph=True)
        plain = torch.autograd.grad((module({"A": given[0], "C": given[1]})[:, 0] ** 2).sum(), [module.weights, *given])
        second = torch.autograd.grad(grads[0].square().sum(), module.weights)
        results.append([t.detach().cpu().numpy() for t in (posterior, *grads, *plain, *second)])
    for own, expected in zip(*results, strict=True):
        close(own, expected, 1e-9)


@GPU
def test_learning():
    net, rng = examples.abc().learnable().with_gamma(8.0), np.random.default_rng(0)
    evidence, y = {"A": rng.random(200), "C": rng.random((200, 2)) + 0.1}, rng.random(200)
    losses = []
    for engine in ("cuda", "tape"):
        tac = tacit.compile(net, "B", ["A", "C"], engine=engine)
        losses.append(tacit.fit(tac, evidence, y, optimizer="adam", steps=20, restarts=1, progress=False).loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@GPU
@pytest.mark.parametrize("gamma", [None, 8.0])
def test_kernels_on_tensors(monkeypatch, gamma):
    torch, tensors = pytest.importorskip("torch"), pytest.importorskip("tacit.engines.cuda.tensors")
    net, rng, rows = examples.abc().with_gamma(gamma), np.random.default_rng(0), 77
    monkeypatch.setattr(engine_module, "SCRATCH_ROWS", 32)  # several parts
    own, reference = (tacit.compile(net, "B", ["A", "C"], engine=e).engine() for e in ("cuda", "numpy"))
    query = tensors.DeviceQuery(own)
    if not HAS_GPU:
        query.device = torch.device("cpu")
        monkeypatch.setattr(query, "_stream", lambda: 0)
    likelihoods = {"A": rng.dirichlet(np.ones(2), rows).T.copy(), "C": rng.dirichlet(np.ones(2), rows).T.copy()}
    columns = tacit.compile(net, "B", ["A", "C"]).read({n: own_.T for n, own_ in likelihoods.items()}).columns
    on_device = {n: torch.as_tensor(own_, device=query.device) for n, own_ in likelihoods.items()}
    evidence, constants = query.evidence(on_device, {}, rows), torch.as_tensor(own.constants(query.tape))
    joint, imprecise = query.forward(constants.to(query.device), evidence)
    results = reference.run(columns, rows)
    close(joint.cpu(), results.joint)
    assert not imprecise.any()
    seeds = rng.random((2, rows))
    by_constant, by_input = query.backward(
        constants.to(query.device), evidence, torch.as_tensor(seeds, device=query.device), True
    )
    expected = reference.gradients(columns, rows, seeds, results.exponent)
    found = own._collected(query.tape, by_constant.cpu().numpy(), np.empty((0, 0)))
    for key, table in expected.tables.items():
        close(found.tables[key], table, 1e-10)
    for name, table in expected.likelihoods.items():
        close(by_input[name].cpu(), table, 1e-11)


@GPU
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("hard", [(), ("A",)])
def test_tables_of_rows(hard, dtype):
    net, rng = examples.abc(), np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(2), (300, 2))
    tables[7, 0] = [1e-300, 1.0]  # which is too small for float32
    column = rng.choice(net.states("A"), 300) if hard else rng.random(300)
    evidence, roles = {"A": column, "C": "lo", "C.table": tables}, {"hard": hard, "per_row": ["C"], "dtype": dtype}
    own, reference = (tacit.compile(net, "B", ["C", *(() if hard else "A")], engine=e, **roles) for e in ENGINES)
    bar = 1e-12 if dtype == "float64" else 1e-5
    close(own.posterior(evidence), reference.posterior(evidence), bar)
    close(own.log_evidence(evidence), reference.log_evidence(evidence), bar)
    close(own.marginals(evidence)["A"], reference.marginals(evidence)["A"], bar)
