"""What all densities share: their numbers have the axes of the parents first, and joint states are "components".

Components are numbered in C order of the parents, the last one fastest; a node without parents has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.double_double import Twofold
from tacit.base.errors import NetworkError, TableError
from tacit.base.floats import Floats
from tacit.base.grid import GAP, Cells, Grid
from tacit.model.elements.base_cpt import BaseCPT, Family, number, settings, unset_note
from tacit.model.elements.variable import Variable

MAX_SHOWN = 8  # numbers of a part that `repr` shows


class Column(NamedTuple):
    """A column of the table that a density prints as: a number for each joint state of the parents."""

    head: str
    numbers: Floats


class BaseDensity(BaseCPT):
    """A density for each joint state of a node's parents."""

    kind: str
    dimension: int = 1

    def trailing(self) -> dict[str, int]:
        """The parts, and how many axes each has after those of the parents."""
        return {}

    def parts(self) -> dict[str, Floats]:
        return {part: getattr(self, part) for part in self.trailing()}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each parent, once the density belongs to a node."""
        part, axes = next(iter(self.trailing().items()))
        numbers: Floats = getattr(self, part)
        return numbers.shape[: numbers.ndim - axes]

    @property
    def components(self) -> int:
        """The number of joint states of the parents."""
        return math.prod(self.shape)

    @property
    def unset(self) -> bool:
        """Whether some number is to be learned."""
        return any(np.isnan(numbers).any() for numbers in self.parts().values())

    def bind(self, own: Variable, parents: Sequence[Variable]) -> Self:
        """The density of this node: what is given once holds for all states of the parents."""
        return self._fitted([parent.card for parent in parents], [parent.name for parent in parents])

    def with_parts(self, parts: Mapping[str, ArrayLike]) -> Self:
        """A copy with some of the numbers, by the names of `parts()`, replaced."""
        make: Any = type(self)
        made: Self = make(**{**self.parts(), **parts}, learn=self.learn, tie=self.tie)
        names = [f"parent {i}" for i in range(len(self.shape))]
        if self._family is not None:
            names = [parent.name for parent in self._family.parents]
        return made._fitted(self.shape, names)._with(_family=self._family)

    def _fitted(self, cards: Sequence[int], names: Sequence[str]) -> Self:
        parts = self.trailing().items()
        return self._with(
            **{part: _over_parents(part, getattr(self, part), axes, cards, names) for part, axes in parts}
        )

    def logs(self, values: Floats) -> Floats:
        """The log-densities (rows, components) of values (rows, dimension); what is missing, NaN, is integrated out."""
        return self.logs_by_component(values).T

    def logs_by_component(self, values: Floats) -> Floats:
        """The log-densities as (components, rows), contiguous."""
        raise NotImplementedError

    def normal_terms(self) -> Floats | None:
        """The numbers (components, 3) of normal densities of one column, as `normal.normal_terms` has them."""
        return None

    def exact_logs(self, values: Floats) -> Twofold:
        """The log-densities (components, rows) with so many digits that differences between components keep theirs."""
        outside, _ = self.wrong(values)
        missing = np.asarray(np.isnan(values).all(axis=1))
        logs = self._exact_logs(values)
        return logs.filled(outside | np.isnan(logs.high), -np.inf).filled(missing, 0.0)

    def _exact_logs(self, values: Floats) -> Twofold:
        """The log-densities of values that are neither missing nor wrong; anything for others, NaN if too far off."""
        raise NotImplementedError

    def scores(self, values: Floats) -> dict[str, Floats]:
        """The derivatives of the log-densities by each part: (components, entries..., rows); 0 where values miss."""
        return {}

    def wrong(self, values: Floats) -> tuple[NDArray[np.bool_], str]:
        """Which rows (rows,) hold what no density of this kind can, and what is wrong with them."""
        return np.asarray(np.isinf(values).any(axis=1)), "is not a finite number"

    def marginal(self, columns: Sequence[int]) -> BaseDensity:
        """The density of some columns."""
        if list(columns) != [0]:
            raise NetworkError(f"a {type(self).__name__} has one column, not the columns {list(columns)}")
        return self

    def draw(self, components: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        """Random values (n, dimension), one of each of these components (n,)."""
        raise NotImplementedError

    def means(self) -> Floats:
        """(components, dimension)."""
        raise NotImplementedError

    def variances(self) -> Floats:
        """(components, dimension)."""
        raise NotImplementedError

    def flat(self, part: str) -> Floats:
        """A part with one axis for the components in place of those of the parents."""
        numbers: Floats = getattr(self, part)
        return numbers.reshape(self.components, *numbers.shape[len(self.shape) :])

    def grid(self, family: Family) -> Grid | None:
        """The numbers as a table, a line for each joint state of the parents."""
        columns = self._columns(family.own)
        body = [(*family.names(state), *_cells(columns, state)) for state in family.lines()]
        head = [(*(parent.name for parent in family.parents), *(column.head for column in columns))]
        title = f"{family.title}: {type(self).__name__}"
        return Grid(head, body, len(family.parents), title, unset_note(*(column.numbers for column in columns)))

    def _columns(self, own: Variable) -> list[Column]:
        """What the density prints: its parts, which are one number for each joint state."""
        return [Column(part, numbers) for part, numbers in self.parts().items()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BaseDensity) or type(self) is not type(other):
            return False
        mine, others = self.parts(), other.parts()
        same = mine.keys() == others.keys() and (self.learn, self.tie) == (other.learn, other.tie)
        return same and all(np.array_equal(mine[part], others[part], equal_nan=True) for part in mine)

    def __repr__(self) -> str:
        parts = ", ".join(f"{part}={_short(numbers)}" for part, numbers in self.parts().items())
        return f"{type(self).__name__}({parts}{settings(self)})"


def check_positive(part: str, numbers: Floats, trailing: int = 0, what: str = "") -> None:
    """Refuse numbers that are not positive, or so close to 0 that they have no reciprocal."""
    smallest = np.finfo(np.float64).tiny
    bad = ~np.isnan(numbers) & ~((numbers >= smallest) & np.isfinite(numbers))
    _refuse(part, bad, numbers, "is not a positive, finite number", trailing, what)


def check_finite(part: str, numbers: Floats, trailing: int = 0) -> None:
    """Refuse infinite numbers."""
    _refuse(part, np.isinf(numbers), numbers, "is not finite", trailing)


def _refuse(
    part: str, bad: NDArray[np.bool_], numbers: Floats, problem: str, trailing: int = 0, what: str = ""
) -> None:
    """An error about the first number that is bad, with the parents' state."""
    for index in map(tuple, np.argwhere(bad)[:1].tolist()):
        state = index[: len(index) - trailing]
        raise TableError(part, state, f"{what}{numbers[index]:g} {problem}")


def _over_parents(part: str, numbers: Floats, trailing: int, cards: Sequence[int], names: Sequence[str]) -> Floats:
    """Numbers for all joint states of the parents; those without the parents' axes hold for every state."""
    own = numbers.shape[numbers.ndim - trailing :]
    expected = (*cards, *own)
    if numbers.shape == expected:
        return numbers
    if numbers.ndim != trailing:
        axes = ", ".join([f"states of {name}" for name in names] + ["columns"] * trailing)
        one = "a number" if not trailing else f"shape {own}"
        hint = _hint(part, numbers, tuple(cards), own) or f"; {one} holds for all states of the parents" * bool(cards)
        raise NetworkError(f"{part} has shape {numbers.shape}, expected {expected} = ({axes}){hint}")
    spread = np.broadcast_to(numbers, expected).copy()
    spread.flags.writeable = False
    return spread


def _hint(part: str, numbers: Floats, cards: tuple[int, ...], own: tuple[int, ...]) -> str:
    """How to make the right array of one of the wrong shape; nothing, if that is not clear."""
    given = numbers.shape[: numbers.ndim - len(own)]
    if given == cards[::-1]:
        return "; do the parents come in another order? The first parent is the first axis"
    if math.prod(given) == math.prod(cards):
        return f"; is it flat, the last parent varying fastest? Then give np.reshape({part}, {(*cards, *own)})"
    return ""


def _cells(columns: Sequence[Column], state: tuple[int, ...] | None) -> Cells:
    return [GAP if state is None else number(column.numbers[state]) for column in columns]


def _short(numbers: Floats) -> Any:
    return numbers.tolist() if numbers.size <= MAX_SHOWN else f"<{' x '.join(map(str, numbers.shape))}>"
