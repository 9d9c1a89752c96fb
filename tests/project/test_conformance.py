"""The definition in `semantics.py`, and compiled queries, against the reference values."""

import math

import numpy as np
import pytest

import tacit
from tacit import examples, semantics
from tests.conformance_files import network, queries, read
from tests.helpers import ENGINES, FEW_CASES, TOLERANCE, close, posterior, selected

SMALL = [q for q in queries() if math.prod(len(q.net.states(n)) for n in q.net) <= semantics.MAX_STATES]
LARGE = [q for q in queries() if q not in SMALL]
# every query with all its evidence in evidence=, and once more with what is always observed in hard=
WAYS = [(i, ()) for i in range(len(queries()))] + [(i, q.all_hard) for i, q in enumerate(queries()) if q.all_hard]
WAYS = WAYS[::5] if FEW_CASES else WAYS


def name_of(way):
    i, hard = way
    return f"{queries()[i].case}-{queries()[i].query}{'-hard' * bool(hard)}"


def compiled(i, hard):
    """A query, compiled once for all engines: the program is the same."""
    q = queries()[i]
    return tacit.compile(q.net, q.query, [n for n in q.evidence_vars if n not in hard], hard, engine="numpy")


def check_answers(q, tac, engine):
    """Joint, posterior and selection of all rows on an engine."""
    tac = tac if engine == "numpy" else tac.with_network(q.net, engine=engine)
    joint = tac.joint(q.evidence)
    close(joint, q.joint)
    close(posterior(tac, q.evidence), q.posterior)  # counts the rows in its warning
    assert (joint[np.isnan(q.posterior).any(axis=1)] == 0).all()
    check_selection(q, selected(tac, q.evidence))


def check_selection(q, decided):
    """The posteriors of parents and the weights of tables, of all testing nodes that the query needs."""
    for i, row in enumerate(q.rows):
        for name, expected in row.get("parent_posterior", {}).items():
            if name in decided:
                parents = decided[name].posterior[i].ravel()
                close(parents, np.full(parents.shape, np.nan) if expected is None else expected)
        for name, expected in row.get("tau", {}).items():
            if name in decided:
                close(decided[name].weight[i].ravel(), expected)


def check_circuit(q, circuit):
    """The joint by the scalar circuit."""
    joint = circuit.evaluate(q.evidence)
    close(joint, q.joint)
    assert (joint[np.isnan(q.posterior).any(axis=1)] == 0).all()


def test_the_files_are_complete():
    assert len({q.case for q in queries()}) == 254
    assert sum(len(q.rows) for q in queries()) == 2942
    assert len({q.case for q in SMALL}) == 239


@pytest.mark.parametrize("q", SMALL, ids=lambda q: f"{q.case}-{q.query}")
def test_joint_and_posterior(q):
    joint = semantics.joint(q.net, q.query, q.evidence)
    posterior = semantics.posterior(q.net, q.query, q.evidence)
    np.testing.assert_allclose(joint, q.joint, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(posterior, q.posterior, rtol=0, atol=TOLERANCE)
    impossible = np.isnan(q.posterior).any(axis=1)
    assert (joint[impossible] == 0).all()


@pytest.mark.parametrize("q", SMALL, ids=lambda q: f"{q.case}-{q.query}")
def test_selection(q):
    for row in q.rows:
        if "tau" not in row:
            continue
        evidence = {name: [values] for name, values in row["evidence"].items()}
        selection = semantics.select(q.net, evidence)
        for name, expected in row.get("parent_posterior", {}).items():
            found = selection.nodes[name].posterior.ravel()
            expected = np.full(found.shape, np.nan) if expected is None else expected
            np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
        for name, expected in row["tau"].items():
            np.testing.assert_allclose(selection.nodes[name].weight.ravel(), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("q", LARGE, ids=lambda q: f"{q.case}-{q.query}")
def test_too_large_to_enumerate(q):
    with pytest.raises(tacit.TooLargeError, match=r"enumeration would visit .* compile the query"):
        semantics.joint(q.net, q.query, q.evidence)


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_compiled(way):
    q, tac = queries()[way[0]], compiled(*way)
    for engine in ENGINES:
        if engine != "native" or WAYS.index(way) % 10 == 0:  # each is compiled to machine code: the others are slow
            check_answers(q, tac, engine)
    for fold in (True, False):
        check_circuit(q, tac.circuit(fold))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_compiled_to_machine_code(way):
    check_answers(queries()[way[0]], compiled(*way), "native")


EXPECTED_MESSAGES = {
    "testing-root": "node 'A': a testing node needs parents",
    "row-sum": "node 'A': table sums to 1.1, expected 1",
    "plus-row-sum": "plus, parent state (1,): sums to 0.9, expected 1",
    "minus-row-sum": "minus, parent state (0,): sums to 0.9, expected 1",
    "negative": "node 'A': table is wrong: 1.5 is not a probability in [0, 1]",
    "threshold-range": "thresholds, parent state (0,): 1.2 is not a threshold in [0, 1]",
    "threshold-count": "thresholds have shape (1,), expected (2,)",
    "unknown-op": "unknown test '==', expected one of >=, >, <=, <",
    "missing-row": "plus has shape (1, 2) but minus (2, 2)",
    "cycle": "node 'A': parent 'B' is not in the network; add parents before their children",
    "unknown-parent": "node 'B': parent 'C' is not in the network",
    "duplicate-name": "node 'A' is in the network already",
    "lambda-negative": "evidence on 'A', row 0: [1.5, -0.5]: likelihoods must not be negative",
    "lambda-length": "evidence on 'A' has shape (1, 3), expected (rows, 2)",
    "lambda-unknown": "evidence names 'X', which is not a variable",
    "nan-param": "node 'A': table has unset numbers",
}


@pytest.mark.parametrize("case", read("invalid.json")["cases"], ids=lambda c: c["id"])
def test_invalid_input_is_refused(case):
    def build_and_ask():
        evidence = {name: [values] for name, values in case["evidence"].items()}
        semantics.joint(network(case["network"]), case["query"], evidence)

    with pytest.raises(tacit.TacitError) as error:
        build_and_ask()
    assert EXPECTED_MESSAGES[case["id"]] in str(error.value)


def test_counts():
    expected = read("counts.json")
    counts = examples.diamond().counts()
    assert counts.parameters == expected["diamond"]["tbn_parameters"] == 30
    assert (counts.static, counts.dynamic, counts.thresholds) == (6, 24, 6)
    bn = examples.diamond().select()
    assert bn.counts().parameters == expected["diamond"]["bn_parameters"] == 18
    for n in (4, 8, 16):
        counts = examples.layer(n).counts()
        grid = expected["grid_experiment_tbn"][f"n{n}"]
        assert (counts.static, counts.dynamic, counts.thresholds) == (
            grid["static"],
            grid["dynamic"],
            grid["thresholds"],
        )
