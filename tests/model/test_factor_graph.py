"""Markov networks: all answers against the sum over all states, and against pgmpy."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import FactorGraph, ImpossibleEvidenceWarning, NetworkError, TacitError
from tacit.model.factor_graph import conditioned
from tests.helpers import tries


def random_graph(seed, zeros=0.2, variables=4, factors=5):
    """Factors of none to three variables, of very different scales; some variables may have one state, or no factor."""
    rng = np.random.default_rng(seed)
    graph, cards = FactorGraph("random"), rng.integers(1, 4, variables)
    for i, card in enumerate(cards):
        graph.add(f"v{i}", [f"s{k}" for k in range(card)])
    for _ in range(factors):
        scope = rng.choice(variables, size=rng.integers(0, min(variables, 3) + 1), replace=False)
        table = rng.gamma(1, size=tuple(cards[scope])) * 10.0 ** rng.integers(-5, 6)
        graph.add_factor([f"v{v}" for v in scope], np.where(rng.random(table.shape) < zeros, 0, table))
    return graph


def product(graph, likelihoods=None):
    """The product of all factors and likelihoods, in all joint states: the definition."""
    axis = {name: i for i, name in enumerate(graph)}
    operands = [(f.table, [axis[v] for v in f.variables]) for f in graph.factors]
    operands += [(np.ones(len(graph.states(name))), [axis[name]]) for name in graph]
    operands += [(np.asarray(column), [axis[name]]) for name, column in (likelihoods or {}).items()]
    return np.einsum(*(part for operand in operands for part in operand), list(range(len(graph))))


def close(actual, expected):
    """Equal but for rounding; sums of factors may have any size."""
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


def apart(total, *axes):
    """The sum over all axes but some, which come in their order."""
    return np.einsum(total, list(range(total.ndim)), list(axes))


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
        yield


@tries(60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.15, 0.4]), st.booleans())
def test_all_answers_are_those_of_the_definition(seed, zeros, known):
    graph = random_graph(seed, zeros)
    rng = np.random.default_rng(seed)
    soft = rng.dirichlet(np.ones(len(graph.states("v0"))))
    state = int(rng.integers(len(graph.states("v1"))))
    total = product(graph, {"v0": soft, "v1": np.arange(len(graph.states("v1"))) == state})
    label = graph.states("v1")[state]
    seen = {"v0": soft[None]} if known else {"v0": soft[None], "v1": label}
    how = {"given": {"v1": label}} if known else {"hard": ["v1"]}
    tac = tacit.compile(graph, ["v2", "v0"], ["v0"], engine="numpy", **how)
    close(tac.joint(seen)[0], apart(total, 2, 0))
    marginals, best, drawn = tac.marginals(seen), tac.mpe(seen), tac.sample(seen, n=3)
    assert set(marginals) == set(best.states) == set(drawn) == set(graph)
    if total.sum() == 0:
        assert np.isneginf([*tac.log_evidence(seen), *best.log_probability]).all()
        assert np.isnan(tac.posterior(seen)).all()
        assert best.states["v2"][0] is None
        return
    close(tac.log_evidence(seen), [math.log(total.sum())])
    close(tac.ask(seen).log_evidence, [math.log(total.sum())])
    close(tac.posterior(seen)[0], apart(total, 2, 0) / total.sum())
    for axis, name in enumerate(graph):
        close(marginals[name][0], apart(total, axis) / total.sum())
    close(best.log_probability, [math.log(total.max())])
    chosen = tuple(graph.states(name).index(best.states[name][0]) for name in graph)
    close(total[chosen], total.max())
    close(tac.map(seen).log_probability, [math.log(apart(total, 2, 0).max())])
    for k in range(3):
        assert total[tuple(graph.states(name).index(drawn[name][0, k]) for name in graph)] > 0


@pytest.mark.parametrize("engine", ["numpy", "tape", "native"])
def test_all_engines_agree(engine):
    graph = random_graph(3, zeros=0)
    total = product(graph)
    tac = tacit.compile(graph, "v1", ["v0"], engine=engine)
    close(tac.posterior()[0], apart(total, 1) / total.sum())
    close(tac.log_evidence(), [math.log(total.sum())])
    close(tac.marginals()["v3"][0], apart(total, 3) / total.sum())


@pytest.mark.parametrize("engine", ["numpy", "tape", "native"])
def test_a_factor_without_variables_that_is_zero_leaves_nothing(engine):
    graph = FactorGraph()
    for name, card in (("a", 3), ("b", 2), ("c", 2), ("d", 1)):
        graph.add(name, card)
    graph.add_factor(["a"], [0.002, 0.55, 1.6])
    graph.add_factor(["a", "d"], [[0.0], [7e-05], [0.001]])
    graph.add_factor([], 0.0)
    graph.add_factor([], 0.001)
    graph.add_factor(["c"], [413.0, 448.0])
    tac = tacit.compile(graph, "a", engine=engine)
    assert np.isneginf(tac.log_evidence()).all()
    assert np.isnan(tac.marginals()["b"]).all()
    assert (tac.joint() == 0).all()


def test_numbers_beyond_floats():
    graph = FactorGraph()
    for i in range(200):
        graph.add(f"v{i}", 2)
        graph.add_factor([f"v{i}"], [3e200, 1e200])
    tac = tacit.compile(graph, "v0", engine="numpy")
    close(tac.log_evidence(), [200 * math.log(4e200)])
    close(tac.posterior(), [[0.75, 0.25]])
    assert np.isinf(tac.joint()).all()
    close(tac.mpe().log_probability, [200 * math.log(3e200)])


@pytest.mark.parametrize("engine", ["numpy", "tape", "native"])
def test_numbers_of_one_factor_beyond_floats(engine):
    """Divided by the largest of their factor, some are too small for a float, and weigh what they weigh."""
    graph = FactorGraph()
    graph.add("A")
    graph.add_factor(["A"], [1e200, 1e-200])
    graph.add_factor(["A"], [1e-200, 3e200])
    tac = tacit.compile(graph, "A", engine=engine)
    close(tac.posterior(), [[0.25, 0.75]])
    close(tac.log_evidence(), [math.log(4)])
    graph = FactorGraph()
    graph.add("A")
    graph.add("B")
    graph.add_factor(["A", "B"], [[1e-200, 1e200], [1e-200, 1.0]])
    graph.add_factor(["B"], [1e250, 1e-200])
    tac = tacit.compile(graph, "B", engine=engine)
    np.testing.assert_allclose(tac.posterior(), [[1.0, 5e-51]], rtol=1e-12)
    close(tac.log_evidence(), [math.log(2e50)])
    close(tac.marginals()["A"], [[0.5, 0.5]])


@tries(40)
@given(st.integers(0, 10**6))
def test_factors_whose_numbers_are_far_apart(seed):
    rng = np.random.default_rng(seed)
    graph, cards = FactorGraph(), rng.integers(1, 4, 3)
    for i, card in enumerate(cards):
        graph.add(f"v{i}", int(card))
    exact = np.full(tuple(cards), Fraction(1))
    for _ in range(4):
        scope = np.sort(rng.choice(3, size=rng.integers(0, 4), replace=False))
        table = np.ldexp(rng.random(tuple(cards[scope])), rng.integers(-1070, 1024, tuple(cards[scope])))
        graph.add_factor([f"v{v}" for v in scope], table)
        fractions = np.array([Fraction(x) for x in table.ravel().tolist()]).reshape(table.shape)
        exact = exact * fractions.reshape([cards[v] if v in scope else 1 for v in range(3)])
    total = exact.sum()
    tac = tacit.compile(graph, "v1", ["v0"], engine="numpy")
    if not total:
        assert np.isneginf(tac.log_evidence()).all()
        return
    close(tac.log_evidence(), [math.log(total.numerator) - math.log(total.denominator)])
    for i, name in enumerate(graph):
        shares = [float(x / total) for x in exact.sum(axis=tuple({0, 1, 2} - {i}))]
        close(tac.marginals()[name][0], shares)
    close(tac.posterior()[0], [float(x / total) for x in exact.sum(axis=(0, 2))])
    best = max(exact.ravel())
    close(tac.mpe().log_probability, [math.log(best.numerator) - math.log(best.denominator)])


def test_only_factors_that_need_it_are_shared_by_several_nodes():
    for table, parts in (([1.0, 1e-300], 1), ([3.0, 1e-310], 2), ([1e300, 1e-300], 2), ([1.7e308, 5e-324], 3)):
        graph = FactorGraph()
        graph.add("A")
        graph.add_factor(["A"], table)
        model, given, _ = conditioned(graph)
        assert len(given) == parts
        weights = [[Fraction(x) for x in model.table(node)[:, 0].tolist()] for node in given]
        first, second = (math.prod(column) for column in zip(*weights, strict=True))
        assert first == 1
        assert abs(second / (Fraction(table[1]) / Fraction(table[0])) - 1) < 1e-15


def test_a_graph_without_factors_counts_its_states():
    graph = FactorGraph()
    graph.add("a", 3)
    graph.add("b", 5)
    close(tacit.compile(graph, None, engine="numpy").log_evidence(), [math.log(15)])
    close(tacit.compile(graph, "a", given={"b": 2}, engine="numpy").joint(), [[1, 1, 1]])


def test_the_nodes_of_factors_are_not_seen():
    graph = FactorGraph()
    graph.add("factor 0", 2)
    graph.add("_factor 1", 2)
    graph.add_factor(["factor 0", "_factor 1"], [[1, 2], [3, 4]])
    tac = tacit.compile(graph, "factor 0", ["_factor 1"], engine="numpy")
    close(tac.posterior(), [[0.3, 0.7]])
    assert tuple(tac.information()) == tuple(tac.marginals(labels=True)) == ("factor 0", "_factor 1")
    assert (tac.query, tac.evidence, tac.hard, tac.given) == ("factor 0", ("_factor 1",), (), {})
    assert repr(tac).startswith("FactorQuery(query='factor 0', 1 evidence variable")
    graph = random_graph(1)
    with pytest.raises(NetworkError, match="there is no variable 'factor 0' in the graph"):
        tacit.compile(graph, "factor 0")
    with pytest.raises(NetworkError, match="there is no variable 'factor 1' in the graph"):
        tacit.compile(graph, "v0", given={"factor 1": "true"})
    with pytest.raises(TacitError, match="factor 0"):
        tacit.compile(graph, "v0", evidence=["factor 0"])
    with pytest.raises(TacitError, match="factor 0"):
        tacit.compile(graph, "v0", evidence=["v1"]).posterior({"factor 0": "true"})


def test_interventions_are_refused():
    with pytest.raises(TacitError, match="do= needs a Bayesian network"):
        tacit.compile(random_graph(1), "v0", do=["v1"])


def test_labels_frames_and_pickles():
    graph = random_graph(5, zeros=0)
    tac = tacit.compile(graph, "v1", ["v0"], engine="numpy")
    assert "v1" in str(tac.joint(labels=True))
    assert "v1" in str(tac.posterior({"v0": ["s0", None]}, labels=True))
    copy = pickle.loads(pickle.dumps(tac))
    close(copy.log_evidence(), tac.log_evidence())
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert tac.cost().width == tac.program.cost.width


def test_graphs_are_compared():
    graph = random_graph(1)
    assert graph == random_graph(1) != random_graph(2)
    other = random_graph(1)
    other.add("more")
    assert (graph != other, len(other), "more" in other) == (True, 5, True)
    assert graph != "graph"


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda g: g.add("v0"), "variable 'v0' is in the graph already"),
        (lambda g: g.add_factor("v0", [1, 2]), "variables must be a sequence of names, e.g. \\['v0'\\]"),
        (lambda g: g.add_factor(["w0"], [1, 2]), "there is no variable 'w0' in the graph"),
        (lambda g: g.add_factor(["v0", "v0"], [[1]]), "factor 5 on 'v0', 'v0': a variable is named twice"),
        (lambda g: g.add_factor(["a"], [1, 2, 3]), "factor 5 on 'a': the table has shape \\(3,\\), expected \\(2,\\)"),
        (lambda g: g.add_factor(["a"], [1, -2]), "factor 5 on 'a': the number at a='false' is -2, expected a finite"),
        (lambda g: g.add_factor(["a"], [np.nan, 1]), "factor 5 on 'a': the number at a='true' is nan, expected"),
        (lambda g: g.add_factor([], np.inf), "factor 5 on no variable: the number is inf, expected a finite one"),
        (lambda g: g.add_factor(["a"], "xy"), "factor 5 on 'a' is not an array of numbers"),
        (lambda g: FactorGraph(3), "a graph's name must be a string or None, got 3"),
    ],
)
def test_what_is_wrong_is_refused(add, message):
    graph = random_graph(1)
    graph.add("a")
    with pytest.raises(NetworkError, match=message):
        add(graph)


def test_a_factor_has_at_most_63_variables():
    graph = FactorGraph()
    for i in range(64):
        graph.add(f"v{i}", 1)
    graph.add_factor(graph.variables[:63], np.ones((1,) * 63))
    with pytest.raises(NetworkError, match=r"factor 1 has 64 variables \(limit 63\)"):
        graph.add_factor(graph.variables, [])


def test_pgmpy_has_the_same_partition_function_and_marginals():
    models = pytest.importorskip("pgmpy.models")
    from pgmpy.factors.discrete import DiscreteFactor

    graph = grid(0)
    peer = models.DiscreteMarkovNetwork([f.variables for f in graph.factors])
    peer.add_factors(*(DiscreteFactor(list(f.variables), f.table.shape, f.table.ravel()) for f in graph.factors))
    tac = tacit.compile(graph, "x00", engine="numpy")
    close(tac.log_evidence(), [math.log(peer.get_partition_function())])
    total = math.prod(peer.factors[1:], start=peer.factors[0])
    for name in graph:
        others = [other for other in graph if other != name]
        close(tac.marginals()[name][0], total.marginalize(others, inplace=False).normalize(inplace=False).values)


def grid(seed, side=3):
    """Binary variables in a square, each with a factor for it and its neighbours to the right and below."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph("grid")
    for i in range(side):
        for j in range(side):
            graph.add(f"x{i}{j}", 2)
    for i in range(side):
        for j in range(side):
            for other in ([f"x{i}{j + 1}"] if j + 1 < side else []) + ([f"x{i + 1}{j}"] if i + 1 < side else []):
                graph.add_factor([f"x{i}{j}", other], rng.gamma(1, size=(2, 2)))
    return graph


def test_clones_keep_the_scale_and_what_is_hidden():
    graph = random_graph(3, zeros=0.0)
    tac = tacit.compile(graph, "v0", ["v1"])
    for clone in (
        tac.in_dtype("float64"),
        tac.with_network(tac.network, engine="numpy"),
        pickle.loads(pickle.dumps(tac)),
    ):
        assert clone.variables == tac.variables == graph.variables
        close(clone.log_evidence(), math.log(product(graph).sum()))
        close(clone.joint(), tac.joint())


def test_what_needs_cpts_is_refused():
    graph = FactorGraph()
    graph.add("A")
    graph.add("B")
    graph.add_factor(["A", "B"], [[10.0, 20.0], [30.0, 40.0]])
    asked = tacit.compile(graph, "A", ["B"])
    assert not any(hasattr(asked, name) for name in ("circuit", "jointree", "selected", "explain"))
    for refused in (tacit.theory.pieces, lambda query: tacit.theory.bounds(query, {"B": (0, 1)})):
        with pytest.raises(TacitError, match="a query of a FactorGraph, which has no CPTs; expected"):
            refused(asked)
    with pytest.raises(TacitError, match="a TACModule needs a query of a Network, got a FactorQuery"):
        tacit.torch.TACModule(asked)
