"""Numbers that are built into a program, and whether those of another network are the same."""

from __future__ import annotations

import numpy as np

from tacit.compiler.program import Program
from tacit.model.cpt import THRESHOLDS, AnyCPT
from tacit.model.distributions import structural
from tacit.model.model import Model


def holds_for(program: Program, old: Model, new: Model) -> bool:
    """Whether a program that is right for one network is right for another one of the same structure.

    A structured program has the numbers of some nodes built in (`Program.fixed`), and of all others where they are
    structural. In any program, what was copied as a function is among the `fixed` nodes. Numbers that are to be
    learned from now on must not be built in.
    """
    fixed = frozenset(program.fixed)
    names = program.states if program.structured else fixed
    return all(_same_numbers(old.cpt(name), new.cpt(name), name in fixed) for name in names)


def _same_numbers(old: AnyCPT, new: AnyCPT, fixed: bool) -> bool:
    """Whether all numbers are the same, or only the structural 0s and 1s."""
    if old is new:
        return True
    if fixed and getattr(new, "learn", False):
        return False
    now = new.parts()
    for part, before in old.parts().items():
        built_in = np.full(before.shape, fixed) | structural(before)
        if part != THRESHOLDS and (before[built_in] != now[part][built_in]).any():
            return False
    return True
