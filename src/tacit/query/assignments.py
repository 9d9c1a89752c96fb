"""States for many variables at once: the most probable ones together, and samples given evidence."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from tacit.base.errors import NetworkError, TacitError
from tacit.base.floats import Floats, flat
from tacit.base.grid import GAP, Grid, ends, probability, row_name
from tacit.base.html import table
from tacit.base.text import plural
from tacit.base.version import package
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import States
from tacit.evidence.column import Evidence, take
from tacit.evidence.density_column import scale_of
from tacit.evidence.frames import smallest
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Variable
from tacit.model.model import Model
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.probabilities import MAX_LINES, index_of
from tacit.query.numbers.continuous import drawn as drawn_numbers
from tacit.query.numbers.continuous import expected
from tacit.query.numbers.intervals import numbers_inside
from tacit.query.query import Query

Labels = NDArray[Any]
Codes = NDArray[np.integer]
MAX_ROWS, MAX_COLUMNS = 10, 12  # that a notebook shows
MAX_PRINTED, MAX_SIDE_BY_SIDE = 20, 8  # rows as text, one below the other or beside it
MAX_SAMPLES = 2**15  # drawn at a time; more do not fit into the caches


@dataclass(frozen=True, eq=False)
class Assignment:
    """States of some variables that are jointly most probable, row by row. Made by `TAC.mpe` and `TAC.map`.

    `states` maps names to labels (rows,), and `log_probability` (rows,) is the logarithm of p*(states, evidence). Where
    the evidence is impossible, states are None and the logarithm is minus infinity. `index` is that of the pandas frame
    that the rows came from, if they did.

    >>> import tacit
    >>> tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"]).mpe({"A": 0.8, "C": ["lo", "hi"]})
    variable                 0          1
    A                    false       true
    B                    false       true
    C                       lo         hi
    log probability  -2.764621  -1.820159
    """

    states: Mapping[str, Labels]
    log_probability: Floats
    index: Any = None

    def __len__(self) -> int:
        return len(self.log_probability)

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {**self.states, "log_probability": self.log_probability}

    def to_pandas(self) -> Any:
        """A pandas frame: a column for every variable, and `log_probability`, with the index of the rows."""
        return package("pandas", "frames").DataFrame(self._columns(), index=self.index)

    def to_polars(self) -> Any:
        """A polars frame: a column for every variable, and `log_probability`."""
        return package("polars", "frames").DataFrame(as_lists(self._columns()))

    def to_arrow(self) -> Any:
        """A pyarrow table: a column for every variable, and `log_probability`."""
        return package("pyarrow", "cli").table(as_lists(self._columns()))

    def to_frame(self) -> Any:
        """The same as `to_pandas`, by its former name."""
        return self.to_pandas()

    def _grid(self) -> Grid:
        """A line for each variable: there are more of them than rows that are looked at together."""
        names, rows = list(self.states), ends(len(self), MAX_SIDE_BY_SIDE)
        places = ends(len(names), MAX_LINES)
        body = [
            (GAP,) * (1 + len(rows)) if place is None else (names[place], *words(self.states[names[place]], rows))
            for place in places
        ]
        logs = (GAP if row is None else f"{self.log_probability[row]:.6f}" for row in rows)
        head = ("variable", *(row_name(self.index, row) for row in rows))
        hidden = None in rows or None in places
        note = f"[{plural(len(names), 'variable')} x {plural(len(self), 'row')}]" if hidden else ""
        return Grid([head], [*body, ("log probability", *logs)], note=note)

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {', '.join(self.states)}"

    def _repr_html_(self) -> str:
        title = f"Assignment({plural(len(self.states), 'variable')}, {plural(len(self), 'row')})"
        return _columns_html(title, {**self.states, "log probability": self.log_probability})


@dataclass(frozen=True, eq=False)
class Prediction(NDArrayOperatorsMixin):
    """The most probable state of a query, row by row; NumPy takes it as the array of labels. Made by `TAC.predict`.

    `labels` (rows,) are the states, and `probability` (rows,) the posteriors of these. Of several query variables,
    labels are (rows, variables). Where the evidence is impossible, labels are None and probabilities NaN.

    >>> import tacit
    >>> tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"]).predict({"A": 0.8, "C": ["lo", "hi"]})
           B  probability
    0  false     0.530769
    1   true     0.676000
    """

    names: tuple[str, ...]
    labels: Labels
    probability: Floats
    index: Any = None  # of the pandas frame that the rows came from, if they did

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: Any) -> Any:
        return self.labels[place]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.labels, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        plain = [thing.labels if isinstance(thing, Prediction) else thing for thing in inputs]
        return getattr(ufunc, method)(*plain, **settings)

    def _columns(self) -> dict[str, NDArray[Any]]:
        labels = self.labels.reshape(len(self), -1)
        return {**{name: labels[:, i] for i, name in enumerate(self.names)}, "probability": self.probability}

    def to_pandas(self) -> Any:
        """A pandas frame: the labels of each query variable, and `probability`, with the index of the rows."""
        return package("pandas", "frames").DataFrame(self._columns(), index=self.index)

    def to_polars(self) -> Any:
        """A polars frame: the labels of each query variable, and `probability`."""
        return package("polars", "frames").DataFrame(as_lists(self._columns()))

    def to_arrow(self) -> Any:
        """A pyarrow table: the labels of each query variable, and `probability`."""
        return package("pyarrow", "cli").table(as_lists(self._columns()))

    def _grid(self) -> Grid:
        rows = ends(len(self), MAX_PRINTED)
        *labels, _ = self._columns().values()
        cells = [words(column, rows) for column in labels]
        sure = [GAP if row is None else probability(float(self.probability[row])) for row in rows]
        body = list(zip((row_name(self.index, row) for row in rows), *cells, sure, strict=True))
        note = f"[{plural(len(self), 'row')}]" if None in rows else ""
        return Grid([("", *self.names, "probability")], body, note=note)

    def __repr__(self) -> str:
        return str(self._grid()) if len(self) else f"no rows of {', '.join(self.names)}"

    def _repr_html_(self) -> str:
        title = f"Prediction({', '.join(self.names)}: {plural(len(self), 'row')})"
        return _columns_html(title, self._columns())


class Samples(dict[str, Labels]):
    """Labels by name; a dictionary that notebooks show as a table. Made by `TAC.sample` and `Network.sample`."""

    def _repr_html_(self) -> str:
        shape = next(iter(self.values())).shape if self else (0,)
        each = f" of {plural(shape[0], 'row')}" if len(shape) > 1 else ""
        title = f"{plural(shape[-1], 'sample')}{each}, {plural(len(self), 'variable')}"
        flat = {name: column.reshape(-1) for name, column in self.items()}
        numbers = dict(zip(("row", "sample"), np.indices(shape).reshape(2, -1), strict=True)) if each else {}
        return _columns_html(title, {**numbers, **flat})


def words(labels: Labels, rows: Sequence[int | None]) -> list[str]:
    """The labels of some rows as text."""
    return [GAP if row is None else str(labels[row]) for row in rows]


def as_lists(columns: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Columns as lists, of which frame libraries find the type themselves."""
    return {name: column.tolist() for name, column in columns.items()}


def _columns_html(title: str, columns: Mapping[str, NDArray[Any]]) -> str:
    names, count = list(columns), len(next(iter(columns.values()), ()))
    shown = names[:MAX_COLUMNS]
    rows = zip(*(columns[name][:MAX_ROWS].tolist() for name in shown), strict=True)
    more = {"row": count - MAX_ROWS, "column": len(names) - len(shown)}
    hidden = [f"{plural(rest, noun)} more" for noun, rest in more.items() if rest > 0]
    return table(shown, rows, title, notes=[f"... and {' and '.join(hidden)}"] if hidden else ())


def most_probable(query: Query, names: Sequence[str], evidence: EvidenceLike | None) -> Assignment:
    """The jointly most probable states of some variables, with all others summed out."""
    known, net = query.read(evidence), query.network
    numbers = [name for name in names if net.variable(name).continuous]
    names = [name for name in names if name not in numbers]
    asked = query.companion(replace(query.question, query=(), best=tuple(names)))
    engine = asked.engine().runner(known.rows, Sweep.DESCENT)
    codes: dict[str, list[Codes]] = {name: [np.empty(0, np.int8)] for name in names}
    logs: list[Floats] = [np.empty(0)]
    for block in known.blocks(engine.gradient_chunk):
        descent = engine.descend(block.columns, block.rows)
        for name, column in _codes(asked, descent.states, block, names).items():
            codes[name].append(column[:, 0])
        with np.errstate(divide="ignore"):
            log = np.log(descent.results.joint[0]) + descent.results.exponent * np.log(2.0)
        logs.append(log + scale_of(block.columns, block.rows))
    log_probability = np.concatenate(logs) + query.log_scale
    impossible = np.isneginf(log_probability)
    warn_impossible(impossible, "their states are None")
    chosen = {name: np.concatenate(codes[name]) for name in names}
    states = {name: state_labels(net.variable(name), chosen[name], impossible) for name in names}
    for name in numbers:
        components = _components(net, name, chosen, impossible.shape)
        with _naming(name):
            own = expected(net.density(name), net.variable(name), components, known.columns.get(name))
        states |= {column: np.where(impossible, np.nan, values) for column, values in own.items()}
    return Assignment(states, log_probability, index_of(evidence, known.rows))


def prediction(query: Query, evidence: EvidenceLike | None) -> Prediction:
    """The most probable joint state of the query variables, and its posterior."""
    query.require_query("prediction")
    names = query.question.query
    posterior = query.posterior(evidence)
    shape, table = posterior.shape[1:], flat(posterior)
    best, impossible = table.argmax(axis=1), np.isnan(table[:, 0])
    variables = [query.network.variable(name) for name in names]
    columns = [state_labels(v, c, impossible) for v, c in zip(variables, np.unravel_index(best, shape), strict=True)]
    labels = columns[0] if len(names) == 1 else np.stack([column.astype(object) for column in columns], axis=1)
    probability = np.take_along_axis(table, best[:, None], axis=1)[:, 0]
    return Prediction(names, labels, probability, index_of(evidence, len(table)))


def samples(query: Query, evidence: EvidenceLike | None, n: int, seed: int | None, numbers: bool = False) -> Samples:
    """Exact samples of all variables, given the evidence of each row: labels (rows, n), or numbers in intervals."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise TacitError(f"n is {n!r}, expected the number of samples to draw, a whole number >= 1")
    number, known = int(n), query.read(evidence)
    asked = query.companion(replace(query.question, query=(), every_node=True))
    engine, names = asked.engine().runner(known.rows * number, Sweep.DESCENT), query.variables
    numeric = [name for name in names if query.network.variable(name).continuous]
    names = tuple(name for name in names if name not in numeric)
    small = smallest(max((query.network.variable(name).card for name in names), default=1))
    codes = {name: np.empty((known.rows, number), dtype=small) for name in names}
    impossible = np.zeros(known.rows, dtype=np.bool_)
    seed = checked_seed(seed)
    for rows, columns, draws in _blocks(engine, known, number, seed):
        block = Evidence(rows.stop - rows.start, take(known.columns, rows))
        descent = engine.descend(block.columns, block.rows, draws)
        impossible[rows] = descent.results.joint[0] <= 0
        for name, column in _codes(asked, descent.states, block, names).items():
            codes[name][rows, columns] = column
    warn_impossible(impossible, "their samples are None")
    drawn: dict[str, Labels] = {}
    for place, (name, own) in enumerate(codes.items()):
        variable = query.network.variable(name)
        if numbers and variable.bins is not None:
            stream = np.random.SFC64([seed, place, 0, 1])  # zeros at the end would count for nothing
            numbers_drawn = numbers_inside(variable, own, np.random.Generator(stream))
            drawn[name] = np.where(impossible[:, None], np.nan, numbers_drawn)
        else:
            drawn[name] = state_labels(variable, own, impossible)
    net = query.network
    for place, name in enumerate(numeric):
        random = np.random.Generator(np.random.SFC64([seed, place, 0, 2]))
        components = _components(net, name, codes, (*impossible.shape, number))
        with _naming(name):
            values = drawn_numbers(net.density(name), net.variable(name), components, known.columns.get(name), random)
        drawn |= {column: np.where(impossible[:, None], np.nan, own) for column, own in values.items()}
    ordered = [column for name in query.variables for column in net.variable(name).columns or (name,)]
    return Samples({column: drawn[column] for column in ordered})


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the node in an error about its density."""
    try:
        yield
    except NetworkError as error:
        raise NetworkError(f"node {name!r}: {error}") from None


def _components(net: Model, name: str, codes: Mapping[str, Codes], shape: tuple[int, ...]) -> NDArray[np.intp]:
    """The joint states of a variable's parents, numbered, from the states of each; 0 without parents."""
    places = np.zeros(shape, dtype=np.intp)
    for parent in net.parents(name):
        places = places * net.variable(parent).card + codes[parent]
    return places


def _blocks(engine: Engine, known: Evidence, n: int, seed: int) -> Iterator[tuple[slice, slice, Floats]]:
    """Which rows and samples to draw at a time, and numbers between 0 and 1 for them: the same with every engine."""
    each, at_once = engine.program.draws, min(n, MAX_SAMPLES)
    for r0 in range(0, known.rows, step := max(1, MAX_SAMPLES // n)):
        r1 = min(r0 + step, known.rows)
        for s0 in range(0, n, at_once):
            s1 = min(s0 + at_once, n)
            numbers = np.random.Generator(np.random.SFC64([seed, r0, s0])).random((each, r1 - r0, s1 - s0))
            for start in range(r0, r1, engine.gradient_chunk):
                stop = min(start + engine.gradient_chunk, r1)
                yield slice(start, stop), slice(s0, s1), np.ascontiguousarray(numbers[:, start - r0 : stop - r0])


def _codes(asked: Query, states: States, block: Evidence, names: Sequence[str]) -> dict[str, Codes]:
    """The states of variables (rows, samples), from those of axes: some variables have no axis, or a shorter one.

    A traced program has states of variables themselves: none where only one is possible.
    """
    program = asked.program
    axis = {name: name for name in states} if program.traced else {n: a for a, n in program.owners.items()}
    codes: dict[str, Codes] = {}
    for name in names:
        possible = program.states[name]
        if name in asked.question.indexed:
            codes[name] = np.broadcast_to(block.columns[name].states(), block.rows)[:, None]
        elif name not in axis:
            # without any states, every row is impossible
            sure = not program.traced or len(possible) == 1 or not states
            assert sure, f"{name!r} has no likelihoods that would say its state"
            codes[name] = np.full((block.rows, 1), possible[0])
        elif axis[name] == name:
            codes[name] = states[name]
        else:
            codes[name] = np.array(possible)[states[axis[name]]]
    return codes


def state_labels(variable: Variable, codes: Codes, impossible: NDArray[np.bool_]) -> Labels:
    """The labels of some states, numbers and booleans as such, all else as Python objects; None in impossible rows."""
    kinds = {type(label) for label in variable.states}
    labels = np.array(variable.states, dtype=None if kinds in ({int}, {bool}, {float}) else object)[codes]
    if impossible.any():
        labels = labels.astype(object)
        labels[impossible] = None
    return labels


def checked_seed(seed: Any) -> int:
    """A seed, which must be a whole number >= 0; a random one for None."""
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise TacitError(f"seed is {seed!r}, expected a whole number >= 0, or None for another one each time")
    return int(seed)
