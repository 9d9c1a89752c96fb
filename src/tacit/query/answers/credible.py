"""Intervals of probabilities: how sure an answer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tacit.base.floats import Floats
from tacit.model.elements.variable import Variable
from tacit.query.answers.ranges import P_co, Ranges

PARTS = ("mean", "low", "high")


class Credible(Ranges[P_co]):
    """Expected posteriors, and the intervals that they are in with a given probability. Made by `TAC.credible`.

    `mean`, and the ends `low` and `high`, are (rows, states), or (rows, states of the first variable, ...). `level` is
    the probability of each interval, and `method` how it was worked out. It prints as a table and converts to frames.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("fault", states=["yes", "no"])
    >>> draws = tacit.estimate(net, {"fault": ["yes"] * 3 + ["no"] * 17}, prior=1.0).draws(1000)
    >>> tacit.compile(draws.network, "fault").credible({}, draws)
    Means and 90% credible intervals
    fault                   yes                    no
    0      0.173 [0.064, 0.311]  0.827 [0.689, 0.936]
    """

    middle, kind = "mean", "credible"

    def __init__(
        self, parts: Mapping[str, Floats], level: float, method: str, variables: Sequence[Variable], index: Any = None
    ) -> None:
        """Of the three `parts`, mean, low and high."""
        super().__init__(parts, variables, index)
        self.level, self.method = level, method

    @property
    def mean(self) -> P_co:
        """The expected probabilities."""
        return cast(P_co, self._arrays["mean"])

    def plot(self, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw the means with their intervals: see `tacit.plot.posterior`. It needs matplotlib."""
        from tacit.views.charts import posterior

        return posterior(self, ax, width)

    def _title(self) -> str:
        return f"Means and {100 * self.level:.4g}% credible intervals"
