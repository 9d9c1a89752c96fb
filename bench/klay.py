"""The same circuit in KLay, the library that evaluates circuits on tensors; and pomegranate, which approximates.

One run: both answer the same rows, answers and gradients are compared. `python -m bench.klay` needs torch,
klaycircuits, and a C++ compiler for `torch.compile`; JAX and pomegranate are used if they are there.
`python -m bench.klay pomegranate` runs that part only, and writes nothing.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.inference import sample
from bench.networks import leaves, network, widest_root
from bench.tables import Ratio, Seconds, Section, at_least, at_most, write
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.nodes import CODE, KINDS, LEAVES

PAGE = Path(__file__).parent.parent / "docs" / "bench-klay.md"
ROWS = 1024
FORWARD, GRADIENT = 100, 50  # how many times as fast as KLay
AGREEMENT = {"float64": 1e-9, "float32": 1e-4}
THREADS = (1, 2)
MOST = 200  # repeats of one measurement
WHOLE, SPLIT = "whole", "rest"
INTRO = f"""Written by `python -m bench.klay`. 2 cores, which other programs may have used at the same time; every
figure comes from one run. Both sides answer the same {ROWS:,} rows of random soft evidence on all leaves of alarm; the
query is the root with the most descendants. The gradient is that of the logarithm of the probability of the
evidence."""


def repeated(run: Callable[[], object], seconds: float = 2.0) -> Seconds:
    """Median and fastest of some runs after one that does not count: at least 7, or as many as 10 seconds allow."""
    run()
    spent: list[float] = []
    while not spent or (len(spent) < MOST and sum(spent) < (seconds if len(spent) >= 7 else 10.0)):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return Seconds(statistics.median(spent), min(spent))


def ms(seconds: Seconds | None) -> str:
    """Milliseconds: the median, and the fastest in brackets."""
    if seconds is None:
        return "-"
    digits = 3 if seconds.median < 1e-2 else 1
    return f"{seconds.median * 1e3:,.{digits}f} ({seconds.fastest * 1e3:,.{digits}f})"


@dataclass
class Times:
    """What one way of answering the rows took."""

    who: str
    circuit: str
    dtype: str
    way: str
    threads: str
    forward: Seconds
    gradient: Seconds | None


# ours -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Query:
    """The query, its rows of evidence, and our answers."""

    net: tacit.Network = field(default_factory=lambda: network("alarm"))

    def __post_init__(self) -> None:
        self.query = widest_root(self.net)
        self.observed = [n for n in leaves(self.net) if n != self.query]
        rng = np.random.default_rng(1)
        self.evidence = {n: rng.dirichlet(np.ones(len(self.net.states(n))), ROWS) for n in self.observed}
        self.tacs = {d: tacit.compile(self.net, self.query, self.observed, engine="tape", dtype=d) for d in AGREEMENT}
        self.columns = self.tacs["float64"].read(self.evidence).columns

    @cached_property
    def circuit(self) -> Circuit:
        return self.tacs["float64"].circuit()

    def forward(self, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
        """The posterior, and the probability of the evidence but for a power of two."""
        joint = self.tacs[dtype].engine().run(self.columns, ROWS).joint
        total = joint.sum(axis=0)
        return joint / total, total

    def gradient(self, dtype: str = "float64") -> Any:
        """Derivatives of the logarithm of the probability of the evidence, which powers of two do not change."""
        engine: Any = self.tacs[dtype].engine()
        found = engine.run(self.columns, ROWS)
        return engine.gradients(self.columns, ROWS, 1.0 / found.joint.sum(axis=0), found.exponent)

    def times(self) -> Iterator[Times]:
        for dtype, tac in self.tacs.items():
            for threads in THREADS:
                tac.engine().threads = threads  # type: ignore[attr-defined]
                found = [repeated(partial(run, dtype)) for run in (self.forward, self.gradient)]
                yield Times("tacit", "-", dtype, "engine", str(threads), *found)
        checked = repeated(lambda: self.tacs["float64"].posterior(self.evidence))
        yield Times("tacit", "-", "float64", "tac.posterior", str(THREADS[-1]), checked, None)


# KLay -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Peer:
    """A circuit in KLay, with the positions of its literals in ours and their weights: (rows, literals)."""

    name: str
    circuit: Any
    literals: np.ndarray
    weights: np.ndarray

    def module(self, compile: bool) -> Any:
        return self.circuit.to_torch_module(semiring="real", compile=compile)


def peer(query: Query, name: str) -> Peer:
    """Sums as or, products as and, leaves as literals; for the rest, all that no evidence changes as literals."""
    import klay

    circuit = query.circuit
    literal = np.isin(circuit.kind, [CODE[kind] for kind in LEAVES])
    if name == SPLIT:
        literal |= ~dependent(circuit)
    made, positions = klay.Circuit(), []
    nodes: dict[int, Any] = {}
    for i in needed(circuit, literal):
        children = [nodes[j] for j in children_of(circuit, i)] if not literal[i] else []
        if literal[i]:
            positions.append(i)
            nodes[i] = made.literal_node(len(positions))
        elif KINDS[circuit.kind[i]] == "sum":
            nodes[i] = made.or_node(children)
        else:
            assert KINDS[circuit.kind[i]] == "product"
            nodes[i] = made.and_node(children)
    for i in circuit.outputs.tolist():
        made.set_root(nodes[i])
    made.remove_unused_nodes()
    return Peer(name, made, np.array(positions), weights(query, positions))


def children_of(circuit: Circuit, i: int) -> list[int]:
    found: list[int] = circuit.children[circuit.start[i] : circuit.start[i + 1]].tolist()
    return found


def dependent(circuit: Circuit) -> np.ndarray:
    """The nodes that evidence changes."""
    found = circuit.kind == CODE["input"]
    for i in range(len(circuit)):
        found[i] |= found[children_of(circuit, i)].any()
    return found


def needed(circuit: Circuit, literal: np.ndarray) -> list[int]:
    """The nodes above and including the literals that the outputs use."""
    used = np.zeros(len(circuit), dtype=bool)
    used[circuit.outputs] = True
    for i in reversed(range(len(circuit))):
        if used[i] and not literal[i]:
            used[children_of(circuit, i)] = True
    return np.flatnonzero(used).tolist()


def weights(query: Query, positions: list[int]) -> np.ndarray:
    """The weight of every literal in every row."""
    circuit = query.circuit
    fixed = circuit.values({}, 1, circuit.number)[:, 0]
    made = np.empty((ROWS, len(positions)))
    for k, i in enumerate(positions):
        made[:, k] = fixed[i]
        if KINDS[circuit.kind[i]] == "input":
            column = query.columns[circuit.inputs[circuit.owner[i]].name]
            made[:, k] = column.likelihoods()[circuit.entry[i]]
    return made


def posterior(module: Any, x: Any) -> Any:
    """Answers from ready weights; the joint goes before the posterior."""
    import torch

    with torch.no_grad():
        joint = module(x)
        return joint, joint / joint.sum(dim=1, keepdim=True)


def gradient(module: Any, x: Any) -> Any:
    """The derivative by every literal in every row; x is a leaf that wants one."""
    import torch

    return torch.autograd.grad(module(x).sum(dim=1).log().sum(), x)[0]


def klay_times(made: Peer) -> Iterator[Times]:
    """All the ways that KLay knows to evaluate a batch."""
    import torch

    for dtype in AGREEMENT:
        x = torch.tensor(made.weights, dtype=getattr(torch, dtype))
        wanted = x.clone().requires_grad_()
        for way in ("torch", "torch.compile", "torch.vmap"):
            if way == "torch.vmap" and (made.name != WHOLE or dtype != "float64"):
                continue  # the slowest by far: once is enough
            for threads in THREADS[:1] if way == "torch.vmap" else THREADS:
                torch.set_num_threads(threads)
                torch._dynamo.reset()
                module = made.module(way == "torch.compile")
                module = torch.vmap(module) if way == "torch.vmap" else module
                forward = repeated(partial(posterior, module, x))
                back = repeated(partial(gradient, module, wanted))
                yield Times("KLay", made.name, dtype, way, str(threads), forward, back)
        if find_spec("jax"):
            yield jax_times(made, dtype)


def jax_times(made: Peer, dtype: str) -> Times:
    """Forward only: JAX has no derivative of the product that KLay uses in the real semiring."""
    import jax

    jax.config.update("jax_enable_x64", True)
    joint = jax.vmap(made.circuit.to_jax_function(semiring="real"))
    answer = jax.jit(lambda x: (y := joint(x)) / y.sum(axis=1, keepdims=True))
    x = jax.numpy.asarray(made.weights, dtype=dtype)
    return Times("KLay", made.name, dtype, "JAX", "own", repeated(lambda: answer(x).block_until_ready()), None)


# the sections ---------------------------------------------------------------------------------------------


def sizes(query: Query, peers: list[Peer]) -> Section:
    """What KLay makes of our circuit."""
    section = Section(
        "1. The circuits", "-",
        ("circuit", "literals", "nodes above", "edges", "KLay's layers", "KLay's nodes above", "KLay's edges"),
    )  # fmt: skip
    for made in peers:
        inner = set(needed(query.circuit, np.isin(np.arange(len(query.circuit)), made.literals)))
        inner -= set(made.literals.tolist())
        edges = sum(len(children_of(query.circuit, i)) for i in inner)
        layers = made.module(False).layers
        widths, joints = (sum(f(layer) for layer in layers) for f in (lambda n: n.out_shape[0], lambda n: len(n.ix_in)))
        section.add(made.name, len(made.literals), len(inner), edges, len(layers), widths, joints)
    section.notes += [
        "*whole*: `tac.circuit()`, node by node: a sum becomes an or node, a product an and node, a parameter or a "
        "likelihood a literal with its own weight. KLay's layers take turns between products and sums, and a value "
        "that skips a layer is copied through it, which is where its additional nodes come from.",
        "*rest*: most of the whole circuit does not depend on evidence. Our engine evaluates that part once, when it "
        "is made, and not for every row. KLay has no such step; here it is done for KLay by hand: whatever no evidence "
        "changes becomes a literal with its value.",
    ]
    return section


def agreement(query: Query, peers: list[Peer]) -> Section:
    """Joint and gradients, relative to the largest value of a kind."""
    import torch

    section = Section(
        "2. Agreement, as relative differences", "1e-9 in float64, 1e-4 in float32",
        ("circuit", "dtype", "joint", "posterior", "by likelihoods", "by parameters", "verdict"),
    )  # fmt: skip
    expected, ours, by = query.tacs["float64"].joint(query.evidence), query.forward()[0].T, query.gradient()
    for made in peers:
        for dtype, bar in AGREEMENT.items():
            x = torch.tensor(made.weights, dtype=getattr(torch, dtype))
            module = made.module(False)
            joint, found = (y.numpy() for y in posterior(module, x))
            slopes = gradient(module, x.requires_grad_()).numpy()
            errors = [float(np.abs(joint / expected - 1).max()), float(np.abs(found - ours).max())]
            errors += gradient_errors(query.circuit, made, slopes, by)
            section.add(made.name, dtype, *("-" if e != e else e for e in errors), at_most(np.nanmax(errors), bar))
    section.notes.append(
        "Against our engine in float64. KLay takes both. In the rest of the circuit, KLay's gradient ends at the "
        "values that were computed beforehand and not at the parameters."
    )
    return section


def gradient_errors(circuit: Circuit, made: Peer, slopes: np.ndarray, by: Any) -> list[float]:
    """The largest differences between gradients, by likelihoods and by parameters, relative to the largest entry."""
    pairs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"input": [], "parameter": []}
    for k, i in enumerate(made.literals.tolist()):
        kind, owner, entry = KINDS[circuit.kind[i]], circuit.owner[i], circuit.entry[i]
        if kind == "input":
            pairs[kind].append((slopes[:, k], by.likelihoods[circuit.inputs[owner].name][entry]))
        elif kind == "parameter" and made.name == WHOLE:
            pairs[kind].append((slopes[:, k].sum(keepdims=True), by.tables[circuit.tables[owner]].ravel()[[entry]]))
    found = []
    for some in pairs.values():
        theirs, ours = (np.concatenate(side) for side in zip(*some, strict=True)) if some else (np.full(1, np.nan),) * 2
        found.append(float(np.abs(theirs - ours).max() / np.abs(ours).max()))
    return found


def timing(found: list[Times]) -> Section:
    """All that was measured."""
    section = Section(
        f"3. Milliseconds for {ROWS:,} rows, median (fastest)", "-",
        ("library", "circuit", "dtype", "way", "threads", "forward", "forward and gradient"),
    )  # fmt: skip
    for t in found:
        section.add(t.who, t.circuit, t.dtype, t.way, t.threads, ms(t.forward), ms(t.gradient))
    section.notes += [
        "tacit, *engine*: `engine.run` on checked evidence and the posterior; with `engine.gradients`, by every entry "
        "of every table and every likelihood. `tac.posterior` also checks and normalises the evidence. These rows are "
        "too few for a second thread, which the engine therefore does not use in the forward pass.",
        "KLay: from ready weights of all literals in all rows (making them is not counted) to the posterior; the "
        "gradient is by every literal in every row. *torch*: the module as it is, which takes a batch. "
        "*torch.compile*: KLay's default; compiling, which takes ten seconds or more, is not counted. *torch.vmap*: "
        "what KLay's tutorial says; torch has no batched form of the operation that KLay uses, and loops. *JAX*: "
        "`jax.jit` of `jax.vmap`; it cannot differentiate KLay's product in the real semiring.",
        "When other programs use the same cores, torch's two threads wait for each other: two can then be much slower "
        "than one.",
    ]
    return section


def ratios(found: list[Times]) -> Section:
    """KLay's fastest way against ours, for each circuit and each precision."""
    section = Section(
        "4. KLay's fastest way against ours",
        f"on the whole circuit, {FORWARD}x forward and {GRADIENT}x forward and gradient, by both ratios",
        ("circuit", "dtype", "pass", "KLay's way", "KLay, ms", "tacit, ms", "ratio", "ratio of fastest", "verdict"),
    )  # fmt: skip
    for name in (WHOLE, SPLIT):
        for dtype in AGREEMENT:
            for what, bar in (("forward", FORWARD), ("gradient", GRADIENT)):
                theirs, way = best(found, "KLay", name, dtype, what)
                ours, _ = best(found, "tacit", "-", dtype, what)
                ratio = Ratio(theirs.median, ours.median)
                of_fastest = Ratio(theirs.fastest, ours.fastest)
                verdict = at_least(min(float(ratio), float(of_fastest)), bar) if name == WHOLE else ""
                section.add(name, dtype, what, way, ms(theirs), ms(ours), ratio, of_fastest, verdict)
    section.notes.append(
        "*gradient* includes the forward pass. The rest of the circuit has no bar: it shows how much of the difference "
        "comes from evaluating only once what does not depend on evidence. There, KLay's gradient stops at the values "
        "that were computed beforehand, while ours goes on to the parameters."
    )
    return section


def best(found: list[Times], who: str, circuit: str, dtype: str, what: str) -> tuple[Seconds, str]:
    """The smallest median, and how it came about."""
    some = [t for t in found if (t.who, t.circuit, t.dtype) == (who, circuit, dtype) and getattr(t, what)]
    winner = min(some, key=lambda t: getattr(t, what).median)
    return getattr(winner, what), f"{winner.way}, threads: {winner.threads}"


# pomegranate ----------------------------------------------------------------------------------------------


def pomegranate() -> Section:
    """All marginals under hard evidence with missing values: loopy belief propagation against ours."""
    section = Section(
        f"5. pomegranate: all marginals of {ROWS:,} rows, in milliseconds, median (fastest)",
        "-",
        ("network", "pomegranate", "tacit", "ratio", "rows without an answer", "largest error", "mean error"),
    )
    for name in ("asia", "alarm"):
        net = network(name)
        codes, known = partly_observed(net)
        tac = tacit.compile(net, widest_root(net), leaves(net), engine="tape")
        states = {n: np.array([*net.states(n), None], dtype=object) for n in leaves(net)}
        evidence = {n: s[np.where(known[n], codes[n], -1)] for n, s in states.items()}
        ask = pomegranate_asked(net, codes, known)
        exact = tac.marginals(evidence)
        errors = np.array([np.abs(p - exact[n]).max(axis=1) for n, p in zip(net, ask(), strict=True)])
        theirs, ours = on_best_threads(ask), repeated(partial(tac.marginals, evidence))
        lost = int(np.isnan(errors).any(axis=0).sum())
        section.add(
            name, ms(theirs), ms(ours), Ratio(theirs.median, ours.median), lost, np.nanmax(errors), np.nanmean(errors)
        )
    section.notes.append(
        "`BayesianNetwork.predict_proba` against `tac.marginals`, from evidence in each library's own form. Rows are "
        "drawn from the network; every leaf is observed with probability one half. pomegranate runs loopy belief "
        "propagation, which is approximate on these networks: the errors are absolute differences of probabilities "
        "from ours, which are exact; the largest of a variable's states, over all variables and rows. *Rows without an "
        "answer* hold NaN and are left out of the errors. Of one thread and two, the better for pomegranate."
    )
    return section


def on_best_threads(run: Callable[[], object]) -> Seconds:
    """The time with the number of torch's threads that is best."""
    import torch

    found = []
    for threads in THREADS:
        torch.set_num_threads(threads)
        found.append(repeated(run))
    return min(found, key=lambda seconds: seconds.median)


def partly_observed(net: tacit.Network) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """States of sampled rows, and where they are known: half of the leaves."""
    rng, seen = np.random.default_rng(1), set(leaves(net))
    codes = sample(net, ROWS, rng)
    return codes, {n: (rng.random(ROWS) < 0.5) & (n in seen) for n in net}


def pomegranate_asked(
    net: tacit.Network, codes: dict[str, np.ndarray], known: dict[str, np.ndarray]
) -> Callable[[], list[np.ndarray]]:
    """The same network and rows in pomegranate; what is returned answers them."""
    import torch
    from pomegranate.bayesian_network import BayesianNetwork
    from pomegranate.distributions import Categorical, ConditionalCategorical

    made = {}
    for n in net:
        table = torch.tensor(net.table(n))
        made[n] = ConditionalCategorical([table]) if net.parents(n) else Categorical(table[None])
    model = BayesianNetwork(list(made.values()), [(made[p], made[n]) for n in net for p in net.parents(n)])
    values, mask = (torch.tensor(np.stack([d[n] for n in net], axis=1)) for d in (codes, known))
    rows = torch.masked.MaskedTensor(values, mask)
    return lambda: [p.detach().numpy() for p in model.predict_proba(rows)]


# the page -------------------------------------------------------------------------------------------------


def klay_sections() -> Iterator[Section]:
    query = Query()
    peers = [peer(query, name) for name in (WHOLE, SPLIT)]
    yield sizes(query, peers)
    yield agreement(query, peers)
    found = [*query.times(), *(t for made in peers for t in klay_times(made))]
    yield timing(found)
    yield ratios(found)


def all_sections(only: list[str]) -> Iterator[Section]:
    if "klay" in only or not only:
        yield from klay_sections()
    if "pomegranate" in only or (not only and find_spec("pomegranate")):
        yield pomegranate()


def main(arguments: list[str]) -> None:
    """Measure and print; write the page when all was measured."""
    sections = []
    for section in all_sections(arguments):
        sections.append(section)
        print(section.text(), flush=True)
    if not arguments:
        write(PAGE, "KLay: measured", INTRO, sections)


if __name__ == "__main__":
    main(sys.argv[1:])
