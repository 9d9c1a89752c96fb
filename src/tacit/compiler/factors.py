"""Initialisation: every CPT as small factors.

A factor is an arrangement of the numbers of one part of a CPT (or of one likelihood vector): an index array
over its axes, whose entries point into that part or stand for the constants 0 and 1. A dense table is one
factor. Rules become chains of small ones over auxiliary axes:

- a function of many parents becomes the minimal automaton that reads one parent after the other;
- a noisy-or adds one cause after the other;
- a multiplexer whose selector has N states is read state by state. The selector itself is then replaced by
  N-1 binary axes, "not yet reached after i states", so that everything stays linear in N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.text import fresh_name
from tacit.compiler.consistency import children
from tacit.compiler.operations import ONE, ZERO, Axes, Axis, Likelihood, Parameter
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.model.cpt import CPT, THRESHOLDS, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.elements.variable import row_table
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT, Mux, NoisyOr

Index = NDArray[np.int64]
MAX_DENSE_FUNCTION = 4096  # entries of a function's table up to which an automaton is not worth it


@dataclass(frozen=True)
class IndexedFactor:
    """Numbers of `source` (None: constants only) arranged over `axes`."""

    source: Parameter | Likelihood | None
    index: Index
    axes: Axes


@dataclass(frozen=True)
class Reading:
    """How a selector is read: its possible states, and the axes after each of them (None: fixed)."""

    states: tuple[int, ...]
    axes: tuple[Axis | None, ...]


class AxisNames:
    """Names for axes that are not variables of the network: each is given out once."""

    def __init__(self, net: Model) -> None:
        self._taken = set(net.variables)

    def fresh(self, text: str) -> Axis:
        """`text`, with apostrophes where that is a variable or another axis already."""
        name = fresh_name(text, self._taken)
        self._taken.add(name)
        return name


def node_factors(net: Model, name: str, readings: Mapping[str, Reading], names: AxisNames) -> list[IndexedFactor]:
    """The factors of a regular node over the full axes of its family."""
    cpt, parents = net.cpt(name), net.parents(name)
    family = (*parents, name)
    match cpt:
        case CPT():
            return _read_or_whole(name, Parameter(name, "table", family), cpt.table.shape, readings)
        case FunctionCPT():
            return _function(name, cpt, family, names)
        case NoisyOr():
            return _noisy_or(name, cpt, parents, names)
        case Mux():
            return list(_mux(net, name, cpt, readings.get(cpt.selector)))
        case BaseDensity():
            return []  # an observed value is a likelihood of the parents' states, and others say nothing
        case TestingCPT():
            raise AssertionError("testing nodes are flattened, not initialised")


def likelihood_factors(net: Model, name: str, readings: Mapping[str, Reading]) -> list[IndexedFactor]:
    """The likelihoods of a variable with soft evidence; observed numbers make those of the parents' joint states."""
    if net.variable(name).continuous:
        parents = net.parents(name)
        return [whole(Likelihood(name, parents, of_density=True), [net.variable(parent).card for parent in parents])]
    return _read_or_whole(name, Likelihood(name, (name,)), [net.variable(name).card], readings)


def table_of_rows(net: Model, name: str, axes: Axes) -> IndexedFactor:
    """The table of a node that rows bring along, over the axes that its family has there."""
    family = (*net.parents(name), name)
    return whole(Likelihood(row_table(name), axes), [net.variable(member).card for member in family])


def whole(source: Parameter | Likelihood, shape: Sequence[int]) -> IndexedFactor:
    """All numbers of a part, in their own order."""
    return IndexedFactor(source, places(shape), source.axes)


def places(shape: Sequence[int]) -> Index:
    """The place of every entry of a table among all of them."""
    return np.arange(math.prod(shape)).reshape(shape)


def thresholds(
    name: str, cpt: TestingCPT, parents: Axes, names: AxisNames
) -> tuple[list[IndexedFactor], list[tuple[IndexedFactor, IndexedFactor]]]:
    """The thresholds of a testing node in the order in which tests come to hold, and the ends of the gaps between."""
    if len(cpt.tables) == 2:
        return [whole(Parameter(name, THRESHOLDS, parents), cpt.thresholds.shape)], []
    source = Parameter(name, THRESHOLDS, (*parents, names.fresh(f"{name}|test")))
    count = cpt.thresholds.shape[-1]
    in_turn = count * places(cpt.test.shape)[..., None] + cpt.in_turn()

    def factor(index: Index) -> IndexedFactor:
        return IndexedFactor(source, index, parents)

    pairs = [np.sort(in_turn[..., j : j + 2]) for j in range(count - 1)]
    gaps = [(factor(pair[..., 0]), factor(pair[..., 1])) for pair in pairs]
    return [factor(in_turn[..., j]) for j in range(count)], gaps


def readings(net: Model, pruned: Pruned, question: Question, names: AxisNames) -> dict[str, Reading]:
    """The selectors that can be read state by state.

    A selector's own axis must not be needed: nobody asks for its state, its CPT is a dense table, and it has no
    children but multiplexers that it selects for; and rows bring no table of it along.
    """
    if question.every_node:  # somebody asks for every state
        return {}
    selectors = {}
    for name, below in children(net, pruned.nodes).items():
        muxes = [net.cpt(child) for child in below]
        only_selects = bool(muxes) and all(isinstance(m, Mux) and m.selector == name for m in muxes)
        states = pruned.states[name]
        plain = isinstance(net.cpt(name), CPT) and name not in question.per_row
        if only_selects and plain and name not in question.named and len(states) > 2:
            selectors[name] = Reading(states, (*(names.fresh(f"{name}>{i}") for i in states[:-1]), None))
    return selectors


def _read_or_whole(
    name: str, source: Parameter | Likelihood, shape: Sequence[int], readings: Mapping[str, Reading]
) -> list[IndexedFactor]:
    """A factor over a variable; if that is read, one factor per state that counts when the reading stops there."""
    if name not in readings:
        return [whole(source, shape)]
    rest, states = tuple(a for a in source.axes if a != name), readings[name].states
    return [_stop_at(source, readings[name], i, places(shape)[..., k], rest) for i, k in enumerate(states)]


def _stop_at(source: Parameter | Likelihood | None, reading: Reading, i: int, here: Index, rest: Axes) -> IndexedFactor:
    """A factor that is `here` if the reading stops at its i-th state, and 1 if it stopped earlier or goes on."""
    # (before, after, rest...): 0 = going on, 1 = stopped; it starts going on and must stop at the last state
    index = np.full((2, 2, *here.shape), ONE, dtype=np.int64)
    index[0, 1] = here
    index[1, 0] = ZERO
    before, after = (reading.axes[i - 1] if i else None), reading.axes[i]
    if after is None:
        index = index[:, 1]
    if before is None:
        index = index[0]
    return IndexedFactor(source, index, (*(a for a in (before, after) if a is not None), *rest))


def _mux(net: Model, name: str, cpt: Mux, reading: Reading | None) -> Iterator[IndexedFactor]:
    card = net.variable(name).card
    same = np.where(np.eye(card, dtype=bool), ONE, ZERO)
    if reading is not None:
        for i, state in enumerate(reading.states):
            yield _stop_at(None, reading, i, same, (name, cpt.inputs[state]))
        return
    for i, source in enumerate(cpt.inputs):
        index = np.full((len(cpt.inputs), card, card), ONE, dtype=np.int64)
        index[i] = same
        yield IndexedFactor(None, index, (cpt.selector, name, source))


def _noisy_or(name: str, cpt: NoisyOr, parents: Axes, names: AxisNames) -> list[IndexedFactor]:
    if not parents:
        return [whole(Parameter(name, "cause 0", (name,)), (2,))]
    effects = [*(names.fresh(f"{name}|{i}") for i in range(len(parents) - 1)), name]
    causes = []
    for i, (parent, table) in enumerate(zip(parents, cpt.parts().values(), strict=True)):
        axes = (parent, *effects[max(0, i - 1) : i + 1])
        causes.append(whole(Parameter(name, f"cause {i}", axes), table.shape))
    return causes


def _function(name: str, cpt: FunctionCPT, family: Axes, names: AxisNames) -> list[IndexedFactor]:
    own = cpt.rows.shape[1]
    source = Parameter(name, "rows", (names.fresh(f"{name}|row"), name))
    if cpt.codes.size * own > MAX_DENSE_FUNCTION:
        steps, last = automaton(cpt.codes)
        if sum(s.size * s.max() for s in steps) + last.size * own < cpt.codes.size * own / 4:
            states = [names.fresh(f"{name}|{i}") for i in range(len(steps))]
            before: list[Axes] = [(), *((state,) for state in states)]
            tables = [np.where(step[..., None] == np.arange(step.max() + 1), ONE, ZERO) for step in steps]
            axes = [(*b, parent, after) for b, parent, after in zip(before, family, states, strict=False)]
            chain = [IndexedFactor(None, table, own_axes) for table, own_axes in zip(tables, axes, strict=True)]
            return [*chain, IndexedFactor(source, _entries(last, own), (*before[-1], *family[-2:]))]
    return [IndexedFactor(source, _entries(cpt.codes, own), family)]


def _entries(codes: Index, own: int) -> Index:
    return codes[..., None] * own + np.arange(own)


def automaton(codes: Index) -> tuple[list[Index], Index]:
    """The minimal automaton of a function of several arguments, one argument after the other.

    Returns the step tables (state, argument) -> state of all arguments but the last (the first has no state
    axis), and the table (state, last argument) -> code.
    """
    steps: list[Index] = []
    table = codes.reshape(1, *codes.shape)  # (state, remaining arguments...)
    while table.ndim > 2:
        flat = table.reshape(table.shape[0] * table.shape[1], -1)
        residual, state = np.unique(flat, axis=0, return_inverse=True)
        step = state.reshape(table.shape[:2])
        steps.append(step if steps else step[0])
        table = residual.reshape(-1, *table.shape[2:])
    return steps, (table if steps else table[0])
