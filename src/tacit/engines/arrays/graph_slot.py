"""Runs on a GPU that are recorded as a CUDA graph, and replayed with one launch in place of hundreds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from tacit.engines.engine import Columns

Outputs = tuple[Tensor, Tensor, Tensor]  # mantissas, exponents, imprecise rows


class GraphSlot:
    """Buffers on the GPU for some number of rows, and the recorded graph that reads and writes them.

    `soft` are the variables with likelihoods, and how many states they have, `hard` those with codes.
    """

    def __init__(
        self, soft: Mapping[str, int], hard: Sequence[str], size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.size, self.device, self.runs = size, device, 0
        cards = list(soft.values())
        # rows that are not filled in must still be legal evidence
        self._host = torch.ones((sum(cards), size), dtype=dtype, pin_memory=True)
        self._host_codes = torch.zeros((len(hard), size), dtype=torch.int64, pin_memory=True)
        self._soft, self._hard = self._host.to(device), self._host_codes.to(device)
        self._host_of, self.likelihoods = (
            dict(zip(soft, table.split_with_sizes(cards), strict=True)) for table in (self._host, self._soft)
        )
        self.codes = dict(zip(hard, self._hard, strict=True))
        self._graph: torch.cuda.CUDAGraph | None = None
        self._results: Outputs | None = None

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

    def record(self, compute: Callable[[GraphSlot], Outputs]) -> bool:
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

    def replay(self) -> Outputs:
        assert self._graph is not None
        assert self._results is not None
        self._graph.replay()
        return self._results
