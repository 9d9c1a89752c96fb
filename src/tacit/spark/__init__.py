"""Scoring and learning on Spark: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate` and `fit`."""

from tacit.installation import how_to_install

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.spark needs PySpark: {how_to_install('spark')}", name="pyspark") from error

from tacit.spark.learning import estimate, fit
from tacit.spark.scoring import log_evidence, mpe, posterior, sample

__all__ = ["estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
