"""The report as one HTML page that needs nothing else: pictures and styles are inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape

import tacit
from paper.experiments import DAGS, GAMMA, Result, Task
from paper.functions import FORMULAS, FUNCTIONS, GRID, examples
from paper.surfaces import surface_png, trend_png

Results = Mapping[Task, Result]

STYLE = """
:root { --ink: #1f2328; --pale: #59636e; --line: #e4e8ec; --best: #1a7f37; --wash: #f6f8fa }
* { box-sizing: border-box }
body { margin: 0; background: #fff; color: var(--ink); font: 17px/1.55 system-ui, "Segoe UI", Roboto, sans-serif }
main { max-width: 1080px; margin: 0 auto; padding: 48px 20px 80px }
sub { line-height: 0 }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .6em; letter-spacing: -.01em }
h2 { font-size: 1.45rem; margin: 2.6em 0 .4em }
h3 { font-size: 1.05rem; margin: 2em 0 .2em; font-weight: 600 }
h3 .formula { font-weight: 400; color: var(--pale); margin-left: .5em }
p, ul { max-width: 44em } .small { color: var(--pale); font-size: .85rem }
.row { display: grid; gap: 6px 14px; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)) }
.row.four { grid-template-columns: 1.2fr repeat(3, 1fr) }
.row.seven { grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)) }
figure { margin: 0; text-align: center } figure img, figure svg { width: 100%; max-width: 230px; height: auto }
.dags svg, figure.wide img { max-width: 340px } figcaption { font-size: .82rem; line-height: 1.35; color: var(--pale) }
figcaption b { display: block; color: var(--ink); font-size: .92rem; font-weight: 600 }
.mse { display: block; color: var(--ink); font-size: 1rem; white-space: nowrap }
.best .mse, td.best { color: var(--best); font-weight: 650 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums }
th, td { padding: 6px 18px 6px 0; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--pale) } td.wrap { white-space: normal; min-width: 16em }
details { border-top: 1px solid var(--line); padding: .5em 0 } summary { cursor: pointer; font-weight: 600 }
code { background: var(--wash); padding: .1em .35em; border-radius: 4px; font-size: .88em }
@media (max-width: 560px) {
  body { font-size: 16px } main { padding-top: 28px } h1 { font-size: 1.6rem }
  .row, .row.seven { grid-template-columns: 1fr 1fr } .row.four { grid-template-columns: repeat(3, 1fr); gap: 4px }
  .row.four .first { order: -1 } figcaption { font-size: .78rem }
  table { font-size: .74rem } th, td { padding-right: 8px } th { white-space: normal; vertical-align: bottom }
}
"""

INTRODUCTION = """
<p>A Bayesian network that is asked for P*(Q) under soft evidence on E<sub>1</sub> and E<sub>2</sub> computes a
quotient of two multilinear functions of that evidence: one smooth sheet, however many nodes lie in between. In a
<em>testing</em> Bayesian network some nodes (shaded below) have two tables. For each state of its parents, a testing
node compares the posterior of that state, given the evidence above, with a threshold, and takes the row of one table
or of the other. So the evidence selects the network that answers it, the function has pieces, and with enough testing
nodes it comes close to any continuous function [1].</p>
<p>To learn tables and thresholds from labelled data, each test is softened to a sigmoid of slope 16. This page repeats
the paper's experiments: seven functions of two inputs, 1,024 labelled points each, and nothing known beforehand but
the structure. A compiled testing network is a <em>testing arithmetic circuit</em>, TAC; without testing nodes it is an
arithmetic circuit, AC. The paper's drawing of the network is lost, so three readings of it stand side by side (edges
point to the right).</p>
"""


def page(results: Results) -> str:
    """The whole page."""
    body = [
        "<h1>What testing Bayesian networks learn</h1>",
        INTRODUCTION,
        _dags(),
        "<h2>In one table</h2>",
        "<p>Mean squared errors; the smallest of a row is green.</p>",
        _summary(results),
        *_first_table(results),
        *_second_table(results),
        *_hard_tests(results),
        *_thresholds(results),
        *_notes(results),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = "<title>What testing Bayesian networks learn</title>"
    parts = ['<!doctype html><html lang="en"><head>', head, title, f"<style>{STYLE}</style></head><body><main>"]
    return "\n".join([*parts, *body, "</main></body></html>\n"])


# sections -------------------------------------------------------------------------------------------------


def _dags() -> str:
    figures = [_figure(dag_svg(DAGS[dag](4)), f"<b>{label(dag)}</b>") for dag in DAGS]
    return f'<div class="row dags">{"".join(figures)}</div>'


def _summary(results: Results) -> str:
    head = "".join(f"<th>{title}</th>" for title in ("", "tests", *(f"TAC, {label(dag)}" for dag in DAGS), "AC"))
    lines = []
    for function, tests in sorted({(t.function, t.tests) for t in results if t.kind == "tac"}):
        errors = {dag: results[t].mse for dag in DAGS if (t := Task(function, dag, tests)) in results}
        cells = [f'<td class="{_best(dag, errors)}">{scientific(error)}</td>' for dag, error in errors.items()]
        lines.append(
            f"<tr><td>{function_name(function)}</td><td>{tests}</td>{''.join(cells)}"
            f"<td>{scientific(ac_of(results, function).mse)}</td></tr>"
        )
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _first_table(results: Results) -> Iterable[str]:
    yield "<h2>Five functions, four tests</h2>"
    yield (
        "<p>Every function has a TAC that follows it; the AC follows only f<sub>5</sub>, which is nearly multilinear. "
        "f<sub>4</sub>, on which the TAC of the paper falls short, is fitted by the chain. The AC is drawn once: "
        "without tests, all three networks can compute exactly the same functions. Below each TAC: its error; its "
        "error with hard tests in place of the sigmoids; the error of a network that was hardened, that is, trained "
        "on with hard tests; and the time of the fit.</p>"
    )
    for function in (f for f in FUNCTIONS if f.startswith("f") and _has(results, f)):
        errors = {dag: results[t].mse for dag in DAGS if (t := Task(function, dag)) in results}
        figures = [_target(function)]
        figures += [_fitted(results, Task(function, dag), label(dag), _best(dag, errors)) for dag in errors]
        yield _heading(function) + f'<div class="row">{"".join([*figures, _ac(results, function)])}</div>'


def _second_table(results: Results) -> Iterable[str]:
    yield "<h2>More tests, closer fits</h2>"
    yield (
        "<p>A larger network starts from random numbers, or from a smaller network to which tests were added that "
        "change nothing yet. If training does not lead below the smaller network's error, that network is kept, so "
        "that the error never rises. The layer stalls on g<sub>2</sub>: all its tests see the same four posteriors, "
        "and Q adds up one function of each.</p>"
    )
    for function in (f for f in FUNCTIONS if f.startswith("g") and _has(results, f)):
        beside = (_target(function, "first"), _ac(results, function, "first"), _trend(results, function))
        figures = []
        for first, dag in zip(beside, DAGS, strict=True):
            tasks = sorted((t for t in results if (t.function, t.dag, t.kind) == (function, dag, "tac")), key=_tests)
            figures += [first, *(_fitted(results, t, f"{label(dag)} of {t.tests}") for t in tasks)]
        yield _heading(function) + f'<div class="row four">{"".join(figures)}</div>'


def _hard_tests(results: Results) -> Iterable[str]:
    yield "<h2>Hard tests</h2>"
    yield (
        "<p>With real tests in place of sigmoids, a function has pieces and jumps, and training has no gradient by the "
        "thresholds. It starts with sigmoids and ends with a search for thresholds. These are the best hard networks "
        "of four tests. A gap to sigmoids remains.</p>"
    )
    figures = []
    for function in FUNCTIONS:
        found = [r for t, r in results.items() if (t.function, t.kind, t.tests) == (function, "hard", 4)]
        if found:
            best = min(found, key=lambda result: result.mse)
            text = f"<b>{function_name(function)}, {label(best.task.dag)}</b>{_mse(best.mse)}"
            figures.append(_figure(_image(surface_png(best.surface), f"{function}, hard tests"), text))
    yield f'<div class="row seven">{"".join(figures)}</div>'


def _thresholds(results: Results) -> Iterable[str]:
    yield "<h2>The thresholds that were learned</h2>"
    yield "<p>One per state of a testing node's parents, in the order of their states, first parent first.</p>"
    for function in FUNCTIONS:
        tasks = [t for t in results if (t.function, t.kind, t.tests) == (function, "tac", 4)]
        lines = [
            f'<tr><td>{label(t.dag)}</td><td>{node}</td><td class="wrap">{_list(values)}</td></tr>'
            for t in tasks
            for node, values in results[t].thresholds.items()
        ]
        if lines:
            table = f'<div class="scroll"><table>{"".join(lines)}</table></div>'
            yield f"<details><summary>{function_name(function)}, four tests</summary>{table}</details>"


def _notes(results: Results) -> Iterable[str]:
    fitted = sum(result.seconds for result in results.values())
    yield "<h2>How it was done</h2>"
    yield (
        f"<p>Inputs are a {GRID} × {GRID} grid on the unit square, end points included; the loss is the mean squared "
        f"error of P*(Q = true); sigmoids have slope {GAMMA:g}. All tables, thresholds and priors are learned. Up to a "
        "few hundred numbers are fitted by Levenberg-Marquardt steps from several random starts, of which the worse "
        "half is dropped again and again; layers of 16 tests, whose query has a table of 65,536 rows, by Adam. Times "
        f"are processor seconds of one fit, restarts included; all {len(results)} fits took {fitted:.0f} of them with "
        f"tacit {escape(tacit.__version__)}.</p>"
    )
    yield (
        "<p>Beside this page: <code>results.csv</code> and <code>thresholds.csv</code> with all numbers, "
        "<code>networks/</code> with the trained networks (<code>tacit.load</code> reads them), and both tables as "
        "pictures.</p>"
    )
    yield (
        '<p class="small">[1] A. Choi, R. Wang and A. Darwiche, “On the relative expressiveness of Bayesian and neural '
        "networks”, International Journal of Approximate Reasoning 113, 2019.</p>"
    )


# pieces ---------------------------------------------------------------------------------------------------


def _heading(function: str) -> str:
    return f'<h3>{function_name(function)}(x, y)<span class="formula">= {escape(FORMULAS[function])}</span></h3>'


def _target(function: str, style: str = "") -> str:
    return _figure(_image(surface_png(examples(function)[1]), f"the function {function}"), "<b>function</b>", style)


def _ac(results: Results, function: str, style: str = "") -> str:
    result = ac_of(results, function)
    return _figure(_image(surface_png(result.surface), f"{function}, AC"), f"<b>AC</b>{_mse(result.mse)}", style)


def _fitted(results: Results, task: Task, title: str, style: str = "") -> str:
    """A TAC's surface with its errors, soft and hard, and its time."""
    result = results[task]
    lines = [f"hard {scientific(result.hard_mse)}"]
    hardened = results.get(Task(task.function, task.dag, task.tests, "hard"))
    if hardened is not None:
        lines.append(f"hardened {scientific(hardened.mse)}")
    text = f"<b>{title}</b>{_mse(result.mse)}{'<br>'.join([*lines, f'{result.seconds:.1f} s'])}"
    return _figure(_image(surface_png(result.surface), f"{task.function}, TAC, {title}"), text, style)


def _trend(results: Results, function: str) -> str:
    tests = sorted({t.tests for t in results if t.function == function and t.kind == "tac"})
    lines = {label(dag): [results[t].mse for n in tests if (t := Task(function, dag, n)) in results] for dag in DAGS}
    picture = trend_png(tests, lines, ac_of(results, function).mse)
    return _figure(_image(picture, f"{function}: the error falls with the number of tests"), "", "first wide")


def _figure(picture: str, text: str, style: str = "") -> str:
    return f'<figure class="{style}">{picture}<figcaption>{text}</figcaption></figure>'


def _image(png: bytes, words: str) -> str:
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _list(values: Iterable[float]) -> str:
    return " &nbsp; ".join(f"{value:.3f}" for value in values)


def _mse(value: float) -> str:
    return f'<span class="mse">{scientific(value)}</span>'


def _best(dag: str, errors: Mapping[str, float]) -> str:
    return "best" if errors[dag] == min(errors.values()) else ""


def _tests(task: Task) -> int:
    return task.tests


def _has(results: Results, function: str) -> bool:
    return any(task.function == function for task in results)


def ac_of(results: Results, function: str) -> Result:
    """The best AC of a function: the three DAGs differ by rounding only."""
    return min((r for t, r in results.items() if (t.function, t.kind) == (function, "ac")), key=lambda r: r.mse)


def label(dag: str) -> str:
    """A DAG's name for people."""
    return dag.replace("_", " ")


def function_name(function: str) -> str:
    """A function's name with its number below the line."""
    return f"{function[0]}<sub>{function[1:]}</sub>"


def scientific(value: float) -> str:
    """Two digits and a power of ten, with narrow spaces at which no line breaks.

    >>> scientific(0.0000912).replace("\\u202f", " ")
    '9.1 × 10⁻⁵'
    """
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}\u202f×\u202f10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def dag_svg(net: tacit.Network) -> str:
    """A drawing of a network from left to right, testing nodes shaded."""
    column: dict[str, int] = {}
    for name in net.variables:
        column[name] = max((column[p] + 1 for p in net.parents(name)), default=0)
    members = [[name for name in net.variables if column[name] == c] for c in range(max(column.values()) + 1)]
    at = {
        name: (24 + 252 * c / (len(members) - 1), 66 + 32 * (i - (len(names) - 1) / 2))
        for c, names in enumerate(members)
        for i, name in enumerate(names)
    }
    return "".join(
        [
            '<svg viewBox="0 0 300 132" role="img" font-family="inherit" font-size="12">',
            *_edges(net, at),
            *_nodes(net, at),
            "</svg>",
        ]
    )


def _edges(net: tacit.Network, at: Mapping[str, tuple[float, float]]) -> Iterable[str]:
    for name in net.variables:
        for parent in net.parents(name):
            (x1, y1), (x2, y2) = at[parent], at[name]
            yield f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#afb8c1"/>'


def _nodes(net: tacit.Network, at: Mapping[str, tuple[float, float]]) -> Iterable[str]:
    for name, (x, y) in at.items():
        fill = "#d0d7de" if name in net.testing_nodes else "#fff"
        yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="13" fill="{fill}" stroke="#1f2328"/>'
        yield f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" fill="#1f2328">{name}</text>'
