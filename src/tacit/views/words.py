"""What a picture calls variables and their states: their own names, captions, and shorter names of intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tacit.base.errors import TacitError
from tacit.base.text import shown, visible
from tacit.model.elements.intervals import number_text
from tacit.model.elements.variable import Label, Variable
from tacit.model.model import Model
from tacit.views.layout import text_width

INTERVAL = re.compile(r"[\[(]\s*(\S+?)\s*,\s*(\S+?)\s*[\])]")
DIGITS = 4  # of the ends of intervals, where that tells them apart


class Captioned(Protocol):
    """The captions in a file, as an explorer page reads it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The names of variables that are shown."""

    @property
    def states(self) -> Mapping[str, Mapping[str, str]]:
        """The names of states that are shown, by variable."""


@dataclass(frozen=True)
class Words:
    """The names that are shown for variables and states, where they are not their own."""

    labels: Mapping[str, str] = field(default_factory=dict)
    captions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, net: Model, captions: Mapping[str, str] | Captioned | None) -> Words:
        """Captions, checked against the network."""
        if captions is None:
            return cls()
        if not isinstance(captions, Mapping):
            if not hasattr(captions, "labels"):
                raise TacitError(f"captions is {shown(captions)}, expected a mapping from variables to names to show")
            return cls(captions.labels, captions.states)
        for name, text in captions.items():
            net.variable(name)  # an error where there is none
            if not isinstance(text, str) or not text.strip():
                raise TacitError(f"the caption of {name!r} is {text!r}, expected some text")
        return cls(captions)

    def variable(self, name: str) -> str:
        """The name of a variable that is shown."""
        return visible(self.labels.get(name, name))

    def states(self, name: str, states: Sequence[object]) -> list[str]:
        """The names of all states of a variable that are shown."""
        own = [str(state) for state in states]
        captions = self.captions.get(name, {})
        short = dict(zip(own, intervals(own) or own, strict=True))
        return [visible(captions.get(state, short[state])) for state in own]


def intervals(states: Sequence[str]) -> list[str] | None:
    """Shorter names of states that are all named as intervals; None for others.

    >>> intervals(["(-inf, 2.6)", "[2.6, 11.2)", "[11.2, inf)"])
    ['< 2.6', '2.6 – 11.2', '≥ 11.2']
    >>> intervals(["[-2, 0)", "[0, 1.23456789]"])
    ['−2 to 0', '0 to 1.235']
    """
    ends = [_ends(state) for state in states]
    found = [pair for pair in ends if pair is not None]
    if len(found) < len(ends):
        return None
    numbers = sorted({number for pair in found for number in pair if math.isfinite(number)})
    text = _short_numbers(numbers)
    dash = " to " if any(number < 0 for number in numbers) else " – "
    return [_interval(low, high, text, dash) for low, high in found]


def _ends(state: str) -> tuple[float, float] | None:
    if match := INTERVAL.fullmatch(state.strip()):
        try:
            low, high = (float(end) for end in match.groups())
        except ValueError:
            return None
        return (low, high) if low < high else None
    return None


def _short_numbers(numbers: Sequence[float]) -> dict[float, str]:
    """Few digits of each, but as many as tell them apart; whole numbers in full."""
    for digits in range(DIGITS, 18):
        texts = [number if number.is_integer() else float(f"{number:.{digits}g}") for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return {number: true_minus(number_text(text)) for number, text in zip(numbers, texts, strict=True)}


def _interval(low: float, high: float, text: Mapping[float, str], dash: str) -> str:
    if low == -math.inf:
        return "any" if high == math.inf else f"< {text[high]}"
    return f"≥ {text[low]}" if high == math.inf else f"{text[low]}{dash}{text[high]}"


def true_minus(number: str) -> str:
    """A number in words with a minus, where a hyphen stands for it."""
    return number.replace("-", "−")


def wrapped(text: str, width: float, scale: float = 1.0) -> list[str]:
    """The lines of a text that are no wider than so many pixels, if its words allow, and about equally long.

    >>> wrapped("Left ventricular failure", 110)
    ['Left ventricular', 'failure']
    >>> wrapped("cardiovascular death", 110)
    ['cardiovascular', 'death']
    """
    words = text.split(" ")
    lines = _filled(words, width, scale)
    count, narrower = len(lines), width
    while 1 < count < len(words) and len(fewer := _filled(words, narrower, scale)) == count:
        lines, narrower = fewer, narrower - 5
    return lines


def _filled(words: Sequence[str], width: float, scale: float) -> list[str]:
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if text_width(longer, scale) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def spelled(variable: Variable, state: Label | None) -> Label | None:
    """A state by its own name, if it is written in other capitals; what is none stays, for an error to name it."""
    if not isinstance(state, str) or state in variable.codes:
        return state
    place = variable.plain.get(state.strip().lower())
    return state if place is None else variable.states[place]
