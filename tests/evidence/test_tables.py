"""Testing CPTs of more than two tables; random networks have some, too, so that all other tests are about them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, NetworkError, TestingCPT, semantics
from tacit.base.errors import FormatError
from tests.helpers import ENGINES, close, tries
from tests.strategies import TESTS, rngs

LOW, MIDDLE, HIGH = [[0.75, 0.25], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]], [[0.0, 1.0], [1.0, 0.0]]
LIMITS = [[0.25, 0.5], [0.125, 0.75]]


def three(**settings):
    return TestingCPT(**{"tables": [LOW, MIDDLE, HIGH], "thresholds": LIMITS, **settings})


def small(cpt, prior=(0.5, 0.5)):
    net = Network()
    net.add("A", cpt=prior)
    net.add("B", ["A"], cpt=cpt)
    return net


def chain(rng, count, gamma=None, nodes=3):
    """Testing nodes with `count` tables and all kinds of tests, below each other and a node of three states."""
    net = Network()
    net.add("X0", states=3, cpt=rng.dirichlet(np.ones(3)))
    for i in range(1, nodes):
        cards = len(net.states(f"X{i - 1}"))
        cpt = TestingCPT(
            tables=rng.dirichlet(np.ones(2), (count, cards)),
            thresholds=np.sort(rng.random((cards, count - 1))),
            test=rng.choice(TESTS, cards),
            gamma=gamma,
        )
        net.add(f"X{i}", [f"X{i - 1}"], cpt=cpt)
    return net


# the CPT --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [[0.5, 0.4], [[0.5], [0.4]]])
def test_two_tables_are_plus_and_minus(limits):
    pair = TestingCPT(HIGH, LOW, [0.5, 0.4], [">=", "<"], 2.0, True, "t")
    made = TestingCPT(tables=[LOW, HIGH], thresholds=limits, test=[">=", "<"], gamma=2.0, learn=True, tie="t")
    assert made == pair
    assert list(made.parts()) == ["plus", "minus", "thresholds"]
    assert repr(made) == repr(pair)
    evidence = {"A": np.linspace(0, 1, 9), "B": np.linspace(0.1, 1, 9)}
    one, other = (tacit.compile(small(cpt), "A", ["A", "B"]) for cpt in (pair, made))
    assert str(one.program) == str(other.program)
    np.testing.assert_array_equal(one.joint(evidence), other.joint(evidence))


def test_more_tables_have_names_and_no_plus():
    cpt = three(gamma=3.0)
    assert list(cpt.parts()) == ["table 0", "table 1", "table 2", "thresholds"]
    assert repr(cpt) == "TestingCPT(parents (2,), 2 states, 3 tables, test='>=', gamma=3)"
    assert not hasattr(cpt, "plus")
    with pytest.raises(AttributeError, match=r"of 3 tables has no 'minus'; they are in \.tables"):
        _ = cpt.minus
    counts = small(cpt).counts()
    assert (counts.dynamic, counts.thresholds) == (12, 4)
    assert cpt.with_gamma(None) == three() != three(tables=[LOW, MIDDLE, LOW])
    assert str(small(three()).cpt("B")).splitlines()[:3] == [
        "P(B | A): table i if i of the tests of P*(A) hold",
        "                       table 0         table 1         table 2",
        "A      test               true  false     true  false     true  false",
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"thresholds": [[0.25, 0.5], [0.75, 0.125]]},
            r"parent state \(1,\): 0.125 comes after 0.75; none may be less",
        ),
        ({"thresholds": [[0.5, np.nan], [0.75, 1.5]]}, r"parent state \(1,\): 1.5 is not a threshold in \[0, 1\]"),
        ({"thresholds": [0.25, 0.5]}, r"shape \(2,\), expected \(2, 2\): 2 per parent state of tables"),
        (
            {"tables": [LOW, MIDDLE, [0.5, 0.5]]},
            r"table 0 has shape \(2, 2\) but table 2 \(2,\); they must be the same",
        ),
        ({"tables": [LOW]}, "expected a sequence of two tables or more"),
        ({"tables": 3}, "tables is 3, expected a sequence of two tables or more"),
        ({"plus": HIGH}, "takes plus and minus, or tables; give either"),
        ({"tables": None}, "takes plus and minus, or tables; give either"),
        ({"tables": None, "plus": HIGH}, "minus is missing"),
        ({"thresholds": None}, "thresholds are missing"),
        ({"tables": [LOW, MIDDLE, [[0.5, 0.6], [0, 1]]]}, r"table 2, parent state \(0,\): sums to 1.1, expected 1"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    with pytest.raises(NetworkError, match=message):
        three(**settings)


def test_known_thresholds_around_unknown_ones_are_in_order_too():
    three(tables=[LOW] * 4, thresholds=[[0.2, np.nan, 0.4], [np.nan] * 3])
    with pytest.raises(NetworkError, match=r"0\.1 comes after 0\.2"):
        three(tables=[LOW] * 4, thresholds=[[0.2, np.nan, 0.1], [np.nan] * 3])


def test_a_network_names_the_state_of_a_bad_threshold():
    net = Network()
    net.add("A")
    table = {"name": "B", "states": ["true", "false"], "parents": ["A"]}
    cpt = {"kind": "testing", "tables": [LOW, MIDDLE, HIGH], "thresholds": LIMITS, "test": [">="] * 2}
    data = {
        **net.to_dict(),
        "nodes": [*net.to_dict()["nodes"], {**table, "cpt": {**cpt, "gamma": None, "learn": False}}],
    }
    assert Network.from_dict(data).cpt("B") == three()
    assert "plus" not in Network.from_dict(data).to_dict()["nodes"][1]["cpt"]
    data["nodes"][1]["cpt"]["plus"] = HIGH
    with pytest.raises(FormatError, match=r"nodes\[1\].cpt has both 'tables' and 'plus', expected either"):
        Network.from_dict(data)


# what it means --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "ruling"),
    [(">=", [0, 1, 1, 2, 2]), (">", [0, 0, 1, 1, 2]), ("<=", [2, 2, 1, 1, 0]), ("<", [2, 1, 1, 0, 0])],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_as_many_tests_as_hold_choose_the_table(test, ruling, engine):
    """At both thresholds, below, between and above them: exact in every engine."""
    net = small(three(thresholds=[[0.25, 0.5]] * 2, test=test))
    tac = tacit.compile(net, "B", ["A"], engine=engine)
    seen = np.array([0.125, 0.25, 0.375, 0.5, 0.625])
    found = tac.selected({"A": seen})["B"]
    assert found.weight.shape == (5, 2, 3)
    np.testing.assert_array_equal(found.weight[:, 0], np.eye(3)[ruling])
    for row, table in zip(seen, ruling, strict=True):
        chosen = semantics.select(net, {"A": row})
        np.testing.assert_array_equal(chosen.nodes["B"].weight[0], np.eye(3)[table])
        np.testing.assert_array_equal(chosen.network.table("B")[0], [LOW, MIDDLE, HIGH][table][0])
        np.testing.assert_array_equal(tac.network.select({"A": row}).table("B"), chosen.network.table("B"))


@tries(60)
@given(rng=rngs, count=st.integers(3, 6), gamma=st.sampled_from([0.0, 0.5, 7.0, 300.0]))
def test_weights_are_differences_of_sigmoids(rng, count, gamma):
    net = chain(rng, count, gamma, nodes=2)
    how, cpt = semantics.select(net, {"X0": rng.dirichlet(np.ones(3))[None]}).nodes["X1"], net.cpt("X1")
    sign = np.where(np.isin(cpt.test, ("<=", "<")), -1, 1)[:, None]
    with np.errstate(over="ignore"):
        sigmoids = np.sort(1 / (1 + np.exp(-gamma * sign * (how.posterior[:, None] - cpt.thresholds))))[:, ::-1]
    ends = np.ones((3, 1))
    close(how.weights, -np.diff(np.concatenate([ends, sigmoids, 0 * ends], axis=1), axis=1), 1e-15)
    assert (how.weights >= 0).all()


def test_weights_keep_their_digits():
    """All but table 1 exclude what is seen, and its weight is the difference of two sigmoids that are both nearly 1."""
    certain = [[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2, [[1.0, 0.0]] * 2]
    net = small(three(tables=certain, thresholds=[[0.125, 0.25], [0.125, 0.25]], gamma=200.0), prior=(1.0, 0.0))
    x, y = 200 * 0.875, 200 * 0.75
    expected = np.log(-np.expm1(y - x)) - np.log1p(np.exp(-x)) - y - np.log1p(np.exp(-y))
    for engine in ENGINES:
        tac = tacit.compile(net, None, ["B"], engine=engine)
        assert tac.log_evidence({"B": "false"})[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_too_small_for_floats_are_computed_again(engine, dtype):
    """exp(-gamma * gap) leaves the range of floats, where it is all that is left."""
    certain = [[[0.0, 1.0]] * 2, [[1.0, 0.0]] * 2, [[1.0, 0.0]] * 2]
    net = small(three(tables=certain, thresholds=[[0.125, 0.5], [0.125, 0.5]], gamma=2000.0), prior=(1.0, 0.0))
    tac = tacit.compile(net, None, ["B"], engine=engine, dtype=dtype)
    assert tac.log_evidence({"B": "false"})[0] == pytest.approx(
        -2000 * 0.875, rel=1e-6 if dtype == "float32" else 1e-13
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_one_program_is_hardened_and_softened(engine):
    rng = np.random.default_rng(3)
    net = chain(rng, 4, nodes=4)
    evidence = {"X0": rng.dirichlet(np.ones(3), 20), "X2": rng.random(20)}
    tac = tacit.compile(net, "X3", list(evidence), engine=engine)
    program = tac.program
    for gamma in (None, 9.0, 0.0, None):
        tac.set_parameters(net.with_gamma(gamma))
        assert tac.program is program
        close(tac.posterior(evidence), semantics.posterior(net.with_gamma(gamma), "X3", evidence))
    with pytest.raises(NetworkError, match="node 'X1' differs in states, parents, kind of CPT or tests"):
        tac.set_parameters(chain(rng, 3, nodes=4))


def test_gradients_by_tables_thresholds_and_slopes():
    """Against differences, also by thresholds that are close to each other."""
    rng = np.random.default_rng(0)
    net = chain(rng, 4, 6.0)
    evidence = {"X0": rng.dirichlet(np.ones(3), 5), "X1": rng.random(5)}
    tac = tacit.compile(net, "X2", list(evidence))
    columns = tac.read(evidence).columns
    seeds = rng.random((2, 5))

    reference = tac.with_network(net, engine="numpy").engine()

    def slope(keep, tables, slopes):
        """The difference quotient between two settings; the first numbers are put back."""
        values = []
        for table, gamma in zip(tables, slopes, strict=True):
            reference.update(table, gamma)
            values.append((seeds * reference.run(columns, 5).joint).sum())
        reference.update(*keep)
        return (values[0] - values[1]) / 2e-6

    expected, rates = {}, {}
    for (node, part), table in tac.numbers()[0].items():
        expected[node, part] = np.empty(table.shape)
        for place in np.ndindex(table.shape):
            around = [{(node, part): table + step * _unit(table.shape, place)} for step in (1e-6, -1e-6)]
            expected[node, part][place] = slope(({(node, part): table}, {}), around, [{}, {}])
    for node in net.testing_nodes:
        rates[node] = slope(({}, {node: 6.0}), [{}, {}], [{node: 6.0 + 1e-6}, {node: 6.0 - 1e-6}])
    for engine in ENGINES:
        found = tac.with_network(net, engine=engine).engine().gradients(columns, 5, seeds, 0)
        assert found.tables.keys() == expected.keys()
        for key, derivative in found.tables.items():
            close(derivative, expected[key], 1e-6)
        assert found.slopes == pytest.approx(rates, abs=1e-6)


def _unit(shape, place):
    made = np.zeros(shape)
    made[place] = 1.0
    return made


# learning -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("harden", [False, True])
def test_a_staircase_is_learned_from_nothing(harden):
    x, gamma = np.linspace(0, 1, 40), None if harden else 20.0
    steps = [[[p, 1 - p]] * 2 for p in (0.1, 0.8, 0.4)]
    true = small(TestingCPT(tables=steps, thresholds=[[0.3, 0.7], [1.0, 1.0]], gamma=gamma))
    y = tacit.compile(true, "B", ["A"]).posterior({"A": x})
    net = small(TestingCPT(tables=[np.full((2, 2), np.nan)] * 3, thresholds=np.nan, gamma=gamma))
    tac = tacit.compile(net, "B", ["A"])
    found = tacit.fit(tac, {"A": x}, y, restarts=3, steps=150, harden=harden, progress=False)
    limits = found.network.cpt("B").thresholds
    assert limits.shape == (2, 2)
    assert (np.diff(limits) >= 0).all()
    assert (found.hard_loss if harden else found.loss) < 1e-4


def test_known_thresholds_stay_and_others_keep_between_them():
    rows = [[0.2, np.nan, np.nan, 0.6, np.nan], [np.nan, np.nan, 0.5, np.nan, 0.5]]
    cpt = TestingCPT(tables=[np.full((2, 2), np.nan)] * 6, thresholds=rows, gamma=20.0)
    net, rng = small(cpt), np.random.default_rng(0)
    x = rng.random(50)
    found = tacit.fit(tacit.compile(net, "B", ["A"]), {"A": x}, rng.random(50), steps=30, progress=False)
    limits = found.network.cpt("B").thresholds
    np.testing.assert_array_equal(np.where(np.isnan(rows), np.nan, limits), rows)
    assert (np.diff(limits) >= 0).all()
    assert ((limits > 0) & (limits < 1)).all()
    assert limits[1, 3] == 0.5  # no room between two that are equal


# files and pictures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["json", "xmlbif", "net"])
def test_files_keep_all_tables(tmp_path, suffix):
    net = chain(np.random.default_rng(1), 3, 4.0)
    tacit.write(net, tmp_path / f"net.{suffix}")
    assert tacit.read(tmp_path / f"net.{suffix}").cpt("X1") == net.cpt("X1")


# theory ---------------------------------------------------------------------------------------------------


def test_pieces_name_tables():
    net = small(three(thresholds=[[0.25, 0.5], [0.125, 0.75]], test=[">=", "<"]))
    found = tacit.theory.pieces(tacit.compile(net, "B", ["A"]))
    # A is true with x, false with 1 - x; thresholds of the latter are 7/8 and 1/4 in x
    assert found.borders == pytest.approx([0.25, 0.5, 0.875])
    assert [region.selection["B"].tolist() for region in found] == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert "B: table 2 at A='true', table 1 at A='false'" in str(found)
    assert {(c.node, c.parent_state, c.table) for region in found for c in region.conditions} == {
        ("B", "A='true'", 1),
        ("B", "A='true'", 2),
        ("B", "A='false'", 1),
        ("B", "A='false'", 2),
    }


def test_explanations_name_tables():
    tac = tacit.compile(small(three()), "B", ["A"])
    tests = {(test.parent_state, test.table): test for test in tac.explain({"A": 0.4}).tests}
    assert {place: test.selected for place, test in tests.items()} == {
        ("A='true'", 1): "table >= 1",
        ("A='true'", 2): "table < 2",
        ("A='false'", 1): "table >= 1",
        ("A='false'", 2): "table < 2",
    }
    assert tests["A='true'", 2].flips == {"A": pytest.approx(0.5)}
