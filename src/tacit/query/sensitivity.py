"""How a posterior depends on the numbers of a network: derivatives by every entry of every table and density."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base import html, machine
from tacit.base.errors import TableError, TacitError, TooLargeError
from tacit.base.floats import Floats, divide, flat
from tacit.base.grid import Grid
from tacit.base.progress import Progress
from tacit.base.text import plural
from tacit.base.version import package
from tacit.engines.arrays.by_row import ByRow
from tacit.engines.results import Array
from tacit.evidence.column import Column, Evidence, blocks, take
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.distinct import distinct
from tacit.evidence.read import EvidenceLike
from tacit.model.cpt import CPT, THRESHOLDS, AnyCPT, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.elements.variable import Label, describe
from tacit.model.model import Model
from tacit.query.answers.answer import warn_impossible
from tacit.query.marginals import no_pause, require_few_sweeps
from tacit.query.query import Query

Key = tuple[str, str]
CAUSE = "cause "  # the parts of a noisy-or
MAX_LINES = 10  # entries that are printed
COVARIANCES = "cov"  # of a density
IMPOSSIBLE = "the evidence has probability 0, so there is no posterior to depend on anything"
DEPENDS = "the entries it depends on most"
SELECTED = "As long as tests come out as they do now: a change that turns one does more."
HEADINGS = ("entry", "value", "derivative", "decision changes at")
COPIES_KEPT = 2  # of every derivative: as a slope, and as that of the posterior
NOISE = 1e-14  # what rounding leaves of a difference of equals, relative to them
# A slope may be beyond the range of floats: evidence can be so improbable that an entry changes it by any factor. Then
# it is infinite, and a difference of two such slopes is unknown.
UNBOUNDED = np.errstate(over="ignore", invalid="ignore")


class Entry(NamedTuple):
    """One entry of a table, and how much the posterior of a query state depends on it.

    It is at `place` in a part of the node's CPT, and `name` says in words what it is the number of. `derivative` is
    that of the posterior by the entry, with the rest of its row co-varied in proportion; a number of a density changes
    alone. `flips_at` is the value of the entry at which another state of the query becomes the most probable one, the
    nearest to its present `value`; NaN where there is none between 0 and 1, where sigmoids leave it unknown, and for
    numbers of densities. It takes the tables that tests have selected as they are.
    """

    node: str
    part: str
    place: tuple[int, ...]
    name: str
    value: float
    derivative: float
    flips_at: float

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The entry as a line of a table, below the `HEADINGS`."""
        flips_at = "" if math.isnan(self.flips_at) else f"{self.flips_at:.6g}"
        return self.name, f"{self.value:.6g}", f"{self.derivative:+.6g}", flips_at


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of posteriors by every entry of every table. Made by `TAC.sensitivity`.

    `posterior` is (rows, states of the query...). `slopes` are by node and part, (rows, states of the query..., entries
    of the table...): by how much p*(query, evidence) grows with an entry, in units of p*(evidence). `asked` is the
    query with all its states, and `known` the evidence, for what slopes do not tell.
    """

    posterior: Floats
    slopes: Mapping[Key, Floats]
    asked: Query
    known: Evidence

    @property
    def network(self) -> Model:
        """The network with its numbers."""
        return self.asked.network

    @property
    def query(self) -> tuple[str, ...]:
        """The query variables."""
        return self.asked.question.query

    @property
    def selects(self) -> bool:
        """Whether testing nodes take part, so that slopes only hold while the same tables are selected."""
        return bool(self.asked.program.selections)

    @property
    def bends(self) -> bool:
        """Whether sigmoids take part, so that a slope is only that of a tangent."""
        cpts = [self.network.cpt(node) for node in self.asked.program.selections]
        return any(isinstance(cpt, TestingCPT) and cpt.gamma is not None for cpt in cpts)

    @cached_property
    def _tables(self) -> dict[Key, Floats]:
        return _tables(self.network)

    @cached_property
    @UNBOUNDED
    def derivatives(self) -> dict[Key, Floats]:
        """The total derivatives of the posterior: (rows, states of the query..., entries of the table...).

        While an entry changes, the rest of its row changes in proportion, so that the row still sums to 1; NaN for an
        entry of 1, where no proportion is left. Thresholds change alone, and so do numbers of densities, but that
        an entry of a covariance changes together with its mirror image.
        """
        over = tuple(range(1, self.posterior.ndim))
        derivatives = {}
        for key, slope in self.slopes.items():
            total = slope.sum(axis=over, keepdims=True)
            posterior = self.posterior.reshape(*self.posterior.shape, *[1] * (slope.ndim - self.posterior.ndim))
            derivatives[key] = _difference(slope, _times(posterior, total))
        return derivatives

    @cached_property
    def values(self) -> dict[Key, Floats]:
        """The sensitivity values: the derivatives without their signs."""
        return {key: np.abs(derivative) for key, derivative in self.derivatives.items()}

    def entries(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> list[Entry]:
        """All entries for one row and one state of the query, those with the largest sensitivity values first.

        The most probable state, if none is given; of several query variables, a tuple of states.
        """
        row, which = self._row(row), self.state(row, state)
        entries = []
        for (node, part), derivative in self.derivatives.items():
            table, flips = self._tables[node, part], self._flips(row, (node, part))
            columns = (column.ravel().tolist() for column in (table, derivative[row][which], flips))
            for place, *numbers in zip(np.ndindex(*table.shape), *columns, strict=True):
                if part.startswith(CAUSE) and len(place) == 3 and place[1] == 0:
                    continue  # no number of the network: what one cause brought about stays
                if part == COVARIANCES and place[-2] > place[-1]:
                    continue  # the mirror image of another
                entries.append(Entry(node, part, place, _name(self.network, node, part, place), *numbers))
        return sorted(entries, key=lambda entry: -abs(np.nan_to_num(entry.derivative)))

    def changed(
        self, row: int, state: tuple[int, ...], key: Key, place: tuple[int, ...], value: float | Floats
    ) -> Floats:
        """The posterior of a state if an entry had another value, the rest of its row co-varied."""
        cpt = self.network.cpt(key[0])
        if isinstance(cpt, BaseDensity) or (self.selects and isinstance(cpt, CPT | TestingCPT)):
            values = np.asarray(value, dtype=np.float64)
            posteriors = [float(self._asked_again(row, key, place, new)[state]) for new in values.ravel().tolist()]
            return np.array(posteriors).reshape(values.shape)
        change = np.asarray(value) - self._tables[key][place]
        slope = self.slopes[key][row][(..., *place)]
        return np.asarray((self.posterior[row][state] + change * slope[state]) / (1 + change * slope.sum()))

    def _asked_again(self, row: int, key: Key, place: tuple[int, ...], value: float) -> Floats:
        """The posterior of a network with another entry: it may select other tables."""
        (node, part), cpt = key, self.network.cpt(key[0])
        table, unknown = np.array(self._tables[key]), np.full(self.posterior.shape[1:], np.nan)
        if part != THRESHOLDS and not isinstance(cpt, BaseDensity):
            if table[place] == 1:  # no proportion is left to keep
                return unknown
            others = np.arange(table.shape[-1]) != place[-1]
            table[place[:-1]] *= np.where(others, (1 - value) / (1 - table[place]), 1.0)
        table[place] = value
        if part == COVARIANCES:
            table[(*place[:-2], place[-1], place[-2])] = value
        several = isinstance(cpt, TestingCPT) and part == THRESHOLDS and len(cpt.tables) > 2
        if several and not (np.diff(table, axis=-1) >= 0).all():  # thresholds that are no longer in order
            return unknown
        names = self.network.ties.get(cpt.tie, ()) if cpt.tie is not None else ()
        loose = {name: _with_part(self.network.cpt(name), "", table) for name in names}  # of a tie, one alone changes
        try:
            net = self.network.with_cpts({**loose, node: _with_part(cpt, part, table)})
        except TableError:  # a deviation of 0 or less
            return unknown
        known = Evidence(1, take(self.known.columns, np.array([row])))
        posterior: Floats = self.asked.with_network(net).posterior(known)[0]
        return posterior

    def to_pandas(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> Any:
        """The entries as a pandas frame: node, part, place, name, value, derivative, flips_at."""
        return package("pandas", "frames").DataFrame(self.entries(row, state), columns=list(Entry._fields))

    def to_polars(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> Any:
        """The entries as a polars frame, with the columns of `to_pandas`; places are lists."""
        entries = [entry._asdict() | {"place": list(entry.place)} for entry in self.entries(row, state)]
        return package("polars", "frames").DataFrame(entries, infer_schema_length=None)

    def to_frame(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> Any:
        """The same as `to_pandas`, by its former name."""
        return self.to_pandas(row, state)

    @UNBOUNDED
    def _flips(self, row: int, key: Key) -> Floats:
        """The value of each entry at which the most probable state changes, the nearest one; NaN if it never does."""
        table, posterior = self._tables[key], self.posterior[row].ravel()
        slope = self.slopes[key][row].reshape(len(posterior), *table.shape)
        best = int(np.argmax(posterior))
        nearest = np.full(table.shape, np.nan)
        if self.bends or self.network.variable(key[0]).continuous:
            return nearest
        for other in range(len(posterior)):
            if other == best:
                continue
            gap, closing = posterior[best] - posterior[other], _difference(slope[other], slope[best])
            near = (closing != 0) & (np.abs(gap) <= np.abs(closing))  # others are further away than from 0 to 1
            change = np.divide(gap, closing, out=np.full(table.shape, np.nan), where=near)
            possible = 1 + _times(change, slope.sum(axis=0)) > NOISE  # the evidence
            inside = (table + change >= 0) & (table + change <= 1) & possible
            closer = inside & ~(np.abs(nearest - table) <= np.abs(change))
            nearest = np.where(closer, table + change, nearest)
        return nearest

    def _row(self, row: int) -> int:
        rows = len(self.posterior)
        if not -rows <= row < rows:
            count = "is 1 row, number 0" if rows == 1 else f"are {rows:,}"
            raise TacitError(f"row {row} does not exist; there {count}")
        return row % rows

    def state(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> tuple[int, ...]:
        """Where a state of the query is in its posterior; the most probable one, if none is given."""
        posterior = self.posterior[self._row(row)]
        if state is None:
            place = int(np.nan_to_num(posterior, nan=-1.0).argmax())
            return tuple(int(i) for i in np.unravel_index(place, posterior.shape))
        labels = state if isinstance(state, tuple) else (state,)
        if len(labels) != len(self.query):
            raise TacitError(f"state is {state!r}, expected one state for each of {list(self.query)}")
        places = []
        for name, label in zip(self.query, labels, strict=True):
            codes = self.network.variable(name).codes
            if not isinstance(label, Hashable) or label not in codes:
                raise TacitError(f"{label!r} is not a state of {name!r}; expected one of {list(codes)}")
            places.append(codes[label])
        return tuple(places)

    def title(self, row: int = 0, state: Label | tuple[Label, ...] | None = None) -> str:
        """The state and its probability: "P*(B='true') = 0.6"."""
        row, which = self._row(row), self.state(row, state)
        variables = [self.network.variable(name) for name in self.query]
        return f"P*({describe(variables, which)}) = {self.posterior[row][which]:.6g}"

    def _grid(self) -> Grid | None:
        """The entries that the first row depends on most; None where its evidence is impossible."""
        if np.isnan(self.posterior[0]).any():
            return None
        count = len(self.posterior)
        where = f" in the first of {count:,} rows" if count > 1 else ""
        body = [entry.cells for entry in self.entries()[:MAX_LINES] if entry.derivative]
        return Grid([HEADINGS], body, 1, f"{self.title()}{where}: {DEPENDS}", SELECTED * self.selects)

    def __str__(self) -> str:
        return str(self._grid() or IMPOSSIBLE)

    def _repr_html_(self) -> str:
        grid = self._grid()
        return grid.html() if grid else html.lines([IMPOSSIBLE])

    def __repr__(self) -> str:
        entries, rows = sum(table.size for table in self._tables.values()), plural(len(self.posterior), "row")
        return f"Sensitivity(of {', '.join(self.query)} to {entries:,} entries, {rows})"


def sensitivity(query: Query, evidence: EvidenceLike | None, pause: Callable[[], None] = no_pause) -> Sensitivity:
    """Derivatives of the posterior by every table entry; `pause` is called between sweeps, and may raise to end it."""
    query.require_no_tables("sensitivity")
    require_few_sweeps(query, "sensitivity")
    query.network.require_numbers()
    asked = query.companion(replace(query.question, every_state=True, index=False, by_row=True))
    known = query.read(evidence)
    entries, states = sum(table.size for table in _tables(query.network).values()), math.prod(query.states_asked)
    needed, there = 8.0 * known.rows * states * entries * COPIES_KEPT, machine.memory()
    if needed > there:
        what = f"the derivatives of {plural(known.rows, 'row')} by {entries:,} table entries"
        room = f"take {needed / 2**30:,.3g} GiB of memory, and there are {there / 2**30:,.3g}"
        raise TooLargeError(f"{what}, for each of {states:,} states, {room}; ask about fewer rows at once")
    rows = distinct(known)
    posterior, slopes = _slopes(asked, rows.known, pause)
    whole = rows.for_all(posterior)
    warn_impossible(np.isnan(flat(whole)[:, 0]), "their derivatives are NaN")
    return Sensitivity(whole, {key: rows.for_all(slope) for key, slope in slopes.items()}, asked, known)


def _slopes(asked: Query, known: Evidence, pause: Callable[[], None]) -> tuple[Floats, dict[Key, Floats]]:
    """The posterior and the slopes of some rows; see `Sensitivity`."""
    engine, tables = ByRow(asked.program, *asked.numbers()), _tables(asked.network)
    posterior = np.empty((known.rows, *asked.states_asked))
    slopes = {key: np.empty((*posterior.shape, *table.shape)) for key, table in tables.items()}
    with Progress("sensitivity", known.rows) as progress:
        for rows, block in blocks(known.columns, known.rows, engine.gradient_chunk):
            found = engine.derivatives(block.columns, block.rows, pause)
            possible = np.asarray(found.posterior.sum(axis=0) > 0)
            _put(posterior[rows], found.posterior, possible)
            of_densities = by_densities(block.columns, found.by_log)
            for key, table in tables.items():
                nothing = np.zeros((1, *table.shape, 1))  # of a table without a say
                if asked.network.variable(key[0]).continuous:
                    by_entry = of_densities.get(key, nothing).reshape(-1, *table.shape, block.rows)
                else:
                    by_entry = _covaried(key[1], table, found.by_table.get(key, nothing))
                _put(slopes[key][rows], by_entry, possible)
            progress.advance(block.rows)
    return posterior, slopes


@UNBOUNDED
def by_densities(columns: Mapping[str, Column], by_log: Mapping[str, Floats]) -> dict[Key, Array]:
    """Derivatives (states, components, ..., rows) by the numbers of densities, from those by their logarithms."""
    derivatives: dict[Key, Array] = {}
    for node, by_component in by_log.items():
        column = columns[node]
        assert isinstance(column, DensityColumn)
        assert column.density is not None
        for part, score in column.density.scores(column.values).items():
            states, components, rows = by_component.shape
            spread = by_component.reshape(states, components, *[1] * (score.ndim - 2), rows)
            derivatives[node, part] = _times(spread, score)
    return derivatives


def _put(place: Floats, values: Array, possible: NDArray[np.bool_]) -> None:
    """Put the values of some rows, (states, ..., rows), into their place, (rows, states..., ...)."""
    by_row = np.moveaxis(place.reshape(len(place), -1, *values.shape[1:-1]), 0, -1)
    by_row[:] = values
    by_row[..., ~possible] = np.nan


def _tables(net: Model) -> dict[Key, Floats]:
    """All numbers of a network, by node and part."""
    return {(node, part): table for node in net.variables for part, table in net.cpt(node).parts().items()}


@UNBOUNDED
def _covaried(part: str, table: Floats, derivatives: Array) -> Array:
    """Derivatives (states, entries of the table..., rows) along the line on which a row of the table sums to 1.

    If entry i grows by d, every other entry j of its row loses d t_j / (1 - t_i).
    """
    if part == THRESHOLDS:
        return derivatives
    others = 1 - np.eye(table.shape[-1])  # sums over them, since a sum less one of its terms would lose digits
    rest = table @ others
    moved = np.einsum("...jr,ji->...ir", _times(table[..., None], derivatives), others)
    return _difference(derivatives, divide(moved, rest[..., None]))


def _times(weight: Floats, derivative: Array) -> Floats:
    """A product that is 0 where the weight is, also of a derivative beyond the range of floats."""
    nothing = np.zeros(np.broadcast_shapes(weight.shape, derivative.shape))
    return np.multiply(weight, derivative, out=nothing, where=weight != 0)


def _difference(a: Array, b: Array) -> Floats:
    """a - b; 0 where rounding alone makes it differ from that, and NaN where both are infinite."""
    difference = np.asarray(a - b, dtype=np.float64)
    noise = NOISE * np.abs(a)
    noise += NOISE * np.abs(b)
    difference[np.abs(difference) < noise] = 0.0
    return difference


def _name(net: Model, node: str, part: str, place: tuple[int, ...]) -> str:
    """What an entry is the number of: "P(B='true' | A='false')"; of what is no dense table, with the part's name."""
    own, parents = net.variable(node), [net.variable(p) for p in net.parents(node)]
    family = [*parents, own]
    if own.continuous:
        at = describe(parents, place[: len(parents)])
        columns = ", ".join(own.columns[i] for i in place[len(parents) :]) or own.name
        return f"{part} of {columns}{' at ' if at else ''}{at}"
    if part == "table":
        given = describe(parents, place[:-1])
        return f"P({describe([own], place[-1:])}{' | ' if given else ''}{given})"
    if part.startswith(CAUSE):
        by = [describe([parents[int(part.removeprefix(CAUSE))]], place[:1])] if parents else []
        by += ["the leak"] * (part == f"{CAUSE}0")  # which the first part has in it
        return f"P({'no ' * (place[-1] == 1)}{describe([own], (0,))} by {' or '.join(by)})"
    if part == THRESHOLDS and len(place) == len(family):  # one of several
        return f"{node}.{part}[{describe(parents, place[:-1])}, {place[-1]}]"
    if len(place) == len(family) or part == THRESHOLDS:
        return f"{node}.{part}[{describe(family[: len(place)], place)}]"
    return f"{node}.{part}[{place[0]}, {describe([own], place[-1:])}]"


def _with_part(cpt: AnyCPT, part: str, table: Floats) -> AnyCPT:
    """A CPT with another table for one of its parts, out of its tie."""
    if isinstance(cpt, BaseDensity):
        make: Any = type(cpt)
        changed: AnyCPT = make(**cpt.parts() | ({part: table} if part else {}))
        return changed
    if isinstance(cpt, TestingCPT):
        return cpt.with_parts({part: table} if part else {}, learn=False, tie=None)
    assert isinstance(cpt, CPT)
    return CPT(table if part else cpt.table)
