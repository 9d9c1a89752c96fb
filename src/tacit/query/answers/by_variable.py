"""Numbers for each variable that print as a table: what asking about each would tell, or be worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends, probability, row_name
from tacit.base.text import listed, plural
from tacit.base.version import package

MAX_COLUMNS = 10  # rows that are printed
MAX_INFORMATION = 10  # variables that are printed
NOTHING = 1e-12  # nats that are rounding errors


def untold(continuous: Sequence[str]) -> str:
    """What an answer about information does not say; nothing, if it says all."""
    return f"what a number of {listed(continuous)} would tell is not computed" if continuous else ""


class ByVariable(dict[str, Floats], ABC):
    """A dictionary from variables to numbers (rows,), NaN where a state is observed already; it prints as a table.

    The table and the frames leave out `asked` variables, and those that are observed in all rows.
    """

    called: ClassVar[str]  # the column of the numbers, where a single row has a line for each variable

    def __init__(
        self,
        numbers: Mapping[str, Floats],
        index: Any = None,
        asked: Sequence[str] = (),
        continuous: Sequence[str] = (),
    ) -> None:
        super().__init__(numbers)
        self.index, self.asked, self.continuous = index, tuple(asked), tuple(continuous)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each row of evidence, with its index, and a column for each variable.

        Of a single row of evidence, it has a row for each variable, and a column for the numbers. What has the largest
        ones is first.
        """
        pandas = package("pandas", "frames")
        if self._is_single():
            return pandas.DataFrame(self.columns())
        return pandas.DataFrame(self.columns(), index=self.index).rename_axis(columns="variable")

    def to_polars(self) -> Any:
        """A polars frame with the columns of `to_pandas`."""
        return package("polars", "frames").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """A pyarrow table with the columns of `to_pandas`."""
        return package("pyarrow", "cli").table(self.columns())

    def columns(self) -> dict[str, Any]:
        """A column (rows,) for each variable; of a single row, the variables and their numbers."""
        others = self._others()
        if not self._is_single():
            return dict(others)
        return {"variable": list(others), self.called: [float(own[0]) for own in others.values()]}

    def _is_single(self) -> bool:
        return len(next(iter(self.values()), ())) == 1

    def _others(self) -> dict[str, Floats]:
        """The variables that can be asked about, those with the largest numbers first."""
        unseen = {n: own for n, own in self.items() if n not in self.asked and not (len(own) and np.isnan(own).all())}
        return dict(sorted(unseen.items(), key=lambda item: -float(np.nansum(item[1]))))

    def _grid(self) -> Grid:
        others = self._others()
        rows = ends(len(next(iter(others.values()))), MAX_COLUMNS)
        best = list(others)[:MAX_INFORMATION]
        body = [(name, *(GAP if row is None else self._cell(others[name][row]) for row in rows)) for name in best]
        more = len(others) - len(best)
        less = self._less(more) if more else ""
        return Grid(
            [("variable", *(row_name(self.index, row) for row in rows))],
            body,
            title=self._title(),
            note="; ".join(filter(None, [less, untold(self.continuous)])),
        )

    @abstractmethod
    def _title(self) -> str: ...

    @abstractmethod
    def _less(self, more: int) -> str:
        """What is said of variables that are not printed."""

    @abstractmethod
    def _cell(self, number: float) -> str: ...

    def __repr__(self) -> str:
        return str(self._grid()) if self._others() else "{}"

    def _repr_html_(self) -> str | None:
        return self._grid().html() if self._others() else None


class Information(ByVariable):
    """What observing each variable is expected to tell about a query, in nats; a dictionary that prints as one table.

    Its values are (rows,), in the order of the network; NaN where the state is observed already. The ten variables that
    tell most in the rows together are printed. The table and the frames leave out what is observed in all rows, and the
    query itself, which nobody can be asked about: what it would tell is its entropy now, `information["B"]`.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> tac.information({"C": ["lo", None]}, labels=True)
    What each variable is expected to tell about B, in nats
    variable         0         1
    A         0.076581  0.110413
    C              nan  0.005721
    >>> tac.information({"C": "lo"}, labels=True).to_pandas()
      variable  information
    0        A     0.076581
    """

    called = "information"

    def _title(self) -> str:
        return f"What each variable is expected to tell about {', '.join(self.asked)}, in nats"

    def _less(self, more: int) -> str:
        return f"and {plural(more, 'more variable')} that {'tells' if more == 1 else 'tell'} less"

    def _cell(self, number: float) -> str:
        return probability(0.0 if number < NOTHING else float(number))
