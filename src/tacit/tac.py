"""The compiled query that a user holds."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tacit.evidence import EvidenceLike
from tacit.io.onnx import write_onnx
from tacit.network import Network
from tacit.query import Query, compiled
from tacit.theory.explain import Explanation, explain


def compile(
    net: Network,
    query: str,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    engine: str = "auto",
    dtype: str = "float64",
    order: Sequence[str] | None = None,
    effort: str = "auto",
    threads: int | None = None,
) -> TAC:
    """Compile a query once, to be evaluated on many rows of evidence.

    Parameters
    ----------
    net, query
        The network, and the variable whose joint and posterior are wanted.
    evidence
        The variables that take soft or hard evidence; a row may leave any of them out.
    hard
        The variables that are observed, with certainty, in every row. Tables are indexed by their states,
        which is much cheaper than a likelihood per state.
    engine
        What evaluates the query: "tape" (numba), "numpy", "torch", or "auto" to choose by cost.
    dtype
        "float64" or "float32".
    order
        An elimination order to follow, instead of a search for a cheap one.
    effort
        How long to search: "low", "auto", or "high" (seconds; uses cotengra if it is installed).
    threads
        How many threads the query may use, here and in `fit`. None: as many as the environment variable
        `TACIT_THREADS` says, or else one for every core that the process and its container may use.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> tac.posterior({"A": 0.8, "C": [[0.6, 0.4]]}).round(6)
    array([[0.585393, 0.414607]])
    """
    return compiled(TAC, net, query, evidence, hard, engine, dtype, order, effort, threads)


class TAC(Query):
    """A query compiled once, evaluated on many rows. Made by `tacit.compile`."""

    network: Network

    def explain(self, evidence: EvidenceLike | None = None) -> Explanation:
        """Why one row of evidence gets its answer: every test and its margin, and the function that applies there.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> print(tac.explain({"A": 0.8, "C": "lo"}))
        P*(B | A: true 0.8, C: lo)
         true  0.469231  ██████████████
        false  0.530769  ████████████████
        <BLANKLINE>
        test            comparison       margin   selects  changes at
        B at A='true'   0.631579 >= 0.5  +0.132   plus     A = 0.7
        B at A='false'  0.368421 >= 0.4  -0.0316  minus    A = 0.777778
        <BLANKLINE>
        With this selection, by the likelihoods of A = true:
        p*(B=true) = 0.035 + 0.0325 A
        p*(B=false) = 0.315 - 0.3075 A
        """
        return explain(self, evidence)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the query, with its numbers, as an ONNX model (opset 17) that runs without tacit.

        Inputs are the variables of `evidence`: likelihoods (rows, states) in the query's `dtype`, ones where a row has
        no evidence; for a variable in `hard`, the positions (rows,) of the observed states, as int64. Likelihoods
        count as they are given and are not scaled to sum to 1. Outputs are `posterior` (rows, states), NaN where the
        evidence has probability zero, and `log_evidence` (rows,). The model's metadata has the labels of all states.
        It cannot compute a row again whose numbers leave the range of floats, as `posterior` does: of such rows it may
        answer wrongly (see "Small numbers" in the documentation).

        >>> import onnxruntime, pathlib, tempfile, tacit
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "abc.onnx"
        >>> tacit.compile(tacit.examples.abc(), query="B", evidence=["A"], hard=["C"]).to_onnx(path)
        >>> session = onnxruntime.InferenceSession(path)
        >>> session.run(["posterior"], {"A": [[0.8, 0.2]], "C": [0]})[0].round(6)
        array([[0.469231, 0.530769]])
        """
        write_onnx(self, path)
