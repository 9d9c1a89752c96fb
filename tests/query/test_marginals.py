"""Posteriors of all variables for many rows, against the definition: rows that repeat, and evidence of all kinds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import semantics as definition
from tacit.evidence import distinct
from tacit.evidence.column import Evidence, take
from tacit.evidence.read import read
from tacit.query import marginals
from tacit.query.query import MAX_COMPANIONS
from tests.helpers import ENGINES, ENGINES_OF_MANY, close, decided, impossible, tries
from tests.strategies import queries

ROWS = 6


@pytest.fixture
def eager(monkeypatch):
    """Rows are compared, and compiled for, however few they are."""
    monkeypatch.setattr(distinct, "MIN_ROWS", 2)
    monkeypatch.setattr(marginals, "WORTH_COMPILING", 0.0)
    monkeypatch.setattr(marginals, "MIN_SPEEDUP", 0.0)


@impossible
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(20)
@given(case=queries(rows=ROWS, certain=True), rng=st.integers(0, 2**32 - 1).map(np.random.default_rng))
def test_marginals_and_information_of_rows_that_repeat(engine, case, rng):
    net, query, columns = case
    rows, picks = decided(net, columns), rng.integers(0, ROWS, 5 * ROWS)
    some = [i for i, row in enumerate(picks) if row in rows]
    read_once = read(columns, [net.variable(name) for name in net])
    repeated = Evidence(len(picks), take(read_once.columns, picks))
    tac = tacit.compile(net, query, list(columns), engine=engine)
    told, drops = tac.marginals(repeated), tac.information(repeated)
    expected = definition.information(net, query, columns)
    for name in net:
        close(told[name][some], definition.posterior(net, name, columns)[picks[some]])
        close(drops[name][some], expected[name][picks[some]])


def insurance_like():
    """A chain with leaves, in which states that are known in every row make programs much smaller."""
    rng, net = np.random.default_rng(3), tacit.Network()
    for i in range(4):
        above = [f"H{i - 1}"] if i else []
        net.add(f"H{i}", above, 4, rng.dirichlet(np.ones(4), size=[4] * len(above)))
        net.add(f"L{i}", [f"H{i}"], 3, rng.dirichlet(np.ones(3), size=4))
    return net


def mixed(net, rows, seed=0):
    """States in every row, gaps, likelihoods, one value for all rows, and variables without evidence."""
    rng = np.random.default_rng(seed)
    draw = {name: rng.integers(0, net.variable(name).card, rows).astype(object) for name in net}
    draw["L1"][rng.random(rows) < 0.3] = None
    soft = rng.random((rows, 3)) * 10.0 ** -rng.integers(0, 200, (rows, 1))
    return {"L0": draw["L0"], "H2": draw["H2"], "L1": draw["L1"], "L2": soft, "L3": 1}


@pytest.mark.parametrize("engine", ["numpy", "tape", "native"])
@pytest.mark.usefixtures("eager")
def test_evidence_of_all_kinds(engine):
    net = insurance_like()
    rows = mixed(net, 40)
    tac = tacit.compile(net, "H0", list(rows), engine=engine)
    found = tac.marginals(rows)
    for name in net:
        close(found[name], definition.posterior(net, name, rows))
    close(found["H2"], np.eye(4)[rows["H2"].astype(int)], 0.0)  # what is observed in all rows is certain
    labelled = tac.marginals(rows, labels=True)
    assert list(labelled) == list(net)
    for name in net:
        np.testing.assert_array_equal(np.asarray(labelled[name]), found[name])


def test_states_of_many_rows_index_tables(monkeypatch):
    """Where that is much less work, and where no test is decided, which a tie might change."""
    net = insurance_like()
    names = [name for name in net if name.startswith("H") and name != "H0"]
    rows = {name: np.zeros(100, dtype=np.int64) for name in names}
    tac = tacit.compile(net, "H0", names)
    few = tac.marginals(rows)
    (general,) = tac._companions.values()
    monkeypatch.setattr(marginals, "WORTH_COMPILING", 1.0)
    many = tac.marginals(rows)
    special = list(tac._companions.values())[-1]
    assert special.hard == tuple(names)
    assert 2 * special.program.cost.multiply_adds < general.program.cost.multiply_adds
    for name in net:
        close(many[name], few[name])
    net.add("T", ["H0"], cpt=tacit.TestingCPT(*np.random.default_rng(0).dirichlet([1, 1], (2, 4)), np.full(4, 0.2)))
    tested = tacit.compile(net, "H0", names)
    tested.marginals(rows)
    assert all(not companion.hard for companion in tested._companions.values())


def test_programs_for_kinds_of_evidence_are_kept_in_bounds(monkeypatch):
    monkeypatch.setattr(marginals, "WORTH_COMPILING", 0.0)
    monkeypatch.setattr(marginals, "MIN_SPEEDUP", 0.0)
    net = insurance_like()
    tac = tacit.compile(net, None, list(net), effort="low")
    for kind in range(1, MAX_COMPANIONS + 3):
        tac.marginals({name: 0 for i, name in enumerate(net) if kind >> i & 1})
    assert len(tac._companions) == MAX_COMPANIONS


def test_impossible_rows_are_counted_one_by_one():
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5]])
    rows = {"B": np.array(["true", "true", "false"] * 100, dtype=object)}
    tac = tacit.compile(net, "A", ["B"])
    for ask, what in ((tac.marginals, "posteriors are"), (tac.information, "information is")):
        with pytest.warns(tacit.ImpossibleEvidenceWarning, match=f"of 100 of 300 rows .* their {what} NaN"):
            found = ask(rows)
        assert np.isnan(found["A"][2::3]).all()
        assert np.isnan(found["B"][2::3]).all()
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="100 of 300"):
        found = tac.sensitivity(rows)
    assert np.isnan(found.slopes["A", "table"][2::3]).all()
    assert found.posterior.shape == (300, 2)


@pytest.mark.parametrize("engine", ["auto", "numpy", "tape", "native"])
@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row(engine, rows):
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", ["A", "C"], engine=engine)
    evidence = {"A": np.full(rows, 0.8), "C": np.full(rows, "lo", dtype=object)}
    for name, found in tac.marginals(evidence).items():
        close(found, definition.posterior(net, name, {"A": 0.8, "C": "lo"})[:rows])
    assert {drop.shape for drop in tac.information(evidence).values()} == {(rows,)}
    assert tac.sensitivity(evidence).slopes["A", "table"].shape == (rows, 2, 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_marginals_have_the_type_of_the_query(dtype):
    tac = tacit.compile(tacit.examples.abc(), "B", ["A"], ["C"], dtype=dtype)
    found = tac.marginals({"A": [0.8, 0.1], "C": ["lo", "hi"]})
    assert {own.dtype.name for own in found.values()} == {dtype}


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_marginals_far_smaller_than_the_evidence_is_improbable(engine):
    """P(e) is a float with all its digits, P(e, A=true) is not, and the posterior of A is one again."""
    net = tacit.Network()
    net.add("A", cpt=[1e-174, 1 - 1e-174])
    net.add("B", cpt=[3e-148, 1 - 3e-148])
    tac = tacit.compile(net, "A", ["A", "B"], engine=engine)
    np.testing.assert_allclose(tac.marginals({"B": "true"})["A"][0], [1e-174, 1.0], rtol=1e-12)
    np.testing.assert_allclose(tac.marginals({"A": [[1.0, 0.5]], "B": "true"})["A"][0], [2e-174, 1.0], rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_rest_of_numbers_whose_density_underflows(engine):
    """The evidence rules out the state that explains x, and what remains says what y is."""
    net = tacit.Network()
    net.add("Fault", states=3, cpt=[0.2, 0.3, 0.5])
    net.add(("x", "y"), ["Fault"], cpt=tacit.Gaussian(mean=[[0, 0], [60, 1], [61, 5]], cov=np.eye(2)))
    net.add("Alarm", ["Fault"], cpt=[[0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    tac = tacit.compile(net, "Fault", ["x, y", "Alarm"], engine=engine)
    found = tac.marginals({"x": [0.5, 0.5], "Alarm": ["true", "false"]})
    np.testing.assert_allclose(found["y"].mean, [1, 0], atol=1e-12)
