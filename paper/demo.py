"""The paper at work, run by `make demo`: two worked examples, then its experiments, which end in a report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paper import report
from paper.experiments import Store, plan
from paper.running import Progress, run
from tacit import semantics
from tacit.base.machine import usable_cores
from tacit.base.text import bars
from tacit.examples import abc, noisy_or_classifier


def main() -> None:
    """Show the examples, run the experiments, and say where the report is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="build/paper", help="where to put the report (%(default)s)")
    parser.add_argument("--effort", type=float, default=1.0, help="more or fewer steps and restarts (%(default)s)")
    given = parser.parse_args()
    worked_examples()
    try:
        path = experiments(Path(given.folder), given.effort)
    except KeyboardInterrupt:
        sys.exit("\nStopped. What is finished is kept: the same command goes on from here.")
    print(f"\nThe report: {path.resolve().as_uri()}")


def worked_examples() -> None:
    """Show the paper's first two networks at work."""
    net = noisy_or_classifier(threshold=0.7)
    print(net)
    for x1 in ("true", "false"):
        row = {"X1": x1, "X2": "false", "X3": "true"}
        hidden = semantics.posterior(net, "H", row)[0, 0]
        decision = semantics.posterior(net, "Y", row)[0, 0]
        print(f"  {row}: P(H) = {hidden:.3f}, P(H) >= 0.7 is {bool(decision)}, P*(Y = true) = {decision:g}")

    net = abc()
    print(f"\n{net}: the posterior of B as evidence on A grows")
    for value in (0.1, 0.5, 0.7, 0.9):
        weight = semantics.select(net, {"A": value}).nodes["B"].weight
        print(f"\n  evidence on A: {value}   tables selected: {['minus', 'plus'][int(weight[0])]} for A=true, "
              f"{['minus', 'plus'][int(weight[1])]} for A=false")  # fmt: skip
        print(bars(net.states("B"), semantics.posterior(net, "B", {"A": value})[0].tolist()))


def experiments(folder: Path, effort: float) -> Path:
    """Run what is not stored yet, and write the report; its path."""
    tasks, store, workers = plan(), Store(folder, effort), usable_cores()
    print(f"\nThe paper's experiments: {len(tasks)} fits, about two minutes on two cores (results are kept)")
    results = run(tasks, store, workers, Progress(len(tasks), store, workers))
    print("\nDrawing", flush=True)
    return report.write(results, folder)


if __name__ == "__main__":
    main()
