"""Questions of what would have been, row by row: `python -m bench counterfactuals`.

With the path of an interpreter that has bcause 0.0.2, which needs older packages than others here, also side by side
with it: `python -m bench counterfactuals --bcause PYTHON`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import tacit
from bench.ensembles import in_turns
from bench.networks import leaves, network
from bench.tables import MISSED, OK, Section, at_least, at_most, write
from tacit.model.mechanisms import RESPONSE
from tacit.model.twin import twin

PAGE = Path(__file__).parent.parent / "docs" / "bench-counterfactuals.md"
ROWS = 1_000_000
MOST, LEAST, CLOSE = 2.0, 1000, 1e-9
SET, ASKED = "INTUBATION", "BP"
INTRO = """Made by `python -m bench counterfactuals --bcause PYTHON`. Two cores; medians of several runs, in turn. Times
include reading the evidence, and leave out compiling.

The model has the variables and edges of alarm. Each variable with parents is a random function of them and of a root of
its own with three states, so that all that is random are roots. Rows observe all leaves and the variable that would
have been set, INTUBATION; BP, a leaf, is asked for."""


def functional_alarm() -> tacit.Network:
    """A network of the structure of alarm in which all that is random are roots."""
    rng, alarm, net = np.random.default_rng(0), network("alarm"), tacit.Network("functional alarm")
    for name in alarm:
        parents, card = alarm.parents(name), alarm.variable(name).card
        if not parents:
            net.add(name, (), alarm.states(name), alarm.table(name))
            continue
        net.add(f"{name}{RESPONSE}", (), 3, rng.dirichlet(np.ones(3)))
        shape = [*(alarm.variable(parent).card for parent in parents), 3]
        codes = rng.integers(card, size=shape)
        net.add(name, [*parents, f"{name}{RESPONSE}"], alarm.states(name), np.eye(card)[codes])
    return net


def medians(sides: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median seconds of each side."""
    return {name: median(own) for name, own in in_turns(sides).items()}


def batches() -> Section:
    """A million rows, beside plain posteriors of one world and of two."""
    found = Section("1. 1,000,000 rows", f"at most {MOST:g} times the time of a plain query of two worlds", (
        "query", "variables", "multiply-adds per row", "ns per row", "x plain, two worlds", "verdict"))  # fmt: skip
    net = functional_alarm()
    seen = [*leaves(network("alarm")), SET]
    rows = {name: labels for name, labels in net.sample(ROWS, seed=1).items() if name in seen}
    rng = np.random.default_rng(2)
    set_to = {f"{SET}.would": rng.choice(np.array(net.states(SET), dtype=object), ROWS)}
    plain = tacit.compile(net, ASKED, [n for n in seen if n != ASKED])
    worlds = twin(net, [SET], [ASKED])
    both = tacit.compile(worlds, f"{ASKED}.would", [*seen, *set_to])
    would = tacit.compile(net, ASKED, seen, would=[SET])
    sides = {
        "posterior, one world": (plain, {n: own for n, own in rows.items() if n != ASKED}),
        "posterior, two worlds": (both, rows | set_to),
        "what would have been": (would, rows | set_to),
    }
    works = {
        name: (lambda tac=tac, evidence=evidence: tac.posterior(evidence)) for name, (tac, evidence) in sides.items()
    }
    seconds = medians(works)
    base = seconds["posterior, two worlds"]
    for name, (tac, _) in sides.items():
        verdict = at_most(seconds[name] / base, MOST) if name.startswith("what") else ""
        adds = f"{tac.program.cost.multiply_adds:,}"
        found.add(
            name, len(tac.network), adds, f"{1e9 * seconds[name] / ROWS:.0f}", f"{seconds[name] / base:.2f}x", verdict
        )
    return found


def small(rng: np.random.Generator) -> list[tuple[str, list[str], list[Any]]]:
    """A model of binary variables as plain data: roots, and functions of the variable before and perhaps another."""
    names = [f"V{i}" for i in range(6)]
    nodes = []
    for i, name in enumerate(names):
        parents = [names[j] for j in range(i) if j == i - 1 or rng.random() < 0.4][-2:]
        root = f"U{i}"
        nodes.append((root, [], rng.dirichlet([1, 1]).tolist()))
        codes = rng.integers(2, size=[2] * (len(parents) + 1))
        nodes.append((name, [*parents, root], np.eye(2)[codes].tolist()))
    return nodes


def beside_bcause(python: str) -> Section:
    """The same questions, asked of bcause one by one, and of tacit for many rows."""
    found = Section("2. bcause", f"differences of at most {CLOSE:g}; at least {LEAST:,} times as fast", (
        "model", "queries", "difference", "bcause, ms per query", "tacit, µs per row", "ratio", "verdict"))  # fmt: skip
    for seed in range(3):
        rng = np.random.default_rng(seed)
        nodes = small(rng)
        net = tacit.Network()
        for name, parents, table in nodes:
            net.add(name, parents, 2, table)
        seen = ["V2", "V3", "V5"]
        rows = [dict(zip(seen, states, strict=True)) for states in itertools.product((0, 1), repeat=3)]
        cases = [{"evidence": row, "do": {"V1": x}, "target": "V4"} for row in rows for x in (0, 1)]
        answer = subprocess.run([python, str(Path(__file__).with_name("bcause_worker.py"))], check=True, text=True,
                                capture_output=True, input=json.dumps({"nodes": nodes, "cases": cases}))  # fmt: skip
        theirs = json.loads(answer.stdout.splitlines()[-1])
        tac = tacit.compile(net, "V4", seen, would=["V1"])
        evidence = {name: np.array([case["evidence"][name] for case in cases]) for name in seen}
        evidence["V1.would"] = np.array([case["do"]["V1"] for case in cases])
        ours = tac.posterior(evidence)
        possible = ~np.isnan(ours[:, 0])
        expected = np.array([[np.nan] * 2 if p is None else p for p in theirs["answers"]])
        difference = np.abs(ours - expected)[possible].max()
        many = {name: np.tile(own, ROWS // len(cases)) for name, own in evidence.items()}
        seconds = medians({"tacit": lambda tac=tac, many=many: tac.posterior(many)})["tacit"]
        per_row = seconds / len(many["V2"])
        ratio = theirs["seconds"] / len(cases) / per_row
        verdict = OK if difference <= CLOSE and at_least(ratio, LEAST) == OK else MISSED
        ms, us = 1e3 * theirs["seconds"] / len(cases), 1e6 * per_row
        found.add(f"12 variables, seed {seed}", int(possible.sum()), f"{difference:.0e}", f"{ms:.1f}", f"{us:.3f}",
                  f"{ratio:,.0f}x", verdict)  # fmt: skip
    return found


def main(arguments: list[str]) -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser("python -m bench counterfactuals")
    parser.add_argument("--bcause", metavar="PYTHON")
    options = parser.parse_args(arguments)
    sections = [batches()]
    if options.bcause:
        sections.append(beside_bcause(options.bcause))
    for section in sections:
        print(section.text())
    if options.bcause:
        write(PAGE, "Benchmark: what would have been", INTRO, sections)
