"""Tables: what is accepted, what is refused and how the refusal reads."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tacit
from tacit import CPT, Mux, Network, NetworkError, NoisyOr, TestingCPT
from tacit.base.errors import TableError
from tacit.model.rules import FunctionCPT

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


# rows that sum to 1 only roughly -----------------------------------------------------------------------------


@st.composite
def rough_rows(draw):
    """A row of up to 6 numbers, some of them 0, that misses the sum 1 by up to 2e-6."""
    row = draw(arrays(np.float64, st.integers(2, 6), elements=st.just(0.0) | st.floats(1e-12, 1)))
    assume(row.sum() > 0)
    row = row / row.sum() * (1 + draw(st.floats(-1.9e-6, 1.9e-6)))
    assume(row.max() <= 1)
    return row


@given(rough_rows())
def test_a_row_that_roughly_sums_to_one_is_scaled_once(row):
    found = CPT(row).table
    assert abs(found.sum() - 1) <= (8 + len(row)) * np.finfo(float).eps
    np.testing.assert_allclose(found, row, rtol=2.1e-6, atol=0)
    assert ((found == 0) == (row == 0)).all()
    assert CPT(found).table.tolist() == found.tolist()


@given(rough_rows())
def test_every_kind_of_cpt_scales_its_rows_alike(row):
    scaled = CPT(row).table
    assert abs(scaled.sum() - 1) < 1e-14
    testing = TestingCPT([row], [row[::-1]], [0.123456789])
    assert testing.plus.tolist() == [scaled.tolist()]
    np.testing.assert_allclose(testing.minus, [scaled[::-1]], rtol=1e-15, atol=0)
    assert testing.thresholds.tolist() == [0.123456789]
    assert FunctionCPT.from_rows([0, 0], [row]).rows.tolist() == [scaled.tolist()]
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], len(row), CPT.from_function(lambda a: row if a == "true" else scaled))
    assert net.cpt("B").rows.tolist() == [scaled.tolist()]


def test_a_scaled_row_keeps_what_is_possible():
    """A 1 beside another positive number is no structural 1, and scaling makes none."""
    first, second = CPT([[1.0, 1e-7], [0.999999, 1e-300]]).table
    assert first.tolist() == [1 / 1.0000001, 1e-7 / 1.0000001]
    assert 0 < second[1] < 1e-299
    assert 1 - 1e-15 < second[0] < 1
    assert CPT([0.999999, 0]).table.tolist() == [1, 0]


@pytest.mark.parametrize("row", [[0.1] * 10, [1 / 3] * 3, [1.0, 1e-17], [0.2, nan, 0.3], [nan, 0.999]])
def test_rounding_is_no_reason_to_scale(row):
    np.testing.assert_array_equal(CPT([row, row]).table, [row, row])


def test_a_rough_row_has_one_answer_whatever_is_declared():
    """Dropping a barren node supposes that its rows sum to 1."""
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[0.5, 0.5000019], [0.5, 0.5]])
    tables = [[0.9, 0.1], [0.2, 0.8]]
    net.add("T", ["A"], cpt=TestingCPT(tables, [[0.1, 0.900001], [0.4, 0.6]], [0.5, 0.6]))
    without = tacit.compile(net, "A", []).posterior()
    for names in (["B"], ["T"], ["B", "T"]):
        unsaid = {name: [None] for name in names}
        np.testing.assert_allclose(tacit.compile(net, "A", names).posterior(unsaid), without, rtol=1e-15)


# CPTs are immutable ------------------------------------------------------------------------------------------


def every_kind():
    return {
        "table": CPT([[0.9, 0.1], [0.2, 0.8]], tie="t"),
        "plus": testing(gamma=4.0),
        "rows": FunctionCPT.from_rows([0, 1], [[1, 0], [0.5, 0.5]]),
        "causes": NoisyOr({"A": [0.25, 0.5]}, leak=0.125),
        "inputs": Mux("A", ["B", "C"]),
    }


@pytest.mark.parametrize("part", every_kind())
def test_a_cpt_cannot_be_changed(part):
    cpt = every_kind()[part]
    before = copy.copy(vars(cpt))
    for name in (*vars(cpt), "learn", "tie", "gamma", "other"):
        with pytest.raises(NetworkError, match=rf"^'{name}' of a {type(cpt).__name__} cannot be changed.*with_cpts"):
            setattr(cpt, name, 5)
        with pytest.raises(NetworkError, match="cannot be changed"):
            delattr(cpt, name)
    assert vars(cpt) == before


@pytest.mark.parametrize("part", every_kind())
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda cpt: pickle.loads(pickle.dumps(cpt))])
def test_a_copy_is_equal_and_as_immutable(part, twin):
    cpt = every_kind()[part]
    made = twin(cpt)
    assert made == cpt
    assert repr(made) == repr(cpt)
    with pytest.raises(NetworkError, match="cannot be changed"):
        made.learn = True
    for value in vars(made).values():
        for array in value if isinstance(value, tuple) else (value,):
            assert not isinstance(array, np.ndarray) or not array.flags.writeable


@pytest.mark.parametrize(
    "row",
    [[1.0], [0.5, 0.5], [0.1] * 10, [1 / 3] * 3, [0.333333, 0.666666], [1 - 1e-6, 5e-7], [1.0, 1e-7], [np.nan, 0.5]],
)
def test_few_numbers_are_treated_like_many(row):
    """Small tables are checked in Python, larger ones with NumPy."""
    few, many = CPT([row]), CPT([row] * 100)
    assert np.array_equal(few.table, many.table[:1], equal_nan=True)


@pytest.mark.parametrize("row", [[0.5, 0.6], [-0.1, 1.1], [1 + 1e-9, 0.0], [0.5, np.inf], [np.nan, 1.0]])
def test_few_numbers_are_refused_like_many(row):
    found = []
    for rows in (1, 100):
        with pytest.raises(TableError) as error:
            CPT([row] * rows)
        found.append(str(error.value))
    assert found[0] == found[1]
