"""Trials until the time is up: `python -m tests.fuzz --minutes 5 --seed 7`.

Every trial has a seed of its own, which is printed with what it found: `--seed N --trials 1 --only NAME` repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial

import numpy as np

from tests.fuzz import extreme, files, ordinary, processes, questions, switches

Check = Callable[[np.random.Generator], str]


def check_extreme(rng: np.random.Generator, engine: str, dtype: str) -> str:
    """Numbers beyond the range of floats."""
    return extreme.compare(extreme.trial(rng), engine, dtype)


CHECKS: dict[str, tuple[Check, float]] = {  # with the share of the time that each may have
    "queries": (ordinary.check_query, 0.2),
    "questions": (questions.check_questions, 0.12),
    "switches": (switches.check_switches, 0.15),
    "threads": (ordinary.check_threads, 0.1),
    "files": (files.check_files, 0.1),
    "processes": (processes.check_batch, 0.12),
    "extreme-tape": (partial(check_extreme, engine="tape", dtype="float64"), 0.06),
    "extreme-auto": (partial(check_extreme, engine="auto", dtype="float64"), 0.06),
    "extreme-numpy": (partial(check_extreme, engine="numpy", dtype="float64"), 0.04),
    "extreme-torch": (partial(check_extreme, engine="torch", dtype="float64"), 0.04),
    "extreme-float32": (partial(check_extreme, engine="tape", dtype="float32"), 0.06),
}


def main() -> int:
    """Run all checks, or one of them; the number of trials that found something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long all checks together may take")
    parser.add_argument("--trials", type=int, help="how many trials each check makes at most")
    parser.add_argument("--seed", type=int, help="the seed of the first trial; a new one each time if left out")
    parser.add_argument("--only", choices=list(CHECKS), help="one check only")
    given = parser.parse_args()
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    chosen = {given.only: (CHECKS[given.only][0], 1.0)} if given.only else CHECKS
    failed = 0
    for name, (check, share) in chosen.items():
        failed += _campaign(name, check, seed, share * given.minutes * 60, given.trials)
    return min(failed, 1)


def _campaign(name: str, check: Check, seed: int, seconds: float, trials: int | None) -> int:
    """Trials of one check until its time is up, at least one."""
    start, failed = time.monotonic(), 0
    for number in itertools.count():
        if number and (time.monotonic() - start > seconds or number == trials):
            break
        try:
            wrong = check(np.random.default_rng(seed + number))
        except Exception:
            wrong = traceback.format_exc()
        if wrong:
            failed += 1
            print(f"{name}, seed {seed + number}: {wrong}", flush=True)
    print(f"{name}: {number} trials, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
