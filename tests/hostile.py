"""Read files in processes of their own, under limits: what a file may do is make a network, or be refused.

`outcomes` reads each file in a child of one process that has imported tacit already, so that a file costs little more
than its reading. The child may not grow by more than `MEMORY`, and is stopped after `SECONDS` of its own time, so that
a hang or an explosion ends as a failed test. Also a program: `python -m tests.hostile net.bif other.json`.
"""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass

if sys.platform != "win32":
    import resource

MEMORY = 10**9  # bytes
SECONDS = 20  # of the processor; four times what is promised, for slow machines


@dataclass
class Outcome:
    """What came of a file: "network", "refused" (a TacitError), or what should not be."""

    result: str
    message: str
    seconds: float
    megabytes: float  # of the process at most, with the 100 or so of tacit itself


def outcomes(paths: Sequence[object]) -> list[Outcome]:
    """What comes of reading each file."""
    command = [sys.executable, "-m", "tests.hostile", *map(str, paths)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]


def _outcome(path: str) -> Outcome:
    """The outcome of one file, read in a child."""
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiver)
        _limit()
        try:
            os.write(sender, json.dumps(_read(path)).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        said = answer.read()
    _, status, used = os.wait4(child, 0)
    result, message = json.loads(said) if said else ("killed", f"by signal {status & 0x7F}")
    return Outcome(result, message, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def _limit() -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    space = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _read(path: str) -> tuple[str, str]:
    import tacit
    from tacit.engines.circuit import Circuit
    from tacit.io.formats import uai

    try:
        with warnings.catch_warnings(action="ignore", category=tacit.RoundingWarning):
            if path.endswith(".evid"):
                return "network", f"{len(uai.read_evidence(path))} columns"
            if path.endswith(".inst"):
                return "network", f"{len(tacit.read_evidence(path, tacit.examples.abc()))} states"
            if path.endswith(".circuit"):
                with open(path) as file:
                    return "network", repr(Circuit.from_text(file.read()))
            return "network", repr(tacit.read(path))
    except tacit.TacitError as error:
        return "refused", str(error)[:2000]
    except BaseException as error:
        return f"{type(error).__name__}", str(error)[:2000]


if __name__ == "__main__":
    import tacit.engines.circuit.circuit_text
    import tacit.io.formats.uai  # noqa: F401

    for name in sys.argv[1:]:
        print(json.dumps(asdict(_outcome(name))), flush=True)
