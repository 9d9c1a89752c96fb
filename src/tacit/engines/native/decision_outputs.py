"""A tape that also puts out what a traceback looks at: code runs it, and arrays are looked at then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.compiler.program import Program
from tacit.engines.tape import instructions as k
from tacit.engines.tape.tape import Tape


@dataclass(frozen=True)
class LookedAt:
    """Such a tape, and where the values of the program are among its outputs."""

    tape: Tape
    places: Mapping[int, slice]


def looked_at(tape: Tape, program: Program) -> LookedAt:
    """A copy of a tape, which has a plan of the traceback, with more outputs."""
    assert tape.traceback is not None
    places: dict[int, slice] = {}
    slots, count = [np.empty(0, dtype=np.int32)], tape.outputs
    inputs = (i for decision in program.decisions for i in decision.inputs)
    for i, (entry, *_) in zip(inputs, tape.traceback.operands.tolist(), strict=True):
        if program.batched[i] and i not in places:
            size = program.size(program.operations[i].axes)
            places[i] = slice(count, count + size)
            slots.append(tape.traceback.entries[entry : entry + size])
            count += size
    read = np.concatenate(slots)
    terms = np.stack([read, np.zeros_like(read)], axis=1)
    numbers = np.arange(len(read), dtype=np.int32)
    first = len(tape.terms) + numbers
    put_out = np.stack([np.full_like(numbers, k.OUTPUT), tape.outputs + numbers, first, first + 1], axis=1)
    more = replace(
        tape,
        instructions=np.concatenate([tape.instructions, put_out]),
        terms=np.concatenate([tape.terms, terms]),
        outputs=count,
    )
    return LookedAt(more, places)
