"""A run of `discover`, step by step: the graph, by rounds where rows have gaps; then samples of the rows.

The state after each step can be stored, so that a run that was interrupted resumes to the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.base.archive import Arrays, require
from tacit.base.floats import Floats
from tacit.learn.checkpoint import fingerprint, is_number, is_whole, list_of, read, write
from tacit.learn.discovering.coded_table import CodedTable
from tacit.learn.discovering.constraints import Mask
from tacit.learn.discovering.equivalence import directed_edges
from tacit.learn.discovering.searching import FoundGraph, Searcher
from tacit.learn.discovering.structural_em import EMRound, StructuralEM

FORMAT = "tacit-discover-1"


class DiscoveryRun:
    """The state of a run: `found` is None before the graph is there, and `partial` is what an interrupt left of it."""

    def __init__(self, searcher: Searcher, table: CodedTable) -> None:
        self.searcher, self.table = searcher, table
        self.found: FoundGraph | None = None
        self.partial: FoundGraph | None = None
        self.round: EMRound | None = None
        self.samples = 0
        self.sides: Floats = np.zeros(searcher.start.shape)  # of samples: 1 for an arrow, 1/2 for each way of an edge

    @property
    def best(self) -> FoundGraph | None:
        """The graph, or the best one so far."""
        if self.found is not None or self.round is None or not self.round.history:
            return self.found or self.partial
        return FoundGraph(self.round.best, self.round.score, self.round.history)

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.found is not None and self.samples >= self.searcher.options.bootstrap

    def finish(self, after: Callable[[], None]) -> None:
        """Go on to the end; `after` is called after each step."""
        if self.found is None:
            self.found = self._searched() if self.table.complete else self._by_rounds(after)
            after()
        options, say = self.searcher.options, self.searcher.line.say
        while self.samples < options.bootstrap:
            say(f"bootstrap sample {self.samples + 1} of {options.bootstrap}")
            self.sides = self.sides + self._sides(self._sampled(self.samples))
            self.samples += 1
            after()

    def _searched(self) -> FoundGraph:
        found = self.searcher.run(self.table)
        if found.interrupted:
            self.partial = found
            raise KeyboardInterrupt
        return found

    def _by_rounds(self, after: Callable[[], None]) -> FoundGraph:
        em = StructuralEM(self.searcher, self.table, [self.searcher.options.seed, 0])
        now = self.round or em.first()
        while not now.ended:
            now = self.round = em.next(now)
            self.searcher.line.say(f"round {len(now.history)}  score {now.score:.8g}")
            after()
        return FoundGraph(now.best, now.score, now.history)

    def _sampled(self, number: int) -> Mask:
        """The graph of a bootstrap sample."""
        seed = [self.searcher.options.seed, 1 + number]
        table = self.table.drawn(np.random.default_rng(seed))
        if table.complete:
            found = self.searcher.run(table)
            if found.interrupted:
                raise KeyboardInterrupt
            return found.edges
        em = StructuralEM(self.searcher, table, seed)
        now = em.first()
        while not now.ended:
            now = em.next(now)
        return now.best

    def _sides(self, edges: Mask) -> Floats:
        """How the equivalence class of a graph has each edge."""
        fixed = directed_edges(edges, ~self.searcher.limits.allowed.T)
        loose = edges & ~fixed
        return fixed + (loose | loose.T) / 2

    def key(self) -> str:
        """A digest of all that the result depends on."""
        searcher, table = self.searcher, self.table
        options = searcher.options  # more samples may be asked for later
        variables = [[name, table.network.states(name), table.network.bins(name)] for name in table.names]
        settings = [searcher.search, searcher.score, options.max_parents, options.max_cost, options.seed, variables]
        masks = [searcher.limits.allowed, searcher.limits.required, searcher.start]
        return fingerprint(settings, [*masks, table.cards, table.codes, table.weights])

    def write(self, path: Path, key: str) -> None:
        """Store the state."""
        arrays: dict[str, Any] = {"sides": self.sides}
        head: dict[str, Any] = {"samples": self.samples}
        if self.found is not None:
            arrays["edges"] = self.found.edges
            head |= {"score": self.found.score, "history": self.found.history}
        if self.round is not None:
            arrays |= {"round": self.round.edges, "best": self.round.best}
            arrays |= {f"table{i}": table for i, table in enumerate(self.round.tables)}
            arrays |= {f"best{i}": table for i, table in enumerate(self.round.best_tables)}
            head |= {"rounds": self.round.history, "ended": self.round.ended}
        write(path, FORMAT, key, head, arrays)

    def read(self, path: Path, key: str) -> None:
        """Go on from the state that was stored, if there is one."""
        if (state := read(path, FORMAT, key, self._parsed)) is not None:
            self.found, self.round, self.samples, self.sides = state

    def _parsed(self, head: dict[str, Any], arrays: Arrays) -> tuple[FoundGraph | None, EMRound | None, int, Floats]:
        samples, sides = head["samples"], arrays["sides"]
        require(is_whole(samples), "number of samples")
        require(sides.shape == self.sides.shape and sides.dtype == np.float64, "samples")
        found = em_round = None
        if "edges" in arrays:
            found = FoundGraph(self._mask(arrays["edges"]), head["score"], _numbers(head["history"]))
        if "round" in arrays:
            sizes = range(len(self.table.names))
            tables, best = ([arrays[f"{part}{i}"] for i in sizes] for part in ("table", "best"))
            edges, best_edges = self._mask(arrays["round"]), self._mask(arrays["best"])
            em_round = EMRound(edges, tables, best_edges, best, _numbers(head["rounds"]), bool(head["ended"]))
        return found, em_round, samples, sides

    def _mask(self, array: Any) -> Mask:
        require(array.shape == self.sides.shape and array.dtype == np.bool_, "graph")
        return array  # type: ignore[no-any-return]


def _numbers(values: Any) -> list[float]:
    require(all(is_number(value) for value in list_of(values)), "history")
    return list_of(values)
