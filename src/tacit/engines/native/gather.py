"""Derivatives by constants from those by sums of constants times slots, for a group of rows.

To add every row to the memory of its constant costs more than all the rest of the way back. So a few constants at a
time have their sums in registers while a loop goes over the rows of the group, whose values and derivatives are in
memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.engines.native.adjoints import Adjoints
from tacit.engines.native.body import Terms

ARRAYS = ("constants", "values", "adjoints", "d_constants")
AT_ONCE = 10  # sums in registers: as many as keep the units for additions busy, and leave registers for factors

Sums = Sequence[tuple[int, Terms]]  # slots, and the terms that they are sums of


def gather(body: Adjoints, sums: Sums) -> None:
    """Add to `%d_constants` what `%adjoints` of these slots say about their constants; `%count` are the rows."""
    pairs = [(slot, constant, factor) for slot, terms in sums for constant, factor in terms]
    for first in range(0, len(pairs), AT_ONCE):
        _gather_some(body, pairs[first : first + AT_ONCE])


def _gather_some(body: Adjoints, pairs: Sequence[tuple[int, int, int]]) -> None:
    kind, zero = body.lanes.type, body.lanes.literal(0.0)
    totals = [body.variable(kind, zero) for _ in pairs]
    with body.loop("0", "%count", body.lanes.rows) as row:
        there = {name: body.array_from(name, row) for name in ("values", "adjoints")}
        derivatives: dict[int, str] = {}
        for (slot, _, factor), total in zip(pairs, totals, strict=True):
            if slot not in derivatives:
                derivatives[slot] = body.load(there["adjoints"], slot)
            more = derivatives[slot]
            if factor in body.pinned:
                more = body.mul(more, body.constant(body.pinned[factor]))
            elif factor:  # slot 0 is 1
                more = body.mul(more, body.load(there["values"], factor))
            before = body.let(f"load {kind}, ptr {total}")
            body.do(f"store {kind} {body.add(before, more)}, ptr {total}")
    for (_, constant, _), total in zip(pairs, totals, strict=True):
        body.give_constant(constant, body.let(f"load {kind}, ptr {total}"))
