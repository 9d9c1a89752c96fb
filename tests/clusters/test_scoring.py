"""The plan for a table on a cluster, and what a worker does with a part of it: without any cluster."""

import pickle

import numpy as np
import pytest

import tacit
from tacit.base.errors import EvidenceError, TacitError, UnsetError
from tacit.examples import abc
from tacit.query.answer_columns import LogEvidence, MostProbable, SampleColumns
from tests.helpers import impossible

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

from tacit.clusters.scoring import Request, posteriors  # noqa: E402


def compiled(query="B", evidence=("A", "C"), **options):
    return tacit.compile(abc(), query, evidence=evidence, **options)


def request(tac=None, wanted=None, **options):
    tac = tac or compiled()
    return Request(tac, wanted or posteriors(tac), **options)


def copies():
    """Two variables that are always in the same state."""
    net = tacit.Network()
    net.add("X", states=[3, 4, 5], cpt=[0.2, 0.3, 0.5])
    net.add("Y", parents=["X"], states=[3, 4, 5], cpt=np.eye(3))
    return net


# planning ---------------------------------------------------------------------------------------------------


def test_the_plan_needs_names_only():
    scorer = request(keep=["id"], names={"B.true": "risk"}).scorer(["id", "C.lo", "C.hi", "A", "B", "other", 7])
    assert scorer.columns == ["id", "A", "C.lo", "C.hi"]
    assert scorer.fields == (("risk", pa.float64()), ("B.false", pa.float64()))


def test_variables_without_a_column_are_named_where_the_table_is_planned():
    with pytest.warns(tacit.MissingColumnWarning, match="^columns that are missing: C; there is no evidence on it$"):
        scorer = request().announced(["id", "A", "B"])
    assert scorer.columns == ["A"]
    request().scorer(["id", "A", "B"])  # in a worker, which plans the same again
    request().announced(["A", "C.lo", "C.hi"])
    with pytest.raises(EvidenceError, match="the table has no column 'C', which is observed in every row"):
        request(compiled(evidence=["A"], hard=["C"])).announced(["A"])


def test_rows_of_a_cluster_bring_no_tables_along():
    with pytest.raises(TacitError, match="the answer of a cluster is about one network"):
        request(compiled(per_row=["C"])).announced(["A", "C", "C.table"])


def test_the_fields_of_each_question():
    net = copies()
    tac = tacit.compile(net, ["X", "Y"], evidence=["Y"], dtype="float32")
    numbers = [("X", pa.int64()), ("Y", pa.int64())]
    assert [name for name, _ in request(tac).scorer(["Y"]).fields][:2] == ["X.3,Y.3", "X.3,Y.4"]
    assert {kind for _, kind in request(tac).scorer(["Y"]).fields} == {pa.float32()}
    assert request(tac, LogEvidence()).scorer(["Y"]).fields == (("log_evidence", pa.float64()),)
    assert request(tac, MostProbable()).scorer(["Y"]).fields == (*numbers, ("log_probability", pa.float64()))
    assert request(tac, SampleColumns()).scorer(["Y"]).fields == tuple(numbers)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["id"], {}, "no column of the table is evidence (A, C); it has id"),
        ([], {}, "it has none"),
        (["A", "c"], {}, "column 'c' is not a variable; did you mean 'C'?"),
        (["A", " C "], {}, "column ' C ' is not a variable; did you mean 'C'?"),
        (["A", "C", "C.lo"], {}, "the table has columns 'C' and 'C.lo'; expected one or the other"),
        (["A", "C.lo"], {}, "the table has a column 'C.lo' but no 'C.hi'"),
        (["A", "A"], {}, "the table has two columns 'A'"),
        (["A"], {"keep": ["id"]}, "the table has no column 'id' to keep; it has A"),
        (["A"], {"names": {"B": "risk"}}, "names= renames 'B', which is not a column of the result"),
        (["A"], {"names": {"B": "risk"}}, "it has B.true, B.false"),
        (["A"], {"names": {"B.true": "x", "B.false": "x"}}, "the answer would have two columns 'x'"),
        (["A"], {"names": {"B.true": "A"}, "keep": ["A"]}, "the answer would have two columns 'A'"),
        (["A"], {"wanted": MostProbable(), "keep": ["A"]}, "the answer would have two columns 'A'"),
        (["A"], {"likelihoods": ["C"]}, "likelihoods= names 'C', on which the table has no evidence"),
    ],
)
def test_mistakes_show_at_once(columns, options, message):
    with pytest.raises(TacitError) as caught:
        request(**options).scorer(columns)
    assert message in str(caught.value)


def test_a_column_that_is_kept_may_be_spelt_like_a_variable():
    assert request(keep=["c"]).scorer(["A", "c"]).columns == ["c", "A"]


def test_variables_that_are_no_evidence_are_left_alone():
    assert request().scorer(["A", "B", "b"]).columns == ["A"]


def test_one_name_needs_no_list():
    assert request(keep="id", likelihoods="C").scorer(["id", "C"]).evidence.soft == {"C"}


@pytest.mark.parametrize(("how", "word"), [("hard", "observed"), ("do", "set")])
def test_columns_that_every_row_needs(how, word):
    tac = compiled(evidence=["A"], **{how: ["C"]})
    with pytest.raises(EvidenceError, match=f"no column 'C', which is {word} in every row; it has A"):
        request(tac).scorer(["A"])
    assert request(tac).scorer(["C"]).columns == ["C"]


def test_queries_that_cannot_be_asked():
    with pytest.raises(TacitError, match="without a query"):
        posteriors(compiled(query=None))
    with pytest.raises(TacitError, match="without evidence"):
        request(compiled(evidence=[])).scorer(["A"])
    net = tacit.Network()
    net.add("A")
    with pytest.raises(UnsetError):
        request(tacit.compile(net, "A", evidence=["A"])).scorer(["A"])
    net = copies()
    with pytest.raises(EvidenceError, match=r"has 3 states; .* expected columns X\.3, X\.4, X\.5"):
        request(tacit.compile(net, "Y", evidence=["X"]), likelihoods=["X"]).scorer(["X"])


# scoring ----------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"id": [1, 2, 3], "A": [0.8, np.nan, 0.3], "C": ["lo", "hi", None]})


@pytest.mark.parametrize("make", [pd.DataFrame, pa.Table.from_pandas, pa.RecordBatch.from_pandas])
def test_a_part_of_any_kind(make):
    tac = compiled()
    scorer = pickle.loads(pickle.dumps(request(tac).scorer(FRAME.columns)))
    found = scorer.score(make(FRAME))
    np.testing.assert_array_equal(found.to_pandas().to_numpy(), tac.posterior(FRAME[["A", "C"]]))


def test_what_is_kept_comes_first():
    answer = request(keep=["id", "C"]).scorer(FRAME.columns).with_kept(pa.Table.from_pandas(FRAME))
    assert answer.column_names == ["id", "C", "B.true", "B.false"]
    assert answer["C"].to_pylist() == ["lo", "hi", None]


@pytest.mark.parametrize("wanted", [None, LogEvidence(), MostProbable(), SampleColumns((0,))])
def test_an_empty_part_has_the_same_columns(wanted):
    scorer = request(wanted=wanted).scorer(FRAME.columns)
    whole, empty = scorer.score(FRAME, 0), scorer.score(FRAME.iloc[:0], 1)
    assert empty.schema == whole.schema
    assert len(empty) == 0


def test_the_engine_is_built_once_for_all_parts():
    scorer = request().scorer(FRAME.columns)
    again = pickle.loads(pickle.dumps(scorer))
    scorer.score(FRAME)
    assert again.query.get().engine() is scorer.query.get().engine()


def test_likelihoods_of_each_state():
    tac = compiled()
    soft = np.array([[0.1, 0.3], [0.0, 2.0], [np.nan, np.nan]])
    frame = pd.DataFrame({"C.lo": soft[:, 0], "C.hi": soft[:, 1]})
    found = request(tac).scorer(frame.columns).score(frame)
    np.testing.assert_array_equal(found.to_pandas().to_numpy(), tac.posterior({"C": soft}))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([0.0, 1.0, np.nan]),
        pd.Series([0, 1, None], dtype="Int64"),
        pd.Series([0, 1, None], dtype=object),
        pa.array([0.0, 1.0, None]),
        pa.chunked_array([pa.array([0]), pa.array([1, None])]),
    ],
)
def test_likelihoods_that_look_like_codes(column):
    tac = compiled()
    rows = pd.DataFrame({"C": column}) if isinstance(column, pd.Series) else pa.table({"C": column})
    found = request(tac, likelihoods=["C"]).scorer(["C"]).score(rows)
    np.testing.assert_array_equal(found.to_pandas().to_numpy(), tac.posterior({"C": np.array([0.0, 1.0, np.nan])}))


def test_likelihoods_have_the_bits_of_a_plain_column():
    tac, values = compiled(), np.random.default_rng(0).random(10_000) ** 8
    found = request(tac, likelihoods=["C"]).scorer(["C"]).score(pd.DataFrame({"C": values}))
    np.testing.assert_array_equal(found.to_pandas().to_numpy(), tac.posterior({"C": values}))


@impossible
def test_impossible_rows_are_null_and_nobody_is_warned(recwarn):
    tac = tacit.compile(copies(), "X", evidence=["X", "Y"])
    frame = pd.DataFrame({"X": [3, 4], "Y": [3, 5]})
    for wanted in (posteriors(tac), MostProbable(), SampleColumns((0,))):
        found = request(tac, wanted).scorer(frame.columns).score(frame, 0)
        assert found[0].is_null().to_pylist() == [False, True]
    assert request(tac, LogEvidence()).scorer(frame.columns).score(frame)[0].to_pylist()[1] == -np.inf
    assert not recwarn.list


def test_seeds_partitions_and_places_decide_samples():
    frame = pd.DataFrame({"C": ["lo"] * 100})
    scorer = request(wanted=SampleColumns((5,))).scorer(frame.columns)
    drawn = [scorer.score(frame, partition, first) for partition, first in [(0, 0), (0, 0), (1, 0), (0, 100)]]
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(drawn[2])
    assert not drawn[0].equals(drawn[3])
    fresh = request(wanted=SampleColumns()).scorer(frame.columns)
    assert not fresh.score(frame, 0).equals(fresh.score(frame, 0))


# errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"C": ["lo", "mid"]},
            "partition 3: evidence on 'C', row 101: 'mid' is not a state; expected one of 'lo'",
        ),
        ({"A": [0.5, 1.5]}, "partition 3: evidence on 'A', row 101: 1.5 is not a likelihood in [0, 1] of state 'true'"),
        ({"C.lo": [0.5, -1.0], "C.hi": [0.5, 1.0]}, "partition 3: evidence on 'C', row 101: [-1.0, 1.0]: likelihoods"),
        ({"C.lo": ["0.5", "x"], "C.hi": [0.5, 1.0]}, "partition 3: column 'C.lo', row 101: 'x' is not a number"),
        ({"C": [1.0, 0.0]}, "if it holds likelihoods in other partitions, name the variable in likelihoods="),
    ],
)
def test_errors_name_partition_row_and_column(columns, message):
    frame = pd.DataFrame(columns)
    with pytest.raises(EvidenceError) as caught:
        request().scorer(frame.columns).score(frame, partition=3, first=100)
    assert message in str(caught.value)


def test_a_state_that_every_row_needs_is_missing():
    frame = pd.DataFrame({"A": [None, None], "C": ["lo", None]})
    with pytest.raises(EvidenceError, match="partition 0: evidence on 'C', row 1: a state is needed in every row"):
        request(compiled(evidence=["A"], hard=["C"])).scorer(frame.columns).score(frame, partition=0)


def test_a_likelihood_that_is_none():
    for values in ([0.5, 1.5], [0.5, np.inf]):
        frame = pd.DataFrame({"C": values})
        with pytest.raises(EvidenceError, match=r"a partition: evidence on 'C', row 1: .* is not a likelihood"):
            request(likelihoods=["C"]).scorer(frame.columns).score(frame)
