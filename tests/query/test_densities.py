"""Queries about networks with continuous variables, against the definition and against 60 digits."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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


def within_floats(net, query, columns):
    """The rows with an answer that the definition, which has plain floats, can tell."""
    joints, _ = definition._joints(net, query, columns)
    return [row for row in decided(net, columns) if joints[row].sum() > 1e-250]


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
    tac, rows = tacit.compile(net, query, list(columns), engine=engine), within_floats(net, query, columns)
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
    tac, rows = tacit.compile(net, query, list(columns), engine=engine), within_floats(net, query, columns)
    told, expected = tac.information(columns), definition.information(net, query, columns)
    assert list(told) == list(expected) == [name for name in net if name not in net.continuous]
    for name, drop in told.items():
        close(drop[rows], expected[name][rows])
    with pytest.raises(tacit.TacitError, match="is continuous: what its number would tell"):
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


@pytest.fixture(scope="module")
def plant():
    net = tacit.Network()
    net.add("Load", states=["a", "b", "c"], cpt=[0.3, 0.5, 0.2])
    net.add("Fault", ["Load"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.4, 0.6]])
    net.add("heat", ["Fault", "Load"], cpt=tacit.Gaussian(mean=np.arange(6.0).reshape(2, 3), sd=1.5))
    cov = [[[1.0, 0.5], [0.5, 2.0]], [[2.0, -0.3], [-0.3, 1.0]]]
    net.add(("x", "y"), ["Fault"], cpt=tacit.Gaussian(mean=[[0.0, 1.0], [3.0, -2.0]], cov=cov))
    net.add("n", ["Load"], cpt=tacit.Poisson([2.0, 5.0, 9.0]))
    return net


EVIDENCE = ["heat", "x, y", "n"]
NAN = np.nan
READINGS = {"heat": [1.0, NAN, 4.0], "x": [0.1, 2.0, NAN], "y": [NAN, 1.0, 2.0], "n": [3.0, NAN, 8.0]}
TABLE = np.array(list(READINGS.values())).T
FRAME = pd.DataFrame(READINGS)
CONTAINERS = {
    "pandas": FRAME,
    "pandas with NA": FRAME.convert_dtypes(),
    "pandas on arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame(READINGS),
    "polars with nulls": pl.DataFrame(READINGS, nan_to_null=True),
    "pyarrow": pa.Table.from_pandas(FRAME),
    "series": {name: pd.Series(values) for name, values in READINGS.items()},
    "masked": {name: np.ma.array(np.nan_to_num(v, nan=9.0), mask=np.isnan(v)) for name, v in READINGS.items()},
    "objects": {name: [None if np.isnan(v) else v for v in values] for name, values in READINGS.items()},
    "records": [{name: v for name, v in zip(READINGS, row, strict=True) if v == v} for row in TABLE.tolist()],
    "2-D": TABLE,
    "by node": {"heat": READINGS["heat"], "n": READINGS["n"], "x, y": TABLE[:, 1:3]},
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_numbers_come_in_containers_of_any_kind(plant, container):
    tac = tacit.compile(plant, "Fault", EVIDENCE)
    expected = definition.posterior(plant, "Fault", READINGS)
    close(tac.posterior(CONTAINERS[container]), expected)
    one_by_one = [tac.posterior({name: values[row] for name, values in READINGS.items()})[0] for row in range(3)]
    close(one_by_one, expected)


def test_all_ways_to_ask_see_numbers(plant):
    expected = definition.posterior(plant, "Fault", READINGS)
    tac = tacit.compile(plant, "Fault", EVIDENCE)
    rows = tac.read(READINGS)
    close(plant.posterior("Fault", READINGS), expected)
    close(tacit.compile(plant, "Load", EVIDENCE).posterior(rows), definition.posterior(plant, "Load", READINGS))
    close(pickle.loads(pickle.dumps(tac)).posterior(pickle.loads(pickle.dumps(rows))), expected)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: tac.posterior(rows), range(8)):
            close(found, expected)


def test_numbers_stand_beside_states_that_are_known_or_set(plant):
    given_load = tacit.compile(plant, "Fault", EVIDENCE, given={"Load": "b"}).posterior(READINGS)
    load = {**READINGS, "Load": ["b"] * 3}
    close(given_load, definition.posterior(plant, "Fault", load))
    close(tacit.compile(plant, "Fault", EVIDENCE, hard=["Load"]).posterior(load), given_load)
    done = tacit.compile(plant, "Load", EVIDENCE, do=["Fault"]).posterior({**READINGS, "Fault": ["true"] * 3})
    close(done, definition.posterior(plant.do({"Fault": "true"}), "Load", READINGS))


def test_a_network_answers_with_mixtures_as_queries_do(plant):
    known = FRAME.drop(columns="heat")
    tac = tacit.compile(plant, "heat", ["x, y", "n"])
    expected = tac.posterior(known)
    close(plant.posterior("heat", known).mean, expected.mean)
    labelled = tac.marginals(known, labels=True)
    close(labelled["heat"].mean, expected.mean)
    assert "Fault" in repr(labelled)
    close(plant.posterior("x", FRAME).mean, tacit.compile(plant, "x", ["heat", "x, y", "n"]).posterior(READINGS).mean)


def test_numbers_of_densities_change_without_compiling_again(plant):
    tac = tacit.compile(plant, "Fault", EVIDENCE)
    rows, program = tac.read(READINGS), tac.program
    other = plant.with_cpts({"heat": tacit.Gaussian(np.zeros((2, 3)), sd=np.arange(1.0, 7.0).reshape(2, 3))})
    expected = definition.posterior(other, "Fault", READINGS)
    close(tac.with_network(other).posterior(rows), expected)
    tac.set_parameters(other)
    close(tac.posterior(rows), expected)
    assert tac.program is program


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"heat": [1.0, np.inf]}, "'heat', row 1: inf is not a finite number"),
        ({"x": [1.0, 2.0], "y": [0.0, -np.inf]}, "'y', row 1: -inf is not a finite number"),
        ({"heat": [1.0, "hot"]}, "'heat', row 1: 'hot' is not a number"),
        (pd.DataFrame({"heat": [1.0, "hot"]}, index=["r", "s"]), r"'heat', row 1 \(index 's'\): 'hot' is not a"),
        ({"n": [1.0, 2.5]}, "'n', row 1: 2.5 is not a whole number from 0 on"),
        ({"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]}, "'x' has 2 rows, the columns beside it have 3"),
    ],
)
def test_wrong_numbers_are_named_with_their_column_and_row(plant, columns, message):
    with pytest.raises(tacit.EvidenceError, match=message):
        tacit.compile(plant, "Fault", EVIDENCE).posterior(columns)


def test_what_needs_states_is_refused_for_numbers(plant):
    for ask, message in {
        lambda: tacit.compile(plant, "Fault", hard=["heat"]): "numbers index no tables",
        lambda: tacit.compile(plant, "Fault", do=["heat"]): "do= sets states",
        lambda: tacit.compile(plant, "Fault", given={"heat": 1.0}): "given= takes states",
        lambda: tacit.compile(plant, ["heat", "n"]): "ask for it alone",
        lambda: tacit.compile(plant, "heat", ["heat"]): "its own number would be the answer",
        lambda: tacit.compile(plant, "heat").joint(): "is continuous, so there is no joint",
        lambda: tacit.compile(plant, "heat").ask(): "is continuous, so there is no joint",
        lambda: plant.do({"heat": 1.0}): "do cannot set 'heat': it is continuous",
        lambda: plant.copy().add("Z", ["heat"], cpt=[0.5, 0.5]): "'heat' has a density, and what has a density has no",
        lambda: plant.copy().add("Z", ["x"], cpt=[0.5, 0.5]): "'x, y' has a density, and what has a density has no",
        lambda: definition.posterior(plant, "heat"): "'heat' is continuous: it has no states to enumerate",
    }.items():
        with pytest.raises(tacit.TacitError, match=message):
            ask()


def test_samples_have_the_moments_of_the_mixture(plant):
    rows = {"y": [1.0, NAN], "n": [3.0, 8.0], "x": [NAN, NAN]}
    tac = tacit.compile(plant, None, EVIDENCE)
    drawn, marginals = tac.sample(rows, n=40_000), tac.marginals(rows)
    assert (drawn["y"][0] == 1.0).all()
    for name, row in (("heat", 0), ("heat", 1), ("x", 0), ("x", 1), ("y", 1)):
        mean, sd = marginals[name].mean[row], marginals[name].sd[row]
        assert abs(drawn[name][row].mean() - mean) < 5 * sd / 200
        assert abs(drawn[name][row].std() / sd - 1) < 0.05
    counts = plant.sample(40_000)["n"]
    assert abs(counts.mean() - plant.posterior("n").mean[0]) < 5 * counts.std() / 200


def test_every_step_of_a_sequence_is_told_from_the_numbers_up_to_it():
    net = tacit.Network()
    for i in range(4):
        above = [f"X[{i - 1}]"] if i else []
        net.add(f"X[{i}]", above, cpt=[[0.8, 0.2], [0.3, 0.7]] if i else [0.7, 0.3])
        net.add(f"level[{i}]", [f"X[{i}]"], cpt=tacit.Gaussian([0.0, 2.0], 1.0))
    rows = {f"level[{i}]": values for i, values in enumerate([[0.1, NAN], [3.0, 1.0], [NAN, 2.0], [-1.0, 1e3]])}
    tac = tacit.compile(net, "X[3]", [f"level[{i}]" for i in range(4)])
    close(tac.filtered("X", rows), definition.filtered(net, "X", rows))
