"""The best action for each row, and what observing variables is worth: answers that print as tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends, row_name
from tacit.base.text import plural
from tacit.base.version import package
from tacit.model.elements.variable import Label, Variable, state_column
from tacit.query.answers.by_variable import ByVariable
from tacit.query.answers.probabilities import MAX_COLUMNS, MAX_ROWS
from tacit.query.assignments import Labels, as_lists, state_labels


@dataclass(frozen=True, eq=False)
class Decision:
    """The best action for each row of evidence. Made by `DecisionQuery.decide`.

    `expected` (rows, actions) is what each action is expected to be worth, NaN where the evidence is impossible. With
    an ensemble, it is the mean under its networks, and `share` (rows, actions) tells under which part of them each
    action is best. `index` is that of the pandas frame that the rows came from, if they did.
    """

    variable: Variable
    expected: Floats
    share: Floats | None = None
    index: Any = None

    @property
    def actions(self) -> tuple[Label, ...]:
        """The states of the decision, which the columns of `expected` follow."""
        return self.variable.states

    @cached_property
    def action(self) -> Labels:
        """The best action of each row: (rows,); the first of equally good ones, None where the row is impossible."""
        return state_labels(self.variable, self._best, np.isnan(self.expected[:, 0]))

    @cached_property
    def margin(self) -> Floats:
        """By how much the best action is better than the second best: (rows,)."""
        second, best = np.partition(self.expected, -2, axis=1)[:, -2:].T
        return np.asarray(best - second)

    @cached_property
    def doubt(self) -> Floats:
        """The share of the networks of an ensemble under which another action would be best: (rows,)."""
        if self.share is None:
            raise TacitError("doubt needs networks to compare: decide(rows, tables=ensemble)")
        return np.asarray(1 - np.take_along_axis(self.share, self._best[:, None], axis=1)[:, 0])

    @property
    def _best(self) -> NDArray[np.intp]:
        return np.asarray(self.expected.argmax(axis=1))

    def __len__(self) -> int:
        return len(self.expected)

    def columns(self) -> dict[str, NDArray[Any]]:
        """A column (rows,) for the action, for what each is expected to be worth, for the margin, and for the doubt."""
        name = self.variable.name
        each = {state_column(name, label): self.expected[:, i] for i, label in enumerate(self.actions)}
        doubt = {} if self.share is None else {"doubt": self.doubt}
        return {name: self.action, **each, "margin": self.margin, **doubt}

    def plot(self, row: int = 0, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw what each action is expected to be worth in a row: see `tacit.plot.decision`. It needs matplotlib."""
        from tacit.views.charts import decision

        return decision(self, row, ax, width)

    def to_pandas(self) -> Any:
        """A pandas frame with the index of the rows: the action, what each is expected to be worth, and the margin."""
        return package("pandas", "frames").DataFrame(self.columns(), index=self.index)

    def to_polars(self) -> Any:
        """A polars frame with the columns of `to_pandas`."""
        return package("polars", "frames").DataFrame(as_lists(self.columns()))

    def to_arrow(self) -> Any:
        """A pyarrow table with the columns of `to_pandas`."""
        return package("pyarrow", "cli").table(as_lists(self.columns()))

    def _grid(self) -> Grid:
        rows, some = ends(len(self), MAX_ROWS), ends(len(self.actions), MAX_COLUMNS)
        doubt = {} if self.share is None else {"doubt": self.doubt}
        body = []
        for row in rows:
            if row is None:
                body.append((GAP,) * (3 + len(some) + len(doubt)))
                continue
            worth = [GAP if i is None else _amount(self.expected[row, i]) for i in some]
            unsure = [f"{own[row]:.0%}" for own in doubt.values()]
            body.append((row_name(self.index, row), str(self.action[row]), *worth, _amount(self.margin[row]), *unsure))
        names = [GAP if i is None else str(self.actions[i]) for i in some]
        note = f"[{plural(len(self), 'row')}]" if None in rows else ""
        return Grid([("", self.variable.name, *names, "margin", *doubt)], body, note=note)

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {self.variable.name}"

    def _repr_html_(self) -> str:
        return self._grid().html()


class Worth(ByVariable):
    """What observing each variable is worth, less its cost; a dictionary that prints as a table. See `worth`.

    Its values are (rows,), in the order of the evidence; NaN where the state is observed already. The ten variables
    that are worth most in the rows together are printed; one that is worth less than nothing costs more than it tells.
    """

    called = "worth"

    def _title(self) -> str:
        return "What observing each variable is worth"

    def _less(self, more: int) -> str:
        return f"and {plural(more, 'more variable')} worth less"

    def _cell(self, number: float) -> str:
        return _amount(number)


def _amount(value: float) -> str:
    """A number of any size, in few characters; what is 0 but for rounding has no digits."""
    return f"{value:.6g}"
