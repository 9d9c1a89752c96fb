"""Evidence that is read lazily: it says the same as evidence that is checked at once, in blocks of any size.

What rows of likelihoods mean is said here once more, row by row, in Python's own numbers.
"""

import math
import pickle
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import EvidenceError, examples
from tacit.evidence.column import Column, Kind
from tacit.evidence.likelihoods import as_given
from tacit.evidence.read import read, read_column
from tacit.model.elements.variable import Variable, variable
from tests.helpers import ENGINES, close, tries
from tests.strategies import networks

nan = np.nan
A = variable("A", None)
TINY = float(np.finfo(np.float64).smallest_normal)
NUMBERS = (0.0, 0.25, 1.0, 3.0, 1e-30, 0.1, 1e30, 1e308, 1e-300, -0.5, math.inf, -math.inf, nan, 5e-324)
USUAL = NUMBERS[:6]
DTYPES = (np.float64, np.float32)


def of_states(count: int) -> Variable:
    return variable("X", [f"s{i}" for i in range(count)])


def backwards(array):
    return np.ascontiguousarray(array[::-1])[::-1]


def with_gaps(array):
    wide = np.full((2 * len(array), *(3 * size for size in array.shape[1:])), 7.0, dtype=array.dtype)
    every = (slice(None, None, 2), *(slice(1, None, 3) for _ in array.shape[1:]))
    wide[every] = array
    return wide[every]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    room = np.zeros(array.nbytes + 1, dtype=np.uint8)
    found = room[1:].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


LAYOUTS = {
    "as it is": np.array,
    "Fortran": np.asfortranarray,
    "backwards": backwards,
    "with gaps": with_gaps,
    "read-only": read_only,
    "unaligned": unaligned,
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
}


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Likelihoods (rows, states), or (rows,) of a first state, some of them wrong."""
    rows, states = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    shape = draw(st.sampled_from([(rows, states), (rows,)]))
    pool = draw(st.sampled_from([USUAL, NUMBERS, (0.0, 1.0, nan)]))
    flat = draw(st.lists(st.sampled_from(pool), min_size=math.prod(shape), max_size=math.prod(shape)))
    with np.errstate(over="ignore", under="ignore"):
        array = np.array(flat).reshape(shape).astype(draw(st.sampled_from(DTYPES)))
    for row in draw(st.lists(st.integers(0, rows - 1), max_size=3)) if rows else ():
        array[row] = nan
    return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](array)


def meant(of: Variable, row) -> list[float] | str:
    """What the likelihoods of one row mean, or a part of the message that refuses them."""
    values = [float(value) for value in np.atleast_1d(row)]
    if all(map(math.isnan, values)):
        return [1.0] * of.card
    if np.ndim(row) == 0:
        return [values[0], 1.0 - values[0]] if 0 <= values[0] <= 1 else "is not a likelihood in [0, 1]"
    if not all(map(math.isfinite, values)):
        return "likelihoods must be finite"
    if min(values) < 0:
        return "likelihoods must not be negative"
    if max(values) == 0:
        return "all likelihoods are zero"
    if math.isinf(sum(values)):
        values = [value / max(values) for value in values]
    scaled = [value / sum(values) for value in values]
    lost = any(value > 0 and own < TINY for value, own in zip(values, scaled, strict=True))
    return "further apart than floats can hold" if lost else scaled


def outcome(work):
    """What some work gives, or the message of its error."""
    try:
        return work()
    except EvidenceError as error:
        return str(error)


def blocks_of(column: Column, cuts: list[int]) -> np.ndarray:
    """All likelihoods, block by block."""
    edges = [0, *sorted(cut % (column.rows + 1) for cut in cuts), column.rows]
    parts = [column.block(a, b).likelihoods() for a, b in pairwise(edges) if b > a]
    return np.concatenate([np.empty((column.variable.card, 0)), *parts], axis=1)


@pytest.mark.parametrize("block", [2, 2**14])
def test_blocks_of_any_size_say_what_each_row_means(monkeypatch, block):
    monkeypatch.setattr("tacit.evidence.likelihoods.BLOCK_ROWS", block)

    @tries(300)
    @given(tables(), st.lists(st.integers(0, 20), max_size=4))
    def check(array, cuts):
        of = of_states(array.shape[1] if array.ndim == 2 else 2)
        expected = [meant(of, row) for row in array]
        bad = next((i for i, row in enumerate(expected) if isinstance(row, str)), None)
        lazy, broadcasts = outcome(lambda: read_column(of, array, lazily=True)) if len(array) != 1 else (None, False)
        assert not broadcasts
        found = [outcome(lambda: read_column(of, array)[0].likelihoods())]
        if lazy is not None:
            found += [outcome(lazy.likelihoods), outcome(lazy.kept), outcome(lambda: blocks_of(lazy, cuts))]
            found = [own.likelihoods() if isinstance(own, Column) else own for own in found]
        if bad is not None:
            assert len(set(found)) == 1
            assert found[0].startswith(f"evidence on 'X', row {bad}: ")
            assert expected[bad] in found[0]
        for likelihoods in found if bad is None else ():
            np.testing.assert_allclose(likelihoods.T, np.reshape(expected, (-1, of.card)), rtol=1e-15, atol=0)

    check()


@tries(300)
@given(tables().filter(lambda array: len(array) > 1), st.data())
def test_rows_that_are_taken_keep_their_numbers(array, data):
    of = of_states(array.shape[1] if array.ndim == 2 else 2)
    lazy = read_column(of, array, lazily=True)[0]
    start = data.draw(st.integers(0, len(array) - 2))
    rows = data.draw(st.lists(st.integers(0, len(array) - start - 1), min_size=2))
    taken = lazy.block(start, len(array)).take(np.array(rows))
    expected = [(start + row, meant(of, array[start + row])) for row in rows]
    bad = next(((row, why) for row, why in expected if isinstance(why, str)), None)
    found = outcome(taken.likelihoods)
    if bad is None:
        np.testing.assert_allclose(found.T, [values for _, values in expected], rtol=1e-15)
    else:
        assert found.startswith(f"evidence on 'X', row {bad[0]}: ")
        assert bad[1] in found


@tries(300)
@given(tables())
def test_every_question_to_a_column_has_the_same_answer_in_all_forms(array):
    of = of_states(array.shape[1] if array.ndim == 2 else 2)
    eager = outcome(lambda: read_column(of, array)[0])
    if isinstance(eager, str):
        return
    lazy = read_column(of, array, lazily=True)[0]
    assert (lazy.rows, lazy.fully_observed, lazy.empty) == (eager.rows, eager.fully_observed, eager.empty)
    assert lazy.observed.tolist() == eager.observed.tolist()
    assert repr(outcome(lazy.states)) == repr(outcome(eager.states))
    assert (lazy.codes is None) == (eager.codes is None)
    if eager.codes is None:
        assert np.array_equal(lazy.soft, eager.soft)
    assert np.array_equal(pickle.loads(pickle.dumps(lazy)).likelihoods(), eager.likelihoods())


# what is copied -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("unaligned", "swapped")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_floats_are_read_where_they_are(layout, dtype):
    for values, kind in (([[1, 3], [2, 2], [nan, nan]], Kind.LIKELIHOODS), ([0.25, 0.5, nan], Kind.FIRST)):
        array = LAYOUTS[layout](np.array(values, dtype=dtype))
        lazy = read_column(A, array, lazily=True)[0]
        assert lazy.source().kind is kind
        assert lazy.source().array is array
        assert lazy.block(1, 3).source().array.base is not None
        assert np.shares_memory(lazy.block(1, 3).source().array, array)
        kept = read_column(A, array)[0]
        assert kept.source().kind is Kind.NORMALISED
        assert not np.shares_memory(kept.source().array, array)
        close(kept.likelihoods(), [[0.25, 0.5, 1], [0.75, 0.5, 1]])


def test_what_no_reader_could_read_is_copied():
    floats = np.array([0.25, 0.5])
    for array in (unaligned(floats), floats.astype(">f8"), floats.astype(np.float16), floats.astype(np.longdouble)):
        found = read_column(A, array, lazily=True)[0].source().array
        assert found.dtype == np.float64
        assert found.flags.aligned
        assert found.tolist() == floats.tolist()
    masked = np.ma.array(np.float32([[1, 2], [3, 4], [5, 6]]), mask=[[0, 0], [1, 1], [0, 0]])
    lazy = read_column(A, masked, lazily=True)[0]
    assert lazy.source().array.dtype == np.float32
    close(lazy.likelihoods().T, [[1 / 3, 2 / 3], [1, 1], [5 / 11, 6 / 11]])
    assert masked.data.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert as_given(np.array(["x"])) is None
    assert as_given(np.array([1j])) is None


def test_one_row_and_no_row_are_read_at_once():
    for values in ([[1.0, 3.0]], [0.25], 0.25, {"A.true": 0.25, "A.false": 0.75}):
        evidence = values if isinstance(values, dict) else {"A": np.array(values)}
        column = read(evidence, [A], lazily=True).columns["A"]
        assert column.source().kind is Kind.NORMALISED
        assert column.likelihoods().tolist() == [[0.25], [0.75]]
    for empty in (np.empty((0, 2)), np.empty((0, 2), np.float32), np.empty(0)):
        known = read({"A": empty}, [A], empty=True, lazily=True)
        assert (known.rows, known.columns["A"].likelihoods().shape) == (0, (2, 0))


def test_a_column_that_was_read_lazily_is_checked_when_it_is_read_again():
    array = np.array([[1.0, 3.0], [2.0, -1.0]])
    lazy = read({"A": array}, [A], lazily=True)
    assert read(lazy, [A], lazily=True).columns["A"] is lazy.columns["A"]
    with pytest.raises(EvidenceError, match=r"row 1: \[2.0, -1.0\]: likelihoods must not be negative"):
        read(lazy, [A])
    array[1, 1] = 2.0
    kept = read(lazy, [A]).columns["A"]
    array[:] = 7.0
    assert kept.likelihoods().T.tolist() == [[0.25, 0.75], [0.5, 0.5]]


# codes ----------------------------------------------------------------------------------------------------


IN_ORDER, BYTES = ["lo", "mid", "hi"], pa.int8()
GAPPED = ["hi", None, "lo", "mid", "hi"]


def in_dictionary(labels, values, kind=BYTES):
    known = labels.to_pylist() if isinstance(labels, pa.Array) else labels
    places = [None if value is None else known.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(places, kind), labels)


def test_codes_that_are_states_already_pass_through_and_are_copied_to_be_kept():
    of = variable("B", IN_ORDER)
    frame = pd.DataFrame({"B": pd.Categorical(GAPPED, IN_ORDER)})
    series = pl.Series(["hi", "lo", "mid"], dtype=pl.Enum(IN_ORDER))
    arrow = in_dictionary(IN_ORDER, ["hi", "lo", "mid"])
    whole = np.array([2, 0, 1], dtype=np.int8)
    number = variable("N", 3)
    for own, column, held in (
        (of, frame["B"], frame["B"].array.codes),
        (of, series, series.to_physical().to_numpy()),
        (of, pa.chunked_array([arrow]), arrow.indices.to_numpy()),
        (number, whole, whole),
    ):
        codes = read_column(own, column, lazily=True)[0].codes
        assert codes.dtype == np.int8
        assert np.shares_memory(codes, held)
        kept = read_column(own, column)[0].codes
        assert not np.shares_memory(kept, held)
        assert kept.flags.writeable
        assert kept.tolist() == codes.tolist()


@pytest.mark.parametrize("card", [2, 127, 128, 32767, 32768])
def test_codes_take_the_smallest_type(card):
    expected = np.int8 if card <= 127 else np.int16 if card <= 32767 else np.int32
    texts, numbers = of_states(card), variable("X", card)
    rows = [card - 1, None, 0, card // 2]
    labels = [None if row is None else texts.states[row] for row in rows]
    columns = {
        "objects": (texts, labels),
        "pandas": (texts, pd.Series(pd.Categorical(labels, list(texts.states)))),
        "pandas, another order": (texts, pd.Series(pd.Categorical(labels, list(reversed(texts.states))))),
        "pandas str": (texts, pd.Series(labels, dtype="str")),
        "pyarrow": (texts, in_dictionary(list(texts.states), labels, pa.int32())),
        "polars Enum": (texts, pl.Series(labels, dtype=pl.Enum(list(texts.states)))),
        "polars Categorical": (texts, pl.Series(labels, dtype=pl.Categorical)),
        "Int64": (numbers, pd.Series(rows, dtype="Int64")),
        "floats": (numbers, pd.Series(rows, dtype="float64")),
        "objects of numbers": (numbers, np.array(rows, dtype=object)),
        "nothing": (texts, [None] * 4),
        "nothing but NaN": (texts, np.full(4, nan)),
    }
    for name, (of, column) in columns.items():
        codes = read_column(of, column, lazily=True)[0].codes
        assert codes.dtype == expected, name
        right = [-1] * 4 if name.startswith("nothing") else [card - 1, -1, 0, card // 2]
        assert codes.tolist() == right, name
        likelihoods = read_column(of, column)[0].likelihoods()
        assert likelihoods.argmax(axis=0).tolist() == [max(code, 0) for code in right]
        assert likelihoods.sum(axis=0).tolist() == [card if code == -1 else 1 for code in right]
    text = np.array(labels[::2])
    for of, column in ((texts, text), (texts, text.astype("S")), (numbers, np.array(rows[::2]))):
        codes = read_column(of, column)[0].codes
        assert codes.dtype == expected
        assert codes.tolist() == [card - 1, 0]


def test_codes_from_elsewhere_take_the_smallest_type_too():
    for card, kind in ((3, np.int8), (300, np.int16), (40000, np.int32)):
        column = Column(of_states(card), np.array([card - 1, -1]))
        assert (column.source().array.dtype, column.codes.tolist()) == (kind, [card - 1, -1])
    assert Column(A, np.array([1, 0], np.int32)).codes.dtype == np.int32  # small enough
    tac = tacit.compile(examples.abc(), "B", given={"A": "false"})
    assert tac.given_columns["A"].source().array.dtype == np.int8


@tries(100)
@given(
    st.lists(st.sampled_from([*IN_ORDER, "LO", " Mid ", None]), max_size=30),
    st.permutations([*IN_ORDER, "LO", " Mid ", "unused"]),
    st.sampled_from([pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()]),
    st.integers(0, 9),
)
def test_categories_of_any_order_case_and_place_mean_the_same(values, categories, kind, offset):
    of = variable("B", IN_ORDER)
    right = [-1 if value is None else IN_ORDER.index(value.strip().lower()) for value in values]
    dictionary = in_dictionary(categories, [*[None] * offset, *values], kind)[offset:]
    halves = [in_dictionary(list(reversed(categories)), values[:5], kind), in_dictionary(categories, values[5:], kind)]
    columns = [
        pd.Series(pd.Categorical(values, categories)),
        pd.CategoricalIndex(pd.Categorical(values, categories)),
        pd.Categorical(values, categories),
        pd.Series(values, dtype="str"),
        pl.Series(values, dtype=pl.Enum(categories)),
        pl.Series(values, dtype=pl.Categorical),
        pl.Series(values, dtype=pl.String),
        dictionary,
        pa.chunked_array([dictionary]),
        pa.chunked_array(halves),
        pa.array(values, pa.string()),
        pa.chunked_array([pa.array(values[:3], pa.large_string()), pa.array(values[3:], pa.large_string())]),
        pa.array(values, pa.string_view()),
    ]
    for column in columns:
        assert read_column(of, column, lazily=True)[0].codes.tolist() == right


@given(
    st.lists(st.sampled_from([0, 1, 2, 3, None]), min_size=2, max_size=12),
    st.permutations([0, 1, 2, 3, 7]),
    st.sampled_from([variable("N", 3), variable("N", 4), variable("N", [2, 0, 1, "x"]), variable("N", IN_ORDER), A]),
)
def test_categories_of_whole_numbers_mean_what_the_numbers_mean(values, categories, of):
    plain = outcome(lambda: read_column(of, pd.Series(values, dtype="Int64"))[0].likelihoods().tolist())
    for column in (pd.Series(pd.Categorical(values, categories)), in_dictionary(pa.array(categories), values)):
        assert outcome(lambda own=column: read_column(of, own)[0].likelihoods().tolist()) == plain


def test_whole_numbers_of_categories_are_states_already():
    frame = pd.DataFrame({"N": pd.Categorical([2, 0, None, 1], [0, 1, 2])})
    codes = read_column(variable("N", 3), frame["N"], lazily=True)[0].codes
    assert codes.tolist() == [2, 0, -1, 1]
    assert np.shares_memory(codes, frame["N"].array.codes)
    empty = pd.Categorical([None, None], pd.Index([], dtype="int64"))
    assert read_column(A, empty)[0].codes.tolist() == [-1, -1]
    assert read_column(A, in_dictionary(pa.array([], pa.int64()), [None]))[0].codes.tolist() == [-1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_of_states_keep_their_type(dtype):
    frame = pd.DataFrame({"A.true": [0.25, nan, 3.0], "A.false": [0.75, nan, 1.0]}, dtype=dtype)
    column = read(frame, [A], lazily=True).columns["A"]
    assert column.source().array.dtype == dtype
    close(column.likelihoods().T, [[0.25, 0.75], [1, 1], [0.75, 0.25]])


def test_a_null_in_a_dictionary_is_a_gap():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int8()), ["lo", None, "hi"])
    assert read_column(variable("B", IN_ORDER), column)[0].codes.tolist() == [0, -1, -1, 2]


def test_places_outside_of_a_dictionary_never_become_codes():
    for kind in (pa.int8(), pa.int32()):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 7, -5], kind), IN_ORDER, safe=False)
        codes = read_column(variable("B", IN_ORDER), column, lazily=True)[0].codes
        assert set(codes.tolist()) <= {-1, 0, 1, 2}


def test_labels_of_few_rows_are_found_among_many():
    values = ["lo"] * 5000
    values[1234], values[2345] = "hi", None
    of = variable("B", IN_ORDER)
    for column in (pa.array(values), pl.Series(values, dtype=pl.Categorical), pl.Series(values)):
        codes = read_column(of, column)[0].codes
        assert (codes[1234], codes[2345], (codes == 0).sum()) == (2, -1, 4998)
    values[3456] = "no state"
    for column in (pa.array(values), pl.Series(values, dtype=pl.Categorical), pl.Series(values)):
        with pytest.raises(EvidenceError, match="row 3456: 'no state' is not a state"):
            read_column(of, column)


# queries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@tries(6)
@given(net=networks(testing=False), data=st.data())
def test_queries_refuse_the_first_bad_row_wherever_it_is(engine, net, data):
    """Also in columns that say nothing about the query: they scale the joint, so that engines look at them."""
    query = data.draw(st.sampled_from(net.variables))
    names = data.draw(st.lists(st.sampled_from(net.variables), min_size=1, unique=True))
    tac = tacit.compile(net, query, evidence=names, engine=engine)
    tac.engine().chunk = 4
    rows = data.draw(st.integers(2, 11))
    columns = {name: np.full((rows, net.variable(name).card), 0.5, np.float32) for name in names}
    wrong, row = data.draw(st.sampled_from(names)), data.draw(st.integers(0, rows - 1))
    close(tac.posterior(columns), np.repeat(tac.posterior(), rows, axis=0))
    columns[wrong][row] = -1.0
    expected = outcome(lambda: tac.read(columns))
    assert expected.startswith(f"evidence on {wrong!r}, row {row}: ")
    for asked in (tac.posterior, tac.log_evidence, tac.selected):
        assert outcome(lambda asked=asked: asked(columns)) == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_answers_do_not_depend_on_how_likelihoods_lie_in_memory(engine, layout):
    tac = tacit.compile(examples.abc(), "B", evidence=["A", "C"], engine=engine)
    tac.engine().chunk = 8
    rng = np.random.default_rng(0)
    plain = {"A": rng.random(30), "C": rng.random((30, 2)) * 5}
    plain["A"][3], plain["C"][4] = nan, nan
    expected = tac.posterior(tac.read({name: array.copy() for name, array in plain.items()}))
    laid = {name: LAYOUTS[layout](array) for name, array in plain.items()}
    close(tac.posterior(laid), expected)
    short = {name: LAYOUTS[layout](array.astype(np.float32)) for name, array in plain.items()}
    close(tac.posterior(short), expected, 1e-6)


def test_the_states_of_hard_evidence_may_be_given_as_likelihoods():
    tac = tacit.compile(examples.abc(), "B", hard=["C"])
    rows = {"C": np.array([[1.0, 0.0], [0.0, 3.0]])}
    assert np.array_equal(tac.posterior(rows), tac.posterior({"C": ["lo", "hi"]}))
    rows["C"][1, 0] = 1.0
    with pytest.raises(EvidenceError, match="evidence on 'C', row 1: a state is needed in every row"):
        tac.posterior(rows)
    rows["C"][1, 0] = -1.0
    with pytest.raises(EvidenceError, match=r"evidence on 'C', row 1: .* must not be negative"):
        tac.posterior(rows)


def test_evidence_that_was_read_serves_other_queries_and_never_changes():
    net = examples.abc()
    first = tacit.compile(net, "B", evidence=["A", "C"])
    others = [
        tacit.compile(net, "B", evidence=["A"], hard=["C"], engine="numpy"),
        tacit.compile(net, ["B", "C"], evidence=["C", "A", "B"]),
        tacit.compile(net, "A", evidence=["A", "C"], dtype="float32"),
    ]
    frame = pd.DataFrame({"A": [0.8, 0.1, nan], "C": pd.Categorical(["lo", "hi", "lo"], ["lo", "hi"])})
    known, copy = first.read(frame), frame.copy()
    expected = [tac.posterior({name: copy[name] for name in copy}) for tac in (first, *others)]
    frame.loc[:, "A"] = 0.5
    frame.loc[0, "C"] = "hi"
    for tac, right in zip((first, *others), expected, strict=True):
        assert np.array_equal(tac.posterior(known), right)
        assert np.array_equal(tac.posterior(tac.read(known)), right)
    assert np.array_equal(net.posterior("B", known), net.posterior("B", copy))


def test_evidence_that_was_read_must_fit_the_query():
    net = examples.abc()
    known = tacit.compile(net, "B", evidence=["A", "C"]).read({"A": [0.8, 0.1], "C": "lo"})
    with pytest.raises(EvidenceError, match="evidence on 'C', but the query was compiled for evidence on"):
        tacit.compile(net, "B", evidence=["A"]).posterior(known)
    other = tacit.Network()
    other.add("A", cpt=[0.3, 0.7])
    other.add("C", parents=["A"], states=["hi", "lo"], cpt=[[0.25, 0.75], [0.5, 0.5]])
    with pytest.raises(EvidenceError, match=r"evidence on 'C' was read for the states 'lo', 'hi'; .* has 'hi', 'lo'"):
        tacit.compile(other, "A", evidence=["A", "C"]).posterior(known)


@pytest.mark.parametrize("lazily", [True, False])
def test_huge_likelihoods_do_not_warn(lazily):
    array = np.array([[1e308, 1e308], [1.0, 3.0]])
    with np.errstate(all="raise") if lazily else nullcontext():
        known = read({"A": array}, [A], lazily=lazily)
    close(known.columns["A"].likelihoods().T, [[0.5, 0.5], [0.25, 0.75]])
