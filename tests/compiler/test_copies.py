"""Known functions in copies: against the definition, on networks where many nodes are functions of their parents."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Network, TestingCPT
from tacit import semantics as definition
from tacit.compiler import copies, strategy
from tacit.compiler.order.tree import Problem
from tests.helpers import always_hard, close, decided, impossible, one_row, posterior, selected, tries
from tests.strategies import evidence, rngs

pytestmark = impossible
ROWS = 3
AB = ("A", "B")
MIN_SAVING = copies.MIN_SAVING


class Eager(copies._QuickElimination):
    """Copies for no reason: most functions go first, and every second factor shares the copy of the one before."""

    def _cost(self, v):
        return (v % 4 > 0 and v in self._definition) or 2 + 7 * v % 5

    def _joined(self, groups, v):
        single = [number for group in groups for number in group]
        return [single[:2], *([number] for number in single[2:])] if v % 2 else [[number] for number in single]


@pytest.fixture(autouse=True, scope="module")
def everything_is_copied():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "MIN_SAVING", 0)
        patch.setattr(copies, "_QuickElimination", Eager)
        yield


@contextmanager
def as_ever():
    """Copies only where they save much."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "MIN_SAVING", MIN_SAVING)
        patch.setattr(copies, "_QuickElimination", Eager.__base__)
        yield


@st.composite
def with_functions(draw):
    """A query of a network in which most nodes are functions, and some are testing."""
    rng = draw(rngs)
    net = Network()
    for i in range(draw(st.integers(5, 9))):
        parents = [f"X{j}" for j in rng.permutation(i)[: rng.integers(1, 3)]] if i > 1 else []
        shape, card = [net.variable(name).card for name in parents], int(rng.integers(2, 4))
        kind = rng.choice(["function", "table", "testing"], p=[0.6, 0.3, 0.1]) if parents else "table"
        tables = rng.dirichlet(np.ones(card), (2, *shape))
        cpts = {"function": np.eye(card)[rng.integers(card, size=shape)], "table": tables[0]}
        cpts["testing"] = TestingCPT(*tables, rng.random(shape)) if parents else None
        net.add(f"X{i}", parents, card, cpts[kind])
    columns = draw(evidence(net, rows=ROWS))
    certain = always_hard(net, columns)
    hard = draw(st.lists(st.sampled_from(certain), unique=True, max_size=1)) if certain else []
    return net, draw(st.sampled_from(net.variables)), columns, hard


@tries(60)
@given(case=with_functions(), engine=st.sampled_from(["numpy", "numpy", "tape", "torch"]), diagrams=st.booleans())
def test_answers(case, engine, diagrams):
    net, query, columns, hard = case
    rows = decided(net, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "CLEARLY_CHEAPER", np.inf)
        patch.setattr(strategy, "KNOWN_SHARE", -1.0 if diagrams else 2.0)
        patch.setattr(strategy, "MIN_WORK", 0)
        patch.setattr(strategy, "WEIGHT_OF_NUMBERS", 0)
        tac = tacit.compile(net, query, [name for name in columns if name not in hard], hard, engine=engine)
        close(tac.joint(columns)[rows], definition.joint(net, query, columns)[rows])
        close(posterior(tac, columns)[rows], definition.posterior(net, query, columns)[rows])
        for name, found in tac.marginals(columns).items():
            close(found[rows], definition.posterior(net, name, columns)[rows])
        how = selected(tac, columns)
        for i in rows:
            for name, node in definition.select(net, one_row(columns, i)).nodes.items():
                if name in how and not np.isnan(node.posterior).any():
                    close(how[name].posterior[i], node.posterior)


@tries(20)
@given(case=with_functions())
def test_what_needs_every_variable_once_gets_it(case):
    """Most probable states, and derivatives by the entries of the functions themselves."""
    net, query, columns, _ = case
    tac = tacit.compile(net, query, list(columns))
    best, largest = tac.mpe(columns), definition.most_probable(net, net.variables, columns)
    for i in decided(net, columns):
        close(np.exp(best.log_probability[i]), largest[i])


def bow(children=6, learn=False):
    """A function of two parents, a function of that, and many children of both that are observed."""
    rng = np.random.default_rng(0)
    net = Network()
    net.add("A", states=3, cpt=CPT([0.2, 0.3, 0.5], learn=learn))
    net.add("B", ["A"], 3, CPT(rng.dirichlet(np.ones(3), 3), learn=learn))
    net.add("F", ["A", "B"], 4, CPT.from_function(lambda a, b: (a + 2 * b) % 4))
    net.add("G", ["F"], 2, CPT(np.eye(2)[[0, 1, 1, 0]]))
    for i in range(children):
        net.add(f"C{i}", ["FG"[i % 2]], cpt=CPT(rng.dirichlet(np.ones(2), 4 if i % 2 == 0 else 2), learn=learn))
    return net


def rows_of(net, count=20):
    drawn = net.sample(count, seed=1)
    return {name: drawn[name] for name in net if name.startswith("C")}


def test_functions_are_copied_and_stay():
    net = bow()
    tac = tacit.compile(net, AB, list(rows_of(net)))
    assert set(tac.program.fixed) == {"F", "G"}
    close(tac.posterior(rows_of(net)), definition.posterior(net, AB, rows_of(net)))
    other = net.with_cpts({"G": CPT(np.eye(2)[[1, 1, 0, 0]]), "C0": CPT([[0.1, 0.9]] * 4)})
    tac.set_parameters(other)
    close(tac.posterior(rows_of(net)), definition.posterior(other, AB, rows_of(net)))
    blurred = net.with_cpts({"G": CPT([[0.3, 0.7], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])})
    tac.set_parameters(blurred)
    close(tac.posterior(rows_of(net)), definition.posterior(blurred, AB, rows_of(net)))
    assert "G" not in tac.program.fixed


def test_a_function_that_is_to_be_learned_is_not_copied():
    net = bow()
    learned = net.with_cpts({"G": CPT(np.eye(2)[[0, 1, 1, 0]], learn=True)})
    assert "G" not in tacit.compile(learned, AB, list(rows_of(net))).program.fixed


def test_sensitivity_is_that_of_the_network():
    """By the entries of a function, too, of which a program with copies has several."""
    net, rows, step = bow(), rows_of(bow(), 2), 1e-7
    tac = tacit.compile(net, "A", list(rows))
    assert "G" in tac.program.fixed
    table = np.array(net.table("G"))
    table[1] = [step, 1 - step]
    moved, before = (definition.posterior(n, "A", rows) for n in (net.with_cpts({"G": CPT(table)}), net))
    close(tac.sensitivity(rows).derivatives["G", "table"][:, :, 1, 0], (moved - before) / step, 1e-5)


def test_counts_and_gradients_are_the_same():
    net = bow(learn=True)
    rows = rows_of(net, 60)
    copied = tacit.estimate(net, rows, steps=5, progress=False).network
    tac = tacit.compile(net, "A", list(rows))
    assert tac.program.fixed
    labels = net.sample(60, seed=1)["A"]
    fitted = tacit.fit(tac, rows, labels, loss="cross_entropy", steps=5, restarts=1, progress=False).network
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "can_copy", lambda *_: False)
        plain = tacit.estimate(net, rows, steps=5, progress=False).network
        tac = tacit.compile(net, "A", list(rows))
        assert not tac.program.fixed
        expected = tacit.fit(tac, rows, labels, loss="cross_entropy", steps=5, restarts=1, progress=False).network
    for name in net:
        close(copied.table(name), plain.table(name), 1e-9)
        close(fitted.table(name), expected.table(name), 1e-6)


def grid(n):
    """Pixels of a rectangle: each depends on its row and its column, which are functions of where they begin."""
    net = Network()
    for side in ("row", "column"):
        net.add(side, states=n, cpt=CPT(np.full(n, 1 / n), learn=True))
        for i in range(n):
            net.add(f"{side} {i}", [side], cpt=CPT(np.eye(2)[(np.arange(n) > i).astype(int)]))
    for i in range(n):
        for j in range(n):
            table = CPT([[[0.9, 0.1], [0.2, 0.8]], [[0.2, 0.8], [0.1, 0.9]]], learn=True, tie="pixel")
            net.add(f"{i},{j}", [f"row {i}", f"column {j}"], cpt=table)
    return net


def test_copies_bring_a_wide_network_down_to_the_width_of_the_arguments():
    """16 rows and 16 columns, which all depend on each other: tables of 2^16 entries and more without copies."""
    net = grid(16)
    pixels = [f"{i},{j}" for i in range(16) for j in range(16)]
    with as_ever():
        tac = tacit.compile(net, "row", hard=pixels)
    assert tac.cost().multiply_adds < 20_000
    assert tac.program.fixed


def test_the_number_of_copies_is_bounded(monkeypatch):
    """Functions in a row, each used twice: every one doubles the copies of those above."""
    n = 12
    axes = list(range(n + 1))
    masks = [1] + [0b11 << i for i in axes[:-1]] + [1 << i for i in axes[1:]]
    functions = {i + 1: i + 1 for i in range(n)}
    problem = Problem(masks, [True] * len(masks), [str(i) for i in axes], [3] * len(axes), keep=1)
    found = copies._QuickElimination(problem, functions)
    found.run()
    assert found.copied
    monkeypatch.setattr(copies, "MAX_LEAVES", len(masks) + 3)
    few = copies._QuickElimination(problem, functions)
    few.run()
    assert len(few.leaves) <= len(masks) + 3
