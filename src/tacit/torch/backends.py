"""What evaluates a query for a torch module, all with the same answers and gradients.

`OnArrays` runs the engine that `tac.posterior` uses and its reverse sweep: on the CPU, several times faster than
autograd. `OnGPU` runs kernels generated for the query, and `OnTensors` the torch engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.base.errors import TacitError
from tacit.base.floats import divide
from tacit.engines import check
from tacit.engines.arrays.torch_engine import TorchEngine
from tacit.engines.cuda.cuda_engine import CudaEngine
from tacit.engines.cuda.tensors import DeviceEvidence, DeviceQuery
from tacit.engines.engine import LEAST_TRUSTED, Sweep
from tacit.engines.results import Array, Results
from tacit.evidence.column import Column, blocks
from tacit.learn.fitting.forms import EXPONENTIAL, LOGISTIC, SORTED
from tacit.learn.fitting.parameters import Key, Parameters
from tacit.model.elements.variable import Variable
from tacit.query.tac import TAC
from tacit.torch.inputs import Inputs

Backend: TypeAlias = "OnArrays | OnTensors | OnGPU"


def backend(tac: TAC, learned: Parameters, device: torch.device) -> Backend:
    """The fastest backend for a query on a device; on tensors, if its engine is "torch"."""
    if device.type == "cpu" and tac.options.engine != "torch":
        return OnArrays(tac, learned)
    on_tensors = OnTensors(tac, learned, device)
    if device.type == "cuda" and torch.version.hip is None and tac.options.engine != "torch":
        try:
            check("cuda")
            return OnGPU(tac, on_tensors)
        except TacitError:  # no kernels can be generated for it
            pass
    return on_tensors


class OnArrays:
    """A query on NumPy arrays, by the engine that `tac.posterior` uses."""

    def __init__(self, tac: TAC, learned: Parameters) -> None:
        self.tac, self.learned, self.engine = tac, learned, tac.engine()

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        given = weights, inputs.likelihoods, inputs.logs
        posterior: Tensor = _Posterior.apply(*given, inputs, self)  # type: ignore[no-untyped-call, unused-ignore]
        return posterior

    @cached_property
    def on_tensors(self) -> OnTensors:
        """The query with derivatives of any order."""
        return OnTensors(self.tac, self.learned, torch.device("cpu"))


class _Posterior(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """What autograd sees of an evaluation on arrays."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, likelihoods: Tensor, logs: Tensor, inputs: Inputs, backend: OnArrays
    ) -> Tensor:
        ctx.save_for_backward(weights, likelihoods, logs)
        ctx.inputs, ctx.backend = inputs, backend
        ctx.forward_pass = ForwardPass(backend, weights.cpu(), likelihoods.cpu(), inputs)
        return torch.from_numpy(ctx.forward_pass.posterior.T.copy())  # the caller may write to it

    @staticmethod
    def backward(ctx: Any, by_posterior: Tensor) -> tuple[Tensor | None, ...]:
        given = ctx.saved_tensors
        if torch.is_grad_enabled():  # the derivatives will be differentiated again, which the reverse sweep cannot
            derivatives = ctx.backend.on_tensors.derivatives(given, ctx.inputs, by_posterior)
            return *derivatives, None, None
        arrays = ctx.forward_pass.derivatives(by_posterior.cpu().numpy().T)
        return *(torch.from_numpy(array).to(own) for array, own in zip(arrays, given, strict=True)), None, None


class ForwardPass:
    """One evaluation on arrays, kept for its reverse sweep."""

    def __init__(self, backend: OnArrays, weights: Tensor, likelihoods: Tensor, inputs: Inputs) -> None:
        self.learned, self.rows, self.variables = backend.learned, inputs.rows, inputs.variables
        self.numbers = backend.learned.numbers(weights.double().numpy())
        # later evaluations have other numbers
        self.engine = backend.engine.runner(inputs.rows, Sweep.FORWARD, Sweep.THROUGH).clone()
        self.engine.update(backend.learned.tables(self.numbers), backend.learned.slopes(self.numbers))
        soft = inputs.by_name(likelihoods)
        self.columns = {v.name: Column(v, soft=soft[v.name].numpy()) for v in inputs.variables}
        for name, codes in inputs.codes.items():
            self.columns[name] = Column(backend.tac.network.variable(name), codes.cpu().numpy().copy())
        for name, layer in inputs.densities.items():
            self.columns[name] = layer.column(inputs.numbers[name])
        self.continuous = inputs.continuous
        parts = blocks(self.columns, self.rows, self.engine.chunk)
        results = Results.joined([self.engine.run(part.columns, part.rows) for _, part in parts])
        self.total, self.exponent = results.joint.sum(axis=0), results.exponent
        self.posterior = divide(results.joint, self.total)

    def derivatives(self, by_posterior: Array) -> tuple[Array, Array, Array]:
        """Derivatives by weights, likelihoods and log-densities, given those by the posterior (states, rows)."""
        inner = by_posterior - (by_posterior * self.posterior).sum(axis=0)
        seeds = divide(inner, self.total, otherwise=0.0)
        by_number, by_likelihood, by_log = np.zeros(self.learned.entries), [], []
        for rows, part in blocks(self.columns, self.rows, self.engine.gradient_chunk):
            slopes = self.engine.gradients(part.columns, part.rows, seeds[:, rows], self.exponent[rows])
            by_number += self.learned.by_number(slopes.tables, slopes.slopes)
            by_likelihood.append(_together(self.variables, slopes.likelihoods, part.rows))
            by_log.append(_together(self.continuous, slopes.likelihoods, part.rows))
        by_weight = self.learned.by_weight(self.numbers, by_number)
        return by_weight, np.concatenate(by_likelihood, axis=1), np.concatenate(by_log, axis=1)


def _together(variables: Sequence[Variable], arrays: Mapping[str, Array], rows: int) -> Array:
    """The arrays (states, rows) of some variables, one below the other; zeros where there is none."""
    return np.concatenate([np.empty((0, rows)), *(arrays.get(v.name, np.zeros((v.card, rows))) for v in variables)])


class OnTensors:
    """A query on tensors of one device, by the torch engine."""

    def __init__(self, tac: TAC, learned: Parameters, device: torch.device) -> None:
        self.device, self._tac, self._learned = device, tac, learned
        self.engine = TorchEngine(tac.program, *tac.numbers(), tac.dtype, device)
        self.tables = Tables(learned, self.engine.dtype, device)

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        posterior, doubtful = self._attempt(weights, inputs)
        return self.with_fallback(posterior, doubtful, weights, inputs)

    def _attempt(self, weights: Tensor, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """The posterior in plain floats, and the rows in which these may lose digits."""
        evidence, lost, rough = inputs.softened()
        soft = evidence.by_name(evidence.likelihoods)
        with torch.autocast(self.device.type, enabled=False):  # half precision is for networks of neurons
            joint, exponent, imprecise = self.engine.forward(soft, inputs.codes, *self.tables(weights))
        total = joint.sum(dim=0)
        possible = total > 0
        if not self.engine.program.selections:  # what underflows counts for nothing beside a joint of ordinary size
            least = LEAST_TRUSTED[str(total.dtype).removeprefix("torch.")]
            lost = lost & ~(total.detach().log2() + exponent >= least)
        # the division must be harmless also where its result is not taken, or its gradient would be NaN
        posterior = torch.where(possible, joint / torch.where(possible, total, 1.0), torch.nan).T
        return posterior, imprecise | lost | rough

    def with_fallback(self, posterior: Tensor, imprecise: Tensor, weights: Tensor, inputs: Inputs) -> Tensor:
        """With imprecise rows computed again, on arrays, whose numbers have a wider range."""
        rows = imprecise.nonzero().flatten()
        if not len(rows):
            return posterior
        return posterior.index_put((rows,), self._on_arrays.posterior(weights, inputs.take(rows)).to(posterior))

    @cached_property
    def _on_arrays(self) -> OnArrays:
        return OnArrays(self._tac.with_network(self._tac.network, "float64", "auto"), self._learned)

    def derivatives(self, given: Sequence[Tensor], inputs: Inputs, by_posterior: Tensor) -> list[Tensor | None]:
        """Derivatives by weights, likelihoods and log-densities that can be differentiated again.

        None where none are wanted.
        """
        weights, likelihoods, logs = given
        # of plain floats: a fallback would come back here for its derivatives
        posterior, _ = self._attempt(weights, replace(inputs, likelihoods=likelihoods, logs=logs))
        leaves = [t for t in given if t.requires_grad]
        slopes = iter(torch.autograd.grad(posterior, leaves, by_posterior, create_graph=True, materialize_grads=True))
        return [next(slopes) if t.requires_grad else None for t in given]


class OnGPU:
    """A query on tensors of a GPU, by kernels that are generated for it."""

    def __init__(self, tac: TAC, on_tensors: OnTensors) -> None:
        self.on_tensors, number = on_tensors, on_tensors.device.index
        number = torch.cuda.current_device() if number is None else number
        self.query = DeviceQuery(CudaEngine(tac.program, *tac.numbers(), tac.dtype, device=number))

    def posterior(self, weights: Tensor, inputs: Inputs) -> Tensor:
        """The posterior (rows, states)."""
        tables, slopes = self.on_tensors.tables(weights)
        constants = self.query.constants(self.on_tensors.engine.static(tables, slopes), slopes)
        evidence, lost, rough = inputs.softened()
        arguments = weights, constants, evidence.likelihoods, evidence, self
        posterior, imprecise = _ByKernels.apply(*arguments)  # type: ignore[no-untyped-call, unused-ignore]
        return self.on_tensors.with_fallback(posterior, imprecise | lost | rough, weights, inputs)

    def evidence(self, likelihoods: Tensor, inputs: Inputs) -> DeviceEvidence:
        return self.query.evidence(inputs.by_name(likelihoods), inputs.codes, inputs.rows)


class _ByKernels(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """What autograd sees of an evaluation by kernels: a function of the constants, which depend on the weights."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, constants: Tensor, likelihoods: Tensor, inputs: Inputs, backend: OnGPU
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(weights, constants, likelihoods)
        ctx.inputs, ctx.backend = inputs, backend
        joint, imprecise = backend.query.forward(constants, backend.evidence(likelihoods, inputs))
        ctx.total = joint.sum(dim=0)
        ctx.posterior = joint / ctx.total
        ctx.mark_non_differentiable(imprecise)
        return ctx.posterior.T.contiguous(), imprecise

    @staticmethod
    def backward(ctx: Any, by_posterior: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (weights, constants, likelihoods), backend, inputs = ctx.saved_tensors, ctx.backend, ctx.inputs
        if torch.is_grad_enabled():  # the derivatives will be differentiated again, which kernels cannot
            given = weights, likelihoods, inputs.logs
            by_weight, by_likelihood, _ = backend.on_tensors.derivatives(given, inputs, by_posterior)
            return by_weight, None, by_likelihood, None, None
        by, posterior, total = by_posterior.T, ctx.posterior, ctx.total
        inner = by - (by * posterior).sum(dim=0)
        seeds = torch.where(total > 0, inner / total, 0.0).contiguous()  # what is impossible has no derivatives
        needed = ctx.needs_input_grad[2]
        by_constant, by_input = backend.query.backward(constants, backend.evidence(likelihoods, inputs), seeds, needed)
        if by_input is None:
            return None, by_constant.to(constants), None, None, None
        # what does not reach the query has no derivatives
        by_state = [by_input.get(v.name, likelihoods.new_zeros((v.card, inputs.rows))) for v in inputs.variables]
        by_likelihood = torch.cat([likelihoods.new_empty((0, inputs.rows)), *by_state])
        return None, by_constant.to(constants), by_likelihood, None, None


class Tables:
    """`Parameters` on tensors: the learned tables and slopes as functions of the weights."""

    def __init__(self, learned: Parameters, dtype: torch.dtype, device: torch.device) -> None:
        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device, dtype=dtype if array.dtype.kind == "f" else None)

        kinds, weight, entry, count, mass, low, _ = learned.units
        slopes, limits = kinds == EXPONENTIAL, (kinds == LOGISTIC) | (kinds == SORTED)
        lengths = count + limits  # thresholds have a gap more
        order, placed = np.empty(learned.entries, dtype=np.int64), 0
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
                order[entry[units[taken]] + j] = placed + taken * length + j
            placed += index.size
        order[entry[slopes]] = placed + np.arange(slopes.sum())
        self._exponents, self._order, self._slopes = tensor(weight[slopes]), tensor(order), learned.slope_entries
        self._places = [
            (place.key, slice(place.first, place.first + len(place.index)), tensor(place.table), tensor(place.index))
            for place in learned.places
        ]

    def __call__(self, weights: Tensor) -> tuple[dict[Key, Tensor], dict[str, Tensor]]:
        """The tables that hold learned numbers, complete, and the learned slopes."""
        padded = torch.cat([weights, weights.new_zeros(1)])
        rows = []
        for index, mass, begin in self._rows:
            shares = padded[index].softmax(dim=1) * mass  # of a table, or the gaps between thresholds
            rows.append((shares if begin is None else begin + shares.cumsum(dim=1)).flatten())
        numbers = torch.cat([*rows, weights[self._exponents].exp()])[self._order]
        tables = {
            key: table.flatten().index_copy(0, index, numbers[own]).view(table.shape)
            for key, own, table, index in self._places
        }
        return tables, {node: numbers[entry] for node, entry in self._slopes.items()}
