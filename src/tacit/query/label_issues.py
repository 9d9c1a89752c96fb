"""Labels that the rest of their row makes improbable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends, probability, row_name
from tacit.base.text import plural, shown
from tacit.base.version import package
from tacit.evidence.column import Column
from tacit.model.elements.variable import Variable
from tacit.query.assignments import MAX_PRINTED, Labels, as_lists, words

BELOW = 0.05


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Rows whose label is improbable, given the rest of the row; the least probable first. Made by `net.label_issues`.

    `rows` are the places of these rows, `given` the labels there, and `probability` how probable they are. `likely` is
    the most probable state, and `likely_probability` its probability. Of a table without errors, about `expected` rows
    would be here, too.
    """

    name: str
    rows: NDArray[np.intp]
    given: Labels
    probability: Floats
    likely: Labels
    likely_probability: Floats
    expected: float
    index: Any = None  # of these rows in the pandas frame that they came from, if they did

    def __len__(self) -> int:
        return len(self.rows)

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {
            self.name: self.given,
            "probability": self.probability,
            "likely": self.likely,
            "likely_probability": self.likely_probability,
        }

    def to_pandas(self) -> Any:
        """A pandas frame with the index of the rows: the label, its probability, the likely label, and that of it."""
        index = self.rows if self.index is None else self.index
        return package("pandas", "frames").DataFrame(self._columns(), index=index)

    def to_polars(self) -> Any:
        """A polars frame: the place of the row, the label, its probability, the likely label, and that of it."""
        return package("polars", "frames").DataFrame(as_lists({"row": self.rows, **self._columns()}))

    def __repr__(self) -> str:
        about = f"about {self.expected:.3g} expected without errors"
        if not len(self):
            return f"no improbable labels of {self.name}; {about}"
        places = ends(len(self), MAX_PRINTED)
        index = self.rows if self.index is None else self.index
        sure = [
            [GAP if place is None else probability(float(own[place])) for place in places]
            for own in (self.probability, self.likely_probability)
        ]
        rows = (row_name(index, place) for place in places)
        body = zip(rows, words(self.given, places), sure[0], words(self.likely, places), sure[1], strict=True)
        head = ("", self.name, "probability", "likely", "probability")
        return str(Grid([head], list(body), note=f"[{plural(len(self), 'row')}; {about}]"))


def label_issues(own: Variable, column: Column | None, posterior: Floats, below: float, index: Any) -> LabelIssues:
    """The labels of a column that are less probable than `below`, by the posterior given all else."""
    if column is None:
        raise EvidenceError(f"the rows have no column {own.name!r}, whose labels are asked about")
    if column.codes is None:
        raise EvidenceError(f"column {own.name!r} holds likelihoods, and label_issues judges states")
    codes = np.broadcast_to(column.codes, len(posterior))
    recorded = np.take_along_axis(posterior, np.maximum(codes, 0).astype(np.intp)[:, None], axis=1)[:, 0]
    doubtful = np.flatnonzero((codes >= 0) & (recorded < below))
    rows = doubtful[recorded[doubtful].argsort(kind="stable")]
    labels = np.array(own.states, dtype=object)
    best = posterior[rows].argmax(axis=1)
    return LabelIssues(
        own.name,
        rows,
        labels[codes[rows]],
        recorded[rows],
        labels[best],
        posterior[rows, best],
        float(np.where(posterior < below, posterior, 0.0)[codes >= 0].sum()),
        None if index is None else index[rows],
    )


def checked_label(own: Variable, below: object) -> float:
    """The probability below which labels are listed; an error where there are no labels to judge."""
    if own.continuous:
        raise NetworkError(f"{own.name!r} is continuous: its numbers are no labels; give it states or bins")
    if isinstance(below, bool) or not isinstance(below, int | float | np.number) or not 0 < below <= 1:
        raise TacitError(f"below is {shown(below)}, expected a probability, such as {BELOW}")
    return float(below)
