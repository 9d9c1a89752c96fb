"""Do intervals hold the truth? Random networks with a lowered budget, where exact answers are known.

`python -m bench intervals 2000 0` tries 2,000 networks from seed 0 on, with hard and soft evidence, impossible rows now
and then, and testing nodes in every second network. Intervals of all variables and states count: `marginal_intervals`,
and `interval` and `refine` of one variable. There must be no violation.

Judges round, too. Networks without testing nodes are judged in extended precision, whose rounding is a thirtieth of
that of the intervals: so these must be right to the last digit. The others are judged by the exact engine, and count as
violations if they do not meet its answer with its own roundings.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.base.floats import Floats
from tacit.bounds.querying.bounded_query import BoundedQuery, bounded
from tacit.query.asking.options import CompileOptions, Limits

NETWORKS, ROWS, REFINED = 2000, 48, 2
MULTIPLY_ADDS = (1, 8, 32, 128)
EXTENDED = 64 * float(np.finfo(np.longdouble).eps)  # roundings of an elimination in extended precision
TIES = 1e-9  # tests nearer to their threshold than that are decided by rounding: both answers are right


class Truth(NamedTuple):
    """The ends between which the truth is, for all that the judge rounds: (rows, states) each."""

    least: NDArray[np.floating]
    most: NDArray[np.floating]


@dataclass
class Tally:
    """What was found so far."""

    intervals: int = 0
    violations: int = 0
    narrow: int = 0
    examples: list[str] = field(default_factory=list)

    def count(self, sure: tacit.Interval[Floats], truth: Truth, rows: np.ndarray, where: str) -> None:
        """Compare the intervals of one variable in some rows with the truth; impossible rows do not count."""
        low, high, least, most = (part[rows] for part in (sure.low, sure.high, *truth))
        known = ~np.isnan(least[:, 0])
        wrong = ~((low <= most) & (least <= high))[known]
        self.intervals += wrong.size
        self.narrow += int((high - low < 0.999)[known].sum())
        if wrong.any():
            self.violations += int(wrong.sum())
            self.examples.append(where)


def random_network(random: np.random.Generator, testing: bool) -> tacit.Network:
    """Up to ten variables, with zeros in some tables, and testing nodes."""
    net = tacit.Network(selection=str(random.choice(["ancestral", "general"])) if testing else "ancestral")
    for i in range(int(random.integers(3, 11))):
        parents = [str(n) for n in random.permutation(list(net))[: random.integers(0, 4)]]
        states, shape = int(random.integers(2, 5)), [len(net.states(n)) for n in parents]
        table = _table(random, (*shape, states))
        if testing and parents and random.random() < 0.4:
            gamma = None if random.random() < 0.7 else 4.0
            limits = random.random(shape) / np.prod(shape) * 2
            other = _table(random, (*shape, states))
            net.add(f"v{i}", parents, states, tacit.TestingCPT(table, other, limits, gamma=gamma))
        else:
            net.add(f"v{i}", parents, states, table)
    return net


def _table(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    table = random.dirichlet(np.full(shape[-1], random.choice([0.1, 1.0, 5.0])), shape[:-1])
    certain, states = random.random(shape[:-1]) < 0.1, random.integers(shape[-1], size=shape[:-1])
    return np.asarray(np.where(certain[..., None], np.eye(shape[-1])[states], table))


def random_rows(random: np.random.Generator, net: tacit.Network) -> dict[str, Floats]:
    """Likelihoods of about half of the variables: soft, of one state, or none."""
    rows = {}
    for name in net:
        states = len(net.states(name))
        if random.random() < 0.5:
            soft, kind = random.random((ROWS, states)) ** 3, random.random((ROWS, 1))
            hard = np.eye(states)[random.integers(states, size=ROWS)]
            rows[name] = np.where(kind < 0.4, soft, np.where(kind < 0.7, hard, 1.0))
    return rows or {next(iter(net)): np.ones((ROWS, len(net.states(next(iter(net))))))}


def far_from_ties(net: tacit.Network, rows: dict[str, Floats]) -> np.ndarray:
    """The rows in which no test is decided by rounding: (rows,)."""
    far = np.ones(ROWS, dtype=bool)
    if net.testing_nodes:
        selected = tacit.compile(net, None, evidence=list(rows)).selected(rows)
        for name, how in selected.items():
            limits = np.asarray(net.cpt(name).limits)[..., 0]
            far &= ~(np.abs(how.posterior - limits).reshape(ROWS, -1) < TIES).any(axis=1)
    return far


def truths(net: tacit.Network, rows: dict[str, Floats]) -> dict[str, Truth]:
    """What the judge says of all variables."""
    if not net.testing_nodes:
        return {name: extended(net, name, rows) for name in net}
    exact = tacit.compile(net, None, evidence=list(rows)).marginal_intervals(rows)
    return {name: Truth(own.low, own.high) for name, own in exact.items()}


def extended(net: tacit.Network, name: str, rows: dict[str, Floats]) -> Truth:
    """The posterior of a variable, eliminated in extended precision."""
    axis = {n: i + 1 for i, n in enumerate(net)}  # that of the rows is 0
    operands: list[Any] = []
    for node in net:
        operands += [net.table(node).astype(np.longdouble), [axis[n] for n in (*net.parents(node), node)]]
    for node, likelihoods in rows.items():
        operands += [likelihoods.astype(np.longdouble), [0, axis[node]]]
    joint = np.einsum(*operands, [0, axis[name]], optimize="greedy")
    total = joint.sum(axis=1, keepdims=True)
    posterior = np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
    return Truth(posterior * (1 - EXTENDED), posterior * (1 + EXTENDED))


def tried(seed: int, tally: Tally) -> None:
    """One network, all of its variables."""
    random = np.random.default_rng(seed)
    net = random_network(random, testing=bool(seed % 2))
    rows = random_rows(random, net)
    hard = [n for n, own in rows.items() if ((own > 0).sum(axis=1) == 1).all()]
    truth, far = truths(net, rows), far_from_ties(net, rows)
    for name, own in lowered(net, None, rows, hard, random).marginal_intervals(rows).items():
        tally.count(own, truth[name], far, f"seed {seed}: {name}")
    query = str(random.choice(list(net)))
    one = lowered(net, query, rows, hard, random)
    tally.count(one.interval(rows), truth[query], far, f"seed {seed}: interval of {query}")
    some = {name: own[:REFINED] for name, own in rows.items()}
    first = Truth(*(part[:REFINED] for part in truth[query]))
    tally.count(one.refine(some, seconds=0.05), first, far[:REFINED], f"seed {seed}: refine {query}")


def lowered(
    net: tacit.Network, query: str | None, rows: dict[str, Floats], hard: list[str], random: np.random.Generator
) -> BoundedQuery:
    """A query that is taken to be too wide."""
    limits = Limits(1e-9, 0.2, int(random.choice(MULTIPLY_ADDS)))
    refusal = tacit.TooLargeError("it is taken to be too wide")
    options = CompileOptions(engine="numpy", effort="low")
    return bounded(net, query, list(rows), hard, options, limits, refusal)


def main(arguments: list[str]) -> None:
    """Try some networks, and tell of each violation."""
    networks = int(arguments[0]) if arguments else NETWORKS
    first = int(arguments[1]) if len(arguments) > 1 else 0  # so that several processes can share the work
    tally, began = Tally(), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + networks):
            tried(seed, tally)
            if (seed + 1) % 100 == 0:
                print(f"{seed + 1:,}: {tally.intervals:,} intervals, {tally.violations:,} violations, "
                      f"{tally.narrow:,} say something, {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    for example in tally.examples[:20]:
        print(example)
    print(f"{networks:,} networks, {tally.intervals:,} intervals, {tally.violations:,} violations")
    if tally.violations:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
