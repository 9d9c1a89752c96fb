"""A query for the best action, compiled once and evaluated on many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.base import pickling
from tacit.base.errors import EvidenceError, NetworkError, TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.html import facts
from tacit.base.text import listed, plural
from tacit.compiler.program import Cost
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.value_node import ValueNode
from tacit.model.elements.variable import Label, Variable
from tacit.query.answers.answer import quietly, warn_impossible
from tacit.query.answers.probabilities import index_of
from tacit.query.asking.options import CompileOptions, checked_question, names_of
from tacit.query.decisions.checks import check_decision, check_known_before, check_same_states
from tacit.query.decisions.decision import Decision, Worth
from tacit.query.decisions.outlook import Outlooks
from tacit.query.decisions.worth import checked_costs, worth
from tacit.query.ensembles.base_ensemble import AnyEnsemble, BaseEnsemble
from tacit.query.network import Network
from tacit.query.query import Query

ANSWERS_AT_ONCE = 2**23  # of all draws and actions, in memory at a time


class DecisionQuery:
    """The best action for each row of evidence, compiled once. Made by `tacit.compile(net, decide=...)`.

    The decision is made from outside, as by `Network.do`: its own CPT, if it has one, does not count, and rows tell
    nothing through it. What is observed is known before the decision.

    Attributes
    ----------
    network
        The network with its value nodes.
    decision, actions
        The variable that is decided, and its states.
    evidence, hard, do, given, dtype
        What the query was compiled for; see `tacit.compile`.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("Disease", states=["yes", "no"], cpt=[0.1, 0.9])
    >>> net.add("Test", ["Disease"], states=["pos", "neg"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    >>> net.add("Treat", states=["yes", "no"])
    >>> net.value("Health", ["Disease", "Treat"], [[-20, -100], [0, 0]])
    >>> net.value("Price", ["Treat"], [-10, 0])
    >>> tac = tacit.compile(net, decide="Treat", evidence=["Test"])
    >>> tac.decide({"Test": ["pos", "neg", None]})
       Treat       yes        no   margin
    0    yes  -16.6667  -33.3333  16.6667
    1     no   -10.274  -1.36986  8.90411
    2     no       -12       -10        2
    >>> tac.worth({"Test": None}, costs={"Test": 1})
    What observing each variable is worth
    variable    0
    Test      3.5
    """

    exact = True

    def __init__(
        self, net: Network, decision: str, evidence: Iterable[str], hard: Iterable[str], options: CompileOptions
    ) -> None:
        self.network, self.decision = net.copy(), decision
        self._outlooks = Outlooks(net, decision, net.value_nodes.values())
        self._compiled = self._outlooks.compiled(net, evidence, hard, options)
        self._last_extended: tuple[AnyEnsemble, list[AnyEnsemble]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_last_extended")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state))
        self._last_extended = None

    @property
    def _query(self) -> Query:
        return self._compiled[0].query

    @property
    def _refusals(self) -> list[TooLargeError]:
        return [own.query.refused for own in self._compiled if own.query.refused]

    @property
    def variable(self) -> Variable:
        """The decision: its name and its states."""
        return self.network.variable(self.decision)

    @property
    def actions(self) -> tuple[Label, ...]:
        """The states of the decision."""
        return self.variable.states

    @property
    def evidence(self) -> tuple[str, ...]:
        """The variables that may have evidence."""
        return self._query.evidence

    @property
    def hard(self) -> tuple[str, ...]:
        """The variables that are observed in every row."""
        return self._query.hard

    @property
    def do(self) -> tuple[str, ...]:
        """The variables that every row sets, as interventions."""
        return self._query.do

    @property
    def given(self) -> dict[str, Label]:
        """The states that are known of every row."""
        return self._query.given

    @property
    def dtype(self) -> str:
        """The type of probabilities: "float64" or "float32"."""
        return self._query.dtype

    def decide(self, evidence: EvidenceLike | None = None, tables: AnyEnsemble | None = None) -> Decision:
        """The best action of each row, what each action is expected to be worth, and the margin between the best two.

        With `tables`, an `Ensemble` of networks, what an action is worth is the mean under these, and `doubt` tells how
        often another one would be best. The values are those of this query.

        >>> import tacit
        >>> def weather(p):
        ...     net = tacit.Network()
        ...     net.add("Rain", cpt=[p, 1 - p])
        ...     net.add("Umbrella", states=["take", "leave"], cpt=[0.5, 0.5])
        ...     net.value("Comfort", ["Rain", "Umbrella"], [[5, -20], [-3, 0]])
        ...     return net
        >>> tac = tacit.compile(weather(0.1), decide="Umbrella")
        >>> decision = tac.decide()
        >>> decision.action[0], decision.expected.round(3).tolist(), decision.margin.round(3).tolist()
        ('leave', [[-2.2, -2.0]], [0.2])
        >>> tac.decide(tables=tacit.Ensemble.of([weather(0.05), weather(0.1), weather(0.2)]))
           Umbrella      take     leave    margin  doubt
        0      take  -2.06667  -2.33333  0.266667    67%
        """
        if tables is not None:
            return self._decide_under(evidence, tables)
        rows = evidence if len(self._compiled) == 1 else self.read(evidence)
        with quietly(), self._known_before():
            expected = np.concatenate([own.expected(rows) for own in self._compiled], axis=-1)
        warn_impossible(np.isnan(expected[:, 0]), "their action is None")
        return Decision(self.variable, expected, None, index_of(evidence, len(expected)))

    def _decide_under(self, evidence: EvidenceLike | None, tables: AnyEnsemble) -> Decision:
        known = self.read(evidence)
        mean = np.empty((known.rows, len(self.actions)))
        share = np.empty_like(mean)
        for rows, expected in self._expected_under(known, self._extended(tables)):
            mean[rows] = expected.mean(axis=0)
            best = expected.argmax(axis=-1)[..., None] == np.arange(len(self.actions))
            share[rows] = np.where(np.isnan(mean[rows]), np.nan, best.mean(axis=0))
        warn_impossible(np.isnan(mean[:, 0]), "their action is None under some of the networks")
        return Decision(self.variable, mean, share, index_of(evidence, known.rows))

    def _expected_under(self, known: Evidence, extended: list[AnyEnsemble]) -> Iterator[tuple[slice, Floats]]:
        """What actions are expected to be worth in some rows at a time: (draws, rows, actions)."""
        at_once = max(1, ANSWERS_AT_ONCE // (len(extended[0]) * len(self.actions)))
        for rows, block in blocks(known.columns, known.rows, at_once):
            with quietly():
                parts = zip(self._compiled, extended, strict=True)
                yield rows, np.concatenate([own.expected_under(ensemble, block) for own, ensemble in parts], axis=-1)

    def _extended(self, tables: AnyEnsemble) -> list[AnyEnsemble]:
        """The networks of an ensemble as the programs know them, kept for the next call: rows often come in parts."""
        if not isinstance(tables, BaseEnsemble):
            expected = "expected an Ensemble: estimate.draws(n), or tacit.Ensemble.of(networks)"
            raise TacitError(f"tables is a {type(tables).__name__}, {expected}")
        last = self._last_extended
        if last is None or last[0] is not tables:
            check_same_states(self.network, tables.network, self.decision)
            last = tables, [self._outlooks.extended_ensemble(tables, own.actions) for own in self._compiled]
            self._last_extended = last
        return last[1]

    def worth(self, evidence: EvidenceLike | None = None, costs: Mapping[str, float] | None = None) -> Worth:
        """What observing each variable of the evidence is worth, less its cost: by name, (rows,).

        That is by how much the best action is expected to be better if the state of this variable were known, too: 0
        where no state would change the action. NaN where the state is observed already; variables that every row
        observes, or sets, are left out. `costs` are by name, in the unit of the value nodes; what is not named is free.
        As for `TAC.information`, it is not counted that an observation may select other tables.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Rain", cpt=[0.3, 0.7])
        >>> net.add("Forecast", ["Rain"], cpt=[[0.8, 0.2], [0.1, 0.9]])
        >>> net.add("Umbrella", states=["take", "leave"])
        >>> net.value("Comfort", ["Rain", "Umbrella"], [[5, -20], [-3, 0]])
        >>> tac = tacit.compile(net, decide="Umbrella", evidence=["Rain", "Forecast"])
        >>> {name: own.round(3).tolist() for name, own in tac.worth(costs={"Forecast": 0.2}).items()}
        {'Rain': [2.1], 'Forecast': [0.19]}
        """
        numbers = [name for name in self.evidence if self.network.variable(name).continuous]
        names = [name for name in self.evidence if name not in (*self._query.always_known, *self.given, *numbers)]
        price, known = checked_costs(costs, names, numbers), self.read(evidence)
        gains = worth(self._compiled, names, known) if names else {}
        net = {name: gain - price.get(name, 0.0) for name, gain in gains.items()}
        return Worth(net, index_of(evidence, known.rows), continuous=numbers)

    def read(self, evidence: EvidenceLike | None = None, columns: Iterable[str] | None = None) -> Evidence:
        """Evidence that is checked once, to be asked about often; see `TAC.read`."""
        with self._known_before():
            return self._query.read(evidence, columns)

    @contextmanager
    def _known_before(self) -> Iterator[None]:
        """Errors about evidence that no compiled decision could take say so."""
        try:
            yield
        except EvidenceError as error:
            if error.variable not in self.network.descendants(self.decision):
                raise
            problem = f" is below the decision {self.decision!r}, and so not known yet when it is made; leave it out"
            raise EvidenceError(problem, variable=error.variable) from None

    def set_parameters(self, net: Network) -> None:
        """Take the numbers and values of another network of the same structure, as `TAC.set_parameters` does."""
        _check_same_values(self.network.value_nodes, net.value_nodes)
        outlooks = Outlooks(net, self.decision, net.value_nodes.values())
        self._compiled = [own.with_numbers(outlooks.extended(net, own.actions)) for own in self._compiled]
        self.network, self._outlooks, self._last_extended = net.copy(), outlooks, None

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row; where tests select what an action leads to, those of one action."""
        return self._query.cost()

    def __repr__(self) -> str:
        evidence, cost = plural(len(self.evidence), "evidence variable"), self._query.program.cost
        work = f"width {cost.width}, {cost.multiply_adds * len(self._compiled):,} multiply-adds per row"
        return f"DecisionQuery(decide={self.decision!r}, {evidence}, {work})"

    def _repr_html_(self) -> str:
        return facts(
            repr(self),
            {
                "decision": self.decision,
                "actions": listed(list(map(str, self.actions))),
                "value nodes": listed(list(self.network.value_nodes)),
                "evidence": listed([name for name in self.evidence if name not in self._query.always_known]),
                "always observed": listed(self.hard),
                "set by intervention": listed(self.do),
                "given": ", ".join(f"{name}={state}" for name, state in self.given.items()),
            },
        )


def compiled_decision(
    net: Any, decide: Any, evidence: Iterable[str], hard: Iterable[str], options: CompileOptions, needed: bool = False
) -> DecisionQuery:
    """A query for the best action. The parameters are those of `tacit.compile`.

    If the answer is `needed`, it is an error now where there is no program for it, and not when it is asked.
    """
    if not isinstance(net, Network):
        raise TacitError(f"decide= needs a Network, got a {type(net).__name__}: actions have effects, which it tells")
    check_decision(net, decide)
    options, maybe, always = options.checked(net), names_of(net, evidence, "evidence"), names_of(net, hard, "hard")
    question = checked_question(net, None, maybe, always, options)
    check_known_before(net, decide, (*question.evidence, *dict(question.given)))
    if decide in options.per_row:
        problem = "is what is to be decided, so that its table does not count"
        raise TacitError(f"{decide!r} {problem}; leave it out of per_row=")
    compiled = DecisionQuery(net, decide, maybe, always, options)
    for refusal in compiled._refusals if needed else ():
        raise refusal
    return compiled


def _check_same_values(old: Mapping[str, ValueNode], new: Mapping[str, ValueNode]) -> None:
    """An error unless value nodes have the same names and parents, in the same order."""
    mine, theirs = ([(own.name, own.variables) for own in nodes.values()] for nodes in (old, new))
    if mine != theirs:
        raise NetworkError("the value nodes have other names or parents, or these other states, than when the decision "
                           "was compiled; compile it again")  # fmt: skip
