"""What many test files share: the engines to go through, and how results are compared."""

import os
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tacit import TAC, ImpossibleEvidenceWarning, Network, semantics
from tacit.evidence.read import read
from tacit.query.answers.selection import Selected
from tests.strategies import tie_margin

ENGINES = ["auto", "numpy", "tape", "native", "torch"]  # "auto" changes its runner before every call: see `switching`
# the same, for tests of many queries: to compile machine code for each takes long
ENGINES_OF_MANY = ["auto", "numpy", "tape", pytest.param("native", marks=pytest.mark.slow), "torch"]
TOLERANCE = 1e-12
ALL_CASES = os.environ.get("TACIT_CASES") == "all"  # as `make slow` sets it
FEW_CASES = os.environ.get("TACIT_CASES") == "few"  # as `make quick` sets it


def tries(cases: int) -> settings:
    """So many random cases in `make slow`, a third of them in `make test`."""
    return settings(max_examples=cases if ALL_CASES else max(min(cases, 10), cases // 3))


def close(actual: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    """Equal within an absolute tolerance; NaN equals NaN."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def posterior(tac: TAC, evidence: Any = None) -> np.ndarray:
    """The posterior, and a check that rows of impossible evidence come with one warning that counts them."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = tac.posterior(evidence)
    impossible = int(np.isnan(found).any(axis=1).sum())
    messages = [str(w.message) for w in caught if w.category is ImpossibleEvidenceWarning]
    assert len(caught) == len(messages) == (impossible > 0)
    if impossible:
        assert messages[0].startswith(f"the evidence of {impossible} of {len(found)} rows has probability 0")
    return found


def selected(tac: TAC, evidence: Any = None) -> dict[str, Selected]:
    """How testing nodes were decided; rows of impossible evidence are NaN, and warned of."""
    with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
        return tac.selected(evidence)


def always_hard(net: Network, evidence: Any) -> list[str]:
    """The variables of `evidence` that are observed in every row, as `Network.posterior` finds them."""
    columns = read(evidence, [net.variable(n) for n in net]).columns
    return [name for name, column in columns.items() if column.fully_observed]


def one_row(columns: dict[str, Any], i: int) -> dict[str, Any]:
    """One row of some columns."""
    return {name: column[i : i + 1] for name, column in columns.items()}


def decided(net: Network, columns: dict[str, Any], margin: float = 1e-9) -> list[int]:
    """The rows that have an answer beyond rounding: no test is near a tie, or the evidence is impossible."""
    rows = len(next(iter(columns.values()))) if columns else 1
    joint = semantics.joint(net, net.variables[0], columns).sum(axis=1)
    return [i for i in range(rows) if joint[i] == 0 or tie_margin(net, one_row(columns, i)) > margin]


impossible = pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
