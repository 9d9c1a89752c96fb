"""Answers to the questions of requests, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, TooLargeError
from tacit.base.floats import Floats, as_json
from tacit.base.text import large
from tacit.compiler.prune import relevant
from tacit.evidence.column import Evidence
from tacit.model.cpt import TestingCPT
from tacit.query.answers.answer import Answer
from tacit.query.answers.selection import join_rows
from tacit.query.assignments import Labels
from tacit.query.marginals import information as information_of
from tacit.query.marginals import marginals_and_weights
from tacit.query.network import Network
from tacit.query.numbers.mixture import IN_FILES
from tacit.query.sensitivity import Entry
from tacit.query.sensitivity import sensitivity as sensitivity_of
from tacit.query.tac import TAC
from tacit.serve.given import read_given, state_key
from tacit.serve.limits import Limits
from tacit.serve.queries import Queries
from tacit.serve.request import Fields
from tacit.serve.workers import Deadline

BLOCK_WORK = 100_000_000  # multiply-adds between two looks at the clock: about a tenth of a second
BLOCK_ROWS = 4096
NUMBERS_PER_TEST = 10  # and texts that an explanation has


@dataclass(frozen=True)
class QueryTask:
    """One request, and all that is needed to answer it."""

    queries: Queries
    fields: Fields
    limits: Limits
    deadline: Deadline
    at_hand: TAC | None = None  # the query, if it need not be looked for

    @property
    def net(self) -> Network:
        """The network of all queries."""
        return self.queries.net

    @cached_property
    def known(self) -> Evidence:
        """The evidence, checked."""
        evidence = read_given(self.net, self.fields, self.limits, self.deadline)
        for name in self.fields.do:
            if name in evidence.columns:
                raise EvidenceError(f"{name!r} is observed, and set by do; expected one or the other")
        return evidence

    def tac(self) -> TAC:
        """The query, compiled."""
        if self.at_hand is not None:
            return self.at_hand
        evidence = self.known
        for name in self.asked:
            self.net.named(name)  # an error, before anything is compiled
        self.deadline.check()
        return self.queries.of(self.fields.query, evidence)

    @property
    def asked(self) -> tuple[str, ...]:
        """The query variables."""
        query = self.fields.query
        return (query,) if isinstance(query, str) else query

    def blocks(self, tac: TAC, at_most: int = BLOCK_ROWS) -> Iterator[Evidence]:
        """Some rows at a time, with a look at the clock between."""
        rows = BLOCK_WORK // max(1, tac.program.cost.multiply_adds)
        for block in self.known.blocks(max(1, min(rows, at_most))):
            self.deadline.check()
            yield block

    @cached_property
    def states(self) -> int:
        """The number of joint states of the query variables; a repeated name is an error elsewhere."""
        return prod(self.net.variable(self.net.named(name)).card for name in dict.fromkeys(self.asked))

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns of numbers that are meant by a name; none where it is that of a variable with states."""
        variable = self.net.variable(self.net.named(name))
        return variable.columns if name == variable.name else (name,)

    def test_numbers(self, tac: TAC) -> int:
        """The numbers for each row that tell how testing nodes were decided; 0, unless they are asked for."""
        names = tac.program.selections if self.fields.tests else ()
        cpts = [cpt for name in names if isinstance(cpt := tac.network.cpt(name), TestingCPT)]
        return sum(cpt.test.size * (2 if len(cpt.tables) == 2 else 1 + len(cpt.tables)) for cpt in cpts)

    def require_few_sweeps(self) -> None:
        """Refuse a sweep over all variables for each of very many joint states of the query."""
        variables, most = len(self.net.variables), self.limits.numbers
        if self.states * variables > most:
            raise TooLargeError(
                f"this takes a number for each of {variables:,} variables and each of {large(self.states)} joint "
                f"states of the query, for every row (limit {most:,} numbers); ask about fewer variables at once"
            )

    def require_few(self, per_row: int) -> None:
        """Refuse an answer that would have too many numbers, with so many for each row."""
        count = per_row * self.known.rows
        if count > self.limits.numbers:
            raise TooLargeError(
                f"the answer would have {count:,} numbers (limit {self.limits.numbers:,}); ask for fewer rows or "
                "variables at a time"
            )


def posterior(task: QueryTask) -> dict[str, Any]:
    """P*(query) for every row."""
    if len(task.asked) == 1 and (columns := task.columns(task.asked[0])):
        return _distribution(task, columns)
    task.require_few(task.states)  # before anything is compiled
    tac = task.tac()
    task.require_few(task.states + task.test_numbers(tac))
    answers = [tac.ask(block, selected=task.fields.tests) for block in task.blocks(tac)]
    return {
        "query": task.fields.query,
        "states": {name: list(task.net.states(name)) for name in task.asked},
        "posterior": _joined(answer.posterior for answer in answers),
        "log_evidence": _joined(answer.log_evidence for answer in answers),
        **_tests(task, answers),
    }


def predict(task: QueryTask) -> dict[str, Any]:
    """The most probable state of the query for every row, and its probability; of several variables, of each."""
    task.require_few(task.states)
    tac = task.tac()
    found = [tac.predict(block) for block in task.blocks(tac)]
    labels = [label for block in found for label in block.labels.tolist()]
    return {"query": task.fields.query, "states": labels, "probability": _joined(block.probability for block in found)}


def _distribution(task: QueryTask, columns: Sequence[str]) -> dict[str, Any]:
    """The distribution of a continuous query for every row."""
    task.require_few(len(IN_FILES) * len(columns))
    tac = task.tac()
    mixtures, logs = [], []
    for block in task.blocks(tac):
        mixtures.append(tac.mixture(block))
        logs.append(tac.log_evidence(block))
    numbers = {name: _summaries([mixture.summary(name) for mixture in mixtures]) for name in columns}
    return {"query": task.fields.query, "numbers": numbers, "log_evidence": _joined(logs)}


def _summaries(blocks: Sequence[Floats]) -> dict[str, Any]:
    """Mean, standard deviation and quantiles by name, from those (rows, 5) of some rows at a time."""
    return dict(zip(IN_FILES, as_json(np.concatenate(blocks).T), strict=True))


def marginals(task: QueryTask) -> dict[str, Any]:
    """The posteriors of all variables, or of some, for every row."""
    named = task.net.variables if task.fields.variables is None else task.fields.variables
    wanted = [name for name in named if not task.columns(name)]
    columns = [column for name in named for column in task.columns(name)]
    mixed = (
        list(dict.fromkeys(task.net.named(name) for name in named if task.columns(name))) if task.fields.weights else []
    )
    states = sum(task.net.variable(name).card for name in (*wanted, *mixed)) + len(IN_FILES) * len(columns)
    task.require_few(states)  # before anything is compiled
    tac = task.queries.of_all()
    task.require_few(states + task.test_numbers(tac))
    numbers: dict[str, list[Floats]] = {column: [] for column in columns}
    posteriors, weights, answers = [], [], []
    for block in task.blocks(tac):
        answers.append(tac.ask(block, selected=task.fields.tests))
        task.deadline.check()
        every, components = marginals_and_weights(tac, block)
        weights.append(components)
        posteriors.append({name: every[name] for name in wanted})
        for column in columns:  # there is nothing to say of one that is known in all rows
            known = column not in every
            numbers[column].append(
                np.full((block.rows, len(IN_FILES)), np.nan) if known else every[column].summary(column)
            )
    return {
        "posteriors": {name: _joined(block[name] for block in posteriors) for name in wanted},
        **({"numbers": {name: _summaries(blocks) for name, blocks in numbers.items()}} if columns else {}),
        **(
            {"weights": {name: _joined(block[name] for block in weights) for name in mixed}}
            if task.fields.weights
            else {}
        ),
        "log_evidence": _joined(answer.log_evidence for answer in answers),
        **_tests(task, answers),
    }


def mpe(task: QueryTask) -> dict[str, Any]:
    """The states of all variables that are most probable together, for every row."""
    task.require_few(len(task.net.variables))
    tac = task.queries.of(None, task.known)
    best = [tac.mpe(block) for block in task.blocks(tac)]
    return {
        "states": {name: [s for block in best for s in _plain(block.states[name])] for name in best[0].states},
        "log_probability": _joined(block.log_probability for block in best),
    }


def sample(task: QueryTask) -> dict[str, Any]:
    """Samples of all variables, given each row."""
    n, seed = task.fields.n, task.fields.seed
    task.require_few(n * len(task.net.variables))
    tac = task.queries.of(None, task.known)
    blocks = [
        tac.sample(block, n, None if seed is None else seed + number)  # one block has the samples of Python
        for number, block in enumerate(task.blocks(tac, at_most=max(1, BLOCK_ROWS // n)))
    ]
    return {"states": {name: [s for block in blocks for s in _plain(block[name])] for name in blocks[0]}}


def _plain(labels: Labels) -> list[Any]:
    """Labels, or numbers, as JSON has them: null for numbers that do not exist."""
    return as_json(labels) if labels.dtype.kind == "f" else labels.tolist()  # type: ignore[no-any-return]


def explain(task: QueryTask) -> dict[str, Any]:
    """Why each row gets its answer."""
    tac = task.tac()
    asked = map(task.net.named, task.asked)
    cpts = map(task.net.cpt, relevant(task.net, [*asked, *task.known.columns]))
    task.require_few(NUMBERS_PER_TEST * sum(cpt.thresholds.size for cpt in cpts if isinstance(cpt, TestingCPT)))
    explanations: list[dict[str, Any]] = []
    for block in task.blocks(tac, at_most=1):
        try:
            explanations.append(_explained(tac, block))
        except EvidenceError as error:
            raise error.changed(row=len(explanations)) if task.known.rows > 1 else error from None
    return {"query": task.fields.query, "explanations": explanations}


def compare(task: QueryTask) -> dict[str, Any]:
    """Why two rows get different answers."""
    if task.known.rows != 2:
        raise EvidenceError(f"compare takes two rows of evidence, got {task.known.rows:,}")
    tac = task.tac()
    first, second = task.known.blocks(1)
    task.deadline.check()
    why = tac.compare(first, second, task.fields.state)

    def by_state(numbers: Floats) -> dict[str, Any]:
        return {state_key(q): as_json(number) for q, number in zip(why.states, numbers, strict=True)}

    return {
        "query": task.fields.query,
        "posterior": list(map(by_state, why.posterior)),
        "conclusion": why.conclusion,
        "differences": [
            {"name": one.name, "first": one.first, "second": one.second}
            | {"posterior": by_state(one.posterior), "weight": by_state(one.weight)}
            for one in why.differences
        ],
        "text": str(why),
    }


def _explained(tac: TAC, row: Evidence) -> dict[str, Any]:
    why = tac.explain(row)

    def by_state(numbers: Floats) -> dict[str, Any]:
        return {state_key(q): as_json(number) for q, number in zip(why.states, numbers, strict=True)}

    functions = None
    if why.coefficients is not None:
        functions = [{"inputs": list(names), "coefficients": as_json(c)} for names, c in why.coefficients.items()]
    return {
        "posterior": by_state(why.posterior),
        "evidence": dict(why.evidence),
        "tests": [as_json(asdict(test) | {"margin": test.margin, "selected": test.selected}) for test in why.tests],
        "findings": [
            {"name": one.name, "value": one.value, "without": by_state(one.without), "weight": by_state(one.weight)}
            for one in why.findings
        ],
        "functions": functions,
        "text": str(why),
    }


def information(task: QueryTask) -> dict[str, Any]:
    """By how much the entropy of the query is expected to drop if a variable is observed, for every row."""
    task.require_few(len(task.net.variables))
    task.require_few_sweeps()
    tac = task.tac()
    drops = [information_of(tac, block, pause=task.deadline.check) for block in task.blocks(tac)]
    information = {name: _joined(block[name] for block in drops) for name in drops[0]}
    return {"query": task.fields.query, "information": information}


def sensitivity(task: QueryTask) -> dict[str, Any]:
    """The numbers of the network that the posterior of a state depends on most, for every row."""
    state, top = task.fields.state, task.fields.top
    task.require_few(top * len(Entry._fields))
    task.require_few_sweeps()
    tac = task.tac()
    states, posteriors, entries = [], [], []
    for block in task.blocks(tac, at_most=1):
        result = sensitivity_of(tac, block, pause=task.deadline.check)
        place = result.state(state=state)
        states.append([task.net.states(name)[k] for name, k in zip(task.asked, place, strict=True)])
        posteriors.append(as_json(result.posterior[0][place]))
        asked = [entry for entry in result.entries(state=state) if entry.node not in task.fields.do]
        largest = [(e, result.slopes[e.node, e.part][0][(..., *e.place)]) for e in asked[:top]]
        # growth is the derivative of log p*(evidence)
        entries.append([as_json(entry._asdict() | {"growth": float(slope.sum())}) for entry, slope in largest])
    return {"query": task.fields.query, "states": states, "posterior": posteriors, "entries": entries}


def _tests(task: QueryTask, answers: Sequence[Answer]) -> dict[str, Any]:
    """The decisions of testing nodes, if they are asked for: arrays over rows and the states of their parents."""
    if not task.fields.tests:
        return {}
    tests = {}
    for name in answers[0].selected:
        selected, cpt = join_rows([answer.selected[name] for answer in answers]), task.net.cpt(name)
        assert isinstance(cpt, TestingCPT)
        tests[name] = {
            "parents": list(task.net.parents(name)),
            "thresholds": as_json(cpt.thresholds),
            "operators": cpt.test.tolist(),
            "gamma": cpt.gamma,
            "posterior": as_json(selected.posterior),
            "weight": as_json(selected.weight),
        }
    return {"tests": tests}


def _joined(blocks: Iterable[Floats]) -> Any:
    return as_json(np.concatenate(list(blocks)))
