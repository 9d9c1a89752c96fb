"""Rows that name their own fields, arrays whose columns are named, and pairs of floats that may be one row."""

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import EvidenceError
from tacit.evidence.summaries.observed_states import MAX_OBSERVED, observed_states
from tests.helpers import close

ROWS = {"A": ["true", "false", None], "C": ["lo", "hi", "hi"]}
FRAME = pd.DataFrame(ROWS)


@pytest.fixture(scope="module")
def tac():
    return tacit.compile(tacit.examples.abc(), "B", ["A", "C"])


@pytest.mark.parametrize(
    "rows",
    [
        [{"A": "true", "C": "lo"}, {"C": "hi", "A": "false"}, {"C": "hi"}],
        ({"A": "true", "C": "lo"}, {"A": "false", "C": "hi"}, {"A": None, "C": "hi"}),
        FRAME.to_dict("records"),
        FRAME.to_records(index=False),
        FRAME.to_numpy(),
        np.array([("true", "lo"), ("false", "hi"), (None, "hi")], dtype=[("A", object), ("C", "U2")]),
    ],
    ids=["dictionaries", "tuple", "records of a frame", "record array", "labels", "structured array"],
)
def test_rows_mean_what_columns_mean(tac, rows):
    close(tac.posterior(rows), tac.posterior(ROWS), 1e-15)


def test_a_series_is_one_row(tac):
    for i, expected in enumerate(tac.posterior(ROWS)):
        close(tac.posterior(FRAME.iloc[i]), [expected], 1e-15)
    with pytest.warns(tacit.UnusedColumnWarning, match="id"):
        tac.posterior(pd.Series({"A": "true", "C": "lo", "id": 7}))


def test_rows_that_are_not_all_dictionaries_are_refused(tac):
    with pytest.raises(EvidenceError, match=r"row 1 of the evidence is 'true'; expected a dictionary"):
        tac.posterior([{"A": "true"}, "true"])


def test_fields_that_no_row_has_are_missing_columns(tac):
    with pytest.warns(tacit.MissingColumnWarning, match="^variables that no row has: C; there is no evidence on it"):
        tac.posterior([{"A": "true"}, {"A": None}])


def test_rows_may_leave_out_what_others_have(tac, recwarn):
    close(tac.posterior([{"A": "true"}, {"C": "lo"}]), tac.posterior({"A": ["true", None], "C": [None, "lo"]}))
    assert not recwarn.list


def test_a_misspelt_name_in_one_row_is_no_gap():
    net = tacit.examples.kidney_stones()
    with pytest.raises(EvidenceError, match=r"row 1 names 'sise', which is not .*; did you mean 'size'\?$"):
        net.posterior("recovery", [{"size": "small"}, {"sise": "small"}])
    with pytest.warns(tacit.UnusedColumnWarning, match="not used: sise, id"):
        net.posterior("recovery", [{"size": "small", "sise": "large", "id": 7}])


def test_columns_are_named(tac):
    swapped = FRAME[["C", "A"]]
    for rows in (swapped.to_numpy(), swapped.to_numpy().tolist(), [tuple(row) for row in swapped.to_numpy()]):
        close(tac.posterior(tac.read(rows, columns=["C", "A"])), tac.posterior(ROWS), 1e-15)
    soft = np.array([[0.2, 0.5], [0.7, 0.1]])
    close(tac.posterior(tac.read(soft, ["C", "A"])), tac.posterior({"C": soft[:, 0], "A": soft[:, 1]}), 1e-15)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["lo"]], r"row 0 of the evidence is \['lo'\], and columns= names 2 columns; expected a value for each"),
        (["lo", "hi"], r"row 0 of the evidence is 'lo'"),
        (np.zeros((2, 3)), r"shape \(2, 3\), and columns= names 2 columns; expected an array of shape \(rows, 2\)"),
    ],
)
def test_rows_of_another_width_are_refused(tac, rows, message):
    with pytest.raises(EvidenceError, match=message):
        tac.read(rows, columns=["C", "A"])


@pytest.mark.parametrize("pair", [[0.2, 0.8], (0.5, 0.5), [1.0, 0.0]])
def test_a_pair_that_may_be_one_row_is_noted(tac, pair):
    first, second = pair
    with pytest.warns(tacit.AmbiguousRowsWarning) as noted:
        rows = tac.posterior({"A": pair})
    assert f"evidence on 'A': [{first}, {second}] was read as two rows" in str(noted[0].message)
    assert f"one row with a likelihood of each state write [[{first}, {second}]]" in str(noted[0].message)
    assert rows.shape == (2, 2)
    close(tac.posterior({"A": [[first, second], [second, first]]}), rows, 1e-15)  # as the warning advises, silently
    assert tac.posterior({"A": [[first, second]]}).shape == (1, 2)


@pytest.mark.parametrize(
    "evidence",
    [
        {"A": [0.2, 0.7]},
        {"A": [0.2, 0.8], "C": ["lo", "hi"]},
        {"A": np.array([0.2, 0.8])},
        {"A": pd.Series([0.2, 0.8])},
        {"A": [1, 0]},
        {"A": [0.2, 0.3, 0.5]},
    ],
    ids=str,
)
def test_other_pairs_are_not(tac, evidence):
    tac.posterior(evidence)  # a warning would be an error


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (["lo", "hi", None, "lo"], ("hi", "lo")),
        ([3, 1, 3], (1, 3)),
        ([1.0, np.nan, 2.0], (1, 2)),
        ([False, False], (True, False)),
        (pd.Series([True, None], dtype="boolean"), (True, False)),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b")),
        (pd.Series(pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True)), ("lo", "hi")),
        (pd.Series([2, 1], dtype="category"), (1, 2)),
        (["b", 2, "a", 1], (1, 2, "a", "b")),
    ],
    ids=str,
)
def test_states_are_the_values_that_occur(values, states):
    assert observed_states("A", values) == states
    assert [type(state) for state in observed_states("A", values)] == [type(state) for state in states]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, None], "'A' has no values, so its states are unknown"),
        ([0.5, 1.5], r"holds fractions such as 0\.5, which are too many states; .*bins="),
        (list(range(MAX_OBSERVED + 1)), "holds 101 different values"),
        (pd.to_datetime(["2020-01-01"]), "holds dates; turn dates into numbers"),
        (["x", [1, 2]], r"column 'A', row 1: \[1, 2\] is not a single value"),
        (np.zeros((2, 2)), r"has shape \(2, 2\)"),
    ],
)
def test_columns_without_a_few_states_are_refused(values, message):
    with pytest.raises(EvidenceError, match=message):
        observed_states("A", values)


# likelihoods by the names of states -----------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"lo": 0.2, "hi": 0.6}, {"hi": 3, "lo": 1}])
def test_likelihoods_of_one_row_may_name_their_states(tac, given):
    expected = tac.posterior({"A": "true", "C": [[0.25, 0.75]]})
    close(tac.posterior({"A": "true", "C": given}), expected)
    close(tac.network.posterior("B", {"A": "true", "C": given}), expected)
    close(tac.posterior([{"A": "true", "C": given}, {"A": "true"}])[:1], expected)
    close(tac.posterior({"A": ["true", "true"], "C": given}), np.repeat(expected, 2, axis=0))


@pytest.mark.parametrize("given", [{"lo": 0.2}, {"lo": 0.2, "up": 0.8}, {"lo": "a", "hi": 1}, {}])
def test_likelihoods_must_name_every_state(tac, given):
    with pytest.raises(EvidenceError, match=r"on 'C': .* is not one likelihood per state \('lo', 'hi'\)"):
        tac.posterior({"C": given})
    with pytest.raises(EvidenceError, match=r"on 'C'.* is not one likelihood per state"):
        tac.posterior([{"A": "true", "C": given}])


def test_the_state_that_likelihoods_lack_is_named(tac):
    with pytest.raises(EvidenceError, match=r"; it lacks 'hi'$"):
        tac.posterior({"C": {"lo": 0.2}})
    with pytest.raises(EvidenceError, match=r"; 'low' is not a state; did you mean 'lo'\?$"):
        tac.posterior({"C": {"low": 0.2, "hi": 0.8}})


def test_no_rows_have_no_answers(tac):
    assert tac.posterior([]).shape == tac.network.posterior("B", []).shape == (0, 2)


def test_likelihoods_of_states_that_are_no_words():
    net = tacit.Network()
    net.add("X", states=[1, 2], cpt=[0.5, 0.5])
    close(net.posterior("X", {"X": {1: 0.2, 2: 0.8}}), [[0.2, 0.8]])
    close(net.posterior("X", {"X": {"1": 0.2, "2": 0.8}}), [[0.2, 0.8]])
