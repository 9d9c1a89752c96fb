"""One step of learning (loss, gradient, update), beside the same model written in torch, and fits of deep chains.

One run: both sides take turns on the same rows, and their losses and gradients are compared. torch is used if it is
there. `python -m bench learning 5` takes 5 turns of steps and writes nothing; `python -m bench learning chains 3` fits
the chains with 3 seeds and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from paper.functions import examples

import tacit
from bench.tables import MISSED, OK, Ratio, Seconds, Section, write
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.objective import Objective
from tacit.learn.fitting.optimizers import Adam, State
from tacit.learn.fitting.parameters import Parameters

PAGE = Path(__file__).parent.parent / "docs" / "bench-learning.md"
ROWS, TESTS, GAMMA, RATE = 1024, 4, 16.0, 1e-3
TURNS, STEPS = 30, 10
MILLISECONDS, FASTER, AGREEMENT = 0.5, 5, 1e-12
CHAINS, SEEDS, LONGEST = (4, 8, 16), 3, 60.0  # tests one below the other; seeds; seconds of a fit
LOSSES = {"g1": 1e-6, "g2": 1.5e-6}  # what the longest chain must reach
INTRO = f"""Written by `python -m bench learning`. 2 cores, which other programs may have used at the same time; every
figure comes from one run, in which all sides take turns. The model is a layer of {TESTS} tests, all of whose numbers
are learned; the loss is the mean squared error of {ROWS:,} rows of soft evidence, in float64. A step is the loss, its
gradient by all weights, and an update by Adam."""

Step = Callable[[], Any]


@dataclass(frozen=True)
class Side:
    """Somebody who learns: one step, and the loss and gradient at the start."""

    name: str
    step: Step
    loss: float
    gradient: np.ndarray


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Two inputs, and a bump as the labels."""
    x = np.random.default_rng(0).random((ROWS, 2))
    return x, 0.1 + 0.8 * np.exp(-8 * ((x - 0.5) ** 2).sum(axis=1))


def start(net: tacit.Network) -> tuple[Parameters, np.ndarray, tacit.Network]:
    """What is learned, random weights to start from, and the network that they make: the same for everybody."""
    parameters = Parameters(net, net.variables)
    weights = parameters.start(np.random.default_rng(0))
    return parameters, weights, parameters.fill(weights)


def ours(net: tacit.Network) -> Side:
    """A step as `tacit.fit` takes it with optimizer="adam"."""
    parameters, weights, filled = start(net)
    tac = tacit.compile(filled, "Q", ["E1", "E2"], engine="tape")
    engine: Any = tac.engine()
    objective = Objective(parameters, engine, read_data(tac, *rows(), None), "mse")
    state, adam = State(weights), Adam(RATE, batch=ROWS, total=10**9, clip=None)
    return Side("tacit.fit", lambda: adam.advance(objective, state, 1), *objective.value_and_gradient(weights))


def module(net: tacit.Network) -> Side:
    """The query as a torch module, with torch's optimizer."""
    import torch

    from tacit.torch import TACModule

    x, y = (torch.tensor(a) for a in rows())
    model = TACModule(tacit.compile(net, "Q", ["E1", "E2"]))
    model.load_network(start(net)[2])
    return _trained("TACModule", lambda: (model(x)[:, 0] - y).square().mean(), [model.weights])


def by_hand(net: tacit.Network, name: str, posterior: Callable[..., Any]) -> Side:
    """The model in torch: every table is a parameter through the logistic, all tests are done at once."""
    import torch

    def logits(*tables: np.ndarray) -> Any:
        return torch.tensor(np.stack(tables)).logit().requires_grad_()

    net = start(net)[2]
    tests: list[Any] = [net.cpt(f"T{i + 1}") for i in range(TESTS)]
    priors = logits(*(net.table(n)[0] for n in ("E1", "E2")))  # (2,)
    plus, minus = (logits(*(getattr(t, part)[..., 0].ravel() for t in tests)) for part in ("plus", "minus"))
    thresholds = logits(*(t.thresholds.ravel() for t in tests))  # (tests, 4), as plus and minus
    query = logits(*net.table("Q")[..., 0].ravel())  # (2 ** tests,)
    x, y = (torch.tensor(a) for a in rows())
    weights = [priors, plus, minus, thresholds, query]
    side = _trained(name, lambda: (posterior(x, *(w.sigmoid() for w in weights)) - y).square().mean(), weights)
    by_test = [g[i] for i in range(TESTS) for g in (plus.grad, minus.grad, thresholds.grad)]
    return replace(side, gradient=torch.cat([priors.grad, *by_test, query.grad]).numpy())  # in the order of ours


def rows_first(x: Any, priors: Any, plus: Any, minus: Any, thresholds: Any, query: Any) -> Any:
    """As torch is usually written: the batch is the first axis, and products of states are written out."""
    import torch

    e1, e2 = torch.stack([x * priors, (1 - x) * (1 - priors)], dim=-1).unbind(dim=1)  # (rows, 2)
    joint = (e1[:, :, None] * e2[:, None, :]).flatten(1)  # (rows, 4)
    p = joint / joint.sum(dim=1, keepdim=True)
    weight = (GAMMA * (p[:, None] - thresholds)).sigmoid()  # (rows, tests, 4)
    true = torch.lerp(minus, plus, weight)
    t = torch.stack([true, 1 - true], dim=-1)  # (rows, tests, 4, 2)
    left = (p[:, :, None, None] * t[:, 0, :, :, None] * t[:, 1, :, None, :]).flatten(2)  # (rows, 4, 4)
    right = (t[:, 2, :, :, None] * t[:, 3, :, None, :]).flatten(2)
    return (left.mT @ right).flatten(1) @ query  # (rows, 16) by (16,)


def rows_last(x: Any, priors: Any, plus: Any, minus: Any, thresholds: Any, query: Any) -> Any:
    """By someone who knows what is fast: long rows innermost, and one test after the other folded into the query."""
    import torch

    first = x.T * priors[:, None]  # (2, rows)
    e1, e2 = torch.stack([first, (1 - x.T) * (1 - priors[:, None])], dim=1)  # (2, rows)
    joint = (e1[:, None] * e2).flatten(0, 1)  # (4, rows)
    p = joint / joint.sum(dim=0)
    weight = (GAMMA * (p - thresholds[..., None])).sigmoid()  # (tests, 4, rows)
    value = query[:, None, None]  # (states of the tests, 4, rows)
    for test in torch.lerp(minus[..., None], plus[..., None], weight):
        true, false = value.chunk(2)
        value = torch.lerp(false, true, test)
    return (value[0] * p).sum(dim=0)


def _trained(name: str, loss: Callable[[], Any], weights: list[Any]) -> Side:
    import torch

    torch.set_num_threads(1)  # two gain it a few per cent on an idle machine, and lose it everything on a busy one

    optimizer = torch.optim.Adam(weights, RATE, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    value = loss()
    value.backward()
    return Side(name, step, value.item(), torch.cat([w.grad.flatten() for w in weights]).numpy().copy())


def taking_turns(sides: list[Side], turns: int) -> list[list[float]]:
    """Seconds of every step of every side; a turn is several steps, the first of which finds cold caches."""
    spent: list[list[float]] = [[] for _ in sides]
    for _ in range(turns):
        for side, own in zip(sides, spent, strict=True):
            for i in range(-2, STEPS):
                begin = time.perf_counter()
                side.step()
                if i >= 0:
                    own.append(time.perf_counter() - begin)
    return spent


def one_step(turns: int) -> Section:
    """All sides beside each other."""
    net = tacit.examples.layer(TESTS, gamma=GAMMA)
    sides = [ours(net)]
    if find_spec("torch") is not None:
        sides += [module(net), by_hand(net, "torch", rows_first), by_hand(net, "torch, by an expert", rows_last)]
    times = [Seconds(median(own), min(own)) for own in taking_turns(sides, turns)]
    section = Section(
        f"1. One step: {TESTS} tests, {ROWS:,} rows",
        f"{MILLISECONDS} ms, and {FASTER}x as fast as torch; the same loss and gradient to {AGREEMENT:g}",
        ("side", "median, ms", "fastest, ms", "vs torch, medians", "vs torch, fastest", "difference", "verdict"),
    )
    peer = times[2] if len(times) > 2 else None
    for side, spent in zip(sides, times, strict=True):
        difference = max(abs(side.loss - sides[0].loss), float(np.abs(side.gradient - sides[0].gradient).max()))
        ratios = [Ratio(peer.median, spent.median), Ratio(peer.fastest, spent.fastest)] if peer else []
        good = difference <= AGREEMENT
        if side is sides[0]:
            good &= spent.median <= MILLISECONDS / 1e3 and all(float(ratio) >= FASTER for ratio in ratios)
        figures = (f"{seconds * 1e3:.3f}" for seconds in (spent.median, spent.fastest))
        section.add(side.name, *figures, *(ratios or "--"), f"{difference:.1e}", OK if good else MISSED)
    section.notes.append(
        '*tacit.fit* is a step with optimizer="adam". *torch* is the model by hand, vectorised over rows, tests and '
        "states, with autograd and a fused Adam; *by an expert*, with the rows innermost and one test after the other "
        f"folded into the query. {turns * STEPS} steps each. On a busy machine, the fastest steps are the fairer "
        "comparison; both ratios must reach the bar. *Difference*: the largest in the loss and its gradient."
    )
    return section


def chains(seeds: int) -> Section:
    """Chains of more and more tests, fitted with nothing but a seed: the loss never rises."""
    section = Section(
        "2. Deep chains",
        f"16 tests reach {LOSSES['g1']:g} on g1 and {LOSSES['g2']:g} on g2; more tests are never worse; at most "
        f"{LONGEST:g} s each",
        ("function", "seed", *(f"{tests} tests" for tests in CHAINS), *(f"{tests}, s" for tests in CHAINS), "cpu, s",
         "verdict"),
    )  # fmt: skip
    for function, bar in LOSSES.items():
        for seed in range(seeds):
            began = time.process_time()
            found = [_fitted(function, tests, seed) for tests in CHAINS]
            spent = time.process_time() - began
            losses, seconds = [fit.loss for fit in found], [fit.seconds for fit in found]
            good = losses == sorted(losses, reverse=True) and losses[-1] <= bar and max(seconds) <= LONGEST
            figures = [f"{loss:.1e}" for loss in losses] + [f"{s:.1f}" for s in (*seconds, spent)]
            section.add(function, seed, *figures, OK if good else MISSED)
    section.notes.append(
        "Mean squared errors of `tacit.fit(tacit.compile(tacit.examples.chain(tests), ...), ...)` on the paper's grid "
        "of 1,024 points, and the seconds each took; *cpu*: processor time of all three."
    )
    return section


def _fitted(function: str, tests: int, seed: int) -> tacit.learn.Fit:
    tac = tacit.compile(tacit.examples.chain(tests), "Q", ["E1", "E2"])
    return tacit.fit(tac, *examples(function), seed=seed, progress=False)


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless it is said what to measure."""
    if arguments[:1] == ["chains"]:
        print(chains(int(arguments[1]) if len(arguments) > 1 else SEEDS).text())
        return
    sections = [one_step(int(arguments[0]) if arguments else TURNS)]
    if not arguments:
        sections.append(chains(SEEDS))
    for section in sections:
        print(section.text())
    if not arguments and find_spec("torch") is not None:
        write(PAGE, "Learning: measured", INTRO, sections)
