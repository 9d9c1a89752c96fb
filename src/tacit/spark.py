"""Scoring and learning on Spark: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate`, `fit` and `discover`.

Rows are those of a Spark DataFrame. Scoring gives another one.

>>> import tacit  # doctest: +SKIP
>>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])  # doctest: +SKIP
>>> posterior(tac, spark.read.parquet("rows.parquet"), keep=["id"]).first()  # doctest: +SKIP
Row(id=7, B.true=0.9, B.false=0.1)
>>> discover(spark.read.parquet("rows.parquet").drop("id")).network.edges  # doctest: +SKIP
(('size', 'treatment'), ('size', 'recovery'), ('treatment', 'recovery'))
"""

from tacit.base.version import how_to_install

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.spark needs PySpark: {how_to_install('spark')}", name="pyspark") from error

from tacit.clusters.spark_backend import SparkBackend

_backend = SparkBackend()
posterior = _backend.posterior
log_evidence = _backend.log_evidence
mpe = _backend.mpe
sample = _backend.sample
estimate = _backend.estimate
fit = _backend.fit
discover = _backend.discover

__all__ = ["discover", "estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
