"""What the words of a file or of a command mean: labels and numbers, as people write them."""

from __future__ import annotations

from tacit.variable import Variable

MISSING = {"", "na", "n/a", "nan", "none", "null"}


def label_of(variable: Variable, text: str) -> str | None:
    """The label of text that a text means: it may differ in case, or in how it writes a number, if no other one fits.

    >>> label_of(Variable("A", ("no", "yes")), "YES"), label_of(Variable("A", ("0", "1")), "1.0")
    ('yes', '1')
    """
    text = text.strip()
    if text in variable.codes:
        return text
    alike = [label for label in variable.states if isinstance(label, str) and label.lower() == text.lower()]
    if not alike and numbers_are_labels(variable) and isinstance(number := as_number(text), int | float):
        alike = [label for label in variable.states if isinstance(label, str) and as_number(label) == number]
    return alike[0] if len(alike) == 1 else None


def numbers_are_labels(variable: Variable) -> bool:
    """Whether labels of text spell numbers, as in BIF files, so that a number can only be read as a label."""
    labels = [as_number(label) for label in variable.states if isinstance(label, str)]
    return any(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)


def as_number(text: str) -> int | float | str:
    """The number, or truth value, that a text spells, if any."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.strip().lower(), text)
