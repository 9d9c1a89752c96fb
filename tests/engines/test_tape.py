"""The tape: the same answers as the reference, exact derivatives, and scales that hold on long chains."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, examples, semantics
from tacit.cpt import TestingCPT
from tacit.engines import choose
from tacit.engines.tape import TapeEngine
from tests.conformance_files import network, read
from tests.helpers import always_hard, close, impossible, posterior
from tests.strategies import queries, tie_margin


@impossible
@given(queries())
def test_the_tape_agrees_with_the_reference(case):
    net, query, evidence = case
    hard = always_hard(net, evidence)
    for roles in ({"evidence": list(evidence)}, {"hard": hard, "evidence": [n for n in evidence if n not in hard]}):
        tape, reference = (tacit.compile(net, query, **roles, engine=e) for e in ("tape", "numpy"))
        if tie_margin(net, evidence) > 1e-9:
            close(tape.joint(evidence), reference.joint(evidence))
            close(posterior(tape, evidence), posterior(reference, evidence), 1e-11)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 63, 64, 65, 1000])
def test_tiles_of_any_width_give_the_same_rows(rows):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="tape")
    a = np.random.default_rng(0).random(rows)
    close(tac.posterior({"A": a, "C": "lo"}), semantics.posterior(examples.abc(), "B", {"A": a, "C": "lo"}))


def test_threads_give_the_same_answer():
    net = examples.hmm(300)
    tac = tacit.compile(net, "H300", [f"E{t}" for t in range(1, 301)], engine="tape")
    evidence = {f"E{t}": np.random.default_rng(t).dirichlet(np.ones(2), 4000) for t in range(1, 301)}
    tac.engine().threads = 1
    alone = tac.posterior(evidence)
    tac.engine().threads = 3
    np.testing.assert_array_equal(tac.posterior(evidence), alone)


def test_float32_is_close_and_is_float32():
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine="tape", dtype="float32")
    found = tac.posterior({"A": [0.8, 0.1], "C": [[0.6, 0.4]] * 2})
    assert found.dtype == np.float32
    close(found, semantics.posterior(examples.abc(), "B", {"A": [0.8, 0.1], "C": [[0.6, 0.4]] * 2}), 1e-6)


def test_wide_matrix_products_are_left_to_numpy():
    rng = np.random.default_rng(0)
    net = examples.layer(16)
    tables = {n: examples._random_testing(rng, 2, 2) for n in net.testing_nodes}
    tables |= {"E1": [0.5, 0.5], "E2": [0.3, 0.7], "Q": rng.dirichlet(np.ones(2), size=(2,) * 16)}
    assert choose(tacit.compile(net.with_cpts(tables), "Q", ["E1", "E2"]).program) == "numpy"
    assert choose(tacit.compile(examples.abc(), "B", ["A"]).program) == "tape"


# derivatives ----------------------------------------------------------------------------------------------


def loss_and_gradients(net, query, evidence, target):
    """The mean squared error of P*(first state), and its derivatives, from two sweeps over the tape."""
    tac = tacit.compile(net, query, list(evidence), engine="tape")
    engine, known = tac.engine(), tac._read(evidence)
    assert isinstance(engine, TapeEngine)
    result = engine.run(known.columns, known.rows)
    total = result.joint.sum(axis=0)
    p = result.joint[0] / total
    by_p = 2 * (p - target) / known.rows
    seeds = np.zeros_like(result.joint) - p * by_p / total
    seeds[0] += by_p / total
    return float(((p - target) ** 2).mean()), engine.gradients(known.columns, known.rows, seeds)


@pytest.mark.parametrize("case", read("grads.json")["cases"], ids=lambda c: c["id"])
def test_reference_gradients(case):
    net = network(case["network"])
    assert case["state"] == 0
    names = case["data"][0]["evidence"]
    evidence = {n: np.array([d["evidence"][n] for d in case["data"]]) for n in names}
    loss, found = loss_and_gradients(net, case["query"], evidence, np.array([d["label"] for d in case["data"]]))
    assert abs(loss - case["loss"]) < 1e-12
    for node in case["logits"]:
        name = node["name"]
        for key, part in (("z", "table"), ("z_plus", "plus"), ("z_minus", "minus")):
            if key in node:
                weights = np.exp(np.array(node[key]))
                theta = weights / weights.sum(axis=-1, keepdims=True)
                by_theta = found.tables[name, part].reshape(theta.shape)
                by_logit = theta * (by_theta - (by_theta * theta).sum(axis=-1, keepdims=True))
                close(by_logit, case["grad"][name][key], 1e-8)
        if "thresholds" in node:
            close(found.tables[name, "thresholds"].ravel(), case["grad"][name]["thresholds"], 1e-8)


def moved(net: Network, name: str, part: str, index: tuple[int, ...], by: float) -> Network:
    """The network with one number changed; rows no longer sum to 1, which only the checks mind."""
    cpt = net.cpt(name)
    table = getattr(cpt, part).copy()
    table[index] += by
    table.flags.writeable = False
    copy = net.copy()
    changed = copy.cpt(name).with_gamma(cpt.gamma) if isinstance(cpt, TestingCPT) else tacit.CPT(cpt.table)
    setattr(changed, part, table)
    return copy.with_cpts({name: changed})


def sigmoid_network(seed: int) -> Network:
    """A small network with selections below selections, above and beside evidence."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("A", cpt=rng.dirichlet(np.ones(2)))
    net.add("B", ["A"], 3, _sigmoid(rng, (2,), 3))
    net.add("C", ["A", "B"], cpt=_sigmoid(rng, (2, 3), 2))
    net.add("D", ["C"], cpt=rng.dirichlet(np.ones(2), size=2))
    net.add("Q", ["B", "D"], cpt=_sigmoid(rng, (3, 2), 2))
    return net


def _sigmoid(rng: np.random.Generator, parents: tuple[int, ...], k: int) -> TestingCPT:
    plus, minus = rng.dirichlet(np.ones(k), size=(2, *parents))
    test = rng.choice([">=", "<"], size=parents)
    return TestingCPT(plus, minus, rng.random(parents), test, gamma=float(rng.uniform(1, 20)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("observed", [["A", "D"], ["B"], ["A", "B", "C", "D", "Q"], []])
def test_derivatives_are_finite_differences(seed, observed):
    net, rng = sigmoid_network(seed), np.random.default_rng(seed)
    evidence = {n: rng.dirichlet(np.ones(len(net.states(n))), 5) for n in observed}
    target = rng.random(5 if observed else 1)
    _, found = loss_and_gradients(net, "Q", evidence, target)
    step = 1e-6

    def loss(changed: Network) -> float:
        p = tacit.compile(changed, "Q", observed, engine="numpy").posterior(evidence)[:, 0]
        return float(((p - target) ** 2).mean())

    for (name, part), table in found.tables.items():
        if part == "test":
            continue
        for index in np.ndindex(table.shape):
            numeric = (loss(moved(net, name, part, index, step)) - loss(moved(net, name, part, index, -step))) / (
                2 * step
            )
            assert abs(numeric - table[index]) < 1e-6
    for name, by_gamma in found.slopes.items():
        cpt = net.cpt(name)
        up, down = (loss(net.with_cpts({name: cpt.with_gamma(cpt.gamma + d)})) for d in (step, -step))
        assert abs((up - down) / (2 * step) - by_gamma) < 1e-6


def test_hard_tests_pass_no_derivative_to_thresholds_but_some_to_the_selected_rows():
    _, found = loss_and_gradients(examples.abc(), "B", {"A": np.array([0.8, 0.3]), "C": np.ones((2, 2))}, 0.2)
    assert not np.any(found.tables.get(("B", "thresholds"), 0.0))
    assert np.any(found.tables["B", "plus"])


@impossible
@given(queries(), st.booleans())
def test_marginals_are_the_posteriors_of_all_variables(case, compile_hard):
    net, query, evidence = case
    if tie_margin(net, evidence) < 1e-9:
        return
    hard = always_hard(net, evidence) if compile_hard else []
    tac = tacit.compile(net, query, [n for n in evidence if n not in hard], hard)
    for name, found in tac.marginals(evidence).items():
        close(found, semantics.posterior(net, name, evidence), 1e-10)


# long chains ----------------------------------------------------------------------------------------------


def chain(length: int, seed: int = 0) -> tuple[Network, dict[str, np.ndarray]]:
    """A chain of testing nodes with soft evidence on every node."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("T0", cpt=rng.dirichlet(np.ones(2)))
    for i in range(1, length + 1):
        net.add(f"T{i}", [f"T{i - 1}"], cpt=examples._random_testing(rng, 2))
    return net, {n: rng.dirichlet(np.ones(2), 2) for n in net}


def by_hand(net: Network, evidence: dict[str, np.ndarray], row: int, number, scaled: bool):
    """The last node's posterior by the definition, in any arithmetic: the chain filtered forwards."""

    def likelihood(name: str) -> list:
        values = [number(float(x)) for x in evidence[name][row]]
        return [v / sum(values) for v in values]

    alpha = [number(float(p)) * w for p, w in zip(net.cpt("T0").table, likelihood("T0"), strict=True)]
    for name in net.variables[1:]:
        cpt, total = net.cpt(name), sum(alpha)
        rows = [cpt.plus[u] if alpha[u] >= total * number(float(cpt.thresholds[u])) else cpt.minus[u] for u in range(2)]
        w = likelihood(name)
        alpha = [w[x] * sum(alpha[u] * number(float(rows[u][x])) for u in range(2)) for x in range(2)]
        if scaled:
            alpha = [a / sum(alpha) for a in alpha]
    return np.array([float(a / sum(alpha)) for a in alpha])


@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_a_chain_agrees_with_exact_rational_arithmetic(engine):
    net, evidence = chain(60)
    found = tacit.compile(net, "T60", list(net), engine=engine).posterior(evidence)
    for row in range(2):
        close(found[row], by_hand(net, evidence, row, Fraction, scaled=False), 1e-10)


@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_a_chain_of_2000_does_not_underflow(engine):
    net, evidence = chain(2000)
    tac = tacit.compile(net, "T2000", list(net), engine=engine)
    assert (tac.log_evidence(evidence) < -1000).all()  # far below the smallest float64
    for row in range(2):
        close(tac.posterior(evidence)[row], by_hand(net, evidence, row, np.longdouble, scaled=True), 1e-10)
