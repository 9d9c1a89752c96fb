"""Testing HMMs: how far they make up for a memory that is longer than they assume.

After Shen, Huang, Choi and Darwiche, *Conditional Independence in Testing Bayesian Networks* (ICML 2019), section 6.
Records <e0, ..., e7 : h8> come from all binary HMMs of third order whose transitions are nearly certain. An HMM of
first order and a testing one learn to predict h8. Run with: python -m paper.testing_hmm
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit
from paper import cells
from tacit.base.grid import Grid

Floats = NDArray[np.float64]

OUT = Path("build/testing-hmm")
LENGTH = 8  # emissions that are observed; the hidden state after the last of them is asked for
ORDER = 3
EMISSION = 0.99  # of the hidden state, the other one else
WRITTEN, DRAWN = 0.95, 0.99  # the larger transition probability: as the paper says, and as its figure shows
MODELS = 2 ** (2**ORDER)
RECORDS, FOLDS = 16_384, 5
GAMMA = 16.0
RESTARTS, STEPS = 32, 60  # of every fit, classical or testing
VERSION = 1  # of what a cell computes: cells of another version are made anew
KINDS = ("HMM", "testing HMM")
MEASURES = {"accuracy": "accuracy", "agreement": "agreement with the truth", "log_loss": "log-loss"}
TRANSITIONS = {"transitions of 0.95": WRITTEN, "transitions of 0.99": DRAWN}
INK, BLUE, RED, PALE = "#333333", "#0072B2", "#D55E00", "#A6CBE3"

OBSERVED = tuple(f"E{t}" for t in range(LENGTH))
QUERY = f"H{LENGTH}"
SEQUENCES = np.array(list(product((0, 1), repeat=LENGTH)))  # all that can be observed, a row each


# networks -------------------------------------------------------------------------------------------------


def chain(
    order: int, start: tacit.CPT | None, transition: tacit.CPT | tacit.TestingCPT, emission: tacit.CPT
) -> tacit.Network:
    """An HMM whose hidden states depend on `order` states before them; the first ones are independent."""
    net = tacit.Network(f"HMM of order {order}", selection="general")
    for t in range(LENGTH + 1):
        before = [f"H{s}" for s in range(t - order, t)]
        if t < order:
            net.add(f"H{t}", states=2, cpt=start)
        else:
            net.add(f"H{t}", before, 2, transition)
        if t < LENGTH:
            net.add(f"E{t}", [f"H{t}"], 2, emission)
    return net


def true_network(model: int, transition: float) -> tacit.Network:
    """The HMM of third order whose likely next state, after three states that read as number i, is bit i of `model`.

    >>> true_network(model=0b10000000, transition=0.95).table("H3")[1, 1].round(9).tolist()  # after 110, 111
    [[0.95, 0.05], [0.05, 0.95]]
    """
    likely = (model >> np.arange(2**ORDER).reshape((2,) * ORDER)) & 1
    one = np.where(likely == 1, transition, 1 - transition)
    right = [[EMISSION, 1 - EMISSION], [1 - EMISSION, EMISSION]]
    table = np.stack([1 - one, one], axis=-1)
    return chain(ORDER, tacit.CPT([0.5, 0.5]), tacit.CPT(table, tie="transition"), tacit.CPT(right, tie="emission"))


def learner(kind: str) -> tacit.Network:
    """The HMM of first order, testing or not, with all numbers left out; those of all times are tied."""
    table, emission = np.full((2, 2), np.nan), tacit.CPT(np.full((2, 2), np.nan), tie="emission")
    classical = tacit.CPT(table, tie="transition")
    testing = tacit.TestingCPT(table, table, np.full(2, np.nan), gamma=GAMMA, tie="transition")
    return chain(1, None, testing if kind == "testing HMM" else classical, emission)


@cache
def compiled(kind: str) -> tacit.TAC:
    """The query of a learner, or of the true networks, compiled once per process."""
    net = true_network(0, WRITTEN) if kind == "truth" else learner(kind)
    return tacit.compile(net, QUERY, hard=OBSERVED)


def columns(sequences: NDArray[np.int64] = SEQUENCES) -> dict[str, NDArray[np.int64]]:
    """Sequences of emissions as evidence."""
    return dict(zip(OBSERVED, sequences.T, strict=True))


# one cell -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One HMM of third order."""

    transition: float
    model: int

    @property
    def file(self) -> str:
        """A file name for the result."""
        return f"{self.transition}-{self.model:03}-v{VERSION}.json"

    @property
    def effort(self) -> float:
        """All take the same time."""
        return 1.0


@dataclass(frozen=True)
class Result:
    """How good predictions are on records held out: by network ("truth", or one of `KINDS`), measure and fold.

    "accuracy" counts records whose hidden state is predicted, "agreement" those where the prediction is that of the
    true network; "log_loss" is in nats.
    """

    scores: dict[str, dict[str, list[float]]]
    seconds: float

    def mean(self, kind: str, measure: str = "accuracy") -> float:
        """Over folds."""
        return statistics.mean(self.scores[kind][measure])

    def deviation(self, kind: str, measure: str = "accuracy") -> float:
        """Over folds."""
        return statistics.stdev(self.scores[kind][measure])


def joint_of(cell: Cell) -> Floats:
    """P(e0, ..., e7, h8) of the true network: a row per sequence, a column per hidden state."""
    tac = compiled("truth")
    tac.set_parameters(true_network(cell.model, cell.transition))
    return np.asarray(tac.joint(columns()))


def records(joint: Floats, cell: Cell) -> NDArray[np.int64]:
    """How often each sequence was seen with each hidden state in each fold: (folds, sequences, states)."""
    rng = np.random.default_rng((cell.model, round(1000 * cell.transition)))
    drawn = rng.choice(joint.size, RECORDS, p=joint.ravel() / joint.sum())
    folds = [np.bincount(drawn[k::FOLDS], minlength=joint.size) for k in range(FOLDS)]
    return np.stack(folds).reshape(FOLDS, *joint.shape)


def fit(
    kind: str, counts: NDArray[np.int64], restarts: int = RESTARTS, steps: int = STEPS, seed: int = 0
) -> tacit.Network:
    """Learn from records, given as counts (sequences, states): a row per sequence, weighed by how often it was seen."""
    seen = counts.sum(axis=1)
    rows = np.flatnonzero(seen)
    return tacit.fit(
        compiled(kind), columns(SEQUENCES[rows]), counts[rows] / seen[rows, None], loss="cross_entropy",
        weights=seen[rows], optimizer="lbfgs", steps=steps, restarts=restarts, seed=seed, progress=False,
    ).network  # fmt: skip


def answers(kind: str, net: tacit.Network) -> Floats:
    """P(h8 | e0, ..., e7) for all sequences."""
    tac = compiled(kind)
    return np.asarray(tac.with_network(net).posterior(columns()))


def score(answered: Sequence[Floats], true: Floats, folds: NDArray[np.int64]) -> dict[str, list[float]]:
    """Judge the answers (sequences, states) of every fold by the records of that fold."""
    found: dict[str, list[float]] = {"accuracy": [], "agreement": [], "log_loss": []}
    right = true.argmax(axis=1)
    for p, counts in zip(answered, folds, strict=True):
        chosen, seen = p.argmax(axis=1), counts.sum(axis=1)
        found["accuracy"].append(float(counts[np.arange(len(p)), chosen].sum() / seen.sum()))
        found["agreement"].append(float(seen[chosen == right].sum() / seen.sum()))
        found["log_loss"].append(float(-(counts * np.log(np.maximum(p, 1e-12))).sum() / seen.sum()))
    return found


def compute(cell: Cell) -> Result:
    """Draw records, learn from four fifths of them and judge by the other fifth, five times."""
    started = time.process_time()
    joint = joint_of(cell)
    true, folds = joint / joint.sum(axis=1, keepdims=True), records(joint, cell)
    scores = {"truth": score([true] * FOLDS, true, folds)}
    for kind in KINDS:
        nets = [fit(kind, folds.sum(axis=0) - folds[k], seed=k) for k in range(FOLDS)]
        scores[kind] = score([answers(kind, net) for net in nets], true, folds)
    return Result(scores, time.process_time() - started)


# the report -----------------------------------------------------------------------------------------------


def report(results: Mapping[Cell, Result]) -> Grid:
    """How often the testing HMM is better, equal or worse, and how often predictions are good."""
    found = list(results.values())
    body: list[tuple[str, ...]]
    body = [(f"better by {words}", "", *better(found, measure)) for measure, words in MEASURES.items()]
    for measure in ("accuracy", "agreement"):
        counts = [sum(r.mean(kind, measure) > 0.95 for r in found) for kind in ("truth", *KINDS)]
        body.append((f"{measure} above 95%", *map(str, counts)))
    for measure, words in MEASURES.items():
        means = [statistics.mean(r.mean(kind, measure) for r in found) for kind in ("truth", *KINDS)]
        body.append((f"mean {words}", *(f"{mean:.4f}" for mean in means)))
    return Grid([("", "truth", *KINDS)], body, title=f"{len(found)} HMMs of third order")


def better(results: Sequence[Result], measure: str) -> tuple[str, str]:
    """How often the HMM is better, and how often the testing HMM is; neither where they are equal."""
    sign = -1 if measure == "log_loss" else 1
    gains = [sign * (r.mean("testing HMM", measure) - r.mean("HMM", measure)) for r in results]
    return str(sum(gain < 0 for gain in gains)), str(sum(gain > 0 for gain in gains))


def selected(net: tacit.Network, before: int) -> list[Floats]:
    """The distinct P(Ht = 1 | Ht-1 = before) that a testing HMM selects, over all sequences; for t = 1, 2, ..."""
    weights = compiled("testing HMM").with_network(net).selected(columns())
    found = []
    for t in range(1, LENGTH + 1):
        node = f"H{t}"
        cpt = net.cpt(node)
        assert isinstance(cpt, tacit.TestingCPT)
        weight = weights[node].weight[:, before]
        found.append(np.unique((weight * cpt.plus[before, 1] + (1 - weight) * cpt.minus[before, 1]).round(4)))
    return found


def picture(panels: Mapping[str, Mapping[Cell, Result]], net: tacit.Network) -> bytes:
    """A PNG: the accuracies of both kinds for all HMMs, and what one testing HMM selects along the chain."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.4 * (len(panels) + 1), 4.2), dpi=100)
        *scatters, last = figure.subplots(1, len(panels) + 1, squeeze=False)[0]
        for axes, (title, results) in zip(scatters, panels.items(), strict=True):
            scatter(axes, title, list(results.values()))
        for before, colour in enumerate((BLUE, RED)):
            for t, values in enumerate(selected(net, before), 1):
                label = f"after {before}" if t == 1 else None
                place = np.full(len(values), t + 0.2 * before - 0.1)
                last.plot(place, values, "o", color=colour, markersize=3, label=label)
        last.set_title("what one testing HMM selects", fontsize=10, loc="left")
        last.set_xlabel("t")
        last.set_ylabel("P(H$_t$ = 1 | H$_{t-1}$)")
        last.legend(frameon=False, loc="center left")
        figure.tight_layout(w_pad=2.0)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
    return drawn.getvalue()


def scatter(axes: Any, title: str, results: Sequence[Result]) -> None:
    """A point per HMM, with a standard deviation over folds in each direction."""
    x, y = ([r.mean(kind) for r in results] for kind in KINDS)
    spread = [[r.deviation(kind) for r in results] for kind in KINDS]
    axes.errorbar(x, y, spread[1], spread[0], "o", color=BLUE, ecolor=PALE, elinewidth=0.7, markersize=3)
    axes.plot([0.45, 1], [0.45, 1], color=INK, linewidth=0.8, linestyle="--")
    ceiling = statistics.mean(r.mean("truth") for r in results)
    axes.axhline(ceiling, color=INK, linewidth=0.8, linestyle=":")
    axes.text(0.46, ceiling - 0.018, "true networks, mean", color=INK, fontsize=8)
    axes.set_aspect("equal")
    axes.set_xlim(0.45, 1.0)
    axes.set_ylim(0.45, 1.0)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("accuracy of the HMM")
    axes.set_ylabel("accuracy of the testing HMM")


def example(results: Mapping[Cell, Result]) -> Cell:
    """The HMM whose predictions gain most from tests."""
    return max(results, key=lambda cell: results[cell].mean("testing HMM") - results[cell].mean("HMM"))


def study(out: Path, transitions: Mapping[str, float], models: Sequence[int], workers: int) -> None:
    """Compute what is not there yet, and write the picture and the table."""
    panels = {}
    for title, transition in transitions.items():
        panels[title] = cells.run([Cell(transition, m) for m in models], compute, Result, out / "cells", workers)
        print(report(panels[title]), end="\n\n")
    cell = example(next(iter(panels.values())))
    net = fit("testing HMM", records(joint_of(cell), cell).sum(axis=0))
    (out / "testing-hmm.png").write_bytes(picture(panels, net))
    print(f"wrote {out / 'testing-hmm.png'}")


if __name__ == "__main__":
    try:
        study(OUT, TRANSITIONS, range(MODELS), os.cpu_count() or 1)
    except KeyboardInterrupt:
        sys.exit(f"\nstopped; finished cells are in {OUT / 'cells'}: run again to go on")
