"""One row at a time: `python -m bench one_row`.

Every row is another one, as a service meets them. Ours and pyAgrum's loop take turns in one process; both are warm, and
answers are compared. Figures are microseconds a row, ratios the medians of all turns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyagrum

import tacit
from bench.networks import leaves, network, widest_root
from bench.tables import MISSED, OK, Section, at_most, run_parts

PAGE = Path(__file__).parent.parent / "docs" / "bench-one-row.md"
INTRO = """How long one row takes, asked for alone; `python -m bench one_row` writes this page. Every row is another,
drawn from the network, with a label for each leaf; all sides are warm and take turns in one process, on two cores.
Figures are microseconds a row, the best of all turns; ratios are medians of turns."""
NETWORKS = ("child", "alarm", "win95pts", "hailfinder")
ROWS, TURNS = 64, 15
WARM = 3000  # calls after which there is code for any of these queries
FASTER, READ, OF_A_FRAME, OF_A_NETWORK, PREDICTED = 5.0, 15.0, 5.0, 1.2, 1000.0
Ask = Callable[[], Any]
Row = Mapping[str, Any]


def rows_of(name: str) -> tuple[tacit.Network, str, list[dict[str, Any]]]:
    """A network, the root that is asked for, and rows of labels for all leaves."""
    net = network(name)
    drawn = net.sample(ROWS, seed=3)
    return net, widest_root(net), [{leaf: drawn[leaf][i] for leaf in leaves(net)} for i in range(ROWS)]


class Peer:
    """pyAgrum, with one engine, the query as its only target, and evidence changed in place."""

    def __init__(self, net: tacit.Network, query: str, rows: Sequence[Row]) -> None:
        self.query, self.rows = query, rows
        self.engine = pyagrum.LazyPropagation(tacit.to_pyagrum(net))
        self.engine.addTarget(query)
        self.engine.setEvidence(dict(rows[0]))

    def answers(self) -> Iterator[np.ndarray]:
        """The posterior of every row."""
        for row in self.rows:
            for name, label in row.items():
                self.engine.chgEvidence(name, label)
            self.engine.makeInference()
            yield self.engine.posterior(self.query).toarray()

    def ask(self) -> None:
        """All rows."""
        for _ in self.answers():
            pass


def in_turns(*sides: Ask) -> list[list[float]]:
    """The microseconds a row that each side takes, turn by turn."""
    spent: list[list[float]] = [[] for _ in sides]
    for _ in range(TURNS):
        for side, own in zip(sides, spent, strict=True):
            start = time.perf_counter()
            side()
            own.append((time.perf_counter() - start) / ROWS * 1e6)
    return spent


def ratio(of: Sequence[float], to: Sequence[float]) -> float:
    """How many times as long one side takes as another."""
    return statistics.median(a / b for a, b in zip(of, to, strict=True))


def of_each(ask: Callable[[Any], Any], rows: Sequence[Any]) -> Ask:
    """A question about one row after the other."""

    def all_rows() -> None:
        for row in rows:
            ask(row)

    return all_rows


def peers() -> list[Section]:
    """Labels, evidence that was read before, and `net.posterior`, beside pyAgrum's loop."""
    section = Section(
        "1. One row of labels",
        f"{FASTER:g}x pyAgrum; read once, at most {READ:g} us; net.posterior at most {OF_A_NETWORK:g}x tac.posterior",
        ("network", "leaves", "pyAgrum", "evidence=", "hard=", "vs pyAgrum", "read once", "net.posterior",
         "net / hard=", "largest difference", "verdict"),
    )  # fmt: skip
    for name in NETWORKS:
        net, query, rows = rows_of(name)
        peer, names = Peer(net, query, rows), list(rows[0])
        soft, hard = tacit.compile(net, query, evidence=names), tacit.compile(net, query, hard=names)
        read = [soft.read(row) for row in rows]
        sides = [
            peer.ask, of_each(soft.posterior, rows), of_each(hard.posterior, rows), of_each(soft.posterior, read),
            of_each(lambda row, net=net, query=query: net.posterior(query, row), rows),
        ]  # fmt: skip
        for side in sides[1:]:
            for _ in range(WARM // ROWS):
                side()
        theirs, labels, indexed, once, by_network = in_turns(*sides)
        error = max(abs(soft.posterior(row)[0] - own).max() for row, own in zip(rows, peer.answers(), strict=True))
        gain = min(ratio(theirs, labels), ratio(theirs, indexed))
        of_network = ratio(by_network, indexed)
        good = gain >= FASTER and min(once) <= READ and of_network <= OF_A_NETWORK and error < 1e-9
        section.add(
            name, len(names), *(f"{min(own):.1f}" for own in (theirs, labels, indexed)), f"{gain:.0f}x",
            f"{min(once):.1f}", f"{min(by_network):.1f}", f"{of_network:.2f}x", f"{error:.0e}", OK if good else MISSED,
        )  # fmt: skip
    return [section]


def frames() -> list[Section]:
    """One row of a frame, beside what the library itself takes to hand out its cells."""
    section = Section(
        "2. A frame of one row",
        f"at most {OF_A_FRAME:g}x a mapping of labels",
        ("network", "columns", "mapping", "frame", "its own cells", "tacit", "frame / mapping", "verdict"),
    )
    for name in ("alarm", "hailfinder"):
        net, query, rows = rows_of(name)
        tac = tacit.compile(net, query, evidence=list(rows[0]))
        mapping = of_each(tac.posterior, rows)
        for _ in range(WARM // ROWS):
            mapping()
        made = {"pandas": [pd.DataFrame([row]) for row in rows], "polars": [pl.DataFrame([row]) for row in rows]}
        cells = {"pandas": lambda frame: [frame.iat[0, i] for i in range(frame.shape[1])], "polars": lambda f: f.row(0)}
        for library, own in made.items():
            spent = in_turns(mapping, of_each(tac.posterior, own), of_each(cells[library], own))
            times = ratio(spent[1], spent[0])
            section.add(
                name, len(rows[0]), f"{min(spent[0]):.1f}", library, f"{min(spent[2]):.1f}", f"{min(spent[1]):.1f}",
                f"{times:.1f}x", at_most(times, OF_A_FRAME),
            )  # fmt: skip
    section.notes.append(
        "pandas takes some 4 us for every cell that it hands out, which is more than all of the answer."
    )
    return [section]


def predictions() -> list[Section]:
    """One row for a scikit-learn estimator."""
    from sklearn.datasets import load_breast_cancer, load_iris

    from tacit.sklearn import TACClassifier

    section = Section(
        "3. `TACClassifier.predict_proba` of one row",
        f"at most {PREDICTED / 1000:g} ms",
        ("data", "columns", "as a frame", "as an array", "verdict"),
    )
    for name, load in {"iris": load_iris, "breast cancer": load_breast_cancer}.items():
        X, y = load(return_X_y=True, as_frame=True)
        named, plain = (TACClassifier(random_state=0).fit(own, y) for own in (X, X.to_numpy()))
        some = [X.iloc[[i]] for i in range(ROWS)]
        sides = of_each(named.predict_proba, some), of_each(plain.predict_proba, [row.to_numpy() for row in some])
        framed, arrays = in_turns(*sides)
        worst = max(statistics.median(framed), statistics.median(arrays))
        section.add(name, X.shape[1], f"{min(framed):.0f}", f"{min(arrays):.0f}", at_most(worst, PREDICTED))
    return [section]


def main(arguments: list[str]) -> None:
    """Measure all, and write the page, or only what is named."""
    parts = {"peers": peers, "frames": frames, "predictions": predictions}
    run_parts(arguments, parts, PAGE, "Benchmark: one row at a time", INTRO)
