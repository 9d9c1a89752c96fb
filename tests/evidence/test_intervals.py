"""Numbers in columns: every container and type of numbers against a reading of each cell by itself."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import inf, isnan, nan

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import EvidenceError, NetworkError
from tacit.evidence.intervals import code_of_number, codes_of_numbers
from tacit.evidence.read import read_column
from tacit.model.elements.intervals import checked_edges, interval_names
from tacit.model.elements.variable import Variable, variable

AGE = variable("Age", None, [0, 18, 40, 65, 120])
WHOLE = [0, 17, 18, 39, 40, 64, 65, 120, 3]
FLOATS = [0.0, 17.5, 18.0, 39.5, 40.0, 64.9, 65.0, 120.0, 3.25]


def naive(edges: tuple[float, ...], value: float | None) -> int:
    """The interval of a number, by definition: -1 for none, -2 for a number outside."""
    if value is None or isnan(value):
        return -1
    for i, (low, high) in enumerate(pairwise(edges)):
        if low <= value < high or (value == high == edges[-1]):
            return i
    return -2


def codes(values: object, own: Variable = AGE) -> list[int]:
    column, _ = read_column(own, values)
    assert column is not None
    assert column.codes is not None
    return column.codes.tolist()


def expected(values: list[float | None]) -> list[int]:
    return [naive(AGE.bins or (), value) for value in values]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_whole_numbers_of_every_type(dtype: str) -> None:
    array = np.array(WHOLE, dtype=dtype)
    for column in (array, array[::-1][::-1], pd.Series(array), pl.Series(array), pa.array(array)):
        assert codes(column) == expected(WHOLE)
    nullable = pd.Series([*WHOLE, None], dtype=dtype.replace("int", "Int").replace("uI", "UI"))
    for column in (nullable, nullable.astype(f"{dtype}[pyarrow]"), pa.array([*WHOLE, None], getattr(pa, dtype)())):
        assert codes(column) == [*expected(WHOLE), -1]
    assert codes(pl.Series([*WHOLE, None], dtype=getattr(pl, dtype.title().replace("int", "Int")))) == [
        *expected(WHOLE),
        -1,
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ">f8"])
def test_floats_of_every_type(dtype: str) -> None:
    array = np.array([*FLOATS, nan], dtype=dtype)
    assert codes(array) == [*expected(FLOATS), -1]
    if dtype in ("float32", "float64"):
        kind = dtype.title()
        for column in (
            pd.Series(array),
            pd.Series([*FLOATS, None], dtype=kind),
            pd.Series([*FLOATS, None], dtype=f"{'double' if kind == 'Float64' else 'float'}[pyarrow]"),
            pl.Series([*FLOATS, None], dtype=getattr(pl, kind)),
            pa.array([*FLOATS, None], getattr(pa, dtype)()),
            pa.chunked_array([[*FLOATS], [None]], getattr(pa, dtype)()),
            np.ma.masked_invalid(array),
        ):
            assert codes(column) == [*expected(FLOATS), -1]


def test_objects_of_any_kind_each_for_itself() -> None:
    mixed = [17.5, 18, None, nan, np.float32(40), np.int8(3), Decimal("64.9"), Fraction(130, 2), "[18, 40)"]
    assert codes(mixed) == [0, 1, -1, -1, 2, 0, 2, 3, 1]
    assert codes(np.array(mixed, dtype=object)) == codes(mixed)
    assert codes([17.5, None, 65.0]) == [0, -1, 3]
    assert codes((17, 18)) == [0, 1]
    assert codes(pl.Series([Decimal("17.5"), None])) == [0, -1]
    assert codes(pd.Series([17, 18, 17, None], dtype="category")) == [0, 1, 0, -1]
    assert codes(pa.array([17, 18, None]).dictionary_encode()) == [0, 1, -1]


def test_truth_values_are_numbers_where_they_tell_something() -> None:
    flag = variable("F", None, [-inf, 1, inf])
    assert codes([True, None, False], flag) == [1, -1, 0]
    assert codes(np.array([True, False]), flag) == [1, 0]


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert codes(torch.tensor(FLOATS)) == expected(FLOATS)
    assert codes(torch.tensor(WHOLE)) == expected(WHOLE)


def test_labels_and_likelihoods_are_taken_too() -> None:
    assert codes(["[0, 18)", "[65, 120]", None]) == [0, 3, -1]
    assert codes(pd.Series(["[18, 40)"], dtype="category")) == [1]
    column, _ = read_column(AGE, [[1.0, 1.0, 2.0, 0.0]])
    assert column is not None
    np.testing.assert_allclose(column.likelihoods()[:, 0], [0.25, 0.25, 0.5, 0])


def test_two_intervals_never_make_a_likelihood_of_a_float() -> None:
    own = variable("P", None, [0, 0.5, 1])
    assert codes(0.25, own) == [0]
    assert codes([0.25, 0.75], own) == [0, 1]
    net = tacit.Network()
    net.add("P", bins=[0, 0.5, 1], cpt=[0.5, 0.5])
    net.add("Q", ["P"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    tac = tacit.compile(net, "Q", evidence=["P"])
    assert tac.posterior({"P": 0.25})[0, 0] == pytest.approx(0.9)
    assert tac.posterior(np.array([[0.25], [0.75]]))[:, 0] == pytest.approx([0.9, 0.2])
    assert tac.posterior({"P": [0.25, 0.75]})[:, 0] == pytest.approx([0.9, 0.2])  # and no warning about two rows


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([3, 130], "evidence on 'Age', row 1: 130 is outside the range [0, 120] of its intervals"),
        ([3.0, nan, -0.5], "evidence on 'Age', row 2: -0.5 is outside the range [0, 120]"),
        ([3.0, inf], "evidence on 'Age', row 1: inf is outside the range [0, 120]"),
        ([3.0, None, 121.0], "evidence on 'Age', row 2: 121 is outside"),
        (np.array([200], dtype=np.uint8), "row 0: 200 is outside"),
        (pd.Series([17, 300], dtype="category"), "row 1: 300 is outside"),
        (["[0, 18)", "x"], "row 1: 'x' is neither a number nor a state; expected numbers in [0, 120]"),
        (["[0, 18)", "37"], "row 1: '37' is text, and 1 of 2 values spell numbers: convert the column (in pandas,"),
        (np.array([True, False]), "row 0: True is neither a number nor a state"),
        ([17, None, np.True_], "row 2: True is neither a number nor a state"),
        (["[0, 18)", ""], "; use None (or NaN) for a gap, not ''"),
    ],
)
def test_errors_name_column_row_value_and_range(values: object, message: str) -> None:
    with pytest.raises(EvidenceError) as error:
        read_column(AGE, values)
    assert message in str(error.value)


@pytest.mark.parametrize("made", [list, pd.Series, lambda values: pd.Series(values, dtype="str")])
def test_the_few_texts_that_are_no_numbers_are_named_first(made) -> None:
    values = [None, *("12.5" for _ in range(30)), "130", "67,5", "67,5", "n.a.", "33"]
    with pytest.raises(EvidenceError) as error:
        read_column(AGE, made(values))
    assert str(error.value).startswith(
        "evidence on 'Age', row 32: '67,5' is not a number; the column is text, and 32 of 35 values spell numbers: "
        "convert it (in pandas, pd.to_numeric(column, errors='coerce') makes the others gaps); write numbers "
        "with a point (67.5); 4 rows are wrong: "
        "'67,5' (2, first in row 32), "
    )
    assert [wrong.value for wrong in error.value.values] == ["67,5", "n.a.", "130"]


def test_infinite_numbers_are_inside_infinite_ends_only() -> None:
    own = variable("X", None, [-inf, 3, 1e300])
    assert own.states == ("(-inf, 3)", "[3, 1e+300]")
    assert codes([-inf, 3.0], own) == [0, 1]
    for dtype in (np.float16, np.float32, np.float64):
        array = np.array([-inf, 2.5, 3, np.finfo(dtype).max], dtype=dtype)
        assert codes_of_numbers(own.bins or (), array)[:3].tolist() == [0, 0, 1]
        assert codes_of_numbers(own.bins or (), np.array([inf], dtype=dtype)).tolist() == [-2]
        assert codes_of_numbers((-1e300, 0.0, inf), np.array([-inf, inf], dtype=dtype)).tolist() == [-2, 1]


def test_an_edge_is_rounded_as_the_column_was() -> None:
    own = variable("X", None, [0.1, 0.7, 0.9])
    assert codes(np.array([0.1, 0.7, 0.9], dtype=np.float32), own) == [0, 1, 1]
    assert codes([np.float32(0.7), "[0.1, 0.7)"], own) == [1, 0]


def test_whole_numbers_beyond_floats_are_compared_exactly() -> None:
    edges = (0.0, 2.0**53 + 2, 2.0**63)
    array = np.array([2**53 + 1, 2**53 + 2, 2**63 - 1])
    assert codes_of_numbers(edges, array).tolist() == [0, 1, 1]
    assert codes([2**53 + 1, 2**63, None], variable("X", None, edges)) == [0, 1, -1]
    assert codes_of_numbers((-500.0, -300.0), np.array([-128, 127], dtype=np.int8)).tolist() == [-2, -2]


FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9), min_size=2, max_size=200, unique=True
    ),
    st.booleans(),
    st.lists(NUMBERS | st.integers(-9, 9), min_size=1, max_size=20),
)
def test_arrays_agree_with_the_definition(edges: list[float], infinite: bool, values: list[float]) -> None:
    ends = sorted({float(edge) + 0.0 for edge in edges})
    if len(ends) < 2:
        return
    bins = checked_edges([-inf, *ends, inf] if infinite else ends)
    array = np.array(values + ends, dtype=np.float64)
    wanted = [naive(bins, value) for value in array.tolist()]
    assert codes_of_numbers(bins, array).tolist() == wanted
    assert [code_of_number(bins, value) for value in array.tolist()] == wanted
    assert len(set(interval_names(bins))) == len(bins) - 1


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ([0], "at least two"),
        ([0, nan], "edge 1 of bins is NaN"),
        ([0, 2, 2], "edge 2 of bins is 2, after 2; each edge must be larger"),
        ([0, inf, 3], "edge 1 of bins is inf; only the first may be -inf, and the last one inf"),
        ([inf, 3], "edge 0 of bins is inf"),
        ("abc", "bins must be a sequence of edges"),
        ([0, "a"], "expected numbers"),
        (5, "bins must be a sequence of edges"),
    ],
)
def test_wrong_edges_are_refused(bins: object, message: str) -> None:
    with pytest.raises(NetworkError, match="node 'X'") as error:
        tacit.Network().add("X", bins=bins)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_states_beside_bins_must_be_equal() -> None:
    net = tacit.Network()
    net.add("X", states=["[0, 1)", "[1, 2]"], bins=[0, 1, 2])
    with pytest.raises(NetworkError, match="leave out one of them"):
        net.add("Y", states=["lo", "hi"], bins=[0, 1, 2])


def interval_network() -> tacit.Network:
    net = tacit.Network("ages")
    net.add("Age", bins=[0, 18, 65, inf], cpt=[0.2, 0.6, 0.2])
    net.add("Ill", ["Age"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.5, 0.5]])
    return net


def test_copies_keep_bins_and_equality_includes_them() -> None:
    net = interval_network()
    other = tacit.Network("ages")
    other.add("Age", states=net.states("Age"), cpt=net.cpt("Age"))
    other.add("Ill", ["Age"], cpt=net.cpt("Ill"))
    assert net != other
    for copy in (
        net.copy(),
        net.do({"Age": 17}),
        net.do({"Ill": "true"}),
        net.with_gamma(3.0),
        net.learnable(),
        net.select({}),
        net.cut(["Age"]),
        net.with_cpts({"Age": [0.1, 0.1, 0.8]}),
        tacit.Network.from_dict(net.to_dict()),
        pickle.loads(pickle.dumps(net)),
        tacit.estimate(net.learnable(), {"Age": [3, 30, 70], "Ill": ["true", "false", "true"]}, progress=False).network,
    ):
        assert copy.bins("Age") == (0, 18, 65, inf)
        assert copy.bins("Ill") is None
    assert tacit.Network.from_dict(net.to_dict()) == net
    template = tacit.Network()
    template.add("X[0]", bins=[0, 1, 2], cpt=[0.5, 0.5])
    template.add("X[1]", ["X[0]"], bins=[0, 1, 2], cpt=[[0.5, 0.5], [0.1, 0.9]])
    assert tacit.unroll(template, 3).bins("X[2]") == (0, 1, 2)


def test_do_given_and_the_way_of_one_row_take_numbers() -> None:
    net = interval_network()
    assert net.do({"Age": 70}).posterior("Ill")[0, 0] == 0.5
    assert tacit.compile(net, "Ill", given={"Age": 17.9}).posterior({})[0, 0] == pytest.approx(0.1)
    tac = tacit.compile(net, "Ill", evidence=["Age"], engine="native")
    rows = [17, 17.5, np.float64(18), np.float32(64), np.int16(65), inf, Decimal(3)]
    for value in [*rows, "[18, 65)", None]:
        want = tac.posterior({"Age": [value, value]})[0]
        for _ in range(3):
            np.testing.assert_array_equal(tac.posterior({"Age": value})[0], want)
            np.testing.assert_array_equal(net.posterior("Ill", {"Age": value})[0], want)
    one = tac.one_row()
    assert one is not None
    assert all(one.posterior({"Age": value}) is not None for value in rows)
    with pytest.raises(EvidenceError, match="-1 is outside the range"):
        tac.posterior({"Age": -1})


def test_semantics_reads_numbers() -> None:
    net = interval_network()
    rows = {"Age": [3.5, None, 70]}
    np.testing.assert_allclose(tacit.semantics.posterior(net, "Ill", rows), net.posterior("Ill", rows))
