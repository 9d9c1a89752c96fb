"""The networks of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.base.floats import Floats
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.rules import NoisyOr
from tacit.query.network import Network


def abc(testing: bool = True) -> Network:
    """A -> B, A -> C, with B testing: the running example of the paper's appendix.

    >>> abc().counts().dynamic, abc(testing=False).counts().dynamic
    (8, 0)
    """
    net = Network("abc")
    net.add("A", cpt=[0.3, 0.7])
    plus = [[0.9, 0.1], [0.7, 0.3]]
    if testing:
        minus = [[0.2, 0.8], [0.1, 0.9]]
        net.add("B", parents=["A"], cpt=TestingCPT(plus, minus, thresholds=[0.5, 0.4]))
    else:
        net.add("B", parents=["A"], cpt=plus)
    net.add("C", parents=["A"], states=["lo", "hi"], cpt=[[0.25, 0.75], [0.5, 0.5]])
    return net


def noisy_or_classifier(
    threshold: float = 0.5, causes: Sequence[float] = (0.8, 0.6, 0.4), leak: float = 0.1
) -> Network:
    """X1, X2, X3 -> H -> Y: Y is true exactly when P(H = true | evidence) >= threshold (paper, Figure 4a).

    >>> from tacit import semantics
    >>> net = noisy_or_classifier(threshold=0.5)
    >>> rows = {"X1": "false", "X2": ["true", "false"], "X3": "false"}
    >>> semantics.posterior(net, "Y", rows)[:, 0]
    array([1., 0.])
    """
    net = Network("noisy-or classifier")
    names = [f"X{i + 1}" for i in range(len(causes))]
    for name in names:
        net.add(name, cpt=[0.5, 0.5])
    net.add("H", cpt=NoisyOr(dict(zip(names, causes, strict=True)), leak))
    # H=true and H=false use a complementary pair of tests, so that both rows decide alike, ties included
    decide = TestingCPT(
        plus=[[1, 0], [0, 1]], minus=[[0, 1], [1, 0]], thresholds=[threshold, 1 - threshold], test=[">=", ">"]
    )
    net.add("Y", parents=["H"], cpt=decide)
    return net


def diamond(seed: int = 0) -> Network:
    """A -> B, A -> C, B -> D, C -> D, with B and D testing (paper, Figure 4b); random numbers.

    >>> diamond()
    Network('diamond': 4 nodes, 4 edges, 2 testing, 30 parameters, 6 thresholds)
    """
    rng = np.random.default_rng(seed)
    net = Network("diamond")
    net.add("A", cpt=_random(rng))
    net.add("B", parents=["A"], cpt=random_testing_cpt(rng, 2))
    net.add("C", parents=["A"], cpt=_random(rng, 2))
    net.add("D", parents=["B", "C"], cpt=random_testing_cpt(rng, 2, 2))
    return net


def etq(testing: bool = True, seed: int = 0) -> Network:
    """E -> T -> Q, with T testing: functions of one input (paper, Figure 7); random numbers."""
    rng = np.random.default_rng(seed)
    net = Network("E-T-Q")
    net.add("E", cpt=_random(rng))
    net.add("T", parents=["E"], cpt=random_testing_cpt(rng, 2) if testing else _random(rng, 2))
    net.add("Q", parents=["T"], cpt=_random(rng, 2))
    return net


def chain(tests: int = 4, testing: bool = True, gamma: float | None = 16.0) -> Network:
    """E1, E2 -> T1 -> ... -> Tn -> Q, all to be learned: functions of two inputs."""
    parents = [["E1", "E2"], *([f"T{i}"] for i in range(1, tests))]
    return _with_tests(f"chain of {tests}", [*parents[:tests], [f"T{tests}"]], testing, gamma)


def layer(tests: int = 4, testing: bool = True, gamma: float | None = 16.0) -> Network:
    """E1, E2 -> each Ti, all Ti -> Q, all to be learned.

    >>> layer(4).counts().static, layer(4).counts().dynamic, layer(4).counts().thresholds
    (36, 64, 16)
    """
    return _with_tests(f"layer of {tests}", [*[["E1", "E2"]] * tests, _names(tests)], testing, gamma)


def split_layer(tests: int = 4, testing: bool = True, gamma: float | None = 16.0) -> Network:
    """E1 -> the first half of the Ti, E2 -> the others, all Ti -> Q, all to be learned."""
    parents = [["E1" if i < (tests + 1) // 2 else "E2"] for i in range(tests)]
    return _with_tests(f"split layer of {tests}", [*parents, _names(tests)], testing, gamma)


def hmm(length: int = 10, states: int = 2, symbols: int = 2, seed: int = 0) -> Network:
    """A hidden Markov model whose transitions are testing.

    H1 -> H2 -> ..., Ht -> Et, and Et -> Ht+1: the table of Ht+1 is selected from the posterior of (Ht, Et)
    given all earlier emissions. The numbers are random; those of transitions and of emissions are tied.

    >>> hmm(1000).counts().testing_nodes
    999
    >>> hmm(3).ties
    {'emission': ('E1', 'E2', 'E3'), 'transition': ('H2', 'H3')}
    """
    rng = np.random.default_rng(seed)
    start, emission = _random(rng, k=states), _random(rng, states, k=symbols, tie="emission")
    transition = random_testing_cpt(rng, states, symbols, k=states, tie="transition")
    net = Network(f"testing HMM of length {length}")
    for t in range(1, length + 1):
        if t == 1:
            net.add("H1", states=states, cpt=start)
        else:
            net.add(f"H{t}", [f"H{t - 1}", f"E{t - 1}"], states, transition)
        net.add(f"E{t}", [f"H{t}"], symbols, emission)
    return net


def _names(tests: int) -> list[str]:
    return [f"T{i}" for i in range(1, tests + 1)]


def _with_tests(name: str, parents: Sequence[Sequence[str]], testing: bool, gamma: float | None) -> Network:
    """E1, E2, and nodes T1, T2, ..., Q with these parents, all to be learned."""
    net = Network(name)
    net.add("E1")
    net.add("E2")
    for test, above in zip(_names(len(parents) - 1), parents, strict=False):
        net.add(test, above, testing=testing, gamma=gamma if testing else None)
    net.add("Q", parents[-1])
    return net


def _random(rng: np.random.Generator, *parents: int, k: int = 2, tie: str | None = None) -> CPT:
    return CPT(_rows(rng, *parents, k=k), tie=tie)


def random_testing_cpt(rng: np.random.Generator, *parents: int, k: int = 2, tie: str | None = None) -> TestingCPT:
    """Two random tables, chosen between by tests against a random posterior of the parents."""
    thresholds = rng.dirichlet(np.ones(int(np.prod(parents)))).reshape(parents)  # a posterior sums to 1, too
    return TestingCPT(_rows(rng, *parents, k=k), _rows(rng, *parents, k=k), thresholds, tie=tie)


def _rows(rng: np.random.Generator, *parents: int, k: int) -> Floats:
    return rng.dirichlet(np.ones(k), size=parents)
