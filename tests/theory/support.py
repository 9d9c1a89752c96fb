"""What the tests of pieces, bounds and explanations share: queries over soft inputs, and points to try them at."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

import tacit
from tests.helpers import selected
from tests.strategies import networks


@st.composite
def queries(draw: st.DrawFn, most: int, **kinds: Any) -> tuple[tacit.TAC, list[str]]:
    """A compiled query with 0 to `most` binary inputs, anywhere in a random network."""
    net = draw(networks(max_nodes=5, **kinds))
    binary = [n for n in net.variables if net.variable(n).card == 2]
    inputs = draw(st.permutations(binary))[:most]
    return tacit.compile(net, draw(st.sampled_from(net.variables)), inputs), inputs


def evidence(inputs: list[str], points: np.ndarray) -> dict[str, np.ndarray]:
    """Points (rows, inputs) as likelihoods of both states, which no label can be mistaken for."""
    return {name: np.column_stack([points[:, i], 1 - points[:, i]]) for i, name in enumerate(inputs)}


def points(inputs: list[str], rows: int, seed: int = 0) -> np.ndarray:
    """Random points, every fourth of them on faces of the unit box."""
    rng = np.random.default_rng(seed)
    found = rng.random((rows, len(inputs)))
    return np.where((np.arange(rows) % 4 == 0)[:, None], found.round(), found)


def clear(tac: tacit.TAC, rows: dict[str, np.ndarray], margin: float = 1e-9) -> np.ndarray:
    """Which rows are far from a tie at every hard test."""
    far = np.ones(len(next(iter(rows.values()))), dtype=bool)
    for node, how in selected(tac, rows).items():
        cpt = tac.network.cpt(node)
        if cpt.gamma is None:
            distance = np.abs(how.posterior[..., None] - cpt.limits).reshape(len(how.posterior), -1).min(axis=1)
            far = far & (np.nan_to_num(distance) > margin)
    return far
