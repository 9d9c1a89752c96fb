"""Bad data is refused before training starts, with the first bad row."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit import EvidenceError, Network, TacitError, examples
from tacit.learn.fitting.data import read_data, read_labels, read_weights


@pytest.fixture
def tac():
    return tacit.compile(examples.chain(2), "Q", ["E1", "E2"])


X = np.random.default_rng(0).random((6, 2))
Y = np.linspace(0.1, 0.9, 6)


def three():
    net = Network()
    net.add("Q", states=["lo", "mid", "hi"])
    return net.variable("Q")


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0.25, 1.0], [[0.25, 1.0], [0.75, 0.0]]),
        (["true", "false"], [[1, 0], [0, 1]]),
        ([[0.25, 0.75], [1, 0]], [[0.25, 1.0], [0.75, 0.0]]),
        ([1, 0], [[1, 0], [0, 1]]),
        ([True, False], [[1, 0], [0, 1]]),
        (pd.Series([0.25, 1.0]), [[0.25, 1.0], [0.75, 0.0]]),
    ],
)
def test_labels_of_a_binary_query(y, expected):
    np.testing.assert_array_equal(read_labels(examples.abc().variable("A"), y), expected)


def test_labels_of_more_states():
    np.testing.assert_array_equal(read_labels(three(), ["mid", "lo"]), [[0, 1], [1, 0], [0, 0]])
    # floats are probabilities of the first state: the others count together
    np.testing.assert_array_equal(read_labels(three(), [0.25, 1.0]), [[0.25, 1.0], [0.75, 0.0]])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.1, 0.2, 1.5, 0.1, 0.1, 0.1], "labels of 'Q', row 2: 1.5 is not a probability"),
        ([0.1, np.nan, 0.2, 0.1, 0.1, 0.1], "labels of 'Q', row 1: nan is not a probability"),
        (["true", "maybe", "true", "true", "true", "true"], "labels of 'Q', row 1: 'maybe' is not a state"),
        (["true", None, "true", "true", "true", "true"], "labels of 'Q', row 1: there is no label"),
        ([[0.5, 0.6]] * 6, r"labels of 'Q', row 0: \[0.5, 0.6\] is not a distribution"),
        ([[0.5, 0.2, 0.3]] * 6, r"labels of 'Q' have shape \(6, 3\), expected \(rows, 2\)"),
        ([0.1, 0.2], "there are 6 rows of evidence but 2 labels"),
        ([], r"labels have shape \(0,\)"),
        (0.5, r"labels have shape \(\)"),
        ([[0.5], [0.5, 0.5]], "labels of 'Q' are rows of different lengths"),
    ],
)
def test_bad_labels_are_reported_with_their_row(tac, y, message):
    with pytest.raises(EvidenceError, match=message):
        tacit.fit(tac, X, y)


def test_frames_of_labels():
    variable = examples.abc().variable("A")
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        named = frame({"false": [0.75, 0.0], "true": [0.25, 1.0]})  # in another order than the states
        np.testing.assert_array_equal(read_labels(variable, named), [[0.25, 1.0], [0.75, 0.0]])
        np.testing.assert_array_equal(read_labels(variable, frame({"y": ["true", "false"]})), [[1, 0], [0, 1]])
        with pytest.raises(EvidenceError, match="expected one column, or one per state"):
            read_labels(variable, frame({"a": [0.5], "b": [0.5]}))


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"E1": [0.1] * 5 + [2.0], "E2": 0.5}, "'E1', row 5: 2 is not a likelihood"),
        ({"E1": ["true"] * 3 + ["x"] * 3}, "'E1', row 3: 'x' is not a state"),
        ({"E3": 0.5}, "'E3', which is not a variable"),
        (X[:, :1], "expected 2: E1, E2"),
    ],
)
def test_bad_evidence_is_reported_with_its_row(tac, evidence, message):
    with pytest.raises(EvidenceError, match=message):
        tacit.fit(tac, evidence, Y)


def test_impossible_rows_are_reported():
    net = Network()
    net.add("A", cpt=[1, 0])
    net.add("Q", ["A"])
    tac = tacit.compile(net, "Q", ["A"])
    with pytest.raises(EvidenceError, match="row 1: the evidence has probability 0"):
        tacit.fit(tac, {"A": [0.5, 0.0, 0.7]}, [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "expected \\(6,\\)"),
        ([1, 1, -1, 1, 1, 1], "row 2: -1"),
        ([0] * 6, "all weights are 0"),
        ([1, np.nan, 1, 1, 1, 1], "row 1: nan"),
        (["a"] * 6, "weights are not numbers"),
        (["1"] * 6, "weights are not numbers"),
        ([1j] * 6, "weights are not numbers"),
        ([[1], [1, 2]], "weights are not numbers"),
        ([10**400] * 6, "weights are not numbers"),
        ({"a": 1}, "weights are not numbers"),
        (np.ma.array(np.ones(6), mask=[0, 0, 0, 1, 0, 0]), "row 3: nan"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(EvidenceError, match=message):
        read_weights(weights, 6)


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, pl.Series, pa.array])
def test_weights_sum_to_one_however_large_they_are(kind):
    np.testing.assert_allclose(read_weights(kind([1.0, 3.0]), 2), [0.25, 0.75])
    np.testing.assert_allclose(read_weights(kind([1e308, 1.5e308, 0.5e308]), 3), [1 / 3, 1 / 2, 1 / 6])
    np.testing.assert_allclose(read_weights(kind([5e-324, 5e-324]), 2), [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge', expected one of 'mse', 'cross_entropy'"),
        ({"optimizer": "sgd"}, "optimizer is 'sgd'"),
        ({"steps": 0}, "steps is 0"),
        ({"restarts": 1.5}, "restarts is 1.5"),
        ({"validation": 1.5}, "validation is 1.5"),
        ({"validation": 0.99}, "leaves no row"),
        ({"prior": -1.0}, "prior is -1.0"),
        ({"gamma": -3.0}, "gamma is -3.0"),
        ({"optimizer": "lm", "loss": "cross_entropy"}, "'lm' is for squared errors"),
        ({"loss": ["mse"]}, r"loss is \['mse'\]"),
        ({"optimizer": ["adam"]}, r"optimizer is \['adam'\]"),
        ({"optimizer": np.array(["adam", "lm"])}, "optimizer is array"),
        ({"steps": True}, "steps is np.True_, expected a whole number >= 1"),
        ({"steps": "5"}, "steps is '5'"),
        ({"steps": 10**400}, "steps is 10+, expected at most"),
        ({"restarts": -1}, "restarts is -1"),
        ({"seed": "a"}, "seed is 'a', expected a whole number >= 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 10**5000}, "seed is a int of very many digits"),
        ({"validation": "a"}, "validation is 'a'"),
        ({"validation": True}, "validation is np.True_"),
        ({"validation": 0}, "validation is 0"),
        ({"validation": np.nan}, "validation is nan"),
        ({"validation": (0.5,)}, r"validation is \(0.5,\), expected a share of the rows, or other rows"),
        ({"progress": "no"}, "progress is 'no', expected True or False"),
        ({"weights": ["a"] * 6}, "weights are not numbers"),
        ({"gamma": "steep"}, "gamma is 'steep'"),
        ({"gamma": np.array([1.0, 2.0])}, "gamma is array"),
        ({"harden": "yes"}, "harden is 'yes', expected True or False"),
        ({"harden": None}, "harden is None"),
        ({"prior": "a"}, r"prior is 'a', expected a number of pseudo-counts, or \(network, strength\)"),
        ({"prior": np.inf}, "prior is inf"),
        ({"prior": 10**400}, "prior is 10+"),
        ({"rate": -1}, "rate is -1, expected a learning rate > 0"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"rate": "fast"}, "rate is 'fast'"),
        ({"batch": 0}, "batch is 0"),
        ({"batch": 2.5}, "batch is 2.5"),
        ({"clip": 0}, "clip is 0, expected None, or the norm of a gradient > 0"),
        ({"clip": np.nan}, "clip is nan"),
        ({"patience": -1}, "patience is -1, expected a whole number >= 1"),
        ({"patience": 0}, "patience is 0"),
        ({"patience": "a"}, "patience is 'a'"),
        ({"callbacks": print}, "callbacks is .*, expected a list of functions"),
        ({"callbacks": ["print"]}, "callbacks is .*, expected a list of functions"),
        ({"checkpoint": 5}, "checkpoint is 5, expected the path of a file"),
        ({"checkpoint": b"run"}, "checkpoint is b'run', expected the path of a file"),
        ({"checkpoint": "no folder/run"}, "there is no folder 'no folder'"),
    ],
)
def test_bad_settings(tac, arguments, message):
    with pytest.raises(TacitError, match=message):
        tacit.fit(tac, X, Y, **arguments)


def test_numbers_of_numpy_are_as_good_as_others(tac):
    plain = tacit.fit(tac, X, Y, optimizer="adam", steps=3, seed=1, validation=0.25, rate=0.5, patience=2)
    same = tacit.fit(
        tac, X, Y, optimizer="adam", steps=np.int32(3), seed=np.uint8(1), validation=np.float32(0.25),
        rate=np.array(0.5), patience=np.int64(2), progress=np.False_,
    )  # fmt: skip
    assert same.network == plain.network


def test_a_network_that_is_all_known_has_nothing_to_learn():
    with pytest.raises(TacitError, match="there is nothing to learn"):
        tacit.fit(tacit.compile(examples.abc(), "B", ["A"]), {"A": [0.1, 0.2]}, [0.5, 0.5])


# labels in a frame ----------------------------------------------------------------------------------------

TABLE = {"F0": ["no", "much", "no", "some"], "F1": ["some", None, "no", "no"], "C": ["a", "c", "a", "b"]}


def findings():
    net = tacit.Network()
    net.add("C", states=["a", "b", "c"])
    for name in ("F0", "F1"):
        net.add(name, ["C"], states=["no", "some", "much"])
    return tacit.compile(net, "C", ["F0", "F1"])


@pytest.mark.parametrize(
    "frame", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
@pytest.mark.parametrize("name", ["C", "diagnosis"])
def test_a_frame_may_hold_the_labels(frame, name):
    columns = {name if column == "C" else column: values for column, values in TABLE.items()}
    held = read_data(findings(), frame(columns), None, None, label=name)
    apart = read_data(findings(), {"F0": TABLE["F0"], "F1": TABLE["F1"]}, TABLE["C"], None)
    assert all((one == other).all() for one, other in zip(held.arrays(), apart.arrays(), strict=True))


def test_labels_are_learned_from_the_column_they_are_in():
    how = {"loss": "cross_entropy", "steps": 5, "restarts": 1, "prior": 1.0, "progress": False}
    frame = pd.DataFrame(TABLE)
    found = tacit.fit(findings(), frame, label="C", **how)
    assert found.network == tacit.fit(findings(), frame[["F0", "F1"]], frame["C"], **how).network


@pytest.mark.parametrize(
    "frame", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
def test_labels_come_once_and_from_a_column_that_is_there(frame):
    tac, table = findings(), frame(TABLE)
    with pytest.raises(EvidenceError, match=r"there are no labels; expected y, or label="):
        tacit.fit(tac, table)
    with pytest.raises(EvidenceError, match=r"labels are given twice, as y and by label="):
        tacit.fit(tac, table, TABLE["C"], label="C")
    with pytest.raises(EvidenceError, match=r"X has a column 'C', which holds labels .* pass label='C'"):
        tacit.fit(tac, table, table["C"])
    with pytest.raises(EvidenceError, match=r"label is 'D', expected one of the columns of X: \['F0', 'F1', 'C'\]"):
        tacit.fit(tac, table, label="D")
    with pytest.raises(EvidenceError, match="evidence names 'G', which is not a variable"):
        tacit.fit(tac, frame({**TABLE, "G": [1, 2, 3, 4]}), label="C")
    with pytest.raises(EvidenceError, match="label is 'C', but X, a ndarray, has no named columns; pass labels as y"):
        tacit.fit(tac, np.zeros((2, 2)), label="C")


def test_a_column_named_as_the_labels_is_told_from_evidence():
    frame = pd.DataFrame({**TABLE, "y": TABLE["C"]}).drop(columns="C")
    with pytest.raises(EvidenceError, match=r"X has a column 'y', .* pass label='y'"):
        tacit.fit(findings(), frame, frame["y"])
