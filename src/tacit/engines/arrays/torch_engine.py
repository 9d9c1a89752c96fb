"""The learning and GPU engine: the same program on torch tensors, on CPU or CUDA, differentiable.

Values are laid out as in the NumPy engine: (axes..., rows) where they depend on evidence, (axes...) where they only
depend on parameters. Permuted results stay views, since every operation reads strides. How each operation moves its
axes is settled when the engine is made; a run only follows these steps.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats, noting_underflow
from tacit.base.machine import in_own_threads
from tacit.compiler.operations import Likelihood, Parameter, Select
from tacit.compiler.operations.axes import Key
from tacit.compiler.program import Program
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.arrays.torch_arrays import TorchArrays, from_numpy, lowest
from tacit.engines.arrays.traceback import descend
from tacit.engines.engine import Columns, Engine, Slopes, Tables, rows_too_small
from tacit.engines.results import Array, Decided, Descent, Gradients, Results, Reverse

T = TypeVar("T")
Slope: TypeAlias = "float | Tensor | None"
Leaves: TypeAlias = tuple[dict[Key, Tensor], dict[str, Tensor], dict[str, Tensor]]  # tables, slopes, likelihoods

CPU_ELEMENTS, CPU_CHUNK = 2**19, 2**14  # entries alive at one time stay near the caches
CPU_GRADIENT_ELEMENTS = 2**22  # entries kept for the reverse: 32 megabytes, beyond which more rows gain nothing
CUDA_ELEMENTS, CUDA_CHUNK = 2**28, 2**17  # enough rows that a kernel outlasts its launch
SMALLEST_SLOT = 2**10  # rows of the smallest set of CUDA buffers; sizes double from here
GRAPHED = 20_000  # operations up to which a recording is worth its memory


class TorchEngine(Engine):
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
        self.soft = [op.variable for op in program if isinstance(op, Likelihood)]
        self.hard = sorted(program.observed)
        self._xp = TorchArrays(self.dtype, self.device)
        self._steps = Steps(program, self._xp, self._xp)
        self._parameters: Tables = dict(parameters)
        self._lost = self._too_small(parameters)
        self._own = {key: self._tensor(parameters[key]) for key in program.parameters}
        self._reached: dict[frozenset[Key | str], tuple[list[int], list[int]]] = {}
        self._slots: dict[int, Slot] = {}
        self._lock = threading.Lock()  # the buffers of a slot serve one run at a time
        self._tables = Fixed()
        with torch.no_grad():
            self._tables = self._computed({}, {}, *self._stale(None))
        # the widest product that is written out before it is summed adds to what is alive
        largest = max((self._steps.step(i).scratch for i, _ in self._schedule), default=0)
        self.chunk = self._rows_at_a_time(CPU_ELEMENTS, program.cost.live + largest)
        # operands of a matrix product are kept twice: as values, and as matrices
        self.gradient_chunk = self._rows_at_a_time(CPU_GRADIENT_ELEMENTS, 2 * program.cost.elements + largest)

    threads: int | None = None  # those of torch on the CPU, where they are limited

    @in_own_threads
    def update(self, parameters: Tables, gammas: Slopes) -> None:
        with torch.no_grad(), self._lock:
            given = {key: self._tensor(table) for key, table in parameters.items()}
            self._tables = self._with(given, gammas)
            self.gammas, self._own = {**self.gammas, **gammas}, {**self._own, **given}
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

    def forward(
        self,
        likelihoods: Mapping[str, Tensor],
        codes: Mapping[str, Tensor],
        tables: Mapping[Key, Tensor] | None = None,
        gammas: Mapping[str, Slope] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The joint as a mantissa (states, rows) and an exponent (rows,): it is mantissa * 2**exponent.

        And which rows are imprecise, since numbers left the range of floats. `likelihoods` (states, rows) are left out
        where there is no evidence; `codes` (rows,) are the observed states of the variables in `hard`. `tables` and
        `gammas` replace some of the engine's own numbers. Gradients flow into likelihoods, tables and slopes, not into
        exponents: a posterior does not depend on its scale.
        """
        frame = self._frame(likelihoods, codes, tables or {}, gammas or {})
        self._follow(frame)
        rows = max((t.shape[-1] for t in (*likelihoods.values(), *codes.values())), default=1)
        return self._joint(frame, rows)

    def static(self, tables: Mapping[Key, Tensor], gammas: Mapping[str, Slope]) -> Mapping[int, Tensor]:
        """What depends on parameters alone, with some numbers replaced, by its place in the program."""
        given = {key: t.to(self.device, self.dtype) for key, t in tables.items()}
        stale = changed(self.program, frozenset([*tables, *gammas]))
        return {i: value.array for i, value in self._computed(given, gammas, stale, ()).values.items()}

    def _frame(
        self,
        likelihoods: Mapping[str, Tensor],
        codes: Mapping[str, Tensor],
        tables: Mapping[Key, Tensor],
        gammas: Mapping[str, Slope],
        through_selection: bool = True,
    ) -> ArrayEvaluation:
        missing = [name for name in self.hard if name not in codes]
        if missing:
            raise EvidenceError(f"there are no codes for {missing[0]!r}, which the query was compiled to have (hard=)")
        soft = {n: t.to(self.device, self.dtype) for n, t in likelihoods.items() if n in self.soft}
        hard = {n: codes[n].to(self.device) for n in self.hard}
        given = {key: t.to(self.device, self.dtype) for key, t in tables.items()}
        fixed = self._with(given, gammas, through_selection) if given or gammas else self._tables
        return self._evaluation(fixed, {**self.gammas, **gammas}, soft, hard, through_selection)

    def _evaluation(
        self,
        tables: Fixed,
        gammas: Mapping[str, Slope],
        likelihoods: Mapping[str, Tensor],
        codes: Mapping[str, Tensor],
        through_selection: bool = True,
    ) -> ArrayEvaluation:
        return ArrayEvaluation(
            self._steps,
            tables,
            Sources(lambda node, part: self._own[node, part], gammas, likelihoods.get, codes.__getitem__),
            self._table_floor,
            through_selection,
        )

    @in_own_threads
    def value_and_gradients(
        self, columns: Columns, rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """One forward pass for both; see `Engine.value_and_gradients`. Give at most `gradient_chunk` rows."""
        with noting_underflow() as noted:
            leaves, joint, exponent, imprecise = self._differentiable(columns, rows)
        if imprecise.any() or noted:
            return super().value_and_gradients(columns, rows, seed_of)
        value, seeds = seed_of(joint.detach().cpu().numpy())
        derivatives = self._derivatives(leaves, joint, seeds)
        if derivatives.finite:
            return value, derivatives
        return value, self.gradients(columns, rows, seeds, exponent.cpu().numpy())

    @in_own_threads
    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        with noting_underflow() as noted:
            leaves, joint, exponent, imprecise = self._differentiable(columns, rows, through_selection)
        derivatives = self._derivatives(leaves, joint, np.broadcast_to(seeds, tuple(joint.shape)))
        return Reverse(derivatives, exponent.cpu().numpy(), bool(noted) or bool(imprecise.any()))

    @in_own_threads
    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        """States from plain floats: the forward pass runs on tensors, the traceback, far less work, on arrays."""
        with torch.no_grad(), self._lock:
            with noting_underflow() as noted:
                soft = {n: self._likelihood(n, columns) for n in self.soft if n in columns}
            frame = self._frame(soft, self._codes(columns), {}, {})
            self._follow(frame, drop=False)
            joint, exponent, imprecise = (tensor.cpu().numpy() for tensor in self._joint(frame, rows))
        if noted:
            imprecise = imprecise | self._rows_too_small(columns, rows)
        observed = {name: columns[name].states() for name in self.program.observed}
        states = descend(self.program, lambda i: frame.values[i].array.cpu().numpy(), observed, rows, draws)
        return Descent(states, Results(joint, exponent, imprecise if imprecise.any() else None))

    def make_fallback(self) -> NumpyEngine:
        return NumpyEngine(self.program, self._parameters, self.gammas)

    def _differentiable(
        self, columns: Columns, rows: int, through_selection: bool = True
    ) -> tuple[Leaves, Tensor, Tensor, Tensor]:
        """The joint as a function of all tables, slopes and likelihoods: mantissas, exponents, imprecise rows."""
        soft = {n: self._leaf(self._likelihood(n, columns).expand(-1, rows)) for n in self.soft}
        tables = {key: self._leaf(table) for key, table in self._own.items()}
        slopes = {n: self._leaf(torch.tensor(g, dtype=torch.float64)) for n, g in self.gammas.items() if g is not None}
        with torch.enable_grad():
            frame = self._frame(soft, self._codes(columns), tables, slopes, through_selection)
            self._follow(frame)
            joint, exponent, imprecise = self._joint(frame, rows)
        return (tables, slopes, soft), joint, exponent, imprecise

    def _derivatives(self, leaves: Leaves, joint: Tensor, seeds: Array) -> Gradients:
        tables, slopes, soft = leaves
        every = [*tables.values(), *slopes.values(), *soft.values()]
        if not joint.requires_grad:  # a constant, of which torch refuses to make derivatives
            nothing = {key: np.zeros(tuple(table.shape)) for key, table in tables.items()}
            return Gradients(
                nothing, dict.fromkeys(slopes, 0.0), {n: np.zeros(tuple(t.shape)) for n, t in soft.items()}
            )
        by = iter(torch.autograd.grad(joint, every, self._tensor(seeds), allow_unused=True, materialize_grads=True))
        return Gradients(
            {key: next(by).double().cpu().numpy() for key in tables},
            {node: next(by).item() for node in slopes},
            {name: next(by).cpu().numpy() for name in soft},
        )

    def _leaf(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, self.dtype).detach().requires_grad_()

    def _joint(self, frame: ArrayEvaluation, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        value = frame.values[self.program.joint]
        joint = self._with_rows(self.program.joint, value.array, rows).reshape(-1, rows)
        imprecise = torch.isneginf(self._xp.settled(frame.floor(self.program.joint))).expand(rows)
        exponent = value.exponent
        if exponent is None:
            exponent = torch.zeros(1, dtype=torch.int64, device=self.device)
        return joint, exponent.to(torch.int64).expand(rows), imprecise

    def _with_rows(self, i: int, value: Tensor, rows: int) -> Tensor:
        value = value if self.program.batched[i] else value.unsqueeze(-1)
        return value.expand(*value.shape[:-1], rows)

    def _with(self, tables: Mapping[Key, Tensor], gammas: Mapping[str, Slope], through_selection: bool = True) -> Fixed:
        """What depends on parameters alone, where some of these are others: only what they change is computed."""
        keys: frozenset[Key | str] = frozenset([*tables, *gammas])
        if keys not in self._reached:
            self._reached = {keys: self._stale(keys)}  # training changes the same ones again and again
        return self._computed(tables, gammas, *self._reached[keys], through_selection=through_selection)

    def _stale(self, keys: frozenset[Key | str] | None) -> tuple[list[int], list[int]]:
        """The values without rows that depend on some tables and slopes, or all, and the operations that read them."""
        every = [i for i, batched in enumerate(self.program.batched) if not batched]
        stale = every if keys is None else changed(self.program, keys)
        gone = set(stale)
        return stale, [i for i, _ in self._schedule if not gone.isdisjoint(self.program.operations[i].inputs)]

    def _computed(
        self,
        tables: Mapping[Key, Tensor],
        gammas: Mapping[str, Slope],
        stale: Sequence[int],
        readers: Sequence[int],
        through_selection: bool = True,
    ) -> Fixed:
        own, kept = {**self._own, **tables}, self._tables.without(stale, readers)
        frame = self._evaluation(kept, {**self.gammas, **gammas}, {}, {}, through_selection)
        frame.table = lambda node, part: own[node, part]
        frame.follow(stale)
        kept.values = frame.values
        for i in readers:
            if self._steps.step(i).table is not None:
                frame.ready(self._steps.step(i))
            for j in self.program.operations[i].inputs:
                if not self.program.batched[j]:
                    frame.floor(j)
        return kept

    def _table_floor(self, frame: ArrayEvaluation, i: int) -> Tensor:
        """A lower bound of the logarithms of a table's entries; of one that was computed, by the tables it is of."""
        made, operation = frame.values[i], self.program.operations[i]
        if isinstance(operation, Parameter) and (operation.node, operation.part) in self._lost:
            return torch.tensor(-math.inf, dtype=self.dtype, device=self.device)
        floor, own = lowest(made.array, tuple(range(made.array.dim()))), self._steps.step(i).floor(frame, made)
        for doubt in [frame.floor(j) for j in operation.inputs] if own is None else [own]:
            floor = torch.where(torch.isneginf(self._xp.settled(doubt)), -math.inf, floor)
        return floor

    @in_own_threads
    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        with torch.no_grad(), self._lock:
            if self.device.type == "cuda" and rows <= self.chunk and not selections:
                return self._run_in_slot(columns, rows)
            with noting_underflow() as noted:
                soft = {n: self._likelihood(n, columns) for n in self.soft if n in columns}
            frame = self._frame(soft, self._codes(columns), {}, {})
            self._follow(frame, drop=not selections)
            joint, exponent, imprecise = (tensor.cpu().numpy() for tensor in self._joint(frame, rows))
            if noted:
                imprecise = imprecise | self._rows_too_small(columns, rows)
            decided = self._decided(frame, rows) if selections else {}
            return Results(joint, exponent, imprecise if imprecise.any() else None, decided)

    def _decided(self, frame: ArrayEvaluation, rows: int) -> dict[str, Decided]:
        """How testing nodes were decided."""
        decided = {}
        for node, tables in self.program.selects.items():
            marginal = self.program.operations[tables[0]].inputs[0]
            weights = [self._steps.step(i).weight(frame.values[i]).to(self.dtype) for i in tables]  # type: ignore[attr-defined]
            both = [(marginal, frame.values[marginal].array), *zip(tables, weights, strict=True)]
            share, *weighed = (self._with_rows(j, t, rows).cpu().numpy() for j, t in both)
            decided[node] = Decided.of(share, weighed)
        return decided

    def _rows_too_small(self, columns: Columns, rows: int) -> NDArray[np.bool_]:
        return rows_too_small({n: columns[n] for n in self.soft if n in columns}, rows, self._numpy_dtype)

    def _run_in_slot(self, columns: Columns, rows: int) -> Results:
        """Fill buffers of a fixed size; the first run launches its kernels one by one, the second records them."""
        size = min(self.chunk, max(SMALLEST_SLOT, 1 << (rows - 1).bit_length()))
        if size not in self._slots:
            self._slots[size] = Slot(self, size)
        slot = self._slots[size]
        with noting_underflow() as noted:
            slot.fill(columns, rows)
        if self.graphs and slot.runs == 1 and len(self.program) <= GRAPHED:
            self.graphs = slot.record(self._compute)
        results = slot.replay() if self.graphs and slot.recorded else self._compute(slot)
        slot.runs += 1
        joint, exponent, imprecise = (tensor[..., :rows].cpu().numpy() for tensor in results)
        if noted:
            imprecise = imprecise | self._rows_too_small(columns, rows)
        return Results(joint, exponent, imprecise if imprecise.any() else None)

    def _compute(self, slot: Slot) -> tuple[Tensor, Tensor, Tensor]:
        frame = self._evaluation(self._tables, self.gammas, slot.likelihoods, slot.codes)
        self._follow(frame)
        return self._joint(frame, slot.size)

    def _follow(self, frame: ArrayEvaluation, drop: bool = True) -> None:
        values, step = frame.values, self._steps.step
        for i, ends in self._schedule:
            values[i] = step(i).forward(frame)
            for j in ends if drop else ():
                del values[j]

    @cached_property
    def _schedule(self) -> list[tuple[int, list[int]]]:
        """The batched operations that the joint and the selections need, with the values each one ends."""
        needed = {self.program.joint, *(i for i, op in enumerate(self.program) if isinstance(op, Select))}
        last: dict[int, int] = {}
        for i in range(len(self.program) - 1, -1, -1):
            for j in self.program.operations[i].inputs if i in needed else ():
                needed.add(j)
                last.setdefault(j, i)
        ends: dict[int, list[int]] = {}
        for j, i in last.items():
            if self.program.batched[j]:
                ends.setdefault(i, []).append(j)
        return [(i, ends.get(i, [])) for i in sorted(needed) if self.program.batched[i]]

    def _likelihood(self, name: str, columns: Columns) -> Tensor:
        if name not in columns:
            return torch.ones((self.program.sizes[name], 1), dtype=self.dtype, device=self.device)
        # NumPy notes what becomes too small, torch does not
        return self._tensor(columns[name].likelihoods().astype(self._numpy_dtype, copy=False))

    def _codes(self, columns: Columns) -> dict[str, Tensor]:
        return {n: from_numpy(columns[n].states()).to(self.device) for n in self.hard}

    def _tensor(self, array: Array) -> Tensor:
        return from_numpy(array).to(self.device, self.dtype)

    def _rows_at_a_time(self, entries: int, alive: int) -> int:
        """How many rows, each with so many entries alive, to have at a time; `entries` is the limit of a CPU."""
        most = CPU_CHUNK
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            entries, most = min(CUDA_ELEMENTS, free // 4 // self.dtype.itemsize), CUDA_CHUNK
        rows = max(1, min(most, entries // max(1, alive)))
        return 1 << (rows.bit_length() - 1)


class Slot:
    """Buffers on the GPU for some number of rows, and the recorded graph that reads and writes them."""

    def __init__(self, engine: TorchEngine, size: int) -> None:
        self.size, self.device, self.runs = size, engine.device, 0
        stops = list(accumulate(engine.program.sizes[name] for name in engine.soft))
        places = [slice(start, stop) for start, stop in pairwise((0, *stops))]
        # rows that are not filled in must still be legal evidence
        self._host = torch.ones((stops[-1] if stops else 0, size), dtype=engine.dtype, pin_memory=True)
        self._host_codes = torch.zeros((len(engine.hard), size), dtype=torch.int64, pin_memory=True)
        self._soft = self._host.to(self.device)
        self._hard = self._host_codes.to(self.device)
        self._host_of = {name: self._host[place] for name, place in zip(engine.soft, places, strict=True)}
        self.likelihoods = {name: self._soft[place] for name, place in zip(engine.soft, places, strict=True)}
        self.codes = dict(zip(engine.hard, self._hard, strict=True))
        self._graph: torch.cuda.CUDAGraph | None = None
        self._results: tuple[Tensor, Tensor, Tensor] | None = None

    def fill(self, columns: Columns, rows: int) -> None:
        """Bring some rows of evidence to the GPU, in one copy."""
        for name, place in self._host_of.items():
            place.numpy()[:, :rows] = columns[name].likelihoods() if name in columns else 1.0
        for place, name in zip(self._host_codes.numpy(), self.codes, strict=True):
            place[:rows] = columns[name].states()
        self._soft.copy_(self._host, non_blocking=True)
        self._hard.copy_(self._host_codes, non_blocking=True)

    @property
    def recorded(self) -> bool:
        return self._graph is not None

    def record(self, compute: Callable[[Slot], tuple[Tensor, Tensor, Tensor]]) -> bool:
        """Record the kernels of a run; False where the driver or some operation does not allow it."""
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.device(self.device), torch.cuda.graph(graph):
                self._results = compute(self)
            self._graph = graph
        except RuntimeError:
            self._results = None
        return self._graph is not None

    def forget(self) -> None:
        """Start anew: the next run launches its kernels one by one."""
        self._graph, self._results, self.runs = None, None, 0

    def replay(self) -> tuple[Tensor, Tensor, Tensor]:
        """Run the recorded kernels on what the buffers hold now."""
        assert self._graph is not None
        assert self._results is not None
        self._graph.replay()
        return self._results
