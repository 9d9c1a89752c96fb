"""Networks and evidence whose numbers leave the range of floats, against numbers of any size."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import tacit
from tacit.engines.tape.instructions import LEAST_WEIGHT_32, LEAST_WEIGHT_64
from tacit.model.model import SELECTIONS
from tests import exact

TOLERANCE = 1e-9
SMALLEST = 1e-280  # posteriors below it are not compared: their digits end where those of floats do
MARGIN = 1e-7  # tests nearer to a tie may come out either way
Row = dict[str, list[float]]


@dataclass
class Trial:
    """A network, what is asked, and one row of evidence as likelihoods."""

    net: tacit.Network
    query: str
    row: Row
    hard: tuple[str, ...]

    def evidence(self) -> dict[str, object]:
        """The row as tacit takes it: states where they are certain."""
        return {
            n: [self.net.states(n)[int(np.argmax(values))]] if n in self.hard else np.array([values])
            for n, values in self.row.items()
        }


def trial(rng: np.random.Generator) -> Trial:
    """A random one: small and tangled, a star, or a chain."""
    kind = rng.choice(["tangled", "star", "chain"], p=[0.92, 0.04, 0.04])
    net = {"tangled": _tangled, "star": _star, "chain": _chain}[kind](rng)
    names = list(net.variables)
    observed = [n for n in names if rng.random() < (0.6 if kind == "tangled" else 0.9)]
    query = str(rng.choice(names if kind == "tangled" else names[:1]))
    row, hard = {}, []
    for name in observed:
        card = len(net.states(name))
        if rng.random() < 0.5:
            values = np.zeros(card)
            values[rng.integers(card)] = 1.0
            if name != query and rng.random() < 0.5:
                hard.append(name)
        else:
            values = _small(rng, card)
        row[name] = values.tolist()
    return Trial(net, query, row, tuple(hard))


def compare(trial: Trial, engine: str, dtype: str = "float64") -> str:
    """What is wrong, if anything is."""
    right = exact.query(trial.net, trial.query, trial.row)
    if right.nearest < MARGIN:
        return ""
    soft = [n for n in trial.row if n not in trial.hard]
    tac = tacit.compile(trial.net, trial.query, soft, trial.hard, engine=engine, dtype=dtype, effort="low")
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        posterior = tac.posterior(trial.evidence())[0]
        log_evidence = tac.log_evidence(trial.evidence())[0]
        joint = tac.joint(trial.evidence())[0]
        selected = tac.selected(trial.evidence())
        # the sweep down is compiled for evidence on all variables: in large networks it would take most of the time
        marginal = tac.marginals(trial.evidence())[trial.query][0] if len(trial.net) <= 60 else posterior
    if not right.possible:
        wrong = not (np.isnan(posterior).all() and np.isneginf(log_evidence) and (joint == 0).all())
        return "possible, though it is not" if wrong else ""
    if np.isneginf(log_evidence):
        return "probability 0, though it is not"
    tolerance = TOLERANCE if dtype == "float64" else 1e-3
    smallest = SMALLEST if dtype == "float64" else 1e-30
    found: Mapping[str, tuple[object, object]] = {
        "posterior": (posterior, right.posterior),
        "marginals": (marginal, right.posterior),
        "joint": (joint, [float(p) for p in right.joint]),
        "log evidence": (log_evidence, right.log_evidence),
        **{
            f"weight of {node}": (how.weight[0], np.vectorize(float, otypes=[float])(right.weights[node]))
            for node, how in selected.items()
        },
    }
    for what, (ours, theirs) in found.items():
        least = smallest
        if what.startswith("weight"):
            least = max(
                least, LEAST_WEIGHT_64 if dtype == "float64" else 2 * LEAST_WEIGHT_32
            )  # the tape's weights end there
        elif what == "log evidence":
            least = tolerance  # the logarithm of almost 1
        if not np.allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=tolerance, atol=least):
            return f"{what}: {np.asarray(ours).tolist()}, right {np.asarray(theirs).tolist()}"
    return ""


# networks -------------------------------------------------------------------------------------------------


def _small(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Positive numbers, some of them very small; the largest of each row is 1."""
    deepest = rng.choice([1.0, 10.0, 100.0, 300.0])
    numbers = 10.0 ** -rng.uniform(0, deepest, shape)
    return numbers / numbers.max(axis=-1, keepdims=True)


def _rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Distributions; some have zeros."""
    numbers = _small(rng, *shape)
    if rng.random() < 0.2:
        numbers = np.where((rng.random(shape) < 0.3) & (numbers < 1), 0.0, numbers)
    return numbers / numbers.sum(axis=-1, keepdims=True)


def _tangled(rng: np.random.Generator) -> tacit.Network:
    net, cards = tacit.Network(selection=str(rng.choice(SELECTIONS))), list[int]()
    for i in range(rng.integers(2, 9)):
        parents = sorted(rng.choice(i, size=min(i, int(rng.integers(0, 4))), replace=False).tolist())
        cards.append(int(rng.choice([1, 2, 2, 2, 3, 4])))
        above = [cards[p] for p in parents]
        shape = (*above, cards[i])
        cpt: object = _rows(rng, *shape)
        if parents and rng.random() < 0.4:
            gamma = None if rng.random() < 0.4 else float(rng.choice([1.0, 16.0, 300.0, 1000.0]))
            tests = rng.choice([">=", ">", "<=", "<"], size=above)
            cpt = tacit.TestingCPT(_rows(rng, *shape), _rows(rng, *shape), rng.random(above), tests, gamma)
        net.add(f"V{i}", [f"V{p}" for p in parents], cards[i], cpt)
    return net


def _star(rng: np.random.Generator) -> tacit.Network:
    """One cause of many findings, about which they disagree."""
    net, card = tacit.Network(), int(rng.integers(2, 4))
    net.add("V0", states=card, cpt=_rows(rng, card))
    error = 10.0 ** -rng.uniform(1, 12)
    for i in range(1, int(rng.integers(2, 501))):
        sensor = np.full((card, card), error / (card - 1))
        np.fill_diagonal(sensor, 1 - error)
        net.add(f"V{i}", ["V0"], card, sensor if rng.random() < 0.8 else _rows(rng, card, card))
    return net


def _chain(rng: np.random.Generator) -> tacit.Network:
    """A path of hidden states, each with a finding."""
    net, card = tacit.Network(), int(rng.integers(2, 4))
    net.add("V0", states=card, cpt=_rows(rng, card))
    net.add("F0", ["V0"], card, _rows(rng, card, card))
    for i in range(1, int(rng.integers(2, 125))):
        net.add(f"V{i}", [f"V{i - 1}"], card, _rows(rng, card, card))
        net.add(f"F{i}", [f"V{i}"], card, _rows(rng, card, card))
    return net
