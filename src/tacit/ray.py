"""Scoring and learning on Ray: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate`, `fit` and `discover`.

>>> import ray  # doctest: +SKIP
>>> discover(ray.data.read_parquet("rows.parquet").drop_columns(["id"])).network.edges  # doctest: +SKIP
(('size', 'treatment'), ('size', 'recovery'), ('treatment', 'recovery'))
"""

from tacit.base.version import how_to_install

try:
    import ray.data  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.ray needs Ray: {how_to_install('ray')}", name="ray") from error

from tacit.clusters.ray_backend import RayBackend, log_evidence, mpe, posterior, sample

_backend = RayBackend()
estimate = _backend.estimate
fit = _backend.fit
discover = _backend.discover

__all__ = ["discover", "estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
