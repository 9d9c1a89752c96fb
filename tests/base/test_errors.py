"""Errors about evidence: what they are about is in fields, and the message is made of them."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tacit
from tacit import examples
from tacit.base.errors import EvidenceError, TacitError, WrongValue
from tacit.clusters.work import plain_errors
from tacit.evidence.read import AmbiguousEvidenceError
from tacit.evidence.tables.messages import in_file, in_partition
from tacit.learn.fitting.data import read_labels
from tacit.model.elements.variable import Variable

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
ODD = "a, row 7: b"  # a name that looks like a place in a message


def refusal(evidence, name=ODD):
    net = tacit.Network()
    net.add(name, states=["lo", "hi"], cpt=[0.5, 0.5])
    with pytest.raises(EvidenceError) as caught:
        tacit.compile(net, name, [name]).read(evidence)
    return caught.value


def test_an_error_tells_its_variable_and_row():
    error = refusal({"A": ["lo", "mid"]}, "A")
    assert (error.variable, error.row, error.place) == ("A", 1, None)
    assert str(error) == "evidence on 'A', row 1: 'mid' is not a state; expected one of 'lo', 'hi'"


def test_the_row_is_found_whatever_the_variable_is_called():
    error = refusal({ODD: ["lo", "lo", "mid"]})
    problem = "'mid' is not a state; expected one of 'lo', 'hi'"
    assert str(error.moved(100)) == f"evidence on 'a, row 7: b', row 102: {problem}"
    assert str(in_file(error, "rows.csv", first=100)) == f"rows.csv: evidence on 'a, row 7: b', row 103: {problem}"
    assert str(in_partition(error, 4)) == f"partition 4: evidence on 'a, row 7: b', row 2: {problem}"
    assert str(error.changed(row=None)) == f"evidence on 'a, row 7: b': {problem}"


def test_a_plain_message_stays_as_it_is():
    error = EvidenceError("there are no rows, row 3: none")
    assert str(error) == str(error.moved(5)) == "there are no rows, row 3: none"
    assert str(in_file(error, "rows.csv", first=5)) == "rows.csv: there are no rows, row 3: none"
    assert error.variable is error.row is error.place is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("kind", [EvidenceError, AmbiguousEvidenceError])
def test_an_error_stays_the_same_where_it_is_copied(kind, again):
    error = kind("'x' is not a state", variable="A", row=2).at("partition 3", first=100)
    error.add_note("from a worker")
    found = again(error)
    assert type(found) is kind
    assert str(found) == "partition 3: evidence on 'A', row 102: 'x' is not a state"
    assert vars(found) == vars(error)
    assert str(found.changed(row=None)) == "partition 3: evidence on 'A': 'x' is not a state"


@pytest.mark.parametrize(("values", "expected"), [
    (["b", "x"], "labels of 'evidence on', row 1: 'x' is not a state; expected one of 'a', 'b', 'c'"),
    (np.full((2, 1, 1), "b"), "labels of 'evidence on' has 3 dimensions; expected (rows,) or (rows, 3)"),
    ([0.5, None], "labels of 'evidence on', which has 3 states, is a column of floats; expected labels, or likelihoods "
                  "of shape (rows, 3)"),
    (np.array([0], "datetime64[D]"), "labels of 'evidence on' has type datetime64[D], expected labels or floats"),
])  # fmt: skip
def test_labels_are_called_labels(values, expected):
    with pytest.raises(EvidenceError) as caught:
        read_labels(Variable("evidence on", ("a", "b", "c")), values)
    assert str(caught.value) == expected
    assert caught.value.variable == "evidence on"


def test_a_bad_weight_of_a_later_batch_is_named_by_its_row():
    net = examples.abc()
    batches = [{"A": ["true"], "B": ["true"], "C": ["lo"], "w": [weight]} for weight in (1, -1)]
    with pytest.raises(EvidenceError, match=r"^weights, row 1: -1 is not a finite number >= 0$"):
        tacit.estimate(net.learnable(), iter(batches), weights="w", progress=False)


@pytest.mark.parametrize(("line", "expected"), [
    ("tacit.base.errors.EvidenceError: partition 3: evidence on 'A', row 2: bad", EvidenceError),
    ("tacit.evidence.read.AmbiguousEvidenceError: partition 3: evidence on 'A', row 2: bad", EvidenceError),
    ("tacit.base.errors.NetworkError: partition 3: evidence on 'A', row 2: bad", TacitError),
])  # fmt: skip
def test_an_error_of_ours_is_found_in_a_traceback(line, expected):
    text = "Job aborted\nTraceback:\n  raise EvidenceError('tacit.base.errors.UnsetError: no')\n"
    text += f"{line}\n\nDriver stacktrace:"
    with pytest.raises(TacitError) as caught, plain_errors():
        raise RuntimeError(text)
    assert type(caught.value) is expected
    assert str(caught.value) == "partition 3: evidence on 'A', row 2: bad"


def test_all_wrong_values_move_with_their_rows():
    values = [WrongValue("lo?", 3, 4, "lo"), *(WrongValue(i, 1, i) for i in range(6))]
    error = EvidenceError("'lo?' is not a state", variable="A", row=4, values=values)
    there = pickle.loads(pickle.dumps(error)).at("rows.csv", first=101)
    assert [wrong.first for wrong in there.values] == [105, *range(101, 107)]
    assert str(there) == (
        "rows.csv: evidence on 'A', row 105: 'lo?' is not a state; 9 rows name no state: 'lo?' (3, first in row 105, "
        "did you mean 'lo'?), 0 (1, first in row 101), 1 (1, first in row 102), 2 (1, first in row 103), 3 (1, "
        "first in row 104), and 2 other values"
    )


def test_errors_that_are_documented_are_names_of_the_package():
    from tacit import AmbiguousColumnError, AmbiguousEvidenceError

    assert issubclass(AmbiguousColumnError, tacit.EvidenceError)
    assert AmbiguousEvidenceError is tacit.evidence.read.AmbiguousEvidenceError


def test_modules_are_loaded_when_they_are_named():
    pytest.importorskip("starlette")
    assert callable(tacit.serve.application)
    assert {"serve", "sklearn", "torch"} <= set(dir(tacit))
    code = "import sys, tacit; print({'pandas', 'starlette', 'scipy', 'numba', 'tacit.serve'} & sys.modules.keys())"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "set()"


def test_all_that_is_wrong_becomes_a_frame():
    pd = pytest.importorskip("pandas")
    net = examples.abc()
    rows = pd.DataFrame({"A": [0.2, -1.0, 0.1], "C": ["low", "hii", "low"]}, index=["p", "q", "r"])
    with pytest.raises(EvidenceError) as caught:
        tacit.compile(net, "B", ["A", "C"]).posterior(rows)
    frame = caught.value.to_pandas()
    assert frame["variable"].tolist() == [caught.value.variable] * 2
    assert frame["value"].tolist() == ["low", "hii"]
    assert frame["rows"].tolist() == [2, 1]
    assert frame["first"].tolist() == [0, 1]
    assert frame["index"].tolist() == ["p", "q"]
    assert frame["nearest"].tolist() == ["lo", "hi"]
    both = caught.value.changed(others=[EvidenceError(" has 3 dimensions", variable="A")]).to_pandas()
    assert both["variable"].tolist() == ["C", "C", "A"]
    assert both["problem"].tolist() == ["names no state", "names no state", "has 3 dimensions"]
    assert both["first"].dtype == both["rows"].dtype == "Int64"


def test_the_wrong_rows_of_a_table_are_masked():
    rows = {"A": ["true", "no", None, "false", [1]], "C": ["lo", "hi", "high", None, "lo"]}
    with pytest.raises(EvidenceError) as caught:
        examples.abc().posterior("B", rows)
    assert caught.value.mask(rows).tolist() == [False, True, True, False, True]
    likelihoods = EvidenceError("-1 is no likelihood", variable="A", row=3)
    assert likelihoods.mask(rows).tolist() == [False, False, False, True, False]
    assert EvidenceError(" has codes", variable="A", row=0, rows=5).mask(rows).all()
    with pytest.raises(tacit.TacitError, match="about none of these columns"):
        likelihoods.mask({"C": ["lo"]})


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow"])
def test_all_wrong_numbers_are_counted_and_masked(library):
    net = tacit.Network()
    net.add("Q", cpt=[0.5, 0.5])
    net.add("heat", ["Q"], cpt=tacit.Gaussian([20, 90], 10))
    net.add("trips", ["Q"], cpt=tacit.Poisson([1, 5]))
    columns = {"heat": ["21", "low", "1,5", "20", "low", None], "trips": [1.0, -1.0, None, 2.5, -1.0, 0.0]}
    rows = columns if library == "dict" else getattr(pytest.importorskip(library), FRAMES[library])(columns)
    with pytest.raises(EvidenceError) as caught:
        net.posterior("Q", rows)
    assert str(caught.value) == (
        "evidence on 'heat', row 1: 'low' is not a number; the column is text, and 2 of 5 values spell numbers: "
        "convert it (in pandas, pd.to_numeric(column, errors='coerce') makes the others gaps); "
        "write numbers with a point (1.5); "
        "3 rows are not numbers: 'low' (2, first in row 1), '1,5' (1, first in row 2)"
    )
    assert caught.value.mask(rows).tolist() == [False, True, True, False, True, False]
    with pytest.raises(EvidenceError) as caught:
        net.posterior("Q", {"trips": rows["trips"]})
    assert str(caught.value) == (
        "evidence on 'trips', row 1: -1 is not a whole number from 0 on; 3 rows are wrong: -1.0 (2, first in row 1), "
        "2.5 (1, first in row 3)"
    )
    assert caught.value.mask(rows).tolist() == [False, True, False, True, True, False]


def test_truth_values_are_no_numbers():
    net = tacit.Network()
    net.add("Q", cpt=[0.5, 0.5])
    net.add("heat", ["Q"], cpt=tacit.Gaussian([20, 90], 10))
    message = "'heat', row 0: True is a truth value, and no number; write 1 and 0 if these are meant"
    with pytest.raises(EvidenceError, match=message):
        net.posterior("Q", {"heat": np.array([True, False])})
    with pytest.raises(EvidenceError) as caught:
        net.posterior("Q", {"heat": [1.0, None, True]})
    assert caught.value.mask({"heat": [1.0, None, True]}).tolist() == [False, False, True]


def test_infinite_numbers_of_several_columns_are_counted_in_each():
    net = tacit.Network()
    net.add("Q", cpt=[0.5, 0.5])
    net.add(["x", "y"], ["Q"], cpt=tacit.Gaussian([[0, 0], [1, 1]], cov=np.eye(2)))
    rows = {"x": [0.0, np.inf, 1.0, np.inf], "y": [1.0, 2.0, -np.inf, 2.0]}
    with pytest.raises(EvidenceError) as caught:
        net.posterior("Q", rows)
    assert [(one.variable, one.row, len(one.values)) for one in (caught.value, *caught.value.others)] == [
        ("x", 1, 1),
        ("y", 2, 1),
    ]
    assert caught.value.mask(rows).tolist() == [False, True, True, True]


def test_a_frame_says_what_is_wrong_with_numbers_and_whole_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    net = tacit.Network()
    net.add("T", bins=[0, 50, 100], cpt=[0.5, 0.5])
    net.add("S", states=["yes", "no"], cpt=[0.5, 0.5])
    net.add("D", states=["a", "b", "c"], cpt=[0.2, 0.3, 0.5])
    net.add("Q", cpt=[0.5, 0.5])
    tac = tacit.compile(net, "Q", ["T", "S", "D"])
    with pytest.raises(EvidenceError, match=r"2 rows are outside the range: 100\.2") as numbers:
        tac.posterior(pd.DataFrame({"T": [1, 100.2, None, 101], "S": [1.0, 0, None, 1], "D": [0.1, 0.2, None, 1]}))
    found = numbers.value.to_pandas()
    assert found["variable"].tolist() == ["T", "T", "S", "D"]
    assert found["rows"].tolist() == [1, 1, 4, 4]
    assert found["first"].tolist() == [1, 3, 0, pd.NA]
    assert found["problem"][:2].tolist() == ["is outside the range"] * 2
    assert "may be a code or the likelihood" in found["problem"][2]
    with pytest.raises(EvidenceError, match="2 rows are wrong: '92,1'") as texts:
        tac.posterior(pd.DataFrame({"T": ["1", "92,1", "5", "101"]})[["T"]].assign(S="yes", D="a"))
    assert texts.value.to_pandas()["problem"].tolist() == ["is not a number", "is outside the range"]
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    path.write_text("T,S,D\n1,1,a\n200,0,b\n")
    with pytest.raises(EvidenceError, match=r"rows\.csv: column 'S' holds only 0, 1 and gaps") as of_file:
        tacit.estimate(net.learnable(), path)
    found = of_file.value.to_pandas()
    assert sorted(zip(found["variable"], found["rows"], strict=True)) == [("S", 2), ("T", 1)]
