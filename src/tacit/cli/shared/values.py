"""Evidence as people write it: `A=true`, `B=0.7`, `C=0.2,0.3,0.5`, `seen.inst`; and boxes: `A=0.2:0.8`.

A continuous variable takes numbers: `heat=82.5`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from tacit.base.errors import EvidenceError
from tacit.base.text import plural
from tacit.evidence.intervals import spelled_number
from tacit.evidence.numbers import as_number
from tacit.evidence.read import read_column
from tacit.evidence.states import MISSING_WORDS, label_of, numbers_spelled
from tacit.io.files import is_evidence
from tacit.io.files import read_evidence as read_file
from tacit.model.elements.variable import Label, Variable, listed_states, similar
from tacit.query.asking.options import check_do
from tacit.query.network import Network


def read_evidence(net: Network, texts: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Evidence as a query takes it, and the variables whose state it gives.

    >>> from tacit.examples import abc
    >>> read_evidence(abc(), ["A=0.8", "C=lo"])
    ({'A': 0.8, 'C': 'lo'}, ['C'])
    """
    evidence: dict[str, Any] = {}
    hard = []
    for name, value in _observations(net, texts):
        if name in evidence:
            raise typer.BadParameter(f"there are two values for {name}")
        evidence[name] = value
        if net.variable(net.named(name)).continuous:
            continue
        try:
            column, _ = read_column(net.variable(name), value)
        except EvidenceError as error:
            raise error.changed(row=None) from None  # there is one row only
        if column is not None and column.fully_observed:
            hard.append(name)
    return evidence, hard


def _observations(net: Network, texts: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Names and values; a text may also be the name of a file with many of them."""
    for text in texts:
        if "=" not in text and is_evidence(text):
            yield from read_file(text, net).items()
        else:
            name, spelled = split(text, "VARIABLE=VALUE, such as A=true, A=0.7 or A=0.2,0.8")
            refuse_several(net, text, "-e")
            variable = net.variable(net.named(name))
            if variable.continuous:
                yield from _numbers(variable, name, spelled).items()
                continue
            value = value_of(variable, spelled)
            _refuse_numbers(variable, spelled, value)
            yield name, value


def refuse_several(net: Network, text: str, option: str) -> None:
    """Wrong usage where a text has several findings, with commas between."""
    parts = text.split(",")
    named = [name.strip() for name, sign, _ in (part.partition("=") for part in parts) if sign]
    known = {column for name in net for column in (name, *net.variable(name).columns)}
    if len(named) == len(parts) > 1 and known.issuperset(named):
        remedy = " ".join(f"{option} {part.strip()}" for part in parts)
        raise typer.BadParameter(f"{text!r} is {len(parts)} findings; give each an option of its own: {remedy}")


def _numbers(variable: Variable, name: str, text: str) -> dict[str, float | None]:
    """The number of a column of a continuous variable, None for no evidence; of the variable, one for each column.

    >>> _numbers(Variable("x, y", columns=("x", "y")), "x, y", "0.5, NA")
    {'x': 0.5, 'y': None}
    """
    names = variable.columns if name == variable.name else (name,)
    words = [word.strip() for word in text.split(",")]
    if len(words) != len(names):
        expected = f"expected {plural(len(names), 'number')}, such as {name}={','.join(['1.5'] * len(names))}"
        raise EvidenceError(f"{text!r} is not evidence on it; {expected}", variable=name)
    return {name: _number(name, word) for name, word in zip(names, words, strict=True)}


def _number(name: str, word: str) -> float | None:
    if word.lower() in MISSING_WORDS:
        return None
    try:
        return float(word)
    except ValueError:
        raise EvidenceError(f"{word!r} is not a number", variable=name) from None


def read_costs(texts: Sequence[str]) -> dict[str, float]:
    """What observing variables costs, by names that may be no variables.

    >>> read_costs(["A=2.5"])
    {'A': 2.5}
    """
    costs: dict[str, float] = {}
    for text in texts:
        name, value = split(text, "VARIABLE=NUMBER, such as A=2.5")
        if name in costs:
            raise typer.BadParameter(f"there are two costs of {name}")
        try:
            costs[name] = float(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a number, what observing {name} costs") from None
    return costs


def read_states(net: Network, texts: Sequence[str]) -> dict[str, Label]:
    """The states that variables are set to.

    >>> from tacit.examples import abc
    >>> read_states(abc(), ["A=TRUE"])
    {'A': 'true'}
    """
    states: dict[str, Label] = {}
    for text in texts:
        name, value = split(text, "VARIABLE=STATE, such as A=true")
        if name in states:
            raise typer.BadParameter(f"there are two states for {name}")
        check_do(net, [net.named(name)])
        states[name] = state_of(net.variable(name), value)
    return states


def read_box(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The least and greatest likelihood of the first state of each variable.

    >>> read_box(["A=0.2:0.8"])
    {'A': (0.2, 0.8)}
    """
    box = {}
    for text in texts:
        name, value = split(text, what := "VARIABLE=LOW:HIGH, such as A=0.2:0.8")
        try:
            low, high = (float(end) for end in value.split(":"))
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not {what}") from None
        box[name] = (low, high)
    return box


def split(text: str, what: str) -> tuple[str, str]:
    """Name and value; wrong usage where one is lacking."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise typer.BadParameter(f"{text!r} is not {what}")
    return name, value


def value_of(variable: Variable, text: str) -> Any:
    """The label, the number or the likelihoods that a text spells; None for no evidence.

    >>> value_of(Variable("B"), "TRUE"), value_of(Variable("B"), "0.7"), value_of(Variable("B"), "0.2,0.6")
    ('true', 0.7, [[0.2, 0.6]])
    """
    label = label_of(variable, text)
    if label is not None and variable.bins is not None and (number := spelled_number(text)) is not None:
        return number
    if label is not None or text.strip().lower() in MISSING_WORDS:
        return label
    if "," in text:
        return [[as_number(part) for part in text.split(",")]]
    return text if numbers_spelled(variable) else as_number(text)


def _refuse_numbers(variable: Variable, text: str, value: Any) -> None:
    """Refuse numbers that say nothing about a variable, with an error that names its states."""
    if isinstance(value, list):
        count = sum(isinstance(number, float | int) for number in value[0])
        if count == len(value[0]) != variable.card:
            problem = f"{plural(count, 'likelihood')} in {text!r}; expected {variable.card}, one for each state"
            raise EvidenceError(f"{problem} ({listed_states(variable)})", variable=variable.name)
        wrong = count < len(value[0])
    else:  # of two states, it is the likelihood of the first
        wrong = (
            isinstance(value, float | int)
            and variable.bins is None
            and (variable.card != 2 or variable.numeric)
            and value not in variable.states
        )
    if wrong:
        likelihoods = f"{plural(variable.card, 'likelihood')} with commas between"
        problem = f"{text!r} is not a state; expected one of {listed_states(variable)}, or {likelihoods}"
        raise EvidenceError(problem, variable=variable.name)


def state_of(variable: Variable, text: str) -> Label:
    """The label that a text means, which may be a number; an error if it means none.

    >>> state_of(Variable("A", (0, 1)), "1")
    1
    """
    if variable.continuous:
        raise EvidenceError(f"{variable.name!r} is continuous and has no states, so {text!r} cannot be one")
    label = label_of(variable, text) or next((label for label in variable.states if str(label) == text.strip()), None)
    if label is None:
        meant = similar(text, map(str, variable.states))
        raise EvidenceError(
            f"{text!r} is not a state of {variable.name!r}; expected one of {listed_states(variable)}{meant}"
        )
    return label
