"""Where the rows of an error about evidence are from, and how people count rows there."""

from __future__ import annotations

from tacit.base.errors import EvidenceError


def in_file(error: EvidenceError, name: str, first: int = 0) -> EvidenceError:
    """The error for rows of a file, by its name, from `first` on; people count them from 1.

    >>> in_file(EvidenceError("'x' is not a state", variable="A", row=2), "rows.csv", first=100)
    EvidenceError("rows.csv: evidence on 'A', row 103: 'x' is not a state")
    """
    return error.at(name, first + 1)


def in_partition(error: EvidenceError, number: int | None, first: int = 0) -> EvidenceError:
    """The error for rows of a partition from `first` on; rows and partitions count from 0.

    >>> in_partition(EvidenceError("'x' is not a state", variable="A", row=2), 3, first=100)
    EvidenceError("partition 3: evidence on 'A', row 102: 'x' is not a state")
    """
    return error.at("a partition" if number is None else f"partition {number}", first)
