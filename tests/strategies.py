"""Random networks and random evidence for hypothesis.

Hypothesis chooses, and shrinks, what shapes a case: the number of variables, their states, the DAG and the kind of
every CPT and column. The numbers inside tables come from a generator whose seed it draws: thousands of
single draws would cost more than they find. Tables hold exact 0s and 1s and dyadic numbers often enough for
impossible evidence and exact ties to occur; `tie_margin` tells how far a case is from a tie.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tacit import CPT, Density, Gaussian, LogNormal, Mux, Network, NoisyOr, Poisson, TestingCPT, semantics
from tacit.model.elements.variable import Label, Variable
from tacit.model.model import SELECTIONS

TESTS = (">=", ">", "<=", "<")
MAX_PARENTS = 3

rngs = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def networks(
    draw: st.DrawFn,
    max_nodes: int = 6,
    testing: bool = True,
    factored: bool = True,
    unset: bool = False,
    singles: bool = False,
    tables: int = 4,
) -> Network:
    """A network of 1 to `max_nodes` variables, with testing nodes, factored CPTs, numbers to be learned as asked.

    Testing nodes have two tables, and up to `tables` now and then. With `singles`, every second variable or so has one
    state: as a parent, an effect, the query or evidence.
    """
    count = draw(st.integers(1, max_nodes))
    net = Network(
        draw(st.none() | st.text(max_size=5)), draw(st.sampled_from(SELECTIONS if testing else SELECTIONS[:1]))
    )
    rng = draw(rngs)
    for name in draw(_names(count)):
        parents = draw(_parents(net.variables))
        states = draw(labels([1, 2, 1, 3]) if singles else labels())
        above = [net.variable(p) for p in parents]
        kinds = ["table"] + ["testing"] * (2 * testing * bool(parents)) + ["unset"] * unset + ["factored"] * factored
        kind = draw(st.sampled_from(kinds))
        net.add(name, parents, states, _cpt(kind, rng, above, 2 if states is None else len(states), tables))
    return net


@st.composite
def tied_networks(draw: st.DrawFn, **kinds: Any) -> Network:
    """A network (with `kinds` as for `networks`) whose tables of the same kind and shape are tied."""
    net = draw(networks(**kinds))
    shared: dict[str, CPT | TestingCPT] = {}
    cpts = {}
    for name in net:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT):
            tie = f"regular {cpt.table.shape}"
            cpts[name] = shared.setdefault(tie, CPT(cpt.table, cpt.learn, tie))
        elif isinstance(cpt, TestingCPT):
            tie = f"testing {cpt.tables[0].shape}, {len(cpt.tables)} tables"
            cpts[name] = shared.setdefault(tie, cpt.with_parts({}, tie=tie))
    return net.with_cpts(cpts)


def labels(cards: Sequence[int] = (2, 3, 2, 3, 2, 1, 4)) -> st.SearchStrategy[list[Label] | None]:
    """The states of a variable, 1 to 4 of them and mostly 2 or 3: default, plain or odd labels."""
    card = st.sampled_from(cards)
    label = st.text(max_size=4) | st.integers(-100, 2**40) | st.floats(allow_nan=False, allow_infinity=False)
    return card.flatmap(
        lambda k: (
            (st.none() if k == 2 else st.just(list("abcd"[:k])))
            | st.just(list(range(k)))
            | st.lists(label, min_size=k, max_size=k, unique=True)
        )
    )


@st.composite
def evidence(
    draw: st.DrawFn, net: Network, names: Sequence[str] | None = None, rows: int = 1, certain: bool = False
) -> dict[str, Any]:
    """Columns of `rows` rows on some of the variables `names` (all of the network's if left out).

    A column is hard (a list of labels), soft (an array of likelihoods, not normalised) or, for binary variables
    without numeric labels, floats. Any value may be missing; likelihoods may be 0, so evidence may be impossible.
    With `certain`, one variable at least is observed in every row.
    """
    rng = draw(rngs)
    columns: dict[str, Any] = {}
    observed_always = draw(st.sampled_from(net.variables if names is None else names)) if certain else None
    for name in net.variables if names is None else names:
        variable = net.variable(name)
        kinds = ["none", "hard", "soft"] + ["floats"] * (variable.card == 2 and not variable.numeric)
        kind = "hard" if name == observed_always else draw(st.sampled_from(kinds))
        missing = (rng.random(rows) < 0.15) & (name != observed_always)
        if kind == "hard":
            observed = draw(st.lists(st.sampled_from(variable.states), min_size=rows, max_size=rows))
            columns[name] = [None if gone else label for label, gone in zip(observed, missing, strict=True)]
        elif kind == "soft":
            table = _distributions(rng, (rows, variable.card)) * rng.choice([1, 1, 0.25, 30], (rows, 1))
            columns[name] = np.where(missing[:, None], np.nan, table)
        elif kind == "floats":
            columns[name] = np.where(missing, np.nan, rng.integers(0, 9, rows) / 8)
    return columns


@st.composite
def continuous_networks(draw: st.DrawFn, most: int = 3, **kinds: Any) -> Network:
    """A network (with `kinds` as for `networks`) below which there are up to `most` continuous variables."""
    net, rng = draw(networks(**kinds)), draw(rngs)
    discrete = net.variables
    for i in range(draw(st.integers(1, most))):
        parents = draw(st.permutations(discrete))[: draw(st.integers(0, 2))]
        kind = draw(st.sampled_from(["gaussian", "joint", "log-normal", "poisson", "density"]))
        name = (f"number {i}", f"and {i}") if kind == "joint" else f"number {i}"
        net.add(name, parents, cpt=density(kind, rng, [net.variable(p).card for p in parents]))
    return net


def density(kind: str, rng: np.random.Generator, shape: Sequence[int]) -> Any:
    """A density of some kind for every state of the parents; a joint one has two columns."""
    mean, sd = 3 * rng.normal(size=shape), rng.uniform(0.3, 3, shape)
    match kind:
        case "gaussian":
            return Gaussian(mean, sd)
        case "joint":
            root = rng.normal(size=(*shape, 2, 2))
            cov = root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(2)
            return Gaussian(3 * rng.normal(size=(*shape, 2)), cov=(cov + np.swapaxes(cov, -1, -2)) / 2)
        case "log-normal":
            return LogNormal(mean / 3, sd)
        case "poisson":
            return Poisson(10 * sd)
    return Density(lambda x: -np.abs(x.reshape(-1, *[1] * len(shape)) - mean))


def numbers(net: Network, rng: np.random.Generator, rows: int = 1, far: float = 1.0) -> dict[str, Any]:
    """Observed numbers of the continuous variables, one in five missing; up to about `far` deviations away."""
    columns = {}
    for name in net.continuous:
        for column in net.variable(name).columns:
            x = rng.normal(size=rows) * np.where(rng.random(rows) < 0.5, far, 1.0)
            x = {"poisson": np.rint(10 * np.abs(x)), "log-normal": np.exp(np.clip(x, -700, 700))}.get(
                net.density(name).kind, 3 * x
            )
            columns[column] = np.where(rng.random(rows) < 0.2, np.nan, x)
    return columns


@st.composite
def queries(draw: st.DrawFn, rows: int = 1, certain: bool = False, **kinds: Any) -> tuple[Network, str, dict[str, Any]]:
    """A network (with `kinds` as for `networks`), a query variable and evidence."""
    net = draw(networks(**kinds))
    return net, draw(st.sampled_from(net.variables)), draw(evidence(net, rows=rows, certain=certain))


def tie_margin(net: Network, row: Any) -> float:
    """The least distance of a parent posterior from its threshold at a hard test, for one row of evidence.

    It is 0 where the evidence above a testing node is impossible, since then there is nothing to compare.
    """
    margin = np.inf
    for name, selected in semantics.select(net, row).nodes.items():
        cpt = net.cpt(name)
        assert isinstance(cpt, TestingCPT)
        distance = np.abs(selected.posterior[..., None] - cpt.limits).min()
        if cpt.gamma is None or np.isnan(distance):
            margin = min(margin, float(np.nan_to_num(distance)))
    return margin


def _names(count: int) -> st.SearchStrategy[list[str]]:
    odd = st.lists(st.text(min_size=1, max_size=4), min_size=count, max_size=count, unique=True)
    return st.just([f"X{i}" for i in range(count)]) | odd


def _parents(above: Sequence[str]) -> st.SearchStrategy[list[str]]:
    return st.integers(0, min(MAX_PARENTS, len(above))).flatmap(
        lambda count: st.permutations(above).map(lambda order: order[:count])
    )


def _cpt(kind: str, rng: np.random.Generator, parents: Sequence[Variable], card: int, most: int) -> Any:
    shape = tuple(p.card for p in parents)
    if kind == "testing":
        return _testing(rng, shape, card, most)
    if kind == "factored":
        return _factored(rng, parents, card)
    table = _distributions(rng, (*shape, card))
    if kind == "unset":
        return None if rng.random() < 0.3 else CPT(_with_holes(rng, table), learn=rng.random() < 0.5)
    return table


def _testing(rng: np.random.Generator, shape: tuple[int, ...], card: int, most: int) -> TestingCPT:
    count = min(int(rng.choice([2, 2, 2, 3, 4])), most)
    tables = [_distributions(rng, (*shape, card)) for _ in range(count)]
    limits = (*shape, count - 1)
    thresholds = np.where(rng.random(limits) < 0.4, rng.integers(0, 9, limits) / 8, rng.random(limits))
    gamma = rng.choice([None, None, 0.0, 3.0, 16.0])
    return TestingCPT(tables=tables, thresholds=np.sort(thresholds), test=rng.choice(TESTS, shape), gamma=gamma)


def _factored(rng: np.random.Generator, parents: Sequence[Variable], card: int) -> Any:
    """A multiplexer or a noisy-or where one is possible, a function otherwise."""
    if len(parents) > 1 and parents[0].card == len(parents) - 1 and all(p.card == card for p in parents[1:]):
        return Mux(parents[0].name, [p.name for p in parents[1:]])
    if card == 2 and rng.random() < 0.6:
        causes = [rng.integers(0, 9, p.card) / 8 for p in parents]
        return NoisyOr(causes, leak=float(rng.choice([0.0, 0.125, 0.3, 1.0])))
    rows = _distributions(rng, (2, card))
    return CPT.from_function(lambda *state: rows[rng.integers(2)])


def _distributions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rows that sum to 1: plain, dyadic (eighths) or one-hot, chosen for each row."""
    *lead, k = shape
    if k == 1:
        return np.ones(shape)
    plain = rng.dirichlet(np.ones(k), lead)
    dyadic = rng.multinomial(8, np.full(k, 1 / k), lead) / 8
    certain = np.eye(k)[rng.integers(k, size=lead)]
    kind = rng.choice(3, size=lead, p=[0.5, 0.35, 0.15])[..., None]
    return np.select([kind == 0, kind == 1], [plain, dyadic], certain)


def _with_holes(rng: np.random.Generator, table: np.ndarray) -> np.ndarray:
    """Some numbers to be learned; a row keeps what it knew beside them only where that leaves them some mass."""
    holed = np.where(rng.random(table.shape) < 0.4, np.nan, table)
    full = np.isnan(holed).any(-1) & (np.nansum(holed, -1) > 0.99)
    return np.where(full[..., None], np.nan, holed)


@st.composite
def templates(draw: st.DrawFn, testing: bool = True, factored: bool = True) -> Network:
    """A template of two slices for `tacit.unroll`: a shared variable or none, and one or two in each slice."""
    net, rng = Network("template"), draw(rngs)
    shared = ["S"] if draw(st.booleans()) else []
    sliced = draw(st.sampled_from([["X"], ["X", "Y"], ["X", "E"]]))
    states = {name: draw(labels((2, 3, 2))) for name in (*shared, *sliced)}
    late = draw(st.sampled_from(["", *sliced[1:]]))  # begins at step 1
    for name in (*shared, *(f"{base}[{i}]" for i in (0, 1) for base in sliced if i or base != late)):
        parents = draw(_parents(net.variables))
        own = states[name.partition("[")[0]]
        kinds = ["table"] + ["testing"] * (2 * testing * bool(parents)) + ["factored"] * factored
        above = [net.variable(p) for p in parents]
        cpt = _cpt(draw(st.sampled_from(kinds)), rng, above, 2 if own is None else len(own), 4)
        net.add(name, parents, own, cpt)
    return net
