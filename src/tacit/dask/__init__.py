"""Scoring and learning on Dask: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate` and `fit`."""

from tacit.installation import how_to_install

try:
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.dask needs Dask: {how_to_install('dask')}", name="dask") from error

from tacit.dask.learning import estimate, fit
from tacit.dask.scoring import log_evidence, mpe, posterior, sample

__all__ = ["estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
