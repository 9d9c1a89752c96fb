"""Markov networks: variables, and factors that weigh their joint states.

`conditioned` turns a graph into a Bayesian network that is known to be in some states, which is how it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.model.cpt import CPT
from tacit.model.elements.distributions import as_floats
from tacit.model.elements.variable import DEFAULT_STATES, Label, Variable, describe, similar, variable
from tacit.model.model import Model
from tacit.model.rules import MAX_AXES

MAX_SCOPE = MAX_AXES - 1  # variables of a factor: compiling it takes one axis more
MAX_POWERS = 1000  # of 2 that a table is divided by: floats of double precision have 1,022


@dataclass(frozen=True, eq=False)
class Factor:
    """A weight >= 0 for all joint states of some variables: the axes of `table`, in their order."""

    variables: tuple[str, ...]
    table: Floats


class FactorGraph:
    """A Markov network: the probability of a joint state is proportional to the product of all factors there.

    `tacit.compile` compiles it like a `Network`, to posteriors, samples and most probable states. `log_evidence` is
    then the logarithm of the partition function: of the sum, over all states that agree with the evidence, of that
    product.

    >>> import tacit
    >>> graph = tacit.FactorGraph("friends")
    >>> for name in ("Ann", "Bob", "Cid"):
    ...     graph.add(name, states=["tea", "coffee"])
    >>> graph.add_factor(["Ann", "Bob"], [[3, 1], [1, 3]])
    >>> graph.add_factor(["Bob", "Cid"], [[2, 1], [1, 2]])
    >>> graph.add_factor(["Ann"], [4, 1])
    >>> graph
    FactorGraph('friends': 3 variables, 3 factors, 10 numbers)
    >>> tac = tacit.compile(graph, query="Cid", evidence=["Bob"])
    >>> tac.posterior({"Bob": ["tea", None]}).round(4).tolist()
    [[0.6667, 0.3333], [0.55, 0.45]]
    >>> tac.log_evidence().round(4).tolist()  # of the partition function, 60
    [4.0943]
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise NetworkError(f"a graph's name must be a string or None, got {name!r}")
        self.name = name
        self._variables: dict[str, Variable] = {}
        self._factors: list[Factor] = []

    def add(self, name: str, states: int | Iterable[Any] | None = None) -> None:
        """Add a variable. `states` are labels, or a number k (labels 0..k-1); "true" and "false", if left out."""
        checked = variable(name, states)
        if name in self._variables:
            raise NetworkError(f"variable {name!r} is in the graph already; names must be unique")
        self._variables[name] = checked

    def add_factor(self, variables: Iterable[str], table: Any) -> None:
        """Add a factor: numbers >= 0, of the shape of the variables' cardinalities; one number, if there are none.

        A graph may have several factors on the same variables, and variables without a factor.
        """
        if isinstance(variables, str):
            raise NetworkError(f"variables must be a sequence of names, e.g. {[variables]!r}")
        names = tuple(variables)
        where = f"factor {len(self._factors)} on {', '.join(map(repr, names)) or 'no variable'}"
        if len(set(names)) < len(names):
            raise NetworkError(f"{where}: a variable is named twice")
        if len(names) > MAX_SCOPE:
            raise NetworkError(f"factor {len(self._factors)} has {len(names):,} variables (limit {MAX_SCOPE})")
        scope = [self.variable(name) for name in names]
        numbers = as_floats(table, where)
        shape = tuple(v.card for v in scope)
        if numbers.shape != shape:
            raise NetworkError(f"{where}: the table has shape {numbers.shape}, expected {shape}")
        wrong = ~((numbers >= 0) & np.isfinite(numbers))
        if wrong.any():
            index = tuple(map(int, np.argwhere(wrong)[0]))
            at = f" at {describe(scope, index)}" if index else ""
            raise NetworkError(f"{where}: the number{at} is {numbers[index]:g}, expected a finite one >= 0")
        self._factors.append(Factor(names, numbers))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all variables, in the order in which they were added."""
        return tuple(self._variables)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors, in the order in which they were added, with their `variables` and `table`."""
        return tuple(self._factors)

    def variable(self, name: str) -> Variable:
        """The variable with its states; an error if there is none of that name."""
        if name not in self._variables:
            raise NetworkError(f"there is no variable {name!r} in the graph{similar(name, self._variables)}")
        return self._variables[name]

    def named(self, name: str) -> str:
        """The variable of a name, which has no columns of numbers here; an error if there is none."""
        return self.variable(name).name

    def states(self, name: str) -> tuple[Label, ...]:
        """The labels of a variable's states."""
        return self.variable(name).states

    def __contains__(self, name: object) -> bool:
        return name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FactorGraph):
            return NotImplemented
        factors, theirs = ([(f.variables, f.table.tolist()) for f in graph.factors] for graph in (self, other))
        same_variables = list(self._variables.values()) == list(other._variables.values())
        return self.name == other.name and same_variables and factors == theirs

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}: "
        numbers = sum(factor.table.size for factor in self._factors)
        parts = plural(len(self), "variable"), plural(len(self._factors), "factor"), plural(numbers, "number")
        return f"FactorGraph({name}{', '.join(parts)})"


def conditioned(graph: FactorGraph) -> tuple[Model, dict[str, Label], float]:
    """A graph as a Bayesian network, the states that it is known to be in, and the logarithm of a scale.

    The probability of these states and of evidence, times the scale, is the partition function with that evidence.
    The network has uniform roots, and a child for each factor that is known to be true: with the probability factor /
    its largest number. What is lost by that, and by the uniform roots, is in the scale. Where numbers are too far apart
    for that, several children share a factor.
    """
    model = Model(graph.name)
    scales = []
    for name in graph:
        states = graph.states(name)
        model.add(name, states=states, cpt=np.full(len(states), 1 / len(states)))
        scales.append(math.log(len(states)))
    word = "factor"
    while any(name.startswith(f"{word} ") for name in graph):
        word = f"_{word}"
    given: dict[str, Label] = {}
    for number, factor in enumerate(graph.factors):
        largest = float(factor.table.max())
        scales.append(math.log(largest) if largest else 0.0)
        for part, weight in enumerate(_weights(factor.table, largest)):
            node = f"{word} {number}{f' part {part}' * (part > 0)}"
            model.add(node, factor.variables, cpt=CPT(np.stack([weight, 1 - weight], axis=-1)))
            given[node] = DEFAULT_STATES[0]
    return model, given, math.fsum(scales)


def _weights(table: Floats, largest: float) -> list[Floats]:
    """Tables whose product is a table divided by its largest number: one, unless a number is too small for a float."""
    if not largest:
        return [table]  # all 0: it is never true
    weight = table / largest
    if (weight[table > 0] >= np.finfo(np.float64).smallest_normal).all():
        return [weight]
    mantissa, exponent = np.frexp(table)
    top, power = math.frexp(largest)
    left = np.where(mantissa > 0, exponent - power, 0)
    parts: list[Floats] = []
    factor = mantissa / top
    while not parts or left.any():
        parts.append(np.ldexp(factor, np.maximum(left, -MAX_POWERS)))
        left, factor = np.minimum(left + MAX_POWERS, 0), np.ones(table.shape)
    return parts
