"""The same network in pyAgrum, from our own tables: a peer to compare answers and speed with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyagrum

from tacit import Network
from tacit.evidence.read import read


def to_peer(net: Network) -> Any:
    """A `pyagrum.BayesNet` with the variables, states (labelled by position) and tables of `net`."""
    peer = pyagrum.BayesNet()
    for name in net:
        peer.add(pyagrum.LabelizedVariable(name, name, [f"s{i}" for i in range(len(net.states(name)))]))
    for name in net:
        for parent in net.parents(name):
            peer.addArc(parent, name)
    for name in net:
        ours, cpt = (*net.parents(name), name), peer.cpt(name)
        theirs = cpt.names  # the first varies fastest in what fillWith takes
        cpt.fillWith(net.table(name).transpose([ours.index(n) for n in reversed(theirs)]).ravel().tolist())
    return peer


def posteriors(peer: Any, query: str, rows: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[np.ndarray]:
    """The posterior of `query` for every row, given as one likelihood per state of each variable."""
    engine = pyagrum.LazyPropagation(peer)
    engine.addTarget(query)
    for row in rows:
        engine.setEvidence({name: [float(x) for x in likelihoods] for name, likelihoods in row.items()})
        engine.makeInference()
        yield engine.posterior(query).toarray()


def likelihood_rows(net: Network, evidence: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
    """Columns of evidence as one mapping of likelihoods per row."""
    known = read(evidence, [net.variable(n) for n in net])
    return [known.likelihoods(i) for i in range(known.rows)]
