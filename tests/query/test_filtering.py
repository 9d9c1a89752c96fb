"""Filtering: every step of a variable, from what was known by then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, NetworkError, TacitError
from tacit import semantics as definition
from tests.helpers import ENGINES_OF_MANY, always_hard, close, decided, impossible, tries
from tests.model.test_unrolling import weather
from tests.strategies import evidence, templates


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@impossible
@tries(40)
@given(template=templates(), data=st.data())
def test_steps_know_what_the_definition_says(engine, template, data):
    net = tacit.unroll(template, 3)
    columns = data.draw(evidence(net, rows=2))
    rows = decided(net, columns)
    hard = always_hard(net, columns) if data.draw(st.booleans()) else []
    tac = tacit.compile(net, None, [n for n in columns if n not in hard], hard, engine=engine)
    name = data.draw(st.sampled_from(sorted({n.partition("[")[0] for n in net if "[" in n})))
    close(tac.filtered(name, columns)[rows], definition.filtered(net, name, columns)[rows])


def hmm_of_tests(own_emissions, selection="general"):
    """Hidden states are testing nodes from step 1 on; they see the observations of all earlier steps."""
    rng = np.random.default_rng(1)
    net = Network("testing", selection)
    e = tacit.CPT([[0.8, 0.2], [0.3, 0.7]], tie="E")
    net.add("X[0]", cpt=[0.4, 0.6])
    net.add("E[0]", ["X[0]"], cpt=e)
    net.add("X[1]", ["X[0]"], cpt=tacit.TestingCPT(*rng.dirichlet(np.ones(2), (2, 2)), [0.5, 0.45]))
    net.add("E[1]", ["X[1]"] if own_emissions else ["X[0]"], cpt=e)
    return tacit.unroll(net, 4)


@tries(20)
@given(data=st.data())
def test_selection_may_see_earlier_observations(data):
    net = hmm_of_tests(True)
    columns = data.draw(evidence(net, [n for n in net if n.startswith("E")], rows=3))
    tac = tacit.compile(net, None, list(columns))
    rows = decided(net, columns)
    close(tac.filtered("X", columns)[rows], definition.filtered(net, "X", columns)[rows])


def test_selection_may_not_see_later_observations():
    seen = [f"E[{t}]" for t in range(4)]
    with pytest.raises(TacitError, match=r"testing nodes of earlier steps may see the evidence on 'E\[2\]'"):
        tacit.compile(hmm_of_tests(False), None, seen).filtered("X", dict.fromkeys(seen, "true"))
    tac = tacit.compile(hmm_of_tests(False, "ancestral"), None, seen)
    rows = dict.fromkeys(seen, "true")
    close(tac.filtered("X", rows), definition.filtered(tac.network, "X", rows))


def factorial(chains, steps):
    rng = np.random.default_rng(0)
    net = Network()
    emission = tacit.CPT(rng.dirichlet(np.ones(3), (2,) * chains), tie="E")
    for t in (0, 1):
        for i in range(chains):
            net.add(f"X{i}[{t}]", [f"X{i}[0]"] * t, cpt=rng.dirichlet(np.ones(2), (2,) * t))
        net.add(f"E[{t}]", [f"X{i}[{t}]" for i in range(chains)], 3, emission)
    return tacit.unroll(net, steps)


@pytest.mark.parametrize("chains", [1, 2])
def test_all_steps_cost_in_proportion_to_their_number(chains):
    costs = []
    for steps in (20, 40):
        net = factorial(chains, steps)
        tac = tacit.compile(net, None, [n for n in net if n.startswith("E")])
        tac.filtered("X0")
        costs.append(next(iter(tac._companions.values())).program.cost.multiply_adds)
        assert costs[-1] < 2.5 * tac.program.cost.multiply_adds
    assert costs[1] < 2.2 * costs[0]


def test_new_numbers_are_filtered_anew():
    tac = tacit.compile(tacit.unroll(weather(), 3), None, ["Umbrella[1]"])
    before = tac.filtered("Rain", {"Umbrella[1]": "true"})
    net = weather()
    other = tacit.unroll(net.with_cpts({"Rain[0]": [0.1, 0.9]}), 3)
    tac.set_parameters(other)
    after = tac.filtered("Rain", {"Umbrella[1]": "true"})
    assert abs(after - before).max() > 0.1
    close(after, definition.filtered(other, "Rain", {"Umbrella[1]": "true"}))


def test_impossible_evidence_is_impossible_from_its_step_on():
    net = tacit.unroll(weather().with_cpts({"Umbrella[0]": [[1, 0], [1, 0]], "Umbrella[1]": [[1, 0], [1, 0]]}), 3)
    tac = tacit.compile(net, None, ["Umbrella[1]"])
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        found = tac.filtered("Rain", {"Umbrella[1]": ["false", "true"]})
    assert np.isnan(found[0, 1:]).all()
    assert not np.isnan(found[0, 0]).any()
    assert not np.isnan(found[1]).any()


def test_what_cannot_be_filtered():
    net = tacit.unroll(weather(), 3)
    with pytest.raises(NetworkError, match=r"no steps of 'Snow': no variable is called Snow\[0\]"):
        tacit.compile(net, None).filtered("Snow")
    with pytest.raises(TacitError, match="given="):
        tacit.compile(net, None, given={"Umbrella[0]": "true"}).filtered("Rain")
    with pytest.raises(TacitError, match="do="):
        tacit.compile(net, None, do=["Umbrella[0]"]).filtered("Rain", {"Umbrella[0]": "true"})
