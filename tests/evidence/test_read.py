"""The column rules: every accepted form means the same, and every refusal names the variable and the first bad row."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import EvidenceError, Network, examples, semantics
from tacit.evidence.column import Column, Evidence
from tacit.evidence.read import read, read_column
from tacit.evidence.tables.columns import choose
from tacit.model.elements.variable import Variable, variable
from tests.helpers import close
from tests.strategies import evidence, networks

nan = np.nan
A = variable("A", None)  # 'true', 'false'
B = variable("B", ["lo", "mid", "hi"])
N = variable("N", 3)  # 0, 1, 2
F = variable("F", [0.5, 1.5])  # a binary variable whose labels are floats
T = variable("T", [True, False])
ONES = {2: [1, 1], 3: [1, 1, 1]}
VARIABLES = (A, B, N, F, T)


def column(of: Variable, values):
    """The likelihoods (rows, states) that a column is read as."""
    known = read({of.name: values}, VARIABLES)
    if of.name not in known.columns:
        return np.ones((known.rows, of.card)).tolist()
    return known.columns[of.name].likelihoods().T.tolist()


def refusal(values, **arguments):
    with pytest.raises(EvidenceError) as error:
        read(values, VARIABLES, **arguments)
    return str(error.value)


@pytest.mark.parametrize(
    ("of", "values", "expected"),
    [
        (A, "false", [[0, 1]]),
        (A, ["true", "false"], [[1, 0], [0, 1]]),
        (A, ("true", None), [[1, 0], [1, 1]]),
        (A, np.array(["true", "false"]), [[1, 0], [0, 1]]),
        (A, np.array([b"true"]), [[1, 0]]),
        (A, np.array(["true", nan], dtype=object), [[1, 0], [1, 1]]),
        (A, np.array(["false"], dtype=np.dtypes.StringDType()), [[0, 1]]),
        (A, np.array([True, False]), [[1, 0], [0, 1]]),
        (A, [True, None], [[1, 0], [1, 1]]),
        (B, ["hi", "lo"], [[0, 0, 1], [1, 0, 0]]),
        (N, 2, [[0, 0, 1]]),
        (N, [0, None, 2], [[1, 0, 0], [1, 1, 1], [0, 0, 1]]),
        (N, np.array([0.0, nan, 2.0]), [[1, 0, 0], [1, 1, 1], [0, 0, 1]]),
        (N, np.array([1], dtype=np.uint8), [[0, 1, 0]]),
        (F, [0.5, 1.5], [[1, 0], [0, 1]]),
        (F, 1.5, [[0, 1]]),
        (T, [True, False], [[1, 0], [0, 1]]),
        (T, [1.0, nan], [[1, 0], [1, 1]]),
    ],
)
def test_labels_are_hard_evidence_and_numbers_are_labels_where_labels_are_numbers(of, values, expected):
    assert column(of, values) == expected


@pytest.mark.parametrize(
    ("of", "values", "expected"),
    [
        (A, 0.25, [[0.25, 0.75]]),
        (A, 1, [[1, 0]]),
        (A, np.float32(0.5), [[0.5, 0.5]]),
        (A, [0.25, 1, 0], [[0.25, 0.75], [1, 0], [0, 1]]),
        (A, [0.25, None, 1], [[0.25, 0.75], [1, 1], [1, 0]]),
        (A, np.array([0.25, nan]), [[0.25, 0.75], [1, 1]]),
        (A, [[0.25, 0.75]], [[0.25, 0.75]]),
        (B, [[1, 2, 1], [nan, nan, nan]], [[0.25, 0.5, 0.25], [1, 1, 1]]),
        (B, [[1, 2, 1], None], [[0.25, 0.5, 0.25], [1, 1, 1]]),
        (B, [[1, 2, 1], [None, None, None]], [[0.25, 0.5, 0.25], [1, 1, 1]]),
        (B, [[1e308, 1e308, 0], [1, 0, 0]], [[0.5, 0.5, 0], [1, 0, 0]]),
        (N, np.array([[0, 0, 4]]), [[0, 0, 1]]),
        (F, [[3, 1]], [[0.75, 0.25]]),
    ],
)
def test_floats_and_tables_are_soft_evidence_normalised_to_sum_1(of, values, expected):
    assert column(of, values) == expected


@pytest.mark.parametrize("of", VARIABLES, ids=lambda v: v.name)
@pytest.mark.parametrize(
    "values",
    [None, nan, pd.NA, pd.NaT, [None], [nan], [pd.NaT], np.array([nan]), pd.Series([None]), pl.Series([None])],
    ids=lambda values: repr(values).splitlines()[0],
)
def test_missing_values_are_no_evidence_whatever_their_form(of, values):
    assert column(of, values) == [ONES[of.card]]


class ArrowLike:
    """What tacit uses of a pyarrow table."""

    def __init__(self, columns):
        self.columns, self.column_names = list(columns.values()), list(columns)

    def __getitem__(self, name):
        return self.columns[self.column_names.index(name)]

    def __len__(self):
        return len(self.columns[0])


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, ArrowLike], ids=lambda f: f.__name__)
def test_frames_are_read_by_column(frame):
    known = read(frame({"A": [0.25, None], "B": ["hi", None], "N": [2, None], "T": [True, None]}), VARIABLES)
    assert known.rows == 2
    values = {name: c.likelihoods().T.tolist() for name, c in known.columns.items()}
    assert values == {
        "A": [[0.25, 0.75], [1, 1]],
        "B": [[0, 0, 1], [1, 1, 1]],
        "N": [[0, 0, 1], [1, 1, 1]],
        "T": [[1, 0], [1, 1]],
    }


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["hi", None], dtype="category"),
        pd.Series(["hi", None], dtype="string"),
        pl.Series(["hi", None], dtype=pl.Categorical),
        pl.Series([[0.0, 0.0, 1.0], None], dtype=pl.List(pl.Float64)),
        pl.Series([[0.0, 0.0, 1.0], [nan] * 3], dtype=pl.Array(pl.Float64, 3)),
    ],
    ids=lambda s: f"{type(s).__module__.partition('.')[0]}-{s.dtype}",
)
def test_the_special_types_of_frame_libraries_are_read(series):
    assert column(B, series) == [[0, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize("labels", [["hi", None, "lo"], ["lo"], [None], []])
def test_text_that_is_read_by_its_distinct_labels_means_the_same(labels):
    pa = pytest.importorskip("pyarrow")
    text, levels = pa.array(labels, pa.string()), ["other", *B.states]  # a level that no row has is no error
    columns = [
        text,
        text.cast(pa.large_string()),
        pa.array(labels, pa.string_view()),
        text.dictionary_encode(),
        text.dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.string())),
        pa.chunked_array([text, text[:0]]),
        pa.chunked_array([text.dictionary_encode(), text[:0].dictionary_encode()]),
        pd.Series(labels, dtype="string"),
        pd.Series(pd.Categorical(labels, categories=levels)),
        pd.Categorical(labels, categories=levels),
    ]
    expected, _ = read_column(B, np.array(labels, dtype=object))
    for values in columns:
        found, broadcasts = read_column(B, values)
        assert found.codes.tolist() == expected.codes.tolist()
        assert not broadcasts


def test_chunks_with_different_dictionaries_are_read():
    pa = pytest.importorskip("pyarrow")
    chunks = pa.chunked_array([pa.array(labels).dictionary_encode() for labels in (["hi", None], ["lo", "hi"])])
    assert column(B, chunks) == [[0, 0, 1], [1, 1, 1], [1, 0, 0], [0, 0, 1]]
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["hi", None]))
    assert column(B, with_null) == [[0, 0, 1], [1, 1, 1], [1, 1, 1]]


def test_an_unknown_label_among_distinct_labels_is_reported_with_its_row():
    pa = pytest.importorskip("pyarrow")
    labels = ["true", None, "maybe", "maybe", "no"]
    for values in (pa.array(labels), pa.chunked_array([labels[:1], labels[1:]]), pd.Series(labels, dtype="category")):
        assert "evidence on 'A', row 2: 'maybe' is not a state; expected one of" in refusal({"A": values})


def test_categories_that_are_numbers_are_read_as_numbers():
    pa = pytest.importorskip("pyarrow")
    assert column(A, pd.Series([0.25, None], dtype="category")) == [[0.25, 0.75], [1, 1]]
    assert column(N, pa.array([2, 0]).dictionary_encode()) == [[0, 0, 1], [1, 0, 0]]
    assert column(A, pa.array([0.25, None])) == [[0.25, 0.75], [1, 1]]


@pytest.mark.parametrize("series", [pd.Series([2, None], dtype="Int64"), pl.Series([2, None]), pd.Series([2, None])])
def test_integer_codes_beside_a_missing_value_stay_labels(series):
    assert column(N, series) == [[0, 0, 1], [1, 1, 1]]


def test_a_2d_array_follows_the_declared_order_of_binary_variables():
    known = read([[0.25, 1.5], [nan, 0.5]], VARIABLES, declared=["A", "F"])
    assert known.columns["A"].likelihoods().T.tolist() == [[0.25, 0.75], [1, 1]]
    assert known.columns["F"].likelihoods().T.tolist() == [[0, 1], [1, 0]]


def test_single_values_speak_for_all_rows():
    known = read({"A": 0.25, "B": "hi", "N": [0, 1, 2]}, VARIABLES)
    assert known.rows == 3
    for row in range(3):
        values = known.likelihoods(row)
        assert values["A"].tolist() == [0.25, 0.75]
        assert values["B"].tolist() == [0, 0, 1]
        assert values["N"].argmax() == row


@pytest.mark.parametrize("nothing", [None, {}, {"A": None}])
def test_no_evidence_is_one_row_of_nothing(nothing):
    known = read(nothing, VARIABLES)
    assert (known.rows, dict(known.columns)) == (1, {})


@pytest.mark.parametrize(
    ("of", "values", "message"),
    [
        (A, ["true", "maybe", "no"], "row 1: 'maybe' is not a state; expected one of 'true', 'false'"),
        (A, np.array(["true", "z", "a"]), "row 1: 'z' is not a state"),
        (A, ["true", 0.5], "row 1: 0.5 is not a state; expected one of 'true', 'false', or a float in every row"),
        (A, [{"true"}], "row 0: {'true'} is not a state"),
        (A, [0.5, 1.25], "row 1: 1.25 is not a likelihood in [0, 1] of state 'true'"),
        (A, [0.5, np.inf], "row 1: inf is not a likelihood"),
        (A, [0.5, None, -1], "row 2: -1 is not a likelihood"),
        (A, [[0.5, 0.5], [2, -1]], "row 1: [2.0, -1.0]: likelihoods must not be negative"),
        (A, [[0.5, 0.5], [np.inf, 1]], "row 1: [inf, 1.0]: likelihoods must be finite"),
        (A, [[0.5, 0.5], [nan, 1]], "row 1: [nan, 1.0]: likelihoods must be finite"),
        (A, [[0.5, 0.5], [0, 0]], "row 1: [0.0, 0.0]: all likelihoods are zero; at least one must be positive"),
        (A, [[0.5, 0.5], [0, 0], [2, -1], [nan, 1]], "row 1: [0.0, 0.0]: all likelihoods are zero"),
        (A, [[0.5, 0.5], [1]], "row 1: [1] is not one likelihood per state ('true', 'false')"),
        (A, [["a", "b"]], "row 0: ['a', 'b'] is not one likelihood per state"),
        (A, np.array([["a", "b"]]), "likelihoods must be numbers"),
        (A, [[0.2, 0.3, 0.5]], "has shape (1, 3), expected (rows, 2): one likelihood per state ('true', 'false')"),
        (A, np.zeros((1, 2, 2)), "has 3 dimensions; expected (rows,) or (rows, 2)"),
        (A, np.array([1j]), "has type complex128, expected labels or floats"),
        (B, [0.2, 0.3, 0.5], "has 3 states, is a column of floats; expected labels, or likelihoods of shape (rows, 3)"),
        (B, [1, 0], "row 0: 1 is not a state; expected one of 'lo', 'mid', 'hi', or likelihoods of shape (rows, 3)"),
        (N, [0, 3], "row 1: 3 is not a state; expected one of 0, 1, 2 (its labels are numbers; pass likelihoods as"),
        (N, np.array([0, 0.5]), "row 1: 0.5 is not a state; expected one of 0, 1, 2 (its labels are numbers; pass"),
        (N, ["0"], "row 0: '0' is not a state; expected one of 0, 1, 2"),
        (F, 0.8, "row 0: 0.8 is not a state; expected one of 0.5, 1.5 (its labels are numbers; for a likelihood of "
            "0.5, pass [[0.8, 0.2]])"),
        (F, 2.5, "row 0: 2.5 is not a state; expected one of 0.5, 1.5 (its labels are numbers; pass likelihoods as an "
            "array of shape (rows, 2))"),
        (Variable("T", (True, False)), 0.7, "expected one of True, False (True and False are also the numbers 1 and 0; "
            "for a likelihood of True, pass [[0.7, 0.3]])"),
    ],
)  # fmt: skip
def test_a_bad_column_is_refused_with_variable_and_first_bad_row(of, values, message):
    text = refusal({of.name: values})
    assert text.startswith(f"evidence on {of.name!r}")
    assert message in text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Z": 0.5}, "evidence names 'Z', which is not a variable of the network"),
        (pd.DataFrame({5: [0.5]}), "evidence names 5, which is not a variable of the network"),
        ({"A": [0.5, 0.5], "N": [0, 1, 2]}, "evidence on 'N' has 3 rows, other columns have 2"),
        ({"A": []}, "the evidence has no rows; expected at least one"),
        ({"B": np.empty(0, dtype=int)}, "the evidence has no rows"),
        ({"B": np.empty((0, 3))}, "the evidence has no rows"),
        (pd.DataFrame({"A": []}), "the evidence has no rows"),
        (pd.DataFrame([[0.5, 0.5]], columns=["A", "A"]), "the evidence has two columns 'A'; expected one per variable"),
        (0.5, "evidence of type float is not understood; expected columns or rows by name (a mapping,"),
        ([0.5], "evidence of type list is not understood"),
        ([[0.5], [0.5, 0.5]], "evidence of type list is not understood"),
        ({"A": [0.5, 0.5], "N": [0]}, "evidence on 'N' has 1 row, other columns have 2"),
        (pl.LazyFrame({"A": [0.5]}), "the evidence is a polars LazyFrame, which holds no rows yet; call .collect()"),
        (np.zeros((1, 1)), "the evidence array has 1 column, expected 5"),
        (np.zeros((1, 2)), "the evidence array has 2 columns, expected 5: A, B, N, F, T"),
        (
            np.zeros((1, 5)),
            "a 2-D evidence array of floats needs binary variables, but 'B' has 3 states",
        ),
    ],
)
def test_bad_evidence_is_refused_as_a_whole(values, message):
    assert message in refusal(values)


@pytest.mark.parametrize(
    ("of", "values", "expected"),
    [
        (A, np.ma.array([0.25, 0.5], mask=[False, True]), [[0.25, 0.75], [1, 1]]),
        (A, np.ma.array([1, 0], mask=[False, True]), [[1, 0], [1, 1]]),
        (A, np.ma.array(["true", "false"], mask=[True, False]), [[1, 1], [0, 1]]),
        (A, np.ma.array([0.25]), [[0.25, 0.75]]),
        (A, np.ma.array([1, 0]), [[1, 0], [0, 1]]),
        (A, np.ma.masked, [[1, 1]]),
        (N, np.ma.array([0, 2], mask=True), [[1, 1, 1], [1, 1, 1]]),
        (N, np.ma.array([0, 2], mask=[True, False]), [[1, 1, 1], [0, 0, 1]]),
        (B, np.ma.array([[1.0, 1, 2], [0, 0, 1]], mask=[[0] * 3, [1] * 3]), [[0.25, 0.25, 0.5], [1, 1, 1]]),
        (B, np.ma.array([[1, 1, 2], [0, 0, 1]], mask=[[0] * 3, [1] * 3]), [[0.25, 0.25, 0.5], [1, 1, 1]]),
    ],
)
def test_masked_entries_are_missing(of, values, expected):
    assert column(of, values) == expected


@pytest.mark.parametrize("kind", [float, int])
def test_masked_entries_of_a_table_are_missing(kind):
    known = read(np.ma.array([[1, 0], [0, 1]], mask=[[0, 1], [0, 0]], dtype=kind), [A, variable("Z", None)])
    assert known.columns["A"].likelihoods().T.tolist() == [[1, 0], [0, 1]]
    assert known.columns["Z"].likelihoods().T.tolist() == [[1, 1], [1, 0]]


def test_a_row_of_likelihoods_is_masked_as_a_whole():
    values = np.ma.array([[0.5, 0.5], [0.5, 0.5]], mask=[[0, 0], [0, 1]])
    assert "evidence on 'A', row 1: [0.5, nan]: likelihoods must be finite" in refusal({"A": values})


def test_similar_names_are_suggested():
    rain = variable("Rain", None)
    with pytest.raises(EvidenceError, match="'rain', which is not a variable of the network; did you mean 'Rain'"):
        read({"rain": 0.5}, [rain])


def test_a_variable_that_the_query_was_not_compiled_for_is_refused():
    text = refusal({"B": "hi"}, declared=["A"])
    problem = "evidence on 'B', but the query was compiled for evidence on ['A']"
    assert text == f"{problem}; name it in evidence= or hard=, or leave it out"
    assert refusal({"B": "hi"}, declared=["A"], queries=["B"]) == f"{problem}; leave it out"


def test_states_are_given_only_where_every_row_is_certain():
    def states(of, values):
        return read({of.name: values}, VARIABLES).columns[of.name].states().tolist()

    assert states(B, ["hi", "lo"]) == [2, 0]
    assert states(A, [0.0, 1.0, 0.0]) == [1, 0, 1]
    for uncertain in ([1.0, 0.5], ["true", None], [[1, 0], [nan, nan]]):
        with pytest.raises(EvidenceError, match=r"evidence on 'A', row 1: a state is needed in every row.*evidence="):
            states(A, uncertain)


@given(st.data(), networks())
def test_likelihoods_sum_to_1_or_are_all_ones(data, net):
    known = read(data.draw(evidence(net, rows=3)), [net.variable(n) for n in net])
    for found in known.columns.values():
        values = found.likelihoods()
        assert values.shape == (found.variable.card, 3)
        assert (np.isclose(values.sum(0), 1, rtol=1e-15) | (values == 1).all(0)).all()


@given(st.data(), networks())
def test_every_label_is_read_as_its_own_state(data, net):
    of = net.variable(data.draw(st.sampled_from(net.variables)))
    for values in (list(of.states), np.array(of.states, dtype=object)):
        assert read({of.name: values}, [of]).columns[of.name].states().tolist() == list(range(of.card))
    for i, label in enumerate(of.states):
        assert read({of.name: label}, [of]).columns[of.name].states().tolist() == [i]


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_whole_numbers_with_gaps_are_codes_and_not_likelihoods(library):
    values = [1, None, 0]
    if library == "pandas":
        column = pytest.importorskip("pandas").array(values, dtype="Int64")
    elif library == "polars":
        column = pytest.importorskip("polars").Series(values)
    else:
        column = pytest.importorskip("pyarrow").chunked_array([values])
    with pytest.raises(EvidenceError, match="1 is not a state"):
        read_column(variable("A", ["no", "yes"]), column)
    found, _ = read_column(variable("A", 2), column)
    assert found.codes.tolist() == [1, -1, 0]
    found, _ = read_column(variable("A", None), column)  # 1 is true
    assert found.likelihoods().tolist() == [[1, 1, 0], [0, 1, 1]]


def test_numbers_among_labels_are_told_apart():
    with pytest.raises(EvidenceError, match=r"'0.7' is not a state; expected .*, or a float in every row"):
        read_column(variable("A", ["no", "yes"]), np.array(["no", "0.7"]))


# numbers in messages, and numbers of any size -------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "values", "message"),
    [
        (A, [0.5, 1.0000000000000002], "row 1: 1.0000000000000002 is not a likelihood in [0, 1] of state 'true'"),
        (A, [0.5, -0.10000000000000002], "row 1: -0.10000000000000002 is not a likelihood in [0, 1]"),
        (A, [-1e-17, None], "row 0: -1e-17 is not a likelihood in [0, 1]"),
        (A, [10**400, 0.5], "row 0: inf is not a likelihood in [0, 1]"),
        (A, [None, -(10**400)], "row 1: -inf is not a likelihood in [0, 1]"),
        (A, [[10**400, 1]], "is not one likelihood per state"),
        (A, np.array([[10**400, 1]], dtype=object), "likelihoods must be numbers"),
        (A, np.array([[1j, 1]]), "likelihoods must be numbers"),
        (A, np.array([[1, 2]], dtype="datetime64[s]"), "likelihoods must be numbers"),
        (A, np.array([[1, 2]], dtype="timedelta64[s]"), "likelihoods must be numbers"),
        (A, np.array([np.complex128(1), None]), "row 0: (1+0j) is not a state"),
        (A, np.array(["2020-01-01"], dtype="datetime64[D]"), "has type datetime64[D], expected labels or floats"),
        (N, [10**400], "row 0: 1" + "0" * 79 + "... is not a state; expected one of 0, 1, 2 (its labels are numbers"),
        (N, [10**5000], "row 0: a value of type int is not a state"),
        (N, "x" * 78, "row 0: '" + "x" * 78 + "' is not a state"),
        (N, "x" * 79, "row 0: '" + "x" * 79 + "... is not a state"),
        (N, [0, (1, [2])], "row 1: (1, [2]) is not a state"),
        (N, ["0", None], "'0' is not a state; expected one of 0, 1, 2 (its labels are numbers; pass likelihoods as"),
        (B, ["lo", 0.5], "0.5 is not a state; expected one of 'lo', 'mid', 'hi', or likelihoods of shape (rows, 3)"),
        (A, ["true", 1], "row 1: 1 is not a state; expected one of 'true', 'false', or likelihoods of shape (rows, 2)"),
        (A, ["true", "0.0"], "row 1: '0.0' is not a state; expected one of 'true', 'false', or likelihoods of shape"),
        (A, ["true", "nan"], "row 1: 'nan' is not a state; expected one of 'true', 'false', or likelihoods of shape"),
    ],
)  # fmt: skip
def test_odd_numbers_are_refused_as_what_they_are(of, values, message):
    text = refusal({of.name: values})
    assert text.startswith(f"evidence on {of.name!r}")
    assert message in text


def test_a_label_that_is_no_number_or_no_float_gets_no_advice_on_likelihoods():
    assert (
        refusal({"A": ["maybe"]}) == "evidence on 'A', row 0: 'maybe' is not a state; expected one of 'true', 'false'"
    )


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**5000], ids=["large", "negative", "cannot be written"])
def test_a_huge_label_is_a_label_like_any_other(huge):
    of = variable("A", [huge, 1])
    for values, codes in (([1.0, nan], [1, -1]), ([1, None], [1, -1]), ([huge, None, 1], [0, -1, 1]), ([huge], [0])):
        assert read_column(of, values)[0].codes.tolist() == codes
    assert read_column(of, huge)[0].codes.tolist() == [0]
    assert read_column(of, np.array([1.0, nan]))[0].codes.tolist() == [1, -1]
    with pytest.raises(EvidenceError, match=r"row 0: 0\.5 is not a state; expected one of"):
        read_column(of, np.array([0.5]))


def test_columns_are_read_without_warnings():
    with warnings.catch_warnings(action="error"):
        read_column(variable("A", [1e300, 0.5]), np.float32([0.5]))
        read_column(variable("A", [70000, 0.5]), np.float16([0.5]))
        read({"B": [[1e308, 1e308, 1e308]]}, VARIABLES)


@pytest.mark.parametrize("states", [6, 7])
def test_messages_name_at_most_six_states(states):
    with pytest.raises(EvidenceError) as error:
        read_column(variable("A", [f"s{i}" for i in range(states)]), ["x"])
    assert str(error.value).endswith("'s4', 's5'" + ", ..." * (states == 7))


# what was read is not read again --------------------------------------------------------------------------


def three_roots():
    net = Network()
    for name, p in (("Z", 0.2), ("A", 0.6), ("Q", 0.5)):
        net.add(name, states=["yes", "no"], cpt=[p, 1 - p])
    net.add("B", ["Z", "A", "Q"], cpt=np.stack([p := np.linspace(0.05, 0.95, 8).reshape(2, 2, 2), 1 - p], axis=-1))
    return net


@pytest.mark.parametrize("query", ["Q", "Z", "B"])
@pytest.mark.parametrize(
    "table",
    [
        [[0.9, 0.3, 0.5, 0.2], [0.1, nan, 0.25, 1.0]],
        [[1.0, 0.0, 0.5, 0.2], [0.0, 1.0, nan, 1.0]],
        [[nan, 0.3, nan, 0.2]],
    ],
)
def test_the_columns_of_an_array_follow_the_network(query, table):
    net = three_roots()
    given = {name: [row[i] for row in table] for i, name in enumerate(net)}
    expected = semantics.posterior(net, query, given)
    close(net.posterior(query, given), expected)
    for array in (np.array(table), table, np.ma.masked_invalid(table)):
        close(net.posterior(query, array), expected)


@given(st.data(), networks())
def test_evidence_that_was_read_is_read_as_itself(data, net):
    variables = [net.variable(n) for n in net]
    known = read(data.draw(evidence(net, rows=2)), variables)
    again = read(known, variables, declared=sorted(known.columns))
    assert (again.rows, set(again.columns)) == (known.rows, set(known.columns))
    assert all(again.columns[name] is column for name, column in known.columns.items())


def test_evidence_that_was_read_keeps_its_rows():
    single = Column(A, codes=np.array([1]))
    known = Evidence(3, {"A": single, "B": Column(B, codes=np.array([0, 1, 2]))})
    assert read(known, VARIABLES) == known
    assert read(Evidence(3, {"A": single}), VARIABLES).rows == 3
    assert read({"A": single, "N": [0, 1, 2]}, VARIABLES).rows == 3
    with pytest.raises(EvidenceError, match="evidence on 'B' has 3 rows, other columns have 2"):
        read({"A": [0.5, 0.5], "B": known.columns["B"]}, VARIABLES)
    with pytest.raises(EvidenceError, match="compiled for evidence on"):
        read(known, VARIABLES, declared=["A"])


# columns --------------------------------------------------------------------------------------------------


def test_columns_are_cut_by_rows_and_single_rows_speak_for_all():
    hard, soft = (
        Column(B, codes=np.array([0, 2, -1, 1])),
        Column(A, soft=np.array([[0.1, 0.2, 0.3, 0.4], [0.9, 0.8, 0.7, 0.6]])),
    )
    assert (hard.rows, soft.rows) == (4, 4)
    assert hard.block(1, 3).codes.tolist() == [2, -1]
    assert soft.block(1, 3).soft.tolist() == [[0.2, 0.3], [0.8, 0.7]]
    assert hard.take(np.array([3, 0])).codes.tolist() == [1, 0]
    assert soft.take(np.array([3, 0])).soft.tolist() == [[0.4, 0.1], [0.6, 0.9]]
    for column in (hard, soft):
        one = column.block(0, 1)
        assert one.block(0, 4) is one
        assert one.take(np.array([0, 0])) is one
        assert one.variable is column.variable is column.take(np.array([0, 1])).variable


def test_a_column_is_certain_if_every_row_has_a_state():
    assert Column(B, codes=np.array([0, 2])).fully_observed
    assert not Column(B, codes=np.array([0, -1])).fully_observed
    assert not Column(A, soft=np.array([[1.0], [0.0]])).fully_observed


def test_likelihoods_of_one_row_are_taken_by_name():
    known = read({"A": [0.25, 0.5], "B": "mid"}, VARIABLES)
    assert {name: values.tolist() for name, values in known.likelihoods(1).items()} == {"A": [0.5, 0.5], "B": [0, 1, 0]}
    assert known.likelihoods()["A"].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("few", [0, 32])
def test_more_states_than_are_compared_one_by_one(monkeypatch, few):
    monkeypatch.setattr("tacit.evidence.labels.MAX_COMPARED_STATES", few)
    order = np.random.default_rng(1).permutation(100)
    for labels in ([f"s{i}" for i in order], order.tolist(), (order / 8).tolist()):
        of = variable("A", labels)
        rows = np.random.default_rng(2).integers(0, 100, 300)
        column = np.array(labels)[rows]
        assert read_column(of, column)[0].codes.tolist() == rows.tolist()
        wrong = column.copy()
        wrong[17] = "z" if column.dtype.kind == "U" else 1000
        wrong[40] = "a" if column.dtype.kind == "U" else -1000
        with pytest.raises(EvidenceError, match=f"row 17: {wrong[17].item()!r} is not a state"):
            read_column(of, wrong)
        if column.dtype.kind == "f":
            column[5] = nan
            assert read_column(of, column)[0].codes.tolist() == [*rows[:5].tolist(), -1, *rows[6:].tolist()]


def test_thirty_three_states_are_read_as_thirty_two_are():
    for count in (32, 33):
        of = variable("A", [i / 10 for i in range(count)])
        assert read_column(of, np.float32([0.1, 3.1]))[0].codes.tolist() == [1, 31]


@pytest.mark.parametrize(
    ("kind", "states"),
    [(np.float32, [16777216, 16777217]), (np.float16, [2048, 2049]), (np.float32, [0.1, float(np.float32(0.1))])],
)
def test_short_floats_that_may_be_two_labels_are_refused_among_objects_too(kind, states):
    of = variable("A", states)
    for column in (np.array([states[-1]], kind), np.array([kind(states[-1])], object), [states[0], kind(states[-1])]):
        with pytest.raises(EvidenceError, match=f"may be .* which {kind.__name__} cannot tell apart"):
            read_column(of, np.array(column, object) if isinstance(column, list) else column)
    assert read_column(of, np.array(states, object))[0].codes.tolist() == [0, 1]


def test_a_table_of_likelihoods_is_not_changed():
    values = np.array([[1.0, 1.0, 2.0], [nan, nan, nan], [1e308, 1e308, 0]])
    before = values.copy()
    assert column(B, values) == [[0.25, 0.25, 0.5], [1, 1, 1], [0.5, 0.5, 0]]
    np.testing.assert_array_equal(values, before)
    floats = np.array([0.25, nan])
    column(A, floats)
    np.testing.assert_array_equal(floats, [0.25, nan])
    objects = np.ma.array(np.array(["true", "false"], dtype=object), mask=[False, True])
    assert column(A, objects) == [[1, 0], [1, 1]]
    assert objects.data.tolist() == ["true", "false"]


def test_likelihoods_further_apart_than_floats_can_hold():
    variable = Variable("A")
    with pytest.raises(EvidenceError, match=r"row 1: the likelihoods .* are further apart than floats can hold"):
        read({"A": [[1.0, 0.0], [1e200, 1e-200]]}, [variable])
    close(read({"A": [[1e200, 1e-100]]}, [variable]).likelihoods()["A"], [1.0, 1e-300], 0)


# as in the terminal ---------------------------------------------------------------------------------------


def alarm():
    net = tacit.Network()
    net.add("S", states=["TRUE", "FALSE"], cpt=[0.3, 0.7])
    net.add("CVP", ["S"], ["LOW", "NORMAL", "HIGH"], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    return net


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_truth_values_and_labels_of_any_case_are_labels(frame):
    net = alarm()
    expected = net.posterior("CVP", {"S": ["TRUE", "FALSE", None]})
    for column in ([True, False, None], ["True", "false ", None], ["TRUE", "fAlse", None]):
        close(net.posterior("CVP", frame({"S": column})), expected)
        close(net.posterior("CVP", {"S": column}), expected)
    close(net.posterior("CVP", {"S": np.array([True, False])}), expected[:2])
    close(net.posterior("CVP", {"S": True}), expected[:1])
    close(net.posterior("S", {"CVP": "low"}), net.posterior("S", {"CVP": "LOW"}))
    assert net.do({"S": False}) == net.do({"S": "FALSE"})


def test_labels_that_differ_in_case_only_are_told_apart():
    net = tacit.Network()
    net.add("A", states=["a", "A"], cpt=[0.3, 0.7])
    assert net.posterior("A", {"A": ["a", "A"]}).tolist() == [[1, 0], [0, 1]]
    net.add("B", ["A"], ["no", "No", "yes"], np.full((2, 3), 1 / 3))
    with pytest.raises(EvidenceError, match="'NO' is not a state"):
        net.posterior("A", {"B": ["NO"]})


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_column_for_each_state_holds_likelihoods(frame):
    net = alarm()
    likelihoods = np.array([[0.1, 0.3, 0.2], [0.2, 0.3, 0.5], [nan, nan, nan]])
    columns = dict(zip(("CVP.LOW", "CVP.NORMAL", "CVP.HIGH"), likelihoods.T.tolist(), strict=True))
    expected = net.posterior("S", {"CVP": likelihoods})
    close(net.posterior("S", frame(columns)), expected)
    close(net.posterior("S", columns), expected)
    close(tacit.compile(net, "S", ["CVP"]).posterior(frame(columns)), expected)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"CVP.LOW": [0.1]}, "the table has a column 'CVP.LOW' but no 'CVP.NORMAL'; expected one for every state"),
        ({"CVP.LOW": [0.1], "CVP": ["LOW"]}, "the table has columns 'CVP' and 'CVP.LOW'; expected one or the other"),
        ({"CVP.LOW": ["x"], "CVP.NORMAL": [1], "CVP.HIGH": [1]}, "column 'CVP.LOW': expected likelihoods, which are"),
        ({"CVP.LOW": [0.1], "CVP.NORMAL": [1, 2], "CVP.HIGH": [1]}, "'CVP.NORMAL' has 2 rows, but 'CVP.LOW' has 1"),
        ({"CVP.LOW": [[0.1]], "CVP.NORMAL": [1], "CVP.HIGH": [1]}, r"column 'CVP.LOW' has shape \(1, 1\); expected"),
        ({"CVP.LOW": [-1], "CVP.NORMAL": [1], "CVP.HIGH": [1]}, "evidence on 'CVP', row 0: .*must not be negative"),
        ({"CVP.low": [0.1]}, "the table has a column 'CVP.low' but no 'CVP.NORMAL'; expected one for every state"),
        ({"CVP.lo": [0.1]}, "evidence names 'CVP.lo', which is not a variable of the network; did you mean 'CVP'"),
        ({"CVP.low": [0.1], "CVP.Low": [0.1]}, "'CVP.Low' and 'CVP.low', which may both be 'CVP.LOW'; expected one"),
    ],
)
def test_wrong_columns_of_states_are_refused(columns, message):
    with pytest.raises(EvidenceError, match=message):
        alarm().posterior("S", columns)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_of_states_are_found_in_any_case(frame):
    net = alarm()
    expected = net.posterior("CVP", {"S": [[0.2, 0.8], [0.6, 0.4]]})
    for names in (("S.true", "S.False"), ("S.TRUE", "S.false"), ("S. true", "S.FALSE ")):
        columns = dict(zip(names, ([0.2, 0.6], [0.8, 0.4]), strict=True))
        close(net.posterior("CVP", frame(columns)), expected)
    with pytest.warns(tacit.UnusedColumnWarning, match=r"not used: S\.true"):  # the other is the label as it stands
        close(net.posterior("CVP", frame({"S.TRUE": [0.2, 0.6], "S.FALSE": [0.8, 0.4], "S.true": [0, 0]})), expected)


def test_single_values_of_states_hold_for_all_rows():
    net = examples.abc()
    expected = net.posterior("B", {"A": 0.2, "C": ["lo", "hi"]})
    for values in ((0.2, 0.8), (0.2, [0.8, 0.8]), (np.float32(0.25), np.array(1.0))):
        close(net.posterior("B", {"A.true": values[0], "A.false": values[1], "C": ["lo", "hi"]}), expected)
    close(net.posterior("B", {"A.true": 0.2, "A.false": 0.8}), net.posterior("B", {"A": 0.2}))
    close(net.posterior("B", {"A.true": None, "A.false": None, "C": ["lo"]}), net.posterior("B", {"C": ["lo"]}))
    with pytest.raises(EvidenceError, match="must not be negative"):
        net.posterior("B", {"A.true": -1, "A.false": 1, "C": ["lo", "hi"]})


def test_a_column_of_a_state_that_is_a_variable_too_is_refused():
    net = tacit.Network()
    net.add("A", states=["lo", "hi"], cpt=[0.3, 0.7])
    net.add("A.lo", cpt=[0.1, 0.9])
    both = {"A.lo": [0.5, 0.2], "A.hi": [0.5, 0.8]}
    for rows in (both, pd.DataFrame(both)):
        with pytest.raises(
            EvidenceError, match=r"'A\.lo' may be evidence on the variable 'A\.lo', or likelihoods of a state of 'A'"
        ):
            net.log_likelihood(rows)
    close(net.posterior("A.lo", {"A.lo": [0.5]}), [[0.1, 0.9]])
    with pytest.raises(EvidenceError, match=r"'A\.lo' may be"):
        choose(net, list(both), wanted=[], but=[])


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_other_columns_of_a_frame_are_left_out_with_a_warning(frame):
    net, rows = alarm(), {"CVP": ["LOW", "HIGH"], "id": [1, 2], "name": ["x", "y"]}
    with pytest.warns(tacit.UnusedColumnWarning, match="^columns that are not used: id, name$") as caught:
        found = net.posterior("S", frame(rows))
    assert caught[0].filename == __file__
    close(found, net.posterior("S", {"CVP": ["LOW", "HIGH"]}))
    with pytest.warns(tacit.UnusedColumnWarning, match=r"not used: CVPP, id \(CVPP; did you mean 'CVP'\?\)$"):
        net.log_likelihood(frame({"S": ["TRUE"], "CVPP": ["LOW"], "id": [1]}))
    with pytest.raises(EvidenceError, match=r"evidence names 'cvp', which is not a variable .* did you mean 'CVP'"):
        net.log_likelihood(frame({"S": ["TRUE"], "cvp": ["LOW"]}))
    with pytest.raises(EvidenceError, match="evidence names 'id', which is not a variable"):
        net.posterior("S", frame({"id": [1]}))
    with pytest.raises(EvidenceError, match="evidence names 'id', which is not a variable"):
        net.posterior("S", rows)  # a mapping says what is meant


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("ask", ["posterior", "joint", "log_evidence", "marginals", "mpe", "sample", "read", "net"])
def test_the_query_in_a_frame_is_left_out_with_a_warning(frame, ask):
    net = alarm()
    tac = tacit.compile(net, "S", ["CVP"])
    asked = net.posterior if ask == "net" else getattr(tac, ask)
    first = ["S"] if ask == "net" else []
    rows = frame({"CVP": ["LOW", "HIGH"], "S": ["TRUE", "FALSE"], "id": [1, 2]})
    text = "^the column 'S' is the query itself and is not used as evidence; columns that are not used: id$"
    with pytest.warns(tacit.UnusedColumnWarning, match=text) as caught:
        found = asked(*first, rows)
    assert (len(caught), caught[0].filename) == (1, __file__)
    expected = asked(*first, {"CVP": ["LOW", "HIGH"]})
    if ask in ("posterior", "joint", "log_evidence", "net"):
        close(found, expected)
    if ask == "read":
        assert list(found.columns) == ["CVP"]


def test_answers_and_predictions_beside_the_evidence_are_left_out():
    net = alarm()
    rows = pd.DataFrame(
        {"CVP": ["LOW"], "S": ["TRUE"], "S.TRUE": [0.1], "s": [1]}
    )  # no error though there is no S.FALSE
    with pytest.warns(tacit.UnusedColumnWarning, match=r"'S' is the query .*; columns that are not used: S\.TRUE, s$"):
        close(tacit.compile(net, "S", ["CVP"]).posterior(rows), net.posterior("S", {"CVP": "LOW"}))
    pair = tacit.compile(net, ["S", "CVP"])
    with pytest.raises(
        EvidenceError, match=r"^no column is evidence: the columns 'CVP', 'S' are the query itself and are"
    ):
        pair.posterior(rows[["CVP", "S"]])
    with pytest.raises(
        EvidenceError, match=r"^evidence on 'CVP', but the query was .* \[\]; name it .*, or leave it out$"
    ):
        tacit.compile(net, "S").posterior(rows[["CVP"]])


def test_the_query_in_a_frame_is_no_evidence_for_theory_and_definition():
    net = examples.abc()
    tac = tacit.compile(net, "B", ["A", "C"])
    rows, frame = {"A": [0.8], "C": ["lo"]}, pd.DataFrame({"A": [0.8], "C": ["lo"], "B": ["true"]})
    pieces = tacit.theory.pieces(tacit.compile(net, "B", ["A"]))
    for ask in (
        lambda rows: semantics.posterior(net, "B", rows),
        lambda rows: semantics.information(net, "B", rows)["B"],
        lambda rows: tac.explain(rows).posterior,
        lambda rows: pieces.posterior({"A": [0.8]} if isinstance(rows, dict) else rows.drop(columns="C")),
    ):
        with pytest.warns(tacit.UnusedColumnWarning, match="^the column 'B' is the query itself"):
            found = ask(frame)
        close(found, ask(rows))
    assert semantics.most_probable(net, ["A", "B", "C"], frame) == semantics.most_probable(net, ["A", "B", "C"], {
        "A": 0.8, "C": "lo", "B": "true"
    })  # fmt: skip


def test_a_query_that_is_declared_is_evidence_in_a_frame():
    net = alarm()
    tac = tacit.compile(net, "S", ["S", "CVP"])
    rows = {"CVP": ["LOW", "HIGH"], "S": ["TRUE", None]}
    close(tac.posterior(pd.DataFrame(rows)), tac.posterior(rows))
    soft = {"CVP": ["LOW", "HIGH"], "S": [0.5, 1.0]}
    close(tac.posterior(pd.DataFrame(soft)), tac.posterior(soft))
    close(net.posterior("S", rows), tac.posterior(rows))  # a mapping says what is meant


@pytest.mark.parametrize("how", ["evidence", "hard"])
@pytest.mark.parametrize("labels", [["TRUE", "FALSE"], [True, False], np.array([[1.0, 0], [0, 2]])])
def test_a_frame_that_observes_the_query_in_all_rows_predicts_nothing(how, labels):
    tac = tacit.compile(alarm(), "S", **{how: ["S", "CVP"]})
    rows = {"CVP": ["LOW", "HIGH"], "S": labels}
    frame = dict(rows)
    if isinstance(labels, np.ndarray):
        frame |= {"S.TRUE": labels[:, 0], "S.FALSE": labels[:, 1]}
        del frame["S"]
    with pytest.warns(
        tacit.ObservedQueryWarning, match=r"^all rows observe the query itself, 'S': .*; leave it out"
    ) as caught:
        assert tac.posterior(pd.DataFrame(frame)).tolist() == [[1, 0], [0, 1]]
    assert (len(caught), caught[0].filename) == (1, __file__)
    assert tac.posterior(rows).tolist() == [[1, 0], [0, 1]]
    tac.log_evidence(pd.DataFrame(frame))  # which is no answer to the query


def test_one_of_several_query_variables_may_be_observed():
    tac = tacit.compile(alarm(), ["S", "CVP"], ["S"])
    assert tac.posterior(pd.DataFrame({"S": ["TRUE"]})).sum() == pytest.approx(1)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(
    "ask", ["posterior", "joint", "log_evidence", "marginals", "mpe", "sample", "read", "information"]
)
def test_columns_that_a_frame_lacks_are_named_once(frame, ask):
    tac = tacit.compile(examples.diamond(), "D", ["A", "B", "C"])
    rows = {"B": ["true", "false"]}
    with pytest.warns(
        tacit.MissingColumnWarning, match="^columns that are missing: A, C; there is no evidence on them$"
    ) as caught:
        getattr(tac, ask)(frame(rows))
    assert (len(caught), caught[0].filename) == (1, __file__)
    getattr(tac, ask)(rows)  # a mapping leaves out what it has nothing to say about


def test_columns_are_not_missing_where_all_is_said():
    tac = tacit.compile(alarm(), "S", ["CVP"], given=None)
    tac.posterior(pd.DataFrame({"CVP.LOW": [0.2], "CVP.NORMAL": [0.3], "CVP.high": [0.1]}))
    tac.posterior(pd.DataFrame({"CVP": [None]}))
    tac.posterior(tac.read({}))
    tac = tacit.compile(examples.diamond(), "D", ["A", "B"], given={"C": "true"})
    tac.posterior(pd.DataFrame({"A": [0.5], "B": [0.5]}))
    with pytest.raises(EvidenceError, match="there is no evidence on 'A'"):
        tacit.compile(examples.diamond(), "D", ["B"], hard=["A"]).posterior(pd.DataFrame({"B": ["true"]}))
    with pytest.warns(tacit.MissingColumnWarning, match="missing: B; there is no evidence on it$"):
        tacit.compile(examples.diamond(), "D", ["B"], hard=["A"]).posterior(pd.DataFrame({"A": ["true"]}))


def test_learning_names_missing_columns():
    tac = tacit.compile(examples.abc().learnable(), "B", ["A", "C"])
    rows = pd.DataFrame({"A": ["true", "false"], "y": ["true", "true"]})
    with pytest.warns(tacit.MissingColumnWarning, match="missing: C;"):
        tacit.fit(tac, rows[["A"]], rows["y"], steps=1, restarts=1, progress=False)
    with pytest.warns(tacit.MissingColumnWarning, match="missing: B, C;"):
        tacit.estimate(examples.abc().learnable(), rows[["A"]], prior=1, steps=1, progress=False)


def test_a_warning_points_at_a_program_beside_the_package():
    """Its folder begins like the package's."""
    program = f"{Path(tacit.__file__).parent}_app{os.sep}main.py"
    own = {"net": alarm(), "rows": pd.DataFrame({"CVP": ["LOW"], "id": [1]})}
    with pytest.warns(tacit.UnusedColumnWarning, match="not used: id$") as caught:
        exec(compile("net.posterior('S', rows)", program, "exec"), own)
    assert caught[0].filename == program


@pytest.mark.parametrize(
    "rows", [{"A": [], "C": []}, pd.DataFrame({"A": []}), pl.DataFrame({"C": []}), np.empty((0, 2))]
)
def test_no_rows_have_no_answers(rows):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"])
    assert tac.posterior(rows).shape == tac.joint(rows).shape == (0, 2)
    assert tac.log_evidence(rows).shape == (0,)
    assert tac.posterior(rows, labels=True).to_pandas().shape == (0, 2)
    assert {name: p.shape for name, p in tac.marginals(rows).items()} == dict.fromkeys("ABC", (0, 2))
    assert tac.selected(rows)["B"].weight.shape == (0, 2)
    assert {name: len(p) for name, p in tac.mpe(rows).states.items()} == dict.fromkeys("ABC", 0)
    assert {name: p.shape for name, p in tac.sample(rows, n=3).items()} == dict.fromkeys("ABC", (0, 3))
    assert {name: p.shape for name, p in tac.information(rows).items()} == dict.fromkeys("ABC", (0,))
    assert tac.sensitivity(rows).derivatives["A", "table"].shape == (0, 2, 2)
    assert tacit.compile(examples.abc(), ["B", "C"], ["A"], dtype="float32").posterior({"A": []}).shape == (0, 2, 2)
    assert tacit.compile(examples.abc(), "B", hard=["A"]).posterior({"A": []}).shape == (0, 2)


def test_no_rows_can_be_asked_but_not_learned_from():
    net = examples.abc()
    assert net.posterior("B", pd.DataFrame({"A": []})).shape == (0, 2)
    assert net.log_likelihood(pd.DataFrame({"A": []})).shape == (0,)
    with pytest.raises(EvidenceError, match="the evidence has no rows"):
        tacit.fit(tacit.compile(net.learnable(), "B", ["A"]), {"A": []}, [])
    with pytest.raises(EvidenceError, match=r"explain takes one row|the evidence has no rows"):
        tacit.compile(net, "B", ["A"]).explain({"A": []})


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_learning_leaves_other_columns_out_too(frame):
    net = alarm().learnable()
    rows = {"S": ["TRUE", "FALSE", "true"], "CVP": ["LOW", "HIGH", "low"], "id": [1, 2, 3], "w": [1.0, 2.0, 0.5]}
    plain = {name: rows[name] for name in ("S", "CVP")}
    with pytest.warns(tacit.UnusedColumnWarning, match="not used: id$"):
        found = tacit.estimate(net, frame(rows), prior=1, weights="w", progress=False)
    expected = tacit.estimate(net, plain, prior=1, weights=rows["w"], progress=False)
    assert found.network == expected.network
    tac = tacit.compile(net, "S", ["CVP"])
    X = frame({name: rows[name] for name in ("CVP", "id")})
    with pytest.warns(tacit.UnusedColumnWarning, match="not used: id$"):
        fitted = tacit.fit(tac, X, rows["S"], steps=2, restarts=1, progress=False)
    again = tacit.fit(tac, {"CVP": rows["CVP"]}, rows["S"], steps=2, restarts=1, progress=False)
    assert fitted.network == again.network


def test_tables_are_estimated_from_columns_of_states():
    net = alarm().learnable()
    likelihoods = np.array([[1.0, 0, 0], [0, 0, 1], [0.5, 0.5, 0]])
    columns = dict(zip(("CVP.LOW", "CVP.NORMAL", "CVP.HIGH"), likelihoods.T.tolist(), strict=True))
    rows = {"S": ["TRUE", "FALSE", "TRUE"]}
    found = tacit.estimate(net, rows | columns, prior=1, steps=3, progress=False)
    expected = tacit.estimate(net, rows | {"CVP": likelihoods}, prior=1, steps=3, progress=False)
    close(found.network.table("CVP"), expected.network.table("CVP"))


def test_numbers_where_states_are_texts_that_spell_them_are_refused_with_a_remedy():
    stages = variable("stage", ["0", "1", "2"])
    remedy = (
        r"its states are text: make text of whole numbers \(in pandas: column.astype\('Int64'\).astype\('string'\)\)"
    )
    for column in (pd.Series([1.0, np.nan, 2.0]), pd.Series([1, 0, 2]), [1, 2]):
        with pytest.raises(EvidenceError, match=remedy):
            read_column(stages, column)
    with pytest.raises(EvidenceError) as error:
        read_column(stages, pd.Series([0.2, 1.0]))
    assert "are text" not in str(error.value)
    frame = pd.Series([1.0, np.nan, 2.0]).astype("Int64").astype("string")
    found, _ = read_column(stages, frame)
    assert found is not None
    assert found.codes is not None
    assert found.codes.tolist() == [1, -1, 2]
