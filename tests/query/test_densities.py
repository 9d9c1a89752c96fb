"""Queries about networks with continuous variables, against the definition and against 60 digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tests import exact
from tests.helpers import ENGINES_OF_MANY, impossible, tries
from tests.strategies import continuous_networks, evidence, numbers, rngs

ROWS = 4
FAR = [1.0, 30.0, 1e4]  # deviations: of ordinary rows, of such that floats cannot hold, and of broken sensors


@st.composite
def cases(draw, rows=ROWS, **kinds):
    net = draw(continuous_networks(max_nodes=4, tables=2, **kinds))
    discrete = [name for name in net if name not in net.continuous]
    columns = draw(evidence(net, discrete, rows)) | numbers(net, draw(rngs), rows, draw(st.sampled_from(FAR)))
    return net, draw(st.sampled_from(discrete)), columns


def exactly(net, query, columns):
    """What 60 digits make of every row: see `exact.query`."""
    tac = tacit.compile(net, query, list(columns), engine="numpy")
    known = tac.read(columns)
    found = []
    for row in range(known.rows):
        own = {}
        for name, column in known.columns.items():
            block = column.block(row, row + 1)
            values = block.values[0] if name in net.continuous else block.likelihoods()[:, 0]
            if not (values == 1).all() or name in net.continuous:
                own[name] = values
        found.append(exact.query(net, query, own))
    return found


def same_digits(actual, expected, relative=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=1e-250)


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(60)
@given(case=cases())
def test_posterior_and_log_evidence_have_all_digits(engine, case):
    net, query, columns = case
    tac = tacit.compile(net, query, list(columns), engine=engine)
    posterior, logs = tac.posterior(columns), tac.log_evidence(columns)
    for row, own in enumerate(exactly(net, query, columns)):
        if own.nearest < 1e-9:
            continue
        if not own.possible:
            assert np.isnan(posterior[row]).all() and logs[row] == -np.inf
            continue
        same_digits(posterior[row], own.posterior)
        assert abs(logs[row] - own.log_evidence) <= 1e-12 * max(1, abs(own.log_evidence))
