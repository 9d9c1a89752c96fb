"""Every kernel, compiled by calls that need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numba import int64

import tacit
from tacit.bounds.estimating import Estimator
from tacit.bounds.factor_list import factor_list
from tacit.compiler import by_diagrams
from tacit.compiler.diagrams import diagram_kernels
from tacit.compiler.operations.dense import contracted
from tacit.compiler.order.long_search import annealed
from tacit.compiler.order.tree import Problem
from tacit.compiler.question import Question
from tacit.engines.tape import tape_kernels
from tacit.learn.estimating.count_kernels import count_families
from tacit.learn.estimating.tiles import LANES

ROWS = 32  # of each call


def compile_all(report: Callable[[str], None]) -> str | None:
    """Compile all kernels that are not on disk yet, with reports; returns their folder, if they can be kept."""
    for number, (what, compile_) in enumerate(COMPILATIONS.items(), start=1):
        report(f"{number}/{len(COMPILATIONS)} {what}")
        compile_()
    folder: str | None = tape_kernels.forward._cache.cache_path
    return folder


def interpreter(dtype: str) -> None:
    """Posteriors, derivatives and states, for hard and soft evidence."""
    rng = np.random.default_rng(0)
    soft, hard = {"A": rng.random(ROWS), "C": rng.random(ROWS)}, ["lo", "hi"] * (ROWS // 2)
    for gamma in (None, 16.0):
        net = tacit.examples.abc().with_gamma(gamma)
        for evidence, indexed in ((soft, ()), ({**soft, "C": hard}, ("C",))):
            tac = tacit.compile(net, "B", ["A", "C"], indexed, engine="tape", dtype=dtype)
            tac.posterior(evidence)
            tac.marginals(evidence)
            tac.mpe(evidence)
            tac.sample(evidence, seed=0)


def learning() -> None:
    """The kernels of `fit` on the interpreter, with each of its optimizers."""
    rng = np.random.default_rng(0)
    rows, labels = {"E1": rng.random(ROWS), "E2": rng.random(ROWS)}, rng.random(ROWS)
    tac = tacit.compile(tacit.examples.chain(tests=2, gamma=16.0), "Q", ["E1", "E2"], engine="tape")
    for optimizer, loss in (("lbfgs", "mse"), ("adam", "cross_entropy"), ("lm", "mse")):
        tacit.fit(tac, rows, labels, loss=loss, optimizer=optimizer, steps=2, restarts=1, progress=False)


def counting() -> None:
    """The kernels that `estimate` counts many rows by, of a byte or more for each state."""
    for codes in (np.zeros((1, ROWS), dtype=np.int8), np.zeros((1, ROWS), dtype=np.int64)):
        one = np.ones(1, dtype=np.int64)
        count_families(codes, np.zeros(0), 0 * one, 2 * one, one, 0 * one, np.zeros((LANES, 2)))


def discovering() -> None:
    """The kernels of `discover`, for rows that count once, several times, or in fractions; and for dear queries."""
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(states, size=2 * ROWS).astype(str) for name, states in (("A", 2), ("B", 2), ("C", 12))}
    for weights in (None, np.repeat((1, 2), ROWS), np.full(2 * ROWS, 0.5)):
        tacit.discover(rows, weights=weights, progress=False)
    few = {"A": ["a", "b"] * ROWS, "B": ["x", "y", "y", "y"] * (ROWS // 2)}
    tacit.discover(few, max_cost=6, start=[("A", "B")], progress=False)  # the start costs just too much


def estimates() -> None:
    """The kernels that estimate what is too wide for exact answers."""
    factors = factor_list(tacit.examples.asia(), Question(("dysp",), ("xray",)))
    Estimator(factors).marginals({"xray": np.ones((ROWS, 2))})


def circuits() -> None:
    """Circuits of sums and products."""
    tacit.compile(tacit.examples.abc(), "B", ["A"]).circuit().tape().evaluate({"A": [0.5]})


def diagrams() -> None:
    """The kernels of the compiler's decision diagrams."""
    net = tacit.examples.kidney_stones()
    for question in (Question(("recovery",), ("size", "treatment")), Question((), ("size",), best=tuple(net))):
        by_diagrams(net, question)
    store = diagram_kernels.apply.signatures[0][0]
    diagram_kernels.collect.compile((store, int64[::1]))  # only a large network would need it


def tables() -> None:
    """The kernels of large tables, of both types: products with entries anywhere, those in runs, and sums."""
    sizes = {"a": 2, "b": 2, "c": 2, "d": 64}
    for dtype in (np.float64, np.float32):
        for axes, out in ((("abc", "cba"), "ab"), (("abd", "a"), "bd"), (("d",), "")):
            arrays = [np.ones([sizes[a] for a in own], dtype=dtype) for own in axes]
            contracted(arrays, [tuple(own) for own in axes], tuple(out), sizes)


def orders() -> None:
    """The kernel of the long search for an order."""
    problem = Problem([0b011, 0b110, 0b101], [True, False, False], ["a", "b", "c"], [2, 2, 2], keep=0)
    annealed(problem, [(0, 1), (2, 3)], moves=10, heat=0.1, seed=0)


COMPILATIONS: Mapping[str, Callable[[], None]] = {
    "the interpreter, in float64": lambda: interpreter("float64"),
    "the interpreter, in float32": lambda: interpreter("float32"),
    "learning": learning,
    "counting": counting,
    "structures": discovering,
    "circuits": circuits,
    "decision diagrams": diagrams,
    "large tables": tables,
    "orders": orders,
    "estimates": estimates,
}
