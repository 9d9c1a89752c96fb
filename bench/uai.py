"""Posteriors of all variables of the Markov networks of the UAI 2014 competition, with limits of time and memory.

`python -m bench uai --set FOLDER` measures all and writes the page. Networks can be named, and `--seconds` takes other
limits; both write no page. The folder may also be named by TACIT_UAI.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.sides import ROOT, environment
from bench.tables import Section, at_least, at_most, write
from bench.uai_worker import DIGITS, MEMORY, SHARE, WITHIN

PAGE = ROOT / "docs" / "bench-uai.md"
VARIABLE = "TACIT_UAI"
WIDE = 0.1  # the width of an interval that says little
BARS = {20: 95.0, 60: 99.0}  # of the mean score, by seconds of processor time
SOURCE = f"""The networks are not part of this repository. Those of the competition that have an answer are in
https://github.com/mroavi/JunctionTrees.jl. Name a folder with `--set FOLDER`, or with the variable {VARIABLE}:

  FOLDER/NAME/NAME.uai         a network
  FOLDER/NAME/NAME.uai.evid    the states that are known
  FOLDER/NAME/NAME.uai.MAR     the posteriors of all variables, to six digits
"""
INTRO = f"""Written by `python -m bench uai`, on a machine of 2 cores that others may have used. The networks are Markov
networks of the UAI 2014 competition, from its task MAR: posteriors of all variables, given one row of evidence that is
known when the query is compiled. Each network has a process of its own, with a limit of processor time (reading,
compiling and answering; importing tacit counts for the limit, but not for the column), one thread and
{MEMORY // 2**30} GB of address space.
Kernels are compiled by numba once and kept: the network that is the first to need one pays for it.

Each is asked with `within={WITHIN}`, and `seconds` of {SHARE} of the limit: where an exact answer takes longer than
that by its plan, or finding a plan would, there are certain intervals, and estimates inside them.

The *score* is that of the competition of 2022: 100 (1 - H / H0), at least 0, where H is the mean over all variables of
the Hellinger distance to the published answer, and H0 the same of uniform marginals. The published answers have six
digits, so an exact answer scores 99.99 or so. No answer, or one that comes too late, scores 0.

Left out is the family *relational*, whose published answers are not those of the files: an independent elimination of
relational_3 agrees with tacit in all digits and is 0.21 from the published answer."""


@dataclass(frozen=True)
class Outcome:
    """What came of one network."""

    name: str
    uniform: float
    distance: float | None = None  # None: no answer
    exact: bool = False
    seconds: float = 0.0
    megabytes: float = 0.0
    refused: str = ""
    widths: Sequence[float] = ()  # of the intervals of all variables
    outside: int = 0  # variables whose published posterior is not in its interval

    @property
    def family(self) -> str:
        return self.name.rpartition("_")[0] or self.name

    @property
    def score(self) -> float:
        return 0.0 if self.distance is None else max(0.0, 100 * (1 - self.distance / self.uniform))


def measured(folder: Path, name: str, seconds: int) -> Outcome:
    """What a process of its own came to."""
    command = [sys.executable, "-m", "bench.uai_worker", str(folder / name / f"{name}.uai"), str(seconds)]
    env = {**environment(ROOT), "OPENBLAS_NUM_THREADS": "1"}  # two threads that wait for cores use their time up
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    if done.returncode > 0 or "uniform" not in found:
        raise RuntimeError(f"the process for {name} failed")
    if done.returncode == -signal.SIGXCPU:
        found |= {"refused": f"more than {seconds} s", "seconds": float(seconds)}
    elif done.returncode:
        found["refused"] = f"ended by signal {-done.returncode}"
    return Outcome(name, **found)


def outcomes(folder: Path, names: Sequence[str], limits: Sequence[int]) -> dict[int, list[Outcome]]:
    """What came of all networks within each limit; what is exact within one is not measured again for a longer one."""
    found: dict[int, list[Outcome]] = {seconds: [] for seconds in limits}
    for name in names:
        last = None
        for seconds in sorted(limits):
            last = last if last is not None and last.exact else measured(folder, name, seconds)
            found[seconds].append(last)
        assert last is not None
        print(f"{name}: {last.score:.2f}, {last.seconds:.1f} s, {last.megabytes:.0f} MB {last.refused}", flush=True)
    return found


def families(found: Mapping[int, Sequence[Outcome]], whole: bool) -> Section:
    """The mean score of each family, and of all networks."""
    bars = " and ".join(f"{bar:g} within {seconds} s" for seconds, bar in BARS.items())
    headers = [f"{what}, {seconds} s" for seconds in found for what in ("mean score", "exact", "verdict")]
    section = Section(
        "1. Scores by family", f"a mean score over all networks of {bars}", ["family", "networks", *headers]
    )
    first = next(iter(found.values()))
    for family in [*dict.fromkeys(outcome.family for outcome in first), ""]:
        cells: list[str] = []
        for seconds, every in found.items():
            own = [outcome for outcome in every if family in (outcome.family, "")]
            mean = statistics.mean(outcome.score for outcome in own)
            exact = sum(outcome.exact for outcome in own)
            judged = whole and not family and seconds in BARS
            cells += [f"{mean:.2f}", f"{exact}/{len(own)}", at_least(mean, BARS[seconds]) if judged else ""]
        section.add(family or "all", sum(family in (outcome.family, "") for outcome in first), *cells)
    return section


def networks(found: Mapping[int, Sequence[Outcome]]) -> Section:
    """What came of every network."""
    headers = [f"{what}, {seconds} s" for seconds in found for what in ("score", "exact", "seconds", "memory")]
    section = Section("3. Every network", "none", ["network", *headers])
    for row in zip(*found.values(), strict=True):
        cells: list[str] = []
        for outcome in row:
            memory = f"{outcome.megabytes / 1000:.1f} GB" if outcome.megabytes else ""
            cells += [f"{outcome.score:.2f}", "yes" if outcome.exact else "no", f"{outcome.seconds:.1f}", memory]
        section.add(row[0].name, *cells)
        if row[-1].refused:
            section.notes.append(f"{row[-1].name}: {row[-1].refused}.")
    return section


def intervals(found: Mapping[int, Sequence[Outcome]], whole: bool) -> Section:
    """Whether intervals hold the published answers, and how wide they are."""
    bar = f"every published posterior in its interval, to {DIGITS:g}; a median width of at most {WITHIN} within 60 s"
    headers = ["seconds", "variables", "posteriors outside", "verdict", "median of all", "verdict", f"above {WIDE}"]
    section = Section("2. Intervals", bar, headers)
    for seconds, every in found.items():
        widths = [width for outcome in every for width in outcome.widths]
        outside, middle = sum(outcome.outside for outcome in every), statistics.median(widths)
        narrow = at_most(middle, WITHIN) if whole and seconds == max(found) else ""
        section.add(seconds, len(widths), outside, at_most(outside, 0), f"{middle:.2g}", narrow, share(widths))
        section.notes += [
            f"{outcome.name}, {seconds} s: a median width of {statistics.median(outcome.widths):.3f}, "
            f"{share(outcome.widths)} above {WIDE}."
            for outcome in every
            if not outcome.exact
        ]
    return section


def share(widths: Sequence[float]) -> str:
    """How many intervals say little."""
    return f"{statistics.mean(width > WIDE for width in widths):.1%}"


def named(folder: Path, names: Sequence[str]) -> list[str]:
    """The networks in a folder that are named, or all of them."""
    there = sorted(path.parent.name for path in folder.glob("*/*.uai"))
    unknown = [name for name in names if name not in there]
    if unknown or not there:
        raise SystemExit(f"{folder} has no network {unknown[0]!r}" if unknown else f"{folder} has no networks")
    return [name for name in there if name in names or not names]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure the networks named, or all of them and write the page."""
    parser = argparse.ArgumentParser("python -m bench uai")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--set", default=os.environ.get(VARIABLE), metavar="FOLDER")
    parser.add_argument("--seconds", nargs="+", type=int, default=list(BARS))
    options = parser.parse_args(list(arguments))
    if options.set is None:
        raise SystemExit(SOURCE)
    names = named(Path(options.set), options.names)
    found = outcomes(Path(options.set), names, options.seconds)
    whole = not options.names and options.seconds == list(BARS)
    sections = [families(found, not options.names), intervals(found, not options.names), networks(found)]
    for section in sections:
        print(section.text(), flush=True)
    if whole:
        write(PAGE, "Benchmark: posteriors of all variables of wide networks", INTRO, sections)
