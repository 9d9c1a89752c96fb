"""What background knowledge buys: the quality of answers against the number of labelled rows. Run by `make study`.

Rows are sampled from real networks, so that the best possible answers are known: those of the true network. Every
method sees the same findings, each missing in a fifth of the rows, and chooses its one regularisation setting from
three by cross-validation on its own rows. Names of problems as arguments run only these.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench.networks import network
from numpy.typing import NDArray

import tacit
from paper import cells
from paper.limits import Limit, limit

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]  # positions of states, -1 where there is none

OUT = Path("build/study")
REPETITIONS = {10: 12, 30: 12, 100: 12, 300: 8, 1000: 4, 3000: 4}  # by labelled rows; large samples differ little
MOST_ROWS = 3000
FRESH_ROWS = 20_000
MISSING = 0.2
FOLDS = 3
GAMMA = 16.0  # the paper's
VERSION = 1  # of what a cell computes: cells of another version are made anew

CEILING = "true network"
WRONG = "edge missing, nothing learned"
UNSEEN = ("LungFlow", "ChestXray")


# problems -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Predict the state of `query` from `findings`, in rows sampled from `truth`.

    `given` are networks with all numbers known, `learned` networks with numbers to learn, and `others` names methods
    that know nothing.
    """

    name: str
    title: str
    truth: tacit.Network
    query: str
    findings: tuple[str, ...]
    given: Mapping[str, tacit.Network]
    learned: Mapping[str, tacit.Network]
    others: tuple[str, ...] = ()
    pictured: bool = True

    @property
    def methods(self) -> tuple[str, ...]:
        """All that learn."""
        return (*self.learned, *self.others)


def variant(
    truth: tacit.Network,
    left_out: Iterable[str] = (),
    learn: Iterable[str] = (),
    without: tuple[str, str] | None = None,
    testing: Iterable[str] = (),
    selection: str = "ancestral",
) -> tacit.Network:
    """The network without some tables, with others as starting points, without an edge, with testing nodes."""
    left_out, learn, testing = set(left_out), set(learn), set(testing)
    net = tacit.Network(truth.name, selection=selection)
    for node in truth:
        parents = [p for p in truth.parents(node) if (p, node) != without]
        if node in testing:
            net.add(node, parents, truth.states(node), testing=True, gamma=GAMMA)
        elif node in left_out:
            net.add(node, parents, truth.states(node))
        else:
            net.add(node, parents, truth.states(node), tacit.CPT(truth.table(node), learn=node in learn))
    return net


CHILD_FINDINGS = (
    "BirthAsphyxia", "Age", "LVHreport", "LowerBodyO2", "RUQO2", "CO2Report", "XrayReport", "GruntingReport",
)  # fmt: skip
ALARM_FINDINGS = (
    "TPR", "SAO2", "MINVOLSET", "FIO2", "HREKG", "HRSAT", "HRBP", "EXPCO2", "PCWP", "CVP", "HISTORY", "PRESS",
    "MINVOL", "PAP",
)  # fmt: skip


def diagnosis() -> Problem:
    """The model is right: what do its structure and its numbers buy?"""
    truth = network("child")
    local = ("Disease", "LVHreport", "LowerBodyO2", "RUQO2", "CO2Report", "XrayReport", "GruntingReport")
    numbers = sum(truth.table(node).size for node in truth)
    known = numbers - sum(truth.table(node).size for node in local)
    learned = {
        f"{known} of {numbers} numbers known": variant(truth, left_out=local),
        "structure known": variant(truth, left_out=truth),
    }
    return Problem(
        "diagnosis", "child: Disease from 8 findings", truth, "Disease", CHILD_FINDINGS, {}, learned,
        ("naive Bayes", "boosted trees", "neural network"),
    )  # fmt: skip


def missing_edge() -> Problem:
    """The model lacks an edge, and the tests of a testing node see the evidence on its other end."""
    truth, edge = network("alarm"), ("TPR", "BP")
    given, learned = repairs(truth, edge, around=("CATECHOL", "HR", "CO"))
    return Problem(
        "missing-edge", "alarm without TPR → BP: BP from 14 findings", truth, "BP", ALARM_FINDINGS, given, learned,
        ("boosted trees", "neural network"),
    )  # fmt: skip


def unseen_edge() -> Problem:
    """The model lacks an edge, and nearly all evidence is below: there is little for ancestral tests to see."""
    truth = network("child")
    given, learned = repairs(truth, UNSEEN, around=("LungParench", "XrayReport"))
    title = "child without LungFlow → ChestXray: Disease"
    return Problem("unseen-edge", title, truth, "Disease", CHILD_FINDINGS, given, learned)


def unseen_edge_alone() -> Problem:
    """The same, but only the table at the missing edge is learned, so that no other node takes a new meaning."""
    truth = network("child")
    given, learned = repairs(truth, UNSEEN, around=())
    title = "child without LungFlow → ChestXray, all else known: Disease"
    return Problem("unseen-edge-alone", title, truth, "Disease", CHILD_FINDINGS, given, learned, pictured=False)


def repairs(
    truth: tacit.Network, edge: tuple[str, str], around: Sequence[str]
) -> tuple[dict[str, tacit.Network], dict[str, tacit.Network]]:
    """Networks to compare when an edge is missing: with nothing to learn, and with the tables around it to learn."""
    node = edge[1]
    wrong = variant(truth, left_out=[node], learn=around, without=edge)
    (parent,) = wrong.parents(node)
    table = truth.posterior(node, {parent: list(truth.states(parent))})
    learned = {
        "edge known": variant(truth, left_out=[node], learn=around),
        "edge missing": wrong,
        "edge missing, testing node": variant(truth, learn=around, without=edge, testing=[node]),
        "edge missing, general selection": variant(
            truth, learn=around, without=edge, testing=[node], selection="general"
        ),
    }
    return {WRONG: wrong.with_cpts({node: table})}, learned


PROBLEMS = {
    "diagnosis": diagnosis,
    "missing-edge": missing_edge,
    "unseen-edge": unseen_edge,
    "unseen-edge-alone": unseen_edge_alone,
}


@cache
def problem_of(name: str) -> Problem:
    """A problem by its name."""
    return PROBLEMS[name]()


# data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Findings (rows, findings) and labels (rows,)."""

    findings: Codes
    labels: Codes

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.findings[which], self.labels[which])


def sample(net: tacit.Network, rows: int, rng: np.random.Generator) -> dict[str, Codes]:
    """States of all variables, parents before children."""
    drawn: dict[str, Codes] = {}
    for node in net:
        table = net.table(node)[tuple(drawn[p] for p in net.parents(node))]
        below = np.broadcast_to(table, (rows, table.shape[-1])).cumsum(axis=1)
        drawn[node] = (rng.random((rows, 1)) * below[:, -1:] >= below[:, :-1]).sum(axis=1)
    return drawn


def sample_rows(problem: Problem, rows: int, seed: Sequence[int]) -> Rows:
    """Labelled rows with missing findings."""
    rng = np.random.default_rng(seed)
    drawn = sample(problem.truth, rows, rng)
    findings = np.stack([drawn[name] for name in problem.findings], axis=1)
    return Rows(np.where(rng.random(findings.shape) < MISSING, -1, findings), drawn[problem.query])


@cache
def fresh_rows(name: str) -> Rows:
    """The rows that every method is judged by."""
    return sample_rows(problem_of(name), FRESH_ROWS, (0, 0))


# methods --------------------------------------------------------------------------------------------------

Predictor = Callable[[Codes], Floats]  # findings -> (rows, states of the query)
Fit = Callable[[Rows, float, int], Predictor]  # rows, setting, seed


class Learner(NamedTuple):
    """A way to learn, and the settings to choose from."""

    settings: tuple[float, float, float]
    fit: Fit


def learner_of(problem: Problem, method: str) -> Learner:
    """A method that learns, by its name."""
    if method in problem.learned:
        return Learner((0.1, 0.3, 1.0), network_fit(problem, problem.learned[method]))
    settings, make = {
        "naive Bayes": ((0.3, 1.0, 3.0), naive_bayes),
        "boosted trees": ((10.0, 30.0, 100.0), boosted_trees),
        "neural network": ((1.0, 3.0, 10.0), neural_network),
    }[method]
    return Learner(settings, scikit_fit(problem, make))


def network_fit(problem: Problem, net: tacit.Network) -> Fit:
    """Learn what a network leaves out; the setting is the number of pseudo-counts."""
    tac = tacit.compile(net, problem.query, problem.findings)
    states = np.array(net.states(problem.query), dtype=object)

    def fit(rows: Rows, setting: float, seed: int) -> Predictor:
        found = tacit.fit(
            tac, evidence(problem, rows.findings), states[rows.labels], loss="cross_entropy", prior=setting,
            steps=200, restarts=2, seed=seed, progress=False,
        )  # fmt: skip
        return lambda findings: found.tac.posterior(evidence(problem, findings))

    return fit


def evidence(problem: Problem, findings: Codes) -> dict[str, NDArray[np.object_]]:
    """Findings as labels; None where there is none."""
    states = (np.array([*problem.truth.states(name), None], dtype=object) for name in problem.findings)
    return {name: labels[column] for name, labels, column in zip(problem.findings, states, findings.T, strict=True)}


Make = Callable[[list[int], float, int], Any]  # numbers of states of the findings, setting, seed -> an estimator


def scikit_fit(problem: Problem, make: Make) -> Fit:
    """Fit an estimator of scikit-learn; states of the query that the rows do not show count as one row each."""
    cards = [len(problem.truth.states(name)) for name in problem.findings]
    states = len(problem.truth.states(problem.query))

    def fit(rows: Rows, setting: float, seed: int) -> Predictor:
        shown = np.unique(rows.labels)
        count = len(rows) + states - len(shown)
        inner = fitted(make(cards, setting, seed), rows) if len(shown) > 1 else lambda _: np.ones((1, 1))

        def predict(findings: Codes) -> Floats:
            found = np.full((len(findings), states), 1 / count)
            found[:, shown] = inner(findings) * (len(rows) / count)
            return found

        return predict

    return fit


def fitted(estimator: Any, rows: Rows) -> Predictor:
    """The probabilities of the states that occur in the rows; a missing finding is one more state of it, 0."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(rows.findings + 1, rows.labels)
    return lambda findings: np.asarray(estimator.predict_proba(findings + 1))


def naive_bayes(cards: list[int], setting: float, seed: int) -> Any:
    """The setting is the number of pseudo-counts."""
    from sklearn.naive_bayes import CategoricalNB

    return CategoricalNB(alpha=setting, min_categories=[card + 1 for card in cards])


def boosted_trees(cards: list[int], setting: float, seed: int) -> Any:
    """The setting is the number of trees per state; they are small, since larger ones were worse."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=int(setting), max_leaf_nodes=3, min_samples_leaf=3, early_stopping=False, random_state=seed
    )
    return on_one_hot(cards, trees)


def neural_network(cards: list[int], setting: float, seed: int) -> Any:
    """The setting is the weight decay; there is one hidden layer."""
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier((32,), alpha=setting, learning_rate_init=0.003, max_iter=1000, random_state=seed)
    return on_one_hot(cards, network)


def on_one_hot(cards: list[int], estimator: Any) -> Any:
    """An input per state of a finding, all 0 where it is missing."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    states = [np.arange(card + 1) for card in cards]
    return make_pipeline(OneHotEncoder(categories=states, drop="first", sparse_output=False), estimator)


# one cell -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One method, learned from one sample."""

    problem: str
    method: str
    rows: int
    repetition: int

    @property
    def file(self) -> str:
        """A file name for the result."""
        words = (self.problem, self.method, self.rows, self.repetition, f"v{VERSION}")
        return "-".join(str(word).replace(",", "").replace(" ", "-") for word in words) + ".json"

    @property
    def effort(self) -> float:
        """How long it takes, roughly and in no unit."""
        return self.rows + 300


class Score(NamedTuple):
    """How good answers are; the log-loss is in nats."""

    accuracy: float
    log_loss: float


@dataclass(frozen=True)
class Result:
    """What a cell came to on fresh rows, with which setting, in how many seconds."""

    accuracy: float
    log_loss: float
    setting: float
    seconds: float


def score(p: Floats, labels: Codes) -> Score:
    """Judge distributions (rows, states)."""
    right = p[np.arange(len(labels)), labels]
    return Score(float((p.argmax(axis=1) == labels).mean()), float(-np.log(right).mean()))


def choose(learner: Learner, rows: Rows, seed: int) -> float:
    """The setting with the lowest log-loss in cross-validation."""
    fold = np.arange(len(rows)) % FOLDS

    def loss(setting: float, k: int) -> float:
        inside, outside = rows.take(fold != k), rows.take(fold == k)
        return score(learner.fit(inside, setting, seed)(outside.findings), outside.labels).log_loss

    return min(learner.settings, key=lambda setting: sum(loss(setting, k) for k in range(FOLDS)))


def compute(cell: Cell) -> Result:
    """Choose a setting, learn from all rows of the sample, and judge."""
    started = time.perf_counter()
    problem, seed, fresh = problem_of(cell.problem), cell.repetition, fresh_rows(cell.problem)
    # small samples are the beginnings of large ones
    rows = sample_rows(problem, MOST_ROWS, (1, seed)).take(slice(cell.rows))
    learner = learner_of(problem, cell.method)
    setting = choose(learner, rows, seed)
    found = score(learner.fit(rows, setting, seed)(fresh.findings), fresh.labels)
    return Result(*found, setting, time.perf_counter() - started)


def given_scores(problem: Problem) -> dict[str, Score]:
    """The networks that have nothing to learn, the true one first."""
    fresh = fresh_rows(problem.name)
    columns = evidence(problem, fresh.findings)
    networks = {CEILING: problem.truth, **problem.given}
    return {name: score(net.posterior(problem.query, columns), fresh.labels) for name, net in networks.items()}


# all cells ------------------------------------------------------------------------------------------------


def cells_of(problems: Iterable[str], repetitions: Mapping[int, int]) -> list[Cell]:
    """All cells, the long ones first, so that the processes end together."""
    return [
        Cell(name, method, rows, repetition)
        for rows in sorted(repetitions, reverse=True)
        for repetition in range(repetitions[rows])
        for name in problems
        for method in problem_of(name).methods
    ]


# the report -----------------------------------------------------------------------------------------------

Line = list[tuple[int, float, float]]  # rows, mean and standard deviation over repetitions


@dataclass(frozen=True)
class Panel:
    """A problem and what became of it."""

    problem: Problem
    given: Mapping[str, Score]
    results: Mapping[Cell, Result]

    def line(self, method: str, measure: str) -> Line:
        """A method's accuracy or log-loss against rows."""
        values: dict[int, list[float]] = {}
        for cell, result in sorted(self.results.items(), key=lambda pair: pair[0].rows):
            if (cell.problem, cell.method) == (self.problem.name, method):
                values.setdefault(cell.rows, []).append(getattr(result, measure))
        return [(rows, statistics.mean(v), statistics.stdev(v) if len(v) > 1 else 0.0) for rows, v in values.items()]

    def lines(self, measure: str) -> dict[str, Line]:
        """Those of all methods that learn."""
        return {method: self.line(method, measure) for method in self.problem.methods}

    def table(self, measure: str) -> list[list[str]]:
        """A row per method and a column per number of rows."""
        lines = self.lines(measure)
        sizes = [rows for rows, _, _ in next(iter(lines.values()))]
        cells = [["labelled rows", *(f"{rows:,}" for rows in sizes)]]
        cells += [[name, *[f"{getattr(s, measure):.3f}"] * len(sizes)] for name, s in self.given.items()]
        cells += [[method, *(f"{mean:.3f} ± {sd:.3f}" for _, mean, sd in line)] for method, line in lines.items()]
        return cells


# The colours of Okabe and Ito, which the colour-blind can tell apart; markers say the same once more.
STYLES = {
    "structure known": ("#0072B2", "s"),
    "edge known": ("#0072B2", "o"),
    "edge missing": ("#D55E00", "s"),
    "edge missing, testing node": ("#009E73", "D"),
    "edge missing, general selection": ("#56B4E9", "P"),
    "naive Bayes": ("#CC79A7", "v"),
    "boosted trees": ("#7F7F7F", "^"),
    "neural network": ("#E69F00", "<"),
}
MOST_KNOWN = ("#009E73", "o")
INK = "#333333"


def picture(panels: Sequence[Panel]) -> bytes:
    """A PNG with a column per problem: accuracy, and below it the log-loss beyond that of the true network."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator
    from PIL import Image

    with rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(5.2 * len(panels), 7.6), dpi=100)
        axes = figure.subplots(2, len(panels), squeeze=False)
        for (above, below), panel in zip(axes.T, panels, strict=True):
            above.set_title(panel.problem.title, fontsize=10, loc="left", color=INK, pad=10)
            draw(above, panel.lines("accuracy"), {name: s.accuracy for name, s in panel.given.items()})
            lowest = panel.given[CEILING].log_loss
            excess = {m: [(n, y - lowest, sd) for n, y, sd in line] for m, line in panel.lines("log_loss").items()}
            below.set_yscale("log")
            draw(below, excess, {name: s.log_loss - lowest for name, s in panel.given.items() if name != CEILING})
            below.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            below.yaxis.set_major_formatter("{x:g}")
            below.set_xlabel("labelled rows")
        axes[0, 0].set_ylabel("accuracy")
        axes[1, 0].set_ylabel("log-loss beyond that of the true network (nats)")
        figure.tight_layout(w_pad=1.0)
        drawn, small = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(256).save(small, "png", optimize=True)
    return small.getvalue()


def draw(axes: Any, lines: Mapping[str, Line], levels: Mapping[str, float]) -> None:
    """Lines with a band of one standard deviation, dashed levels, and their names at the right."""
    ends = [(level, name, INK) for name, level in levels.items()]
    for level in levels.values():
        axes.axhline(level, color=INK, linewidth=1, linestyle="--")
    for method, line in lines.items():
        rows, mean, deviation = (np.array(column) for column in zip(*line, strict=True))
        colour, marker = STYLES.get(method, MOST_KNOWN)
        axes.plot(rows, mean, color=colour, marker=marker, markersize=4, linewidth=1.6)
        low = np.maximum(mean - deviation, mean / 2)  # a logarithmic axis has no room for 0
        axes.fill_between(rows, low, mean + deviation, color=colour, alpha=0.1, linewidth=0)
        ends.append((float(mean[-1]), method, colour))
    axes.set_xscale("log")
    axes.set_xticks(rows, [f"{n:,}" for n in rows])
    axes.minorticks_off()
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    label(axes, ends)


def label(axes: Any, ends: list[tuple[float, str, str]], gap: float = 0.052) -> None:
    """Names beside the ends of lines, moved apart where they would overlap."""
    to_axes, right = axes.transData + axes.transAxes.inverted(), axes.get_xlim()[1]
    marks = sorted((float(to_axes.transform((right, y))[1]), name, colour) for y, name, colour in ends)
    for place, (y, name, colour) in zip(apart([y for y, _, _ in marks], gap, top=1.0), marks, strict=True):
        axes.plot([1.0, 1.04], [y, place], color=colour, linewidth=0.6, transform=axes.transAxes, clip_on=False)
        axes.text(1.05, place, name, color=colour, va="center", fontsize=8.5, transform=axes.transAxes)


def apart(places: Sequence[float], gap: float, top: float) -> list[float]:
    """Rising numbers, moved as little as is needed to lie `gap` apart and not above `top`.

    >>> apart([0.0, 0.1, 0.9], gap=0.3, top=0.8)
    [-0.1, 0.2, 0.8]
    """
    groups: list[list[float]] = []  # of numbers that touch, each spread around its mean

    def first(group: Sequence[float]) -> float:
        length = gap * (len(group) - 1)
        return min(statistics.mean(group) - length / 2, top - length)

    for place in places:
        groups.append([place])
        while len(groups) > 1 and first(groups[-1]) < first(groups[-2]) + gap * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [round(first(group) + gap * i, 9) for group in groups for i in range(len(group))]


STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; color: #222 }
img { max-width: 100% }
table { border-collapse: collapse }
td, th { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
:is(td, th):first-child { text-align: left }
"""


def page(panels: Sequence[Panel], png: bytes) -> str:
    """The picture and all numbers as one page that needs no other file."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>What background knowledge buys</title>",
        f"<style>{STYLE}</style><h1>What background knowledge buys</h1>",
        f"<p>Means ± standard deviations over samples of labelled rows, judged by {FRESH_ROWS:,} other rows. "
        f"Every finding is missing in {MISSING:.0%} of the rows.</p>",
        "<img alt='Accuracy and log-loss against the number of labelled rows; the numbers are in the tables below.' "
        f"src='data:image/png;base64,{base64.b64encode(png).decode()}'>",
    ]
    for panel in panels:
        parts.append(f"<h2>{escape(panel.problem.title)}</h2>")
        for measure, words in (("accuracy", "Accuracy"), ("log_loss", "Log-loss (nats)")):
            parts += [f"<h3>{words}</h3>", html_table(panel.table(measure))]
    return "\n".join([*parts, "</html>", ""])


def html_table(cells: Sequence[Sequence[str]]) -> str:
    """Cells as HTML, the first row as headers."""
    rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells]
    rows[0] = rows[0].replace("td>", "th>")
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def csv_text(results: Mapping[Cell, Result]) -> str:
    """A line per cell."""
    lines = [asdict(cell) | asdict(result) for cell, result in results.items()]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


# a missing edge and its limits ------------------------------------------------------------------------------


def unseen_limit() -> Limit:
    """What selection could repair at most if the table at the unseen edge is all that is wrong."""
    problem = problem_of("unseen-edge-alone")
    columns = evidence(problem, fresh_rows(problem.name).findings)
    return limit(problem.truth, problem.given[WRONG], problem.query, UNSEEN[1], columns)


def unlimited(problem: Problem, method: str, restarts: int = 12, steps: int = 400) -> float:
    """The log-loss beyond that of the true network, if rows were unlimited: learned from its posteriors."""
    findings, counts = np.unique(fresh_rows(problem.name).findings, axis=0, return_counts=True)
    columns = evidence(problem, findings)
    p = problem.truth.posterior(problem.query, columns)
    tac = tacit.compile(problem.learned[method], problem.query, problem.findings)
    found = tacit.fit(
        tac, columns, p, loss="cross_entropy", weights=counts, restarts=restarts, steps=steps, progress=False
    )
    excess = np.repeat(p * np.log(p / found.tac.posterior(columns)), counts, axis=0)
    return float(excess.sum(axis=1).mean())


def say_what_the_unseen_edge_costs(names: Iterable[str]) -> None:
    """With unlimited rows, for every way to learn; and the share of it that selection could repair at most."""
    for problem in map(problem_of, names):
        print(f"{problem.title}, cost in nats with unlimited rows:")
        for method in problem.learned:
            print(f"  {method:32} {unlimited(problem, method):.4f}")
    found = unseen_limit()
    print(f"If all else is known, no selection repairs more than {found.repairable:.1%} of {found.cost:.4f} nats")


# the study --------------------------------------------------------------------------------------------------


def study(out: Path, names: Sequence[str], repetitions: Mapping[int, int], workers: int) -> None:
    """Compute what is not there yet, and write the page, the picture and the table."""
    results = cells.run(cells_of(names, repetitions), compute, Result, out / "cells", workers)
    panels = [Panel(problem, given_scores(problem), results) for problem in map(problem_of, names)]
    png = picture([panel for panel in panels if panel.problem.pictured])
    (out / "knowledge.png").write_bytes(png)
    cells.store(out / "knowledge.csv", csv_text(results))
    cells.store(out / "index.html", page(panels, png))
    print(f"wrote {out / 'index.html'}, knowledge.csv and knowledge.png")
    if unseen := [name for name in names if name.startswith("unseen-edge")]:
        say_what_the_unseen_edge_costs(unseen)


if __name__ == "__main__":
    try:
        study(OUT, sys.argv[1:] or list(PROBLEMS), REPETITIONS, os.cpu_count() or 1)
    except KeyboardInterrupt:
        sys.exit(f"\nstopped; finished cells are in {OUT / 'cells'}: run again to go on")
