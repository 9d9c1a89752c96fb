"""Real networks against pyAgrum, which knows nothing of this library."""

import numpy as np
import pytest
from bench.networks import network

import tacit
from tests.helpers import ENGINES, close
from tests.pyagrum_peer import likelihood_rows, posteriors, to_peer

ROWS = 10


def sample(net, rng, rows):
    """States drawn from the network, so that what they say together is possible."""
    drawn = {}
    for name in net:
        tables = net.table(name)[tuple(drawn[p] for p in net.parents(name))]
        tables = np.broadcast_to(tables, (rows, tables.shape[-1]))
        cumulative = tables.cumsum(axis=1)
        drawn[name] = (rng.random((rows, 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
    return drawn


def random_evidence(net, seed):
    """Ten rows: about a sixth of the variables observed, another sixth with likelihoods."""
    rng = np.random.default_rng(seed)
    drawn = sample(net, rng, ROWS)
    chosen = rng.permutation(net.variables)
    count = max(2, len(net) // 6)
    hard = {n: [net.states(n)[i] for i in drawn[n]] for n in chosen[:count].tolist()}
    soft = {n: rng.uniform(0.05, 1, (ROWS, len(net.states(n)))) for n in chosen[count : 2 * count].tolist()}
    return hard, soft, chosen[2 * count : 2 * count + 2].tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["asia", "child", "alarm", "insurance", "hailfinder", "win95pts"])
def test_posteriors_are_those_of_pyagrum(name, engine):
    net = network(name)
    hard, soft, queries = random_evidence(net, seed=len(net))
    rows = likelihood_rows(net, hard | soft)
    for query in queries:
        expected = list(posteriors(to_peer(net), query, rows))
        indexed = tacit.compile(net, query, list(soft), list(hard), engine=engine)
        close(indexed.posterior(hard | soft), expected, 1e-9)
        likelihoods = tacit.compile(net, query, [*soft, *hard], engine=engine)
        close(likelihoods.posterior(hard | soft), expected, 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_joint_posteriors_are_those_of_pyagrum(engine):
    gum = pytest.importorskip("pyagrum")
    net = network("alarm")
    hard, soft, (first, second) = random_evidence(net, seed=3)
    tac = tacit.compile(net, [second, first], list(soft), list(hard), engine=engine)
    found = tac.posterior(hard | soft)
    peer = gum.LazyPropagation(to_peer(net))
    peer.addJointTarget({first, second})
    for ours, row in zip(found, likelihood_rows(net, hard | soft), strict=True):
        peer.setEvidence({name: list(likelihoods) for name, likelihoods in row.items()})
        joint = peer.jointPosterior({first, second})
        order = [joint.names.index(name) for name in (second, first)]
        # pyAgrum's arrays have the axes of a potential in reverse
        close(ours, joint.toarray().T.transpose(order), 1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["asia", "cancer", "survey"])
def test_explanations_are_those_of_pgmpy(name, engine):
    inference = pytest.importorskip("pgmpy.inference")
    net = network(name)
    drawn = net.sample(ROWS, seed=5)
    observed = net.variables[-2:]
    best = tacit.compile(net, None, hard=observed, engine=engine).mpe({n: drawn[n] for n in observed})
    peer = inference.VariableElimination(tacit.to_pgmpy(net))
    free = [n for n in net if n not in observed]
    for i in range(ROWS):
        row = {n: drawn[n][i] for n in observed}
        theirs = {**peer.map_query(free, evidence=row, show_progress=False), **row}
        ours = {n: best.states[n][i] for n in net}
        close(logarithm(net, ours), best.log_probability[i], 1e-12)
        close(logarithm(net, theirs), best.log_probability[i], 1e-12)


def logarithm(net, states):
    """The logarithm of the probability of one state of every variable."""
    codes = {name: net.variable(name).codes[state] for name, state in states.items()}
    return sum(np.log(net.table(n)[(*(codes[p] for p in net.parents(n)), codes[n])]) for n in net)
