"""Tables in partitions, as clusters hold them, and what one machine answers to the same rows."""

import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench.networks import network

import tacit
from tacit import TAC, Network


def compiled(net: Network, query: Any, **roles: Any) -> TAC:
    """A query on one engine: "auto" may take others in other processes, whose last digits differ."""
    return tacit.compile(net, query, engine="tape", **roles)


@dataclass(frozen=True)
class Case:
    """A query, a table in partitions, and the options of the call."""

    name: str
    tac: TAC
    frames: list[pd.DataFrame]
    options: dict[str, Any] = field(default_factory=dict)
    evidence: Callable[[pd.DataFrame], Any] | None = None  # of all rows, for one machine; else the frame itself

    @cached_property
    def whole(self) -> pd.DataFrame:
        """All rows, by their number."""
        return pd.concat(self.frames, ignore_index=True).sort_values("id", ignore_index=True)

    @property
    def names(self) -> list[str]:
        """The columns of the posterior, named as `tacit batch` does, or otherwise if that is wanted."""
        query = [self.tac.query] if isinstance(self.tac.query, str) else self.tac.query
        states = [[f"{name}.{state}" for state in self.tac.network.states(name)] for name in query]
        return [self.options.get("names", {}).get(name, name) for name in map(",".join, itertools.product(*states))]

    @cached_property
    def known(self) -> Any:
        """The evidence of all rows."""
        return self.evidence(self.whole) if self.evidence else self.whole[list(self.tac.evidence)]


def numbered(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """The same with a column `id` that numbers all rows."""
    starts = np.cumsum([0, *map(len, frames)])
    return [frame.assign(id=np.arange(start, start + len(frame))) for start, frame in zip(starts, frames, strict=False)]


def divided(columns: dict[str, Any], sizes: list[int]) -> list[pd.DataFrame]:
    """Columns as partitions of these sizes."""
    frame, ends = pd.DataFrame(columns), np.cumsum(sizes)
    return numbered(
        [frame.iloc[end - size : end].reset_index(drop=True) for size, end in zip(sizes, ends, strict=True)]
    )


def labels(net: Network, name: str, rows: int, seed: int, gaps: float = 0.0) -> np.ndarray:
    """Random labels, some of them missing."""
    rng = np.random.default_rng(seed)
    found = np.array(net.states(name), dtype=object)[rng.integers(len(net.states(name)), size=rows)]
    found[rng.random(rows) < gaps] = None
    return found


def alarm() -> Case:
    """Text, categories, gaps and soft evidence; partitions that are empty, short, or have nothing in a column."""
    net, sizes = network("alarm"), [40, 0, 1, 60, 30]
    text, kinds, soft = ("HISTORY", "CVP", "HRBP"), "BP", "PAP"
    rows = sum(sizes)
    columns = {name: labels(net, name, rows, seed, gaps=0.2) for seed, name in enumerate((*text, kinds))}
    likelihoods = np.random.default_rng(5).random((rows, 3))
    columns |= {f"{soft}.{state}": likelihoods[:, i] for i, state in enumerate(net.states(soft))}
    frames = divided({**columns, "other": np.arange(rows) / 2}, sizes)
    for i, frame in enumerate(frames):  # the same states in other orders, and only those that occur
        present = [state for state in np.roll(net.states(kinds), i) if state in set(frame[kinds])]
        frame[kinds] = pd.Categorical(frame[kinds], categories=present)
    frames[3]["HISTORY"] = np.nan
    frames[4]["CVP"] = None

    def evidence(whole: pd.DataFrame) -> dict[str, Any]:
        found = {name: whole[name].astype(object).where(whole[name].notna(), None).tolist() for name in (*text, kinds)}
        return {**found, soft: whole[[f"{soft}.{state}" for state in net.states(soft)]].to_numpy()}

    tac = compiled(net, "LVFAILURE", evidence=[*text, kinds, soft])
    return Case("alarm", tac, frames, {"keep": ["other"]}, evidence)


def testing() -> Case:
    """A testing network, with a column of likelihoods that has gaps."""
    net = tacit.examples.abc()
    chances = np.random.default_rng(0).random(50)
    chances[::7] = np.nan
    frames = divided({"A": chances, "C": labels(net, "C", 50, 1, gaps=0.3)}, [20, 1, 0, 29])
    return Case("testing", compiled(net, "B", evidence=["A", "C"]), frames)


def joint() -> Case:
    """Several variables together, in columns with other names."""
    net = network("alarm")
    frames = divided({"HRBP": labels(net, "HRBP", 30, 0), "CVP": labels(net, "CVP", 30, 1)}, [10, 20])
    tac = compiled(net, ["LVFAILURE", "HYPOVOLEMIA"], evidence=["HRBP", "CVP"])
    return Case("joint", tac, frames, {"names": {"LVFAILURE.TRUE,HYPOVOLEMIA.TRUE": "both"}})


def certain() -> Case:
    """States that each row observes, states that it sets, and states that are known of all rows."""
    net = network("alarm")
    columns = {name: labels(net, name, 30, i) for i, name in enumerate(("HRBP", "CVP", "HYPOVOLEMIA"))}
    tac = compiled(net, "LVFAILURE", evidence=["CVP"], hard=["HRBP"], do=["HYPOVOLEMIA"], given={"HISTORY": "FALSE"})
    return Case("certain", tac, divided(columns, [10, 20]))


def impossible() -> Case:
    """Rows that cannot be, nothing else in one partition; labels are numbers, as floats where there are gaps."""
    net = Network("copies")
    net.add("X", states=[0, 1, 2], cpt=[0.2, 0.3, 0.5])
    net.add("Y", parents=["X"], states=[0, 1, 2], cpt=np.eye(3))
    net.add("Z", parents=["X"], states=["lo", "hi"], cpt=[[0.1, 0.9], [0.4, 0.6], [0.7, 0.3]])
    frames = numbered([
        pd.DataFrame({"X": [0, 1, 2], "Y": [0, 2, 2]}),
        pd.DataFrame({"X": [0.0, np.nan, 1.0], "Y": [0, 1, 1]}),
        pd.DataFrame({"X": [0, 1], "Y": [1, 2]}),
    ])  # fmt: skip
    return Case("impossible", compiled(net, "Z", evidence=["X", "Y"]), frames)


def likelihoods() -> Case:
    """Likelihoods of which one partition has only 0s and 1s, and another one has them as whole numbers."""
    net = tacit.examples.abc()
    frames = numbered([
        pd.DataFrame({"C": [0.25, 0.5, np.nan, 1.0]}),
        pd.DataFrame({"C": [0.0, 1.0]}),
        pd.DataFrame({"C": [1, 0, 1]}),
        pd.DataFrame({"C": [np.nan]}),
    ])  # fmt: skip
    tac = compiled(net, "B", evidence=["C"])
    return Case("likelihoods", tac, frames, {"likelihoods": ["C"]}, lambda whole: {"C": whole["C"].to_numpy()})


CASES = [alarm, testing, joint, certain, impossible, likelihoods]


class DeadlyTAC(TAC):
    """A query that ends its process, as `kill -9` does, when it first sees a partition of so many rows."""

    marker: Path
    rows = 13

    def read(self, evidence: Any) -> Any:
        known = super().read(evidence)
        if known.rows == self.rows and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return known


def deadly(tac: TAC, marker: Path) -> DeadlyTAC:
    """A copy of a query that is deadly."""
    found = DeadlyTAC.__new__(DeadlyTAC)
    vars(found).update(vars(tac), marker=marker)
    return found
