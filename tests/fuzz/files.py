"""Damaged files in every format: a network, or a TacitError, within limits of time and memory."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np

import tacit
from tests.fuzz import ordinary
from tests.hostile import outcomes

SUFFIXES = (
    ".json",
    ".bif",
    ".xmlbif",
    ".uai",
    ".net",
    ".dne",
    ".markov.uai",
    ".erg",
    ".circuit",
    ".json.gz",
    ".bif.gz",
)
FILES = 40  # read by one process
SNIPPETS = (
    b"nan",
    b"-1",
    b"1e999",
    b"inf",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b'"',
    b"<",
    b">",
    b"\x00",
    b"\xff",
    b" " * 99,
)


def check_files(rng: np.random.Generator) -> str:
    """Files of some networks, each damaged in its own way."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [_damaged(rng, Path(folder) / f"file{i}") for i in range(FILES)]
        for path, outcome in zip(paths, outcomes(paths), strict=True):
            if outcome.result not in ("network", "refused"):
                return f"{path.name}: {outcome.result}, {outcome.message}: {path.read_bytes()[:2000]!r}"
    return ""


def _damaged(rng: np.random.Generator, path: Path) -> Path:
    suffix = str(rng.choice(SUFFIXES))
    path = path.with_suffix(suffix)
    net = ordinary.network(rng, testing=not suffix.startswith((".bif", ".uai", ".dne", ".markov", ".erg")))
    if suffix == ".circuit":
        text = tacit.compile(net, net.variables[-1], net.variables[:1]).circuit().to_text()
        path.write_text(_mutated(rng, text.encode()).decode(errors="replace"), encoding="utf-8")
    elif suffix == ".dne":
        path.write_bytes(_mutated(rng, _netica(net).encode()))
    elif suffix == ".erg":
        path.write_bytes(_mutated(rng, _ergo(net).encode()))
    elif suffix == ".markov.uai":
        tacit.write(_graph(net), path)
        path.write_bytes(_mutated(rng, path.read_bytes()))
    elif suffix.endswith(".gz"):
        tacit.write(net, path)
        packed = path.read_bytes()
        inner = gzip.compress(_mutated(rng, gzip.decompress(packed)))
        path.write_bytes(inner if rng.random() < 0.5 else _mutated(rng, packed))
    else:
        tacit.write(net, path)
        path.write_bytes(_mutated(rng, path.read_bytes()))
    return path


def _graph(net: tacit.Network) -> tacit.FactorGraph:
    """A network as a Markov network, whose factors are its tables."""
    graph = tacit.FactorGraph(net.name)
    for name in net:
        graph.add(name, net.states(name))
        graph.add_factor([*net.parents(name), name], net.table(name))
    return graph


def _ergo(net: tacit.Network) -> str:
    """A network in the format of Ergo."""
    place = {name: i for i, name in enumerate(net)}
    lines = [str(len(net)), " ".join(str(len(net.states(name))) for name in net)]
    lines += [" ".join(map(str, [len(net.parents(name)), *(place[p] for p in net.parents(name))])) for name in net]
    lines += ["/* Probabilities */"]
    lines += [" ".join(map(str, [net.table(name).size, *net.table(name).ravel().tolist()])) for name in net]
    lines += ["/* Names */", *(f"n{i}" for i in range(len(net)))]
    lines += ["/* Labels */", *(" ".join(f"s{k}" for k in range(len(net.states(name)))) for name in net)]
    return "\n".join(lines)


def _netica(net: tacit.Network) -> str:
    """A network as Netica would write it."""
    nodes = [
        f"node n{i} {{ kind = NATURE; discrete = TRUE; states = ({', '.join(f's{k}' for k in net.states(name))}); "
        f"parents = ({', '.join(f'n{net.variables.index(p)}' for p in net.parents(name))}); "
        f"probs = ({', '.join(map(str, net.table(name).ravel().tolist()))}); visual V1 {{ center = (1, 2); }}; }};\n"
        for i, name in enumerate(net)
    ]
    return "// ~->[DNET-1]->~\nbnet net {\n" + "".join(nodes) + "};\n"


def _mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes changed, removed, doubled, and odd ones put in."""
    for _ in range(rng.integers(1, 6)):
        at, length = int(rng.integers(len(data) + 1)), int(rng.integers(1, 30))
        match rng.integers(5):
            case 0:
                data = data[:at] + data[at + length :]
            case 1:
                data = data[:at] + data[at : at + length] * int(rng.integers(2, 50)) + data[at:]
            case 2:
                data = data[:at] + SNIPPETS[rng.integers(len(SNIPPETS))] + data[at:]
            case 3:
                data = data[:at] + rng.bytes(1) + data[at + 1 :]
            case _:
                data = data[: max(at, 1)]
    return data
