"""Which row a message about evidence names."""

from __future__ import annotations

import re
from pathlib import Path

from tacit.errors import EvidenceError

_ROW = re.compile(r"(^|, )row (\d+)(?=:)")


def without_row(error: EvidenceError) -> EvidenceError:
    """The error for evidence that has one row only, and no need to number it."""
    return EvidenceError(_ROW.sub("", str(error), count=1))


def moved(error: EvidenceError, first: int) -> EvidenceError:
    """The error for rows that have others before them.

    >>> moved(EvidenceError("evidence on 'A', row 2: 'x' is not a state"), first=100)
    EvidenceError("evidence on 'A', row 102: 'x' is not a state")
    """
    return type(error)(_ROW.sub(lambda found: f"{found[1]}row {first + int(found[2])}", str(error), 1))


def in_file(error: EvidenceError, path: Path, first: int = 0) -> EvidenceError:
    """The error for rows of a file from `first` on; people count them from 1.

    >>> in_file(EvidenceError("evidence on 'A', row 2: 'x' is not a state"), Path("rows.csv"), first=100)
    EvidenceError("rows.csv: evidence on 'A', row 103: 'x' is not a state")
    """
    return EvidenceError(f"{path}: {moved(error, first + 1)}")


def in_partition(error: EvidenceError, number: int | None, first: int = 0) -> EvidenceError:
    """The error for rows of a partition from `first` on; rows and partitions count from 0.

    >>> in_partition(EvidenceError("evidence on 'A', row 2: 'x' is not a state"), 3, first=100)
    EvidenceError("partition 3: evidence on 'A', row 102: 'x' is not a state")
    """
    return EvidenceError(f"{'a partition' if number is None else f'partition {number}'}: {moved(error, first)}")
