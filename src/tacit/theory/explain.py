"""Why one row of evidence gets its answer: the tests, what they select, and the function that applies there.

Where nothing is tested, what each finding adds instead."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.grid import Grid, probability
from tacit.base.html import lines, table
from tacit.base.text import bars
from tacit.base.version import package
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.model.model import Model
from tacit.query.answers.selection import selected_network
from tacit.query.query import Query
from tacit.theory.arguments import read_given, state_of
from tacit.theory.conclusions import in_lines, of_no_weight, reasons, standing, told
from tacit.theory.explain_changes import MOST_PROBABLE, Change, Turn, changes, changes_grid, crossings_grid
from tacit.theory.findings import Finding, findings, said
from tacit.theory.multilinear import polynomial, subsets
from tacit.theory.piecewise import coefficients
from tacit.theory.selectable import SelectableQuery

MAX_INPUTS = 6  # soft evidence up to which the 2^inputs coefficients are worth reading
MAX_SHOWN = 20


@dataclass(frozen=True)
class Test:
    """One test of a testing node: a row of its CPT, and how it was decided.

    Attributes
    ----------
    node, parent_state
        Whose CPT, and which of its rows, in words.
    posterior, operator, threshold
        What was compared: P*(u) with its threshold. NaN if the evidence that the node sees has probability zero.
    weight
        The weight of `plus`: 1 or 0 for a test, between them for a sigmoid. Of more than two tables, how far the test
        holds, and so the weight of `table` and those after it.
    flips
        For each input that could change the outcome alone, where it would: the value at which P*(u) meets the
        threshold, if all other inputs, and the tests above this one, stay as they are.
    """

    node: str
    parent_state: str
    posterior: float
    operator: str
    threshold: float
    weight: float
    flips: Mapping[str, float]
    table: int | None = None

    @property
    def margin(self) -> float:
        """P*(u) - threshold."""
        return self.posterior - self.threshold

    @property
    def selected(self) -> str:
        """Which table rules, in words."""
        plus, minus = ("plus", "minus") if self.table is None else (f"table >= {self.table}", f"table < {self.table}")
        return {1.0: plus, 0.0: minus}.get(self.weight, f"{self.weight:.1%} {plus}")

    def cells(self) -> tuple[str, str, str, str, str]:
        """Where, the comparison, its margin, what is selected and where that would change."""
        return (
            f"{self.node} at {self.parent_state}",
            f"{self.posterior:.6g} {self.operator} {self.threshold:.6g}",
            f"{self.margin:+.3g}",
            self.selected,
            " or ".join(f"{name} = {value:.6g}" for name, value in self.flips.items()) or "-",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why one row of evidence gets its answer.

    Made by `TAC.explain` and `Network.explain`; prints as text and shows as HTML.

    Attributes
    ----------
    query, states, posterior
        The query variable, its states and their probabilities.
    evidence
        The row, in words.
    tests
        All tests that the query needs, in the order in which they are decided.
    findings
        Of a query without tests, what each finding adds given all the others.
    network
        The Bayesian network that was selected. Testing nodes that the query does not need stay as they are.
    coefficients
        C_I for every set I of inputs, an array over the query's states: with this selection,
        p*(q) = sum_I C_I prod_{i in I} lambda_i. The inputs are the binary variables with soft evidence, by the
        likelihood of their first states. None if there are more than 6.
    asked_state
        The state that `explain` was asked about, if it was.
    together
        What all findings add together, if there are several.
    changes
        The single changes of a finding, smallest first, that turn the answer: it is removed, or set to another state.
        They make another state of the query the most probable one; with a `threshold`, `state` crosses it.
    threshold
        The probability of `state` from which one would decide otherwise, if `explain` was given one.
    all_changes
        Whether all findings were set to all other states; only removed, where that would be too much work, and numbers.
    """

    query: str
    states: tuple[Label, ...]
    posterior: Floats
    evidence: Mapping[str, str]
    tests: tuple[Test, ...]
    network: Model
    coefficients: Mapping[tuple[str, ...], Floats] | None
    findings: tuple[Finding, ...] = ()
    asked_state: Label | None = None
    together: Finding | None = None
    changes: tuple[Change, ...] = ()
    all_changes: bool = False
    threshold: float | None = None

    @property
    def state(self) -> int:
        """The place of the state that findings are shown for: the one asked for, or else the most probable one."""
        if self.asked_state is not None:
            return self.states.index(self.asked_state)
        return int(self.posterior.argmax())

    @property
    def weights(self) -> list[tuple[str, float]]:
        """Each finding in words, and its weight for `state`, 0 where rounding alone makes it differ from that."""
        return [(f"{one.name}: {one.value}", told(one.weight[self.state])) for one in self.findings]

    @property
    def closest(self) -> Test | None:
        """The test that was decided by the smallest margin."""
        return min(self.tests, key=lambda test: abs(test.margin), default=None)

    @property
    def conclusion(self) -> str:
        """The answer and what it is mainly due to, in one sentence."""
        answer = standing(self.query, self.states, self.posterior, self.state)
        if self.closest and np.isfinite(self.closest.margin):
            return f"{answer}; {self._said(self.closest)}."
        if self.findings:
            best = self.posterior[self.state] == self.posterior.max()
            return f"{answer}, {reasons(self.findings, self.state, against=not best)}."
        return f"{answer}." if self.evidence else f"{answer}, without any evidence."

    def _said(self, test: Test) -> str:
        """What decided, of a test: whether it holds, and by how much."""
        which = "its only test" if len(self.tests) == 1 else f"the closest of its {len(self.tests)} tests"
        holds = "holds" if test.weight >= 0.5 else "fails"
        where = f"{test.node} at {test.parent_state}"
        comparison = f"{test.posterior:.3g} {test.operator} {test.threshold:.3g}"
        return f"{which}, {where}, {holds} by {abs(test.margin):.3g} ({comparison})"

    def __str__(self) -> str:
        posterior = f"{self._title()}\n{bars(self.states, self.posterior.tolist())}"
        grids = [str(grid) for grid in (self._grid(), self._changes_grid()) if grid]
        parts = [in_lines(self.conclusion), posterior, *grids, *self._stable(), "\n".join(self._functions())]
        return "\n\n".join(filter(None, parts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        posterior = table((), zip(map(str, self.states), self.posterior.tolist(), strict=True), self._title())
        grids = "".join(grid.html() for grid in (self._grid(), self._changes_grid()) if grid)
        return lines([self.conclusion]) + posterior + grids + lines([*self._stable(), *self._functions()])

    def plot(self, ax: Any = None, width: float | str | None = None) -> Any:
        """Draw what each finding adds as bars: see `tacit.plot.weights`. It needs matplotlib."""
        from tacit.views.charts import weights

        return weights(self, ax, width)

    def to_pandas(self) -> Any:
        """A pandas frame with a line for each test; without tests, for each finding, about `state`."""
        return package("pandas", "frames").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """A polars frame with a line for each test; without tests, for each finding, about `state`."""
        return package("polars", "frames").DataFrame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        if self.tests:
            fields = ("node", "parent_state", "posterior", "operator", "threshold", "margin", "selected")
            return {field: [getattr(test, field) for test in self.tests] for field in fields}
        return {
            "finding": [one.name for one in self.findings],
            "value": [one.value for one in self.findings],
            "without": [float(one.without[self.state]) for one in self.findings],
            "weight": [float(one.weight[self.state]) for one in self.findings],
        }

    def _grid(self) -> Grid | None:
        """The tests, or the closest of many; without tests, the findings, those with the largest weights first."""
        if self.tests:
            close = sorted(self.tests, key=lambda test: abs(test.margin))[:MAX_SHOWN]
            cells = [test.cells() for test in self.tests if test in close]
            head = ("test", "comparison", "margin", "selects", "changes at")
            return Grid([head], cells, len(head), note=_more(len(self.tests), "larger margins"))
        if not self.findings:
            return None
        state = self.state
        shown = sorted(self.findings, key=lambda one: -np.nan_to_num(abs(one.weight[state])))
        idle = [one.name for one in shown if told(one.weight[state]) == 0]
        if len(idle) == len(shown):
            idle = []  # a table needs some line
        shown = [one for one in shown if one.name not in idle]
        body = [_line(one, state) for one in (*shown[:MAX_SHOWN], *filter(None, [self.together]))]
        title = f"What each finding adds to the log-odds of {self.query}={self.states[state]}, given the others (nats)"
        notes = [_more(len(shown), "smaller weights"), of_no_weight(idle)]
        note = "; ".join(filter(None, notes))
        return Grid([("finding", "without it", "weight")], body, title=title, note=note)

    def _changes_grid(self) -> Grid | None:
        if not self.changes:
            return None
        if self.threshold is None:
            return changes_grid(self.changes, self.states)
        return crossings_grid(self.changes, Turn(self.state, self.threshold), self._crossed(self.threshold))

    def _crossed(self, threshold: float) -> str:
        """What a state does that crosses a threshold, in words."""
        above = Turn(self.state, threshold).above(self.posterior)
        return f"{self.query}={self.states[self.state]} {'below' if above else 'to or above'} {100 * threshold:.3g}%"

    def _stable(self) -> list[str]:
        """That no change, or no removal, of a finding turns the answer."""
        if not self.findings or any(change.to is None for change in self.changes):
            return []
        if self.threshold is not None:
            what = "No change" if self.all_changes and not self.changes else "No removal"
            return [f"{what} of a single finding takes {self._crossed(self.threshold)}."]
        best = f"{self.query}={self.states[int(self.posterior.argmax())]}"
        if self.all_changes and not self.changes:
            return [f"No change of a single finding makes another state than {best} the most probable."]
        return [f"Removing any one finding leaves {best} the most probable."] if self.together else []

    def _title(self) -> str:
        evidence = ", ".join(f"{name}: {value}" for name, value in self.evidence.items())
        return f"P*({self.query}{' | ' if evidence else ''}{evidence})"

    def _functions(self) -> list[str]:
        if self.coefficients is None:
            return [f"No coefficients are shown for more than {MAX_INPUTS} inputs."]
        if self.findings and len(self.coefficients) == 1:
            return []  # nothing but the joint, which says no more than the posterior
        inputs = [f"{names[0]} = {self.network.states(names[0])[0]}" for names in self.coefficients if len(names) == 1]
        functions = [
            f"p*({self.query}={q}) = {polynomial({names: float(c[i]) for names, c in self.coefficients.items()})}"
            for i, q in enumerate(self.states)
            if self.asked_state is None or i == self.state
        ]
        start = "With this selection, as a function of" if self.tests else "As a function of"
        return [f"{start} the likelihoods of {', '.join(inputs)}:", *functions] if inputs else functions


def _line(one: Finding, state: int) -> tuple[str, str, str]:
    name = f"{one.name}: {one.value}" if one.value else one.name
    return name, probability(float(one.without[state])), f"{told(one.weight[state]):+.3g}"


def _more(count: int, which: str) -> str:
    return f"... and {count - MAX_SHOWN} more, with {which}" if count > MAX_SHOWN else ""


def explain(
    tac: Query, evidence: EvidenceLike | None = None, state: Label | None = None, threshold: float | None = None
) -> Explanation:
    """Why one row of evidence gets its answer; see `TAC.explain`. The query has no interventions."""
    place = None if state is None else state_of(tac, state)
    turn = MOST_PROBABLE if threshold is None else _turn(place, threshold)
    asked = None if place is None else tac.variable.states[place]
    why = _explained(tac, one_row(read_given(tac, evidence)), turn)
    return replace(why, asked_state=asked, threshold=turn.threshold)


def _turn(state: int | None, threshold: float) -> Turn:
    if state is None:
        raise TacitError(f"threshold is {threshold!r}, but of which state? Name it with state=")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not 0 < threshold < 1:
        raise TacitError(f"threshold is {threshold!r}, expected a probability between 0 and 1")
    return Turn(state, float(threshold))


def one_row(known: Evidence, what: str = "explain") -> Evidence:
    """Evidence of one row; an error if there are more, or none."""
    if known.rows != 1:
        raise EvidenceError(f"{what} takes one row of evidence, got {known.rows} rows")
    return known


def _explained(tac: Query, checked: Evidence, turn: Turn) -> Explanation:
    answer = tac.ask(checked, selected=True)  # not read again, with the same warnings
    if np.isneginf(answer.log_evidence).any():
        raise EvidenceError("the evidence has probability 0, so there is no answer to explain")
    columns = {n: c for n, c in checked.columns.items() if (c.likelihoods() != 1).any()}  # others say nothing
    soft = [n for n, c in columns.items() if c.soft is not None and len(tac.network.states(n)) == 2]
    inputs = [n for n in soft if n not in tac.hard]
    telling = {n for n, c in checked.columns.items() if n in columns or c.variable.continuous}  # p* has their densities
    query = SelectableQuery(tac, inputs, {n: c for n, c in checked.columns.items() if n in telling and n not in inputs})
    point = np.array([columns[n].likelihoods()[0, 0] for n in inputs])
    weights = np.ones(len(query.tests))
    for node, tests in query.scope.tests_of.items():
        owner, table = query.scope.thresholds[node]
        own = answer.selected[owner].weight[0]
        weights[tests] = (own if table is None else np.minimum(own[..., table:].sum(axis=-1), 1.0)).ravel()
    table = coefficients(query, weights[:, None])[0] if len(inputs) <= MAX_INPUTS else None
    words = {name: said(column) for name, column in columns.items()}
    added: tuple[Finding, ...] = ()
    flips: tuple[Change, ...] = ()
    together, complete = None, False
    if not len(query.tests):
        with suppress(TooLargeError):  # to leave out a finding is more work than to answer
            told = {name: text for name, text in words.items() if name not in tac.given}
            added, together = findings(tac, checked.columns, told)
            flips, complete = changes(tac, checked.columns, added, turn)
    return Explanation(
        query=tac.variable.name,
        states=tac.variable.states,
        posterior=answer.posterior[0],
        evidence=words,
        tests=_tests(query, point, weights),
        network=selected_network(tac.network, answer.selected),
        coefficients=None if table is None else dict(zip(subsets(inputs), table, strict=True)),
        findings=added,
        together=together,
        changes=flips,
        all_changes=complete,
    )


def _tests(query: SelectableQuery, point: Floats, weights: Floats) -> tuple[Test, ...]:
    """The tests under a selection, at one point and where each input alone would flip them."""
    count = len(point)
    ends = np.tile(point[:, None], (1, 1 + 2 * count))  # the point, then each input at 0 and at 1
    for i in range(count):
        ends[i, 1 + 2 * i : 3 + 2 * i] = 0.0, 1.0
    posteriors, flips = np.empty(len(weights)), np.full((len(weights), count), np.nan)
    for group in query.groups:
        marginal, _ = query.joint(ends, np.tile(weights[:, None], (1, ends.shape[1])), group)
        margins = query.margins(group, marginal)
        first, last = margins[..., 1::2], margins[..., 2::2]
        with np.errstate(divide="ignore", invalid="ignore"):
            posteriors[group.tests] = marginal[:, 0] / marginal[:, 0].sum()
            flips[group.tests] = np.where(first * last < 0, first / (first - last), np.nan)
    flips[~query.tests.hard] = np.nan
    owners = [query.threshold(i).node for i in range(len(query.tests))]
    places = {node: place for place, node in enumerate(dict.fromkeys(owners))}
    return tuple(
        Test(
            node=owners[i],
            parent_state=query.name(i),
            posterior=float(posteriors[i]),
            operator=str(query.tests.operators[i]),
            threshold=float(query.tests.thresholds[i]),
            weight=float(weights[i]),
            flips={n: float(v) for n, v in zip(query.inputs, flips[i], strict=True) if not np.isnan(v)},
            table=query.threshold(i).table,
        )
        for i in sorted(range(len(owners)), key=lambda i: (places[owners[i]], query.tests.states[i]))
    )
