"""Commands that ask about one row of evidence: query, explain and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite, isinf
from typing import Annotated, Any

import numpy as np
import typer

from tacit import theory
from tacit.base.floats import Floats
from tacit.base.text import bars, plural
from tacit.cli.shared.arguments import (
    Credible,
    Do,
    Draws,
    Evidence,
    Json,
    Model,
    Queries,
    Query,
    read_draws,
    variables,
)
from tacit.cli.shared.output import aligned, asked, bar, heading, show_json, together
from tacit.cli.shared.row import Row
from tacit.cli.shared.values import read_box, state_of
from tacit.model.elements.variable import Label, Variable
from tacit.model.factor_graph import FactorGraph
from tacit.query.answers.by_variable import untold
from tacit.query.ensemble import Ensemble
from tacit.query.numbers.intervals import means
from tacit.query.numbers.mixture import IN_FILES, SUMMARY, Mixture

GRID_WIDTH = 100  # above which a grid becomes a list
MAX_COMBINATIONS = 20  # in a list
MAX_OBSERVATIONS = 5  # to make next
MIN_DROP = 1e-9  # nats


def query(
    model: Model,
    query: Queries,
    evidence: Evidence = None,
    do: Do = None,
    joint: Annotated[
        bool, typer.Option("--joint", help="The joint posterior of all query variables, not one of each.")
    ] = False,
    next_: Annotated[
        bool, typer.Option("--next", help="Also which variables would tell most about the query if they were observed.")
    ] = False,
    credible: Credible = None,
    draws: Draws = None,
    json: Json = False,
) -> None:
    """Show the posterior of one or more variables.

    A value is a state; or a number, for a variable whose values are numbers or intervals; or the likelihood of the
    first state, for another variable that has two; or one likelihood per state, with commas between. Likelihoods need
    not sum to 1.

    The variables are answered one by one; with --joint, all combinations of their states are. A variable whose values
    are numbers is answered by its mean, standard deviation and quantiles.

    With --credible and --draws, the answer is the mean under the networks of an ensemble, and beside each probability
    is the interval that it has with this level: how sure the answer is, if tables were learned from few rows.

    \b
    Examples:
      tacit query asia.bif -q lung
      tacit query asia.bif -q lung -e xray=yes -e smoke=0.7
      tacit query asia.bif -q lung -q bronc --joint -e dysp=yes
      tacit query asia.bif -q lung -e xray=yes --next
      tacit query asia.bif -q lung --do smoke=no
      tacit query asia.bif -q lung -e seen.inst
      tacit query alarm.bif -q LVFAILURE -e CVP=0.1,0.2,0.7 --json
      tacit query found.json -q lung -e xray=yes --credible 0.9 --draws draws.npz
    """
    ensemble = read_draws(credible, draws)
    if ensemble is not None and next_:
        raise typer.BadParameter("--credible and --next are two questions; ask one after the other")
    row = Row(model, evidence, do)
    names = variables(row.net, query)
    groups = [names] if joint else [(name,) for name in names]
    posteriors: list[Posterior | Distribution | Sure]
    if ensemble is None or credible is None:
        posteriors = [posterior(row, group, next_) for group in groups]
    else:
        posteriors = [sure(row, group, ensemble, credible) for group in groups]
    if json:
        return show_json(_posterior_data(names, posteriors))
    for one in posteriors:
        heading(asked(together(one.names), row.given))
        print(one.text())
        if one.drops is not None:
            print(one.observations())
    markov = isinstance(row.net, FactorGraph)
    if evidence or markov:
        what = "log of the partition function" if markov else f"log-{row.measure} of the evidence"
        print(f"{what}: {posteriors[0].log_evidence:.6g}")


def _posterior_data(names: tuple[str, ...], posteriors: list[Posterior | Distribution | Sure]) -> dict[str, Any]:
    """The answer for --json; where there is only one posterior, without an object around it."""
    first, several = posteriors[0], len(posteriors) > 1
    values = {",".join(one.names): one.data() for one in posteriors}
    data = {
        "query": names[0] if len(names) == 1 else names,
        "posterior": values if several else next(iter(values.values())),
        "log_evidence": first.log_evidence,
    }
    numbers = {one.names[0]: mean for one in posteriors if (mean := one.mean()) is not None}
    if numbers:
        data["mean"] = numbers if several else next(iter(numbers.values()))
    if intervals := {",".join(one.names): one.intervals() for one in posteriors if isinstance(one, Sure)}:
        data["credible"] = intervals if several else next(iter(intervals.values()))
    if first.drops is not None:
        data["next"] = {",".join(one.names): one.drops for one in posteriors} if several else first.drops
    return data


@dataclass(frozen=True)
class Posterior:
    """The posterior (states of the first, states of the second, ...) of some variables."""

    variables: list[Variable]
    values: Floats
    log_evidence: float
    drops: dict[str, float] | None  # of its entropy, expected if a variable is observed, in nats; None: not asked for
    unasked: tuple[str, ...] = ()  # continuous variables, for which no drop is computed

    @property
    def names(self) -> list[str]:
        """The variables by name."""
        return [variable.name for variable in self.variables]

    def text(self) -> str:
        """For people: bars for one variable, a grid for two, a list of combinations for more."""
        if len(self.variables) == 1:
            mean = self.mean()
            return bars(self.variables[0].states, self.values.tolist()) + (
                f"\nmean: {mean:.6g}" if mean is not None else ""
            )
        if len(self.variables) == 2:
            first, second = self.variables
            head = ("", *(f"{second.name}={state}" for state in second.states))
            body = [
                (f"{first.name}={state}", *(f"{p:.6f}" for p in line))
                for state, line in zip(first.states, self.values.tolist(), strict=True)
            ]
            grid = aligned([head, *body], stubs=1)
            if len(grid.partition("\n")[0]) <= GRID_WIDTH:
                return grid
        return _combinations(self.variables, self.values)

    def data(self) -> dict[str, Any]:
        """For scripts: objects within objects, a state of the first variable outermost."""
        return _nested(self.variables, self.values)

    def mean(self) -> float | None:
        """The mean of one interval variable, unless it has an interval for which no number stands."""
        (variable, *others), edges = self.variables, self.variables[0].bins
        if others or edges is None or (isinf(edges[0]) and isinf(edges[-1]) and len(edges) == 2):
            return None
        return float(means(variable, self.values[None])[0])

    def observations(self) -> str:
        """The most informative observations, each with a bar for its share of the entropy."""
        entropy = float(-(self.values * np.log(np.where(self.values > 0, self.values, 1.0))).sum())
        best = [(name, drop) for name, drop in (self.drops or {}).items() if drop > MIN_DROP][:MAX_OBSERVATIONS]
        note = f"\n({untold(self.unasked)})" if self.unasked else ""
        if not best:
            observation = "observation of a state" if note else "observation"
            return f"no further {observation} would be informative about {together(self.names)}{note}"
        rows = [(f"  {name}", f"{drop:.6f}", bar(drop / entropy)) for name, drop in best]
        return f"to observe next, by the expected drop of the entropy, now {entropy:.6f} nats:\n{aligned(rows)}{note}"


@dataclass(frozen=True)
class Distribution:
    """The distribution of the numbers of one continuous variable, or of one of its columns."""

    names: tuple[str]
    mixture: Mixture
    log_evidence: float
    drops: None = None

    def text(self) -> str:
        """For people: a line for each column."""
        lines = [(name, *(f"{number:.6g}" for number in numbers)) for name, numbers in self._summaries().items()]
        return aligned([("", *SUMMARY), *lines], stubs=1)

    def data(self) -> dict[str, Any]:
        """For scripts: an object, or one for each of several columns."""
        by_column = {
            name: dict(zip(IN_FILES, numbers.tolist(), strict=True)) for name, numbers in self._summaries().items()
        }
        return by_column if len(by_column) > 1 else next(iter(by_column.values()))

    def mean(self) -> None:
        """Nothing beside the numbers themselves."""

    def observations(self) -> str:
        raise AssertionError("nothing is said about observations of other variables")

    def _summaries(self) -> dict[str, Floats]:
        return {name: self.mixture.summary(name)[0] for name in self.mixture.columns}


@dataclass(frozen=True)
class Sure:
    """The posterior of some variables under the networks of an ensemble: means, and the ends of their intervals."""

    variables: list[Variable]
    parts: dict[str, Floats]  # mean, low and high, each (states of the first, states of the second, ...)
    level: float
    log_evidence: float
    drops: None = None

    @property
    def names(self) -> list[str]:
        """The variables by name."""
        return [variable.name for variable in self.variables]

    def text(self) -> str:
        """For people: a line for each combination of states, of several variables the most probable ones first."""
        mean, low, high = (self.parts[part].ravel() for part in ("mean", "low", "high"))
        several = len(self.variables) > 1
        order = np.argsort(-mean, kind="stable")[:MAX_COMBINATIONS] if several else np.arange(mean.size)
        lines = []
        for place in order.tolist():
            states = np.unravel_index(place, self.parts["mean"].shape)
            labels = (str(variable.states[int(i)]) for variable, i in zip(self.variables, states, strict=True))
            lines.append((*labels, f"{mean[place]:.6f}  [{low[place]:.6f}, {high[place]:.6f}]  {bar(mean[place])}"))
        head = [(*self.names, "probability")] * several
        more = f"\nand {plural(mean.size - len(order), 'more combination')}" if len(order) < mean.size else ""
        return f"{aligned([*head, *lines])}{more}\nmeans, and intervals with a probability of {100 * self.level:g}%"

    def data(self) -> dict[str, Any]:
        """The means, as the posterior is written."""
        return _nested(self.variables, self.parts["mean"])

    def intervals(self) -> dict[str, Any]:
        """The ends of the intervals, for scripts."""
        return {"level": self.level, **{end: _nested(self.variables, self.parts[end]) for end in ("low", "high")}}

    def mean(self) -> None:
        """Nothing beside the means of probabilities."""

    def observations(self) -> str:
        raise AssertionError("nothing is said about observations of other variables")


def sure(row: Row, names: tuple[str, ...], ensemble: Ensemble, level: float) -> Sure:
    """The posterior of some variables for a row under the networks of an ensemble."""
    row.require_network()
    tac = row.compile(names if len(names) > 1 else names[0])
    log_evidence = row.log_evidence(tac, "posterior")
    found = tac.credible(row.values(tac), ensemble, level)
    parts = {"mean": found.mean[0], "low": found.low[0], "high": found.high[0]}
    return Sure([row.net.variable(name) for name in names], parts, level, log_evidence)


def posterior(row: Row, names: tuple[str, ...], with_drops: bool) -> Posterior | Distribution:
    """The posterior of some variables for a row, and the expected drops of its entropy, largest first, if asked for."""
    tac = row.compile(names if len(names) > 1 else names[0])
    if tac.asks_for_numbers:
        if with_drops:
            raise typer.BadParameter(f"{names[0]!r} is continuous, and --next is about the entropy of states")
        log_evidence = row.log_evidence(tac, "posterior")
        return Distribution((names[0],), tac.mixture(row.values(tac)), log_evidence)
    answer = row.ask(tac)
    drops = None
    if with_drops:  # not of variables that are asked for, observed or set
        told = {name: float(drop[0]) for name, drop in tac.information(row.values(tac)).items()}
        new = [name for name, drop in told.items() if name not in names and not np.isnan(drop)]
        drops = {name: told[name] for name in sorted(new, key=lambda name: -told[name])}
    unasked = tuple(name for name in tac.network.continuous if name not in row.observed)
    return Posterior(
        [row.net.variable(n) for n in names], answer.posterior[0], float(answer.log_evidence[0]), drops, unasked
    )


def _nested(variables: Sequence[Variable], values: Floats) -> dict[str, Any]:
    """Objects within objects, a state of the first variable outermost."""
    first, *others = variables
    parts = [_nested(others, part) if others else float(part) for part in values]
    return dict(zip(map(str, first.states), parts, strict=True))


def _combinations(variables: Sequence[Variable], values: Floats) -> str:
    """The most probable combinations of states, and how much is left."""
    flat = values.ravel()
    order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat)]
    rows = [(*(variable.name for variable in variables), "probability")]
    for place in order[:MAX_COMBINATIONS].tolist():
        states = np.unravel_index(place, values.shape)
        labels = (str(variable.states[i]) for variable, i in zip(variables, states, strict=True))
        rows.append((*labels, f"{flat[place]:11.6f}  {bar(flat[place])}"))
    rest = order[MAX_COMBINATIONS:]
    more = f"\nand {plural(len(rest), 'more combination')}, together {flat[rest].sum():.6f}" if len(rest) else ""
    return aligned(rows) + more


def explain(
    model: Model,
    query: Query,
    evidence: Evidence = None,
    do: Do = None,
    state: Annotated[str | None, typer.Option(help="The state of the query to explain.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="The probability of the --state from which you decide otherwise: what would cross it?"),
    ] = None,
    json: Json = False,
) -> None:
    """Show why a query has this answer.

    That is: all tests, what they select, where that would change, and the function that applies there. Without testing
    nodes: what each finding adds to the others, those with the largest weights first.

    \b
    Examples:
      tacit explain abc.json -q B -e A=0.8 -e C=lo
      tacit explain asia.bif -q lung -e xray=yes -e dysp=yes --state no
      tacit explain asia.bif -q lung -e xray=yes --state yes --threshold 0.1
      tacit explain asia.bif -q lung -e xray=yes --do smoke=no
    """
    row = Row(model, evidence, do)
    row.require_network()
    tac = row.compile(query)
    row.ask(tac)
    why = tac.explain(row.values(tac), None if state is None else state_of(tac.variable, state), threshold)
    if not json:
        return print(why)
    functions = None
    if why.coefficients is not None:
        functions = [{"inputs": names, "coefficients": c.tolist()} for names, c in why.coefficients.items()]
    show_json({
        "query": query,
        **({} if state is None else {"state": why.asked_state}),
        "posterior": dict(zip(map(str, why.states), why.posterior.tolist(), strict=True)),
        "tests": [asdict(test) | {"margin": test.margin, "selected": test.selected} for test in why.tests],
        "functions": functions,
        "findings": [_finding(one, why.states) for one in why.findings],
    })  # fmt: skip


def _finding(one: theory.Finding, states: Sequence[Label]) -> dict[str, Any]:
    """A finding as plain data; weights without a number, which JSON has none for, are left out."""
    labels = list(map(str, states))
    weights = {q: w for q, w in zip(labels, one.weight.tolist(), strict=True) if isfinite(w)}
    without = {q: p for q, p in zip(labels, one.without.tolist(), strict=True) if isfinite(p)}
    return {"name": one.name, "value": one.value, "without": without, "weight": weights}


def bounds(
    model: Model,
    box: Annotated[list[str], typer.Argument(metavar="VARIABLE=LOW:HIGH", help="Where the evidence may be.")],
    query: Query,
    evidence: Evidence = None,
    state: Annotated[str | None, typer.Option(help="The state of the query; its first one, if left out.")] = None,
    json: Json = False,
) -> None:
    """Find the range of a posterior over a box of soft evidence.

    The box has, for each of at most 10 variables of two states, the least and the greatest likelihood of the first one.

    \b
    Example:
      tacit bounds abc.json -q B A=0.2:0.9 -e C=lo
    """
    ranges = read_box(box)
    row = Row(model, evidence)
    row.require_network()
    tac = row.compile(query, list(ranges))
    row.ask(tac)
    extremes = theory.bounds(tac, ranges, None if state is None else state_of(tac.variable, state), row.values(tac))
    if json:
        ends = {name: asdict(end) for name, end in (("minimum", extremes.minimum), ("maximum", extremes.maximum))}
        return show_json({"query": query, "state": extremes.state, **ends, "exact": extremes.exact})
    heading(asked(f"{query}={extremes.state}", [*box, *(evidence or ())]))
    print(aligned([("minimum", str(extremes.minimum)), ("maximum", str(extremes.maximum))]))
