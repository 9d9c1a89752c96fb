"""A run of training in one file, written atomically, so that training that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import FormatError
from tacit.io.atomic import write_atomically
from tacit.learn.optimisers import State
from tacit.learn.run import Record, Run

FORMAT = "tacit-training-1"
PLAIN = ("alive", "stage", "round", "best_stage", "best_loss", "stale", "steps", "finished")  # what needs no array


def fingerprint(settings: Any, arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    """What a training depends on, as a short text: a run may only go on with the same."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_run(path: str | os.PathLike[str], run: Run, key: str) -> None:
    """Store a run."""
    states = [
        {"loss": s.loss, "steps": s.steps, "done": s.done, "memory": sorted(s.memory)} for s in run.states
    ]  # fmt: skip
    head = {
        "format": FORMAT,
        "key": key,
        "states": states,
        "run": {name: getattr(run, name) for name in PLAIN},
        "history": [list(asdict(record).values()) for record in run.history],
    }
    arrays: dict[str, np.ndarray[Any, Any]] = {f"weights{i}": state.weights for i, state in enumerate(run.states)}
    arrays |= {f"{name}{i}": array for i, state in enumerate(run.states) for name, array in state.memory.items()}
    if run.best is not None:
        arrays["best"] = run.best
    arrays["head"] = np.array(json.dumps(head))
    write_atomically(path, lambda file: np.savez(file, **arrays), binary=True)  # type: ignore[arg-type]


def read_run(path: str | os.PathLike[str], key: str) -> Run | None:
    """The run that was stored, if there is one; an error if it is of another training."""
    if not Path(path).exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        head = json.loads(str(arrays["head"]))
        if head["format"] != FORMAT:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise FormatError(f"{path} is not a checkpoint of a training ({error}); remove it to start anew") from None
    if head["key"] != key:
        raise FormatError(
            f"{path} is the checkpoint of a training with another network, other data or other settings; "
            "remove it to start anew, or name another file"
        )
    states = [
        State(arrays[f"weights{i}"], s["loss"], s["steps"], s["done"], {n: arrays[f"{n}{i}"] for n in s["memory"]})
        for i, s in enumerate(head["states"])
    ]
    return Run(states, best=arrays.get("best"), history=[Record(*line) for line in head["history"]], **head["run"])
