"""What an explanation comes to, in one plain sentence: the answer, and what it is mainly due to."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tacit.base.floats import Floats
from tacit.model.elements.variable import Label
from tacit.theory.findings import Finding

LINE = 80  # characters
TIE = 1e-12  # up to which two states are equally probable
NO_WEIGHT = 5e-10  # what rounding leaves of 0
MAX_NAMED = 5  # findings that weigh nothing whose names a note tells
MOST_DIGITS = 15
SMALL = 0.1  # of the main reason, below which a reason against it is not worth a word


def standing(query: str, states: Sequence[Label], posterior: Floats, place: int) -> str:
    """How probable a state is, and whether it is the most probable one.

    >>> import numpy as np
    >>> standing("B", ["yes", "no"], np.array([0.4, 0.6]), 1)
    'B=no is the most probable with 60.0%'
    """
    best = int(posterior.argmax())
    own, part = f"{query}={states[place]}", percent(float(posterior[place]))
    if posterior[place] < posterior[best] - TIE:
        return f"{own} has {part}, less than {states[best]} with {percent(float(posterior[best]))}"
    if (posterior > posterior[best] - TIE).sum() > 1:
        return f"{own} has {part}, and no other state is more probable"
    return f"{own} is the most probable with {part}"


def reasons(findings: Sequence[Finding], place: int, against: bool) -> str:
    """The finding that speaks most for a state, or `against` it, and the one that speaks most for the opposite."""
    weights = sorted(((-1 if against else 1) * float(one.weight[place]), k) for k, one in enumerate(findings))
    (least, other), (most, main) = weights[0], weights[-1]
    words = []
    if most > NO_WEIGHT:
        words.append(f"{'mainly ' * (len(findings) > 1)}because of {_finding(findings[main], place)}")
    if least < -max(NO_WEIGHT, SMALL * most):
        words.append(f"in spite of {_finding(findings[other], place)}")
    return ", ".join(words) or "and no finding changes that"


def _finding(one: Finding, place: int) -> str:
    return f"{one.name}: {one.value} ({percent(float(one.without[place]))} without it)"


def change(query: str, state: Label, before: float, after: float) -> str:
    """How the probability of a state changes.

    >>> change("B", "yes", 0.9, 0.116)
    'B=yes falls from 90.0% to 11.6%'
    """
    if abs(after - before) <= TIE:
        return f"{query}={state} stays at {percent(before)}"
    start, end = _told_apart(before, after)
    return f"{query}={state} {'rises' if after > before else 'falls'} from {start} to {end}"


def told(weight: float) -> float:
    """A weight as texts and charts tell it: 0 where rounding alone makes it differ from that.

    >>> told(-4.44e-16), told(-0.02)
    (0.0, -0.02)
    """
    return 0.0 if abs(weight) < NO_WEIGHT else float(weight)


def in_lines(sentence: str) -> str:
    """A sentence as it is printed."""
    return textwrap.fill(sentence, LINE, break_long_words=False, break_on_hyphens=False)


def percent(number: float) -> str:
    """A probability in percent, which says if it is not quite 0, or not quite 1.

    >>> percent(0.116), percent(1.0), percent(0.99999), percent(1e-5)
    ('11.6%', '100.0%', 'more than 99.9%', 'less than 0.1%')
    """
    if 0 < number < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if 0.9995 <= number < 1 else f"{number:.1%}"


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two probabilities in percent, with as many digits as it takes to tell them apart.

    >>> _told_apart(0.9, 0.116), _told_apart(0.999975, 0.999815)
    (('90.0%', '11.6%'), ('99.997%', '99.981%'))
    """
    texts = percent(one), percent(other)
    for digits in range(2, MOST_DIGITS):
        if texts[0] != texts[1]:
            break
        longer = f"{one:.{digits}%}", f"{other:.{digits}%}"
        if not {*longer} & {f"{0:.{digits}%}", f"{1:.{digits}%}"}:
            texts = longer
    return texts


def of_no_weight(names: Sequence[str]) -> str:
    """That findings weigh nothing, in words; nothing of none.

    >>> of_no_weight(["age", "sex"]), of_no_weight([]), of_no_weight(list("abcdef"))
    ('age, sex weigh 0', '', '6 more findings weigh 0')
    """
    if len(names) > MAX_NAMED:
        return f"{len(names)} more findings weigh 0"
    return f"{', '.join(names)} weigh{'s' * (len(names) == 1)} 0" if names else ""
