"""Scoring and learning on Ray: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate` and `fit`."""

from tacit.installation import how_to_install

try:
    import ray.data  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.ray needs Ray: {how_to_install('ray')}", name="ray") from error

from tacit.ray.learning import estimate, fit
from tacit.ray.scoring import log_evidence, mpe, posterior, sample

__all__ = ["estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
