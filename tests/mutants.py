"""Whether `make quick` notices what is broken: one planted fault for each room, in a copy of the sources.

Run with: python -m tests.mutants [ROOM ...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A line of a file, and what it becomes."""

    file: str
    line: str
    planted: str


MUTANTS = {
    "base": Mutant("base/text.py", "'' if count == 1 else 's'", "'' if count == 0 else 's'"),
    "model": Mutant("model/graph.py", "if not below.isdisjoint(node.parents):", "if below.issuperset(node.parents):"),
    "evidence": Mutant(
        "evidence/likelihoods.py", "scaled: Floats = table / total", "scaled: Floats = table / table.max(0)"
    ),
    "compiler": Mutant("compiler/prune.py", "stack.extend(net.parents(name))", "stack.extend(net.parents(name)[:1])"),
    "engines": Mutant("engines/results.py", "total = flat(joint).sum(axis=1)", "total = flat(joint).max(axis=1)"),
    "query": Mutant("query/answers/selection.py", "np.minimum(sum(terms[1:], start=terms[0]), 1.0)", "terms[0]"),
    "io": Mutant("io/formats/bif.py", "for parent in node.parents))", "for parent in reversed(node.parents)))"),
    "theory": Mutant(
        "theory/universal/neural.py", "build.tests(total, zero, total, zero", "build.tests(total, zero, total, one"
    ),
    "learn": Mutant("learn/fitting/losses.py", "off * (2 / len(off))", "off * (1 / len(off))"),
    "views": Mutant("views/svg.py", "{escape(text.text)}", "{text.text}"),
    "torch": Mutant("torch/inputs.py", "torch.stack([column, 1 - column])", "torch.stack([1 - column, column])"),
    "sklearn": Mutant("sklearn/explanation.py", "int(self.predicted.argmax())", "int(self.predicted.argmin())"),
    "clusters": Mutant("clusters/scoring.py", "called.get(name, name)", "name"),
    "serve": Mutant("serve/guard.py", "allowed = name in self.names or", "allowed = name not in self.names or"),
    "cli": Mutant("cli/shared/output.py", "given {', '.join(evidence)}", "given {''.join(evidence)}"),
}


# as in the Makefile
COMMAND = ["-m", "pytest", "-q", "-x", "-n", "2", "-m", "not slow and not hypothesis", "@tests/quick.txt"]


def notices(mutant: Mutant | None) -> bool:
    """Whether `make quick` fails on a copy of the sources with this fault, or without any."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            path = sources / "tacit" / mutant.file
            text = path.read_text(encoding="utf-8")
            assert text.count(mutant.line) == 1, f"{mutant.file} has it {text.count(mutant.line)} times: {mutant.line}"
            path.write_text(text.replace(mutant.line, mutant.planted), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(sources), "TACIT_CASES": "few"}
        done = subprocess.run([sys.executable, *COMMAND], cwd=ROOT, env=environment, capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print(f"  {failed[0][:110] if failed else done.stdout.splitlines()[-1]}")
    return done.returncode != 0


def main() -> None:
    """Plant one fault after the other."""
    if notices(None):
        raise SystemExit("`make quick` fails without any fault")
    missed = []
    for room in sys.argv[1:] or MUTANTS:
        caught = notices(MUTANTS[room])
        print(f"{room}: {'noticed' if caught else 'MISSED'}", flush=True)
        missed += [] if caught else [room]
    raise SystemExit(f"missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
