"""What `discover` reads: numbers in columns, gaps, files and batches; and how it resumes."""

import itertools
import math
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.learn import session
from tacit.learn.discovering import coded_table, discovery_run
from tacit.learn.discovering.searching import Searcher

QUIET = {"progress": False}


def lawn(rows: int, seed: int = 0, holes: float = 0.0) -> pd.DataFrame:
    """Rows of a small network, some of whose values are missing at random."""
    net = tacit.Network()
    net.add("season", states=["dry", "wet"], cpt=[0.6, 0.4])
    net.add("rain", ["season"], states=["yes", "no"], cpt=[[0.1, 0.9], [0.7, 0.3]])
    net.add("sprinkler", ["season"], states=["on", "off"], cpt=[[0.7, 0.3], [0.1, 0.9]])
    net.add(
        "grass", ["rain", "sprinkler"], ["wet", "dry"], cpt=[[[0.95, 0.05], [0.8, 0.2]], [[0.9, 0.1], [0.05, 0.95]]]
    )
    net.add("slippery", ["grass"], states=[0, 1], cpt=[[0.1, 0.9], [0.9, 0.1]])
    frame = pd.DataFrame(net.sample(rows, seed=seed)).astype(object)
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < holes)


def measurements(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, size=rows)
    pressure = 100 + 0.6 * age + rng.normal(0, 8, size=rows)
    return pd.DataFrame({"age": age, "pressure": pressure, "children": rng.integers(0, 5, size=rows)})


def same(found: tacit.Discovery, expected: tacit.Discovery) -> None:
    """Two results that are equal in every digit."""
    assert (found.score, found.history, found.arrows) == (expected.score, expected.history, expected.arrows)
    assert (found.strength, found.rows) == (expected.strength, expected.rows)
    assert found.network.to_dict() == expected.network.to_dict()


# numbers in columns


def test_measurements_become_intervals_and_a_warning_names_them() -> None:
    frame = measurements()
    with pytest.warns(tacit.DefaultBinsWarning, match=r"rows each: age, pressure; choose with"):
        found = tacit.discover(frame, **QUIET)
    net = found.network
    expected = tacit.discretize(frame)
    assert {name: net.bins(name) for name in net} == {**expected, "children": None}
    assert net.states("children") == (0, 1, 2, 3, 4)
    assert frozenset(("age", "pressure")) in {frozenset(edge) for edge in net.edges}
    old, young = net.posterior("pressure", {"age": [85, 20.5]}) @ np.arange(8)
    assert old > young + 2


def test_edges_may_be_an_array() -> None:
    frame = lawn(200)
    frame["x"] = np.random.default_rng(0).normal(size=200)
    found = tacit.discover(frame, bins={"x": np.array([-10.0, 0.0, 10.0])}, **QUIET)
    assert found.network.bins("x") == (-10.0, 0.0, 10.0)


def test_orders_of_categories_that_batches_disagree_on_are_no_order() -> None:
    ordered = pd.CategoricalDtype(["mid", "hi"], ordered=True)
    first = pd.DataFrame({"k": pd.Series(["mid", "hi"] * 20, dtype=ordered)})
    for second, states in ((["lo"] * 20, ("hi", "lo", "mid")), (first["k"][:0], ("mid", "hi"))):
        batches = [first, pd.DataFrame({"k": second})]
        assert tacit.discover(batches, **QUIET).network.states("k") == states


def test_bins_can_be_chosen() -> None:
    frame, edges = measurements(), [18, 40, 65, 90]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for how in ("equal", 3):
            net = tacit.discover(frame, bins=how, **QUIET).network
            assert {name: net.bins(name) for name in ("age", "pressure")} == {
                name: own for name, own in tacit.discretize(frame, how).items() if name != "children"
            }
        net = tacit.discover(frame, bins={"age": edges, "pressure": "equal", "children": [0, 1, 4]}, **QUIET).network
    assert net.bins("age") == tuple(edges)
    assert net.states("children") == ("[0, 1)", "[1, 4]")
    with pytest.warns(tacit.DefaultBinsWarning, match="rows each: pressure;"):
        tacit.discover(frame, bins={"age": edges}, **QUIET)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"bins": "median"}, "bins is 'median'; expected 'quantile', 'equal', 'mdl'"),
        ({}, {"bins": "mdl"}, "needs a target"),
        ({}, {"bins": {"agee": 3}}, "bins= names 'agee', which is not a column; did you mean 'age'"),
        ({"word": "x"}, {"bins": {"word": 3}}, "column 'word' does not hold numbers"),
        ({}, {"bins": {"age": [18, 40, 60]}}, "'age', row .* is outside"),
        ({"empty": None}, {}, "column 'empty' has no values at all; leave it out"),
        ({"id": np.arange(600)}, {}, "column 'id' seems to number the rows"),
        ({"name": [f"p{i}" for i in range(600)]}, {}, "'name' has more than 250 different values, such as 'p0'; leave"),
        ({"when": pd.Timestamp("2020-01-01")}, {}, "column 'when' holds dates; turn dates into numbers"),
        ({"born": [None] + [date(1990, 1, 2)] * 599}, {}, r"'born', row 1: datetime.date\(1990, 1, 2\) is a date;"),
        ({"day": [f"2020-{i // 25}-{i % 25}" for i in range(600)]}, {}, "'day' holds text that looks like dates"),
        ({"list": ["x"] * 7 + [[1, 2]] * 593}, {}, r"column 'list', row 7: \[1, 2\] is not a single value; leave"),
        ({"id": np.arange(600), "n": None}, {}, r"\nto leave out what makes no variable: exclude=\['id', 'n'\]$"),
    ],
)
@pytest.mark.filterwarnings("ignore::tacit.DefaultBinsWarning")
def test_columns_that_make_no_variable_are_named(change: dict, options: dict, message: str) -> None:
    with pytest.raises(tacit.TacitError, match=message) as caught:
        tacit.discover(measurements().assign(**change), **options, **QUIET)
    assert "states=" not in str(caught.value)


def test_columns_can_be_left_out_of_any_table(tmp_path: Path) -> None:
    frame = lawn(300)
    expected, wide = tacit.discover(frame, **QUIET), frame.assign(id=range(300), name=list(map(str, range(300))))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    batches = [wide[:200], wide[200:]]
    for rows in (wide, tmp_path / "wide.csv", batches, iter(batches), wide.to_dict("records")):
        found = tacit.discover(rows, exclude=["id", "name"], **QUIET)
        assert (found.arrows, found.score) == (expected.arrows, expected.score)
    with pytest.raises(tacit.EvidenceError, match="exclude names 'idd', which is not a column; did you mean 'id'"):
        tacit.discover(wide, exclude=["idd"], **QUIET)
    with pytest.raises(tacit.TacitError, match=r"exclude must be a sequence of names, e.g. \['id'\]"):
        tacit.discover(wide, exclude="id", **QUIET)


def test_a_bad_cell_is_in_the_same_row_of_a_table_and_of_its_batches() -> None:
    frame = lawn(300)
    frame.loc[250, "rain"] = {"yes"}
    for rows in (frame, [frame[:200], frame[200:]]):
        with pytest.raises(tacit.EvidenceError, match=r"column 'rain', row 250: {'yes'} is not a single value"):
            tacit.discover(rows, **QUIET)


def test_states_that_differ_in_case_or_spaces_are_told_with_their_counts() -> None:
    frame = pd.DataFrame({"smoker": ["Yes", "yes ", "no", None, "yes "] * 20, "x": ["a", "b", "a", "b", "b"] * 20})
    told = r"in case or spaces: column 'smoker' has 'Yes' \(20 rows\), 'yes ' \(40 rows\); where they mean the same"
    with pytest.warns(tacit.SimilarStatesWarning, match=told):
        tacit.discover(frame, **QUIET)
    with pytest.warns(tacit.SimilarStatesWarning, match=told):
        tacit.Network.from_edges([("x", "smoker")], frame)


def test_typing_errors_are_told_with_what_was_meant() -> None:
    rows = {
        "fever": ["high"] * 600 + ["mild"] * 394 + ["hgih", "hig", "mild", "mild", "none", "Milde"],
        "stage": ["stage II"] * 500 + ["stage III"] * 2 + ["T1"] * 490 + ["T2", "AB+", "A"] + ["AB-", "B"] * 2 + ["T1"],
        "x": ["often", "offen"] * 500,
    }
    told = (
        "column 'fever' has 'Milde' (1 row) beside 'mild' (396 rows), column 'fever' has 'hgih' (1 row) beside 'high' "
    )
    told += (
        "(600 rows), column 'fever' has 'hig' (1 row) beside 'high' (600 rows); where one was meant, correct the other "
    )
    told += "(in pandas: frame['fever'].replace({'Milde': 'mild'}))"
    for way in (lambda: tacit.discover(rows, **QUIET), lambda: tacit.Network.from_edges([("x", "fever")], rows)):
        with pytest.warns(tacit.SimilarStatesWarning) as caught:
            way()
        assert [str(one.message) for one in caught] == ["rare states that may be typing errors: " + told]


def test_columns_that_copy_others_are_told() -> None:
    frame = lawn(5000)
    frame = frame.assign(flag=frame.rain == frame.rain[0], near=frame.rain, part=frame.rain, same="k")
    frame.loc[4999, "near"] = None
    frame["nearly"] = frame.near
    told = r"'part' copies 'flag', 'rain' copies 'flag', 'nearly' copies 'near': .*exclude=\['part', 'rain', 'nearly'\]"
    with pytest.warns(tacit.CopiedColumnWarning, match=told), pytest.warns(tacit.ConstantColumnWarning):
        tacit.discover(frame, **QUIET)


def test_numbers_that_a_word_or_a_comma_makes_text_are_told() -> None:
    numbers = [f"{36 + i / 10:.1f}" for i in range(20)]
    frame = pd.DataFrame({"temp": [*numbers * 5, "hot"], "x": [*"ab" * 50, "a"]})
    with pytest.warns(tacit.SpoiltNumbersWarning, match=r"'temp' has 20 numbers as states beside 'hot' \(1 row\)"):
        tacit.discover(frame, **QUIET)
    frame["temp"] = [text.replace(".", ",") for text in [*numbers * 5, "36.0"]]
    with pytest.warns(tacit.SpoiltNumbersWarning, match="20 numbers as states with a comma; make the column numbers"):
        tacit.discover(frame, **QUIET)


def test_words_among_numbers_are_counted_and_masked() -> None:
    frame = measurements().astype({"pressure": object})
    frame.loc[[3, 9], "pressure"] = "low"
    frame.loc[7, "pressure"] = "1,5"
    message = "column 'pressure', row 3: 'low' is not a number, as 597 of 600 values are; correct them"
    batches = [frame[:8], frame[8:]]
    ways = [
        lambda: tacit.discover(frame, **QUIET),
        lambda: tacit.discover(frame, bins={"pressure": 3}, **QUIET),
        lambda: tacit.discover(batches, **QUIET),
        lambda: tacit.Network.from_edges([("age", "pressure")], frame),
        lambda: tacit.Network.from_edges([("age", "pressure")], frame, bins={"pressure": 3}),
    ]
    for way in ways:
        with pytest.raises(tacit.EvidenceError, match=message) as caught:
            way()
        assert "write numbers with a point (1.5); 3 rows are not numbers: 'low' (2, first" in str(caught.value)
        assert np.flatnonzero(caught.value.mask(frame)).tolist() == [3, 7, 9]


def test_words_in_several_columns_are_masked_together() -> None:
    frame = measurements().astype({"pressure": object, "age": object})
    frame.loc[3, "pressure"], frame.loc[9, "age"] = "low", "old"
    with pytest.raises(tacit.EvidenceError) as caught:
        tacit.discover(frame, bins={"age": 3}, **QUIET)
    assert str(caught.value).count("row 3: 'low' is not a number") == 1
    assert np.flatnonzero(caught.value.mask(frame)).tolist() == [3, 9]
    assert caught.value.to_pandas()["variable"].tolist() == ["age", "pressure"]


def test_whole_numbers_that_a_word_makes_states_are_told() -> None:
    frame = pd.DataFrame({"age": [*range(30, 60), "old"] * 4, "x": [*"ab" * 62]})
    for told in (frame, frame.astype({"age": str})):
        with pytest.warns(tacit.SpoiltNumbersWarning, match=r"'age' has 30 numbers as states beside 'old' \(4 rows\)"):
            tacit.discover(told, **QUIET)
    few = pd.DataFrame({"rooms": [*range(1, 12), "many"] * 4, "x": [*"ab" * 24]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.discover(few, **QUIET)


def test_words_for_a_gap_that_are_states_are_told_with_their_counts() -> None:
    frame = pd.DataFrame({"smoker": ["yes", "NA", "no", None, "?", "NA"] * 20, "x": ["none", "b", "a"] * 40})
    told = r"states that may stand for a gap: column 'smoker' has '\?' \(20 rows\), 'NA' \(40 rows\); where they are"
    for way in (lambda: tacit.discover(frame, **QUIET), lambda: tacit.Network.from_edges([("x", "smoker")], frame)):
        with pytest.warns(tacit.GapWordWarning, match=told) as caught:
            way()
        assert "'x'" not in str(caught[0].message)


def test_a_column_with_one_value_is_a_variable_without_edges() -> None:
    with pytest.warns(tacit.ConstantColumnWarning, match="single value: always; what is constant"):
        found = tacit.discover(lawn(300).assign(always="yes"), **QUIET)
    assert found.network.states("always") == ("yes",)
    assert not any("always" in edge for edge in found.network.edges)
    assert found.score == pytest.approx(tacit.discover(lawn(300), **QUIET).score, rel=1e-12)


def test_a_column_of_nothing_but_true_is_constant() -> None:
    frame = lawn(300).assign(always=[True, None] * 150)
    with pytest.warns(tacit.ConstantColumnWarning, match="single value: always;"):
        net = tacit.Network.from_edges([("rain", "always")], frame)
    assert net.states("always") == (True, False)


# gaps


def classes(net: tacit.Network) -> tuple[set, set]:
    """Skeleton and colliders of a network: what equivalent graphs share."""
    skeleton = {frozenset(edge) for edge in net.edges}
    pairs = [(a, c, b) for b in net for a, c in itertools.combinations(sorted(net.parents(b)), 2)]
    return skeleton, {one for one in pairs if frozenset(one[:2]) not in skeleton}


def test_a_column_with_one_value_is_no_trouble_beside_gaps() -> None:
    frame = pd.DataFrame({"a": ["x", "y", None, "x"] * 30, "b": ["x", "y", "y", "x"] * 30, "same": "k"})
    with pytest.warns(tacit.ConstantColumnWarning):
        discovery = tacit.discover(frame)
    assert discovery.network.states("same") == ("k",)
    assert {frozenset(edge) for edge in discovery.network.edges} == {frozenset("ab")}


def test_gaps_hide_no_structure() -> None:
    whole = tacit.discover(lawn(4000, seed=1), **QUIET)
    found = tacit.discover(lawn(4000, seed=1, holes=0.2), **QUIET)
    assert classes(found.network) == classes(whole.network)
    assert len(found.history) >= 2
    # the rows without gaps are a third, and tell less about rows that were not seen
    fresh = lawn(4000, seed=2)
    few = tacit.discover(lawn(4000, seed=1, holes=0.2).dropna(), **QUIET)
    assert found.network.log_likelihood(fresh).sum() > few.network.log_likelihood(fresh).sum()


@pytest.mark.parametrize("score", ["bic", "aic"])
def test_the_score_with_gaps_is_that_of_what_is_observed(score: str) -> None:
    frame = lawn(1500, seed=3, holes=0.15)
    found = tacit.discover(frame, score=score, **QUIET)
    learned = tacit.estimate(found.network.learnable(), frame, tolerance=1e-10, **QUIET)
    penalty = math.log(1500) / 2 if score == "bic" else 1.0
    assert found.score == pytest.approx(learned.log_likelihood - penalty * learned.parameters, rel=1e-5)
    assert found.score == max(found.history)


@pytest.mark.parametrize("score", ["bdeu", "k2"])
def test_bayesian_scores_with_few_gaps_are_near_those_without(score: str) -> None:
    whole = tacit.discover(lawn(1000, seed=4), score=score, **QUIET)
    frame = lawn(1000, seed=4)
    frame.loc[7, "rain"] = None
    found = tacit.discover(frame, score=score, **QUIET)
    assert found.score == pytest.approx(whole.score, abs=3)


def test_orders_of_columns_and_rows_do_not_matter_with_gaps() -> None:
    frame = lawn(500, seed=5, holes=0.2)
    first = tacit.discover(frame, bootstrap=2, **QUIET)
    rng = np.random.default_rng(0)
    for _ in range(3):
        mixed = frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
        again = tacit.discover(mixed, bootstrap=2, **QUIET)
        assert (again.score, again.arrows, again.strength) == (first.score, first.arrows, first.strength)


def test_constraints_and_weights_hold_with_gaps() -> None:
    frame = lawn(300, seed=6, holes=0.2)
    found = tacit.discover(
        frame, require=[("slippery", "season")], forbid=[("rain", "grass"), ("grass", "rain")], **QUIET
    )
    assert ("slippery", "season") in found.network.edges
    assert not {("rain", "grass"), ("grass", "rain")} & set(found.network.edges)
    twice = tacit.discover(pd.concat([frame, frame]), **QUIET)
    weighted = tacit.discover(frame.assign(times=2), weights="times", **QUIET)
    same(weighted, twice)


def test_gaps_of_every_kind_are_gaps() -> None:
    frame = lawn(400, seed=7, holes=0.1)
    expected = tacit.discover(frame, **QUIET)
    same(tacit.discover({name: column.tolist() for name, column in frame.items()}, **QUIET), expected)
    numbers = frame.assign(slippery=frame["slippery"].astype("Int64"))
    same(tacit.discover(numbers, **QUIET), expected)
    floats = frame.assign(slippery=frame["slippery"].astype(float))
    same(tacit.discover(floats, **QUIET), expected)


# files and batches


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_files_and_batches_give_what_the_frame_gives(tmp_path: Path, holes: float) -> None:
    pytest.importorskip("pyarrow")
    frame = lawn(700, seed=8, holes=holes).drop(columns="slippery")
    expected = tacit.discover(frame, **QUIET)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    pieces = [frame[:10], frame[10:400], frame[400:]]
    for rows in (tmp_path / "rows.csv", str(tmp_path / "rows.parquet"), pieces, iter(pieces)):
        same(tacit.discover(rows, **QUIET), expected)


def test_numbers_in_files_are_those_of_the_frame(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = measurements()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = tacit.discover(frame, bins=4, **QUIET)
    found = tacit.discover(tmp_path / "rows.csv", bins=4, **QUIET)
    assert found.network.states("children") == tuple("01234")  # cells of text files are text
    assert found.score == expected.score
    assert [found.network.bins(name) for name in found.network] == [
        expected.network.bins(name) for name in found.network
    ]


def test_weights_are_a_column_or_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = lawn(300, seed=9).drop(columns="slippery")
    times = np.random.default_rng(0).integers(1, 4, size=300)
    expected = tacit.discover(frame.loc[frame.index.repeat(times)], **QUIET)
    same(tacit.discover(frame, weights=times, **QUIET), expected)
    same(tacit.discover(iter([frame[:100], frame[100:]]), weights=times, **QUIET), expected)
    frame.assign(times=times).to_csv(tmp_path / "rows.csv", index=False)
    same(tacit.discover(tmp_path / "rows.csv", weights="times", **QUIET), expected)


def test_equal_rows_are_counted_together_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = lawn(3000, seed=10)
    expected = tacit.discover(frame, **QUIET)
    monkeypatch.setattr(coded_table, "MIN_MERGED_ROWS", 200)
    same(tacit.discover((frame[i : i + 70] for i in range(0, 3000, 70)), **QUIET), expected)


def test_a_batch_may_lack_columns() -> None:
    frame = lawn(400, seed=11)
    holes = frame.copy()
    holes.loc[:199, "rain"] = None
    same(tacit.discover([frame[:200].drop(columns="rain"), frame[200:]], **QUIET), tacit.discover(holes, **QUIET))


def test_rows_without_rows_or_names() -> None:
    with pytest.raises(tacit.EvidenceError, match="there are no rows"):
        tacit.discover(lawn(5)[:0])
    with pytest.raises(tacit.EvidenceError, match="no named columns"):
        tacit.discover(np.zeros((3, 2)))
    with pytest.raises(tacit.EvidenceError, match="the DataFrame of rows has no columns"):
        tacit.discover(lawn(5)[[]])
    with pytest.raises(tacit.EvidenceError, match="all weights are 0"):
        tacit.discover(lawn(3), weights=[0, 0, 0])


# interrupts and checkpoints


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, calls: int) -> None:
    """Press Control-C before a method is called once more than so many times."""
    method, left = getattr(owner, name), iter(range(calls))

    def stopped(*arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return method(*arguments, **options)

    monkeypatch.setattr(owner, name, stopped)


@pytest.mark.parametrize(
    ("holes", "owner", "method", "calls"),
    [
        (0.0, discovery_run.DiscoveryRun, "_sampled", 3),
        (0.2, discovery_run.StructuralEM, "next", 1),
        (0.2, discovery_run.StructuralEM, "next", 4),
        (0.0, Searcher, "_say", 5),
    ],
)
def test_an_interrupted_run_resumes_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holes: float, owner: type, method: str, calls: int
) -> None:
    monkeypatch.setattr(session, "CHECKPOINT_EVERY", 0.0)
    frame, how = lawn(300, seed=12, holes=holes), {"bootstrap": 5, "checkpoint": tmp_path / "run", **QUIET}
    expected = tacit.discover(frame, bootstrap=5, **QUIET)
    with monkeypatch.context() as context:
        interrupt(context, owner, method, calls)
        with pytest.warns(UserWarning, match="discover was interrupted; the result is the best so far"):
            stopped = tacit.discover(frame, **how)
    assert stopped.interrupted
    assert not expected.interrupted
    assert stopped.score <= expected.score
    same(tacit.discover(frame, **how), expected)
    with monkeypatch.context() as context:  # nothing is left to do
        interrupt(context, Searcher, "run", 0)
        same(tacit.discover(frame, **how), expected)


def test_more_samples_can_be_added_to_a_checkpoint(tmp_path: Path) -> None:
    frame, path = lawn(200, seed=13), tmp_path / "run"
    tacit.discover(frame, bootstrap=2, checkpoint=path, **QUIET)
    same(tacit.discover(frame, bootstrap=4, checkpoint=path, **QUIET), tacit.discover(frame, bootstrap=4, **QUIET))


def test_a_checkpoint_of_other_rows_or_options_is_refused(tmp_path: Path) -> None:
    frame, path = lawn(200, seed=14), tmp_path / "run"
    tacit.discover(frame, checkpoint=path, **QUIET)
    for rows, options in ((frame[1:], {}), (frame, {"score": "aic"}), (frame, {"max_parents": 1})):
        with pytest.raises(tacit.FormatError, match="other data or other settings"):
            tacit.discover(rows, checkpoint=path, **options, **QUIET)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(tacit.FormatError, match="remove it to start over"):
        tacit.discover(frame, checkpoint=path, **QUIET)


def test_an_interrupt_before_there_is_anything_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, Searcher, "run", 0)
    with pytest.raises(KeyboardInterrupt):
        tacit.discover(lawn(50), **QUIET)


# what comes after


def test_tests_are_placed_in_what_was_found() -> None:
    frame = lawn(600, seed=15)
    found = tacit.discover(frame, **QUIET)
    placement = tacit.learn.place_tests(found.network, "grass", frame, steps=5, restarts=1, **QUIET)
    assert {place.node for place in placement.table} <= set(found.network)
    assert 0 < placement.loss <= placement.without


def test_evidence_that_a_table_of_few_rows_rules_out_is_told_with_a_remedy() -> None:
    rows = {"rain": ["no", "no", "yes"], "wet": ["no", "yes", "yes"]}
    net = tacit.Network.from_edges([("rain", "wet")], rows)
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="tables that are estimated with prior=1.0 have none"):
        tacit.estimate(net, rows, **QUIET).network.posterior("rain", {"rain": ["yes"], "wet": ["no"]})
    again = tacit.estimate(net, rows, prior=1.0, **QUIET).network
    assert np.isfinite(again.posterior("rain", {"rain": ["yes"], "wet": ["no"]})).all()


def test_counts_may_be_poisson() -> None:
    truth = tacit.Network()
    truth.add("busy", states=["no", "yes"], cpt=[0.5, 0.5])
    truth.add("calls", ["busy"], cpt=tacit.Poisson([4.0, 30.0]))
    rows = truth.sample(3000, seed=1)
    found = tacit.discover(rows, bins=6, tiers=[["busy"], ["calls"]], **QUIET).with_densities(rows)
    assert isinstance(found.density("calls"), tacit.Poisson)
    halves = {**rows, "calls": np.asarray(rows["calls"]) + 0.5}
    found = tacit.discover(halves, bins=6, tiers=[["busy"], ["calls"]], **QUIET).with_densities(halves)
    assert not isinstance(found.cpt("calls"), tacit.Poisson)


def test_a_discovery_is_kept_with_its_doubts(tmp_path: Path) -> None:
    found = tacit.discover(lawn(300), bootstrap=3, **QUIET)
    found.save(tmp_path / "lawn.json")
    again = tacit.Discovery.load(tmp_path / "lawn.json")
    assert again == found
    assert tacit.load(tmp_path / "lawn.json") == found.network
    assert again.plot().svg == found.plot().svg
    with pytest.raises(tacit.TacitError, match=r"lawn.bif: a discovery is written as .json; tacit.write"):
        found.save(tmp_path / "lawn.bif")
    tacit.save(found.network, tmp_path / "plain.json")
    with pytest.raises(tacit.FormatError, match=r"plain.json: a network, of which nothing says how it was discovered"):
        tacit.Discovery.load(tmp_path / "plain.json")
    text = (tmp_path / "lawn.json").read_text().replace('"arrows"', '"x"').replace('"score"', '"x"')
    (tmp_path / "lawn.json").write_text(text)
    with pytest.raises(tacit.FormatError, match="what it says of its discovery is damaged"):
        tacit.Discovery.load(tmp_path / "lawn.json")
