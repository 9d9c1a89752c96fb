"""Evidence tensors, checked: likelihoods of the states of all variables, codes of hard ones, and observed numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from tacit.base.errors import EvidenceError
from tacit.base.text import plural
from tacit.evidence.density_column import MAX_PLAIN_LOG
from tacit.evidence.read import undeclared
from tacit.model.elements.distributions import SUM_TOLERANCE
from tacit.model.elements.variable import Variable, describe, row_table, similar
from tacit.query.tac import TAC
from tacit.torch.density_layer import DensityLayer

ROUNDINGS = 1000  # by which the sum of a table's row may miss 1, in floats of less than 64 bits
EvidenceTensors: TypeAlias = "Mapping[str, Tensor] | Tensor | None"


@dataclass(frozen=True)
class Inputs:
    """Evidence as engines take it.

    `likelihoods` (states of all `variables`, rows) sum to 1 over the states of each of them; `codes` (rows,) are the
    positions of the observed states of hard variables. `numbers` (rows, columns) are those of continuous variables,
    which have `densities`, and `logs` (components of all of them, rows) their log-densities.
    """

    rows: int
    variables: list[Variable]
    likelihoods: Tensor
    codes: dict[str, Tensor]
    numbers: dict[str, Tensor] = field(default_factory=dict)
    densities: dict[str, DensityLayer] = field(default_factory=dict)
    logs: Tensor = field(default_factory=lambda: torch.empty(0))

    def take(self, rows: Tensor) -> Inputs:
        codes, numbers = ({name: own[rows] for name, own in some.items()} for some in (self.codes, self.numbers))
        return replace(
            self,
            rows=len(rows),
            likelihoods=self.likelihoods[:, rows],
            codes=codes,
            numbers=numbers,
            logs=self.logs[:, rows],
        )

    def by_name(self, likelihoods: Tensor) -> dict[str, Tensor]:
        """The likelihoods (states, rows) of every variable, out of those of all."""
        return _split(self.variables, likelihoods)

    def with_densities(self, layers: Mapping[str, DensityLayer]) -> Inputs:
        """With the log-densities of the observed numbers."""
        densities = {name: layers[name] for name in self.numbers if name in layers}
        if self.likelihoods.device.type == "cpu":
            for name, layer in densities.items():
                layer.column(self.numbers[name])  # an error where these are none that it can have
        logs = [self.likelihoods.new_empty((0, self.rows), dtype=torch.float64)]
        logs += [layer(self.numbers[name]) for name, layer in densities.items()]
        return replace(self, densities=densities, logs=torch.cat(logs))

    @property
    def continuous(self) -> list[Variable]:
        """The variables that `logs` are of, in this order."""
        return [layer.variable for layer in self.densities.values()]

    def softened(self) -> Softened:
        """The same with likelihoods in place of numbers, the largest of each 1."""
        likelihoods, lost = [self.likelihoods], self.likelihoods.new_zeros(self.rows, dtype=torch.bool)
        rough, least = lost, math.log(torch.finfo(self.likelihoods.dtype).tiny)
        for own in _split(self.continuous, self.logs).values():
            top = own.detach().amax(dim=0)
            off = own - torch.where(top == -math.inf, 0.0, top)
            small = off < least
            lost = lost | (small & (off > -math.inf)).any(dim=0)
            rough = rough | (top.abs() > MAX_PLAIN_LOG) & (top > -math.inf)
            likelihoods.append(torch.where(small, 0.0, off.clamp_min(least).exp()).to(self.likelihoods))
        soft = Inputs(self.rows, [*self.variables, *self.continuous], torch.cat(likelihoods), self.codes)
        return Softened(soft, lost, rough)


class Softened(NamedTuple):
    """Evidence without numbers, and where it may have lost digits: (rows,).

    In `lost` rows, a density underflows beside another one; in `rough` ones, the rounding of logarithms shows.
    """

    inputs: Inputs
    lost: Tensor
    rough: Tensor


def _split(variables: Sequence[Variable], tensor: Tensor) -> dict[str, Tensor]:
    """The rows of a tensor that belong to each of some variables."""
    parts = tensor.split_with_sizes([v.card for v in variables])
    return {v.name: part for v, part in zip(variables, parts, strict=True)}


def read(tac: TAC, evidence: EvidenceTensors, like: Tensor) -> Inputs:
    """Evidence, checked and brought to where `like` is."""
    if isinstance(evidence, Tensor):
        if tac.per_row:
            table = row_table(tac.per_row[0])
            raise EvidenceError(f"give the evidence as a tensor for each variable, and one for {table!r}")
        inputs = _from_table(tac, evidence, like)
    else:
        inputs = _from_columns(tac, dict(evidence or {}), like)
    if not inputs.rows:
        raise EvidenceError("the evidence has no rows; expected at least one")
    if like.device.type == "cpu":
        _check_likelihoods(inputs)
        if not isinstance(evidence, Tensor):
            _check_positions(tac, evidence or {})
    return inputs


def _from_table(tac: TAC, table: Tensor, like: Tensor) -> Inputs:
    """A column per variable that may have evidence, each the likelihood of its first state."""
    variables = [tac.network.variable(name) for name in tac.evidence]
    if table.dim() != 2 or table.shape[1] != len(variables):
        raise EvidenceError(
            f"the evidence has shape {tuple(table.shape)}, expected (rows, {len(variables)}): "
            + ", ".join(tac.evidence)
        )
    for i, variable in enumerate(variables):
        if variable.continuous:
            raise EvidenceError(f"{variable.name!r} is continuous: give the evidence as a tensor for each variable")
        _check_kind(tac, variable, table[:, i])
    first = table.to(like).T
    return Inputs(len(table), variables, torch.stack([first, 1 - first], dim=1).flatten(0, 1), {})


def _from_columns(tac: TAC, columns: dict[str, Tensor], like: Tensor) -> Inputs:
    tables = [_table(tac, name, columns, like) for name in tac.per_row]
    columns = _together(tac, columns)
    for name, column in columns.items():
        if name not in tac.network:
            raise EvidenceError(
                f"evidence names {name!r}, which is not a variable of the network{similar(name, tac.network)}"
            )
        if name not in tac.evidence:
            raise undeclared(name, tac.evidence, tac.question.query)
        _check_kind(tac, tac.network.variable(name), column)
    for name in tac.always_known:
        if name not in columns:
            raise EvidenceError(f"there is no evidence on {name!r}, which the query was compiled to have (hard=, do=)")
    lengths = {name: len(column) for name, column in columns.items()} | {v.name: len(own) for v, own in tables}
    rows = max(lengths.values(), default=1)
    for name, length in lengths.items():
        if length not in (1, rows):
            raise EvidenceError(f"evidence on {name!r} has {plural(length, 'row')}, other columns have {rows:,}")
    codes = {n: columns[n].to(like.device, torch.int64).expand(rows) for n in columns if n in tac.program.hard}
    continuous = [name for name in columns if tac.network.variable(name).continuous]
    numbers = {name: _numbers(columns[name], like).expand(rows, -1) for name in continuous}
    without = (*(name for name in codes if name not in tac.program.likelihoods), *continuous)
    soft = sorted((tac.network.variable(n) for n in columns if n not in without), key=lambda v: v.card)
    likelihoods = [like.new_empty((0, rows))]
    for _, group in groupby(soft, key=lambda v: v.card):  # together: on many small tensors, calls are what takes time
        unscaled = torch.stack([_by_state(v, columns[v.name], like).expand(-1, rows) for v in group])
        # scales need no gradient: a posterior does not depend on them
        scales = unscaled.detach().sum(dim=1, keepdim=True).clamp_min(torch.finfo(like.dtype).tiny)
        likelihoods.append((unscaled / scales).flatten(0, 1))
    likelihoods += [own.expand(rows, -1).T for _, own in tables]
    return Inputs(rows, [*soft, *(variable for variable, _ in tables)], torch.cat(likelihoods), codes, numbers)


def _table(tac: TAC, name: str, columns: dict[str, Tensor], like: Tensor) -> tuple[Variable, Tensor]:
    """The tables of a node (rows, entries), taken out of the columns, and what stands for their entries."""
    plain, logs = row_table(name), f"{name}.log_table"
    given = [column for column in (plain, logs) if column in columns]
    if len(given) != 1:
        problem = "there are two" if given else "there is none"
        raise EvidenceError(f"a table of {name!r} is needed, as {plain!r} or as {logs!r}, and {problem}")
    family = [*map(tac.network.variable, tac.network.parents(name)), tac.network.variable(name)]
    shape, column = tuple(v.card for v in family), columns.pop(given[0])
    fits = isinstance(column, Tensor) and column.is_floating_point()
    if not fits or shape not in (column.shape, column.shape[1:]):
        what = f"a tensor of {column.dtype} of shape {tuple(column.shape)}" if fits else f"a {type(column).__name__}"
        axes = ", ".join(f"states of {v.name}" for v in family)
        expected = f"floats (rows, {', '.join(map(str, shape))}) = (rows, {axes})"
        raise EvidenceError(f"the table of {name!r} is {what}, expected {expected}")
    own = column.to(like)
    own = own.exp() if given[0] == logs else own
    own = own[None] if own.dim() == len(shape) else own
    if like.device.type == "cpu":
        _check_tables(family, own.detach(), max(SUM_TOLERANCE, ROUNDINGS * torch.finfo(column.dtype).eps))
    return Variable(plain, tuple(range(math.prod(shape)))), own.flatten(1)


def _check_tables(family: Sequence[Variable], tables: Tensor, tolerance: float) -> None:
    """An error where a row of a table is no distribution; a NaN is an error of whatever made it, and is passed on."""
    total = tables.sum(dim=-1)
    wrong = (tables < 0).any(dim=-1) | ((total - 1).abs() > tolerance)
    for row, *state in wrong.nonzero()[:1].tolist():
        own = tables[(row, *state)]
        problem = "holds a negative number" if (own < 0).any() else f"sums to {own.sum().item():.6g}, expected 1"
        where = f"{describe(family[:-1], state)}: " if state else ""
        raise EvidenceError(f"the table of {family[-1].name!r}, row {row}: {where}{problem}")


def _together(tac: TAC, columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Columns, where those of a variable of several are one, by its name; what is left out of them is missing."""
    together = dict(columns)
    for variable in map(tac.network.variable, tac.evidence):
        if len(variable.columns) < 2 or together.keys().isdisjoint(variable.columns):
            continue
        given = {name: together.pop(name) for name in variable.columns if name in together}
        for name, column in given.items():
            if not isinstance(column, Tensor) or column.dim() != 1 or not column.is_floating_point():
                raise EvidenceError("is not a tensor of floats (rows,)", variable=name)
        rows, first = max(map(len, given.values())), next(iter(given.values()))
        missing = first.new_full((1,), math.nan)
        together[variable.name] = torch.stack([given.get(n, missing).expand(rows) for n in variable.columns], dim=1)
    return together


def _numbers(column: Tensor, like: Tensor) -> Tensor:
    """Numbers (rows, columns)."""
    numbers = column.to(like.device, torch.float64)
    return numbers[:, None] if numbers.dim() == 1 else numbers


def _by_state(variable: Variable, column: Tensor, like: Tensor) -> Tensor:
    """Likelihoods (states, rows), as they are given."""
    if not column.is_floating_point():  # hard evidence on the query, which keeps its axis
        states = torch.arange(variable.card, device=like.device)[:, None]
        return (states == column.to(like.device)).to(like)
    column = column.to(like)
    return torch.stack([column, 1 - column]) if column.dim() == 1 else column.T


def _check_kind(tac: TAC, variable: Variable, column: Tensor) -> None:
    """The shape and dtype of a column, which need not be waited for."""
    if not isinstance(column, Tensor):
        raise EvidenceError(f"evidence on {variable.name!r} is a {type(column).__name__}, expected a tensor")
    whole = not (column.is_floating_point() or column.is_complex() or column.dtype == torch.bool)
    if variable.continuous:
        count = len(variable.columns)
        fits = column.is_floating_point() and column.shape[1:] in (((), (1,)) if count == 1 else ((count,),))
        expected = f"floats (rows{f', {count}' if count > 1 else ','}): the numbers, NaN where they are missing"
    elif variable.name in tac.always_known:
        fits, expected = whole and column.dim() == 1, "integers (rows,): the positions of the observed states"
    else:
        first = column.dim() == 1 and variable.card == 2 and not variable.numeric  # a number could be meant as a label
        fits = column.is_floating_point() and (first or column.shape[1:] == (variable.card,))
        expected = f"floats (rows, {variable.card}): a likelihood per state"
        if variable.card == 2 and not variable.numeric:
            expected += f"; or floats (rows,): the likelihood of {variable.states[0]!r}"
    if not fits:
        raise EvidenceError(
            f"evidence on {variable.name!r} is a tensor of {column.dtype} of shape {tuple(column.shape)}, "
            f"expected {expected}"
        )


def _check_likelihoods(inputs: Inputs) -> None:
    likelihoods = inputs.likelihoods.detach()
    if likelihoods.numel() and likelihoods.min() < 0:
        for name, own in inputs.by_name(likelihoods).items():
            for row in (own < 0).any(dim=0).nonzero().flatten().tolist()[:1]:
                raise EvidenceError(
                    f"evidence on {name!r}, row {row}: likelihoods must not be negative, nor those of a first "
                    "state exceed 1"
                )


def _check_positions(tac: TAC, columns: Mapping[str, Tensor]) -> None:
    for name in tac.always_known:
        codes = columns[name]
        last = tac.network.variable(name).card - 1
        for row in ((codes < 0) | (codes > last)).nonzero().flatten().tolist()[:1]:
            raise EvidenceError(
                f"evidence on {name!r}, row {row}: {codes[row].item()} is not the position of a state, from 0 to {last}"
            )
