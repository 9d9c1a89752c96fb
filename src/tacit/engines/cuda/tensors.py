"""Generated kernels on torch tensors of a GPU, where they are, on the current stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from tacit.engines.arrays.torch_engine import Slope
from tacit.engines.cuda import driver
from tacit.engines.cuda.cuda_engine import BackwardBuffers, CudaEngine, Loaded
from tacit.engines.cuda.device_kernels import REPLICAS, THREADS_PER_BLOCK
from tacit.engines.cuda.thread import LEAST_EXACT, Given, letter_of
from tacit.engines.cuda.transfer import Argument
from tacit.engines.native.lanes import Note
from tacit.evidence.column import Kind

TYPES = {"b": torch.int8, "h": torch.int16, "i": torch.int32}


class DeviceEvidence:
    """Evidence on the GPU: the arguments of kernels, and the tensors that hold it."""

    def __init__(self, rows: int) -> None:
        self.rows, self.arguments, self.held = rows, list[Argument](), list[Tensor]()

    def add(self, given: Given, tensor: Tensor, row: int, state: int) -> None:
        """The evidence on the next variable, with the elements from row to row and from state to state."""
        size = tensor.element_size()
        self.arguments.append(Argument(given, tensor.data_ptr(), row * size, state * size))
        self.held.append(tensor)


class DeviceQuery:
    """A query by generated kernels, with constants and evidence that are tensors."""

    def __init__(self, engine: CudaEngine) -> None:
        self.engine, self.tape = engine, engine._tape()
        self.device = torch.device("cuda", engine.device.number)
        self.dtype: torch.dtype = getattr(torch, engine.dtype.name)
        self._indices: dict[tuple[int, ...], Tensor] = {}  # one for each kernel of the backward pass: two at most

    @cached_property
    def _literals(self) -> Tensor:
        """The constants, with those filled in that do not depend on parameters."""
        return torch.from_numpy(self.tape.structural_constants(self.engine.dtype)).to(self.device)

    @cached_property
    def _places(self) -> Tensor:
        """Where the static values of the program, and then the slopes, go among the constants."""
        program, places = self.engine.program, [torch.empty(0, dtype=torch.int64)]
        for value, first in self.tape.constants:
            places.append(torch.arange(first, first + program.size(program.operations[value].axes)))
        places.append(torch.tensor([place for _, place in self.tape.slopes], dtype=torch.int64))
        return torch.cat(places).to(self.device)

    def constants(self, static: Mapping[int, Tensor], slopes: Mapping[str, Slope]) -> Tensor:
        """The constants of the kernels, differentiable."""
        parts = [static[value].reshape(-1) for value, _ in self.tape.constants]
        for node, _ in self.tape.slopes:
            slope = slopes.get(node, self.engine.gammas[node])
            parts.append(torch.as_tensor(slope, dtype=self.dtype, device=self.device).reshape(1))
        return self._literals.index_copy(0, self._places, torch.cat([self._literals[:0], *parts]))

    def evidence(self, likelihoods: Mapping[str, Tensor], codes: Mapping[str, Tensor], rows: int) -> DeviceEvidence:
        """Likelihoods (states, rows) that sum to 1, and the codes (rows,) of hard variables."""
        evidence, sizes = DeviceEvidence(rows), self.engine.program.sizes
        for name in self.tape.inputs:
            own = likelihoods.get(name)
            if own is None:
                own = torch.ones((sizes[name], 1), dtype=self.dtype, device=self.device)
            own = own.detach().to(self.device, self.dtype)
            row = own.stride(1) if own.shape[1] > 1 else 0
            evidence.add(Given(Kind.NORMALISED, sizes[name]), own, row, own.stride(0))
        for name in self.tape.codes:
            letter = letter_of(sizes[name])
            states = codes[name].to(self.device, TYPES[letter])
            evidence.add(Given(Kind.CODES, 0, letter), states, states.stride(0) if len(states) > 1 else 0, 0)
        return evidence

    def forward(self, constants: Tensor, evidence: DeviceEvidence) -> tuple[Tensor, Tensor]:
        """The mantissas of the joint (states, rows), and which rows are imprecise."""
        rows, tape = evidence.rows, self.tape
        outputs = torch.empty((tape.outputs, rows), dtype=self.dtype, device=self.device)
        notes = torch.empty(rows, dtype=torch.uint8, device=self.device)
        flag = torch.zeros(1, dtype=torch.int32, device=self.device)
        with self.engine.device.current():
            stream = self._stream()
            loaded = self.engine.forward([own.given for own in evidence.arguments])
            self._fill(loaded, constants, stream)
            self.engine.launch(
                loaded, evidence.arguments, rows, stream, outputs_all=outputs.data_ptr(), outputs_stride=rows,
                posterior=0, notes=notes.data_ptr(), flag=flag.data_ptr(),
            )  # fmt: skip
        small = ((constants > 0) & (constants < LEAST_EXACT[8 * self.engine.dtype.itemsize])).any()
        return outputs[: tape.states], ((notes & Note.IMPRECISE) != 0) | small

    def backward(
        self, constants: Tensor, evidence: DeviceEvidence, seeds: Tensor, inputs: bool
    ) -> tuple[Tensor, dict[str, Tensor] | None]:
        """Derivatives by constants, over all rows, and by likelihoods (states, rows), from `seeds` of the joint."""
        rows, tape, engine, sizes = evidence.rows, self.tape, self.engine, self.engine.program.sizes
        padded = -(-rows // THREADS_PER_BLOCK) * THREADS_PER_BLOCK  # every thread has its place
        count = sum(sizes[name] for name in tape.inputs) if inputs else 0
        d_inputs = torch.empty((count, padded), dtype=self.dtype, device=self.device)
        with engine.device.current():
            stream = self._stream()
            both = engine.backward([own.given for own in evidence.arguments], True, inputs)
            for loaded in both:
                self._fill(loaded, constants, stream)
            kernel = both.reverse.kernel
            shape = REPLICAS, len(kernel.sums) + tape.constant_count
            sums = torch.zeros(shape, dtype=torch.float64, device=self.device)
            step = engine.scratch_rows(both.reverse, rows)
            values = torch.empty(kernel.kept * step, dtype=self.dtype, device=self.device)
            tensors = {"seeds_all": seeds, "d_inputs_all": d_inputs, "sums_all": sums, "values_all": values}
            tensors["flag"] = torch.zeros(1, dtype=torch.int32, device=self.device)
            given = {name: tensor.data_ptr() for name, tensor in tensors.items()}
            buffers = BackwardBuffers(step, given | {"seeds_stride": rows, "d_inputs_stride": padded})
            engine.launch_backward(both, evidence.arguments, rows, stream, buffers)
        whole = sums.sum(dim=0)
        terms, by_table = whole[: len(kernel.sums)], whole[len(kernel.sums) :]
        by_constant = by_table.index_add(0, self._index(kernel.sums), terms)
        if not inputs:
            return by_constant, None
        own = d_inputs[:, :rows].split_with_sizes([sizes[name] for name in tape.inputs])
        return by_constant, dict(zip(tape.inputs, own, strict=True))

    def _index(self, sums: tuple[int, ...]) -> Tensor:
        if sums not in self._indices:
            self._indices[sums] = torch.tensor(sums, dtype=torch.int64, device=self.device)
        return self._indices[sums]

    def _stream(self) -> int:
        return int(torch.cuda.current_stream(self.device).cuda_stream)

    def _fill(self, loaded: Loaded, constants: Tensor, stream: int) -> None:
        loaded.module.before_change(stream)
        held = constants.detach().contiguous()
        driver.copy_within(loaded.constants, held.data_ptr(), held.numel() * held.element_size(), stream)
        loaded.holds = held
