"""One error about all rows of a table that is read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.base.errors import EvidenceError, WrongValue

MAX_DISTINCT = 2**16  # wrong values of one column that are told apart


class WrongRows:
    """Errors about batches of rows, which become one: a wrong value counts in all batches."""

    def __init__(self) -> None:
        self._errors: dict[str, EvidenceError] = {}  # by what they are about, the first one first

    def add(self, error: EvidenceError) -> None:
        """Take in what is wrong in a batch, whose rows are numbered as those of the table."""
        for one in (error.changed(others=()), *error.others):
            about = one.subject or one.problem
            before = self._errors.get(about)
            self._errors[about] = one if before is None else _together(before, one)

    @property
    def is_full(self) -> bool:
        """Whether a column has so many different wrong values that more of them tell nothing."""
        return any(len(error.values) > MAX_DISTINCT for error in self._errors.values())

    def error(self) -> EvidenceError:
        """All that is wrong, as one error."""
        first, *others = self._errors.values()
        return first.changed(others=others)


def _together(before: EvidenceError, more: EvidenceError) -> EvidenceError:
    """The error about a column with what is wrong in later rows."""
    rows = [one.rows for one in (before, more) if one.rows is not None]
    return before.changed(values=added(before.values, more.values), rows=sum(rows) if rows else None)


def added(before: Sequence[WrongValue], more: Sequence[WrongValue]) -> list[WrongValue]:
    """Wrong values with those of later rows, the most frequent ones first."""
    counted = {wrong.value: wrong for wrong in before}
    for wrong in more:
        own = counted.get(wrong.value)
        if own is not None:
            wrong = own._replace(rows=own.rows + wrong.rows, meant=own.meant or wrong.meant)
        counted[wrong.value] = wrong
    return sorted(counted.values(), key=lambda wrong: (-wrong.rows, wrong.first))
