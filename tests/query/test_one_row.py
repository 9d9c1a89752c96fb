"""Single rows of labels: the short way gives what the long way gives, and leaves to it what needs a closer look."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import EvidenceError, ImpossibleEvidenceWarning, Network, examples
from tests.helpers import close
from tests.strategies import networks

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def findings():
    """Labels of text, numbers and truth, and one variable that has nothing to do with the query."""
    rng = np.random.default_rng(0)
    net = Network()
    net.add("Q", cpt=[0.3, 0.7])
    net.add("text", ["Q"], ["lo", "mid", "hi"], rng.dirichlet(np.ones(3), 2))
    net.add("number", ["Q"], 3, rng.dirichlet(np.ones(3), 2))
    net.add("flag", ["Q"], [False, True], rng.dirichlet(np.ones(2), 2))
    net.add("float", ["Q"], [0.1, 0.2], rng.dirichlet(np.ones(2), 2))
    net.add("never", ["Q"], ["a", "b"], [[1.0, 0.0], [1.0, 0.0]])
    net.add("apart", cpt=[0.5, 0.5])
    return net


NAMES = ["text", "number", "flag", "float", "never", "apart"]


def compiled(net, query="Q", **how):
    """A query that answers single rows by the short way."""
    tac = tacit.compile(net, query, engine="native", **how)
    tac.engine()
    return tac


def long_way(tac, row):
    return tac.with_network(tac.network, engine="numpy").posterior(row)


def short(tac, row):
    """What the short way says; None where it leaves a row to the long way."""
    return tac.one_row().posterior(row)


ROWS = [
    {},
    {"text": "lo"},
    {"text": "hi", "number": 2, "flag": True, "apart": "true"},
    {"text": None, "number": 0},
    {"number": 1.0, "flag": 0},
    {"number": np.int64(1), "text": np.str_("mid")},
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_labels(row, dtype):
    tac = compiled(findings(), evidence=NAMES, dtype=dtype)
    expected = long_way(tac, row)
    assert short(tac, row).dtype == expected.dtype
    for found in (short(tac, row), tac.posterior(row), short(tac, tac.read(row))):
        assert found.shape == (1, 2)
        close(found, expected, 1e-15 if dtype == "float64" else 1e-6)


CLOSER = [
    {"text": " LO"},
    {"float": 0.1},
    {"text": [[0.2, 0.3, 0.5]]},
    {"text": np.array(["lo"])},
    {"text": float("nan")},
]


@pytest.mark.parametrize("row", CLOSER, ids=str)
def test_rows_that_need_a_closer_look(row):
    tac = compiled(findings(), evidence=NAMES)
    assert short(tac, row) is None
    close(tac.posterior(row), long_way(tac, row))


@pytest.mark.parametrize(
    "row", [{"flag": "true"}, {"number": "1"}, {"text": [0.2, 0.3, 0.5]}, {"txt": "lo"}, {"text": "low"}], ids=str
)
def test_rows_that_are_wrong(row):
    tac = compiled(findings(), evidence=NAMES)
    assert short(tac, row) is None
    with pytest.raises(EvidenceError) as expected:
        long_way(tac, row)
    with pytest.raises(EvidenceError) as raised:
        tac.posterior(row)
    assert str(raised.value) == str(expected.value)


def test_likelihoods_that_were_read_before():
    tac = compiled(findings(), evidence=NAMES)
    for row in ({"text": [[0.2, 0.3, 0.5]], "number": 1}, {"apart": 0.3, "float": 0.2}, {"flag": None}):
        known = tac.read(row)
        close(short(tac, known), long_way(tac, row), 1e-15)
    assert short(tac, tac.read({"text": ["lo", "hi"]})) is None  # two rows


def test_evidence_that_was_read_for_other_states():
    tac, other = compiled(findings(), evidence=NAMES), Network()
    other.add("text", states=["mid", "lo", "hi"], cpt=[0.2, 0.3, 0.5])
    with pytest.raises(EvidenceError, match="must be read again"):
        tac.posterior(tacit.compile(other, "text", ["text"]).read({"text": "lo"}))


def test_impossible_rows_are_warned_of():
    tac = compiled(findings(), evidence=NAMES)
    assert short(tac, {"never": "b"}) is None
    with pytest.warns(ImpossibleEvidenceWarning):
        assert np.isnan(tac.posterior({"never": "b"})).all()


@pytest.mark.parametrize("hard", [["text"], ["text", "number", "flag"], NAMES])
def test_variables_that_are_always_observed(hard):
    tac = compiled(findings(), hard=hard)
    row = {"text": "hi", "number": 2, "flag": True, "float": 0.2, "never": "a", "apart": "false"}
    row = {name: row[name] for name in hard}
    found = short(tac, row)
    assert (found is None) == ("float" in hard)
    close(tac.posterior(row), long_way(tac, row), 1e-15)
    close(short(tac, tac.read(row)), long_way(tac, row), 1e-15)
    for wrong in ({**row, "text": None}, {name: row[name] for name in hard if name != "text"}):
        assert short(tac, wrong) is None
        with pytest.raises(EvidenceError, match="text"):
            tac.posterior(wrong)


def test_given_states_and_interventions():
    net = examples.kidney_stones()
    tac = compiled(net, "recovery", evidence=["treatment"], given={"size": "small"})
    close(short(tac, {"treatment": "A"}), net.posterior("recovery", {"treatment": ["A"], "size": ["small"]}), 1e-15)
    assert short(tac, {"size": "large"}) is None
    done = compiled(net, "recovery", do=["treatment"])
    close(short(done, {"treatment": "A"}), long_way(done, {"treatment": "A"}), 1e-15)
    assert short(done, {}) is None


def test_evidence_on_the_query_itself_is_looked_at_closely():
    tac = compiled(findings(), evidence=["Q", "text"])
    assert short(tac, {"Q": "true"}) is None
    close(tac.posterior({"Q": "true", "text": "lo"}), [[1.0, 0.0]])
    assert short(tac, {"text": "lo"}) is not None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda row: pl.DataFrame(row).to_arrow()])
def test_one_row_of_a_frame(make):
    tac = compiled(findings(), evidence=["text", "number"])
    frame = make({"text": ["hi"], "number": [2]})
    close(short(tac, frame), long_way(tac, {"text": "hi", "number": 2}), 1e-15)
    assert short(tac, make({"text": ["hi"]})) is None  # a column is missing, which is said
    assert short(tac, make({"text": ["hi"], "number": [2], "id": [7]})) is None  # one is not used, likewise
    assert short(tac, make({"text": ["hi", "lo"], "number": [2, 1]})) is None


def test_new_numbers():
    net = findings()
    tac = compiled(net, evidence=["text"])
    first = tac.posterior({"text": "lo"})
    tac.set_parameters(net.with_cpts({"Q": [0.6, 0.4]}))
    tac.engine()
    close(short(tac, {"text": "lo"}), long_way(tac, {"text": "lo"}), 1e-15)
    assert abs(tac.posterior({"text": "lo"}) - first).max() > 1e-3
    engine = tac.engine()
    engine.update({("Q", "table"): np.array([0.3, 0.7])}, {})
    close(tac.posterior({"text": "lo"}), first, 1e-15)


def test_a_network_remembers_the_names_of_a_row(natural_choice):
    net, row = findings(), {"text": "lo", "number": 1}
    expected = net.posterior("Q", row)
    (tac,) = [tac for tac in net._compiled._values.values() if tac.hard]
    tac._engine = compiled(net, hard=["text", "number"]).engine()
    for _ in range(2):
        close(net.posterior("Q", row), expected, 1e-15)
    assert len(net._of_labels) == 1
    close(net.posterior("Q", {"text": "lo", "number": None}), net.posterior("Q", {"text": "lo"}), 1e-15)
    close(
        net.posterior("Q", {"text": "lo", "number": [1, 2]}), net.posterior("Q", {"text": ["lo"] * 2, "number": [1, 2]})
    )
    with pytest.raises(EvidenceError, match="not a state"):
        net.posterior("Q", {"text": "low", "number": 1})
    net.add("more", ["Q"], cpt=[[0.5, 0.5], [0.1, 0.9]])
    assert len(net._of_labels) == 0


@given(st.data())
def test_random_networks(data):
    net = data.draw(networks())
    query = data.draw(st.sampled_from(net.variables))
    others = [name for name in net if name != query]
    row = {n: data.draw(st.sampled_from([None, *net.states(n)])) for n in others if data.draw(st.booleans())}
    hard = [name for name in row if row[name] is not None and data.draw(st.booleans())]
    tac = tacit.compile(net, query, others, hard, engine="native")
    with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
        expected = tac.posterior({name: [label] for name, label in row.items()})
        close(tac.posterior(row), expected, 0.0)  # the same code on the same numbers
        close(tac.posterior(tac.read(row)), expected, 0.0)


LIKELIHOODS = [
    {"text": np.array([[0.2, 0.3, 0.6]]), "number": 1},
    {"text": np.array([[2, 3, 0]], dtype=np.float32)},
    {"apart": 0.3, "text": "hi"},
    {"text": np.array([[1e-300, 2e-300, 0.0]])},
]


@pytest.mark.parametrize("row", LIKELIHOODS, ids=str)
def test_plain_likelihoods(row):
    tac = compiled(findings(), evidence=NAMES)
    two = {name: np.repeat(v, 2, 0) if isinstance(v, np.ndarray) else [v] * 2 for name, v in row.items()}
    found = short(tac, row)
    np.testing.assert_array_equal(found, tac.posterior(two)[:1])  # to the last bit
    close(found, long_way(tac, row), 1e-15)


@pytest.mark.parametrize("values", [[np.nan] * 3, [0.5, np.nan, 0.1], [-0.1, 0.5, 0.6], [0.0] * 3, [1e-310, 0, 0],
                                    [np.inf, 1, 1], [1e308, 1e308, 1.0],
                                    [1e-200, 1e200, 1.0], [1.0, 1e-309, 0.0], [0.5, 0.5]])  # fmt: skip
def test_likelihoods_that_need_a_closer_look(values):
    tac = compiled(findings(), evidence=NAMES)
    assert short(tac, {"text": np.array([values])}) is None
    assert short(tac, {"text": np.array([[0.2, 0.3, 0.5]] * 2)}) is None
    assert short(compiled(findings(), hard=["text"]), {"text": np.array([[1.0, 0.0, 0.0]])}) is None


def test_what_was_read_with_gaps_for_a_query_that_needs_states():
    net = findings()
    known = compiled(net, evidence=["text", "never", "apart"]).read({"text": [None], "never": "a", "apart": [None]})
    for hard in (["text"], ["apart"], ["text", "apart"]):
        tac = compiled(net, evidence=["text", "never", "apart"], hard=hard)
        assert short(tac, known) is None
        with pytest.raises(EvidenceError, match="a state is needed in every row"):
            tac.posterior(known)


def test_states_of_variables_that_are_not_read_are_needed_too():
    net = findings()
    net.add("alone", states=["only"], cpt=[1.0])
    tac = compiled(net, evidence=["text"], hard=["alone"], do=["apart", "never"])
    row = {"alone": "only", "apart": "true", "never": "a"}
    close(short(tac, row), long_way(tac, row), 1e-15)
    for name in row:
        without = {other: label for other, label in row.items() if other != name}
        assert short(tac, without) is None
        with pytest.raises(EvidenceError, match=name):
            tac.posterior(without)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda row: pl.DataFrame(row).to_arrow()])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_numbers_of_frames_may_be_codes(make, value):
    net = Network()
    net.add("A", states=["yes", "no"], cpt=[0.3, 0.7])
    net.add("Q", ["A"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    assert short(compiled(net, evidence=["A"]), make({"A": [value]})) is None


def test_two_columns_of_one_name():
    tac = compiled(findings(), evidence=["text"])
    frame = pd.DataFrame([["lo", "hi"]], columns=["text", "text"])
    assert short(tac, frame) is None
    with pytest.raises(EvidenceError, match="two columns"):
        tac.posterior(frame)


@pytest.mark.parametrize("value", [1 + 0j, np.complex64(1), np.timedelta64(1), [1], {1}, object()])
def test_what_is_no_label(value):
    assert short(compiled(findings(), evidence=NAMES), {"number": value}) is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", [*ROWS, {"never": "b"}], ids=str)
@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_the_probability_of_one_row(row, dtype):
    net = findings()
    net.add("T", ["text"], cpt=tacit.TestingCPT([[0.9, 0.1]] * 3, [[0.2, 0.8]] * 3, [0.4] * 3))
    for query in ("Q", "T"):
        tac = compiled(net, query, evidence=NAMES, dtype=dtype)
        found, expected = tac.one_row().answer(row), tac.with_network(net, engine="numpy").ask(row)
        assert found.mantissa.dtype == expected.mantissa.dtype
        for part in ("posterior", "joint", "log_evidence"):
            close(getattr(found, part), getattr(expected, part), 1e-13 if dtype == "float64" else 1e-6)
            np.testing.assert_array_equal(getattr(tac.ask(row), part), getattr(found, part))


def test_the_probability_of_rows_that_are_rescaled():
    rng = np.random.default_rng(0)
    net = Network()
    net.add("X0", states=3, cpt=rng.dirichlet(np.ones(3)))
    for i in range(1, 300):
        net.add(f"X{i}", [f"X{i - 1}"], 3, rng.dirichlet(np.ones(3), 3))
    tac = compiled(net, "X0", evidence=list(net)[1:])
    row = {name: int(rng.integers(3)) for name in list(net)[1:]}
    found = tac.one_row().answer(row)
    assert found.exponent[0] < -100
    close(found.log_evidence, tac.with_network(net, engine="numpy").log_evidence(row), 1e-10)
