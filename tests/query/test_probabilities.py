"""Answers with labels: arrays that know the names of their rows and columns."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.model.elements.variable import Variable
from tacit.query.answers.by_variable import Information
from tacit.query.answers.probabilities import Marginals, Probabilities
from tests.helpers import close

ROWS = {"A": 0.8, "C": ["lo", "hi"]}


@pytest.fixture
def tac():
    return tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy")


@pytest.fixture
def both():
    return tacit.compile(tacit.examples.abc(), ["B", "C"], ["A"], engine="numpy")


def test_a_labelled_answer_is_the_same_array(tac):
    found, plain = tac.posterior(ROWS, labels=True), tac.posterior(ROWS)
    assert isinstance(plain, np.ndarray)
    assert isinstance(found, Probabilities)
    assert (found.array == plain).all()
    assert (np.asarray(found) == plain).all()
    assert np.asarray(found, dtype=np.float32).dtype == np.float32
    assert (found.shape, len(found), found.variables, found.states) == ((2, 2), 2, ("B",), (("true", "false"),))
    assert (found[:, 0] == plain[:, 0]).all()
    assert [row.tolist() for row in found] == plain.tolist()
    for result, expected in ((1 - found, 1 - plain), (found > 0.5, plain > 0.5), (np.log(found), np.log(plain))):
        assert type(result) is np.ndarray
        assert (result == expected).all()
    close(np.round(found, 3), np.round(plain, 3))
    close(tac.joint(ROWS, labels=True).array, tac.joint(ROWS))
    close(tacit.examples.abc().posterior("B", ROWS, labels=True).array, plain)


def test_frames_keep_the_index_and_name_the_states(tac):
    index = pd.Index(["first", "second"], name="patient")
    frame = tac.posterior(pd.DataFrame({"A": [0.8, 0.1], "C": ["lo", "hi"]}, index=index), labels=True).to_pandas()
    assert frame.index.equals(index)
    assert frame.index.name == "patient"
    assert (list(frame.columns), frame.columns.name) == (["true", "false"], "B")
    from_column = tac.posterior({"A": 0.8, "C": pd.Series(["lo", "hi"], index=index)}, labels=True)
    assert from_column.index is not None
    assert from_column.to_pandas().index.equals(index)
    assert tac.posterior(pl.DataFrame({"A": [0.8, 0.1], "C": ["lo", "hi"]}), labels=True).index is None


def test_a_column_that_says_the_same_of_all_rows_names_none(tac):
    one = {"A": pd.Series([0.8], index=["only"]), "C": "lo"}
    assert tac.posterior(one, labels=True).index.tolist() == ["only"]
    sizes = {"A": pd.Series([0.8], index=["only"]), "C": ["lo", "hi"]}
    with pytest.raises(tacit.EvidenceError, match="'C' has 2 rows"):
        tac.posterior(sizes, labels=True)


def test_other_frames_name_columns_as_batches_do(tac, both):
    found = tac.posterior(ROWS, labels=True)
    assert found.to_polars().columns == found.to_arrow().column_names == ["B.true", "B.false"]
    close(found.to_polars().to_numpy(), found.array)
    joint = both.posterior({"A": [0.8, 0.1]}, labels=True)
    assert joint.to_arrow().column_names == ["B.true,C.lo", "B.true,C.hi", "B.false,C.lo", "B.false,C.hi"]
    close(joint.to_arrow()["B.false,C.lo"].to_numpy(), joint[:, 1, 0])


def test_several_variables_have_a_level_each(both):
    found = both.posterior({"A": [0.8, 0.1]}, labels=True)
    frame = found.to_pandas()
    assert list(frame.columns.names) == ["B", "C"]
    close(frame[("false", "lo")].to_numpy(), found[:, 1, 0])
    assert str(found).splitlines()[:2] == [
        "B      true      true     false     false",
        "C        lo        hi        lo        hi",
    ]


def test_marginals_are_one_table(tac):
    plain, found = tac.marginals(ROWS), tac.marginals(pd.DataFrame(ROWS, index=[7, 9]), labels=True)
    assert isinstance(found, Marginals)
    assert list(found) == list(plain)
    for name, array in plain.items():
        close(found[name].array, array)
    frame = found.to_pandas()
    assert frame.index.tolist() == [7, 9]
    assert list(frame.columns.names) == ["variable", "state"]
    close(frame["B"].to_numpy(), plain["B"])
    assert found.to_polars().columns == ["A.true", "A.false", "B.true", "B.false", "C.lo", "C.hi"]
    assert found.to_arrow().column_names == found.to_polars().columns
    assert str(found).splitlines()[0] == "variable  state         7         9"
    assert ">variable</th>" in found._repr_html_()


def test_information_is_one_table(tac):
    index = pd.Index(["p-3", "p-17"], name="patient")
    frame = pd.DataFrame({"A": [None, None], "C": ["lo", None]}, index=index, dtype=object)
    found, plain = tac.information(frame, labels=True), tac.information(frame)
    assert isinstance(found, Information)
    assert type(plain) is dict
    assert list(found) == list(plain) == ["A", "B", "C"]
    others = pd.DataFrame({"A": plain["A"], "C": plain["C"]}, index=index)  # the query itself is nothing to ask about
    pd.testing.assert_frame_equal(found.to_pandas(), others.rename_axis(columns="variable"), check_names=True)
    close(found["B"], plain["B"])
    close(found.to_polars()["A"].to_numpy(), plain["A"])
    assert found.to_arrow().column_names == ["A", "C"]
    lines = str(found).splitlines()
    assert lines[0] == "What each variable is expected to tell about B, in nats"
    assert lines[1].split() == ["variable", "p-3", "p-17"]
    assert [line.split()[0] for line in lines[2:]] == ["A", "C"]  # what tells most first
    assert lines[3].split()[1] == "nan"
    assert "<td>" in found._repr_html_()


def test_information_of_one_row_lists_what_is_not_observed():
    net = tacit.examples.alarm()
    found = net.information("INTUBATION", {"MINVOL": "LOW"}, labels=True)
    frame = found.to_pandas()
    assert frame.columns.tolist() == ["variable", "information"] == found.to_polars().columns
    assert set(frame["variable"]) == {*net} - {"INTUBATION", "MINVOL"}
    assert frame["information"].is_monotonic_decreasing
    lines = str(found).splitlines()
    assert (len(lines), lines[-1]) == (2 + 10 + 1, "and 25 more variables that tell less")
    independent = net.information("FIO2", {}, labels=True, variables=["INTUBATION", "HISTORY"])
    assert {line.split()[1] for line in str(independent).splitlines()[2:]} == {"0.000000"}


def test_information_about_chosen_variables(tac):
    found = tac.information({"A": 0.8}, labels=True, variables=["C"])
    close(found["C"], tac.information({"A": 0.8})["C"])
    assert list(found) == ["C"]
    assert str(tac.information(labels=True, variables=["B"])) == "{}"
    with pytest.raises(tacit.TacitError, match="variables names 'D', which is not a variable"):
        tac.information(variables=["D"])
    with pytest.raises(tacit.TacitError, match=r"a sequence of names, e.g. \['C'\]"):
        tac.information(variables="C")


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (
            lambda tac: tac.information(ROWS, ["A"]),
            r"labels is \['A'\], expected True or False; variables=\[...\] names",
        ),
        (lambda tac: tac.network.information("B", ROWS, ["A"]), "variables="),
        (lambda tac: tac.posterior({"A": "true"}, "C"), "labels is 'C', expected .*compile another query"),
        (lambda tac: tac.posterior(ROWS, []), "compile another query"),
        (lambda tac: tac.joint(ROWS, "C"), "compile another query"),
        (lambda tac: tac.network.posterior("B", ROWS, ""), "in a list, as the query"),
        (lambda tac: tac.marginals(ROWS, ["A"]), "all variables"),
        (lambda tac: tac.network.marginals(ROWS, ["A"]), "all variables"),
    ],
)
def test_variables_are_not_taken_for_labels(tac, ask, meant):
    with pytest.raises(tacit.TacitError, match=meant):
        ask(tac)
    assert isinstance(tac.posterior(ROWS, np.True_), Probabilities)


def test_a_state_selects_its_column(tac, both):
    one, two = tac.posterior(ROWS, labels=True), both.posterior({"A": [0.8, 0.3]}, labels=True)
    assert one["true"].tolist() == one[:, 0].tolist()
    assert one[1, "false"] == one[1, 1]
    assert two["false", "hi"].tolist() == two[:, 1, 1].tolist()
    assert tac.marginals(ROWS, labels=True)["C"]["hi"].tolist() == [0.0, 1.0]
    with pytest.raises(tacit.TacitError, match=r"'TRUE' is not a state of 'B'; expected one of .* did you mean 'true'"):
        one["TRUE"]
    with pytest.raises(tacit.TacitError, match="names 1 states; expected one for each of"):
        two["false"]
    with pytest.raises(tacit.TacitError, match="'false' is at the place of a row"):
        one["false", 0]


@pytest.mark.parametrize("ask", ["mpe", "map", "predict"])
def test_states_print_as_a_table_and_keep_the_index(tac, ask):
    frame = pd.DataFrame({"A": [0.8] * 30, "C": ["lo", "hi"] * 15}, index=pd.Index([f"p{i}" for i in range(30)]))
    found = getattr(tac, ask)(frame)
    assert found.to_pandas().index.equals(frame.index)
    assert getattr(tac, ask)(tac.read(frame)).to_pandas().index.equals(frame.index)
    text = str(found)
    assert "p0" in text
    assert "..." in text
    assert text.endswith("30 rows]")
    assert max(map(len, text.splitlines())) < 120
    assert getattr(tac, ask)(ROWS).to_pandas().index.tolist() == [0, 1]


def test_information_about_nothing_and_of_many_rows():
    assert repr(Information({})) == "{}"
    assert Information({})._repr_html_() is None
    many = Information({f"X{i}": np.full(30, float(i)) for i in range(70)})
    assert str(many).splitlines()[2].startswith("X69       69.000000")
    assert str(Information({"A": np.empty(0), "B": np.empty(0)})).split()[-3:] == ["variable", "A", "B"]
    seen = Information({"A": np.array([np.nan]), "B": np.array([0.0])})
    assert [line.split()[0] for line in str(seen).splitlines()[1:]] == ["variable", "B"]  # nobody asks about A again


def test_long_and_wide_tables_are_shortened():
    found = Probabilities(np.full((1000, 30), 1 / 30), [Variable("Q", tuple(range(30)))])
    lines = str(found).splitlines()
    assert len(lines) == 1 + 21 + 1
    assert lines[-1] == "[1,000 rows x 30 columns]"
    assert max(map(len, lines)) < 120
    assert lines[0].split() == ["Q", "0", "1", "2", "3", "4", "...", "25", "26", "27", "28", "29"]
    assert [line.split()[0] for line in lines[10:13]] == ["9", "...", "990"]
    assert found._repr_html_().count("<tr>") == 22


def test_names_are_escaped_in_html():
    found = Probabilities(np.array([[1.0, 0.0]]), [Variable("<b>", ("<i>", "&"))], pd.Index(["<u>"]))
    assert "<i>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()


def test_a_package_that_is_not_there_is_named(tac, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(tacit.TacitError, match=r"needs polars, which is not installed: pip install 'pandas.*polars"):
        tac.posterior(ROWS, labels=True).to_polars()


@given(st.integers(0, 60), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_any_shape_prints_and_converts(rows, cards):
    variables = [Variable(f"V{i}", tuple(f"s{j}" for j in range(card))) for i, card in enumerate(cards)]
    array = np.random.default_rng(0).random((rows, *cards))
    found = Probabilities(array, variables)
    assert str(found)
    assert found._repr_html_().startswith("<table>")
    close(found.to_pandas().to_numpy(), array.reshape(rows, int(np.prod(cards))))
    assert found.to_arrow().num_columns == np.prod(cards)


def test_arithmetic_in_place_stays_in_place(tac):
    found = tac.posterior({"A": [0.8, 0.1], "C": ["lo", "hi"]}, labels=True)
    before, same = found.array.copy(), found
    found *= 2
    assert found is same
    assert np.array_equal(found.array, 2 * before)
    assert np.add(found, 1, out=found) is same
    assert np.array_equal(found.array, 2 * before + 1)
    plain = np.empty_like(before)
    assert np.subtract(found, 1, out=plain) is plain
    close(plain, 2 * before)
    whole, rest = np.divmod(found, 1.0, out=(None, found))
    assert rest is same
    close(whole, np.floor(2 * before + 1))
    total = np.empty(2)
    assert np.add.reduce(found, axis=0, out=total) is total


def test_marginals_of_nothing_print_and_convert():
    none = Marginals()
    assert (repr(none), none._repr_html_(), none.columns()) == ("{}", None, {})
    assert none.to_pandas().empty
    assert none.to_polars().is_empty()


def test_rows_of_several_levels_print_plain_labels(tac):
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    found = tac.posterior(pd.DataFrame({"A": [0.8, 0.8], "C": ["lo", "hi"]}, index=index), labels=True)
    assert [line.split("  ")[0] for line in repr(found).splitlines()[1:]] == ["a, 1", "b, 2"]


def test_columns_that_would_be_called_alike_are_refused():
    written_alike = Probabilities(np.array([[0.25, 0.75]]), [Variable("A", ("1", 1))])
    for convert in (written_alike.columns, written_alike.to_polars, written_alike.to_arrow):
        with pytest.raises(tacit.TacitError, match=r"two columns would be called 'A\.1'; rename a state"):
            convert()
    assert written_alike.to_pandas().columns.tolist() == ["1", 1]
    one, other = Variable("A", ("b.c", "d")), Variable("A.b", ("c", "e"))
    marginals = Marginals({v.name: Probabilities(np.array([[0.25, 0.75]]), [v]) for v in (one, other)})
    with pytest.raises(tacit.TacitError, match=r"'A\.b\.c'"):
        marginals.columns()
