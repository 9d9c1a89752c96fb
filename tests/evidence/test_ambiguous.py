"""0 and 1 in a frame or a file: codes or likelihoods? Where the two may mean the opposite, neither is guessed."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

import tacit
from tacit import EvidenceError, semantics
from tacit.evidence.read import read, read_column
from tacit.learn.fitting.data import read_labels
from tacit.model.elements.variable import variable
from tests.helpers import close

nan = np.nan
YES = variable("Y", ["no", "yes"])


def network():
    net = tacit.Network("screening")
    net.add("Ill", states=["no", "yes"], cpt=[0.9, 0.1])
    net.add("Test", ["Ill"], ["neg", "pos"], cpt=[[0.95, 0.05], [0.2, 0.8]])
    net.add("Fever", ["Ill"], cpt=[[0.1, 0.9], [0.7, 0.3]])
    return net


def refusal(of, column):
    with pytest.raises(EvidenceError) as error:
        read({of.name: column}, [of])
    return str(error.value)


FRAMED = {
    "pandas": lambda v: pd.Series(v, dtype=float),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas nullable": lambda v: pd.Series(v, dtype="Float64"),
    "pandas category": lambda v: pd.Series(pd.Categorical(v)),
    "pandas arrow": lambda v: pd.Series(v, dtype="double[pyarrow]"),
    "polars": lambda v: pl.Series(v, dtype=pl.Float64),
    "arrow": lambda v: pa.array(v, pa.float64()),
    "arrow chunks": lambda v: pa.chunked_array([v, []], pa.float64()),
    "arrow dictionary": lambda v: pa.array(v, pa.float64()).dictionary_encode(),
    "arrow run-end": lambda v: pc.run_end_encode(pa.array(v, pa.float64())),
    "arrow float32": lambda v: pa.array(v, pa.float32()),
}


@pytest.mark.parametrize("framed", FRAMED.values(), ids=FRAMED.keys())
@pytest.mark.parametrize("values", [[None, 1.0, 0.0], [1.0, None], [0.0, None], [1.0], [0.0, 1.0]])
def test_zeros_and_ones_of_a_frame_are_refused_with_both_ways_out(framed, values):
    row = next(i for i, v in enumerate(values) if v is not None)
    assert refusal(YES, framed(values)) == (
        f"evidence on 'Y', row {row}: {values[row]:g} may be a code or the likelihood of the first state, 'no', since "
        "the column holds only 0, 1 and gaps; pass labels ('no', 'yes'), or likelihoods of shape (rows, 2)"
    )


@pytest.mark.parametrize("framed", FRAMED.values(), ids=FRAMED.keys())
@pytest.mark.parametrize(
    ("states", "values", "expected"),
    [
        (None, [1.0, None, 0.0], [[1, 0], [1, 1], [0, 1]]),
        ([0, 1], [1.0, None, 0.0], [[0, 1], [1, 1], [1, 0]]),
        ([1.0, "other"], [1.0, None], [[1, 0], [1, 1]]),
        (["no", "yes"], [1.0, None, 0.25], [[1, 0], [1, 1], [0.25, 0.75]]),
        (["no", "yes"], [0.25, None], [[0.25, 0.75], [1, 1]]),
        (["no", "yes"], [None, None], [[1, 1], [1, 1]]),
    ],
)
def test_other_columns_of_a_frame_are_read_as_always(framed, states, values, expected):
    of = variable("A", states)
    assert read({"A": framed(values)}, [of]).columns["A"].likelihoods().T.tolist() == expected


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, nan, 0.0]),
        np.float32([1.0, nan, 0.0]),
        [1.0, None, 0.0],
        (1.0, nan, 0.0),
        np.array([1.0, None, 0.0], dtype=object),
        np.ma.array([1.0, 5.0, 0.0], mask=[0, 1, 0]),
    ],
)
def test_plain_columns_are_likelihoods_of_the_first_state(column):
    assert read_column(YES, column)[0].likelihoods().T.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_single_values_and_arrays_are_likelihoods_of_the_first_state():
    assert read_column(YES, 1.0)[0].likelihoods().T.tolist() == [[1, 0]]
    known = read(np.array([[1.0, 0.0], [0.0, 1.0]]), [YES, variable("Z", ["a", "b"])])
    assert known.columns["Y"].likelihoods().T.tolist() == [[1, 0], [0, 1]]
    assert read_column(YES, [[0.0, 1.0]])[0].likelihoods().T.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([None, 1], dtype="Int64"),
        pd.Series([None, 1], dtype=object),
        pd.Series([None, True], dtype="boolean"),
        pl.Series([None, 1]),
        pa.array([None, 1]),
        [None, 1],
        np.ma.array([0, 1], mask=[1, 0]),
    ],
    ids=lambda c: f"{type(c).__module__.partition('.')[0]} {getattr(c, 'dtype', getattr(c, 'type', ''))}",
)
def test_whole_numbers_are_never_advised_to_become_floats(column):
    value = "True" if "bool" in str(getattr(column, "dtype", "")) else "1"
    assert refusal(YES, column) == (
        f"evidence on 'Y', row 1: {value} is not a state; expected one of 'no', 'yes', or likelihoods of shape "
        "(rows, 2)"
    )


class OtherFrame:
    """A frame of a library that nobody knows."""

    columns = ("Y",)

    def __getitem__(self, name):
        return np.array([1.0, nan])

    def __len__(self):
        return 2


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"Y": [1.0, nan]}),
        pl.DataFrame({"Y": [1.0, None]}),
        pa.table({"Y": [1.0, None]}),
        pa.RecordBatch.from_pydict({"Y": [1.0, None]}),
        OtherFrame(),
    ],
    ids=lambda f: type(f).__module__.partition(".")[0] + type(f).__name__,
)
def test_whole_frames_are_refused(frame):
    with pytest.raises(EvidenceError, match="evidence on 'Y', row 0: 1 may be a code or the likelihood"):
        read(frame, [YES])
    net = tacit.Network()
    net.add("Y", states=["no", "yes"], cpt=[0.3, 0.7])
    with pytest.raises(EvidenceError, match="1 may be a code or the likelihood"):
        net.log_likelihood(frame)


# labels to learn from -------------------------------------------------------------------------------------


@pytest.mark.parametrize("framed", FRAMED.values(), ids=FRAMED.keys())
def test_labels_of_a_frame_are_refused_too(framed):
    with pytest.raises(
        EvidenceError, match=r"labels of 'Y', row 0: 0 may be a code or the (probability|likelihood) of"
    ):
        read_labels(YES, framed([0.0, 1.0]))
    np.testing.assert_array_equal(read_labels(YES, framed([0.25, 1.0])), [[0.25, 1], [0.75, 0]])
    np.testing.assert_array_equal(read_labels(variable("A", None), framed([0.0, 1.0])), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(read_labels(variable("A", 2), framed([0.0, 1.0])), [[1, 0], [0, 1]])
    with pytest.raises(EvidenceError, match=r"labels of 'Y', row 1: (nan is not a probability|there is no label)"):
        read_labels(YES, framed([0.25, None]))


def test_labels_that_are_plain_numbers_are_probabilities():
    np.testing.assert_array_equal(read_labels(YES, [0.0, 1.0]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(read_labels(YES, np.array([0.0, 1.0])), [[0, 1], [1, 0]])


def test_the_message_about_labels_shows_the_number():
    with pytest.raises(EvidenceError, match=r"row 0: 1.0000000000000002 is not a probability"):
        read_labels(YES, [1.0000000000000002])


def test_labels_of_frames_keep_their_gaps():
    of = variable("Q", 2)
    for column in (
        pa.array([None, 1, 0]).dictionary_encode(),
        pc.run_end_encode(pa.array([None, 1])),
        pl.Series([None, 1]),
    ):
        with pytest.raises(EvidenceError, match="labels of 'Q', row 0: there is no label"):
            read_labels(of, column)
    column = pa.chunked_array([pa.array(["yes", "no"]).dictionary_encode()])
    np.testing.assert_array_equal(read_labels(YES, column), [[0, 1], [1, 0]])


# estimators -----------------------------------------------------------------------------------------------


def test_estimators_read_a_column_in_prediction_as_they_did_in_training():
    pytest.importorskip("sklearn")
    from tacit.sklearn import TACClassifier

    net = network().with_cpts({"Test": tacit.CPT(network().cpt("Test").table, learn=True)})
    X, y = pd.DataFrame({"Test": [0.9, 0.0, 1.0, 0.3]}), ["no", "yes", "no", "yes"]
    for frame in (X, pl.from_pandas(X)):
        model = TACClassifier(net, "Ill", steps=2, random_state=0).fit(frame, y)
        whole = model.predict_proba(frame)
        close(model.predict_proba(frame[2:3]), whole[2:3])  # a single 1.0, which was a likelihood in training
        close(model.predict_proba(frame[1:3]), whole[1:3])
    with pytest.raises(EvidenceError, match="may be a code or the likelihood of the first state, 'neg'"):
        TACClassifier(net, "Ill", steps=2).fit(X.round(), y)
    plain = TACClassifier(net, "Ill", ["Test"], steps=2, random_state=0).fit(X.round().to_numpy(), y)
    assert plain.predict_proba(np.array([[1.0]])).shape == (1, 2)
    labels = TACClassifier(net, "Ill", steps=2, random_state=0).fit(pd.DataFrame({"Test": ["neg", "pos"] * 2}), y)
    with pytest.raises(EvidenceError, match="may be a code"):
        labels.predict_proba(pd.DataFrame({"Test": [1.0]}))


# files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command line in a folder with the network, as a function."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from tacit.cli.app import app

    monkeypatch.chdir(tmp_path)
    tacit.save(network(), "net.json")

    def command(*arguments, code=0):
        found = CliRunner().invoke(app, [str(a) for a in arguments])
        assert found.exit_code == code, found.output
        return found.stderr if code else found.stdout

    return command


def batch(run, table, code=0):
    return run("batch", "net.json", table, "-q", "Ill", "-o", "out.csv", code=code)


def answers():
    return csv.read_csv("out.csv")["Ill.yes"].to_numpy()


def written(name, columns):
    table = pa.table(columns)
    parquet.write_table(table, name) if name.endswith("parquet") else csv.write_csv(table, name)
    return name


REFUSED = (
    "column 'Test' holds only 0, 1 and gaps, which may be codes or likelihoods of the first state, 'neg'; write labels "
    "('neg', 'pos'), or likelihoods of both states in columns 'Test.neg' and 'Test.pos'"
)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("values", [[1.0, None, 0.0], [1, None, 0], [1, 0], [1.0, 1.0]])
def test_zeros_and_ones_of_a_file_are_refused_with_both_ways_out(run, name, values):
    rows = {"Fever": ["true"] * len(values)}
    error = batch(run, written(name, {"Test": pa.array(values), **rows}), code=1)
    assert error.splitlines()[-1] == f"tacit: {name}: {REFUSED}"
    labels = [v if v is None else ["neg", "pos"][int(v)] for v in values]
    batch(run, written(name, {"Test": labels, **rows}))
    by_label = answers()
    close(by_label, semantics.posterior(network(), "Ill", {"Test": labels, **rows})[:, 1])
    both = {f"Test.{s}": [v if v is None else float(v == i) for v in values] for i, s in enumerate(("neg", "pos"))}
    batch(run, written(name, {**both, **rows}))
    close(answers(), by_label)


def test_text_of_zeros_and_ones_in_a_file_is_refused(run):
    Path("rows.csv").write_text("Test,Fever\n1.0,true\nNA,true\n 0,true\n")
    assert REFUSED in batch(run, "rows.csv", code=1)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_likelihood_anywhere_in_a_file_makes_all_numbers_likelihoods(run, monkeypatch, name, place):
    from tacit.evidence.tables import csv_parquet as files

    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    monkeypatch.setattr(files, "BLOCK_BYTES", 24)
    values = [1.0, 0.0] * 6
    values[place] = 0.25
    scans = []
    batches = files.CSV.batches if name.endswith("csv") else files.Parquet.batches
    kind = files.CSV if name.endswith("csv") else files.Parquet
    monkeypatch.setattr(kind, "batches", lambda *a: scans.append(a[1]) or batches(*a))
    batch(run, written(name, {"Test": values, "Fever": ["true"] * 12}))
    close(answers(), semantics.posterior(network(), "Ill", {"Test": values, "Fever": "true"})[:, 1])
    assert len(scans) == 2  # the answers, and one look at what else the column holds


def test_labels_elsewhere_in_a_file_make_no_likelihoods(run, monkeypatch):
    from tacit.evidence.tables import csv_parquet as files

    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    monkeypatch.setattr(files, "BLOCK_BYTES", 16)
    Path("rows.csv").write_text("Test,Fever\n" + "1.0,true\n" * 4 + "neg,true\n" * 4)
    assert REFUSED in batch(run, "rows.csv", code=1)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("values", [[1.0, 0.0, 1.0], [1, 0, 1], [1.0, None, 0.0]])
def test_answers_to_learn_from_are_refused_too(run, name, values):
    table = written(name, {"Fever": ["true", "false", "true"], "y": pa.array(values)})
    arguments = ("train", "net.json", table, "-q", "Ill", "--label", "y", "--learn", "Ill", "--steps", 1)
    error = run(*arguments, code=1)
    assert "column 'y' holds only 0, 1 and gaps" in error
    assert "in columns 'y.no' and 'y.yes'" in error
    if None not in values:
        written(name, {"Fever": ["true", "false", "true"], "y": [["no", "yes"][int(v)] for v in values]})
        run(*arguments)


def test_an_answer_that_lacks_is_named(run):
    Path("rows.csv").write_text("Test,y\nneg,1\nneg,\n")
    error = run("train", "net.json", "rows.csv", "-q", "Fever", "--label", "y", "--learn", "Fever", code=1)
    assert "rows.csv: labels of 'Fever', row 2: there is no label" in error


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_whole_numbers_of_a_file_stay_whole(run, name):
    big = 2**53
    net = tacit.Network()
    net.add("Ill", cpt=[0.5, 0.5])
    net.add("Code", ["Ill"], [big, big + 1, 10**19, 0.5], [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    tacit.save(net, "net.json")
    kinds = [[big + 1, None, big], [10**19, None], ["0.5", str(big + 1), "NA", str(10**19)]]
    for values in kinds:
        column = pa.array(values, pa.string() if isinstance(values[0], str) else pa.uint64())
        run(
            "batch", "net.json", written(name, {"Code": column, "id": range(len(values))}), "-q", "Ill", "-o", "out.csv"
        )
        meant = [None if v in (None, "NA") else 0.5 if v == "0.5" else int(v) for v in values]
        expected = semantics.posterior(net, "Ill", {"Code": meant})[:, 0]
        close(csv.read_csv("out.csv")["Ill.true"].to_numpy(), expected)
