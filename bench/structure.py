"""Networks full of 0s and 1s: published questions, soft evidence, and what looking for structure costs elsewhere.

`python -m bench structure --set FOLDER` measures all and writes the page. Parts can be named (`given`, `soft`,
`ordinary`), and `--only fs` takes the instances with these letters in their names; both write no page. The folder may
also be named by TACIT_STRUCTURE.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.sides import ROOT, Comparison, environment
from bench.structure_worker import MEMORY, SECONDS
from bench.tables import MISSED, OK, Section, at_least, at_most, write

PAGE = ROOT / "docs" / "bench-structure.md"
VARIABLE = "TACIT_STRUCTURE"
SOURCE = """The published networks are not part of this repository. They are in `data/` of
https://github.com/dilkas/wmc-without-parameters; commit b736fe59 was used. Name a folder with `--set FOLDER`, or with
the variable {variable}:

  FOLDER/instances.json    a list of objects, each with a name, the network's file, evidence {{variable: state}}, asks,
                           goal (a variable and its state; none for the probability of the evidence), answer,
                           treewidth, and ace_seconds
  FOLDER/networks/         their files, as .net, .dne or .uai, plain or gzipped
"""

INTRO = """Written by `python -m bench structure`, on a machine of 2 cores that others may have used. The networks are
those that knowledge compilers are measured with (`dilkas/wmc-without-parameters`): most of their entries are 0 or 1,
and for many of them, tables over clusters of variables fit no memory. [Wide but structured](structure.md) explains how
they are compiled.

**What each side knows when it compiles.** In the published runs, ACE compiled a network together with the values of the
evidence. Section 1 asks tacit the same: all evidence is in `given=`. In section 2 no value is known. The query is
compiled for likelihoods of the same variables, once for all rows; this is a harder question, and ACE's figures say
nothing about it.

**Whose seconds.** Ours are those of compiling and answering, in a process whose kernels are warm; reading the file has
a column of its own. ACE's are the published ones, of encoding and inference on its authors' machine, medians over the
same instances. So a ratio of the two says little; which side answers at all says more. Each instance has a process of
its own with {seconds} seconds of processor time and {memory} GB. Published answers are those that at least two solvers
agree on.

**What was tuned.** Orders and budgets were chosen by looking at some of these instances, so expect a little less of
others. *Structured* counts the answers that diagrams gave; for the rest, what is given leaves so little that tables are
as good."""


def intro() -> str:
    """The text above the tables."""
    return INTRO.format(seconds=SECONDS, memory=MEMORY // 2**30)


# processes ------------------------------------------------------------------------------------------------


def measured(**request: Any) -> dict[str, Any]:
    """What a process of its own found; `refused` tells why it did not get to the end."""
    command, line = [sys.executable, "-m", "bench.structure_worker"], json.dumps(request) + "\n"
    done = subprocess.run(
        command, cwd=ROOT, env=environment(ROOT), input=line, stdout=subprocess.PIPE, text=True, check=False
    )
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    if done.returncode > 0:
        raise RuntimeError(f"the process for {request} failed")
    if done.returncode:
        late = done.returncode == -signal.SIGXCPU
        found["refused"] = f"more than {SECONDS} s" if late else f"ended by signal {-done.returncode}"
    return found


# 1. states known when the query is compiled ---------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Instances of one kind: how their names look, and what is demanded."""

    name: str
    pattern: str
    share: float = 1.0  # answered
    tolerance: float = 1e-6

    def has(self, instance: Mapping[str, Any]) -> bool:
        return re.search(self.pattern, instance["name"]) is not None


FAMILIES = (
    Family("blockmap_05", r"blockmap_05"),
    Family("blockmap_10", r"blockmap_10"),
    Family("mastermind", r"mastermind", share=0.95),
    Family("students", r"students"),
    Family("friends and smokers", r"fs-\d"),
    Family("plan recognition", r"Plan_Recognition"),
    Family("tcc4f", r"tcc4f"),
    Family("DQMR", r"DQMR"),
    Family("Grid 50", r"Ratio_50", tolerance=1e-4),
    Family("Grid 75", r"Ratio_75", share=0.8, tolerance=1e-4),
    Family("Grid 90", r"Ratio_90", share=0.85, tolerance=1e-4),
)


def given(folder: Path, instances: Sequence[Mapping[str, Any]]) -> Section:
    """The published questions, by family."""
    section = Section(
        "1. Evidence known when the query is compiled (`given=`): seconds to compile and answer",
        "all answered to 1e-6, and of grids to 1e-4; of mastermind 95%, of Grid 75 80%, of Grid 90 85%; the median "
        "below ACE's",
        ("family", "treewidth", "answered", "right", "largest error", "structured", "median", "max", "read, max",
         "memory, max", "ACE answered", "ACE, median", "verdict"),
    )  # fmt: skip
    for family in FAMILIES:
        own = [instance for instance in instances if family.has(instance)]
        if own:
            _add_family(section, family, folder, own)
            print(" ".join(section.rows[-1]), flush=True)
    return section


def _add_family(section: Section, family: Family, folder: Path, instances: Sequence[Mapping[str, Any]]) -> None:
    answered, errors = [], []
    for instance in instances:
        found = measured(task="given", folder=str(folder), instance=instance)
        if "answer" in found:
            answered.append(found)
            errors.append(error(found["answer"], instance["answer"]))
        if found.get("refused"):
            section.notes.append(f"{instance['name']}: {found['refused']}.")
        elif errors[-1] > family.tolerance:
            section.notes.append(f"{instance['name']}: {found['answer']}, published {instance['answer']}.")
    right = sum(e <= family.tolerance for e in errors)
    theirs = [instance["ace_seconds"] for instance in instances if instance["ace_seconds"] is not None]
    widths = [instance["treewidth"] for instance in instances if instance["treewidth"] is not None]
    figures = ["-"] * 6
    if answered:
        seconds = [found["seconds"] for found in answered]
        figures = [
            f"{max(errors):.0e}", f"{sum(found['structured'] for found in answered)}",
            f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s",
            f"{max(found['read'] for found in answered):.2f} s",
            f"{max(found['megabytes'] for found in answered):,.0f} MB",
        ]  # fmt: skip
    reached = right >= family.share * len(instances)
    if answered and theirs:
        reached = reached and statistics.median(seconds) < statistics.median(theirs)
    section.add(
        family.name, f"{min(widths)} to {max(widths)}" if widths else "-", f"{len(answered)}/{len(instances)}",
        f"{right}/{len(instances)}", *figures, f"{len(theirs)}/{len(instances)}",
        f"{statistics.median(theirs):.1f} s" if theirs else "-", OK if reached else MISSED,
    )  # fmt: skip


def error(answer: float, published: float) -> float:
    """Relative to the published answer, unless that is 0."""
    return abs(answer - published) / (published or 1.0)


# 2. soft evidence -----------------------------------------------------------------------------------------

MOST_TERMS = {"blockmap_05_03": 500, "students_03_02": 6_000, "mastermind_03_08_03": 25_000}
PATHFINDER = 3  # times faster per row


def soft(folder: Path, instances: Sequence[Mapping[str, Any]]) -> Section:
    """Diagrams and tables for the same likelihoods."""
    section = Section(
        "2. Soft evidence, no value known: one tape for all rows, on one thread",
        f"at most {' / '.join(f'{n:,}' for n in MOST_TERMS.values())} terms for {' / '.join(MOST_TERMS)}; pathfinder "
        f"{PATHFINDER} times as fast as with tables",
        ("network", "observed", "compile", "terms", "us per row", "compile, tables", "terms, tables",
         "us per row, tables", "tables / structured", "largest difference", "error at the states", "verdict"),
    )  # fmt: skip
    section.notes.append(
        "Observed are the variables of an instance, or all leaves. Likelihoods are random, but for one row with the "
        "instance's states, whose answer is compared with the published one. Both sides take turns on the interpreter "
        f"of the tape; the ratio is the median of all turns, with its quartiles. Each has {SECONDS} s; '-' is what was "
        "not reached."
    )
    chosen = [i for i in instances if i["evidence"] and any(name in i["network"] for name in MOST_TERMS)]
    for instance in (*chosen, None):
        _add_soft(section, folder, instance)
        print(" ".join(section.rows[-1]), flush=True)
    return section


def _add_soft(section: Section, folder: Path, instance: Mapping[str, Any] | None) -> None:
    found = measured(task="soft", folder=str(folder), instance=instance)
    ours, tables = found.get("on", {}), found.get("off", {})
    name = "pathfinder" if instance is None else instance["name"].rpartition("/")[2]
    if found.get("refused"):
        section.notes.append(f"{name}{', tables' if 'per_row' in ours else ''}: {found['refused']}.")
    ratio = Comparison(found["turns"]["off"], found["turns"]["on"]) if "turns" in found else None
    for side, times in found.get("turns", {}).items():
        found[side]["per_row"] = statistics.median(times)
    at = "-"
    if instance is None:
        verdict = at_least(ratio.ratio if ratio else 0.0, PATHFINDER)
    else:
        most = next(most for known, most in MOST_TERMS.items() if known in instance["network"])
        verdict = at_most(ours.get("terms", math.inf), most)
        if "answer" in ours:
            at = f"{error(math.exp(ours['answer']), instance['answer']):.0e}"
    section.add(
        name, "all leaves" if instance is None else f"{len(instance['evidence'])} variables",
        *_figures(ours), *_figures(tables), ratio or "-", f"{found['difference']:.0e}" if ratio else "-", at, verdict,
    )  # fmt: skip


def _figures(found: Mapping[str, Any]) -> list[str]:
    """Seconds to compile, terms, microseconds per row."""
    compiling = f"{found['compiling']:.2f} s" if "compiling" in found else "-"
    terms = f"{found['terms']:,}" if "terms" in found else "-"
    return [compiling, terms, f"{found['per_row'] * 1e6:,.2f}" if "per_row" in found else "-"]


# 3. ordinary networks -------------------------------------------------------------------------------------

ORDINARY = ("alarm", "hailfinder", "water", "andes", "pigs", "munin1")
SLOWER, LONGER = 1.05, 1.2  # per row; to compile


def ordinary() -> Section:
    """What it costs to look for structure where there is little."""
    section = Section(
        "3. Ordinary networks, soft evidence on all leaves: looking for structure, and not",
        f"at most {SLOWER} times as long per row, and {LONGER} times as long to compile",
        ("network", "structured", "compile", "compile, off", "ratio", "us per row", "us per row, off", "ratio",
         "largest difference", "verdict"),
    )  # fmt: skip
    section.notes.append(
        "Both sides take turns in one process, on one thread. Ratios are medians of all turns, with quartiles."
    )
    for name in ORDINARY:
        found = measured(task="ordinary", name=name)
        if "turns" not in found:
            section.notes.append(f"{name}: {found.get('refused')}.")
            section.add(name, *["-"] * 8, MISSED)
            continue
        compiling, per_row = (Comparison(found[what]["on"], found[what]["off"]) for what in ("compiling", "turns"))
        kept = compiling.ratio <= LONGER and per_row.ratio <= SLOWER
        section.add(
            name, "yes" if found["structured"] else "no",
            *(f"{statistics.median(times):.3f} s" for times in (compiling.of, compiling.to)), compiling,
            *(f"{statistics.median(times) * 1e6:,.2f}" for times in (per_row.of, per_row.to)), per_row,
            f"{found['difference']:.0e}", OK if kept else MISSED,
        )  # fmt: skip
        print(" ".join(section.rows[-1]), flush=True)
    return section


# all ------------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Measure all and write the page, or only measure some parts or instances."""
    parser = argparse.ArgumentParser(prog="python -m bench structure")
    parser.add_argument("parts", nargs="*", help="given, soft, ordinary; all without any")
    parser.add_argument("--set", default=os.environ.get(VARIABLE), help=f"the folder of instances; also {VARIABLE}")
    parser.add_argument("--only", default="", help="letters in the names of instances")
    chosen = parser.parse_args(arguments)
    if unknown := [part for part in chosen.parts if part not in ("given", "soft", "ordinary")]:
        parser.error(f"unknown part {unknown[0]!r}, expected some of given, soft, ordinary")
    parts = chosen.parts or ("given", "soft", "ordinary")
    folder, instances = Path(), []
    if set(parts) != {"ordinary"}:
        if chosen.set is None or not (Path(chosen.set) / "instances.json").exists():
            sys.exit(SOURCE.format(variable=VARIABLE))
        folder = Path(chosen.set).resolve()
        instances = json.loads((folder / "instances.json").read_text(encoding="utf-8"))
    instances = [instance for instance in instances if chosen.only in instance["name"]]
    run = {"given": partial(given, folder, instances), "soft": partial(soft, folder, instances), "ordinary": ordinary}
    sections = []
    for part in parts:
        sections.append(run[part]())
        print(sections[-1].text(), flush=True)
    if not chosen.parts and not chosen.only:
        write(PAGE, "Benchmark: wide but structured networks", intro(), sections)


if __name__ == "__main__":
    main(sys.argv[1:])
