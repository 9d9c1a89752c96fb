"""Decisions row by row, side by side with pyAgrum's influence diagrams: `python -m bench decisions`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyagrum
from tests.pyagrum_peer import to_diagram

import tacit
from bench.inference import per_row, sample, sampled, us
from bench.networks import leaves, network
from bench.tables import MISSED, Ratio, Section, at_least, run_parts

PAGE = Path(__file__).parent.parent / "docs" / "bench-decisions.md"
ROWS, PEER_ROWS, WORTH_ROWS = 1_000_000, 200, 100_000
LEAST = 1e6  # rows per second
CLOSE = 1e-12  # of the range of values
INTRO = """Made by `make bench`. Two cores, and as many threads as each program takes by itself: tacit up to two,
pyAgrum one. Times are medians of several runs; they include reading the evidence, the action and its margin, and leave
out compiling.

**Therapy**: alarm with a decision beside it, and values that depend on two hidden causes and on the decision. All
leaves are known before. **Ventilation**: MINVOLSET is decided, and values depend on two variables far below it and on
itself. Seven findings that it does not change are known before.

pyAgrum: ShaferShenoyLIMIDInference, one engine, evidence changed in place, MEU and the posterior utility of the
decision. What observing is worth: for every variable, a diagram in which it has an arrow to the decision. Differences
are relative to the range of values; those of the expected values of all actions, for which pyAgrum is asked once for
each."""


@dataclass(frozen=True)
class Case:
    """A network with a decision, and what is known before it."""

    name: str
    net: tacit.Network
    decision: str
    observed: tuple[str, ...]

    @property
    def unit(self) -> float:
        """The range of all values together."""
        return sum(float(np.ptp(own.table)) for own in self.net.value_nodes.values())

    def rows(self, count: int, soft: bool = False) -> dict[str, np.ndarray]:
        """Sampled labels, or random likelihoods."""
        rng = np.random.default_rng(1)
        states = {n: np.array(self.net.states(n), dtype=object) for n in self.observed}
        if soft:
            return {n: rng.dirichlet(np.ones(len(own)), count) for n, own in states.items()}
        drawn = sample(self.net, count, rng)
        return {n: own[drawn[n]] for n, own in states.items()}

    def likelihoods(self, rows: Mapping[str, np.ndarray], i: int) -> dict[str, list[float]]:
        """A row for the peer."""
        return {
            n: [float(x) for x in (own[i] if own.ndim == 2 else [s == own[i] for s in self.net.states(n)])]
            for n, own in rows.items()
            if own[i] is not None
        }


def cases() -> list[Case]:
    """A decision about hidden causes, and one about effects."""
    therapy = network("alarm").copy()
    therapy.add("Therapy", states=["none", "fluids", "diuretics"], cpt=[1 / 3] * 3)
    outcome = [[[-90, -60, -100], [-50, -5, -80]], [[-60, -80, -10], [0, -8, -6]]]
    therapy.value("Outcome", ["HYPOVOLEMIA", "LVFAILURE", "Therapy"], outcome)
    therapy.value("Price", ["Therapy"], [0, -1, -1])
    ventilation = network("alarm").copy()
    ventilation.value("Oxygen", ["SAO2"], [-50, 0, 0])
    ventilation.value("Pressure", ["BP"], [-30, 0, -20])
    ventilation.value("Wear", ["MINVOLSET"], [0, 0, -1])
    before = ("HISTORY", "CVP", "PCWP", "PAP", "DISCONNECT", "KINKEDTUBE", "FIO2")
    return [
        Case("therapy", therapy, "Therapy", tuple(leaves(network("alarm")))),
        Case("ventilation", ventilation, "MINVOLSET", before),
    ]


def best(engine: pyagrum.ShaferShenoyLIMIDInference, row: Mapping[str, Sequence[float]]) -> float:
    """What the best action is expected to be worth."""
    engine.setEvidence({name: list(likelihoods) for name, likelihoods in row.items()})
    engine.makeInference()
    return float(engine.MEU()["mean"])


def decisions() -> list[Section]:
    """The best action for a million rows."""
    section = Section(
        f"1. The best action for {ROWS:,} rows of alarm: time per row, in microseconds",
        f"expected values equal to 1e-12 of their range; {LEAST:,.0f} rows per second",
        ("decision", "evidence", "compile", "tacit", "rows per second", "pyAgrum", "vs pyAgrum", "largest difference",
         "verdict"),
    )  # fmt: skip
    for case in cases():
        for kind in ("hard", "soft"):
            rows = case.rows(ROWS, kind == "soft")
            start = time.perf_counter()
            tac = tacit.compile(
                case.net, decide=case.decision, **{"evidence" if kind == "soft" else "hard": case.observed}
            )
            compiling = time.perf_counter() - start

            def ours(tac: tacit.DecisionQuery = tac, rows: Mapping[str, np.ndarray] = rows) -> tuple[object, object]:
                decision = tac.decide(rows)
                return decision.action, decision.margin

            ours()
            seconds = per_row(ours, ROWS, repeats=5)
            peer, theirs = by_pyagrum(case, rows)
            found = tac.decide({n: own[: len(theirs)] for n, own in rows.items()}).expected
            error = float(np.abs(found - theirs).max()) / case.unit
            section.add(
                case.name, kind, f"{compiling:.2f} s", us(seconds), f"{1 / seconds:,.0f}", us(peer),
                Ratio(peer, seconds), f"{error:.1e}", at_least(1 / seconds, LEAST) if error <= CLOSE else MISSED,
            )  # fmt: skip
    return [section]


def by_pyagrum(case: Case, rows: Mapping[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds per row, and what each action is expected to be worth in some rows."""
    peer, names = to_diagram(case.net, case.decision)
    engine = pyagrum.ShaferShenoyLIMIDInference(peer)
    named = [{names[n]: own for n, own in case.likelihoods(rows, i).items()} for i in range(PEER_ROWS)]

    def decide(i: int) -> np.ndarray:
        best(engine, named[i])
        return np.array(engine.posteriorUtility(names[case.decision]).toarray()).ravel()

    seconds, answered = sampled(decide, PEER_ROWS)
    actions = np.eye(len(case.net.states(case.decision))).tolist()
    return seconds, np.array(
        [[best(engine, {**row, names[case.decision]: a}) for a in actions] for row in named[: len(answered)]]
    )


def worth() -> list[Section]:
    """What observing every variable is worth, where half of them are known."""
    section = Section(
        f"2. What observing each variable is worth, half of them known, {WORTH_ROWS:,} rows: microseconds per row",
        "equal to 1e-12 of the range of values",
        ("decision", "variables", "tacit", "rows per second", "pyAgrum", "vs pyAgrum", "largest difference", "verdict"),
    )
    for case in cases():
        rng = np.random.default_rng(2)
        full = case.rows(WORTH_ROWS)
        rows = {n: np.where(rng.random(WORTH_ROWS) < 0.5, own, None) for n, own in full.items()}
        tac = tacit.compile(case.net, decide=case.decision, evidence=case.observed)
        told = tac.worth(rows)
        seconds = per_row(lambda tac=tac, rows=rows: tac.worth(rows), WORTH_ROWS, repeats=5)
        peer, theirs = worth_by_pyagrum(case, rows)
        found = np.stack([told[n][: len(theirs)] for n in case.observed], axis=-1)
        error = float(np.nanmax(np.abs(found - theirs))) / case.unit
        assert (np.isnan(found) == np.isnan(theirs)).all()
        section.add(
            case.name, len(case.observed), us(seconds), f"{1 / seconds:,.0f}", us(peer), Ratio(peer, seconds),
            f"{error:.1e}", at_least(CLOSE, error),
        )  # fmt: skip
    return [section]


def worth_by_pyagrum(case: Case, rows: Mapping[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds per row, and what observing each variable is worth in some rows; NaN of those that are known."""
    engines = {
        n: pyagrum.ShaferShenoyLIMIDInference(to_diagram(case.net, case.decision, [n])[0]) for n in case.observed
    }
    plain, names = to_diagram(case.net, case.decision)
    now = pyagrum.ShaferShenoyLIMIDInference(plain)

    def gains(i: int) -> np.ndarray:
        row = {names[n]: own for n, own in case.likelihoods(rows, i).items()}
        before = best(now, row)
        return np.array([best(engines[n], row) - before if rows[n][i] is None else np.nan for n in case.observed])

    return sampled(gains, 20)


def main(arguments: list[str]) -> None:
    run_parts(arguments, {"decide": decisions, "worth": worth}, PAGE, "Decisions: measured", INTRO)
