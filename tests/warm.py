"""Compile all kernels once, before several processes of tests would each compile their own.

Code that is compiled in one go and code that finds a part of it in the cache differ in the last bit, which tests that
compare two processes bit for bit would see.
"""

from unittest.mock import patch

import numpy as np

import tacit
from tacit import compiler

rng = np.random.default_rng(0)
rows = {"E1": rng.random(32), "E2": rng.random(32)}
for hard in ((), ("E2",)):
    evidence = {**rows, "E2": ["true", "false"] * 16} if hard else rows
    net = tacit.examples.chain(tests=2, gamma=16.0)
    tac = tacit.compile(net, "Q", ["E1", "E2"], hard, engine="tape")
    for optimizer, loss in (("lbfgs", "mse"), ("adam", "cross_entropy"), *([] if hard else [("lm", "mse")])):
        fit = tacit.fit(
            tac, evidence, rng.random(32), loss=loss, optimizer=optimizer, steps=2, restarts=1, progress=False
        )
    for dtype in ("float64", "float32"):
        query = tacit.compile(fit.network, "Q", ["E1", "E2"], hard, engine="tape", dtype=dtype)
        query.posterior(evidence)
        query.marginals(evidence)
        query.mpe(evidence)
        query.sample(evidence)
hardened = tacit.compile(tacit.examples.chain(tests=2, gamma=16.0), "Q", ["E1", "E2"], engine="tape")
tacit.fit(hardened, rows, rng.random(32), steps=2, restarts=1, harden=True, progress=False)
for weights in (None, [1.0, 2.0]):
    tacit.estimate(tacit.examples.kidney_stones().learnable(), {"size": ["small", "large"]}, weights=weights)
tacit.compile(tacit.examples.abc(), "B", ["A"]).circuit().tape().evaluate({"A": [0.5]})
settings = {"WORTH": 0, "KNOWN_SHARE": -1.0, "GAIN": 0, "CLEAR": 0, "EVIDENCE_PER_STRUCTURE": {"float64": 1}}
with patch.multiple(compiler, **settings):  # diagrams, also where tables do
    tacit.compile(tacit.examples.kidney_stones(), "recovery", ["size", "treatment"]).mpe({"size": "small"})
