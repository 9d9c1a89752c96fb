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
