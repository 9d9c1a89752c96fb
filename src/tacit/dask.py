"""Scoring and learning on Dask: `posterior`, `log_evidence`, `mpe`, `sample`; `estimate`, `fit` and `discover`.

Rows are those of a Dask DataFrame. Scoring gives another one, with the same partitions and index.

>>> import dask.dataframe, pandas, tacit
>>> frame = pandas.DataFrame({"id": [7, 8], "A": ["true", None], "C": ["lo", "hi"]})
>>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
>>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
>>> print(posterior(tac, rows, keep=["id"]).compute(scheduler="sync").round(4))
   id  B.true  B.false
0   7  0.9000   0.1000
1   8  0.5043   0.4957
>>> log_evidence(tac, rows).compute(scheduler="sync")["log_evidence"].round(4).tolist()
[-2.5903, -0.5534]
>>> tac = tacit.compile(tacit.examples.abc(), query=None, evidence=["A", "C"])
>>> print(mpe(tac, rows, keep=["C"], names={"C": "C.best"}).compute(scheduler="sync").round(4))
    C      A     B C.best  log_probability
0  lo   true  true     lo          -2.6956
1  hi  false  true     hi          -1.4065
>>> sample(tac, rows).compute(scheduler="sync")["C"].tolist()
['lo', 'hi']

Learning gives what it gives on one machine.

>>> net = tacit.Network()
>>> net.add("rain", states=["yes", "no"])
>>> net.add("wet", ["rain"], states=["yes", "no"])
>>> frame = pandas.DataFrame({"rain": ["yes", "yes", "no", "no"], "wet": ["yes", "yes", "yes", "no"]})
>>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
>>> estimate(net, rows).network.table("wet").tolist()
[[1.0, 0.0], [0.5, 0.5]]
>>> fit(tacit.compile(net.with_cpts({"rain": [0.5, 0.5]}), "wet", ["rain"]), rows, progress=False).loss < 0.13
True
>>> frame = pandas.DataFrame(tacit.examples.kidney_stones().sample(2000, seed=1))
>>> rows = dask.dataframe.from_pandas(frame, npartitions=2)
>>> discover(rows, tiers=[["size"], ["treatment"], ["recovery"]], progress=False).network.edges
(('size', 'treatment'), ('size', 'recovery'), ('treatment', 'recovery'))
"""

from tacit.base.version import how_to_install

try:
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.dask needs Dask: {how_to_install('dask')}", name="dask") from error

from tacit.clusters.dask_backend import DaskBackend

_backend = DaskBackend()
posterior = _backend.posterior
log_evidence = _backend.log_evidence
mpe = _backend.mpe
sample = _backend.sample
estimate = _backend.estimate
fit = _backend.fit
discover = _backend.discover

__all__ = ["discover", "estimate", "fit", "log_evidence", "mpe", "posterior", "sample"]
