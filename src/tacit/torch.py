"""`TACModule`: a compiled query as a PyTorch module, from evidence tensors to the posterior.

Evidence is read into likelihoods (states of all variables, rows) and the codes of hard variables. From there a query
runs in one of three ways, with the same answers and gradients: on arrays, by the engine that `tac.posterior` uses and
its reverse sweep (on the CPU, where that is several times faster than autograd); on a GPU by kernels generated for the
query; or on tensors, by the torch engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.installation import how_to_install

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.torch needs PyTorch: {how_to_install('torch')}", name="torch") from error
from torch import Tensor, nn

from tacit.engines import check
from tacit.engines.cuda import CudaEngine
from tacit.engines.cuda_tensors import DeviceEvidence, DeviceQuery
from tacit.engines.engine import Sweep
from tacit.engines.results import Array, Results
from tacit.engines.torch import TorchEngine
from tacit.errors import EvidenceError, NetworkError, TacitError
from tacit.evidence import Column, blocks, undeclared
from tacit.floats import Floats, divide
from tacit.learn.forms import EXPONENTIAL, LOGISTIC, SORTED
from tacit.learn.parameters import Key, Parameters
from tacit.network import Network
from tacit.query import check_same_structure
from tacit.tac import TAC
from tacit.variable import Variable, similar
from tacit.words import plural

__all__ = ["TACModule"]

EvidenceTensors: TypeAlias = "Mapping[str, Tensor] | Tensor | None"

DTYPES = {torch.float64: "float64", torch.float32: "float32"}


class TACModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """A compiled query as a torch module: evidence in, posterior out, differentiable in numbers and evidence.

    Parameters
    ----------
    tac
        The compiled query. Numbers that are NaN are learned, and those of tables with `learn=True`; all others are
        known and never change. Where there is nothing to learn, the module is a layer of knowledge without
        parameters of its own.
    slopes
        Whether the slopes of sigmoids are learned, too.
    seed
        The seed of the numbers that have no start of their own.

    `weights`, the only parameter, is free: any value of it makes legal tables. On the CPU the query runs on its own
    engine, second derivatives on tensors; with `engine="torch"` in `tacit.compile`, everything runs on tensors.

    >>> import tacit, torch
    >>> module = TACModule(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]))
    >>> module({"A": torch.tensor([0.8, 0.1]), "C": torch.tensor([[0.6, 0.4], [1.0, 3.0]])})
    tensor([[0.5854, 0.4146],
            [0.6719, 0.3281]], dtype=torch.float64)
    """

    def __init__(self, tac: TAC, slopes: bool = False, seed: int = 0) -> None:
        super().__init__()
        tac.variable  # noqa: B018  (an error where the query is not one variable)
        self.tac = tac.with_network(tac.network)
        self._learned = Parameters(tac.network, _nodes(tac), slopes)
        start = torch.tensor(self._learned.start(np.random.default_rng(seed)), dtype=getattr(torch, tac.dtype))
        if self._learned.count:
            self.weights = nn.Parameter(start)
        else:
            self.register_buffer("weights", start, persistent=False)  # empty: it says in which dtype to run, and where
        self._ways: dict[tuple[torch.device, torch.dtype], OnArrays | OnTensors | OnGPU] = {}

    def forward(self, evidence: EvidenceTensors = None) -> Tensor:
        """The posterior (rows, states of the query); NaN, and no gradient, where the evidence has probability zero.

        Evidence is a column per variable: floats (rows,), the likelihood of a binary variable's first state; floats
        (rows, states), a likelihood per state, in any scale; integers (rows,), the positions of the observed states of
        a variable in `hard`. A column of one row stands for all. A variable that is left out has no evidence, nor has a
        row of equal likelihoods; NaN is not evidence, but an error of whatever made it, and is passed on. Or evidence
        is a table of floats (rows, variables) in the order of `tac.evidence`, if all are binary and none is hard.

        On the CPU, negative likelihoods and positions outside the states are errors. On a GPU they are not looked for,
        since the answer would have to be waited for.
        """
        inputs = read(self.tac, evidence, self.weights)
        return self._way().posterior(self.weights, inputs)

    def network(self) -> Network:
        """The network with the learned numbers filled in; what is known are the same bits as before."""
        return self._learned.fill(self.weights.detach().double().cpu().numpy())

    def load_network(self, net: Network) -> None:
        """Take the learned numbers of a network of the same structure, with the same known numbers."""
        weights = self._learned.weights(_numbers(self._learned, self.tac, net))
        with torch.no_grad():
            self.weights.copy_(torch.from_numpy(weights))

    def extra_repr(self) -> str:
        """What a printed model says of this module."""
        return f"query={self.tac.query!r}, evidence={list(self.tac.evidence)}, {plural(self._learned.count, 'weight')}"

    def _way(self) -> OnArrays | OnTensors | OnGPU:
        device, dtype = key = self.weights.device, self.weights.dtype
        if key not in self._ways:
            tac = self._with_numbers(dtype)
            if device.type == "cpu" and tac.choice != "torch":
                self._ways[key] = OnArrays(tac, self._learned)
            else:
                on_tensors = OnTensors(tac, self._learned, device)
                self._ways[key] = _generated(tac, on_tensors) or on_tensors
        return self._ways[key]

    def _with_numbers(self, dtype: torch.dtype) -> TAC:
        """The query in this dtype, with numbers to start from: engines rely on their exact 0s and 1s, which stay."""
        if dtype not in DTYPES:
            raise TacitError(f"the module is in {dtype}, expected torch.float32 or torch.float64")
        tac, name = self.tac, DTYPES[dtype]
        if name == "float32" and tac.dtype == "float64":  # its program does not rescale often enough
            tac = tac.in_dtype(name)
        net = self._learned.fill(self._learned.start(np.random.default_rng(0)))
        return tac.with_network(net, name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ways": {}}  # engines are made anew where the copy is used


def _nodes(tac: TAC) -> list[str]:
    return list(tac.program.nodes)


def _numbers(learned: Parameters, tac: TAC, net: Network) -> Floats:
    """The learned numbers as `net` has them; an error where it differs in what is known."""
    check_same_structure(tac, net)
    net.require_numbers(_nodes(tac))
    numbers, places = np.empty(learned.entries), {place.key: place for place in learned.places}
    for node in dict.fromkeys((*_nodes(tac), *tac.program.fixed)):
        known = tac.network.cpt(node).parts()
        for part, table in net.cpt(node).parts().items():
            same, place = (table == known[part]).ravel(), places.get((node, part))
            if place is not None:
                numbers[place.first : place.first + len(place.index)] = table.ravel()[place.index]
                same[place.index] = True
            if not same.all():
                raise NetworkError(f"node {node!r}: {part} differs in numbers that are known; only learned ones may")
        before, slope = (getattr(n.cpt(node), "gamma", None) for n in (tac.network, net))
        if slope is not None and node in learned.slope_entries:
            numbers[learned.slope_entries[node]] = slope
        elif slope != before:
            raise NetworkError(f"node {node!r}: its slope is {slope}, expected {before}; see Network.with_gamma")
    return numbers


# evidence -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """Evidence as engines take it.

    `likelihoods` (states of all `variables`, rows) sum to 1 over the states of each of them; `codes` (rows,) are the
    positions of the observed states of hard variables.
    """

    rows: int
    variables: list[Variable]
    likelihoods: Tensor
    codes: dict[str, Tensor]

    def take(self, rows: Tensor) -> Inputs:
        """Some of the rows."""
        codes = {name: own[rows] for name, own in self.codes.items()}
        return Inputs(len(rows), self.variables, self.likelihoods[:, rows], codes)

    def by_variable(self, likelihoods: Tensor) -> dict[Variable, Tensor]:
        """The likelihoods (states, rows) of every variable."""
        return dict(zip(self.variables, likelihoods.split_with_sizes([v.card for v in self.variables]), strict=True))


def read(tac: TAC, evidence: EvidenceTensors, like: Tensor) -> Inputs:
    """Evidence, checked and brought to where `like` is."""
    if isinstance(evidence, Tensor):
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
        _check_kind(tac, variable, table[:, i])
    first = table.to(like).T
    return Inputs(len(table), variables, torch.stack([first, 1 - first], dim=1).flatten(0, 1), {})


def _from_columns(tac: TAC, columns: dict[str, Tensor], like: Tensor) -> Inputs:
    for name, column in columns.items():
        _check_name(tac, name)
        _check_kind(tac, tac.network.variable(name), column)
    for name in tac.certain:
        if name not in columns:
            raise EvidenceError(f"there is no evidence on {name!r}, which the query was compiled to have (hard=, do=)")
    rows = max(map(len, columns.values()), default=1)
    for name, column in columns.items():
        if len(column) not in (1, rows):
            raise EvidenceError(f"evidence on {name!r} has {plural(len(column), 'row')}, other columns have {rows:,}")
    codes = {n: columns[n].to(like.device, torch.int64).expand(rows) for n in columns if n in tac.program.hard}
    soft = sorted((tac.network.variable(n) for n in columns if n not in codes), key=lambda v: v.card)
    found = [like.new_empty((0, rows))]
    for _, group in groupby(soft, key=lambda v: v.card):  # together: on many small tensors, calls are what takes time
        given = torch.stack([_by_state(v, columns[v.name], like).expand(-1, rows) for v in group])
        # scales need no gradient: a posterior does not depend on them
        scales = given.detach().sum(dim=1, keepdim=True).clamp_min(torch.finfo(like.dtype).tiny)
        found.append((given / scales).flatten(0, 1))
    return Inputs(rows, soft, torch.cat(found), codes)


def _by_state(variable: Variable, column: Tensor, like: Tensor) -> Tensor:
    """Likelihoods (states, rows), as they are given."""
    if not column.is_floating_point():  # hard evidence on the query, which keeps its axis
        states = torch.arange(variable.card, device=like.device)[:, None]
        return (states == column.to(like.device)).to(like)
    column = column.to(like)
    return torch.stack([column, 1 - column]) if column.dim() == 1 else column.T


def _check_name(tac: TAC, name: str) -> None:
    if name not in tac.network:
        raise EvidenceError(
            f"evidence names {name!r}, which is not a variable of the network{similar(name, tac.network)}"
        )
    if name not in tac.evidence:
        raise undeclared(name, tac.evidence, tac.question.query)


def _check_kind(tac: TAC, variable: Variable, column: Tensor) -> None:
    """The shape and dtype of a column, which need not be waited for."""
    if not isinstance(column, Tensor):
        raise EvidenceError(f"evidence on {variable.name!r} is a {type(column).__name__}, expected a tensor")
    whole = not (column.is_floating_point() or column.is_complex() or column.dtype == torch.bool)
    if variable.name in tac.certain:
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
        for variable, own in inputs.by_variable(likelihoods).items():
            for row in (own < 0).any(dim=0).nonzero().flatten().tolist()[:1]:
                raise EvidenceError(
                    f"evidence on {variable.name!r}, row {row}: likelihoods must not be negative, nor those of a first "
                    "state exceed 1"
                )


def _check_positions(tac: TAC, columns: Mapping[str, Tensor]) -> None:
    for name in tac.certain:
        codes = columns[name]
        last = tac.network.variable(name).card - 1
        for row in ((codes < 0) | (codes > last)).nonzero().flatten().tolist()[:1]:
            raise EvidenceError(
                f"evidence on {name!r}, row {row}: {codes[row].item()} is not the position of a state, from 0 to {last}"
            )


# on arrays ------------------------------------------------------------------------------------------------


class OnArrays:
    """A query on NumPy arrays, by the engine that `tac.posterior` uses."""

    def __init__(self, tac: TAC, learned: Parameters) -> None:
        self.tac, self.learned, self.engine = tac, learned, tac.engine()

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        found: Tensor = _Posterior.apply(weights, inputs.likelihoods, inputs, self)  # type: ignore[no-untyped-call, unused-ignore]
        return found

    @cached_property
    def on_tensors(self) -> OnTensors:
        """The same query with derivatives of any order."""
        return OnTensors(self.tac, self.learned, torch.device("cpu"))


class _Posterior(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """What autograd sees of an evaluation on arrays."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, likelihoods: Tensor, inputs: Inputs, way: OnArrays) -> Tensor:
        ctx.save_for_backward(weights, likelihoods)
        ctx.inputs, ctx.way = inputs, way
        ctx.evaluation = Evaluation(way, weights.cpu(), likelihoods.cpu(), inputs)
        return torch.from_numpy(ctx.evaluation.posterior.T.copy())  # the caller may write to it

    @staticmethod
    def backward(ctx: Any, by_posterior: Tensor) -> tuple[Tensor | None, ...]:
        weights, likelihoods = ctx.saved_tensors
        if torch.is_grad_enabled():  # the derivatives will be differentiated again, which the reverse sweep cannot
            posterior = ctx.way.on_tensors.posterior(weights, replace(ctx.inputs, likelihoods=likelihoods))
            leaves = [t for t in (weights, likelihoods) if t.requires_grad]
            found = iter(
                torch.autograd.grad(posterior, leaves, by_posterior, create_graph=True, materialize_grads=True)
            )
            return *(next(found) if t.requires_grad else None for t in (weights, likelihoods)), None, None
        by_weight, by_likelihood = ctx.evaluation.derivatives(by_posterior.cpu().numpy().T)
        return torch.from_numpy(by_weight).to(weights), torch.from_numpy(by_likelihood).to(likelihoods), None, None


class Evaluation:
    """One evaluation on arrays, kept for its reverse sweep."""

    def __init__(self, way: OnArrays, weights: Tensor, likelihoods: Tensor, inputs: Inputs) -> None:
        self.learned, self.rows, self.variables = way.learned, inputs.rows, inputs.variables
        self.numbers = way.learned.numbers(weights.double().numpy())
        # later evaluations have other numbers
        self.engine = way.engine.runner(inputs.rows, Sweep.FORWARD, Sweep.THROUGH).twin()
        self.engine.update(way.learned.tables(self.numbers), way.learned.slopes(self.numbers))
        self.columns = {v.name: Column(v, soft=own.numpy()) for v, own in inputs.by_variable(likelihoods).items()}
        for name, codes in inputs.codes.items():
            self.columns[name] = Column(way.tac.network.variable(name), codes.cpu().numpy().copy())
        parts = blocks(self.columns, self.rows, self.engine.chunk)
        found = Results.joined([self.engine.run(part.columns, part.rows) for _, part in parts])
        self.total, self.exponent = found.joint.sum(axis=0), found.exponent
        self.posterior = divide(found.joint, self.total)

    def derivatives(self, by_posterior: Array) -> tuple[Array, Array]:
        """Derivatives by the weights and by the likelihoods, given those by the posterior (states, rows)."""
        inner = by_posterior - (by_posterior * self.posterior).sum(axis=0)
        seeds = divide(inner, self.total, otherwise=0.0)
        by_number, by_likelihood = np.zeros(self.learned.entries), []
        for rows, part in blocks(self.columns, self.rows, self.engine.gradient_chunk):
            found = self.engine.gradients(part.columns, part.rows, seeds[:, rows], self.exponent[rows])
            by_number += self.learned.by_number(found.tables, found.slopes)
            # what does not reach the query has no derivatives
            own = [found.likelihoods.get(v.name, np.zeros((v.card, part.rows))) for v in self.variables]
            by_likelihood.append(np.concatenate([np.empty((0, part.rows)), *own]))
        by_weight = self.learned.by_weight(self.numbers, by_number)
        return by_weight, np.concatenate(by_likelihood, axis=1)


# on tensors -----------------------------------------------------------------------------------------------


class OnTensors:
    """A query on tensors of one device, by the torch engine."""

    def __init__(self, tac: TAC, learned: Parameters, device: torch.device) -> None:
        self.device, self._learned = device, learned
        self._careful = tac.with_network(tac.network, "float64", "auto")
        self.engine = TorchEngine(tac.program, *tac.numbers(), tac.dtype, device)
        self.tables = Tables(learned, self.engine.dtype, device)

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        soft = {v.name: own for v, own in inputs.by_variable(inputs.likelihoods).items()}
        with torch.autocast(self.device.type, enabled=False):  # half precision is for networks of neurons
            joint, _, doubtful = self.engine.forward(soft, inputs.codes, *self.tables(weights))
        total = joint.sum(dim=0)
        possible = total > 0
        # the division must be harmless also where its result is not taken, or its gradient would be NaN
        posterior = torch.where(possible, joint / torch.where(possible, total, 1.0), torch.nan).T
        return self.mended(posterior, doubtful, weights, inputs)

    def mended(self, posterior: Tensor, doubtful: Tensor, weights: Tensor, inputs: Inputs) -> Tensor:
        """With rows that are doubtful computed again, on arrays."""
        rows = doubtful.nonzero().flatten()
        if not len(rows):
            return posterior
        return posterior.index_put((rows,), self._on_arrays.posterior(weights, inputs.take(rows)).to(posterior))

    @cached_property
    def _on_arrays(self) -> OnArrays:
        """The same query for rows whose numbers leave the range of these tensors."""
        return OnArrays(self._careful, self._learned)


# on a GPU, by generated code ------------------------------------------------------------------------------


def _generated(tac: TAC, on_tensors: OnTensors) -> OnGPU | None:
    """The query by kernels generated for it; None where that is not wanted, or not possible."""
    if on_tensors.device.type != "cuda" or torch.version.hip is not None or tac.choice == "torch":
        return None
    try:
        check("cuda")
        return OnGPU(tac, on_tensors)
    except TacitError:
        return None


class OnGPU:
    """A query on tensors of a GPU, by kernels that are generated for it."""

    def __init__(self, tac: TAC, on_tensors: OnTensors) -> None:
        self.on_tensors, number = on_tensors, on_tensors.device.index
        number = torch.cuda.current_device() if number is None else number
        self.query = DeviceQuery(CudaEngine(tac.program, *tac.numbers(), tac.dtype, device=number))

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        given = weights, self.constants(weights), inputs.likelihoods
        posterior, doubtful = _ByKernels.apply(*given, inputs, self)  # type: ignore[no-untyped-call, unused-ignore]
        return self.on_tensors.mended(posterior, doubtful, weights, inputs)

    def constants(self, weights: Tensor) -> Tensor:
        """The constants of the kernels, as a function of the weights."""
        tables, slopes = self.on_tensors.tables(weights)
        return self.query.constants(self.on_tensors.engine.static(tables, slopes), slopes)

    def evidence(self, likelihoods: Tensor, inputs: Inputs) -> DeviceEvidence:
        """The evidence where it is."""
        own = inputs.by_variable(likelihoods)
        return self.query.evidence({v.name: part for v, part in own.items()}, inputs.codes, inputs.rows)


class _ByKernels(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """What autograd sees of an evaluation by kernels: a function of the constants, which depend on the weights."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, constants: Tensor, likelihoods: Tensor, inputs: Inputs, way: OnGPU
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(weights, constants, likelihoods)
        ctx.inputs, ctx.way = inputs, way
        joint, doubtful = way.query.forward(constants, way.evidence(likelihoods, inputs))
        ctx.total = joint.sum(dim=0)
        ctx.posterior = joint / ctx.total
        ctx.mark_non_differentiable(doubtful)
        return ctx.posterior.T.contiguous(), doubtful

    @staticmethod
    def backward(ctx: Any, by_posterior: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (weights, constants, likelihoods), way, inputs = ctx.saved_tensors, ctx.way, ctx.inputs
        if torch.is_grad_enabled():  # the derivatives will be differentiated again, which kernels cannot
            posterior = way.on_tensors.posterior(weights, replace(inputs, likelihoods=likelihoods))
            leaves = [t for t in (weights, likelihoods) if t.requires_grad]
            found = iter(
                torch.autograd.grad(posterior, leaves, by_posterior, create_graph=True, materialize_grads=True)
            )
            by_weight, by_likelihood = (next(found) if t.requires_grad else None for t in (weights, likelihoods))
            return by_weight, None, by_likelihood, None, None
        by, posterior, total = by_posterior.T, ctx.posterior, ctx.total
        inner = by - (by * posterior).sum(dim=0)
        seeds = torch.where(total > 0, inner / total, 0.0).contiguous()  # what is impossible has no derivatives
        wanted = ctx.needs_input_grad[2]
        by_constant, by_input = way.query.backward(constants, way.evidence(likelihoods, inputs), seeds, wanted)
        if by_input is None:
            return None, by_constant.to(constants), None, None, None
        # what does not reach the query has no derivatives
        own = [by_input.get(v.name, likelihoods.new_zeros((v.card, inputs.rows))) for v in inputs.variables]
        by_likelihood = torch.cat([likelihoods.new_empty((0, inputs.rows)), *own])
        return None, by_constant.to(constants), by_likelihood, None, None


class Tables:
    """`Parameters` on tensors: the learned tables and slopes as functions of the weights."""

    def __init__(self, learned: Parameters, dtype: torch.dtype, device: torch.device) -> None:
        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device, dtype=dtype if array.dtype.kind == "f" else None)

        kinds, weight, entry, count, mass, low, _ = learned.units
        slopes, limits = kinds == EXPONENTIAL, (kinds == LOGISTIC) | (kinds == SORTED)
        lengths = count + limits  # thresholds have a gap more
        order, made = np.empty(learned.entries, dtype=np.int64), 0
        # for each length of rows: their weights, and their mass; of thresholds, also where they begin
        self._rows: list[tuple[Tensor, Tensor, Tensor | None]] = []
        kept = [(own, length) for own in (False, True) for length in np.unique(lengths[~slopes & (limits == own)])]
        for of_limits, length in kept:
            units = np.flatnonzero((lengths == length) & ~slopes & (limits == of_limits))
            index = weight[units, None] + np.arange(length)
            if length <= 2:  # log-odds: the last of the weights is none, but 0
                index[:, -1] = learned.count
            begin = tensor(low[units, None]) if of_limits else None
            self._rows.append((tensor(index), tensor(mass[units, None]), begin))
            for j in range(length):
                taken = np.flatnonzero(count[units] > j)
                order[entry[units[taken]] + j] = made + taken * length + j
            made += index.size
        order[entry[slopes]] = made + np.arange(slopes.sum())
        self._exponents, self._order, self._slopes = tensor(weight[slopes]), tensor(order), learned.slope_entries
        self._places = [
            (place.key, slice(place.first, place.first + len(place.index)), tensor(place.table), tensor(place.index))
            for place in learned.places
        ]

    def __call__(self, weights: Tensor) -> tuple[dict[Key, Tensor], dict[str, Tensor]]:
        """The tables that hold learned numbers, complete, and the learned slopes."""
        padded = torch.cat([weights, weights.new_zeros(1)])
        rows = [_row_numbers(padded[index].softmax(dim=1) * mass, begin).flatten() for index, mass, begin in self._rows]
        numbers = torch.cat([*rows, weights[self._exponents].exp()])[self._order]
        tables = {
            key: table.flatten().index_copy(0, index, numbers[own]).view(table.shape)
            for key, own, table, index in self._places
        }
        return tables, {node: numbers[entry] for node, entry in self._slopes.items()}


def _row_numbers(shares: Tensor, begin: Tensor | None) -> Tensor:
    """The numbers of rows: shares of tables, or thresholds, whose gaps the shares are."""
    return shares if begin is None else begin + shares.cumsum(dim=1)
