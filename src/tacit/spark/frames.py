"""The columns of Spark DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def numbered(rows: Any, columns: Sequence[str]) -> Any:
    """Some columns, by their numbers: mapInArrow takes no names with dots, which Spark takes apart."""
    quoted = ["`" + name.replace("`", "``") + "`" for name in columns]
    return rows.select(*quoted).toDF(*(f"c{i}" for i in range(len(columns))))
