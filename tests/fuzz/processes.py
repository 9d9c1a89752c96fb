"""Runs of the command line that are killed, and two that write the same output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tacit

ROWS = 300_000  # several batches


def check_batch(rng: np.random.Generator) -> str:
    """Kill a run at any time, then go on; or start two runs of different models for one output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second = tacit.examples.abc(), tacit.examples.abc().with_cpts({"A": [0.9, 0.1]})
        tacit.write(first, folder / "first.json")
        tacit.write(second, folder / "second.json")
        states = np.array(["true", "false"])[rng.integers(2, size=ROWS)]
        (folder / "rows.csv").write_text("A\n" + "\n".join(states) + "\n")
        suffix = str(rng.choice(["csv", "parquet"]))
        expected = []
        for model in ("first", "second"):
            _finish(_start(folder, model, f"{model}.{suffix}"))
            expected.append((folder / f"{model}.{suffix}").read_bytes())
        check = _killed if rng.random() < 0.5 else _two_writers
        return check(rng, folder, f"out.{suffix}", expected)


def _killed(rng: np.random.Generator, folder: Path, output: str, expected: list[bytes]) -> str:
    process = _start(folder, "first", output)
    time.sleep(float(rng.uniform(0.5, 4.0)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    _finish(_start(folder, "first", output))
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if left:
        return f"left behind: {left}"
    return "" if (folder / output).read_bytes() == expected[0] else "killed and resumed, the answers are others"


def _two_writers(rng: np.random.Generator, folder: Path, output: str, expected: list[bytes]) -> str:
    processes = [_start(folder, "first", output)]
    time.sleep(float(rng.uniform(0.0, 3.0)))
    processes.append(_start(folder, "second", output))
    codes = [process.wait() for process in processes]
    if set(codes) - {0, 1} or codes == [1, 1]:
        return f"two writers ended with {codes}"
    allowed = [answer for answer, code in zip(expected, codes, strict=True) if code == 0]
    return "" if (folder / output).read_bytes() in allowed else f"two writers ended with {codes} and mixed answers"


def _start(folder: Path, model: str, output: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tacit.cli", "batch", f"{model}.json", "rows.csv", "-q", "B", "-o", output]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _finish(process: subprocess.Popen[bytes]) -> None:
    _, error = process.communicate()
    assert process.returncode == 0, error.decode()
