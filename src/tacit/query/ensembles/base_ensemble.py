"""Networks of one structure: draws from a distribution of tables, samples of a bootstrap, or opinions of experts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np

from tacit.base.errors import NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.engines.draws import Draws
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import AnyDensity, BaseDensity
from tacit.model.model import Model
from tacit.model.rules import NoisyOr
from tacit.query.ensembles.dirichlet import Dirichlet, Key

M = TypeVar("M", bound=Model)
Stacked = CPT | TestingCPT | BaseDensity  # CPTs that are made anew from the arrays of their parts


class BaseEnsemble(Generic[M]):
    """Many networks of one structure; see `Ensemble`, which users hold."""

    def __init__(
        self,
        network: M,
        parts: Mapping[Key, Floats],
        slopes: Mapping[str, tuple[float | None, ...]] | None = None,
        causes: Mapping[str, Sequence[NoisyOr]] | None = None,
        dirichlets: Sequence[Dirichlet] = (),
        count: int | None = None,
    ) -> None:
        """Networks that are `network` but for some parts (draws, *shape) of CPTs, slopes and noisy-ors.

        `dirichlets` are the distributions that tables were drawn from, of those where they are known. Where nothing
        differs, `count` says how many networks there are.
        """
        self.network, self.parts, self.dirichlets = network, dict(parts), tuple(dirichlets)
        self.slopes, self.causes = dict(slopes or {}), dict(causes or {})
        lengths = {*map(len, self.parts.values()), *map(len, self.slopes.values()), *map(len, self.causes.values())}
        self._count = lengths.pop() if lengths else count or 1
        assert not lengths, "parts of different numbers of networks"

    @classmethod
    def of(cls, networks: Iterable[M]) -> Self:
        """The ensemble of some networks, which have the same variables, states and edges, and the same kinds of CPT."""
        listed = list(networks)
        if not listed:
            raise TacitError("an ensemble needs at least one network")
        for i, net in enumerate(listed):
            if not isinstance(net, Model):
                raise TacitError(f"network {i} is a {type(net).__name__}, expected a Network")
            _check_same(listed[0], net, i)
        parts: dict[Key, Floats] = {}
        slopes: dict[str, tuple[float | None, ...]] = {}
        causes: dict[str, list[NoisyOr]] = {}
        means: dict[str, Any] = {}
        for name in listed[0]:
            cpts: list[Any] = [net.cpt(name) for net in listed]
            if all(cpt is cpts[0] or cpt == cpts[0] for cpt in cpts):
                continue
            if isinstance(cpts[0], NoisyOr):
                causes[name] = cpts
                means[name] = _mean_of_causes(cpts)
                continue
            if not isinstance(cpts[0], Stacked):
                raise NetworkError(f"node {name!r} differs, and a {type(cpts[0]).__name__} has no numbers that could")
            own = {part: np.stack([cpt.parts()[part] for cpt in cpts]) for part in cpts[0].parts()}
            parts |= {(name, part): tables for part, tables in own.items() if (tables != tables[0]).any()}
            if isinstance(cpts[0], TestingCPT) and len({cpt.gamma for cpt in cpts}) > 1:
                slopes[name] = tuple(cpt.gamma for cpt in cpts)
            means[name] = _with_parts(cpts[0], {part: tables.mean(axis=0) for part, tables in own.items()})
        return cls(listed[0].with_cpts(means), parts, slopes, causes, count=len(listed))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, i: int) -> M: ...

    @overload
    def __getitem__(self, i: slice) -> Self: ...

    def __getitem__(self, i: int | slice) -> M | Self:
        """One of the networks; of a slice, the ensemble of these."""
        if isinstance(i, slice):
            return self._some(i)
        place = range(len(self))[i]
        cpts: dict[str, Any] = {name: cpts[place] for name, cpts in self.causes.items()}
        for name in self.differing:
            if name not in cpts:
                cpts[name] = self._cpt(name, place)
        return self.network.with_cpts(cpts)

    def __iter__(self) -> Iterator[M]:
        return (self[i] for i in range(len(self)))

    def _some(self, which: slice) -> Self:
        if not range(len(self))[which]:
            raise TacitError(f"no network of {len(self)} is in {which}")
        parts = {key: tables[which] for key, tables in self.parts.items()}
        slopes, causes = ({n: own[which] for n, own in kind.items()} for kind in (self.slopes, self.causes))
        count = len(range(len(self))[which])
        return type(self)(self.network, parts, slopes, causes, self.dirichlets, count)  # type: ignore[arg-type]

    def moved_to(self, network: M, without: Collection[str] = ()) -> Self:
        """The same draws in a network with further nodes, and with some nodes that have one table in all draws."""
        parts = {key: own for key, own in self.parts.items() if key[0] not in without}
        slopes = {name: own for name, own in self.slopes.items() if name not in without}
        causes = {name: own for name, own in self.causes.items() if name not in without}
        return type(self)(network, parts, slopes, causes, count=len(self))

    @cached_property
    def differing(self) -> tuple[str, ...]:
        """The nodes whose numbers differ."""
        names = {*(node for node, _ in self.parts), *self.slopes, *self.causes}
        return tuple(name for name in self.network if name in names)

    @cached_property
    def _by_node(self) -> dict[str, dict[str, Floats]]:
        by_node: dict[str, dict[str, Floats]] = {name: {} for name in self.differing}
        for (node, part), tables in self.parts.items():
            by_node[node][part] = tables
        return by_node

    def _cpt(self, name: str, i: int) -> Any:
        own = {part: tables[i] for part, tables in self._by_node[name].items()}
        settings = {"gamma": self.slopes[name][i]} if name in self.slopes else {}
        return _with_parts(self.network.cpt(name), own, **settings)

    def density(self, name: str, i: int) -> AnyDensity:
        """The density of a continuous node in one of the networks."""
        cpt: AnyDensity = self._cpt(name, i) if name in self.differing else self.network.density(name)
        return cpt

    @property
    def learnable(self) -> M:
        """The means, where what differs is to be learned: no program has it built in."""
        learnable = self.network.learnable()
        return self.network.with_cpts({name: learnable.cpt(name) for name in self.differing})

    def draws(self, nodes: Iterable[str]) -> Draws:
        """The numbers of some nodes, as engines take them."""
        wanted = set(nodes)
        tables = {key: own for key, own in self.parts.items() if key[0] in wanted}
        for name in wanted.intersection(self.causes):
            by_draw = [cpt.parts() for cpt in self.causes[name]]
            tables |= {(name, part): np.stack([own[part] for own in by_draw]) for part in by_draw[0]}
        return Draws(len(self), tables, {name: own for name, own in self.slopes.items() if name in wanted})

    def __repr__(self) -> str:
        differ = len(self.differing)
        how = f"{differ} of which {'differs' if differ == 1 else 'differ'}"
        networks, nodes = plural(len(self), "network"), plural(len(self.network.variables), "node")
        return f"{type(self).__name__}({networks}, {nodes}, {how})"


AnyEnsemble = BaseEnsemble[Any]


def _with_parts(cpt: Any, parts: Mapping[str, Floats], **settings: Any) -> Any:
    """A CPT with other numbers."""
    if isinstance(cpt, CPT):
        return CPT(parts.get("table", cpt.table), cpt.learn, cpt.tie)
    return cpt.with_parts(parts, **settings)


def _mean_of_causes(cpts: Sequence[NoisyOr]) -> NoisyOr:
    """A noisy-or with the means of all numbers."""
    first = cpts[0]
    causes = [np.mean(own, axis=0) for own in zip(*(cpt.causes for cpt in cpts), strict=True)]
    named = causes if first.names is None else dict(zip(first.names, causes, strict=True))
    return NoisyOr(named, float(np.mean([cpt.leak for cpt in cpts])), learn=first.learn)


def _check_same(first: Model, net: Model, i: int) -> None:
    """An error unless a network has the variables, families and kinds of CPT of the first one."""
    if set(net.variables) != set(first.variables):
        other = sorted(set(net.variables) ^ set(first.variables))[0]
        raise NetworkError(f"network {i} and network 0 have other variables: {other!r} is in one of them only")
    if net.selection != first.selection:
        raise NetworkError(f"network {i} has selection={net.selection!r}, and network 0 {first.selection!r}")
    same: dict[str, Callable[[Model, str], Any]] = {
        "parents": lambda of, name: of.parents(name),
        "states": lambda of, name: of.node(name).variable,
        "kind of CPT": lambda of, name: (type(of.cpt(name)), *sorted(of.cpt(name).parts())),
        "tests": lambda of, name: getattr(of.cpt(name), "test", np.empty(0)).tolist(),
    }
    for name in first:
        for what, told in same.items():
            if told(net, name) != told(first, name):
                raise NetworkError(f"node {name!r}: network {i} and network 0 differ in its {what}; "
                                   "an ensemble has networks of one structure")  # fmt: skip
    if net.value_nodes != first.value_nodes:
        raise NetworkError(f"network {i} and network 0 have other value nodes; an ensemble has draws of probabilities")
    net.require_numbers(net.variables)
