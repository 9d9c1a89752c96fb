"""Which partition a message about evidence names."""

from __future__ import annotations

from tacit.errors import EvidenceError
from tacit.rows.places import moved


def in_partition(error: EvidenceError, partition: int | None, first: int = 0) -> EvidenceError:
    """The error for rows of a partition from `first` on. Rows and partitions count from 0.

    >>> in_partition(EvidenceError("evidence on 'A', row 2: 'x' is not a state"), partition=3, first=100)
    EvidenceError("partition 3: evidence on 'A', row 102: 'x' is not a state")
    """
    place = "a partition" if partition is None else f"partition {partition}"
    return EvidenceError(f"{place}: {moved(error, first)}")
