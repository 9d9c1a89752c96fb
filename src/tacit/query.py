"""A query, compiled once and evaluated on many rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit import engines, machine, pickling
from tacit.circuit import Circuit
from tacit.circuit.lower import lower
from tacit.compiler import compile_program, trace
from tacit.compiler.eliminate import Plan
from tacit.compiler.jointree import Jointree, jointree
from tacit.compiler.program import Cost, Program
from tacit.compiler.prune import possible_states
from tacit.cpt import CPT, TestingCPT
from tacit.engines.engine import Engine
from tacit.errors import EvidenceError, NetworkError, TacitError
from tacit.evidence import Evidence, EvidenceLike, read
from tacit.factored import NoisyOr
from tacit.floats import Floats, divide
from tacit.model import Model
from tacit.selection import Selected, join_rows, selected_rows
from tacit.words import plural

DTYPES = ("float64", "float32")
Q = TypeVar("Q", bound="Query")
MAX_COUNTED = 2_000_000  # multiply-adds up to which cost() counts the nodes of the circuit


class ImpossibleEvidenceWarning(UserWarning):
    """Some rows of evidence have probability zero: their joint is 0 and their posterior NaN."""


class Query:
    """A query compiled once, evaluated on many rows. Made by `compiled`; `TAC` is the one that users hold."""

    def __init__(
        self,
        net: Model,
        program: Program,
        plan: Plan,
        evidence: tuple[str, ...],
        hard: tuple[str, ...] = (),
        dtype: str = "float64",
        engine: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.program, self.plan, self.evidence, self.hard, self.dtype = program, plan, evidence, hard, dtype
        self.network = net.copy()  # nodes added to the user's network later are none of ours
        self._variables = [net.variable(n) for n in net]
        self.choice, self.threads = engine, threads
        self._engine: Engine | None = None
        self._down: Query | None = None  # the query that marginals() runs, compiled on first use

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_engine", "_down")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state), _engine=None, _down=None)

    @property
    def query(self) -> str:
        """The query variable."""
        return self.program.query

    # asking -----------------------------------------------------------------------------------------------

    def ask(self, evidence: EvidenceLike | None = None, selected: bool = False) -> Answer:
        """Posterior, joint and log-probability of the evidence for every row, from one run.

        With `selected`, also how each row decided the testing nodes.

        >>> import tacit
        >>> answer = tacit.compile(tacit.examples.abc(), query="B", evidence=["A"]).ask({"A": [0.8, 0.1]})
        >>> answer.posterior.round(4).tolist(), answer.log_evidence.round(4).tolist()
        ([[0.6053, 0.3947], [0.6773, 0.3227]], [-0.9676, -0.4155])
        """
        known, engine = self.read(evidence), self.engine()
        found, decided = [], []
        for block in known.blocks(engine.chunk):  # so that memory does not grow with the number of rows
            result = engine.run(block.columns, block.rows, selected)
            found.append((result.joint.T, result.exponent))
            decided.append({
                node: selected_rows(self.network, self.program, node, how, block.columns)
                for node, how in result.selections.items()
            })  # fmt: skip
        mantissa, exponent = (np.concatenate(blocks) for blocks in zip(*found, strict=True))
        nodes = self.program.selections if selected else ()
        return Answer(mantissa, exponent, {node: join_rows([block[node] for block in decided]) for node in nodes})

    def posterior(self, evidence: EvidenceLike | None = None) -> Floats:
        """P*(q) for every state of the query: (rows, states); NaN where the evidence has probability zero."""
        return self.ask(evidence).posterior

    def joint(self, evidence: EvidenceLike | None = None) -> Floats:
        """p*(q) for every state of the query: (rows, states), in float64, which has the range that it needs."""
        return self.ask(evidence).joint

    def log_evidence(self, evidence: EvidenceLike | None = None) -> Floats:
        """The logarithm of p*(evidence) for every row; minus infinity where it is impossible."""
        return self.ask(evidence).log_evidence

    def selected(self, evidence: EvidenceLike | None = None) -> dict[str, Selected]:
        """For every testing node that the query needs, how each row of evidence decided it."""
        return self.ask(evidence, selected=True).selected

    def marginals(self, evidence: EvidenceLike | None = None) -> dict[str, Floats]:
        """The posterior of *every* variable, each (rows, states), from one sweep up and one down.

        The derivative of p*(evidence) by the likelihood of a state is the probability of that state with the rest of
        the evidence (Darwiche's differential approach). Selected tables count as they were selected.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> {name: p.round(4).tolist() for name, p in tac.marginals({"A": 0.8, "C": "lo"}).items()}
        {'A': [[0.4615, 0.5385]], 'B': [[0.4692, 0.5308]], 'C': [[1.0, 0.0]]}
        """
        if self._down is None:
            names = self.network.variables
            self._down = compiled(
                Query, self.network, self.query, names, (), self.choice, self.dtype, threads=self.threads
            )
        engine = self._down.engine()
        found: dict[str, list[Floats]] = {name: [] for name in self.network.variables}
        for block in self.read(evidence).blocks(engine.gradient_chunk):
            total = engine.run(block.columns, block.rows).joint.sum(axis=0)
            seeds = divide(np.ones_like(total), total, otherwise=0.0)
            derivatives = engine.gradients(block.columns, block.rows, seeds, through_selection=False).likelihoods
            for name, by_state in derivatives.items():
                likelihood = block.columns[name].likelihoods() if name in block.columns else np.ones((1, 1))
                # a state that is ruled out may have any derivative, also one beyond the range of floats
                product = np.multiply(likelihood, by_state, out=np.zeros_like(by_state), where=likelihood > 0)
                found[name].append(np.where(total > 0, product, np.nan).T)
        joined = {name: np.concatenate(blocks) for name, blocks in found.items()}
        _warn_impossible(np.isnan(joined[self.query][:, 0]), "their posteriors are NaN")
        return joined

    def read(self, evidence: EvidenceLike | None) -> Evidence:
        """Checked evidence on the variables that the query was compiled for; what was read before stays as it is."""
        known = read(evidence, self._variables, self.evidence)
        for name in self.hard:
            if name not in known.columns:
                raise EvidenceError(
                    f"there is no evidence on {name!r}, which the query was compiled to have in every row (hard=); "
                    "name it in evidence= to leave it out"
                )
            known.columns[name].states()  # an error where a row has none
        return known

    # numbers ----------------------------------------------------------------------------------------------

    def set_parameters(self, net: Model) -> None:
        """Take the numbers (and slopes) of another network of the same structure; nothing is compiled again."""
        check_same_structure(self.network, net, self.program)
        self.network = net.copy()
        self._engine = self._down = None

    def with_network(self, net: Model, dtype: str | None = None, engine: str | None = None) -> Self:
        """The same query with the numbers of another network of the same structure; nothing is compiled again.

        `dtype` and `engine` stay as they are unless others are given.
        """
        how = (dtype or self.dtype, engine or self.choice, self.threads)
        return type(self)(net, self.program, self.plan, self.evidence, self.hard, *how)

    def engine(self) -> Engine:
        """The program with its numbers, ready to run."""
        if self._engine is None:
            self._engine = engines.build(self.choice, self.program, *self.numbers(), self.dtype, self.threads)
        return self._engine

    def numbers(self) -> tuple[dict[tuple[str, str], Floats], dict[str, float | None]]:
        """The tables that the program reads, and the slopes of its testing nodes."""
        nodes = self.program.nodes
        self.network.require_numbers(nodes)
        tables = {(node, part): table for node in nodes for part, table in self.network.cpt(node).parts().items()}
        gammas = {n: cpt.gamma for n in nodes if isinstance(cpt := self.network.cpt(n), TestingCPT)}
        return tables, gammas

    # looking ----------------------------------------------------------------------------------------------

    def circuit(self, fold: bool = True) -> Circuit:
        """The scalar testing arithmetic circuit: sums, products and tests.

        With `fold`, the circuit of the program that runs, in which known 0s and 1s have disappeared. Without, the
        paper's trace, with every node kept: evidence is entered into the tables, one elimination order serves
        selection and inference, and hard evidence is a likelihood of 1.
        """
        if fold:
            return lower(self.program, self.network)
        return lower(trace(self.network, self.query, self.evidence), self.network, fold=False)

    def jointree(self) -> Jointree:
        """The plan of the inference phase as clusters of variables in a tree."""
        return jointree(self.plan.problem, self.plan.path)

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row, circuit nodes (None where the circuit would be very large)."""
        cost = self.program.cost
        small = cost.multiply_adds + cost.static_multiply_adds <= MAX_COUNTED
        return replace(cost, circuit_nodes=len(self.circuit())) if small else cost

    def __repr__(self) -> str:
        cost = self.program.cost
        return (
            f"{type(self).__name__}(query={self.query!r}, {plural(len(self.evidence), 'evidence variable')}, "
            f"width {cost.width}, {cost.multiply_adds:,} multiply-adds per row)"
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """What rows of evidence say about a query. Made by `TAC.ask`.

    The joint is `mantissa` (rows, states) times 2**`exponent` (rows,); `decided` tells of the testing nodes.
    """

    mantissa: Floats
    exponent: NDArray[np.int64]
    decided: dict[str, Selected]

    @property
    def posterior(self) -> Floats:
        """P*(q) for every state of the query: (rows, states); NaN where the evidence has probability zero."""
        total = self.mantissa.sum(axis=1, keepdims=True)
        if not np.isfinite(total).all():
            row, dtype = int(np.argmin(np.isfinite(total))), self.mantissa.dtype
            raise TacitError(f"row {row}: the numbers leave the range of {dtype}; compile with dtype='float64'")
        _warn_impossible(total[:, 0] == 0, "their posterior is NaN")
        return divide(self.mantissa, total)

    @property
    def joint(self) -> Floats:
        """p*(q) for every state of the query: (rows, states), in float64, which has the range that it needs."""
        return np.ldexp(self.mantissa.astype(np.float64), self.exponent[:, None])

    @property
    def log_evidence(self) -> Floats:
        """The logarithm of p*(evidence) for every row; minus infinity where it is impossible."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mantissa.sum(axis=1)) + self.exponent * np.log(2.0))

    @property
    def selected(self) -> dict[str, Selected]:
        """For every testing node that the query needs, how each row decided it; none, unless that was asked for."""
        undecided = [np.isnan(how.posterior.reshape(len(how.posterior), -1)[:, 0]) for how in self.decided.values()]
        if undecided:
            _warn_impossible(np.logical_or.reduce(undecided), "the posterior of some testing node's parents is NaN")
        return self.decided


def compiled(
    kind: type[Q],
    net: Model,
    query: str,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    engine: str = "auto",
    dtype: str = "float64",
    order: Sequence[str] | None = None,
    effort: str = "auto",
    threads: int | None = None,
) -> Q:
    """A query of a given class, `Query` or one that stands on it. The parameters are those of `tacit.compile`."""
    if not isinstance(net, Model):
        raise TacitError(f"net is a {type(net).__name__}, expected a Network; tacit.read(path) reads one from a file")
    engines.check(engine)
    machine.threads_wanted(threads)  # an error, if it is no number of threads
    number = _dtype(dtype)
    certain = _names(net, hard, "hard")
    named = tuple(dict.fromkeys((*_names(net, evidence, "evidence"), *certain)))
    # the query keeps its axis: evidence on it is a likelihood even where it is certain
    indexed = {n: None for n in certain if n != query}
    soft = tuple(n for n in named if n not in indexed)
    steps = None if order is None else _names(net, order, "order")
    program, plan = compile_program(net, query, soft, tuple(indexed), steps, effort, number)
    return kind(net, program, plan, named, certain, number, engine, threads)


def _dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise TacitError(f"dtype is {dtype!r}, expected one of {', '.join(map(repr, DTYPES))}")
    return name


def _names(net: Model, names: Iterable[str] | None, what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TacitError(f"{what} must be a sequence of names, e.g. [{names!r}]")
    try:
        found = tuple(dict.fromkeys(names or ()))
    except TypeError:
        raise TacitError(f"{what} must be a sequence of names, got {names!r}") from None
    for name in found:
        net.node(name)
    return found


def _warn_impossible(rows: NDArray[np.bool_], what: str) -> None:
    """One warning that counts the rows of impossible evidence, placed where the user called."""
    if rows.any():
        warnings.warn(
            f"the evidence of {int(rows.sum())} of {len(rows)} rows has probability 0; {what}",
            ImpossibleEvidenceWarning,
            stacklevel=_level_of_the_caller(),
        )


def _level_of_the_caller() -> int:
    """How many frames up the first one outside this package is."""
    here = str(Path(__file__).parent)
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        level, frame = level + 1, frame.f_back
    return level


def check_same_structure(old: Model, new: Model, program: Program) -> None:
    """The same variables, families and kinds of CPT, and no state possible that was not before."""
    for name in program.states:
        a, b = old.node(name), new.node(name)
        same = (a.variable, a.parents, type(a.cpt)) == (b.variable, b.parents, type(b.cpt))
        if same and isinstance(a.cpt, TestingCPT) and isinstance(b.cpt, TestingCPT):
            same = bool((a.cpt.test == b.cpt.test).all())
        elif same and not isinstance(a.cpt, CPT | NoisyOr):
            same = a.cpt == b.cpt
        if not same:
            raise NetworkError(
                f"node {name!r} differs in states, parents, kind of CPT or tests from the compiled network; "
                "compile the query again"
            )
    for name, states in possible_states(new, program.states, frozenset(program.hard)).items():
        extra = set(states) - set(program.states[name])
        if extra:
            label = new.states(name)[min(extra)]
            raise NetworkError(
                f"node {name!r}: state {label!r} was impossible (known 0s) when the query was compiled, and is "
                "possible now; compile the query again"
            )
