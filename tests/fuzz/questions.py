"""The questions beyond one posterior, of random networks with random evidence, against the definition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import tacit
from tacit import semantics
from tests import exact
from tests.fuzz import extreme
from tests.fuzz.ordinary import ENGINES, ROWS, SMALLEST, likelihoods_of, network, random_columns
from tests.helpers import one_row

SAMPLES = 4000


def check_questions(rng: np.random.Generator) -> str:
    """Every question once; what is wrong, if anything is."""
    net = network(rng)
    columns, certain = random_columns(rng, net)
    rows = [i for i in range(ROWS) if _answerable(net, one_row(columns, i))] if columns else []
    if not rows:
        return ""
    names = [str(n) for n in rng.permutation(net.variables)[: rng.integers(1, 4)]]
    hard = [n for n in certain if rng.random() < 0.5]
    how = str(rng.choice(ENGINES))
    tac = tacit.compile(net, names, [n for n in columns if n not in hard], hard, engine=how)
    with warnings.catch_warnings(action="ignore", category=tacit.ImpossibleEvidenceWarning):
        right = semantics.posterior(net, names, columns)
        found: dict[str, tuple[Any, Any]] = {
            "several": (tac.posterior(columns), right),
            "mpe": (np.exp(tac.mpe(columns).log_probability), semantics.most_probable(net, net.variables, columns)),
            "map": (np.exp(tac.map(columns).log_probability), semantics.most_probable(net, names, columns)),
        }
        if len(names) == 1:
            ours, theirs = tac.information(columns), semantics.information(net, names[0], columns)
            found |= {f"information of {name}": (ours[name], theirs[name]) for name in net}
        for what, (ours, theirs) in found.items():
            if not np.allclose(ours[rows], theirs[rows], rtol=1e-10, atol=1e-12, equal_nan=True):
                return f"{what}, {how}, hard {hard}: {ours[rows].tolist()}, right {theirs[rows].tolist()}"
        return _wrong_samples(net, tac, one_row(columns, rows[0]), right[rows[0]], names)


def _answerable(net: tacit.Network, row: dict[str, Any]) -> bool:
    """Whether no test is near a tie, and float64 holds the numbers of the definition."""
    given = {n: likelihoods_of(net, n, column[0]) for n, column in row.items()}
    right = exact.query(net, net.variables[0], {n: v for n, v in given.items() if v is not None})
    return right.nearest >= extreme.MARGIN and (not right.possible or right.log_evidence > SMALLEST)


def _wrong_samples(net: tacit.Network, tac: tacit.TAC, row: dict[str, Any], right: Any, names: list[str]) -> str:
    """Frequencies that no honest sampler would give: beyond seven standard deviations."""
    if np.isnan(right).any():
        return ""
    drawn = tac.sample(row, n=SAMPLES)
    codes = [np.array([net.variable(n).codes[x] for x in drawn[n][0].tolist()]) for n in names]
    counts = np.bincount(np.ravel_multi_index(codes, right.shape), minlength=right.size).reshape(right.shape)
    spread = 7 * np.sqrt(SAMPLES * right * (1 - right)) + 7
    wrong = (np.abs(counts - SAMPLES * right) > spread) | ((right == 0) & (counts > 0))
    return f"samples of {names}: {counts.tolist()}, right {(SAMPLES * right).tolist()}" if wrong.any() else ""
