"""Every container of a column says the same: compared with a reader that knows one list of Python values only."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import EvidenceError
from tacit.evidence import labels as module
from tacit.evidence.frames import Plain, TextColumn, is_framed, unpack
from tacit.evidence.read import read, read_column
from tacit.model.elements.variable import Variable, variable

BIG = 2**53
NUMBER = int | float


def reference(of: Variable, values: list, framed: bool = False):
    """The likelihoods (rows, states) that a list of values means, one by one; None if it is to be refused."""
    words = {label.strip().lower(): label for label in of.states if isinstance(label, str)}
    if all(v is None or isinstance(v, str | bool) for v in values):  # case does not matter, and truth values are words
        values = [v if v in of.states else words.get(str(v).strip().lower(), v) for v in values]
    present = [v for v in values if v is not None]
    numbers = all(isinstance(v, NUMBER) for v in present)
    labels = any(isinstance(label, NUMBER) for label in of.states)
    floats = any(isinstance(v, float) for v in present)
    if present and numbers and not labels:
        default = of.states == ("true", "false")
        if of.card != 2 or not (floats or default) or not all(0 <= v <= 1 for v in present):
            return None
        if framed and not default and all(v in (0, 1) for v in present):
            return None
        return [[1.0, 1.0] if v is None else [v, 1 - v] for v in values]
    if any(v not in of.states for v in present):
        return None
    return [[float(v is None or v == label) for label in of.states] for v in values]


def read_as(of: Variable, column):
    try:
        known = read({of.name: column}, [of])
    except EvidenceError:
        return None
    return known.columns[of.name].likelihoods().T.tolist()


# containers -----------------------------------------------------------------------------------------------


def of_arrow(kind):
    """The ways in which pyarrow holds a column of a type."""

    def chunks(values):
        return [values[: len(values) // 2], values[len(values) // 2 :], []]

    def dictionary_with_null(values):
        levels = [None, *dict.fromkeys(v for v in values if v is not None)]
        return pa.DictionaryArray.from_arrays(pa.array([levels.index(v) for v in values]), pa.array(levels, kind))

    return {
        f"arrow {kind}": lambda values: pa.array(values, kind),
        f"arrow {kind}, sliced": lambda values: pa.array([None, *values, None], kind)[1:-1],
        f"arrow {kind}, chunked": lambda values: pa.chunked_array(chunks(values), kind),
        f"arrow {kind}, dictionary": lambda values: pa.array(values, kind).dictionary_encode(),
        f"arrow {kind}, dictionary with null": dictionary_with_null,
        f"arrow {kind}, dictionaries": lambda values: pa.chunked_array(
            [pa.array(chunk, kind).dictionary_encode() for chunk in chunks(values)]
        ),
        f"arrow {kind}, run-end": lambda values: pc.run_end_encode(pa.array(values, kind)),
        f"arrow {kind}, run-ends": lambda values: pa.chunked_array(
            [pc.run_end_encode(pa.array(chunk, kind)) for chunk in chunks(values)]
        ),
        f"arrow {kind}, run-end of dictionary": lambda values: pa.RunEndEncodedArray.from_arrays(
            pa.array(range(1, len(values) + 1), pa.int32()), pa.array(values, kind).dictionary_encode()
        ),
    }


def of_pandas(*dtypes):
    return {f"pandas {d}": lambda values, d=d: pd.Series(values, dtype=d) for d in dtypes} | {
        "pandas category": lambda values: pd.Series(pd.Categorical(values)),
        "pandas categorical": pd.Categorical,
        "pandas object": lambda values: pd.Series(values, dtype=object),
        "pandas array": lambda values: pd.array(values, dtype=dtypes[0]),
        "pandas index": lambda values: pd.Index(values, dtype=dtypes[0]),
    }


def of_polars(*dtypes):
    return {f"polars {d}": lambda values, d=d: pl.Series(values, dtype=d) for d in dtypes}


def masked(kind, fill):
    """A masked array, whose masked entries look like values."""
    return lambda values: np.ma.array(
        [fill if v is None else v for v in values], mask=[v is None for v in values], dtype=kind
    )


PYTHON = {"list": list, "tuple": tuple, "objects": lambda values: np.array([*values, None], dtype=object)[:-1]}
TEXT = {
    **PYTHON,
    "masked": masked(None, "c"),
    "numpy strings": lambda values: np.array(values, dtype=np.dtypes.StringDType(na_object=None)),
    **of_pandas("string", "string[pyarrow]", pd.ArrowDtype(pa.string()), "str"),
    **of_polars(pl.String, pl.Categorical),
    **of_arrow(pa.string()),
    **of_arrow(pa.large_string()),
    "arrow view": lambda values: pa.array(values, pa.string_view()),
    "arrow dictionary of bytes": lambda values: (
        pa.array(values).dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.string()))
    ),
}
INTEGERS = {
    **PYTHON,
    "masked": masked(np.int64, 1),
    **of_pandas("Int64", "int64[pyarrow]"),
    **of_polars(pl.Int64, pl.Int128),
    **of_arrow(pa.int64()),
}
FLOATS = {
    **PYTHON,
    "floats": lambda values: np.array([np.nan if v is None else v for v in values], dtype=float),
    "masked": masked(float, 1),
    **of_pandas("Float64", "float64", "double[pyarrow]", "Sparse[float]"),
    **of_polars(pl.Float64),
    **of_arrow(pa.float64()),
}
BOOLEANS = {
    **PYTHON,
    "masked": masked(bool, True),
    **of_pandas("boolean", "bool[pyarrow]"),
    **of_polars(pl.Boolean),
    **of_arrow(pa.bool_()),
}
GAPLESS = {
    str: {
        "text": np.array,
        "bytes": lambda values: np.char.encode(np.array(values), "utf-8"),
    },
    int: {
        "int64": lambda values: np.array(values, dtype=np.int64),
        "pandas int64": lambda values: pd.Series(values, dtype="int64"),
    },
    bool: {"bool": lambda values: np.array(values, dtype=bool), "pandas bool": pd.Series},
    float: {},
}

# variables ------------------------------------------------------------------------------------------------

NARROW = [-2, 0, 1, 3, 7, 100]
WIDE = [BIG, BIG + 1, BIG + 3, 2**62 + 1, 2**63 - 1, -BIG - 1]


def shuffled(labels: list, seed: int = 7) -> list:
    """Labels in an order that is not the sorted one, so that no code is a rank."""
    return [labels[i] for i in np.random.default_rng(seed).permutation(len(labels))]


VARIABLES = [
    variable("default", None),
    variable("words", ["no", "yes"]),
    variable("reversed", ["false", "true"]),
    variable("capitals", ["TRUE", "FALSE", "UNKNOWN"]),
    variable("three", ["lo", "mid", "hi"]),
    variable("codes", shuffled([0, 1])),
    variable("integers", shuffled(NARROW)),
    variable("wide", shuffled(WIDE)),
    variable("floats", [0.5, 0.1, 1.0, 1e300]),
    variable("truth", [True, False]),
    variable("mixed", ["no", 1, 0.5, BIG + 1]),
    variable("digits", ["1", "0"]),
    variable("33 words", shuffled([f"s{i}" for i in range(33)])),
    variable("40 integers", shuffled([*range(-20, 14), *WIDE])),
    variable("40 floats", shuffled([i / 10 for i in range(-29, 11)])),
    variable("one", ["only"]),
]


def columns(kind: type):
    """A variable and a list of values of one type with gaps, most of them labels."""
    extra = {
        str: ["no", "yes", "", "1"],
        int: [*NARROW, *WIDE],
        float: [0.0, 0.25, 0.5, 0.1, 1.0, 1e300],
        bool: [True, False],
    }[kind]

    def rows(of: Variable):
        labels = [label for label in of.states if type(label) is kind]
        value = st.sampled_from(labels) if labels else st.sampled_from(extra)
        wrong = st.sampled_from(extra)
        return st.lists(st.one_of(value, value, value, st.none()), min_size=1, max_size=6) | st.lists(
            st.one_of(value, wrong, st.none()), min_size=1, max_size=6
        )

    return st.sampled_from(VARIABLES).flatmap(lambda of: st.tuples(st.just(of), rows(of)))


@pytest.mark.filterwarnings("ignore::tacit.AmbiguousRowsWarning")
@pytest.mark.parametrize(("kind", "containers"), [(str, TEXT), (int, INTEGERS), (float, FLOATS), (bool, BOOLEANS)])
def test_every_container_means_what_its_values_mean(kind, containers):
    @given(columns(kind))
    @settings(max_examples=60, deadline=None)
    def check(drawn):
        of, values = drawn
        full = GAPLESS[kind] if None not in values else {}
        for name, made in {**containers, **full}.items():
            column = made(values)
            assert read_as(of, column) == reference(of, values, is_framed(column)), (name, of, values)

    check()


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("of", VARIABLES, ids=lambda v: v.name)
def test_labels_are_read_alike_however_many_states_there_are(monkeypatch, of, few):
    monkeypatch.setattr(module, "MAX_COMPARED_STATES", few)
    tried = [*of.states, "no", "No ", "TRUE", "zz", 0, 1, True, 0.5, 2, BIG, BIG + 1, 2**63 - 1, 1e300]
    for kind in (str, bool, int, float):
        values = [v for v in tried if type(v) is kind and v in of.states] * 2
        for column in (values, values[::-1], values[1:2]):
            if column:
                assert read_as(of, np.array(column)) == reference(of, column)
        for value in (v for v in tried if type(v) is kind):
            assert read_as(of, np.array([value])) == reference(of, [value])


# objects of all kinds -------------------------------------------------------------------------------------

HALF = decimal.Decimal("0.5")
MIXED = ["no", "yes", "true", "1", 0, 1, True, False, 0.25, 0.5, 7, 2.0, np.str_("yes"), np.int8(1), np.float32(0.5),
         np.bool_(True), HALF, decimal.Decimal(7), b"no", np.bytes_(b"yes")]  # fmt: skip
GAPS = [None, np.nan, float("nan"), np.float32("nan"), pd.NA, pd.NaT]
OBJECTS = {
    "list": list,
    "array": lambda values: np.fromiter(values, dtype=object),
    "every second": lambda values: np.fromiter([v for value in values for v in (value, "?")], dtype=object)[::2],
    "pandas": lambda values: pd.Series(values, dtype=object),
}
LABELLED = [*VARIABLES, variable("no, 1, 0.5", ["no", 1, 0.5]), variable("7, 2, 1", [7, 2, 1])]


@pytest.mark.parametrize("sampled", [1, 100])
def test_objects_mean_what_each_of_them_means(monkeypatch, sampled):
    """Whether objects are known by their address, or looked up one by one."""
    monkeypatch.setattr(module, "SAMPLED_ROWS", sampled)

    @given(
        st.sampled_from(LABELLED).flatmap(
            lambda of: st.tuples(
                st.just(of),
                st.lists(st.sampled_from([*of.states, *of.states, *GAPS]), min_size=1, max_size=8)
                | st.lists(st.sampled_from([*of.states, *MIXED, *GAPS]), min_size=1, max_size=8),
            )
        )
    )
    @settings(max_examples=50, deadline=None)
    def check(drawn):
        of, values = drawn
        plain = [None if module.is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values]
        for name, made in OBJECTS.items():
            column = made(values)
            if isinstance(column, list | tuple) and any(isinstance(v, np.bytes_) for v in values):
                continue  # NumPy makes text of them
            assert read_as(of, column) == reference(of, plain, is_framed(column)), (name, of, values)

    check()


@pytest.mark.parametrize("missing", GAPS, ids=repr)
def test_every_missing_value_is_one_whatever_object_it_is(missing):
    for value, code in (("hi", 2), ("lo", 0)):
        for made in OBJECTS.values():
            column = made([value, missing, value, None])
            assert read_column(variable("A", ["lo", "mid", "hi"]), column)[0].codes.tolist() == [code, -1, code, -1]


@pytest.mark.parametrize("card", [3, 32, 33, 126, 127, 128, 129, 300])
def test_the_last_of_many_states_is_found_in_every_container(card):
    of = variable("A", shuffled([f"s{i}" for i in range(card)]))
    values = [of.states[-1], None, of.states[0], of.states[card // 2]]
    for name, made in TEXT.items():
        assert read_column(of, made(values))[0].codes.tolist() == [card - 1, -1, 0, card // 2], name
    for name, made in GAPLESS[str].items():
        assert read_column(of, made(values[::2]))[0].codes.tolist() == [card - 1, 0], name


@pytest.mark.parametrize("more", [5, 200])
def test_categories_may_come_in_any_order_and_be_unused(more):
    of, values = variable("A", ["lo", "mid", "hi"]), ["hi", None, "lo", "hi"]
    categories = [*(f"no state {i}" for i in range(more)), "hi", "mid", "lo"]
    places = [None if v is None else categories.index(v) for v in values]
    for column in (
        pd.Series(pd.Categorical(values, categories)),
        pd.Series(pd.Categorical(values, categories, ordered=True)),
        pl.Series(values, dtype=pl.Enum(categories)),
        pl.Series([*categories, *values]).cast(pl.Categorical)[len(categories) :],
        pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), categories),
    ):
        assert read_column(of, column)[0].codes.tolist() == [2, -1, 0, 2]


@pytest.mark.parametrize("made", [*TEXT.values(), *GAPLESS[str].values()], ids=[*TEXT, *GAPLESS[str]])
def test_the_first_row_that_names_no_state_is_named_in_every_container(made):
    with pytest.raises(EvidenceError) as error:
        read({"A": made(["lo", "hi", "hi", "zz", "lo", "low", "zz"])}, [variable("A", ["lo", "hi"])])
    assert str(error.value) == (
        "evidence on 'A', row 3: 'zz' is not a state; expected one of 'lo', 'hi'; 3 rows name no state: "
        "'zz' (2, first in row 3), 'low' (1, first in row 5, did you mean 'lo'?)"
    )


def test_a_word_for_a_gap_is_refused_with_what_to_write_instead():
    for word in ("", "NA", " n/a"):
        with pytest.raises(EvidenceError, match=rf"; use None \(or NaN\) for a gap, not '{word}'"):
            read({"A": pd.Series(["lo", "low", word])}, [variable("A", ["lo", "hi"])])


@pytest.mark.parametrize("text", ["Hihg", "hihg", "HIGHT", "hi gh"])
def test_a_similar_state_is_found_in_any_case(text):
    for states in (["high", "low"], ["HIGH", "LOW"]):
        with pytest.raises(EvidenceError, match=f"did you mean '{states[0]}'"):
            read({"A": [text]}, [variable("A", states)])


@pytest.mark.parametrize("made", [*INTEGERS.values(), *GAPLESS[int].values()], ids=[*INTEGERS, *GAPLESS[int]])
def test_the_first_row_whose_number_is_no_state_is_named_in_every_container(made):
    with pytest.raises(EvidenceError) as error:
        read({"A": made([1, 0, 7, 1, 9])}, [variable("A", [0, 1])])
    assert str(error.value) == (
        "evidence on 'A', row 2: 7 is not a state; expected one of 0, 1 (its labels are numbers; pass likelihoods as "
        "an array of shape (rows, 2)); 2 rows name no state: 7 (1, first in row 2), 9 (1, first in row 4)"
    )


# what needs care ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_fractions_are_found_in_the_precision_of_the_column(monkeypatch, kind, few):
    monkeypatch.setattr(module, "MAX_COMPARED_STATES", few)
    of = variable("A", shuffled([i / 10 for i in range(40)]))
    values = kind([0.1, np.nan, 3.7, 1.0])
    expected = [of.states.index(0.1), -1, of.states.index(3.7), of.states.index(1.0)]
    for column in (values, list(values), np.array([*values, None], dtype=object)[:-1]):
        assert read_column(of, column)[0].codes.tolist() == expected
    assert read_column(of, values[0])[0].codes.tolist() == expected[:1]


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(
    ("states", "column", "message"),
    [
        ([0.1, 0.1 + 1e-12], np.float32([0.1]), r"may be 0.1 or 0.10000000000100001, which float32 cannot tell apart"),
        ([BIG, BIG + 1, 5], np.array([5.0, BIG]), r"row 1: 9007199254740992.0 may be 9007199254740992 or 900719925474"),
        ([BIG, BIG + 1, 5], [5.0, None, float(BIG)], r"row 2: 9007199254740992.0 may be 9007199254740992 or 900719925"),
        ([BIG + 1, 5], [5.0, None, float(BIG)], r"row 2: 9007199254740992.0 is not a state"),
        ([BIG + 1, 5], np.array([5.0, BIG]), r"row 1: 9007199254740992.0 is not a state"),
        ([2**24 + 1, 5], np.float32([2**24]), r"row 0: 16777216.0 is not a state"),
        ([float(BIG), 5], np.array([BIG + 1]), r"row 0: 9007199254740993 is not a state"),
        ([0, 0.5], np.array([1]), r"row 0: 1 is not a state"),
        (["a\0", "b"], np.array(["a"]), r"row 0: 'a' is not a state"),
        (["1", 5], np.array([1]), r"row 0: 1 is not a state"),
        (["a", 5], np.array(["5"]), r"row 0: '5' is not a state"),
        ([300, 5], np.array([44], np.uint8), r"row 0: 44 is not a state"),
        ([2, 5], np.array([True]), r"row 0: True is not a state"),
        ([70000, 5], np.float16([np.inf]), r"row 0: inf is not a state"),
    ],
)  # fmt: skip
def test_a_value_that_only_resembles_a_label_is_refused(monkeypatch, states, column, message, few):
    monkeypatch.setattr(module, "MAX_COMPARED_STATES", few)
    with pytest.raises(EvidenceError, match=message.replace("(", r"\(")):
        read_column(variable("A", states), column)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(
    ("states", "column", "codes"),
    [
        ([0.5, 0, 5], np.array([0, 5]), [1, 2]),
        ([2.0, 5], np.array([5, 2], np.uint8), [1, 0]),
        ([0.0, 1.0], np.array([True, False]), [1, 0]),
        ([10**400, 0.5, 7], np.array([7, 0.5]), [2, 1]),
        ([10**400, 0.5, 7], np.array([7]), [2]),
        ([10**400, 1], np.array([True]), [1]),
        ([-(2**63), 2**64 - 1], np.array([2**64 - 1], np.uint64), [1]),
        ([-(2**63), 2**64 - 1], np.array([-(2**63)]), [0]),
        ([0, 255], np.array([255, 0], np.uint8), [1, 0]),
        ([-128, 127], np.array([127, -128], np.int8), [1, 0]),
        ([1e308, 1], np.float32([1]), [1]),
        (["a\0", "b"], ["b", "a\0"], [1, 0]),
        (["a\0", "a"], np.array(["a"]), [1]),
        (["é", "b"], np.array(["b", "é"]), [1, 0]),
    ],
)
def test_labels_of_all_sizes_are_found_in_columns_of_all_types(monkeypatch, states, column, codes, few):
    monkeypatch.setattr(module, "MAX_COMPARED_STATES", few)
    assert read_column(variable("A", states), column)[0].codes.tolist() == codes


def test_whole_numbers_in_a_list_beside_floats_stay_whole():
    of = variable("A", [BIG, BIG + 1, 2**63, 0.5, -1])
    for values in ([BIG + 1, 0.5], (BIG, 0.5), [2**63, -1], [np.int64(BIG + 1), 0.5], [-1, 2**63]):
        assert read_column(of, values)[0].codes.tolist() == [of.states.index(v) for v in values]
    assert unpack([1e300, 1]).values.dtype == np.float64
    assert unpack([[float(BIG), BIG]]).values.shape == (1, 2)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([BIG + 1, None, BIG], dtype="Int64"),
        pd.Series([BIG + 1, None, BIG], dtype="UInt64"),
        pd.Series([BIG + 1, None, BIG], dtype="int64[pyarrow]"),
        pd.Series([BIG + 1, None, BIG], dtype="category"),
        pl.Series([BIG + 1, None, BIG]),
        pl.Series([BIG + 1, None, BIG], dtype=pl.UInt64),
        pa.array([BIG + 1, None, BIG]),
        pa.array([BIG + 1, None, BIG]).dictionary_encode(),
        pc.run_end_encode(pa.array([BIG + 1, None, BIG])),
    ],
    ids=lambda c: f"{type(c).__module__.partition('.')[0]} {getattr(c, 'dtype', getattr(c, 'type', ''))}",
)
def test_labels_beyond_what_floats_can_count_survive_gaps(column):
    assert read_column(variable("A", [BIG, BIG + 1]), column)[0].codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "wrap", [pa.array, pl.Series, lambda v: pd.Series(v, dtype=object), list], ids=lambda w: w.__name__
)
def test_lists_in_a_column_are_likelihoods(wrap):
    of = variable("B", ["lo", "mid", "hi"])
    assert read_as(of, wrap([[1.0, 2.0, 1.0], None])) == [[0.25, 0.5, 0.25], [1, 1, 1]]


def test_a_frame_as_a_column_holds_likelihoods():
    of = variable("A", ["no", "yes"])
    assert read_as(of, pd.DataFrame({"no": [1.0, 0.0], "yes": [3.0, 1.0]})) == [[0.25, 0.75], [0, 1]]


def test_decimals_are_labels_where_labels_are_numbers():
    values = [decimal.Decimal("0.5"), None, decimal.Decimal(7)]
    for column in (pa.array(values), pl.Series(values), values):
        assert read_column(variable("A", [7, 0.5]), column)[0].codes.tolist() == [1, -1, 0]


def test_text_and_gaps_are_unpacked_by_place():
    found = unpack(pa.array(["b", None, "a", "b"]))
    assert isinstance(found, TextColumn)
    assert (list(found.labels), found.places.tolist()) == (["b", "a"], [0, -1, 1, 0])
    found = unpack(pl.Series([3, None]))
    assert isinstance(found, Plain)
    assert (found.values.tolist()[0], found.values.dtype, found.missing.tolist()) == (3, np.int64, [False, True])
    assert unpack(pl.Series([3, 4])).missing is None


@pytest.mark.parametrize(
    ("column", "framed"),
    [
        (pd.Series([1]), True),
        (pl.Series([1]), True),
        (pa.array([1]), True),
        (pa.chunked_array([[1]]), True),
        (np.array([1]), False),
        ([1], False),
        (np.ma.array([1]), False),
        (1, False),
    ],
)
def test_columns_of_frame_libraries_are_told_apart(column, framed):
    assert is_framed(column) is framed


class Stubborn:
    """A container whose own conversion fails."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("it is on another device")


def test_what_no_array_can_be_made_of_is_refused():
    of = variable("A", None)
    with pytest.raises(EvidenceError, match="evidence on 'A': Stubborn cannot be read: it is on another device"):
        read({"A": Stubborn()}, [of])
    with pytest.raises(EvidenceError, match="evidence of type Stubborn is not understood"):
        read(Stubborn(), [of])


def test_whole_numbers_of_128_bits_are_read():
    of = variable("A", [2**100, 1])
    for kind in (pl.Int128, pl.UInt128) if hasattr(pl, "UInt128") else (pl.Int128,):
        assert read_column(of, pl.Series([1, None, 2**100], dtype=kind))[0].codes.tolist() == [1, -1, 0]
        assert read_column(of, pl.Series([2**100], dtype=kind))[0].codes.tolist() == [0]


@pytest.mark.parametrize("values", [pa.scalar(1), pa.table({"a": [1]}), pd.Timestamp(0), pl.lit(1)])
def test_what_is_no_column_is_refused(values):
    with pytest.raises(EvidenceError, match="evidence on 'A'"):
        read({"A": values}, [variable("A", ["no", "yes"])])


def test_rows_without_likelihoods_are_refused():
    with pytest.raises(EvidenceError, match=r"evidence on 'A', row 0: \[\] is not one likelihood per state"):
        read({"A": [[], []]}, [variable("A", None)])
