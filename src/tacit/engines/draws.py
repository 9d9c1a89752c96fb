"""Several sets of numbers for one program, as draws from their distribution are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.base.floats import Floats
from tacit.compiler.operations.axes import Key


@dataclass(frozen=True, eq=False)
class Draws:
    """`count` sets of tables: `tables` (draws, *shape) by node and part, of what differs, and slopes where they do."""

    count: int
    tables: Mapping[Key, Floats]
    slopes: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.count

    def some(self, which: slice) -> Draws:
        """Some of the draws."""
        tables = {key: table[which] for key, table in self.tables.items()}
        slopes = {node: own[which] for node, own in self.slopes.items()}
        return Draws(len(range(self.count)[which]), tables, slopes)

    def of(self, i: int) -> tuple[dict[Key, Floats], dict[str, float | None]]:
        """The numbers of one draw."""
        return {key: table[i] for key, table in self.tables.items()}, {n: own[i] for n, own in self.slopes.items()}
