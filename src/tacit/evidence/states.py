"""States as people spell them: one reading of text and numbers for arrays, frames, files, commands and requests.

Text names a state as it stands, or else in any case and with spaces around it. What a number names depends on whether
values have types where it comes from:

- Arrays, frames and tensors have types. A number is a state only of a variable whose labels are numbers; otherwise
  floats are likelihoods of the first of two states, be its labels the texts "0" and "1".
- Files and commands are text, and JSON does not tell 1 from 1.0. There, a number is also the label that spells it.

To an interval variable, a number is a value in an interval, wherever it comes from; `intervals` knows in which one. In
files and commands, so is a text that spells a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tacit.evidence.codes import UNKNOWN
from tacit.evidence.intervals import code_of_text
from tacit.evidence.numbers import as_number
from tacit.model.elements.variable import Variable, similar

AS_TEXT = "make text of whole numbers (in pandas: column.astype('Int64').astype('string'))"
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "none", "null"})


def code_in_any_case(variable: Variable, value: Any) -> int:
    """The code of the one label that a text is but for its case and spaces around it; True and False are text, too.

    >>> states = Variable("A", ("TRUE", "FALSE"))
    >>> code_in_any_case(states, "False"), code_in_any_case(states, True), code_in_any_case(states, "maybe")
    (1, 0, -2)
    """
    text = str(value) if isinstance(value, bool | np.bool_) else value
    return variable.plain.get(text.strip().lower(), UNKNOWN) if isinstance(text, str) else UNKNOWN


def label_of(variable: Variable, text: str) -> str | None:
    """The label of text that a word of a file or a command means, by its letters or else by the number it spells.

    >>> label_of(Variable("A", ("no", "yes")), "YES"), label_of(Variable("A", ("0", "1")), "1.0")
    ('yes', '1')
    >>> label_of(Variable("A", ("[0, 5)", "[5, 9]"), (0, 5, 9)), "7.5")
    '[5, 9]'
    """
    text = text.strip()
    code = variable.codes.get(text, code_in_any_case(variable, text))
    if code != UNKNOWN:
        return str(variable.states[code])
    if variable.bins is not None:
        code = code_of_text(variable.bins, text)
        return str(variable.states[code]) if code >= 0 else None
    number = as_number(text)
    return None if isinstance(number, str) else numbers_spelled(variable).get(number)


def wrong_states(states: Sequence[str], given: Iterable[str]) -> str:
    """The end of a message on likelihoods by state: what is not a state, and which states are lacking.

    >>> wrong_states(["yes", "no"], ["yes"]), wrong_states(["yes", "no"], ["yes", "not"])
    ("; it lacks 'no'", "; 'not' is not a state; did you mean 'no'?")
    """
    named = list(given)
    wrong = next((name for name in named if name not in states), None)
    if wrong is not None:
        return f"; {wrong!r} is not a state{similar(wrong, states)}"
    lacking = ", ".join(repr(state) for state in states if state not in named)
    return f"; it lacks {lacking}" if lacking else ""


def numbers_spelled(variable: Variable) -> dict[float, str | None]:
    """The labels of text that spell numbers, as in BIF files, by these numbers; None where several spell the same.

    Where there are any, a number without a type can only be a label: as a likelihood, 1 might mean the other state.

    >>> numbers_spelled(Variable("A", ("0", "1.5", "many")))
    {0: '0', 1.5: '1.5'}
    """
    spelled: dict[float, str | None] = {}
    for label in variable.states:
        number = as_number(label) if isinstance(label, str) else None
        if isinstance(number, int | float) and type(number) is not bool and number == number:
            spelled[number] = None if number in spelled else str(label)
    return spelled
