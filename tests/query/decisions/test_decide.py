"""The best action, and what observing is worth: against their definitions, on every engine, in every way to ask."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import (
    Ensemble,
    EvidenceError,
    ImpossibleEvidenceWarning,
    Network,
    NetworkError,
    TacitError,
    UnusedColumnWarning,
    semantics,
)
from tests.helpers import ENGINES_OF_MANY, close, impossible, one_row, tries
from tests.query.decisions.cases import decisions, width, worth
from tests.query.test_ensembles import redrawn
from tests.strategies import tie_margin

MARGIN = 1e-9  # a posterior this near to its threshold may fall on either side of it by rounding


def away_from_ties(net, decision, columns, rows=3):
    """Whether no test is decided by rounding, whatever the action."""
    chosen = [net.do({decision: state}) for state in net.states(decision)]
    parts = [one_row(columns, i) for i in range(rows)]
    return all(tie_margin(own, row) > MARGIN for own in chosen for row in parts)


def treatment(table=((-20, -100), (0, 0))):
    net = Network("treatment")
    net.add("Disease", states=["yes", "no"], cpt=[0.1, 0.9])
    net.add("Test", ["Disease"], states=["pos", "neg"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("Treat", ["Test"], states=["yes", "no"], cpt=[[0.8, 0.2], [0.1, 0.9]])
    net.add("Cured", ["Disease", "Treat"], cpt=[[[0.9, 0.1], [0.1, 0.9]], [[1, 0], [1, 0]]])
    net.value("Health", ["Disease", "Treat"], table)
    net.value("Price", ["Treat"], [-10, 0])
    return net


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@given(case=decisions(max_nodes=4))
@tries(40)
def test_expected_values_are_those_of_the_definition(engine, case):
    net, decision, columns = case
    assume(away_from_ties(net, decision, columns))
    tac = tacit.compile(net, decide=decision, evidence=list(columns), engine=engine)
    found, expected = tac.decide(columns), semantics.expected_values(net, decision, columns)
    expected = np.broadcast_to(expected, found.expected.shape)  # without any column, there is one row
    close(found.expected / width(net), expected / width(net))
    for row, values in enumerate(expected):
        if np.isnan(values).any():
            assert found.action[row] is None
            continue
        best = net.states(decision).index(found.action[row])
        first, second = np.sort(values)[::-1][:2]
        close(
            [values[best] / width(net), found.margin[row] / width(net)],
            [first / width(net), (first - second) / width(net)],
        )


@impossible
@pytest.mark.parametrize("engine", ["numpy", "tape", pytest.param("native", marks=pytest.mark.slow)])
@given(case=decisions(max_nodes=4))
@tries(40)
def test_worth_is_that_of_the_definition(engine, case):
    net, decision, columns = case
    assume(columns)
    assume(away_from_ties(net, decision, columns))
    tac = tacit.compile(net, decide=decision, evidence=list(columns), engine=engine)
    found, now = tac.worth(columns), tac.decide(columns).expected
    for name in columns:
        for i in range(len(now)):
            row = one_row(columns, i)
            seen = tac.read(row).columns.get(name)
            if np.isnan(now[i, 0]) or (seen is not None and seen.observed.all()):
                assert np.isnan(found[name][i])
            else:
                close(found[name][i] / width(net), worth(net, decision, name, row) / width(net), 1e-11)


@impossible
@given(case=decisions(max_nodes=3, continuous=True, testing=False))
@tries(30)
def test_numbers_may_be_observed_before_a_decision(case):
    net, decision, columns = case
    tac = tacit.compile(net, decide=decision, evidence=list(columns))
    expected = semantics.expected_values(net, decision, columns)
    close(tac.decide(columns).expected / width(net), expected / width(net), 1e-11)
    assert set(tac.worth(columns)) == {name for name in columns if name in net}.difference(net.continuous)


@impossible
@given(case=decisions(max_nodes=3), seed=st.integers(0, 2**32 - 1))
@tries(20)
def test_an_ensemble_decides_by_the_mean_of_its_networks(case, seed):
    net, decision, columns = case
    net = net.with_cpts({decision: np.full_like(net.table(decision), 1 / len(net.states(decision)))})
    rng = np.random.default_rng(seed)
    several = [redrawn(net, rng) for _ in range(3)]
    assume(all(away_from_ties(own, decision, columns) for own in several))
    tac = tacit.compile(net, decide=decision, evidence=list(columns))
    found = tac.decide(columns, tables=Ensemble.of(several))
    each = np.stack(
        [np.broadcast_to(semantics.expected_values(own, decision, columns), found.expected.shape) for own in several]
    )
    close(found.expected / width(net), each.mean(axis=0) / width(net))
    for row in np.flatnonzero(~np.isnan(found.expected[:, 0])):
        apart = np.diff(np.sort(each[:, row]), axis=-1)[:, -1].min() / width(net)
        if found.margin[row] / width(net) > MARGIN and apart > MARGIN:
            chosen = net.states(decision).index(found.action[row])
            close(found.doubt[row], (each[:, row].argmax(axis=-1) != chosen).mean())


def test_a_decision_prints_and_converts():
    pandas = pytest.importorskip("pandas")
    tac = tacit.compile(treatment(), decide="Treat", evidence=["Test"])
    frame = pandas.DataFrame({"Test": ["pos", "neg"]}, index=["Ann", "Bob"])
    decision = tac.decide(frame)
    assert decision.to_pandas().round(3).to_dict("index") == {
        "Ann": {"Treat": "yes", "Treat.yes": -16.667, "Treat.no": -33.333, "margin": 16.667},
        "Bob": {"Treat": "no", "Treat.yes": -10.274, "Treat.no": -1.37, "margin": 8.904},
    }
    assert (
        decision.to_polars().columns == decision.to_arrow().column_names == ["Treat", "Treat.yes", "Treat.no", "margin"]
    )
    assert "<td style='text-align:left'>Ann</td>" in decision._repr_html_()
    assert repr(tac.decide({"Test": ["pos"] * 30})).splitlines()[-1] == "[30 rows]"
    assert repr(tac.decide({"Test": []})) == "no rows of Treat"
    with pytest.raises(TacitError, match="doubt needs networks to compare"):
        _ = decision.doubt
    many = tac.worth({"Test": ["pos", None]}, costs={"Test": 1.5})
    assert many.to_pandas().round(3).to_dict("list") == {"Test": [pytest.approx(np.nan, nan_ok=True), 3.0]}
    assert many.to_polars().columns == many.to_arrow().column_names == ["Test"]
    assert tac.worth({}).to_pandas().to_dict("list") == {"variable": ["Test"], "worth": [pytest.approx(4.5)]}
    assert repr(tac.worth({"Test": "pos"})) == "{}"
    assert "4.5" in tac.worth({})._repr_html_()


def test_what_is_impossible_has_no_action():
    net = treatment()
    net.add("Never", cpt=[1, 0])
    net.value("Odd", ["Never", "Treat"], [[0, 0], [1, 2]])
    tac = tacit.compile(net, decide="Treat", evidence=["Never", "Test"])
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 2 rows has probability 0; their action is None"):
        decision = tac.decide({"Never": ["true", "false"], "Test": ["pos", "pos"]})
    assert decision.action.tolist() == ["yes", None]
    with pytest.warns(ImpossibleEvidenceWarning, match="1 of 2 rows has probability 0; what observing more is worth"):
        told = tac.worth({"Never": ["true", "false"]})
    assert np.isnan(told["Test"]).tolist() == [False, True]


def test_a_decision_takes_other_numbers_and_other_values():
    tac = tacit.compile(treatment(), decide="Treat", evidence=["Test"], hard=[])
    other = treatment(((-20, 0), (0, 7))).with_cpts({"Disease": [0.5, 0.5]})
    tac.set_parameters(other)
    close(tac.decide({"Test": "pos"}).expected, semantics.expected_values(other, "Treat", {"Test": "pos"}), 1e-12)
    assert tac.network == other
    again = pickle.loads(pickle.dumps(tac))
    assert again.decide({"Test": "pos"}).action.tolist() == ["no"]
    other.value("New", ["Treat"], [0, 1])
    with pytest.raises(NetworkError, match="value nodes have other names or parents"):
        tac.set_parameters(other)


def test_programs_are_shared_where_no_test_is_below_the_decision():
    net = treatment()
    assert len(tacit.compile(net, decide="Treat")._compiled) == 1
    tests = tacit.TestingCPT(net.table("Cured"), net.table("Cured"), np.full((2, 2), 0.5))
    tested = net.with_cpts({"Cured": tests})
    assert len(tacit.compile(tested, decide="Treat")._compiled) == 2


def test_rows_may_bring_tables_along():
    tac = tacit.compile(treatment(), decide="Treat", evidence=["Test"], per_row=["Disease"])
    tables = np.array([[0.1, 0.9], [0.6, 0.4]])
    rows = {"Test": ["pos", "neg"], "Disease.table": tables}
    for i, test in enumerate(rows["Test"]):
        own = treatment().with_cpts({"Disease": tables[i]})
        close(tac.decide(rows).expected[i], semantics.expected_values(own, "Treat", {"Test": test})[0])
        told = tacit.compile(own, decide="Treat", evidence=["Test"]).worth()["Test"][0]
        close(tac.worth({"Disease.table": tables})["Test"][i], told)


def test_a_frame_may_hold_what_was_decided():
    pandas = pytest.importorskip("pandas")
    tac = tacit.compile(treatment(), decide="Treat", evidence=["Test"])
    with pytest.warns(UnusedColumnWarning, match="Treat"):
        assert tac.decide(pandas.DataFrame({"Test": ["pos"], "Treat": ["no"]})).action.tolist() == ["yes"]
    past = pandas.DataFrame({"Test": ["pos"], "Cured": ["true"]})
    for ask in (tac.decide, tac.worth):
        with pytest.raises(EvidenceError, match=r"'Cured' is below the decision 'Treat', and .* made; leave it out"):
            ask(past)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evidence": ["Treat"]}, "'Treat' is what is to be decided; leave it out"),
        ({"evidence": ["Cured"]}, "'Cured' is below the decision 'Treat', and so not known yet"),
        ({"given": {"Cured": "true"}}, "'Cured' is below the decision"),
        ({"do": ["Cured"]}, "'Cured' is below the decision"),
        ({"evidence": "AB"}, "evidence must be a sequence of names"),
        ({"hard": {"Test": "pos"}}, "hard takes names, not states"),
        ({"hard": ["Health"]}, "'Health' is not a variable of the network"),
        ({"per_row": ["Treat"]}, "'Treat' is what is to be decided, so that its table does not count"),
        ({"query": "Test"}, "query= and decide= are two questions"),
        ({"decide": "Treet"}, "did you mean 'Treat'"),
        ({"decide": ["Treat"]}, "expected the name of one variable; where several things are decided"),
        ({"decide": "Cured", "evidence": ["Test"]}, "no value node has 'Cured', or what is below it"),
    ],
)
def test_what_cannot_be_decided_is_refused(settings, message):
    with pytest.raises(TacitError, match=message):
        tacit.compile(treatment(), **{"decide": "Treat", **settings})


def test_networks_without_a_choice_are_refused():
    net = Network()
    net.add("A", states=["only"])
    with pytest.raises(TacitError, match="has no states to choose from"):
        tacit.compile(net, decide="A")
    net.add("B", cpt=[0.5, 0.5])
    with pytest.raises(NetworkError, match=r"no value node, .* add one: net.value"):
        tacit.compile(net, decide="B")
    graph = tacit.FactorGraph()
    with pytest.raises(TacitError, match="decide= needs a Network, got a FactorGraph"):
        tacit.compile(graph, decide="B")


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"Tset": 1}, "costs names 'Tset', .* did you mean 'Test'"),
        ({"Disease": 1}, "costs names 'Disease', which is not a variable that could be observed"),
        ({"Test": "1"}, r"costs\['Test'\] is '1', expected a finite number"),
        ({"Test": float("nan")}, "expected a finite number"),
        ([1], "expected a mapping from variables to numbers"),
    ],
)
def test_costs_are_checked(costs, message):
    with pytest.raises(TacitError, match=message):
        tacit.compile(treatment(), decide="Treat", evidence=["Test"]).worth(costs=costs)


def test_what_a_number_costs_is_not_asked_for():
    net = treatment()
    net.add("Heat", ["Disease"], cpt=tacit.Gaussian(mean=[90, 60], sd=[8, 4]))
    tac = tacit.compile(net, decide="Treat", evidence=["Test", "Heat"])
    with pytest.raises(TacitError, match=r"names 'Heat', which is continuous, .* is not computed; .*bins="):
        tac.worth(costs={"Heat": 1})
    with pytest.raises(TacitError, match=r"expected some of Test; did you mean 'Heat'\?"):
        tac.worth(costs={"Heet": 1})


def test_only_ensembles_are_tables():
    with pytest.raises(TacitError, match="expected an Ensemble"):
        tacit.compile(treatment(), decide="Treat").decide(tables=[treatment()])
    with pytest.raises(NetworkError, match="other value nodes"):
        Ensemble.of([treatment(), treatment(((1, 2), (3, 4)))])
    other = Network()
    other.add("Treat", states=["yes", "no", "later"], cpt=[0.2, 0.3, 0.5])
    with pytest.raises(NetworkError, match="'Treat' has the states 'yes', 'no', 'later', and not 'yes', 'no', in the"):
        tacit.compile(treatment(), decide="Treat").decide(tables=Ensemble.of([other]))
    with pytest.raises(NetworkError, match="have no variable 'Treat', which the decision is about"):
        tacit.compile(treatment(), decide="Treat").decide(tables=Ensemble.of([tacit.examples.abc()]))
