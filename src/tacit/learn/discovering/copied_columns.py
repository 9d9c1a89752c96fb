"""Columns that say the same as another column, in other words."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from tacit.base.text import listed
from tacit.base.warnings import warn
from tacit.learn.discovering.coded_table import CodedTable

FIRST_ROWS = 4096  # by which columns are told apart, but for those that are compared in full


class CopiedColumnWarning(UserWarning):
    """Columns of a table tell the same as others: each state of one goes with one state of the other."""


def warn_of_copies(table: CodedTable) -> None:
    """Warn of columns that copy another one."""
    if copies := copied_columns(table):
        told = listed([f"{name!r} copies {other!r}" for name, other in copies.items()])
        why = "knowing one is knowing the other, which hides what depends on them"
        warn(f"{told}: {why}; leave out one of the two, such as exclude={list(copies)}", CopiedColumnWarning)


def copied_columns(table: CodedTable) -> dict[str, str]:
    """Columns that copy another one, and which; columns with a single value are none."""
    groups: dict[bytes, list[int]] = {}
    for place, column in enumerate(table.codes):
        if np.ptp(column):
            groups.setdefault(_first_seen(column[:FIRST_ROWS]).tobytes(), []).append(place)
    copies = {}
    for same in groups.values():
        if len(same) == 1:
            continue
        originals: dict[bytes, str] = {}
        for place in same:
            name = table.names[place]
            original = originals.setdefault(sha256(_first_seen(table.codes[place]).tobytes()).digest(), name)
            if original != name:
                copies[name] = original
    return copies


def _first_seen(codes: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Codes as places in the order in which they first occur: the same for a column and its copies."""
    rows = len(codes)
    first = np.full(int(codes.max(initial=0)) + 1, rows)
    first[codes[::-1]] = np.arange(rows)[::-1]
    return np.asarray(first[codes])
