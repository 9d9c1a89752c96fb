"""What is structural: exact 0s, and 1s beside nothing else. A 1 beside a tiny number is free."""

import numpy as np
import pytest

import tacit
from tacit import CPT, NoisyOr, TestingCPT
from tacit.learn.fitting.parameters import Parameters
from tacit.learn.placing.refitting import open_table
from tacit.model.elements.distributions import structural
from tests.helpers import close

TINY = [[1.0, 1e-20], [0.4, 0.6]]


def test_a_one_is_structural_where_its_row_has_nothing_else():
    table = np.array([[1.0, 0.0, 0.0], [1.0, 5e-324, 0.0], [np.nan, 0.5, 0.0]])
    assert structural(table).tolist() == [[True, True, True], [False, False, True], [False, False, True]]


def pair(cpt):
    net = tacit.Network()
    net.add("A", cpt=CPT([0.3, 0.7], learn=True))
    net.add("B", ["A"], cpt=cpt)
    return net


@pytest.mark.parametrize(
    ("cpt", "part"),
    [
        (CPT(TINY, learn=True), "table"),
        (CPT(TINY, learn=True, tie="both"), "table"),
        (TestingCPT(TINY, TINY, [0.0, 0.0], learn=True), "plus"),
        (TestingCPT(TINY, TINY, [1.0, 1.0], test=">", learn=True), "minus"),
    ],
)
def test_a_one_beside_a_tiny_number_is_estimated(cpt, part):
    net = pair(cpt)
    if cpt.tie:
        net.add("C", ["A"], cpt=cpt)
    rows = {"A": ["true"] * 10 + ["false"] * 10, "B": ["true"] * 10 + ["false"] * 9 + [None]}
    found = tacit.estimate(net, rows, prior=1.0, tolerance=1e-15, progress=False)
    assert found.converged
    assert found.parameters == (3 if part == "table" else 5)
    close(found.network.table("A"), [0.5, 0.5])
    close(found.network.cpt("B").parts()[part], [[11 / 12, 1 / 12], [1 / 11, 10 / 11]], 1e-9)
    if cpt.tie:
        assert found.network.cpt("C") == found.network.cpt("B")


def test_what_em_ends_with_can_be_estimated_again():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=CPT([[0.9, 0.1], [0.2, 0.8]], learn=True))
    rows = {"A": ["true"] * 50 + [None], "B": ["true"] * 50 + ["false"]}
    first = tacit.estimate(net, rows, progress=False, tolerance=0, steps=60).network
    assert first.table("B")[0, 0] == 1
    assert 0 < first.table("B")[0, 1] < 1e-20
    assert first.table("B")[1].tolist() == [0, 1]
    wrong = tacit.estimate(first, rows, prior=0.5, tolerance=1e-15, progress=False).network.table("B")[0, 1]
    among = wrong / (wrong + 1)  # how probable it is that the last row is one of A = true
    close(wrong, (among + 0.5) / (50 + among + 1), 1e-9)


def test_a_prior_too_small_to_leave_a_trace_is_no_end():
    """Its share of a row is rounded to 0, which is no reason to learn nothing."""
    net = pair(CPT([[0.9, 0.1], [0.4, 0.6]], learn=True))
    rows = {"A": ["true"] * 1000, "B": ["true"] * 999 + [None]}
    close(tacit.estimate(net, rows, prior=1e-322, progress=False).network.table("A"), [1, 0])
    net = tacit.Network()
    net.add("A", cpt=CPT([0.3, 0.7], learn=True))
    net.add("B", cpt=NoisyOr([], leak=0.2, learn=True))
    rows = {"A": ["true"] * 10 + ["false"] * 10, "B": ["true"] * 20}
    found = tacit.estimate(net, rows, prior=1e-17, progress=False).network
    close(found.table("A"), [0.5, 0.5])
    assert found.cpt("B").leak == 1


def test_tiny_causes_are_learned():
    net = pair(NoisyOr([1e-20], leak=1e-20, learn=True))
    rows = {"A": ["true"] * 10 + ["false"] * 10, "B": ["true"] * 5 + ["false"] * 14 + [None]}
    found = tacit.estimate(net, rows, prior=1.0, tolerance=1e-14, progress=False)
    other = tacit.estimate(pair(NoisyOr([0.5], leak=0.5, learn=True)), rows, prior=1.0, tolerance=1e-14, progress=False)
    close(found.network.table("B"), other.network.table("B"), 1e-6)
    assert found.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-7)


def test_a_noisy_or_keeps_tiny_probabilities():
    net = tacit.Network()
    for name in "AC":
        net.add(name, cpt=[0.5, 0.5])
    net.add("B", ["A", "C"], cpt=NoisyOr([1e-20, 3e-30], leak=1e-40))
    expected = [[1e-20 + 3e-30, 1e-20], [3e-30, 1e-40]]
    np.testing.assert_allclose(net.table("B")[..., 0], expected, rtol=1e-9)
    found = tacit.compile(net, ("A", "C"), ["B"]).posterior({"B": "true"})[0]
    np.testing.assert_allclose(found, expected / np.sum(expected), rtol=1e-9)


def test_fitting_can_leave_a_row_of_one_and_tiny():
    net = pair(CPT(TINY, learn=True))
    parameters = Parameters(net, ["B"])
    assert parameters.count == 2
    filled = parameters.fill(np.zeros(2))
    close(filled.table("B"), [[0.5, 0.5], [0.5, 0.5]])


def test_opening_a_table_opens_such_a_row():
    assert np.isnan(open_table(CPT(TINY))).all()


@pytest.mark.parametrize("engine", ["numpy", "tape", "native", "torch"])
@pytest.mark.parametrize(("evidence", "diagrams"), [("A", False), ("B", True)])
def test_new_numbers_give_the_answers_of_a_new_query(engine, evidence, diagrams, monkeypatch):
    if diagrams:
        for name, value in {"KNOWN_SHARE": -1.0, "MIN_WORK": 0, "WEIGHT_OF_NUMBERS": 0, "CLEARLY_CHEAPER": 0}.items():
            monkeypatch.setattr(f"tacit.compiler.strategy.{name}", value)
    nets = []
    for row in ([1.0, 1e-20], [0.3, 0.7]):
        net = tacit.Network()
        net.add("A", cpt=CPT(row, learn=True))
        net.add("B", ["A"], cpt=CPT([[1.0, 1e-20], row], learn=True))
        nets.append(net)
    tac, anew = (tacit.compile(net, "A", [evidence], engine=engine) for net in nets)
    assert tac.program.structured == diagrams
    known, running = tac.read({evidence: [0.2, 1.0, 0.0]}), tac.engine().clone()
    running.update({(name, "table"): nets[1].table(name) for name in "AB"}, {})
    close(running.posterior(known.columns, known.rows), anew.posterior(known))


def test_circuits_take_other_numbers():
    net = pair(CPT(TINY, learn=True))
    circuit = tacit.compile(net, "A", ["B"]).circuit()
    numbers = np.where(circuit.number == 1e-20, 0.7, circuit.number)
    assert (circuit.kind == circuit.kind[np.flatnonzero(circuit.number == 1e-20)[0]]).sum() == 6
    close(circuit.evaluate({"B": ["false"]}, numbers)[0, 0], 0.3 * 0.7)
