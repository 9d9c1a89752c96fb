"""Tables: what is accepted, what is refused and how the refusal reads."""

import pickle

import numpy as np
import pytest

from tacit import CPT, NetworkError, TestingCPT
from tacit.errors import TableError

nan = np.nan


def testing(**changes):
    parts = {"plus": [[0.9, 0.1], [0.7, 0.3]], "minus": [[0.2, 0.8], [0.1, 0.9]], "thresholds": [0.5, 0.4]}
    return TestingCPT(**(parts | changes))


testing.__test__ = False


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0.3, 0.8], "table: sums to 1.1, expected 1"),
        ([[0.5, 0.5], [0.5, 0.47]], r"table, parent state \(1,\): sums to 0.97, expected 1"),
        ([[[0.5, 0.5], [1.5, -0.5]]], r"table, parent state \(0, 1\): 1.5 is not a probability in \[0, 1\]"),
        ([np.inf, 0], "inf is not a probability"),
        ([[1, 0], [1]], "table is not an array of numbers: its rows have different lengths"),
        (["x", 1], "table is not an array of numbers: could not convert string to float: 'x'"),
        ([10**400, 0], "table is not an array of numbers: int too large"),
        (0.5, r"table has shape \(\); expected \(parents' cardinalities..., own states\)"),
        ([], r"table has shape \(0,\)"),
        ([1.0, nan], "known entries sum to 1, which leaves nothing for the NaN entries"),
        ([0.7, 0.2, 0.1, nan], "known entries sum to 1, which leaves nothing for the NaN entries"),
    ],
)
def test_a_bad_table_is_refused_with_its_place_and_value(table, message):
    with pytest.raises(NetworkError, match=message):
        CPT(table)


@pytest.mark.parametrize("table", [[1, 0], [True, False], [[0.1] * 10], [nan, nan], [0.3, nan], [1]])
def test_a_good_table_is_kept_as_given(table):
    np.testing.assert_array_equal(CPT(table).table, np.array(table, dtype=float))


def test_a_table_is_a_read_only_copy():
    given = np.array([0.3, 0.7])
    cpt = CPT(given)
    given[0] = 0.0
    assert cpt.table.tolist() == [0.3, 0.7]
    for array in (cpt.table, testing().plus, testing().thresholds, testing().test):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plus": [[0.9, 0.1], [0.7, 0.2]]}, r"plus, parent state \(1,\): sums to 0.9, expected 1"),
        ({"minus": [[0.9, 0.1]]}, r"plus has shape \(2, 2\) but minus \(1, 2\); they must be the same"),
        ({"thresholds": [0.5]}, r"thresholds have shape \(1,\), expected \(2,\): one per parent state"),
        ({"thresholds": 0.5}, r"thresholds have shape \(\), expected \(2,\)"),
        ({"thresholds": [0.5, -0.1]}, r"thresholds, parent state \(1,\): -0.1 is not a threshold in \[0, 1\]"),
        ({"test": "=="}, "unknown test '==', expected one of >=, >, <=, <"),
        ({"test": [">=", ""]}, "unknown test ''"),
        ({"test": [">="]}, r"test has shape \(1,\), expected one operator or shape \(2,\)"),
        ({"test": [[">"], [">", "<"]]}, "is not one operator, or one per parent state"),
        ({"gamma": -1}, "gamma is -1, expected None"),
        ({"gamma": nan}, "gamma is nan, expected None"),
        ({"gamma": "steep"}, "gamma is 'steep', expected None"),
        ({"gamma": 10**400}, r"expected None \(hard tests\) or a finite slope >= 0"),
    ],
)
def test_a_bad_testing_cpt_is_refused_with_the_part_and_value(changes, message):
    with pytest.raises(NetworkError, match=message):
        testing(**changes)


@pytest.mark.parametrize("tie", ["", 5, ["emission"], True])
def test_a_tie_is_a_non_empty_string(tie):
    for make in (lambda: CPT([0.3, 0.7], tie=tie), lambda: testing(tie=tie)):
        with pytest.raises(NetworkError, match=r"^tie is .*, expected None or a non-empty string$"):
            make()


def test_one_operator_stands_for_every_parent_state():
    assert testing(test="<").test.tolist() == ["<", "<"]
    assert testing(test="<") == testing(test=["<", "<"])


def test_with_gamma_changes_only_the_slope():
    soft = testing(test=["<", ">"], learn=True, tie="t").with_gamma(4)
    assert soft == testing(test=["<", ">"], learn=True, tie="t", gamma=4.0)
    assert soft.with_gamma(None) == testing(test=["<", ">"], learn=True, tie="t")


def test_equality_is_by_value_and_a_number_to_learn_equals_another():
    assert CPT([0.3, nan]) == CPT(np.array([0.3, nan]))
    assert CPT([0.3, 0.7]) != CPT([0.7, 0.3])
    assert CPT([0.3, nan]) != CPT([0.3, 0.7])
    assert CPT([0.3, 0.7]) != CPT([0.3, 0.7], learn=True)
    assert CPT([0.3, 0.7], tie="t") == CPT([0.3, 0.7], tie="t")
    assert CPT([0.3, 0.7], tie="t") != CPT([0.3, 0.7])
    assert CPT([0.3, 0.7], tie="t") != CPT([0.3, 0.7], tie="t\0")
    assert CPT([0.5, 0.5]) != CPT([[0.5, 0.5]])
    assert CPT([0.3, 0.7]) != [0.3, 0.7]


@pytest.mark.parametrize(
    "changes",
    [
        {"plus": [[1, 0], [0, 1]]},
        {"minus": [[1, 0], [0, 1]]},
        {"thresholds": [0.5, nan]},
        {"test": [">=", "<"]},
        {"gamma": 1.0},
        {"learn": True},
        {"tie": "t"},
    ],
)
def test_testing_cpts_that_differ_in_one_part_are_unequal(changes):
    assert testing() == testing()
    assert testing() != testing(**changes)


@pytest.mark.parametrize(
    ("cpt", "text"),
    [
        (CPT([0.3, 0.7]), "CPT([0.3, 0.7])"),
        (CPT(np.full((3, 4, 2), 0.5), learn=True), "CPT(<3 x 4 x 2>, learn=True)"),
        (testing(gamma=16, learn=True), "TestingCPT(parents (2,), 2 states, test='>=', gamma=16, learn=True)"),
        (testing(test=["<", ">"]), "TestingCPT(parents (2,), 2 states, test=['<', '>'])"),
        (CPT([0.3, 0.7], learn=True, tie="t"), "CPT([0.3, 0.7], learn=True, tie='t')"),
        (testing(tie="t"), "TestingCPT(parents (2,), 2 states, test='>=', tie='t')"),
    ],
)
def test_repr(cpt, text):
    assert repr(cpt) == text


def test_a_table_error_survives_pickling():
    error = pickle.loads(pickle.dumps(TableError("plus", (1,), "sums to 2, expected 1")))
    assert (str(error), error.row) == ("plus, parent state (1,): sums to 2, expected 1", (1,))
