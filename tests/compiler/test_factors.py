"""CPTs as small factors: their product is the dense table, and large rules stay small."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Mux, Network, NoisyOr, TestingCPT, semantics
from tacit.compiler.factors import AxisNames, automaton, likelihood_factors, node_factors, readings
from tacit.compiler.operations import ONE, ZERO, Select
from tacit.compiler.prune import Pruned, possible_states, prune
from tacit.compiler.question import Question
from tests.helpers import ENGINES, close
from tests.strategies import networks

engines = pytest.mark.parametrize("engine", ENGINES)


def numbers(net, factor):
    """The numbers that a factor stands for."""
    index = factor.index
    taken = np.where(index == ONE, 1.0, 0.0)
    if factor.source is not None:
        flat = net.cpt(factor.source.node).parts()[factor.source.part].ravel()
        taken = np.where(index >= 0, flat[np.maximum(index, 0)], taken)
    assert ((index >= 0) | (index == ZERO) | (index == ONE)).all()
    return taken


def product(net, factors, keep):
    """All factors multiplied, summed down to the axes in `keep`, two at a time."""
    names = list(dict.fromkeys([*keep, *(a for f in factors for a in f.axes)]))
    place = {a: i for i, a in enumerate(names)}
    whole, axes = np.ones(()), []
    for i, factor in enumerate(factors):
        later = {a for f in factors[i + 1 :] for a in f.axes}
        union = list(dict.fromkeys([*axes, *factor.axes]))
        out = [a for a in union if a in later or a in keep]
        own, other = [place[a] for a in axes], [place[a] for a in factor.axes]
        whole, axes = np.einsum(whole, own, numbers(net, factor), other, [place[a] for a in out]), out
    return whole.transpose([axes.index(a) for a in keep])


def run(steps, last, arguments):
    state = None
    for step, argument in zip(steps, arguments, strict=False):
        state = step[argument] if state is None else step[state, argument]
    return last[arguments[-1]] if state is None else last[state, arguments[-1]]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2, 2), (3, 1, 2, 4)])
def test_an_automaton_computes_its_function(shape):
    codes = np.random.default_rng(0).integers(0, 3, shape)
    steps, last = automaton(codes)
    assert len(steps) == len(shape) - 1
    for arguments in itertools.product(*map(range, shape)):
        assert run(steps, last, arguments) == codes[arguments]


def test_automata_are_minimal():
    bits = np.indices((2,) * 8)
    steps, last = automaton(bits.sum(axis=0) % 2)
    assert [int(s.max()) + 1 for s in steps] == [2] * 7
    assert last.shape == (2, 2)
    steps, last = automaton(bits.sum(axis=0))
    assert [int(s.max()) + 1 for s in steps] == list(range(2, 9))
    steps, _ = automaton(np.zeros((2,) * 8, dtype=int))
    assert [int(s.max()) + 1 for s in steps] == [1] * 7


@given(networks(testing=False))
def test_the_product_of_a_nodes_factors_is_its_table(net):
    for name in net:
        factors = node_factors(net, name, {}, AxisNames(net))
        close(product(net, factors, (*net.parents(name), name)), net.table(name))


def counting(count):
    """The number of parents in their first state, as a rule of `count` binary parents."""
    net = Network()
    for i in range(count):
        net.add(f"X{i}", cpt=[0.25 + 0.5 * i / count, 0.75 - 0.5 * i / count])
    rule = CPT.from_function(lambda *labels: sum(label == "true" for label in labels))
    net.add("Y", [f"X{i}" for i in range(count)], states=count + 1, cpt=rule)
    return net


def test_a_large_function_becomes_an_automaton():
    net = counting(9)
    factors = node_factors(net, "Y", {}, AxisNames(net))
    assert len(factors) == 9
    assert sum(f.index.size for f in factors) < 1200
    close(product(net, factors, (*net.parents("Y"), "Y")), net.table("Y"))


def test_a_function_without_structure_stays_a_table():
    rng = np.random.default_rng(0)
    net = Network()
    for i in range(12):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    net.add("Y", [f"X{i}" for i in range(12)], cpt=CPT.from_function(lambda *_: str(rng.choice(["true", "false"]))))
    (factor,) = node_factors(net, "Y", {}, AxisNames(net))
    assert factor.axes == (*net.parents("Y"), "Y")


def multiplexed(count, states=2, seed=0, selector_parents=()):
    rng = np.random.default_rng(seed)
    labels = None if states == 2 else states
    net = Network()
    for parent in selector_parents:
        net.add(parent, cpt=rng.dirichlet(np.ones(2)))
    net.add("I", selector_parents, count, rng.dirichlet(np.ones(count), (2,) * len(selector_parents)))
    for i in range(count):
        net.add(f"X{i}", states=labels, cpt=rng.dirichlet(np.ones(states)))
    net.add("Y", states=labels, cpt=Mux("I", [f"X{i}" for i in range(count)]))
    return net


@pytest.mark.parametrize(("count", "parents"), [(3, ()), (5, ()), (4, ("P", "R"))])
def test_a_selector_read_state_by_state_has_the_same_product(count, parents):
    net = multiplexed(count, states=3, selector_parents=parents)
    names = AxisNames(net)
    found = readings(net, prune(net, Question(("Y",))), Question(("Y",)), names)
    assert list(found) == ["I"]
    factors = [f for n in ("I", "Y") for f in node_factors(net, n, found, names)]
    keep = (*parents, *(f"X{i}" for i in range(count)), "Y")
    expected = np.einsum("ui,i...->u...", net.table("I").reshape(-1, count), net.table("Y"))
    close(product(net, factors, keep), expected.reshape(*(2,) * len(parents), *expected.shape[1:]))
    weighted = [*factors, *likelihood_factors(net, "I", found)]
    assert len(weighted) == len(factors) + count


@pytest.mark.parametrize("reason", ["query", "hard", "two states", "another child", "testing"])
def test_a_selector_whose_axis_is_needed_is_not_read(reason):
    net = multiplexed(2 if reason == "two states" else 3, selector_parents=("P",))
    if reason == "another child":
        net.add("Z", ["I"], cpt=np.full((3, 2), 0.5))
    if reason == "testing":
        table = net.table("I")
        net = net.with_cpts({"I": TestingCPT(table, table, [0.5, 0.5])})
    hard = ("I",) if reason == "hard" else ()
    question = Question(("I" if reason == "query" else "Y",), hard, hard)
    assert readings(net, Pruned(net.variables, possible_states(net, net.variables)), question, AxisNames(net)) == {}


def test_axis_names_are_given_out_once():
    net = Network()
    for name in ("X", "X'"):
        net.add(name, cpt=[0.5, 0.5])
    names = AxisNames(net)
    assert [names.fresh(t) for t in ("X'", "X''", "X'", "Y")] == ["X''", "X'''", "X''''", "Y"]


def test_operators_are_structure():
    """They are on the selection, over the possible states of the parents, and no table that could be learned."""
    table = np.full((4, 2), 0.5)
    cpt = TestingCPT(table, table, [0.1, 0.2, 0.3, 0.4], [">=", ">", "<=", "<"])
    assert list(cpt.parts()) == ["plus", "minus", "thresholds"]
    net = Network()
    net.add("A", states=4, cpt=[0.5, 0.25, 0.0, 0.25])
    net.add("T", ["A"], cpt=cpt)
    (soft,) = (op for op in tacit.compile(net, "T", ["A"]).program if isinstance(op, Select))
    assert (soft.tests.tolist(), soft.observed) == ([0, 1, 3], ())  # the third state is impossible
    (hard,) = (op for op in tacit.compile(net, "T", hard=["A"]).program if isinstance(op, Select))
    assert (hard.tests.tolist(), hard.observed) == ([0, 1, 2, 3], ("A",))


def test_a_noisy_or_becomes_one_step_for_every_cause():
    steps = NoisyOr([[0.5, 0.0], [0.25, 0.75]], leak=0.1).parts()
    assert list(steps) == ["cause 0", "cause 1"]
    close(steps["cause 0"], [[0.1 + 0.9 * 0.5, 0.9 * 0.5], [0.1, 0.9]])
    close(steps["cause 1"], [[[1, 0], [0.25, 0.75]], [[1, 0], [0.75, 0.25]]])
    close(NoisyOr([], leak=0.1).parts()["cause 0"], [0.1, 0.9])


@pytest.mark.parametrize(("parents", "automaton_used"), [(11, False), (12, True)])
def test_a_function_becomes_an_automaton_beyond_a_small_table(parents, automaton_used):
    """2^11 states of the parents and two of the child are the largest table that stays one."""
    net = Network()
    for i in range(parents):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    rule = CPT.from_function(lambda *labels: [0.9, 0.1] if labels.count("true") % 2 else [0.2, 0.8])
    net.add("Y", [f"X{i}" for i in range(parents)], cpt=rule)
    factors = node_factors(net, "Y", {}, AxisNames(net))
    assert (len(factors) == parents) == automaton_used
    assert (len(factors) == 1) == (not automaton_used)


def agrees(net, query, columns, engine, hard=()):
    tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
    expected = semantics.joint(net, query, columns)
    close(tac.joint(columns), expected)
    for fold in (True, False):
        close(tac.circuit(fold).evaluate(columns), expected)


@engines
def test_selectors_with_evidence_parents_or_as_the_query(engine):
    net = multiplexed(4, states=3, selector_parents=("P",))
    rng = np.random.default_rng(1)
    soft, other = rng.random((2, 4)), rng.random((2, 3))
    for query in ("I", "Y", "X1", "P"):
        agrees(net, query, {"Y": other}, engine)
        agrees(net, query, {"I": soft, "X1": other}, engine)
        agrees(net, query, {"I": soft, "Y": other, "P": [0.2, 0.9]}, engine)
        agrees(net, query, {"I": [0, 3], "Y": [1, 2]}, engine)
        if query != "I":
            agrees(net, query, {"I": [0, 3], "Y": [1, 2]}, engine, hard=["I"])
        agrees(net, query, {"I": soft, "Y": [1, 2]}, engine, hard=["Y"] if query != "Y" else [])


@engines
@pytest.mark.parametrize("count", [1, 2, 3])
def test_multiplexers_of_few_inputs(engine, count):
    net = multiplexed(count)
    for query in net:
        agrees(net, query, {"Y": [0.3, 0.8], "X0": [0.5, 0.1]}, engine)
        agrees(net, query, {"Y": [0.3], "I": np.full((1, count), 1.0)}, engine)


@engines
def test_two_multiplexers_may_share_a_selector(engine):
    net = multiplexed(3)
    net.add("W", cpt=Mux("I", ["X2", "X0", "X1"]))
    net.add("T", ["Y"], cpt=TestingCPT([[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.4, 0.6]], [0.45, 0.5]))
    net.add("Z", ["T", "W"], cpt=np.random.default_rng(0).dirichlet(np.ones(2), (2, 2)))
    for query in net:
        agrees(net, query, {"Y": [0.3, 0.8], "W": [0.6, 0.1]}, engine)
        agrees(net, query, {"W": ["true"], "I": [[0.2, 0.3, 0.5]], "Z": [0.4]}, engine)


@engines
def test_a_selector_with_impossible_states(engine):
    net = multiplexed(4).with_cpts({"I": [0.5, 0.0, 0.5, 0.0]})
    for query in net:
        agrees(net, query, {"Y": [0.3, 0.8]}, engine)


def step_function(n):
    """Theorem 1 for f(x) = x^2: n tests of x, of which the selector picks one."""
    net = Network()
    net.add("Z", cpt=[0.5, 0.5])
    net.add("I", states=n, cpt=np.full(n, 1 / n))
    for i in range(1, n + 1):
        level = np.sqrt(i / n)
        test = TestingCPT([[1, 0], [0, 1]], [[0, 1], [1, 0]], [level, 1 - level], [">=", ">"])
        net.add(f"Y{i}", ["Z"], cpt=test)
    net.add("Y", cpt=Mux("I", [f"Y{i}" for i in range(1, n + 1)]))
    return net


@engines
def test_theorem_1_with_a_hundred_tests(engine):
    n = 100
    tac = tacit.compile(step_function(n), "Y", ["Z"], engine=engine)
    x = np.random.default_rng(0).random(500)
    x = x[np.abs(n * x**2 - np.round(n * x**2)) > 1e-6]
    close(tac.posterior({"Z": x})[:, 0], np.floor(n * x**2) / n)
    close(tac.circuit(fold=False).evaluate({"Z": x[:20]}).sum(axis=1), 0.5)  # each state of Z weighs a half
    assert len({s.marginal for s in tac.program.selections.values()}) == 1


@pytest.mark.parametrize("fold", [True, False])
def test_theorem_1_is_linear_in_the_number_of_tests(fold):
    small, large = (tacit.compile(step_function(n), "Y", ["Z"]) for n in (50, 100))
    assert len(large.program) <= 2.2 * len(small.program)
    assert len(large.circuit(fold)) <= 2.2 * len(small.circuit(fold))
    assert large.cost().multiply_adds <= 2.5 * small.cost().multiply_adds


@engines
def test_a_noisy_or_of_two_hundred_causes_has_its_closed_form(engine):
    rng = np.random.default_rng(0)
    count, leak = 200, 0.05
    prior, causes = rng.random(count), [rng.random(3) / 20 for _ in range(count)]
    net = Network()
    for i in range(count):
        net.add(f"X{i}", states=3, cpt=[prior[i] / 2, prior[i] / 2, 1 - prior[i]])
    net.add("Y", [f"X{i}" for i in range(count)], cpt=NoisyOr(causes, leak))
    names = [f"X{i}" for i in range(count)]
    likelihoods = rng.random((4, count, 3))
    likelihoods /= likelihoods.sum(axis=2, keepdims=True)
    tac = tacit.compile(net, "Y", names, engine=engine)
    tables = np.stack([net.table(n) for n in names])
    weighed = likelihoods * tables  # (rows, causes, states)
    absent = (1 - leak) * ((1 - np.stack(causes)) * weighed).sum(axis=2).prod(axis=1) / weighed.sum(axis=2).prod(axis=1)
    found = tac.posterior({n: likelihoods[:, i] for i, n in enumerate(names)})
    close(found, np.stack([1 - absent, absent], axis=1))
    assert tac.cost().width <= 3


@engines
def test_the_number_of_true_parents_is_a_poisson_binomial(engine):
    count = 14
    net = counting(count)
    tac = tacit.compile(net, "Y", [f"X{i}" for i in range(count)], engine=engine)
    x = np.random.default_rng(0).random((5, count))
    prior = np.stack([net.table(f"X{i}") for i in range(count)])[:, 0]
    p = x * prior / (x * prior + (1 - x) * (1 - prior))
    expected = np.ones((5, 1))
    for i in range(count):
        expected = np.pad(expected, ((0, 0), (0, 1))) * (1 - p[:, [i]]) + np.pad(expected, ((0, 0), (1, 0))) * p[:, [i]]
    close(tac.posterior(x), expected)
    assert tac.cost().width <= 6


@engines
def test_the_parity_of_fourteen_parents(engine):
    count = 14
    net = Network()
    for i in range(count):
        net.add(f"X{i}", cpt=[0.1 + i / 20, 0.9 - i / 20])
    odd = CPT.from_function(lambda *labels: [0.9, 0.1] if labels.count("true") % 2 else [0.2, 0.8])
    net.add("Y", [f"X{i}" for i in range(count)], cpt=odd)
    tac = tacit.compile(net, "X3", ["Y"], engine=engine)
    p = np.array([net.table(f"X{i}")[0] for i in range(count)])
    others = (1 - np.prod(1 - 2 * np.delete(p, 3))) / 2  # probability that an odd number of the others is true
    given_true, given_false = 0.2 * others + 0.9 * (1 - others), 0.9 * others + 0.2 * (1 - others)
    joint = np.array([p[3] * given_true, (1 - p[3]) * given_false])
    close(tac.joint({"Y": "true"}), [joint])
    assert tac.cost().width <= 3


@engines
@given(net=networks(testing=False, max_nodes=5), data=st.data())
def test_rules_compile_to_what_their_dense_tables_compile_to(engine, net, data):
    dense = net.with_cpts({n: net.table(n) for n in net})
    query = data.draw(st.sampled_from(net.variables))
    columns = {n: np.linspace(0.1, 1, 2 * len(net.states(n))).reshape(2, -1) for n in net.variables[-2:]}
    found = [tacit.compile(n, query, list(columns), engine=engine).joint(columns) for n in (net, dense)]
    close(*found)
