"""Graphs for y0: with what is latent, it identifies what can be identified, and nothing else."""

import pytest
from y0.algorithm.identify import identify_outcomes
from y0.dsl import Variable

import tacit


def effect(graph):
    return identify_outcomes(graph, treatments=Variable("X"), outcomes=Variable("Y"))


def test_a_latent_common_cause_hides_an_effect_and_a_measured_one_does_not():
    net = tacit.Network.from_edges([("C", "X"), ("C", "Y"), ("X", "Y")])
    assert effect(tacit.to_y0(net, latent="C")) is None
    assert str(effect(tacit.to_y0(net))) == "Sum[C](P(Y | C, X) * Sum[X, Y](P(C, X, Y)))"


def test_what_it_takes():
    with pytest.raises(tacit.NetworkError, match="'D' is not a variable"):
        tacit.to_y0(tacit.examples.abc(), latent=["D"])
    with pytest.raises(tacit.NetworkError, match="takes a Network, got a str"):
        tacit.to_y0("abc")
