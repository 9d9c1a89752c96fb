"""The result of a search for places of tests: a line for every place, and the network with the best of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tacit.base.grid import Grid
from tacit.base.text import listed, plural
from tacit.base.version import package
from tacit.query.network import Network

MAX_SHOWN = 20
MAX_NAMES = 2  # of evidence, that a table has room for

HELPS = "helps"
NOT_CLEAR = "no clear gain"
LEARN_TABLE = "learn its table instead"
NOT_TRIED = "not refitted"
BLIND = "sees no evidence"
IRRELEVANT = "does not matter to the query"
CONSTANT = "sees nothing that tells rows apart"


@dataclass(frozen=True)
class Place:
    """A node that a test might go to, and what is known about it.

    `nodes` are those of its tie, which become testing together; `parents` are those whose posterior is tested, and
    `sees` is the evidence that this posterior depends on. `screened` is by how much a test would lower the loss if all
    other numbers stayed, measured on other rows than it was found with. `loss` is that of rows held out, with the test,
    and `without` that of the same network without it. `difference` is how much lower the former is, in the mean over
    these rows, and `error` the standard error of this mean. What was not measured is NaN.
    """

    node: str
    nodes: tuple[str, ...]
    parents: tuple[str, ...]
    sees: tuple[str, ...]
    screened: float = math.nan
    loss: float = math.nan
    without: float = math.nan
    difference: float = math.nan
    error: float = math.nan
    verdict: str = NOT_TRIED
    round: int = 1

    @property
    def helps(self) -> bool:
        """Whether rows held out say so, beyond chance."""
        return self.verdict == HELPS

    @property
    def name(self) -> str:
        """The node, and how many others become testing with it."""
        others = len(self.nodes) - 1
        return f"{self.node} (and {others} tied)" if others else self.node

    def cells(self, rounds: bool) -> tuple[str, ...]:
        """A line of the table."""
        difference = "" if math.isnan(self.difference) else f"{self.difference:+.2g} ± {self.error:.1g}"
        return (
            *([str(self.round)] * rounds),
            self.name,
            f"P*({listed(self.parents, MAX_NAMES)})",
            listed(self.sees, MAX_NAMES) or "nothing",
            _number(self.screened, "+.2g"),
            _number(self.loss, ".4g"),
            _number(self.without, ".4g"),
            difference,
            self.verdict,
        )


@dataclass(frozen=True, eq=False)
class Placement:
    """Where tests help. Made by `tacit.learn.place_tests`.

    `table` has a `Place` for every node that could be made testing, those that were refitted first, the best one on
    top. `best` is the place to put a test, the first of `chosen`; None if no test helps. `network` has the chosen tests
    and is learned from all rows; it has no new test if none helps. `loss` is the loss of rows held out with it, and
    `without` that of the network without new tests.
    """

    network: Network
    table: list[Place]
    chosen: list[Place]
    loss: float
    without: float
    query: str
    rows: int
    seconds: float

    @property
    def best(self) -> Place | None:
        """The place to put a test, if there is one."""
        return self.chosen[0] if self.chosen else None

    @property
    def summary(self) -> str:
        """The outcome in words."""
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        tried = [place for place in self.table if not math.isnan(place.difference)]
        tables = [f"{place.name} ({place.without:.4g})" for place in tried if place.verdict == LEARN_TABLE]
        instead = [f"To learn the table of {listed(tables)} helps without a test."] * bool(tables)
        if self.chosen:
            names = listed([place.name for place in self.chosen])
            verb = "helps" if len(self.chosen) == 1 else "help, one after the other"
            losses = f"loss {self.loss:.4g} with, {self.without:.4g} without, on rows held out"
            return [f"A test at {names} {verb}: {losses}.", *instead, ".network has it, learned from all rows."]
        if tried:
            reason = f"of {plural(len(tried), 'place')} tried, none lowers the loss of rows held out beyond chance"
        else:
            reason = "no test would see evidence that tells rows apart" if self.table else "there is no place for one"
        return [f"No test helps: {reason}.", *instead, ".network has none, and is learned from all rows."]

    def to_frame(self) -> Any:
        """The table as a pandas frame."""
        return package("pandas", "frames", "to_frame").DataFrame([vars(place) for place in self.table])

    def grid(self) -> Grid:
        """The table for people."""
        rounds = max((place.round for place in self.table), default=1) > 1
        head = ("node", "tests", "sees", "screened", "loss with", "without", "difference", "verdict")
        left = len(self.table) - MAX_SHOWN
        note = [f"and {plural(left, 'more place')}"] * (left > 0) + self._sentences()
        title = f"Where a test helps to predict {self.query} from {plural(self.rows, 'row')}"
        body = [place.cells(rounds) for place in self.table[:MAX_SHOWN]]
        return Grid([(*["round"] * rounds, *head)], body, 3 + rounds, title, "\n".join(note))

    def __str__(self) -> str:
        return str(self.grid())

    def __repr__(self) -> str:
        return f"Placement({self.summary})"

    def _repr_html_(self) -> str:
        return self.grid().html()


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else f"{value:{form}}"
