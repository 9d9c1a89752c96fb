"""Derivatives by the entries of tables, and what an observation would tell: against the definition."""

import numpy as np
import pytest
from bench.networks import network
from hypothesis import assume, given

import tacit
from tacit import CPT, TestingCPT
from tacit import semantics as definition
from tacit.base import machine
from tacit.query.marginals import MAX_SWEEPS, information, mutual_information
from tacit.query.sensitivity import sensitivity
from tests.helpers import ENGINES, always_hard, close, decided, impossible, one_row, tries
from tests.strategies import queries

pytestmark = impossible
STEP = 1e-6


@pytest.mark.parametrize("engine", ENGINES)
@tries(20)
@given(case=queries(rows=2))
def test_information_agrees_with_the_definition(engine, case):
    net, query, columns = case
    hard = always_hard(net, columns)
    tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
    found, rows = tac.information(columns), decided(net, columns)
    expected = definition.information(net, query, columns)
    for name in net:
        close(found[name][rows], expected[name][rows], 1e-12)


def test_information_about_several_variables():
    net = tacit.examples.abc()
    found = tacit.compile(net, ["A", "B"], ["C"]).information({"C": "lo"})
    both = definition.posterior(net, ["A", "B"], {"C": "lo"})[0]
    of_a = -(both.sum(axis=1) * np.log(both.sum(axis=1))).sum()
    of_b = -(both.sum(axis=0) * np.log(both.sum(axis=0))).sum()
    close([found["A"][0], found["B"][0]], [of_a, of_b])
    assert np.isnan(found["C"]).all()


def test_independent_variables_tell_nothing():
    both = np.full((2, 3, 1), 1 / 6)
    assert mutual_information(both).tolist() == [0.0]


class TooLateError(Exception):
    """A deadline has passed."""


@pytest.mark.parametrize("ask", [information, sensitivity])
def test_work_can_be_ended_between_two_sweeps(ask):
    tac = tacit.compile(tacit.examples.abc(), ["A", "B"], ["C"])
    calls = []

    def pause():
        calls.append(1)
        if len(calls) == 3:  # before the third of four states, or sooner
            raise TooLateError

    with pytest.raises(TooLateError):
        ask(tac, {"C": "lo"}, pause)


@pytest.mark.parametrize("what", ["information", "sensitivity"])
def test_a_sweep_for_each_of_very_many_joint_states_is_refused(what):
    net = tacit.Network()
    names = [f"X{i}" for i in range(11)]
    for name in names:
        net.add(name, cpt=[0.5, 0.5])
    assert getattr(tacit.compile(net, names[:2]), what)()
    with pytest.raises(tacit.TooLargeError, match=f"{what} .* 11 variables have 2,048 .*limit {MAX_SWEEPS:,}.*fewer"):
        getattr(tacit.compile(net, names), what)()


def test_derivatives_that_do_not_fit_into_memory_are_refused(monkeypatch):
    tac = tacit.compile(tacit.examples.abc(), "B", ["A"])
    monkeypatch.setattr(machine, "memory", lambda: 2.0**18)
    assert tac.sensitivity({"A": [0.5]}).posterior.shape == (1, 2)
    with pytest.raises(
        tacit.TooLargeError, match=r"of 1,000 rows by 16 table entries.* 0\.000477 GiB.* 0\.00024[34]; .*fewer rows"
    ):
        tac.sensitivity({"A": np.full(1000, 0.5)})


def changed(net, node, part, place, step):
    """The network with one entry changed, and the rest of its row in proportion."""
    cpt = net.cpt(node)
    table = np.array(cpt.parts()[part])
    if part != "thresholds":
        row = table[place[:-1]]
        others = np.arange(len(row)) != place[-1]
        row[others] *= (1 - row[place[-1]] - step) / (1 - row[place[-1]])
    table[place] += step
    if isinstance(cpt, CPT):
        return net.with_cpts({node: CPT(table)})
    return net.with_cpts({node: cpt.with_parts({part: table})})


@tries(40)
@given(case=queries(rows=1, max_nodes=4, factored=False))
def test_derivatives_are_those_of_small_changes(case):
    net, query, columns = case
    rows = decided(net, columns, 1e-4)
    assume(rows)
    columns = one_row(columns, rows[0])
    found = tacit.compile(net, query, list(columns)).sensitivity(columns)
    assume(definition.joint(net, query, columns).sum() > 1e-3)
    for (node, part), derivative in found.derivatives.items():
        table = net.cpt(node).parts()[part]
        assert derivative.shape == (1, net.variable(query).card, *table.shape)
        for place in np.ndindex(table.shape):
            value, state = table[place], place[: len(net.parents(node))]
            if part == "thresholds" and (np.diff(net.cpt(node).limits[state]) < 2 * STEP).any():
                continue  # it could not change alone
            if value == 1 and part != "thresholds":
                assert np.isnan(derivative[(0, slice(None), *place)]).all()
                continue
            if value > 1 - 1e-3 and part != "thresholds":
                continue  # the rest of the row would change too fast for a difference
            # one-sided near 0, with an error of second order
            steps = (-STEP, STEP) if STEP <= value <= 1 - STEP else (0.0, STEP) if value < STEP else (-STEP, 0.0)
            low, high = (definition.posterior(changed(net, node, part, place, s), query, columns)[0] for s in steps)
            close(derivative[(0, slice(None), *place)], (high - low) / (steps[1] - steps[0]), 2e-3)


def alarm_like():
    rng = np.random.default_rng(0)
    net = tacit.Network()
    net.add("H", states=3, cpt=rng.dirichlet([1, 1, 1]))
    for i in range(4):
        net.add(f"F{i}", ["H"], cpt=rng.dirichlet([1, 1], size=3))
    net.add(
        "S", ["F0", "F1"], cpt=tacit.TestingCPT(*rng.dirichlet([1, 1], size=(2, 2, 2)), np.full((2, 2), 0.3), gamma=8)
    )
    return net


def test_derivatives_to_six_digits():
    net, row = alarm_like(), {"F2": "true", "S": "false", "F0": 0.7}
    found = tacit.compile(net, "H", list(row)).sensitivity(row)
    for (node, part), derivative in found.derivatives.items():
        for place in np.ndindex(net.cpt(node).parts()[part].shape):
            low, high = (
                definition.posterior(changed(net, node, part, place, step), "H", row)[0] for step in (-1e-5, 1e-5)
            )
            close(derivative[(0, slice(None), *place)], (high - low) / 2e-5, 1e-6)


def test_derivatives_on_a_real_network():
    """A hundred entries of alarm, against the compiled posterior of changed networks."""
    net = network("alarm")
    row = {"CVP": "HIGH", "HRBP": "LOW", "PRESS": "HIGH", "HISTORY": 0.7}
    tac = tacit.compile(net, "LVFAILURE", list(row))
    found, rng = tac.sensitivity(row).derivatives, np.random.default_rng(0)
    for _ in range(100):
        node = str(rng.choice(net.variables))
        table = net.table(node)
        place = tuple(int(rng.integers(n)) for n in table.shape)
        if not 1e-4 < table[place] < 1 - 1e-2:
            continue
        low, high = (
            tac.with_network(changed(net, node, "table", place, step)).posterior(row)[0] for step in (-1e-5, 1e-5)
        )
        close(found[node, "table"][(0, slice(None), *place)], (high - low) / 2e-5, 1e-6)


def test_derivatives_of_rules_are_those_of_their_parts():
    """A noisy-or, and a function with noise, against small changes of their numbers."""
    net = tacit.Network()
    for name in "XY":
        net.add(name, cpt=[0.3, 0.7])
    net.add("N", ["X", "Y"], cpt=tacit.NoisyOr({"X": 0.8, "Y": 0.4}, leak=0.1))
    net.add("F", ["N", "Y"], cpt=CPT.from_function(lambda n, y: [0.9, 0.1] if n == y else [0.2, 0.8]))
    row = {"F": "true"}
    found = tacit.compile(net, "X", ["F"]).sensitivity(row)

    def posterior(y):
        return definition.posterior(net.with_cpts({"N": tacit.NoisyOr({"X": 0.8, "Y": y}, leak=0.1)}), "X", row)[0]

    slope = (posterior(0.4 + 1e-6) - posterior(0.4 - 1e-6)) / 2e-6
    close(found.derivatives["N", "cause 1"][0, :, 0, 1, 0], slope, 1e-6)  # Y true, no effect yet, effect now

    def noisy(p):
        rule = CPT.from_function(lambda n, y: [p, 1 - p] if n == y else [0.2, 0.8])
        return definition.posterior(net.with_cpts({"F": rule}), "X", row)[0]

    place = int(np.argmax(net.cpt("F").rows[:, 0]))
    close(found.derivatives["F", "rows"][0, :, place, 0], (noisy(0.9 + 1e-6) - noisy(0.9 - 1e-6)) / 2e-6, 1e-6)
    assert "P(N='true' by Y='true')" in {entry.name for entry in found.entries()}


@pytest.mark.parametrize("e", [1e-3, 1e-9, 1e-12, 2.0**-52])
def test_entries_near_1(e):
    net = tacit.Network()
    net.add("A", cpt=[1 - e, e])
    net.add("B", ["A"], cpt=[[0.3, 0.7], [0.9, 0.1]])
    found = tacit.compile(net, "B").sensitivity().derivatives["A", "table"]
    close(found[0, 0], [-0.6, 0.6], 1e-12)


def test_small_derivatives_are_not_taken_for_rounding():
    net = tacit.Network()
    net.add("A", cpt=[1e-15, 1 - 1e-15])
    net.add("B", ["A"], cpt=[[0.5, 0.5], [0.25, 0.75]])
    found = tacit.compile(net, "A", ["B"]).sensitivity({"B": "true"}).derivatives["B", "table"]
    np.testing.assert_allclose(found[0, 0, 0, 0], 4e-15, rtol=1e-9)


def test_where_sigmoids_bend_nothing_is_said_of_decisions():
    net = tacit.Network()
    net.add("A", cpt=[0.2, 0.8])
    net.add("B", ["A"], cpt=TestingCPT([[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.3, 0.7]], [0.5, 0.95], gamma=12))
    found = tacit.compile(net, "B").sensitivity()
    assert all(np.isnan(entry.flips_at) for entry in found.entries())
    certain = tacit.compile(net.with_cpts({"A": [1.0, 0.0]}), "B").sensitivity()
    assert np.isnan(certain.changed(0, (0,), ("A", "table"), (0,), 0.5))


def test_rows_are_answered_one_by_one():
    net = alarm_like()
    rows = {"F2": ["true", "false", None], "F3": ["false", None, "true"], "S": [0.3, 0.9, 0.5]}
    tac = tacit.compile(net, "H", list(rows))
    together = tac.sensitivity(rows)
    for i in range(3):
        alone = tac.sensitivity({name: column[i : i + 1] for name, column in rows.items()})
        for key, derivative in alone.derivatives.items():
            close(together.derivatives[key][i : i + 1], derivative)
    close(together.posterior, tac.posterior(rows))


def test_tables_without_a_say_have_derivatives_of_0():
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.25, 0.75]])
    found = tacit.compile(net, "A").sensitivity()
    np.testing.assert_array_equal(found.derivatives["B", "table"][0, 0], [[np.nan, 0], [0, 0]])


def test_entries_that_are_0_have_derivatives():
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    for hard in ([], ["B"]):
        found = tacit.compile(net, "A", ["B"], hard).sensitivity({"B": "true"}).derivatives
        # P(A=2 | B=true) = t P(B=true | A=2) / ..., which is 0 whatever t is
        close(found["A", "table"][0, 2], [0, 0, 0])
        close(found["B", "table"][0, 2, 2], [0, np.nan])
        expected = definition.posterior(net.with_cpts({"A": [0.5 - 5e-8, 0.5 - 5e-8, 1e-7]}), "A", {"B": "false"})
        close(
            tacit.compile(net, "A", ["B"], hard).sensitivity({"B": "false"}).derivatives["A", "table"][0, 2, 2],
            expected[0, 2] / 1e-7,
            1e-5,
        )


def test_evidence_far_below_the_smallest_float():
    net = tacit.Network()
    net.add("H", cpt=[0.5, 0.5])
    for i in range(400):
        net.add(f"E{i}", ["H"], cpt=[[0.0010, 0.9990], [0.00100001, 0.99899999]])
    row = {f"E{i}": "true" for i in range(400)}
    found = tacit.compile(net, "H", list(row)).sensitivity(row)
    p = found.posterior[0, 0]
    close(p, 1 / (1 + (0.00100001 / 0.001) ** 400))
    close(found.derivatives["H", "table"][0, 0, 0], p * (1 - p) / 0.25, 1e-9)


def test_an_entry_that_a_decision_hangs_on():
    net = tacit.Network()
    net.add("D", states=["ill", "well"], cpt=[0.01, 0.99])
    net.add("T", ["D"], states=["pos", "neg"], cpt=[[0.95, 0.05], [0.05, 0.95]])
    found = tacit.compile(net, "D", ["T"]).sensitivity({"T": "pos"})
    prior = next(e for e in found.entries(state="ill") if e.name == "P(D='ill')")
    assert prior.flips_at == pytest.approx(0.05)  # 0.95 t = 0.05 (1 - t)
    at = found.changed(0, (0,), ("D", "table"), (0,), np.array([0.05, 0.01]))
    close(at, [0.5, found.posterior[0, 0]])
    entries = found.entries(state="ill")
    assert sorted((abs(e.derivative) for e in entries), reverse=True) == [abs(e.derivative) for e in entries]
    assert found.to_polars(state="ill")["derivative"].to_list() == found.to_pandas(state="ill")["derivative"].tolist()
    assert found.to_frame(state="ill")["derivative"].tolist() == [e.derivative for e in entries]
    assert "decision changes at" in str(found)
    assert repr(found) == "Sensitivity(of D to 6 entries, 1 row)"
    with pytest.raises(tacit.TacitError, match="not a state of 'D'"):
        found.entries(state="sick")
    with pytest.raises(tacit.TacitError, match="row 1 does not exist"):
        found.entries(row=1)


def test_a_change_that_turns_a_test_is_asked_again():
    net = tacit.Network()
    net.add("flu", states=["yes", "no"], cpt=[0.3, 0.7])
    net.add("treat", ["flu"], cpt=TestingCPT([[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.1, 0.9]], [0.4, 0.8]))
    found = tacit.compile(net, "treat").sensitivity()
    assert found.selects
    assert "a change that turns one" in str(found)
    for value in (0.2, 0.4, 0.55):
        other = net.with_cpts({"flu": [value, 1 - value]})
        close(found.changed(0, (0,), ("flu", "table"), (0,), value), definition.posterior(other, "treat")[0, 0])


def test_rounding_is_no_sensitivity():
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.3, 0.3, 0.4])
    net.add("B", ["A"], cpt=[[0.1, 0.9], [0.7, 0.3], [0.2, 0.8]])
    found = tacit.compile(net, "B", ["A"]).sensitivity({"A": 1})
    assert not found.derivatives["A", "table"].any()
    assert all(np.isnan(e.flips_at) for e in found.entries() if e.node == "A")
    assert "P(A" not in str(found)


def test_impossible_evidence_has_no_derivatives():
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5]])
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2"):
        found = tacit.compile(net, "A", ["B"]).sensitivity({"B": ["true", "false"]})
    assert np.isnan(found.derivatives["B", "table"][1]).all()
    with pytest.warns(tacit.ImpossibleEvidenceWarning):
        assert str(tacit.compile(net, "A", ["B"]).sensitivity({"B": "false"})).startswith("the evidence has prob")
    assert np.isfinite(found.posterior[0]).all()


@pytest.mark.parametrize("likelihoods", [[1e-300, 1.0], [5e-324, 1.0], [0.0, 1.0], [1.0, 1e-308]])
@pytest.mark.parametrize("tiny", [1e-300, 1e-5, 0.0])
def test_extreme_evidence_without_a_warning(likelihoods, tiny):
    """Entries far from where a decision would change, and derivatives near the limits of floats."""
    net = tacit.Network()
    net.add("A", cpt=[tiny, 1 - tiny])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [tiny, 1 - tiny]])
    net.add("C", ["B"], cpt=[[1e-10, 1 - 1e-10], [1.0, 0.0]])
    for query in "ABC":
        found = tacit.compile(net, query, ["B", "C"]).sensitivity({"B": [likelihoods], "C": [likelihoods[::-1]]})
        if not np.isnan(found.posterior).any():
            assert all(0 <= entry.flips_at <= 1 or np.isnan(entry.flips_at) for entry in found.entries())
            str(found)


def test_derivatives_beyond_the_range_of_floats():
    """An entry of 0 that would make the evidence 10^600 times as probable: infinite, with the right sign."""
    net = tacit.Network()
    net.add("H", states=3, cpt=[0.5, 0.5, 0.0])
    for i in range(200):
        net.add(f"E{i}", ["H"], cpt=[[0.001, 0.999], [0.001, 0.999], [0.9999, 0.0001]])
    row = {f"E{i}": "true" for i in range(200)}
    found = tacit.compile(net, "H", list(row)).sensitivity(row)
    close(found.derivatives["H", "table"][0, :, 2], [-np.inf, -np.inf, np.inf])
    close(found.derivatives["H", "table"][0, :, 0], [1.0, -1.0, 0.0])  # while the rest of the row makes room
    close(found.derivatives["E0", "table"][0, :, 0, 0], [250.0, -250.0, 0.0], 1e-9)
    assert found.entries(state=2)[0].flips_at == 0.0


def test_all_tables_are_computed_for_every_row_and_planned_so():
    """A plan that is cheap while tables are multiplied once would take eight times as long."""
    net = network("insurance")
    parents = {parent for name in net for parent in net.parents(name)}
    tac = tacit.compile(net, "Age", [name for name in net if name not in parents])
    tac.sensitivity()
    (companion,) = tac._companions.values()
    cost = companion.program.cost
    assert cost.multiply_adds + cost.static_multiply_adds < 40_000
