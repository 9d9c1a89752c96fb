"""One program under many sets of tables: the same answers as with each network by itself."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Ensemble, NoisyOr, TestingCPT
from tacit.model.densities import BaseDensity
from tests.helpers import ENGINES_OF_MANY, close, impossible, tries
from tests.strategies import continuous_networks, evidence, networks, numbers, rngs

ROWS = 3


def redrawn(net, rng):
    """Another network of the structure: tables whose exact 0s and 1s stay, other thresholds, causes and densities."""

    def table(old):
        new = np.where(old > 0, rng.dirichlet(np.ones(old.shape[-1]), old.shape[:-1]) + 1e-3, 0.0)
        return new / new.sum(axis=-1, keepdims=True)

    cpts = {}
    for name in net:
        cpt = net.cpt(name)
        if rng.random() < 0.2:
            continue
        if isinstance(cpt, CPT):
            cpts[name] = CPT(table(cpt.table))
        elif isinstance(cpt, TestingCPT):
            limits = np.sort(rng.random(cpt.thresholds.shape), axis=-1) if len(cpt.tables) > 2 else None
            tables = [table(old) for old in cpt.tables]
            thresholds = cpt.thresholds if limits is None else limits
            cpts[name] = TestingCPT(tables=tables, thresholds=thresholds, test=cpt.test, gamma=cpt.gamma)
        elif isinstance(cpt, NoisyOr):
            causes = [np.where((own > 0) & (own < 1), rng.uniform(0.1, 0.9, len(own)), own) for own in cpt.causes]
            named = causes if cpt.names is None else dict(zip(cpt.names, causes, strict=True))
            cpts[name] = NoisyOr(named, cpt.leak if cpt.leak in (0, 1) else rng.uniform(0.1, 0.9))
        elif isinstance(cpt, BaseDensity) and (part := next(iter(cpt.parts()), None)):
            cpts[name] = cpt.with_parts({part: cpt.parts()[part] * rng.uniform(0.9, 1.1)})
    return net.with_cpts(cpts)


@st.composite
def ensembles(draw, count=4, functions=True):
    """Networks of one structure, a query, and evidence; with functions of Python, which no file holds, or without."""
    continuous = draw(st.booleans())
    net = draw(continuous_networks(max_nodes=4) if continuous else networks(max_nodes=5))
    discrete = [name for name in net if name not in net.continuous]
    rng = draw(rngs)
    assume(functions or not any(isinstance(net.cpt(name), tacit.Density) for name in net))
    columns = draw(evidence(net, discrete, ROWS)) | (numbers(net, rng, ROWS, 3.0) if continuous else {})
    several = [redrawn(net, rng) for _ in range(count)]
    return several, draw(st.sampled_from(discrete)), columns


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(40)
@given(case=ensembles())
def test_answers_are_those_of_each_network(engine, case):
    several, query, columns = case
    ensemble = Ensemble.of(several)
    tac = tacit.compile(several[0].learnable(), query, list(columns), engine=engine)
    found = {
        "posterior": tac.posterior(columns, tables=ensemble),
        "joint": tac.joint(columns, tables=ensemble),
        "log_evidence": tac.log_evidence(columns, tables=ensemble),
    }
    marginals = tac.marginals(columns, tables=ensemble)
    for i, net in enumerate(several):
        own = tac.with_network(net.learnable())
        for question, answers in found.items():
            close(answers[i], getattr(own, question)(columns))
        expected = own.marginals(columns)
        assert set(marginals) == {name for name in net if name not in net.continuous}
        for name, answers in marginals.items():
            close(answers[i], expected[name])


@tries(40)
@given(case=ensembles())
def test_an_ensemble_gives_back_its_networks(case):
    several, _, _ = case
    ensemble = Ensemble.of(several)
    assert len(ensemble) == len(several)
    assert list(ensemble) == several
    assert list(ensemble[1:3]) == several[1:3]
    if not several[0].continuous:  # functions of Python are no part of a pickle
        assert list(pickle.loads(pickle.dumps(ensemble))) == several
