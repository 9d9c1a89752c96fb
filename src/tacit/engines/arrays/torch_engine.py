"""The learning and GPU engine: programs on torch tensors, on CPU or CUDA, differentiable.

Values are laid out as in the NumPy engine: (axes..., rows) where they depend on evidence, (axes...) where they only
depend on parameters. Permuted results stay views, since every operation reads strides. How each operation moves its
axes is settled when the engine is made; a run only follows these steps.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tacit.base.errors import EvidenceError
from tacit.base.floats import noting_underflow
from tacit.base.machine import in_own_threads
from tacit.compiler.operations import Parameter
from tacit.compiler.operations.axes import Key
from tacit.compiler.program import Program
from tacit.engines.arrays.array_engine import ArrayEngine, Backward
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.graph_slot import GraphSlot, Outputs
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.arrays.torch_arrays import TorchArrays, from_numpy, lowest
from tacit.engines.engine import CHUNK_ELEMENTS, GRADIENT_ELEMENTS, Columns, Slopes, Tables, rows_too_small, rows_within
from tacit.engines.results import Array, Gradients, Results

Tensors = Mapping[str, Tensor]  # by variable
Slope: TypeAlias = "float | Tensor | None"

CUDA_ELEMENTS, CUDA_CHUNK = 2**28, 2**17  # enough rows that a kernel outlasts its launch
SMALLEST_SLOT = 2**10  # rows of the smallest set of CUDA buffers; sizes double from here
MAX_RECORDED = 20_000  # operations up to which a recording is worth its memory


class Replacements(NamedTuple):
    """Tables and slopes in place of an engine's own, and whether derivatives pass through selections."""

    tables: Mapping[Key, Tensor]
    gammas: Mapping[str, Slope]
    through_selection: bool = True


UNCHANGED = Replacements({}, {})


class TorchEngine(ArrayEngine):
    """A program with its numbers on torch tensors.

    `device` is "cuda" where there is one, unless it is given. On CUDA, `run` replays recorded graphs, without
    `graphs` it launches every kernel anew.
    """

    def __init__(
        self,
        program: Program,
        parameters: Tables,
        gammas: Slopes,
        dtype: str = "float64",
        device: str | torch.device | None = None,
        graphs: bool = True,
    ) -> None:
        self.program, self.graphs = program, graphs
        self.gammas: Slopes = dict(gammas)
        self.dtype, self._numpy_dtype = getattr(torch, dtype), np.dtype(dtype)
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        # the evidence that reaches the query: a program may declare more
        self.soft = list(program.likelihoods)
        self.hard = sorted(program.observed)
        self._xp = TorchArrays(self.dtype, self.device)
        self._steps = Steps(program, self._xp, self._xp)
        self._parameters: Tables = dict(parameters)
        self._lost = self._too_small(parameters)
        self._tensors = {key: self._tensor(parameters[key]) for key in program.parameters}
        self._reached: dict[frozenset[Key | str], tuple[list[int], list[int]]] = {}
        self._slots: dict[int, GraphSlot] = {}
        self._lock = threading.Lock()  # the buffers of a slot serve one run at a time
        self._tables = Fixed()
        with torch.no_grad():
            self._tables = self._computed(UNCHANGED, self._fixed, self._readers(self._fixed))
        # the widest product that is written out before it is summed adds to what is alive
        largest = max((self._steps[i].scratch for i in self._batched), default=0)
        self.chunk = self._rows_at_a_time(CHUNK_ELEMENTS, program.cost.live + largest)
        # operands of a matrix product are kept twice: as values, and as matrices
        self.gradient_chunk = self._rows_at_a_time(GRADIENT_ELEMENTS, 2 * program.cost.elements + largest)

    @in_own_threads
    def update(self, parameters: Tables, gammas: Slopes) -> None:
        with torch.no_grad(), self._lock:
            tensors = {key: self._tensor(table) for key, table in parameters.items()}
            self._tables = self._with(Replacements(tensors, gammas))
            self.gammas, self._tensors = {**self.gammas, **gammas}, {**self._tensors, **tensors}
            self._parameters, self._fallback = {**self._parameters, **parameters}, None
            self._lost = (self._lost - frozenset(parameters)) | self._too_small(parameters)
            for slot in self._slots.values():
                slot.forget()  # a recording reads the numbers it was made with

    def _too_small(self, parameters: Tables) -> frozenset[Key]:
        """The tables with entries that are too small for floats of this type."""
        least = np.finfo(self._numpy_dtype).smallest_normal
        return frozenset(key for key, table in parameters.items() if ((table > 0) & (table < least)).any())

    def clone(self) -> TorchEngine:
        clone = copy(self)
        clone._slots, clone._lock = {}, threading.Lock()
        return clone

    def make_fallback(self) -> NumpyEngine:
        return NumpyEngine(self.program, self._parameters, self.gammas)

    def forward(
        self,
        likelihoods: Tensors,
        codes: Tensors,
        tables: Mapping[Key, Tensor] | None = None,
        gammas: Mapping[str, Slope] | None = None,
    ) -> Outputs:
        """The joint as a mantissa (states, rows) and an exponent (rows,): it is mantissa * 2**exponent.

        And which rows are imprecise, since numbers left the range of floats. `likelihoods` (states, rows) are left out
        where there is no evidence; `codes` (rows,) are the observed states of the variables in `hard`. `tables` and
        `gammas` replace some of the engine's own numbers. Gradients flow into likelihoods, tables and slopes, not into
        exponents: a posterior does not depend on its scale.
        """
        frame = self._frame(likelihoods, codes, Replacements(tables or {}, gammas or {}))
        frame.follow(self._batched, self._last_uses)
        rows = max((t.shape[-1] for t in (*likelihoods.values(), *codes.values())), default=1)
        return self._joint(frame, rows)

    def static(self, tables: Mapping[Key, Tensor], gammas: Mapping[str, Slope]) -> Mapping[int, Tensor]:
        """What depends on parameters alone, with some numbers replaced, by its place in the program."""
        stale = changed(self.program, frozenset([*tables, *gammas]))
        return {i: value.array for i, value in self._computed(Replacements(tables, gammas), stale, ()).values.items()}

    def _frame(self, likelihoods: Tensors, codes: Tensors, numbers: Replacements) -> ArrayEvaluation:
        missing = [name for name in self.hard if name not in codes]
        if missing:
            raise EvidenceError(f"there are no codes for {missing[0]!r}, which the query was compiled to have (hard=)")
        soft = {n: t.to(self.device, self.dtype) for n, t in likelihoods.items() if n in self.soft}
        hard = {n: codes[n].to(self.device) for n in self.hard}
        fixed = self._with(numbers) if numbers.tables or numbers.gammas else self._tables
        return self._evaluation(fixed, numbers, soft, hard)

    def _evaluation(self, fixed: Fixed, numbers: Replacements, likelihoods: Tensors, codes: Tensors) -> ArrayEvaluation:
        def table(node: str, part: str) -> Tensor:
            given = numbers.tables.get((node, part))
            return self._tensors[node, part] if given is None else given.to(self.device, self.dtype)

        gammas, through = {**self.gammas, **numbers.gammas}, numbers.through_selection
        sources = Sources(table, gammas, likelihoods.get, codes.__getitem__, self._table_floor, through)
        return ArrayEvaluation(self._steps, fixed, sources)

    def _with(self, numbers: Replacements) -> Fixed:
        """What depends on parameters alone, where some of these are others: only what they change is computed."""
        keys: frozenset[Key | str] = frozenset([*numbers.tables, *numbers.gammas])
        if keys not in self._reached:  # training changes the same ones again and again
            stale = changed(self.program, keys)
            self._reached = {keys: (stale, self._readers(stale))}
        return self._computed(numbers, *self._reached[keys])

    def _readers(self, tables: Sequence[int]) -> list[int]:
        """The batched operations that read some values without rows."""
        read = set(tables)
        return [i for i in self._batched if not read.isdisjoint(self.program.operations[i].inputs)]

    def _computed(self, numbers: Replacements, stale: Sequence[int], readers: Sequence[int]) -> Fixed:
        kept = self._tables.without({*stale, *readers})
        frame = self._evaluation(kept, numbers, {}, {})
        frame.follow(stale)
        for i in readers:
            if self._steps[i].table is not None:
                frame.ready(self._steps[i])
            for j in self.program.operations[i].inputs:
                if not self.program.batched[j]:
                    frame.floor(j)
        return Fixed(frame.values, kept.ready, kept.floors)

    def _table_floor(self, frame: ArrayEvaluation, i: int) -> Tensor:
        """A lower bound of the logarithms of a table's entries; of one that was computed, by the tables it is of."""
        table, operation = frame.values[i], self.program.operations[i]
        if isinstance(operation, Parameter) and (operation.node, operation.part) in self._lost:
            return torch.tensor(-math.inf, dtype=self.dtype, device=self.device)
        floor, own = lowest(table.array, tuple(range(table.array.dim()))), self._steps[i].floor(frame, table)
        for doubt in [frame.floor(j) for j in operation.inputs] if own is None else [own]:
            floor = torch.where(torch.isneginf(self._xp.settled(doubt)), -math.inf, floor)
        return floor

    @in_own_threads
    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        with torch.no_grad(), self._lock:
            if self.device.type == "cuda" and rows <= self.chunk and not selections:
                return self._run_in_slot(columns, rows)
            frame, results = self._run(columns, rows, drop=not selections)
            if not selections:
                return results
            decided = {node: self._decided(node, frame.values, rows) for node in self.program.selections}
            return replace(results, selections=decided)

    def _kept(self, columns: Columns, rows: int) -> tuple[ArrayEvaluation, Results]:
        with torch.no_grad(), self._lock:
            return self._run(columns, rows, drop=False)

    def _run(self, columns: Columns, rows: int, drop: bool) -> tuple[ArrayEvaluation, Results]:
        with noting_underflow() as noted:
            soft = {n: self._likelihood(n, columns) for n in self.soft if n in columns}
        frame = self._frame(soft, self._codes(columns), UNCHANGED)
        frame.follow(self._batched, self._last_uses if drop else None)
        return frame, self._results(self._joint(frame, rows), columns, rows, noted)

    def _run_in_slot(self, columns: Columns, rows: int) -> Results:
        """Fill buffers of a fixed size; the first run launches its kernels one by one, the second records them."""
        size = min(self.chunk, max(SMALLEST_SLOT, 1 << (rows - 1).bit_length()))
        if size not in self._slots:
            states = {name: self.program.sizes[name] for name in self.soft}
            self._slots[size] = GraphSlot(states, self.hard, size, self.dtype, self.device)
        slot = self._slots[size]
        with noting_underflow() as noted:
            slot.fill(columns, rows)
        if self.graphs and slot.runs == 1 and len(self.program) <= MAX_RECORDED:
            self.graphs = slot.record(self._compute)
        joint, exponent, imprecise = slot.replay() if self.graphs and slot.recorded else self._compute(slot)
        slot.runs += 1
        return self._results((joint[:, :rows], exponent[:rows], imprecise[:rows]), columns, rows, noted)

    def _compute(self, slot: GraphSlot) -> Outputs:
        frame = self._evaluation(self._tables, UNCHANGED, slot.likelihoods, slot.codes)
        frame.follow(self._batched, self._last_uses)
        return self._joint(frame, slot.size)

    def _joint(self, frame: ArrayEvaluation, rows: int) -> Outputs:
        array, exponent, *_ = frame.values[self.program.joint]
        array = array if self.program.batched[self.program.joint] else array.unsqueeze(-1)
        imprecise = torch.isneginf(self._xp.settled(frame.floor(self.program.joint))).expand(rows)
        if exponent is None:
            exponent = torch.zeros(1, dtype=torch.int64, device=self.device)
        joint = array.expand(*array.shape[:-1], rows).reshape(-1, rows)
        return joint, exponent.to(torch.int64).expand(rows), imprecise

    def _results(self, outputs: Outputs, columns: Columns, rows: int, noted: list[str]) -> Results:
        """What a run gives back; where NumPy noted an underflow, with the likelihoods that are too small."""
        joint, exponent, imprecise = (tensor.cpu().numpy() for tensor in outputs)
        if noted:
            read = {n: columns[n] for n in self.soft if n in columns}
            imprecise = imprecise | rows_too_small(read, rows, self._numpy_dtype)
        return Results(joint, exponent, imprecise if imprecise.any() else None)

    def _differentiable(self, columns: Columns, rows: int, through_selection: bool = True) -> tuple[Results, Backward]:
        with noting_underflow() as noted:
            soft = {n: self._leaf(self._likelihood(n, columns).expand(-1, rows)) for n in self.soft}
        tables = {key: self._leaf(table) for key, table in self._tensors.items()}
        slopes = {n: self._leaf(torch.tensor(g, dtype=torch.float64)) for n, g in self.gammas.items() if g is not None}
        with torch.enable_grad():
            frame = self._frame(soft, self._codes(columns), Replacements(tables, slopes, through_selection))
            frame.follow(self._batched, self._last_uses)
            joint, exponent, imprecise = self._joint(frame, rows)

        def backward(seeds: Array) -> Gradients:
            leaves = [*tables.values(), *slopes.values(), *soft.values()]
            by = iter(self._derivatives(joint, leaves, seeds))
            return Gradients(
                {key: next(by).double().cpu().numpy() for key in tables},
                {node: next(by).item() for node in slopes},
                {name: next(by).cpu().numpy() for name in soft},
            )

        return self._results((joint.detach(), exponent, imprecise), columns, rows, noted), backward

    def _leaf(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, self.dtype).detach().requires_grad_()

    def _derivatives(self, joint: Tensor, leaves: Sequence[Tensor], seeds: Array) -> Sequence[Tensor]:
        if not joint.requires_grad:  # a constant, of which torch refuses to make derivatives
            return [torch.zeros_like(leaf) for leaf in leaves]
        by_joint = self._tensor(seeds if seeds.shape == joint.shape else np.broadcast_to(seeds, tuple(joint.shape)))
        return torch.autograd.grad(joint, leaves, by_joint, allow_unused=True, materialize_grads=True)

    def _likelihood(self, name: str, columns: Columns) -> Tensor:
        if name not in columns:
            return torch.ones((self.program.sizes[name], 1), dtype=self.dtype, device=self.device)
        # NumPy notes what becomes too small, torch does not
        return self._tensor(columns[name].likelihoods().astype(self._numpy_dtype, copy=False))

    def _codes(self, columns: Columns) -> dict[str, Tensor]:
        return {n: from_numpy(columns[n].states()).to(self.device) for n in self.hard}

    def _tensor(self, array: Array) -> Tensor:
        return from_numpy(array).to(self.device, self.dtype)

    def _numpy(self, array: Tensor) -> Array:
        return np.asarray(array.cpu().numpy())

    def _rows_at_a_time(self, entries: int, alive: int) -> int:
        """How many rows, each with so many entries alive, to have at a time; `entries` is the limit of a CPU."""
        rows = rows_within(entries, alive)
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            rows = rows_within(min(CUDA_ELEMENTS, free // 4 // self.dtype.itemsize), alive, CUDA_CHUNK)
        return 1 << (rows.bit_length() - 1)
