"""The paper's networks have the paper's shapes (counts of diamond and layer: test_conformance.py).

Kidney stones have the published rates: test_do.py.
"""

import itertools

import numpy as np
import pytest
from bench.networks import network

from tacit import Network, examples, semantics


def test_only_the_examples_are_listed():
    assert dir(examples) == sorted(examples.__all__)
    assert all(isinstance(getattr(examples, name)(), Network) for name in dir(examples))


@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_shipped_networks_are_those_of_the_repository(name):
    assert getattr(examples, name)() == network(name)


def test_abc_has_the_parameters_of_the_appendix():
    counts, classical = examples.abc().counts(), examples.abc(testing=False).counts()
    assert (counts.static, counts.dynamic, counts.thresholds) == (6, 8, 2)
    assert (classical.static, classical.dynamic, classical.testing_nodes) == (10, 0, 0)


@pytest.mark.parametrize("threshold", [0.15, 0.5, 0.9])  # away from ties
def test_the_noisy_or_classifier_answers_0_or_1_by_the_posterior_of_h(threshold):
    net = examples.noisy_or_classifier(threshold)
    values = np.array(list(itertools.product([0.0, 0.3, 1.0], repeat=3))).T
    rows = dict(zip(["X1", "X2", "X3"], values, strict=True))
    h = semantics.posterior(net, "H", rows)[:, 0]
    np.testing.assert_array_equal(semantics.posterior(net, "Y", rows)[:, 0], h >= threshold)


@pytest.mark.parametrize(
    ("net", "edges"),
    [
        (examples.chain(3), {"T1": ("E1", "E2"), "T2": ("T1",), "T3": ("T2",), "Q": ("T3",)}),
        (examples.layer(2), {"T1": ("E1", "E2"), "T2": ("E1", "E2"), "Q": ("T1", "T2")}),
        (examples.split_layer(3), {"T1": ("E1",), "T2": ("E1",), "T3": ("E2",), "Q": ("T1", "T2", "T3")}),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_networks_of_two_inputs_have_the_shape_of_their_name(net, edges):
    assert {n: net.parents(n) for n in net} == {"E1": (), "E2": ()} | edges
    assert all(net.cpt(n).testing == n.startswith("T") for n in net)


@pytest.mark.parametrize("make", [examples.chain, examples.layer, examples.split_layer])
def test_networks_of_two_inputs_are_to_be_learned_and_may_be_classical(make):
    assert all(make(2, gamma=8).cpt(n).gamma == 8 for n in ("T1", "T2"))
    assert make(2, testing=False).testing_nodes == ()
    assert np.isnan(make(2).table("Q")).all()


@pytest.mark.parametrize("make", [examples.diamond, examples.etq, lambda seed: examples.hmm(3, 3, 2, seed)])
def test_random_numbers_follow_the_seed(make):
    assert make(seed=1) == make(seed=1)
    assert make(seed=1) != make(seed=2)


def test_the_hmm_selects_each_transition_from_the_step_before():
    net = examples.hmm(3, states=3, symbols=2)
    assert net.testing_nodes == ("H2", "H3")
    assert net.parents("H3") == ("H2", "E2")
    assert (len(net.states("H1")), len(net.states("E1"))) == (3, 2)
