"""`TACModule`: a compiled query as a PyTorch module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tacit.base.errors import NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.learn.fitting.parameters import Parameters
from tacit.query.compiled_query import check_same_structure
from tacit.query.network import Network
from tacit.query.query import compiled
from tacit.query.tac import TAC
from tacit.torch.backends import Backend, backend
from tacit.torch.density_layer import DensityLayer
from tacit.torch.inputs import EvidenceTensors, read

DTYPES = {torch.float64: "float64", torch.float32: "float32"}


class TACModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """A compiled query as a torch module: evidence in, posterior out, differentiable in numbers and evidence.

    Parameters
    ----------
    tac
        The compiled query. Numbers that are NaN are learned, and those of tables with `learn=True`; all others are
        known and never change. Where there is nothing to learn, the module is a layer of knowledge without
        parameters of its own.
    slopes
        Whether the slopes of sigmoids are learned, too.
    seed
        The seed of the numbers that have no start of their own.
    tables
        The variables whose tables come with the evidence, as other networks write them; those in `per_row` of the query
        do, too.

    `weights`, the only parameter of tables, is free: any value of it makes legal ones. The numbers of densities that
    are learned are in `densities`: means as they are, deviations and rates as their logarithms. On the CPU the query
    runs on its own engine, second derivatives on tensors; with `engine="torch"` in `tacit.compile`, everything runs on
    tensors.

    >>> import tacit, torch
    >>> module = TACModule(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]))
    >>> module({"A": torch.tensor([0.8, 0.1]), "C": torch.tensor([[0.6, 0.4], [1.0, 3.0]])})
    tensor([[0.5854, 0.4146],
            [0.6719, 0.3281]], dtype=torch.float64)
    >>> module = TACModule(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]), tables=["A"])
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> module({"A.log_table": scores.log_softmax(dim=-1)})[0, 0].backward()
    >>> scores.grad.round(decimals=4)
    tensor([ 0.0500, -0.0500], dtype=torch.float64)
    """

    def __init__(self, tac: TAC, slopes: bool = False, seed: int = 0, tables: Sequence[str] = ()) -> None:
        super().__init__()
        if not isinstance(tac, TAC):
            raise TacitError(f"a TACModule needs a query of a Network, got a {type(tac).__name__}")
        tac.variable  # noqa: B018  (an error where the query is not one variable)
        tac = _with_tables(tac, tables)
        self.tac = tac.with_network(tac.network)
        self._learned = Parameters(tac.network, tac.program.nodes, slopes)
        start = torch.tensor(self._learned.start(np.random.default_rng(seed)), dtype=getattr(torch, tac.dtype))
        if self._learned.count:
            self.weights = nn.Parameter(start)
        else:
            self.register_buffer("weights", start, persistent=False)  # empty: it says in which dtype to run, and where
        layers = list(_layers(tac, start.dtype, np.random.default_rng(seed)))
        self.densities = nn.ModuleList(layers) if layers else None
        self._backends: dict[tuple[torch.device, torch.dtype], Backend] = {}

    def forward(self, evidence: EvidenceTensors = None) -> Tensor:
        """The posterior (rows, states of the query); NaN, and no gradient, where the evidence has probability zero.

        Evidence is a column per variable: floats (rows,), the likelihood of a binary variable's first state; floats
        (rows, states), a likelihood per state, in any scale; integers (rows,), the positions of the observed states of
        a variable in `hard`; floats (rows,) or (rows, columns), the numbers of a continuous variable, NaN where they
        are missing. A column of one row stands for all. A variable that is left out has no evidence, nor has a row of
        equal likelihoods; a likelihood of NaN is an error of whatever made it, and is passed on. Or evidence is a table
        of floats (rows, variables) in the order of `tac.evidence`, if all are binary and none is hard.

        Tables of `T`, one of the `tables`, are floats (rows, states of each parent, states of T), or without rows, for
        all of them: probabilities as `"T.table"`, or their logarithms as `"T.log_table"`. They count as they are, so
        each of their rows must sum to 1, as `softmax` and `log_softmax` make them.

        On the CPU, wrong tables, negative likelihoods and positions outside the states are errors. On a GPU they are
        not looked for, since the answer would have to be waited for.
        """
        inputs = read(self.tac, evidence, self.weights).with_densities(self._layers)
        return self._backend().posterior(self.weights, inputs)

    def network(self) -> Network:
        """The network with the learned numbers filled in; what is known are the same bits as before."""
        net = self._learned.fill(self.weights.detach().double().cpu().numpy())
        densities = {name: layer.density() for name, layer in self._layers.items()}
        for names in net.ties.values():  # also those that the query does not need
            learned = next((densities[name] for name in names if name in densities), None)
            if learned is not None:
                densities.update(dict.fromkeys(names, learned))
        return net.with_cpts(densities)

    def load_network(self, net: Network) -> None:
        """Take the learned numbers of a network of the same structure, with the same known numbers."""
        weights = self._learned.weights(_numbers(self._learned, self.tac, net))
        with torch.no_grad():
            self.weights.copy_(torch.from_numpy(weights))
        for name, layer in self._layers.items():
            layer.load(net.density(name))

    def extra_repr(self) -> str:
        return f"query={self.tac.query!r}, evidence={list(self.tac.evidence)}, {plural(self._learned.count, 'weight')}"

    @property
    def _layers(self) -> dict[str, DensityLayer]:
        return {layer.variable.name: layer for layer in self.densities or () if isinstance(layer, DensityLayer)}

    def _backend(self) -> Backend:
        device, dtype = key = self.weights.device, self.weights.dtype
        if dtype not in DTYPES:
            raise TacitError(f"the module is in {dtype}, expected torch.float32 or torch.float64")
        if key not in self._backends:
            tac, name = self.tac, DTYPES[dtype]
            if name == "float32" and tac.dtype == "float64":  # its program does not rescale often enough
                tac = tac.in_dtype(name)
            # numbers to start from: engines rely on their exact 0s and 1s, which stay
            net = self._learned.fill(self._learned.start(np.random.default_rng(0)))
            self._backends[key] = backend(tac.with_network(net, name), self._learned, device)
        return self._backends[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_backends": {}}  # engines are made anew where the copy is used


def _with_tables(tac: TAC, tables: Sequence[str]) -> TAC:
    """The query, compiled anew where rows bring more tables along."""
    if isinstance(tables, str):
        raise TacitError(f"tables must be a sequence of names, e.g. [{tables!r}]")
    names = tuple(dict.fromkeys((*tac.per_row, *tables)))
    if names == tac.per_row:
        return tac
    evidence = [name for name in tac.evidence if name not in tac.do]
    return compiled(TAC, tac.network, tac.query, evidence, tac.hard, replace(tac.options, per_row=names))


def _layers(tac: TAC, dtype: torch.dtype, random: np.random.Generator) -> Iterator[DensityLayer]:
    """The densities of the continuous variables that the query reads; tied ones share their weights."""
    leaders: dict[str | None, DensityLayer] = {}
    for name in filter(set(tac.network.continuous).__contains__, tac.program.likelihoods):
        density = tac.network.density(name)
        layer = DensityLayer(tac.network.variable(name), density, dtype, random, leaders.get(density.tie))
        if density.tie is not None:
            leaders.setdefault(density.tie, layer)
        yield layer


def _numbers(learned: Parameters, tac: TAC, net: Network) -> Floats:
    """The learned numbers as `net` has them; an error where it differs in what is known."""
    check_same_structure(tac, net)
    net.require_numbers(tac.program.nodes)
    numbers, places = np.empty(learned.entries), {place.key: place for place in learned.places}
    for node in dict.fromkeys((*tac.program.nodes, *tac.program.fixed)):
        known = tac.network.cpt(node).parts()
        for part, table in net.cpt(node).parts().items():
            same, place = (table == known[part]).ravel(), places.get((node, part))
            if place is not None:
                numbers[place.first : place.first + len(place.index)] = table.ravel()[place.index]
                same[place.index] = True
            if not same.all():
                raise NetworkError(f"node {node!r}: {part} differs in numbers that are known; only learned ones may")
        before, slope = (getattr(n.cpt(node), "gamma", None) for n in (tac.network, net))
        if slope is not None and node in learned.slope_entries:
            numbers[learned.slope_entries[node]] = slope
        elif slope != before:
            raise NetworkError(f"node {node!r}: its slope is {slope}, expected {before}; see Network.with_gamma")
    return numbers
