"""Draws of estimated numbers follow the distributions that theory names."""

import pickle

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit import CPT, TacitError
from tests.helpers import close

MANY = 4000
LEAST_P = 1e-4  # seeds are fixed: a test passes always or never


def follows(sample, distribution):
    assert stats.kstest(sample, distribution.cdf).pvalue > LEAST_P


def table_net():
    net = tacit.Network()
    net.add("A", states=["x", "y", "z"])
    net.add("B", ["A"], cpt=[[0.2, np.nan, np.nan], [np.nan, np.nan, 0.0], [0.5, 0.25, 0.25]], states=3)
    return net


@pytest.mark.parametrize("prior", [0.0, 2.0])
def test_rows_of_tables_follow_their_dirichlet_distribution(prior):
    rows = {"A": ["x"] * 9 + ["y"] * 5 + ["z"] * 2, "B": [0] * 2 + [1] * 6 + [2] + [0] * 4 + [1] + [0, 2]}
    found = tacit.estimate(table_net(), rows, prior=prior)
    ensemble = found.draws(MANY, seed=3)
    a, b = ensemble.parts["A", "table"], ensemble.parts["B", "table"]
    share = prior or 1 / 3
    for place, count in enumerate([9, 5, 2]):
        follows(a[:, place], stats.beta(count + share, 16 + 3 * share - count - share))
    share = prior or 1 / 2
    close(b[:, 0, 0], 0.2)
    follows(b[:, 0, 1] / 0.8, stats.beta(6 + share, 1 + share))
    follows(b[:, 1, 0], stats.beta(4 + share, 1 + share))
    close(b[:, 1, 2], 0.0)
    close(b[:, 2], np.broadcast_to([0.5, 0.25, 0.25], (MANY, 3)))
    close(b.sum(axis=-1), np.ones((MANY, 3)))
    close(ensemble.network.table("A"), (np.array([9, 5, 2]) + (prior or 1 / 3)) / (16 + 3 * (prior or 1 / 3)))
    if prior:
        close(ensemble.network.table("B"), found.network.table("B"))


def test_variances_of_linear_functions_are_those_of_the_draws():
    rows = {"A": ["x"] * 9 + ["y"] * 5 + ["z"] * 2, "B": [1, 2] * 4 + [1] * 8}
    ensemble = tacit.estimate(table_net(), rows, prior=1.0).draws(100_000, seed=1)
    slopes = np.random.default_rng(0).normal(size=(2, 3, 3))
    own = next(one for one in ensemble.dirichlets if one.keys == (("B", "table"),))
    sampled = np.einsum("nij,kij->nk", ensemble.parts["B", "table"], slopes).var(axis=0)
    np.testing.assert_allclose(own.variances(slopes), sampled, rtol=0.03)


def test_what_was_never_seen_is_drawn_around_what_it_is_estimated_as():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=CPT([[0.9, 0.1], [0.3, 0.7]], learn=True))
    net.add("C", ["A"])
    rows = {"A": ["true"] * 4, "B": ["true"] * 4, "C": ["false"] * 4}
    found = tacit.estimate(net, rows)
    ensemble = found.draws(MANY)
    assert (found.network.table("B")[0] == [1, 0]).all()
    follows(ensemble.parts["B", "table"][:, 0, 0], stats.beta(4.5, 0.5))
    follows(ensemble.parts["B", "table"][:, 1, 0], stats.beta(0.3, 0.7))
    follows(ensemble.parts["C", "table"][:, 1, 0], stats.beta(0.5, 0.5))
    # where an entry is estimated as 0, its evidence is possible under the draws
    tac = tacit.compile(found.network, "A", ["B"])
    assert np.isfinite(tac.posterior({"B": "false"}, tables=ensemble)).all()


def test_what_is_estimated_as_impossible_is_possible_in_draws():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    found = tacit.estimate(net, {"A": ["true"] * 6, "B": ["true", "false"] * 3})
    ensemble = found.draws(20)
    answers = tacit.compile(found.network, "A", ["B"]).posterior({"B": "true"}, tables=ensemble)
    expected = [tacit.compile(own, "A", ["B"]).posterior({"B": "true"}) for own in ensemble]
    close(answers, np.stack(expected))


def test_tiny_pseudo_counts_leave_rows_that_sum_to_one():
    net = tacit.Network()
    net.add("A", states=5)
    drawn = tacit.estimate(net, {"A": [0]}, prior=1e-5).draws(MANY).parts["A", "table"]
    assert (drawn > 0).all()
    close(drawn.sum(axis=-1), np.ones(MANY))


def test_tied_tables_are_drawn_once():
    net = tacit.Network()
    net.add("A", cpt=CPT([np.nan, np.nan], tie="t"))
    net.add("B", cpt=CPT([np.nan, np.nan], tie="t"))
    ensemble = tacit.estimate(net, {"A": ["true"] * 5, "B": ["false"] * 5}, prior=1.0).draws(MANY)
    follows(ensemble.parts["A", "table"][:, 0], stats.beta(6, 6))
    assert ensemble[7].table("A").tolist() == ensemble[7].table("B").tolist()


def measured(density, values, prior=0.0, draws=MANY):
    net = tacit.Network()
    net.add("S", cpt=[0.5, 0.5])
    columns = [f"x{i}" for i in range(values.shape[1])]
    net.add(tuple(columns) if len(columns) > 1 else columns[0], ["S"], cpt=density)
    rows = dict(zip(columns, values.T, strict=True))
    states = np.where(np.arange(len(values)) < 2 * len(values) // 3, "true", "false")
    found = tacit.estimate(net, {"S": states} | rows, prior=prior)
    return found, {part: own for (_, part), own in found.draws(draws, seed=5).parts.items()}


@pytest.mark.parametrize("log", [False, True])
def test_normal_densities_follow_students_t(log):
    values = np.random.default_rng(2).normal([[3.0]], 2.0, (15, 1))
    density = tacit.LogNormal() if log else tacit.Gaussian()
    _, drawn = measured(density, np.exp(values) if log else values)
    for state, own in enumerate([values[:10, 0], values[10:, 0]]):
        mean, sd, n = own.mean(), own.std(ddof=1), len(own)
        follows(drawn["mean"][:, state], stats.t(n - 1, mean, sd / np.sqrt(n)))
        follows(((n - 1) * sd**2) / drawn["sd"][:, state] ** 2, stats.chi2(n - 1))


def test_known_means_and_known_deviations_stay():
    values = np.random.default_rng(2).normal(3.0, 2.0, (15, 1))
    own = values[:10, 0]
    _, drawn = measured(tacit.Gaussian(mean=[1.0, np.nan], sd=[np.nan, 4.0]), values)
    assert (drawn["mean"][:, 0] == 1.0).all()
    assert (drawn["sd"][:, 1] == 4.0).all()
    follows(((own - 1.0) ** 2).sum() / drawn["sd"][:, 0] ** 2, stats.chi2(10))
    follows(drawn["mean"][:, 1], stats.norm(values[10:].mean(), 4.0 / np.sqrt(5)))


def test_joint_normal_densities_follow_inverse_wishart():
    values = np.random.default_rng(2).normal(0.0, 1.0, (30, 2)) @ [[1.0, 0.5], [0.0, 2.0]]
    _, drawn = measured(tacit.Gaussian(cov=np.full((2, 2), np.nan)), values)
    own = values[:20]
    scatter = 19 * np.cov(own.T)
    expected = stats.invwishart(19, scatter)
    weights = np.array([0.3, -1.0])
    follows(scatter[0, 0] / drawn["cov"][:, 0, 0, 0], stats.chi2(18))
    np.testing.assert_allclose(drawn["cov"][:, 0].mean(axis=0), expected.mean(), rtol=0.05, atol=0.02)
    np.testing.assert_allclose(drawn["cov"][:, 0].var(axis=0), expected.var(), rtol=0.15)
    # any sum of columns has a t distribution, too
    spread = np.sqrt(weights @ scatter @ weights / (20 * 18))
    follows(drawn["mean"][:, 0] @ weights, stats.t(18, own.mean(axis=0) @ weights, spread))


def test_rates_follow_gamma_distributions():
    values = np.random.default_rng(2).poisson(3.0, (15, 1)).astype(float)
    _, drawn = measured(tacit.Poisson(), values)
    follows(drawn["rate"][:, 0], stats.gamma(values[:10].sum() + 0.5, scale=1 / 10))
    _, drawn = measured(tacit.Poisson(), values, prior=2.0)
    follows(drawn["rate"][:, 1], stats.gamma(values[10:].sum() + 2 * values.mean(), scale=1 / 7))


def test_components_with_too_few_rows_are_filled_up():
    values = np.array([[1.0], [4.0], [9.0]])
    net = tacit.Network()
    net.add("S", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("x", ["S"], cpt=tacit.Gaussian())
    net.add("k", ["S"], cpt=tacit.Poisson())
    with pytest.warns(tacit.CollapsedDensityWarning):
        found = tacit.estimate(net, {"S": [0, 0, 1], "x": values[:, 0], "k": values[:, 0]})
    ensemble = found.draws(MANY)
    whole, var = values.mean(), values.var()
    # one row of its own, at 9, and one of the whole column
    scatter = var + (9 - whole) ** 2 / 2
    follows(scatter / ensemble.parts["x", "sd"][:, 1] ** 2, stats.chi2(1))
    follows(2 * var / ensemble.parts["x", "sd"][:, 2] ** 2, stats.chi2(1))
    follows(ensemble.parts["k", "rate"][:, 2], stats.gamma(whole + 0.5))


def test_draws_of_noisy_ors_are_around_the_estimate():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", cpt=[0.4, 0.6])
    net.add("E", cpt=tacit.NoisyOr({"A": 0.7, "B": [0.5, 0.0]}, leak=0.2, learn=True))
    found = tacit.estimate(net, net.sample(4000, seed=1))
    ensemble = found.draws(400)
    numbers = np.array([[net.cpt("E").leak, *np.concatenate(net.cpt("E").causes)] for net in ensemble])
    estimated = found.network.cpt("E")
    np.testing.assert_allclose(numbers.mean(axis=0), [estimated.leak, *np.concatenate(estimated.causes)], atol=0.01)
    assert (numbers[:, [2, 4]] == 0).all()
    assert (numbers[:, [0, 1, 3]].std(axis=0) > 0.005).all()


def test_draws_of_testing_nodes_and_hidden_ones_answer_queries():
    net = tacit.examples.abc().learnable()
    rows = {name: [None if i % 5 == 0 else x for i, x in enumerate(own)] for name, own in net.sample(300, 1).items()}
    ensemble = tacit.estimate(net, rows).draws(20)
    tac = tacit.compile(net, "B", ["A", "C"])
    assert ensemble.differing == ("A", "B", "C")
    answers = tac.posterior({"A": [0.8, 0.1], "C": "lo"}, tables=ensemble)
    for own, answer in zip(ensemble, answers, strict=True):
        close(answer, tac.with_network(own).posterior({"A": [0.8, 0.1], "C": "lo"}))


def test_the_same_seed_gives_the_same_draws_and_a_resumed_run_those_of_the_whole(tmp_path):
    net = tacit.Network()
    net.add("A", states=3)
    net.add("B", ["A"])
    rows = {"A": [None, 0, 1, 2, None, 0], "B": ["true", None, "false", "true", "true", "false"]}
    found = [tacit.estimate(net, rows, restarts=2, checkpoint=tmp_path / "em.npz") for _ in range(2)]
    first, resumed, other = found[0].draws(3, seed=1), found[1].draws(3, seed=1), found[0].draws(3, seed=2)
    pickled = pickle.loads(pickle.dumps(found[0])).draws(3, seed=1)
    for key, own in first.parts.items():
        close(resumed.parts[key], own)
        close(pickled.parts[key], own)
        assert (other.parts[key] != own).all()


@pytest.mark.parametrize("n", [0, 1.5, True, "3"])
def test_a_number_of_draws_is_a_whole_one(n):
    net = tacit.Network()
    net.add("A")
    with pytest.raises(TacitError, match="expected a number of networks, at least 1"):
        tacit.estimate(net, {"A": ["true"]}).draws(n)


def test_a_seed_is_a_whole_number_or_none():
    net = tacit.Network()
    net.add("A")
    found = tacit.estimate(net, {"A": ["true"]})
    assert (found.draws(2, seed=None).parts["A", "table"] != found.draws(2, seed=None).parts["A", "table"]).all()
    with pytest.raises(TacitError, match="seed is -1, expected a whole number"):
        found.draws(2, seed=-1)
