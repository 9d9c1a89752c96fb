"""Random networks with one decision and value nodes, evidence that is known before it, and the definition of worth."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tacit import Network, TestingCPT, semantics
from tests.strategies import continuous_networks, evidence, networks, numbers, rngs


@st.composite
def decisions(
    draw: st.DrawFn, rows: int = 3, continuous: bool = False, **kinds: Any
) -> tuple[Network, str, dict[str, Any]]:
    """A network with value nodes, a decision that they depend on, and evidence above it or beside it."""
    net = draw(continuous_networks(most=2, **kinds) if continuous else networks(**kinds))
    rng, discrete = draw(rngs), [name for name in net if name not in net.continuous]
    net.add("decision", draw(st.permutations(discrete))[: draw(st.integers(0, 1))], states=draw(st.integers(2, 3)))
    below = ["decision"]
    for i in range(draw(st.integers(0, 2))):
        parents = [draw(st.sampled_from(below)), *draw(st.permutations(discrete))[: draw(st.integers(0, 1))]]
        shape = [net.variable(parent).card for parent in parents]
        cpt = rng.dirichlet(np.ones(2), shape)
        net.add(f"outcome {i}", parents, cpt=_testing(cpt, rng) if kinds.get("testing", True) and i == 0 else cpt)
        below.append(f"outcome {i}")
    for i in range(draw(st.integers(1, 3))):
        others = [name for name in (*discrete, *below) if name != below[-1]]
        parents = [*draw(st.permutations(others))[: draw(st.integers(0, 2))], *below[-1:] * (i == 0)]
        shape = [net.variable(parent).card for parent in parents]
        net.value(f"value {i}", parents, rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3) + rng.normal())
    known = draw(evidence(net, discrete, rows))
    return net, "decision", known | (numbers(net, rng, rows, 3.0) if continuous else {})


def _testing(cpt: np.ndarray, rng: np.random.Generator) -> Any:
    return TestingCPT(cpt, np.flip(cpt, axis=-1), rng.random(cpt.shape[:-1]), gamma=rng.choice([None, 8.0]))


def width(net: Network) -> float:
    """How far apart what is worth most and least can be: what tolerances are relative to."""
    return max(1.0, sum(float(np.ptp(own.table)) + abs(float(own.table.max())) for own in net.value_nodes.values()))


def worth(net: Network, decision: str, name: str, row: dict[str, Any]) -> float:
    """What observing a variable is worth in one row, by the definition, in the networks that the actions select."""
    selected = [net.do({decision: state}).select(row) for state in net.states(decision)]

    def best(seen: dict[str, Any]) -> float:
        return max(float(semantics.expected_values(own, decision, seen)[0, a]) for a, own in enumerate(selected))

    shares = zip(net.states(name), semantics.posterior(selected[0], name, row)[0], strict=True)
    return sum(share * best({**row, name: [state]}) for state, share in shares if share > 0) - best(row)
