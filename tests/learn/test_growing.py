"""Links that copy, chains that grow inside `fit`, and `grow`: more tests, the same function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, TacitError, TestingCPT, examples, semantics
from tacit.learn import Parameters, grow
from tacit.learn.fitting import links
from tests.helpers import tries

RNG = np.random.default_rng(0)
X = RNG.random((60, 2))
Y = 0.5 + 0.4 * np.sin(6 * X[:, 0])
FEW = {"steps": 6, "restarts": 4, "progress": False}


def filled(net, seed=0):
    parameters = Parameters(net, net.variables)
    return parameters.fill(parameters.start(np.random.default_rng(seed)))


def chain(tests, states=2, tie=None, gamma=16.0):
    """E -> T1 -> ... -> Tn -> Q, with tests of several states, and links that may be tied."""
    net = Network()
    net.add("E")
    for i in range(1, tests + 1):
        unset = np.full((2 if i == 1 else states, states), np.nan)
        own = tie if i > 1 else None
        cpt = TestingCPT(unset, unset, unset[:, 0], gamma=gamma, tie=own)
        net.add(f"T{i}", [f"T{i - 1}" if i > 1 else "E"], states, cpt)
    net.add("Q", [f"T{tests}"], ["lo", "mid", "hi"])
    return net


def partly_known(states):
    """A link of which the first row is known."""
    table = np.full((states, states), np.nan)
    table[0] = np.arange(1, states + 1) / np.arange(1, states + 1).sum()
    return TestingCPT(table, table, np.full(states, 0.5), gamma=16.0)


def wide(tests):
    """Three causes of which the first is new in larger networks: the order of parents is not that of time."""
    net = Network()
    net.add("E")
    for i in range(1, tests + 1):
        net.add(f"T{i}", ["E"], testing=True, gamma=16.0)
    net.add("Q", [f"T{i}" for i in range(tests, 0, -1)])
    return net


# links ----------------------------------------------------------------------------------------------------


def test_a_copy_is_the_nearest_state():
    assert links.copy_of((3, 3), 0).tolist() == np.eye(3).tolist()
    assert links.copy_of((3, 2), 0).argmax(axis=-1).tolist() == [0, 0, 1]
    assert links.copy_of((1, 3), 0).argmax(axis=-1).tolist() == [0]
    assert links.copy_of((2, 3, 3), 1).argmax(axis=-1).tolist() == [[0, 1, 2]] * 2
    assert links.copy_of((2, 3, 2), 0).argmax(axis=-1).tolist() == [[0] * 3, [1] * 3]


def test_links_hang_below_one_test():
    net = examples.chain(3)
    assert [links.axis_of(net, name) for name in ("E1", "T1", "T2", "T3", "Q")] == [None, None, 0, 0, None]
    assert links.depths(net, net.variables) == {"T1": 1, "T2": 2, "T3": 3}
    net.add("A", ["E1", "T3"], testing=True)
    net.add("B", ["T2", "T3"], testing=True)
    assert links.axis_of(net, "A") == 1
    assert links.axis_of(net, "B") is None
    assert links.depths(net, net.variables)["B"] == 4


def test_only_links_without_numbers_are_shortened():
    net = chain(6)
    known = TestingCPT([[0.9, 0.1], [np.nan, np.nan]], [[0.2, 0.8], [0.3, 0.7]], [0.5, 0.5])
    net = net.with_cpts({"T5": known})
    assert list(links.deeper(net, net.variables, 3)) == ["T4", "T6"]
    assert not links.deeper(chain(6, tie="link"), net.variables, 3)
    short = links.shortened(net, net.variables, 3)
    assert short.cpt("T5") == known
    assert short.cpt("T4").plus.tolist() == short.cpt("T4").minus.tolist() == np.eye(2).tolist()
    assert short.cpt("T4").gamma == 16.0


@pytest.mark.parametrize("states", [2, 3])
def test_links_of_a_start_lean_towards_copies(states):
    net = chain(3, states).with_cpts({"T2": partly_known(states)})
    parameters = Parameters(net, net.variables)
    for seed in range(5):
        found = parameters.fill(parameters.start(np.random.default_rng(seed), copies=0.75))
        plain = parameters.fill(parameters.start(np.random.default_rng(seed)))
        for part in ("plus", "minus"):
            own, drawn = getattr(found.cpt("T3"), part), getattr(plain.cpt("T3"), part)
            np.testing.assert_allclose(own, 0.25 * drawn + 0.75 * np.eye(states), atol=1e-12)
        assert found.cpt("T3").thresholds == pytest.approx(plain.cpt("T3").thresholds)
        assert found.cpt("T1").plus == pytest.approx(plain.cpt("T1").plus)  # no link
        assert found.table("Q") == pytest.approx(plain.table("Q"))
        assert found.cpt("T2").plus[0].tolist() == net.cpt("T2").plus[0].tolist()  # given
        assert found.cpt("T2").plus[1:].sum(axis=-1) == pytest.approx(1)


def test_an_exact_copy_is_within_the_limits_of_weights():
    parameters = Parameters(chain(2, 3), ["T2"])
    table = parameters.fill(parameters.start(np.random.default_rng(0), copies=1.0)).cpt("T2").plus
    np.testing.assert_allclose(table, np.eye(3), atol=1e-9)


# fit ------------------------------------------------------------------------------------------------------


def compiled(tests, **more):
    return tacit.compile(examples.chain(tests), "Q", ["E1", "E2"], **more)


def test_a_deep_chain_grows_and_is_no_worse_than_a_short_one():
    losses = [tacit.fit(compiled(tests), X, Y, **FEW).loss for tests in (4, 8, 9)]
    assert losses == sorted(losses, reverse=True)
    found = tacit.fit(compiled(9), X, Y, **FEW)
    assert {record.stage for record in found.history} == {0, 1, 2}
    assert found.loss == losses[-1]


def test_without_a_gain_the_short_chain_stays():
    """One step from loose copies gains nothing, so the new links are exact copies."""
    short, long = (tacit.fit(compiled(tests), X, Y, optimizer="adam", steps=1, restarts=1, rate=1e-9, progress=False)
                   for tests in (4, 8))  # fmt: skip
    assert long.loss <= short.loss * (1 + 1e-9)
    if long.network.cpt("T8").plus[0, 0] > 0.999:
        np.testing.assert_allclose(long.tac.posterior(X), short.tac.posterior(X), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"optimizer": "lbfgs", "prior": 0.1},
        {"optimizer": "adam", "batch": 20},
        {"validation": 0.3},
        {"validation": (X[:10], Y[:10]), "gamma": "learn"},
        {"weights": np.arange(60.0), "loss": "cross_entropy"},
        {"harden": True},
        {"restarts": 1},
    ],
    ids=str,
)
def test_growing_goes_with_all_the_rest(how):
    found = tacit.fit(compiled(6), X, Y, **FEW | how)
    assert np.isfinite(found.loss)
    assert found.tac.posterior(X).shape == (60, 2)
    again = tacit.fit(compiled(6), X, Y, **FEW | how)
    assert again.network == found.network


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5])
def test_a_growing_chain_that_was_cut_off_goes_on_to_the_same_bits(tmp_path, stop):
    straight = tacit.fit(compiled(6), X, Y, **FEW)
    rounds = []

    def cut_off(run):
        rounds.append(run.stage)
        return len(rounds) == stop

    cut = tacit.fit(compiled(6), X, Y, **FEW, checkpoint=tmp_path / "run.npz", callbacks=[cut_off])
    assert np.isfinite(cut.loss)
    resumed = tacit.fit(compiled(6), X, Y, **FEW, checkpoint=tmp_path / "run.npz")
    assert resumed.network == straight.network
    assert resumed.history == straight.history
    assert len(cut.history) < len(straight.history)


def test_links_that_cannot_grow_start_as_loose_copies_in_turns():
    net = chain(6, tie="link")
    tac = tacit.compile(net, "Q", ["E"])
    found = tacit.fit(tac, {"E": X[:, 0]}, np.stack([Y / 2, Y / 2, 1 - Y], axis=1), **FEW)
    assert {record.stage for record in found.history} == {0}
    assert found.network.cpt("T2") == found.network.cpt("T6")


# grow -----------------------------------------------------------------------------------------------------

PAIRS = {
    "chain": (lambda: examples.chain(2), lambda: examples.chain(4)),
    "layer": (lambda: examples.layer(2), lambda: examples.layer(3)),
    "split layer": (lambda: examples.split_layer(2), lambda: examples.split_layer(4)),
    "three states": (lambda: chain(1, 3), lambda: chain(3, 3)),
    "other order": (lambda: wide(2), lambda: wide(4)),
}


@tries(15)
@given(st.sampled_from(sorted(PAIRS)), st.integers(0, 1000), st.sampled_from([16.0, None]))
def test_growing_does_not_change_the_function(pair, seed, gamma):
    small, large = (make().with_gamma(gamma) for make in PAIRS[pair])
    small = filled(small, seed)
    rows = {name: X[:5, i] for i, name in enumerate(n for n in small.variables if n.startswith("E"))}
    exact, near = (filled(grow(small, large, error), seed) for error in (0.0, 1e-6))
    expected = semantics.posterior(small, "Q", rows)
    np.testing.assert_allclose(semantics.posterior(exact, "Q", rows), expected, atol=1e-13)
    np.testing.assert_allclose(semantics.posterior(near, "Q", rows), expected, atol=1e-4 if gamma else 1.0)
    start = grow(small, large)
    assert Parameters(start, start.variables).count == Parameters(large, large.variables).count  # nothing is frozen


def test_growing_needs_networks_of_the_same_kind():
    small, net = filled(examples.chain(2)), examples.chain(2)
    with pytest.raises(TacitError, match="small is a str, expected a Network"):
        grow("net", net)
    with pytest.raises(TacitError, match="error is 1, expected a share"):
        grow(small, examples.chain(4), error=1.0)
    with pytest.raises(TacitError, match="node 'E1' of the small network has unset numbers"):
        grow(net, examples.chain(4))
    with pytest.raises(TacitError, match="node 'T2' of the small network has no place in the large one"):
        grow(small, examples.chain(1))
    with pytest.raises(
        TacitError, match="node 'E1' of the small network has no place in the large one; expected a reg"
    ):
        grow(small, chain(2))
    other = Network()
    for name, parents in (("E1", []), ("E2", []), ("T1", ["E1", "E2"]), ("T2", ["T1"]), ("Q", ["T1"])):
        other.add(name, parents, testing=name.startswith("T"))
    with pytest.raises(TacitError, match=r"node 'Q' of the large network hangs below \['T1'\], expected also 'T2'"):
        grow(small, other)
