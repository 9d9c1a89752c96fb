"""The tape: the same answers as the reference, exact derivatives, and scales that hold on long chains."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import Network, examples, semantics
from tacit.engines import choose
from tacit.examples import paper
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
    tables = {n: paper.random_testing_cpt(rng, 2, 2) for n in net.testing_nodes}
    tables |= {"E1": [0.5, 0.5], "E2": [0.3, 0.7], "Q": rng.dirichlet(np.ones(2), size=(2,) * 16)}
    assert choose(tacit.compile(net.with_cpts(tables), "Q", ["E1", "E2"]).program) == "numpy"
    assert choose(tacit.compile(examples.abc(), "B", ["A"]).program) == "tape"


# derivatives ----------------------------------------------------------------------------------------------


@impossible
@given(queries(), st.booleans())
def test_marginals_are_the_posteriors_of_all_variables(case, compile_hard):
    net, query, evidence = case
    assume(tie_margin(net, evidence) > 1e-9)
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
        net.add(f"T{i}", [f"T{i - 1}"], cpt=paper.random_testing_cpt(rng, 2))
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


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_a_chain_of_2000_does_not_underflow(engine):
    net, evidence = chain(2000)
    tac = tacit.compile(net, "T2000", list(net), engine=engine)
    assert (tac.log_evidence(evidence) < -1000).all()  # far below the smallest float64
    for row in range(2):
        close(tac.posterior(evidence)[row], by_hand(net, evidence, row, np.longdouble, scaled=True), 1e-10)
