"""Compiled queries against the definition, and what a user can do with one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import EvidenceError, Network, NetworkError, TacitError, TestingCPT, UnsetError, examples
from tacit import semantics as definition
from tacit.compiler.program import check
from tacit.engines.engine import Sweep
from tests.helpers import ENGINES_OF_MANY, always_hard, close, decided, one_row, posterior, selected, tries
from tests.strategies import evidence, networks, queries

ROWS = 3
RARE = [(9, 1e-5), (14, 1e-3), (60, 1e-6), pytest.param(200, 1e-3, marks=pytest.mark.slow)]  # findings, probability
pytestmark = pytest.mark.parametrize("engine", ENGINES_OF_MANY)


def agrees(tac, net, columns, tolerance=1e-12):
    """Joint, posterior, evidence and selections are those of the definition."""
    rows = decided(net, columns, max(1e-9, 10 * tolerance))
    joint, expected = tac.joint(columns)[rows], definition.joint(net, tac.query, columns)[rows]
    close(joint, expected, tolerance)
    assert (joint[expected.sum(axis=1) == 0] == 0).all()
    close(posterior(tac, columns)[rows], definition.posterior(net, tac.query, columns)[rows], tolerance)
    close(np.exp(tac.log_evidence(columns)[rows]), expected.sum(axis=1), tolerance)
    how = selected(tac, columns)
    for i in rows:
        for name, node in definition.select(net, one_row(columns, i)).nodes.items():
            if name in how and not np.isnan(node.posterior).any():
                close(how[name].posterior[i], node.posterior, tolerance)
                close(how[name].weight[i], node.weight, 20 * tolerance)  # slopes go up to 16


# the definition -------------------------------------------------------------------------------------------


@tries(150)
@given(case=queries(rows=ROWS))
def test_soft_evidence_agrees_with_the_definition(engine, case):
    net, query, columns = case
    tac = tacit.compile(net, query, list(columns), engine=engine)
    check(tac.program)
    agrees(tac, net, columns)


@tries(150)
@given(case=queries(rows=ROWS, certain=True))
def test_hard_evidence_that_indexes_agrees_with_the_definition(engine, case):
    net, query, columns = case
    hard = always_hard(net, columns)
    assert hard
    tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
    check(tac.program)
    agrees(tac, net, columns)


@tries(100)
@given(case=queries(rows=ROWS), data=st.data())
def test_any_elimination_order_gives_the_same_answer(engine, case, data):
    net, query, columns = case
    hard = always_hard(net, columns) if data.draw(st.booleans()) else []
    order = data.draw(st.permutations(net.variables))
    soft = [n for n in columns if n not in hard]
    tac = tacit.compile(net, query, soft, hard, engine=engine, order=order[: data.draw(st.integers(0, len(order)))])
    check(tac.program)
    agrees(tac, net, columns)


@tries(60)
@given(case=queries(rows=ROWS))
def test_float32_is_close(engine, case):
    net, query, columns = case
    agrees(tacit.compile(net, query, list(columns), engine=engine, dtype="float32"), net, columns, 1e-4)


@pytest.mark.parametrize("effort", ["low", "auto", "high"])
def test_every_effort_gives_the_same_answer(engine, effort):
    rng = np.random.default_rng(0)
    net = Network()
    for i in range(9):
        parents = [f"X{j}" for j in rng.permutation(i)[:3]]
        table = rng.dirichlet(np.ones(2), (2,) * len(parents))
        other = rng.dirichlet(np.ones(2), (2,) * len(parents))
        testing = TestingCPT(table, other, np.full((2,) * len(parents), 0.21)) if parents and i % 3 == 0 else table
        net.add(f"X{i}", parents, cpt=testing)
    columns = {f"X{i}": rng.random(4) for i in (0, 3, 5, 8)}
    agrees(tacit.compile(net, "X6", list(columns), engine=engine, effort=effort), net, columns)


# independences that hold whatever the numbers (spec E5) ----------------------------------------------------


def random_cpt(rng, *parents, testing=False):
    table, other = rng.dirichlet(np.ones(3), (2, *parents))
    return TestingCPT(table, other, rng.random(parents), gamma=rng.choice([None, 8.0])) if testing else table


@pytest.mark.parametrize("seed", range(5))
def test_the_state_of_the_middle_shields_the_end_of_a_chain(engine, seed):
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("A", states=3, cpt=random_cpt(rng))
    net.add("B", ["A"], 3, random_cpt(rng, 3, testing=True))
    net.add("C", ["B"], 3, random_cpt(rng, 3, testing=True))
    likelihoods = rng.dirichlet(np.ones(3), 20)
    for state, names in itertools.product(range(3), ([], ["B"])):
        tac = tacit.compile(net, "C", ["A", "B"], names, engine=engine)
        found = tac.posterior({"A": likelihoods, "B": [state] * 20})
        close(found, np.broadcast_to(found[0], found.shape))


@pytest.mark.parametrize("seed", range(5))
def test_causes_are_independent_while_their_effect_is_not_observed(engine, seed):
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("A", states=3, cpt=random_cpt(rng))
    net.add("B", states=3, cpt=random_cpt(rng))
    net.add("T", ["A", "B"], 3, random_cpt(rng, 3, 3, testing=True))
    tac = tacit.compile(net, "B", ["A", "T"], engine=engine)
    found = tac.posterior({"A": rng.dirichlet(np.ones(3), 20)})
    close(found, np.broadcast_to(net.table("B"), found.shape))


@pytest.mark.parametrize("seed", range(5))
def test_the_state_of_a_common_cause_shields_its_effects(engine, seed):
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("D", states=3, cpt=random_cpt(rng))
    net.add("A", ["D"], 3, random_cpt(rng, 3))
    net.add("T", ["D"], 3, random_cpt(rng, 3, testing=True))
    likelihoods = rng.dirichlet(np.ones(3), 20)
    for state, names in itertools.product(range(3), ([], ["D"])):
        tac = tacit.compile(net, "T", ["A", "D"], names, engine=engine)
        found = tac.posterior({"A": likelihoods, "D": [state] * 20})
        close(found, np.broadcast_to(found[0], found.shape))


# evidence -------------------------------------------------------------------------------------------------


def test_a_row_may_leave_evidence_out(engine):
    net = examples.diamond()
    tac = tacit.compile(net, "D", ["A", "B", "C"], engine=engine)
    columns = {"A": [0.2, None, None], "C": [None, None, "false"]}
    agrees(tac, net, columns)
    close(tac.posterior(), definition.posterior(net, "D"))
    assert tac.joint({"A": 0.3}).shape == (1, 2)


def test_evidence_on_the_query_itself(engine):
    net = examples.diamond()
    for columns in ({"D": [0.3, 1.0, 0.0]}, {"D": ["true", "false", "true"], "A": [0.2, 0.5, 0.9]}):
        agrees(tacit.compile(net, "D", list(columns), engine=engine), net, columns)
    columns = {"D": ["true", "false"], "B": ["true", "true"]}
    tac = tacit.compile(net, "D", hard=["D", "B"], engine=engine)
    agrees(tac, net, columns)
    close(tac.posterior(columns), [[1, 0], [0, 1]])


def test_evidence_on_a_disconnected_part_scales_the_joint(engine):
    net = examples.abc()
    net.add("Z", cpt=[0.25, 0.75])
    for names, hard in ((["A", "Z"], []), (["A"], ["Z"])):
        tac = tacit.compile(net, "B", names, hard, engine=engine)
        scaled = tac.joint({"A": 0.8, "Z": ["true", "false"]})
        close(scaled[1], 3 * scaled[0])
        agrees(tac, net, {"A": [0.8, 0.1], "Z": ["true", "false"]})


def test_impossible_rows_are_zero_undefined_and_counted_once(engine):
    net = Network()
    net.add("A", cpt=[0.0, 1.0])
    net.add("B", ["A"], cpt=TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.5, 0.5], gamma=4.0))
    columns = {"A": ["true", "false", "true", "false"]}
    for names, hard in ((["A"], []), ([], ["A"])):
        tac = tacit.compile(net, "B", names, hard, engine=engine)
        with pytest.warns(tacit.ImpossibleEvidenceWarning, match="evidence of 2 of 4 rows") as caught:
            found = tac.posterior(columns)
        assert len(caught) == 1
        assert np.isnan(found).all(axis=1).tolist() == [True, False, True, False]
        assert (tac.joint(columns)[[0, 2]] == 0).all()
        assert (tac.log_evidence(columns)[[0, 2]] == -np.inf).all()
        assert np.isnan(selected(tac, columns)["B"].posterior[0]).all()


def test_evidence_in_hard_must_be_there_in_every_row(engine):
    tac = tacit.compile(examples.diamond(), "D", hard=["A"], engine=engine)
    with pytest.raises(EvidenceError, match=r"no evidence on 'A'.*name it in evidence="):
        tac.posterior()
    with pytest.raises(EvidenceError, match="'A', row 1: a state is needed in every row"):
        tac.posterior({"A": ["true", None]})
    with pytest.raises(EvidenceError, match="'A', row 0: a state is needed"):
        tac.posterior({"A": [0.5]})
    close(tac.posterior({"A": [1.0]}), tac.posterior({"A": "true"}))  # a certain likelihood is a state


def test_evidence_must_be_declared(engine):
    tac = tacit.compile(examples.diamond(), "D", ["A"], engine=engine)
    with pytest.raises(EvidenceError, match=r"evidence on 'B', but the query was compiled for evidence on \['A'\]"):
        tac.posterior({"B": 0.5})


def test_blocks_of_rows_give_the_same_as_single_rows(engine):
    net = examples.diamond()
    rng = np.random.default_rng(1)
    tac = tacit.compile(net, "D", ["A", "C"], ["B"], engine=engine)
    count = 2 * tac.engine().chunk + 3
    columns = {"A": rng.random(count), "B": rng.choice(["true", "false"], count), "C": "true"}
    joint, how = tac.joint(columns), selected(tac, columns)["D"]
    assert joint.shape == (count, 2)
    assert how.posterior.shape == (count, 2, 2)
    for i in (0, count // 2 - 1, tac.engine().chunk - 1, tac.engine().chunk, count - 1):
        row = {"A": columns["A"][[i]], "B": columns["B"][[i]], "C": "true"}
        close(joint[i], tac.joint(row)[0])
        close(how.posterior[i], selected(tac, row)["D"].posterior[0])


# known zeros ----------------------------------------------------------------------------------------------


def test_single_states_and_impossible_states(engine):
    net = Network()
    net.add("one", states=["only"], cpt=[1.0])
    net.add("A", ["one"], 3, [[0.4, 0.0, 0.6]])
    net.add("B", ["A"], 3, [[0.5, 0.5, 0.0], [0, 0, 1], [0.25, 0.75, 0]])
    plus, minus = np.tile([[0.2, 0.0, 0.8]], (3, 1)), np.tile([[0.7, 0.0, 0.3]], (3, 1))
    net.add("T", ["B"], 3, TestingCPT(plus, minus, [0.4, 0.0, 0.2], ["<", ">=", ">"]))
    for query in net:
        for columns in (
            {"A": [[0.2, 0.3, 0.5]], "T": [[0.1, 0.2, 0.7]]},
            {"one": ["only"], "B": [0], "T": [2]},
            {"A": [1], "B": [2]},  # states that known 0s exclude
        ):
            for hard in ([], always_hard(net, columns)):
                tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
                check(tac.program)
                agrees(tac, net, columns)
                for fold in (True, False):
                    close(tac.circuit(fold).evaluate(columns), definition.joint(net, query, columns))


def test_names_that_look_like_auxiliary_axes(engine):
    rng = np.random.default_rng(0)
    net = Network()
    net.add("X", states=3, cpt=[0.5, 0.0, 0.5])
    net.add("X'", ["X"], 3, [[0.2, 0.8, 0.0]] * 3)
    net.add("Y|0", states=3, cpt=[0.3, 0.0, 0.7])
    net.add("Y|0'", states=3, cpt=[0.0, 0.6, 0.4])
    net.add("Y", ["X", "X'", "Y|0"], cpt=tacit.NoisyOr([[0.1, 0.2, 0.3]] * 3, 0.1))
    net.add("Z", ["X", "Y", "Y|0'"], cpt=rng.dirichlet(np.ones(2), (3, 2, 3)))
    columns = {"X": [[0.1, 0.3, 0.6]], "Y": [0.3]}
    for query in net:
        agrees(tacit.compile(net, query, list(columns), engine=engine), net, columns)


def test_tests_that_differ_by_an_observed_parent_beside_impossible_states(engine):
    rng = np.random.default_rng(0)
    net = Network()
    net.add("A", cpt=[0.4, 0.6])
    net.add("B", states=3, cpt=[0.5, 0.0, 0.5])
    plus, minus = rng.dirichlet(np.ones(2), (2, 2, 3))
    net.add("T", ["A", "B"], cpt=TestingCPT(plus, minus, rng.random((2, 3)), [[">=", ">", "<"], ["<=", ">", "<"]]))
    columns = {"A": ["true", "false"]}
    tac = tacit.compile(net, "T", hard=["A"], engine=engine)
    agrees(tac, net, columns)
    close(tac.circuit().evaluate(columns), definition.joint(net, "T", columns))


# numbers --------------------------------------------------------------------------------------------------


def test_new_numbers_need_no_new_compilation(engine):
    tac = tacit.compile(examples.diamond(seed=0), "D", ["A", "C"], engine=engine)
    program, columns = tac.program, {"A": [0.2, 0.9], "C": ["true", "false"]}
    agrees(tac, examples.diamond(seed=0), columns)
    for net in (examples.diamond(seed=1), examples.diamond(seed=2).with_gamma(16), examples.diamond(seed=0)):
        tac.set_parameters(net)
        assert tac.program is program
        agrees(tac, net, columns)
        close(tac.circuit().evaluate(columns), definition.joint(net, "D", columns))


@tries(60)
@given(net=networks(factored=False), data=st.data(), gamma=st.sampled_from([None, 0.0, 16.0, 1e6]))
def test_slopes_change_without_compiling_again(engine, net, data, gamma):
    columns = data.draw(evidence(net, rows=ROWS))
    tac = tacit.compile(net, net.variables[-1], list(columns), engine=engine)
    other = net.with_gamma(gamma)
    tac.set_parameters(other)
    rows = decided(other, columns, 1e-4 if gamma == 1e6 else 1e-9)
    close(tac.joint(columns)[rows], definition.joint(other, tac.query, columns)[rows], 1e-9 if gamma == 1e6 else 1e-12)


def with_change(name, cpt, parents=("A",), states=None):
    net = examples.abc()
    changed = Network()
    for node in net:
        if node == name:
            changed.add(name, parents, states, cpt)
        else:
            changed.add(node, net.parents(node), net.states(node), net.cpt(node))
    return changed


@pytest.mark.parametrize(
    "other",
    [
        with_change("B", [[0.5, 0.5], [0.5, 0.5]]),
        with_change("B", TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.5, 0.5], ">")),
        with_change("C", [0.5, 0.5], parents=()),
        with_change("C", [[0.5, 0.5], [0.5, 0.5]]),  # other labels
        with_change("C", [[0.5, 0.5, 0], [0.5, 0.5, 0]], states=3),
    ],
    ids=["kind", "test", "parents", "labels", "states"],
)
def test_another_structure_is_refused(engine, other):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine=engine)
    with pytest.raises(NetworkError, match=r"node '.' differs in states, parents, kind of CPT or tests"):
        tac.set_parameters(other)
    with pytest.raises(NetworkError, match="no variable 'A', which the query asks about"):
        tac.set_parameters(Network())
    close(tac.joint({"A": 0.8, "C": [[0.6, 0.4]]}), [[0.1042, 0.0738]])  # still the old numbers


def test_another_selection_is_refused(engine):
    tac = tacit.compile(examples.abc(), "B", ["A", "C"], engine=engine)
    with pytest.raises(NetworkError, match="selection is 'general' and was 'ancestral'"):
        tac.set_parameters(tac.network.with_selection("general"))


def test_known_zeros_may_come_but_not_go(engine):
    def net(p):
        made = Network()
        made.add("A", states=3, cpt=[p, 0.4, 0.6 - p])
        made.add("B", ["A"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
        return made

    tac = tacit.compile(net(0.2), "B", ["A"], engine=engine)
    tac.set_parameters(net(0.0))
    agrees(tac, net(0.0), {"A": [[0.2, 0.3, 0.5]]})
    tac = tacit.compile(net(0.0), "B", ["A"], engine=engine)
    with pytest.raises(NetworkError, match=r"node 'A': state 0 was impossible .* compile the query again"):
        tac.set_parameters(net(0.2))
    with pytest.raises(NetworkError, match=r"node 'A': state 0 was impossible"):
        tac.with_network(net(0.2))
    tac = tacit.compile(net(0.0), "B", hard=["A"], engine=engine)  # an index keeps all states
    tac.set_parameters(net(0.2))
    agrees(tac, net(0.2), {"A": [0, 1, 2]})


def test_unset_numbers_compile_but_do_not_evaluate(engine):
    tac = tacit.compile(examples.layer(4), "Q", ["E1", "E2"], engine=engine)
    check(tac.program)
    assert tac.cost().circuit_nodes == len(tac.circuit())
    for ask in (tac.posterior, tac.joint, tac.log_evidence, tac.selected):
        with pytest.raises(UnsetError, match="node 'E1': table has unset numbers"):
            ask({"E1": 0.5, "E2": 0.5})


# sizes ----------------------------------------------------------------------------------------------------


def test_cost_tells_width_work_and_nodes(engine):
    tac = tacit.compile(examples.diamond(), "D", ["A"], engine=engine)
    cost = tac.cost()
    assert cost.width == 2
    assert cost.multiply_adds > 0
    assert cost.bytes == 8 * cost.elements
    assert cost.circuit_nodes == len(tac.circuit())
    assert f"width {cost.width}" in repr(tac)


# asking wrongly -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": "Q"}, "'Q' is not a variable of the network"),
        ({"query": "A, B"}, r"query is 'A, B'; give the names of several variables as a list: query=\['A', 'B'\]"),
        ({"query": {"B": "true"}}, r"query is a mapping; give the name of a variable, or a list of names: \['B'\]"),
        ({"query": 3}, "query is 3; give the name of a variable"),
        ({"query": [["A", "B"]]}, r"query must be a sequence of names, got \[\['A', 'B'\]\]"),
        ({"query": "A", "evidence": "B, C"}, r"evidence must be a sequence of names, e.g. \['B', 'C'\]"),
        ({"query": "A", "evidence": ["Z"]}, "'Z' is not a variable"),
        ({"query": "A", "hard": ["Z"]}, "'Z' is not a variable"),
        ({"query": "A", "evidence": "B"}, r"evidence must be a sequence of names, e.g. \['B'\]"),
        ({"query": "A", "order": ["Z"]}, "'Z' is not a variable"),
        ({"query": "A", "effort": "most"}, "effort is 'most', expected one of 'low', 'auto', 'high'"),
        ({"query": "A", "dtype": "int"}, "dtype is 'int', expected one of 'float64', 'float32'"),
        ({"query": "A", "engine": "steam"}, "engine is 'steam', expected one of 'auto'"),
    ],
)
def test_wrong_arguments_are_named(engine, arguments, message):
    with pytest.raises(TacitError, match=message):
        tacit.compile(examples.abc(), **{"engine": engine} | arguments)


# what users run into --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("count", "p"), RARE)
@pytest.mark.parametrize("hard", [True, False])
def test_rare_findings_do_not_underflow(engine, dtype, count, p, hard):
    net = Network()
    net.add("C", cpt=[0.5, 0.5])
    names = [f"X{i}" for i in range(count)]
    for name in names:
        net.add(name, ["C"], cpt=[[p, 1 - p], [1.1 * p, 1 - 1.1 * p]])
    roles = {"hard": names} if hard else {"evidence": names}
    tac = tacit.compile(net, "C", **roles, dtype=dtype, engine=engine)
    close(
        tac.posterior(dict.fromkeys(names, "true"))[0, 0], 1 / (1 + 1.1**count), 1e-4 if dtype == "float32" else 1e-10
    )


def test_findings_of_1e_30_do_not_underflow(engine):
    net = Network()
    net.add("C", cpt=[0.5, 0.5])
    names = [f"X{i}" for i in range(40)]
    for name in names:
        net.add(name, ["C"], cpt=[[1e-30, 1 - 1e-30], [1.1e-30, 1 - 1.1e-30]])
    tac = tacit.compile(net, "C", hard=names, engine=engine)
    close(tac.posterior(dict.fromkeys(names, "true"))[0, 0], 1 / (1 + 1.1**40), 1e-10)


def test_columns_of_an_array_follow_the_evidence_as_it_was_named(engine):
    tac = tacit.compile(examples.abc(), "B", evidence=["A", "C"], hard=["A"], engine=engine)
    assert tac.evidence == ("A", "C")
    close(tac.posterior(np.array([[1.0, 0.0], [0.0, 1.0]])), [[0.9, 0.1], [0.7, 0.3]])


def test_the_row_of_an_error_is_counted_from_the_first_row(engine):
    tac = tacit.compile(examples.abc(), "B", hard=["A"], engine=engine)
    column = ["true"] * 20_000
    column[17_000] = None
    with pytest.raises(EvidenceError, match="row 17000"):
        tac.posterior({"A": column})


def test_a_query_does_not_see_what_is_added_to_its_network_later(engine):
    net = examples.abc()
    tac = tacit.compile(net, "B", ["A"], engine=engine)
    net.add("D", ["B"], cpt=[[0.5, 0.5], [0.1, 0.9]])
    assert list(tac.marginals({"A": 0.8})) == ["A", "B", "C"]


def test_new_parameters_reach_the_marginals(engine):
    net = examples.etq(seed=0)
    tac = tacit.compile(net, "Q", ["E"], engine=engine)
    tac.marginals({"E": 0.3})
    other = examples.etq(seed=5)
    tac.set_parameters(other)
    close(tac.marginals({"E": 0.3})["T"], definition.posterior(other, "T", {"E": 0.3}))


def test_evidence_in_hard_must_be_certain_on_the_query_too(engine):
    tac = tacit.compile(examples.abc(), "B", hard=["B"], engine=engine)
    with pytest.raises(EvidenceError, match="'B'"):
        tac.posterior({"B": 0.5})


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_dtypes_in_any_form(engine, dtype):
    assert tacit.compile(examples.abc(), "B", ["A"], dtype=dtype, engine=engine).dtype == "float32"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"evidence": "A"}, "evidence must be a sequence of names"),
        ({"evidence": [["A"]]}, "evidence must be a sequence of names"),
        ({"order": "AC"}, "order must be a sequence of names"),
        ({"dtype": "int32"}, "expected one of 'float64', 'float32'"),
        ({"dtype": "no such type"}, "expected one of 'float64', 'float32'"),
    ],
)
def test_wrong_arguments_are_explained(engine, arguments, message):
    with pytest.raises(tacit.TacitError, match=message):
        tacit.compile(examples.abc(), "B", **arguments, engine=engine)


def test_large_networks_can_be_selected_from(engine):
    net = examples.hmm(30)
    evidence = {f"E{t}": t % 2 for t in range(1, 31)}
    chosen = net.select(evidence)
    assert not chosen.testing_nodes
    close(
        tacit.compile(chosen, "H30", list(evidence)).posterior(evidence),
        tacit.compile(net, "H30", list(evidence), engine=engine).posterior(evidence),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_run_gives_everything_a_row_can_be_asked(engine, dtype, monkeypatch):
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine=engine, dtype=dtype)
    rows = {"A": [0.8, 0.1, None], "C": ["lo", None, "hi"]}
    used, runs = tac.engine().runner(3, Sweep.SELECTIONS), []
    run = used.run
    monkeypatch.setattr(used, "run", lambda *given: runs.append(given) or run(*given))
    monkeypatch.setattr(used, "chunk", 2)
    answer = tac.ask(rows, selected=True)
    assert len(runs) == 2  # blocks
    np.testing.assert_array_equal(answer.posterior, tac.posterior(rows))
    np.testing.assert_array_equal(answer.joint, tac.joint(rows))
    np.testing.assert_array_equal(answer.log_evidence, tac.log_evidence(rows))
    np.testing.assert_array_equal(answer.selected["B"].weight, tac.selected(rows)["B"].weight)
    assert answer.posterior.dtype == dtype
    assert tac.ask(rows).selected == {}
