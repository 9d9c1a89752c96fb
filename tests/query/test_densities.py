"""Queries about networks with continuous variables, against the definition and against 60 digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import semantics as definition
from tests import exact
from tests.helpers import ENGINES, ENGINES_OF_MANY, close, decided, impossible, tries
from tests.strategies import continuous_networks, evidence, numbers, rngs

ROWS = 4
FAR = [1.0, 30.0, 1e4]  # deviations: of ordinary rows, of such that floats cannot hold, and of broken sensors


@st.composite
def cases(draw, rows=ROWS, far=FAR, **kinds):
    net = draw(continuous_networks(max_nodes=4, tables=2, **kinds))
    discrete = [name for name in net if name not in net.continuous]
    columns = draw(evidence(net, discrete, rows)) | numbers(net, draw(rngs), rows, draw(st.sampled_from(far)))
    return net, draw(st.sampled_from(discrete)), columns


def exactly(net, query, columns):
    """What 60 digits make of every row: see `exact.query`."""
    tac = tacit.compile(net, query, list(columns), engine="numpy")
    known = tac.read(columns)
    found = []
    for row in range(known.rows):
        own = {}
        for name, column in known.columns.items():
            block = column.block(row, row + 1)
            values = block.values[0] if name in net.continuous else block.likelihoods()[:, 0]
            if not (values == 1).all() or name in net.continuous:
                own[name] = values
        found.append(exact.query(net, query, own))
    return found


def same_digits(actual, expected, relative=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=1e-250)


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(60)
@given(case=cases())
def test_posterior_and_log_evidence_have_all_digits(engine, case):
    net, query, columns = case
    tac = tacit.compile(net, query, list(columns), engine=engine)
    posterior, logs = tac.posterior(columns), tac.log_evidence(columns)
    for row, own in enumerate(exactly(net, query, columns)):
        if own.nearest < 1e-9:
            continue
        if not own.possible:
            assert np.isnan(posterior[row]).all()
            assert logs[row] == -np.inf
            continue
        same_digits(posterior[row], own.posterior)
        assert abs(logs[row] - own.log_evidence) <= 1e-12 * max(1, abs(own.log_evidence))


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(20)
@given(case=cases(far=[1.0, 4.0]))
def test_marginals_and_most_probable_states(engine, case):
    net, query, columns = case
    tac, rows = tacit.compile(net, query, list(columns), engine=engine), decided(net, columns)
    marginals, best, chosen = tac.marginals(columns), tac.mpe(columns), tac.map(columns)
    discrete = [name for name in net if name not in net.continuous]
    for name in discrete:
        close(marginals[name][rows], definition.posterior(net, name, columns)[rows])
    for assignment, names in ((best, discrete), (chosen, [query])):
        joint = definition.joint(net, names, columns)
        for row in rows:
            if (most := joint[row].max()) > 1e-280:
                codes = tuple(net.states(name).index(assignment.states[name][row]) for name in names)
                same_digits(joint[row][codes], most)
                assert abs(assignment.log_probability[row] - np.log(most)) < 1e-10
    for column in [column for name in net.continuous for column in net.variable(name).columns]:
        known = {name: values for name, values in columns.items() if name != column}
        weights = tacit.compile(net, column, list(known), engine="numpy").posterior(known).weights
        gaps = np.isnan(columns[column])
        assert (column in marginals) == gaps.any()
        if gaps.any():
            some = [row for row in rows if gaps[row]]
            close(marginals[column].weights[some], np.broadcast_to(weights, (ROWS, weights.shape[1]))[some])


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(20)
@given(case=cases(far=[1.0, 4.0]))
def test_information_about_states_and_none_about_numbers(engine, case):
    net, query, columns = case
    tac, rows = tacit.compile(net, query, list(columns), engine=engine), decided(net, columns)
    told, expected = tac.information(columns), definition.information(net, query, columns)
    assert list(told) == list(expected) == [name for name in net if name not in net.continuous]
    for name, drop in told.items():
        close(drop[rows], expected[name][rows])
    with pytest.raises(tacit.TacitError, match="'number 0.*' is continuous: what its number would tell"):
        tac.information(columns, variables=[net.continuous[0]])


def contradiction():
    """Two sensors of one fault, a third of its cause, and rows in which they say the opposite of each other."""
    net = tacit.Network()
    net.add("Cause", states=3, cpt=[0.5, 0.3, 0.2])
    net.add("Fault", ["Cause"], cpt=[[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    net.add("Alarm", ["Fault"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("left", ["Fault"], cpt=tacit.Gaussian(mean=[0.0, 100.0], sd=1.0))
    net.add("right", ["Fault", "Cause"], cpt=tacit.Gaussian(mean=[[0.0, 0.1, 0.2], [100.0, 100.1, 100.2]], sd=1.0))
    net.add("count", ["Cause"], cpt=tacit.Poisson([1.0, 50.0, 2000.0]))
    rows = {
        "left": [0.0, 100.0, 50.0, 1e4, np.nan, -1e4],
        "right": [100.0, 0.0, 50.1, -1e4 + 99, 50.1, np.nan],
        "count": [1.0, 2000.0, np.nan, 7.0, 400.0, np.nan],
        "Alarm": ["true", None, "false", "true", None, "true"],
    }
    return net, rows


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sensors_that_contradict_one_another(engine, dtype):
    net, rows = contradiction()
    tac = tacit.compile(net, "Cause", list(rows), engine=engine, dtype=dtype)
    expected = {name: exactly(net, name, rows) for name in ("Cause", "Fault", "Alarm")}
    relative = 1e-12 if dtype == "float64" else 3e-6
    answer, marginals, best, told = tac.ask(rows), tac.marginals(rows), tac.mpe(rows), tac.information(rows)
    for row, own in enumerate(expected["Cause"]):
        np.testing.assert_allclose(answer.posterior[row], own.posterior, rtol=relative, atol=1e-30)
        assert abs(answer.log_evidence[row] / own.log_evidence - 1) < relative
        for name, exact_ones in expected.items():
            np.testing.assert_allclose(marginals[name][row], exact_ones[row].posterior, rtol=relative, atol=1e-30)
        assert best.log_probability[row] <= own.log_evidence * (1 - relative)
    assert (best.log_probability > answer.log_evidence - np.log(12)).all()
    drawn = tac.sample(rows, n=50)
    for name in ("Cause", "Fault"):
        for row, own in enumerate(expected[name]):
            likely = {state for state, p in zip(net.states(name), own.posterior, strict=True) if p > 1e-9}
            assert set(drawn[name][row]) <= likely
            entropy = -sum(p * np.log(p) for p in own.posterior if p)
            if name == "Cause":
                assert abs(told[name][row] - entropy) < 10 * relative
