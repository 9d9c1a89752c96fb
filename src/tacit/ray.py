"""Scoring and learning on Ray: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate` and `fit`."""

from tacit.base.version import how_to_install

try:
    import ray.data  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.ray needs Ray: {how_to_install('ray')}", name="ray") from error

from tacit.clusters.ray_backend import RayBackend, log_evidence, mpe, posterior, sample

_backend = RayBackend()
estimate = _backend.estimate
fit = _backend.fit

__all__ = ["estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
