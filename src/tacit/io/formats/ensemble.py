"""Ensembles: one .npz with the network that they vary, as JSON, and an array for each part of a CPT that differs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.archive import Arrays, packed, require, unpacked
from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError
from tacit.base.floats import Floats
from tacit.model.as_dict import network_from_dict, network_to_dict
from tacit.model.rules import NoisyOr
from tacit.query.ensembles.dirichlet import Dirichlet, Key
from tacit.query.network import Network

FORMAT = "tacit-ensemble-1"
T = TypeVar("T")


class Contents(NamedTuple):
    """What an ensemble consists of, in the order that `Ensemble` takes it."""

    network: Network
    parts: Mapping[Key, Floats]
    slopes: Mapping[str, tuple[float | None, ...]]
    causes: Mapping[str, Sequence[NoisyOr]]
    dirichlets: tuple[Dirichlet, ...]
    size: int


def write_ensemble(ensemble: Contents, path: str | os.PathLike[str]) -> None:
    """Write an ensemble; see `Ensemble.save`."""
    parts, dirichlets = _by_table(ensemble.parts), ensemble.dirichlets
    arrays = {f"part{i}": ensemble.parts[keys[0]] for i, keys in enumerate(parts)}
    for i, own in enumerate(dirichlets):
        arrays |= {f"alpha{i}": own.alpha, f"known{i}": own.known}
    for i, cpts in enumerate(ensemble.causes.values()):
        arrays[f"leak{i}"] = np.array([cpt.leak for cpt in cpts])
        arrays |= {
            f"cause{i}.{j}": np.stack(causes)
            for j, causes in enumerate(zip(*(cpt.causes for cpt in cpts), strict=True))
        }
    head = {
        "format": FORMAT,
        "count": ensemble.size,
        "network": network_to_dict(ensemble.network),
        "parts": parts,
        "dirichlets": [own.keys for own in dirichlets],
        "slopes": ensemble.slopes,
        "causes": list(ensemble.causes),
    }
    content = packed(head, arrays)
    write_atomically(path, lambda file: file.write(content), binary=True)


def read_ensemble(path: str | os.PathLike[str], make: Callable[[Contents], T]) -> T:
    """Read an ensemble, and make what the contents tell; see `Ensemble.load`."""
    content = Path(path).read_bytes()
    # zipfile, NumPy and JSON raise whatever a damaged file leads them to
    try:
        return make(_parsed(*unpacked(content, FORMAT)))
    except Exception as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        expected = "expected one that Ensemble.save wrote; tacit.load reads a network"
        raise FormatError(f"{os.fspath(path)} is not a file of an ensemble ({reason}); {expected}") from None


def _parsed(head: Mapping[str, Any], arrays: Arrays) -> Contents:
    net, count = network_from_dict(head["network"], Network), head["count"]
    require(type(count) is int and count > 0, "number of networks")
    parts = dict(_tables(net, head["parts"], arrays, count))
    dirichlets = tuple(
        Dirichlet(_keys(keys), _floats(arrays[f"alpha{i}"]), _floats(arrays[f"known{i}"]))
        for i, keys in enumerate(head["dirichlets"])
    )
    slopes = {name: tuple(gammas) for name, gammas in head["slopes"].items()}
    causes = {name: _noisy_ors(net, name, i, arrays) for i, name in enumerate(head["causes"])}
    require(all(len(own) == count for own in (*slopes.values(), *causes.values())), "number of networks")
    return Contents(net, parts, slopes, causes, dirichlets, count)


def _by_table(parts: Mapping[Key, Floats]) -> list[list[Key]]:
    """The parts that share an array, as those of tied tables do."""
    groups: dict[int, list[Key]] = {}
    for key, tables in parts.items():
        groups.setdefault(id(tables), []).append(key)
    return list(groups.values())


def _tables(
    net: Network, groups: Sequence[Sequence[Sequence[str]]], arrays: Arrays, count: int
) -> Iterator[tuple[Key, Floats]]:
    for i, keys in enumerate(groups):
        tables = _floats(arrays[f"part{i}"])
        for name, part in _keys(keys):
            require(tables.shape == (count, *net.cpt(name).parts()[part].shape), f"shape of {part} of {name!r}")
            yield (name, part), tables


def _keys(keys: Sequence[Sequence[str]]) -> tuple[Key, ...]:
    return tuple((name, part) for name, part in keys)


def _noisy_ors(net: Network, name: str, place: int, arrays: Arrays) -> list[NoisyOr]:
    cpt = net.cpt(name)
    assert isinstance(cpt, NoisyOr), f"node {name!r} is not a noisy-or"
    causes = [_floats(arrays[f"cause{place}.{j}"]) for j in range(len(cpt.causes))]
    leaks = _floats(arrays[f"leak{place}"]).tolist()
    own = [[cause[i] for cause in causes] for i in range(len(leaks))]
    parents = net.parents(name)
    return [
        NoisyOr(dict(zip(parents, some, strict=True)), leak, cpt.learn) for some, leak in zip(own, leaks, strict=True)
    ]


def _floats(array: NDArray[Any]) -> Floats:
    require(array.dtype == np.float64, "kind of numbers")
    return array
