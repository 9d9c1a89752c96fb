"""The objective against the definition of the posterior, formulas written here, and finite differences."""

from importlib.util import find_spec

import numpy as np
import pytest

import tacit
from tacit import CPT, Network, TestingCPT, semantics
from tacit.engines.tape.tape_based import THREADED_WORK
from tacit.learn.fitting.batches import MiniBatch, MiniBatches
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.labelled import LabelledRows
from tacit.learn.fitting.optimizers import LBFGS
from tacit.learn.fitting.run import Stage
from tacit.learn.fitting.training import Training
from tacit.learn.options import FitOptions
from tacit.learn.partitions import Local

RNG = np.random.default_rng(0)
ROWS = 7
EVIDENCE = {"E": RNG.random(ROWS)}
WEIGHTS = np.array([1.0, 5.0, 0.5, 2.0, 0.1, 3.0, 1.0])
SHARES = WEIGHTS / WEIGHTS.sum()
OF_STATES = RNG.dirichlet([1, 1, 1], ROWS)  # (rows, states)
OF_FIRST = RNG.random(ROWS)
LABELS = {"states": OF_STATES, "first": OF_FIRST}
ENGINES = ["numpy", "tape", "native", *(["torch"] if find_spec("torch") else [])]


def step_network():
    """E -> T -> Q, with a test and three answers; one row is known in part."""
    net = Network()
    net.add("E")
    net.add("T", ["E"], testing=True, gamma=8.0)
    net.add("Q", ["T"], ["lo", "mid", "hi"], [[np.nan] * 3, [0.25, np.nan, np.nan]])
    return net


def problem(y, loss="mse", engine="tape", net=None, **more):
    tac = tacit.compile(net or step_network(), "Q", ["E"], engine=engine)
    return Training(tac, LabelledRows(Local(read_data(tac, EVIDENCE, y, WEIGHTS))), FitOptions(loss=loss, **more))


def objective_of(*arguments, slope="own", **more):
    made = problem(*arguments, **more)
    objective, _ = made.objectives(Stage(slope, 1, 1, LBFGS()))
    return objective, made.parameters.start(np.random.default_rng(1))


def errors(p, targets):
    return ((p - targets) ** 2).mean(axis=1)


def entropies(p, targets):
    return -(targets * np.log(p)).sum(axis=1)


def of_rows(parameters, weights, y, formula, net=None):
    """The loss of every row, from the definition of the posterior."""
    p = semantics.posterior(parameters.fill(weights, net), "Q", EVIDENCE)
    if y.ndim == 1:
        p, y = np.stack([p[:, 0], p[:, 1:].sum(axis=1)], axis=1), np.stack([y, 1 - y], axis=1)
    return formula(p, y)


def differences(function, weights, step=1e-5):
    """Derivatives of a function of the weights: (weights, ...)."""
    rows = [(function(weights + d) - function(weights - d)) / (2 * step) for d in step * np.eye(len(weights))]
    return np.array(rows)


def take_three_at_a_time(monkeypatch, engine):
    """Let an engine do its rows in several blocks."""
    for name in ("chunk", "gradient_chunk"):
        monkeypatch.setattr(type(engine), name, 3, raising=False)
        vars(engine).pop(name, None)


def own_entropy(p, y):
    return -(y * np.log(p)).sum(axis=1), -y / p


CASES = [("mse", errors), ("cross_entropy", entropies), (own_entropy, entropies)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("loss", "formula"), CASES, ids=["mse", "cross_entropy", "own"])
def test_loss_and_gradient_are_those_of_the_definition(monkeypatch, loss, formula, labels, engine):
    objective, weights = objective_of(LABELS[labels], loss, engine)
    take_three_at_a_time(monkeypatch, objective.engine)

    def expected(weights):
        return SHARES @ of_rows(objective.parameters, weights, LABELS[labels], formula)

    value, gradient = objective.value_and_gradient(weights)
    assert value == pytest.approx(expected(weights), rel=1e-10)
    assert objective.value(weights) == pytest.approx(expected(weights), rel=1e-10)
    np.testing.assert_allclose(gradient, differences(expected, weights), rtol=1e-5, atol=1e-9)
    assert objective.value(weights + 0.5) == pytest.approx(expected(weights + 0.5), rel=1e-10)  # numbers are new
    assert objective.loss_of_rows() == objective.value(weights + 0.5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("loss", "formula"), CASES, ids=["mse", "cross_entropy", "own"])
def test_a_batch_has_its_own_rows_targets_and_shares(monkeypatch, loss, formula, labels, engine):
    objective, weights = objective_of(LABELS[labels], loss, engine)
    take_three_at_a_time(monkeypatch, objective.engine)
    rows, shares = np.array([5, 0, 2, 6]), np.array([0.2, 3.0, 0.5, 1.0])

    def expected(weights):
        return shares @ of_rows(objective.parameters, weights, LABELS[labels], formula)[rows]

    value, gradient = objective.value_and_gradient(weights, MiniBatch(rows, shares))
    assert value == pytest.approx(expected(weights), rel=1e-10)
    np.testing.assert_allclose(gradient, differences(expected, weights), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("labels", LABELS)
def test_squares_of_residuals_sum_to_the_mean_squared_error(labels):
    objective, weights = objective_of(LABELS[labels])
    residuals, slopes = objective.residuals(weights)
    expected = SHARES @ of_rows(objective.parameters, weights, LABELS[labels], errors)
    assert residuals @ residuals == pytest.approx(expected, rel=1e-10)
    assert residuals.shape == (ROWS * (3 if labels == "states" else 1),)
    found = differences(lambda w: objective.residuals(w)[0], weights)
    np.testing.assert_allclose(slopes, found, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(2 * slopes @ residuals, objective.value_and_gradient(weights)[1], rtol=1e-8, atol=1e-12)


def test_residuals_are_those_of_every_state():
    objective, weights = objective_of(OF_STATES)
    p = semantics.posterior(objective.parameters.fill(weights), "Q", EVIDENCE)
    expected = np.sqrt(SHARES / 3) * (p - OF_STATES).T
    np.testing.assert_allclose(objective.residuals(weights)[0], expected.ravel(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("batch", [None, MiniBatch(np.array([1, 3]), np.array([0.5, 0.5]))])
def test_a_prior_adds_pseudo_counts_to_every_learned_entry(batch):
    prior = 2.5
    plain, weights = objective_of(OF_STATES)
    objective, _ = objective_of(OF_STATES, prior=prior)

    def penalty(weights):
        net = objective.parameters.fill(weights)
        test, q = net.cpt("T"), net.cpt("Q").table
        entries = [net.cpt("E").table, test.plus, test.minus, q[0], q[1, 1:]]  # neither thresholds nor what is known
        return -prior / ROWS * sum(np.log(entry).sum() for entry in entries)

    (loss, gradient), (alone, by_rows) = (o.value_and_gradient(weights, batch) for o in (objective, plain))
    assert loss - alone == pytest.approx(penalty(weights), rel=1e-9)
    np.testing.assert_allclose(gradient - by_rows, differences(penalty, weights), rtol=1e-5, atol=1e-9)
    assert objective.value(weights) == plain.value(weights)  # the loss of the rows alone


def test_a_prior_around_tables_adds_pseudo_counts_in_proportion_to_them():
    made = problem(OF_STATES)
    centre = made.parameters.fill(made.parameters.start(np.random.default_rng(2)))
    plain, weights = objective_of(OF_STATES)
    objective, _ = objective_of(OF_STATES, prior=(centre, 20.0))

    def penalty(weights):
        net = objective.parameters.fill(weights)
        pairs = [(net.cpt("E").table, centre.cpt("E").table), (net.table("Q")[0], centre.table("Q")[0])]
        pairs += [(getattr(net.cpt("T"), part), getattr(centre.cpt("T"), part)) for part in ("plus", "minus")]
        pairs += [(net.table("Q")[1, 1:], centre.table("Q")[1, 1:])]
        return -20.0 / ROWS * sum((believed * np.log(entry)).sum() for entry, believed in pairs)

    (loss, gradient), (alone, by_rows) = (o.value_and_gradient(weights) for o in (objective, plain))
    assert loss - alone == pytest.approx(penalty(weights), rel=1e-9)
    np.testing.assert_allclose(gradient - by_rows, differences(penalty, weights), rtol=1e-5, atol=1e-9)


def test_the_mean_of_an_epoch_is_the_gradient_of_all_rows():
    objective, weights = objective_of(OF_STATES)
    batches = MiniBatches(objective.data.weights, 3, seed=1)
    parts = [objective.value_and_gradient(weights, batches.of_step(step)) for step in range(batches.count)]
    value, gradient = objective.value_and_gradient(weights)
    assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, rtol=1e-10, atol=1e-15)


def test_learned_slopes_have_derivatives():
    objective, weights = objective_of(OF_STATES, gamma="learn")
    assert objective.parameters.learned_slopes == {"T"}

    def expected(weights):
        return SHARES @ of_rows(objective.parameters, weights, OF_STATES, errors)

    for gradient in (objective.value_and_gradient(weights)[1], objective_of(OF_STATES, gamma="learn", engine="numpy")[0]
                     .value_and_gradient(weights)[1]):  # fmt: skip
        np.testing.assert_allclose(gradient, differences(expected, weights), rtol=1e-5, atol=1e-9)


def test_a_stage_has_the_slope_it_says():
    made = problem(OF_STATES)
    weights = made.parameters.start(np.random.default_rng(1))
    for slope, net in (("own", made.network), ("hard", made.network.with_gamma(None))):
        objective, _ = made.objectives(Stage(slope, 1, 1, LBFGS()))
        expected = SHARES @ of_rows(made.parameters, weights, OF_STATES, errors, net)
        assert objective.value(weights) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", ["mse", own_entropy], ids=["mse", "own"])
def test_clones_have_numbers_of_their_own(loss):
    objective, weights = objective_of(OF_STATES, loss)
    clone = objective.clone()
    value = objective.value(weights)
    assert clone.value(weights + 1.0) != value
    assert objective.loss_of_rows() == value
    expected = objective.value_and_gradient(weights + 1.0)
    objective.value(weights)
    found = clone.value_and_gradient(weights + 1.0)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])
    assert objective.loss_of_rows() == value


def test_clones_have_residuals_of_their_own():
    objective, weights = objective_of(OF_STATES)
    clone = objective.clone()
    expected = objective.residuals(weights + 1.0)[0]
    objective.value(weights)
    np.testing.assert_array_equal(clone.residuals(weights + 1.0)[0], expected)
    assert objective.loss_of_rows() == objective.value(weights)


def test_small_is_what_one_thread_does_best():
    objective, _ = objective_of(OF_STATES)
    assert objective.small
    work = objective.engine.tape.work
    objective.data = objective.data.take(np.zeros(int(THREADED_WORK // work), dtype=np.int64))
    assert objective.small
    objective.data = objective.data.take(np.zeros(int(THREADED_WORK // work) + 1, dtype=np.int64))
    assert not objective.small
    for other in (objective_of(OF_STATES, own_entropy)[0], objective_of(OF_STATES, engine="numpy")[0]):
        assert not other.small  # which do not run on a tape alone


def test_weights_are_brought_back_within_their_limits():
    objective, weights = objective_of(OF_STATES)
    limits = objective.parameters.limits
    assert set(limits) == {15.0, 30.0}
    far = np.where(np.arange(len(weights)) % 2, 1.0, -1.0) * 100
    np.testing.assert_array_equal(objective.within_limits(far), np.sign(far) * limits)
    np.testing.assert_array_equal(objective.within_limits(weights), weights)


def test_known_numbers_have_no_weight():
    net = step_network().with_cpts(
        {
            "E": CPT([0.5, 0.5]),
            "T": TestingCPT([[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2, [0.4, 0.6], gamma=8.0),
        }
    )
    objective, weights = objective_of(OF_STATES, net=net)
    assert len(weights) == 3 + 1  # a softmax of three, and a logistic of two

    def expected(weights):
        return SHARES @ of_rows(objective.parameters, weights, OF_STATES, errors)

    np.testing.assert_allclose(
        objective.value_and_gradient(weights)[1], differences(expected, weights), rtol=1e-5, atol=1e-9
    )
